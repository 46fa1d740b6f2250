"""Race: processor seconds until the published optimum is reached, beside pyPESTO with AMICI and fides.

    python -m benchmarks race [FOLDER] --python PYTHON [--models FOLDER] [--only NAMES] [--seeds S ...] [--limit S]

PYTHON is an interpreter whose environment has pyPESTO, AMICI and fides; it runs as a child on the same machine, on one
core.  odejet fits with its defaults, from the bounds alone.  Who is 0.1 of the log-likelihood above the published
optimum, or lower, has arrived and stops.  pyPESTO has 100 starts or ten times odejet's time, whichever is less; what
compiling the model takes is told apart.  Every run is one line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import odejet as oj
from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.collection import FOLDER, RESULTS, SHORT, names, per_arrival, read, yaml_of
from odejet.jets import compilation
from odejet.problem.misfit import Evaluation, Misfit
from odejet.search.refine import _Descent

STARTS, TIMES, LEAST = 100, 10.0, 20.0
"""Starts of pyPESTO, how much longer than odejet it may take, and the seconds that it has at least."""


@contextmanager
def stopping(misfit: Misfit, goal: float) -> Iterator[list[float]]:
    """End a fit when a descent on all of the data stands at the goal, and tell when that was.

    Searches also fit all of the data with noise levels of their own, whose likelihood is another one.
    """
    arrived: list[float] = []
    plain = _Descent.stand

    def stand(self: _Descent, theta: np.ndarray, found: Evaluation) -> None:
        plain(self, theta, found)
        assert found.residuals is not None
        if not arrived and is_same(self.misfit, misfit) and self.misfit.cost(found.residuals, rest=found.rest) <= goal:
            arrived.append(time.process_time() - compilation.seconds())
            raise KeyboardInterrupt

    with mock.patch.object(_Descent, "stand", stand):
        yield arrived


def is_same(one: Misfit, other: Misfit) -> bool:
    """Whether two misfits have the same likelihood: that of as many measurements, with the same noise and priors."""
    return (
        one.points == other.points
        and one.weighted == other.weighted
        and len(one.priors) == len(other.priors)
        and np.array_equal(one.known, other.known, equal_nan=True)
        and np.array_equal(one.measurements.densities, other.measurements.densities)
    )


def ours(folder: Path, seed: int, limit: float) -> dict[str, Any]:
    """A fit with default settings, until it arrives."""
    problem = read(folder).problem
    goal = -problem.log_posterior(problem.nominal) + SHORT
    began = time.process_time() - compilation.seconds()
    with stopping(problem.misfit, goal) as arrived:
        try:
            oj.fit(problem, seed=seed, time_limit=limit)
        except KeyboardInterrupt:  # at the very first optimum, when there is nothing to hand over yet
            if not arrived:
                raise
    ended = arrived[0] if arrived else time.process_time() - compilation.seconds()
    return {"arrived": bool(arrived), "seconds": round(ended - began, 2), "goal": goal}


def theirs(folder: Path, seed: int, seconds: float, goal: float, python: Path, models: Path) -> dict[str, Any]:
    """pyPESTO's starts, until one arrives."""
    models.mkdir(parents=True, exist_ok=True)
    tools = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    worker = Path(__file__).with_name("pypesto_worker.py")
    asked = [yaml_of(folder), models, seconds, STARTS, seed, goal]
    command = [str(python), str(worker), *map(str, asked)]
    done = subprocess.run(command, env=os.environ | tools, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1][:200]}
    told = json.loads(done.stdout.splitlines()[-1])
    ends = told.pop("ends")
    best = min((cost for _, cost in ends), default=math.inf)
    arrived = best <= goal
    return {"arrived": arrived, "seconds": ends[-1][0], "starts": len(ends), "short": best - goal + SHORT, **told}


def table(lines: list[dict[str, Any]]) -> str:
    """One line per problem: seconds of all runs per arrival."""
    rows = ["| problem | odejet | pyPESTO | compiling its model |", "|---|--:|--:|--:|"]
    for name in dict.fromkeys(line["problem"] for line in lines):
        cells = []
        for who in ("odejet", "pypesto"):
            own = [one for one in lines if one["problem"] == name and one["who"] == who and "failed" not in one]
            arrived, total = sum(one["arrived"] for one in own), sum(one["seconds"] for one in own)
            cells.append(f"{per_arrival(total, arrived)} ({arrived} of {len(own)})" if own else "")
        compiled = [one["compile_seconds"] for one in lines if one["problem"] == name and "compile_seconds" in one]
        cells.append(f"{max(compiled):.0f} s" if compiled else "")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks race")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=Path(tempfile.gettempdir()) / "odejet-amici")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--output", type=Path, default=RESULTS / "race.jsonl")
    options = parser.parse_args(argv)
    lines = records.read(options.output)
    done = {(line["problem"], line["seed"], line["who"]): line for line in lines}
    by_processor()
    for seed in options.seeds:
        for name in options.only or names(options.folder):
            for who in ("odejet", "pypesto"):
                if (name, seed, who) in done:
                    continue
                folder, line = options.folder / name, {"problem": name, "seed": seed, "who": who}
                if who == "odejet":
                    line |= ours(folder, seed, options.limit)
                else:
                    own = done[name, seed, "odejet"]
                    seconds = max(TIMES * own["seconds"], LEAST)
                    line |= theirs(folder, seed, seconds, own["goal"], options.python, options.models)
                done[name, seed, who] = line
                records.add(options.output, line)
                print(json.dumps(line), flush=True)
    print(table(list(done.values())))
    return 0
