"""Groebner: bases modulo a prime without msolve, by Faugère's F4 (1999).

Slower than msolve by a constant factor and meant for the small systems that linear elimination leaves.  Monomials are
packed into one integer, sixteen bits to a variable with the last variable on top: products are sums, and the order of
degree reverse lexicographic comparison is that of (degree, -packed).  Critical pairs are thinned by the criteria of
Gebauer and Möller (1988) and taken by least degree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from flint import nmod_mat

from odejet.budget import Budget, OutOfBudget
from odejet.identify.polynomials import ENTRY, TERM, Polynomial
from odejet.jets.compilation import compiled

LANE = 16
_DIGIT = (1 << LANE) - 1
MAX_CELLS = 60_000_000
"""Rows times columns of what is reduced: a basis that needs more would not fit into the memory of a laptop."""

MAX_DENSE = 10_000_000
"""Rows times columns of what is left for the dense echelon form, which takes seconds at this size."""

SLICE = 1e7
"""Work between two looks at the clock."""

BLOCK = 64
"""Rows that are reduced between two looks at the clock."""

Terms = dict[int, int]


def degree(packed: int) -> int:
    """The sum of the digits to base 2^16, which is the remainder modulo 2^16 - 1."""
    return packed % _DIGIT


@dataclass
class _Element:
    lead: int
    terms: Terms
    active: bool = True


@dataclass
class _Basis:
    """A growing basis and the critical pairs (degree, lcm, i, j) that are left."""

    prime: int
    guard: int
    budget: Budget
    elements: list[_Element] = field(default_factory=list)
    pairs: list[tuple[int, int, int, int]] = field(default_factory=list)

    def divides(self, a: int, b: int) -> bool:
        return ((b | self.guard) - a) & self.guard == self.guard

    def lcm(self, a: int, b: int) -> int:
        above = ((a | self.guard) - b) & self.guard
        mask = above | (above - (above >> (LANE - 1)))
        return (a & mask) | (b & ~mask)

    # -- pairs

    def insert(self, terms: Terms) -> None:
        """Add an element and update the pairs (Gebauer and Möller's procedure)."""
        self.budget.check(TERM * (len(self.pairs) + len(self.elements) + len(terms)))
        lead = max(terms, key=_key)
        new = len(self.elements)
        leads = [element.lead for element in self.elements]
        self.pairs = [
            pair
            for pair in self.pairs
            if not self.divides(lead, pair[1])
            or self.lcm(leads[pair[2]], lead) == pair[1]
            or self.lcm(leads[pair[3]], lead) == pair[1]
        ]
        candidates = []
        for i, element in enumerate(self.elements):
            if element.active:
                common = self.lcm(element.lead, lead)
                coprime = common == element.lead + lead
                candidates.append((degree(common), common, not coprime, i))
        kept: list[tuple[int, int, bool, int]] = []
        for candidate in sorted(candidates):
            if not any(self.divides(other[1], candidate[1]) for other in kept):
                kept.append(candidate)
        self.pairs += [(d, common, i, new) for d, common, not_coprime, i in kept if not_coprime]
        for element in self.elements:
            if element.lead != lead and self.divides(lead, element.lead):
                element.active = False
        # An element that another one divides lives on in its pair with that one, whose lcm is its own lead.
        redundant = any(element.active and self.divides(element.lead, lead) for element in self.elements)
        self.elements.append(_Element(lead, terms, not redundant))

    # -- reduction

    def reduce(self, rows: list[Terms], pivots: dict[int, Terms]) -> list[Terms]:
        """Rows reduced by the pivots and by all multiples of the basis that apply, then by each other.

        `pivots` are rows by their leading monomial; the multiples that are needed come to them.
        """
        todo = {m for row in rows for m in row} | {m for row in pivots.values() for m in row}
        seen = todo | pivots.keys()
        todo -= pivots.keys()
        active = [(e.lead, e.terms) for e in self.elements if e.active]
        work = 0.0
        while todo:
            work += TERM * len(active)
            monomial = todo.pop()
            for lead, terms in active:
                if self.divides(lead, monomial):
                    shift = monomial - lead
                    pivots[monomial] = row = {m + shift: c for m, c in terms.items()}
                    # A difference of sets would look at all that was seen, for every row.
                    fresh = [m for m in row if m not in seen]
                    seen.update(fresh)
                    todo.update(fresh)
                    work += TERM * len(row)
                    break
            if work > SLICE:
                self.budget.check(work)
                work = 0.0
        return self.echelon(rows, pivots)

    def echelon(self, rows: list[Terms], pivots: dict[int, Terms]) -> list[Terms]:
        """The reduced echelon form of the rows modulo the pivots, whose columns come out empty."""
        monomials = {m for row in (*rows, *pivots.values()) for m in row}
        columns = sorted(monomials, key=_key, reverse=True)
        if len(columns) * len(rows) > MAX_CELLS:
            raise OutOfBudget("a Groebner basis would not fit into memory")
        place = {m: i for i, m in enumerate(columns)}
        dense = np.zeros((len(rows), len(columns)), dtype=np.uint64)
        for i, row in enumerate(rows):
            dense[i, [place[m] for m in row]] = list(row.values())
        which = np.full(len(columns), -1, dtype=np.int64)
        for k, m in enumerate(pivots):
            which[place[m]] = k
        starts = np.cumsum([0, *(len(row) for row in pivots.values())], dtype=np.int64)
        indices = np.array([place[m] for row in pivots.values() for m in row], dtype=np.int64)
        values = np.array([c for row in pivots.values() for c in row.values()], dtype=np.uint64)
        for first in range(0, len(rows), BLOCK):
            self.budget.check(BLOCK * len(values))
            clear(dense[first : first + BLOCK], which, starts, indices, values, np.uint64(self.prime))
        free = np.flatnonzero((which < 0) & dense.any(axis=0))
        rest = dense[:, free]
        rest = rest[rest.any(axis=1)]
        if not rest.size:
            return []
        if rest.size > MAX_DENSE or not self.budget.affords(ENTRY * rest.size * min(rest.shape)):
            raise OutOfBudget("a Groebner basis takes longer than the time that is left")
        self.budget.check(ENTRY * rest.size * min(rest.shape))
        reduced, rank = nmod_mat(len(rest), len(free), [int(x) for x in rest.flat], self.prime).rref()
        entries = np.array([int(x) for x in reduced.entries()[: rank * len(free)]], dtype=np.uint64)
        return [
            {columns[free[i]]: int(row[i]) for i in np.flatnonzero(row)} for row in entries.reshape(rank, len(free))
        ]

    def step(self) -> None:
        """Reduce all pairs of least degree at once."""
        least = min(pair[0] for pair in self.pairs)
        chosen = [pair for pair in self.pairs if pair[0] == least]
        self.pairs = [pair for pair in self.pairs if pair[0] != least]
        pivots: dict[int, Terms] = {}
        rows: list[Terms] = []
        used: set[tuple[int, int]] = set()
        for _, common, i, j in chosen:
            for k in (i, j):
                if (k, common) in used:
                    continue
                used.add((k, common))
                element = self.elements[k]
                shift = common - element.lead
                row = {m + shift: c for m, c in element.terms.items()}
                if common in pivots:
                    rows.append(row)
                else:
                    pivots[common] = row
        fresh = self.reduce(rows, pivots)
        for row in sorted(fresh, key=lambda row: _key(max(row, key=_key))):
            self.insert(row)

    def finish(self) -> list[Terms]:
        """The minimal elements, fully reduced."""
        result = []
        for element in (e for e in self.elements if e.active):
            tail = {m: c for m, c in element.terms.items() if m != element.lead}
            normal = self.normal_form(tail) if tail else {}
            result.append({element.lead: 1, **normal})
        return result

    def normal_form(self, terms: Terms) -> Terms:
        # The echelon form is scaled; a marker, in a variable that no other monomial has, remembers by what.
        marker = 1 << self.guard.bit_length()
        found = self.reduce([{marker: 1, **terms}], {})
        scale = pow(found[0][marker], -1, self.prime)
        return {m: c * scale % self.prime for m, c in found[0].items() if m != marker}


@compiled
def clear(dense, which, starts, indices, values, prime):
    """Subtract multiples of sparse pivot rows, which are monic, until every row is zero in the columns of pivots."""
    for i in range(dense.shape[0]):
        row = dense[i]
        for column in range(len(row)):
            factor = row[column]
            pivot = which[column]
            if factor == 0 or pivot < 0:
                continue
            negative = prime - factor
            for k in range(starts[pivot], starts[pivot + 1]):
                row[indices[k]] = (row[indices[k]] + negative * values[k]) % prime


def _key(packed: int) -> tuple[int, int]:
    return degree(packed), -packed


def groebner(equations: Iterable[Polynomial], variables: Sequence[int], budget: Budget) -> list[Polynomial]:
    """The reduced Groebner basis, degree reverse lexicographic with the first variable largest."""
    rows = list(equations)
    prime = rows[0].prime
    unit = {v: 1 << (LANE * i) for i, v in enumerate(variables)}
    guard = sum(1 << (LANE * i + LANE - 1) for i in range(len(variables)))
    basis = _Basis(prime, guard, budget)
    packed = [{sum(unit[v] for v in m): c for m, c in row.terms.items()} for row in rows]
    for row in sorted(basis.echelon(packed, {}), key=lambda row: _key(max(row, key=_key))):
        basis.insert(row)
    while basis.pairs:
        basis.step()
    return [_unpacked(row, variables, prime) for row in basis.finish()]


def _unpacked(row: Terms, variables: Sequence[int], prime: int) -> Polynomial:
    terms = {}
    for packed, coefficient in row.items():
        monomial: list[int] = []
        for i, v in enumerate(variables):
            monomial += [v] * (packed >> (LANE * i) & _DIGIT)
        terms[tuple(sorted(monomial))] = coefficient
    return Polynomial(terms, prime)
