"""SBML as models: closed forms of small networks, and one sentence for what is not supported."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("libsbml", reason="the reader of SBML is not installed")

import odejet as oj
from odejet.io.sbml import network_of_text
from odejet.io.sbml.building import model_of
from odejet.model.expressions import Symbol, evaluate
from tests.io.sbml.documents import (
    apply,
    assignment_rule,
    ci,
    cn,
    document,
    event,
    function,
    parameter,
    rate_rule,
    reaction,
    species,
    start,
)
from tests.io.sbml.documents import math as mathml

TIMES = np.linspace(0, 4, 9)
DECAY = apply("times", ci("k"), ci("S"))
AVOGADRO = '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/avogadro">N</csymbol>'
RATE_OF = '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/rateOf">rateOf</csymbol>'
DELAY = '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/delay">delay</csymbol>'


def simulated(text: str, *names: str, times=TIMES) -> list[np.ndarray]:
    """What ids mean along the solution of a document."""
    network = network_of_text(text)
    model = model_of(network, {f"out_{i}": Symbol(network.name_of[name]) for i, name in enumerate(names)})
    found = oj.simulate(model, {}, {}, times, start=0.0)
    assert found.success, found.message
    return [found[f"out_{i}"] for i in range(len(names))]


def close(found: np.ndarray, expected) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-11, atol=1e-12))


# --- quantities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amounts", [False, True])
def test_amounts_and_concentrations(amounts):
    """Two litres: the law k S V moves concentrations by k S, the law k S moves amounts by k S."""
    cell = '<compartment id="cell" spatialDimensions="3" size="2" constant="true"/>'
    law = DECAY if amounts else apply("times", DECAY, ci("cell"))
    text = document(
        cell,
        species("S", 'initialAmount="6"', amounts=amounts) + species("P", 'initialConcentration="1"', amounts=amounts),
        parameter("k", 0.5),
        reaction("r", "S", "2 P", law),
    )
    s, p = simulated(text, "S", "P")
    size = 6 if amounts else 3
    assert close(s, size * np.exp(-0.5 * TIMES))
    assert close(p, (2 if amounts else 1) + 2 * size * (1 - np.exp(-0.5 * TIMES)))


def test_laws_with_their_compartment_are_read_as_people_write_them():
    text = document(
        species=species("S", 'initialConcentration="1"'),
        parameters=parameter("k", 0.5),
        reactions=reaction("r", "S", "", apply("times", ci("cell"), DECAY)),
    )
    model = model_of(network_of_text(text))
    assert {name: str(rate) for name, rate in model.states.items()} == {"S": "-k*S"}
    assert dict(model.fixed) == {"k": 0.5}


def test_a_compartment_that_grows_dilutes():
    """V = 1 + t, n' = -k n: the concentration is exp(-k t)/(1 + t), and rateOf its derivative."""
    text = document(
        '<compartment id="cell" spatialDimensions="3" size="1" constant="false"/>',
        species("S", 'initialConcentration="1"'),
        parameter("k", 0.5) + parameter("d", constant=False),
        reaction("r", "S", "", apply("times", DECAY, ci("cell"))),
        rate_rule("cell", cn(1)) + assignment_rule("d", f"<apply>{RATE_OF}{ci('S')}</apply>"),
    )
    s, d = simulated(text, "S", "d")
    expected = np.exp(-0.5 * TIMES) / (1 + TIMES)
    assert close(s, expected)
    assert close(d, -0.5 * expected - expected / (1 + TIMES))


def test_an_assigned_compartment_dilutes_what_nothing_else_changes():
    text = document(
        '<compartment id="cell" spatialDimensions="3" constant="false"/>',
        species("S", 'initialAmount="3"'),
        rules=assignment_rule("cell", apply("plus", cn(2), ci("t"))),
    )
    assert close(simulated(text, "S")[0], 3 / (2 + TIMES))


def test_boundary_species_are_not_consumed():
    text = document(
        species=species("S", 'initialConcentration="2"', boundary=True) + species("P", 'initialConcentration="0"'),
        parameters=parameter("k", 0.5),
        reactions=reaction("r", "S", "P", DECAY),
    )
    s, p = simulated(text, "S", "P")
    assert close(s, 2) and close(p, TIMES)


