"""Steady states against closed forms and against long integrations, with their derivatives."""

import numpy as np
import pytest

import odejet as oj
from odejet.simulate.flow import Outcome
from odejet.simulate.steady import RestingFlow


def test_rest_under_what_was_before_is_exact_with_its_derivatives():
    """x = k/d and z = sqrt(x) at rest; then k jumps from k0 to k and x follows k/d + (k0/d - k/d) e^(-d t)."""
    model = oj.Model({"x": "k - d*x", "z": "x - z**2"}, {"y": "x + z"}, initial="steady", before={"k": "k0"})
    k, k0, d, t = 1.3, 0.3, 0.7, np.array([0.0, 0.4, 3.0])
    found = oj.simulate(model, {"k": k, "k0": k0, "d": d}, {}, [*t, np.inf], sensitivities=True)
    assert found.success
    np.testing.assert_allclose(found.states["x"][:-1], k / d + (k0 - k) / d * np.exp(-d * t), rtol=1e-14)
    np.testing.assert_allclose(found.states["z"][[0, -1]], np.sqrt([k0 / d, k / d]), rtol=1e-14)
    np.testing.assert_allclose(found.sensitivity("x", "k0")[:-1], np.exp(-d * t) / d, rtol=1e-13)
    slope = -k / d**2 - (k0 - k) * np.exp(-d * t) * (1 / d**2 + t / d)
    np.testing.assert_allclose(found.sensitivity("x", "d")[:-1], slope, rtol=1e-13)
    np.testing.assert_allclose(found.sensitivity("z", "k0")[0], 0.5 / np.sqrt(k0 * d), rtol=1e-13)
    np.testing.assert_allclose(found.sensitivity("z", "d")[-1], -0.5 * np.sqrt(k / d) / d, rtol=1e-13)
    np.testing.assert_allclose(found.sensitivity("z", "k0")[-1], 0.0, atol=1e-14)


def test_totals_that_are_conserved_come_from_where_rest_is_approached():
    """A + B = T: at rest B = T k/(k + r); and the same in the end, whatever the start."""
    rates = {"A": "-k*A + r*B", "B": "k*A - r*B"}
    k, r, total = 1.1, 2.3, 3.7
    model = oj.Model(rates, {"y": "B"}, initial="steady", before={"A": "T", "B": 0})
    first = oj.simulate(model, {"k": k, "r": r, "T": total}, {}, [0.0, 1.0], sensitivities=True)
    np.testing.assert_allclose(first["y"], total * k / (k + r), rtol=1e-14)
    np.testing.assert_allclose(first.sensitivity("y", "T"), k / (k + r), rtol=1e-13)
    np.testing.assert_allclose(first.sensitivity("y", "r"), -total * k / (k + r) ** 2, rtol=1e-13)
    free = oj.Model(rates, {"y": "B"})
    last = oj.simulate(free, {"k": k, "r": r}, {"A": 3.0, "B": 0.7}, [0.0, np.inf], sensitivities=True)
    np.testing.assert_allclose(last["y"][1], total * k / (k + r), rtol=1e-14)
    for name, slope in (("A", k / (k + r)), ("B", k / (k + r)), ("k", total * r / (k + r) ** 2)):
        np.testing.assert_allclose(last.sensitivity("y", name)[1], slope, rtol=1e-13)


def test_weights_of_a_conserved_sum_may_be_parameters():
    """V A + W B is conserved: A = B at rest, at (V A0 + W B0)/(V + W)."""
    model = oj.Model({"A": "q*(B - A)/V", "B": "q*(A - B)/W"}, {"y": "A"}, initial="steady", before={"A": "a", "B": 1})
    v, w, a = 2.0, 5.0, 3.0
    found = oj.simulate(model, {"q": 0.4, "V": v, "W": w, "a": a}, {}, [0.0], sensitivities=True)
    np.testing.assert_allclose(found["y"], (v * a + w) / (v + w), rtol=1e-13)
    slopes = {"a": v / (v + w), "V": (a - 1) * w / (v + w) ** 2, "W": (1 - a) * v / (v + w) ** 2, "q": 0.0}
    for name, slope in slopes.items():
        np.testing.assert_allclose(found.sensitivity("y", name), slope, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("start", "end"), [(0.1, 0.0), (1.4, 2.0), (30.0, 2.0)])
