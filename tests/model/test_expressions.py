"""The language of expressions: what it reads, what it prints, what it refuses, and that it runs nothing."""

from __future__ import annotations

import math
import pickle
import random
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from odejet.errors import ExpressionError, ModelError, nearest
from odejet.model import grammar
from odejet.model.expressions import (
    FUNCTIONS,
    Function,
    Number,
    Power,
    Product,
    Sum,
    Symbol,
    constant,
    names,
    number,
)
from odejet.model.grammar import parse
from odejet.model.names import checked_name
from odejet.model.symbolic import from_sympy, to_sympy
from tests import strategies

A, B, C = Symbol("a"), Symbol("b"), Symbol("c")


def num(text: str) -> Number:
    return Number(Fraction(text))


# --- what it reads ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("  a\n", A),
        ("0.1", num("1/10")),
        ("1e-3", num("1/1000")),
        (".5", num("1/2")),
        ("2.", num("2")),
        ("+a", A),
        ("-a", Sum(((-1, A),))),
        ("a - b + c", Sum(((1, A), (-1, B), (1, C)))),
        ("a - (b + c)", Sum(((1, A), (-1, Sum(((1, B), (1, C))))))),
        ("(a + b) + c", Sum(((1, Sum(((1, A), (1, B)))), (1, C)))),
        ("a/b*c", Product(((1, A), (-1, B), (1, C)))),
        ("a/(b*c)", Product(((1, A), (-1, Product(((1, B), (1, C))))))),
        ("-a*b", Sum(((-1, Product(((1, A), (1, B)))),))),
        ("(-a)*b", Product(((1, Sum(((-1, A),))), (1, B)))),
        ("c - a*b", Sum(((1, C), (-1, Product(((1, A), (1, B))))))),
        ("-a*b + c", Sum(((-1, Product(((1, A), (1, B)))), (1, C)))),
        ("-a**2", Sum(((-1, Power(A, num("2"))),))),
        ("a**b**c", Power(A, Power(B, C))),
        ("a**-2", Power(A, Sum(((-1, num("2")),)))),
        ("exp(-a)", Function("exp", Sum(((-1, A),)))),
        ("µ", Symbol("μ")),
    ],
)
def test_reads(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("k1 * r-k2*r* w", "k1*r - k2*r*w"),
        ("((a))", "a"),
        ("a*(b*c)", "a*(b*c)"),
        ("a - -b", "a - (-b)"),
        ("2.50*a", "2.5*a"),
        ("1000000000000000000000*a", "1e21*a"),
        ("0.000001", "1e-6"),
        ("0.0001", "0.0001"),
        ("123456.789e-2", "1234.56789"),
        ("a\n  + b", "a + b"),
        ("sqrt(a)**b", "sqrt(a)**b"),
        ("(a**b)**2", "(a**b)**2"),
    ],
)
def test_prints(text, printed):
    assert str(parse(text)) == printed
    assert parse(printed) == parse(text)


def test_names_come_in_order_of_appearance():
    assert list(names(parse("b*(a + sin(c))/b**d"))) == ["b", "a", "c", "b", "d"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("2", 2), ("-1/3", Fraction(-1, 3)), ("(1 + 2)*3/4 - 0.5", Fraction(7, 4)), ("a", None), ("2**3", None)],
)
def test_constant(text, value):
    assert constant(parse(text)) == value


def test_long_chains_are_flat():
    text = " + ".join(["a"] * 900)
    assert len(parse(text).terms) == 900
    assert str(parse(text)) == text


# --- numbers ---


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0, "0"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (-2, "-2"),
        (np.float64(0.1), "0.1"),
        (np.int64(7), "7"),
        (Decimal("0.10"), "0.1"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-1, 3), "-1/3"),
        (1e-300, "1e-300"),
        (1e22, "1e22"),
        (123456789.123, "123456789.123"),
    ],
)
def test_number(value, printed):
    assert str(number(value)) == printed
    assert parse(printed) == number(value)