def test_conversion_factors_scale_what_reactions_do():
    text = document(
        species=species("S", 'initialConcentration="1"', more='conversionFactor="f"'),
        parameters=parameter("k", 0.5) + parameter("f", 3),
        reactions=reaction("r", "S", "", DECAY),
    )
    assert close(simulated(text, "S")[0], np.exp(-1.5 * TIMES))


def test_initial_assignments_follow_each_other():
    """a = b + 1 with b = 2 S(0) and S(0) = c^2 = 9."""
    text = document(
        species=species("S", 'initialConcentration="77"'),
        parameters=parameter("k", 0.5) + parameter("a") + parameter("b") + parameter("c", 3),
        reactions=reaction("r", "S", "", DECAY),
        starts=start("a", apply("plus", ci("b"), cn(1)))
        + start("b", apply("times", cn(2), ci("S")))
        + start("S", apply("power", ci("c"), cn(2))),
    )
    a, s = simulated(text, "a", "S")
    assert close(a, 19) and close(s, 9 * np.exp(-0.5 * TIMES))


def test_functions_local_parameters_and_computed_stoichiometry():
    law = f"<apply>{ci('square')}{ci('k')}</apply>"
    reference = '<speciesReference id="n" species="S" constant="false"/>'
    local = '<listOfLocalParameters><localParameter id="k" value="3"/></listOfLocalParameters>'
    products = f"<listOfProducts>{reference}</listOfProducts>"
    body = f'<reaction id="r" reversible="false">{products}<kineticLaw>{mathml(law)}{local}</kineticLaw></reaction>'
    text = document(
        species=species("S", 'initialConcentration="0"'),
        reactions=body,
        rules=assignment_rule("n", ci("t")),
        functions=function("square", apply("times", ci("x"), ci("x"))),
    )
    s, r = simulated(text, "S", "r")
    assert close(s, 4.5 * TIMES**2) and close(r, 9)


def test_a_stoichiometry_that_is_left_out_is_one():
    """As in level 2, which writers without the attribute mean."""
    text = document(
        species=species("S", 'initialConcentration="2"'),
        parameters=parameter("k", 0.5),
        reactions=reaction("r", "S", "", DECAY),
    )
    assert ' stoichiometry="1"' in text
    (s,) = simulated(text.replace(' stoichiometry="1"', ""), "S")
    assert close(s, 2 * np.exp(-0.5 * TIMES))


def test_algebraic_rules_that_are_linear_are_solved():
    """0 = x + y - 3, 0 = x - y - t."""
    rules = [
        apply("plus", ci("x"), ci("y"), cn(-3)),
        apply("minus", apply("minus", ci("x"), ci("y")), ci("t")),
    ]
    text = document(
        parameters=parameter("x", 0, False) + parameter("y", 0, False),
        rules="".join(f"<algebraicRule>{mathml(rule)}</algebraicRule>" for rule in rules),
    )
    x, y = simulated(text, "x", "y")
    assert close(x, (3 + TIMES) / 2) and close(y, (3 - TIMES) / 2)


# --- formulas ---------------------------------------------------------------------------------------------------------

VALUES = {
    apply("root", f"<degree>{cn(3)}</degree>", cn(8)): 2.0,
    apply("log", f"<logbase>{cn(2)}</logbase>", cn(8)): 3.0,
    apply("ln", "<exponentiale/>"): 1.0,
    apply("factorial", cn(5)): 120.0,
    apply("quotient", cn(-7), cn(2)): -3.0,
    apply("rem", cn(-7), cn(2)): -1.0,
    apply("arcsin", cn(1)): math.pi / 2,
    apply("arccot", cn(2)): math.atan(0.5),
    apply("arcsinh", cn(2)): math.asinh(2),
    apply("arccosh", cn(2)): math.acosh(2),
    apply("arctanh", cn(0.5)): math.atanh(0.5),
    apply("arccoth", cn(2)): math.atanh(0.5),
    apply("arcsech", cn(0.5)): math.acosh(2),
    apply("arccsch", cn(0.5)): math.asinh(2),
    apply("sec", cn(1)): 1 / math.cos(1),
    apply("coth", cn(1)): 1 / math.tanh(1),
    apply("max", cn(1), cn(4), cn(3)): 4.0,
    apply("plus", apply("lt", cn(1), cn(2), cn(3)), apply("xor", "<true/>", "<true/>", "<true/>")): 2.0,
    apply("times"): 1.0,
    apply("divide", AVOGADRO, cn("1e23")): 6.02214179,
    "<piecewise><piece><cn>4</cn><false/></piece><otherwise><cn>5</cn></otherwise></piecewise>": 5.0,
    apply("minus", "<pi/>"): -math.pi,
    '<cn type="e-notation">12<sep/>-1</cn>': 1.2,
    '<cn type="rational">1<sep/>4</cn>': 0.25,
}


