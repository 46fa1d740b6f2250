"""Maxima that are known in closed form, and gradients beside differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import odejet as oj
from odejet.population.estimation import SETTINGS, _Search, estimate
from odejet.population.start import pooled_starts

SUBJECTS, POINTS = 12, 5
TIMES = np.arange(1.0, POINTS + 1)
LEVEL = oj.Model({"x": "0"}, {"y": "x"}, initial={"x": "m"}, parameters=["m"], name="level")
DECAY = oj.Model(
    {"x": "-k*x"}, {"y": "x"}, initial={"x": "x0"}, parameters=["x0", "k"], bounds={"k": (0, 10)}, name="decay"
)


def joined(rows, times, **values):
    return oj.Data.join(
        [
            oj.Data(times, {"y": row}, name=f"s{i}", start=0.0, values={key: float(v[i]) for key, v in values.items()})
            for i, row in enumerate(rows)
        ]
    )


def levels(between: float, rng) -> np.ndarray:
    return 4.0 + between * rng.standard_normal((SUBJECTS, 1)) + 0.5 * rng.standard_normal((SUBJECTS, POINTS))


def decays(rng, subjects=20, omega=0.4):
    times = np.array([0.5, 1, 2, 4, 7])
    k = 0.3 * np.exp(omega * rng.standard_normal(subjects))
    return joined(10 * np.exp(-np.outer(k, times)) + 0.2 * rng.standard_normal((subjects, 5)), times)


def one_way(rows: np.ndarray) -> tuple[float, float, float, float]:
    """The maximum of the likelihood of a balanced one-way layout: mean, sds between and within, and -2 log L."""
    count, points = rows.shape
    means = rows.mean(axis=1)
    within = float(((rows - means[:, None]) ** 2).sum()) / (count * (points - 1))
    between = float(((means - rows.mean()) ** 2).mean()) - within / points
    whole = within + points * between
    minus_two = count * ((points - 1) * math.log(within) + math.log(whole) + points * math.log(2 * math.pi))
    minus_two += count * (points - 1) + count
    return float(rows.mean()), math.sqrt(between), math.sqrt(within), minus_two


def test_a_one_way_layout_has_its_exact_maximum() -> None:
    rows = levels(1.0, np.random.default_rng(1))
    fit = oj.fit(oj.Population(LEVEL, joined(rows, TIMES), {"m": "normal"}, noise={"y": "normal(s)"}))
    mean, between, within, minus_two = one_way(rows)
    assert fit.values["m"] == pytest.approx(mean, abs=1e-3)
    assert fit.values["omega_m"] == pytest.approx(between, rel=2e-3)
    assert fit.values["s"] == pytest.approx(within, rel=2e-3)
    assert fit.minus_two_log_likelihood == pytest.approx(minus_two, abs=0.005)
    assert fit.population["m"].stderr == pytest.approx(
        math.sqrt((between**2 + within**2 / POINTS) / SUBJECTS), rel=5e-3
    )
    assert fit.log_likelihood_error < 0.01
    assert fit.success


def test_a_variance_that_goes_to_zero_is_taken_out() -> None:
    rng = np.random.default_rng(3)
    times = np.array([0.5, 1, 2, 4, 7])
    k = 0.3 * np.exp(0.4 * rng.standard_normal(16))
    rows = 10 * np.exp(-np.outer(k, times)) + 0.8 * rng.standard_normal((16, 5))
    fit = oj.fit(oj.Population(DECAY, joined(rows, times), {"k": "lognormal", "x0": "lognormal"}), time_limit=600)
    assert fit.removed == ("x0",)
    assert "omega_x0" not in fit.population
    assert "taken out: the random effect of x0" in repr(fit)
    assert fit.values["x0"] == pytest.approx(10, abs=0.6)


@pytest.mark.parametrize("options", [{}, {"covariates": {"k": "k*(wt/70)^beta"}}, {"fixed": {"x0": 10}}])
def test_the_gradient_is_that_of_the_value(options) -> None:
    rng = np.random.default_rng(0)
    data = decays(rng, 6)
    if "covariates" in options:
        data = oj.Data.join(
            [
                oj.Data(
                    one.outputs["y"].times, {"y": one.outputs["y"].values}, name=one.name, start=0.0, values={"wt": w}
                )
                for one, w in zip(data.experiments, 60 + 5 * np.arange(6.0), strict=True)
            ]
        )
    population = oj.Population(DECAY, data, {"k": "lognormal"}, noise={"y": "normal(a + b*y)"}, **options)
    layout, starts = pooled_starts(population)
    search = _Search(population, layout, starts[0], 0, SETTINGS)
    search.integrator.adapt_to_modes(search.u, list(range(6)))
    marginal = search.integrator.few(search.u)
    u = search.u + 0.01
    _, gradient = marginal.value_and_gradient(u)
    for j, row in enumerate(np.eye(len(u))):
        ends = [marginal.value_and_gradient(u + sign * 1e-5 * row)[0] for sign in (1, -1)]
        assert gradient[j] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-4)


def test_parameters_without_an_effect_are_estimated_too() -> None:
    population = oj.Population(DECAY, decays(np.random.default_rng(5), 16), {"k": "lognormal"})
    fit = oj.fit(population)
    assert fit.population["x0"].interval[0] < 10 < fit.population["x0"].interval[1]
    assert fit.population["k"].interval[0] < 0.3 < fit.population["k"].interval[1]
    assert fit.population["omega_k"].interval[0] < 0.4 < fit.population["omega_k"].interval[1]
    assert fit.population["sigma_y"].value == pytest.approx(0.2, rel=0.2)
    assert set(fit.individuals["s3"]) == {"k", "x0"}


def test_seeds_lead_to_one_optimum() -> None:
    population = oj.Population(DECAY, decays(np.random.default_rng(6), 8), {"k": "lognormal"}, fixed={"x0": 10})
    values = [-2 * estimate(population, seed).log_likelihood for seed in range(2)]
    assert max(values) - min(values) < 0.05


def test_cores_do_not_change_the_answer(monkeypatch) -> None:
    monkeypatch.setattr("odejet.search.workers.PATIENCE", 0.0)
    population = oj.Population(DECAY, decays(np.random.default_rng(6), 5), {"k": "lognormal"}, fixed={"x0": 10})
    one, two = (oj.fit(population, jobs=jobs, time_limit=600) for jobs in (1, 2))
    assert np.array_equal(one.estimated.u, two.estimated.u)
    assert one.log_likelihood == two.log_likelihood


def test_an_estimation_without_time_says_so() -> None:
    population = oj.Population(DECAY, decays(np.random.default_rng(6), 8), {"k": "lognormal"}, fixed={"x0": 10})
    with pytest.raises(oj.DataError, match="time limit was over"):
        estimate(population, deadline=0.0)


def test_an_estimation_that_is_stopped_has_what_is_known(monkeypatch) -> None:
    from odejet.budget import OutOfBudget
    from odejet.population.integration import Integrator

    def stop(*_):
        raise OutOfBudget("the time is over")

    monkeypatch.setattr(Integrator, "integrated", stop)
    population = oj.Population(DECAY, decays(np.random.default_rng(6), 8), {"k": "lognormal"}, fixed={"x0": 10})
    fit = oj.fit(population)
    assert not fit.success
    assert "not at the maximum: the time is over" in repr(fit)
    assert fit.values["k"] == pytest.approx(0.3, rel=0.5)
