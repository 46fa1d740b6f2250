"""Residuals, their derivatives and their likelihood against closed forms, differences and SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from odejet import Data, Model, ModelError, Outcome
from odejet.errors import DataError
from odejet.problem import Problem

DECAY = Model({"x": "-k*x"}, {"y": "a*x", "w": "x**2"}, parameters=["k", "a"])
PREDATORS = Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r", "y2": "w"})
BLOW_UP = Model({"x": "a*x**2"}, {"y": "x"})


def decay_data():
    """Two outputs on different grids; the initial state holds at t = 1, the first observation."""
    return Data(None, {"y": ([1.0, 2.0, 4.0], [2.0, 1.0, 0.3]), "w": ([1.5, 2.0, 3.0, 5.0], [0.7, 0.4, 0.2, 0.05])})


def test_residuals_and_jacobian_of_a_closed_form():
    misfit = Problem(DECAY, decay_data()).misfit
    assert misfit.labels == ("x(1)", "k", "a")
    x0, k, a = 1.1, 0.5, 1.7
    found = misfit.evaluate(np.array([x0, k, a]))
    t, s = np.array([0.0, 1, 3]), np.array([0.5, 1, 2, 4])
    e, f = np.exp(-k * t), np.exp(-2 * k * s)
    np.testing.assert_allclose(
        found.residuals, np.r_[a * x0 * e - [2, 1, 0.3], x0**2 * f - [0.7, 0.4, 0.2, 0.05]], rtol=1e-12
    )
    by_y = np.column_stack([a * e, -t * a * x0 * e, x0 * e])
    by_w = np.column_stack([2 * x0 * f, -2 * s * x0**2 * f, 0 * s])
    np.testing.assert_allclose(found.dense, np.vstack([by_y, by_w]), rtol=1e-12, atol=1e-14)
    values = misfit.evaluate(np.array([x0, k, a]), jacobian=False)
    np.testing.assert_allclose(values.residuals, found.residuals, rtol=1e-12)
    assert values.jacobian is None and found.complete and found.reached == 1


@settings(max_examples=15)
@given(st.lists(st.floats(0.2, 0.9), min_size=7, max_size=7))
def test_jacobian_of_two_experiments_is_the_difference(values):
    times = np.linspace(0, 6, 9)
    data = Data.join([Data(times, {"y1": np.ones(9)}), Data(times + 2, {"y1": np.ones(9), "y2": np.ones(9)})])
    misfit = Problem(PREDATORS, data).misfit
    labels = [f"{state}({start}) in experiment{i}" for i, start in ((1, 0), (2, 2)) for state in ("r", "w")]
    assert list(misfit.labels) == [*labels, "k1", "k2", "k3"]
    z, step = np.array(values), 1e-6
    jacobian = misfit.evaluate(z).dense
    for i, axis in enumerate(np.eye(7)):
        ahead, back = (misfit.evaluate(z + sign * step * axis, jacobian=False).residuals for sign in (1, -1))
        np.testing.assert_allclose(jacobian[:, i], (ahead - back) / (2 * step), rtol=1e-5, atol=1e-7)
    # y1 of both experiments, then y2 of the second
    assert misfit.counts.tolist() == [18, 9]
    np.testing.assert_array_equal(jacobian[:9, 2:4], 0)
    np.testing.assert_array_equal(jacobian[9:, :2], 0)


def test_known_initial_states_of_model_and_experiment():
    model = PREDATORS.replace(initial={"w": "k3/2"})
    times = np.linspace(0, 3, 5)
    data = Data.join(
        [Data(times, {"y1": np.ones(5), "y2": np.ones(5)}), Data(times, {"y1": np.ones(5)}, initial={"r": 0.4})]
    )
    misfit = Problem(model, data).misfit
    assert misfit.labels == ("r(0) in experiment1", "k1", "k2", "k3")
    full = Problem(PREDATORS, data.of(data.experiments[:1])).misfit
    z = np.array([0.6, 0.5, 0.7, 0.3])
    found, free = misfit.evaluate(z), full.evaluate(np.array([0.6, 0.15, 0.5, 0.7, 0.3]))
    rows = np.r_[0:5, 10:15]
    np.testing.assert_allclose(found.residuals[rows], free.residuals, rtol=1e-12)
    by_k3 = free.dense[:, 4] + 0.5 * free.dense[:, 1]
    np.testing.assert_allclose(found.dense[rows, 3], by_k3, rtol=1e-10, atol=1e-12)
    assert found.residuals[5] == pytest.approx(-0.6)


def test_cost_is_the_negative_log_likelihood():
    rng = np.random.default_rng(4)
    y, w = (np.linspace(1, 3, 12), rng.random(12)), (np.linspace(1, 5, 20), rng.random(20))
    misfit = Problem(DECAY, Data(None, {"y": y, "w": w})).misfit
    r = misfit.evaluate(np.array([1.1, 0.5, 1.7])).residuals
    sds = [np.sqrt(np.mean(r[:12] ** 2)), np.sqrt(np.mean(r[12:] ** 2))]
    np.testing.assert_allclose(misfit.levels(r), sds)
    expected = -stats.norm.logpdf(r[:12], scale=sds[0]).sum() - stats.norm.logpdf(r[12:], scale=sds[1]).sum()
    assert misfit.cost(r) == pytest.approx(expected)
    assert misfit.score(np.array([1.1, 0.5, 1.7])) == pytest.approx(expected)


def test_known_noise():
    z = np.array([1.1, 0.5, 1.7])
    plain = Problem(DECAY, decay_data()).misfit.evaluate(z).residuals
    y, w = np.array([2.0, 1.0, 0.3]), np.array([0.7, 0.4, 0.2, 0.05])
    for noise, sds in (
        (0.2, np.full(7, 0.2)),
        ({"y": 0.1, "w": "5%"}, np.r_[np.full(3, 0.1), 0.05 * w]),
        ("10%", 0.1 * np.r_[y, w]),
    ):
        misfit = Problem(DECAY, decay_data(), noise=noise).misfit
        assert not misfit.estimated.any()
        found = misfit.evaluate(z).residuals
        assert misfit.cost(found) == pytest.approx(-stats.norm.logpdf(plain, scale=sds).sum())
    given_by_data = Problem(DECAY, Data([1.0, 2, 4], {"y": y}, noise={"y": [0.1, 0.2, 0.3]})).misfit
    found = given_by_data.evaluate(z).residuals
    assert given_by_data.cost(found) == pytest.approx(-stats.norm.logpdf(plain[:3], scale=[0.1, 0.2, 0.3]).sum())


def test_relative_noise_of_unknown_level_and_plain_squares():
    z = np.array([1.1, 0.5, 1.7])
    plain = Problem(DECAY, decay_data(), weights="none").misfit
    r = plain.evaluate(z).residuals
    assert plain.cost(r) == pytest.approx(0.5 * r @ r)
    told = Problem(DECAY, decay_data(), noise="relative", weights="none").misfit
    np.testing.assert_array_equal(told.evaluate(z).residuals, r)
    relative = Problem(DECAY, decay_data(), noise="relative").misfit
    assert relative.estimated.all()
    np.testing.assert_allclose(relative.evaluate(z).residuals, r / relative.values)


def test_exact_data_have_a_floor():
    times = np.linspace(0, 2, 20)
    misfit = Problem(DECAY, Data(times, {"y": 2 * np.exp(-times)})).misfit
    r = misfit.evaluate(np.array([1.0, 1.0, 2.0])).residuals
    assert 1e-16 < misfit.levels(r)[0] < 1e-14
    assert np.isfinite(misfit.cost(np.zeros(20)))


def test_a_few_points_have_no_noise_of_their_own():
    times = np.linspace(1, 5, 30)
    misfit = Problem(DECAY, Data(None, {"y": (times, np.exp(-times)), "w": ([2.0, 3.0], [0.5, 0.3])})).misfit
    r = np.r_[np.full(30, 0.01), 0, 0]  # the two points of w are met exactly
    levels = misfit.levels(r)
    assert levels[0] == pytest.approx(0.01 * np.sqrt(30 / 32))
    assert levels[1] / levels[0] == pytest.approx(np.std([0.5, 0.3]) / np.std(np.exp(-times)))


def test_an_output_that_is_zero_has_a_floor():
    times = np.linspace(1, 5, 30)
    misfit = Problem(DECAY, Data(times, {"y": np.exp(-times), "w": np.zeros(30)})).misfit
    assert np.isfinite(misfit.cost(np.zeros(60)))
    assert np.isfinite(misfit.score(np.array([1e-200, 1.0, 1.0])))


def test_a_blow_up_is_an_evaluation_that_says_how_far_it_got():
    misfit = Problem(BLOW_UP, Data(np.linspace(0, 4, 9), {"y": np.ones(9)})).misfit
    found = misfit.evaluate(np.array([1.0, 0.5]))  # the pole is at t = 2
    assert not found.complete and found.outcome is Outcome.BLOW_UP
    assert found.reached == pytest.approx(0.5, abs=0.01)
    assert "t = 2" in found.message
    assert misfit.score(np.array([1.0, 0.5])) == np.inf
    assert misfit.screen([np.array([1.0, 0.5]), np.array([1.0, 0.1])])[0] == np.inf


def test_an_evaluation_of_many_experiments_ends_when_the_time_is_over():
    times = np.linspace(0, 6, 9)
    one = Data(times, {"y1": np.ones(9)})
    several, single = (Problem(PREDATORS, data).misfit for data in (Data.join([one] * 3), one))
    late = several.evaluate(np.ones(9), deadline=0.0)
    assert late.outcome is Outcome.OUT_OF_TIME and not late.complete and late.work < 4
    assert several.score(np.ones(9), deadline=0.0) == np.inf > several.score(np.ones(9))
    assert several.screen([np.ones(9)], deadline=0.0).tolist() == [np.inf]
    assert single.evaluate(np.ones(5), deadline=0.0).complete  # what is simulated already is not thrown away


def test_a_window_is_the_misfit_of_its_measurements():
    times = np.linspace(0, 10, 101)
    data = Data(times, {"y1": np.cos(times) + 2, "y2": np.sin(times) + 2})
    misfit, z = Problem(PREDATORS, data).misfit, np.array([0.5, 0.4, 0.3, 0.6, 0.7])
    part = misfit.window(0.3, 7, levels=np.array([0.5, 2.0]))
    assert part.counts.tolist() == [7, 7] and part.times.max() == pytest.approx(3)
    whole = misfit.evaluate(z).residuals
    positions = np.searchsorted(times, part.times - 1e-9)
    np.testing.assert_allclose(part.evaluate(z).residuals[:7], whole[positions[:7]], rtol=1e-12)
    np.testing.assert_array_equal(part.levels(np.zeros(14)), [0.5, 2.0])
    assert misfit.points == 202


def test_screening_ranks_like_scores():
    times = np.linspace(0, 10, 200)
    truth = np.array([0.5, 0.4, 0.3, 0.6, 0.7])
    exact = Problem(PREDATORS, Data(times, {"y1": 0 * times, "y2": 0 * times})).misfit.evaluate(truth).residuals
    rng = np.random.default_rng(0)
    noisy = exact + 0.01 * rng.standard_normal(400)
    misfit = Problem(PREDATORS, Data(times, {"y1": noisy[:200], "y2": noisy[200:]})).misfit
    candidates = [truth * rng.uniform(1 - width, 1 + width, 5) for width in (0.0, 0.05, 0.2, 0.5, 0.8)]
    screened, scores = misfit.screen(candidates), [misfit.score(z) for z in candidates]
    assert np.argsort(screened).tolist() == np.argsort(scores).tolist()


def test_sds_in_one_experiment_only_are_refused():
    times, values = np.linspace(0, 2, 12), np.ones(12)
    data = Data.join([Data(times, {"y": values}, noise=0.1), Data(times, {"y": values})])
    with pytest.raises(DataError, match="only some of the measurements of 'y' have a known sd"):
        Problem(DECAY, data)
    assert not Problem(DECAY, data, noise=0.2).misfit.estimated.any()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"noise": -1.0}, "the noise of 'y' must be a positive number"),
        ({"noise": "loud"}, "not 'loud'"),
        ({"noise": {"w": "x%"}}, "the noise of 'w'"),
        ({"weights": "some"}, "weights must be 'likelihood' or 'none', not 'some'"),
    ],
)
def test_refusals(options, sentence):
    with pytest.raises(ModelError, match=sentence):
        Problem(DECAY, decay_data(), **options)


def test_every_experiment_has_its_own_input():
    model = Model({"x": "-k*x + u"}, {"y": "x"}, inputs={"u": "0"})
    times = np.linspace(0, 3, 12)
    data = Data.join(
        [
            Data(times, {"y": np.zeros(12)}),
            Data(times, {"y": np.zeros(12)}, inputs={"u": "2"}),
            Data(times, {"y": np.zeros(12)}, inputs={"u": 1 + times}),
        ]
    )
    misfit, k = Problem(model, data).misfit, 0.8
    found = misfit.evaluate(np.array([1.0, 0.5, 0.3, k])).residuals.reshape(3, 12)
    decay = np.exp(-k * times)
    np.testing.assert_allclose(found[0], decay, rtol=1e-10)
    np.testing.assert_allclose(found[1], 0.5 * decay + 2 / k * (1 - decay), rtol=1e-10)
    # x' = -k x + 1 + t has the solution t/k + (k - 1)/k^2 and what decays
    settled = times / k + (k - 1) / k**2
    np.testing.assert_allclose(found[2], settled + (0.3 - settled[0]) * decay, rtol=1e-8)


def test_outputs_that_span_decades_have_residuals_relative_to_their_size():
    times = np.linspace(0, 40, 200)
    model = Model({"x": "k*x"}, {"y": "x"})
    growing = Problem(model, Data(times, {"y": np.exp(times)})).misfit.by_rounding()
    assert growing is not None
    np.testing.assert_allclose(growing.evaluate(np.array([1.001, 1.0])).residuals, 1e-3, rtol=0.8)
    assert Problem(model, Data(times, {"y": np.cosh(times / 20)})).misfit.by_rounding() is None


def test_long_and_stiff_simulations_are_more_work():
    times = np.linspace(0, 20, 50)
    relaxation = Problem(
        Model({"x": "w", "w": "m*(1 - x**2)*w - x"}, {"y": "x"}), Data(times, {"y": np.cos(times)})
    ).misfit
    easy, stiff = (relaxation.evaluate(np.array([2.0, 0.0, m])).work for m in (1.0, 500.0))
    assert easy == 1 < stiff