@pytest.mark.parametrize("formula", VALUES, ids=lambda text: text[7:20])
def test_formulas_have_their_value(formula):
    text = document(parameters=parameter("x", constant=False), rules=assignment_rule("x", formula))
    assert close(simulated(text, "x")[0], VALUES[formula])


def test_reserved_names_get_an_underscore():
    text = document(
        parameters=parameter("lambda", 2) + parameter("exp", 0, False), rules=rate_rule("exp", ci("lambda"))
    )
    model = model_of(network_of_text(text))
    assert list(model.states) == ["exp_"] and list(model.fixed) == ["lambda_"]


# --- events -----------------------------------------------------------------------------------------------------------

CLOCK = parameter("x", 0, False)
RISES = rate_rule("x", cn(1))


def after(value: float) -> str:
    return apply("geq", ci("t"), cn(value))


def test_a_dose():
    text = document(
        species=species("S", 'initialConcentration="1"'),
        parameters=parameter("k", 0.5),
        reactions=reaction("r", "S", "", DECAY),
        events=event("dose", after(1.25), {"S": apply("plus", ci("S"), cn(2))}),
    )
    expected = np.exp(-0.5 * TIMES) + 2 * np.exp(-0.5 * (TIMES - 1.25)) * (TIMES >= 1.25)
    assert close(simulated(text, "S")[0], expected)


def test_a_change_of_size_leaves_the_amount_alone():
    """Also the amount of what is set at the same time, by the size before."""
    text = document(
        '<compartment id="cell" spatialDimensions="3" size="1" constant="false"/>',
        species("S", 'initialConcentration="3"') + species("P", 'initialConcentration="3"'),
        events=event("swell", after(1.25), {"cell": cn(2), "P": cn(5)}),
    )
    s, p = simulated(text, "S", "P")
    assert close(s, np.where(TIMES < 1.25, 3, 1.5)) and close(p, np.where(TIMES < 1.25, 3, 2.5))


@pytest.mark.parametrize("from_trigger", [True, False])
def test_a_delay_and_when_values_are_taken(from_trigger):
    """Triggered at x = 1.25, y is set 1.5 later."""
    text = document(
        parameters=CLOCK + parameter("y", 0, False),
        rules=RISES,
        events=event("e", apply("gt", ci("x"), cn(1.25)), {"y": ci("x")}, cn(1.5), from_trigger=from_trigger),
    )
    assert close(simulated(text, "y")[0], np.where(TIMES < 2.75, 0, 1.25 if from_trigger else 2.75))


@pytest.mark.parametrize("persistent", [True, False])
def test_an_event_is_called_off_unless_it_persists(persistent):
    window = apply("and", apply("gt", ci("x"), cn(1.25)), apply("lt", ci("x"), cn(2.25)))
    text = document(
        parameters=CLOCK + parameter("y", 0, False),
        rules=RISES,
        events=event("e", window, {"y": cn(1)}, cn(1.5), persistent=persistent),
    )
    assert close(simulated(text, "y")[0], np.where(TIMES < 2.75, 0, int(persistent)))


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_priorities_decide_who_is_first(order):
    """Both are triggered at once and set y; the second one prevails."""
    text = document(
        parameters=CLOCK + parameter("y", 0, False),
        rules=RISES,
        events="".join(
            event(f"e{i}", apply("gt", ci("x"), cn(1.25)), {"y": cn(i)}, priority=cn(rank))
            for i, rank in zip((1, 2), order, strict=True)
        ),
    )
    last = 1 if order == (1, 2) else 2
    assert close(simulated(text, "y")[0], np.where(TIMES < 1.25, 0, last))


