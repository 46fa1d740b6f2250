"""Sharp features in random models: is any simulation wrong that says it succeeded?

    python -m benchmarks sharp [--seed S] [--count N] [--write]

Every model has up to three states, or fast ones beside them (stiff), or more than forty (large), and one to three
features: switches, pulses, windows, square waves and steep rates, of widths from 1e-3 to 1 (time) or to the range of a
state, at random places.  Times are few or many.  The yardstick is CVODES with steps that are short beside every
feature.  Every model is one line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from problems.sharp import _SHAPES, Row, drawn, measured

RESULTS = Path(__file__).parent / "results" / "sharp"


def stored(path: Path) -> list[Row]:
    """The rows of earlier runs."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Row(
                **{
                    field.name: _read(field.type, line[field.name])  # type: ignore[arg-type]
                    for field in fields(Row)
                }
            )
            for line in csv.DictReader(file)
        ]


def _read(kind: str, text: str) -> object:
    if kind == "str":
        return text
    if kind == "int":
        return int(text)
    return float(text) if text else None


def store(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        if fresh:
            writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def table(rows: list[Row]) -> str:
    """A line per kind of model and of feature, with how many are wrong or were not simulated to the end."""
    groups = {"all": rows}
    for name in ("stiff", "large"):
        groups[name] = [row for row in rows if name in row.base]
    groups["ordinary"] = [row for row in rows if "," not in row.base]
    for low in (1e-3, 1e-2, 1e-1):
        groups[f"narrowest {low:g} to {10 * low:g}"] = [row for row in rows if low <= row.narrowest < 10 * low]
    for shape in _SHAPES:
        groups[shape] = [
            row for row in rows if any(part.startswith(f"{shape} in") for part in row.features.split("; "))
        ]
    for few in (True, False):
        groups["few times" if few else "many times"] = [row for row in rows if (row.times <= 7) == few]
    lines = [
        "| models | number | wrong | not completed | no yardstick | median difference | largest | median steps |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, group in groups.items():
        known = [row.difference for row in group if row.difference is not None]
        cells = [
            name,
            str(len(group)),
            str(sum(row.wrong for row in group)),
            str(sum(row.outcome != "COMPLETED" for row in group)),
            str(sum(row.outcome == "COMPLETED" and row.difference is None for row in group)),
            f"{np.median(known):.0e}" if known else "-",
            f"{max(known):.0e}" if known else "-",
            f"{np.median([row.steps for row in group]):.0f}" if group else "-",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks sharp", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", type=int, nargs="*", metavar="DRAW", help="these draws, printed and not stored")
    options = parser.parse_args(argv)
    for draw in options.only or ():
        print(drawn(options.seed, draw), measured(options.seed, draw), sep="\n")
    if options.only:
        return 0
    path = RESULTS / f"seed{options.seed}.csv"
    rows = [row for row in stored(path) if row.draw < options.count]
    done = {row.draw for row in rows}
    for draw in range(options.count):
        if draw not in done:
            rows.append(measured(options.seed, draw))
            store(path, rows[-1:])
            if rows[-1].wrong or rows[-1].outcome != "COMPLETED":
                print(f"  {rows[-1]}", file=sys.stderr)
    text = table(rows)
    print(text)
    path.with_suffix(".md").write_text(f"# Random models with sharp features\n\n{text}\n")
    return 0
