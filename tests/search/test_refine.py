"""Refinement against certified values of NIST, SciPy, optimality conditions, and fits that start at the truth."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares

from odejet import Data, Model
from odejet.problem import Problem
from odejet.search.descent import Descent
from odejet.search.refine import Ending, refine
from problems import draws, systems

BOX = (1e-5, 10.0)
PREDATORS = Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r", "y2": "w"})

# NIST StRD, Lanczos3: a sum of three exponentials, known for its condition.
LANCZOS = Model({"a": "-p*a", "b": "-q*b", "c": "-s*c"}, {"y": "a + b + c"})
LANCZOS_X = 0.05 * np.arange(24)
# fmt: off
LANCZOS_Y = [
    2.5134, 2.0443, 1.6684, 1.3664, 1.1232, 0.9269, 0.7679, 0.6389, 0.5338, 0.4479, 0.3776, 0.3197,
    0.2720, 0.2325, 0.1997, 0.1723, 0.1493, 0.1301, 0.1138, 0.1000, 0.0883, 0.0783, 0.0698, 0.0624,
]
# fmt: on
LANCZOS_CERTIFIED = {
    "a(0)": 8.6816414977e-02,
    "p": 9.5498101505e-01,
    "b(0)": 8.4400777463e-01,
    "q": 2.9515951832e00,
    "c(0)": 1.5825685901e00,
    "s": 4.9863565084e00,
}
LANCZOS_STARTS = {
    "1": {"a(0)": 1.2, "p": 0.3, "b(0)": 5.6, "q": 5.5, "c(0)": 6.5, "s": 7.6},
    "2": {"a(0)": 0.5, "p": 0.7, "b(0)": 3.6, "q": 4.2, "c(0)": 4.0, "s": 6.3},
}

# NIST StRD, Misra1a; the state is a constant one.
MISRA = Model({"one": "0*one"}, {"y": "one*b1*(1 - exp(-b2*t))"}, initial={"one": 1}, parameters=["b1", "b2"])
MISRA_X = [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0]
MISRA_Y = [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78]


def digits(found, certified):
    return -np.log10(np.max(np.abs(np.asarray(found) / np.asarray(certified) - 1)) + 1e-16)


@pytest.mark.parametrize("start", LANCZOS_STARTS)
@pytest.mark.parametrize("weights", ["none", "likelihood"])
def test_certified_lanczos(start, weights):
    misfit = Problem(LANCZOS, Data(LANCZOS_X, {"y": LANCZOS_Y}), weights=weights).misfit
    begin = np.array([LANCZOS_STARTS[start][label] for label in misfit.labels])
    end = refine(misfit, begin, positive=True)
    certified = np.array([LANCZOS_CERTIFIED[label] for label in misfit.labels])
    assert end.ending is Ending.CONVERGED
    # The certified starts come in any order of the three exponentials.
    order, expected = np.argsort(end.z[3:]), np.argsort(certified[3:])
    assert digits(end.z[3:][order], certified[3:][expected]) > 4
    assert digits(end.z[:3][order], certified[:3][expected]) > 4
    residuals = end.residuals * end.levels[0]
    assert digits(residuals @ residuals, 1.6117193594e-08) > 7


@pytest.mark.parametrize("start", [(500, 1e-4), (250, 5e-4)])
def test_certified_misra(start):
    misfit = Problem(MISRA, Data(MISRA_X, {"y": MISRA_Y}), weights="none").misfit
    end = refine(misfit, np.array(start))
    assert digits(end.z, [2.3894212918e02, 5.5015643181e-04]) > 6
    assert digits(2 * end.cost, 1.2455138894e-01) > 8
    freedom = len(MISRA_X) - 2
    stderr = np.sqrt(np.diag(np.linalg.inv(end.jacobian.T @ end.jacobian)) * 2 * end.cost / freedom)
    assert digits(stderr, [2.7070075241e00, 7.2668688436e-06]) > 5


def noisy(model, truth, times, sds, seed=0):
    rng = np.random.default_rng(seed)
    zero = Problem(model, Data(times, {name: np.zeros(len(times)) for name in model.outputs})).misfit
    exact = zero.evaluate(np.asarray(truth, dtype=float)).residuals.reshape(len(model.outputs), -1)
    measured = {
        name: row + sd * rng.standard_normal(len(times))
        for name, row, sd in zip(model.outputs, exact, sds, strict=True)
    }
    return Data(times, measured)


def test_plain_squares_agree_with_scipy():
    truth = [0.7, 0.4, 0.6, 0.8, 0.5]
    data = noisy(PREDATORS, truth, np.linspace(0, 15, 60), (0.03, 0.03))
    misfit = Problem(PREDATORS, data, weights="none").misfit
    start = np.array([0.8, 0.5, 0.5, 0.7, 0.6])
    end = refine(misfit, start, BOX)
    reference = least_squares(
        lambda z: misfit.evaluate(z).residuals, start, lambda z: misfit.evaluate(z).dense, xtol=1e-15, ftol=1e-15
    )
    assert end.cost == pytest.approx(reference.cost, rel=1e-9)
    np.testing.assert_allclose(end.z, reference.x, rtol=1e-5)


def test_the_likelihood_has_no_slope_at_the_optimum():
    data = noisy(PREDATORS, [0.7, 0.4, 0.6, 0.8, 0.5], np.linspace(0, 15, 80), (0.002, 0.1))
    misfit = Problem(PREDATORS, data).misfit
    end = refine(misfit, np.array([0.6, 0.5, 0.5, 0.7, 0.6]), BOX)
    assert end.ending is Ending.CONVERGED
    for axis in np.eye(5):
        ahead, back = (misfit.score(end.z * (1 + sign * 1e-5 * axis)) for sign in (1, -1))
        bend = (ahead + back - 2 * end.cost) / 1e-10
        assert abs(ahead - back) / 2e-5 < 1e-3 * np.sqrt(bend)  # a thousandth of a standard error
    np.testing.assert_allclose(end.levels, [0.002, 0.1], rtol=0.3)
    np.testing.assert_allclose(end.levels, misfit.levels(misfit.evaluate(end.z).residuals), rtol=1e-9)
    assert end.cost == pytest.approx(misfit.score(end.z))


def test_exact_data_end_at_rounding():
    truth = np.array([0.7, 0.4, 0.6, 0.8, 0.5])
    data = noisy(PREDATORS, truth, np.linspace(0, 15, 60), (0, 0))
    end = refine(Problem(PREDATORS, data).misfit, truth * [1.2, 0.9, 1.1, 0.8, 1.2], BOX)
    assert end.ending is Ending.EXACT and end.evaluations < 40
    np.testing.assert_allclose(end.z, truth, rtol=1e-11)


def test_an_optimum_outside_is_met_at_the_bound():
    truth = np.array([0.7, 0.4, 0.6, 0.8, 0.5])
    misfit = Problem(PREDATORS, noisy(PREDATORS, truth, np.linspace(0, 15, 60), (0.01, 0.01)), noise=0.01).misfit
    end = refine(misfit, np.array([0.6, 0.4, 0.5, 0.6, 0.4]), {"k2": (0.1, 0.75), "k3": (-2, 0.45)})
    assert end.ending is Ending.CONVERGED
    assert end.held.any()
    gradient = end.residuals @ end.jacobian
    for i, (low, high) in enumerate([(-np.inf, np.inf)] * 3 + [(0.1, 0.75), (-2, 0.45)]):
        scale = np.sqrt(end.jacobian[:, i] @ end.jacobian[:, i])
        if end.held[i]:
            assert gradient[i] < 0 and end.z[i] == high
        else:
            assert low < end.z[i] < high and abs(gradient[i]) < 2e-3 * scale


def test_negative_values_are_found_without_bounds():
    model = Model({"x": "a*x + b"}, {"y": "x"}, parameters=["a", "b"])
    truth = np.array([2.0, -0.5, -3.0])
    data = noisy(model, truth, np.linspace(0, 4, 40), (1e-3,))
    end = refine(Problem(model, data).misfit, np.array([1.0, -1.0, 0.5]))
    assert end.ending is Ending.CONVERGED
    np.testing.assert_allclose(end.z, truth, rtol=1e-2)


def test_a_start_that_blows_up_is_led_back():
    model = Model({"x": "a*x**2 - b*x"}, {"y": "x"}, parameters=["a", "b"])
    truth = np.array([1.0, 0.5, 0.7])
    misfit = Problem(model, noisy(model, truth, np.linspace(0, 8, 60), (1e-3,))).misfit
    start = np.array([1.0, 1.0, 0.3])
    assert not misfit.evaluate(start).complete
    end = refine(misfit, start, BOX)
    assert end.ending is Ending.CONVERGED
    np.testing.assert_allclose(end.z, truth, rtol=2e-2)


def test_a_start_from_which_nothing_can_be_simulated():
    model = Model({"x": "-k*x"}, {"y": "log(x)"})
    misfit = Problem(model, Data(np.linspace(0, 1, 9), {"y": -np.linspace(0, 1, 9)})).misfit
    end = refine(misfit, np.array([-1.0, 1.0]))
    assert end.ending is Ending.NO_START and end.cost == np.inf
    assert "not finite" in end.message


def test_limits_are_endings():
    misfit = Problem(
        PREDATORS, noisy(PREDATORS, [0.7, 0.4, 0.6, 0.8, 0.5], np.linspace(0, 15, 60), (0.01, 0.01))
    ).misfit
    start = np.array([0.5, 0.6, 0.4, 0.6, 0.7])
    late = refine(misfit, start, BOX, time_limit=0)
    assert late.ending is Ending.TIME_LIMIT and late.evaluations == 1
    np.testing.assert_allclose(late.z, start)
    few = refine(misfit, start, BOX, max_evaluations=3)
    assert few.ending is Ending.EVALUATION_LIMIT and few.evaluations <= 4 and few.cost < late.cost


def test_shared_parameters_of_two_experiments():
    times = np.linspace(0, 10, 40)
    parts = [
        noisy(PREDATORS, [r, w, 0.6, 0.8, 0.5], times, (0.01, 0.01), i)
        for i, (r, w) in enumerate([(0.7, 0.4), (0.2, 0.9)])
    ]
    misfit = Problem(PREDATORS, Data.join(parts)).misfit
    end = refine(misfit, np.full(7, 0.5), BOX)
    np.testing.assert_allclose(end.z, [0.7, 0.4, 0.2, 0.9, 0.6, 0.8, 0.5], rtol=0.05)
    # With both experiments every parameter is known better than from one.
    alone = refine(Problem(PREDATORS, parts[0]).misfit, np.full(5, 0.5), BOX)
    errors = [np.sqrt(np.diag(np.linalg.inv(e.jacobian.T @ e.jacobian)))[-3:] for e in (end, alone)]
    assert np.all(errors[0] < errors[1])


@pytest.mark.parametrize("name", ["crauste", "cstr", "flexible_arm", "hiv", "sirt_treatment", "receptor_binding"])
@pytest.mark.parametrize("noise", [1e-8, 1e-4, 1e-2])
def test_ill_conditioned_systems_reach_the_optimum_of_the_fit_from_the_truth(name, noise):
    rng = np.random.default_rng([5, *name.encode()])
    misfit, truth = draws.problem(systems.load(name), 100, noise, rng)
    reference = refine(misfit, truth, BOX)
    end = refine(misfit, draws.perturbed(truth, "10 %", rng), BOX, max_evaluations=1000)
    assert reference.cost <= misfit.score(truth)
    assert end.cost <= reference.cost + 1e-3


def wall(distance: float, sd: float) -> tuple[np.ndarray, Problem]:
    """A narrow winding valley along a wall beyond which there is no simulation, and a start on its floor."""
    model = Model(
        {"one": "0*one"},
        {"y": "one*a", "w": f"one*(log(b - sin(3*a) - 2) - log({distance}))"},
        initial={"one": 1},
        parameters=["a", "b"],
    )
    data = Data([0.0, 1.0, 2.0], {"y": [3.0] * 3, "w": [0.0] * 3}, noise={"y": sd, "w": 1.0})
    return np.array([0.1, np.sin(0.3) + 2 + distance]), Problem(model, data, positive=True)


def test_steps_follow_the_bend_of_a_narrow_valley():
    """Straight steps along this one take 1600 evaluations."""
    start, problem = wall(1e-4, 0.1)
    end = refine(problem.misfit, start, positive=True)
    assert end.ending is Ending.CONVERGED and end.evaluations < 400
    assert end.z == pytest.approx([3.0, np.sin(9.0) + 2 + 1e-4], rel=1e-4)


def test_a_valley_is_not_left_while_steps_grow():
    """After a step that failed, many together gain nothing, but each is longer than the last."""
    start, problem = wall(1e-4, 0.1)
    way = Descent(problem.misfit, problem.frame(start), problem.misfit.scales, np.inf, 500, 1e-7)
    way.look(start)
    way.weighting, way.region.growing = replace(way.weighting, adaptive=True), True
    assert not way.creeps()
    way.allowance.evaluations += 30
    assert not way.creeps()
    way.region.growing = False
    assert way.creeps()


def test_an_end_that_crept_there_is_found_again_soon():
    start, problem = wall(1e-5, 100.0)
    end = refine(problem.misfit, start, positive=True, max_evaluations=2000)
    again = refine(problem.misfit, end.z, positive=True)
    assert again.cost <= end.cost and again.evaluations < 50
