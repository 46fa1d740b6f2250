"""Errors that persist: chains of one series, and their likelihood beside that of the multivariate normal law."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import odejet as oj
from odejet.problem.chains import Chain, rho_bounds

DECAY = oj.Model({"x": "-k*x"}, {"y": "x", "w": "c*x"}, initial={"x": "x0"})


def covariance(times: np.ndarray, rho: float, chains: np.ndarray | None = None) -> np.ndarray:
    """The covariance of errors of unit size; those of different chains are independent."""
    chains = np.zeros(len(times)) if chains is None else chains
    return np.where(chains[:, None] == chains, rho ** np.abs(times[:, None] - times), 0.0)


@given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=12), st.floats(0.01, 0.99), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_the_likelihood_of_unequal_steps_is_that_of_the_normal_law(gaps, rho, seed):
    times = np.cumsum(gaps)
    errors = np.random.default_rng(seed).normal(size=len(times))
    found = Chain.of(times).innovations(errors, rho)
    cost = 0.5 * float(errors @ errors) + 0.5 * len(times) * np.log(2 * np.pi) + float(found.costs.sum())
    exact = -multivariate_normal.logpdf(errors, cov=covariance(times, rho), allow_singular=True)
    assert cost == pytest.approx(exact, rel=1e-9, abs=1e-8)


def test_replicates_are_chains_of_their_own():
    times = np.array([0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0])
    chain = Chain.of(times)
    assert chain.before.tolist() == [0, 0, 2, 1, 2, 5, 3, 4]
    assert chain.gaps.tolist() == [np.inf, 1.0, np.inf, 1.0, 1.0, np.inf, 2.0, 2.0]
    joined = Chain.joined([chain, chain])
    assert joined.before.tolist() == [0, 0, 2, 1, 2, 5, 3, 4, 8, 8, 10, 9, 10, 13, 11, 12]


def test_drawn_errors_have_the_covariance():
    times, rho = np.array([0.0, 0.3, 1.0, 1.0, 2.5]), 0.4
    rng = np.random.default_rng(3)
    draws = np.array([Chain.of(times).drawn(rho, rng) for _ in range(40_000)])
    expected = covariance(times, rho, np.array([0, 0, 0, 1, 0]))
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.03)


def test_what_was_measured_at_rest_is_independent():
    assert Chain.of(np.array([0.0, 1.0, np.inf, np.inf])).gaps.tolist() == [np.inf, 1.0, np.inf, np.inf]


def experiments(seed: int = 5) -> tuple[oj.Data, list[np.ndarray]]:
    rng, every = np.random.default_rng(seed), []
    for number, times in enumerate((np.array([0.0, 0.4, 0.5, 1.7, 2.0, 4.0]), np.linspace(0.5, 3, 6))):
        values = {name: np.exp(rng.normal(size=len(times))) for name in ("y", "w")}
        every.append(oj.Data(times, values, name=f"e{number}", start=0.0))
    return oj.Data.join(every), [every[i].experiments[0].outputs["y"].times for i in range(2)]


def test_the_objective_is_the_exact_likelihood_of_outputs_and_experiments():
    """Every series of one output in one experiment is a chain; logarithms have the density of the value itself."""
    data, times = experiments()
    problem = oj.Problem(DECAY, data, noise={"y": "ar1(s, rho)", "w": "logar1(0.3, rho)"})
    values = {"k": 0.4, "c": 0.8, "x0": 1.5, "s": 0.6, "rho": 0.3}
    exact = 0.0
    for number, t in enumerate(times):
        series, x = data.experiments[number].outputs, 1.5 * np.exp(-0.4 * t)
        exact += multivariate_normal.logpdf(series["y"].values, x, 0.36 * covariance(t, 0.3))
        w = series["w"].values
        exact += multivariate_normal.logpdf(np.log(w), np.log(0.8 * x), 0.09 * covariance(t, 0.3)) - np.log(w).sum()
    assert problem.log_likelihood(values) == pytest.approx(exact, rel=1e-11)
    assert problem.objective.value([values[name] for name in problem.unknowns]) == pytest.approx(-exact, rel=1e-11)


def test_the_information_is_that_of_the_normal_law():
    """J' C^-1 J for the mean, and tr(C^-1 dC C^-1 dC)/2 for scale and correlation, with nothing between them."""
    t = np.array([0.0, 0.4, 0.5, 1.7, 2.0, 4.0])
    data = oj.Data(t, {"y": np.cos(t)}, start=0.0)
    problem = oj.Problem(DECAY, data, noise="ar1(s, rho)", fixed={"c": 1.0})
    k, x0, s, rho = theta = np.array([0.4, 1.5, 0.6, 0.3])
    mean = np.column_stack([-x0 * t * np.exp(-k * t), np.exp(-k * t)])
    apart = np.abs(t[:, None] - t)
    whole = s**2 * rho**apart
    slopes = [2 * s * rho**apart, s**2 * apart * rho ** (apart - 1)]
    inverse, expected = np.linalg.inv(whole), np.zeros((4, 4))
    expected[:2, :2] = mean.T @ inverse @ mean
    for i, a in enumerate(slopes):
        for j, b in enumerate(slopes):
            expected[2 + i, 2 + j] = 0.5 * np.trace(inverse @ a @ inverse @ b)
    assert problem.unknowns == ("k", "x0", "s", "rho")
    np.testing.assert_allclose(problem.objective.fisher(theta), expected, rtol=1e-9, atol=1e-9)


