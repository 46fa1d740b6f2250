"""Run: methods on cells, each result written as soon as it is known.

python -m benchmarks run --methods ours multistart pypesto --trials 10 [--systems ...] [--noise ...]
    [--jobs N | --dask ADDRESS] [--results DIR] [--seed S] [--evaluations N] [--seconds S]

Killing it at any moment and starting it again loses and repeats nothing but the cells that were being computed.  Cells
go trial by trial, so a part of a run is balanced.  Workers of a Dask cluster need this repository on their path, and
one thread each (`dask worker --nthreads 1`).
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np

from benchmarks import cells, systems
from benchmarks.cells import Cell, Protocol
from benchmarks.methods import METHODS, PLAIN, Answer, Budget, Problem, families
from benchmarks.store import Result, Store, Timing
from odejet import DataError, ModelError
from odejet.clock import now
from odejet.smooth.threads import one_thread

RESULTS = Path(__file__).parent / "results" / "cells"
DEATHS = 3
"""How often a worker may die at a cell before that counts as failed."""

_PREPARED: dict[tuple[str, str], float] = {}


@dataclass(frozen=True)
class Task:
    """A cell for a method."""

    method: str
    cell: Cell
    protocol: Protocol
    budget: Budget


# --- one cell ---


def work(task: Task) -> Result:
    """Make the data of a cell, fit them, and compare with the truth."""
    method, truth = METHODS[task.method], cells.draw(task.cell.system, task.cell.trial, task.protocol)
    problem = Problem(
        truth.system.model,
        cells.measured(truth, task.cell, task.protocol),
        systems.protocol().bounds,
        method.weighted,
        task.budget,
        _seed(task),
        truth.values if method.knows_truth else {},
    )
    with one_thread():
        prepare = _prepared(task)
        begin, processor = time.perf_counter(), time.thread_time()
        answer = _attempt(task, problem)
        timing = Timing(time.perf_counter() - begin, time.thread_time() - processor, prepare, answer.found_at)
    found = float(answer.cost), answer.evaluations, answer.ending, timing, answer.values
    return Result(task.method, task.cell, truth.error(answer.values), *found)


def _attempt(task: Task, problem: Problem) -> Answer:
    try:
        return METHODS[task.method].solve(problem)
    except Exception as error:  # what a method raises is its answer to this cell
        return Answer(None, math.inf, 0, f"{type(error).__name__}: {error}"[:200])


def _prepared(task: Task) -> float:
    """Seconds of what a method finds once per model; zero if this process has found it before."""
    prepare, system = METHODS[task.method].prepare, task.cell.system
    if prepare is None or (key := (prepare.__module__, system)) in _PREPARED:
        return 0.0
    begin = now()
    prepare(systems.load(system).model)
    _PREPARED[key] = now() - begin
    return _PREPARED[key]


def _seed(task: Task) -> int:
    """The same for both losses of a method, so that they search from the same points."""
    cell, family = task.cell, task.method.removesuffix(PLAIN)
    level = round(-1e3 * np.log10(cell.noise)) if cell.noise else 99
    entropy = [task.protocol.seed, cell.trial, systems.number(cell.system), abs(level), zlib.crc32(family.encode())]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def lost(task: Task, reason: str) -> Result:
    """The result of a cell whose worker died again and again."""
    return Result(task.method, task.cell, cells.PENALTY, math.inf, 0, reason, Timing(0.0, 0.0))


# --- many cells ---


def serially(tasks: Sequence[Task]) -> Iterator[Result]:
    yield from map(work, tasks)


def in_processes(tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """In processes of this machine; when one dies no other cell is lost, and its own is tried again, last of all."""
    context, waiting, blame = multiprocessing.get_context("spawn"), list(tasks), Counter[Task]()
    while waiting:
        with ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with_parent) as pool:
            futures = {pool.submit(work, task): task for task in waiting}
            broken = set()
            for future in as_completed(futures):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    broken.add(future)
        waiting = [task for future, task in futures.items() if future in broken]
        # Cells go in order: those that were being computed are the first of what is left.
        suspects, waiting = waiting[:jobs], waiting[jobs:]
        blame.update(suspects)
        waiting += [task for task in suspects if blame[task] < DEATHS]
        yield from (lost(task, "the process that computed it died") for task in suspects if blame[task] == DEATHS)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            wait([parent.sentinel])
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()


def on_dask(tasks: Sequence[Task], address: str) -> Iterator[Result]:
    """On the workers of a Dask cluster; cells of a worker that dies go to the others."""
    import distributed

    with distributed.Client(address) as client:
        futures = {client.submit(work, task, pure=False, retries=DEATHS): task for task in tasks}
        for future in distributed.as_completed(futures):
            task = futures.pop(future)
            if future.status == "finished":
                yield future.result()
            else:
                yield lost(task, f"{type(future.exception()).__name__} on the cluster")
            future.release()


class Progress:
    """How far a run is, and how long the rest may take by the mean of each method so far."""

    def __init__(self, tasks: Sequence[Task], done: int, workers: int, quiet: bool = False) -> None:
        self.total, self.done, self.workers, self.quiet = len(tasks) + done, done, max(workers, 1), quiet
        self.left: dict[str, int] = {}
        for task in tasks:
            self.left[task.method] = self.left.get(task.method, 0) + 1
        self.spent: dict[str, list[float]] = {}
        self.shown = 0.0

    def note(self, result: Result) -> None:
        self.done += 1
        self.left[result.method] -= 1
        self.spent.setdefault(result.method, []).append(result.timing.seconds + result.timing.prepare)
        now = time.monotonic()
        if not self.quiet and (now - self.shown > 5 or self.done == self.total):
            self.shown = now
            last = f"{result.method} {result.cell}: worst error {result.error:.2g}, {result.timing.seconds:.2f} s"
            print(f"{self.done}/{self.total}, about {self.remaining()} left; {last}", file=sys.stderr, flush=True)

    def seconds_left(self) -> float:
        every = [value for values in self.spent.values() for value in values]
        mean = {method: float(np.mean(self.spent.get(method, every))) for method in self.left}
        return sum(count * mean[method] for method, count in self.left.items()) / self.workers

    def remaining(self) -> str:
        minutes = self.seconds_left() / 60
        return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def run(
    tasks: Iterable[Task], store: Store, jobs: int = 1, dask: str | None = None, quiet: bool = False
) -> list[Result]:
    """Compute what is not there yet, and write it; the new results."""
    wanted = list(tasks)
    with _alone(store.directory):
        store.clean()
        known = store.done()
        todo = [task for task in wanted if (task.method, task.cell) not in known]
        progress = Progress(todo, len(wanted) - len(todo), jobs, quiet)
        results = []
        source = on_dask(todo, dask) if dask else in_processes(todo, jobs) if jobs > 1 else serially(todo)
        for result in source if todo else ():
            store.save(result)
            progress.note(result)
            results.append(result)
    return results


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One run at a time per directory; the lock goes with the process, however that ends."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass  # Windows has no such lock; there the user sees to it
        except OSError:
            raise DataError(f"another run is writing to {directory}; wait for it or give another --results") from None
        yield


# --- the command ---


def tasks_of(methods: Sequence[str], names: Sequence[str], noise: Sequence[float], trials: range, protocol: Protocol,
             budget: Budget) -> list[Task]:  # fmt: skip
    """Trial by trial, all methods on a cell before the next."""
    return [
        Task(method, Cell(name, level, trial), protocol, budget)
        for trial in trials
        for name in names
        for level in noise
        for method in methods
    ]


def methods_of(given: Sequence[str]) -> list[str]:
    """Names of methods, with families put in their place."""
    known = families()
    found = [name for word in given for name in known.get(word, (word,))]
    for name in found:
        if name not in METHODS:
            raise ModelError(f"there is no method '{name}'; there are {', '.join([*known, *METHODS])}")
    return list(dict.fromkeys(found))


def parser() -> argparse.ArgumentParser:
    protocol, defaults, budget = systems.protocol(), Protocol(), Budget()
    options = argparse.ArgumentParser(prog="python -m benchmarks run", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--methods", nargs="+", default=["ours"], help=f"names, or {', '.join(families())}")
    options.add_argument("--systems", nargs="+", default=list(systems.names()), help="names; 'apart' for the 26th")
    options.add_argument("--noise", type=float, nargs="+", default=list(protocol.noise))
    options.add_argument("--trials", type=int, default=protocol.trials, help="how many")
    options.add_argument("--first-trial", type=int, default=0)
    options.add_argument("--jobs", type=int, default=1, help="processes")
    options.add_argument("--dask", metavar="ADDRESS", help="of a scheduler")
    options.add_argument("--results", type=Path, default=RESULTS)
    options.add_argument("--seed", type=int, default=defaults.seed)
    options.add_argument("--points", type=int, default=protocol.points)
    options.add_argument("--scale", choices=cells.SCALES, default=defaults.scale, help="what noise is relative to")
    options.add_argument("--evaluations", type=int, default=budget.evaluations, help="the paper has 200000")
    options.add_argument("--seconds", type=float, default=budget.seconds, help="of a processor; the paper has 600")
    return options


def main(argv: list[str]) -> int:
    given = parser().parse_args(argv)
    protocol, budget = Protocol(given.seed, given.points, given.scale), Budget(given.evaluations, given.seconds)
    store = Store(given.results)
    try:
        methods = methods_of(given.methods)
        names = [name for word in given.systems for name in (systems.apart() if word == "apart" else (word,))]
        for name in names:
            systems.load(name)
        store.claim({"protocol": asdict(protocol), "budget": asdict(budget)})
        trials = range(given.first_trial, given.first_trial + given.trials)
        run(tasks_of(methods, names, given.noise, trials, protocol, budget), store, given.jobs, given.dask)
    except (ModelError, DataError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0
