"""Tape: a model as one straight-line program, free of common subexpressions.

The program works on registers.  A *static* register holds a value that does not change in time (numbers, parameters,
states with zero right-hand side, and what is made of them); a *series* register holds a truncated Taylor series in
time.  Six operations suffice:

    LINEAR      out = c + sum_i c_i s_i          with static c, c_i
    ADVANCE     d out/dt = c + sum_i c_i s_i     one for every state that moves
    MULTIPLY    out = a b
    SQUARE      out = a^2
    DIVIDE      out = a / b                      a may be static
    QUADRATURE  out = F(a),  d out = b da        every elementary function F, by its own differential equation

Because QUADRATURE states the differential equation of a function, the same tape runs over any number type that can
divide, given F at order zero.  `lowering` translates a model; `algebraic` does so for exact arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from odejet.errors import ModelError

if TYPE_CHECKING:
    from odejet.model import Model

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
    BOUNDED = 10  # a power that is constant where it is too large to be followed


class Column(IntEnum):
    """The columns of `Tape.code`."""

    OP = 0
    OUT = 1
    A = 2
    B = 3
    C = 4  # LINEAR: the static constant or -1; POWER: the static exponent
    FUNCTION = 5
    PLAIN = 6  # MULTIPLY: b carries no tangents
    REACH = 7  # MULTIPLY, QUADRATURE: the degree in time of a, where the sum over orders may end
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
    switches: np.ndarray  # registers of switching functions
    layouts: dict = field(default_factory=dict, repr=False, compare=False)  # how kernels have laid it out

    @cached_property
    def quadratures(self) -> np.ndarray:
        """The instructions that compute elementary functions."""
        return self.code[self.code[:, Column.OP] == Op.QUADRATURE]

    @cached_property
    def guards(self) -> np.ndarray:
        """Registers that keep their sign along a solution: arguments and values of roots, arguments of logarithms."""
        series = self.code[self.split[0] : self.split[1]]
        quadratures = series[series[:, Column.OP] == Op.QUADRATURE]
        roots = np.isin(quadratures[:, Column.FUNCTION], (Elementary.SQRT, Elementary.POWER, Elementary.BOUNDED))
        branched = roots | (quadratures[:, Column.FUNCTION] == Elementary.LOG)
        return np.unique(np.r_[quadratures[branched, Column.A], quadratures[roots, Column.OUT]])

    @cached_property
    def work(self) -> np.ndarray:
        """The cost of a Taylor step, in vector operations: constant, linear and quadratic in its order; and that of
        evaluating the states at one time, per order."""
        series = self.code[self.split[0] : self.split[1]]
        terms = int(np.sum(series[:, Column.END] - series[:, Column.BEGIN]))
        return np.array([300.0, 3 * len(series) + terms, self.products, 0.7 * len(self.states)])

    @cached_property
    def moving(self) -> int:
        """How many states are no static numbers."""
        return int(np.count_nonzero(self.states >= self.statics))

    @cached_property
    def constant_values(self) -> np.ndarray:
        return np.array([float(value) for _, value in self.constants])


def build(model: Model, free_inputs: bool = False) -> Tape:
    """The tape of a model.

    Sampled inputs are registers to be filled; others too with `free_inputs`, and else their functions of `t`.
    """
    from odejet.model.lowering import Lowering

    return Lowering().tape(model, free_inputs)


MAX_BITS = 4096
"""Exact numbers beyond this size are refused: nobody writes them, and nested powers of them would never end."""


def check_size(value: Fraction, exponent: int = 1) -> None:
    """Refuse a number whose power is too large for a tape."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) * exponent > MAX_BITS:
        raise ModelError("a number in the model is out of range; write it as a decimal")
