"""Searches: which way to search a box finds the published optimum of a problem soonest.

    python -m benchmarks searches [FOLDER] [--only NAMES] [--ways WAYS] [--seeds S ...] [--drawn S ...] [--limit S]
                                  [--output FILE]

The box search is run in each of its ways on the problems of a collection, until it is at the published optimum (0.1 of
the log-likelihood above it at most) or out of time, by processor seconds of one core:

    parts   the best of 64 starts are led to the whole of the data in parts
    plain   every start is refined on all of the data to its end
    race    starts race on all of the data
    both    race and parts in turn
    hops    race and hops from the best so far in turn
    all     race, parts and hops in turn

With --drawn the data are drawn too, once per number: those of the same design at other values, near the published ones,
to which no search was ever fitted.  Then the optimum is the one that the true values lead to.

Every run is one line of a file: stopping and starting again repeats nothing.  Without seeds the table is told alone.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.collection import FOLDER, RESULTS, SHORT, names, per_arrival, read
from odejet.objective.evaluation import Evaluation
from odejet.objective.misfit import Misfit
from odejet.objective.reduced import Reduced
from odejet.problem import Problem
from odejet.problem.measurements import Block
from odejet.search import multistart as module
from odejet.search import race
from odejet.search.refine import MAX_EVALUATIONS, refine
from odejet.smooth.threads import one_thread

WAYS = ("parts", "plain", "race", "both", "hops", "all")

AROUND, ATTEMPTS = 0.1, 100
"""How far other values are from the published ones, of the width of the box, and how often they are drawn until the
model can be simulated with them."""


@contextmanager
def searching(way: str) -> Iterator[None]:
    """Let the box search go one way."""
    chosen = {"parts": ("by_parts",), "both": ("race", "by_parts"), "all": ("race", "by_parts")}.get(way, ("race",))
    with ExitStack() as stack:
        ways = property(lambda search: tuple(getattr(search, name) for name in chosen))
        stack.enter_context(mock.patch.object(module._Search, "ways", ways))
        if way not in ("hops", "all"):
            stack.enter_context(mock.patch.object(module._Search, "hop", lambda _: iter(())))
        if way == "plain":
            stack.enter_context(mock.patch.object(race, "LAPS", (MAX_EVALUATIONS,)))
            stack.enter_context(mock.patch.object(module, "GROUPS", (1,)))
        yield


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


def searched(folder: Path, way: str, seed: int, limit: float, data: int | None = None) -> dict[str, Any]:
    """One search: what it found, and how soon."""
    problem = read(folder).problem
    if data is None:
        misfit, optimum = problem.misfit, problem.misfit.score(_published(problem))
    else:
        misfit, optimum = drawn(problem, data)
    with searching(way), counting() as seen:
        began = time.process_time()
        found = module.multistart(
            misfit,
            problem.given_bounds,
            problem.positive,
            problem.sizes,
            seed=seed,
            starts=1 << 20,
            time_limit=limit,
            goal=optimum + SHORT,
            agree=1 << 20,
        )
    short = found[0].cost - optimum if found else math.inf
    seconds = round(time.process_time() - began, 2)
    return {"short": round(short, 4), "seconds": seconds, "evaluations": seen[0], "optima": len(found)}


def table(lines: list[dict[str, Any]]) -> str:
    """One line per problem: how many searches arrived, and the seconds of all of them per arrival."""
    ways = [way for way in WAYS if any(line["way"] == way for line in lines)]
    rows = [f"| problem | {' | '.join(ways)} |", "|---" + "|--:" * len(ways) + "|"]
    for name, data in sorted({(line["problem"], "drawn" in line) for line in lines}):
        cells = []
        for way in ways:
            alike = [line for line in lines if line["problem"] == name and ("drawn" in line) == data]
            own = [line for line in alike if line["way"] == way]
            arrived = sum(line["short"] <= SHORT for line in own)
            total = sum(line["seconds"] for line in own)
            cells.append(f"{arrived} of {len(own)}, {per_arrival(total, arrived)}" if own else "")
        rows.append(f"| {name}{', data drawn' if data else ''} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks searches")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--drawn", type=int, nargs="+", default=[])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--output", type=Path, default=RESULTS / "searches.jsonl")
    options = parser.parse_args(argv)
    lines = records.read(options.output)
    done = {_key(line) for line in lines}
    wanted = options.only or names(options.folder)
    drawings = [{"drawn": number} for number in options.drawn] or [{}]
    tasks = [
        {"problem": name, "way": way, "seed": seed, "limit": options.limit, **data}
        for seed in options.seeds
        for data in drawings
        for name in wanted
        for way in options.ways
    ]
    by_processor()
    for task in tasks:
        if _key(task) in done:
            continue
        asked = task["way"], task["seed"], task["limit"], task.get("drawn")
        with one_thread():
            lines.append(task | searched(options.folder / task["problem"], *asked))
        records.add(options.output, lines[-1])
        print(json.dumps(lines[-1]), flush=True)
    print(table(lines))
    return 0


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    """What tells runs apart."""
    return tuple(line.get(name) for name in ("problem", "way", "seed", "limit", "drawn"))