def test_values_of_the_trigger_are_those_before_all_events():
    """Two events at once exchange their variables."""
    text = document(
        parameters=CLOCK + parameter("y", 1, False) + parameter("z", 2, False),
        rules=RISES,
        events="".join(
            event(f"set_{one}", apply("gt", ci("x"), cn(1.25)), {one: ci(other)}) for one, other in ("yz", "zy")
        ),
    )
    y, z = simulated(text, "y", "z")
    assert close(y, np.where(TIMES < 1.25, 1, 2)) and close(z, np.where(TIMES < 1.25, 2, 1))


def test_an_event_at_the_start():
    text = document(
        parameters=CLOCK + parameter("y", 0, False),
        rules=RISES,
        events=event("e", apply("lt", ci("x"), cn(1.25)), {"y": cn(3)}, initial=False),
    )
    assert close(simulated(text, "y")[0], 3)


def test_more_delays_than_places_end_the_solution():
    """x turns ten times a second, and each turn is to be followed after a second."""
    text = document(
        parameters=parameter("x", 0, False) + parameter("y", 0, False),
        rules=assignment_rule("x", apply("sin", apply("times", cn(62.8), ci("t")))),
        events=event("e", apply("gt", ci("x"), cn(0)), {"y": apply("plus", ci("y"), cn(1))}, cn(1)),
    )
    model = model_of(network_of_text(text))
    found = oj.simulate(model, {}, {}, TIMES, start=0.0)
    assert not found.success and 0.3 < found.trajectory.time < 0.5


# --- what is known ----------------------------------------------------------------------------------------------------

NETWORK = document(
    '<compartment id="cell" spatialDimensions="3" size="2" constant="true"/>',
    species("S", 'initialAmount="6"'),
    parameter("k", 0.5) + parameter("unset"),
    reaction("r", "S", "", apply("times", apply("plus", ci("k"), ci("unset")), ci("S"))),
)


def test_numbers_are_known_and_what_has_none_is_a_parameter():
    model = model_of(network_of_text(NETWORK))
    assert model.unknowns == ("unset",)
    assert dict(model.fixed) == {"cell": 2, "k": 0.5}


def test_what_is_freed_is_unknown_and_what_is_replaced_is_another():
    network = network_of_text(NETWORK)
    assert model_of(network.replaced({}, free=["k", "S"])).unknowns == ("S", "k", "unset")
    model = model_of(network.replaced({"S": "2*s0", "k": 7}))
    assert str(model.initial["S"]) == "2*s0"
    assert model.fixed["k"] == 7 and "s0" in model.parameters
    with pytest.raises(oj.ModelError, match="there is no 'K'; did you mean 'k'"):
        network.replaced({"K": 1})


def test_an_amount_is_replaced_as_formulas_mean_it():
    text = document(
        '<compartment id="cell" spatialDimensions="3" size="2" constant="false"/>',
        species("S", 'initialConcentration="3"'),
        rules=rate_rule("cell", cn(1)),
    )
    model = model_of(network_of_text(text).replaced({"S": 5}))
    assert str(model.initial["S_amount"]) == "5*2"


# --- delays -----------------------------------------------------------------------------------------------------------


def test_a_delay_looks_back_before_the_start():
    """z = z0 + t after the start; before it stood, or was what its initial assignment says."""
    delayed = with_rule(f"<apply>{DELAY}{ci('z')}{cn(1)}</apply>")
    times = np.array([0.0, 0.5, 1.0, 2.5])
    first = oj.simulate(model_of(network_of_text(delayed)), {}, {}, [0.0]).states["z"][0]
    found = oj.simulate(model_of(network_of_text(delayed)), {}, {}, times)["x"]
    assert np.abs(found - first - np.maximum(times - 1, 0)).max() < 1e-14


# --- refusals ---------------------------------------------------------------------------------------------------------


def with_rule(formula: str) -> str:
    return document(
        parameters=parameter("x", constant=False) + CLOCK.replace('"x"', '"z"'),
        rules=assignment_rule("x", formula) + rate_rule("z", cn(1)),
    )


