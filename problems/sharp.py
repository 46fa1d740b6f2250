"""Sharp: random models with sharp features, and whether a simulation of one is wrong that says it succeeded.

Every model has up to three states, or fast ones beside them (stiff), or more than forty (large), and one to three
features.  The yardstick is CVODES with steps that are short beside every feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi
import numpy as np

from odejet.model import Model
from odejet.simulate.flow import Flow, Outcome
from problems.yardsticks import _rates

WRONG = 1e-6
"""Differences beyond this, relative to the largest value of a state, are wrong; CVODES at 1e-10 stays well below."""


_END = 20.0


_FAST = 1e5  # rate of what makes a model stiff


_LARGE = 42  # states: beyond those of collocation


_SHAPES = {
    "switch": "(1 + tanh({u}))/2",
    "logistic": "1/(1 + exp(-2*({u})))",
    "pulse": "exp(-({u})**2/2)",
    "bell": "1 - tanh({u})**2",
    "spike": "1/cosh({u})",
    "box": "1/(1 + ({u})**8)",
    "steep box": "1/(1 + ({u})**20)",
    "window": "(tanh({u}) - tanh({u} - 3))/2",
    "logistic window": "1/((1 + exp(-({u})))*(1 + exp({u} - 5)))",
    "bend": "(sqrt(1 + ({u})**2) - ({u}))/(1 + sqrt(1 + ({u})**2))",
}


_RATES = {
    "decay": {"x": "-0.3*x + 0.1"},
    "growth": {"x": "0.5*x*(1 - x/2)"},
    "rotation": {"x": "y", "y": "-x - 0.05*y"},
    "prey": {"x": "0.6*x - 0.5*x*y", "y": "0.4*x*y - 0.5*y"},
    "chain": {"x": "-0.7*x", "y": "0.7*x - 0.2*y", "z": "0.2*y - 0.05*z"},
    "clock": {"x": "0.2"},
}


@dataclass(frozen=True)
class Case:
    """A random model with values, times, and how fine a grid of steps resolves its features."""

    model: Model
    base: str
    features: tuple[str, ...]
    parameters: list[float]
    states: list[float]
    times: np.ndarray
    longest: float


@dataclass(frozen=True)
class Row:
    """What became of one model."""

    seed: int
    draw: int
    base: str
    features: str
    narrowest: float
    times: int
    method: str
    steps: int
    outcome: str
    difference: float | None  # with sensitivities and without, whichever is larger
    sensitivity_difference: float | None

    @property
    def wrong(self) -> bool:
        return self.outcome == "COMPLETED" and self.difference is not None and not self.difference <= WRONG


def drawn(seed: int, draw: int) -> Case:
    rng = np.random.default_rng([seed, draw])
    base = str(rng.choice(list(_RATES)))
    rates = dict(_RATES[base])
    start = {name: float(rng.uniform(0.2, 2.0)) for name in rates}
    plain = Flow(Model(rates)).run([], list(start.values()), np.linspace(0, _END, 201), sensitivities=False)
    features, longest = [], _END / 50
    for i in range(int(rng.integers(1, 4))):
        shape, state = str(rng.choice(list(_SHAPES))), str(rng.choice([*rates, "t"]))
        width, target = 10 ** rng.uniform(-3, 0), str(rng.choice(list(rates)))
        if rng.random() < 0.1:
            # A square wave: the argument is periodic, and steep where it changes sign.
            argument, kind = f"sin({rng.uniform(0.5, 3):.6g}*t + {rng.uniform(0, 6):.6g})/{width:.6g}", "wave"
            longest = min(longest, width / 12)
        elif rng.random() < 0.5 or state == "t":
            argument, kind = f"(t - {rng.uniform(0, _END):.6g})/{width:.6g}", "time"
            longest = min(longest, width / 4)
        else:
            path = plain.states[:, list(rates).index(state), 0]
            spread = float(np.ptp(path)) or 1.0
            argument, kind = f"({state} - {float(rng.choice(path)):.6g})/{width * spread:.6g}", "state"
            longest = min(longest, width / 12)
        shape = "switch" if kind == "wave" else shape
        amplitude = 10 ** rng.uniform(-1, 0.3)
        sign = "-" if rng.random() < 0.3 and base != "growth" else "+"
        bounded = f"*{target}/(1 + {target}**2)" if sign == "-" else ""
        rates[target] += f" {sign} a{i}*({_SHAPES[shape].format(u=argument)}){bounded}"
        features.append(f"{shape} in {kind} {width:.1e}")
        start[f"a{i}"] = float(amplitude)
    kind = rng.random()
    moving = list(rates)
    if kind < 0.2 or kind > 0.9:
        count = 1 if kind < 0.2 else _LARGE - len(moving)
        for i in range(count):
            source = moving[i % len(moving)]
            rates[f"f{i}"] = f"-{_FAST * (1 + i):.6g}*(f{i} - {source})"
            start[f"f{i}"] = start[source]
        base = f"{base}, {'stiff' if kind < 0.2 else 'large'}"
    parameters = [name for name in start if name not in rates]
    model = Model(rates, parameters=parameters)
    times = np.linspace(0, _END, int(rng.choice([2, 3, 5, 30, 300])))
    if rng.random() < 0.3:
        times = np.r_[0.0, np.sort(rng.uniform(0, _END, len(times))), _END]
    return Case(model, base, tuple(features), [start[p] for p in parameters], [start[x] for x in rates], times, longest)


def reference(case: Case, tolerance: float = 1e-10, longest: float | None = None) -> np.ndarray | None:
    """The states of a case by CVODES in CasADi, with limited steps."""
    names = [*case.model.states, *case.model.parameters, "t"]
    n = len(case.model.states)
    states, parameters, time = casadi.SX.sym("x", n), casadi.SX.sym("p", len(names) - n - 1), casadi.SX.sym("t")
    symbols = [*casadi.vertsplit(states), *casadi.vertsplit(parameters), time]
    rates = _rates(case.model, dict(zip(names, symbols, strict=True)), casadi, lambda exact: casadi.SX(float(exact)))
    problem = {"t": time, "x": states, "p": parameters, "ode": casadi.vertcat(*rates)}
    options = {
        "reltol": tolerance,
        "abstol": 1e-2 * tolerance,
        "max_num_steps": 10_000_000,
        "max_step_size": longest or case.longest,
    }
    try:
        integrator = casadi.integrator("flow", "cvodes", problem, 0.0, case.times[1:].tolist(), options)
        found = integrator(x0=case.states, p=case.parameters)["xf"].full().T
    except RuntimeError:  # CasADi's way to say that CVODES gave up
        return None
    return np.vstack([case.states, found])


def measured(seed: int, draw: int) -> Row:
    case = drawn(seed, draw)
    flow, exact = Flow(case.model), reference(case)
    runs = [flow.run(case.parameters, case.states, case.times, sensitivities=with_them) for with_them in (True, False)]
    outcome = next((run.outcome for run in runs if run.outcome is not Outcome.COMPLETED), Outcome.COMPLETED)
    difference = sensitivity = None
    if exact is not None and outcome is Outcome.COMPLETED:
        difference = max(_difference(run.states[:, :, 0], exact) for run in runs)
        if difference > WRONG:  # is it the yardstick?
            finer = reference(case, 1e-12, case.longest / 2)
            difference = None if finer is None else max(_difference(run.states[:, :, 0], finer) for run in runs)
        sensitivity = _sensitivity_difference(flow, case, runs[0].states)
    widths = [float(feature.split()[-1]) for feature in case.features]
    return Row(
        seed=seed,
        draw=draw,
        base=case.base,
        features="; ".join(case.features),
        narrowest=min(widths),
        times=len(case.times),
        method=runs[0].method.split(" from")[0],
        steps=runs[0].steps,
        outcome=outcome.name,
        difference=difference,
        sensitivity_difference=sensitivity,
    )


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float((np.abs(found - expected).max(axis=0) / np.maximum(np.abs(expected).max(axis=0), 1e-300)).max())


def _sensitivity_difference(flow: Flow, case: Case, states: np.ndarray) -> float | None:
    """The sensitivity to the first amplitude against a central difference, relative to its largest value."""
    step, lane = 1e-5 * case.parameters[0], 1 + len(case.model.states)
    moved = []
    for sign in (1, -1):
        parameters = [case.parameters[0] + sign * step, *case.parameters[1:]]
        run = flow.run(parameters, case.states, case.times, sensitivities=False)
        if run.outcome is not Outcome.COMPLETED:
            return None
        moved.append(run.states[:, :, 0])
    quotient = (moved[0] - moved[1]) / (2 * step)
    return _difference(states[:, :, lane], quotient + 1e-30)
