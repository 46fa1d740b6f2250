"""Projection: evaluations to the optimum of problems with scales and offsets, with and without eliminating them.

python -m benchmarks projection [--seed 16] [--starts 20] [--sets 1 3]

Ten models whose outputs have a scale, an offset or both, that are not known and belong to each data set: 30 points,
noise of 2 % of the spread, one data set or three.
Starts are those of a search that knows nothing: the sizes that the units of the data suggest, times factors of up to a
hundred either way, even by their logarithm, and without screening.  Counted are evaluations of the misfit with
derivatives for each start that reaches the best optimum of all: those of all starts, divided by how many reach it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import odejet as oj
from odejet.problem import Problem
from odejet.search import refine as refinement

RESULTS = Path(__file__).parent / "results" / "refine"
POINTS, NOISE, FACTOR, SAME = 30, 0.02, 100.0, 1e-3


@dataclass(frozen=True)
class Task:
    """A model with true values of all its unknowns, and when it is measured."""

    model: oj.Model
    truth: Mapping[str, float]
    end: float


def _task(
    name: str,
    states: Mapping[str, str],
    outputs: Mapping[str, str],
    truth: Mapping[str, float],
    end: float,
    initial: Mapping[str, float] | None = None,
) -> Task:
    return Task(oj.Model(dict(states), dict(outputs), initial=dict(initial or {}), name=name), truth, end)


LV = {"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}
RATES = {"k1": 0.7, "k2": 0.5, "k3": 0.6}
TASKS = {
    one.model.name: one
    for one in (
        _task("decay", {"x": "-k*x"}, {"y": "a*x + b"}, {"k": 0.6, "a": 40.0, "b": 5.0}, 8, {"x": 1}),
        _task("logistic", {"x": "r*x*(1 - x)"}, {"y": "a*x + b"}, {"x": 0.05, "r": 0.9, "a": 120.0, "b": 3.0}, 12),
        _task(
            "predators",
            LV,
            {"y1": "a1*r + b1", "y2": "a2*w + b2"},
            {**RATES, "a1": 30.0, "b1": 4.0, "a2": 0.05, "b2": 0.01},
            20,
            {"r": 1, "w": 0.5},
        ),
        _task("prey", LV, {"y": "a*r"}, {**RATES, "a": 250.0}, 20, {"r": 1, "w": 0.5}),
        _task(
            "epidemic",
            {"S": "-beta*S*I", "I": "beta*S*I - gamma*I"},
            {"y": "a*I + b"},
            {"beta": 1.2, "gamma": 0.4, "a": 900.0, "b": 20.0},
            20,
            {"S": 1, "I": 0.01},
        ),
        _task(
            "absorption",
            {"gut": "-ka*gut", "blood": "ka*gut - ke*blood"},
            {"y": "a*blood + b"},
            {"ka": 1.5, "ke": 0.2, "a": 12.0, "b": 0.4},
            16,
            {"gut": 1, "blood": 0},
        ),
        _task(
            "oscillator",
            {"x": "v", "v": "mu*(1 - x**2)*v - x"},
            {"y1": "a*x + b", "y2": "c*v"},
            {"mu": 0.8, "a": 15.0, "b": 30.0, "c": 0.02},
            15,
            {"x": 1, "v": 0},
        ),
        _task(
            "enzyme",
            {"s": "-v*s/(km + s)"},
            {"y": "a*(1 - s) + b"},
            {"v": 0.3, "km": 0.4, "a": 700.0, "b": 50.0},
            8,
            {"s": 1},
        ),
        _task(
            "cascade",
            {"x1": "u - d1*x1", "x2": "p*x1/(1 + x1) - d2*x2"},
            {"y1": "a1*x1", "y2": "a2*x2 + b2"},
            {"u": 1.0, "d1": 0.5, "p": 0.8, "d2": 0.3, "a1": 20.0, "a2": 300.0, "b2": 10.0},
            15,
            {"x1": 0, "x2": 0},
        ),
        _task("settling", {"x": "k*(1 - x)"}, {"y": "a*x"}, {"x": 0.2, "k": 0.4, "a": 0.003}, 10),
    )
}


def problem_of(name: str, seed: int, sets: int) -> tuple[Problem, np.ndarray]:
    """Noisy data of a task in so many data sets, each with scales and offsets of its own, and the truth."""
    task = TASKS[name]
    rng = np.random.default_rng([seed, sorted(TASKS).index(name)])
    times = np.linspace(0, task.end, POINTS)
    local = [name for name in task.model.parameters if name.strip("12") in ("a", "b", "c")]
    parts, truths = [], {}
    for number in range(sets):
        label = f"e{number + 1}"
        values = dict(task.truth) | {key: task.truth[key] * (1 + 2 * number) for key in local}
        own = {key: value for key, value in values.items() if key in task.model.parameters}
        states = {key: value for key, value in values.items() if key in task.model.states}
        clean = oj.simulate(task.model, own, states, times)
        series = {y: clean[y] + NOISE * clean[y].std() * rng.normal(size=POINTS) for y in task.model.outputs}
        parts.append(oj.Data(times, series, name=label))
        truths[label] = values
    problem = Problem(task.model, oj.Data.join(parts), local=local if sets > 1 else [])
    return problem, np.array([truths[one.experiment or "e1"][one.name] for one in problem.layout])


def cell(name: str, seed: int, starts: int, sets: int) -> dict[str, Any]:
    """Evaluations from the same starts in both ways, for each that reaches the best optimum."""
    problem, truth = problem_of(name, seed, sets)
    rng = np.random.default_rng([seed, 1])
    found = []
    for _ in range(starts):
        start = problem.sizes * np.exp(rng.uniform(-np.log(FACTOR), np.log(FACTOR), len(truth)))
        frame = problem.frame(problem.sizes)
        both = [refinement.refine(problem.misfit, start, frame=frame)]
        with patch.object(refinement, "projected", lambda *_: None):
            both.append(refinement.refine(problem.misfit, start, frame=frame))
        found.append(both)
    frame = problem.frame(truth)
    best = min(
        refinement.refine(problem.misfit, truth, frame=frame).cost, *(one.cost for both in found for one in both)
    )
    reached = [sum(both[i].cost <= best + SAME for both in found) for i in (0, 1)]
    spent = [sum(both[i].evaluations for both in found) for i in (0, 1)]
    return {"model": name, "sets": sets, "starts": starts, "reached": reached, "evaluations": spent}


def ratio(line: Mapping[str, Any]) -> float:
    """Evaluations for each start that reaches the optimum, without elimination beside with it."""
    each = [
        count / hits if hits else float("inf") for count, hits in zip(line["evaluations"], line["reached"], strict=True)
    ]
    return each[1] / each[0]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks projection", description=__doc__)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--sets", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--models", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args(argv)
    path = arguments.output or RESULTS / f"projection-seed{arguments.seed}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [cell(name, arguments.seed, arguments.starts, n) for n in arguments.sets for name in arguments.models]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for line in lines:
        print(line, f"{ratio(line):.2f}")
    for n in arguments.sets:
        print(f"{n} data sets: median ratio {np.median([ratio(line) for line in lines if line['sets'] == n]):.2f}")
    return 0
