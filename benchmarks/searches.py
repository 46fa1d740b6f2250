"""Searches: which way to search a box finds the published optimum of a problem soonest.

    python -m benchmarks searches [FOLDER] [--only NAMES] [--ways WAYS] [--seeds S ...] [--limit S] [--output FILE]

The box search is run in each of its ways on the problems of a collection, until it is at the published optimum (0.1 of
the log-likelihood above it at most) or out of time, by processor seconds of one core:

    parts   the best of 64 starts are led to the whole of the data in parts
    plain   every start is refined on all of the data to its end
    race    starts race on all of the data
    both    race and parts in turn
    hops    race, parts and hops from the best so far in turn, as fits do

Every run is one line of a file: stopping and starting again repeats nothing.  Without seeds the table is told alone.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.collection import FOLDER, RESULTS, SHORT, names, per_arrival, read
from odejet.problem.evaluation import Evaluation
from odejet.problem.misfit import Misfit
from odejet.search import multistart as module
from odejet.search import race
from odejet.search.projection import Projected
from odejet.search.refine import MAX_EVALUATIONS
from odejet.smooth.threads import one_thread

WAYS = ("parts", "plain", "race", "both", "hops")


@contextmanager
def searching(way: str) -> Iterator[None]:
    """Let the box search go one way."""
    if way == "hops":
        yield
        return
    chosen = {"parts": ("by_parts",), "both": ("race", "by_parts")}.get(way, ("race",))
    ways = property(lambda search: tuple(getattr(search, name) for name in chosen))
    without = mock.patch.object(module._Search, "hop", lambda _: iter(()))
    with mock.patch.object(module._Search, "ways", ways), without:
        if way == "plain":
            with mock.patch.object(race, "LAPS", (MAX_EVALUATIONS,)), mock.patch.object(module, "GROUPS", (1,)):
                yield
        else:
            yield


@contextmanager
def counting() -> Iterator[list[int]]:
    """How many times a misfit is evaluated, in any part, with any effort, with or without what is eliminated."""
    seen = [0]

    def counted(plain: Callable[..., Evaluation]) -> Callable[..., Evaluation]:
        def evaluate(self: Misfit, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf) -> Evaluation:
            seen[0] += 1
            return plain(self, z, jacobian, deadline)

        return evaluate

    with ExitStack() as stack:
        for kind in (Misfit, Projected):
            stack.enter_context(mock.patch.object(kind, "evaluate", counted(kind.evaluate)))
        yield seen


def searched(folder: Path, way: str, seed: int, limit: float) -> dict[str, Any]:
    """One search: what it found, and how soon."""
    problem = read(folder).problem
    misfit = problem.misfit
    published = misfit.score(np.array([problem.nominal[label] for label in misfit.labels]))
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
            goal=published + SHORT,
            agree=1 << 20,
        )
    short = found[0].cost - published if found else math.inf
    seconds = round(time.process_time() - began, 2)
    return {"short": round(short, 4), "seconds": seconds, "evaluations": seen[0], "optima": len(found)}


def table(lines: list[dict[str, Any]]) -> str:
    """One line per problem: how many searches arrived, and the seconds of all of them per arrival."""
    ways = [way for way in WAYS if any(line["way"] == way for line in lines)]
    rows = [f"| problem | {' | '.join(ways)} |", "|---" + "|--:" * len(ways) + "|"]
    for name in sorted({line["problem"] for line in lines}):
        cells = []
        for way in ways:
            own = [line for line in lines if line["problem"] == name and line["way"] == way]
            arrived = sum(line["short"] <= SHORT for line in own)
            total = sum(line["seconds"] for line in own)
            cells.append(f"{arrived} of {len(own)}, {per_arrival(total, arrived)}" if own else "")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks searches")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--output", type=Path, default=RESULTS / "searches.jsonl")
    options = parser.parse_args(argv)
    lines = records.read(options.output)
    done = {(line["problem"], line["way"], line["seed"], line["limit"]) for line in lines}
    wanted = options.only or names(options.folder)
    tasks = [(name, way, seed) for seed in options.seeds for name in wanted for way in options.ways]
    by_processor()
    for name, way, seed in tasks:
        if (name, way, seed, options.limit) in done:
            continue
        with one_thread():
            found = searched(options.folder / name, way, seed, options.limit)
        lines.append({"problem": name, "way": way, "seed": seed, "limit": options.limit, **found})
        records.add(options.output, lines[-1])
        print(json.dumps(lines[-1]), flush=True)
    print(table(lines))
    return 0
