"""Smoothing measured: derivative errors of every estimator beside the yardsticks, and speed ratios.

    python -m benchmarks.smooth yardsticks --seed 2026     errors of scikit-learn, SciPy and PyNumDiff (slow, resumable)
    python -m benchmarks.smooth ours --seed 2026           errors of every estimator of odejet.smooth
    python -m benchmarks.smooth table --seed 2026          the comparison, as Markdown
    python -m benchmarks.smooth speed                      ratios of times, measured side by side

Results are CSV files with one row per (system, output, noise, estimator), errors of orders 0..6 in the columns.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchmarks import yardsticks
from benchmarks.outputs import NOISES, Output, outputs

RESULTS = Path(__file__).parent / "results" / "smooth"
ORDER = 6
HEADER = ["system", "output", "noise", "estimator", "seconds", *(f"e{j}" for j in range(ORDER + 1))]
Estimator = Callable[[np.ndarray], np.ndarray]


def _record(path: Path, seed: int, estimators: Callable[[Output, float], dict[str, Estimator]]) -> None:
    """Append the missing rows to a CSV file, so that an interrupted run continues where it stopped."""
    done = {(row["system"], row["output"], float(row["noise"]), row["estimator"]) for row in read(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(HEADER)
        for output in outputs(seed, ORDER):
            for noise in NOISES:
                values = output.noisy(noise, seed)
                for name, estimate in estimators(output, noise).items():
                    if (output.system, output.name, noise, name) in done:
                        continue
                    start = time.perf_counter()
                    errors = output.errors(estimate(values))
                    seconds = time.perf_counter() - start
                    cells = [f"{e:.4g}" for e in errors] + [""] * (ORDER + 1 - len(errors))
                    writer.writerow([output.system, output.name, f"{noise:g}", name, f"{seconds:.4g}", *cells])
                    file.flush()


def read(path: Path) -> Iterable[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _quick_yardsticks(output: Output, noise: float) -> dict[str, Estimator]:
    t, places = output.times, output.interior
    found: dict[str, Estimator] = {
        "sklearn SE": lambda y: yardsticks.sklearn_gp(t, y, places, ORDER, "SE", restarts=1),
        "scipy spline": lambda y: yardsticks.scipy_spline(t, y, places, ORDER),
    }
    # At lower noise scikit-learn's rational quadratic stays where it starts.
    if noise >= 1e-4:
        found["sklearn RQ"] = lambda y: yardsticks.sklearn_gp(t, y, places, ORDER, "RQ", restarts=0)
    return found


def _slow_yardsticks(output: Output, noise: float) -> dict[str, Estimator]:
    band = yardsticks.bandlimit_of(output.times, output.clean)
    return {"PyNumDiff": lambda y: yardsticks.pynumdiff_spline(output.times, y, output.interior, band)}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks smooth", description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=["yardsticks"])
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args(argv)
    if options.part == "yardsticks":
        path = RESULTS / f"yardsticks-{options.seed}.csv"
        _record(path, options.seed, _quick_yardsticks)
        _record(path, options.seed, _slow_yardsticks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
