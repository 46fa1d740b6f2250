"""Algebra measured: true roots found at exact data, time per solve, systems of two points.

    python -m benchmarks algebra                   a quick look: one draw of exact data per system, with times
    python -m benchmarks algebra exact --seed S    20 draws of 20 points per system (slow, resumable)
    python -m benchmarks algebra pairs             orders and root counts of two-point systems
    python -m benchmarks algebra speed             the whole suite on noisy data
    python -m benchmarks algebra phc               CSTR, or systems named after --phc, beside PHCpack
    python -m benchmarks algebra overdetermined    what a Gauss-Newton step on all rows gains on noisy data

Only this file knows true values; the solver is given jets alone, and values of what is not identifiable.
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import explicit
from benchmarks.gauss_newton import beyond, measured
from odejet.algebra.monodromy import Fibre, fibre
from odejet.algebra.solve import solve
from odejet.algebra.system import SquareSystem, Targets
from odejet.smooth import Smoothed, fit_output
from problems import phcpack, systems
from problems.squares import DRAWS, POINTS, _nearest, complex_targets, draw, exact, inputs_at, square, warped

RESULTS = Path(__file__).parent / "results" / "algebra"
FOUND = 1e-4
"""A root within this of the truth, relative to each unknown, is the true one."""
SOLVED = 1e-8


# --- exact data -------------------------------------------------------------------------------------------------------

EXACT = ["system", "draw", "targets", "found", "worst_root", "worst_residual", "roots", "returned", "seconds"]
QUANTILES = (0.5, 0.9, 0.99)


def record_exact(path: Path, names: Sequence[str], seed: int, draws: int) -> None:
    """Append what is missing to a CSV file, so that an interrupted run continues where it stopped."""
    done = {(row["system"], int(row["draw"])) for row in read(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(EXACT + [f"error_{q:g}" for q in QUANTILES])
        for name in names:
            system, found = square(name), None
            for number in range(draws):
                if (name, number) in done:
                    continue
                truth = draw(systems.load(name), np.random.default_rng([seed, number, len(name), ord(name[0])]))
                if found is None or system.fixed:
                    found = fibre(system, fixed=truth.fixed(system))
                it = exact(found, truth)
                good = int(np.sum(it.errors < FOUND))
                cells = [name, number, len(it.errors), good, f"{it.errors.max():.2g}", f"{it.residual:.2g}"]
                cells += [len(found), it.returned, f"{it.seconds:.4g}"]
                writer.writerow(cells + [f"{e:.2g}" for e in np.quantile(it.errors, QUANTILES, method="higher")])
                file.flush()


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def exact_table(path: Path) -> Iterator[str]:
    head = ["system", "roots", "targets", "true root found", "%", "median error", "99 % of errors below"]
    yield f"| {' | '.join([*head, 'worst residual', 'ms per target'])} |"
    yield "| ---|---:|---:|---:|---:|---:|---:|---:|---: |"
    rows = read(path)
    for name in sorted({row["system"] for row in rows}):
        mine = [row for row in rows if row["system"] == name]
        targets, found = (sum(int(row[key]) for row in mine) for key in ("targets", "found"))
        residual = max(float(row["worst_residual"]) for row in mine)
        milliseconds = 1e3 * np.median([float(row["seconds"]) / int(row["targets"]) for row in mine])
        middle = np.median([float(row["error_0.5"]) for row in mine])
        high = np.quantile([float(row["error_0.99"]) for row in mine], 0.95)
        cells = [name, mine[0]["roots"], targets, found, f"{100 * found / targets:.2f}", f"{middle:.0e}", f"{high:.0e}"]
        yield f"| {' | '.join(map(str, [*cells, f'{residual:.0e}', f'{milliseconds:.2f}']))} |"


# --- systems of two points --------------------------------------------------------------------------------------------


def pairs_table() -> Iterator[str]:
    yield "| system | order | order of pairs | roots | roots of pairs | unknowns | unknowns of pairs |"
    yield "| ---|---:|---:|---:|---:|---:|---: |"
    for name in systems.names():
        one, two = square(name), square(name, 2)
        order = f"{two.highest}" if two.highest < one.highest else f"{two.highest} (not lower)"
        roots = ["not known" if system.roots is None else system.roots for system in (one, two)]
        cells = [name, one.highest, order, *roots, len(one.unknowns), len(two.unknowns)]
        yield f"| {' | '.join(map(str, cells))} |"


# --- speed ------------------------------------------------------------------------------------------------------------

ESTIMATORS, PAIRS, NOISE = 6, 15, 1e-4


def derivatives(smoothed: Sequence[Smoothed], t: float, order: int, rank: int = 0) -> np.ndarray | None:
    """Jets of all outputs by the estimator of a rank in the order of trust; the last admitted, if there are fewer."""
    admitted = [list(output.admitted(t, order).values()) for output in smoothed]
    if not all(admitted):
        return None
    return np.array([found[min(rank, len(found) - 1)].derivatives(np.array([t]), order)[0] for found in admitted])


def noisy_targets(
    system: SquareSystem, smoothed: Sequence[Smoothed], places: Sequence[Sequence[float]], fixed: np.ndarray, ranks: int
) -> tuple[Targets, np.ndarray]:
    """Targets at places of one time or two, by estimators of the first ranks; and their first times."""
    found, where = [], []
    for place in places:
        for rank in range(ranks):
            jets = [derivatives(smoothed, t, system.highest, rank) for t in place]
            if all(jet is not None for jet in jets):
                found.append(jets)
                where.append(place)
    times = np.array(where)
    scale = np.array([factorial(k) for k in range(system.highest + 1)])
    inputs = np.stack([inputs_at(system, column) for column in times.T], axis=1) * scale
    return system.targets(np.array(found), inputs, fixed), times[:, 0]


def timed(function: Callable, *arguments: object, **options: object) -> tuple[Any, float]:
    start = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - start


def speed_table(seed: int) -> Iterator[str]:
    """Processor times of one data set: the fibres, found once per model, and every target."""
    head = ["system", "fibre s", "targets", "s", "all roots", "fibre of pairs s", "pairs", "s", "all roots", "suite s"]
    yield f"| {' | '.join(head)} |"
    yield "| ---" + "|---:" * (len(head) - 1) + " |"
    suites = []
    for name in systems.names():
        truth = draw(systems.load(name), np.random.default_rng([seed, len(name)]))
        values = truth.noisy(NOISE, np.random.default_rng([seed, 1]))
        smoothed = [fit_output(truth.system.times(), column) for column in values.T]
        times = warped(*truth.system.time)
        cells, suite = [name], 0.0
        for points, places, ranks in (
            (1, [(t,) for t in times], ESTIMATORS),
            (2, list(zip(times[:PAIRS], times[POINTS - PAIRS :], strict=True)), 1),
        ):
            system = square(name, points)
            found, once = timed(fibre, system, fixed=truth.fixed(system))
            targets, where = noisy_targets(system, smoothed, places, found.at.fixed, ranks)
            along = {"times": where, "flow": truth.flow} if points == 1 else {}
            solutions, seconds = timed(solve, found, targets, **along)
            whole = sum(len(solution.roots) >= len(found) for solution in solutions)
            cells += [f"{once:.2f}", str(len(targets)), f"{seconds:.3f}", str(whole)]
            suite += seconds
        suites.append(suite)
        yield f"| {' | '.join([*cells, f'{suite:.3f}'])} |"
    yield ""
    yield f"Suites of at most 1 s: {sum(s <= 1 for s in suites)} of {len(suites)}; median {np.median(suites):.3f} s."


def phc_table(names: Sequence[str], seconds: float = 1200.0) -> Iterator[str]:
    """One random complex target by PHCpack and by ours, one after the other: processor times."""
    yield "| system | way | processor s | roots | times slower |"
    yield "| ---|---|---:|---:|---: |"
    for name in names:
        lean = explicit.square(name, beyond=0)
        _, data = explicit.generic(lean, seed=1)
        verdict_rows = square(name)
        targets = complex_targets(verdict_rows, data)
        found = fibre(verdict_rows, fixed=targets.fixed.real)
        solutions, ours = timed(solve, found, targets)
        yield f"| {name} | ours, fibre known | {ours:.4f} | {len(solutions[0].roots)} | 1 |"
        for way, solver in explicit.WAYS.items():
            before = os.times().children_user
            try:
                roots = str(len(phcpack.roots(lean, data, functools.partial(solver, seconds=seconds))))
            except phcpack.Failed as failure:
                roots = str(failure)
            spent = os.times().children_user - before
            yield f"| {name} | {way} | {spent:.1f} | {roots} | {spent / ours:.0f} |"


# --- all rows ---------------------------------------------------------------------------------------------------------


def beyond_table(seed: int, draws: int = 3, noise: float = 1e-3) -> Iterator[str]:
    """The error of the best root of each target before and after Gauss-Newton steps on all rows."""
    yield "| system | targets | median error of the root | after Gauss-Newton | median ratio | smaller in % |"
    yield "| ---|---:|---:|---:|---:|---: |"
    for name in systems.names():
        system = square(name)
        if system.fixed or len(system.rows) == len(system.joined.model.outputs) * (system.highest + 1):
            continue
        found = fibre(system)
        errors = np.array([pair for k in range(draws) for pair in _beyond(found, seed, k, noise)])
        if len(errors):
            before, after = np.median(errors, axis=0)
            ratio, smaller = np.median(errors[:, 1] / errors[:, 0]), 100 * np.mean(errors[:, 1] < errors[:, 0])
            yield f"| {name} | {len(errors)} | {before:.1e} | {after:.1e} | {ratio:.2f} | {smaller:.0f} |"


def _beyond(found: Fibre, seed: int, number: int, noise: float) -> Iterator[tuple[float, float]]:
    system, name = found.system, found.system.joined.model.name
    truth = draw(systems.load(name), np.random.default_rng([seed, number]))
    values = truth.noisy(noise, np.random.default_rng([seed, number, 1]))
    smoothed = [fit_output(truth.system.times(), column) for column in values.T]
    times = warped(*truth.system.time)[:-1]
    true, inputs = truth.at(times)[:, system.columns], inputs_at(system, times)
    scale = np.array([factorial(k) for k in range(system.highest + 1)])
    jets = [[output.jet(t, system.highest, "blend") for output in smoothed] for t in times]
    means = np.array([[[jet.mean for jet in row]] for row in jets])
    solutions = solve(found, system.targets(means, inputs[:, None] * scale), times=times, flow=truth.flow)
    for i, solution in enumerate(solutions):
        real = solution.real()
        if len(real):
            root = min(real, key=lambda z: _nearest(z[None], true[i]))[None]
            improved = beyond(system, root, measured(system, jets[i], inputs[i]))
            yield _nearest(root, true[i]), _nearest(improved.estimates, true[i])


# --- command line -----------------------------------------------------------------------------------------------------


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks algebra", description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", default="quick", choices=["quick", *TABLES])
    parser.add_argument("--seed", type=int, default=424242)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--phc", nargs="*", default=["cstr"], metavar="NAME", help="systems beside PHCpack")
    options = parser.parse_args(argv)
    if options.what == "quick":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "exact.csv"
            record_exact(path, systems.names(), options.seed, 1)
            print(*exact_table(path), sep="\n")
        return 0
    RESULTS.mkdir(parents=True, exist_ok=True)
    lines = [TABLES[options.what], ""]
    for line in _lines(options):
        print(line, flush=True)
        lines.append(line)
    (RESULTS / f"{options.what}.md").write_text("\n".join(lines) + "\n")
    return 0


def _lines(options: argparse.Namespace) -> Iterator[str]:
    match options.what:
        case "exact":
            path = RESULTS / f"exact-{options.seed}.csv"
            record_exact(path, systems.names(), options.seed, options.draws)
            yield from exact_table(path)
        case "pairs":
            yield from pairs_table()
        case "speed":
            yield from speed_table(options.seed)
        case "phc":
            yield from phc_table(options.phc)
        case "overdetermined":
            yield from beyond_table(options.seed)


TABLES = {
    "exact": """\
# Exact data

Random draws, 20 warped shooting times each, jets exact. The true root counts as found within 1e-4, relative to each
unknown; residuals are of all returned roots, relative to the largest terms; times are of the processor.""",
    "pairs": """\
# One shooting point and two

Highest derivative and exact number of roots at generic data.""",
    "speed": """\
# The suite of one data set

20 shooting times by 6 estimators, and 15 pairs, from data with noise 1e-4; seconds of one processor core. *All roots*
counts targets with as many roots as the fibre. Fibres are found once per model and do not count to the suite.""",
    "phc": """\
# PHCpack and ours at the same target

One random complex target; processor seconds, one after the other on the same machine.""",
    "overdetermined": """\
# Gauss-Newton on all rows

Data with noise 1e-3, the evidence blend, 19 shooting times in 3 draws; the largest relative error of an unknown, for
the root nearest to the truth. Systems that use every row up to their highest order are left out.""",
}
