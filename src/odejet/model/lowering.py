"""Lowering: from the expressions of a model to the instructions of its tape.

Every value is kept as an affine combination of series registers with static coefficients, and every right-hand side is
numbered: equal values get equal registers.  So products with parameters cost nothing per order of a series, numbers are
folded exactly, and `k2*r*w` in two equations is one product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from odejet.errors import ModelError, clipped
from odejet.model.assembly import Assembly, Instruction, Register
from odejet.model.expressions import TIME, Delay, Expression, Function, Number, Power, Product, Sum, Symbol, constant
from odejet.model.ratios import Bounded, Factors, balanced
from odejet.model.tape import INFINITE, Elementary, Op, Tape, check_size

if TYPE_CHECKING:
    from odejet.model import Model
    from odejet.model.modes import Equations


@dataclass(frozen=True)
class Scalar:
    """A static value: an exact factor times a static register (or one)."""

    factor: Fraction
    register: int | None

    def __bool__(self) -> bool:
        return self.factor != 0


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient * series register."""

    constant: Scalar
    terms: dict[int, Scalar]


ZERO = Scalar(Fraction(0), None)
ONE = Scalar(Fraction(1), None)


@dataclass
class Lowering(Assembly):
    """Value numbering: equal right-hand sides get equal registers."""

    names: dict[str, Affine] = field(default_factory=dict)
    seen: dict[tuple, int] = field(default_factory=dict)
    made: dict[int, Instruction] = field(default_factory=dict)  # the instruction of a register
    lowered: dict[Expression, Affine] = field(default_factory=dict)

    # -- registers and instructions

    def new(self, static: bool, tangent: bool, degree: int = INFINITE) -> int:
        self.registers.append(Register(static, tangent, 0 if static else min(degree, INFINITE)))
        return len(self.registers) - 1

    def leaf(self, name: str, static: bool, tangent: bool, degree: int = INFINITE) -> int:
        register = self.new(static, tangent, degree)
        unit = Scalar(Fraction(1), register)
        self.names[name] = Affine(unit, {}) if static else Affine(ZERO, {register: ONE})
        return register

    def number(self, value: Fraction) -> int:
        check_size(value)
        if value not in self.numbers:
            self.numbers[value] = self.new(static=True, tangent=False)
        return self.numbers[value]

    def emit(self, key: tuple, static: bool, tangent: bool, degree: int, **fields) -> int:
        """The register that holds the value described by `key`, computed once."""
        if key not in self.seen:
            self.seen[key] = register = self.new(static, tangent, degree)
            self.made[register] = Instruction(out=register, **fields)
            self.instructions.append(self.made[register])
        return self.seen[key]

    def static_register(self, scalar: Scalar) -> int:
        if scalar.register is None:
            return self.number(scalar.factor)
        if scalar.factor == 1:
            return scalar.register
        return self.linear(static=True, constant=None, terms=[(self.number(scalar.factor), scalar.register)])

    def series_register(self, value: Affine) -> int:
        if not value.constant and len(value.terms) == 1:
            ((register, coefficient),) = value.terms.items()
            if coefficient == ONE:
                return register
        terms = [(self.static_register(coefficient), source) for source, coefficient in value.terms.items()]
        constant = self.static_register(value.constant) if value.constant else None
        return self.linear(static=False, constant=constant, terms=terms)

    def linear(self, static: bool, constant: int | None, terms: list[tuple[int, int]]) -> int:
        terms = sorted(terms)
        involved = [register for pair in terms for register in pair] + ([] if constant is None else [constant])
        tangent = any(self.registers[register].tangent for register in involved)
        degree = max((self.registers[source].degree for _, source in terms), default=0)
        key = (Op.LINEAR, static, constant, tuple(terms))
        c = -1 if constant is None else constant
        return self.emit(key, static, tangent, degree, op=Op.LINEAR, c=c, terms=tuple(terms))

    def advance(self, state: int, rate: Affine) -> None:
        """The equation of a state; a rate that stands in a register already is not computed twice."""
        terms = sorted((self.static_register(coefficient), source) for source, coefficient in rate.terms.items())
        constant = self.static_register(rate.constant) if rate.constant else None
        known = self.seen.get((Op.LINEAR, False, constant, tuple(terms)))
        if known is not None:
            constant, terms = None, [(self.number(Fraction(1)), known)]
        c = -1 if constant is None else constant
        self.instructions.append(Instruction(Op.ADVANCE, state, c=c, terms=tuple(terms)))

    def multiply(self, a: int, b: int) -> int:
        left, right = self.registers[a], self.registers[b]
        static = left.static and right.static
        if a == b and not static:
            return self.emit((Op.SQUARE, a), False, left.tangent, 2 * left.degree, op=Op.SQUARE, a=a)
        # Sums over orders run over a, so a is the shorter series; where that is no help, b is the one without tangents.
        a, b = sorted((a, b), key=lambda r: (self.registers[r].degree, not self.registers[r].tangent, r))
        tangent = left.tangent or right.tangent
        return self.emit((Op.MULTIPLY, a, b), static, tangent, left.degree + right.degree, op=Op.MULTIPLY, a=a, b=b)

    def divide(self, a: int, b: int) -> int:
        left, right = self.registers[a], self.registers[b]
        static = left.static and right.static
        return self.emit((Op.DIVIDE, a, b), static, left.tangent or right.tangent, INFINITE, op=Op.DIVIDE, a=a, b=b)

    def quadrature(self, function: Elementary, a: int, exponent: int = -1) -> int:
        """Register of F(a); its integrand is attached by `integrand` (it may refer to F(a) itself)."""
        tangent = self.registers[a].tangent or (exponent >= 0 and self.registers[exponent].tangent)
        static = self.registers[a].static
        fields = {"op": Op.QUADRATURE, "a": a, "c": exponent, "function": function}
        return self.emit((Op.QUADRATURE, function, a, exponent), static, tangent, INFINITE, **fields)

    def integrand(self, register: int, integrand: int) -> None:
        self.made[register].b = integrand

    # -- arithmetic on static values

    def scalar_product(self, left: Scalar, right: Scalar) -> Scalar:
        factor = left.factor * right.factor
        if not factor:
            return ZERO
        if left.register is None or right.register is None:
            return Scalar(factor, right.register if left.register is None else left.register)
        return Scalar(factor, self.multiply(left.register, right.register))

    def scalar_inverse(self, scalar: Scalar) -> Scalar:
        if not scalar:
            raise ModelError("a division by zero")
        if scalar.register is None:
            return Scalar(1 / scalar.factor, None)
        return Scalar(1 / scalar.factor, self.divide(self.number(Fraction(1)), scalar.register))

    def scalar_sum(self, scalars: Iterable[Scalar]) -> Scalar:
        total: dict[int | None, Fraction] = {}
        for scalar in scalars:
            total[scalar.register] = total.get(scalar.register, Fraction(0)) + scalar.factor
        total = {register: factor for register, factor in total.items() if factor}
        if not total:
            return ZERO
        if len(total) == 1:
            ((register, factor),) = total.items()
            return Scalar(factor, register)
        offset = total.pop(None, None)
        terms = [(self.number(factor), register) for register, factor in total.items() if register is not None]
        constant = None if offset is None else self.number(offset)
        return Scalar(Fraction(1), self.linear(static=True, constant=constant, terms=terms))

    # -- arithmetic on affine values

    def scale(self, value: Affine, scalar: Scalar) -> Affine:
        if not scalar:
            return Affine(ZERO, {})
        terms = {register: self.scalar_product(scalar, c) for register, c in value.terms.items()}
        return Affine(self.scalar_product(scalar, value.constant), terms)

    def sum(self, values: list[tuple[int, Affine]]) -> Affine:
        sign = {1: ONE, -1: Scalar(Fraction(-1), None)}
        collected: dict[int, list[Scalar]] = {}
        for direction, value in values:
            for register, coefficient in value.terms.items():
                collected.setdefault(register, []).append(self.scalar_product(sign[direction], coefficient))
        constant = self.scalar_sum(self.scalar_product(sign[s], value.constant) for s, value in values)
        terms = {register: self.scalar_sum(coefficients) for register, coefficients in collected.items()}
        return Affine(constant, {register: c for register, c in terms.items() if c})

    def product(self, factors: list[tuple[int, Affine]]) -> Affine:
        scalar = ONE
        for exponent, value in factors:
            if not value.terms:
                part = value.constant if exponent > 0 else self.scalar_inverse(value.constant)
                scalar = self.scalar_product(scalar, part)
        varying = [(exponent, value) for exponent, value in factors if value.terms]
        if not scalar or not varying:
            return Affine(scalar, {})
        if len(varying) == 1 and varying[0][0] > 0:
            return self.scale(varying[0][1], scalar)
        above: list[int] = []
        below: list[int] = []
        for exponent, value in varying:
            if not value.constant and len(value.terms) == 1:
                ((register, coefficient),) = value.terms.items()
                part = coefficient if exponent > 0 else self.scalar_inverse(coefficient)
                scalar = self.scalar_product(scalar, part)
            else:
                register = self.series_register(value)
            (above if exponent > 0 else below).append(register)
        return Affine(ZERO, {self.ratio(above, below): scalar})

    def ratio(self, above: list[int], below: list[int]) -> int:
        if not below:
            return self.chain(above)
        numerator = self.chain(above) if above else self.number(Fraction(1))
        apart = [register for register in below if self.saturates(register)]
        plain = [register for register in below if register not in apart]
        for divisor in ([self.chain(plain)] if plain else []) + sorted(apart):
            numerator = self.divide(numerator, divisor)
        return numerator

    def saturates(self, register: int) -> bool:
        """Whether a register is 1 + x^n: divisions by it are kept apart, for kernels to tell where they matter."""
        made, one = self.made.get(register), self.numbers.get(Fraction(1))
        if made is None or made.op != Op.LINEAR or made.c != one or len(made.terms) != 1:
            return False
        factor, source = made.terms[0]
        return factor == one and source in self.made and self.made[source].function == Elementary.BOUNDED

    def chain(self, registers: list[int]) -> int:
        """The product of series, powers first, in an order that equal products share."""
        powers = [self.integer_power(r, registers.count(r)) for r in sorted(set(registers))]
        product = powers[0]
        for register in powers[1:]:
            product = self.multiply(product, register)
        return product

    def integer_power(self, register: int, exponent: int) -> int:
        if exponent == 1:
            return register
        half = self.integer_power(register, exponent // 2)
        square = self.multiply(half, half)
        return self.multiply(square, register) if exponent % 2 else square

    # -- expressions

    def lower(self, expression: Expression) -> Affine:
        if expression not in self.lowered:
            self.lowered[expression] = self._lower(expression)
        return self.lowered[expression]

    def _lower(self, expression: Expression) -> Affine:
        match expression:
            case Number(value):
                return Affine(Scalar(value, None), {})
            case Symbol(name):
                return self.names[name]
            case Sum(terms):
                return self.sum([(sign, self.lower(term)) for sign, term in terms])
            case Product(factors):
                return self.product([(exponent, self.lower(factor)) for exponent, factor in self.balanced(factors)])
            case Bounded(base, exponent):
                return self.apply(
                    Elementary.BOUNDED, self.lower(base), self.static_register(self.lower(exponent).constant)
                )
            case Power(base, exponent):
                return self.power(self.lower(base), self.lower(exponent))
            case Function(name, argument):
                return self.function(name, self.lower(argument))
            case Delay():
                raise ModelError(f"{clipped(str(expression))} is of the past, and has no Taylor series of its own")
            case _:
                raise ModelError(f"{clipped(str(expression))} switches, and has no Taylor series of its own")

    def balanced(self, factors: Factors) -> Factors:
        """The factors of a product in the form in which doubles hold them."""
        return balanced(factors, self.is_real, lambda expression: not self.lower(expression).terms)

    def is_real(self, exponent: Expression) -> bool:
        """Whether a power with this exponent is an elementary function of its base."""
        value = self.lower(exponent)
        return not value.terms and (value.constant.register is not None or value.constant.factor.denominator > 2)

    def power(self, base: Affine, exponent: Affine) -> Affine:
        if exponent.terms:
            return self.function("exp", self.product([(1, exponent), (1, self.function("log", base))]))
        if exponent.constant.register is None:
            fixed = exponent.constant.factor
            if fixed.denominator == 1:
                return self.whole_power(base, int(fixed))
            if fixed.denominator == 2:
                return self.whole_power(self.function("sqrt", base), fixed.numerator)
        c = self.static_register(exponent.constant)
        return self.apply(Elementary.POWER, base, c)

    def whole_power(self, base: Affine, exponent: int) -> Affine:
        if exponent == 0:
            return Affine(ONE, {})
        if not base.terms and base.constant.register is None:
            check_size(base.constant.factor, abs(exponent))
        return self.product([(1 if exponent > 0 else -1, base)] * abs(exponent))

    def function(self, name: str, argument: Affine) -> Affine:
        return self.apply(Elementary[name.upper()], argument)

    def apply(self, function: Elementary, argument: Affine, exponent: int = -1) -> Affine:
        if argument.terms:
            a = self.series_register(argument)
        else:
            a = self.static_register(argument.constant)
        fresh = (Op.QUADRATURE, function, a, exponent) not in self.seen
        register = self.quadrature(function, a, exponent)
        if not argument.terms:
            return Affine(Scalar(Fraction(1), register), {})
        if fresh:
            self.integrand(register, self.series_register(self.derivative(function, a, register, exponent)))
        return Affine(ZERO, {register: ONE})

    def value_of(self, register: int) -> Affine:
        if self.registers[register].static:
            return Affine(Scalar(Fraction(1), register), {})
        return Affine(ZERO, {register: ONE})

    def derivative(self, function: Elementary, a: int, register: int, exponent: int) -> Affine:
        """F'(a) as a value on the tape, where `register` holds F(a)."""
        argument, value = self.value_of(a), self.value_of(register)
        one, two = Affine(ONE, {}), Affine(Scalar(Fraction(2), None), {})
        match function:
            case Elementary.EXP:
                return value
            case Elementary.LOG:
                return self.product([(-1, argument)])
            case Elementary.SIN:
                return self.apply(Elementary.COS, argument)
            case Elementary.COS:
                return self.sum([(-1, self.apply(Elementary.SIN, argument))])
            case Elementary.SINH:
                return self.apply(Elementary.COSH, argument)
            case Elementary.COSH:
                return self.apply(Elementary.SINH, argument)
            case Elementary.TAN:
                return self.sum([(1, one), (1, self.product([(1, value), (1, value)]))])
            case Elementary.TANH:
                return self.sum([(1, one), (-1, self.product([(1, value), (1, value)]))])
            case Elementary.SQRT:
                return self.product([(-1, two), (-1, value)])
            case Elementary.POWER | Elementary.BOUNDED:
                power = Affine(Scalar(Fraction(1), exponent), {})
                return self.product([(1, power), (1, value), (-1, argument)])
        raise AssertionError(function)

    # -- models

    def placed(self, name: str, expression: Expression) -> Affine:
        """An expression of a model; what is wrong with it is told with its name."""
        try:
            return self.lower(expression)
        except ModelError as error:
            raise ModelError(f"'{name}': {error}") from None

    def tape(self, model: Model | Equations, free_inputs: bool, switches: Sequence[Expression] = ()) -> Tape:
        """The tape of a model, and of functions whose signs are watched along its solutions."""
        self.names.update((name, Affine(Scalar(value, None), {})) for name, value in model.fixed.items())
        for name in model.parameters:
            self.leaf(name, static=True, tangent=True)
        for name, rate in model.states.items():
            self.leaf(name, static=constant(rate) == 0, tangent=True)
        time = self.leaf(TIME, static=False, tangent=False, degree=1)
        for name, expression in model.inputs.items():
            if free_inputs or expression is None:
                # Free inputs move along with unknowns where roots are followed, and then have tangents too.
                self.leaf(name, static=False, tangent=free_inputs)
            else:
                self.names[name] = self.placed(name, expression)
        rates = {name: self.placed(name, rate) for name, rate in model.states.items() if constant(rate) != 0}
        outputs = [self.series_register(self.placed(*output)) for output in model.outputs.items()]
        initial = [
            self.static_register(self.lower(model.initial[name]).constant) if name in model.initial else None
            for name in model.states
        ]
        for name, lowered in rates.items():
            self.advance(self.leaf_register(name), lowered)
        given = [name for name, expression in model.inputs.items() if free_inputs or expression is None]
        watched = [self.series_register(self.lower(switch)) for switch in switches]
        return self.assemble(time, *self.leaves(model, given), outputs, initial, watched)

    def maps(self, model: Model | Equations, groups: Sequence[Sequence[Expression]]) -> tuple[Tape, list[np.ndarray]]:
        """The tape of groups of expressions as functions of parameters, states, inputs and time, all of them static;
        its outputs are the expressions of all groups, and each group has its own instructions."""
        self.names.update((name, Affine(Scalar(value, None), {})) for name, value in model.fixed.items())
        given = [name for name, expression in model.inputs.items() if expression is None]
        for name in (*model.parameters, *model.states, *given):
            self.leaf(name, static=True, tangent=True)
        time = self.leaf(TIME, static=True, tangent=True)
        for name, expression in model.inputs.items():
            if expression is not None:
                self.names[name] = self.lower(expression)
        roots = [[self.static_register(self.lower(one).constant) for one in group] for group in groups]
        together = [register for group in roots for register in group]
        tape = self.assemble(time, *self.leaves(model, given), together, [None] * len(model.states), [])
        writers = self.writers()
        order = {i: place for place, i in enumerate(sorted(self.needed(together, writers)))}
        groups_of = (sorted(order[i] for i in self.needed(group, writers)) for group in roots)
        return tape, [np.array(own, dtype=np.int64) for own in groups_of]

    def leaves(self, model: Model | Equations, inputs: list[str]) -> tuple[list[int], list[int], list[int]]:
        """The registers of parameters, states and inputs."""
        parameters, states = map(self.leaf_register, model.parameters), map(self.leaf_register, model.states)
        return list(parameters), list(states), list(map(self.leaf_register, inputs))

    def leaf_register(self, name: str) -> int:
        value = self.names[name]
        register = value.constant.register if not value.terms else next(iter(value.terms))
        assert register is not None
        return register
