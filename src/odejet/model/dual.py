"""Dual numbers: values with their gradients, run through an expression for its exact derivatives.

A value is a number or an array of any shape; its gradient has one axis more, the first, for what it is differentiated
by.  Where an expression has no value the numbers are NaN or infinite, and nothing is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.model.expressions import COMPARED, Choice, Comparison, Condition, Expression, Logic, Piecewise, evaluate


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


def selected(switch: Choice | Piecewise | Condition, parts: Sequence[Any]) -> Any:
    """The value of a switch from those of its children, for every entry of an array by itself; conditions look at
    values alone."""
    values = [part.value if isinstance(part, Dual) else part for part in parts]
    match switch:
        case Choice("abs"):
            return _where([np.less(values[0], 0)], [-parts[0], parts[0]])
        case Choice("sign"):
            return np.sign(values[0])
        case Choice("min" | "max"):
            better, best = (np.less if switch.name == "min" else np.greater), parts[0]
            for part in parts[1:]:
                first, second = (one.value if isinstance(one, Dual) else one for one in (part, best))
                best = _where([better(first, second)], [part, best])
            return best
        case Choice("floor" | "ceil"):
            return getattr(np, switch.name)(values[0])
        case Comparison(relation):
            return COMPARED[relation](*values)
        case Logic("not"):
            return np.logical_not(values[0])
        case Logic(word):
            return (np.logical_and if word == "and" else np.logical_or).reduce(np.broadcast_arrays(*values))
        case Piecewise(branches):
            return _where(values[len(branches) :], parts[: len(branches)])
    raise AssertionError(switch)


def _where(conditions: Sequence[Any], branches: Sequence[Any]) -> Any:
    """The branch whose condition holds first, or the last, for every entry by itself."""
    if not any(isinstance(branch, Dual) for branch in branches):
        return np.select(np.broadcast_arrays(*conditions), branches[:-1], branches[-1])
    values = [branch.value if isinstance(branch, Dual) else branch for branch in branches]
    gradients = [branch.gradient if isinstance(branch, Dual) else 0.0 for branch in branches]
    value, gradient = values[-1], np.asarray(gradients[-1])
    for k in range(len(conditions) - 1, -1, -1):
        value = np.where(conditions[k], values[k], value)
        gradient = np.where(conditions[k], gradients[k], gradient)
    return Dual(value, gradient)


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
            found = evaluate(expression, duals, Functions, choose=selected)
        except (ArithmeticError, ValueError):  # in a part that holds numbers only
            found = np.nan
    if not isinstance(found, Dual):
        found = Dual(found, np.full((size, *shape), 0.0 if np.all(np.isfinite(found)) else np.nan))
    value = np.broadcast_to(found.value, shape)
    return Dual(value, np.where(np.isfinite(value), np.broadcast_to(found.gradient, (size, *shape)), np.nan))
