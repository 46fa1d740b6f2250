"""Grammar: texts as expressions, or the place in a text where it is none.

A text is first cut into tokens, so that every stray character is refused at its place; the tokens are then parsed by
Python's `ast` and the tree is rebuilt node by node from a whitelist.  Nothing is ever executed.
"""

from __future__ import annotations

import ast
import keyword
import re
import unicodedata
import warnings
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise

from odejet.errors import ExpressionError, ModelError, clipped, nearest
from odejet.model.expressions import (
    CHOICES,
    FUNCTIONS,
    MAX_DECIMAL_EXPONENT,
    MAX_DIGITS,
    MAX_NAME,
    RANGE,
    TIME,
    WINDOWS,
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
    names,
    signed,
)
from odejet.model.indices import Scope
from odejet.model.wellformed import MAX_DEPTH, MAX_EXPONENT, measure

MAX_LENGTH = 20_000

CALLED = (*FUNCTIONS, *CHOICES, *WINDOWS, "piecewise", "delay", "sum")
ALLOWED = "an expression may hold numbers, names, t, + - * / **, parentheses and the functions " + ", ".join(CALLED)
CONDITION = "a condition is a comparison such as x > 1, or several joined by and, or, not"

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*(?:\[[^\[\]()]*\])?)"
    r"|(?P<operator>\*\*|//|<=|>=|==|!=|[-+*/(),<>])"
)

_HINTS = {
    "^": "powers are written **",
    "=": "only the right-hand side is given",
    "&": "conditions are joined by the word and",
    "|": "conditions are joined by the word or",
    "!": "the opposite of a condition is written not",
    "[": "use round parentheses",
    "{": "use round parentheses",
    "'": "text has no place in an expression",
    '"': "text has no place in an expression",
    ".": "names have no dots",
}