REFUSED = {
    "depends on the state 'z'": with_rule(f"<apply>{DELAY}{ci('z')}{ci('z')}</apply>"),
    "delay takes what is delayed": with_rule(f"<apply>{DELAY}{ci('z')}</apply>"),
    "the delay of rateOf 'z' is not supported": with_rule(
        f"<apply>{DELAY}<apply>{RATE_OF}{ci('z')}</apply>{cn(1)}</apply>"
    ),
    "the rule of parameter 'x': factorial": with_rule(apply("factorial", ci("z"))),
    "arctan of what is not a number": with_rule(apply("arctan", ci("z"))),
    "piecewise without otherwise": with_rule(
        f"<piecewise><piece>{cn(1)}{apply('lt', ci('z'), cn(1))}</piece></piecewise>"
    ),
    "infinity is not supported": with_rule("<infinity/>"),
    "there is no 'nobody'": with_rule(ci("nobody")),
    "rules form a circle": document(
        parameters=parameter("x", constant=False) + parameter("y", constant=False),
        rules=assignment_rule("x", ci("y")) + assignment_rule("y", ci("x")),
    ),
    "function 'f' calls itself": document(
        functions=function("f", f"<apply>{ci('f')}{ci('x')}</apply>"),
        parameters=parameter("x", constant=False),
        rules=assignment_rule("x", f"<apply>{ci('f')}{cn(1)}</apply>"),
    ),
    "reaction 'r' is fast": document(
        species=species("S", 'initialConcentration="1"'),
        parameters=parameter("k", 1),
        reactions=reaction("r", "S", "", DECAY, 'fast="true"'),
        version=1,
    ),
    "algebraic rule 1 is not supported: 'x' does not enter it linearly": document(
        parameters=parameter("x", 1, False),
        rules=f"<algebraicRule>{mathml(apply('minus', apply('power', ci('x'), cn(2)), ci('t')))}</algebraicRule>",
    ),
    "rateOf 'y' is not supported": document(
        parameters=parameter("x", constant=False) + parameter("y", constant=False),
        rules=assignment_rule("y", ci("t")) + assignment_rule("x", f"<apply>{RATE_OF}{ci('y')}</apply>"),
    ),
    "'divide' has 3 arguments": with_rule(apply("divide", cn(1), cn(2), cn(3))),
    "'not' has 2 arguments": with_rule(apply("not", "<true/>", "<true/>")),
    "there is no 'f'|function 'f' is not supported": with_rule(f"<apply>{ci('f')}{cn(1)}</apply>"),
    "function 'f' has an argument without a name": document(
        functions=function("f", cn(1)).replace(ci("x"), ""),
        parameters=parameter("x", constant=False),
        rules=assignment_rule("x", f"<apply>{ci('f')}{cn(1)}</apply>"),
    ),
    "function 'f' is called with 2 arguments, but has 1": document(
        functions=function("f", ci("x")),
        parameters=parameter("x", constant=False),
        rules=assignment_rule("x", f"<apply>{ci('f')}{cn(1)}{cn(1)}</apply>"),
    ),
    "rateOf takes exactly one name": with_rule(f"<apply>{RATE_OF}</apply>"),
    "the id 'x' is given twice": document(parameters=parameter("x", 1) + parameter("x", 2)),
    "its decimal exponent": with_rule('<cn type="e-notation">1<sep/>-350</cn>'),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_supported_is_refused_by_name(reason):
    with pytest.raises(oj.ModelError, match=reason.replace("(", r"\(")) as refusal:
        model_of(network_of_text(REFUSED[reason]))
    assert "\n" not in str(refusal.value)


# --- instants ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "expected"),
    [("lt", [1, 1, 0, 0]), ("leq", [1, 1, 1, 0]), ("gt", [0, 0, 0, 1])]
    + [("geq", [0, 0, 1, 1]), ("eq", [0, 0, 1, 0]), ("neq", [1, 1, 0, 1])],
)
def test_comparisons_with_the_time_at_the_time(relation, expected):
    compared = (
        f"<piecewise><piece>{cn(1)}{apply(relation, ci('t'), cn(2))}</piece><otherwise>{cn(0)}</otherwise></piecewise>"
    )
    text = document(parameters=parameter("x", constant=False), rules=assignment_rule("x", compared))
    assert list(simulated(text, "x", times=np.arange(4.0))[0]) == expected


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (apply("geq", ci("t"), cn(2)), [1, 1, 2, 2]),
        (apply("gt", ci("t"), cn(2)), [1, 1, 1, 2]),
        (apply("leq", cn(2), ci("t")), [1, 1, 2, 2]),
        (apply("lt", cn(2), ci("t")), [1, 1, 1, 2]),
        (apply("eq", ci("t"), cn(2)), [1, 1, 2, 2]),
        (apply("neq", ci("t"), cn(2)), [1, 1, 1, 2]),
        (apply("gt", ci("t"), cn(0)), [1, 2, 2, 2]),
        (apply("geq", ci("t"), cn(0)), [1, 1, 1, 1]),  # true at the start, as it was before
        (apply("and", apply("geq", ci("t"), cn(2)), apply("leq", ci("t"), cn(2))), [1, 1, 2, 2]),
        (apply("geq", ci("z"), cn(2)), [1, 1, 2, 2]),
        (apply("gt", ci("z"), cn(2)), [1, 1, 1, 2]),
    ],
)
def test_events_at_the_time_at_which_they_happen(trigger, expected):
    """What a model is at 2 is what it is after `time >= 2` and before `time > 2`; z is the time."""
    text = document(
        parameters=parameter("x", 1, False) + parameter("z", 0, False),
        rules=rate_rule("z", cn(1)),
        events=event("e", trigger, {"x": apply("plus", ci("x"), cn(1))}),
    )
    assert list(simulated(text, "x", times=np.arange(4.0))[0]) == expected


