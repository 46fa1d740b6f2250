"""System: the equations that are solved, `Phi(z) = d`, at one shooting point or at two that share the parameters.

Phi maps unknowns z, the states at the shooting points and the parameters, to chosen derivatives of the outputs (the
rows), and has as many rows as unknowns.  It is the paper's polynomial system F(z, d) = 0 solved for its state
derivatives.  Inputs, and the time where equations contain it, enter through their jets, which are data like d.

Two points make one system of a *joined* model: every state, output and input twice, the parameters once.

Rows and input jets are Taylor coefficients, y^(k)/k!, throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np

from odejet.jets import numeric
from odejet.model import Model, tape
from odejet.model.expressions import TIME, Symbol, fresh, names, substituted
from odejet.model.transform import copies, joined, rewritten

Row = tuple[int, int]
"""An equation: (output of the joined model, order of its derivative)."""
PRODUCT = 4.0
"""Operations of one product of complex numbers in a Taylor series."""
DECOMPOSITION = 200.0
"""Operations of the singular values of a complex matrix, by the square of its size: up to some hundred unknowns the
time grows no faster."""
NUMBER = 16.0
"""Bytes of a complex number."""


@dataclass(frozen=True)
class Joined:
    """A model as one shooting point or two see it: all states free, everything known in time an input."""

    model: Model
    points: int
    together: Model
    timed: bool
    """Whether the time itself is the last input of every point."""

    @property
    def inputs(self) -> int:
        """Inputs of one point."""
        return len(self.model.inputs) + self.timed

    def split(self, row: Row) -> tuple[int, Row]:
        """The shooting point of a row, and the row as the model itself numbers it."""
        point, output = divmod(row[0], len(self.model.outputs))
        return point, (output, row[1])


def join(model: Model, points: int = 1) -> Joined:
    """The joined model of one or two points."""
    timed = any(TIME in names(e) for table in (model.states, model.outputs) for e in table.values())
    taken = {*model.states, *model.outputs, *model.inputs, *model.parameters, *model.fixed}
    # What an input does in time is no concern of the algebra, which is given its jets; so is the time itself.
    clock = fresh("time__at_2", taken) if timed else TIME
    inputs = dict.fromkeys([*model.inputs, *([clock] if timed else [])], Symbol(TIME))
    moved = {TIME: Symbol(clock)}
    tables: dict[str, Any] = {
        table: {name: substituted(value, moved) for name, value in getattr(model, table).items()}
        for table in ("states", "outputs")
    }
    first = rewritten(model, **tables, inputs=inputs, initial={}, before={}, events=())
    others = copies(first, (f"_at_{point + 1}" for point in range(1, points)), taken)
    together = joined([first, *(other for other, _ in others)], model.parameters)
    return Joined(model, points, together, timed)


@dataclass(frozen=True)
class Targets:
    """Data to solve for: rows (targets, rows), jets of inputs (targets, inputs, orders), values of what is fixed."""

    data: np.ndarray
    inputs: np.ndarray
    fixed: np.ndarray

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, chosen: np.ndarray | slice | Sequence[int]) -> Targets:
        return Targets(self.data[chosen], self.inputs[chosen], self.fixed)

    def repeated(self, times: int) -> Targets:
        """Every target so many times in a row."""
        return Targets(np.repeat(self.data, times, 0), np.repeat(self.inputs, times, 0), self.fixed)


@dataclass(frozen=True)
class SquareSystem:
    """As many rows as unknowns; `fixed` names unknowns that the outputs cannot tell, to be held at given values."""

    joined: Joined
    rows: tuple[Row, ...]
    fixed: tuple[str, ...] = ()
    roots: int | None = None
    """The number of roots at generic data, where it is known."""

    @property
    def points(self) -> int:
        return self.joined.points

    @property
    def highest(self) -> int:
        return max(order for _, order in self.rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every state of the joined model, then the parameters."""
        return (*self.joined.together.states, *self.joined.together.parameters)

    @cached_property
    def unknowns(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.fixed)

    @cached_property
    def columns(self) -> np.ndarray:
        """The position of each unknown among `names`."""
        return np.array([self.names.index(name) for name in self.unknowns], dtype=np.int64)

    @cached_property
    def held(self) -> np.ndarray:
        """The position of each fixed unknown among `names`."""
        return np.array([self.names.index(name) for name in self.fixed], dtype=np.int64)

    @cached_property
    def row_array(self) -> np.ndarray:
        return np.array(self.rows, dtype=np.int64)

    @cached_property
    def tape(self) -> tape.Tape:
        return tape.build(self.joined.together, free_inputs=True)

    @cached_property
    def jet_work(self) -> float:
        """Operations of `evaluate` at one point, as a `Budget` counts them."""
        series = self.tape.registers - self.tape.statics
        return PRODUCT * series * (self.highest + 1) * (self.highest + 2) / 2 * (1 + len(self.names))

    @cached_property
    def condition_work(self) -> float:
        """Operations of the singular values of the Jacobian at one point, its evaluation included."""
        return self.jet_work + DECOMPOSITION * len(self.unknowns) ** 2

    @cached_property
    def lifted(self) -> int:
        """How many unknowns there are with the Taylor coefficients of the states: the size of linear systems."""
        return len(self.joined.together.states) * self.highest + len(self.unknowns)

    @cached_property
    def newton_work(self) -> float:
        """Operations of one correction by Newton's method in the lifted unknowns."""
        return self.jet_work + self.lifted**3 / 3

    @cached_property
    def memory(self) -> float:
        """Bytes that a path takes: the lifted Jacobian and the registers of the tape."""
        registers = self.tape.registers * (self.highest + 2) * (2 + len(self.names))
        return NUMBER * (self.lifted**2 + registers)

    def everything(self, roots: np.ndarray, fixed: np.ndarray) -> np.ndarray:
        """Values of all `names` from those of the unknowns."""
        full = np.empty((*roots.shape[:-1], len(self.names)), dtype=np.result_type(roots, fixed))
        full[..., self.columns] = roots
        full[..., self.held] = fixed
        return full

    def evaluate(self, roots: np.ndarray, inputs: np.ndarray, fixed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Phi (points, rows) and its Jacobian (points, rows, unknowns) at many points."""
        outputs = self.jets(roots, inputs, fixed, self.highest)[:, self.row_array[:, 0], self.row_array[:, 1]]
        return outputs[..., 0], outputs[..., 1 + self.columns]

    def jets(self, roots: np.ndarray, inputs: np.ndarray, fixed: np.ndarray, order: int) -> np.ndarray:
        """Every output to an order, (points, outputs, orders, value and tangents of all `names`)."""
        full = self.everything(roots, fixed)
        n = len(self.joined.together.states)
        return numeric.jets(
            self.tape, full[:, :n], full[:, n:], np.zeros(len(full)), order=order, tangents=True, inputs=inputs
        ).outputs

    def series(self, roots: np.ndarray, inputs: np.ndarray, fixed: np.ndarray) -> np.ndarray:
        """The Taylor coefficients of every state of the joined model to the highest order, (points, states, orders)."""
        full = self.everything(roots, fixed)
        n = len(self.joined.together.states)
        found = numeric.jets(
            self.tape, full[:, :n], full[:, n:], np.zeros(len(full)), order=self.highest, inputs=inputs
        )
        return found.states[..., 0]

    def residuals(self, roots: np.ndarray, targets: Targets) -> np.ndarray:
        """The largest |Phi - d| of each root, relative to the terms that Phi is made of; infinite without a value."""
        values, jacobian = self.evaluate(roots, targets.inputs, targets.fixed)
        with np.errstate(over="ignore", invalid="ignore"):
            scale = np.maximum(np.abs(targets.data), np.max(np.abs(jacobian * roots[:, None, :]), axis=2))
            worst = np.max(np.abs(values - targets.data) / np.where(scale > 0, scale, 1.0), axis=1)
        return np.where(np.isfinite(worst), worst, np.inf)

    def targets(self, jets: np.ndarray, inputs: np.ndarray | None = None, fixed: Sequence[float] = ()) -> Targets:
        """Targets from jets of shape (targets, points, outputs, orders), inputs (targets, points, inputs, orders).

        Derivatives, y^(k), not Taylor coefficients, of the model's own outputs and inputs; the jet of the time is
        counted among the inputs where the equations contain it.
        """
        count, points, outputs, orders = jets.shape
        scale = np.array([1.0 / factorial(k) for k in range(max(orders, self.highest + 1))])
        series = (jets * scale[:orders]).reshape(count, points * outputs, orders)
        shape = (count, self.points * self.joined.inputs, self.highest + 1)
        forced = np.zeros(shape) if inputs is None else inputs[..., : self.highest + 1] * scale[: self.highest + 1]
        data = series[:, self.row_array[:, 0], self.row_array[:, 1]]
        return Targets(data, np.ascontiguousarray(forced.reshape(shape)), np.asarray(fixed, dtype=float))
