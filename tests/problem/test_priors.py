"""Priors against SciPy, differences and posteriors in closed form."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import odejet as oj
from odejet.errors import ModelError
from odejet.problem import Problem
from odejet.problem.priors import read
from odejet.search.refine import refine


class OfLogarithm:
    """A law of the logarithm, as it stands."""

    def __init__(self, law, unit):
        self.law, self.unit = law, unit

    def logpdf(self, x):
        return self.law.logpdf(np.log(x) / self.unit)

    def cdf(self, x):
        return self.law.cdf(np.log(x) / self.unit)


TEXTS = {
    "normal(0.4, 0.3)": stats.norm(0.4, 0.3),
    "lognormal(log(0.3), 0.5)": stats.lognorm(0.5, scale=0.3),
    "laplace(0.4, 0.2)": stats.laplace(0.4, 0.2),
    "loglaplace(log(0.3), 0.4)": stats.loglaplace(1 / 0.4, scale=0.3),
    "uniform(0.01, 2.5)": stats.uniform(0.01, 2.49),
    "loguniform(0.01, 2.5)": stats.loguniform(0.01, 2.5),
    "cauchy(0.5, 0.2)": stats.cauchy(0.5, 0.2),
    "gamma(2.5, 0.3)": stats.gamma(2.5, scale=0.3),
    "exponential(0.7)": stats.expon(scale=0.7),
    "chisquare(3)": stats.chi2(3),
    "rayleigh(0.6)": stats.rayleigh(scale=0.6),
    "normal_log(log(0.3), 0.5)": OfLogarithm(stats.norm(math.log(0.3), 0.5), 1.0),
    "normal_log10(-0.5, 0.3)": OfLogarithm(stats.norm(-0.5, 0.3), math.log(10)),
    "laplace_log(log(0.3), 0.4)": OfLogarithm(stats.laplace(math.log(0.3), 0.4), 1.0),
    "laplace_log10(log(0.3)/log(10), 0.2)": OfLogarithm(stats.laplace(math.log10(0.3), 0.2), math.log(10)),
    "uniform_log(-5, 1)": OfLogarithm(stats.uniform(-5, 6), 1.0),
    "uniform_log10(-2, 0.4)": OfLogarithm(stats.uniform(-2, 2.4), math.log(10)),
    "student_log(log(0.3), 0.4, 3.5)": OfLogarithm(stats.t(3.5, math.log(0.3), 0.4), 1.0),
    "cauchy_log10(-0.3, 0.2)": OfLogarithm(stats.cauchy(-0.3, 0.2), math.log(10)),
    "student(0.4, 0.3, 3.5)": stats.t(3.5, 0.4, 0.3),
    "halfnormal(0.8)": stats.halfnorm(scale=0.8),
    "halfcauchy(0.5)": stats.halfcauchy(scale=0.5),
    "truncated(normal(0.4, 0.3), 0.01, 2.5)": stats.truncnorm(-1.3, 7, 0.4, 0.3),
    "truncated(cauchy(0.5, 0.2), -inf, inf)": stats.cauchy(0.5, 0.2),
}


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=15)
@given(x=st.floats(0.02, 2.4))
def test_density_slope_and_probability(text, x):
    prior, known = read("k", text), TEXTS[text]
    found, step = prior.at(x), 1e-6
    assert found.cost == pytest.approx(-known.logpdf(x), abs=1e-9)
    assert prior.below(x) == pytest.approx(known.cdf(x), abs=1e-12)
    if "laplace" not in text or abs(x - (0.3 if "log" in text else 0.4)) > 1e-3:
        slope = (prior.at(x + step).cost - prior.at(x - step).cost) / (2 * step)
        assert found.slope == pytest.approx(slope, rel=1e-5, abs=1e-6)
    assert found.weight >= 0 and found.information >= 0


@settings(max_examples=25)
@given(x=st.floats(0.01, 0.99), a=st.floats(0.3, 8), b=st.floats(0.3, 8))
def test_beta_beside_scipy(x, a, b):
    prior, known = read("k", f"beta({a!r}, {b!r})"), stats.beta(a, b)
    assert prior.at(x).cost == pytest.approx(-known.logpdf(x), rel=1e-9, abs=1e-9)
    assert prior.at(x).slope == pytest.approx((b - 1) / (1 - x) - (a - 1) / x, rel=1e-12)
    assert prior.below(x) == pytest.approx(known.cdf(x), abs=1e-12)
    assert prior.limits == (0, 1) and 0 < prior.typical < 1 and prior.at(1.5).cost == math.inf


SMOOTH = [text for text in TEXTS if "laplace" not in text]


@pytest.mark.parametrize("text", [*SMOOTH, "beta(2.5, 1.5)"])
@settings(max_examples=10)
@given(x=st.floats(0.1, 0.9))
def test_slopes_beside_extrapolated_differences(text, x):
    """To 1e-9, by Richardson's extrapolation of central differences."""
    prior, rows = read("k", text), []
    for level in range(6):
        step = 0.02 / 2**level
        row = [(prior.at(x + step).cost - prior.at(x - step).cost) / (2 * step)]
        for k, below in enumerate(rows[-1] if rows else (), start=1):
            row.append(row[-1] + (row[-1] - below) / (4**k - 1))
        rows.append(row)
    assert prior.at(x).slope == pytest.approx(rows[-1][-1], rel=1e-9, abs=1e-9)


