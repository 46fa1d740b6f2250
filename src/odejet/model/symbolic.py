"""Symbolic: expressions to and from SymPy, where people have their models there, and for printing and algebra."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from odejet.errors import ModelError, clipped
from odejet.extras import needed
from odejet.model.expressions import (
    FUNCTIONS,
    TIME,
    WINDOWS,
    ZERO,
    Choice,
    Comparison,
    Condition,
    Delay,
    Expression,
    Function,
    Logic,
    Number,
    Piecewise,
    Power,
    Product,
    Sum,
    Symbol,
    evaluate,
    names,
    number,
    signed,
)
from odejet.model.grammar import ALLOWED, CONDITION, no_function
from odejet.model.names import checked_name


def from_sympy(expression: Any) -> Expression:
    """Translate a SymPy expression built from numbers, symbols, + * ** and `FUNCTIONS`."""
    sympy = needed("sympy")
    if isinstance(expression, sympy.Symbol):
        return Symbol(checked_name(str(expression)) if str(expression) != TIME else TIME)
    if isinstance(expression, sympy.Rational):
        return number(Fraction(int(expression.p), int(expression.q)))
    if isinstance(expression, (sympy.Float, sympy.NumberSymbol)):
        return number(float(expression))
    if isinstance(expression, sympy.Add):
        return Sum(tuple(signed(from_sympy(term)) for term in expression.as_ordered_terms()))
    if isinstance(expression, sympy.Mul):
        return _sympy_product(expression)
    if isinstance(expression, sympy.exp):
        return Function("exp", from_sympy(expression.args[0]))
    if isinstance(expression, sympy.Pow):
        return _sympy_power(expression)
    kind = type(expression).__name__
    if isinstance(expression, sympy.Piecewise):
        return _sympy_piecewise(expression)
    if isinstance(expression, sympy.Heaviside):
        above = Comparison(">=", from_sympy(expression.args[0]), ZERO)
        return Piecewise((Number(Fraction(1)), ZERO), (above,))
    if kind in _CHOICES and isinstance(expression, sympy.Expr):
        return Choice(_CHOICES[kind], tuple(from_sympy(argument) for argument in expression.args))
    if isinstance(expression, sympy.Function) and kind in (*FUNCTIONS, *WINDOWS) and len(expression.args) == 1:
        return Function(kind, from_sympy(expression.args[0]))
    if isinstance(expression, sympy.core.function.AppliedUndef) and kind == "delay" and len(expression.args) == 2:
        return Delay(*(from_sympy(argument) for argument in expression.args))
    if isinstance(expression, sympy.core.function.AppliedUndef):
        raise ModelError(
            f"{clipped(str(expression))} is a SymPy function; write a plain symbol for every state and input"
        )
    raise ModelError(no_function(kind) or f"SymPy's {kind} in {clipped(str(expression))} is not allowed; {ALLOWED}")


_CHOICES = {"Abs": "abs", "Min": "min", "Max": "max", "floor": "floor", "ceiling": "ceil", "sign": "sign"}
_RELATIONS = {
    "StrictLessThan": "<",
    "LessThan": "<=",
    "StrictGreaterThan": ">",
    "GreaterThan": ">=",
    "Equality": "==",
    "Unequality": "!=",
}


def _sympy_piecewise(piecewise: Any) -> Expression:
    values, conditions = zip(*piecewise.args, strict=True)
    if conditions[-1] != True:  # noqa: E712 - SymPy's own truth
        raise ModelError(f"{clipped(str(piecewise))} has no value otherwise; end it with (value, True)")
    branches = tuple(from_sympy(value) for value in values)
    return Piecewise(branches, tuple(_sympy_condition(condition) for condition in conditions[:-1]))


def _sympy_condition(condition: Any) -> Condition:
    kind = type(condition).__name__
    if kind in _RELATIONS:
        return Comparison(_RELATIONS[kind], *(from_sympy(side) for side in condition.args))
    if kind in ("And", "Or", "Not"):
        return Logic(kind.lower(), tuple(_sympy_condition(part) for part in condition.args))
    raise ModelError(f"SymPy's {kind} in {clipped(str(condition))} is no condition here; {CONDITION}")


def _sympy_product(product: Any) -> Expression:
    """Numerator first, then the denominator: `2*x/3` and not `(2/3)*x`."""
    sign, above, below = 1, [], []
    for factor in product.args:
        if factor.is_Number and factor.is_extended_negative:
            sign, factor = -sign, -factor
        if factor.is_Rational and factor.q != 1:
            top, bottom = factor.p, factor.q
        elif factor.is_Pow and factor.exp.is_Rational and factor.exp.is_negative:
            top, bottom = 1, 1 / factor
        else:
            top, bottom = factor, 1
        above += [from_sympy(product.func(top))] if top != 1 else []
        below += [from_sympy(product.func(bottom))] if bottom != 1 else []
    factors = [(1, part) for part in above or [Number(Fraction(1))]] + [(-1, part) for part in below]
    body = factors[0][1] if len(factors) == 1 else Product(tuple(factors))
    return body if sign > 0 else Sum(((-1, body),))


def _sympy_power(power: Any) -> Expression:
    base, exponent = power.args
    if exponent.is_Rational and exponent.is_negative:
        return Product(((1, Number(Fraction(1))), (-1, from_sympy(1 / power))))
    if exponent.is_Rational and (exponent.p, exponent.q) == (1, 2):
        return Function("sqrt", from_sympy(base))
    return Power(from_sympy(base), from_sympy(exponent))


def to_sympy(expression: Expression) -> Any:
    """The expression as a SymPy expression, for printing and algebra."""
    sympy = needed("sympy")

    def exact(value: Fraction) -> Any:
        return sympy.Integer(value.numerator) if value.denominator == 1 else sympy.Float(str(Number(value)))

    def choose(switch: Any, parts: Sequence[Any]) -> Any:
        match switch:
            case Choice(name):
                return getattr(sympy, next(kind for kind, own in _CHOICES.items() if own == name))(*parts)
            case Delay():
                return sympy.Function("delay")(*parts)
            case Comparison(relation):
                return sympy.Rel(*parts, relation)
            case Logic(word):
                return getattr(sympy, word.capitalize())(*parts)
            case Piecewise(branches):
                count = len(branches)
                return sympy.Piecewise(*zip(parts[:count], [*parts[count:], True], strict=True))
        raise AssertionError(switch)

    values = {name: sympy.Symbol(name) for name in names(expression)}
    return evaluate(expression, values, _Functions(), exact, choose)


class _Functions:
    """SymPy's functions, and functions of outputs that it does not have."""

    def __getattr__(self, name: str) -> Any:
        sympy = needed("sympy")
        return sympy.Function(name) if name in WINDOWS else getattr(sympy, name)
