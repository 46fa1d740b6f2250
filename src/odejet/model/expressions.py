"""Expressions: the small language in which models are written, as trees, and nothing more.

Numbers are kept as exact fractions: `0.1` means one tenth, which is what exact (modular) arithmetic later needs.
"""

from __future__ import annotations

import math
import operator
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

from odejet.errors import ModelError

FUNCTIONS = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")
CHOICES = ("abs", "min", "max", "floor", "ceil", "sign")
"""Functions that switch from one analytic branch to another."""

WINDOWS = ("increment", "mean", "integral")
"""Functions of outputs: what happened since the last measurement."""

TIME = "t"
RESERVED = frozenset({TIME, "time", *FUNCTIONS})

MAX_DIGITS = 60
MAX_DECIMAL_EXPONENT = 300
MAX_NAME = 100

Kind = TypeVar("Kind")

_LARGEST = 10**MAX_DECIMAL_EXPONENT
RANGE = f"its decimal exponent may be at most {MAX_DECIMAL_EXPONENT} in size"


@dataclass_transform(frozen_default=True)
def _node(kind: type[Kind]) -> type[Kind]:
    """A frozen dataclass that remembers its hash: trees are large, shared, and looked up often."""
    made = dataclass(frozen=True)(kind)
    fresh_hash = made.__hash__

    def remembered(self: Any) -> int:
        known = self.__dict__
        if "_hash" not in known:
            known["_hash"] = fresh_hash(self)
        return int(known["_hash"])

    def plain(self: Any) -> dict[str, Any]:  # texts have another hash in another process
        return {key: value for key, value in self.__dict__.items() if not key.startswith("_")}

    made.__hash__ = remembered  # type: ignore[method-assign]
    made.__getstate__ = plain  # type: ignore[method-assign]
    return made


@_node
class Number:
    """A non-negative decimal number, kept exactly."""

    value: Fraction

    def __str__(self) -> str:
        return _decimal(self.value)


@_node
class Symbol:
    """A name: a state, a parameter, an input or the time `t`."""

    name: str

    def __str__(self) -> str:
        return self.name


@_node
class Sum:
    """`+- a +- b ...`: terms with their signs, in the order written."""

    terms: tuple[tuple[int, Expression], ...]

    def __str__(self) -> str:
        parts = []
        for i, (sign, term) in enumerate(self.terms):
            text = f"({term})" if isinstance(term, Sum) else str(term)
            lead = ("-" if sign < 0 else "") if i == 0 else (" - " if sign < 0 else " + ")
            parts.append(lead + text)
        return "".join(parts)


@_node
class Product:
    """`a */ b */ c ...`: factors with exponent +1 or -1, in the order written; the first is always +1."""

    factors: tuple[tuple[int, Expression], ...]

    def __str__(self) -> str:
        parts = []
        for i, (exponent, factor) in enumerate(self.factors):
            text = f"({factor})" if isinstance(factor, (Sum, Product)) else str(factor)
            parts.append(text if i == 0 else ("*" if exponent > 0 else "/") + text)
        return "".join(parts)


@_node
class Power:
    """`base ** exponent`."""

    base: Expression
    exponent: Expression

    def __str__(self) -> str:
        base = str(self.base) if isinstance(self.base, _UNITS) else f"({self.base})"
        simple = isinstance(self.exponent, _UNITS)
        return f"{base}**{self.exponent}" if simple else f"{base}**({self.exponent})"


@_node
class Function:
    """One of `FUNCTIONS`, or of `WINDOWS`, applied to an argument."""

    name: str
    argument: Expression

    def __str__(self) -> str:
        return f"{self.name}({self.argument})"


@_node
class Choice:
    """One of `CHOICES` applied to its arguments."""

    name: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@_node
class Comparison:
    """`left < right`, or with <=, >, >=, == or !=."""

    relation: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


@_node
class Logic:
    """`a and b ...`, `a or b ...`, `not a`."""

    word: str
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        parts = [f"({part})" if isinstance(part, Logic) or self.word == "not" else str(part) for part in self.parts]
        return f"not {parts[0]}" if self.word == "not" else f" {self.word} ".join(parts)


@_node
class Piecewise:
    """`piecewise(a, condition, b, condition, ..., otherwise)`: the value whose condition holds first."""

    values: tuple[Expression, ...]
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        pairs = [str(part) for pair in zip(self.values, self.conditions, strict=False) for part in pair]
        return f"piecewise({', '.join([*pairs, str(self.values[-1])])})"


@_node
class Delay:
    """`delay(argument, by)`: what the argument was a time `by` before."""

    argument: Expression
    by: Expression

    def __str__(self) -> str:
        return f"delay({self.argument}, {self.by})"


_UNITS = (Number, Symbol, Function, Choice, Piecewise, Delay)
Condition = Comparison | Logic
Expression = Number | Symbol | Sum | Product | Power | Function | Choice | Piecewise | Delay