_WORDS = ("and", "or", "not", "in")
_INSTEAD = {
    "fabs": "abs(x)",
    "ceiling": "ceil(x)",
    "round": "floor(x + 1/2)",
    "sgn": "sign(x)",
    "heaviside": "piecewise(1, x >= 0, 0)",
    "step": "piecewise(1, x >= 0, 0)",
    "mod": "x - y*floor(x/y)",
    "where": "piecewise(a, condition, b)",
    "ite": "piecewise(a, condition, b)",
    "if_else": "piecewise(a, condition, b)",
    "clip": "min(max(x, low), high)",
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
_RATES = ("der", "diff", "ddt", "derivative", "rateof", "dxdt")
_NEUTRAL = (
    "an expression holds no derivatives: with a delayed one the equation is neutral, which is not solved; "
    "write the right-hand side of the state instead"
)
_BY = "a delay is written x(t - tau) or delay(x, tau), with a number, a parameter or an expression of these for tau"


def parse(
    text: str,
    known: Iterable[str] | None = None,
    refused: Mapping[str, str] | None = None,
    past: bool = False,
    scope: Scope | None = None,
) -> Expression:
    """The expression written in `text`.

    With `known`, any other name (besides `t`) is unknown; `refused` maps names that may not stand here to the reason.
    Values of the `past` have a place in few expressions.  A `scope` tells what indices stand for.
    """
    tree, start = _tree(text)
    names_ = None if known is None else dict.fromkeys(known)
    return _Reader(text, start, names_, refused or {}, past, scope).read(tree, 0)


def parse_condition(
    text: str, known: Iterable[str] | None = None, refused: Mapping[str, str] | None = None
) -> Condition:
    """The condition written in `text`, as for `parse`."""
    tree, start = _tree(text)
    return _Reader(text, start, None if known is None else dict.fromkeys(known), refused or {}).condition(tree, 0)


def _tree(text: str) -> tuple[ast.expr, int]:
    """A text as Python reads it, and where it begins."""
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
            return ast.parse(line.strip(), mode="eval").body, start
    except SyntaxError as error:
        position = start + min((error.offset or 1) - 1, len(text))
        raise ExpressionError(f"this is not an expression: {ALLOWED}", text, position) from None
    except (RecursionError, MemoryError, ValueError):
        raise ExpressionError("the expression is nested too deeply; split it", text, 0) from None


def _check_tokens(text: str) -> None:
    """Refuse, at its place, whatever is not a token of the language or is nested past the limit."""
    position, nesting, prefix, previous = 0, 0, 0, "operator"
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            character = text[position]
            if character == "'" and previous == "name":
                raise ExpressionError(_NEUTRAL, text, position)
            hint = _HINTS.get(character)
            reason = f"the character {character!r} is not allowed{f' ({hint})' if hint else ''}; {ALLOWED}"
            raise ExpressionError(reason, text, position)
        kind, token = str(match.lastgroup), match.group()
        kind = "operator" if token in _WORDS else kind
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
            raise ExpressionError("division that rounds is written floor(a/b)", text, position)
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
    normal = unicodedata.normalize("NFKC", token).partition("[")[0]
    if len(token) > MAX_NAME:
        raise ExpressionError(f"the name is longer than {MAX_NAME} characters; shorten it", text, position)
    if keyword.iskeyword(normal):
        raise ExpressionError(f"'{normal}' is a reserved word of Python; choose another name", text, position)
    if called and (reason := no_function(normal)):
        raise ExpressionError(reason, text, position)


def no_function(name: str) -> str:
    """Why a well-known function is not in the language, or nothing."""
    if name.lower() in _RATES:
        return f"'{name}' is not a function here; {_NEUTRAL}"
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


_RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class _Reader:
    """Rebuilds a whitelisted `ast` tree as an `Expression`."""

    def __init__(
        self,
        text: str,
        start: int,
        known: dict[str, None] | None,
        refused: Mapping[str, str],
        past: bool = False,
        scope: Scope | None = None,
    ) -> None:
        self.text, self.start, self.known, self.refused, self.past = text, start, known, refused, past
        self.scope = scope
        # `ast` counts columns in UTF-8 bytes.
        self.columns = [i for i, character in enumerate(text) for _ in character.encode()] + [len(text)]

    def read(self, node: ast.expr, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            raise self.error(node, f"the expression is nested more than {MAX_DEPTH} deep; split it")
        expression = self.build(node, depth)
        try:
            exponent = measure(expression).exponent
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
            case ast.Subscript(value=ast.Name(id=name)):
                return self.symbol(node, self.indexed(node, name))
            case ast.Call(func=ast.Name(id="sum"), args=arguments, keywords=[]):
                return self.total(node, arguments, depth)
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
            case ast.Call(func=ast.Name(id="piecewise"), args=arguments, keywords=[]):
                return self.piecewise(node, arguments, depth)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in CHOICES:
                return self.choice(node, name, arguments, depth)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in WINDOWS:
                return self.window(node, name, arguments, depth)
            case ast.Call(func=ast.Name(id="delay"), args=arguments, keywords=[]):
                if len(arguments) != 2:
                    raise self.error(node, f"delay takes what is delayed and by how much; {_BY}")
                return self.delay(node, *(self.read(argument, depth + 1) for argument in arguments))
            case ast.Call(func=ast.Name(id=name) as called, args=[argument], keywords=[]) if self.is_past(argument):
                return self.delay(node, self.symbol(called, name), self.before(argument, depth))
            case ast.Call(func=ast.Name(id=name)):
                if self.known is not None and name in self.known:
                    raise self.error(node, f"an operator is missing after '{name}'; {ALLOWED}")
                if guess := nearest(name, CALLED, cutoff=0.6):
                    raise self.error(node, f"'{name}' is not a function here{guess}")
                raise self.error(
                    node, f"'{name}' is not a function here, or an operator is missing after it; {ALLOWED}"
                )
            case ast.Call():
                raise self.error(node, f"an operator is missing before the parenthesis; {ALLOWED}")
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                raise self.error(node, "a condition is no number; write piecewise(a, condition, b)")
            case ast.Tuple(elts=[first, *_]):
                comma = self.text.index(",", self.columns_of(first)[1])
                raise ExpressionError("a comma has no place here; the decimal mark is a point", self.text, comma)
            case _:
                raise self.error(node, f"this is not an expression: {ALLOWED}")

    def indexed(self, node: ast.expr, name: str) -> str:
        """A name with the members that its indices stand for."""
        inside = self.source(node).partition("[")[2].rpartition("]")[0]
        parts = [part.strip() for part in inside.split(",")]
        if not all(re.fullmatch(r"[\w.+\- ]+", part) for part in parts):
            raise self.error(
                node, f"'{inside}' is no index; write members or indices with commas between, as in C[i,j]"
            )
        try:
            members = parts if self.scope is None else list(map(self.scope.member, parts))
        except ModelError as error:
            raise self.error(node, str(error)) from None
        return f"{name}[{','.join(member.replace(' ', '') for member in members)}]"

    def total(self, node: ast.expr, arguments: list[ast.expr], depth: int) -> Expression:
        """The sum of an expression over all members of a set."""
        if self.scope is None:
            raise self.error(node, "sum adds over the members of a set, and the model has none; declare it in [sets]")
        if len(arguments) != 2:
            raise self.error(node, "sum takes an index and what is added, as in sum(j, C[i,j]*I[j])")
        try:
            index, name = self.scope.binding(self.source(arguments[0]))
        except ModelError as error:
            raise self.error(arguments[0], str(error)) from None
        terms: list[tuple[int, Expression]] = []
        for scope in self.scope.over(index, name):
            inner = _Reader(self.text, self.start, self.known, self.refused, self.past, scope)
            terms.append(signed(inner.read(arguments[1], depth + 1)))
        return terms[0][1] if len(terms) == 1 and terms[0][0] > 0 else Sum(tuple(terms))

    def window(self, node: ast.expr, name: str, arguments: list[ast.expr], depth: int) -> Function:
        """What happened since the last measurement, of something that can change."""
        if len(arguments) != 1:
            raise self.error(node, f"{name} takes exactly one argument")
        argument = self.read(arguments[0], depth + 1)
        if not any(names(argument)):
            raise self.error(node, f"this is {name} of a number, which never changes; name what changes")
        return Function(name, argument)

    def delay(self, node: ast.expr, argument: Expression, by: Expression) -> Delay:
        if not self.past:
            raise self.error(node, "a delay has its place in the right-hand sides of states and in outputs only")
        return Delay(argument, by)

    def is_past(self, node: ast.expr) -> bool:
        """Whether this is the time less something, as in x(t - tau)."""
        while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            node = node.left
        return isinstance(node, ast.Name) and node.id == TIME

    def before(self, node: ast.expr, depth: int) -> Expression:
        """By how much a time, which begins with t, lies before t."""
        match self.read(node, depth + 1):
            case Sum((_, (-1, by))):
                return by
            case Sum((_, *rest)):
                return Sum(tuple((-sign, term) for sign, term in rest))
        raise self.error(node, f"the value at t has no parentheses; {_BY}")

    def choice(self, node: ast.expr, name: str, arguments: list[ast.expr], depth: int) -> Choice:
        several = name in ("min", "max")
        if not arguments or (len(arguments) > 1) != several:
            raise self.error(node, f"{name} takes {'two or more arguments' if several else 'exactly one argument'}")
        return Choice(name, tuple(self.read(argument, depth + 1) for argument in arguments))

    def piecewise(self, node: ast.expr, arguments: list[ast.expr], depth: int) -> Piecewise:
        if len(arguments) < 3 or len(arguments) % 2 == 0:
            raise self.error(node, "piecewise takes values and conditions in turn, and at last the value otherwise")
        values = tuple(self.read(value, depth + 1) for value in arguments[::2])
        return Piecewise(values, tuple(self.condition(part, depth + 1) for part in arguments[1::2]))

    def condition(self, node: ast.expr, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise self.error(node, f"the condition is nested more than {MAX_DEPTH} deep; split it")
        match node:
            case ast.BoolOp(op=word, values=parts):
                return Logic(
                    "and" if isinstance(word, ast.And) else "or",
                    tuple(self.condition(part, depth + 1) for part in parts),
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Logic("not", (self.condition(operand, depth + 1),))
            case ast.Compare(left=left, ops=relations, comparators=others) if all(
                type(relation) in _RELATIONS for relation in relations
            ):
                sides = [self.read(side, depth + 1) for side in (left, *others)]
                pairs = tuple(
                    Comparison(_RELATIONS[type(relation)], *pair)
                    for relation, pair in zip(relations, pairwise(sides), strict=True)
                )
                return pairs[0] if len(pairs) == 1 else Logic("and", pairs)
            case _:
                raise self.error(node, f"this is no condition: {CONDITION}")

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
