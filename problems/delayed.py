"""Delay equations with values to solve them at, and their solutions in extended precision.

The oracle is the method of steps with Taylor series in 50 digits (FLINT's), written apart from the library's solver:
fixed steps between all sums of delays, each with a polynomial for every state.  Sensitivities are central differences
with a step of 1e-14, which 50 digits carry.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from flint import arb, arb_poly, arb_series

import odejet as oj
from odejet.model.delays import resolved
from odejet.model.expressions import delays, evaluate

DIGITS, ORDER, STEP = 50, 30, "1e-14"


@dataclass(frozen=True)
class Case:
    """A model, values for it, times, and the length of steps at which the oracle is good to 20 digits and more."""

    name: str
    model: oj.Model
    parameters: Mapping[str, float]
    initial: Mapping[str, float]
    times: tuple[float, ...]
    step: float
    source: str = ""


def _case(name: str, states: dict, outputs: dict, values: dict, first: dict, times: tuple, step: float, **more: Any):
    source = more.pop("source", "")
    return Case(name, oj.Model(states=states, outputs=outputs, name=name, **more), values, first, times, step, source)


CASES = (
    _case("Mackey-Glass", {"x": "b*x(t - tau)/(1 + x(t - tau)**n) - g*x"}, {"y": "x"},
          {"b": 0.2, "tau": 17.0, "n": 10.0, "g": 0.1}, {"x": 1.2}, (5.0, 20.5, 40.0, 60.25), 0.5,
          source="Mackey and Glass 1977"),
    _case("Hutchinson", {"x": "r*x*(1 - x(t - tau)/K)"}, {"y": "x"},
          {"r": 1.8, "tau": 1.0, "K": 1.0}, {"x": 0.1}, (0.5, 2.2, 6.1, 9.7), 0.05, source="Hutchinson 1948"),
    _case("Wheldon", {"x": "a/(1 + b*z(t - tau)**g) - l*x/(1 + m*x**d)", "z": "l*x/(1 + m*x**d) - z"}, {"y": "z"},
          {"a": 1.1e0, "b": 1.0, "tau": 4.0, "g": 1.2, "l": 1.0, "m": 0.5, "d": 1.0}, {"x": 1.0, "z": 0.6},
          (2.0, 6.3, 13.7), 0.1, source="Wheldon, Kirk and Finlay 1974, cyclical granulopoiesis"),
    _case("Cooke", {"y": "b*y(t - 7)*(1 - y) - c*y"}, {"seen": "y"},
          {"b": 2.0, "c": 1.0}, {"y": 0.8}, (3.0, 8.5, 16.2), 0.1, source="Cooke, van den Driessche and Zou 1999"),
    _case("predator and prey", {"x": "r*x*(1 - x(t - tau)/K) - a*x*w", "w": "-d*w + e*a*x(t - sigma)*w(t - sigma)"},
          {"y": "w"}, {"r": 1.0, "tau": 0.7, "K": 2.0, "a": 0.8, "d": 0.5, "e": 0.9, "sigma": 1.1},
          {"x": 1.0, "w": 0.5}, (0.5, 3.3, 6.1), 0.1, source="May 1973"),
    _case("SIR with immunity lost", {"S": "-beta*S*I + gamma*I(t - tau)", "I": "beta*S*I - gamma*I",
                                    "R": "gamma*I - gamma*I(t - tau)"}, {"y": "I"},
          {"beta": 1.5, "gamma": 0.5, "tau": 3.0}, {"S": 0.95, "I": 0.05, "R": 0.0}, (2.0, 7.7, 14.0), 0.1,
          source="Hethcote, Stech and van den Driessche 1981"),
    _case("two delays", {"x": "-a*x(t - t1) - b*x(t - t2)*x"}, {"y": "x"},
          {"a": 0.5, "t1": 1.0, "b": 0.3, "t2": 1.4375}, {"x": 1.0}, (0.5, 2.2, 5.3, 8.0), 0.125),
    _case("linear with history", {"x": "-k*x(t - tau)"}, {"y": "x"},
          {"k": 1.2, "tau": 0.8, "a": 0.7, "w": 2.0}, {}, (0.3, 1.9, 4.4), 0.05, history={"x": "a*cos(w*t)"}),
    _case("history that ends elsewhere", {"x": "-k*x(t - tau) + x*c"}, {"y": "x + x(t - tau)"},
          {"k": 1.2, "tau": 0.8, "c": 0.1, "h": 0.4, "x0": 1.5}, {}, (0.3, 1.9, 4.4), 0.1,
          history={"x": "h"}, initial={"x": "x0"}),
    _case("first-order plant with dead time", {"x": "(K*u(t - d) - x)/T"}, {"y": "x"},
          {"K": 2.0, "d": 0.6, "T": 1.5}, {"x": 0.0}, (0.4, 1.3, 4.0), 0.1, inputs={"u": "sin(3*t) + t/(1 + t*t)"}),
    _case("second-order plant with dead time", {"x": "v", "v": "K*w0**2*u(t - d) - 2*z*w0*v - w0**2*x"},
          {"y": "x"}, {"K": 2.0, "w0": 1.3, "d": 0.6, "z": 0.4}, {"x": 0.0, "v": 0.0}, (0.4, 1.3, 5.0), 0.1,
          inputs={"u": "exp(-t)*sin(3*t)"}),
    _case("effect after a delay",
          {"A": "-ka*A", "C": "ka*A/V - k*C", "E": "kin - kout*E*(1 + S*C(t - tau)/(C50 + C(t - tau)))"},
          {"y": "E"}, {"ka": 1.5, "V": 10.0, "k": 0.3, "kin": 2.0, "kout": 0.5, "S": 3.0, "tau": 1.7, "C50": 2.0},
          {"A": 100.0, "C": 0.0, "E": 4.0}, (1.0, 3.0, 8.0), 0.05,
          source="indirect response of Dayneka, Garg and Jusko 1993 with a delay"),
)  # fmt: skip


class _Functions:
    """The elementary functions of series."""

    def __getattr__(self, name: str) -> Any:
        return lambda a: getattr(a, name)()


_FUNCTIONS = _Functions()


def _number(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def _decimal(value: float) -> arb:
    return _number(Fraction(repr(value)))


def _series(*coefficients: Any) -> arb_series:
    return arb_series(list(coefficients), ORDER + 1)


class Oracle:
    """A case with some of its values moved, solved in extended precision."""

    def __init__(self, case: Case, moved: Mapping[str, arb]) -> None:
        self.model, self.step, self.end = resolved(case.model), _decimal(case.step), _decimal(max(case.times))
        told = {
            name: _decimal(value) + moved.get(name, 0) for name, value in {**case.parameters, **case.initial}.items()
        }
        self.values = {name: _series(value) for name, value in told.items() if name not in self.model.states}
        self.values |= {name: _series(_number(value)) for name, value in self.model.fixed.items()}
        self.first = {name: told[name] for name in case.initial}
        self.first |= {name: self.constant(value) for name, value in self.model.initial.items()}
        tables = (self.model.states, self.model.outputs)
        found = {one for table in tables for value in table.values() for one in delays(value)}
        self.lags = {one: self.constant(one.by) for one in found}
        self.tiny = arb(10) ** (8 - DIGITS)
        self.pieces: list[tuple[arb, arb, dict[str, arb_poly]]] = []  # begin, end, polynomials

    def constant(self, expression: Any) -> arb:
        value = evaluate(expression, {**self.values, "t": _series(0)}, _FUNCTIONS, _number)
        return (value[0] if isinstance(value, arb_series) else value).mid()

    def past(self, name: str, s: arb) -> arb_series:
        """The series of a state at a time before."""
        if s < 0:
            if name not in self.model.history:
                return _series(self.first[name])
            known = {**self.values, "t": _series(s, 1)}
            return _series(0) + evaluate(self.model.history[name], known, _FUNCTIONS, _number)
        begin, _, polynomials = next(piece for piece in reversed(self.pieces) if piece[0] <= s)
        return arb_series(polynomials[name](arb_poly([s - begin, 1])), ORDER + 1)

    def rates(self, t: arb, states: Mapping[str, arb_series], which: Mapping[str, Any], side: arb) -> dict:
        known = {**self.values, **states, "t": _series(t, 1)}
        known |= {
            name: evaluate(value, {"t": known["t"]}, _FUNCTIONS, _number) for name, value in self.model.inputs.items()
        }
        back = {one: self.past(one.argument.name, t - lag + side) for one, lag in self.lags.items()}
        return {
            name: _series(0) + evaluate(value, known, _FUNCTIONS, _number, lambda delay, _: back[delay])
            for name, value in which.items()
        }

    def expand(self, t: arb, x: Mapping[str, arb]) -> dict[str, arb_poly]:
        """The series of all states, an order more at each turn."""
        series = {name: _series(value) for name, value in x.items()}
        for _ in range(ORDER):
            rates = self.rates(t, series, self.model.states, self.tiny)
            series = {name: rates[name].integral() + _series(x[name]) for name in x}
        return {name: arb_poly([c.mid() for c in value]) for name, value in series.items()}

    def solve(self) -> Oracle:
        t, x = arb(0), dict(self.first)
        breaks = _sums(list(self.lags.values()), self.end)
        while t < self.end:
            series = self.expand(t, x)
            stops = [t + self.step, self.end, *(b for b in breaks if b > t + self.tiny)]
            stops += [end + lag for _, end, _ in self.pieces for lag in self.lags.values() if end + lag > t + self.tiny]
            stop = min(stops, key=float).mid()
            stop = next(one for one in stops if not one > stop + self.tiny).mid()
            self.pieces.append((t, stop, series))
            x, t = {name: value(stop - t).mid() for name, value in series.items()}, stop
        return self

    def outputs(self, time: float) -> dict[str, arb]:
        s = _decimal(time)
        begin, _, polynomials = next(piece for piece in reversed(self.pieces) if piece[0] < s)
        states = {name: _series(value(s - begin)) for name, value in polynomials.items()}
        return {name: value[0] for name, value in self.rates(s, states, self.model.outputs, -self.tiny).items()}


def _sums(lags: list[arb], end: arb) -> list[arb]:
    """All sums of delays up to the end."""
    counts = [range(int(float(end) / float(lag)) + 1) for lag in lags]
    sums = (sum((n * lag for n, lag in zip(which, lags, strict=True)), arb(0)) for which in itertools.product(*counts))
    return [value for value in sums if value <= end]


def exact(case: Case, moved: Mapping[str, arb] | None = None) -> list[dict[str, arb]]:
    """The outputs of a case at its times in extended precision, with some of its values moved."""
    with flint.ctx.workdps(DIGITS):
        flint.ctx.cap = ORDER + 1
        solved = Oracle(case, moved or {}).solve()
        return [solved.outputs(time) for time in case.times]


def exact_sensitivities(case: Case, unknown: str) -> list[dict[str, Any]]:
    """Central differences of the outputs by an unknown, in extended precision."""
    with flint.ctx.workdps(DIGITS):
        h = arb(STEP)
        ahead, behind = exact(case, {unknown: h}), exact(case, {unknown: -h})
        return [{n: (a[n] - b[n]) / (2 * h) for n in a} for a, b in zip(ahead, behind, strict=True)]


def compare(case: Case, sensitivities: bool = True) -> tuple[float, float]:
    """The largest relative errors of the library on a case: of outputs, and of all their sensitivities."""
    times = np.r_[0.0, case.times]
    found = oj.simulate(case.model, case.parameters, case.initial, times, sensitivities=True)
    assert found.success, found.message
    name = next(iter(case.model.outputs))
    value = np.array([float(row[name]) for row in exact(case)])
    worst, slopes = float((np.abs(found[name][1:] - value) / np.abs(value).max()).max()), 0.0
    for unknown in found.unknowns if sensitivities else ():
        slope = np.array([float(row[name]) for row in exact_sensitivities(case, unknown)])
        ours = found.sensitivity(name, unknown)[1:]
        slopes = max(slopes, float((np.abs(ours - slope) / max(np.abs(slope).max(), 1e-6)).max()))
    return worst, slopes
