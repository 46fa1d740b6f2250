"""Side by side: two states of the code on identical draws of the accuracy, beyond and coverage benchmarks.

python -m benchmarks sideby --before DIR [--seed 1] [--cells 90] [--kinds ...] [--time-limit 600] [--output FILE]

DIR is a checkout of the code to compare with; the other is the one that this runs from, which makes the data.  Each
code base fits in a long-lived process of its own, cell by cell in turns, and is judged by its own likelihood: a fit is
as good if its cost is that of the fit started from the truth by the same code.  CPU seconds are those of the processes,
with kernels compiled before; on a machine that is busy otherwise, a generous time limit keeps the clock from deciding.
Every cell is one line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import accuracy, beyond, coverage, systems
from benchmarks import lines as records
from benchmarks.comparison import AS_GOOD
from benchmarks.store import write_whole

ROOT = Path(__file__).parents[1]
WORKER = Path(__file__).with_name("sideby_worker.py")
RESULTS = Path(__file__).parent / "results" / "sideby"
KINDS = ("accuracy", "beyond", "bounded", "coverage")
CODES = ("before", "after")
PATIENCE = 900.0
"""Seconds after which a fit is ended and counted as a failure."""


@dataclass(frozen=True)
class Cell:
    """A data set: of a benchmark, and which of its draws."""

    kind: str
    name: str
    noise: float
    draw: int

    @classmethod
    def of(cls, line: dict[str, Any]) -> Cell:
        """The cell of a stored line."""
        return cls(line["kind"], line["name"], line["noise"], line["draw"])

    def job(self, seed: int) -> dict[str, Any]:
        """The data set as plain values, with the truth to judge by."""
        if self.kind in ("beyond", "bounded"):
            case = beyond.cases()[self.name]
            truth, data = case.drawn(np.random.default_rng([seed, self.draw, *self.name.encode()]), self.noise)
            model, bounds, skipped = case.model, case.bounds if self.kind == "bounded" else None, case.unidentifiable
        else:
            made = accuracy.draw(self.name, self.noise, self.draw, seed, coverage.POINTS, False)
            truth, data, model = made.values, made.data, made.system.model
            bounds, skipped = systems.protocol().bounds, made.system.unidentifiable
        (experiment,) = data.experiments
        return {
            "model": model.to_toml(),
            "time": next(iter(experiment.outputs.values())).times.tolist(),
            "outputs": {name: series.values.tolist() for name, series in experiment.outputs.items()},
            "bounds": bounds,
            "truth": truth,
            "skipped": list(skipped),
            "warm": self.kind == "accuracy",
            "intervals": self.kind == "coverage",
            "time_limit": None,
        }


def cells(seed: int, kinds: tuple[str, ...]) -> Iterator[Cell]:
    """Without end: the kinds in turns, and of each its models and noise levels in an order that the seed shuffles."""
    return itertools.chain.from_iterable(zip(*(_of_kind(kind, seed) for kind in kinds), strict=False))


def _of_kind(kind: str, seed: int) -> Iterator[Cell]:
    rng = np.random.default_rng([seed, *kind.encode()])
    names = beyond.cases() if kind in ("beyond", "bounded") else systems.names()
    noises = {"accuracy": systems.protocol().noise, "coverage": (1e-4, 1e-2)}.get(kind, beyond.NOISES)
    pairs = list(itertools.product(names, noises))
    for draw in itertools.count():
        for place in rng.permutation(len(pairs)):
            yield Cell(kind, *pairs[place], draw)


class Worker:
    """A process that runs a program with the code of one directory."""

    def __init__(self, directory: Path, program: Path = WORKER) -> None:
        self.directory, self.program = directory, program
        self._start()

    def _start(self) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(self.program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **threads, "PYTHONPATH": str(self.directory / "src")},
            cwd=self.directory,
        )
        where = Path(self._line() or "nowhere")
        if not where.is_relative_to(self.directory.resolve()):
            raise RuntimeError(f"the worker for {self.directory} took its code from {where}")

    def _line(self) -> Any:
        """What the process says next; None if it says nothing for too long, or has ended."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            if not waiting.select(PATIENCE):
                return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        self.process.stdin.flush()
        found = self._line()
        if found is None:
            self.close()
            self._start()
            return {"failure": f"no answer within {PATIENCE:g} s, or a crash"}
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def as_good(found: dict[str, Any]) -> bool:
    """Whether a fit is as good as the one from the truth; at rounding level both are exact."""
    if "failure" in found:
        return False
    return bool(found["cost"] <= found["reference"] + AS_GOOD or (found["exact"] and found["error"] < 1e-3))


