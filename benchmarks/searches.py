"""Searches: which way to search a box finds the optimum of published problems soonest.

    python -m benchmarks searches [FOLDER] [--only NAMES] [--starts N] [--seed S] [--output FILE]

Every start is drawn in the box and gone from in two ways: plainly, by refining it on all of the data, and as the box
search goes on dense data, by following it on more and more of them first.  What each evaluation cost and how good the
best point was by then is one line of a file, with scores that would have told beforehand whether the start is worth it;
stopping and starting again repeats nothing.  From these lines every policy of choosing starts and of giving them up can
be judged without running it: the table tells processor seconds per start that ends at the published optimum.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks.clock import by_processor
from benchmarks.collection import FOLDER, RESULTS, SHORT, names, read
from odejet.problem.misfit import ROUGH, Evaluation, Misfit
from odejet.search import multistart
from odejet.search.refine import _Descent, refine
from odejet.smooth.threads import one_thread

LONGEST = 20.0
"""Processor seconds that one start may take."""

IMPROVED = 0.01
"""A decrease of the cost that is written down."""


@contextmanager
def watched(misfit: Misfit) -> Iterator[list[tuple[int, float, float]]]:
    """Where descents on this misfit stand: evaluations and seconds so far, and the cost, whenever it has decreased."""
    seen: list[tuple[int, float, float]] = []
    plain, began, best = _Descent.stand, time.process_time(), math.inf
    evaluate, count = Misfit.evaluate, 0

    def stand(self: _Descent, theta: np.ndarray, found: Evaluation) -> None:
        nonlocal best
        plain(self, theta, found)
        assert found.residuals is not None
        if self.misfit.known is misfit.known:
            cost = self.misfit.cost(found.residuals, rest=found.rest)
            if cost < best - IMPROVED:
                best = cost
                seen.append((count, round(time.process_time() - began, 4), round(best, 3)))

    def counted(self: Misfit, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf) -> Evaluation:
        nonlocal count
        count += 1
        return evaluate(self, z, jacobian, deadline)

    _Descent.stand, Misfit.evaluate = stand, counted  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        _Descent.stand, Misfit.evaluate = plain, evaluate  # type: ignore[method-assign]
        seen.append((count, round(time.process_time() - began, 4), round(best, 3)))


@cache
def cached(folder: Path) -> oj.Problem:
    return read(folder).problem


def drawn(folder: Path, seed: int, number: int) -> dict[str, Any]:
    """One start and where it leads."""
    problem = cached(folder)
    frame, misfit = problem.frame(), replace(problem.misfit, effort=ROUGH)
    low, high = frame.box
    rng = np.random.default_rng((seed, number))
    z = frame.back(low + rng.random(len(low)) * (high - low))
    search = multistart._Search(misfit, frame, None, math.inf, (), lambda _: True)
    line: dict[str, Any] = {"published": round(misfit.score(_nominal(problem)), 3)}
    for name, score in (("early", search.score), ("whole", lambda z: _robust(misfit, z)), ("cost", misfit.score)):
        began = time.process_time()
        line[name] = round(score(z), 3)
        line[f"{name}_seconds"] = round(time.process_time() - began, 4)
    with watched(misfit) as seen:
        end = refine(misfit, z, frame=frame, time_limit=LONGEST)
    line |= {"plain": seen, "ending": end.ending.name}
    with watched(misfit) as seen:
        followed = search.follow(z)
        if followed is not None:
            refine(misfit, followed.z, frame=frame, time_limit=LONGEST)
    return line | {"followed": seen, "rms": math.inf if followed is None else followed.rms}


def _nominal(problem: oj.Problem) -> np.ndarray:
    return np.array([problem.nominal[label] for label in problem.misfit.labels])


def _robust(misfit: Misfit, z: np.ndarray) -> float:
    """How far all of the data are from a start; one bad point of a good start counts little."""
    part = misfit.window(1.0, levels=misfit.scales)
    found = part.evaluate(z, jacobian=False)
    if found.residuals is None:
        return math.inf
    return float(np.log1p((found.residuals / part.row_levels(misfit.scales)) ** 2).sum())


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks searches")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--starts", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "searches.jsonl")
    options = parser.parse_args(argv)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in options.output.read_text().splitlines()] if options.output.is_file() else []
    done = {(line["problem"], line["seed"], line["start"]) for line in lines}
    wanted = [name for name in names(options.folder) if not options.only or name in options.only]
    by_processor()
    with one_thread():
        for number in range(options.starts):
            for name in wanted:
                if (name, options.seed, number) in done:
                    continue
                line = {"problem": name, "seed": options.seed, "start": number}
                line |= drawn(options.folder / name, options.seed, number)
                lines.append(line)
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
    return 0
