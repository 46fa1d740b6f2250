"""Curves: inputs that nobody recorded, whose values at knots are unknowns of the model.

    spline(knots=[0, 30, 60])          a cubic from knot to knot, through values that are to be found
    spline(every=7, positive)          a knot every 7 units of time, from the start to the last measurement
    steps(at=[0, 30, 60])              values that hold from their time until the next

The value of `beta` at 30 is the parameter `beta[30]`.  Between knots a spline is the cubic with the values and slopes
of its ends, where the slope at a knot is that of the parabola through it and its neighbours (Bessel's interpolation; de
Boor, A Practical Guide to Splines, chapter IV), so that each value matters in the neighbourhood of its knot alone.
Outside of the knots the curve stays as it is at the nearest.  A `positive` one is the exponential of such a curve
through the logarithms of its values.

Every curve is linear in its values, or in their logarithms, so that a model with curves is one without, driven by known
functions of time that are no one's data: `expanded` writes it so.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from odejet.errors import ModelError, clipped, nearest
from odejet.model.expressions import TIME, Comparison, Expression, Function, Piecewise, Product, Sum, Symbol, number
from odejet.model.expressions import fresh as unused
from odejet.model.names import split

SPLINE, STEPS = "spline", "steps"
KINDS = {SPLINE: "knots", STEPS: "at"}
"""What the list of times of each kind is called."""

OPTIONS = ("every", "positive")

MOST_KNOTS = 500

_CURVE = re.compile(rf"\s*({SPLINE}|{STEPS})\s*\((.*)\)\s*", re.DOTALL)
_SLACK = 1e-9
"""Of the span of the data: a knot outside by less is rounding."""


@dataclass(frozen=True)
class Curve:
    """An unknown function of time: its knots, or how far they are apart, and what is known of its values."""

    kind: str
    knots: tuple[float, ...] = ()
    every: float | None = None
    positive: bool = False

    def __str__(self) -> str:
        where = f"every={self.every:.17g}" if self.every is not None else f"{KINDS[self.kind]}={_listed(self.knots)}"
        positive = ["positive"] if self.positive else []
        return f"{self.kind}({', '.join([where, *positive])})"

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names of its values, where its knots are known."""
        return tuple(knot_name(name, knot) for knot in self.knots)

    def over(self, name: str, first: float, last: float) -> Curve:
        """Return the curve with its knots, for data between two times; knots that these say nothing of are refused."""
        where, slack = f"[inputs] {name}", _SLACK * (last - first)
        if self.every is not None:
            count = math.floor((last - first + slack) / self.every) + 1
            if count < 2:
                raise ModelError(
                    f"{where}: every={self.every:g} is longer than the data, which last from t = {first:g} to {last:g}"
                )
            if count > MOST_KNOTS:
                raise ModelError(f"{where}: every={self.every:g} makes {count} knots, and {MOST_KNOTS} is the limit")
            found = replace(self, every=None, knots=tuple(first + k * self.every for k in range(count)))
            return replace(found, knots=_distinct(name, found.knots))
        if self.kind == STEPS and self.knots[0] > first + slack:
            raise ModelError(
                f"{where}: the first step begins at t = {self.knots[0]:g}, after the start at {first:g}; "
                f"begin the list with {first:g}"
            )
        early = [knot for knot in self.knots[self.kind == STEPS :] if knot < first - slack]
        late = [knot for knot in self.knots if knot > last + slack]
        if early or late:
            side = f"before the start at {first:g}" if early else f"after the last measurement at {last:g}"
            raise ModelError(f"{where}: the knot at t = {[*early, *late][0]:g} is {side}; leave it out")
        return self


def knot_name(name: str, knot: float) -> str:
    """Return what the value of a curve at a knot is called."""
    base, index = split(name)
    inside = f"{index[1:-1]}," if index else ""
    return f"{base}[{inside}{knot:.12g}]"


def _listed(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:.17g}' for value in values)}]"


# --- reading ---


def is_curve(value: object) -> bool:
    """Whether what stands for an input is a curve that is to be found."""
    return isinstance(value, Curve) or (isinstance(value, str) and _CURVE.fullmatch(value) is not None)


def taken_out(inputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Curve]]:
    """Return inputs with None in the place of curves, and these."""
    curves = {name: read(name, value) for name, value in inputs.items() if is_curve(value)}
    return {name: None if name in curves else value for name, value in inputs.items()}, curves


