"""Published data sets: all can be posed, and where NIST certifies the least-squares estimates, fits have them."""

from __future__ import annotations

import pytest

import odejet as oj
from problems.published import FURTHER, PUBLISHED

CERTIFIED = {
    "misra": {"A": 2.3894212918e02, "k": 5.5015643181e-04},
    "box": {"A": 2.1380940889e02, "k": 5.4723748542e-01},
    "pasture": {"K": 7.2462237576e01, "r": 6.7359200066e-02},
    "onions": {"A": 6.9964151270e02, "r": 7.5962938329e-01, "m": 1.2792483859e00},
}
"""NIST Statistical Reference Datasets: Misra1a, BoxBOD, Rat42 and Rat43, to 11 digits."""


@pytest.mark.parametrize("name", [*PUBLISHED, *FURTHER])
def test_every_data_set_can_be_posed(name: str) -> None:
    problem = PUBLISHED[name].pose() if name in PUBLISHED else FURTHER[name]()
    assert len(problem.unknowns) > 1
    assert sum(len(series) for one in problem.data.experiments for series in one.outputs.values()) > len(
        problem.unknowns
    )


@pytest.mark.parametrize("name", CERTIFIED)
def test_fits_have_the_estimates_that_nist_certifies(name: str) -> None:
    fit = oj.fit(PUBLISHED[name].pose())
    assert fit.search == "confirmed"
    assert {label: fit.values[label] for label in CERTIFIED[name]} == pytest.approx(CERTIFIED[name], rel=1e-6)
