"""Dual numbers: values with their gradients, run through an expression for its exact derivatives.

A value is a number or an array of any shape; its gradient has one axis more, the first, for what it is differentiated
by.  Where an expression has no value the numbers are NaN or infinite, and nothing is raised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.model.expressions import Expression, evaluate


@dataclass(frozen=True, eq=False)
class Dual:
    """A value and its gradient."""

    value: Any
    gradient: np.ndarray

    __array_ufunc__ = None  # NumPy's numbers leave the arithmetic to this class

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.gradient)

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.gradient + other.gradient)
        return Dual(self.value + other, self.gradient)

    def __sub__(self, other: Any) -> Dual:
        return self + (-other)

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value * other.value, self.value * other.gradient + other.value * self.gradient)
        return Dual(self.value * other, other * self.gradient)

    def __truediv__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            ratio = np.divide(self.value, other.value)
            return Dual(ratio, (self.gradient - ratio * other.gradient) / other.value)
        return Dual(np.divide(self.value, other), np.divide(self.gradient, other))

    def __pow__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Functions.exp(other * Functions.log(self))
        slope = other * np.power(self.value, other - 1.0) if other else 0.0
        return Dual(np.power(self.value, float(other)), slope * self.gradient)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Dual:
        return -self + other

    def __rtruediv__(self, other: Any) -> Dual:
        return Dual(np.divide(other, self.value), (-np.divide(other, np.square(self.value))) * self.gradient)

    def __rpow__(self, other: Any) -> Dual:
        return Functions.exp(self * np.log(other))

    # Switches look at the value alone.

    def __float__(self) -> float:
        return float(self.value)

    def __lt__(self, other: Any) -> Any:
        return self.value < _value(other)

    def __le__(self, other: Any) -> Any:
        return self.value <= _value(other)

    def __gt__(self, other: Any) -> Any:
        return self.value > _value(other)

    def __ge__(self, other: Any) -> Any:
        return self.value >= _value(other)

    def __floor__(self) -> int:
        return math.floor(self.value)

    def __ceil__(self) -> int:
        return math.ceil(self.value)


def _value(one: Any) -> Any:
    return one.value if isinstance(one, Dual) else one


def _lifted(function: Any, slope: Any) -> Any:
    """A function of numbers, and of dual numbers by its derivative."""

    def apply(argument: Any) -> Any:
        if not isinstance(argument, Dual):
            return function(argument)
        return Dual(function(argument.value), slope(argument.value) * argument.gradient)

    return staticmethod(apply)


class Functions:
    """The elementary functions of dual numbers."""

    exp = _lifted(np.exp, np.exp)
    log = _lifted(np.log, lambda x: np.divide(1.0, x))
    sin = _lifted(np.sin, np.cos)
    cos = _lifted(np.cos, lambda x: -np.sin(x))
    tan = _lifted(np.tan, lambda x: 1 + np.tan(x) ** 2)
    sinh = _lifted(np.sinh, np.cosh)
    cosh = _lifted(np.cosh, np.sinh)
    tanh = _lifted(np.tanh, lambda x: 1 - np.tanh(x) ** 2)
    sqrt = _lifted(np.sqrt, lambda x: np.divide(0.5, np.sqrt(x)))


def differentiated(expression: Expression, values: Mapping[str, Any], by: Mapping[str, int], size: int) -> Dual:
    """An expression with its gradient by `size` quantities, of which names have these places."""
    rows = np.eye(size)
    shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
    axes = (slice(None), *([None] * len(shape)))
    duals = {
        name: Dual(np.float64(value) if np.ndim(value) == 0 else value, rows[by[name]][axes]) if name in by else value
        for name, value in values.items()
    }
    with np.errstate(all="ignore"):
        try:
            found = evaluate(expression, duals, Functions)
        except (ArithmeticError, ValueError):  # in a part that holds numbers only
            found = np.nan
    if not isinstance(found, Dual):
        found = Dual(found, np.full((size, *shape), 0.0 if np.all(np.isfinite(found)) else np.nan))
    value = np.broadcast_to(found.value, shape)
    return Dual(value, np.where(np.isfinite(value), np.broadcast_to(found.gradient, (size, *shape)), np.nan))