def test_truncated_priors_are_refused_where_nothing_is_left():
    assert read("k", "truncated(normal(0, 1), 0, inf)").limits == (0, math.inf)
    for text, sentence in {
        "truncated(normal(0, 1), 2, 1)": "nothing is left",
        "truncated(normal(0, 1), 2)": "must be text such as",
        "truncated(beta(1, 2), 3, 4)": "nothing is left",
        "truncated(truncated(normal(0, 1), 0, 1), a, 4)": "cannot depend on 'a'",
    }.items():
        with pytest.raises(ModelError, match=sentence):
            read("k", text)


def test_a_prior_on_the_scale_can_be_truncated():
    cut, whole = (read("k", text) for text in ("truncated(normal_log10(0, 1), 0.1, 10)", "normal_log10(0, 1)"))
    inside = stats.norm.cdf(1) - stats.norm.cdf(-1)
    assert cut.at(3.0).cost == pytest.approx(whole.at(3.0).cost + math.log(inside))
    assert cut.limits == (0.1, 10) and cut.typical == 1.0 and cut.at(11.0).cost == math.inf
    problem = Problem(DECAY, decay_data(), noise=0.05, priors={"k": "truncated(normal_log10(0, 1), 0.1, 10)"})
    assert problem.log_prior({"x": 1.0, "k": 3.0}) == pytest.approx(-cut.at(3.0).cost)
    assert problem.objective.prior_entries.tolist() == []


DECAY = oj.Model({"x": "-k*x"}, {"y": "x"})
TIMES = np.linspace(0, 2, 9)


def decay_data(seed=2):
    return oj.Data(TIMES, {"y": np.exp(-0.8 * TIMES) + 0.05 * np.random.default_rng(seed).normal(size=9)})


def test_a_normal_prior_is_one_more_measurement():
    told = Problem(DECAY, decay_data(), noise=0.05, priors={"x": "normal(1.5, 0.05)"})
    series = decay_data().experiments[0].outputs["y"]
    more = oj.Data(np.append(0.0, series.times), {"y": np.append(1.5, series.values)}, noise=0.05)
    plain = Problem(DECAY, more)
    start = np.array([1.0, 0.5])
    ours, theirs = (refine(p.misfit, start, frame=p.frame(start)) for p in (told, plain))
    np.testing.assert_allclose(ours.z, theirs.z, rtol=1e-4)
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-6)
    np.testing.assert_allclose(ours.jacobian.T @ ours.jacobian, theirs.jacobian.T @ theirs.jacobian, rtol=1e-3)


def test_the_posterior_is_the_likelihood_times_the_prior_within_the_bounds():
    problem = Problem(DECAY, decay_data(), bounds={"k": (0.1, 2.0)}, noise=0.05, priors={"k": "normal(1, 0.5)"})
    values = {"x": 1.1, "k": 0.7}
    inside = stats.truncnorm((0.1 - 1) / 0.5, (2 - 1) / 0.5, 1, 0.5)
    assert problem.log_prior(values) == pytest.approx(inside.logpdf(0.7))
    plain = Problem(DECAY, decay_data(), noise=0.05)
    assert problem.log_likelihood(values) == pytest.approx(plain.log_likelihood(values))
    assert problem.log_posterior(values) == pytest.approx(plain.log_likelihood(values) + inside.logpdf(0.7))
    assert problem.log_posterior({"x": 1.1, "k": 3.0}) == -math.inf
    assert problem.bounds["k"] == (0.1, 2.0)