def read(name: str, value: Curve | str) -> Curve:
    """Return the curve in a text such as `spline(knots=[0, 30, 60], positive)`."""
    if isinstance(value, Curve):
        return value
    told = _CURVE.fullmatch(value)
    assert told is not None
    kind, listed, where = told[1], KINDS[told[1]], f"[inputs] {name}"
    found: dict[str, str] = {}
    for part in _parts(told[2]):
        key, _, text = (one.strip() for one in part.partition("="))
        if key not in (listed, *OPTIONS):
            known = (listed, *OPTIONS)
            raise ModelError(
                f"{where}: {kind} has no option {clipped(key)}{nearest(key, known) or '; it has ' + ', '.join(known)}"
            )
        if key in found:
            raise ModelError(f"{where}: the option '{key}' is given twice; remove one of them")
        found[key] = text
    if found.get("positive"):
        raise ModelError(f"{where}: write 'positive' alone, or leave it out")
    if (listed in found) == ("every" in found):
        raise ModelError(f"{where}: give {kind} either {listed}=[...], a list of times, or every=, the time between")
    knots = _knots(name, listed, found[listed]) if listed in found else ()
    every = _positive(where, "every", found["every"]) if "every" in found else None
    return Curve(kind, knots, every, "positive" in found)


def _parts(inside: str) -> list[str]:
    """The parts between commas outside of brackets."""
    return [part for part in re.split(r",(?![^\[]*\])", inside) if part.strip()]


def _knots(name: str, listed: str, text: str) -> tuple[float, ...]:
    where, inside = f"[inputs] {name}", re.fullmatch(r"\[(.*)\]", text, re.DOTALL)
    if inside is None:
        raise ModelError(f"{where}: {listed} is a list of times, such as [0, 30, 60], not {clipped(text)}")
    knots = tuple(_number(where, listed, part) for part in inside[1].split(",") if part.strip())
    if len(knots) < 2:
        raise ModelError(f"{where}: {listed} needs two times at least; a single value is a parameter")
    if len(knots) > MOST_KNOTS:
        raise ModelError(f"{where}: {listed} has {len(knots)} times, and {MOST_KNOTS} is the limit")
    for before, after in itertools.pairwise(knots):
        if not before < after:
            raise ModelError(f"{where}: {listed} must be in order of time, but {after:g} follows {before:g}")
    return _distinct(name, knots)


def _distinct(name: str, knots: tuple[float, ...]) -> tuple[float, ...]:
    """The knots as their names have them, so that a name tells all of its knot."""
    rounded = tuple(float(f"{knot:.12g}") for knot in knots)
    if len(set(rounded)) < len(knots):
        raise ModelError(f"[inputs] {name}: two knots are so close that they are one; move them apart")
    return rounded


