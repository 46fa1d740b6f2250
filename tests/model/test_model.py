"""Models: what they hold, how they look, what they refuse, and that files round-trip."""

from __future__ import annotations

import copy
import math
import pickle
import random
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import sympy
from hypothesis import given, settings

from odejet.errors import ExpressionError, ModelError
from odejet.model import Model
from odejet.model.expressions import Symbol, number
from odejet.model.grammar import parse
from tests import strategies

LOTKA_VOLTERRA = {
    "states": {"r": "k1*r - k2*r*w + u", "w": "k2*r*w - k3*w"},
    "outputs": {"y1": "r"},
    "inputs": {"u": "sin(2*t)"},
    "initial": {"w": 0.5},
    "bounds": {"k1": (0, 10), "r": [0, math.inf]},
    "fixed": {"k3": 0.3},
    "name": "lotka_volterra",
}


@pytest.fixture
def model() -> Model:
    return Model(**LOTKA_VOLTERRA)


# --- what it holds ---


def test_holds_what_was_given(model):
    assert model.states == {"r": parse("k1*r - k2*r*w + u"), "w": parse("k2*r*w - k3*w")}
    assert list(model.states) == ["r", "w"]
    assert model.outputs == {"y1": Symbol("r")}
    assert model.inputs == {"u": parse("sin(2*t)")}
    assert model.initial == {"w": number(0.5)}
    assert model.bounds == {"k1": (0.0, 10.0), "r": (0.0, math.inf)}
    assert model.fixed == {"k3": Fraction(3, 10)}
    assert model.parameters == ("k1", "k2")
    assert model.unknowns == ("r", "k1", "k2")
    assert model.name == "lotka_volterra"


def test_smallest_model():
    model = Model({"x": 0})
    assert model.unknowns == ("x",)
    assert (model.outputs, model.inputs, model.initial, model.bounds, model.fixed) == ({}, {}, {}, {}, {})
    assert model.name == "model"


def test_parameters_are_inferred_in_order_of_appearance():
    model = Model({"x": "b*x", "y": "a*y"}, {"o": "c*x + a"}, initial={"y": "d/b"})
    assert model.parameters == ("b", "a", "c", "d")


def test_given_parameters_keep_their_order():
    model = Model({"x": "b*x", "y": "a*y"}, parameters=["a", "b"])
    assert model.parameters == ("a", "b")
    assert model.replace(fixed={"a": 1}).parameters == ("b",)
    assert model.replace(fixed={"a": 1}).replace(fixed={}).parameters == ("a", "b")


def test_fixed_names_need_not_be_listed():
    model = Model({"x": "-k*x + b"}, parameters=["k"], fixed={"b": 2})
    assert model.parameters == ("k",)
    assert model.replace(fixed=None).parameters == ("k", "b")


def test_time_may_stand_in_equations():
    assert Model({"x": "-x*t"}, {"y": "x + t"}).parameters == ()


@pytest.mark.parametrize(
    "value", [2, 2.0, np.int64(2), np.float64(2), Fraction(2), Decimal(2), "2", "4/2", sympy.Integer(2), number(2)]
)
def test_fixed_values_of_any_kind(value):
    assert Model({"x": "k*x"}, fixed={"k": value}).fixed == {"k": Fraction(2)}


def test_sympy_model():
    r, w, k1, k2, t, u, y = sympy.symbols("r w k1 k2 t u y")
    model = Model(
        {r: k1 * r - k2 * r * w + u, w: -w}, {y: r}, {u: sympy.sin(2 * t)}, [k2, k1], {w: k1 / 2}, {k1: (0, 1)}
    )
    text = Model({"r": "k1*r - k2*r*w + u", "w": "-w"}, {"y": "r"}, {"u": "sin(2*t)"}, ["k2", "k1"])
    assert model == text.replace(initial={"w": "k1/2"}, bounds={"k1": (0, 1)})


def test_expressions_are_values_too():
    assert Model({"x": parse("-k*x")}) == Model({"x": "-k*x"})


def test_letters_are_spelled_as_python_spells_them():
    micro, greek = "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}"
    model = Model({"x": f"-{micro}*x"}, bounds={micro: (0, 1)}, parameters=[greek])
    assert model.parameters == tuple(model.bounds) == (greek,)


def test_importing_models_does_not_import_sympy():
    code = "import sys, odejet.model.model as m; m.Model({'x': '-k*x'}); sys.exit('sympy' in sys.modules)"
    path = str(Path(__file__).parents[1] / "src")
    subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = [{path!r}]; {code}"], check=True)


