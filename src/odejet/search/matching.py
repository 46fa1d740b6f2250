"""Matching: a start for large models all of whose states are measured, without simulating anything.

Every state follows from the others by its own equation,

    x_i(t) = x_i(0) + integral of f_i(x(s), p) from 0 to t,

and with the smoothed measurements in place of the x(s) under the integral, each equation is a small regression of
measurements on the few parameters that stand in it (integral matching; Himmelblau, Jones and Bischoff 1967).  The
equations are solved together, by damped least squares, since they share parameters.  Noise in the integral biases the
values a little, so that they are only a start; but no parameter can spoil the others, as in a system of all derivatives
at one time, of which the larger ones have no usable root where there is noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from odejet.budget import Budget
from odejet.model.derivatives import derivative
from odejet.model.expressions import TIME, Expression, Symbol, constant, evaluate, names
from odejet.problem import Problem
from odejet.problem.conditions import Condition
from odejet.problem.coordinates import Coordinates
from odejet.search.candidates import Candidate
from odejet.search.shooting import Shot
from odejet.smooth import Smoothed

LARGE = 40
"""Unknowns of an experiment from which on its equations are matched."""

PARTS = {"": slice(None), "even": slice(0, None, 2), "odd": slice(1, None, 2)}
"""Measurements that are matched for a start each: all, and two parts that share none."""

GRID = 400
"""Times at which rates are integrated, beside those of the measurements."""

SHRINK = 0.1
"""What is left of an unknown that a step would take through zero."""

ROUNDS, FIRST_DAMPING, SETTLED = 200, 1e-2, 1e-6
"""Of damped least squares: how many, the damping to begin with, relative to the curvature, and the relative decrease
with which they end."""


def is_matched(problem: Problem) -> bool:
    """Whether the equations of a problem can be matched, and are so many that it pays."""
    large = max(map(len, problem.layout.places)) >= LARGE
    return large and all(_can(condition) for condition in problem.conditions)


def _can(condition: Condition) -> bool:
    model, measured = condition.model, condition.experiment.outputs
    expressions = [model.outputs[name] for name in measured]
    states = {one.name for one in expressions if isinstance(one, Symbol)}
    if condition.cumulated.outputs:
        return False
    known = all(constant(value) is not None for value in model.initial.values())
    return known and model.is_smooth and not model.inputs and not model.steady and states >= set(model.states)


def candidates(
    problem: Problem,
    smoothed: Mapping[tuple[str, str], Smoothed],
    levels: np.ndarray,
    frame: Coordinates,
    budget: Budget,
) -> list[Candidate]:
    """Starts from all measurements, and from each half of them: two that share none are independent."""
    found = {name: matched(problem, smoothed, levels, frame, budget, part) for name, part in PARTS.items()}
    return [Candidate(z, Shot((), ""), "matching", part=name) for name, z in found.items() if z is not None]


def matched(
    problem: Problem,
    smoothed: Mapping[tuple[str, str], Smoothed],
    levels: np.ndarray,
    frame: Coordinates,
    budget: Budget,
    part: slice = slice(None),
) -> np.ndarray | None:
    """Values of all unknowns that match a part of the measurements best; None where that cannot be told."""
    if not all((c.experiment.name, y) in smoothed for c in problem.conditions for y in c.experiment.outputs):
        return None
    noise = dict(zip(problem.misfit.outputs, levels.tolist(), strict=True))
    numbers = range(len(problem.conditions))
    sides = [side for number in numbers for side in _equations(problem, number, smoothed, noise, part)]
    with np.errstate(all="ignore"):
        theta, squares = solved(sides, frame, frame.to(frame.inside(problem.sizes)), budget)
    return frame.back(theta) if np.isfinite(squares) else None


def solved(
    equations: list[Equation], frame: Coordinates, theta: np.ndarray, budget: Budget, rounds: int = ROUNDS
) -> tuple[np.ndarray, float]:
    """The least squares of all equations from a start, and half their sum.

    Unknowns in which rates are linear follow from the others: they are put where those ask for before every step, so
    that a start need only be right in what is nonlinear (Ruhe and Wedin 1980).
    """
    low, high = frame.box
    linear = _linear(equations)
    theta = _adjusted(equations, frame, theta, linear)
    squares, gradient, curvature = _normal(equations, frame, theta)
    damping = FIRST_DAMPING
    for _ in range(rounds):
        if budget.over or not np.isfinite(squares) or damping > 1e12:
            break
        scale = np.diag(curvature) + 1e-12 * np.trace(curvature) / len(theta) + 1e-300
        step = np.linalg.solve(curvature + damping * np.diag(scale), -gradient)
        trial = np.clip(theta + np.clip(step, -1.0, 1.0), low, high)
        trial = _adjusted(equations, frame, _signed(frame, theta, trial), linear)
        found = _normal(equations, frame, trial)
        if not found[0] < squares:
            damping *= 4
            continue
        settled = squares - found[0] <= SETTLED * squares
        theta, (squares, gradient, curvature) = trial, found
        damping = max(damping / 5, 1e-14)
        if settled:
            break
    return theta, squares


def screened(equations: list[Equation], frame: Coordinates, starts: np.ndarray, kept: int) -> list[np.ndarray]:
    """The best of some starts, each with its linear unknowns where the others ask for."""
    linear = _linear(equations)
    found = []
    for start in starts:
        theta = _adjusted(equations, frame, start, linear)
        z = frame.back(theta)
        squares = sum(float(left @ left) for left in (one.residuals(z) for one in equations))
        found.append((squares if np.isfinite(squares) else np.inf, theta))
    return [theta for _, theta in sorted(found, key=lambda one: one[0])[:kept]]


def _signed(frame: Coordinates, theta: np.ndarray, trial: np.ndarray) -> np.ndarray:
    """A trial at which unknowns have the signs that they had: beyond zero there may be a pole."""
    before, after = frame.back(theta), frame.back(trial)
    return np.where(before * after < 0, frame.to(frame.inside(SHRINK * before)), trial)


def _linear(equations: list[Equation]) -> np.ndarray:
    """Entries of z in which all equations are linear together, as they are in initial values."""
    beside: dict[int, set[int]] = {}  # of every parameter, those on which slopes by it depend
    for equation in equations:
        for name, slope in equation.slopes.items():
            met = {equation.places[other] for other in names(slope) if other in equation.places}
            beside.setdefault(equation.places[name], set()).update(met)
    chosen: set[int] = set()
    for place, met in beside.items():
        if not met & {place, *chosen} and not any(place in beside[other] for other in chosen):
            chosen.add(place)
    return np.array(sorted(chosen | {one.initial for one in equations if isinstance(one.initial, int)}), dtype=int)


def _adjusted(equations: list[Equation], frame: Coordinates, theta: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """theta with its linear unknowns where the others ask for, as far as the box has such a place."""
    if not len(linear):
        return theta
    z = frame.back(theta)
    place = np.full(len(z), -1)
    place[linear] = np.arange(len(linear))
    gradient, curvature = np.zeros(len(linear)), np.zeros((len(linear), len(linear)))
    for equation in equations:
        own = place[equation.entries]
        jacobian = equation.jacobian(z)[:, own >= 0]
        gradient[own[own >= 0]] += equation.residuals(z) @ jacobian
        curvature[np.ix_(own[own >= 0], own[own >= 0])] += jacobian.T @ jacobian
    if not np.all(np.isfinite(curvature)):
        return theta
    scale = np.diag(curvature) + 1e-300
    z[linear] -= np.linalg.solve(curvature + np.diag(1e-12 * scale), gradient)
    return frame.to(frame.inside(z))


@dataclass(frozen=True, eq=False)
class Equation:
    """One state of one experiment: its rate, and its measurements."""

    rate: Expression
    slopes: Mapping[str, Expression]  # of the rate, by unknown parameter
    values: Mapping[str, np.ndarray]  # of all smoothed states on a grid
    grid: np.ndarray
    at: np.ndarray  # places of the measurements on it
    measured: np.ndarray
    level: float
    places: Mapping[str, int]  # of parameters in z
    initial: int | float  # its entry of z, or its value

    @cached_property
    def entries(self) -> list[int]:
        """The entries of z that stand in it."""
        own = [self.places[name] for name in self.slopes]
        return [*own, self.initial] if isinstance(self.initial, int) else own

    def at_values(self, z: np.ndarray) -> dict[str, Any]:
        return {**self.values, **{name: z[place] for name, place in self.places.items()}}

    def residuals(self, z: np.ndarray) -> np.ndarray:
        """In units of the noise."""
        start = z[self.initial] if isinstance(self.initial, int) else self.initial
        return (start + self._integrated(self.rate, self.at_values(z)) - self.measured) / self.level

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """The derivatives of the residuals by its entries of z."""
        values = self.at_values(z)
        columns = [self._integrated(slope, values) for slope in self.slopes.values()]
        if isinstance(self.initial, int):
            columns.append(np.ones(len(self.at)))
        return np.reshape(columns, (len(self.entries), -1)).T / self.level

    def _integrated(self, expression: Expression, values: Mapping[str, object]) -> np.ndarray:
        """By trapezoids, up to every measurement."""
        rates = np.broadcast_to(np.asarray(evaluate(expression, values, np), dtype=float), self.grid.shape)
        pieces = 0.5 * (rates[1:] + rates[:-1]) * np.diff(self.grid)
        return np.concatenate([[0.0], np.cumsum(pieces)])[self.at]


def _equations(
    problem: Problem,
    number: int,
    smoothed: Mapping[tuple[str, str], Smoothed],
    noise: Mapping[str, float],
    part: slice,
) -> list[Equation]:
    """The equations of one experiment."""
    condition, places = problem.conditions[number], problem.layout.places[number]
    model, experiment = condition.model, condition.experiment
    outputs = {}  # by state
    for name in experiment.outputs:
        if isinstance(expression := model.outputs[name], Symbol) and expression.name in model.states:
            outputs[expression.name] = name
    times = np.unique(np.concatenate([series.times for series in experiment.outputs.values()]))
    grid = np.unique(np.concatenate([times, np.linspace(experiment.start, times[-1], GRID)]))
    values: dict[str, np.ndarray] = {TIME: grid, **{name: np.asarray(v) for name, v in model.fixed.items()}}
    values |= {state: smoothed[experiment.name, outputs[state]](grid) for state in model.states}
    found = []
    for state, rate in model.states.items():
        series = experiment.outputs[outputs[state]].observed
        free = [name for name in dict.fromkeys(names(rate)) if name in places and name not in model.states]
        value = constant(model.initial[state]) if state in model.initial else None
        found.append(
            Equation(
                rate=rate,
                slopes={name: derivative(rate, name) for name in free},
                values=values,
                grid=grid,
                at=np.searchsorted(grid, series.times[part]),
                measured=series.values[part],
                level=noise[outputs[state]],
                places={name: places[name] for name in free},
                initial=places[state] if value is None else float(value),
            )
        )
    return found


def _normal(equations: list[Equation], frame: Coordinates, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Half the squares of all equations, their gradient and its Gauss-Newton curvature by theta."""
    z = frame.back(theta)
    slopes = frame.slopes(z)
    squares, gradient, curvature = 0.0, np.zeros(len(z)), np.zeros((len(z), len(z)))
    for equation in equations:
        residuals, jacobian, entries = equation.residuals(z), equation.jacobian(z), equation.entries
        jacobian = jacobian * slopes[entries]
        squares += 0.5 * float(residuals @ residuals)
        gradient[entries] += residuals @ jacobian
        curvature[np.ix_(entries, entries)] += jacobian.T @ jacobian
    return (squares if np.all(np.isfinite(curvature)) else np.inf), gradient, curvature
