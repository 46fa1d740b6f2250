"""Driven systems: fits of what doses, spikes, a computer or a step act on, from values drawn at random.

    python -m benchmarks driven [--seeds S ...] [--systems NAME ...] [--limit SECONDS] [--output FILE]

    patient     two compartments with a lag time, a dose every twelve hours; the concentration is measured
    neuron      Izhikevich's neuron, which is reset where it spikes; the voltage is measured
    ball        a bouncing ball with restitution and drag; its height is measured
    thermostat  a heater that is switched at two temperatures, both unknown; the temperature is measured
    integrator  a leaky neuron whose threshold rises with every spike; the voltage is measured
    motor       a motor with a voltage that is held from sample to sample; current and speed are measured
    receptor    signalling that rests before its ligand is given at once; all states are measured

Data are exact solutions (matrix exponentials, or SciPy from event to event) with noise.  Each is fitted without bounds
and with wide ones.  Limits of time count the processor's seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import clock
from benchmarks import lines as records
from benchmarks.comparison import AS_GOOD
from odejet.jets import compilation
from odejet.search.refine import refine
from problems.driven import Task, ball, integrator, motor, neuron, patient, receptor, thermostat

RESULTS = Path(__file__).parent / "results" / "driven" / "fits.jsonl"


SYSTEMS: dict[str, Callable[[np.random.Generator], Task]] = {
    "patient": patient,
    "neuron": neuron,
    "ball": ball,
    "thermostat": thermostat,
    "integrator": integrator,
    "motor": motor,
    "receptor": receptor,
}


def reference(task: Task, known: Mapping[str, Any]) -> float:
    """The cost of the optimum to which the truth leads."""
    problem = oj.Problem(task.model, task.data, **known)
    z = problem.layout.vector({**task.truth, **task.initial})
    return float(refine(problem.misfit, z, frame=problem.frame(z)).cost)


def fitted(system: str, seed: int, bounded: bool, limit: float | None) -> dict[str, Any]:
    """A fit, how far its nearest solution is from the truth, in standard errors and relative to it."""
    task = SYSTEMS[system](np.random.default_rng([seed, *system.encode()]))
    known = {"bounds": task.bounds} if bounded else {}
    begin, compiled = time.process_time(), compilation.seconds()
    fit = oj.fit(task.model, task.data, time_limit=limit, **known)
    seconds = time.process_time() - begin - (compilation.seconds() - compiled)
    off = [max(abs(one.parameters[n] / v - 1) for n, v in task.truth.items()) for one in fit.solutions]
    near = int(np.argmin(off))
    apart = [abs(fit.parameters[n] - v) / fit.stderr[n] for n, v in task.truth.items()]
    return {
        "system": system,
        "seed": seed,
        "bounds": bounded,
        "certified": bool(fit.certified),
        "solutions": len(fit.solutions),
        "relative": off[near],
        "errors": max(apart) if near == 0 else None,
        "cost": float(fit.cost),
        "behind": float(fit.cost) - reference(task, known),
        "seconds": seconds,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Counts by system; as good is what is no less likely than the optimum to which the truth leads."""
    titles = "system | bounds | fits | as good | certified | falsely | largest relative error | median s | longest s"
    lines = [f"| {titles} |", "|" + 9 * "---|"]
    for system in SYSTEMS:
        for bounded in (False, True):
            found = [row for row in rows if row["system"] == system and row["bounds"] is bounded]
            if found:
                seconds = [row["seconds"] for row in found]
                good = [row["behind"] <= AS_GOOD for row in found]
                certified = [row["certified"] for row in found]
                falsely = sum(one and not other for one, other in zip(certified, good, strict=True))
                worst = max(row["relative"] for row in found)
                cells = (system, "yes" if bounded else "no", len(found), sum(good), sum(certified), falsely)
                times = f"{np.median(seconds):.1f} | {max(seconds):.1f}"
                lines.append(f"| {' | '.join(map(str, cells))} | {worst:.3f} | {times} |")
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks driven", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--limit", type=float, default=None)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    clock.by_processor()
    rows = records.read(arguments.output)
    done = {(row["system"], row["seed"], row["bounds"]) for row in rows}
    for seed in arguments.seeds:
        for system in arguments.systems:
            for bounded in (False, True):
                if (system, seed, bounded) not in done:
                    rows.append(fitted(system, seed, bounded, arguments.limit))
                    records.add(arguments.output, rows[-1])
    told = table(rows)
    arguments.output.with_suffix(".md").write_text(f"# Driven systems\n\n{told}\n", encoding="utf-8")
    print(told)
    return 0
