"""Formulas: PEtab's mathematics as expressions, and back.

PEtab writes powers with `^`, conditions with `&&`, `||` and `!`, and has more functions than the language; these are
written by what it has.  Truths and numbers stand for each other: true is 1, and what is not zero is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from odejet.errors import ExpressionError, ModelError
from odejet.io.sbml.formulas import (
    ONE,
    ZERO,
    Formula,
    Truth,
    both,
    choose,
    compare,
    either,
    negative,
    opposite,
    over,
    plus,
)
from odejet.model.expressions import (
    TIME,
    Choice,
    Comparison,
    Expression,
    Function,
    Logic,
    Number,
    Piecewise,
    Power,
    Product,
    Sum,
    Symbol,
    number,
)
from odejet.model.grammar import MAX_DEPTH, MAX_LENGTH

INFINITY = "inf"
"""The name that stands for infinity, which a formula of a model cannot have."""

Part = Expression | Truth
"""A number or a truth."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator>&&|\|\||[<>=!]=|[-+*/^()!<>,]))"
)
_SIMPLE = ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")
_TIME = "time"


def parse(text: str, where: str, named: Callable[[str], Expression] = Symbol) -> Expression:
    """The expression that a formula means; `named` tells what an id stands for, `where` whose formula it is."""
    reader = _Reader(text, where, named)
    found = _value(reader.joined(0))
    if reader.token:
        raise reader.error("an operator is missing here")
    return found


def _value(part: Part) -> Expression:
    """A part as a number."""
    return choose(ONE, part, ZERO) if isinstance(part, bool | Comparison | Logic) else part


def _truth(part: Part) -> Truth:
    """A part as a truth."""
    return part if isinstance(part, bool | Comparison | Logic) else compare("!=", part, ZERO)


class _Reader:
    """One formula, read from left to right by the precedence of operators."""

    def __init__(self, text: str, where: str, named: Callable[[str], Expression]) -> None:
        self.text, self.where, self.named = text, where, named
        self.position, self.kind, self.token, self.after = 0, "", "", 0
        if len(text) > MAX_LENGTH:
            raise ModelError(f"{where}: the formula has {len(text)} characters, and {MAX_LENGTH} is the limit")
        self.advance()

    def error(self, reason: str) -> ExpressionError:
        return ExpressionError(reason, self.text, self.position, self.where)

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.after)
        if match is None:
            self.position = len(self.text) - len(self.text[self.after :].lstrip())
            self.kind = self.token = ""
            if self.position < len(self.text):
                raise self.error(f"the character {self.text[self.position]!r} has no place in a formula of PEtab")
            return
        self.kind = str(match.lastgroup)
        self.token, self.position, self.after = match[self.kind], match.start(self.kind), match.end()

    def take(self, *tokens: str) -> str:
        """The next token, if it is one of these operators."""
        found = self.token if self.kind == "operator" and self.token in tokens else ""
        if found:
            self.advance()
        return found

    def joined(self, depth: int) -> Part:
        """Truths joined by `&&` and `||`, which bind alike."""
        if depth > MAX_DEPTH:
            raise self.error(f"the formula is nested more than {MAX_DEPTH} deep")
        found = self.compared(depth)
        while word := self.take("&&", "||"):
            parts = [_truth(found), _truth(self.compared(depth))]
            found = both(parts) if word == "&&" else either(parts)
        return found

    def compared(self, depth: int) -> Part:
        found = self.sum(depth)
        while relation := self.take("<", "<=", ">", ">=", "==", "!="):
            found = compare(relation, _value(found), _value(self.sum(depth)))
        return found

    def sum(self, depth: int) -> Part:
        found = self.product(depth)
        while sign := self.take("+", "-"):
            term = _value(self.product(depth))
            found = plus(_value(found), term if sign == "+" else negative(term))
        return found

    def product(self, depth: int) -> Part:
        found = self.signed(depth)
        factors: list[tuple[int, Expression]] = []
        while operator := self.take("*", "/"):
            factors = factors or [(1, _value(found))]
            factors.append((1 if operator == "*" else -1, _value(self.signed(depth))))
        return Product(tuple(factors)) if factors else found

    def signed(self, depth: int) -> Part:
        if depth > MAX_DEPTH:
            raise self.error(f"the formula is nested more than {MAX_DEPTH} deep")
        if sign := self.take("+", "-", "!"):
            part = self.signed(depth + 1)
            if sign == "!":
                return opposite(_truth(part))
            return _value(part) if sign == "+" else negative(_value(part))
        base = self.atom(depth)
        if self.take("^"):
            return Power(_value(base), _value(self.signed(depth + 1)))
        return base

    def atom(self, depth: int) -> Part:
        kind, token, position = self.kind, self.token, self.position
        if self.take("("):
            found = self.joined(depth + 1)
            if not self.take(")"):
                raise self.error("a parenthesis is not closed")
            return found
        if kind == "number":
            self.advance()
            return self.number(token)
        if kind != "name":
            raise self.error("the formula ends early" if not token else f"{token!r} has no place here")
        self.advance()
        if self.take("("):
            arguments = [self.joined(depth + 1)]
            while self.take(","):
                arguments.append(self.joined(depth + 1))
            if not self.take(")"):
                raise self.error("a parenthesis is not closed")
            self.position, after = position, self.position
            found = self.called(token, arguments)
            self.position = after
            return found
        if token.lower() in ("true", "false"):
            return token.lower() == "true"
        return Symbol(TIME) if token == _TIME else self.named(token)

    def number(self, token: str) -> Expression:
        try:
            return number(Fraction(token))
        except (ModelError, ValueError):
            raise self.error(f"the number {token} is out of range") from None

    # --- functions

    def called(self, name: str, parts: Sequence[Part]) -> Expression:
        if name == "piecewise":
            return self.piecewise(parts)
        values = [_value(part) for part in parts]
        wanted = {"pow": (2,), "min": (2,), "max": (2,), "log": (1, 2)}.get(name, (1,))
        if len(values) not in wanted:
            raise self.error(f"{name} takes {' or '.join(map(str, wanted))} arguments, not {len(values)}")
        match name, values:
            case "pow", [base, exponent]:
                return Power(base, exponent)
            case "min" | "max", _:
                return Choice(name, tuple(values))
            case "abs" | "sign", _:
                return Choice(name, tuple(values))
            case "log" | "ln", [argument]:
                return Function("log", argument)
            case "log", [argument, base]:
                return over(Function("log", argument), Function("log", base))
            case "log10" | "log2", [argument]:
                return over(Function("log", argument), Function("log", number(int(name[3:]))))
            case _, [argument] if name in _SIMPLE:
                return Function(name, argument)
        # What is left are functions that SBML has too, and writes the same way.
        try:
            return Formula(self.where, lambda id_, where: self.named(id_)).called(name, -1, values)
        except ModelError as error:
            raise self.error(str(error).removeprefix(f"{self.where}: ")) from None

    def piecewise(self, parts: Sequence[Part]) -> Expression:
        if len(parts) % 2 == 0:
            raise self.error("piecewise takes values and conditions in turn, and at last the value otherwise")
        found = _value(parts[-1])
        for value, condition in zip(parts[-3::-2], parts[-2::-2], strict=True):
            found = choose(_value(value), _truth(condition), found)
        return found


