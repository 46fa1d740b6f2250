"""Simulations: names on everything, and a sentence for every mistake."""

import numpy as np
import pytest

import odejet as oj

MODEL = oj.Model(
    {"x": "-k*x + u", "z": "x"}, {"y": "2*x", "w": "z + c"}, inputs={"u": "sin(t)"}, initial={"z": 0.5}, name="forced"
)
VALUES = {"parameters": {"k": 0.5, "c": 3.0}, "initial_state": {"x": 1.0}}
TIMES = np.linspace(0, 4, 9)


def exact(times, k=0.5, x=1.0):
    """x' = -k x + sin t."""
    forced = (k * np.sin(times) - np.cos(times)) / (1 + k * k)
    return forced + (x + 1 / (1 + k * k)) * np.exp(-k * times)


def test_outputs_and_states_by_name():
    sim = oj.simulate(MODEL, **VALUES, times=TIMES)
    assert sim.success
    assert sim.outcome is oj.Outcome.COMPLETED
    assert list(sim) == ["y", "w"]
    assert len(sim) == 2
    np.testing.assert_allclose(sim["y"], 2 * exact(TIMES), rtol=1e-13)
    np.testing.assert_allclose(sim.states["x"], exact(TIMES), rtol=1e-13)
    np.testing.assert_allclose(sim["w"], sim.states["z"] + 3, rtol=1e-15)
    assert sim.states["z"][0] == 0.5


def test_sensitivities_by_name():
    sim = oj.simulate(MODEL, **VALUES, times=TIMES, sensitivities=True)
    assert sim.unknowns == ("x", "k", "c")
    np.testing.assert_allclose(sim.sensitivity("y", "x"), 2 * np.exp(-0.5 * TIMES), rtol=1e-13)
    np.testing.assert_allclose(sim.sensitivity("w", "c"), 1.0)
    np.testing.assert_allclose(sim.sensitivity("z", "c"), 0.0)
    step = 1e-6
    slope = (exact(TIMES, k=0.5 + step) - exact(TIMES, k=0.5 - step)) / (2 * step)
    np.testing.assert_allclose(sim.sensitivity("x", "k"), slope, atol=1e-9)


def test_times_in_any_order_with_repetitions_and_before_the_start():
    times = [3.0, 0.0, 1.0, 3.0, 2.0]
    sim = oj.simulate(MODEL, VALUES["parameters"], {"x": float(exact(np.array(2.0)))}, times, start=2.0)
    assert sim.times.tolist() == times
    np.testing.assert_allclose(sim.states["x"], exact(np.array(times)), rtol=1e-12)


def test_inputs_may_be_replaced_for_one_simulation():
    sim = oj.simulate(MODEL, **VALUES, times=TIMES, inputs={"u": "0.5*exp(-t)"})
    np.testing.assert_allclose(sim.states["x"], 2 * np.exp(-0.5 * TIMES) - np.exp(-TIMES), rtol=1e-12)
    assert oj.simulate(MODEL, **VALUES, times=TIMES)["y"][-1] != sim["y"][-1]


def test_what_ends_early_holds_what_was_reached():
    sim = oj.simulate(oj.Model({"x": "x**2"}, {"y": "x"}), {}, {"x": 1.0}, [0.5, 2.0, 0.0])
    assert not sim.success
    assert "grows without bound near t = 1" in sim.message
    assert sim.times.tolist() == [0.5, 0.0]
    np.testing.assert_allclose(sim["y"], [2.0, 1.0], rtol=1e-14)
    assert "stopped" in repr(sim)


def test_dataframe_plot_and_repr():
    sim = oj.simulate(MODEL, **VALUES, times=TIMES)
    assert sim.to_dataframe().columns.tolist() == ["time", "y", "w"]
    assert sim.to_dataframe(states=True).columns.tolist() == ["time", "y", "w", "x", "z"]
    assert "forced: 9 times, t = 0 to 4" in repr(sim)
    panels = sim.plot().axes
    assert [panel.get_title(loc="left") for panel in panels] == ["y", "w"]


def test_every_output_has_a_panel():
    model = oj.Model({"x": "-x"}, {f"y{i}": f"{i + 1}*x" for i in range(3)})
    panels = oj.simulate(model, {}, {"x": 1.0}, TIMES).plot().axes
    assert [panel.get_title(loc="left") for panel in panels] == ["y0", "y1", "y2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"k": 0.5}}, "no value is given for the parameter c"),
        ({"parameters": {"k": 0.5, "c": 1.0, "kk": 2.0}}, "has no parameter 'kk'; did you mean 'k'"),
        ({"parameters": {"k": float("nan"), "c": 1.0}}, "'k' must be a finite number"),
        ({"parameters": {"k": "1", "c": 1.0}}, "'k' must be a finite number, not '1'"),
        ({"initial_state": {}}, "no value is given for the initial state x"),
        ({"initial_state": {"x": 1.0, "z": 2.0}}, "'z' is known in the model"),
        ({"times": []}, "non-empty"),
        ({"times": [0.0, -np.inf]}, "finite"),
        ({"times": ["now"]}, "must be numbers"),
        ({"times": [[0.0, 1.0]]}, "non-empty list"),
        ({"inputs": {"v": "t"}}, "no input 'v'"),
        ({"inputs": {"u": "x"}}, "u"),
    ],
)
def test_mistakes_get_one_sentence(changes, message):
    with pytest.raises(oj.ModelError, match=message):
        oj.simulate(MODEL, **({**VALUES, "times": TIMES} | changes))


def test_unknown_names_in_results_get_one_sentence():
    sim = oj.simulate(MODEL, **VALUES, times=TIMES)
    with pytest.raises(KeyError, match=r"states are in sim\.states"):
        sim["x"]
    with pytest.raises(oj.ModelError, match="sensitivities=True"):
        sim.sensitivity("y", "k")
    sim = oj.simulate(MODEL, **VALUES, times=TIMES, sensitivities=True)
    with pytest.raises(oj.ModelError, match="not an unknown"):
        sim.sensitivity("y", "z")
    with pytest.raises(oj.ModelError, match="not an output or state"):
        sim.sensitivity("q", "k")


def test_models_without_outputs_can_be_simulated():
    sim = oj.simulate(oj.Model({"x": "-x"}), {}, {"x": 1.0}, [0.0, 1.0])
    assert sim.states["x"][-1] == pytest.approx(np.exp(-1), rel=1e-14)
    assert len(sim.plot().axes) == 1