def test_of_several_steady_states_the_one_is_meant_that_the_solution_reaches(start, end):
    """x' = -x (x - 1) (x - 2) ends at 0 or 2, and never at 1 between them."""
    model = oj.Model({"x": "-k*x*(x - 1)*(x - 2)"}, {"y": "x"}, initial="steady", before={"x": start})
    np.testing.assert_allclose(oj.simulate(model, {"k": 0.3}, {}, [0.0])["y"], end, atol=1e-14)


def test_a_switch_of_genes_rests_where_a_long_integration_ends():
    rates = {"u": "a/(1 + v**n) - u", "v": "b/(1 + u**2) - c*v"}
    values = {"a": 4.0, "n": 2.5, "b": 5.0, "c": 0.8}
    for u, v in ((5.0, 0.1), (0.1, 5.0)):
        model = oj.Model(rates, {"y": "u"}, initial="steady", before={"u": u, "v": v})
        long = oj.simulate(oj.Model(rates, {"y": "u"}), values, {"u": u, "v": v}, [0.0, 200.0], sensitivities=True)
        rest = oj.simulate(model, values, {}, [0.0], sensitivities=True)
        np.testing.assert_allclose(rest["y"][0], long["y"][1], rtol=1e-12)
        for name in values:
            np.testing.assert_allclose(rest.sensitivity("y", name)[0], long.sensitivity("y", name)[1], rtol=1e-9)


def test_rates_of_very_different_speed_are_no_obstacle():
    model = oj.Model(
        {"x": "f*(z - x)", "z": "f*(x - z) + s*(1 - z)"}, {"y": "z - x"}, initial="steady", before={"x": 9, "z": 0}
    )
    found = oj.simulate(model, {"f": 1e4, "s": 1e-2}, {}, [0.0], sensitivities=True)
    np.testing.assert_allclose(list(found.states.values()), 1.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("rates", "outcome"),
    [
        ({"x": "k"}, Outcome.RESTLESS),
        ({"x": "k*x - 1"}, Outcome.UNSTABLE),
        ({"x": "k*x - x*z", "z": "x*z - z"}, Outcome.UNSTABLE),
        ({"x": "z", "z": "k*(1 - x**2)*z - x"}, Outcome.UNSTABLE),
    ],
)
def test_where_nothing_comes_to_rest_a_sentence_says_so(rates, outcome):
    model = oj.Model(rates, {"y": "x"}, initial="steady")
    if rates == {"x": "k"}:
        model = oj.Model(rates, {"y": "x"}, initial="steady", before={"x": 1})
    found = oj.simulate(model, {"k": 0.7}, {}, [2.0, 3.0])
    assert not found.success and found.outcome is outcome and len(found.times) == 0
    assert "t = 2" in found.message and "steady state" in found.message


def test_inputs_and_the_time_are_held_as_they_are_at_the_start():
    inputs = {"u": (np.array([0.0, 1.0, 1.0, 9.0]), np.array([2.0, 2.0, 6.0, 6.0]))}
    model = oj.Model({"x": "u + t - x"}, {"y": "x"}, inputs={"u": "sampled"}, initial="steady")
    found = oj.simulate(model, {}, {}, [0.5, 3.0], inputs=inputs)
    np.testing.assert_allclose(found["y"][0], 2.5, rtol=1e-14)
    other = model.replace(before={"u": 1})
    np.testing.assert_allclose(oj.simulate(other, {}, {}, [0.5, 3.0], inputs=inputs)["y"][0], 1.5, rtol=1e-14)


def test_switches_take_the_branch_of_the_steady_state():
    """x' = max(0, 2 - x) - x/k: at rest x = 2/(1 + 1/k), and x = 0 where the stimulus is off before t = 3."""
    model = oj.Model({"x": "piecewise(0, t < 3, max(0, 2 - x)) - x/k"}, {"y": "x"}, initial="steady")
    found = oj.simulate(model, {"k": 4.0}, {}, [0.0, 2.0, 5.0, np.inf], sensitivities=True)
    assert found.success
    np.testing.assert_allclose(found["y"][[0, 1, 3]], [0.0, 0.0, 1.6], atol=1e-14)
    np.testing.assert_allclose(found["y"][2], 1.6 * (1 - np.exp(-2.5)), rtol=1e-13)
    np.testing.assert_allclose(found.sensitivity("y", "k")[3], 2 / 25, rtol=1e-12)


