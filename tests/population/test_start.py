"""Starts: every basin of the pooled fit is one, also where pooled subjects prefer the wrong one."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.population.start import pooled_starts

TIMES = np.array([0.25, 0.5, 1, 2, 4, 8, 12, 24.0])
ORAL = {"gut": "-ka*gut", "central": "ka*gut - Cl/V*central"}
KA, V, CL, DOSE = 1.2, 20.0, 3.0, 100.0


def by_weight(subjects: int, seed: int) -> oj.Population:
    """One compartment with fast absorption; V and Cl grow with weight."""
    rng, parts = np.random.default_rng([seed, 99]), []
    for i in range(subjects):
        size = np.exp(rng.normal(np.log(65), 0.35)) / 70
        ka, v, cl = np.array([KA, V * size, CL * size**0.75]) * np.exp([0.5, 0.2, 0.25] * rng.standard_normal(3))
        k = cl / v
        mean = DOSE * ka / (v * (ka - k)) * (np.exp(-k * TIMES) - np.exp(-ka * TIMES))
        noise = 0.1 * mean * rng.standard_normal(len(TIMES)) + 0.02 * mean.max() * rng.standard_normal(len(TIMES))
        doses = [{"time": 0.0, "state": "gut", "amount": DOSE}]
        known = {"wt": float(70 * size)}
        parts.append(oj.Data(TIMES, {"cp": mean + noise}, name=f"s{i}", start=0.0, doses=doses, values=known))
    model = oj.Model(
        ORAL, {"cp": "central/V"}, initial={"gut": 0, "central": 0}, parameters=["ka", "V", "Cl"], name="oral"
    )
    return oj.Population(
        model,
        oj.Data.join(parts),
        dict.fromkeys(["ka", "V", "Cl"], "lognormal"),
        covariates={"V": "V*(wt/70)**beta_V", "Cl": "Cl*(wt/70)**beta_Cl"},
        noise={"cp": "normal(a + b*cp)"},
    )


def pooled_cost(population: oj.Population, values: dict[str, float]) -> float:
    """The negative log-likelihood of all subjects pooled, at the best that a local search finds from there."""
    from odejet.search.refine import refine

    problem = population.pooled
    start = np.array([values[name] for name in problem.unknowns])
    return refine(problem.misfit, start, problem.given_bounds, frame=problem.frame()).cost


def test_absorption_may_be_the_fast_or_the_slow_step() -> None:
    population = by_weight(8, 0)
    layout, starts = pooled_starts(population)
    found = [dict(zip(layout.names, layout.natural(u).tolist(), strict=True)) for u in starts]
    fast = [one for one in found if one["ka"] > one["Cl"] / one["V"]]
    slow = [one for one in found if one["ka"] < one["Cl"] / one["V"]]
    assert len(fast) == len(slow) == 2  # with noise of the pooled fit, and of the data's size
    for pair in fast, slow:
        assert pair[0]["b"] != pytest.approx(pair[1]["b"], rel=0.01)
    # What is tested is a case: pooled subjects prefer the slow absorption, which is not true.
    assert pooled_cost(population, slow[0]) < pooled_cost(population, fast[0]) - 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_random_effects_tell_fast_absorption_from_slow(seed) -> None:
    fit = oj.fit(by_weight(24, 0), seed=seed, time_limit=600)
    assert fit.success
    for name, truth in {"ka": KA, "V": V, "Cl": CL, "beta_V": 1.0, "beta_Cl": 0.75}.items():
        low, high = fit.population[name].interval
        assert low - 0.2 * (high - low) < truth < high + 0.2 * (high - low)
    assert all(one.minus_two_log_likelihood > fit.minus_two_log_likelihood for one in fit.rivals)
