"""Delayed problem: one solution of a model that looks back in time, along times that follow its start.

The method of steps: from stop to stop the delayed values are known, since their times lie in the past.  Events at known
times happen on the way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from odejet.errors import ModelError
from odejet.jets import stepper
from odejet.jets.delayed import SEEN, steps_along
from odejet.jets.past import Past, Sources, Stops
from odejet.model import Event, Model
from odejet.model.dual import Dual, Functions, selected
from odejet.model.expressions import TIME, constant, evaluate
from odejet.model.tape import Tape
from odejet.simulate.breakpoints import stops
from odejet.simulate.initial_value import Allowance, InitialValueProblem, Leg
from odejet.simulate.lookback import Lookback, grown
from odejet.simulate.trajectory import Outcome, Trajectory, finite_part

_ORDER, _LEAST = 20, 8  # of series at full and at loosest tolerance
_ORDERS_PER_DIGIT = 1.3  # of the tolerance: about the order at which a digit costs least (Jorba and Zou 2005)
_TIGHT = 1e-16
_SOON = 1e-6  # of the way to the next stop: so far a solution is followed to see what it is at its start


class DelayedProblem(InitialValueProblem):
    """One initial-value problem of a model that looks back in time."""

    @property
    def lookback(self) -> Lookback:
        assert self.flow.lookback is not None
        return self.flow.lookback

    @property
    def tape(self) -> Tape:
        return self.lookback.tape

    def solve(self, start: float, times: np.ndarray, tolerance: float, allowance: Allowance) -> Trajectory:
        """Along times that do not come before the start."""
        rows = self.states.copy()
        trajectory = np.empty((len(times), *rows.shape))
        outputs = np.empty((len(times), len(self.flow.model.outputs), self.lanes))
        leg = Leg(start, rows, np.abs(rows[:, 0]), trajectory, outputs)
        outcome = Outcome.BACKWARD
        if times[-1] >= start:
            _, self.slices = self.costs(tolerance)
            outcome = self.follow_back(leg, times, tolerance, allowance)
        found = Trajectory(
            np.arange(leg.done),
            self.frame.spread(trajectory[: leg.done, : self.own]),
            self.frame.spread(outputs[: leg.done]),
            outcome,
            leg.time,
            leg.steps,
            "taylor, by the method of steps",
            0,
            {name: self.frame.spread(leg.states[self.own + i]) for i, name in enumerate(self.flow.set_by_events)},
        )
        finite = np.isfinite(found.states).all() and np.isfinite(found.outputs).all()
        return found if finite else finite_part(found, times[: leg.done])

    def follow_back(self, leg: Leg, times: np.ndarray, tolerance: float, allowance: Allowance) -> Outcome:
        """Follow the solution from stop to stop to the last of the times, or as far as it goes."""
        first, sources = self.lookback.begin(self.parameters, leg.states)
        if not self.free_states:
            leg.states[:] = first
        lags = sources.lags[: len(self.lookback.values), 0]
        if not (np.isfinite(sources.lags).all() and (lags >= 0).all()):
            return Outcome.AHEAD
        if (lags[sources.kinds[: len(lags)] == 0] <= 0).any():
            return Outcome.VANISHING
        order = int(np.clip(math.ceil(-_ORDERS_PER_DIGIT * math.log10(max(tolerance, _TIGHT))), _LEAST, _ORDER))
        calendar = Calendar(self.flow.model, leg.time, float(times[-1]))
        knots, pauses = self.lookback.knots(sources), calendar.pauses
        halts = stops(leg.time, float(times[-1]), sources, knots, *pauses, order + 1)
        past = self.lookback.past(self.parameters, leg.states, sources.lags, leg.time, order, len(halts.times))
        past = past._replace(firsts=np.r_[past.firsts, np.zeros(len(halts.times) + 2, dtype=np.int64)])
        leg.explicit_steps = allowance.of(self.costs(tolerance)[0], 2 * len(halts.times))[0]
        if leg.time in calendar.events:
            self.happen_first(leg, times, calendar, (past, sources, halts), (tolerance, order))
        return self.go_on(leg, times, calendar, (past, sources, halts), (tolerance, order))

    def go_on(
        self,
        leg: Leg,
        times: np.ndarray,
        calendar: Calendar,
        back: tuple[Past, Sources, Stops],
        accuracy: tuple[float, int],
    ) -> Outcome:
        past, sources, halts = back
        while leg.done < len(times):
            if leg.steps > 0 and self.is_late:
                return Outcome.OUT_OF_TIME
            limits = (*accuracy, int(min(leg.explicit_steps, self.slices[0])))
            rows, ahead = (self.parameters, leg.states), times[leg.done :]
            status, done, time, taken = steps_along(
                self.tape, rows, (past, sources, halts), leg.time, ahead, limits, leg.ahead
            )
            leg.add(done, time)
            leg.steps, leg.explicit_steps = leg.steps + taken, leg.explicit_steps - taken
            if status == stepper.FULL:
                past = grown(past)
            elif status == stepper.PAUSED:
                calendar.happen(leg, self)
                pass_stop(past, halts)
            elif status == stepper.EXHAUSTED and leg.explicit_steps >= 1:
                continue
            elif status != stepper.REACHED:
                return self.outcome(status, leg)
        return Outcome.COMPLETED

    def happen_first(
        self,
        leg: Leg,
        times: np.ndarray,
        calendar: Calendar,
        back: tuple[Past, Sources, Stops],
        accuracy: tuple[float, int],
    ) -> None:
        """Let happen what does so at the start, after what is asked for there."""
        count = int(np.searchsorted(times, leg.time, side="right"))
        if count and not any(event.seen for event in calendar.events[leg.time]):
            past, sources, halts = back
            spare = past._replace(
                spans=past.spans.copy(), coefficients=past.coefficients.copy(), position=past.position.copy()
            )
            stop = halts.times[0] if len(halts.times) else max(times[-1], leg.time + 1.0)
            asked = np.r_[times[:count], leg.time + _SOON * (stop - leg.time)]
            found = np.empty((count + 1, *leg.states.shape)), np.empty((count + 1, *leg.outputs.shape[1:]))
            rows = self.parameters, leg.states.copy()
            steps_along(self.tape, rows, (spare, sources, halts), leg.time, asked, (*accuracy, 1000), found)
            leg.trajectory[:count], leg.outputs[:count] = found[0][:count], found[1][:count]
            leg.add(count, leg.time)
        calendar.happen(leg, self)


def pass_stop(past: Past, halts: Stops) -> None:
    """Go on from a stop at which something has happened."""
    if halts.boundaries[past.position[2]]:
        past.position[1] += 1
        past.firsts[past.position[1]] = past.position[0]
    past.position[2] += 1


class Calendar:
    """The events of a model at known times, between two."""

    def __init__(self, model: Model, start: float, end: float) -> None:
        self.model = model
        self.events: dict[float, list[Event]] = {}
        for event in model.events:
            for time in _times(event, start, end, model.name):
                self.events.setdefault(time, []).append(event)
        for at, events in self.events.items():
            if len({event.seen for event in events}) > 1:
                raise ModelError(
                    f"{model.name}: some events at t = {at:g} are seen there and others not, which is not solved "
                    "together with delays; move one of them"
                )

    @property
    def pauses(self) -> tuple[np.ndarray, np.ndarray]:
        """Their times, and whether they come before what is asked for there."""
        times = sorted(self.events)
        kinds = [SEEN if self.events[time][0].seen else 1 for time in times]
        return np.array(times, dtype=float), np.array(kinds, dtype=int)

    def happen(self, leg: Leg, problem: InitialValueProblem) -> None:
        """Set states, and parameters that events hold, with their tangents."""
        model = self.model
        names = (*model.states, *problem.flow.set_by_events)
        free = [name for name in model.parameters if name not in problem.flow.set_by_events]
        for event in self.events[leg.time]:
            values: dict[str, Dual] = {name: _dual(row) for name, row in zip(names, leg.states, strict=True)}
            values |= {name: _dual(row) for name, row in zip(free, problem.parameters, strict=True)}
            nothing = np.zeros(leg.states.shape[1] - 1)
            values |= {name: Dual(float(value), nothing) for name, value in model.fixed.items() if name not in values}
            values[TIME] = Dual(leg.time, nothing)
            self._set(event, values, names, leg)

    def _set(self, event: Event, values: Mapping[str, Dual], names: Sequence[str], leg: Leg) -> None:
        found = {name: evaluate(value, values, Functions, float, selected) for name, value in event.set.items()}
        for name, value in found.items():
            row = leg.states[list(names).index(name)]
            row[0], row[1:] = (value.value, value.gradient) if isinstance(value, Dual) else (value, 0.0)


def _dual(row: np.ndarray) -> Dual:
    return Dual(float(row[0]), row[1:].copy())


def _times(event: Event, start: float, end: float, where: str) -> list[float]:
    """The times of an event, which are numbers."""
    told = [*event.at, *(() if event.every is None else (event.every,))]
    exact = [constant(time) for time in told]
    if event.when is not None or any(time is None for time in exact):
        raise ModelError(
            f"{where}: events that wait for a condition or happen at unknown times are not solved together with "
            "delays of states or samples; give their times as numbers"
        )
    numbers = [float(time) for time in exact if time is not None]
    if event.every is not None:
        first, every = numbers
        count = event.count or int(max(end - first, 0.0) / every) + 1
        numbers = [first + i * every for i in range(count)]
    return [time for time in numbers if start <= time < end]
