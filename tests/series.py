"""Plain truncated power series with tangents over any exact field, to compare the kernels with.

Written for clarity alone: every order evaluates the whole model anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from odejet.model import Model
from odejet.model.expressions import evaluate

ORDER = 0  # the truncation order of all series in an evaluation


@dataclass(frozen=True)
class Dual:
    """A number with tangents."""

    value: Any
    tangents: tuple[Any, ...]

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, tuple(a + b for a, b in zip(self.tangents, other.tangents, strict=True)))

    def __mul__(self, other: Dual) -> Dual:
        pairs = zip(self.tangents, other.tangents, strict=True)
        return Dual(self.value * other.value, tuple(a * other.value + self.value * b for a, b in pairs))

    def inverse(self) -> Dual:
        inverse = 1 / self.value
        return Dual(inverse, tuple(-t * inverse * inverse for t in self.tangents))

    def scaled(self, factor: Any) -> Dual:
        return Dual(self.value * factor, tuple(t * factor for t in self.tangents))


class Series:
    """A truncated series whose coefficients are duals; `width` tangents each."""

    width = 0

    def __init__(self, coefficients: list[Dual] | int) -> None:
        if isinstance(coefficients, int):
            coefficients = [constant(Fraction(coefficients), Series.width)]
        missing = ORDER + 1 - len(coefficients)
        self.c = [*coefficients[: ORDER + 1], *[constant(Fraction(0), Series.width)] * missing]

    def __add__(self, other: Series) -> Series:
        return Series([a + b for a, b in zip(self.c, other.c, strict=True)])

    def __neg__(self) -> Series:
        return self * -1

    def __sub__(self, other: Series) -> Series:
        return self + -other

    def __mul__(self, other: Series | int) -> Series:
        other = other if isinstance(other, Series) else Series(other)
        rows = []
        for k in range(ORDER + 1):
            total = constant(Fraction(0), Series.width)
            for j in range(k + 1):
                total = total + self.c[j] * other.c[k - j]
            rows.append(total)
        return Series(rows)

    def __truediv__(self, other: Series) -> Series:
        quotient: list[Dual] = []
        for k in range(ORDER + 1):
            total = self.c[k]
            for j in range(1, k + 1):
                total = total + (other.c[j] * quotient[k - j]).scaled(-1)
            quotient.append(total * other.c[0].inverse())
        return Series(quotient)

    def __pow__(self, exponent: Series) -> Series:
        power = exponent.c[0].value
        assert power == int(power)
        result = Series(1)
        for _ in range(abs(int(power))):
            result = result * self
        return result if power >= 0 else Series(1) / result


def constant(value: Any, width: int) -> Dual:
    return Dual(value, (value * 0,) * width)


def jets(model: Model, states: list, parameters: list, time: Any, inputs: dict[str, list], order: int):
    """Coefficients of all states and outputs to `order`: lists over quantities of lists over orders of duals."""
    global ORDER  # noqa: PLW0603
    n, width = len(states), len(states) + len(parameters)
    Series.width = width

    def seed(value: Any, lane: int) -> Dual:
        return Dual(value, tuple(Fraction(int(i == lane)) for i in range(width)))

    known = {
        name: [seed(value, n + i)] for i, (name, value) in enumerate(zip(model.parameters, parameters, strict=True))
    }
    known |= {name: [constant(Fraction(value), width)] for name, value in model.fixed.items()}
    known["t"] = [constant(time, width), constant(Fraction(1), width)]
    known |= {name: [constant(Fraction(x), width) for x in series] for name, series in inputs.items()}

    def number(value: Fraction) -> Series:
        return Series([constant(value, width)])

    solution = [[seed(value, i)] for i, value in enumerate(states)]
    outputs: list[list[Dual]] = []
    for k in range(order + 1):
        ORDER = k
        values = {name: Series(list(c)) for name, c in known.items()}
        values |= {name: Series(list(c)) for name, c in zip(model.states, solution, strict=True)}
        rates = [evaluate(rate, values, None, number) for rate in model.states.values()]
        outputs = [evaluate(output, values, None, number).c for output in model.outputs.values()]
        for coefficients, rate in zip(solution, rates, strict=True):
            coefficients.append(rate.c[k].scaled(Fraction(1, k + 1)))
    return [coefficients[: order + 1] for coefficients in solution], outputs
