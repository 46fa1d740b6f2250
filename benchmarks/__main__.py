"""`python -m benchmarks SECTION`: measurements, one section each, and the whole benchmark: generate, run, report."""

from __future__ import annotations

import importlib
import sys

SECTIONS = (
    "flow",
    "sharp",
    "switches",
    "driven",
    "identify",
    "smooth",
    "explicit",
    "algebra",
    "refine",
    "accuracy",
    "beyond",
    "networks",
    "hostile",
    "answers",
    "real",
    "gallery",
    "solutions",
    "coverage",
    "warnings",
    "noise",
    "censored",
    "curves",
    "correlated",
    "projection",
    "sideby",
    "gate",
    "limits",
    "chains",
    "draws",
    "sbc",
    "silence",
    "population",
    "experiments",
    "structure",
    "workers",
    "generate",
    "run",
    "pack",
    "ceiling",
    "report",
    "cstr",
    "summary",
    "stiff",
    "sbml",
    "biomodels",
    "collection",
    "ablation",
    "delays",
    "race",
)


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in SECTIONS:
        print(f"usage: python -m benchmarks {{{','.join(SECTIONS)}}} [options]", file=sys.stderr)
        return 2
    return importlib.import_module(f"benchmarks.{argv[0]}").main(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
