"""Race: processor seconds until the published optimum is reached, beside pyPESTO with AMICI and fides, and COPASI.

    python -m benchmarks race [FOLDER] --python PYTHON [--models FOLDER] [--only NAMES] [--seeds S ...] [--most S]
                                  [--fits FILE] [--output FILE]

PYTHON is an interpreter whose environment has pyPESTO, AMICI, fides, copasi-basico and copasi-petab-importer; it runs
as a child on the same machine, on one core.  odejet's are the fits of `collection`, with its defaults and from the
bounds alone, which tell when they came how low.  The goal is 0.1 of the log-likelihood above the best optimum that is
known, the published one or one that these have found; who is there has arrived and stops.  pyPESTO has 100 starts or
ten times odejet's time, whichever is less, and no longer than --most; what compiling the model takes is told apart.
Each of COPASI's searches has as long, where COPASI can express the problem.  Every run of theirs is one line of a file:
stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import arrivals
from benchmarks import lines as records
from benchmarks.collection import FOLDER, RESULTS, SHORT, names, per_arrival, yaml_of

STARTS, TIMES, LEAST = 100, 10.0, 20.0
"""Starts of the others, how much longer than odejet they may take, and the seconds that they have at least."""

WHO = "odejet", "pypesto", "copasi"

METHODS = "Levenberg - Marquardt", "Particle Swarm", "Scatter Search"
"""Of COPASI's searches: one that descends from random points and two that look in the whole box."""

CRASHES = 3
"""How often COPASI is begun again: some of its starts end in a floating point exception."""


def goal_of(name: str, fits: Sequence[dict[str, Any]]) -> float:
    """The cost at which a search has arrived: a little above the lowest that is known, published or found by a fit."""
    known = [one["log_posterior"] for one in fits if one["problem"] == name and one["task"] in ("read", "fit")]
    return SHORT - max(known)


def ours(name: str, goal: float, fits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """When each fit with default settings has arrived, or how long it went on if it never has."""
    found = []
    for fit in (one for one in fits if one["problem"] == name and "course" in one):
        seconds = arrivals.arrival(fit["course"], goal)
        arrived = math.isfinite(seconds)
        one = {"problem": name, "who": "odejet", "seed": fit["seed"], "arrived": arrived}
        found.append(one | {"seconds": seconds if arrived else fit["seconds"]})
    return found


def time_for(own: Sequence[dict[str, Any]], most: float) -> float:
    """Seconds that the others have: a multiple of what an arrival took."""
    mean = sum(one["seconds"] for one in own) / max(sum(one["arrived"] for one in own), 1)
    return min(max(TIMES * mean, LEAST), most)


def pypesto(folder: Path, seed: int, seconds: float, goal: float, options: argparse.Namespace) -> dict[str, Any]:
    """pyPESTO's starts, until one arrives."""
    options.models.mkdir(parents=True, exist_ok=True)
    asked = yaml_of(folder), options.models, seconds, STARTS, seed, goal
    done = _worker(options.python, "pypesto_worker.py", *asked)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1][:200]}
    told = json.loads(done.stdout.splitlines()[-1])
    ends = told.pop("ends")
    best = min((cost for _, cost in ends), default=math.inf)
    arrived = best <= goal
    return {
        "arrived": arrived,
        "seconds": ends[-1][0],
        "starts": len(ends),
        "short": best - goal + SHORT,
        "goal": goal,
        **told,
    }


def copasi(folder: Path, seed: int, seconds: float, goal: float, options: argparse.Namespace) -> dict[str, Any]:
    """COPASI's searches, each by itself until a run of it arrives; the fastest counts."""
    methods: dict[str, dict[str, Any]] = {}
    for method in METHODS:
        ends = _search(folder, method, seed, seconds, goal, options.python)
        if ends and "inexpressible" in ends[0]:
            return ends[0]
        best = min((one["cost"] for one in ends), default=math.inf)
        spent = ends[-1]["seconds"] if ends and best <= goal else seconds
        methods[method] = {"seconds": spent, "runs": len(ends), "short": best - goal + SHORT}
    fastest = min(methods, key=lambda name: (methods[name]["short"] > SHORT, methods[name]["seconds"]))
    return {
        "method": fastest,
        "arrived": methods[fastest]["short"] <= SHORT,
        **methods[fastest],
        "goal": goal,
        "methods": methods,
    }


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
    parser.add_argument("--most", type=float, default=math.inf)
    parser.add_argument("--output", type=Path, default=RESULTS / "race.jsonl")
    parser.add_argument("--fits", type=Path, default=RESULTS / "collection.jsonl")
    options = parser.parse_args(argv)
    fits, lines = records.read(options.fits), records.read(options.output)
    done = {(line["problem"], line["seed"], line["who"]): line for line in lines}
    told = []
    for name in options.only or names(options.folder):
        goal = goal_of(name, fits)
        told += (own := ours(name, goal, fits))
        for seed, who in itertools.product(options.seeds, (pypesto, copasi)):
            if (name, seed, who.__name__) not in done:
                asked = options.folder / name, seed, time_for(own, options.most), goal, options
                line = {"problem": name, "seed": seed, "who": who.__name__, **who(*asked)}
                done[name, seed, who.__name__] = line
                records.add(options.output, line)
                print(json.dumps(line), flush=True)
    print(table([*told, *done.values()]))
    return 0
