"""Lags: starts for equations that look back in time, matched to smoothed data for many values of their delays.

Where all states are measured, what they were some time before is known from the smoothed data, for any delay.  With the
delays held, equations are matched as `matching` does for those that do not look back; the least squares that are left
tell which delays are worth a refinement.  Without this a search has to meet the delay and all that oscillates with it
by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odejet.budget import Budget
from odejet.model.derivatives import derivative
from odejet.model.expressions import (
    TIME,
    Delay,
    Expression,
    Symbol,
    children,
    constant,
    delays,
    evaluate,
    fresh,
    names,
    substituted,
)
from odejet.model.wellformed import rebuilt
from odejet.problem import Problem
from odejet.problem.conditions import Condition
from odejet.problem.coordinates import Coordinates
from odejet.search.box import sampled_box
from odejet.search.candidates import Candidate
from odejet.search.matching import GRID, PARTS, Equation, screened, solved
from odejet.search.shooting import Shot
from odejet.smooth import Smoothed

TRIED = 16
"""Values of a single delay at equal ratios, and as many at equal distances."""

DRAWN, STARTS = 24, 2
"""Starts of all else for each of them: so many are drawn, and so many of these followed."""

DECADES = 1.5
"""On either side of the sizes of unknowns: where the starts are drawn."""

BRIEFLY = 25
"""Rounds of least squares for each start; the best are followed to the end."""

KEPT = {"": 4, "even": 3, "odd": 3}
"""Delays that are worth a refinement, by the part of the measurements."""


def is_lagged(problem: Problem) -> bool:
    """Whether the equations of a problem look back at states all of which are measured."""
    return any(one.model.is_delayed for one in problem.conditions) and all(map(_can, problem.conditions))


def _can(condition: Condition) -> bool:
    model = condition.model
    shown = {value for name in condition.experiment.outputs if isinstance(value := model.outputs[name], Symbol)}
    told = model.steady or model.events or model.regimens or condition.cumulated.outputs
    return not told and model.is_smooth and {one.name for one in shown} >= set(model.states)


def candidates(
    problem: Problem,
    smoothed: Mapping[tuple[str, str], Smoothed],
    levels: np.ndarray,
    frame: Coordinates,
    budget: Budget,
) -> list[Candidate]:
    """Return starts from all measurements, and from each half of them: two that share none are independent."""
    if not all((c.experiment.name, y) in smoothed for c in problem.conditions for y in c.experiment.outputs):
        return []
    measured = problem.misfit.measurements
    sizes = np.array([_size(problem, name) if log else 1.0 for name, log in _logarithmic(measured)])
    noise = dict(zip(measured.outputs, (levels * sizes).tolist(), strict=True))
    sides = [
        _Side.of(problem, number, state, smoothed, noise)
        for number, one in enumerate(problem.conditions)
        for state in one.model.states
    ]
    entries = sorted({place for side in sides for place in side.lagging})
    found = []
    for seed, (name, part) in enumerate(PARTS.items()):
        own, rng = [side.of_part(part) for side in sides], np.random.default_rng(seed)
        matched = _matched(own, entries, frame, problem.sizes, KEPT[name], rng, budget)
        found += [Candidate(z, Shot((), ""), "matching", part=name) for z in matched]
    return found


def _logarithmic(measured: Any) -> list[tuple[str, bool]]:
    return list(zip(measured.outputs, np.asarray(measured.logarithmic, dtype=bool).tolist(), strict=True))


def _size(problem: Problem, output: str) -> float:
    """The root mean square of an output: that of logarithms is relative to it."""
    series = [one.outputs[output].observed.values for one in problem.experiments if output in one.outputs]
    return float(np.sqrt(np.mean(np.concatenate(series) ** 2))) or 1.0


def _tried(frame: Coordinates, entries: list[int], rng: np.random.Generator) -> np.ndarray:
    """The delays that are tried, one row for each choice of all of them; in order if there is one only."""
    first, last = (frame.back(end)[entries] for end in frame.box)
    if len(entries) == 1:
        ratios, even = np.geomspace(first, last, TRIED), np.linspace(first, last, TRIED)
        return np.sort(np.r_[ratios, even[1:-1]], axis=0)
    count = 2 * TRIED * len(entries) if entries else 1
    return np.asarray(np.exp(rng.uniform(np.log(first), np.log(last), (count, len(entries)))))


def _matched(
    sides: list[_Side],
    entries: list[int],
    frame: Coordinates,
    sizes: np.ndarray,
    kept: int,
    rng: np.random.Generator,
    budget: Budget,
) -> list[np.ndarray]:
    """All unknowns, for those delays first that leave the least squares; of neighbours the better one alone.

    What is best for one delay is a start for the next as well.
    """
    low, high = sampled_box(frame, sizes, DECADES, whole=False)
    found: list[tuple[list[Equation], np.ndarray, float]] = []
    for row in _tried(frame, entries, rng):
        if budget.over:
            break
        starts = np.array([frame.back(theta) for theta in low + rng.random((DRAWN, len(sizes))) * (high - low)])
        if found:
            starts[0] = frame.back(found[-1][1])
        starts[:, entries] = row
        equations = [side.at(starts[0]) for side in sides]
        with np.errstate(all="ignore"):
            begins = screened(equations, frame, np.array([frame.to(frame.inside(z)) for z in starts]), STARTS)
            ends = [solved(equations, frame, theta, budget, BRIEFLY) for theta in begins]
        found.append((equations, *min(ends, key=lambda end: end[1] if np.isfinite(end[1]) else np.inf)))
    costs = np.array([cost if np.isfinite(cost) else np.inf for _, _, cost in found])
    least = [i for i, cost in enumerate(costs) if cost < np.inf and cost <= costs[max(i - 1, 0) : i + 2].min()]
    with np.errstate(all="ignore"):
        best = [solved(found[i][0], frame, found[i][1], budget) for i in sorted(least, key=costs.__getitem__)[:kept]]
    settled = [frame.back(theta) for theta, squares in sorted(best, key=lambda end: end[1]) if np.isfinite(squares)]
    return [_begun(z, sides) for z in settled]


def _begun(z: np.ndarray, sides: list[_Side]) -> np.ndarray:
    """z with initial states on the side of zero where they were measured: matched ones only make up for a drift."""
    for side in sides:
        place, seen = side.equation.initial, float(side.equation.values[side.state][0])
        if isinstance(place, int) and z[place] * seen < 0:
            z[place] = seen
    return z


@dataclass(frozen=True, eq=False)
class _Side:
    """The equation of one state in one experiment, with what it looks back at."""

    state: str
    equation: Equation
    looked: Mapping[str, Delay]  # delayed values by the names that stand for them
    courses: Mapping[str, Any]  # of states and samples, as functions of time
    before: Mapping[str, Expression]  # histories
    start: float
    lagging: Mapping[int, str]  # entries of z that delays depend on

    @classmethod
    def of(
        cls,
        problem: Problem,
        number: int,
        state: str,
        smoothed: Mapping[tuple[str, str], Smoothed],
        noise: Mapping[str, float],
    ) -> _Side:
        condition, places = problem.conditions[number], problem.layout.places[number]
        model, experiment = condition.model, condition.experiment
        outputs = {value.name: name for name in experiment.outputs if isinstance(value := model.outputs[name], Symbol)}
        functions = {name: value for name, value in model.inputs.items() if value is not None}
        rate = substituted(model.states[state], functions)
        taken = {*model.states, *model.outputs, *model.inputs, *model.parameters, *model.fixed}
        looked = {one: fresh(f"past_{one.argument}", taken) for one in dict.fromkeys(delays(rate))}
        rate = _given(rate, looked)
        lags = [name for one in looked for name in names(one.by) if name in places]
        first = experiment.start
        times = np.unique(np.concatenate([series.finite.times for series in experiment.outputs.values()]))
        grid = np.unique(np.concatenate([times, np.linspace(first, times[-1], GRID)]))
        courses = {one: _held(smoothed[experiment.name, outputs[one]], times[0]) for one in model.states}
        courses |= condition.driven.sampled
        known = {name: np.asarray(value) for name, value in model.fixed.items()}
        values = {TIME: grid, **known, **{name: course(grid) for name, course in courses.items()}}
        series = experiment.outputs[outputs[state]].observed.finite
        free = [name for name in dict.fromkeys(names(rate)) if name in places and name not in courses]
        free = [name for name in free if name not in lags]
        told = constant(model.initial[state]) if state in model.initial else None
        begun = float(courses[state](first)) if told is None else float(told)
        equation = Equation(
            rate=rate,
            slopes={name: derivative(rate, name) for name in free},
            values=values,
            grid=grid,
            at=np.searchsorted(grid, series.times),
            measured=series.values,
            level=noise[outputs[state]],
            places={name: places[name] for name in (*free, *lags)},
            initial=places.get(state, begun),
        )
        by_name = {name: one for one, name in looked.items()}
        return cls(state, equation, by_name, courses, model.history, first, {places[name]: name for name in lags})

    def of_part(self, part: slice) -> _Side:
        equation = self.equation
        return replace(self, equation=replace(equation, at=equation.at[part], measured=equation.measured[part]))

    def at(self, z: np.ndarray) -> Equation:
        """The equation with delays as z has them."""
        values, grid = self.equation.at_values(z), self.equation.grid
        past = {}
        for name, delay in self.looked.items():
            lag, own = float(evaluate(delay.by, values, np)), str(delay.argument)
            times = grid - lag
            course = np.asarray(self.courses[own](np.maximum(times, self.start)), dtype=float)
            if own in self.before and not set(names(self.before[own])) - {TIME, *values}:
                early = np.asarray(evaluate(self.before[own], {**values, TIME: times}, np), dtype=float)
                course = np.where(times < self.start, early, course)
            past[name] = course
        return replace(self.equation, values={**self.equation.values, **past})


def _held(smoothed: Smoothed, first: float) -> Any:
    """A smoothed course, which before the first measurement is as it is there."""
    return lambda times: smoothed(np.maximum(times, first))


def _given(expression: Any, new: Mapping[Delay, str]) -> Any:
    """The expression with names in place of delayed values."""
    if isinstance(expression, Delay):
        return Symbol(new[expression])
    parts = children(expression)
    return rebuilt(expression, tuple(_given(part, new) for part in parts)) if parts else expression
