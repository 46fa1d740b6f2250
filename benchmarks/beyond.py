"""Beyond: fits of models that are not in the benchmark, without bounds or with wide ones, beside fits from the truth.

python -m benchmarks beyond [--seed 1] [--draws 10] [--noise 1e-4 0.02] [--models ...] [--bounds] [--time-limit ...]

Values are drawn around those in `beyond.toml`, with a standard deviation of 0.15 of their logarithms, and the noise is
relative to the spread of each output.  Every fit is one line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.comparison import AS_GOOD
from benchmarks.store import write_whole
from odejet.problem import Problem
from odejet.search.refine import refine
from odejet.smooth.threads import one_thread

FILE = Path(__file__).with_suffix(".toml")
RESULTS = Path(__file__).parent / "results" / "beyond"
SPREAD = 0.15
POINTS = 100
NOISES = (1e-4, 0.02)
ROOM = 1000.0
"""With bounds, how far from the decade of its value an unknown may lie, as a factor."""


@dataclass(frozen=True)
class Case:
    """A model, and the values around which draws are made."""

    model: oj.Model
    parameters: Mapping[str, float]
    initial: Mapping[str, float]
    times: np.ndarray
    unidentifiable: tuple[str, ...] = ()  # what no data can tell, by name

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """What somebody who knows the order of magnitude might give; where values may be negative, to either side."""
        return {name: _around(value) for name, value in {**self.initial, **self.parameters}.items()}

    def drawn(self, rng: np.random.Generator, noise: float) -> tuple[dict[str, float], oj.Data]:
        """True values and data."""
        while True:  # a draw whose trajectory ends early gives no data
            parameters, initial = (
                {name: value * math.exp(SPREAD * rng.normal()) for name, value in table.items()}
                for table in (self.parameters, self.initial)
            )
            found = oj.simulate(self.model, parameters, initial, self.times)
            if found.success:
                break
        exact = found.outputs
        noisy = {name: y + noise * y.std() * rng.normal(size=len(y)) for name, y in exact.items()}
        return {**initial, **parameters}, oj.Data(self.times, noisy)


def _around(value: float) -> tuple[float, float]:
    decade = 10.0 ** round(math.log10(abs(value)))
    return (decade / ROOM, decade * ROOM) if value > 0 else (-decade * ROOM, decade * ROOM)


@functools.cache
def cases() -> dict[str, Case]:
    read = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: Case(
            oj.Model(
                table["states"],
                table["outputs"],
                table.get("inputs"),
                parameters=tuple(table["parameters"]),
                initial=table.get("known"),
                name=name,
            ),
            table["parameters"],
            table["initial"],
            np.linspace(0, table["duration"], table.get("points", POINTS)),
            tuple(table.get("unidentifiable", ())),
        )
        for name, table in read.items()
    }


def measured(
    name: str, case: Case, noise: float, draw: int, seed: int, bounded: bool = False, limit: float | None = None
) -> dict[str, Any]:
    """One fit beside the one from the truth."""
    bounds = case.bounds if bounded else None
    truth, data = case.drawn(np.random.default_rng([seed, draw, *name.encode()]), noise)
    begin = time.thread_time()
    fit = oj.fit(case.model, data, bounds=bounds, time_limit=limit)
    seconds = time.thread_time() - begin
    misfit = Problem(case.model, data).misfit
    reference = refine(misfit, np.array([truth[unknown.name] for unknown in misfit.unknowns]), bounds)
    return {
        "model": name,
        "noise": noise,
        "draw": draw,
        "behind": fit.cost - reference.cost,
        "certified": fit.certificate.granted,
        "seconds": seconds,
        "answered": fit.provenance.sentence,
        "message": fit.message,
    }


def table(lines: list[dict[str, Any]]) -> str:
    rows = [
        "| model | fits | as good or better | better | certified | falsely | median CPU s | longest |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    groups: dict[str, list[dict[str, Any]]] = {"all": lines}
    for key, label in (("noise", "noise {:g}"), ("model", "{}")):
        for line in lines:
            groups.setdefault(label.format(line[key]), []).append(line)
    for label, own in groups.items():
        good = sum(line["behind"] <= AS_GOOD for line in own)
        better = sum(line["behind"] < -AS_GOOD for line in own)
        certified = sum(line["certified"] for line in own)
        falsely = sum(line["certified"] and line["behind"] > AS_GOOD for line in own)
        seconds = [line["seconds"] for line in own]
        times = f"{np.median(seconds):.2f} | {max(seconds):.2f}"
        rows.append(f"| {label} | {len(own)} | {good} | {better} | {certified} | {falsely} | {times} |")
    return "\n".join(rows) + "\n"


def main(argv: list[str]) -> int:
    known = cases()
    parser = argparse.ArgumentParser(prog="python -m benchmarks beyond", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--noise", type=float, nargs="+", default=list(NOISES))
    parser.add_argument("--models", nargs="+", default=list(known), choices=list(known))
    parser.add_argument("--time-limit", type=float, help="processor seconds that a fit may take")
    parser.add_argument("--bounds", action="store_true", help="give each unknown wide bounds")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args(argv)
    path = given.output or RESULTS / f"seed{given.seed}{'-bounds' if given.bounds else ''}.jsonl"
    lines = records.read(path)
    done = {(line["model"], line["noise"], line["draw"]) for line in lines}
    by_processor()
    wanted = [(name, noise, draw) for draw in range(given.draws) for name in given.models for noise in given.noise]
    with one_thread():
        for name, noise, draw in (key for key in wanted if key not in done):
            line = measured(name, known[name], noise, draw, given.seed, given.bounds, given.time_limit)
            lines.append(line)
            records.add(path, line)
            mark = "" if line["behind"] <= AS_GOOD else f"  BEHIND by {line['behind']:.3g}"
            print(f"{name} {noise:g} {draw}: {line['seconds']:.2f} s, {line['answered']}{mark}", flush=True)
    write_whole(path.with_suffix(".md"), table(lines))
    print(table(lines))
    return 0