@pytest.mark.parametrize(
    "value",
    [math.inf, -math.inf, math.nan, 1e301, 5e-324, Decimal("1e999999999"), Fraction(1, 3 * 10**400), 10**400, True, "1"]
    + [int("1" * 61), Fraction(int("1" * 61), 3)],
)
def test_number_refuses(value):
    with pytest.raises(ModelError):
        number(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_round_trip(value):
    assume(value == 0 or 1e-300 <= abs(value) <= 1e300)
    expression = number(value)
    assert parse(str(expression)) == expression
    assert float(constant(expression)) == value


@given(st.text("0123456789", max_size=60), st.text("0123456789", max_size=60), st.integers(-400, 400))
def test_written_numbers_round_trip(whole, decimals, exponent):
    text = f"{whole}.{decimals}e{exponent}"
    assume(strategies.is_expression(text))
    assert constant(parse(text)) == Fraction(text)
    assert parse(str(parse(text))) == parse(text)


def test_number_without_decimal_text_is_printed_as_a_ratio():
    assert parse(str(Product(((1, A), (-1, Number(Fraction(1, 3))))))) == parse("a/(1/3)")


# --- refusals: one sentence, and a caret at the place ---

REFUSALS = [
    ("", 0, "empty"),
    ("   ", 0, "empty"),
    ("a +", 3, "ends early"),
    ("a b", 2, "operator is missing before 'b'"),
    ("2a", 1, "operator is missing before 'a'"),
    ("1_000", 1, "operator is missing"),
    ("0x10", 1, "operator is missing"),
    ("2(a)", 0, "operator is missing before the parenthesis"),
    ("a(b)", 0, "'a' is not a function here, or an operator is missing"),
    ("sinn(b)", 0, "did you mean 'sin'?"),
    ("a ^ 2", 2, "powers are written **"),
    ("a = 2", 2, "only the right-hand side"),
    ("1,5*a", 1, "decimal mark is a point"),
    ("a.b", 1, "names have no dots"),
    ("a + [0]", 4, "round parentheses"),
    ("'a'", 0, "text has no place"),
    ("a; b", 1, "';' is not allowed"),
    ("a\x00b", 1, "is not allowed"),
    ("a // b", 2, "floor(a/b)"),
    ("a % b", 2, "'%' is not allowed"),
    ("a * * b", 4, "not an expression"),
    ("2 * (a + b", 10, "not closed"),
    ("a + b)", 5, "never opened"),
    ("()", 0, "not an expression"),
    ("sin()", 0, "exactly one argument"),
    ("a*sin", 2, "needs an argument"),
    ("a*lambda", 2, "reserved word"),
    ("ｉｆ*2", 0, "reserved word"),
    ("a if b else c", 2, "operator is missing before 'if'"),
    ("a*time", 2, "the time is written t"),
    ("007*a", 0, "may not start with 0"),
    ("a*1e301", 2, "out of range"),
    ("a*1e-99999999999", 2, "out of range"),
    ("1" * 61, 0, "more than 60 digits"),
    ("a*0." + "0" * 400 + "1", 2, "digits"),
    ("a**101", 0, "exponents"),
    ("b + (a**50)**3", 4, "exponents"),
    ("b + (2*(a*b)**50 + 1)**3", 4, "exponents"),
    ("b + a**(10**3)", 4, "exponents"),
    ("b + 1/(2 - 2)", 4, "no finite real value"),
    ("b + b/0", 4, "no finite real value"),
    ("b + b/(2 - 2)*3", 4, "no finite real value"),
    ("b + 9**(9**99)", 4, "no finite real value"),
    ("b + ((9**99)**99)**99", 5, "no finite real value"),
    ("b + (0.1**99)**99", 4, "no finite real value"),
    ("b + sqrt(-1)", 4, "no finite real value"),
    ("b + log(0)", 4, "no finite real value"),
    ("b + (-8)**(1/3)", 4, "no finite real value"),
    ("1 + abs(a, b)", 4, "exactly one argument"),
    ("1 + max(a)", 4, "two or more arguments"),
    ("Heaviside(t - 1)", 0, "write piecewise(1, x >= 0, 0)"),
    ("mod(a, 2)", 0, "write x - y*floor(x/y)"),
    ("piecewise(a, b > 0)", 0, "the value otherwise"),
    ("piecewise(a, b, c)", 13, "no condition"),
    ("piecewise(a, b > 0 and c, d)", 23, "no condition"),
    ("a*(t > 1)", 3, "a condition is no number"),
    ("not a", 0, "a condition is no number"),
    ("a && b", 2, "joined by the word and"),
    ("pow(a, 2)", 0, "write x**y"),
    ("ln(a)", 0, "write log(x)"),
    ("(" * 61 + "a" + ")" * 61, 60, "nested more than 60"),
    ("-" * 61 + "a", 60, "nested more than 60"),
    ("sin(" * 50 + "-" * 20 + "a" + ")" * 50, 211, "nested more than 60"),
    ("a**" * 6000 + "a", 0, "nested too deeply"),
    ("a+" * 9000 + "a", 0, "nested too deeply"),
    ("a" * 101, 0, "longer than 100"),
    ("a+" * 10_000 + "a", 20_000, "characters"),
]


@pytest.mark.parametrize(("text", "position", "reason"), REFUSALS, ids=[text[:20] for text, _, _ in REFUSALS])
def test_refuses_at_the_place(text, position, reason):
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    error = caught.value
    assert reason in error.reason
    assert "\n" not in error.reason
    assert error.position == position


def test_message_shows_the_place():
    with pytest.raises(ExpressionError) as caught:
        parse("k1*r - kx*w", ["r", "w", "k1", "k2"])
    expected = "model.toml [states] r: unknown name 'kx'; did you mean 'k1'?\n    k1*r - kx*w\n           ^"
    assert str(caught.value.at("model.toml [states] r")) == expected


@pytest.mark.parametrize("text", ["β*ﬁ + ?", "  µ**2 + ?", "\n\tβ\r\n+ ?"])
def test_caret_stands_under_the_place_whatever_comes_before(text):
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    shown, caret = str(caught.value).splitlines()[1:]
    assert shown[caret.index("^")] == "?"
    with pytest.raises(ExpressionError) as caught:
        parse(text.replace("?", "zz"), ["β", "fi", "μ"])
    shown, caret = str(caught.value).splitlines()[1:]
    assert shown[caret.index("^") :] == "zz"


def test_long_text_is_shown_around_the_place():
    with pytest.raises(ExpressionError) as caught:
        parse("a + " * 200 + "b! + a" + " + a" * 200)
    _, shown, caret = str(caught.value).splitlines()
    assert shown[caret.index("^")] == "!"
    assert len(shown) < 110


def test_unknown_name_without_a_near_one_lists_the_known():
    with pytest.raises(ExpressionError, match=r"unknown name 'zeta' \(known: t, r, w\)"):
        parse("zeta", ["r", "w"])


def test_refused_names_give_their_reason():
    with pytest.raises(ExpressionError, match="because"):
        parse("a + t", refused={"t": "because"})


def test_parse_wants_text():
    with pytest.raises(ModelError, match="must be text, not int"):
        parse(3)  # type: ignore[arg-type]


def test_errors_survive_pickling():
    with pytest.raises(ExpressionError) as caught:
        parse("a +")
    assert str(pickle.loads(pickle.dumps(caught.value.at("here")))) == str(caught.value.at("here"))


@pytest.mark.parametrize(
    ("name", "close"),
    [("kx", "k1"), ("K2", "k2"), ("alhpa", "alpha"), ("qqqq", "")],
)
def test_nearest(name, close):
    assert nearest(name, iter(["k1", "k2", "alpha"])) == (f"; did you mean '{close}'?" if close else "")


@pytest.mark.parametrize(
    "name", ["", "2x", "a b", "a-b", "a\n", "a·b", "x" * 101, *FUNCTIONS, "t", "time", "if", "𝐓𝐫𝐮𝐞"]
)
def test_no_names(name):
    with pytest.raises(ModelError) as caught:
        checked_name(name)
    assert "\n" not in str(caught.value)


def test_names_are_spelled_as_python_spells_them():
    assert checked_name("µ") == checked_name("μ") == "\N{GREEK SMALL LETTER MU}"


# --- random expressions ---

LETTERS = ["a", "b", "t", "µ", "x_1"]


@given(strategies.texts(LETTERS, FUNCTIONS, leaves=30))
@example("- - -a")
@example("-a*b*-c")
@example("(a)(b)")
def test_text_round_trips(text):
    assume(strategies.is_expression(text))
    expression = parse(text)
    assert parse(str(expression)) == expression


@given(strategies.texts(LETTERS, FUNCTIONS, leaves=30), st.integers(0, 10**9))
def test_means_what_python_means(text, seed):
    assume(strategies.is_expression(text))
    rng = random.Random(seed)
    values = {checked_name(name) if name != "t" else name: mpmath.mpf(rng.uniform(0.1, 2)) for name in LETTERS}
    with mpmath.workdps(40):
        try:
            value = strategies.evaluate(parse(text), values)
            python = _in_python(text, values)
        except (ZeroDivisionError, OverflowError, ValueError):
            assume(False)
        assume(mpmath.isfinite(value))
        assert mpmath.almosteq(value, python, 1e-20, 1e-20)


def _in_python(text: str, values: dict[str, mpmath.mpf]) -> mpmath.mpf:
    """The text as Python itself reads it, with every number an `mpf`; the text is one that our tests made."""
    text = grammar._TOKEN.sub(lambda m: f"mpf('{m.group()}')" if m.lastgroup == "number" else m.group(), text)
    return eval(text.strip(), {name: getattr(mpmath, name) for name in FUNCTIONS} | {"mpf": mpmath.mpf} | values)


# --- nothing is ever executed ---

_listeners: list[list[str]] = []


def _listen(event: str, _arguments: tuple) -> None:
    # A hook cannot be taken out again, so it does nothing unless somebody listens.
    if _listeners:
        _listeners[-1].append(event)


sys.addaudithook(_listen)


def events_of(action) -> list[str]:
    """The audit events (import, open, exec, ...) that an action causes; parsing to a tree is a 'compile' alone."""
    _listeners.append([])
    try:
        action()
    finally:
        events = _listeners.pop()
    return events


HARMLESS = {"compile", "builtins.id"}


def try_parse(text: str) -> None:
    try:
        parse(text)
    except ModelError as error:
        assert str(error)


def test_the_audit_notices_execution():
    assert "exec" in events_of(lambda: eval("1 + 1"))
    assert "open" in events_of(lambda: Path(__file__).read_text())


PYTHON = """
__import__('os').system('true')|open('f','w')|exec|eval('1')|().__class__|lambda: 0|[x for x in y]|:=|print(1)|f'{x}'
a.b|a[0]|{**a}|*a|yield|await x|if|else|#|\'\'\'|\\|1j|0b1|1e5|==|<|@|&|~|!|$|?|…
"""
LANGUAGE = "a|b|t|1|2.5|+|-|*|/|**|(|)|sin|exp(|sqrt(a)| |µ|٣|²|ａ|\n|\t|\x00|\ud800"
FRAGMENTS = "|".join([*PYTHON.split("\n"), LANGUAGE]).split("|")


@settings(max_examples=1000)
@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)))
def test_garbage_gives_one_error_and_executes_nothing(text):
    assert set(events_of(lambda: try_parse(text))) <= HARMLESS


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__.__bases__[0].__subclasses__()",
        "(lambda: 0)()",
        "exec(a)",
        "eval(a)",
        "__builtins__(a)",
        "[a for a in b]",
        "f'{a}'",
        "a if b else c",
        "(a := b)",
        "a and b",
        "not a",
        "a < b",
        "*a",
        "a @ b",
        "~a",
        "1j*a",
    ],
)
def test_python_beyond_the_language_is_refused(text):
    with pytest.raises(ExpressionError):
        parse(text)
    assert set(events_of(lambda: try_parse(text))) <= HARMLESS


