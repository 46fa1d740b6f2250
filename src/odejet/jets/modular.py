"""Jets modulo a prime: exact Taylor series with tangents at random points.

A polynomial identity that holds at a random point modulo a 61-bit prime is true but for a probability of about its
degree divided by the prime (Schwartz 1980, Zippel 1979), so ranks computed here are exact for practical purposes.
Tapes come from `algebraic.build`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from odejet.jets.kernel import lay_out
from odejet.jets.registers import expand_points
from odejet.model.tape import Column, Elementary, Op, Tape

PRIMES = tuple(2**61 - gap for gap in (2373, 3153, 7245, 8133, 8613, 9189))
"""Safe primes p = 2 N + 1 with prime N: in the subgroup of squares, of odd prime order N, every root exists and is a
power."""

OF_SQUARES = tuple(2**61 - gap for gap in (636873, 2242113))
"""Safe primes modulo which all primes up to 31 are squares, so that known numbers made of these have roots."""

_ATTEMPTS = 2000


class Unlucky(ArithmeticError):
    """The point hits a zero denominator or a root that does not exist; another draw will not."""


@dataclass(frozen=True)
class Field:
    """Arithmetic modulo a prime, and the Montgomery form x R mod p that the kernels use."""

    prime: int

    @cached_property
    def modulus(self) -> tuple[np.uint64, np.uint64, np.uint64]:
        """What the kernels need: p, -1/p mod R and R mod p, with R = 2^64."""
        radix = 2**64
        inverse = -pow(self.prime, -1, radix) % radix
        return np.uint64(self.prime), np.uint64(inverse), np.uint64(radix % self.prime)

    def residue(self, value: Fraction | int) -> int:
        exact = Fraction(value)
        if exact.denominator % self.prime == 0:
            raise Unlucky("a denominator of the model is divisible by the prime")
        return exact.numerator * pow(exact.denominator, -1, self.prime) % self.prime

    def encode(self, values: object) -> np.ndarray:
        array = np.asarray(values, dtype=object)
        return np.array([int(x) * 2**64 % self.prime for x in array.flat], dtype=np.uint64).reshape(array.shape)

    def decode(self, array: np.ndarray) -> np.ndarray:
        """Python integers in [0, p)."""
        back = pow(2**64, -1, self.prime)
        return np.array([int(x) * back % self.prime for x in array.flat], dtype=object).reshape(array.shape)

    def tables(self, orders: int) -> tuple[np.ndarray, np.ndarray]:
        integers = list(range(orders + 1))
        return self.encode(integers), self.encode([pow(k, -1, self.prime) if k else 0 for k in integers])

    def is_square(self, value: int) -> bool:
        return pow(value, (self.prime - 1) // 2, self.prime) == 1

    def power(self, value: int, exponent: Fraction) -> int:
        """value ** exponent in the subgroup of squares."""
        if not self.is_square(value):
            raise Unlucky("a root of a non-square")
        order = (self.prime - 1) // 2
        return pow(value, exponent.numerator * pow(exponent.denominator, -1, order) % order, self.prime)

    def inverse(self, value: int) -> int:
        if value % self.prime == 0:
            raise Unlucky("a division by zero")
        return pow(value, -1, self.prime)


@dataclass(frozen=True)
class Point:
    """Residues for everything that a tape leaves open."""

    states: tuple[int, ...]
    parameters: tuple[int, ...]
    time: int
    inputs: tuple[tuple[int, ...], ...]  # Taylor coefficients of free inputs
    drawn: tuple[int, ...]  # order zero of every elementary function


@dataclass(frozen=True)
class ModularJets:
    """Taylor coefficients modulo `prime`, of shape (quantities, orders, 1 + tangents), as Python integers."""

    prime: int
    states: np.ndarray
    outputs: np.ndarray


def random_point(
    tape: Tape, field: Field, generator: random.Random, order: int, *, known_initial: bool = False
) -> Point:
    """A point at which the tape can be evaluated, drawn again until it can."""
    for _ in range(_ATTEMPTS):
        states = [generator.randrange(1, field.prime) for _ in tape.states]
        parameters = [generator.randrange(1, field.prime) for _ in tape.parameters]
        time = generator.randrange(1, field.prime)
        inputs = [[generator.randrange(field.prime) for _ in range(order + 1)] for _ in tape.inputs]
        try:
            return point(tape, field, states, parameters, time, inputs, generator, known_initial=known_initial)
        except Unlucky:
            continue
    raise Unlucky("no point was found at which the model can be evaluated")


def point(
    tape: Tape,
    field: Field,
    states: Sequence[int],
    parameters: Sequence[int],
    time: int,
    inputs: Sequence[Sequence[int]],
    generator: random.Random,
    *,
    known_initial: bool = False,
) -> Point:
    """The point with given residues: the values of functions are drawn, roots computed, divisions checked."""
    values = _OrderZero(tape, field, generator)
    for register, value in tape.constants:
        values[register] = field.residue(value)
    values.write(tape.parameters, parameters)
    values.write(tape.states, states)
    values.write(tape.inputs, [series[0] for series in inputs])
    values[tape.time] = time % field.prime
    known = tape.initial if known_initial else np.full_like(tape.initial, -1)
    if np.any(known >= 0):
        values.run(0, int(tape.split[0]))
        for register, source in zip(tape.states, known, strict=True):
            if source >= 0:
                values[register] = values[source]
    values.run(0, len(tape.code))
    drawn = tuple(values[row[Column.OUT]] for row in tape.quadratures)
    series = tuple(tuple(int(x) % field.prime for x in coefficients) for coefficients in inputs)
    return Point(tuple(values.read(tape.states)), tuple(values.read(tape.parameters)), values[tape.time], series, drawn)


class _OrderZero(dict[int, int]):
    """Values of all registers at order zero."""

    def __init__(self, tape: Tape, field: Field, generator: random.Random) -> None:
        self.tape, self.field, self.generator = tape, field, generator
        self.angles: dict[int, tuple[int, int]] = {}
        self.chosen: dict[int, int] = {}

    def write(self, registers: np.ndarray, values: Sequence[int]) -> None:
        for register, value in zip(registers, values, strict=True):
            self[int(register)] = int(value) % self.field.prime

    def read(self, registers: np.ndarray) -> list[int]:
        return [self[int(register)] for register in registers]

    def run(self, first: int, last: int) -> None:
        prime = self.field.prime
        for row in self.tape.code[first:last]:
            op, out, a, b, c = (int(row[i]) for i in (Column.OP, Column.OUT, Column.A, Column.B, Column.C))
            if op == Op.LINEAR:
                terms = self.tape.terms[row[Column.BEGIN] : row[Column.END]]
                total = self[c] if c >= 0 else 0
                self[out] = (total + sum(self[int(x)] * self[int(y)] for x, y, _ in terms)) % prime
            elif op in (Op.MULTIPLY, Op.SQUARE):
                self[out] = self[a] * self[b if op == Op.MULTIPLY else a] % prime
            elif op == Op.DIVIDE:
                self[out] = self[a] * self.field.inverse(self[b]) % prime
            elif op == Op.QUADRATURE:
                self[out] = self.function(int(row[Column.FUNCTION]), out, a, c)

    def function(self, function: int, out: int, a: int, exponent: int) -> int:
        if function == Elementary.SQRT:
            return self.field.power(self[a], Fraction(1, 2))
        if function == Elementary.POWER:
            return self.field.power(self[a], dict(self.tape.constants)[exponent])
        if function in (Elementary.SIN, Elementary.COS):
            if a not in self.angles:
                self.angles[a] = self.circle_point()
            return self.angles[a][0 if function == Elementary.COS else 1]
        if function == Elementary.LOG:
            self.field.inverse(self[a])
        if out not in self.chosen:
            self.chosen[out] = self.generator.randrange(1, self.field.prime)
        return self.chosen[out]

    def circle_point(self) -> tuple[int, int]:
        """A random point of c^2 + s^2 = 1, by the tangent of the half angle."""
        prime, half = self.field.prime, self.generator.randrange(1, self.field.prime)
        scale = self.field.inverse(1 + half * half)
        return (1 - half * half) * scale % prime, 2 * half * scale % prime


def jets(
    tape: Tape, field: Field, at: Point, order: int, *, tangents: bool = True, known_initial: bool = False
) -> ModularJets:
    """Series of states and outputs at a point; tangents are with respect to the states, then the parameters."""
    n, m = len(tape.states), len(tape.parameters)
    lanes = 1 + (n + m if tangents else 0)

    def rows(values: tuple[int, ...], first: int) -> np.ndarray:
        seeds = np.zeros((1, len(values), lanes), dtype=object)
        seeds[0, :, 0] = values
        if tangents:
            seeds[0, np.arange(len(values)), first + np.arange(len(values))] = 1
        return field.encode(seeds)

    inputs = np.zeros((1, len(tape.inputs), order + 1), dtype=object)
    for i, series in enumerate(at.inputs):
        inputs[0, i, : min(len(series), order + 1)] = series[: order + 1]
    state_series, output_series = expand_points(
        lay_out(tape, lanes, order + 2, free_states=not known_initial),
        field.encode([field.residue(value) for _, value in tape.constants]),
        rows(at.parameters, 1 + n),
        rows(at.states, 1),
        field.encode([at.time]),
        field.encode(inputs),
        field.encode([at.drawn]).reshape(1, len(at.drawn)),
        order,
        field.tables(order + 2),
        field.modulus,
    )
    return ModularJets(field.prime, field.decode(state_series[0]), field.decode(output_series[0]))
