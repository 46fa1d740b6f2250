"""Limits: whether fits and verdicts answer within their time and memory, whatever the model.

python -m benchmarks limits [--models ...] [--tasks ...] [--output FILE]

Models are published problems with their data (from ../shared, where that is there), models of the zoo whose exact
verdicts are hard, with simulated data, and chains of Michaelis-Menten steps with all states or every third measured.
Each is fitted with a limit of 5 and of 30 seconds and identified with a budget of 5.  Every task runs in a process of
its own that is ended a minute after its limit or at twice the memory it may take, so that nothing can hang.  Every
task is one line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import collection
from benchmarks import lines as records
from benchmarks.store import write_whole
from odejet.jets import compilation
from problems import zoo
from problems.chains import Subject, chain, noisy
from problems.zoo import HARD

RESULTS = Path(__file__).parent / "results" / "limits"
ROOM = 2.0
"""Seconds beyond its limit within which a task must have answered."""
MEMORY = 2000
"""Megabytes that a task may take."""
PATIENCE, MOST_MEMORY = 60.0, 2 * MEMORY
"""Seconds beyond its limit, and megabytes, at which a task is ended."""
READING = 30.0
"""Seconds that imports and the reading of a problem may take before."""

_IDLE = 1.5  # processes per core: this one, and a little
CHAINS = (5, 10, 20, 40, 80)


# --- models -----------------------------------------------------------------------------------------------------------


def of_zoo(name: str) -> Subject:
    model = zoo.by_name(name).model
    return Subject(model, noisy(model, np.random.default_rng([*name.encode()])))


def published(name: str) -> Subject:
    found = collection.read(collection.FOLDER / name).problem
    return Subject(found.model, found.data, found)


def subjects() -> dict[str, Callable[[], Subject]]:
    """Every model by its name, made when it is asked for."""
    found: dict[str, Callable[[], Subject]] = {name: partial(published, name) for name in collection.names()}
    found |= {name: partial(of_zoo, name) for name in sorted(HARD)}
    for steps in CHAINS:
        found[f"chain-{steps}-all"] = partial(chain, steps, 1)
        found[f"chain-{steps}-third"] = partial(chain, steps, 3)
    return found


# --- tasks, in a process of their own ---------------------------------------------------------------------------------


def fitted(subject: Subject, limit: float) -> str:
    fit = oj.fit(subject.problem, time_limit=limit)
    if not math.isfinite(fit.cost):
        return f"nothing: {fit.message}"
    return "certified" if fit.certificate.granted else "fitted"


def identified(subject: Subject, limit: float) -> str:
    verdict = oj.identify(subject.posed or subject.model, time_limit=limit)
    open_ = [quantity for quantity in verdict.values() if quantity.kind == "undecided"]
    local = sum(quantity.tested for quantity in open_)
    return f"{len(open_)} of {len(verdict)} undecided" + (f", {local} of them at least local" if local else "")


TASKS: dict[str, tuple[Callable[[Subject, float], str], float]] = {
    "fit-5": (fitted, 5.0),
    "fit-30": (fitted, 30.0),
    "identify-5": (identified, 5.0),
}


def perform(name: str, task: str) -> dict[str, Any]:
    """One task in this process: its seconds without those of compiling, and what came of it."""
    try:
        subject = subjects()[name]()
    except (oj.ModelError, oj.DataError) as error:
        return {"left_out": str(error)}
    work, limit = TASKS[task]
    begin, compiled, before = time.perf_counter(), compilation.seconds(), time.process_time()
    try:
        outcome = work(subject, limit)
    except (oj.ModelError, oj.DataError) as error:
        outcome = f"refused: {error}".splitlines()[0]
    return {
        "states": len(subject.model.states),
        "unknowns": subject.unknowns,
        "points": subject.points,
        "seconds": time.perf_counter() - begin - (compilation.seconds() - compiled),
        "cpu": time.process_time() - before,
        "load": os.getloadavg()[0] / (os.cpu_count() or 1),
        "outcome": outcome,
    }


def watched(name: str, task: str) -> dict[str, Any]:
    """One task in a process of its own, ended when it takes far too much; its peak memory is what the system says."""
    command = [sys.executable, "-m", "benchmarks", "limits", "--perform", name, task]
    line: dict[str, Any] = {"model": name, "task": task}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        ended, status, line["megabytes"] = _waited(process.pid, TASKS[task][1])
        process.returncode = status  # it is known, and not to be asked for again
        out.seek(0)
        err.seek(0)
        if ended:
            return line | {"ended": ended}
        if status:
            return line | {"ended": f"crashed: {(err.read().decode().strip().splitlines() or [str(status)])[-1]}"}
        return line | json.loads(out.read())


def _waited(pid: int, limit: float) -> tuple[str, int, float]:
    """Why a process had to be ended, if so, its status and its peak memory in megabytes."""
    ended, deadline = "", time.perf_counter() + READING + limit + PATIENCE
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return ended, os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1000
        if not ended and time.perf_counter() > deadline:
            ended = f"no answer after {limit + PATIENCE:g} s"
        elif not ended and _resident(pid) > MOST_MEMORY:
            ended = f"took more than {MOST_MEMORY} MB"
        if ended:
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.1)


def _resident(pid: int) -> float:
    """Megabytes that a process has now."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


