"""Projection: evaluations to the optimum of problems with scales and offsets, with and without eliminating them.

python -m benchmarks projection [--seed 16] [--starts 20] [--searches 6] [--sets 1 3] [--output FILE]

Ten models whose outputs have a scale, an offset or both, that are not known and belong to each data set: 30 points,
noise of 2 % of the spread, one data set or three.  Counted are evaluations of the misfit with derivatives until its
best optimum is first reached, with what those starts or searches took that did not reach it.

- refinements, from starts that know nothing: the sizes that the units of the data suggest, times factors of up to a
  hundred either way, even by their logarithm, and without screening;
- searches of the box from several seeds, each until it has the optimum: both ways look at 64 starts at a glance first;
- minpack, where there is one output: Levenberg and Marquardt's method from the starts of the refinements, on the same
  residuals and derivatives.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from odejet.objective.reduction import Aim
from scipy.optimize import least_squares

import odejet as oj
from benchmarks import lines as records
from benchmarks.store import write_whole
from odejet.objective import projection
from odejet.objective.evaluation import Evaluation
from odejet.problem import Problem
from odejet.search import ground, portfolio, screen
from odejet.search import refine as refinement
from odejet.search.descent import Descent

RESULTS = Path(__file__).parent / "results" / "refine"
POINTS, NOISE, FACTOR, SAME = 30, 0.02, 100.0, 1e-3
SEARCHED = 768  # starts that a search may draw
FAR = 1e6  # residuals, in units of the spread, where nothing can be simulated
WAYS = ("refinements", "searches", "minpack")


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


WITHOUT = [(refinement, "projected"), (ground, "projected"), (screen, "projected")]
"""Where scales and offsets are eliminated."""


@contextmanager
def eliminating(wanted: bool) -> Iterator[None]:
    """With or without eliminating scales and offsets."""
    with ExitStack() as stack:
        for module, name in () if wanted else WITHOUT:
            stack.enter_context(patch.object(module, name, lambda *_: None))
        yield


@contextmanager
def recorded() -> Iterator[list[float]]:
    """The costs of all points that refinements look at, in order."""
    costs: list[float] = []
    evaluate = Descent.evaluate

    def watched(self: Descent, theta: np.ndarray, aim: Aim | None = None) -> Evaluation:
        found = evaluate(self, theta, aim)
        costs.append(math.inf if found.residuals is None else self.misfit.cost(found.residuals, rest=found.rest))
        return found

    with patch.object(Descent, "evaluate", watched):
        yield costs


@dataclass(frozen=True)
class Tally:
    """Evaluations that were spent, and how often the optimum was reached."""

    spent: int = 0
    reached: int = 0

    def with_costs(self, costs: Sequence[float], best: float) -> Tally:
        """And those of one more attempt, which ends where it reaches the optimum."""
        hits = [i for i, cost in enumerate(costs) if cost <= best + SAME]
        return Tally(self.spent + (hits[0] + 1 if hits else len(costs)), self.reached + bool(hits))

    @property
    def each(self) -> float:
        return self.spent / self.reached if self.reached else math.inf


def refinements(problem: Problem, starts: Sequence[np.ndarray], best: float, eliminate: bool) -> Tally:
    tally, frame = Tally(), problem.frame(problem.sizes)
    for start in starts:
        with eliminating(eliminate), recorded() as costs:
            refinement.refine(problem.misfit, start, frame=frame)
        tally = tally.with_costs(costs, best)
    return tally


def searches(problem: Problem, seeds: range, best: float, eliminate: bool) -> Tally:
    """Searches that end with the optimum; those on parts of the data do not count as having reached it."""
    tally = Tally()
    for seed in seeds:
        with eliminating(eliminate), recorded() as costs:
            found = portfolio.explore(
                problem.misfit, scale=problem.sizes, seed=seed, starts=SEARCHED, goal=best + SAME, agree=SEARCHED
            )
        reached = bool(found) and found[0].cost <= best + SAME
        tally = Tally(tally.spent + len(costs), tally.reached + reached)
    return tally


def minpack(problem: Problem, starts: Sequence[np.ndarray], best: float, eliminate: bool) -> Tally:
    """Refinements by another program."""
    whole, frame = problem.misfit, problem.frame(problem.sizes)
    part = projection.projected(whole, frame) if eliminate else None
    misfit, own = (whole, frame) if part is None else (part, part.frame)
    tally = Tally()
    for start in starts:
        costs: list[float] = []

        def residuals(theta: np.ndarray, costs: list[float] = costs) -> np.ndarray:
            found = misfit.evaluate(own.back(theta))
            costs.append(math.inf if found.residuals is None else misfit.cost(found.residuals))
            return np.full(misfit.points, FAR) if found.residuals is None else found.residuals / misfit.scales[0]

        def derivatives(theta: np.ndarray) -> np.ndarray:
            slopes = own.slopes(own.back(theta))
            return misfit.evaluate(own.back(theta)).dense * slopes / misfit.scales[0]

        first = own.to(start if part is None else start[part.kept])
        # A point where it asks for derivatives and there are none is the end of its way.
        with np.errstate(all="ignore"), suppress(AssertionError, ValueError):
            least_squares(residuals, first, derivatives, method="lm", max_nfev=refinement.MAX_EVALUATIONS)
        tally = tally.with_costs(costs, best)
    return tally


def cell(name: str, seed: int, starts: int, seeds: int, sets: int) -> dict[str, Any]:
    """Evaluations with and without elimination, by each of the ways."""
    problem, truth = problem_of(name, seed, sets)
    rng = np.random.default_rng([seed, 1])
    spread = math.log(FACTOR)
    drawn = [problem.sizes * np.exp(rng.uniform(-spread, spread, len(truth))) for _ in range(starts)]
    best = refinement.refine(problem.misfit, truth, frame=problem.frame(truth)).cost
    ways: dict[str, Callable[[bool], Tally]] = {
        "refinements": lambda eliminate: refinements(problem, drawn, best, eliminate),
        "searches": lambda eliminate: searches(problem, range(seeds), best, eliminate),
    }
    if len(problem.misfit.outputs) == 1:
        ways["minpack"] = lambda eliminate: minpack(problem, drawn, best, eliminate)
    found = {way: [asdict(run(eliminate)) for eliminate in (True, False)] for way, run in ways.items()}
    return {"model": name, "sets": sets, **found}


def ratio(line: Mapping[str, Any], way: str) -> float:
    """Evaluations for each time that the optimum is reached, without elimination beside with it."""
    ours, theirs = (Tally(**one).each for one in line[way])
    return math.nan if math.isinf(ours) else theirs / ours


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """One row per model, and the medians."""
    text = [
        "Evaluations with derivatives for each time that the optimum is reached, with / without elimination.",
        "",
        f"| model | data sets | {' | '.join(f'{way} | ratio' for way in WAYS)} |",
        f"|---|---:|{'---:|---:|' * len(WAYS)}",
    ]
    for line in lines:
        cells = []
        for way in WAYS:
            pair = [Tally(**one).each for one in line.get(way, ())]
            cells += [" / ".join(f"{each:.1f}" for each in pair), f"{ratio(line, way):.1f}"] if pair else ["", ""]
        text.append(f"| {line['model']} | {line['sets']} | {' | '.join(cells)} |")
    for sets in sorted({line["sets"] for line in lines}):
        own = [line for line in lines if line["sets"] == sets]
        medians = [np.nanmedian([ratio(line, way) for line in own if way in line] or [math.nan]) for way in WAYS]
        text.append(f"| median | {sets} | {' | '.join(f' | {median:.1f}' for median in medians)} |")
    return "\n".join(text) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks projection", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--searches", type=int, default=6)
    parser.add_argument("--sets", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--models", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--output", type=Path)
    given = parser.parse_args(argv)
    path = given.output or RESULTS / f"projection-seed{given.seed}.jsonl"
    lines = records.read(path)
    done = {(line["model"], line["sets"]) for line in lines}
    for sets in given.sets:
        for name in given.models:
            if (name, sets) not in done:
                lines.append(cell(name, given.seed, given.starts, given.searches, sets))
                records.add(path, lines[-1])
    write_whole(path.with_suffix(".md"), table(lines))
    print(table(lines))
    return 0
