"""Worker: elimination in a process of its own, which can be ended.

Computer algebra in C cannot be interrupted, and how long it takes cannot be known beforehand.  Where little work was
not enough, it goes on in another process, which ends with the budget and whose memory is limited.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace

from odejet.budget import Budget, OutOfBudget
from odejet.identify import elimination, local, orders, partial
from odejet.identify.globally import Count, Engine
from odejet.identify.local import Local
from odejet.identify.projection import NotRational
from odejet.identify.quotient import Infinite
from odejet.jets.modular import Unlucky
from odejet.model import Model

MEMORY = 1_200_000_000
"""Bytes that the process may take."""

LONGEST = 1e6
"""Seconds that a timer of the system can be set to."""


def limit_memory(process: int, size: int) -> None:
    """The memory that a process may take, where the system can be told."""
    if sys.platform == "linux":
        import contextlib
        import resource

        with contextlib.suppress(ProcessLookupError, PermissionError):
            resource.prlimit(process, resource.RLIMIT_DATA, (size, size))


def count(ranks: Local, seed: int, budget: Budget) -> Count:
    """`elimination.count` in a process of its own."""
    problem = ranks.problem
    question = {
        "model": problem.model.to_toml(),
        "functions": list(problem.functions),
        "inputs": problem.inputs,
        "experiments": problem.experiments,
        "unlimited": problem.unlimited,
        "seed": seed,
        "seconds": min(budget.seconds, threading.TIMEOUT_MAX),
    }
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "odejet.identify.worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        with subprocess.Popen(command, env=environment, **pipes) as process:  # type: ignore[call-overload]
            limit_memory(process.pid, MEMORY)
            try:
                answer, _ = process.communicate(json.dumps(question).encode(), question["seconds"])
            except subprocess.TimeoutExpired:
                raise OutOfBudget("the time is over") from None
            finally:
                process.kill()
    except OSError as error:
        raise NotRational(f"no further process could be started: {error.strerror}") from None
    if process.returncode != 0:
        raise OutOfBudget("the input-output equations do not fit into memory")
    return _read(json.loads(answer))


def _read(answer: dict) -> Count:
    if "budget" in answer:
        raise OutOfBudget(answer["budget"])
    if "refused" in answer:
        raise NotRational(answer["refused"])
    return Count(**{**answer, "invariants": tuple(answer["invariants"])})


def _answer(question: dict) -> dict:
    budget = Budget.within(question["seconds"])
    model = Model.from_toml_text(question["model"])
    problem = local.problem(model, question["functions"], question["inputs"], question["experiments"])
    ranks = local.analyse(replace(problem, unlimited=question["unlimited"]), question["seed"])
    try:
        found = counted(ranks, Engine(None, budget), question["seed"])
    except OutOfBudget as end:
        return {"budget": str(end)}
    except (NotRational, Infinite, Unlucky) as reason:
        return {"refused": str(reason) or "functions of unknowns leave the equations underdetermined"}
    return asdict(found)


def counted(ranks: Local, engine: Engine, seed: int) -> Count:
    """By a whole elimination, or where that is too long by what comes out of it."""
    square = orders.choose(ranks)
    try:
        return elimination.count(ranks, square, engine, seed)
    except OutOfBudget:
        if not partial.applies(ranks.problem):
            raise
        engine.budget.check()
        return elimination.count(ranks, square, engine, seed, partial.Partial)


def _end_after(seconds: float) -> None:
    """Have the system end this process even if the one that started it is gone and nothing here looks at the clock."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, min(seconds, LONGEST) + 1.0)


def main() -> None:
    question = json.load(sys.stdin)
    _end_after(question["seconds"])
    json.dump(_answer(question), sys.stdout)


if __name__ == "__main__":
    main()