# --- it is a value ---


def test_does_not_change(model):
    with pytest.raises(AttributeError, match=r"model\.replace\(name=\.\.\.\)"):
        model.name = "other"
    with pytest.raises(AttributeError):
        del model.name
    with pytest.raises(AttributeError):
        model.anything = 1
    with pytest.raises(TypeError):
        model.states["r"] = number(1)
    with pytest.raises(TypeError):
        hash(model)


def test_equality(model):
    assert model == Model(**LOTKA_VOLTERRA)
    assert model != model.replace(name="other")
    assert model != model.replace(bounds={})
    assert model != "model"
    assert Model({"x": "y", "y": "x"}) != Model({"y": "x", "x": "y"})


def test_copies(model):
    assert pickle.loads(pickle.dumps(model)) == copy.deepcopy(model) == copy.copy(model) == model


def test_replace(model):
    assert model.replace() == model
    changed = model.replace(outputs={"y": "w"}, fixed={})
    assert (list(changed.outputs), changed.parameters) == (["y"], ("k1", "k2", "k3"))
    with pytest.raises(TypeError, match="no_such"):
        model.replace(no_such=1)


# --- how it looks ---


def test_repr(model):
    assert repr(model).splitlines() == [
        "Model lotka_volterra",
        "  states   r' = k1*r - k2*r*w + u",
        "           w' = k2*r*w - k3*w",
        "  outputs  y1 = r",
        "  inputs   u(t) = sin(2*t)",
        "  initial  w(0) = 0.5",
        "  fixed    k3 = 0.3",
        "  bounds   k1 in [0, 10]",
        "           r(0) in [0, inf]",
        "  3 unknowns: r(0), k1, k2",
    ]


def test_repr_of_a_large_model_stays_readable():
    shown = repr(Model({f"x{i}": "-k*x1" for i in range(500)})).splitlines()
    assert len(shown) < 70
    assert shown[-2].strip() == "... and 440 more"
    assert shown[-1].startswith("  501 unknowns: x0(0), ")
    assert shown[-1].endswith("and 441 more")


def test_one_unknown():
    assert repr(Model({"x": 0})).endswith("1 unknown: x(0)")
    assert repr(Model({"x": 0}, initial={"x": 1})).endswith("0 unknowns")


def test_latex():
    model = Model({"x_1": "-alpha*x_1/2 + u"}, {"y": "x_1**2"}, {"u": "exp(-t)"}, initial={"x_1": "beta"})
    assert model.latex().splitlines() == [
        r"\begin{aligned}",
        r"\dot{x_{1}} &= - \frac{\alpha x_{1}}{2} + u \\",
        r"y &= x_{1}^{2} \\",
        r"u(t) &= e^{- t} \\",
        r"x_{1}(0) &= \beta",
        r"\end{aligned}",
    ]
    assert model._repr_latex_() == f"$$\n{model.latex()}\n$$"


def test_sampled_inputs(tmp_path):
    model = Model({"x": "-k*x + u"}, {"y": "x"}, inputs={"u": None, "v": "t"}, name="driven")
    assert model.inputs["u"] is None
    assert model == Model({"x": "-k*x + u"}, {"y": "x"}, inputs={"u": "sampled", "v": "t"}, name="driven")
    assert model.parameters == ("k",)
    assert "u(t) = sampled" in repr(model)
    assert r"u(t) &= \text{sampled}" in model.latex()
    model.to_toml(tmp_path / "driven.toml")
    assert 'u = "sampled"' in (tmp_path / "driven.toml").read_text()
    assert Model.from_toml(tmp_path / "driven.toml") == model
    assert pickle.loads(pickle.dumps(model)) == model != model.replace(inputs={"u": "t", "v": "t"})


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_html(model):
    page = Page(model.replace(name="<script>alert('&amp;')</script>")._repr_html_())
    assert set(page.tags) == {"table", "caption", "b", "tr", "th", "td", "code", "br"}
    assert "<script>alert('&amp;')</script>" in page.text
    assert "r' = k1*r - k2*r*w + u" in page.text
    assert "3 unknowns: r(0), k1, k2" in page.text


# --- refusals ---

DECAY = {"states": {"x": "-k*x"}}