def table(lines: list[dict[str, Any]]) -> str:
    rows = [
        "| | code | cells | as good | certified | falsely | no fit | within 10 % | intervals that hold | "
        "median CPU s | p95 CPU s | total CPU s |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    groups = {"all": lines} | {kind: [line for line in lines if line["kind"] == kind] for kind in KINDS}
    for title, own in groups.items():
        if own:
            times = [[_seconds(line[code]) for line in own] for code in CODES]
            rows += [_row(title, code, [line[code] for line in own]) for code in CODES]
            rows.append(f"| {title} | ratio {' |' * 8} {' | '.join(_ratios(*times))} |")
    return "\n".join(rows) + "\n"


def _seconds(found: dict[str, Any]) -> float:
    return found.get("seconds", PATIENCE) + found.get("practical_seconds", 0.0)


def _row(title: str, code: str, own: list[dict[str, Any]]) -> str:
    fits = [found for found in own if "failure" not in found]
    good, certified = sum(map(as_good, own)), [found for found in fits if found["certified"]]
    falsely = sum(not as_good(found) for found in certified)
    near = sum(found["error"] <= 0.1 for found in fits)
    claims, hits = (sum(found.get(what, 0) for found in fits) for what in ("determined", "hits"))
    share = f"{hits} of {claims}" if claims else ""
    times = [f"{value:.3f}" for value in _summary([_seconds(found) for found in own])]
    counts = (len(own), good, len(certified), falsely, len(own) - len(fits), near, share)
    return f"| {title} | {code} | {' | '.join(map(str, counts))} | {' | '.join(times)} |"


def _summary(seconds: list[float]) -> tuple[float, float, float]:
    return float(np.median(seconds)), float(np.quantile(seconds, 0.95)), float(np.sum(seconds))


def _ratios(before: list[float], after: list[float]) -> list[str]:
    """After by before of median, p95 and total; beside the median that of the cells' own ratios."""
    median, p95, total = (b / a for a, b in zip(_summary(before), _summary(after), strict=True))
    each = float(np.median(np.array(after) / np.array(before)))
    return [f"{median:.2f} (by cell {each:.2f})", f"{p95:.2f}", f"{total:.2f}"]


def differences(lines: list[dict[str, Any]]) -> str:
    """The cells in which the two codes are not equally good or not alike certified."""
    rows = []
    for line in lines:
        pair = [line[code] for code in CODES]
        told = [
            found.get("failure")
            or f"{'as good' if as_good(found) else 'behind by {:.3g}'.format(found['cost'] - found['reference'])}, "
            f"{'' if found['certified'] else 'not '}certified, {found['seconds']:.2f} s"
            for found in pair
        ]
        if as_good(pair[0]) != as_good(pair[1]) or pair[0].get("certified") != pair[1].get("certified"):
            cell = f"{line['kind']} {line['name']} {line['noise']:g} {line['draw']}"
            rows.append(f"- {cell}: before {told[0]}; after {told[1]}")
    return "\n".join(["Cells that differ:", "", *(rows or ["- none"])]) + "\n"


def measure(before: Path, seed: int, wanted: list[Cell], path: Path, limit: float | None) -> list[dict[str, Any]]:
    """Fits of all cells that are not in the file yet, by both codes in turns."""
    lines = records.read(path)
    done = {Cell.of(line) for line in lines}
    workers = {"before": Worker(before), "after": Worker(ROOT)}
    try:
        for count, cell in enumerate(cell for cell in wanted if cell not in done):
            job = cell.job(seed) | {"time_limit": limit}
            if not count:
                for worker in workers.values():
                    worker.ask(job)  # kernels are compiled, or read from their cache
            order = CODES if count % 2 == 0 else CODES[::-1]
            found = {code: workers[code].ask(job) for code in order}
            lines.append({**asdict(cell), **{code: found[code] for code in CODES}})
            records.add(path, lines[-1])
            times = ", ".join(f"{code} {_seconds(found[code]):.2f} s" for code in CODES)
            marks = "".join(f"  {code} BEHIND" for code in CODES if not as_good(found[code]))
            print(f"{cell.kind} {cell.name} {cell.noise:g} {cell.draw}: {times}{marks}", flush=True)
    finally:
        for worker in workers.values():
            worker.close()
    return [line for line in lines if Cell.of(line) in wanted]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks sideby", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the code to compare with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", type=int, default=90)
    parser.add_argument("--kinds", nargs="+", default=["accuracy", "beyond", "coverage"], choices=KINDS)
    parser.add_argument("--time-limit", type=float, help="seconds that a fit may take, if not its own")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args(argv)
    if not (given.before / "src" / "odejet").is_dir():
        parser.error(f"{given.before} has no src/odejet")
    path = given.output or RESULTS / f"seed{given.seed}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = list(itertools.islice(cells(given.seed, tuple(given.kinds)), given.cells))
    lines = measure(given.before.resolve(), given.seed, wanted, path, given.time_limit)
    text = f"{table(lines)}\n{differences(lines)}"
    write_whole(path.with_suffix(".md"), text)
    print(text)
    return 0
