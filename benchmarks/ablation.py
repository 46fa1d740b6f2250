"""Ablation: which strategies of the search of a box earn their place.

    python -m benchmarks ablation [--suites collection drawn beyond networks] [--only NAMES] [--variants NAMES]
                                  [--seeds S ...] [--limit S] [--folder FOLDER] [--output FILE]

The box is searched by each strategy alone, by all but one, and by all, until the search is at the best known optimum
(0.1 of the log-likelihood above it at most) or out of time, by processor seconds of one core.  The optimum is the
published one, or with drawn data the one that the true values lead to: `drawn` has the published designs with other
data, whose values are near the published ones, `beyond` and `networks` draw data of models of their own.  Told is the
expected time to the optimum, that of all runs for each arrival, and beside it that of each variant in units of that of
all strategies: the geometric mean over problems, with its standard error by resampling problems and seeds.

Every run is one line of a file: stopping and starting again repeats nothing.  Without seeds the table is told alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import beyond, networks
from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.collection import FOLDER, SHORT, names, per_arrival, read
from odejet.objective.evaluation import Evaluation
from odejet.objective.misfit import Misfit
from odejet.objective.reduced import Reduced
from odejet.problem import Problem
from odejet.problem.coordinates import Bounds
from odejet.problem.measurements import Block
from odejet.search.halving import PLAIN
from odejet.search.local_search import IteratedLocalSearch
from odejet.search.multistart import Multistart
from odejet.search.portfolio import BOX, explore
from odejet.search.refine import refine
from odejet.search.strategy import Strategy
from odejet.search.windows import GrowingWindows
from odejet.smooth.threads import one_thread

RESULTS = Path(__file__).parent / "results" / "ablation"

ALL = "all"
VARIANTS: dict[str, tuple[Strategy, ...]] = {
    ALL: BOX,
    "multistart alone": (Multistart(),),
    "plain multistart alone": (Multistart(groups=(1,), halving=PLAIN),),
    "windows alone": (GrowingWindows(),),
    "local search alone": (IteratedLocalSearch(),),
    "no multistart": (GrowingWindows(), IteratedLocalSearch()),
    "no windows": (Multistart(), IteratedLocalSearch()),
    "no local search": (Multistart(), GrowingWindows()),
    "no halving": (Multistart(halving=PLAIN), GrowingWindows(halving=PLAIN), IteratedLocalSearch()),
    "no waking": (Multistart(), GrowingWindows(), IteratedLocalSearch(waking=False)),
    "no single hops": (Multistart(), GrowingWindows(), IteratedLocalSearch(kinds=("between", "some"))),
    "no hops between": (Multistart(), GrowingWindows(), IteratedLocalSearch(kinds=("one", "some"))),
}
"""Each strategy alone, each left out, and all: with parts of a strategy left out too."""

SUITES = ("collection", "drawn", "beyond", "networks")

AROUND, ATTEMPTS = 0.1, 100
"""How far other values are from the published ones, of the width of the box, and how often they are drawn until the
model can be simulated with them."""

RESAMPLED = 400
"""Bootstrap samples of a standard error."""

NEVER = 2.0
"""Times the seconds of all runs that one arrival takes where there was none, at least."""


@dataclass(frozen=True)
class Task:
    """A box to search, and the best known cost."""

    misfit: Misfit
    bounds: Bounds
    positive: Any
    sizes: np.ndarray
    optimum: float


@contextmanager
def counting() -> Iterator[list[int]]:
    """How many times a misfit is evaluated, in any part, with any effort, with or without what is eliminated."""
    seen = [0]

    def counted(plain: Callable[..., Evaluation]) -> Callable[..., Evaluation]:
        def evaluate(self: Any, z: np.ndarray, *further: Any, **named: Any) -> Evaluation:
            seen[0] += 1
            return plain(self, z, *further, **named)

        return evaluate

    with ExitStack() as stack:
        for kind in (Misfit, Reduced):
            stack.enter_context(mock.patch.object(kind, "evaluate", counted(kind.evaluate)))
        yield seen


def drawn(problem: Problem, seed: int) -> tuple[Misfit, float]:
    """The same design with other data, and what the optimum costs to which the values behind them lead."""
    misfit, frame, rng = problem.misfit, problem.frame(), np.random.default_rng(seed)
    low, high = frame.box
    published = frame.to(frame.inside(_published(problem)))
    residuals = misfit.evaluate(frame.back(published), jacobian=False).residuals
    assert residuals is not None
    levels = dict(zip(misfit.outputs, misfit.levels(residuals).tolist(), strict=True))
    near = np.setdiff1d(np.arange(len(low)), misfit.noise_entries)
    for _ in range(ATTEMPTS):
        theta = published.copy()
        theta[near] += AROUND * rng.uniform(-1, 1, len(near)) * (high - low)[near]
        z = frame.back(np.clip(theta, low, high))
        found = misfit.predicted(z, jacobian=False)
        if found.residuals is None or not np.isfinite(found.residuals).all():
            continue
        rows = zip(misfit.measurements.rows, misfit.measurements.blocks, strict=True)
        blocks = tuple(_measured(block, found.residuals[own], z, levels[block.output], rng) for own, block in rows)
        if all(np.isfinite(block.targets).all() for block in blocks):
            other = misfit._with(measurements=replace(misfit.measurements, blocks=blocks))
            return other, min(other.score(z), refine(other, z, frame=frame).cost)
    raise ValueError(f"no values near the published ones can be simulated in {ATTEMPTS} attempts")


def _measured(block: Block, mu: np.ndarray, z: np.ndarray, level: float, rng: np.random.Generator) -> Block:
    """A series as it might have been measured."""
    if block.density is not None:
        chances, scales = rng.random(len(mu)), block.density.scales(mu, z)[0]
        points = zip(chances.tolist(), mu, np.broadcast_to(scales, mu.shape), strict=True)
        values = [block.density.law.quantile(p, np.array([m]), np.array([s]))[0] for p, m, s in points]
        return replace(block, values=np.array(values))
    errors = level * block.shapes * rng.standard_normal(len(mu))
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.exp(np.log(mu) + block.logarithm * errors) if block.logarithm else mu + errors
    return replace(block, values=values)


def _published(problem: Problem) -> np.ndarray:
    return np.array([problem.nominal[label] for label in problem.misfit.labels])


def published(folder: Path) -> Task:
    """A problem of the collection with its own data."""
    problem = read(folder).problem
    optimum = problem.misfit.score(_published(problem))
    return Task(problem.misfit, problem.given_bounds, problem.positive, problem.sizes, optimum)


def redrawn(folder: Path, seed: int) -> Task:
    """A problem of the collection with other data."""
    problem = read(folder).problem
    misfit, optimum = drawn(problem, seed)
    return Task(misfit, problem.given_bounds, problem.positive, problem.sizes, optimum)


def made(case: beyond.Case, seed: int, noise: float) -> Task:
    """A model with true values, and data drawn from it."""
    truth, data = case.drawn(np.random.default_rng([seed, *case.model.name.encode()]), noise)
    problem = Problem(case.model, data, bounds=case.bounds)
    misfit = problem.misfit
    start = np.array([truth[unknown.name] for unknown in misfit.unknowns])
    optimum = min(misfit.score(start), refine(misfit, start, frame=problem.frame()).cost)
    return Task(misfit, problem.given_bounds, problem.positive, problem.sizes, optimum)


def task_of(suite: str, name: str, seed: int, folder: Path) -> Task:
    """One problem of a suite; where data are drawn, others for each seed."""
    if suite == "collection":
        return published(folder / name)
    if suite == "drawn":
        return redrawn(folder / name, seed)
    if suite == "beyond":
        return made(beyond.cases()[name], seed, beyond.NOISES[-1])
    case, noise = next(itertools.islice(networks.cases(int(name)), seed, None))
    return made(case, seed, noise)


def problems(suite: str, folder: Path) -> list[str]:
    """The names of all problems of a suite; of random networks, seeds."""
    if suite in ("collection", "drawn"):
        return names(folder)
    return sorted(beyond.cases()) if suite == "beyond" else ["1", "2", "3"]


def searched(task: Task, variant: str, seed: int, limit: float) -> dict[str, Any]:
    """One search: how far from the optimum it ended, and how soon."""
    began = time.process_time()
    with counting() as seen:
        found = explore(
            task.misfit,
            task.bounds,
            task.positive,
            task.sizes,
            seed=seed,
            starts=1 << 20,
            time_limit=limit,
            goal=task.optimum + SHORT,
            agree=1 << 20,
            strategies=VARIANTS[variant],
        )
    short = found[0].cost - task.optimum if found else math.inf
    seconds = round(time.process_time() - began, 3)
    return {"short": round(short, 4), "seconds": seconds, "evaluations": seen[0], "optima": len(found)}


# --- the table --------------------------------------------------------------------------------------------------------


def expected(lines: Sequence[dict[str, Any]]) -> float:
    """Seconds to the optimum: those of all runs for each arrival, and at least so many where none arrived."""
    total, arrived = sum(line["seconds"] for line in lines), sum(line["short"] <= SHORT for line in lines)
    return max(total, 1e-3) / arrived if arrived else NEVER * total


def ratio(lines: Sequence[dict[str, Any]], variant: str) -> tuple[float, float]:
    """The expected time of a variant in units of that of all strategies, with the standard error of its logarithm."""
    cells = _cells(lines, variant)
    if not cells:
        return math.nan, math.nan
    rng, means = np.random.default_rng(0), []
    for _ in range(RESAMPLED):
        logs = []
        for place in rng.integers(len(cells), size=len(cells)):
            pairs = cells[place]
            chosen = [pairs[i] for i in rng.integers(len(pairs), size=len(pairs))]
            logs.append(math.log(expected([own for own, _ in chosen]) / expected([other for _, other in chosen])))
        means.append(float(np.mean(logs)))
    whole = [math.log(expected([own for own, _ in pairs]) / expected([other for _, other in pairs])) for pairs in cells]
    return math.exp(float(np.mean(whole))), float(np.std(means))


def _cells(lines: Sequence[dict[str, Any]], variant: str) -> list[list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Runs of a variant beside those of all strategies on the same task, by problem."""
    by_key = {(line["suite"], line["problem"], line["seed"], line["variant"]): line for line in lines}
    cells = dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any]]]]()
    for (suite, problem, seed, which), line in by_key.items():
        beside = by_key.get((suite, problem, seed, ALL))
        if which == variant and beside is not None:
            cells.setdefault((suite, problem), []).append((line, beside))
    return list(cells.values())


