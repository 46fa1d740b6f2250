"""Driven systems: fits of what doses, spikes, a computer or a step act on, from values drawn at random.

    python -m benchmarks driven [--seeds S ...] [--systems NAME ...] [--limit SECONDS] [--output FILE]

    patient     two compartments with a lag time, a dose every twelve hours; the concentration is measured
    neuron      Izhikevich's neuron, which is reset where it spikes; the voltage is measured
    motor       a motor with a voltage that is held from sample to sample; current and speed are measured
    receptor    signalling that rests before its ligand is given at once; all states are measured

Data are exact solutions (matrix exponentials, or SciPy from spike to spike) with noise.  Each is fitted without bounds
and with wide ones.  Limits of time count the processor's seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import odejet as oj
from benchmarks import clock
from benchmarks import lines as records
from odejet.jets import compilation

RESULTS = Path(__file__).parent / "results" / "driven" / "fits.jsonl"
DOSE, EVERY, COUNT = 100.0, 12.0, 6
THRESHOLD = 30.0  # millivolt, where the neuron spikes
LIGAND = 2.0


@dataclass(frozen=True)
class Task:
    """What is to be fitted, the values behind it, and wide bounds."""

    model: oj.Model
    data: oj.Data
    truth: Mapping[str, float]
    bounds: Any


def spread(rng: np.random.Generator, values: Mapping[str, float], factor: float = 1.5) -> dict[str, float]:
    """Values drawn within a factor of typical ones."""
    return {name: float(value * factor ** rng.uniform(-1, 1)) for name, value in values.items()}


def patient(rng: np.random.Generator) -> Task:
    truth = spread(rng, {"ka": 0.9, "CL": 4.0, "V1": 20.0, "Q": 3.0, "V2": 30.0, "tlag": 0.6})
    model = oj.Model(
        {
            "gut": "-ka*gut",
            "central": "ka*gut - (CL/V1)*central - (Q/V1)*central + (Q/V2)*peripheral",
            "peripheral": "(Q/V1)*central - (Q/V2)*peripheral",
        },
        {"conc": "central/V1"},
        initial={"gut": 0, "central": 0, "peripheral": 0},
    )
    ka, cl, v1, q, v2, lag = truth.values()
    rates = np.array([[-ka, 0, 0], [ka, -(cl + q) / v1, q / v2], [0, q / v1, -q / v2]])
    after = np.array([0.3, 0.7, 0.9, 1.2, 1.6, 2, 2.5, 3, 4, 6, 8, 10])
    times = np.concatenate([after, 12 + after[2:], *(12 * k + after[[3, 5, 7, 9]] for k in (2, 3, 4))])
    times = np.r_[times, 60 + after, 75.0, 80.0, 90.0]
    given = lag + EVERY * np.arange(COUNT)
    exact = np.array([sum(expm(rates * (t - at))[1, 0] * DOSE / v1 for at in given if t > at) for t in times])
    noisy = exact + 0.01 * exact.max() * rng.standard_normal(len(times))
    doses = {"time": "tlag", "state": "gut", "amount": DOSE, "every": EVERY, "count": COUNT}
    return Task(model, oj.Data(times, {"conc": noisy}, doses=doses, start=0.0), truth, (1e-2, 1e3))


def neuron(rng: np.random.Generator) -> Task:
    low = {"I": 8.0, "a": 0.02, "b": 0.18, "c": -66.0, "d": 4.0}
    high = {"I": 14.0, "a": 0.05, "b": 0.22, "c": -55.0, "d": 8.0}
    truth = {name: float(rng.uniform(low[name], high[name])) for name in low}
    model = oj.Model(
        {"v": "0.04*v**2 + 5*v + 140 - u + I", "u": "a*(b*v - u)"},
        {"V": "v"},
        events=[oj.Event(when=f"v > {THRESHOLD:g}", set={"v": "c", "u": "u + d"})],
    )
    times = 0.25 * np.arange(320)
    exact = _spikes(truth, np.array([rng.uniform(-72, -66), rng.uniform(-15, -12)]), times)
    bounds = {"I": (0, 100), "a": (1e-3, 1), "b": (1e-2, 1), "c": (-100, 0), "d": (0, 100), "v": (-100, 30)}
    data = oj.Data(times, {"V": exact + 0.1 * rng.standard_normal(len(times))})
    return Task(model, data, truth, bounds | {"u": (-100, 100)})


def _spikes(k: Mapping[str, float], state: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The voltage at times, by SciPy from spike to spike."""

    def rates(t: float, x: np.ndarray) -> list[float]:
        return [0.04 * x[0] ** 2 + 5 * x[0] + 140 - x[1] + k["I"], k["a"] * (k["b"] * x[0] - x[1])]

    def spike(t: float, x: np.ndarray) -> float:
        return x[0] - THRESHOLD

    spike.terminal, spike.direction = True, 1.0  # type: ignore[attr-defined]
    t, found = float(times[0]), np.empty(len(times))
    while True:
        ahead = times >= t
        leg = solve_ivp(
            rates, (t, times[-1] + 1), state, events=spike, rtol=1e-11, atol=1e-11, method="DOP853", dense_output=True
        )
        found[ahead] = leg.sol(times[ahead])[0]
        if leg.status != 1:
            return found
        t, state = leg.t[-1], np.array([k["c"], leg.y[1, -1] + k["d"]])


