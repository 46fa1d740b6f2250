"""What a design promises, beside a closed form and beside a program for optimal design."""

from __future__ import annotations

import math

import numpy as np
import pytest

import odejet as oj
from odejet.population import expected
from tests.population.test_estimation import LEVEL, TIMES, joined, levels

WARFARIN = {"CL": 0.15, "V": 8.0, "KA": 1.0}
VARIANCES = {"CL": 0.07, "V": 0.02, "KA": 0.6}


def test_a_one_way_layout_has_its_closed_form() -> None:
    data = joined(levels(1.0, np.random.default_rng(1)), TIMES)
    population = oj.Population(LEVEL, data, {"m": "normal"}, noise={"y": "normal(s)"})
    found = expected(population, {"m": 4.0, "omega_m": 1.0, "s": 0.5})
    subjects, points = len(data.experiments), len(TIMES)
    whole = 0.25 + points * 1.0
    assert found["m"].stderr == pytest.approx(math.sqrt(whole / points / subjects), rel=1e-6)
    # Means between subjects and squares within them are independent, with N and N (n - 1) degrees of freedom.
    within, between = 2 * 0.25**2 / (subjects * (points - 1)), 2 * whole**2 / subjects
    assert found["s"].stderr == pytest.approx(math.sqrt(within) / (2 * 0.5), rel=1e-6)
    assert found["omega_m"].stderr == pytest.approx(math.sqrt(within + between) / points / 2, rel=1e-6)


def test_the_design_of_warfarin_is_worth_what_poped_says() -> None:
    # Relative standard errors of the reduced information, as PopED's documentation prints them for the design of
    # Nyberg et al. (2015); those of variances are twice those of sds.
    published = {"CL": 4.738266, "V": 2.756206, "KA": 13.925829}
    of_variances = {"omega_CL": 25.627205, "omega_V": 30.344316, "omega_KA": 25.777327, "b": 11.170784}
    model = oj.Model(
        {"gut": "-KA*gut", "central": "KA*gut - CL/V*central"},
        {"cp": "central/V"},
        initial={"gut": 70, "central": 0},
        parameters=["CL", "V", "KA"],
    )
    times = np.array([0.5, 1, 2, 6, 24, 36, 72, 120])
    data = oj.Data.join([oj.Data(times, {"cp": np.ones(8)}, name=str(i), start=0.0) for i in range(32)])
    population = oj.Population(model, data, dict.fromkeys(WARFARIN, "lognormal"), noise={"cp": "normal(b*cp)"})
    values = {**WARFARIN, **{f"omega_{name}": math.sqrt(v) for name, v in VARIANCES.items()}, "b": 0.1}
    found = expected(population, values)
    for name, error in published.items():
        assert 100 * found[name].rse == pytest.approx(error, rel=1e-3)
    for name, error in of_variances.items():
        assert 200 * found[name].rse == pytest.approx(error, rel=1e-3)


def test_what_a_design_cannot_tell_has_no_end() -> None:
    # With one measurement each, nobody can tell how much subjects differ from how much measurements do.
    data = joined(levels(1.0, np.random.default_rng(1))[:, :1], TIMES[:1])
    population = oj.Population(LEVEL, data, {"m": "normal"}, noise={"y": "normal(s)"})
    found = expected(population, {"m": 4.0, "omega_m": 1.0, "s": 0.5})
    assert found["m"].stderr == pytest.approx(math.sqrt(1.25 / len(data.experiments)), rel=1e-6)
    assert math.isinf(found["omega_m"].stderr)
    assert math.isinf(found["s"].stderr)
