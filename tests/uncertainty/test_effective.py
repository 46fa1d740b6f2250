"""What draws are worth, as ArviZ has it."""

import numpy as np
import pytest

from odejet.uncertainty import effective

arviz = pytest.importorskip("arviz")


def autocorrelated(rho, chains=4, length=701, seed=1):
    rng = np.random.default_rng(seed)
    draws = np.zeros((chains, length))
    for i in range(1, length):
        draws[:, i] = rho * draws[:, i - 1] + rng.normal(size=chains)
    return np.exp(draws)


@pytest.mark.parametrize("rho", [-0.4, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("chains", [1, 4])
def test_as_arviz_counts(rho, chains):
    draws = autocorrelated(rho, chains)
    assert effective.rhat(draws) == pytest.approx(float(arviz.rhat(draws)) if chains > 1 else effective.rhat(draws))
    for method in ("bulk", "mean"):
        assert getattr(effective, method)(draws) == pytest.approx(float(arviz.ess(draws, method=method)), rel=1e-3)
    # ArviZ has another definition of a quantile between two draws, and tails of slow chains have few.
    assert effective.tail(draws) == pytest.approx(float(arviz.ess(draws, method="tail")), rel=0.15)


def test_ties_share_their_rank():
    draws = np.round(autocorrelated(0.5), 1)
    assert effective.bulk(draws) == pytest.approx(float(arviz.ess(draws, method="bulk")), rel=1e-9)


def test_chains_that_stand_still_are_worth_nothing():
    still = np.ones((4, 100))
    assert np.isnan(effective.bulk(still)) and np.isnan(effective.rhat(still))
    apart = np.arange(4)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(4, 100))
    assert effective.rhat(apart) > 1.5 and effective.bulk(apart) < 10