def test_events_happen_before_the_end():
    """A + B is conserved but for what an event adds, after the last finite time."""
    event = oj.Event(at="lag", every=2, count=3, set={"A": "A + dose"})
    model = oj.Model({"A": "-k*A + B", "B": "k*A - B"}, {"y": "B"}, events=[event])
    values = {"k": 2.0, "lag": 5.0, "dose": 3.0}
    found = oj.simulate(model, values, {"A": 1.0, "B": 0.0}, [0.0, 1.0, np.inf], sensitivities=True)
    np.testing.assert_allclose(found["y"][2], 10 * 2 / 3, rtol=1e-13)
    for name, slope in (("dose", 2.0), ("lag", 0.0), ("A", 2 / 3), ("k", 10 / 9)):
        np.testing.assert_allclose(found.sensitivity("y", name)[2], slope, rtol=1e-12, atol=1e-13)


A_TO_B = {"A": "-k*A + B", "B": "k*A - B"}


@pytest.mark.parametrize("at_start", [False, True])
def test_events_on_conditions_happen_on_the_way_to_rest(at_start):
    """Once B exceeds c there is more of A, and k is twice what it was: B = (A0 + dose) 2k/(1 + 2k) in the end."""
    event = oj.Event(when="B > c", set={"A": "A + dose", "k": "2*k"})
    k, dose, c, total = 1.1, 0.7, 0.4, 1.3
    values = {"k": k, "c": c, "dose": dose, "T": total}
    if at_start:
        model = oj.Model(A_TO_B, {"y": "B"}, initial="steady", before={"A": "T", "B": 0}, events=[event])
    else:
        model = oj.Model(A_TO_B, {"y": "B"}, initial={"A": "T", "B": 0}, events=[event])
    found = oj.simulate(model, values, {}, [0.0, 0.01, np.inf], sensitivities=True)
    assert found.success
    rest = 2 * k / (1 + 2 * k)
    np.testing.assert_allclose(
        found["y"][[0, 2]], [(total + dose) * rest * at_start, (total + dose) * rest], rtol=1e-13
    )
    slopes = {"k": (total + dose) * 2 / (1 + 2 * k) ** 2, "c": 0.0, "dose": rest, "T": rest}
    for name, slope in slopes.items():
        np.testing.assert_allclose(found.sensitivity("y", name)[2], slope, rtol=1e-12, atol=1e-13)


def test_what_history_leaves_at_rest_depends_on_it_exactly():
    """Nothing brings p back: it rises to c, is set to c + p0 d there, and stays."""
    event = oj.Event(when="p >= c", set={"p": "p + p0*d"})
    model = oj.Model({"p": "piecewise(d, p <= c, 0)"}, {"y": "p"}, initial={"p": "p0"}, events=[event])
    found = oj.simulate(model, {"c": 5.0, "d": 1.5, "p0": 2.0}, {}, [0.0, np.inf], sensitivities=True)
    np.testing.assert_allclose(found["y"], [2.0, 8.0], rtol=1e-14)
    for name, slope in {"c": 1.0, "d": 2.0, "p0": 1.5}.items():
        np.testing.assert_allclose(found.sensitivity("y", name)[1], slope, rtol=1e-13)


def test_a_switch_after_the_last_time_is_not_missed():
    """x' = a between s and s + w, and nothing else moves it."""
    model = oj.Model({"x": "piecewise(a, t > s and t < s + w, 0)"}, {"y": "x"}, initial={"x": 1})
    found = oj.simulate(model, {"a": 2.0, "s": 5.0, "w": 1.5}, {}, [0.0, 1.0, np.inf], sensitivities=True)
    np.testing.assert_allclose(found["y"], [1.0, 1.0, 4.0], rtol=1e-13)
    np.testing.assert_allclose([found.sensitivity("y", n)[2] for n in "asw"], [1.5, 0.0, 2.0], atol=1e-12)