REFUSALS = [
    ({"states": {}}, "a model needs at least one state"),
    ({"states": ["x"]}, "[states] must be a table of names and values, not a list"),
    ({"states": "x"}, "[states] must be a table of names and values, not text"),
    ({"states": {1: "x"}}, "[states] a name must be text, not a number"),
    # names
    ({"states": {"t": "1"}}, "[states] the name 't' is reserved (the time is written t); choose another"),
    ({"states": {"time": "1"}}, "[states] the name 'time' is reserved"),
    ({"states": {"exp": "1"}}, "[states] the name 'exp' is reserved (it is a function)"),
    ({"states": {"lambda": "1"}}, "[states] the name 'lambda' is reserved (it is a word of Python)"),
    ({"states": {"x'": "1"}}, '[states] "x\'" is not a name; use letters'),
    ({"states": {"a b": "1"}}, "[states] 'a b' is not a name"),
    ({"states": {"": "1"}}, "[states] '' is not a name"),
    ({"states": {"a\nb": "1"}}, "[states] 'a\\nb' is not a name"),
    ({"states": {"x" * 101: "1"}}, "is longer than 100 characters"),
    ({"states": {"\N{MICRO SIGN}": "1", "\N{GREEK SMALL LETTER MU}": "1"}}, "this name is given twice"),
    ({"states": {"x": "1", sympy.Symbol("x"): "1"}}, "[states] x: this name is given twice"),
    (DECAY | {"outputs": {"x": "x"}}, "[outputs] x: the name is already that of a state; rename one of them"),
    (DECAY | {"inputs": {"x": "t"}}, "[inputs] x: the name is already that of a state"),
    (DECAY | {"outputs": {"u": "x"}, "inputs": {"u": "t"}}, "[inputs] u: the name is already that of an output"),
    (DECAY | {"parameters": ["k", "x"]}, "[parameters] x: the name is already that of a state"),
    (DECAY | {"parameters": ["k"], "outputs": {"k": "x"}}, "[parameters] k: the name is already that of an output"),
    (DECAY | {"outputs": {"k": "x"}}, "[states] x: 'k' is an output; write its expression instead"),
    (DECAY | {"fixed": {"x": 1}}, "[fixed] x: the name is already that of a state"),
    (DECAY | {"inputs": {"u": "t"}, "fixed": {"u": 1}}, "[fixed] u: the name is already that of an input"),
    # parameters
    (DECAY | {"parameters": ["k1"]}, "[states] x: unknown name 'k'; did you mean 'k1'?"),
    (DECAY | {"parameters": ["k"], "outputs": {"y": "q*x"}}, "[outputs] y: unknown name 'q' (known: t, x, k)"),
    (DECAY | {"parameters": ["k", "k"]}, "[parameters] k: this name is given twice"),
    (DECAY | {"parameters": ["k", "gamma"]}, "[parameters] gamma: no equation uses this parameter"),
    (DECAY | {"parameters": "k"}, "parameters must be a list of names, not text"),
    (DECAY | {"parameters": {"k"}}, "parameters must be a list of names, not a set"),
    (DECAY | {"parameters": {"k": 1}}, "parameters must be a list of names, not a table"),
    (DECAY | {"parameters": 3}, "parameters must be a list of names, not a number"),
    (DECAY | {"parameters": [3]}, "[parameters] a name must be text, not a number"),
    ({"states": {"x": "-pi*x"}}, "[states] x: 'pi' is not known here: write 3.14159"),
    # expressions
    ({"states": {"x": "-k*"}}, "[states] x: the expression ends early"),
    ({"states": {"x": "mod(x, 2)"}}, "[states] x: 'mod' is not a function here"),
    ({"states": {"x": sympy.sec(sympy.Symbol("x"))}}, "[states] x: 'sec' is not a function here"),
    ({"states": {"x": sympy.Symbol("x") ** 200}}, "[states] x: the exponents here"),
    ({"states": {"x": True}}, "[states] x: expected an expression, as text or a number, not a truth value"),
    ({"states": {"x": np.True_}}, "[states] x: expected an expression, as text or a number, not a bool"),
    ({"states": {"x": None}}, "not None"),
    ({"states": {"x": [1]}}, "not a list"),
    ({"states": {"x": 1j}}, "not a complex"),
    ({"states": {"x": math.nan}}, "[states] x: the number NaN is not finite"),
    ({"states": {"x": math.inf}}, "[states] x: the number Infinity is not finite"),
    ({"states": {"x": 1e301}}, "[states] x: the number 1.000e+301 is out of range"),
    # inputs
    (DECAY | {"inputs": {"u": "x*t"}}, "[inputs] u: 'x' is a state; an input may depend on t alone"),
    (DECAY | {"inputs": {"u": "k*t"}}, "[inputs] u: 'k' is a parameter; an input may depend on t alone"),
    (DECAY | {"inputs": {"u": "t", "v": "u"}}, "[inputs] v: 'u' is an input; an input may depend on t alone"),
    (DECAY | {"inputs": {"u": "q*t"}}, "[inputs] u: unknown name 'q' (known: t)"),
    (DECAY | {"inputs": {"u": "sin(2*pi*t)"}}, "[inputs] u: 'pi' is not known here: write 3.14159"),
    # initial values
    (DECAY | {"initial": {"y": 1}}, "[initial] y: this is not a state"),
    (DECAY | {"initial": {"k": 1}}, "[initial] k: this is not a state"),
    (DECAY | {"initial": {"x": "x"}}, "[initial] x: 'x' is a state; an initial value may hold numbers and parameters"),
    (DECAY | {"initial": {"x": "t"}}, "[initial] x: 't' is the time"),
    (DECAY | {"inputs": {"u": "t"}, "initial": {"x": "u"}}, "[initial] x: 'u' is an input"),
    (DECAY | {"outputs": {"y": "x"}, "initial": {"x": "y"}}, "[initial] x: 'y' is an output"),
    (DECAY | {"parameters": ["k"], "initial": {"x": "q"}}, "[initial] x: unknown name 'q'"),
    (DECAY | {"initial": {"x": False}}, "[initial] x: expected an expression"),
    # bounds
    (DECAY | {"bounds": {"q": (0, 1)}}, "[bounds] q: this is neither a state nor a parameter; known are x, k"),
    (DECAY | {"outputs": {"y": "x"}, "bounds": {"y": (0, 1)}}, "[bounds] y: this is neither a state nor a parameter"),
    (DECAY | {"bounds": {"k": (1, 0)}}, "[bounds] k: the lower bound 1 must be below the upper bound 0"),
    (DECAY | {"bounds": {"k": (1, 1)}}, "must be below"),
    (DECAY | {"bounds": {"k": (math.nan, 1)}}, "[bounds] k: the lower bound nan must be below"),
    (DECAY | {"bounds": {"k": 1}}, "[bounds] k: expected two numbers [low, high], not a number"),
    (DECAY | {"bounds": {"k": "01"}}, "[bounds] k: expected two numbers [low, high], not text"),
    (DECAY | {"bounds": {"k": (1, 2, 3)}}, "[bounds] k: expected two numbers [low, high], not 3 entries"),
    (DECAY | {"bounds": {"k": (0, "1")}}, "[bounds] k: expected two numbers [low, high], not a number and text"),
    (DECAY | {"bounds": {"k": (False, True)}}, "not a truth value and a truth value"),
    (DECAY | {"bounds": {"k": (0, 10**400)}}, "[bounds] k: a bound is out of range"),
    (DECAY | {"bounds": {"k": (0, 1)}, "fixed": {"k": 2}}, "[bounds] k: the fixed value 2 lies outside [0, 1]"),
    # fixed
    (DECAY | {"fixed": {"q": 1}}, "[fixed] q: no equation uses this parameter"),
    (DECAY | {"fixed": {"k": "x"}}, "[fixed] k: unknown name 'x'"),
    (DECAY | {"fixed": {"k": "t"}}, "[fixed] k: a fixed value cannot depend on t"),
    (DECAY | {"fixed": {"k": "sqrt(2)"}}, "[fixed] k: expected a number, not the expression 'sqrt(2)'"),
    (DECAY | {"fixed": {"k": True}}, "[fixed] k: expected"),
    (DECAY | {"fixed": {"k": math.inf}}, "[fixed] k: the number Infinity is not finite"),
    (DECAY | {"fixed": {"k": "1e200*1e200"}}, "[fixed] k: this has no finite"),
    (DECAY | {"fixed": {"k": "1e-200*1e-200"}}, "[fixed] k: the number is out of range"),
    # name
    (DECAY | {"name": ""}, "the model's name must be one line of text, not ''"),
    (DECAY | {"name": "a\nb"}, "the model's name must be one line of text, not 'a\\nb'"),
    (DECAY | {"name": 3}, "the model's name must be one line of text, not a number"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSALS, ids=[message[:60] for _, message in REFUSALS])
def test_refuses_with_one_sentence(arguments, message):
    with pytest.raises(ModelError) as caught:
        Model(**arguments)
    sentence = str(caught.value).splitlines()[0]
    assert message in sentence
    assert len(str(caught.value).splitlines()) == (3 if isinstance(caught.value, ExpressionError) else 1)


def test_deep_expressions_are_refused():
    deep = Symbol("x")
    for _ in range(5000):
        deep = parse("-x").__class__(((-1, deep),))
    with pytest.raises(ModelError, match=r"\[states\] x: the expression is nested"):
        Model({"x": deep})


def test_pi_may_be_a_parameter_if_listed():
    assert Model({"x": "pi*x"}, parameters=["pi"]).parameters == ("pi",)
    assert Model({"x": "pi*x"}, fixed={"pi": 3}).parameters == ()


# --- files ---

TEXT = """
name = "lotka_volterra"

[states]
r = "k1*r - k2*r*w + u"
w = "k2*r*w - k3*w"

[outputs]
y1 = "r"

[inputs]
u = "sin(2*t)"

[initial]
w = 0.5

[bounds]
k1 = [0, 10]
r = [0, inf]

[fixed]
k3 = 0.3
"""


def test_reads_toml(model):
    assert Model.from_toml_text(TEXT) == model


def test_writes_toml(model, tmp_path):
    path = tmp_path / "out.toml"
    text = model.to_toml(path)
    assert text == path.read_text() == TEXT.lstrip().replace("[0, 10]", "[0.0, 10.0]").replace("[0, inf]", "[0.0, inf]")
    assert Model.from_toml(path) == Model.from_toml(str(path)) == model


def test_file_without_a_name_is_called_like_the_file(tmp_path):
    path = tmp_path / "decay.toml"
    path.write_text("\ufeff[states]\nx = '-k*x'\n", encoding="utf-8")
    assert Model.from_toml(path).name == "decay"


def test_decimals_are_exact():
    model = Model.from_toml_text("[states]\nx = 0.1\n[initial]\nx = -1_000.5e-3\n")
    assert model.states["x"] == parse("0.1")
    assert model.initial["x"] == parse("-1.0005")


def test_awkward_values_round_trip():
    model = Model(
        {"µ": "-k*µ + c", "β": "0"},
        initial={"µ": Fraction(-1, 3), "β": 1e-300},
        fixed={"k": Fraction(1, 7), "c": Decimal("1e22")},
        bounds={"µ": (-math.inf, 1e-300)},
        name='"quoted" \\ back\'slash [x] # = é \N{SNOWMAN}',
    )
    assert Model.from_toml_text(model.to_toml()) == model


@given(strategies.models())
@settings(max_examples=100)
def test_random_models_round_trip(model):
    assert Model.from_toml_text(model.to_toml()) == model
    texts = {table: {key: str(value) for key, value in getattr(model, table).items()} for table in TABLES}
    parameters = [*model.parameters, *model.fixed]
    assert Model(**texts, parameters=parameters, bounds=model.bounds, fixed=model.fixed, name=model.name) == model
    assert pickle.loads(pickle.dumps(model)) == model
    repr(model), model._repr_html_()


TABLES = ("states", "outputs", "inputs", "initial")

BAD_TEXTS = [
    ("", "m.toml: a model needs at least one state"),
    ("[states", "m.toml: this is not TOML: expected ']' at the end of a table declaration (at line 1, column 8)"),
    ("x", "m.toml: this is not TOML: "),
    ("[states]\nx = '1'\nx = '2'", "m.toml: this is not TOML: cannot overwrite a value (at line 3"),
    ("states = 3", "m.toml [states] must be a table of names and values, not a number"),
    ("[[states]]\nx = '1'", "m.toml [states] must be a table of names and values, not a list"),
    ("[state]\nx = '1'", "m.toml: unknown table 'state'; did you mean 'states'?"),
    ("foo = 1", "m.toml: unknown key 'foo'; a model has name, parameters, states"),
    ("title = 'x'\n[states]\nx = '1'", "m.toml: unknown key 'title'; a model has name"),
    ("[states]\nx.y = '1'", "m.toml [states] x: expected an expression, as text or a number, not a table"),
    ("[states]\nx = true", "m.toml [states] x: expected an expression, as text or a number, not a truth value"),
    ("[states]\nx = ['1']", "not a list"),
    ("[states]\nx = 1979-05-27", "not a date or time"),
    ("[states]\nx = 07:32:00", "not a date or time"),
    ("[states]\nx = nan", "m.toml [states] x: the number NaN is not finite"),
    ("[states]\nx = -inf", "m.toml [states] x: the number -Infinity is not finite"),
    ("[states]\nx = 1e999999999", "m.toml [states] x: the number 1.000e+999999999 is out of range"),
    ("[states]\nx = 1e99999999999999999999999", "m.toml [states] x: the number Infinity is not finite"),
    (f"[states]\nx = {'1' * 5000}", "m.toml: a value is too long"),
    (f"x = {'[' * 100_000}", "m.toml: a value is too long or nested too deeply"),
    (f"x{'.x' * 200_000} = 1", "m.toml: a key has many dotted parts"),
    ("[" + '"a\\"".' * 100_000 + "a]", "m.toml: a key has many dotted parts"),
    ("[states]\nx = 'kx*q'\n[bounds]\nk1 = [1, 2]", "m.toml [bounds] k1: this is neither a state nor a parameter"),
    ("parameters = 'k'\n[states]\nx = 'k'", "m.toml: parameters must be a list of names, not text"),
    ("parameters = [['k']]\n[states]\nx = 'k'", "m.toml [parameters] a name must be text, not a list"),
    ("name = 1\n[states]\nx = 'k'", "m.toml: the model's name must be one line of text, not a number"),
    ("[states]\n'a b' = 'k'", "m.toml [states] 'a b' is not a name"),
]


@pytest.mark.parametrize(("text", "message"), BAD_TEXTS, ids=[message[:60] for _, message in BAD_TEXTS])
def test_bad_toml_gets_one_sentence(text, message):
    with pytest.raises(ModelError) as caught:
        Model.from_toml_text(text, "m.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_messages_name_file_table_entry_and_place():
    with pytest.raises(ExpressionError) as caught:
        Model.from_toml_text("parameters = ['k1', 'k2']\n[states]\nr = 'k1*r - kx'\n", "model.toml")
    expected = "model.toml [states] r: unknown name 'kx'; did you mean 'k1'?\n    k1*r - kx\n           ^"
    assert str(caught.value) == expected


def test_many_dots_inside_text_are_fine():
    text = "[states]\nx = " + '"""' + " + ".join(["0.5*x"] * 300) + '"""' + " # a.b.c.d.e.f.g.h.i.j"
    assert Model.from_toml_text(text).unknowns == ("x",)


def test_unreadable_files_get_one_sentence(tmp_path):
    cases = {
        "there is no such file": tmp_path / "none.toml",
        "this is a directory": tmp_path,
        "not a file name": "a\0b",
    }
    cases["line 2 is not UTF-8"] = tmp_path / "latin.toml"
    (tmp_path / "latin.toml").write_bytes("# ok\n# é".encode("latin-1"))
    cases["larger than 1 MB"] = tmp_path / "large.toml"
    (tmp_path / "large.toml").write_bytes(b"#" * 1_000_001)
    cases["cannot be read (not a directory)"] = tmp_path / "latin.toml" / "m.toml"
    for message, path in cases.items():
        with pytest.raises(ModelError) as caught:
            Model.from_toml(path)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_unwritable_files_get_one_sentence(model, tmp_path):
    with pytest.raises(ModelError, match="this is a directory"):
        model.to_toml(tmp_path)
    with pytest.raises(ModelError, match="not a file name"):
        model.to_toml("a\0b")


def garbage(rng: random.Random) -> bytes:
    """Random bytes, random TOML pieces, or a model file with a few bytes changed."""
    kind = rng.randrange(3)
    if kind == 0:
        return rng.randbytes(rng.randrange(60))
    if kind == 1:
        pieces = [
            "[states]\n",
            "[outputs]\n",
            "[",
            "]",
            "x",
            " = ",
            "'",
            '"',
            "\n",
            "1",
            "k*x",
            "#",
            ".",
            "{",
            "}",
            "e",
            "inf",
        ]
        return "".join(rng.choices(pieces, k=rng.randrange(15))).encode()
    data = bytearray(TEXT.encode())
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def test_random_files_give_one_error_or_a_model(tmp_path):
    rng, path, errors = random.Random(0), tmp_path / "garbage.toml", 0
    for _ in range(10_000):
        path.write_bytes(garbage(rng))
        try:
            Model.from_toml(path)
        except ModelError as error:
            assert str(error).startswith(str(path))
            assert len(str(error).splitlines()) == (3 if isinstance(error, ExpressionError) else 1)
            errors += 1
    assert errors > 8000


def test_random_bytes_are_never_a_model(tmp_path):
    rng, path = random.Random(1), tmp_path / "garbage.toml"
    for _ in range(10_000):
        path.write_bytes(rng.randbytes(rng.randrange(200)))
        with pytest.raises(ModelError):
            Model.from_toml(path)