def _number(where: str, what: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ModelError(f"{where}: {what} must be numbers, not {clipped(text.strip())}")
    return value


def _positive(where: str, what: str, text: str) -> float:
    value = _number(where, what, text)
    if not value > 0:
        raise ModelError(f"{where}: {what} must be positive, not {value:g}")
    return value


# --- equations ---


def spread(curves: Mapping[str, Curve], table: Any, known: Iterable[str] = ()) -> Any:
    """Return a table by name in which what is told of a curve is told of all its values but those that are `known`; a
    list of names likewise.

    What is told of one value by its own name comes first.
    """
    told = set(known)
    values = {name: [own for own in curve.names(name) if own not in told] for name, curve in curves.items()}
    if isinstance(table, Mapping):
        wide = {own: value for name, value in table.items() for own in values.get(name, ())}
        return {**wide, **{name: value for name, value in table.items() if name not in curves}}
    if isinstance(table, Iterable) and not isinstance(table, str):
        return [own for name in table for own in values.get(name, (name,))]
    return table


def positive_values(curves: Mapping[str, Curve]) -> set[str]:
    """Return the names of all values of curves that are positive."""
    return {own for name, curve in curves.items() if curve.positive for own in curve.names(name)}


def values_used(curves: Mapping[str, Curve]) -> dict[str, Expression]:
    """Return expressions in which all values of curves occur, by the name of the curve."""
    return {
        name: Sum(tuple((1, Symbol(own)) for own in curve.names(name))) for name, curve in curves.items() if curve.knots
    }


def driven(curves: Mapping[str, Curve], taken: set[str]) -> tuple[dict[str, Expression], dict[str, tuple[str, int]]]:
    """Return curves as expressions in known functions of time, and these by name: a curve, and the place of a knot.

    The functions of all knots add up to one, so that the first is left out.
    """
    expressions: dict[str, Expression] = {}
    functions: dict[str, tuple[str, int]] = {}
    for name, curve in curves.items():
        own = [unused(f"{split(name)[0]}_{place}", taken) for place in range(1, len(curve.knots))]
        functions |= {function: (name, place) for place, function in enumerate(own, 1)}
        expressions[name] = combined(curve, name, [Symbol(function) for function in own])
    return expressions, functions


def combined(curve: Curve, name: str, functions: Sequence[Expression]) -> Expression:
    """Return a curve from its basis functions, all but the first."""
    values = _values(curve, name)
    total = _weighted(values[0], list(zip(values[1:], functions, strict=True)))
    return Function("exp", total) if curve.positive else total


def _values(curve: Curve, name: str) -> list[Expression]:
    """The values at knots, or their logarithms where it is these that a curve is linear in."""
    symbols: list[Expression] = [Symbol(own) for own in curve.names(name)]
    return [Function("log", value) for value in symbols] if curve.positive else symbols


def _weighted(first: Expression, others: Sequence[tuple[Expression, Expression]]) -> Expression:
    """A sum of values with weights that, with that of the first, add up to one."""
    apart = ((1, Product(((1, Sum(((1, value), (-1, first)))), (1, weight)))) for value, weight in others)
    return Sum(((1, first), *apart)) if others else first


# --- basis functions ---


def pieces(curve: Curve) -> list[list[list[Fraction]]]:
    """Return the basis functions as exact polynomials in the time since the beginning of each piece, ascending: by
    piece, from the first knot on, and by knot.  The last piece has no end."""
    knots = [Fraction(repr(knot)) for knot in curve.knots]
    n = len(knots)
    if curve.kind == STEPS:
        return [[[Fraction(int(k == i))] for k in range(n)] for i in range(n)]
    slopes = _slopes(knots)
    found = []
    for i in range(n - 1):
        h, row = knots[i + 1] - knots[i], []
        for k in range(n):
            a, b, p, q = Fraction(int(k == i)), Fraction(int(k == i + 1)), slopes[i][k], slopes[i + 1][k]
            row.append([a, p, (3 * (b - a) / h - 2 * p - q) / h, (2 * (a - b) / h + p + q) / h**2])
        found.append(row)
    return [*found, [[Fraction(int(k == n - 1))] for k in range(n)]]


def _slopes(knots: Sequence[Fraction]) -> list[list[Fraction]]:
    """The slope at every knot of each basis function: of the parabola through the knot and its neighbours, at an end
    through the three that are next."""
    n = len(knots)
    found = []
    for i in range(n):
        near = range(max(0, min(i - 1, n - 3)), min(n, max(i + 2, 3)))
        found.append([_slope(knots, near, k, i) if k in near else Fraction(0) for k in range(n)])
    return found


def _slope(knots: Sequence[Fraction], near: range, k: int, at: int) -> Fraction:
    """The derivative at a knot of the Lagrange polynomial that is one at knot k and zero at the others."""
    others = [j for j in near if j != k]
    below = math.prod((knots[k] - knots[j] for j in others), start=Fraction(1))
    return (
        sum(
            (math.prod((knots[at] - knots[j] for j in others if j != left), start=Fraction(1)) for left in others),
            start=Fraction(0),
        )
        / below
    )


def written(curve: Curve, name: str) -> Expression:
    """Return a curve as one expression in t, which switches at its knots; at a step, the value before holds."""
    values, found = _values(curve, name), []
    for row, knot in zip(pieces(curve), curve.knots, strict=True):
        here = [k for k, coefficients in enumerate(row) if any(coefficients)]
        found.append(_weighted(values[here[0]], [(values[k], _polynomial(row[k], knot)) for k in here[1:]]))
    # Before the first knot a curve stays as it is there; a first step begins with the data.
    first = [values[0]] if curve.kind == SPLINE else []
    total = _switched(curve, [*first, *found])
    return Function("exp", total) if curve.positive else total


def _switched(curve: Curve, parts: Sequence[Expression]) -> Expression:
    """What is one of several expressions, by the piece that the time is in."""
    ends = curve.knots if curve.kind == SPLINE else curve.knots[1:]
    return Piecewise(tuple(parts), tuple(Comparison("<=", Symbol(TIME), number(end)) for end in ends))


def _polynomial(coefficients: Sequence[Fraction], since: float) -> Expression:
    """A polynomial by Horner's scheme."""
    while len(coefficients) > 1 and not coefficients[-1]:
        coefficients = coefficients[:-1]
    elapsed: Expression = Sum(((1, Symbol(TIME)), (-1, number(since)))) if since else Symbol(TIME)
    total: Expression = number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        product = Product(((1, elapsed), (1, total)))
        total = product if not coefficient else Sum(((1, number(coefficient)), (1, product)))
    return total
