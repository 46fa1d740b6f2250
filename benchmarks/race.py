"""Race: processor seconds until the published optimum is reached, beside pyPESTO with AMICI and fides, and COPASI.

    python -m benchmarks race [FOLDER] --python PYTHON [--models FOLDER] [--only NAMES] [--seeds S ...] [--limit S]
                                  [--fits FILE] [--output FILE]

PYTHON is an interpreter whose environment has pyPESTO, AMICI, fides, copasi-basico and copasi-petab-importer; it runs
as a child on the same machine, on one core.  odejet fits with its defaults, from the bounds alone.  The goal is 0.1 of
the log-likelihood above the best optimum that is known, the published one or one that fits of `collection` have found;
who is there has arrived and stops.  pyPESTO has 100 starts or ten times odejet's time, whichever is less; what
compiling the model takes is told apart.  Each of COPASI's searches has as long, where COPASI can express the problem.
Every run is one line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import odejet as oj
from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.collection import FOLDER, RESULTS, SHORT, names, per_arrival, read, yaml_of
from odejet.jets import compilation
from odejet.problem.evaluation import Evaluation
from odejet.problem.misfit import Misfit
from odejet.search.descent import Descent

STARTS, TIMES, LEAST = 100, 10.0, 20.0
"""Starts of the others, how much longer than odejet they may take, and the seconds that they have at least."""

WHO = "odejet", "pypesto", "copasi"

METHODS = "Levenberg - Marquardt", "Particle Swarm", "Scatter Search"
"""Of COPASI's searches: one that descends from random points and two that look in the whole box."""

CRASHES = 3
"""How often COPASI is begun again: some of its starts end in a floating point exception."""


@contextmanager
def stopping(misfit: Misfit, goal: float) -> Iterator[list[float]]:
    """End a fit when a descent on all of the data stands at the goal, and tell when that was.

    Searches also fit all of the data with noise levels of their own, whose likelihood is another one.
    """
    arrived: list[float] = []
    plain = Descent.stand

    def stand(self: Descent, theta: np.ndarray, found: Evaluation) -> None:
        plain(self, theta, found)
        assert found.residuals is not None
        if not arrived and is_same(self.misfit, misfit) and self.misfit.cost(found.residuals, rest=found.rest) <= goal:
            arrived.append(time.process_time() - compilation.seconds())
            raise KeyboardInterrupt

    with mock.patch.object(Descent, "stand", stand):
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


def goal_of(name: str, published: float, fits: Path) -> float:
    """The cost at which a search has arrived: a little above the lowest that is known."""
    found = (one["log_posterior"] for one in records.read(fits) if (one["problem"], one["task"]) == (name, "fit"))
    return SHORT - max([published, *found])


@cache
def _warm() -> None:
    """Have Python load what a fit needs, which does not count for the others either."""
    times = np.linspace(0.0, 1.0, 5)
    decay = oj.Model(states={"x": "-k*x"}, outputs={"y": "x"})
    oj.fit(decay, oj.Data(times, {"y": np.exp(-times)}), bounds={"k": (0.1, 10.0)})


def ours(folder: Path, seed: int, limit: float, fits: Path) -> dict[str, Any]:
    """A fit with default settings, until it arrives."""
    _warm()
    problem = read(folder).problem
    goal = goal_of(folder.name, problem.log_posterior(problem.nominal), fits)
    began = time.process_time() - compilation.seconds()
    with stopping(problem.misfit, goal) as arrived:
        try:
            oj.fit(problem, seed=seed, time_limit=limit)
        except KeyboardInterrupt:  # at the very first optimum, when there is nothing to hand over yet
            if not arrived:
                raise
    ended = arrived[0] if arrived else time.process_time() - compilation.seconds()
    return {"arrived": bool(arrived), "seconds": round(ended - began, 2), "goal": goal}


def pypesto(folder: Path, seed: int, seconds: float, goal: float, python: Path, models: Path) -> dict[str, Any]:
    """pyPESTO's starts, until one arrives."""
    models.mkdir(parents=True, exist_ok=True)
    done = _worker(python, "pypesto_worker.py", yaml_of(folder), models, seconds, STARTS, seed, goal)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1][:200]}
    told = json.loads(done.stdout.splitlines()[-1])
    ends = told.pop("ends")
    best = min((cost for _, cost in ends), default=math.inf)
    arrived = best <= goal
    return {"arrived": arrived, "seconds": ends[-1][0], "starts": len(ends), "short": best - goal + SHORT, **told}