def replaced(expression: Any, part: Expression, by: Expression) -> Any:
    """The expression with another in the place of a part of it, wherever that stands as it is."""
    if expression == part:
        return by
    match expression:
        case Sum(terms):
            return Sum(tuple((sign, replaced(term, part, by)) for sign, term in terms))
        case Product(factors):
            return Product(tuple((exponent, replaced(factor, part, by)) for exponent, factor in factors))
        case Power(base, exponent):
            return Power(replaced(base, part, by), replaced(exponent, part, by))
        case Function(name, argument):
            return Function(name, replaced(argument, part, by))
        case Choice(name, arguments):
            return Choice(name, tuple(replaced(one, part, by) for one in arguments))
        case _:
            return expression


# --- writing ----------------------------------------------------------------------------------------------------------


def written(expression: Any, ids: Mapping[str, str]) -> str:
    """An expression as PEtab writes it, with an id for every name."""

    def inner(part: Any) -> str:
        text = written(part, ids)
        return text if isinstance(part, Symbol | Function | Choice | Piecewise) or text.isdecimal() else f"({text})"

    match expression:
        case Number(value):
            return _decimal(value)
        case Symbol(name):
            return _TIME if name == TIME else ids.get(name, name)
        case Sum(terms):
            text = "".join(f" {'+' if sign > 0 else '-'} {inner(term)}" for sign, term in terms)
            return text.removeprefix(" + ") if terms[0][0] > 0 else f"-{text[3:]}"
        case Product(factors):
            text = "".join(f" {'*' if exponent > 0 else '/'} {inner(factor)}" for exponent, factor in factors)
            return text[3:] if factors[0][0] > 0 else f"1{text}"
        case Power(base, exponent):
            return f"{inner(base)} ^ {inner(exponent)}"
        case Function(name, argument):
            return f"{name}({written(argument, ids)})"
        case Choice("floor" | "ceil" as name, _):
            raise ModelError(f"{name} has no counterpart in PEtab")
        case Choice("min" | "max" as name, (first, second, *more)):
            rest = Choice(name, (second, *more)) if more else second
            return f"{name}({written(first, ids)}, {written(rest, ids)})"
        case Choice(name, arguments):
            return f"{name}({', '.join(written(one, ids) for one in arguments)})"
        case Comparison(relation, left, right):
            return f"{inner(left)} {relation} {inner(right)}"
        case Logic("not", (part,)):
            return f"!({written(part, ids)})"
        case Logic(word, parts):
            sign = " && " if word == "and" else " || "
            return sign.join(f"({written(part, ids)})" for part in parts)
        case Piecewise(values, conditions):
            pairs = zip(values, conditions, strict=False)
            told = [f"{written(value, ids)}, {written(condition, ids)}" for value, condition in pairs]
            return f"piecewise({', '.join([*told, written(values[-1], ids)])})"
    raise AssertionError(expression)


def _decimal(value: Fraction) -> str:
    """A number: the decimal that it is, or the nearest double."""
    text = str(Number(value))
    return repr(float(value)) if text.startswith("(") else text
