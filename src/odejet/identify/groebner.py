"""Groebner: bases modulo a prime without msolve, by Faugère's F4 (1999) on dense matrices of FLINT.

Slower than msolve by a constant factor and meant for the small systems that linear elimination leaves.  Monomials are
packed into one integer, sixteen bits to a variable with the last variable on top: products are sums, and the order of
degree reverse lexicographic comparison is that of (degree, -packed).  Critical pairs are thinned by the criteria of
Gebauer and Möller (1988) and taken by least degree.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from flint import nmod_mat

from odejet.identify.polynomials import Polynomial

LANE = 16
_DIGIT = (1 << LANE) - 1
MAX_CELLS = 60_000_000
"""Matrices larger than this would not fit into the memory of a laptop; a basis that needs them is given up."""

Terms = dict[int, int]


def degree(packed: int) -> int:
    """The sum of the digits to base 2^16, which is the remainder modulo 2^16 - 1."""
    return packed % _DIGIT


class OutOfTime(Exception):
    """The budget of time or memory has ended."""


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
    deadline: float
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

    def reduce(self, rows: list[Terms]) -> list[Terms]:
        """The reduced echelon form of rows together with all multiples of the basis that reduce them."""
        table = list(rows)
        done = {max(row, key=_key) for row in rows}
        todo = {monomial for row in rows for monomial in row} - done
        active = [(e.lead, e.terms) for e in self.elements if e.active]
        while todo:
            monomial = todo.pop()
            done.add(monomial)
            for lead, terms in active:
                if self.divides(lead, monomial):
                    shift = monomial - lead
                    row = {m + shift: c for m, c in terms.items()}
                    table.append(row)
                    todo |= row.keys() - done
                    break
        return self.echelon(table)

    def echelon(self, table: list[Terms]) -> list[Terms]:
        columns = sorted({m for row in table for m in row}, key=_key, reverse=True)
        if len(columns) * len(table) > MAX_CELLS or time.monotonic() > self.deadline:
            raise OutOfTime
        place = {m: i for i, m in enumerate(columns)}
        dense = nmod_mat(len(table), len(columns), self.prime)
        for i, row in enumerate(table):
            for m, c in row.items():
                dense[i, place[m]] = c
        reduced, rank = dense.rref()
        width = len(columns)
        entries = [int(x) for x in reduced.entries()[: rank * width]]
        return [{columns[i]: c for i, c in enumerate(entries[r * width : (r + 1) * width]) if c} for r in range(rank)]

    def step(self) -> None:
        """Reduce all pairs of least degree at once."""
        least = min(pair[0] for pair in self.pairs)
        chosen = [pair for pair in self.pairs if pair[0] == least]
        self.pairs = [pair for pair in self.pairs if pair[0] != least]
        halves: dict[tuple[int, int], Terms] = {}
        for _, common, i, j in chosen:
            for k in (i, j):
                element = self.elements[k]
                shift = common - element.lead
                halves[k, common] = {m + shift: c for m, c in element.terms.items()}
        known = {common for _, common in halves}
        old = [element.lead for element in self.elements if element.active]
        fresh = []
        for row in self.reduce(list(halves.values())):
            lead = max(row, key=_key)
            if lead not in known and not any(self.divides(other, lead) for other in old):
                fresh.append(row)
        for row in sorted(fresh, key=lambda row: _key(max(row, key=_key))):
            self.insert(row)

    def finish(self) -> list[Terms]:
        """The minimal elements, fully reduced."""
        leads = {e.lead for e in self.elements if e.active}
        rows = self.reduce([e.terms for e in self.elements if e.active])
        return [row for row in rows if max(row, key=_key) in leads]


def _key(packed: int) -> tuple[int, int]:
    return degree(packed), -packed


def groebner(equations: Iterable[Polynomial], variables: Sequence[int], seconds: float) -> list[Polynomial] | None:
    """The reduced Groebner basis, degree reverse lexicographic with the first variable largest; None out of time."""
    rows = list(equations)
    prime = rows[0].prime
    unit = {v: 1 << (LANE * i) for i, v in enumerate(variables)}
    guard = sum(1 << (LANE * i + LANE - 1) for i in range(len(variables)))
    basis = _Basis(prime, guard, time.monotonic() + seconds)
    packed = [{sum(unit[v] for v in m): c for m, c in row.terms.items()} for row in rows]
    try:
        for row in sorted(basis.echelon(packed), key=lambda row: _key(max(row, key=_key))):
            basis.insert(row)
        while basis.pairs:
            basis.step()
        return [_unpacked(row, variables, prime) for row in basis.finish()]
    except OutOfTime:
        return None


def _unpacked(row: Terms, variables: Sequence[int], prime: int) -> Polynomial:
    terms = {}
    for packed, coefficient in row.items():
        monomial: list[int] = []
        for i, v in enumerate(variables):
            monomial += [v] * (packed >> (LANE * i) & _DIGIT)
        terms[tuple(sorted(monomial))] = coefficient
    return Polynomial(terms, prime)
