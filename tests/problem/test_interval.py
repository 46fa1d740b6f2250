"""Measurements between limits: probabilities against closed forms, derivatives and information against differences."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from odejet.problem.distributions import LAWS
from odejet.problem.distributions.interval import drawn_within, interval_terms

INF = math.inf
LAW = {
    "normal": ((), stats.norm(2, 0.7)),
    "laplace": ((), stats.laplace(2, 0.7)),
    "student": ((4.0,), stats.t(4, 2, 0.7)),
    "lognormal": ((), stats.lognorm(0.7, scale=2)),
    "log10normal": ((), stats.lognorm(0.7 * math.log(10), scale=2)),
    "loglaplace": ((), stats.loglaplace(1 / 0.7, scale=2)),
    "log10laplace": ((), stats.loglaplace(1 / (0.7 * math.log(10)), scale=2)),
    "gamma": ((), stats.gamma(1 / 0.49, scale=0.98)),
    "poisson": ((), stats.poisson(2)),
    "negbinomial": ((), stats.nbinom(1 / 0.7, 1 / 2.4)),
    "binomial": ((30.0,), stats.binom(30, 2 / 30)),
    "betabinomial": ((30.0,), stats.betabinom(30, 2 / 21, 28 / 21)),
}


def law_of(name):
    return LAWS[name].make(*LAW[name][0])


def columns(*values):
    return [np.array([value], dtype=float) for value in values]


def limits_of(name):
    counts = [(0, 4), (5, INF), (1, 4), (0, 0), (20, INF), (3, 3)]
    return counts if law_of(name).whole else [(-INF, 1), (0.1, 3), (2.5, 2.6), (9, INF), (-INF, 20)]


CASES = [(name, low, high) for name in LAW for low, high in limits_of(name)]


def test_every_law_of_independent_errors_is_here():
    assert set(LAW) == {name for name, form in LAWS.items() if form.correlation is None}


@pytest.mark.parametrize(("name", "low", "high"), CASES)
def test_the_probability_of_an_interval_is_that_of_scipy(name, low, high):
    known, below = LAW[name][1], low - 1 if law_of(name).whole else low
    found = interval_terms(law_of(name), *columns(low, high, 2.0, 0.7)).costs[0]
    tail = known.sf(below) if high == INF else known.cdf(high) - (known.cdf(below) if below > -INF else 0.0)
    assert math.exp(-found) == pytest.approx(tail, rel=2e-12, abs=1e-14)


def extrapolated(function, at, width=0.02):
    """A derivative by central differences at five widths."""
    table = []
    for level in range(5):
        step = width * at / 2**level
        row = [(function(at + step) - function(at - step)) / (2 * step)]
        for k, below in enumerate(table[-1] if table else (), start=1):
            row.append(row[-1] + (row[-1] - below) / (4**k - 1))
        table.append(row)
    return table[-1][-1]


@pytest.mark.parametrize(("name", "low", "high"), CASES)
def test_the_derivatives_are_exact(name, low, high):
    law = law_of(name)

    def cost(mu, s):
        return interval_terms(law, *columns(low, high, mu, s)).costs[0]

    found = interval_terms(law, *columns(low, high, 2.0, 0.7))
    assert found.by_mu[0] == pytest.approx(extrapolated(lambda mu: cost(mu, 0.7), 2.0), rel=1e-9, abs=1e-10)
    assert found.by_s[0] == pytest.approx(extrapolated(lambda s: cost(2.0, s), 0.7), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("x", [-40.0, -20.0, -5.0, 0.0, 5.0, 40.0])
def test_nothing_cancels_far_from_the_prediction(x):
    found = interval_terms(law_of("normal"), *columns(-INF, x, 0.0, 1.0))
    assert -found.costs[0] == pytest.approx(float(special.log_ndtr(x)), rel=1e-12, abs=1e-13)
    ratio = math.exp(-0.5 * x * x - 0.5 * math.log(2 * math.pi) - float(special.log_ndtr(x)))
    assert found.by_mu[0] == pytest.approx(ratio, rel=1e-12, abs=1e-15)
    narrow = interval_terms(law_of("normal"), *columns(x, x + 1e-9, 0.0, 1.0))
    assert -narrow.costs[0] == pytest.approx(stats.norm.logpdf(x) + math.log(x + 1e-9 - x), abs=1e-7)
    assert narrow.by_mu[0] == pytest.approx(-x, abs=1e-7)
    assert narrow.weight_mu[0] == pytest.approx(1.0, rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(LAW)), st.floats(-6, 6), st.floats(-6, 2), st.floats(-3, 3), st.floats(0, 6))
def test_no_interval_is_too_extreme(name, centre, spread, at, width):
    law = law_of(name)
    mu, s = 10.0**centre, 10.0**spread
    mu = min(mu, 29.9) if law.largest < INF else mu
    low = mu * 10.0**at
    high = low + mu * 10.0 ** (width - 3)
    if law.whole:
        low, high = math.floor(min(low, law.largest, 1e9)), math.floor(min(low, law.largest, 1e9)) + 3
    for ends in ((low, high), (-INF, high), (low, INF)):
        found = interval_terms(law, *columns(*ends, mu, s))
        weights = [found.weight_mu[0], found.weight_s[0]]
        assert not np.isnan([found.costs[0], found.by_mu[0], found.by_s[0], *weights]).any()
        assert found.costs[0] > -1e-9 and min(weights) >= 0
        assert found.cross[0] ** 2 <= weights[0] * weights[1] * (1 + 1e-9) + 1e-300


@pytest.mark.parametrize("name", ["normal", "lognormal", "gamma", "student", "poisson"])
def test_the_information_of_a_censored_experiment_is_the_mean_square_of_its_gradient(name):
    """That of values below a limit and of those above it, each with its probability."""
    law, known = law_of(name), LAW[name][1]
    limit = 1.0
    mu, s = columns(2.0, 0.7)
    if law.whole:
        seen = np.arange(2.0, 60)
        shares = known.pmf(seen)
    else:
        nodes, weights = np.polynomial.legendre.leggauss(2000)
        first = float(known.cdf(limit))
        shares = 0.5 * (1 - first) * weights
        seen = known.ppf(first + 0.5 * (1 - first) * (nodes + 1))
    below = interval_terms(law, *columns(-INF if not law.whole else 0, limit, 2.0, 0.7))
    above = law.terms(seen, np.full(len(seen), 2.0), np.full(len(seen), 0.7))
    share = float(known.cdf(limit))
    exact = share * below.by_mu[0] ** 2 + float(shares @ above.by_mu**2)
    assert share * below.weight_mu[0] + (1 - share) * law.information(mu, s)[0][0] == pytest.approx(exact, rel=2e-3)
    if name == "normal":  # that of others is cut to what one measurement can hold
        mixed = share * below.by_mu[0] * below.by_s[0] + float(shares @ (above.by_mu * above.by_s))
        assert share * below.cross[0] == pytest.approx(mixed, abs=2e-3 * exact)


@pytest.mark.parametrize("name", sorted(LAW))
def test_values_within_limits_are_spread_as_the_law_is(name):
    law, known = law_of(name), LAW[name][1]
    low, high = (1.0, 4.0) if law.whole else (0.5, 3.0)
    count = 400
    found = drawn_within(law, *(np.full(count, one) for one in (low, high, 2.0, 0.7)))
    assert found.min() >= low and found.max() <= high
    np.testing.assert_array_equal(found, drawn_within(law, *(np.full(count, one) for one in (low, high, 2.0, 0.7))))
    first, last = known.cdf(low - 1 if law.whole else low), known.cdf(high)
    for place in (1.0, 2.0):
        expected = (known.cdf(place) - first) / (last - first)
        assert np.mean(found <= place) == pytest.approx(expected, abs=0.04)