def test_a_threshold_that_is_approached_for_ever_is_not_passed():
    model = oj.Model({"x": "k*(1 - x)"}, {"y": "x"}, events=[oj.Event(when="x >= 1", set={"x": 0})])
    found = oj.simulate(model, {"k": 2.0}, {"x": 0.0}, [0.0, 1.0, np.inf])
    np.testing.assert_allclose(found["y"], [0.0, 1 - np.exp(-2), 1.0], rtol=1e-12)


def test_an_event_at_a_time_may_set_a_parameter_before_the_end():
    model = oj.Model({"x": "k - d*x"}, {"y": "x"}, events=[oj.Event(at="lag", set={"k": "3*k"})])
    found = oj.simulate(model, {"k": 1.0, "d": 0.5, "lag": 3.0}, {"x": 0.0}, [0.0, 1.0, np.inf], sensitivities=True)
    np.testing.assert_allclose(found["y"][2], 6.0, rtol=1e-13)
    np.testing.assert_allclose([found.sensitivity("y", n)[2] for n in ("k", "d", "lag")], [6, -12, 0], atol=1e-11)


def test_resets_without_end_are_no_rest():
    model = oj.Model({"x": "1 - k*x"}, {"y": "x"}, events=[oj.Event(when="x > 1", set={"x": 0})])
    found = oj.simulate(model, {"k": 0.1}, {"x": 0.0}, [0.0, 0.5, np.inf])
    assert found.outcome is Outcome.RESTLESS and len(found.times) == 2


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (oj.Event(at=1, every=1, set={"x": 0}), "events go on happening"),
        (oj.Event(when="x > t", set={"x": 0}), "a condition of an event depends on t"),
        (oj.Event(when="sin(t) > 0", set={"x": 0}), "a condition of an event depends on t"),
        (oj.Event(when="x > 1", set={"x": "t"}), "what an event sets depends on t"),
    ],
)
def test_what_goes_on_happening_has_no_end(event, reason):
    model = oj.Model({"x": "1 - k*x"}, {"y": "x"}, events=[event])
    with pytest.raises(oj.ModelError, match=reason):
        oj.simulate(model, {"k": 1.0}, {"x": 0.0}, [0.0, 0.5, np.inf])


def test_times_may_come_in_any_order_and_the_end_among_them():
    model = oj.Model({"x": "k*(1 - x)"}, {"y": "2*x"})
    found = oj.simulate(model, {"k": 2.0}, {"x": 0.0}, [1.0, np.inf, 0.0, 0.5], start=0.0)
    np.testing.assert_allclose(found["y"], 2 * np.array([1 - np.exp(-2), 1, 0, 1 - np.exp(-1)]), atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"initial": "resting"}, r"\[initial\] must be a table"),
        ({"before": {"k": 0}}, r"\[before\] tells how a steady state came about"),
        ({"initial": "steady", "before": {"q": 0}}, r"\[before\] q: this is no parameter"),
        ({"initial": "steady", "before": {"k": "x"}}, r"\[before\] k: 'x' is a state"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(arguments, sentence):
    with pytest.raises(oj.ModelError, match=sentence):
        oj.Model({"x": "-k*x"}, {"y": "x"}, **arguments)


def test_totals_that_nothing_tells_are_asked_for():
    model = oj.Model({"A": "-k*A + B", "B": "k*A - B", "C": "1 - C"}, {"y": "B"}, initial="steady", before={"B": 0})
    with pytest.raises(oj.ModelError, match=r"a sum of A, B does not change.*tell `before` a value of A$"):
        oj.simulate(model, {"k": 1.0}, {}, [0.0])


@pytest.mark.parametrize("rate", ["sin(t) - x", "piecewise(1, sin(t) > 0, 0) - x"])
def test_equations_that_never_rest_have_no_end(rate):
    model = oj.Model({"x": rate}, {"y": "x"})
    with pytest.raises(oj.ModelError, match="depend on t"):
        oj.simulate(model, {}, {"x": 0.0}, [0.0, np.inf])


def test_a_flow_without_rest_is_the_plain_one():
    flow = RestingFlow(oj.Model({"x": "-k*x"}, {"y": "x"}))
    run = flow.run([0.5], [2.0], [0.0, 1.0])
    np.testing.assert_allclose(run.outputs[:, 0, 0], 2 * np.exp([0.0, -0.5]), rtol=1e-15)