def table(lines: list[dict[str, Any]]) -> str:
    """One line per variant: arrivals in each suite, and the expected time beside that of all strategies."""
    suites = [suite for suite in SUITES if any(line["suite"] == suite for line in lines)]
    rows = [f"| variant | {' | '.join(suites)} | time beside all | standard error |"]
    rows.append("|---" + "|--:" * (len(suites) + 2) + "|")
    for variant in VARIANTS:
        own = [line for line in lines if line["variant"] == variant]
        if not own:
            continue
        cells = []
        for suite in suites:
            some = [line for line in own if line["suite"] == suite]
            arrived, total = sum(line["short"] <= SHORT for line in some), sum(line["seconds"] for line in some)
            cells.append(f"{arrived} of {len(some)}, {per_arrival(total, arrived)}" if some else "")
        times, error = ratio(lines, variant)
        rows.append(f"| {variant} | {' | '.join(cells)} | {times:.2f} | {100 * error:.0f} % |")
    return "\n".join(rows)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks ablation")
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=SUITES)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=tuple(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--output", type=Path, default=RESULTS / "ablation.jsonl")
    options = parser.parse_args(argv)
    lines = records.read(options.output)
    done = {_key(line) for line in lines}
    by_processor()
    for seed, suite in itertools.product(options.seeds, options.suites):
        every = problems(suite, options.folder)
        for name in [one for one in options.only if one in every] or every:
            keys = [
                {"suite": suite, "problem": name, "variant": variant, "seed": seed, "limit": options.limit}
                for variant in options.variants
            ]
            wanted = [key for key in keys if _key(key) not in done]
            task = task_of(suite, name, seed, options.folder) if wanted else None
            for key in wanted:
                assert task is not None
                with one_thread():
                    lines.append(key | searched(task, key["variant"], seed, options.limit))
                records.add(options.output, lines[-1])
                print(json.dumps(lines[-1]), flush=True)
    print(table(lines))
    return 0


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    """What tells runs apart."""
    return tuple(line.get(name) for name in ("suite", "problem", "variant", "seed", "limit"))