def motor(rng: np.random.Generator) -> Task:
    truth = spread(rng, {"R": 2.0, "K": 0.1, "L": 0.5, "b": 0.05, "J": 0.02})
    model = oj.Model(
        {"i": "(V - R*i - K*w)/L", "w": "(K*i - b*w)/J"},
        {"current": "i", "speed": "w"},
        inputs={"V": "sampled, hold"},
        initial={"i": 0, "w": 0},
    )
    step, count = 0.05, 160
    voltage = np.repeat(rng.choice([0, 6.0, 12.0], count // 4), 4)
    r, k, inductance, b, j = truth.values()
    rates = np.array([[-r / inductance, -k / inductance, 1 / inductance], [k / j, -b / j, 0], [0, 0, 0]])
    state, states, ahead = np.zeros(2), [], expm(rates * step)
    for volts in voltage:
        states.append(state)
        state = (ahead @ np.r_[state, volts])[:2]
    current, speed = np.array(states).T + 0.02 * rng.standard_normal((2, count))
    data = oj.Data(step * np.arange(count), {"current": current, "speed": speed}, inputs={"V": voltage})
    return Task(model, data, truth, (1e-4, 1e2))


def receptor(rng: np.random.Generator) -> Task:
    """Without ligand R = kr/dr and P = b/dp; from there on the system is linear."""
    k = spread(rng, {"kr": 1.0, "dr": 0.2, "kon": 0.8, "koff": 0.3, "ki": 0.5, "kp": 2.0, "dp": 0.4, "b": 0.3})
    model = oj.Model(
        {"R": "kr - dr*R - kon*L*R + koff*C", "C": "kon*L*R - koff*C - ki*C", "P": "kp*C - dp*P + b"},
        {"free": "R", "bound": "C", "signal": "P"},
    )
    matrix = np.zeros((4, 4))
    matrix[0] = [-k["dr"] - LIGAND * k["kon"], k["koff"], 0, k["kr"]]
    matrix[1] = [LIGAND * k["kon"], -k["koff"] - k["ki"], 0, 0]
    matrix[2] = [0, k["kp"], -k["dp"], k["b"]]
    rest = [k["kr"] / k["dr"], 0.0, k["b"] / k["dp"], 1.0]
    times = np.r_[np.linspace(0, 3, 13), np.linspace(3.5, 20, 16)]
    exact = np.array([(expm(matrix * t) @ rest)[:3] for t in times])
    noisy = exact + 0.01 * rng.standard_normal(exact.shape)
    outputs = dict(zip(model.outputs, noisy.T, strict=True))
    data = oj.Data(times, outputs, initial="steady", before={"L": 0}, values={"L": LIGAND})
    return Task(model, data, k, (1e-3, 1e2))


SYSTEMS: dict[str, Callable[[np.random.Generator], Task]] = {
    "patient": patient,
    "neuron": neuron,
    "motor": motor,
    "receptor": receptor,
}


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
        "seconds": seconds,
    }


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| system | bounds | fits | certified | largest relative error | median s | longest s |", "|" + 7 * "---|"]
    for system in SYSTEMS:
        for bounded in (False, True):
            found = [row for row in rows if row["system"] == system and row["bounds"] is bounded]
            if found:
                seconds = [row["seconds"] for row in found]
                certified, worst = sum(row["certified"] for row in found), max(row["relative"] for row in found)
                cells = (system, "yes" if bounded else "no", len(found), certified, f"{worst:.3f}")
                lines.append(f"| {' | '.join(map(str, cells))} | {np.median(seconds):.1f} | {max(seconds):.1f} |")
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
    print(table(rows))
    return 0