def test_an_event_that_another_triggers_is_seen_with_it():
    text = document(
        parameters=parameter("x", 1, False) + parameter("y", 1, False),
        rules=rate_rule("x", cn(0)),
        events=event("a", apply("geq", ci("t"), cn(2)), {"x": cn(5)})
        + event("b", apply("gt", ci("x"), cn(4)), {"y": cn(7)}),
    )
    assert list(simulated(text, "y", times=np.arange(4.0))[0]) == [1, 1, 7, 7]


def test_a_compartment_of_no_dimensions_may_have_a_size():
    """From Level 3 on: the amount is the concentration times it."""
    sized = '<compartment id="cell" spatialDimensions="0" size="4" constant="true"/>'
    bare = '<compartment id="cell" spatialDimensions="0" constant="true"/>'
    for cell, amount in ((sized, 8.0), (bare, 2.0)):
        inside = species("S", 'initialConcentration="2"', amounts=True)
        model = model_of(network_of_text(document(cell, inside, reactions=reaction("r", "S", "", ci("S")))))
        assert float(evaluate(model.initial["S"], {"cell": 4.0}, math)) == amount


# --- what nobody simulates --------------------------------------------------------------------------------------------


def test_annotations_and_notes_are_left_out():
    """Two elements of one namespace in an annotation are no SBML, and no reason to refuse a model."""
    twice = '<a xmlns="urn:x"/><a xmlns="urn:x"/>'
    text = document(
        species=species("S", 'initialConcentration="2"'),
        parameters=parameter("k", 0.5),
        reactions=reaction("r", "S", "", apply("times", ci("cell"), DECAY)),
    )
    noted = text.replace("<listOfSpecies>", f"<annotation>\n{twice}\n</annotation><listOfSpecies>", 1)
    noted = noted.replace("<annotation>", '<notes a=">"/><annotation>', 1)
    assert noted != text
    assert model_of(network_of_text(noted)) == model_of(network_of_text(text))


def test_lines_are_counted_with_what_is_left_out():
    text = document(parameters=parameter("x", 1, False), rules=rate_rule("x", cn(1)))
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'
    broken = text.replace("<listOfRules>", "<annotation>\n\n\n</annotation><listOfRules><nonsense/>", 1)
    line = broken[: broken.index("<nonsense/>")].count("\n") + 1
    with pytest.raises(oj.ModelError, match=f"line {line}: this is not SBML"):
        network_of_text(broken)


def test_functions_of_truths_and_of_functions():
    """Arguments may be conditions, and functions may return them."""
    is_late = function("late", apply("geq", ci("x"), cn(2)))
    pick = function("pick", f"<piecewise><piece>{cn(5)}{ci('x')}</piece><otherwise>{cn(7)}</otherwise></piecewise>")
    call = f"<apply>{ci('pick')}<apply>{ci('late')}{ci('t')}</apply></apply>"
    text = document(
        functions=is_late + pick, parameters=parameter("y", constant=False), rules=assignment_rule("y", call)
    )
    assert list(simulated(text, "y", times=np.arange(4.0))[0]) == [7, 7, 5, 5]
