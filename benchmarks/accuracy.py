"""Accuracy: fits of fresh draws beside fits started from the truth.

python -m benchmarks accuracy --seed 7 --trials 5 --noise 0 1e-8 1e-6 1e-4 1e-2 [--systems ...] [--points 750]
    [--irregular] [--no-bounds] [--output FILE]

Every cell (system, noise, trial) is one line of a file, written as soon as it is known: stopping and starting again
loses and repeats nothing.  The truth serves to draw data and to judge, never to fit.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import cells
from benchmarks import lines as records
from odejet.problem import Problem
from odejet.search.refine import Refined, refine
from problems import systems

RESULTS = Path(__file__).parent / "results" / "accuracy"
SAME = 1e-2
"""A misfit that is higher by less than this, in units of the log-likelihood, is the same."""


@dataclass(frozen=True)
class Truth:
    """A draw of a system: its values, and data made from them."""

    system: systems.System
    parameters: dict[str, float]
    initial_state: dict[str, float]
    data: oj.Data

    @property
    def values(self) -> dict[str, float]:
        return {**self.initial_state, **self.parameters}


def draw(name: str, noise: float, trial: int, seed: int, points: int, irregular: bool) -> Truth:
    """Data of the protocol, or at irregular times."""
    protocol, cell = cells.Protocol(seed, points), cells.Cell(name, noise, trial)
    drawn = cells.draw(name, trial, protocol)
    if irregular:
        rng = cells.noise_stream(cell, protocol)
        data = _irregular(drawn.system, drawn.parameters, drawn.initial_state, noise, rng)
    else:
        data = cells.measured(drawn, cell, protocol)
    return Truth(drawn.system, drawn.parameters, drawn.initial_state, data)


def _irregular(
    system: systems.System,
    parameters: dict[str, float],
    begin: dict[str, float],
    noise: float,
    rng: np.random.Generator,
) -> oj.Data:
    """200 random times, others for every output, a fifth of the values missing."""
    model, outputs = system.model, {}
    first, last = system.time
    for output in model.outputs:
        times = np.sort(np.r_[first, rng.uniform(first, last, 199)])
        clean = oj.simulate(model, parameters, begin, times)[output]
        values = clean + noise * abs(clean.mean()) * rng.normal(size=len(times))
        values[1:][rng.random(len(times) - 1) < 0.2] = np.nan
        outputs[output] = (times, values)
    return oj.Data(None, outputs)


def from_truth(truth: Truth, bounds: tuple[float, float] | None) -> Refined:
    misfit = Problem(truth.system.model, truth.data).misfit
    start = np.array([truth.values[unknown.name] for unknown in misfit.unknowns])
    return refine(misfit, start, bounds=bounds, time_limit=60.0)


def worst_error(truth: Truth, values: dict[str, float]) -> float:
    """The largest relative error of what can be known at all."""
    known = [name for name in truth.values if name not in truth.system.unidentifiable]
    return max(abs(values[name] - truth.values[name]) / abs(truth.values[name]) for name in known)


def cell(name: str, noise: float, trial: int, arguments: argparse.Namespace) -> dict[str, Any]:
    truth = draw(name, noise, trial, arguments.seed, arguments.points, arguments.irregular)
    bounds = None if arguments.no_bounds else systems.protocol().bounds
    oj.fit(truth.system.model, truth.data, bounds=bounds, effort="quick") if not _warm(name) else None
    begin = time.process_time()  # a fit uses one core, and what else the machine does is not its fault
    found = oj.fit(truth.system.model, truth.data, bounds=bounds, effort=arguments.effort)
    seconds = time.process_time() - begin
    reference = from_truth(truth, bounds)
    values = {**found.initial_state, **found.parameters}
    names = [unknown.name for unknown in found.unknowns]
    return {
        "system": name,
        "noise": noise,
        "trial": trial,
        "seconds": seconds,
        "cost": found.cost,
        "truth_cost": reference.cost,
        "error": worst_error(truth, values),
        "truth_error": worst_error(truth, dict(zip(names, reference.z.tolist(), strict=True))),
        "certified": found.certificate.granted,
        "ending": found.message,
        "reasons": list(found.certificate.reasons),
        "answered": found.provenance.sentence,
        "stages": dict(found.stages),
        "truth_ending": reference.ending.name,
        "exact": reference.ending.name == "EXACT",
    }


_WARMED: set[str] = set()


def _warm(name: str) -> bool:
    """Whether identifiability and fibre of a system are cached already."""
    known = name in _WARMED
    _WARMED.add(name)
    return known


def same(line: dict[str, Any]) -> bool:
    """Whether a fit is as good as the one from the truth; at rounding level both are exact."""
    return bool(line["cost"] <= line["truth_cost"] + SAME or (line["exact"] and line["error"] < 1e-3))


def table(lines: list[dict[str, Any]]) -> str:
    """Success by noise and by system, beside the fit from the truth."""
    columns = "cells|as good|SR-1|SR-10|SR-50|SR-1/10/50 from the truth|certified|falsely|median CPU s|p95 CPU s"
    rows = [f"| | {columns.replace('|', ' | ')} |"]
    rows.append("|---|---|---|---|---|---|---|---|---|---|---|")
    groups: dict[str, list[dict[str, Any]]] = {"all": lines}
    for line in lines:
        groups.setdefault(f"noise {line['noise']:g}", []).append(line)
    for line in lines:
        groups.setdefault(line["system"], []).append(line)
    for name, own in groups.items():
        share = lambda test, own=own: f"{100 * sum(map(test, own)) / len(own):.1f}"  # noqa: E731
        seconds = np.array([line["seconds"] for line in own])
        falsely = sum(line["certified"] and not same(line) for line in own)
        shares = [share(same), *(share(lambda x, t=t: x["error"] <= t) for t in (0.01, 0.1, 0.5))]
        truth = "/".join(share(lambda x, t=t: x["truth_error"] <= t) for t in (0.01, 0.1, 0.5))
        times = f"{np.median(seconds):.2f} | {np.quantile(seconds, 0.95):.2f}"
        rows.append(
            f"| {name} | {len(own)} | {' | '.join(shares)} | {truth} | {share(lambda x: x['certified'])} | "
            f"{falsely} | {times} |"
        )
    return "\n".join(rows) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks accuracy", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--points", type=int, default=750)
    parser.add_argument("--noise", type=float, nargs="+", default=list(systems.protocol().noise))
    parser.add_argument("--systems", nargs="+", default=list(systems.names()))
    parser.add_argument("--effort", default="auto")
    parser.add_argument("--irregular", action="store_true", help="200 random times per output, a fifth missing")
    parser.add_argument("--no-bounds", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args(argv)
    kind = ("-irregular" if arguments.irregular else "") + ("-unbounded" if arguments.no_bounds else "")
    path = arguments.output or RESULTS / f"seed{arguments.seed}-{arguments.points}{kind}.jsonl"
    lines = records.read(path)
    done = {(line["system"], line["noise"], line["trial"]) for line in lines}
    for trial in range(arguments.trials):
        for name in arguments.systems:
            for noise in arguments.noise:
                if (name, noise, trial) not in done:
                    line = cell(name, noise, trial, arguments)
                    lines.append(line)
                    records.add(path, line)
                    mark = "" if same(line) else f"  MISFIT {line['cost']:.3f} against {line['truth_cost']:.3f}"
                    print(f"{name} {noise:g} {trial}: {line['seconds']:.2f} s, {line['answered']}{mark}", flush=True)
    path.with_suffix(".md").write_text(table(lines))
    print(table(lines))
    return 0
