"""Conservation: sums of states that do not change in time.

A sum with constant numbers as coefficients is conserved when these are orthogonal to the rates at all points: a kernel,
at random points modulo a prime, read back as small fractions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq, fmpq_mat, nmod_mat

from odejet.identify.local import kernel, small_fraction
from odejet.jets import modular
from odejet.model.tape import Tape

MARGIN = 3
"""Points beyond the number of states."""


@dataclass(frozen=True)
class Law:
    """A sum of states that does not change: the state to be replaced, with coefficient one, and the others."""

    state: int
    others: tuple[tuple[int, Fraction], ...]

    def value(self, states: Sequence[int], field: modular.Field) -> int:
        return (states[self.state] + self.rest(states, field)) % field.prime

    def rest(self, states: Sequence[int], field: modular.Field) -> int:
        return sum(field.residue(a) * states[i] for i, a in self.others) % field.prime


def conserved(tape: Tape, field: modular.Field, states: Sequence[int], seed: int) -> tuple[Law, ...]:
    """The laws of some states, each with a state of its own to be replaced: the first ones, as far as possible."""
    if not states:
        return ()
    rows: list[int] = []
    generator = random.Random(seed)
    for _ in range(len(states) + MARGIN):
        point = modular.random_point(tape, field, generator, 1)
        rates = modular.jets(tape, field, point, 1, tangents=False).states[:, 1, 0]
        rows += [int(rates[i]) for i in states]
    basis = kernel(*nmod_mat(len(states) + MARGIN, len(states), rows, field.prime).rref())
    vectors = [[small_fraction(int(x), field.prime) for x in vector] for vector in basis]
    whole = [[fmpq(x.numerator, x.denominator) for x in v if x is not None] for v in vectors if None not in v]
    if not whole:
        return ()
    echelon, rank = fmpq_mat(whole).rref()
    laws = []
    for row in echelon.tolist()[:rank]:
        entries = [(i, Fraction(int(x.p), int(x.q))) for i, x in zip(states, row, strict=True) if x]
        laws.append(Law(entries[0][0], tuple(entries[1:])))
    return tuple(laws)
