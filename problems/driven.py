"""Driven systems: what doses, spikes, a computer or a step act on, with values drawn at random.

Data are exact solutions (matrix exponentials, or SciPy from event to event) with noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import odejet as oj

DOSE, EVERY, COUNT = 100.0, 12.0, 6


THRESHOLD = 30.0  # millivolt, where the neuron spikes


BOTTOM = -70.0  # millivolt, where the integrator is reset


LIGAND = 2.0


@dataclass(frozen=True)
class Task:
    """What is to be fitted, the values behind it, and wide bounds."""

    model: oj.Model
    data: oj.Data
    truth: Mapping[str, float]
    bounds: Any
    initial: Mapping[str, float] = field(default_factory=dict)  # true initial states, where these are unknown


def spread(rng: np.random.Generator, values: Mapping[str, float], factor: float = 1.5) -> dict[str, float]:
    """Values drawn within a factor of typical ones."""
    return {name: float(value * factor ** rng.uniform(-1, 1)) for name, value in values.items()}


TWO_COMPARTMENTS = oj.Model(
    {
        "gut": "-ka*gut",
        "central": "ka*gut - (CL/V1)*central - (Q/V1)*central + (Q/V2)*peripheral",
        "peripheral": "(Q/V1)*central - (Q/V2)*peripheral",
    },
    {"conc": "central/V1"},
    initial={"gut": 0, "central": 0, "peripheral": 0},
)


DOSES = {"time": "tlag", "state": "gut", "amount": DOSE, "every": EVERY, "count": COUNT}


def concentration(times: np.ndarray, ka: float, CL: float, V1: float, Q: float, V2: float, tlag: float) -> np.ndarray:
    """The concentration after repeated doses, by the matrix exponential of the linear system."""
    rates = np.array([[-ka, 0, 0], [ka, -(CL + Q) / V1, Q / V2], [0, Q / V1, -Q / V2]])
    given = tlag + EVERY * np.arange(COUNT)
    return np.array([sum(expm(rates * (t - at))[1, 0] * DOSE / V1 for at in given if t > at) for t in times])


def patient(rng: np.random.Generator) -> Task:
    truth = spread(rng, {"ka": 0.9, "CL": 4.0, "V1": 20.0, "Q": 3.0, "V2": 30.0, "tlag": 0.6})
    after = np.array([0.3, 0.7, 0.9, 1.2, 1.6, 2, 2.5, 3, 4, 6, 8, 10])
    times = np.concatenate([after, 12 + after[2:], *(12 * k + after[[3, 5, 7, 9]] for k in (2, 3, 4))])
    times = np.r_[times, 60 + after, 75.0, 80.0, 90.0]
    exact = concentration(times, **truth)
    noisy = exact + 0.01 * exact.max() * rng.standard_normal(len(times))
    data = oj.Data(times, {"conc": noisy}, doses=DOSES, start=0.0)
    return Task(TWO_COMPARTMENTS, data, truth, (1e-2, 1e3))


NEURON = oj.Model(
    {"v": "0.04*v**2 + 5*v + 140 - u + I", "u": "a*(b*v - u)"},
    {"V": "v"},
    events=[oj.Event(when=f"v > {THRESHOLD:g}", set={"v": "c", "u": "u + d"})],
)


def neuron(rng: np.random.Generator) -> Task:
    low = {"I": 8.0, "a": 0.02, "b": 0.18, "c": -66.0, "d": 4.0}
    high = {"I": 14.0, "a": 0.05, "b": 0.22, "c": -55.0, "d": 8.0}
    truth = {name: float(rng.uniform(low[name], high[name])) for name in low}
    times = 0.25 * np.arange(320)
    begin = np.array([rng.uniform(-72, -66), rng.uniform(-15, -12)])
    exact = voltage(truth, begin, times)
    bounds = {"I": (0, 100), "a": (1e-3, 1), "b": (1e-2, 1), "c": (-100, 0), "d": (0, 100), "v": (-100, 30)}
    data = oj.Data(times, {"V": exact + 0.1 * rng.standard_normal(len(times))})
    return Task(NEURON, data, truth, bounds | {"u": (-100, 100)}, dict(zip("vu", begin, strict=True)))


def voltage(k: Mapping[str, float], state: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The voltage at times, by SciPy from spike to spike."""

    def rates(x: np.ndarray) -> list[float]:
        return [0.04 * x[0] ** 2 + 5 * x[0] + 140 - x[1] + k["I"], k["a"] * (k["b"] * x[0] - x[1])]

    spike = (lambda x: x[0] - THRESHOLD), (lambda x: [k["c"], x[1] + k["d"]])
    return reset(rates, [spike], state, times)[:, 0]


