"""Other maxima of the likelihood: absorption and elimination that change places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import odejet as oj
from odejet.population.layout import Layout
from odejet.population.rivals import Rival, families
from tests.population.test_approximations import SHARED, needs_data, rows_of
from tests.population.test_estimation import DECAY, decays


@dataclass
class End:
    layout: Layout
    u: np.ndarray
    value: float


def test_ends_near_each_other_are_one_family() -> None:
    layout = oj.Population(DECAY, decays(np.random.default_rng(1), 4), {"k": "lognormal"}).layout
    u = np.zeros(len(layout))
    idle = u.copy()
    idle[layout.omegas] -= 5.0  # a variance that the data do not tell
    ends = [End(layout, u + 1.0, 9.0), End(layout, u, 3.0), End(layout, idle, 4.0), End(layout, u + 0.1, 2.0)]
    found = families(ends)
    assert [[end.value for end in family] for family in found] == [[2.0, 3.0, 4.0], [9.0]]


def test_a_rival_is_told_with_its_likelihood() -> None:
    words = Rival({"ka": 1.5823, "V": 31.6}, 118.108, 0.01, ("Cl",)).sentence(111.85)
    assert words == "another maximum has -2 log L = 118.11 (+6.26) at ka 1.58, V 31.6, no variability of Cl"


@needs_data
@pytest.mark.slow
def test_theophylline_has_two_maxima() -> None:
    parts = []
    for name, rows in rows_of(SHARED / "theophylline" / "theo_sd.csv").items():
        seen = [r for r in rows if r["EVID"] == "0"]
        doses = [{"time": 0.0, "state": "gut", "amount": float(r["AMT"])} for r in rows if r["EVID"] != "0"]
        series = [float(r["TIME"]) for r in seen], {"cp": [float(r["DV"]) for r in seen]}
        parts.append(oj.Data(*series, name=name, start=0.0, doses=doses))
    model = oj.Model(
        {"gut": "-ka*gut", "central": "ka*gut - Cl/V*central"},
        {"cp": "central/V"},
        initial={"gut": 0, "central": 0},
        parameters=["ka", "V", "Cl"],
    )
    population = oj.Population(model, oj.Data.join(parts), dict.fromkeys(["ka", "V", "Cl"], "lognormal"))
    fit = oj.fit(population, time_limit=600)
    constant = 132 * np.log(2 * np.pi)
    assert fit.minus_two_log_likelihood - constant < 111.9
    (rival,) = fit.rivals
    assert rival.minus_two_log_likelihood - constant == pytest.approx(118.10, abs=0.15)
    assert rival.values["ka"] == pytest.approx(1.58, abs=0.05)
    assert "another maximum has" in repr(fit)
