"""Registers: the memory of a tape at many points, filled and read from Python, for any number type.

What a trajectory needs thousands of times is done by compiled steps; jets at given points are asked for more rarely,
and here only the interpreter itself is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from odejet.jets.kernel import Layout
from odejet.jets.shared import Interpreter

_CHUNK = 1 << 16  # numbers that are held at once, few enough for the cache


class _Index(NamedTuple):
    """Where the rows of some registers are: at order zero, and once more for tangents of what is static."""

    rows: np.ndarray
    static: Any  # which of them
    tangents: np.ndarray


class Registers:
    """Rows of registers, one per point, laid out for the interpreter."""

    def __init__(self, layout: Layout, points: int, dtype: Any, tables: Sequence[np.ndarray], modulus: Any = 0) -> None:
        self.layout, self.tables = layout, tables
        self.interpreter = Interpreter(layout.terms, tables, modulus)
        self.memory = np.zeros((points, layout.size), dtype=dtype)
        self.indices: dict[str, _Index] = {}

    def copy(self) -> Registers:
        """Return registers of the same layout with memory of their own."""
        made = copy(self)
        made.memory = self.memory.copy()
        return made

    def index(self, kind: str) -> _Index:
        """Where the registers of a kind are, as a field of the layout names it; found once."""
        if kind not in self.indices:
            places, lanes = np.atleast_1d(getattr(self.layout, kind)), np.arange(self.layout.lanes)
            static = places < self.layout.dynamic
            tangents = places[static, None] + self.layout.lanes + lanes[1:]
            self.indices[kind] = _Index(places[:, None] + lanes, slice(None) if static.all() else static, tangents)
        return self.indices[kind]

    def write(self, kind: str, rows: np.ndarray) -> None:
        """Value and tangents at order zero; of what is static the tangents alone, too, as kernels expect."""
        index = self.index(kind)
        self.memory[:, index.rows] = rows
        if len(index.tangents):
            self.memory[:, index.tangents] = rows[..., index.static, 1:]

    def series(self, places: np.ndarray, orders: int) -> np.ndarray:
        """The first orders of registers, of shape (points, registers, orders, lanes)."""
        lanes = self.layout.lanes
        numbers = self.memory[:, places[:, None] + np.arange(orders * lanes)]
        return numbers.reshape(len(self.memory), len(places), orders, lanes)

    def run(self, code: np.ndarray, orders: int) -> None:
        self.interpreter.run(self.memory, code, orders, self.layout.dynamic, self.layout.lanes)

    def prepare(self, constants: np.ndarray, parameters: np.ndarray, states: np.ndarray) -> None:
        """Order zero of everything static, and of the states."""
        layout = self.layout
        self.memory[:, layout.constants] = constants
        self.write("parameters", parameters)
        known = layout.initial >= 0
        # Known initial states come from static instructions, and a static state may feed others: hence two rounds.
        for _ in range(2):
            self.write("states", states)
            self.run(layout.code[: layout.split[0]], 1)
            if known.any():
                states = states.copy()
                states[:, known] = self.series(layout.initial[known], 1)[:, :, 0]

    def expand(self, times: np.ndarray, orders: int) -> None:
        """The series of everything that moves."""
        self.memory[:, self.layout.time] = times
        if self.layout.orders > 1:
            self.memory[:, self.layout.time + self.layout.lanes] = self.tables[1][1]
        self.run(self.layout.code[self.layout.split[0] :], orders)


def expand_points(layout, constants, parameters, states, times, inputs, drawn, order, tables, modulus):
    """Series of all states and outputs to `order` at many points.

    Arrays lead with the point: rows of `parameters` and `states`, times, coefficients of free `inputs`, and the values
    `drawn` for functions where the number type cannot compute them.  The layout must hold order + 2 orders.
    """
    points, moving = len(states), layout.states >= layout.dynamic
    state_series = np.zeros((points, len(layout.states), order + 1, layout.lanes), dtype=states.dtype)
    output_series = np.zeros((points, len(layout.outputs), order + 1, layout.lanes), dtype=states.dtype)
    for first in range(0, points, chunk := max(1, _CHUNK // layout.size)):
        part = slice(first, first + chunk)
        registers = Registers(layout, len(states[part]), states.dtype, tables, modulus)
        registers.memory[:, layout.quadratures[: drawn.shape[1]]] = drawn[part]
        places = layout.inputs[:, None] + np.arange(order + 1) * layout.lanes
        registers.memory[:, places] = inputs[part]
        # With drawn values a second pass over order zero finds the slopes of all functions in place.
        for orders in (1, order + 1) if drawn.shape[1] else (order + 1,):
            registers.prepare(constants, parameters[part], states[part])
            registers.expand(times[part], orders)
        state_series[part, moving] = registers.series(layout.states[moving], order + 1)
        state_series[part, ~moving, 0] = registers.series(layout.states[~moving], 1)[:, :, 0]
        output_series[part] = registers.series(layout.outputs, order + 1)
    return state_series, output_series
