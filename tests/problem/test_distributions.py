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
    """Return the law as SciPy has it; of errors that persist, that of one measurement alone."""
    size = 1 / s
    return {
        "normal": stats.norm(mu, s),
        "lognormal": stats.lognorm(s, scale=mu),
        "log10normal": stats.lognorm(s * math.log(10), scale=mu),
        "ar1": stats.norm(mu, s),
        "logar1": stats.lognorm(s, scale=mu),
        "laplace": stats.laplace(mu, s),
        "student": stats.t(4, mu, s),
        "poisson": stats.poisson(mu),
        "negbinomial": stats.nbinom(size, size / (size + mu)),
        "gamma": stats.gamma(1 / s**2, scale=mu * s**2),
        "binomial": stats.binom(int(TRIALS), mu / TRIALS),
        "betabinomial": stats.betabinom(int(TRIALS), mu / TRIALS / s, (1 - mu / TRIALS) / s),
        "loglaplace": stats.loglaplace(1 / s, scale=mu),
        "log10laplace": stats.loglaplace(1 / (s * math.log(10)), scale=mu),
    }[name]


def law_of(name):
    further = {"student": [4.0], "binomial": [TRIALS], "betabinomial": [TRIALS]}
    return LAWS[name].make(*further.get(name, []))


def density(name, law, y):
    return law.logpmf(y) if name in COUNTS else law.logpdf(y)


TRIALS = 400.0
COUNTS = ("poisson", "negbinomial", "binomial", "betabinomial")
NAMES = tuple(LAWS)
cases = st.tuples(st.sampled_from(NAMES), st.floats(0.05, 300.0), st.floats(0.02, 1.5), st.floats(0.01, 0.99))


def drawn(name, mu, s, p):
    return float(scipy_law(name, mu, s).ppf(p))


@settings(max_examples=80)
@given(cases)
def test_the_negative_log_likelihood_is_that_of_scipy(case):
    name, mu, s, p = case
    y = drawn(name, mu, s, p)
    if "laplace" in name and abs(p - 0.5) < 1e-3:
        return  # the modulus is rounded there
    found = law_of(name).terms(*(np.array([one]) for one in (y, mu, s)))
    expected = -float(density(name, scipy_law(name, mu, s), y))
    assert found.costs[0] == pytest.approx(expected, rel=1e-12, abs=1e-11 if name in COUNTS else 1e-12)


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
    if name in COUNTS:
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
    mixed = 0.0 if found.cross is None else found.cross[0]
    assert law.orthogonal == (found.cross is None)
    error = abs(float(weights @ (found.by_mu * found.by_s)) - mixed)
    assert error < 5e-3 * math.sqrt(by_mu * max(by_s, 1e-9)) + 1e-12


@settings(max_examples=40)
@given(cases)
def test_scores_quantiles_and_sds_are_those_of_scipy(case):
    name, mu, s, p = case
    law, known = law_of(name), scipy_law(name, mu, s)
    y = drawn(name, mu, s, p)
    arrays = np.array([y]), np.array([mu]), np.array([s])
    whole = name in COUNTS
    middle = known.cdf(y - 1) + 0.5 * known.pmf(y) if whole else known.cdf(y)
    assert law.scores(*arrays)[0] == pytest.approx(-stats.norm.ppf(middle), rel=1e-6, abs=1e-6)
    assert law.quantile(p, *arrays[1:])[0] == pytest.approx(y, rel=1e-9)
    sd = float(known.std())
    if math.isfinite(sd) and sd < 1e6 * mu:
        assert law.sd(*arrays[1:])[0] == pytest.approx(sd, rel=1e-5)


def test_scores_of_draws_are_normal():
    for name in NAMES:
        rng = np.random.default_rng(3)
        size = 0.02 if name == "betabinomial" else 0.3  # no count may be so likely that scores are far apart
        mu, s = np.full(4000, 60.0), np.full(4000, size)
        scores = law_of(name).scores(scipy_law(name, 60.0, size).rvs(4000, random_state=rng).astype(float), mu, s)
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
    found = law_of("lognormal").quantile(0.975, np.array([0.0, 1.0]), np.array([0.1, 0.1]))
    assert found == pytest.approx([0.0, math.exp(0.1 * stats.norm.ppf(0.975))])


EXTREMES = st.floats(-90.0, 90.0).map(lambda exponent: 10.0**exponent)


@pytest.mark.filterwarnings("error")
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), EXTREMES, EXTREMES, st.integers(0, 10**12))
def test_no_value_is_too_extreme_for_a_law(name, mu, s, y):
    law, y = law_of(name), float(max(y, 1) if "log" in name or name == "gamma" else y)
    if law.largest < math.inf:
        y, mu = min(y, law.largest), min(mu, 0.999 * law.largest)
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


@pytest.mark.parametrize("n", [1.0, 2.0, 30.0, 5000.0, 2e6])
def test_counts_of_so_many_are_those_of_scipy(n):
    """Also of very many trials, where sums over counts have nodes."""
    mu = n * np.array([0.02, 0.3, 0.5, 0.999])
    y = np.round(mu * np.array([0.5, 1.1, 1.0, 1.0]))
    law, known = LAWS["binomial"].make(n), stats.binom(int(n), mu / n)
    np.testing.assert_allclose(law.terms(y, mu, mu).costs, -known.logpmf(y), rtol=1e-10, atol=5e-15 * n)
    np.testing.assert_allclose(law.quantile(0.975, mu, mu), known.ppf(0.975))
    for a in (1e-3, 0.2):
        wide, s = LAWS["betabinomial"].make(n), np.full(4, a)
        exact = stats.betabinom(int(n), mu / n / a, (1 - mu / n) / a)
        np.testing.assert_allclose(wide.terms(y, mu, s).costs, -exact.logpmf(y), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(wide.sd(mu, s), exact.std(), rtol=1e-9)
        if n <= 5000:
            counts = np.arange(n + 1)
            table = [wide.derivatives(counts, np.full(len(counts), one), np.full(len(counts), a)) for one in mu]
            squares = [float(np.exp(-costs) @ by_s**2) for costs, _, by_s in table]
            np.testing.assert_allclose(wide.information(mu, s)[1], squares, rtol=0.03, atol=1e-12)


def test_a_beta_law_that_does_not_vary_leaves_the_binomial():
    y, mu = np.array([0.0, 3.0, 40.0, 400.0]), np.array([0.5, 4.0, 35.0, 395.0])
    wide, plain = law_of("betabinomial"), law_of("binomial")
    found, limit = wide.terms(y, mu, np.full(4, 1e-13)), plain.terms(y, mu, np.ones(4))
    np.testing.assert_allclose(found.costs, limit.costs, rtol=1e-9)
    np.testing.assert_allclose(found.by_mu, limit.by_mu, rtol=1e-9)
    np.testing.assert_allclose(found.weight_mu, limit.weight_mu, rtol=1e-6)


def test_a_gamma_law_that_hardly_varies_is_normal():
    y, mu, s = np.array([0.99, 1.02]), np.ones(2), np.full(2, 1e-7)
    found = law_of("gamma").terms(1 + (y - 1) * 1e-5, mu, s)
    limit = law_of("normal").terms(1 + (y - 1) * 1e-5, mu, s)
    np.testing.assert_allclose(found.costs, limit.costs, rtol=1e-6)
    np.testing.assert_allclose(law_of("gamma").information(mu, s), law_of("normal").information(mu, s), rtol=1e-9)
