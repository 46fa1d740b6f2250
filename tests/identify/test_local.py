"""Ranks: verdicts that follow from a line of algebra, and what is refused."""

import re

import pytest

from odejet import Model, ModelError, identify
from odejet.identify import local, orders

LINEAR = Model({"x": "-(a + b)*x"}, {"y": "c*x"})


def identifiable(model: Model, functions=(), **options) -> dict[str, bool]:
    return dict(local.analyse(local.problem(model, functions, **options)).identifiable)


def test_a_sum_survives_where_its_parts_do_not():
    found = identifiable(LINEAR, ["a + b", "c*x", "a*b", "a - b", "2*a + 2*b + 1"])
    assert found == {
        **dict.fromkeys(["x", "a", "b", "c", "a*b", "a - b"], False),
        **dict.fromkeys(["a + b", "c*x", "2*a + 2*b + 1"], True),
    }


def test_constants_are_known_and_fixed_parameters_too():
    model = LINEAR.replace(fixed={"c": 3})
    assert identifiable(model, ["c", "c**2 + 1"]) == {"x": True, "a": False, "b": False, "c": True, "c**2 + 1": True}


def test_a_known_initial_state_decides_a_scale():
    model = Model({"x": "-k*x"}, {"y": "c*x"})
    assert identifiable(model) == {"x": False, "k": True, "c": False}
    assert identifiable(model.replace(initial={"x": 2})) == {"k": True, "c": True}
    assert identifiable(model.replace(initial={"x": "2*c"})) == {"k": True, "c": True}
    assert identifiable(model.replace(initial={"x": "k/c"})) == {"k": True, "c": False}


def test_an_initial_state_may_also_hide_a_parameter():
    assert identifiable(Model({"x": "-k*x", "z": "-d*z"}, {"y": "x + z"}, initial={"z": 0})) == {
        "x": True,
        "k": True,
        "d": False,
    }


def test_ranks_that_pause_at_a_special_point():
    assert identifiable(Model({"x": "k"}, {"y": "x**3"}, initial={"x": 0})) == {"k": True}
    assert identifiable(Model({"x": "k*z", "z": "a", "w": "b*x"}, {"y": "w"}, initial=dict.fromkeys("xzw", 0))) == {
        "k": False,
        "a": False,
        "b": False,
    }


def test_a_particular_input_may_excite_less():
    model = Model({"x": "-a*x + b*u"}, {"y": "x"}, inputs={"u": "0*t"}, initial={"x": 1})
    assert identifiable(model) == {"a": True, "b": True}
    assert identifiable(model, inputs="actual") == {"a": True, "b": False}
    constant = Model({"x": "-a*x + b*u + c"}, {"y": "x"}, inputs={"u": "3"})
    assert identifiable(constant)["b"]
    assert not identifiable(constant, inputs="actual")["b"]


def test_functions_that_are_not_rational():
    growth = Model({"x": "r*x*(1 - x**n)"}, {"y": "x"})
    assert all(identifiable(growth).values())
    hidden = Model({"x": "exp(a + b)*x"}, {"y": "x"})
    assert identifiable(hidden, ["a + b", "exp(2*a + 2*b)"]) == {
        "x": True,
        "a": False,
        "b": False,
        "a + b": True,
        "exp(2*a + 2*b)": True,
    }


def test_another_seed_gives_the_same_answer():
    question = local.problem(LINEAR, ["a + b"])
    assert local.analyse(question, seed=1).identifiable == local.analyse(question, seed=77, points=4).identifiable


def test_what_to_fix_prefers_parameters_and_is_enough():
    ranks = local.analyse(local.problem(LINEAR))
    fixed = {LINEAR.unknowns[i]: 0.5 for i in orders.choose(ranks).fixed}
    assert set(fixed) == {"b", "c"}
    assert all(identifiable(LINEAR.replace(fixed=fixed)).values())


@pytest.mark.parametrize(
    ("model", "functions", "message"),
    [
        (Model({"x": "-k*x"}), (), "model: the model has no outputs"),
        (Model({"x": "-k*x"}, {"y": "t"}), (), "no output depends on a parameter or an unknown state"),
        (Model({"x": "-x"}, {"y": "x"}, initial={"x": 1}), (), "nothing is left to identify"),
        (Model({"x": "k/(x - x)"}, {"y": "x"}), (), "division by zero"),
        (LINEAR, ["a + q"], "functions: unknown name 'q'"),
        (LINEAR, ["a + y"], "'y' is an output"),
        (LINEAR, ["a + t"], "'t' is the time"),
        (LINEAR, ["a +"], "the expression ends early"),
        (LINEAR, "a*b", "functions must be a list"),
    ],
)
def test_bad_input_gets_one_sentence(model, functions, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        local.analyse(local.problem(model, functions))


def test_an_input_has_no_verdict():
    model = Model({"x": "-k*x + u"}, {"y": "x"}, inputs={"u": "t"})
    with pytest.raises(ModelError, match="'u' is an input"):
        local.problem(model, ["u"])
    with pytest.raises(ModelError, match="'generic' or 'actual'"):
        local.problem(model, inputs="none")  # type: ignore[arg-type]


def test_names_of_the_model_never_collide_with_those_of_functions():
    model = Model({"function_0": "-k*function_0"}, {"function_1": "function_0"})
    assert identifiable(model, ["k*function_0"])["k*function_0"]


def test_known_numbers_under_roots():
    """Modulo a prime half of all numbers have no root; others are tried."""
    for start in (2, 6, 7, 10, "2/7"):
        verdict = identify(Model({"h": "q - k*sqrt(h)"}, {"y": "s*h"}, initial={"h": start}))
        assert all(quantity.tested and quantity.kind != "none" for quantity in verdict.values())