ZERO = Number(Fraction(0))


def number(value: float | Decimal | Fraction) -> Expression:
    """The expression of a number as Python prints it: 0.1 becomes one tenth."""
    exact = _exact(value)
    top, bottom = abs(exact.numerator), exact.denominator
    if _is_decimal(bottom):
        size: Expression = Number(abs(exact))
    else:
        size = Product(((1, Number(Fraction(top))), (-1, Number(Fraction(bottom)))))
    return size if exact >= 0 else Sum(((-1, size),))


def _exact(value: float | Decimal | Fraction) -> Fraction:
    """The fraction that a number's decimal text stands for, if that text may stand in an expression."""
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        raise ModelError(f"expected a number, not {type(value).__name__}")
    # NumPy's scalars are numbers too, but only Python's own kinds are exact and print plainly.
    if isinstance(value, Integral):
        value = int(value)
    elif isinstance(value, Real) and not isinstance(value, Fraction):
        value = Decimal(repr(float(value)))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ModelError(f"the number {value} is not finite")
        # Tested before the conversion: the fraction of 1e999999999 would fill the memory.
        if value and abs(value.adjusted()) > MAX_DECIMAL_EXPONENT:
            raise ModelError(f"the number {value:.3e} is out of range; {RANGE}")
    exact = Fraction(value)
    parts = (exact,) if _is_decimal(exact.denominator) else (Fraction(exact.numerator), Fraction(exact.denominator))
    for part in map(abs, parts):
        if part and not Fraction(1, _LARGEST) <= part < 10 * _LARGEST:
            raise ModelError(f"the number is out of range; {RANGE}")
        if len(_digits(part)) > MAX_DIGITS:
            raise ModelError(f"the number has more than {MAX_DIGITS} digits")
    return exact


def signed(term: Expression) -> tuple[int, Expression]:
    """A term with its sign: `-a` as it stands in `b - a`."""
    match term:
        case Sum(((sign, inner),)):
            return sign, inner
        case _:
            return 1, term


def children(expression: Expression | Condition) -> tuple[Expression | Condition, ...]:
    match expression:
        case Symbol() | Number():
            return ()  # first, since most are
        case Sum(parts) | Product(parts):
            return tuple([part for _, part in parts])
        case Power(base, exponent):
            return base, exponent
        case Function(_, argument):
            return (argument,)
        case Choice(_, parts) | Logic(_, parts):
            return parts
        case Comparison(_, left, right):
            return left, right
        case Piecewise(values, conditions):
            return (*values, *conditions)
        case Delay(argument, by):
            return argument, by
        case _:
            return ()


def names(expression: Expression | Condition) -> Iterator[str]:
    """Every name in the expression, in order of appearance, with repetitions."""
    found = expression.__dict__.get("_names")
    if found is None:
        own = (expression.name,) if isinstance(expression, Symbol) else ()
        found = expression.__dict__["_names"] = (*own, *(name for part in children(expression) for name in names(part)))
    return iter(found)


def switches(expression: Expression | Condition) -> bool:
    """Whether the expression has branches."""
    return isinstance(expression, (Choice, Piecewise, Comparison, Logic)) or any(map(switches, children(expression)))


def delays(expression: Expression | Condition) -> Iterator[Delay]:
    """Every delay in the expression, in order of appearance, outer ones before those inside them."""
    found = expression.__dict__.get("_delays")
    if found is None:
        own = (expression,) if isinstance(expression, Delay) else ()
        found = expression.__dict__["_delays"] = (
            *own,
            *(delay for part in children(expression) for delay in delays(part)),
        )
    return iter(found)


def fresh(name: str, taken: set[str]) -> str:
    """A new name like this one, which is taken from now on."""
    base, bracket, index = name.partition("[")
    while base + bracket + index in taken:
        base += "_"
    taken.add(base + bracket + index)
    return base + bracket + index


def substituted(expression: Any, new: Mapping[str, Expression]) -> Any:
    """The expression, or condition, with other expressions in the place of names."""
    if new.keys().isdisjoint(names(expression)):
        return expression  # with all that is remembered of it
    match expression:
        case Symbol(name):
            return new[name]
        case Sum(terms):
            return Sum(tuple((sign, substituted(term, new)) for sign, term in terms))
        case Product(factors):
            return Product(tuple((exponent, substituted(factor, new)) for exponent, factor in factors))
        case Power(base, exponent):
            return Power(substituted(base, new), substituted(exponent, new))
        case Function(name, argument):
            return Function(name, substituted(argument, new))
        case Choice(name, arguments):
            return Choice(name, tuple(substituted(argument, new) for argument in arguments))
        case Comparison(relation, left, right):
            return Comparison(relation, substituted(left, new), substituted(right, new))
        case Logic(word, parts):
            return Logic(word, tuple(substituted(part, new) for part in parts))
        case Piecewise(values, conditions):
            return Piecewise(
                tuple(substituted(value, new) for value in values),
                tuple(substituted(condition, new) for condition in conditions),
            )
        case Delay(argument, by):
            return Delay(substituted(argument, new), substituted(by, new))
        case _:
            return expression


