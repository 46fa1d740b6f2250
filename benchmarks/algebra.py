"""Algebra measured: true roots found at exact data, time per solve, systems of two points.

    python -m benchmarks algebra                   a quick look: one draw of exact data per system, with times
    python -m benchmarks algebra exact --seed S    20 draws of 20 points per system (slow, resumable)
    python -m benchmarks algebra pairs             orders and root counts of two-point systems
    python -m benchmarks algebra speed             the whole suite on noisy data, and CSTR beside PHCpack
    python -m benchmarks algebra overdetermined    what a Gauss-Newton step on all rows gains on noisy data

Only this file knows true values; the solver is given jets alone, and values of what is not identifiable.
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import factorial
from pathlib import Path

import numpy as np

from benchmarks import explicit, phcpack, systems
from odejet.algebra.monodromy import Fibre, fibre
from odejet.algebra.select import select
from odejet.algebra.solve import Solutions, solve
from odejet.algebra.system import SquareSystem, Targets
from odejet.flow import Flow, Outcome
from odejet.jets.inputs import input_jets

RESULTS = Path(__file__).parent / "results" / "algebra"
POINTS, DRAWS = 20, 20
FOUND = 1e-4
"""A root within this of the truth, relative to each unknown, is the true one."""
SOLVED = 1e-8


def warped(first: float, last: float, points: int = POINTS) -> np.ndarray:
    """Shooting times, denser at the beginning, as the paper warps them."""
    u = np.linspace(0.0, 1.0, points)
    return first + (last - first) * np.expm1(3.0 * u) / np.expm1(3.0)


@functools.cache
def square(name: str, points: int = 1) -> SquareSystem:
    return select(systems.load(name).model, points)


@dataclass(frozen=True)
class Draw:
    """True values of one random draw whose solution reaches the end."""

    system: systems.System
    flow: Flow
    parameters: np.ndarray
    states: np.ndarray

    def at(self, times: np.ndarray) -> np.ndarray:
        """All states and parameters at some times."""
        run = self.flow.run(self.parameters, self.states, np.r_[self.system.time[0], times], sensitivities=False)
        states = run.states[1:, :, 0]
        return np.concatenate([states, np.tile(self.parameters, (len(times), 1))], axis=1)

    def fixed(self, square: SquareSystem) -> np.ndarray:
        known = dict(zip(self.system.model.parameters, self.parameters, strict=True))
        known |= dict(zip(self.system.model.states, self.states, strict=True))
        return np.array([known[name] for name in square.fixed])

    def noisy(self, noise: float, rng: np.random.Generator) -> np.ndarray:
        """Data of the benchmark's protocol: noise relative to the mean of each output."""
        run = self.flow.run(self.parameters, self.states, self.system.times(), sensitivities=False)
        values = run.outputs[:, :, 0]
        return values + noise * abs(values.mean(axis=0)) * rng.normal(size=values.shape)


def draw(system: systems.System, rng: np.random.Generator) -> Draw:
    flow = Flow(system.model)
    while True:
        parameters, states = systems.draw(system, rng)
        found = Draw(system, flow, np.array(list(parameters.values())), np.array(list(states.values())))
        run = flow.run(found.parameters, found.states, system.times(), sensitivities=False)
        if run.outcome is Outcome.COMPLETED:
            return found


def inputs_at(square: SquareSystem, times: np.ndarray) -> np.ndarray:
    """Taylor coefficients of the model's inputs, and of the time where equations contain it."""
    model, orders = square.joined.model, square.highest + 1
    result = np.zeros((len(times), square.joined.inputs, orders))
    if model.inputs:
        result[:, : len(model.inputs)] = input_jets(model, {}, times, square.highest)
    if square.joined.timed:
        result[:, -1, 0] = times
        result[:, -1, 1:2] = 1.0
    return result


# --- exact data -------------------------------------------------------------------------------------------------------

EXACT = ["system", "draw", "targets", "found", "worst_root", "worst_residual", "roots", "returned", "seconds"]
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Exact:
    """Exact targets along one trajectory, and what was found there."""

    errors: np.ndarray
    residual: float
    returned: int
    seconds: float


def exact(found: Fibre, truth: Draw) -> Exact:
    """Solve at warped times with exact jets: the error of the nearest root at each, and the largest residual."""
    system, times = found.system, warped(*truth.system.time)
    true = truth.at(times)[:, system.columns]
    inputs, fixed = inputs_at(system, times), found.at.fixed
    data, _ = system.evaluate(true, inputs, fixed)
    targets = Targets(data, inputs, fixed)
    start = time.process_time()
    solutions = solve(found, targets, times=times, flow=truth.flow)
    seconds = time.process_time() - start
    errors = np.array([_nearest(solutions[i].roots, true[i]) for i in range(len(times))])
    owners = np.repeat(np.arange(len(times)), [len(s.roots) for s in solutions])
    roots = np.concatenate([s.roots for s in solutions])
    residuals = system.residuals(roots, targets[owners]) if len(roots) else np.zeros(1)
    return Exact(errors, float(residuals.max()), len(roots), seconds)


def _nearest(roots: np.ndarray, true: np.ndarray) -> float:
    return float(min((np.max(abs(r - true) / np.maximum(abs(true), 1e-12)) for r in roots), default=np.inf))


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
                writer.writerow(cells + [f"{e:.2g}" for e in np.quantile(it.errors, QUANTILES)])
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