def reset(
    rates: Callable[[np.ndarray], list[float]],
    events: list[tuple[Callable[[np.ndarray], float], Callable[[np.ndarray], list[float]]]],
    state: np.ndarray,
    times: np.ndarray,
) -> np.ndarray:
    """States (times, states), by SciPy from event to event.

    An event is what rises through zero then, and what it makes of the states.
    """
    t, found = float(times[0]), np.empty((len(times), len(state)))
    conditions = [partial(_condition, function) for function, _ in events]
    for condition in conditions:
        condition.terminal, condition.direction = True, 1.0  # type: ignore[attr-defined]
    exact: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-11, "method": "DOP853", "dense_output": True}
    while True:
        ahead = times >= t
        leg = solve_ivp(lambda _, x: rates(x), (t, times[-1] + 1), state, events=conditions, **exact)
        found[ahead] = leg.sol(times[ahead]).T
        if leg.status != 1 or leg.t[-1] > times[-1]:
            return found
        which = next(i for i, when in enumerate(leg.t_events) if len(when))
        t, state = leg.t[-1], np.array(events[which][1](leg.y[:, -1]))


def _condition(function: Callable[[np.ndarray], float], t: float, x: np.ndarray) -> float:
    return function(x)


BALL = oj.Model(
    {"h": "v", "v": "-g - drag*v"},
    {"height": "h"},
    events=[oj.Event(when="h < 0", set={"h": 0, "v": "-e*v"})],
)


def ball(rng: np.random.Generator) -> Task:
    k = {"g": rng.uniform(6, 13), "e": rng.uniform(0.7, 0.92), "drag": rng.uniform(0.05, 0.3)}
    bounce = (lambda x: -x[0]), (lambda x: [1e-14, -k["e"] * x[1]])
    times = np.linspace(0, 3, 151)
    begin = np.array([rng.uniform(1, 2), rng.uniform(-1, 1)])
    exact = reset(lambda x: [x[1], -k["g"] - k["drag"] * x[1]], [bounce], begin, times)[:, 0]
    data = oj.Data(times, {"height": exact + 0.01 * rng.standard_normal(len(times))})
    bounds = {"g": (0, 100), "e": (0, 1), "drag": (0, 10), "h": (0, 10), "v": (-10, 10)}
    return Task(BALL, data, k, bounds, dict(zip("hv", begin, strict=True)))


THERMOSTAT = oj.Model(
    {"T": "-k*(T - Ta) + P*on", "on": "0"},
    {"temperature": "T"},
    initial={"on": 1},
    events=[oj.Event(when="T > high", set={"on": 0}), oj.Event(when="T < low", set={"on": 1})],
)


def thermostat(rng: np.random.Generator) -> Task:
    low = {"k": 0.05, "Ta": 5.0, "P": 2.0, "high": 20.0, "low": 17.0}
    high = {"k": 0.15, "Ta": 12.0, "P": 4.0, "high": 22.0, "low": 19.0}
    k = {name: float(rng.uniform(low[name], high[name])) for name in low}
    off = (lambda x: x[0] - k["high"]), (lambda x: [x[0], 0.0])
    on = (lambda x: k["low"] - x[0]), (lambda x: [x[0], 1.0])
    times = np.linspace(0, 40, 321)
    begin = np.array([rng.uniform(12, 16), 1.0])
    exact = reset(lambda x: [-k["k"] * (x[0] - k["Ta"]) + k["P"] * x[1], 0.0], [off, on], begin, times)[:, 0]
    data = oj.Data(times, {"temperature": exact + 0.05 * rng.standard_normal(len(times))})
    bounds = {"k": (1e-3, 10), "Ta": (-50, 50), "P": (0, 100), "high": (0, 50), "low": (0, 50), "T": (0, 50)}
    return Task(THERMOSTAT, data, k, bounds, {"T": begin[0]})


INTEGRATOR = oj.Model(
    {"v": "(drive - v)/tau", "th": "(rest - th)/decay"},
    {"V": "v"},
    events=[oj.Event(when="v > th", set={"v": BOTTOM, "th": "th + rise"})],
)


