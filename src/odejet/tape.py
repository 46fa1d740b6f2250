"""Tape: a model as one straight-line program, free of common subexpressions.

The program works on registers.  A *static* register holds a value that does not change in time (numbers, parameters,
states with zero right-hand side, and what is made of them); a *series* register holds a truncated Taylor series in time.
Six operations suffice:

    LINEAR      out = c + sum_i c_i s_i          with static c, c_i
    ADVANCE     d out/dt = c + sum_i c_i s_i     one for every state that moves
    MULTIPLY    out = a b
    SQUARE      out = a^2
    DIVIDE      out = a / b                      a may be static
    QUADRATURE  out = F(a),  d out = b da        every elementary function F, by its own differential equation

Lowering keeps each value as an affine combination of series with static coefficients, so that products with parameters
cost nothing per order of the series and `k2*r*w` in two equations is one product.  Because QUADRATURE states the
differential equation of a function, the same tape runs over any number type that can divide, given F at order zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from odejet.expressions import (
    TIME,
    Expression,
    Function,
    ModelError,
    Number,
    Power,
    Product,
    Sum,
    Symbol,
    constant,
)

if TYPE_CHECKING:
    from odejet.model import Model

MAX_BITS = 4096
"""Exact numbers beyond this size are refused: nobody writes them, and nested powers of them would never end."""

INFINITE = 1 << 20
"""The degree in time of a series that is not a polynomial."""


class Op(IntEnum):
    LINEAR = 0
    ADVANCE = 1
    MULTIPLY = 2
    SQUARE = 3
    DIVIDE = 4
    QUADRATURE = 5


class Elementary(IntEnum):
    """The function F of a QUADRATURE."""

    EXP = 0
    LOG = 1
    SIN = 2
    COS = 3
    TAN = 4
    SINH = 5
    COSH = 6
    TANH = 7
    SQRT = 8
    POWER = 9


class Column(IntEnum):
    """The columns of `Tape.code`."""

    OP = 0
    OUT = 1
    A = 2
    B = 3
    C = 4  # LINEAR: the static constant or -1; POWER: the static exponent
    FUNCTION = 5
    PLAIN = 6  # MULTIPLY: b carries no tangents
    REACH = 7  # the degree in time of a
    BEGIN = 8  # LINEAR: its slice of `Tape.terms`
    END = 9


@dataclass(frozen=True)
class Tape:
    """A compiled model.  Registers below `statics` are static, the others are series."""

    code: np.ndarray
    terms: np.ndarray  # rows (coefficient register, source register, coefficient has tangents)
    statics: int
    registers: int
    constants: tuple[tuple[int, Fraction], ...]
    parameters: np.ndarray  # register of each parameter
    states: np.ndarray  # register of each state
    initial: np.ndarray  # static register of each state's known initial value, -1 where it is unknown
    inputs: np.ndarray  # registers to be filled with given input series
    time: int  # register of t
    outputs: np.ndarray  # register of each output
    split: np.ndarray  # code[:split[0]] is static, code[:split[1]] serves the rates, the rest only the outputs
    observe: np.ndarray  # the instructions that outputs at a single time need
    products: int  # series-by-series products per pass: the quadratic part of the cost
    layouts: dict = field(default_factory=dict, repr=False, compare=False)  # how kernels have laid it out

    @cached_property
    def quadratures(self) -> np.ndarray:
        """The instructions that compute elementary functions."""
        return self.code[self.code[:, Column.OP] == Op.QUADRATURE]

    @cached_property
    def guards(self) -> np.ndarray:
        """Registers that must not change sign along a solution: arguments and values of functions with a branch point."""
        series = self.code[self.split[0] : self.split[1]]
        quadratures = series[series[:, Column.OP] == Op.QUADRATURE]
        roots = np.isin(quadratures[:, Column.FUNCTION], (Elementary.SQRT, Elementary.POWER))
        branched = roots | (quadratures[:, Column.FUNCTION] == Elementary.LOG)
        return np.unique(np.r_[quadratures[branched, Column.A], quadratures[roots, Column.OUT]])

    @cached_property
    def work(self) -> np.ndarray:
        """The cost of a Taylor step, in vector operations: constant, linear and quadratic in its order; and of evaluating
        the states at one time, per order."""
        series = self.code[self.split[0] : self.split[1]]
        terms = int(np.sum(series[:, Column.END] - series[:, Column.BEGIN]))
        return np.array([30.0, 3 * len(series) + terms, self.products, 0.7 * len(self.states)])

    @cached_property
    def constant_values(self) -> np.ndarray:
        return np.array([float(value) for _, value in self.constants])


def build(model: Model, free_inputs: bool = False) -> Tape:
    """The tape of a model; with `free_inputs` inputs are registers to be filled, otherwise their functions of `t`."""
    lowering = _Lowering()
    for name, value in model.fixed.items():
        lowering.names[name] = _Affine(_Scalar(value, None), {})
    for name in model.parameters:
        lowering.leaf(name, static=True, tangent=True)
    for name, rate in model.states.items():
        lowering.leaf(name, static=constant(rate) == 0, tangent=True)
    time = lowering.leaf(TIME, static=False, tangent=False, degree=1)
    for name, expression in model.inputs.items():
        if free_inputs:
            lowering.leaf(name, static=False, tangent=False)
        else:
            lowering.names[name] = lowering.lower(expression)
    rates = {name: lowering.lower(rate) for name, rate in model.states.items() if constant(rate) != 0}
    outputs = [lowering.series_register(lowering.lower(output)) for output in model.outputs.values()]
    initial = [
        lowering.static_register(lowering.lower(model.initial[name]).constant) if name in model.initial else None
        for name in model.states
    ]
    for name, rate in rates.items():
        lowering.advance(lowering.leaf_register(name), rate)
    return lowering.assemble(model, time, outputs, initial, list(model.inputs) if free_inputs else [])


# --- lowering ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scalar:
    """A static value: an exact factor times a static register (or one)."""

    factor: Fraction
    register: int | None

    def __bool__(self) -> bool:
        return self.factor != 0


@dataclass(frozen=True)
class _Affine:
    """constant + sum of coefficient * series register."""

    constant: _Scalar
    terms: dict[int, _Scalar]


_ZERO = _Scalar(Fraction(0), None)
_ONE = _Scalar(Fraction(1), None)


@dataclass
class _Register:
    static: bool
    tangent: bool
    degree: int = INFINITE


@dataclass
class _Instruction:
    op: Op
    out: int
    a: int = -1
    b: int = -1
    c: int = -1
    function: int = -1
    terms: tuple[tuple[int, int], ...] = ()

    def reads(self) -> Iterable[int]:
        yield from (register for register in (self.a, self.b, self.c) if register >= 0)
        for coefficient, source in self.terms:
            yield coefficient
            yield source


@dataclass
class _Lowering:
    """Value numbering: equal right-hand sides get equal registers."""

    registers: list[_Register] = field(default_factory=list)
    instructions: list[_Instruction] = field(default_factory=list)
    names: dict[str, _Affine] = field(default_factory=dict)
    numbers: dict[Fraction, int] = field(default_factory=dict)
    seen: dict[tuple, int] = field(default_factory=dict)
    lowered: dict[Expression, _Affine] = field(default_factory=dict)

    # -- registers and instructions

    def new(self, static: bool, tangent: bool, degree: int = INFINITE) -> int:
        self.registers.append(_Register(static, tangent, 0 if static else min(degree, INFINITE)))
        return len(self.registers) - 1

    def leaf(self, name: str, static: bool, tangent: bool, degree: int = INFINITE) -> int:
        register = self.new(static, tangent, degree)
        unit = _Scalar(Fraction(1), register)
        self.names[name] = _Affine(unit, {}) if static else _Affine(_ZERO, {register: _ONE})
        return register

    def number(self, value: Fraction) -> int:
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
            raise ModelError("a number in the model is out of range; write it as a decimal")
        if value not in self.numbers:
            self.numbers[value] = self.new(static=True, tangent=False)
        return self.numbers[value]

    def emit(self, key: tuple, static: bool, tangent: bool, degree: int, **fields) -> int:
        """The register that holds the value described by `key`, computed once."""
        if key not in self.seen:
            self.seen[key] = register = self.new(static, tangent, degree)
            self.instructions.append(_Instruction(out=register, **fields))
        return self.seen[key]

    def static_register(self, scalar: _Scalar) -> int:
        if scalar.register is None:
            return self.number(scalar.factor)
        if scalar.factor == 1:
            return scalar.register
        return self.linear(static=True, constant=None, terms=[(self.number(scalar.factor), scalar.register)])

    def series_register(self, value: _Affine) -> int:
        if not value.constant and len(value.terms) == 1:
            ((register, coefficient),) = value.terms.items()
            if coefficient == _ONE:
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

    def advance(self, state: int, rate: _Affine) -> None:
        """The equation of a state; a rate that stands in a register already is not computed twice."""
        terms = sorted((self.static_register(coefficient), source) for source, coefficient in rate.terms.items())
        constant = self.static_register(rate.constant) if rate.constant else None
        known = self.seen.get((Op.LINEAR, False, constant, tuple(terms)))
        if known is not None:
            constant, terms = None, [(self.number(Fraction(1)), known)]
        c = -1 if constant is None else constant
        self.instructions.append(_Instruction(Op.ADVANCE, state, c=c, terms=tuple(terms)))

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
        for instruction in reversed(self.instructions):
            if instruction.out == register:
                instruction.b = integrand
                return

    # -- arithmetic on static values

    def scalar_product(self, left: _Scalar, right: _Scalar) -> _Scalar:
        factor = left.factor * right.factor
        if not factor:
            return _ZERO
        if left.register is None or right.register is None:
            return _Scalar(factor, right.register if left.register is None else left.register)
        return _Scalar(factor, self.multiply(left.register, right.register))

    def scalar_inverse(self, scalar: _Scalar) -> _Scalar:
        if not scalar:
            raise ModelError("a division by zero")
        if scalar.register is None:
            return _Scalar(1 / scalar.factor, None)
        return _Scalar(1 / scalar.factor, self.divide(self.number(Fraction(1)), scalar.register))

    def scalar_sum(self, scalars: Iterable[_Scalar]) -> _Scalar:
        total: dict[int | None, Fraction] = {}
        for scalar in scalars:
            total[scalar.register] = total.get(scalar.register, Fraction(0)) + scalar.factor
        total = {register: factor for register, factor in total.items() if factor}
        if not total:
            return _ZERO
        if len(total) == 1:
            ((register, factor),) = total.items()
            return _Scalar(factor, register)
        offset = total.pop(None, None)
        terms = [(self.number(factor), register) for register, factor in total.items() if register is not None]
        constant = None if offset is None else self.number(offset)
        return _Scalar(Fraction(1), self.linear(static=True, constant=constant, terms=terms))

    # -- arithmetic on affine values

    def scale(self, value: _Affine, scalar: _Scalar) -> _Affine:
        if not scalar:
            return _Affine(_ZERO, {})
        terms = {register: self.scalar_product(scalar, c) for register, c in value.terms.items()}
        return _Affine(self.scalar_product(scalar, value.constant), terms)

    def sum(self, values: list[tuple[int, _Affine]]) -> _Affine:
        sign = {1: _ONE, -1: _Scalar(Fraction(-1), None)}
        collected: dict[int, list[_Scalar]] = {}
        for direction, value in values:
            for register, coefficient in value.terms.items():
                collected.setdefault(register, []).append(self.scalar_product(sign[direction], coefficient))
        constant = self.scalar_sum(self.scalar_product(sign[s], value.constant) for s, value in values)
        terms = {register: self.scalar_sum(coefficients) for register, coefficients in collected.items()}
        return _Affine(constant, {register: c for register, c in terms.items() if c})

    def product(self, factors: list[tuple[int, _Affine]]) -> _Affine:
        scalar = _ONE
        for exponent, value in factors:
            if not value.terms:
                part = value.constant if exponent > 0 else self.scalar_inverse(value.constant)
                scalar = self.scalar_product(scalar, part)
        varying = [(exponent, value) for exponent, value in factors if value.terms]
        if not scalar or not varying:
            return _Affine(scalar, {})
        if len(varying) == 1 and varying[0][0] > 0:
            return self.scale(varying[0][1], scalar)
        above, below = [], []
        for exponent, value in varying:
            if not value.constant and len(value.terms) == 1:
                ((register, coefficient),) = value.terms.items()
                part = coefficient if exponent > 0 else self.scalar_inverse(coefficient)
                scalar = self.scalar_product(scalar, part)
            else:
                register = self.series_register(value)
            (above if exponent > 0 else below).append(register)
        return _Affine(_ZERO, {self.ratio(above, below): scalar})

    def ratio(self, above: list[int], below: list[int]) -> int:
        if not below:
            return self.chain(above)
        numerator = self.chain(above) if above else self.number(Fraction(1))
        return self.divide(numerator, self.chain(below))

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

    def lower(self, expression: Expression) -> _Affine:
        if expression not in self.lowered:
            self.lowered[expression] = self._lower(expression)
        return self.lowered[expression]

    def _lower(self, expression: Expression) -> _Affine:
        match expression:
            case Number(value):
                return _Affine(_Scalar(value, None), {})
            case Symbol(name):
                return self.names[name]
            case Sum(terms):
                return self.sum([(sign, self.lower(term)) for sign, term in terms])
            case Product(factors):
                return self.product([(exponent, self.lower(factor)) for exponent, factor in factors])
            case Power(base, exponent):
                return self.power(self.lower(base), self.lower(exponent))
            case Function(name, argument):
                return self.function(name, self.lower(argument))
        raise AssertionError(expression)

    def power(self, base: _Affine, exponent: _Affine) -> _Affine:
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

    def whole_power(self, base: _Affine, exponent: int) -> _Affine:
        if exponent == 0:
            return _Affine(_ONE, {})
        if not base.terms and base.constant.register is None:
            value = base.constant.factor
            if max(value.numerator.bit_length(), value.denominator.bit_length()) * abs(exponent) > MAX_BITS:
                raise ModelError("a number in the model is out of range; write it as a decimal")
        return self.product([(1 if exponent > 0 else -1, base)] * abs(exponent))

    def function(self, name: str, argument: _Affine) -> _Affine:
        return self.apply(Elementary[name.upper()], argument)

    def apply(self, function: Elementary, argument: _Affine, exponent: int = -1) -> _Affine:
        if argument.terms:
            a = self.series_register(argument)
        else:
            a = self.static_register(argument.constant)
        fresh = (Op.QUADRATURE, function, a, exponent) not in self.seen
        register = self.quadrature(function, a, exponent)
        if not argument.terms:
            return _Affine(_Scalar(Fraction(1), register), {})
        if fresh:
            self.integrand(register, self.series_register(self.derivative(function, a, register, exponent)))
        return _Affine(_ZERO, {register: _ONE})

    def derivative(self, function: Elementary, a: int, register: int, exponent: int) -> _Affine:
        """F'(a) as a value on the tape, where `register` holds F(a)."""
        argument, value = _Affine(_ZERO, {a: _ONE}), _Affine(_ZERO, {register: _ONE})
        one, two = _Affine(_ONE, {}), _Affine(_Scalar(Fraction(2), None), {})
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
            case Elementary.POWER:
                power = _Affine(_Scalar(Fraction(1), exponent), {})
                return self.product([(1, power), (1, value), (-1, argument)])
        raise AssertionError(function)

    # -- assembly

    def needed(self, roots: Iterable[int]) -> set[int]:
        """The instructions (by position) on which the registers `roots` depend."""
        by_out = {step.out: i for i, step in enumerate(self.instructions) if step.op != Op.ADVANCE}
        found: set[int] = set()
        stack = list(roots)
        while stack:
            i = by_out.get(stack.pop())
            if i is not None and i not in found:
                found.add(i)
                stack.extend(self.instructions[i].reads())
        return found

    def assemble(
        self,
        model: Model,
        time: int,
        outputs: list[int],
        initial: list[int | None],
        inputs: list[str],
    ) -> Tape:
        """Drop what nobody reads, number static registers first, and lay the program out in arrays."""
        advances = {i for i, instruction in enumerate(self.instructions) if instruction.op == Op.ADVANCE}
        for_rates = advances | self.needed(r for i in advances for r in self.instructions[i].reads())
        for_outputs = self.needed(outputs)
        for_initial = self.needed(register for register in initial if register is not None)
        everything = for_rates | for_outputs | for_initial
        static = {i for i in everything if self.registers[self.instructions[i].out].static}
        order = sorted(static) + sorted(for_rates - static) + sorted(for_outputs - for_rates - static)
        parameters, states, given = (
            [self.leaf_register(name) for name in kind] for kind in (model.parameters, model.states, inputs)
        )
        used = {r for i in order for r in (self.instructions[i].out, *self.instructions[i].reads())}
        used |= {time, *parameters, *states, *given, *outputs}
        used |= {register for register in initial if register is not None}
        numbering = {old: new for new, old in enumerate(sorted(used, key=lambda r: (not self.registers[r].static, r)))}

        terms: list[tuple[int, int, int]] = []
        rows = [self.encode(self.instructions[i], numbering, terms) for i in order]
        code = np.array(rows, dtype=np.int64).reshape(len(order), len(Column))
        position = {i: place for place, i in enumerate(order)}
        series = code[len(static) :]
        quadratic = np.isin(series[:, Column.OP], (Op.MULTIPLY, Op.SQUARE, Op.DIVIDE, Op.QUADRATURE))

        def renumber(registers: Iterable[int | None]) -> np.ndarray:
            return np.array([-1 if r is None else numbering[r] for r in registers], dtype=np.int64)

        return Tape(
            code=code,
            terms=np.array(terms, dtype=np.int64).reshape(len(terms), 3),
            statics=sum(self.registers[r].static for r in used),
            registers=len(used),
            constants=tuple((numbering[r], value) for value, r in self.numbers.items() if r in used),
            parameters=renumber(parameters),
            states=renumber(states),
            initial=renumber(initial),
            inputs=renumber(given),
            time=numbering[time],
            outputs=renumber(outputs),
            split=np.array([len(static), len(static) + len(for_rates - static)], dtype=np.int64),
            observe=np.array(sorted(position[i] for i in for_outputs - static), dtype=np.int64),
            products=int(np.sum(quadratic & (series[:, Column.REACH] > 2))),
        )

    def leaf_register(self, name: str) -> int:
        value = self.names[name]
        register = value.constant.register if not value.terms else next(iter(value.terms))
        assert register is not None
        return register

    def encode(self, instruction: _Instruction, numbering: dict[int, int], terms: list) -> list[int]:
        begin = len(terms)
        for coefficient, source in instruction.terms:
            terms.append((numbering[coefficient], numbering[source], int(self.registers[coefficient].tangent)))
        row = [0] * len(Column)
        row[Column.OP], row[Column.OUT] = instruction.op, numbering[instruction.out]
        row[Column.A] = numbering.get(instruction.a, -1)
        row[Column.B] = numbering.get(instruction.b, -1)
        row[Column.C] = numbering.get(instruction.c, -1)
        row[Column.FUNCTION] = instruction.function
        row[Column.PLAIN] = int(instruction.b >= 0 and not self.registers[instruction.b].tangent)
        row[Column.REACH] = self.registers[instruction.a].degree if instruction.a >= 0 else INFINITE
        row[Column.BEGIN], row[Column.END] = begin, len(terms)
        return row
