"""Grammar: texts as expressions, or the place in a text where it is none.

A text is first cut into tokens, so that every stray character is refused at its place; the tokens are then parsed by
Python's `ast` and the tree is rebuilt node by node from a whitelist.  Nothing is ever executed.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
import unicodedata
import warnings
from collections.abc import Iterable, Mapping
from fractions import Fraction

from odejet.errors import ExpressionError, ModelError, clipped, nearest
from odejet.model.expressions import (
    FUNCTIONS,
    MAX_DECIMAL_EXPONENT,
    MAX_DIGITS,
    MAX_NAME,
    RANGE,
    TIME,
    Expression,
    Function,
    Number,
    Power,
    Product,
    Sum,
    Symbol,
    children,
    signed,
)

MAX_LENGTH = 20_000
MAX_DEPTH = 60
MAX_EXPONENT = 100

ALLOWED = "an expression may hold numbers, names, t, + - * / **, parentheses and the functions " + ", ".join(FUNCTIONS)

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<operator>\*\*|//|[-+*/()])"
)

_HINTS = {
    "^": "powers are written **",
    "=": "only the right-hand side is given",
    ",": "functions take one argument, and the decimal mark is a point",
    "[": "use round parentheses",
    "{": "use round parentheses",
    "'": "text has no place in an expression",
    '"': "text has no place in an expression",
    ".": "names have no dots",
}


_NOT_ANALYTIC = frozenset(
    ("abs", "fabs", "max", "min", "floor", "ceil", "ceiling", "round", "sign", "sgn", "step", "heaviside", "piecewise")
    + ("mod", "where", "ite", "if_else", "clip")
)

_INSTEAD = {
    "ln": "log(x)",
    "log10": "log(x)/log(10)",
    "log2": "log(x)/log(2)",
    "pow": "x**y",
    "power": "x**y",
    "cbrt": "x**(1/3)",
    "expm1": "exp(x) - 1",
    "log1p": "log(1 + x)",
    "cot": "1/tan(x)",
    "sec": "1/cos(x)",
    "csc": "1/sin(x)",
    "coth": "1/tanh(x)",
}


def parse(text: str, known: Iterable[str] | None = None, refused: Mapping[str, str] | None = None) -> Expression:
    """The expression written in `text`.

    With `known`, any other name (besides `t`) is unknown; `refused` maps names that may not stand here to the reason.
    """
    if not isinstance(text, str):
        raise ModelError(f"an expression must be text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        reason = (
            f"the expression has {len(text)} characters, and {MAX_LENGTH} is the limit; split it over several states"
        )
        raise ExpressionError(reason, text, MAX_LENGTH)
    _check_tokens(text)
    # Line breaks and other blanks become spaces, so that positions in the tree are positions in the text.
    line = re.sub(r"[\t\r\n]", " ", text)
    start = len(line) - len(line.lstrip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(line.strip(), mode="eval").body
    except SyntaxError as error:
        position = start + min((error.offset or 1) - 1, len(text))
        raise ExpressionError(f"this is not an expression: {ALLOWED}", text, position) from None
    except (RecursionError, MemoryError, ValueError):
        raise ExpressionError("the expression is nested too deeply; split it", text, 0) from None
    return _Reader(text, start, None if known is None else dict.fromkeys(known), refused or {}).read(tree, 0)


def _check_tokens(text: str) -> None:
    """Refuse, at its place, whatever is not a token of the language or is nested past the limit."""
    position, nesting, prefix, previous = 0, 0, 0, "operator"
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            character = text[position]
            hint = _HINTS.get(character)
            reason = f"the character {character!r} is not allowed{f' ({hint})' if hint else ''}; {ALLOWED}"
            raise ExpressionError(reason, text, position)
        kind, token = str(match.lastgroup), match.group()
        if kind == "space":
            position = match.end()
            continue
        if kind in ("name", "number") and previous in ("name", "number"):
            raise ExpressionError(f"an operator is missing before {clipped(token)}; {ALLOWED}", text, position)
        if kind == "name":
            _check_name(token, text, position, called=text[match.end() :].lstrip()[:1] == "(")
        if kind == "number":
            _check_number(token, text, position)
        if token == "//":
            raise ExpressionError("division that rounds is not analytic; divide with /", text, position)
        # Parentheses and runs of signs are what a parser recurses on.
        nesting += (token == "(") - (token == ")")
        prefix = prefix + 1 if kind == "operator" and token not in "()" else 0
        if nesting < 0:
            raise ExpressionError("this parenthesis was never opened", text, position)
        if max(nesting, prefix) > MAX_DEPTH:
            raise ExpressionError(f"the expression is nested more than {MAX_DEPTH} deep; split it", text, position)
        previous, position = ("value" if token == ")" else kind), match.end()
    if previous == "operator":
        reason = f"the expression is empty; {ALLOWED}" if not text.strip() else f"the expression ends early; {ALLOWED}"
        raise ExpressionError(reason, text, len(text.rstrip()))
    if nesting > 0:
        raise ExpressionError("a parenthesis is not closed", text, len(text.rstrip()))


def _check_name(token: str, text: str, position: int, called: bool) -> None:
    normal = unicodedata.normalize("NFKC", token)
    if len(normal) > MAX_NAME:
        raise ExpressionError(f"the name is longer than {MAX_NAME} characters; shorten it", text, position)
    if keyword.iskeyword(normal):
        raise ExpressionError(f"'{normal}' is a reserved word of Python; choose another name", text, position)
    if called and normal not in FUNCTIONS and (reason := no_function(normal)):
        raise ExpressionError(reason, text, position)


def no_function(name: str) -> str:
    """Why a well-known function is not in the language, or nothing."""
    if name.lower() in _NOT_ANALYTIC:
        return (
            f"'{name}' is not analytic, and jets need a Taylor series at every point; use a smooth stand-in, such as "
            "sqrt(x**2 + 1e-6) for |x| or (1 + tanh(x/0.01))/2 for a switch"
        )
    if name.lower() in _INSTEAD:
        return f"'{name}' is not a function here; write {_INSTEAD[name.lower()]}"
    return ""


def _check_number(token: str, text: str, position: int) -> None:
    mantissa, _, exponent = token.lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    if "." not in mantissa and not exponent and whole.strip("0") and whole.startswith("0"):
        raise ExpressionError("a whole number may not start with 0", text, position)
    digits = (whole + decimals).lstrip("0")
    if len(digits.rstrip("0")) > MAX_DIGITS or len(mantissa) > MAX_DIGITS + MAX_DECIMAL_EXPONENT:
        raise ExpressionError(f"the number has more than {MAX_DIGITS} digits", text, position)
    if digits and (len(exponent) > 5 or abs(_size(digits, decimals, exponent)) > MAX_DECIMAL_EXPONENT):
        raise ExpressionError(f"the number is out of range; {RANGE}", text, position)


def _size(digits: str, decimals: str, exponent: str) -> int:
    """The decimal exponent of a number with one digit before the point."""
    return len(digits) - 1 - len(decimals) + int(exponent or 0)


class _Reader:
    """Rebuilds a whitelisted `ast` tree as an `Expression`."""

    def __init__(self, text: str, start: int, known: dict[str, None] | None, refused: Mapping[str, str]) -> None:
        self.text, self.start, self.known, self.refused = text, start, known, refused
        self.measures: dict[int, tuple[Expression, float | None, float]] = {}
        # `ast` counts columns in UTF-8 bytes.
        self.columns = [i for i, character in enumerate(text) for _ in character.encode()] + [len(text)]

    def read(self, node: ast.expr, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            raise self.error(node, f"the expression is nested more than {MAX_DEPTH} deep; split it")
        expression = self.build(node, depth)
        try:
            _, _, exponent = self.measure(expression)
        except (ArithmeticError, ValueError):
            raise self.error(node, "this has no finite real value") from None
        if exponent > MAX_EXPONENT:
            raise self.error(node, f"the exponents here come to more than {MAX_EXPONENT}")
        return expression

    def build(self, node: ast.expr, depth: int) -> Expression:
        match node:
            case ast.Constant():
                return Number(Fraction(self.source(node)))
            case ast.Name(id=name):
                return self.symbol(node, name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand, depth + 1)
            case ast.UnaryOp(op=ast.USub()) | ast.BinOp(op=ast.Add() | ast.Sub()):
                return Sum(tuple(self.terms(node, depth)))
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                return self.product(node, depth)
            case ast.BinOp(op=ast.Pow(), left=base, right=exponent):
                return Power(self.read(base, depth + 1), self.read(exponent, depth + 1))
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
                return Function(name, self.read(argument, depth + 1))
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
                raise self.error(node, f"{name} takes exactly one argument")
            case ast.Call(func=ast.Name(id=name)):
                if self.known is not None and name in self.known:
                    raise self.error(node, f"an operator is missing after '{name}'; {ALLOWED}")
                guess = nearest(name, FUNCTIONS, cutoff=0.6) or ", or an operator is missing after it"
                raise self.error(node, f"'{name}' is not a function here{guess}; {ALLOWED}")
            case ast.Call():
                raise self.error(node, f"an operator is missing before the parenthesis; {ALLOWED}")
            case _:
                raise self.error(node, f"this is not an expression: {ALLOWED}")

    def terms(self, node: ast.expr, depth: int) -> list[tuple[int, Expression]]:
        """A chain of sums is read as one flat list, however long it is."""
        tail: list[tuple[int, Expression]] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and not self.enclosed(node, tail):
            tail.append((-1 if isinstance(node.op, ast.Sub) else 1, self.read(node.right, depth + 1)))
            node = node.left
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not self.enclosed(node, tail):
            tail.append((-1, self.read(node.operand, depth + 1)))
        else:
            head = self.read(node, depth + 1)
            tail.append((1, head) if self.enclosed(node, tail) else signed(head))
        return tail[::-1]

    def product(self, node: ast.expr, depth: int) -> Expression:
        """A chain of products, flat; Python reads `-a*b` as `(-a)*b`, we as `-(a*b)`."""
        tail: list[tuple[int, Expression]] = []
        while (
            isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)) and not self.enclosed(node, tail)
        ):
            tail.append((-1 if isinstance(node.op, ast.Div) else 1, self.read(node.right, depth + 1)))
            node = node.left
        negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not self.enclosed(node, tail)
        head = node.operand if isinstance(node, ast.UnaryOp) and negative else node
        tail.append((1, self.read(head, depth + 1)))
        chain = Product(tuple(tail[::-1]))
        return Sum(((-1, chain),)) if negative else chain

    def enclosed(self, node: ast.expr, tail: list[tuple[int, Expression]]) -> bool:
        """Whether the left end of a chain stands in its own parentheses, so that it is a unit of its own."""
        if not tail:
            return False
        after = self.columns_of(node)[1]
        return self.text[after:].lstrip()[:1] == ")"

    def measure(self, expression: Expression) -> tuple[Expression, float | None, float]:
        """Its value if it holds no names, and the largest product of nested exponents (kept alive: keys are ids)."""
        if id(expression) not in self.measures:
            parts = [self.measure(child) for child in children(expression)]
            values = [value for _, value, _ in parts if value is not None]
            value = None
            if len(values) == len(parts) and not isinstance(expression, Symbol):
                value = _evaluate(expression, values)
            exponent = max([1.0, *(exponent for _, _, exponent in parts)])
            if isinstance(expression, Power) and parts[1][1] is not None:
                exponent *= max(1.0, abs(parts[1][1]))
            self.measures[id(expression)] = expression, value, exponent
        return self.measures[id(expression)]

    def symbol(self, node: ast.expr, name: str) -> Symbol:
        if name in FUNCTIONS:
            raise self.error(node, f"the function '{name}' needs an argument in parentheses")
        if name in self.refused:
            raise self.error(node, self.refused[name])
        if name == "time":
            raise self.error(node, "the time is written t")
        if self.known is not None and name != TIME and name not in self.known:
            raise self.error(node, f"unknown name '{name}'{nearest(name, self.known) or self.all_known()}")
        return Symbol(name)

    def all_known(self) -> str:
        known = list(self.known or ())
        return f" (known: {', '.join(['t', *known[:20]])}{', ...' if len(known) > 20 else ''})"

    def columns_of(self, node: ast.expr) -> tuple[int, int]:
        end = node.end_col_offset if node.end_col_offset is not None else node.col_offset
        shift = len(self.text[: self.start].encode())
        return self.columns[shift + node.col_offset], self.columns[min(shift + end, len(self.columns) - 1)]

    def source(self, node: ast.expr) -> str:
        begin, end = self.columns_of(node)
        return self.text[begin:end]

    def error(self, node: ast.expr, reason: str) -> ExpressionError:
        return ExpressionError(reason, self.text, self.columns_of(node)[0])


def _evaluate(expression: Expression, parts: list[float]) -> float:
    """The finite value of a node from the values of its children; undefined or infinite ones raise."""
    match expression:
        case Number(exact):
            value = float(exact)
        case Sum(terms):
            value = math.fsum(sign * part for (sign, _), part in zip(terms, parts, strict=True))
        case Product(factors):
            value = 1.0
            for (exponent, _), part in zip(factors, parts, strict=True):
                value = value * part if exponent > 0 else value / part
        case Power():
            value = math.pow(*parts)
            # Exact arithmetic would have to carry what a double loses.
            if value == 0 and parts[0] != 0:
                raise OverflowError
        case Function(name, _):
            value = getattr(math, name)(*parts)
        case _:
            raise AssertionError(expression)
    if not math.isfinite(value):
        raise OverflowError
    return value