def chosen(switch: Choice | Piecewise | Condition, parts: Sequence[Any]) -> Any:
    """The value of a switch from the values of its children, which can be compared."""
    match switch:
        case Choice("abs"):
            return parts[0] if parts[0] >= 0 else -parts[0]
        case Choice("sign"):
            return float((parts[0] > 0) - (parts[0] < 0))
        case Choice("min"):
            return min(parts)
        case Choice("max"):
            return max(parts)
        case Choice("floor" | "ceil"):
            return float(getattr(math, switch.name)(parts[0]))
        case Comparison(relation):
            return COMPARED[relation](*parts)
        case Logic("not"):
            return not parts[0]
        case Logic(word):
            return all(parts) if word == "and" else any(parts)
        case Piecewise(values):
            count = len(values)
            return next((value for value, holds in zip(parts, parts[count:], strict=False) if holds), parts[count - 1])
    raise AssertionError(switch)


COMPARED = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def evaluate(
    expression: Expression | Condition,
    values: Mapping[str, Any],
    functions: Any,
    number: Callable[[Fraction], Any] = float,
    choose: Callable[[Any, Sequence[Any]], Any] = chosen,
) -> Any:
    """The value of an expression in any arithmetic: `functions` has the elementary functions, `number` converts, and
    `choose` makes of a switch and the values of its children its own."""

    def value(child: Expression | Condition) -> Any:
        return evaluate(child, values, functions, number, choose)

    match expression:
        case Number(exact):
            return number(exact)
        case Symbol(name):
            return values[name]
        case Sum(((sign, first), *rest)):
            total = value(first) if sign > 0 else -value(first)
            for sign, term in rest:
                total = total + value(term) if sign > 0 else total - value(term)
            return total
        case Product(((_, first), *rest)):
            product = value(first)
            for exponent, factor in rest:
                product = product * value(factor) if exponent > 0 else product / value(factor)
            return product
        case Power(base, power):
            return value(base) ** value(power)
        case Function(name, argument):
            return getattr(functions, name)(value(argument))
        case _:
            return choose(expression, [value(child) for child in children(expression)])


def spelled(name: Any) -> Any:
    """A name, or a label such as `k in hot`, as models have it: the micro sign and the Greek mu are one letter.

    What is no text is left to whoever checks it.
    """
    if not isinstance(name, str):
        return name
    own, within, experiment = name.partition(" in ")
    return unicodedata.normalize("NFKC", own) + within + experiment


def spelled_keys(table: Any, what: str) -> Any:
    """A table whose names are spelled as models have them."""
    if not isinstance(table, Mapping):
        return table
    found: dict[Any, Any] = {}
    for name, value in table.items():
        if spelled(name) in found:
            raise ModelError(f"{what}: the name '{spelled(name)}' is given twice; remove one of them")
        found[spelled(name)] = value
    return found


def spelled_names(names: Any) -> Any:
    """Names as models have them; what is no list of names is left as it is."""
    return [spelled(name) for name in names] if isinstance(names, Iterable) and not isinstance(names, str) else names


def constant(expression: Expression) -> Fraction | None:
    """The value of an expression made of numbers and + - * / alone, else None."""
    match expression:
        case Number(exact):
            return exact
        case Sum(terms):
            total = Fraction(0)
            for sign, term in terms:
                if (value := constant(term)) is None:
                    return None
                total += sign * value
            return total
        case Product(factors):
            product = Fraction(1)
            for exponent, factor in factors:
                if (value := constant(factor)) is None or (exponent < 0 and value == 0):
                    return None
                product = product * value if exponent > 0 else product / value
            return product
        case _:
            return None


# --- printing ---------------------------------------------------------------------------------------------------------


def _is_decimal(denominator: int) -> bool:
    """Whether the denominator divides a power of ten."""
    for prime in (5, 2):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _digits(value: Fraction) -> str:
    """The significant digits of a non-negative decimal fraction."""
    scale = value.denominator.bit_length()
    return str(value.numerator * 10**scale // value.denominator).strip("0")


def _decimal(value: Fraction) -> str:
    """The shortest decimal text of a fraction; one that has none, which only code can build, is written as a ratio."""
    if value.denominator == 1 and abs(value) < 10**15:
        return str(value.numerator)
    if not _is_decimal(value.denominator):
        return f"({value})"
    with localcontext(prec=2 * (MAX_DIGITS + MAX_DECIMAL_EXPONENT)):
        exact = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
        text = f"{exact:f}" if 1e-5 <= abs(value) < 1e15 else f"{exact:e}"
    return text.replace("e+", "e")
