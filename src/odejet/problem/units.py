"""Units: which unknowns may be added to each other, as the equations tell.

What is added in an equation has one unit: x' = k1*x - k2*x*w says that k1 and k2*w are of one unit, that of x'/x.  In
the exponents of units these are linear equations; two unknowns have the same unit if their difference is a combination
of these equations, whatever the units are.  A volume and a rate are then told apart though nobody has named a unit.
Numbers have no unit as factors; a number that is added to something else may have any, unless it is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from odejet.model.expressions import TIME, Choice, Expression, Piecewise, Sum, constant
from odejet.problem.conditions import Condition
from odejet.problem.terms import NO_KIND, Kind, Reader, combined
from odejet.problem.unknowns import Unknown

MOST = 6
"""Experiments whose equations are read."""

_RANK = 1e-9


def units(conditions: Sequence[Condition], unknowns: Sequence[Unknown]) -> list[int]:
    """A number for every unknown, the same for those of the same unit; unknowns of one name have one."""
    reader = _Reader()
    names = [unknown.name for unknown in unknowns]
    for condition in conditions[:MOST]:
        reader.read(condition)
    columns = {name: reader.variable(name) for name in dict.fromkeys(names)}
    space = _row_space(reader)
    found: list[str] = []  # one name of each unit
    numbers = {}
    for name, column in columns.items():
        difference = np.zeros(reader.count)
        for number, other in enumerate(found):
            difference[:] = 0.0
            difference[column], difference[columns[other]] = 1.0, -1.0
            if np.linalg.norm(difference - space.T @ (space @ difference)) < 1e-6:
                numbers[name] = number
                break
        else:
            numbers[name] = len(found)
            found.append(name)
    return [numbers[name] for name in names]


def _row_space(reader: _Reader) -> np.ndarray:
    """Orthonormal rows that span the equations."""
    matrix = np.zeros((max(len(reader.rows), 1), reader.count))
    for i, (row, _) in enumerate(reader.rows):
        for variable, coefficient in row.items():
            matrix[i, variable] += coefficient
    _, sizes, rows = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(rows[sizes > _RANK * max(float(sizes[0]), 1.0)])


@dataclass
class _Reader(Reader):
    """Expressions as units, of which only exponents matter."""

    names: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.names)

    def variable(self, name: str) -> int:
        """The unit of a name."""
        return self.names.setdefault(name, len(self.names))

    def read(self, condition: Condition) -> None:
        own = condition.model
        time = {self.variable(TIME): -1.0}
        for state, rate in own.states.items():
            self.equate(rate, combined(({self.variable(state): 1.0}, 0.0), (time, 0.0), 1.0))
        for table in (own.initial, own.outputs):
            for name, value in table.items():
                self.equate(value, ({self.variable(name): 1.0}, 0.0))
        for event in own.events:
            for name, value in event.set.items():
                self.equate(value, ({self.variable(name): 1.0}, 0.0))
            for when in event.at:
                self.equate(when, ({self.variable(TIME): 1.0}, 0.0))

    def number(self, value: float) -> Kind | None:
        return NO_KIND

    def name(self, name: str) -> Kind:
        return {self.variable(name): 1.0}, 0.0

    def is_equated(self, term: Expression) -> bool:
        return constant(term) is None

    def is_added(self, term: Expression) -> bool:
        return constant(term) in (None, 1, -1)

    def alike(self, expression: Sum | Choice | Piecewise) -> Kind:
        return super().alike(expression) or NO_KIND
