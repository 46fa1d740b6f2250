"""Parameters that differ between occasions, beside likelihoods in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

import odejet as oj
from odejet.data.covariate import Covariate
from odejet.population import objective

LEVEL = oj.Model({"x": "0"}, {"y": "x + m"}, initial={"x": 0}, parameters=["m"], name="level")
TIMES = np.arange(1.0, 7.0)
VISIT = np.array([1.0, 1, 1, 2, 2, 2])


def visited(rows, labels=VISIT, column="occ"):
    parts = [
        oj.Data(TIMES, {"y": row, column: labels}, name=f"s{i}", start=0.0) for i, row in enumerate(np.atleast_2d(rows))
    ]
    return oj.Data.join(parts)


def levels(subjects=10, seed=2):
    rng = np.random.default_rng(seed)
    between, visits = 0.8 * rng.standard_normal((subjects, 1)), 0.5 * rng.standard_normal((subjects, 2))
    return 4 + between + visits[:, VISIT.astype(int) - 1] + 0.3 * rng.standard_normal((subjects, 6))


def minus_two_log_likelihood(rows, mean, omega, gamma, sigma) -> float:
    """Of a nested normal layout."""
    same = VISIT[:, None] == VISIT[None]
    covariance = omega**2 + gamma**2 * same + sigma**2 * np.eye(6)
    away = rows - mean
    squares = np.einsum("ij,jk,ik->", away, np.linalg.inv(covariance), away)
    return float(len(rows) * (np.linalg.slogdet(covariance)[1] + 6 * math.log(2 * math.pi)) + squares)


def test_laplace_is_exact_for_a_nested_normal_layout() -> None:
    rows = levels()
    population = oj.Population(LEVEL, visited(rows), {"m": "normal"}, occasions="occ", noise={"y": "normal(s)"})
    assert population.names == ("m", "omega_m", "gamma_m", "s")
    values = {"m": 4.1, "omega_m": 0.7, "gamma_m": 0.4, "s": 0.35}
    expected = minus_two_log_likelihood(rows, 4.1, 0.7, 0.4, 0.35)
    assert objective(population, values, "laplace") == pytest.approx(expected, abs=1e-5)


def test_sds_between_subjects_and_between_occasions_are_told_apart() -> None:
    rows = levels(12)
    fit = oj.fit(oj.Population(LEVEL, visited(rows), {"m": "normal"}, occasions="occ", noise={"y": "normal(s)"}))
    at = (fit.values[name] for name in ("m", "omega_m", "gamma_m", "s"))
    assert fit.minus_two_log_likelihood == pytest.approx(minus_two_log_likelihood(rows, *at), abs=0.05)
    for name, factor in (("m", 1.003), ("omega_m", 1.1), ("gamma_m", 1.1), ("s", 1.05)):
        for times in (factor, 1 / factor):
            moved = {**fit.values, name: fit.values[name] * times}
            beside = minus_two_log_likelihood(rows, *(moved[key] for key in ("m", "omega_m", "gamma_m", "s")))
            assert beside > fit.minus_two_log_likelihood - 0.03
    assert {"m", "m_occasion1", "m_occasion2"} <= set(fit.individuals["s0"])
    assert fit.predict([1.0, 2.0], draws=50)["y"].typical == pytest.approx(fit.values["m"], rel=1e-6)


def test_what_was_given_is_carried_over_to_the_next_occasion() -> None:
    decay = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 10}, parameters=["k"], name="decay")
    data = visited(np.ones((2, 6)))
    population = oj.Population(decay, data, {"k": "lognormal"}, occasions={"occ": ["k"]}, noise={"y": "normal(s)"})
    k, first, second = 0.2, 0.3, -0.4
    found = population.members[0].predict(np.array([[math.log(k), first, second]]), np.zeros(0))[0]
    rates = k * math.exp(first), k * math.exp(second)
    expected = 10 * np.exp(-rates[0] * np.minimum(TIMES, 4) - rates[1] * np.maximum(TIMES - 4, 0))
    assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("data", "occasions", "message"),
    [
        (
            visited(levels(2), np.array([1.0, 2, 1, 2, 2, 2])),
            "occ",
            "s0: the occasion 1.0 of 'occ' begins again at t = 3",
        ),
        (visited(levels(2)), "visit", "s0: there is no column 'visit' of occasions"),
        (visited(levels(2)), {"occ": ["k"]}, "occasions: 'k' has no random effect"),
        (visited(levels(2)), 3, "occasions is the name of a column"),
    ],
)
def test_occasions_that_nobody_can_read_are_refused(data, occasions, message) -> None:
    with pytest.raises((oj.DataError, oj.ModelError), match=message):
        oj.Population(LEVEL, data, {"m": "normal"}, occasions=occasions)


def test_an_occasion_with_a_gap_names_the_row() -> None:
    from dataclasses import replace

    gap = {"occ": Covariate(TIMES[:3], np.ones(3))}
    parts = [
        replace(one, covariates=gap)
        for one in oj.Data.join([oj.Data(TIMES, {"y": TIMES}, name=n) for n in "ab"]).experiments
    ]
    with pytest.raises(oj.DataError, match="a: the occasion 'occ' of the row at t = 4 is missing"):
        oj.Population(LEVEL, oj.Data.of(parts), {"m": "normal"}, occasions="occ")


def test_a_dose_without_an_occasion_is_refused(tmp_path) -> None:
    rows = [f"{subject},{row}" for subject in (1, 2) for row in ("0,100,.,1", "1,.,3,1", "24,100,.,.", "25,.,4,2")]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["ID,TIME,AMT,DV,OCC", *rows]) + "\n", encoding="utf-8")
    model = oj.Model({"x": "-k*x"}, {"y": "x/V"}, initial={"x": 0}, parameters=["k", "V"])
    with pytest.raises(oj.DataError, match="the occasion 'OCC' of the row at t = 24 is missing"):
        oj.Population(model, oj.Data.from_csv(path), {"k": "lognormal"}, occasions="OCC")
