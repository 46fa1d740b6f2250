"""Ring: the tape of a model run in Taylor arithmetic over any commutative ring with residues modulo a prime.

The kernels of `jets` compute with numbers.  Here the same program computes with polynomials, which gives the prolonged
system in explicit form, and with matrices that stand for the solutions of a polynomial system, which evaluates further
derivatives at all solutions at once.  What the two do differently, they say in an `Arithmetic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from odejet.jets.modular import Field, Point
from odejet.model.tape import Column, Elementary, Op, Tape


class Arithmetic(Protocol):
    """Elements support + and * with each other; the rest is here."""

    def number(self, residue: int) -> Any: ...

    def scale(self, element: Any, residue: int) -> Any: ...

    def quotient(self, above: Any, below: Any) -> Any: ...

    def name(self, element: Any) -> Any:
        """The next Taylor coefficient of a state, as it is or as a new variable equal to it."""
        ...

    def root(self, place: int, element: Any, exponent: Fraction, value: int) -> Any:
        """A power with a fixed exponent, the `place`-th function of the tape, whose residue at the point is `value`."""
        ...

    def function(self, place: int, kind: int, argument: Any, value: int) -> Any:
        """A transcendental function, the `place`-th of the tape, whose residue at the point is `value`."""
        ...


class Run:
    """Taylor coefficients of all registers over a ring, extended one order at a time."""

    def __init__(
        self,
        tape: Tape,
        field: Field,
        point: Point,
        arithmetic: Arithmetic,
        states: Sequence[Any],
        parameters: Sequence[Any],
        known_initial: bool,
    ) -> None:
        self.tape, self.field, self.point, self.ring = tape, field, point, arithmetic
        self.zero = arithmetic.number(0)
        self.series: dict[int, list[Any]] = {
            register: [arithmetic.number(field.residue(value))] for register, value in tape.constants
        }
        self.exponents = dict(tape.constants)
        self.places = {int(row[Column.OUT]): i for i, row in enumerate(tape.quadratures)}
        for register, element in zip(tape.parameters, parameters, strict=True):
            self.series[int(register)] = [element]
        self.statics, self.rest = tape.code[: tape.split[0]], tape.code[tape.split[0] :]
        known = tape.initial if known_initial else [-1] * len(states)
        for register, element, source in zip(tape.states, states, known, strict=True):
            if source < 0:
                self.series[int(register)] = [element]
        self._begin({int(r): int(source) for r, source in zip(tape.states, known, strict=True) if source >= 0})
        for register, series in zip(tape.inputs, point.inputs, strict=True):
            self.series[int(register)] = [arithmetic.number(residue) for residue in series]
        self.series[tape.time] = [arithmetic.number(point.time), arithmetic.number(1)]
        self.order = -1

    def _begin(self, sources: dict[int, int]) -> None:
        """Statics and known initial states, each as soon as what it is made of is there."""
        rows = list(self.statics)
        while rows or sources:
            ready = [row for row in rows if all(register in self.series for register in self._needs(row))]
            given = [register for register, source in sources.items() if source in self.series]
            assert ready or given, "statics and initial states depend on each other in a circle"
            for row in ready:
                self._step([row], 0)
            for register in given:
                self.series[register] = [self.series[sources.pop(register)][0]]
            done = {int(row[Column.OUT]) for row in ready}
            rows = [row for row in rows if int(row[Column.OUT]) not in done]

    def _needs(self, row: Any) -> set[int]:
        """The registers of which a row makes its coefficient of order zero."""
        op, a, b, c = (int(row[i]) for i in (Column.OP, Column.A, Column.B, Column.C))
        if op in (Op.LINEAR, Op.ADVANCE):
            terms = self.tape.terms[row[Column.BEGIN] : row[Column.END]]
            return {int(x) for term in terms for x in term[:2]} | ({c} if c >= 0 else set())
        return {a, b} if op in (Op.MULTIPLY, Op.DIVIDE) else {a}

    def extend(self, order: int) -> None:
        while self.order < order:
            self.order += 1
            self._step(self.rest, self.order)

    def output(self, i: int, order: int) -> Any:
        """The Taylor coefficient of an output."""
        self.extend(order)
        return self.at(int(self.tape.outputs[i]), order)

    def state(self, i: int) -> Any:
        return self.series[int(self.tape.states[i])][0]

    def at(self, register: int, order: int) -> Any:
        series = self.series[register]
        return series[order] if order < len(series) else self.zero

    def _step(self, code: Any, k: int) -> None:
        """The coefficients of order k of every register; states get theirs of order k + 1."""
        advanced: list[tuple[int, Any]] = []
        for row in code:
            op, out = int(row[Column.OP]), int(row[Column.OUT])
            if op == Op.ADVANCE:
                inverse = self.field.inverse(k + 1)
                advanced.append((out, self.ring.name(self.ring.scale(self._linear(row, k), inverse))))
            elif op == Op.LINEAR:
                self.series.setdefault(out, []).append(self._linear(row, k))
            else:
                self.series.setdefault(out, [])
                self.series[out].append(self._product(op, row, k))
        for out, element in advanced:
            self.series[out].append(element)

    def _linear(self, row: Any, k: int) -> Any:
        c = int(row[Column.C])
        total = self.at(c, k) if c >= 0 else self.zero
        for coefficient, source, _ in self.tape.terms[row[Column.BEGIN] : row[Column.END]]:
            total = total + self.series[int(coefficient)][0] * self.at(int(source), k)
        return total

    def _product(self, op: int, row: Any, k: int) -> Any:
        out, a, b = int(row[Column.OUT]), int(row[Column.A]), int(row[Column.B])
        if op in (Op.MULTIPLY, Op.SQUARE):
            b = a if op == Op.SQUARE else b
            return self._sum(self.at(a, i) * self.at(b, k - i) for i in range(k + 1))
        if op == Op.DIVIDE:
            below = self._sum(self.at(out, i) * self.at(b, k - i) for i in range(k))
            return self.ring.quotient(self.at(a, k) + self.ring.scale(below, -1), self.at(b, 0))
        if k == 0:
            return self._function(row)
        moved = self._sum(self.ring.scale(self.at(a, i), i) * self.at(b, k - i) for i in range(1, k + 1))
        return self.ring.scale(moved, self.field.inverse(k))

    def _sum(self, elements: Any) -> Any:
        total = self.zero
        for element in elements:
            total = total + element
        return total

    def _function(self, row: Any) -> Any:
        out, kind, a, exponent = (int(row[c]) for c in (Column.OUT, Column.FUNCTION, Column.A, Column.C))
        place = self.places[out]
        value = self.point.drawn[place]
        if kind == Elementary.SQRT:
            return self.ring.root(place, self.at(a, 0), Fraction(1, 2), value)
        if kind == Elementary.POWER:
            return self.ring.root(place, self.at(a, 0), self.exponents[exponent], value)
        return self.ring.function(place, kind, self.at(a, 0), value)
