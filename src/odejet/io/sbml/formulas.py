"""Formulas: libsbml's trees as expressions, with what MathML has and the language has not written by what it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from odejet.errors import ModelError
from odejet.io.sbml.document import lib
from odejet.model.expressions import (
    TIME,
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
    constant,
    evaluate,
    names,
    number,
)

ZERO, ONE, TWO = (Number(Fraction(value)) for value in (0, 1, 2))
Truth = Condition | bool


# --- building expressions ---------------------------------------------------------------------------------------------


def plus(*terms: Expression) -> Expression:
    """A sum, flat, without zeros."""
    found: list[tuple[int, Expression]] = []
    for term in terms:
        match term:
            case Number(value) if value == 0:
                continue
            case Sum(inner):
                found += inner
            case _:
                found.append((1, term))
    if not found:
        return ZERO
    return found[0][1] if len(found) == 1 and found[0][0] > 0 else Sum(tuple(found))


def negative(term: Expression) -> Expression:
    match term:
        case Number(value) if value == 0:
            return ZERO
        case Sum(terms):
            return plus(Sum(tuple((-sign, inner) for sign, inner in terms)))
        case _:
            return Sum(((-1, term),))


def minus(left: Expression, right: Expression) -> Expression:
    return plus(left, negative(right))


def times(*factors: Expression) -> Expression:
    """A product, flat, without ones, with its sign in front."""
    found: list[tuple[int, Expression]] = []
    sign = 1
    for factor in factors:
        while isinstance(factor, Sum) and len(factor.terms) == 1:
            sign, factor = sign * factor.terms[0][0], factor.terms[0][1]
        match factor:
            case Number(value) if value == 0:
                return ZERO
            case Number(value) if value == 1:
                continue
            case Product(inner):
                found += inner
            case _:
                found.append((1, factor))
    product: Expression = ONE
    if found:
        lead = () if found[0][0] > 0 else ((1, ONE),)
        product = found[0][1] if len(found) == 1 and not lead else Product((*lead, *found))
    return product if sign > 0 else negative(product)


def over(top: Expression, bottom: Expression) -> Expression:
    """A quotient, with a factor that stands above and below left out."""
    if bottom == ONE or top == ZERO:
        return top
    if isinstance(top, Sum) and not isinstance(bottom, (Sum, Product)):
        parts = [(sign, _without(term, bottom)) for sign, term in top.terms]
        if all(part is not None for _, part in parts):
            return plus(*(part if sign > 0 else negative(part) for sign, part in parts if part is not None))
    cancelled = _without(top, bottom)
    if cancelled is not None:
        return cancelled
    sign, top = (top.terms[0]) if isinstance(top, Sum) and len(top.terms) == 1 else (1, top)
    above = top.factors if isinstance(top, Product) else ((1, top),)
    quotient = Product((*above, (-1, bottom)))
    return quotient if sign > 0 else negative(quotient)


def _without(term: Expression, factor: Expression) -> Expression | None:
    """The term divided by one of its factors."""
    if term == factor:
        return ONE
    if isinstance(term, Product) and (1, factor) in term.factors and isinstance(factor, Symbol):
        place = term.factors.index((1, factor))
        rest = [*term.factors[:place], *term.factors[place + 1 :]]
        lead = [(1, ONE)] if not rest or rest[0][0] < 0 else []
        return rest[0][1] if len(rest) == 1 and not lead else Product((*lead, *rest))
    return None


def function(name: str, argument: Expression) -> Expression:
    return Function(name, argument)


def choose(value: Expression, condition: Truth, otherwise: Expression) -> Expression:
    if isinstance(condition, bool):
        return value if condition else otherwise
    if isinstance(otherwise, Piecewise):
        return Piecewise((value, *otherwise.values), (condition, *otherwise.conditions))
    return Piecewise((value, otherwise), (condition,))


def both(parts: list[Truth]) -> Truth:
    if False in parts:
        return False
    found = tuple(part for part in parts if not isinstance(part, bool))
    return True if not found else found[0] if len(found) == 1 else Logic("and", found)


def either(parts: list[Truth]) -> Truth:
    if True in parts:
        return True
    found = tuple(part for part in parts if not isinstance(part, bool))
    return False if not found else found[0] if len(found) == 1 else Logic("or", found)


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def opposite(condition: Truth) -> Truth:
    match condition:
        case bool():
            return not condition
        case Comparison(relation, left, right):
            return Comparison(_OPPOSITE[relation], left, right)
        case Logic("not", (part,)):
            return part
        case Logic("and", parts):
            return either([opposite(part) for part in parts])
        case Logic("or", parts):
            return both([opposite(part) for part in parts])
    raise AssertionError(condition)


def compare(relation: str, left: Expression, right: Expression) -> Truth:
    """A comparison, decided at once if it is one of numbers."""
    one, other = constant(left), constant(right)
    if one is not None and other is not None:
        return bool(
            {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other, "==": one == other}.get(
                relation, one != other
            )
        )
    return Comparison(relation, left, right)


def known_value(expression: Expression) -> float | None:
    """The value of an expression without names."""
    if next(names(expression), None) is not None:
        return None
    try:
        return float(evaluate(expression, {}, math))
    except (ArithmeticError, ValueError):
        return None


# --- reading ----------------------------------------------------------------------------------------------------------

_SAME = ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh")
_RECIPROCAL = {"sec": "cos", "csc": "sin", "cot": "tan", "sech": "cosh", "csch": "sinh", "coth": "tanh"}
_ARCS: dict[str, Callable[[float], float]] = {
    "arcsin": math.asin,
    "arccos": math.acos,
    "arctan": math.atan,
    "arcsec": lambda x: math.acos(1 / x),
    "arccsc": lambda x: math.asin(1 / x),
    "arccot": lambda x: math.atan(1 / x) if x else math.pi / 2,
}


RATE_OF = "rateOf "
"""Before a name, in a symbol that stands for its derivative until that is known; no name of a model has a blank."""


class Formula:
    """One formula: `where` says in messages whose it is, `named` which name an id of the document has here.

    Calls of `functions` are written out: in the body of one its `arguments` are formulas of the caller.
    """

    def __init__(
        self,
        where: str,
        named: Callable[[str, str], Expression],
        functions: Mapping[str, Any] | None = None,
        arguments: Mapping[str, tuple[Formula, Any]] | None = None,
    ) -> None:
        self.where, self.named, self.functions, self.arguments = where, named, functions or {}, arguments or {}

    def refusal(self, reason: str) -> ModelError:
        return ModelError(f"{self.where}: {reason}")

    def resolved(self, node: Any) -> tuple[Formula, Any]:
        """What an argument or the call of a function stands for, and the formula in which that stands."""
        sbml, formula = lib(), self
        while True:
            kind = node.getType()
            if kind == sbml.AST_NAME and node.getName() in formula.arguments:
                formula, node = formula.arguments[node.getName()]
            elif kind == sbml.AST_FUNCTION and node.getName() in formula.functions:
                function, count = formula.functions[node.getName()], node.getNumChildren()
                if function.getBody() is None:
                    raise self.refusal(f"the function '{node.getName()}' says nothing")
                given = {function.getArgument(i).getName(): (formula, node.getChild(i)) for i in range(count)}
                formula = Formula(formula.where, formula.named, formula.functions, given)
                node = function.getBody()
            else:
                return formula, node

    def is_truth(self, node: Any) -> bool:
        return _is_truth(self.resolved(node)[1])

    def expression(self, node: Any) -> Expression:
        """A formula as an expression; a truth as a number is 1 or 0."""
        formula, node = self.resolved(node)
        return formula.plain_expression(node)

    def plain_expression(self, node: Any) -> Expression:
        """Of what is no call of a function."""
        sbml, kind = lib(), node.getType()
        if kind == sbml.AST_NAME_TIME:
            return Symbol(TIME)
        if kind == sbml.AST_NAME:
            return self.named(node.getName(), self.where)
        if kind == sbml.AST_FUNCTION_DELAY:
            if node.getNumChildren() != 2:
                raise self.refusal("delay takes what is delayed and by how much")
            return Delay(*(self.expression(child) for child in _operands(node)))
        if kind == sbml.AST_FUNCTION_RATE_OF:
            formula, child = self.resolved(node.getChild(0)) if node.getNumChildren() == 1 else (self, node)
            if child.getType() != sbml.AST_NAME:
                raise self.refusal("rateOf takes exactly one name")
            return Symbol(f"{RATE_OF}{formula.named(child.getName(), self.where)}")
        if node.isNumber() or kind in (sbml.AST_CONSTANT_PI, sbml.AST_CONSTANT_E, sbml.AST_NAME_AVOGADRO):
            return self.number(node)
        if kind == sbml.AST_FUNCTION_PIECEWISE:
            return self.piecewise(node)
        if _is_truth(node):
            return choose(ONE, self.condition(node), ZERO)
        self.check_arguments(node)
        return self.applied(node, [self.expression(child) for child in _operands(node)])

    def check_arguments(self, node: Any) -> None:
        """Refuse an operator or a function with too few arguments or too many."""
        sbml, kind, count = lib(), node.getType(), node.getNumChildren()
        many = (sbml.AST_PLUS, sbml.AST_TIMES, sbml.AST_LOGICAL_AND, sbml.AST_LOGICAL_OR, sbml.AST_LOGICAL_XOR)
        powers = (sbml.AST_POWER, sbml.AST_FUNCTION_POWER)
        two = (*powers, sbml.AST_DIVIDE, sbml.AST_FUNCTION_QUOTIENT, sbml.AST_FUNCTION_REM, sbml.AST_LOGICAL_IMPLIES)
        if kind in many:
            return
        if kind in two:
            right = count == 2
        elif kind in (sbml.AST_MINUS, sbml.AST_FUNCTION_LOG, sbml.AST_FUNCTION_ROOT):
            right = count in (1, 2)
        elif kind in (sbml.AST_FUNCTION_MIN, sbml.AST_FUNCTION_MAX) or node.isRelational():
            right = count >= 1
        else:
            right = count == 1 or kind == sbml.AST_FUNCTION
        if not right:
            raise self.refusal(f"'{node.getName() or node.getOperatorName()}' has {count} arguments")

    def number(self, node: Any) -> Expression:
        sbml = lib()
        if node.getType() == sbml.AST_REAL_E and math.isfinite(node.getMantissa()):
            exact = Fraction(repr(node.getMantissa())) * Fraction(10) ** max(-400, min(400, node.getExponent()))
        elif node.getType() == sbml.AST_RATIONAL and node.getDenominator():
            exact = Fraction(node.getNumerator(), node.getDenominator())
        elif node.getType() == sbml.AST_INTEGER:
            exact = Fraction(node.getInteger())
        else:
            # libsbml has these two with some ten digits.
            value = {sbml.AST_CONSTANT_PI: math.pi, sbml.AST_CONSTANT_E: math.e}.get(node.getType(), node.getValue())
            if not math.isfinite(value):
                raise self.refusal(f"{'notanumber' if math.isnan(value) else 'infinity'} is not supported")
            exact = Fraction(repr(value))
        try:
            return number(exact)
        except ModelError as error:
            raise self.refusal(str(error)) from None

    def piecewise(self, node: Any) -> Expression:
        """Values and conditions in turn; without a value otherwise, the conditions must cover everything."""
        inner = [node.getChild(i) for i in range(node.getNumChildren())]
        values = [self.expression(child) for child in inner[::2]]
        conditions = [self.condition(child) for child in inner[1::2]]
        if len(inner) % 2 == 0:
            if not _covers_all(conditions):
                raise self.refusal("piecewise without otherwise is not supported; add the value otherwise")
            conditions.pop()
        found = values.pop()
        for value, condition in zip(values[::-1], conditions[::-1], strict=True):
            found = choose(value, condition, found)
        return found

    def applied(self, node: Any, parts: list[Expression]) -> Expression:
        """An operator or a function with its arguments."""
        sbml, kind = lib(), node.getType()
        if kind == sbml.AST_PLUS:
            return plus(*parts)
        if kind == sbml.AST_TIMES:
            return times(*parts)
        if kind == sbml.AST_MINUS:
            return negative(parts[0]) if len(parts) == 1 else minus(*parts)
        if kind == sbml.AST_DIVIDE:
            return over(*parts)
        if kind in (sbml.AST_POWER, sbml.AST_FUNCTION_POWER):
            return Power(*parts)
        if kind == sbml.AST_FUNCTION_ROOT:
            degree, base = (TWO, parts[0]) if len(parts) == 1 else parts
            return function("sqrt", base) if degree == TWO else Power(base, over(ONE, degree))
        if kind == sbml.AST_FUNCTION_LN:
            return function("log", parts[0])
        if kind == sbml.AST_FUNCTION_LOG:
            base, argument = (number(10), parts[0]) if len(parts) == 1 else parts
            return over(function("log", argument), function("log", base))
        return self.called(node.getName() or "", kind, parts)

    def called(self, name: str, kind: int, parts: list[Expression]) -> Expression:
        sbml = lib()
        choices = {
            sbml.AST_FUNCTION_ABS: "abs",
            sbml.AST_FUNCTION_FLOOR: "floor",
            sbml.AST_FUNCTION_CEILING: "ceil",
            sbml.AST_FUNCTION_MIN: "min",
            sbml.AST_FUNCTION_MAX: "max",
        }
        if kind in choices:
            several = choices[kind] in ("min", "max")
            return parts[0] if several and len(parts) == 1 else Choice(choices[kind], tuple(parts))
        if kind in (sbml.AST_FUNCTION_QUOTIENT, sbml.AST_FUNCTION_REM):
            ratio = over(*parts)
            whole = choose(Choice("floor", (ratio,)), compare(">=", ratio, ZERO), Choice("ceil", (ratio,)))
            return whole if kind == sbml.AST_FUNCTION_QUOTIENT else minus(parts[0], times(parts[1], whole))
        if kind == sbml.AST_FUNCTION_FACTORIAL:
            return self.factorial(parts[0])
        if name in _SAME:
            return function(name, parts[0])
        if name in _RECIPROCAL:
            return over(ONE, function(_RECIPROCAL[name], parts[0]))
        if name.startswith("arc"):
            return self.arc(name, parts[0])
        raise self.refusal(f"the function '{name}' is not supported")

    def factorial(self, argument: Expression) -> Expression:
        value = known_value(argument)
        if value is None:
            raise self.refusal("factorial of what is not a number is not supported")
        if not 0 <= value <= 100 or value != int(value):
            raise self.refusal(f"factorial of {value:g} is not supported")
        return number(math.factorial(int(value)))

    def arc(self, name: str, x: Expression) -> Expression:
        """Inverse functions: the hyperbolic ones by logarithms, the others of numbers only."""
        inverse = over(ONE, x)
        match name:
            case "arcsinh":
                return function("log", plus(x, function("sqrt", plus(Power(x, TWO), ONE))))
            case "arccosh":
                return function("log", plus(x, function("sqrt", minus(Power(x, TWO), ONE))))
            case "arctanh":
                return over(function("log", over(plus(ONE, x), minus(ONE, x))), TWO)
            case "arccoth":
                return over(function("log", over(plus(x, ONE), minus(x, ONE))), TWO)
            case "arcsech":
                return function("log", plus(inverse, function("sqrt", minus(Power(inverse, TWO), ONE))))
            case "arccsch":
                return function("log", plus(inverse, function("sqrt", plus(Power(inverse, TWO), ONE))))
        value = known_value(x)
        if value is None or name not in _ARCS:
            raise self.refusal(f"{name} of what is not a number is not supported")
        try:
            return number(_ARCS[name](value))
        except (ArithmeticError, ValueError):
            raise self.refusal(f"{name} of {value:g} has no value") from None

    # --- conditions

    def condition(self, node: Any) -> Truth:
        """A formula as a condition; a number as a truth is one that is not zero."""
        formula, node = self.resolved(node)
        return formula.plain_condition(node)

    def plain_condition(self, node: Any) -> Truth:
        """Of what is no call of a function."""
        sbml, kind = lib(), node.getType()
        inner = [node.getChild(i) for i in range(node.getNumChildren())]
        relations = {
            sbml.AST_RELATIONAL_LT: "<",
            sbml.AST_RELATIONAL_LEQ: "<=",
            sbml.AST_RELATIONAL_GT: ">",
            sbml.AST_RELATIONAL_GEQ: ">=",
            sbml.AST_RELATIONAL_EQ: "==",
            sbml.AST_RELATIONAL_NEQ: "!=",
        }
        if kind in (sbml.AST_CONSTANT_TRUE, sbml.AST_CONSTANT_FALSE):
            return bool(kind == sbml.AST_CONSTANT_TRUE)
        if _is_truth(node):
            self.check_arguments(node)
        if kind in relations:
            return self.comparison(relations[kind], inner)
        if kind == sbml.AST_LOGICAL_AND:
            return both([self.condition(child) for child in inner])
        if kind == sbml.AST_LOGICAL_OR:
            return either([self.condition(child) for child in inner])
        if kind == sbml.AST_LOGICAL_NOT:
            return opposite(self.condition(inner[0]))
        if kind == sbml.AST_LOGICAL_IMPLIES:
            return either([opposite(self.condition(inner[0])), self.condition(inner[1])])
        if kind == sbml.AST_LOGICAL_XOR:
            found: Truth = False
            for child in inner:
                part = self.condition(child)
                found = either([both([found, opposite(part)]), both([opposite(found), part])])
            return found
        if kind == sbml.AST_FUNCTION_PIECEWISE and all(map(self.is_truth, inner[::2])):
            return self.chosen(inner)
        return compare("!=", self.expression(node), ZERO)

    def chosen(self, inner: list[Any]) -> Truth:
        """A truth by cases."""
        found: Truth = self.condition(inner[-1]) if len(inner) % 2 else False
        for i in range(len(inner) // 2 * 2 - 2, -1, -2):
            holds = self.condition(inner[i + 1])
            found = either([both([holds, self.condition(inner[i])]), both([opposite(holds), found])])
        return found

    def comparison(self, relation: str, inner: list[Any]) -> Truth:
        """A chain of comparisons; truths are compared as truths."""
        if relation in ("==", "!=") and len(inner) == 2 and all(map(self.is_truth, inner)):
            one, other = map(self.condition, inner)
            same = either([both([one, other]), both([opposite(one), opposite(other)])])
            return same if relation == "==" else opposite(same)
        sides = [self.expression(child) for child in inner]
        return both([compare(relation, *pair) for pair in pairwise(sides)])


_SIGNS = {"<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}, "==": {0}, "!=": {-1, 1}}


def _covers_all(conditions: list[Truth]) -> bool:
    """Whether one of several conditions always holds: comparisons of the same two sides, by all signs."""
    if True in conditions:
        return conditions[-1] is True
    covered: dict[tuple[Expression, Expression], set[int]] = {}
    for condition in conditions:
        if isinstance(condition, Comparison):
            sides = condition.left, condition.right
            signs = _SIGNS[condition.relation]
            if sides[::-1] in covered:
                sides, signs = sides[::-1], {-sign for sign in signs}
            covered.setdefault(sides, set()).update(signs)
    return any(len(signs) == 3 for signs in covered.values())


def _is_truth(node: Any) -> bool:
    return bool(node.isBoolean() or node.isLogical() or node.isRelational())


def _operands(node: Any) -> list[Any]:
    """What an operator is applied to; a long sum or product, which libsbml nests to the left, is taken apart as one."""
    sbml, kind, later = lib(), node.getType(), []
    while kind in (sbml.AST_PLUS, sbml.AST_TIMES) and node.getNumChildren() == 2 and node.getChild(0).getType() == kind:
        later.append(node.getChild(1))
        node = node.getChild(0)
    return [*(node.getChild(i) for i in range(node.getNumChildren())), *reversed(later)]