@pytest.mark.parametrize("text", TEXTS)
def test_the_maximum_a_posteriori_is_that_of_a_scan(text):
    problem = Problem(DECAY, decay_data(), noise=0.2, priors={"k": text}, fixed={"x": 1.0})
    start = problem.frame().inside(np.array([0.9]))
    found = refine(problem.misfit, start, frame=problem.frame(start))
    grid = np.linspace(0.02, 2.4, 201)
    best = max(problem.log_posterior({"k": k}) for k in grid)
    assert -found.cost >= best - 1e-6
    assert problem.log_posterior({"k": float(found.z[0])}) == pytest.approx(-found.cost)


def test_draws_know_a_prior_of_the_logarithm_from_one_of_the_number():
    """Both are one law, of which the maximum lies elsewhere."""
    texts = {"k": "normal_log(log(0.5), 0.3)"}, {"k": "lognormal(log(0.5), 0.3)"}
    one, other = (Problem(DECAY, decay_data(), noise=0.05, priors=priors, bounds=(1e-9, 1e9)) for priors in texts)
    scaled = [problem.objective.scaled() for problem in (one, other)]
    points = [problem.from_natural(np.array([1.0, k])) for problem in scaled[:1] for k in (0.2, 0.9)]
    gained = [problem.log_posterior(points[1]) - problem.log_posterior(points[0]) for problem in scaled]
    assert gained[0] == pytest.approx(gained[1], abs=1e-9)
    costs = [problem.value(points[1]) - problem.value(points[0]) for problem in scaled]
    assert costs[1] - costs[0] == pytest.approx(math.log(0.9 / 0.2))
    assert one.objective.prior_entries.tolist() == [] and other.objective.prior_entries.tolist() == [1]


def test_a_fit_with_priors_says_so_and_comes_back(tmp_path):
    fit = oj.fit(DECAY, decay_data(), priors={"k": "lognormal(log(0.5), 0.1)"}, noise=0.05)
    assert "maximum a posteriori" in str(fit)
    assert fit.log_posterior == pytest.approx(fit.log_likelihood + fit.log_prior)
    assert fit.log_prior == pytest.approx(stats.lognorm(0.1, scale=0.5).logpdf(fit.values["k"]))
    assert fit.aic == pytest.approx(4 - 2 * fit.log_likelihood)
    fit.save(tmp_path / "fit.json")
    again = oj.Fit.load(tmp_path / "fit.json")
    assert again.problem.priors == fit.problem.priors and again.log_posterior == pytest.approx(fit.log_posterior)
    low, high = fit.profile("k").interval()
    without = oj.fit(DECAY, decay_data(), noise=0.05).profile("k").interval()
    assert high - low < without[1] - without[0]


@pytest.mark.parametrize(
    ("priors", "sentence"),
    [
        ({"q": "normal(1, 2)"}, "priors name 'q', which is no unknown of the problem"),
        ({"k": "normal(1)"}, "has not the arguments of normal(mean, sd)"),
        ({"k": "normal(1, -2)"}, "the prior of 'k': its sd must be a positive number"),
        ({"k": "normal(1, x)"}, "cannot depend on 'x'"),
        ({"k": "norml(1, 2)"}, "there is no prior 'norml'; did you mean 'normal'?"),
        ({"k": "normal_ln(1, 2)"}, "there is no prior 'normal_ln'"),
        ({"k": "normal_(1, 2)"}, "there is no prior 'normal_'"),
        ({"k": "uniform(2, 1)"}, "must lie between a low and a higher number"),
        ({"k": "loguniform(0, 1)"}, "must lie between a low and a higher number"),
        ({"k": 3}, "the prior of 'k' must be text such as 'normal(1, 0.2)', not 3"),
        ({"k": "3"}, "the prior of 'k' must be text such as 'normal(1, 0.2)'"),
        ({"k": "normal(1, 2"}, "arguments stand in parentheses"),
        ("normal(1, 2)", "priors must be a dictionary of names and texts"),
        ({"k": "uniform(3, 4)"}, "the bounds of 'k' leave nothing"),
    ],
)
def test_refusals(priors, sentence):
    with pytest.raises(ModelError) as error:
        Problem(DECAY, decay_data(), bounds={"k": (0.1, 2.0)}, priors=priors)
    assert sentence in str(error.value)
