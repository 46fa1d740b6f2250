"""Algebraic tapes: models for exact arithmetic, with non-rational functions as unknowns of their own.

Modulo a prime there is no exponential, but there is its differential equation: e = exp(x) is an unknown e with
e' = e x'.  Its value at one time may be drawn freely, since exp(x) is algebraically independent of what the model holds
besides; its tangent de = e dx is not free.  This is sound only if functions that depend on each other algebraically are
written in terms of the same unknowns.  So here

    exp(a + 2 b) = exp(a) exp(b)^2,   log(x y^2) = log x + 2 log y,   x^(n-1) = exp(n log x) / x,   exp(log x) = x,
    sinh, cosh, tanh by exp;  sin and cos of multiples and sums by those of the parts;  tan = sin / cos

Roots and rational powers need no care: modulo a prime they are powers again.  Relations beyond these (between, say,
exp(x) and exp(x*y)) are taken not to exist, which is what Schanuel's conjecture says of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING

from odejet.model.lowering import ONE, ZERO, Affine, Lowering, Scalar
from odejet.model.ratios import Factors
from odejet.model.tape import Elementary, Op, Tape

if TYPE_CHECKING:
    from odejet.model import Model

Key = tuple[str, int | None, int | None]
"""A monomial (static register) * (series register) as an argument of "exp" or of "angle"."""


def build(model: Model, free_inputs: bool = True) -> Tape:
    """The tape of a model for exact arithmetic; by default inputs are free series."""
    units: dict[Key, Fraction] = {}
    while True:
        try:
            return AlgebraicLowering(units=units).tape(model, free_inputs)
        except _FinerUnit as finer:
            units[finer.key] = finer.unit


class _FinerUnit(Exception):
    """A multiple of an argument was met that is no whole multiple of its unit."""

    def __init__(self, key: Key, unit: Fraction) -> None:
        self.key, self.unit = key, unit


@dataclass
class AlgebraicLowering(Lowering):
    units: dict[Key, Fraction] = field(default_factory=dict)

    def balanced(self, factors: Factors) -> Factors:
        """As they are: residues do not overflow."""
        return factors

    def function(self, name: str, argument: Affine) -> Affine:
        match name:
            case "exp":
                return self.exponential(argument)
            case "log":
                return self.logarithm(argument)
            case "sin" | "cos" | "tan":
                cosine, sine = self.circle(argument)
                return {"cos": cosine, "sin": sine}.get(name) or self.product([(1, sine), (-1, cosine)])
            case "sinh" | "cosh" | "tanh":
                return self.hyperbolic(name, argument)
        return super().function(name, argument)

    def apply(self, function: Elementary, argument: Affine, exponent: int = -1) -> Affine:
        """As for numbers; a static function needs its slope on the tape too, since its value alone does not tell it."""
        known = len(self.seen)
        value = super().apply(function, argument, exponent)
        register = value.constant.register
        if register is not None and len(self.seen) > known:
            definition = next(i for i in self.instructions if i.out == register)
            slope = self.derivative(function, definition.a, register, exponent)
            self.integrand(register, self.static_register(slope.constant))
        return value

    def power(self, base: Affine, exponent: Affine) -> Affine:
        if not exponent.terms and exponent.constant.register is None:
            return super().power(base, exponent)
        return self.exponential(self.product([(1, exponent), (1, self.logarithm(base))]))

    def hyperbolic(self, name: str, argument: Affine) -> Affine:
        grow = self.exponential(argument)
        decay = self.product([(-1, grow)])
        half = Affine(Scalar(Fraction(1, 2), None), {})
        cosh = self.product([(1, half), (1, self.sum([(1, grow), (1, decay)]))])
        sinh = self.product([(1, half), (1, self.sum([(1, grow), (-1, decay)]))])
        return {"cosh": cosh, "sinh": sinh}.get(name) or self.product([(1, sinh), (-1, cosh)])

    def exponential(self, argument: Affine) -> Affine:
        """The product over the monomials of the argument of unit exponentials to whole powers."""
        factors = []
        for key, factor in self.monomials("exp", argument).items():
            if key[1] is None and key[2] is None and factor == 0:
                continue
            inverse = self.inverse_of_logarithm(key)
            if inverse is not None:
                factors.append((1, super().power(inverse, Affine(Scalar(factor, None), {}))))
            else:
                unit, times = self.whole(key, factor)
                factors.append((1, self.whole_power(self.apply(Elementary.EXP, unit), times)))
        return self.product([(1, Affine(ONE, {})), *factors])

    def circle(self, argument: Affine) -> tuple[Affine, Affine]:
        """(cos, sin) of the argument, by the addition theorem from its monomials."""
        point = Affine(ONE, {}), Affine(ZERO, {})
        for key, factor in self.monomials("angle", argument).items():
            unit, times = self.whole(key, factor)
            step = self.apply(Elementary.COS, unit), self.apply(Elementary.SIN, unit)
            if times < 0:
                step = step[0], self.sum([(-1, step[1])])
            for _ in range(abs(times)):
                point = self.rotate(point, step)
        return point

    def rotate(self, a: tuple[Affine, Affine], b: tuple[Affine, Affine]) -> tuple[Affine, Affine]:
        products = [[self.product([(1, x), (1, y)]) for y in b] for x in a]
        return (
            self.sum([(1, products[0][0]), (-1, products[1][1])]),
            self.sum([(1, products[0][1]), (1, products[1][0])]),
        )

    def logarithm(self, argument: Affine) -> Affine:
        parts: list[tuple[int, Affine]] = []
        if argument.terms and (argument.constant or len(argument.terms) > 1):
            return self.log_of_register(self.series_register(argument))
        scalar = argument.constant
        for register, coefficient in argument.terms.items():
            scalar = coefficient
            parts.append((1, self.log_of_register(register)))
        if scalar.register is not None:
            parts.append((1, self.log_of_register(scalar.register)))
        if abs(scalar.factor) != 1:
            size = self.number(abs(scalar.factor))
            parts.append((1, self.apply(Elementary.LOG, Affine(Scalar(Fraction(1), size), {}))))
        return self.sum(parts)

    def log_of_register(self, register: int) -> Affine:
        """log of a register, through the products it was made of."""
        definition = next((i for i in self.instructions if i.out == register and i.op != Op.ADVANCE), None)
        if definition is not None:
            match definition.op:
                case Op.MULTIPLY:
                    return self.sum([(1, self.log_of_register(definition.a)), (1, self.log_of_register(definition.b))])
                case Op.SQUARE:
                    return self.sum([(1, self.log_of_register(definition.a))] * 2)
                case Op.DIVIDE:
                    return self.sum([(1, self.log_of_register(definition.a)), (-1, self.log_of_register(definition.b))])
                case Op.QUADRATURE if definition.function == Elementary.EXP:
                    return self.value_of(definition.a)
                case Op.QUADRATURE if definition.function == Elementary.SQRT:
                    half = Affine(Scalar(Fraction(1, 2), None), {})
                    return self.product([(1, half), (1, self.log_of_register(definition.a))])
        if register in self.numbers.values() and self.number(Fraction(1)) == register:
            return Affine(ZERO, {})
        return self.apply(Elementary.LOG, self.value_of(register))

    # -- monomials of an argument

    def monomials(self, kind: str, argument: Affine) -> dict[Key, Fraction]:
        """The argument as a sum of factor * (static register) * (series register)."""
        found: dict[Key, Fraction] = {}
        for series, coefficient in [(None, argument.constant), *argument.terms.items()]:
            for scalar in self.parts(coefficient):
                if scalar:
                    for place, scale in self.spread(series):
                        key = (kind, scalar.register, place)
                        found[key] = found.get(key, Fraction(0)) + scalar.factor * scale
        return {key: factor for key, factor in found.items() if factor}

    def parts(self, scalar: Scalar) -> list[Scalar]:
        """A static value as a sum, through the sums it was made of."""
        definition = next((i for i in self.instructions if i.out == scalar.register and i.op == Op.LINEAR), None)
        if definition is None:
            return [scalar]
        values = {register: value for value, register in self.numbers.items()}
        pieces = [Scalar(scalar.factor * values[c], source) for c, source in definition.terms]
        if definition.c >= 0:
            pieces.append(Scalar(scalar.factor * values[definition.c], None))
        return [part for piece in pieces for part in self.parts(piece)]

    def spread(self, series: int | None) -> list[tuple[int | None, Fraction]]:
        """A series register as a sum of others with numbers as coefficients, where it was made that way."""
        definition = next((i for i in self.instructions if i.out == series and i.op == Op.LINEAR), None)
        values = {register: value for value, register in self.numbers.items()}
        if definition is None or definition.c >= 0 or any(c not in values for c, _ in definition.terms):
            return [(series, Fraction(1))]
        return [(place, values[c] * scale) for c, source in definition.terms for place, scale in self.spread(source)]

    def inverse_of_logarithm(self, key: Key) -> Affine | None:
        """x, if the monomial is log(x) itself."""
        _, static, series = key
        if (static is None) == (series is None):
            return None
        register = static if series is None else series
        definition = next((i for i in self.instructions if i.out == register and i.op == Op.QUADRATURE), None)
        if definition is None or definition.function != Elementary.LOG:
            return None
        return self.value_of(definition.a)

    def whole(self, key: Key, factor: Fraction) -> tuple[Affine, int]:
        """The unit argument of a monomial and how many times the unit its factor is."""
        unit = self.units.setdefault(key, factor)
        times = factor / unit
        if times.denominator != 1:
            finer = Fraction(gcd(unit.numerator, factor.numerator), lcm(unit.denominator, factor.denominator))
            raise _FinerUnit(key, finer)
        _, static, series = key
        scalar = Scalar(unit, static)
        return Affine(scalar, {}) if series is None else Affine(ZERO, {series: scalar}), int(times)