def test_a_part_of_the_data_has_the_law_that_the_whole_gives_it():
    data, times = experiments()
    few = np.array([0, 2, 5])
    problem = oj.Problem(DECAY, data, noise="ar1(s, rho)")
    block = problem.measurements.blocks[0].at(few)
    np.testing.assert_allclose(block.chain.gaps, [np.inf, *np.diff(times[0][few])])


def test_bounds_are_those_that_times_can_tell():
    low, high = rho_bounds([np.arange(0.0, 100.0, 10.0)])
    assert low**10 == pytest.approx(1e-3) and high**90 == pytest.approx(0.99)
    assert rho_bounds([np.arange(0.0, 1e-3, 1e-4)]) is None  # half of it is forgotten in 1e-4: 0.5^10000
    assert rho_bounds([np.array([1.0])]) is None


def test_degrees_of_freedom_are_those_of_the_variance_of_a_mean():
    """The logarithm of s_e^2/(1 - phi)^2 has the variance 2/n + 4 (1 + phi)/(n (1 - phi)) where n is large."""
    n, phi = 5000, 0.7
    chain = Chain.of(np.arange(n) * 0.5)
    found = chain.innovations(np.zeros(n), phi**2)
    assert found.degrees(np.array([0, 1])) == pytest.approx(n * (1 - phi) / (3 + phi), rel=2e-3)
    assert found.degrees(np.array([0])) == pytest.approx(n)  # with a known correlation
    assert found.degrees(np.array([], dtype=int)) == np.inf


NONSENSE = [
    ("ar1(s, 1)", "the correlation of errors one unit of time apart must be at least 0 and below 1, not 1"),
    ("ar1(s, -0.2)", "at least 0 and below 1, not -0.2"),
    ("ar1(0, rho)", r"the scale of .ar1\(0, rho\). must be positive, not 0"),
    ("ar1(s)", "has not the arguments of ar1\\(scale, correlation\\)"),
    ("ar1(0.1*y, rho)", "may not depend on 'y' itself; errors that grow with it are logar1\\(s, rho\\)"),
    ("ar1(s, y)", "may not depend on 'y' itself"),
    ("logar1(s, rho)", "must be positive, and one is -1"),
]


@pytest.mark.parametrize(("noise", "message"), NONSENSE)
def test_nonsense_is_refused(noise, message):
    data = oj.Data([0.0, 1.0, 2.0], {"y": [1.0, -1.0, 0.5]})
    with pytest.raises(oj.ModelError if "one is" not in message else oj.DataError, match=message):
        oj.Problem(DECAY, data, noise=noise)


def test_a_known_correlation_of_an_experiment_is_checked():
    data = oj.Data([0.0, 1.0, 2.0], {"y": [1.0, 0.7, 0.5]}, values={"rho": 1.5})
    with pytest.raises(oj.ModelError, match=r"below 1, not 1\.5"):
        oj.Problem(DECAY, data, noise="ar1(s, rho)")


def test_censored_values_and_times_too_close_are_refused():
    data = oj.Data([0.0, 1.0, 2.0], {"y": [1.0, "<0.5", 0.5]})
    with pytest.raises(oj.DataError, match="'y' is ar1, whose errors persist, which is not known of censored values"):
        oj.Problem(DECAY, data, noise="ar1(s, rho)")
    data = oj.Data(np.arange(4) * 1e-4, {"y": [1.0, 0.7, 0.5, 0.4]})
    with pytest.raises(oj.ModelError, match=r"write ar1\(s, exp\(-1/tau\)\) with the time tau"):
        oj.Problem(DECAY, data, noise="ar1(s, rho)")
    assert "tau" in oj.Problem(DECAY, data, noise="ar1(s, exp(-1/tau))").unknowns


def test_without_arguments_both_are_unknowns_of_the_output():
    data, _ = experiments()
    problem = oj.Problem(DECAY, data, noise={"y": "ar1", "w": "logar1"})
    assert problem.unknowns[-4:] == ("sd_y", "rho_y", "sd_w", "rho_w")
    assert all(0 < problem.bounds[name][0] < problem.bounds[name][1] < 1 for name in ("rho_y", "rho_w"))
    wide = oj.Problem(DECAY, data, noise={"y": "ar1", "w": "logar1"}, bounds={"rho_y": (0, 5)})
    assert wide.bounds["rho_y"] == (0.0, 1.0)


def test_populations_refuse_errors_that_persist():
    data = oj.Data.join([oj.Data([0.0, 1.0], {"y": [1.0, 0.5]}, name=name) for name in "abc"])
    with pytest.raises(oj.ModelError, match="errors that persist are not known in a population"):
        oj.Population(DECAY, data, random=["k"], noise="ar1(s, rho)", fixed={"c": 1.0})