def integrator(rng: np.random.Generator) -> Task:
    """Its threshold rises with every spike and comes back; between spikes the voltage does not show it."""
    low = {"drive": -45.0, "tau": 8.0, "rest": -54.0, "decay": 20.0, "rise": 2.0}
    high = {"drive": -35.0, "tau": 15.0, "rest": -51.0, "decay": 50.0, "rise": 5.0}
    k = {name: float(rng.uniform(low[name], high[name])) for name in low}
    spike = (lambda x: x[0] - x[1]), (lambda x: [BOTTOM, x[1] + k["rise"]])
    times = 0.5 * np.arange(300)
    begin = np.array([rng.uniform(-70, -65), k["rest"]])
    exact = reset(lambda x: [(k["drive"] - x[0]) / k["tau"], (k["rest"] - x[1]) / k["decay"]], [spike], begin, times)[
        :, 0
    ]
    data = oj.Data(times, {"V": exact + 0.1 * rng.standard_normal(len(times))})
    bounds: dict[str, tuple[float, float]] = dict.fromkeys(("drive", "rest", "v", "th"), (-100.0, 0.0))
    bounds |= {"tau": (1, 100), "decay": (1, 1000), "rise": (0, 100)}
    return Task(INTEGRATOR, data, k, bounds, {"v": begin[0], "th": begin[1]})


MOTOR = oj.Model(
    {"i": "(V - R*i - K*w)/L", "w": "(K*i - b*w)/J"},
    {"current": "i", "speed": "w"},
    inputs={"V": "sampled, hold"},
    initial={"i": 0, "w": 0},
)


def held(volts: np.ndarray, step: float, R: float, K: float, L: float, b: float, J: float) -> np.ndarray:
    """Current and speed (2, times) under a voltage that is held: a product of matrix exponentials."""
    rates = np.array([[-R / L, -K / L, 1 / L], [K / J, -b / J, 0], [0, 0, 0]])
    state, states, ahead = np.zeros(2), [], expm(rates * step)
    for volt in volts:
        states.append(state)
        state = (ahead @ np.r_[state, volt])[:2]
    return np.array(states).T


def motor(rng: np.random.Generator) -> Task:
    truth = spread(rng, {"R": 2.0, "K": 0.1, "L": 0.5, "b": 0.05, "J": 0.02})
    step, count = 0.05, 160
    volts = np.repeat(rng.choice([0, 6.0, 12.0], count // 4), 4)
    current, speed = held(volts, step, **truth) + 0.02 * rng.standard_normal((2, count))
    data = oj.Data(step * np.arange(count), {"current": current, "speed": speed}, inputs={"V": volts})
    return Task(MOTOR, data, truth, (1e-4, 1e2))


RECEPTOR = oj.Model(
    {"R": "kr - dr*R - kon*L*R + koff*C", "C": "kon*L*R - koff*C - ki*C", "P": "kp*C - dp*P + b"},
    {"free": "R", "bound": "C", "signal": "P"},
)


def stepped(times: np.ndarray, k: Mapping[str, float]) -> np.ndarray:
    """All states (times, 3) after the ligand is given: it is linear from R = kr/dr and P = b/dp on."""
    matrix = np.zeros((4, 4))
    matrix[0] = [-k["dr"] - LIGAND * k["kon"], k["koff"], 0, k["kr"]]
    matrix[1] = [LIGAND * k["kon"], -k["koff"] - k["ki"], 0, 0]
    matrix[2] = [0, k["kp"], -k["dp"], k["b"]]
    rest = [k["kr"] / k["dr"], 0.0, k["b"] / k["dp"], 1.0]
    return np.array([(expm(matrix * t) @ rest)[:3] for t in times])


def receptor(rng: np.random.Generator) -> Task:
    truth = spread(rng, {"kr": 1.0, "dr": 0.2, "kon": 0.8, "koff": 0.3, "ki": 0.5, "kp": 2.0, "dp": 0.4, "b": 0.3})
    times = np.r_[np.linspace(0, 3, 13), np.linspace(3.5, 20, 16)]
    exact = stepped(times, truth)
    noisy = exact + 0.01 * rng.standard_normal(exact.shape)
    outputs = dict(zip(RECEPTOR.outputs, noisy.T, strict=True))
    data = oj.Data(times, outputs, initial="steady", before={"L": 0}, values={"L": LIGAND})
    return Task(RECEPTOR, data, truth, (1e-3, 1e2))
