"""Every law of noise: likelihood, gradient, information, scores and quantiles against SciPy and differences."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from odejet.problem.distributions import LAWS


def scipy_law(name, mu, s):
    """The same law as SciPy has it."""
    size = 1 / s
    return {
        "normal": stats.norm(mu, s),
        "lognormal": stats.lognorm(s, scale=mu),
        "log10normal": stats.lognorm(s * math.log(10), scale=mu),
        "laplace": stats.laplace(mu, s),
        "student": stats.t(4, mu, s),
        "poisson": stats.poisson(mu),
        "negbinomial": stats.nbinom(size, size / (size + mu)),
        "loglaplace": stats.loglaplace(1 / s, scale=mu),
        "log10laplace": stats.loglaplace(1 / (s * math.log(10)), scale=mu),
    }[name]


def law_of(name):
    return LAWS[name][1](*([4.0] if name == "student" else []))


def density(name, law, y):
    return law.logpmf(y) if name in ("poisson", "negbinomial") else law.logpdf(y)


NAMES = tuple(LAWS)
cases = st.tuples(st.sampled_from(NAMES), st.floats(0.05, 300.0), st.floats(0.02, 1.5), st.floats(0.01, 0.99))


def drawn(name, mu, s, p):
    return float(scipy_law(name, mu, s).ppf(p))


@settings(max_examples=80)
@given(cases)
def test_the_negative_log_likelihood_is_that_of_scipy(case):
    name, mu, s, p = case
    y = drawn(name, mu, s, p)
    found = law_of(name).terms(*(np.array([one]) for one in (y, mu, s)))
    assert found.costs[0] == pytest.approx(-float(density(name, scipy_law(name, mu, s), y)), rel=1e-9, abs=1e-6)


@settings(max_examples=80)
@given(cases)
def test_the_gradient_is_the_difference(case):
    name, mu, s, p = case
    law, y = law_of(name), np.full(2, drawn(name, mu, s, p))
    if "laplace" in name and abs(p - 0.5) < 1e-3:
        return  # the modulus has no slope there
    found = law.terms(y[:1], np.array([mu]), np.array([s]))
    for what, slope, step in (("mu", found.by_mu[0], 1e-5 * mu), ("s", found.by_s[0], 1e-5 * s)):
        moved = np.array([-step, step])
        pair = (mu + moved, np.full(2, s)) if what == "mu" else (np.full(2, mu), s + moved)
        back, ahead = law.terms(y, *pair).costs
        size = max(abs(found.costs[0]), 1.0) * 1e-14 / step
        assert slope == pytest.approx((ahead - back) / (2 * step), rel=1e-4, abs=20 * size + 1e-7)
    assert found.weight_mu[0] >= 0 and found.weight_s[0] >= 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("mu", "s"), [(0.7, 0.3), (12.0, 0.08), (150.0, 0.4)])
def test_the_information_is_the_mean_square_of_the_gradient(name, mu, s):
    law, known = law_of(name), scipy_law(name, mu, s)
    by_mu, by_s = (float(one[0]) for one in law.information(np.array([mu]), np.array([s])))
    if name in ("poisson", "negbinomial"):
        y = np.arange(0.0, known.ppf(1 - 1e-14) + 200)
        found = law.terms(y, np.full(len(y), mu), np.full(len(y), s))
        weights = known.pmf(y)
    else:  # by the probability itself, so that every law has the same range
        nodes, weights = np.polynomial.legendre.leggauss(400)
        parts = np.linspace(0, 1, 9)
        p = np.concatenate([a + (b - a) * 0.5 * (nodes + 1) for a, b in itertools.pairwise(parts)])
        weights = np.concatenate([weights] * 8) / 16
        found = law.terms(known.ppf(p), np.full(len(p), mu), np.full(len(p), s))
    assert by_mu == pytest.approx(float(weights @ found.by_mu**2), rel=2e-3)
    assert by_s == pytest.approx(float(weights @ found.by_s**2), rel=2e-3)
    assert abs(float(weights @ (found.by_mu * found.by_s))) < 5e-3 * math.sqrt(by_mu * max(by_s, 1e-9)) + 1e-12


@settings(max_examples=40)
@given(cases)
def test_scores_quantiles_and_sds_are_those_of_scipy(case):
    name, mu, s, p = case
    law, known = law_of(name), scipy_law(name, mu, s)
    y = drawn(name, mu, s, p)
    arrays = np.array([y]), np.array([mu]), np.array([s])
    whole = name in ("poisson", "negbinomial")
    middle = known.cdf(y - 1) + 0.5 * known.pmf(y) if whole else known.cdf(y)
    assert law.scores(*arrays)[0] == pytest.approx(-stats.norm.ppf(middle), rel=1e-6, abs=1e-6)
    assert law.quantile(p, *arrays[1:])[0] == pytest.approx(y, rel=1e-9)
    sd = float(known.std())
    if math.isfinite(sd) and sd < 1e6 * mu:
        assert law.sd(*arrays[1:])[0] == pytest.approx(sd, rel=1e-5)


def test_scores_of_draws_are_normal():
    rng = np.random.default_rng(3)
    for name in NAMES:
        mu, s = np.full(4000, 60.0), np.full(4000, 0.3)
        scores = law_of(name).scores(scipy_law(name, 60.0, 0.3).rvs(4000, random_state=rng).astype(float), mu, s)
        assert abs(scores.mean()) < 0.06 and abs(scores.std() - 1) < 0.05, name
        assert stats.kstest(scores, "norm").pvalue > 1e-4, name


def test_a_dispersion_that_vanishes_is_poisson():
    y, mu = np.array([0.0, 3.0, 40.0, 900.0]), np.array([0.5, 4.0, 35.0, 950.0])
    binomial, poisson = law_of("negbinomial"), law_of("poisson")
    found, limit = binomial.terms(y, mu, np.full(4, 1e-13)), poisson.terms(y, mu, np.ones(4))
    np.testing.assert_allclose(found.costs, limit.costs, rtol=1e-9)
    np.testing.assert_allclose(found.by_s, -0.5 * ((y - mu) ** 2 - y), rtol=1e-6)
    np.testing.assert_allclose(binomial.information(mu, np.full(4, 1e-13))[1], 0.5 * mu**2, rtol=1e-4)


def test_likelihoods_are_densities_of_the_measurement_itself():
    for name in ("lognormal", "log10normal", "loglaplace", "log10laplace"):
        law = law_of(name)

        def pdf(y, law=law):
            return float(np.exp(-law.terms(np.array([y]), np.array([2.0]), np.array([0.2])).costs[0]))

        assert integrate.quad(pdf, 0, 2)[0] + integrate.quad(pdf, 2, np.inf)[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.filterwarnings("error")
def test_what_is_expected_to_be_zero_is_zero():
    _, make = LAWS["lognormal"]
    found = make().quantile(0.975, np.array([0.0, 1.0]), np.array([0.1, 0.1]))
    assert found == pytest.approx([0.0, math.exp(0.1 * stats.norm.ppf(0.975))])


EXTREMES = st.floats(-90.0, 90.0).map(lambda exponent: 10.0**exponent)


@pytest.mark.filterwarnings("error")
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), EXTREMES, EXTREMES, st.integers(0, 10**12))
def test_no_value_is_too_extreme_for_a_law(name, mu, s, y):
    law, y = law_of(name), float(max(y, 1) if "log" in name else y)
    arrays = np.array([y]), np.array([mu]), np.array([s])
    found = law.terms(*arrays)
    weights = np.concatenate([found.weight_mu, found.weight_s, *law.information(*arrays[1:])])
    assert np.all(np.isfinite(weights)) and np.all(weights >= 0)
    assert np.all(np.isfinite([found.costs, found.by_mu, found.by_s]))
    assert np.all(np.isfinite(law.scores(*arrays)))
    assert law.sd(*arrays[1:])[0] > 0 or mu * s < 1e-150
    assert law.quantile(0.975, *arrays[1:])[0] >= law.quantile(0.025, *arrays[1:])[0]


@settings(max_examples=60, deadline=None)
@given(st.floats(-4.0, 4.0), st.floats(-4.0, 2.0))
def test_the_information_on_a_dispersion_is_the_mean_square_of_its_gradient(mean, dispersion):
    mu, a = 10.0**mean, 10.0**dispersion
    law, known = law_of("negbinomial"), scipy_law("negbinomial", mu, a)
    y = np.arange(0.0, known.ppf(1 - 1e-13) + 200)
    gradients = law.terms(y, np.full(len(y), mu), np.full(len(y), a)).by_s
    found = float(law.information(np.array([mu]), np.array([a]))[1][0])
    assert found == pytest.approx(float(known.pmf(y) @ gradients**2), rel=5e-3)


@pytest.mark.parametrize("a", [0.02, 0.3, 1.0])
def test_many_counts_tell_the_dispersion_as_gamma_noise_does(a):
    r = 1 / a
    limit = r**4 * (float(special.polygamma(1, r)) - r / (r * r))
    found = [float(law_of("negbinomial").information(np.array([mu]), np.array([a]))[1][0]) for mu in (1e9, 1e15, 1e30)]
    assert found == pytest.approx([limit] * 3, rel=5e-3)
