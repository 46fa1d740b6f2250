"""Periodic: the states to which doses lead that have been repeated for ever, with their exact derivatives.

One period takes the states x just before a dose to P(x) just before the next.  The periodic solution is the fixed point
of that map, found by Newton's method with the derivatives that the flow has anyway,

    x <- x + (I - dP/dx)^-1 (P(x) - x),

which for a linear model is one step.  Where a step does not come nearer, some periods are followed instead.  By the
implicit function theorem the derivatives by parameters are (I - dP/dx)^-1 dP/dp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from odejet.jets.inputs import Sampled
from odejet.model import Model
from odejet.model.expressions import TIME, Expression, evaluate, names, number, substituted
from odejet.model.regimen import Regimen
from odejet.simulate.flow import Flow, Outcome
from odejet.simulate.rest import Rested

CLOSE = 1e-13
"""The difference over a period, relative to the largest that each state has been, at which it is the same."""

ROUNDING = 1e-9
"""A difference so small that grows is rounding, and a larger one is none."""

PERIODS = 400
"""Periods that are followed in all; the slowest solutions that Newton's method does not settle need hundreds."""

FOLLOWED = 8
"""Periods that are followed after a step of Newton's method that was of no use."""


class Periodic:
    """The periodic solution of a regimen as a function of all parameters of a model.

    The time and the inputs are held as they are when it ends.  States that nothing depends on, not even themselves,
    only ever grow: they are counted from zero.
    """

    def __init__(self, model: Model, samples: Mapping[str, Sampled], regimen: Regimen) -> None:
        self.regimen, self.count = regimen, len(model.parameters)
        self.flow = Flow(_one_period(model, samples, regimen))
        period = self.flow.model
        self.own = np.array([model.parameters.index(name) for name in period.parameters], dtype=int)
        read = {name for rate in period.states.values() for name in names(rate)}
        read |= {name for event in period.events for part in event.expressions() for name in names(part)}
        self.core = np.array([i for i, name in enumerate(period.states) if name in read], dtype=int)

    def known(self, parameters: np.ndarray, used: int, options: Mapping[str, Any]) -> Rested:
        """The states in rows of value and derivatives, as many as are `used`; those by parameters come last."""
        own = parameters[self.own]
        n = len(self.flow.model.states)
        rows = np.zeros((n, used))
        if not self._fits(own):
            return Rested(rows, Outcome.RESTLESS)
        found = self._settled(own, n, options)
        if isinstance(found, Outcome):
            return Rested(rows, found)
        x, slopes, by_parameters = found
        rows[:, 0] = x
        if used > 1:
            try:
                moved = np.linalg.solve(np.eye(len(self.core)) - slopes, by_parameters)
            except np.linalg.LinAlgError:
                return Rested(rows, Outcome.RESTLESS)
            rows[self.core[:, None], used - self.count + self.own] = moved
        return Rested(rows, Outcome.COMPLETED)

    def _fits(self, own: np.ndarray) -> bool:
        """Whether all that happens in a period happens within it."""
        model = self.flow.model
        values = {name: float(value) for name, value in model.fixed.items()}
        values |= dict(zip(model.parameters, own.tolist(), strict=True))
        times = [float(evaluate(time, values, math)) for event in model.events for time in event.at]
        return all(0 <= time <= self.regimen.period * (1 + 1e-12) for time in times)

    def _settled(self, own: np.ndarray, n: int, options: Mapping[str, Any]) -> Any:
        """The fixed point with the derivatives of a period there, or why there is none."""
        x, sizes, best, followed = np.zeros(n), np.zeros(n), math.inf, FOLLOWED
        core, before = self.core, np.zeros(n)
        for _ in range(PERIODS):
            run = self.flow.run(own, x, [self.regimen.period], start=0.0, free_states=True, **options)
            if run.outcome is not Outcome.COMPLETED:
                if not followed or not before.any():
                    return run.outcome
                x, followed, best = before, 0, math.inf  # a step too far: on from where it began
                continue
            after = run.states[-1]
            sizes = np.maximum(sizes, np.abs(after[:, 0]))
            change = (after[:, 0] - x)[core]
            slopes = after[np.ix_(core, 1 + core)]
            error = float(np.max(np.abs(change) / np.maximum(sizes[core], 1e-300), initial=0.0))
            if error <= CLOSE or (error < ROUNDING and error >= best):
                return self._stable(x, slopes, after[core, 1 + n :])
            if followed < FOLLOWED or not error < best:
                # The last step was of no use, or is not yet known to be: one period more.
                followed, best = (followed + 1, error) if followed < FOLLOWED else (0, math.inf)
                x = np.where(np.isin(np.arange(n), core), after[:, 0], 0.0)
                continue
            best, before = error, x
            try:
                step = np.linalg.solve(np.eye(len(core)) - slopes, change)
            except np.linalg.LinAlgError:
                return Outcome.RESTLESS
            x = x.copy()
            x[core] += step
        return Outcome.RESTLESS

    def _stable(self, x: np.ndarray, slopes: np.ndarray, by_parameters: np.ndarray) -> Any:
        """The fixed point, if solutions come to it."""
        if np.abs(np.linalg.eigvals(slopes)).max(initial=0.0) >= 1:
            return Outcome.UNSTABLE
        return x, slopes, by_parameters


def _one_period(model: Model, samples: Mapping[str, Sampled], regimen: Regimen) -> Model:
    """The equations with the time and the inputs held, and with the doses of a period that begins at zero."""
    moment: dict[str, Expression] = {TIME: number(regimen.time)}
    known = dict(moment)
    for name, expression in model.inputs.items():
        value = number(float(samples[name](regimen.time))) if expression is None else substituted(expression, moment)
        known[name] = value
    states = {name: substituted(rate, known) for name, rate in model.states.items()}
    waiting = [event.substituted(known) for event in model.events if event.when is not None]
    events = [*(event.substituted(known) for event in regimen.events), *waiting]
    parts = (*states.values(), *(part for event in events for part in event.expressions()))
    used = {name for part in parts for name in names(part)}
    fixed = {name: value for name, value in model.fixed.items() if name in used}
    return Model(states, fixed=fixed, events=events, name=model.name)