# --- tables -----------------------------------------------------------------------------------------------------------


def held(line: dict[str, Any]) -> bool:
    """Whether a task kept to its limits; one that was refused in time did."""
    if "ended" in line:
        return False
    return bool(line["seconds"] <= TASKS[line["task"]][1] + ROOM and line["megabytes"] <= MEMORY)


def table(lines: list[dict[str, Any]]) -> str:
    """One row per model: seconds, megabytes and outcome of each task; what broke its limits stands out."""
    measured = [line for line in lines if "left_out" not in line]
    kept = ", ".join(
        f"{task} {sum(map(held, own))} of {len(own)}"
        for task in TASKS
        if (own := [line for line in measured if line["task"] == task])
    )
    text = [
        f"Within the limit plus {ROOM:g} s and {MEMORY} MB: {kept}.",
        "Seconds are by the clock, without those of compiling kernels; memory is the peak of the process, with Python",
        f"and all libraries.  Bold is what broke a limit.  {_busy(measured)}",
        "",
        f"| model | states | unknowns | points | {' | '.join(f'{task} s | MB | outcome' for task in TASKS)} |",
        f"|---|---:|---:|---:|{'---:|---:|---|' * len(TASKS)}",
    ]
    by_model: dict[str, dict[str, dict[str, Any]]] = {}
    for line in measured:
        by_model.setdefault(line["model"], {})[line["task"]] = line
    for model, own in by_model.items():
        sizes: dict[str, Any] = next((line for line in own.values() if "states" in line), {})
        facts = [str(sizes.get(key, "")) for key in ("states", "unknowns", "points")]
        text.append(f"| {model} | {' | '.join([*facts, *(_cell(own.get(task)) for task in TASKS)])} |")
    left = {line["model"]: line["left_out"] for line in lines if "left_out" in line}
    text += ["", *(f"{model} is left out: {reason}." for model, reason in left.items())] if left else []
    return "\n".join(text) + "\n"


def _busy(lines: list[dict[str, Any]]) -> str:
    """How much else the machine had to do: only on an idle one is the clock that of the task."""
    busy = float(np.median([line["load"] for line in lines if "load" in line] or [0.0]))
    if busy < _IDLE:
        return "The machine had nothing else to do."
    return f"Every core had {busy:.0f} processes to run (median), which stretches whatever follows a limit."


def _cell(line: dict[str, Any] | None) -> str:
    if line is None:
        return " |  | "
    if "ended" in line:
        return f" | {line['megabytes']:.0f} | **{line['ended']}**"
    seconds, megabytes = f"{line['seconds']:.1f}", f"{line['megabytes']:.0f}"
    if line["seconds"] > TASKS[line["task"]][1] + ROOM:
        seconds = f"**{seconds}**"
    if line["megabytes"] > MEMORY:
        megabytes = f"**{megabytes}**"
    return f"{seconds} | {megabytes} | {line['outcome'].replace('|', '/')}"


def main(argv: list[str]) -> int:
    if argv[:1] == ["--perform"]:
        print(json.dumps(perform(*argv[1:])))
        return 0
    known = subjects()
    parser = argparse.ArgumentParser(prog="python -m benchmarks limits", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", nargs="+", default=list(known), choices=list(known), metavar="MODEL")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--output", type=Path, default=RESULTS / "limits.jsonl")
    given = parser.parse_args(argv)
    if not collection.names():
        print(f"{collection.MISSING}; the other models are measured")
    path = given.output
    lines = records.read(path)
    done = {(line["model"], line["task"]) for line in lines}
    oj.fit(*_small())  # kernels are compiled, or are there
    for name in given.models:
        for task in given.tasks:
            if (name, task) not in done:
                lines.append(watched(name, task))
                records.add(path, lines[-1])
                print(f"{name} {task}: {_cell(lines[-1]) if 'left_out' not in lines[-1] else 'left out'}", flush=True)
    order = {(name, task): i for i, (name, task) in enumerate((n, t) for n in known for t in TASKS)}
    lines.sort(key=lambda line: order.get((line["model"], line["task"]), len(order)))
    write_whole(path.with_suffix(".md"), table(lines))
    print(table(lines))
    return 0


def _small() -> tuple[oj.Model, oj.Data]:
    subject = chain(2, 1)
    return subject.model, subject.data
