"""Refinement and multistart on the 25 systems, beside refinements that start at the truth.

    python -m benchmarks refine [--points N ...] [--noise ETA ...] [--draws N] [--seed S] [--systems NAME ...]
                                [--limit SECONDS] [--yardstick] [--write]

Every draw is fitted from the truth, from the truth perturbed by 10 %, by 50 % and by factors up to 3, and by multistart
in the protocol's bounds without any start.  A fit arrives if its cost is at most that of the fit from the truth plus a
thousandth (a negative log-likelihood; without noise, if its residuals are down to rounding or the same).  The
yardstick is SciPy's bounded least squares (trf) in the same coordinates, with the noise levels told to both.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.optimize import least_squares

from odejet.decide.statistics import is_plausible
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import choose
from odejet.search.portfolio import explore
from odejet.search.refine import Refined, refine
from problems import systems
from problems.draws import perturbed, problem

RESULTS = Path(__file__).parent / "results" / "refine"
STARTS = ("10 %", "50 %", "factor 3", "multistart")
SAME = 1e-3
LIMIT = 6.0


@dataclass(frozen=True)
class Row:
    """One fit of one draw."""

    system: str
    points: int
    noise: float
    draw: int
    start: str
    arrived: bool
    excess: float  # of the cost over that of the fit from the truth
    evaluations: int
    seconds: float
    ending: str


def arrived(found: Refined, reference: Refined, misfit: Misfit, noise: float) -> bool:
    if noise > 0:
        return found.cost <= reference.cost + SAME
    return bool(np.all(found.levels <= np.maximum(4 * misfit.floors, 1.01 * reference.levels)))


def measure(system: systems.System, points: int, noise: float, draw: int, seed: int, limit: float) -> list[Row]:
    rng = np.random.default_rng([seed, draw, points, int(1e9 * noise), *system.name.encode()])
    misfit, truth = problem(system, points, noise, rng)
    bounds = systems.protocol().bounds
    reference = refine(misfit, truth, bounds)
    rows = []

    def note(start: str, found: Refined | None, seconds: float) -> None:
        there = found is not None and arrived(found, reference, misfit, noise)
        excess = np.inf if found is None else found.cost - reference.cost
        evaluations, ending = (0, "NOTHING") if found is None else (found.evaluations, found.ending.name)
        rows.append(Row(system.name, points, noise, draw, start, there, float(excess), evaluations, seconds, ending))

    note("truth", reference, reference.seconds)
    for start in STARTS[:3]:
        found = refine(misfit, perturbed(truth, start, rng), bounds, time_limit=limit)
        note(start, found, found.seconds)
    begin = perf_counter()
    optima = explore(misfit, bounds, seed=draw, time_limit=limit, plausible=partial(is_plausible, misfit))
    note("multistart", optima[0] if optima else None, perf_counter() - begin)
    return rows


def yardstick(system: systems.System, points: int, noise: float, draw: int, seed: int) -> list[Row]:
    """Ours and SciPy's method from the same starts, with the noise levels of the fit from the truth."""
    rng = np.random.default_rng([seed, draw, points, int(1e9 * noise), *system.name.encode()])
    free, truth = problem(system, points, noise, rng)
    bounds = systems.protocol().bounds
    misfit = free.window(1.0, levels=refine(free, truth, bounds).levels)
    reference, frame = refine(misfit, truth, bounds), choose(misfit.unknowns, truth, bounds)
    level = misfit.row_levels(misfit.known)
    count = 0

    def residuals(theta: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        found = misfit.evaluate(frame.back(theta))
        return np.full(misfit.points, 1e10) if found.residuals is None else found.residuals / level

    def jacobian(theta: np.ndarray) -> np.ndarray:
        z = frame.back(theta)
        return misfit.evaluate(z).dense * frame.slopes(z) / level[:, None]

    rows = []
    for start in STARTS[:2]:
        z = frame.inside(perturbed(truth, start, rng))
        ours = refine(misfit, z, bounds)
        begin = perf_counter()
        low, high = frame.box
        inner = np.clip(frame.to(z), low + 1e-9, high - 1e-9)
        theirs = least_squares(residuals, inner, jacobian, (low, high), xtol=1e-12, ftol=1e-12, gtol=1e-12)
        seconds = perf_counter() - begin
        excess = misfit.score(frame.back(theirs.x)) - reference.cost
        common = (system.name, points, noise, draw)
        rows.append(
            Row(*common, f"{start}, ours", arrived(ours, reference, misfit, noise), ours.cost - reference.cost,
                ours.evaluations, ours.seconds, ours.ending.name)
        )  # fmt: skip
        rows.append(Row(*common, f"{start}, trf", excess <= SAME, excess, count, seconds, str(theirs.status)))
        count = 0
    return rows


def table(rows: list[Row]) -> str:
    """A line per number of points, noise and start."""
    lines = ["| points | noise | start | arrived | median ms | 95th percentile ms | evaluations |"]
    lines.append("|---:|---:|---|---:|---:|---:|---:|")
    for key in dict.fromkeys((row.points, row.noise, row.start) for row in rows):
        group = [row for row in rows if (row.points, row.noise, row.start) == key]
        hits, milliseconds = sum(row.arrived for row in group), [1e3 * row.seconds for row in group]
        lines.append(
            f"| {key[0]} | {key[1]:g} | {key[2]} | {hits}/{len(group)} | {statistics.median(milliseconds):.0f} "
            f"| {np.quantile(milliseconds, 0.95):.0f} | {statistics.median(row.evaluations for row in group):.0f} |"
        )
    return "\n".join(lines)


def by_system(rows: list[Row]) -> str:
    """A line per system: how often each start arrived, and medians of milliseconds."""
    starts = ("truth", *STARTS)
    lines = ["| system | " + " | ".join(f"{start}, ms" for start in starts) + " |", "|---|" + "---:|" * len(starts)]
    for name in dict.fromkeys(row.system for row in rows):
        cells = []
        for start in starts:
            group = [row for row in rows if (row.system, row.start) == (name, start)]
            milliseconds = 1e3 * statistics.median(row.seconds for row in group)
            cells.append(f"{sum(row.arrived for row in group)}/{len(group)}, {milliseconds:.0f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(rows: list[Row], text: str) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "refine.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    (RESULTS / "refine.md").write_text(f"# Refinement beside fits from the truth\n\n{text}\n")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks refine", description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=int, nargs="+", default=[750, 30])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 1e-8, 1e-4, 1e-2])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systems", nargs="+", default=systems.names(), metavar="NAME")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a fit")
    parser.add_argument("--yardstick", action="store_true", help="compare with SciPy's least_squares instead")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {RESULTS}")
    options = parser.parse_args(argv)
    rows: list[Row] = []
    for name in ("lotka_volterra", "brusselator"):  # so that no compilation is timed
        measure(systems.load(name), 30, 1e-2, 0, 0, 1.0)
    for name in options.systems:
        for points in options.points:
            for noise in options.noise:
                for draw in range(options.draws):
                    if options.yardstick:
                        rows += yardstick(systems.load(name), points, noise, draw, options.seed)
                        continue
                    rows += measure(systems.load(name), points, noise, draw, options.seed, options.limit)
                    for row in rows[-len(STARTS) :]:
                        if not row.arrived:
                            print(f"  {row}", file=sys.stderr)
    if options.yardstick:
        print(table(sorted(rows, key=lambda row: (-row.points, row.noise))))
        return 0
    text = f"{table(sorted(rows, key=lambda row: (-row.points, row.noise)))}\n\n{by_system(rows)}"
    print(text)
    if options.write:
        write(rows, text)
    return 0