# --- SymPy ---

x, y, z = sympy.symbols("x y z")


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        (x, "x"),
        (sympy.Integer(-3), "-3"),
        (sympy.Rational(2, 3) * x, "2*x/3"),
        (-x / 2, "-x/2"),
        (1 / x, "1/x"),
        (x**-2 * y, "y/x**2"),
        (sympy.sqrt(x), "sqrt(x)"),
        (1 / sympy.sqrt(x), "1/sqrt(x)"),
        (x**y, "x**y"),
        (sympy.Float("0.1") * x, "0.1*x"),
        (-sympy.Float("0.1") * x, "-0.1*x"),
        (sympy.exp(-x), "exp(-x)"),
        (x - y, "x - y"),
        (sympy.tanh(x) * sympy.log(y), "log(y)*tanh(x)"),
        (sympy.pi * x, "3.141592653589793*x"),
        (sympy.Symbol("µ"), "μ"),
        (sympy.Symbol("t"), "t"),
        (sympy.Abs(x), "abs(x)"),
        (sympy.Max(x, 2), "max(2, x)"),
        (sympy.floor(x / 2), "floor(x/2)"),
        (sympy.ceiling(x), "ceil(x)"),
        (sympy.sign(x), "sign(x)"),
        (sympy.Heaviside(x), "piecewise(1, x >= 0, 0)"),
        (sympy.Piecewise((x, x > 0), (y, x <= -1), (2, True)), "piecewise(x, x > 0, y, x <= -1, 2)"),
    ],
)
def test_from_sympy(expression, printed):
    assert str(from_sympy(expression)) == printed
    assert parse(printed) == parse(str(from_sympy(expression)))


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (sympy.Piecewise((x, x > 0)), "no value otherwise"),
        (sympy.Piecewise((x, sympy.Xor(x > 0, y > 0)), (y, True)), "no condition"),
        (sympy.sec(x), "write 1/cos"),
        (sympy.besselj(0, x), "besselj"),
        (sympy.Function("f")(x), "plain symbol"),
        (sympy.I * x, "ImaginaryUnit"),
        (x**sympy.I, "ImaginaryUnit"),
        (sympy.oo, "Infinity"),
        (sympy.zoo, "ComplexInfinity"),
        (sympy.nan, "NaN"),
        (sympy.Symbol("a b"), "not a name"),
        (sympy.Symbol("lambda"), "reserved"),
        (sympy.true, "BooleanTrue"),
        (x > 0, "StrictGreaterThan"),
        (sympy.Derivative(x**2, x), "Derivative"),
        (sympy.Float("1e400"), "finite"),
    ],
)
def test_from_sympy_refuses(expression, reason):
    with pytest.raises(ModelError, match=reason):
        from_sympy(expression)