def copasi(folder: Path, seed: int, seconds: float, goal: float, python: Path) -> dict[str, Any]:
    """COPASI's searches, each by itself until a run of it arrives; the fastest counts."""
    methods: dict[str, dict[str, Any]] = {}
    for method in METHODS:
        ends = _search(folder, method, seed, seconds, goal, python)
        if ends and "inexpressible" in ends[0]:
            return ends[0]
        best = min((one["cost"] for one in ends), default=math.inf)
        spent = ends[-1]["seconds"] if ends and best <= goal else seconds
        methods[method] = {"seconds": spent, "runs": len(ends), "short": best - goal + SHORT}
    fastest = min(methods, key=lambda name: (methods[name]["short"] > SHORT, methods[name]["seconds"]))
    return {"method": fastest, "arrived": methods[fastest]["short"] <= SHORT, **methods[fastest], "methods": methods}


def _search(folder: Path, method: str, seed: int, seconds: float, goal: float, python: Path) -> list[dict[str, Any]]:
    """The ends of one of COPASI's searches, or why there can be none."""
    for _ in range(CRASHES):
        with tempfile.TemporaryDirectory() as own:
            done = _worker(python, "copasi_worker.py", yaml_of(folder), own, method, seconds, STARTS, seed, goal)
        if done.returncode != -signal.SIGFPE:
            break
    return [json.loads(line) for line in done.stdout.splitlines()]


def _worker(python: Path, name: str, *asked: object) -> subprocess.CompletedProcess[str]:
    """What a worker says that runs in another environment."""
    tools = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    command = [str(python), str(Path(__file__).with_name(name)), *map(str, asked)]
    return subprocess.run(command, env=os.environ | tools, capture_output=True, text=True, check=False)


def table(lines: list[dict[str, Any]]) -> str:
    """One line per problem: seconds of all runs per arrival."""
    rows = ["| problem | odejet | pyPESTO | compiling its model | COPASI |", "|---|--:|--:|--:|--:|"]
    for name in dict.fromkeys(line["problem"] for line in lines):
        own = {who: [one for one in lines if (one["problem"], one["who"]) == (name, who)] for who in WHO}
        compiled = [one["compile_seconds"] for one in own["pypesto"] if "compile_seconds" in one]
        cells = [_cell(own["odejet"]), _cell(own["pypesto"]), f"{max(compiled):.0f} s" if compiled else ""]
        rows.append(f"| {name} | {' | '.join([*cells, _cell(own['copasi'])])} |")
    return "\n".join(rows)


def _cell(runs: list[dict[str, Any]]) -> str:
    """Seconds per arrival and how many arrived, or why there are none."""
    ended = [one for one in runs if "seconds" in one]
    if not ended:
        return "fails" if any("failed" in one for one in runs) else "-" if runs else ""
    arrived, total = sum(one["arrived"] for one in ended), sum(one["seconds"] for one in ended)
    return f"{per_arrival(total, arrived)} ({arrived} of {len(ended)})"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks race")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=Path(tempfile.gettempdir()) / "odejet-amici")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--output", type=Path, default=RESULTS / "race.jsonl")
    parser.add_argument("--fits", type=Path, default=RESULTS / "collection.jsonl")
    options = parser.parse_args(argv)
    done = {(line["problem"], line["seed"], line["who"]): line for line in records.read(options.output)}
    by_processor()
    for seed in options.seeds:
        for name in options.only or names(options.folder):
            for who in WHO:
                if (name, seed, who) in done:
                    continue
                line = {"problem": name, "seed": seed, "who": who}
                line |= _run(options, name, seed, who, done.get((name, seed, "odejet"), {}))
                done[name, seed, who] = line
                records.add(options.output, line)
                print(json.dumps(line), flush=True)
    print(table(list(done.values())))
    return 0


def _run(options: argparse.Namespace, name: str, seed: int, who: str, own: dict[str, Any]) -> dict[str, Any]:
    """One of them on one problem, the others with a multiple of what odejet took."""
    folder = options.folder / name
    if who == "odejet":
        return ours(folder, seed, options.limit, options.fits)
    seconds = max(TIMES * own["seconds"], LEAST)
    if who == "copasi":
        return copasi(folder, seed, seconds, own["goal"], options.python)
    return pypesto(folder, seed, seconds, own["goal"], options.python, options.models)
