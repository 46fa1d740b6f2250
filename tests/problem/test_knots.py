"""Knots: problems whose inputs are to be found, from simulation to files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline

import odejet as oj

KNOTS = np.array([0.0, 2.0, 5.0, 6.0, 10.0])
TIMES = np.linspace(0, 10, 21)
MODEL = oj.Model(
    {"x": "beta - k*x"}, {"y": "x"}, inputs={"beta": "spline(knots=[0, 2, 5, 6, 10])"}, initial={"x": 1}, name="driven"
)
TRUTH = {"k": 0.7, "beta[0]": 1.0, "beta[2]": 2.0, "beta[5]": 0.5, "beta[6]": 0.8, "beta[10]": 1.5}


def slope(i: int, values: np.ndarray) -> float:
    """The slope at a knot of the parabola through it and its neighbours."""
    first = min(max(i - 1, 0), len(KNOTS) - 3)
    parabola = np.polyfit(KNOTS[first : first + 3], values[first : first + 3], 2)
    return float(np.polyval(np.polyder(parabola), KNOTS[i]))


def independent(values: dict[str, float]) -> np.ndarray:
    """The output by SciPy alone."""
    levels = np.array([values[f"beta[{knot:g}]"] for knot in KNOTS])
    beta = CubicHermiteSpline(KNOTS, levels, [slope(i, levels) for i in range(len(KNOTS))])
    solved = solve_ivp(
        lambda t, x: beta(t) - values["k"] * x, (0, 10), [1.0], t_eval=TIMES, rtol=1e-11, atol=1e-12, max_step=0.25
    )
    return solved.y[0]


def data(noise: float = 0.02, seed: int = 3) -> oj.Data:
    clean = independent(TRUTH)
    return oj.Data(TIMES, {"y": clean + np.random.default_rng(seed).normal(0, noise, len(clean))}, noise=noise)


def test_a_simulation_is_that_of_an_independent_solver():
    problem = oj.Problem(MODEL, data())
    found = problem.simulate(TRUTH)["experiment1"]["y"]
    assert np.allclose(found, independent(TRUTH), rtol=0, atol=1e-9)


def test_the_gradient_by_values_at_knots_is_exact():
    objective = oj.Problem(MODEL.replace(inputs={"beta": "spline(every=2.5, positive)"}), data()).objective
    theta = np.linspace(0.5, 1.5, len(objective))
    _, gradient = objective.value_and_gradient(theta)
    for i, size in enumerate(1e-3 * theta):

        def at(step: float, i: int = i, size: float = size) -> float:
            moved = theta.copy()
            moved[i] += step * size
            return objective.value(moved)

        # Differences of sixth order.
        expected = (45 * (at(1) - at(-1)) - 9 * (at(2) - at(-2)) + (at(3) - at(-3))) / (60 * size)
        assert gradient[i] == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.fixture(scope="module")
def fit():
    return oj.fit(MODEL, data(), positive=["k"], seed=1)


def test_a_fit_finds_the_curve_within_its_band(fit):
    assert fit.success
    band = fit.predict(np.linspace(0, 10, 41))["beta"]
    levels = np.array([TRUTH[f"beta[{knot:g}]"] for knot in KNOTS])
    beta = CubicHermiteSpline(KNOTS, levels, [slope(i, levels) for i in range(len(KNOTS))])(band.times)
    assert np.mean((band.low <= beta) & (beta <= band.high)) > 0.7
    assert np.all(band.high - band.low < 2.0)


def test_beyond_the_last_knot_a_curve_stays_as_it_is(fit):
    band = fit.predict([10.0, 13.0])["beta"]
    assert band.values[0] == pytest.approx(band.values[1], rel=1e-12)
    assert band.values[0] == pytest.approx(fit.values["beta[10]"], rel=1e-9)


def test_fits_are_saved_with_their_curves(fit, tmp_path):
    fit.save(tmp_path / "fit.json")
    loaded = oj.Fit.load(tmp_path / "fit.json")
    assert loaded.values == fit.values
    assert loaded.problem.model == fit.problem.model
    assert np.allclose(loaded.simulate([3.0])["beta"], fit.simulate([3.0])["beta"], rtol=1e-12)


def test_the_report_and_the_plot_show_the_input(fit, tmp_path):
    fit.report(tmp_path / "fit.html")
    assert "Inputs that were found" in (tmp_path / "fit.html").read_text()
    titles = [axes.get_title(loc="left") for axes in fit.plot().axes]
    assert any("beta" in title for title in titles)


def test_the_exported_program_simulates_the_same(fit, tmp_path):
    fit.export(tmp_path / "fit.py")
    names: dict = {}
    exec((tmp_path / "fit.py").read_text(), names)
    found = names["simulate"](TIMES)
    assert np.allclose(found["y"], fit.simulate(TIMES)["y"], rtol=1e-5, atol=1e-6)


def test_petab_has_the_curve_as_a_function_of_time(tmp_path):
    problem = oj.Problem(MODEL, data())
    again = oj.read_petab(problem.to_petab(tmp_path))
    values = {name.replace("[", "_u005b").replace("]", "_u005d"): value for name, value in TRUTH.items()}
    assert again.log_likelihood(values) == pytest.approx(problem.log_likelihood(TRUTH), abs=1e-8)


def test_a_curve_that_was_recorded_everywhere_is_an_input():
    recorded = oj.Data(TIMES, {"y": independent(TRUTH)}, inputs={"beta": (KNOTS, np.ones(5))})
    assert oj.Problem(MODEL, recorded).unknowns == ("k",)


def test_a_curve_that_one_experiment_has_recorded_is_found_in_the_others():
    first = oj.Data(TIMES, {"y": independent(TRUTH)}, name="a", inputs={"beta": (KNOTS, np.ones(5))})
    second = oj.Data(TIMES, {"y": independent(TRUTH)}, name="b")
    problem = oj.Problem(MODEL, [first, second])
    found = problem.simulate(TRUTH)
    assert np.allclose(found["b"]["y"], independent(TRUTH), rtol=0, atol=1e-9)
    assert found["a"]["y"][-1] == pytest.approx(1 / 0.7 + (1 - 1 / 0.7) * np.exp(-7), rel=1e-10)


def test_steps_hold_until_the_next():
    model = oj.Model({"x": "u"}, {"y": "x"}, inputs={"u": "steps(at=[0, 4])"}, initial={"x": 0})
    problem = oj.Problem(model, oj.Data([1, 4, 6], {"y": [1, 4, 10]}, start=0, noise=0.1))
    found = problem.simulate({"u[0]": 1, "u[4]": 3})["experiment1"]
    assert np.allclose(found["y"], [1, 4, 10], rtol=0, atol=1e-12)
    assert found["u"].tolist() == [1, 1, 3]  # what is measured at a step is before it


def test_identify_judges_pieces_and_says_what_it_does_not_decide():
    product = oj.Model({"x": "-p*beta*x"}, {"y": "x"}, inputs={"beta": "steps(at=[0, 5], positive)"}, start=0)
    verdict = oj.identify(product)
    assert {verdict[name].kind for name in ("p", "beta[0]")} == {"none"}
    known = oj.identify(product.replace(fixed={"p": 1}))
    assert known["beta[0]"].kind == known["x"].kind == "global"
    unplaced = product.replace(inputs={"beta": "spline(every=7)"})
    with pytest.raises(oj.ModelError, match="depends on the data"):
        oj.identify(unplaced)


def test_populations_refuse_curves_by_name():
    one = oj.Data(TIMES, {"y": independent(TRUTH)}, name="a")
    with pytest.raises(oj.ModelError, match="'beta' is a curve that is to be found"):
        oj.Population(
            MODEL, oj.Data.join([one, oj.Data(TIMES, {"y": independent(TRUTH)}, name="b")]), random={"k": "lognormal"}
        )