def test_sympy_switches_come_back():
    chosen = sympy.Piecewise((x, ((x > 0) & (y < 2)) | (y > 5)), (sympy.Max(x, y), sympy.Ne(x, 1)), (y, True))
    for expression in (chosen, sympy.Abs(x) + sympy.floor(y) - sympy.sign(x)):
        assert to_sympy(parse(str(from_sympy(expression)))) == expression


def test_sympy_writes_greek():
    assert sympy.latex(to_sympy(parse("alpha*x_1**2/2"))) == r"\frac{\alpha x_{1}^{2}}{2}"


@settings(max_examples=60)
@given(strategies.texts(["a", "b", "t"], FUNCTIONS, leaves=8).filter(lambda text: "." not in text and "e-" not in text))
def test_sympy_means_the_same(text):
    assume(strategies.is_expression(text))
    expression = parse(text)
    symbolic = to_sympy(expression)
    assume(not symbolic.has(sympy.zoo, sympy.nan, sympy.oo, sympy.I))
    values = {"a": mpmath.mpf("0.7"), "b": mpmath.mpf("1.3"), "t": mpmath.mpf("0.4")}
    function = sympy.lambdify(sympy.symbols("a b t"), symbolic, "mpmath")
    with mpmath.workdps(60):
        try:
            value = strategies.evaluate(expression, values)
            assume(mpmath.isfinite(value) and abs(value) < 1e30)
            back = strategies.evaluate(from_sympy(symbolic), values)
            there = function(*values.values())
        except (ZeroDivisionError, OverflowError, ValueError):
            assume(False)
        assert mpmath.almosteq(value, there, 1e-20, 1e-20)
        assert mpmath.almosteq(value, back, 1e-20, 1e-20)
