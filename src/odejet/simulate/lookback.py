"""Lookback: a model that looks back in time, as equations with given series in place of its delayed values.

Set up once: the tape of the equations, and another for all that follows from parameters alone, initial values, delays
and histories.  For one solution these give the pieces of its history and the values that are looked up on the way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.errors import ModelError
from odejet.jets.inputs import Pieces
from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.past import INPUT, STATE, Past, Sources
from odejet.jets.registers import expand_points
from odejet.model.expressions import TIME, ZERO, Delay, Expression, Symbol, children, delays, fresh, names, substituted
from odejet.model.lowering import Lowering
from odejet.model.modes import Equations, equations
from odejet.model.tape import Tape
from odejet.model.wellformed import rebuilt
from odejet.simulate.breakpoints import Breakpoints, joined, knots_of

if TYPE_CHECKING:
    from odejet.model import Model

_ROOM = 128  # pieces of the past to begin with
_EARLIEST = 1e-9  # of a delay, how much farther back a history is known than anything looks
_MOST_PIECES = 10_000  # of a history


class Lookback:
    """The delayed values of a model whose delays are of single states and sampled inputs."""

    def __init__(self, model: Model, pieces: Pieces) -> None:
        _check(model)
        plain, self.held = equations(model)
        functions = {name: value for name, value in model.inputs.items() if value is not None}
        tables = [
            {name: substituted(value, functions) for name, value in table.items()}
            for table in (plain.states, plain.outputs)
        ]
        found = dict.fromkeys(one for table in tables for value in table.values() for one in delays(value))
        taken = {*model.states, *model.outputs, *model.inputs, *model.parameters, *model.fixed}
        self.values = {one: fresh(f"past_{one.argument}", taken) for one in found}
        self.direct = [name for name, value in model.inputs.items() if value is None]
        given = dict.fromkeys([*self.values.values(), *self.direct])
        states, outputs = ({name: _given(value, self.values) for name, value in table.items()} for table in tables)
        self.model, self.pieces = model, _extended(pieces)
        self.tape: Tape = Lowering().tape(
            replace(plain, states=states, outputs=outputs, inputs=given), free_inputs=True
        )
        self.looked = [name for name in model.states if any(one.argument == Symbol(name) for one in found)]
        self.first = _first_tape(model, plain, [one.by for one in found])
        self.timed = any(TIME in names(value) for value in model.history.values())

    def begin(self, parameters: np.ndarray, states: np.ndarray) -> tuple[np.ndarray, Sources]:
        """Return the rows of all states at the start, and the sources of delayed values with their delays."""
        model, values = self.model, self.at(parameters, np.zeros(1), 0)[0, :, 0]
        rows = states.copy()
        for i, name in enumerate(model.initial):
            rows[list(model.states).index(name)] = values[i]
        lags = np.zeros((len(self.values) + len(self.direct), states.shape[1]))
        lags[: len(self.values)] = values[len(model.initial) : len(model.initial) + len(self.values)]
        inputs = [name for name, value in model.inputs.items() if value is None]
        kinds, places = [], []
        for name in [*(str(one.argument) for one in self.values), *self.direct]:
            kinds.append(STATE if name in self.looked else INPUT)
            places.append((self.looked if name in self.looked else inputs).index(name))
        return rows, Sources(
            np.array(kinds, dtype=np.int64),
            np.array(places, dtype=np.int64),
            lags,
            self.pieces.knots,
            self.pieces.coefficients,
        )

    def at(self, parameters: np.ndarray, times: np.ndarray, order: int) -> np.ndarray:
        """Return series of initial values, delays and histories at times: (times, quantities, orders, lanes)."""
        lanes, tape, many = parameters.shape[1], self.first, len(times)
        layout = lay_out(tape, lanes, order + 2, True)
        _, outputs = expand_points(
            layout,
            tape.constant_values,
            np.broadcast_to(parameters, (many, *parameters.shape)),
            np.zeros((many, 1, lanes)),
            times,
            np.zeros((many, 0, order + 1)),
            np.zeros((many, 0)),
            order,
            TABLES,
            0,
        )
        return np.asarray(outputs)

    def past(
        self, parameters: np.ndarray, rows: np.ndarray, lags: np.ndarray, start: float, order: int, room: int
    ) -> Past:
        """Return the past of a solution at its start: the pieces of its history."""
        own = [list(self.model.states).index(name) for name in self.looked]
        lanes, count = rows.shape[1], len(self.model.initial) + len(self.values)
        known = [self.looked.index(name) for name in self.model.history]
        spans, pieces = [], []
        centre = start - (1 + _EARLIEST) * float(lags[:, 0].max(initial=0.0)) if self.timed else start
        while True:
            series = np.zeros((len(own), order + 1, lanes))
            series[:, 0] = rows[own]
            reach = np.inf
            if known:
                series[known] = self.at(parameters, np.array([centre]), order)[0, count:]
                reach = _reach(series[known, :, 0])
            unit = min(reach, max(start - centre, 1.0))
            series *= unit ** np.arange(order + 1)[:, None]
            spans.append((centre, centre - reach, centre + reach, unit))
            pieces.append(series)
            if not self.timed or centre + reach >= start or len(pieces) > _MOST_PIECES or not reach > 0:
                break
            centre += reach
        made = max(room, _ROOM) + len(spans)
        past = Past(
            np.zeros((made, 4)),
            np.zeros((made, len(own), order + 1, lanes)),
            np.array(own, dtype=np.int64),
            np.zeros(2, dtype=np.int64),
            np.array([len(spans), 1, 0]),
        )
        past.spans[: len(spans)], past.coefficients[: len(spans)] = spans, pieces
        past.firsts[1] = len(spans)
        return past

    def knots(self, sources: Sources) -> Breakpoints:
        """Return the breakpoints that sampled inputs lead to."""
        inputs = np.flatnonzero(sources.kinds == INPUT)
        lanes = sources.lags.shape[1]
        none = Breakpoints(np.zeros(0), np.zeros((0, lanes)), np.zeros(0, int), np.zeros(0, int))
        return joined([none, *(knots_of(self.pieces, int(sources.rows[q]), sources.lags[q]) for q in inputs)])


def grown(past: Past) -> Past:
    """Return a past with twice the room."""
    spans, coefficients = (np.zeros((2 * len(part), *part.shape[1:])) for part in past[:2])
    spans[: len(past.spans)], coefficients[: len(past.coefficients)] = past.spans, past.coefficients
    return past._replace(spans=spans, coefficients=coefficients)


def _given(expression: Any, new: dict[Delay, str]) -> Any:
    """The expression with names in place of delayed values."""
    if isinstance(expression, Delay):
        return Symbol(new[expression])
    parts = children(expression)
    return rebuilt(expression, tuple(_given(part, new) for part in parts)) if parts else expression


def _first_tape(model: Model, plain: Equations, lags: list[Expression]) -> Tape:
    """The tape of initial values, delays and histories, as outputs of a model in which nothing moves."""
    told = [*model.initial.values(), *lags, *model.history.values()]
    known = {*plain.parameters, *plain.fixed, TIME}
    if changing := [name for value in told for name in names(value) if name not in known]:
        raise ModelError(
            f"{model.name}: an event sets '{changing[0]}', which a delay, a history or an initial value holds"
        )
    outputs = {f"out{i}": value for i, value in enumerate(told)}
    idle = {fresh("idle", known): ZERO}
    return Lowering().tape(replace(plain, states=idle, outputs=outputs, inputs={}, initial={}), free_inputs=False)


def _extended(pieces: Pieces) -> Pieces:
    """Inputs that stand at their first values before they were sampled."""
    if not len(pieces.coefficients):
        return Pieces(np.zeros(0), np.zeros((0, 0, 4)))
    early = np.zeros((len(pieces.coefficients), 1, pieces.coefficients.shape[2]))
    early[:, 0, 0] = pieces.coefficients[:, 0, 0]
    before = 2 * pieces.knots[0] - pieces.knots[-1]
    return Pieces(np.r_[before, pieces.knots], np.concatenate([early, pieces.coefficients], axis=1), pieces.end)


def _reach(series: np.ndarray) -> float:
    """How far Taylor series of some quantities are good to rounding, by their last terms."""
    order, reach = series.shape[1] - 1, np.inf
    for row in series:
        size = np.abs(row[:4]).max()
        for k in (order - 1, order):
            if abs(row[k]) > 0 and size > 0:
                reach = min(reach, (np.finfo(float).eps * size / abs(row[k])) ** (1 / k))
    return float(reach)


def _check(model: Model) -> None:
    """Refuse what is not solved together with delays."""
    where = f"{model.name}: "
    if model.steady:
        raise ModelError(
            f'{where}a model with delays of states cannot start at rest; give initial values, not "steady"'
        )
    if not model.replace(events=()).is_smooth:
        raise ModelError(
            f"{where}switches (piecewise, min, max, ...) are not solved together with delays of states or samples"
        )
    if model.regimens:
        raise ModelError(f"{where}doses at steady state are not solved together with delays of states or samples")
