"""Orders: the least derivatives from which everything that can be known is known, at one time.

Rows of the prolonged Jacobian are vectors of a linear matroid, so taking rows by increasing order and keeping each that
raises the rank gives a basis whose sorted orders are all minimal at once (Rado 1957): no other square system needs a
lower highest derivative.  The choice depends on the model alone and is exact up to the probability stated in `local`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import nmod_mat

from odejet.identify.local import Jacobian, Local, pivot_columns


@dataclass(frozen=True)
class Orders:
    """A square system: its rows (output, order) by number, and the unknowns that must be fixed to solve it."""

    rows: tuple[tuple[int, int], ...]
    fixed: tuple[int, ...]

    @property
    def highest(self) -> int:
        return max(order for _, order in self.rows)


def choose(local: Local) -> Orders:
    """The rows of least order, and which unknowns, fixed, leave the others locally identifiable."""
    jacobian = local.points[0]
    return Orders(jacobian.independent, to_fix(jacobian, preference(local)))


def preference(local: Local) -> list[int]:
    """Unknowns in the order in which one would rather fix them: parameters before states, both from the last."""
    model = local.problem.model
    unknowns = list(range(len(model.unknowns)))
    return sorted(unknowns, key=lambda i: (model.unknowns[i] in model.states, -i))


def to_fix(jacobian: Jacobian, order: Sequence[int]) -> tuple[int, ...]:
    """The first unknowns in the given order that together cut every direction of the kernel.

    Fixing a set of unknowns leaves the rest identifiable exactly when the kernel, restricted to the set, keeps its
    rank; a least set is a basis of the matroid of the kernel's columns.
    """
    basis = jacobian.kernel
    if not len(basis):
        return ()
    entries = [int(basis[k, i]) for k in range(len(basis)) for i in order]
    echelon, rank = nmod_mat(len(basis), len(order), entries, jacobian.prime).rref()
    return tuple(sorted(order[i] for i in pivot_columns(echelon, rank)))
