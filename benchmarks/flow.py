"""Simulation with all sensitivities, side by side with heyoka and with CVODES, on the 25 systems at random draws.

    python -m benchmarks flow [--draws N] [--seed S] [--systems NAME ...] [--write]

For every draw the three programs solve the same problem at the same times in one run.  Times are the best of several
repetitions of the whole call.  Differences are from heyoka at its tightest tolerance, relative to the largest value of
each state and sensitivity; where heyoka does not reach the end in 20,000 steps (stiff draws), from SciPy's Radau method
at its tightest tolerance instead.  Draws that neither of them follows to the end are counted as having no reference.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import heyoka
import numpy as np

from odejet.simulate import simulate
from odejet.simulate.flow import Flow, Outcome
from problems import systems, yardsticks

RESULTS = Path(__file__).parent / "results" / "flow"
HEYOKA_STEPS = 20_000
REPEATS = 7


@dataclass(frozen=True)
class Row:
    """One draw of one system."""

    system: str
    draw: int
    states: int
    unknowns: int
    method: str
    ours_ms: float
    heyoka_ms: float | None
    heyoka_compile_s: float
    cvodes_ms: float | None
    cvodes_setup_s: float
    setup_ms: float
    value_difference: float | None
    sensitivity_difference: float | None
    cvodes_difference: float | None
    reference: str  # the program that differences are from, or "none"

    @property
    def against_heyoka(self) -> float | None:
        return None if self.heyoka_ms is None else self.ours_ms / self.heyoka_ms

    @property
    def against_cvodes(self) -> float | None:
        return None if self.cvodes_ms is None else self.cvodes_ms / self.ours_ms


def seconds(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def difference(found: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """The largest differences of values and of sensitivities, each relative to its own largest size over time."""
    size = np.abs(reference).max(axis=0)
    gap = np.abs(found - reference).max(axis=0) / np.where(size > 0, size, 1.0)
    return float(gap[:, 0].max()), float(gap[:, 1:].max())


def measure(system: systems.System, draws: int, seed: int) -> list[Row]:
    generator = np.random.default_rng([seed, *system.name.encode()])
    model, times = system.model, system.times()
    begin = time.perf_counter()
    flow = Flow(model)
    setup = time.perf_counter() - begin
    begin = time.perf_counter()
    reference = yardsticks.Heyoka(model)
    compile_time = time.perf_counter() - begin
    begin = time.perf_counter()
    cvodes = yardsticks.Cvodes(model, times)
    cvodes_setup = time.perf_counter() - begin
    rows: list[Row] = []
    while len(rows) < draws:
        parameters, initial = systems.draw(system, generator)
        values = list(parameters.values()), list(initial.values())
        found = flow.run(*values, times)
        if found.outcome is not Outcome.COMPLETED:
            continue
        exact, name = reference.run(*values, times, max_steps=HEYOKA_STEPS), "heyoka"
        heyoka_time = None if exact is None else seconds(lambda v=values: reference.run(*v, times), REPEATS)
        if exact is None:
            exact, name = yardsticks.Radau(model).run(*values, times), "Radau"
        if exact is None:
            name = "none"
        ours = seconds(lambda p=parameters, x=initial: simulate(model, p, x, times, sensitivities=True), REPEATS)
        theirs = cvodes.run(*values)
        cvodes_time = None if theirs is None else seconds(lambda v=values: cvodes.run(*v), 2)
        gaps = (None, None) if exact is None else difference(found.states, exact)
        rows.append(
            Row(
                system=system.name,
                draw=len(rows),
                states=len(model.states),
                unknowns=len(model.unknowns),
                method=found.method.split(" from")[0],
                ours_ms=1e3 * ours,
                heyoka_ms=None if heyoka_time is None else 1e3 * heyoka_time,
                heyoka_compile_s=compile_time,
                cvodes_ms=None if cvodes_time is None else 1e3 * cvodes_time,
                cvodes_setup_s=cvodes_setup,
                setup_ms=1e3 * setup,
                value_difference=gaps[0],
                sensitivity_difference=gaps[1],
                cvodes_difference=None if theirs is None or exact is None else max(difference(theirs, exact)),
                reference=name,
            )
        )
    return rows


def number(value: float | None, style: str = ".2f") -> str:
    return "-" if value is None else format(value, style)


def largest(rows: list[Row], *columns: str) -> float | None:
    """The largest of what is known in some columns."""
    return max((value for row in rows for c in columns if (value := getattr(row, c)) is not None), default=None)


def table(rows: list[Row]) -> str:
    """A line per system: medians over its draws, and its worst difference."""
    head = (
        "system | states, unknowns | ours ms | heyoka ms | compile s | CVODES ms | ours/heyoka | CVODES/ours "
        "| values | sensitivities | against"
    )
    lines = [head, "|".join(["---"] + ["---:"] * 9 + ["---"])]
    for name in dict.fromkeys(row.system for row in rows):
        group = [row for row in rows if row.system == name]

        def median(field: str, group: list[Row] = group) -> float | None:
            values = [value for row in group if (value := getattr(row, field)) is not None]
            return statistics.median(values) if values else None

        cells = [
            name,
            f"{group[0].states}, {group[0].unknowns}",
            number(median("ours_ms")),
            number(median("heyoka_ms")),
            number(median("heyoka_compile_s")),
            number(median("cvodes_ms"), ".1f"),
            number(median("against_heyoka")),
            number(median("against_cvodes"), ".0f"),
            number(largest(group, "value_difference"), ".0e"),
            number(largest(group, "sensitivity_difference"), ".0e"),
            "/".join(dict.fromkeys(row.reference for row in group)),
        ]
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" for line in lines)


def summary(rows: list[Row]) -> str:
    names = list(dict.fromkeys(row.system for row in rows))
    ratios, speedups = [], []
    for name in names:
        group = [row for row in rows if row.system == name]
        if heyoka := [row.against_heyoka for row in group if row.against_heyoka is not None]:
            ratios.append(statistics.median(heyoka))
        if cvodes := [row.against_cvodes for row in group if row.against_cvodes is not None]:
            speedups.append(statistics.median(cvodes))
    median = lambda values: number(statistics.median(values) if values else None)  # noqa: E731
    return (
        f"Over {len(names)} systems: our time over heyoka's, median {median(ratios)}, largest "
        f"{number(max(ratios, default=None))}; CVODES's over ours, median {median(speedups)}; largest difference "
        f"{number(largest(rows, 'value_difference', 'sensitivity_difference'), '.0e')}; draws without a reference, "
        f"{sum(row.reference == 'none' for row in rows)}; set-up per model, median "
        f"{statistics.median(row.setup_ms for row in rows):.1f} ms."
    )


def write(rows: list[Row], text: str) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "flow.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    (RESULTS / "flow.md").write_text(f"# Simulation with all sensitivities at 750 points\n\n{text}\n")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks flow", description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systems", nargs="+", default=systems.names(), metavar="NAME")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS}")
    options = parser.parse_args(argv)
    heyoka.llvm_state.set_diskcache_enabled(False)  # its compile time is to be measured
    rows: list[Row] = []
    for name in options.systems:
        rows += measure(systems.load(name), options.draws, options.seed)
        print(f"  {name} done", file=sys.stderr)
    text = f"{summary(rows)}\n\n{table(rows)}"
    print(text)
    if options.write:
        write(rows, text)
    return 0
