"""Fits to censored measurements: likelihoods and optima of SciPy, every law, files, statistics and pictures."""

import numpy as np
import pytest
from scipy import optimize, stats

import odejet as oj
from odejet.errors import DataError, ModelError

TIMES = np.linspace(0.25, 8, 24)
DECAY = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "x0"}, parameters=["k", "x0"])


def values_of(limit=0.5, seed=1, size=10.0, sd=0.3):
    measured = size * np.exp(-0.6 * TIMES) * np.exp(sd * np.random.default_rng(seed).normal(size=24))
    return measured, measured < limit


def data_of(limit=0.5):
    measured, hidden = values_of(limit)
    cells = [f"<{limit}" if below else value for value, below in zip(measured, hidden, strict=True)]
    return oj.Data(TIMES, {"y": cells}, start=0)


def counts_of(limit=4, size=40.0):
    measured = np.minimum(np.round(values_of(0, size=size, sd=0.8)[0]), 58.0)
    hidden = measured < limit
    cells = [f"<{limit}" if below else value for value, below in zip(measured, hidden, strict=True)]
    return measured, hidden, oj.Data(TIMES, {"y": cells}, start=0)


LAWS = {
    "normal(s)": stats.norm,
    "normal(s + 0.1*y)": lambda mu, s: stats.norm(mu, s + 0.1 * mu),
    "lognormal(s)": lambda mu, s: stats.lognorm(s, scale=mu),
    "log10normal(s)": lambda mu, s: stats.lognorm(s * np.log(10), scale=mu),
    "laplace(s)": stats.laplace,
    "loglaplace(s)": lambda mu, s: stats.loglaplace(1 / s, scale=mu),
    "student(s, 4)": lambda mu, s: stats.t(4, mu, s),
    "gamma(s)": lambda mu, s: stats.gamma(1 / s**2, scale=mu * s**2),
    "poisson": lambda mu, s: stats.poisson(mu),
    "negbinomial(s)": lambda mu, s: stats.nbinom(1 / s, 1 / (1 + s * mu)),
    "binomial(60)": lambda mu, s: stats.binom(60, mu / 60),
    "betabinomial(60, s)": lambda mu, s: stats.betabinom(60, mu / 60 / s, (1 - mu / 60) / s),
}
COUNTS = ("poisson", "negbinomial(s)", "binomial(60)", "betabinomial(60, s)")


def posed(law):
    if law in COUNTS:
        measured, hidden, data = counts_of()
        limit = 3
    else:
        (measured, hidden), data, limit = values_of(), data_of(), 0.5

    def cost(theta):
        mu, s = theta[1] * np.exp(-theta[0] * TIMES), theta[2] if len(theta) > 2 else 1.0
        known = LAWS[law](mu[~hidden], s)
        density = known.logpmf if law in COUNTS else known.logpdf
        return -float(density(measured[~hidden]).sum() + LAWS[law](mu[hidden], s).logcdf(limit).sum())

    return oj.Problem(DECAY, data, noise=law, positive=True), cost


@pytest.mark.parametrize("law", LAWS)
def test_likelihood_gradient_and_optimum_are_those_of_scipy(law):
    problem, cost = posed(law)
    start = np.array([0.62, 41.0 if law in COUNTS else 10.5, 0.3])[: len(problem.unknowns)]
    values = dict(zip(("k", "x0", "s"), start, strict=False))
    assert problem.log_likelihood(values) == pytest.approx(-cost(start), rel=1e-12, abs=1e-11)
    z = problem.layout.vector(values)
    found = problem.misfit.evaluate(z)
    gradient = found.residuals @ found.dense
    for i, axis in enumerate(np.eye(len(z))):
        ahead, back = (problem.misfit.score(z + sign * 1e-5 * z * axis) for sign in (1, -1))
        assert gradient[i] == pytest.approx((ahead - back) / (2e-5 * z[i]), rel=1e-5, abs=1e-5)
    from odejet.search.refine import refine

    best = refine(problem.misfit, z, frame=problem.frame(z))
    order = [problem.unknowns.index(name) for name in ("k", "x0", "s")[: len(z)]]
    other = optimize.minimize(
        lambda theta: cost(np.exp(theta)), np.log(best.z[order]) + 0.02, method="Nelder-Mead", options={"maxiter": 3000}
    )
    assert best.cost <= other.fun + 1e-5
    if "laplace" not in law:  # a dispersion may vanish
        np.testing.assert_allclose(best.z[order], np.exp(other.x), rtol=2e-2, atol=1e-6)


def test_a_fit_knows_limits(tmp_path):
    data = data_of()
    found = oj.fit(DECAY, data, noise="lognormal(s)", positive=True, time_limit=20)
    assert found.certified and found.interval("k")[0] < 0.6 < found.interval("k")[1]
    # Taken as values, or left out, they would say that elimination is slower.
    measured, hidden = values_of()
    left_out = oj.Data(TIMES, {"y": np.where(hidden, np.nan, measured)}, start=0)
    assert oj.fit(DECAY, left_out, noise="lognormal(s)", positive=True, time_limit=20).values["k"] < found.values["k"]
    found.save(tmp_path / "fit.json")
    again = oj.Fit.load(tmp_path / "fit.json")
    series = again.data.experiments[0].outputs["y"]
    assert series.censored.tolist() == hidden.tolist() and again.problem.log_likelihood(found.values) == pytest.approx(
        found.log_likelihood, abs=1e-9
    )
    pair = found.comparison[0] if hasattr(found, "comparison") else None
    if pair is not None:
        assert np.all(pair.residuals[hidden & (pair.fitted < 0.5)] == 0)
    found.report(tmp_path / "report.html")
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_without_a_word_about_noise_its_size_is_an_unknown():
    problem = oj.Problem(DECAY, data_of())
    assert problem.unknowns == ("k", "x0", "sd_y")
    named = oj.Problem(DECAY, data_of(), noise="normal(sd_y)")
    values = {"k": 0.6, "x0": 10.0, "sd_y": 0.4}
    assert problem.log_likelihood(values) == named.log_likelihood(values)
    known = oj.Problem(DECAY, data_of(), noise=0.4)
    assert known.unknowns == ("k", "x0")
    assert known.log_likelihood({"k": 0.6, "x0": 10.0}) == pytest.approx(problem.log_likelihood(values))
    relative = oj.Problem(DECAY, data_of(), noise="20%")
    explicit = oj.Problem(DECAY, data_of(), noise="normal(0.2*y)")
    values = {"k": 0.6, "x0": 10.0}
    assert relative.log_likelihood(values) == pytest.approx(explicit.log_likelihood(values))


def test_scales_of_outputs_with_limits_stay_in_the_search():
    model = oj.Model({"x": "-k*x"}, {"y": "a*x"}, initial={"x": 1})
    problem = oj.Problem(model, data_of(), noise="lognormal(s)", positive=True)
    assert problem.misfit.affine == () and problem.objective.without_scales().names == problem.objective.names
    found = oj.fit(problem, time_limit=20)
    assert found.certified and set(found.values) == {"k", "a", "s"}


def test_counts_below_a_limit_are_those_below_it():
    """<4 are 0 to 3, 1..3 are three counts."""
    times = np.arange(1, 5.0)
    one = oj.Problem(DECAY, oj.Data(times, {"y": [9, 5, "<4", "1..3"]}, start=0), noise="poisson")
    mu = 20 * np.exp(-0.6 * times)
    law = stats.poisson(mu)
    expected = law.logpmf([9, 5, 0, 0])[:2].sum() + law.logcdf(3)[2] + np.log(law.cdf(3) - law.cdf(0))[3]
    assert one.log_likelihood({"k": 0.6, "x0": 20.0}) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("cells", "noise", "sentence"),
    [
        ([5, 3, 2, "<0"], "poisson", "the noise of 'y' is poisson, which has no value <0.0 (t = 4)"),
        ([5, 3, 2, ">20"], "binomial(20)", "which has no value >20.0 (t = 4); correct the limit"),
        ([5, 3, 2, "1.2..1.8"], "poisson", "which has no value 1.2..1.8"),
        ([5, 3, 2, "<-1"], "lognormal(s)", "which has no value <-1.0"),
    ],
)
def test_limits_that_a_law_cannot_have(cells, noise, sentence):
    with pytest.raises(DataError) as error:
        oj.Problem(DECAY, oj.Data([1, 2, 3, 4.0], {"y": cells}, start=0), noise=noise)
    assert sentence in str(error.value)


def test_what_knows_no_limits_says_so(tmp_path):
    with pytest.raises(DataError, match="of which there are no squares"):
        oj.Problem(DECAY, data_of(), weights="none")
    with pytest.raises(ModelError, match="censored values, which PEtab cannot hold"):
        oj.Problem(DECAY, data_of(), noise="lognormal(s)").to_petab(tmp_path)
    measured = [1.0, "<0.5", 0.7, 0.4]
    with pytest.raises(DataError, match="known sd must be one number"):
        oj.Problem(DECAY, oj.Data([1, 2, 3, 4.0], {"y": measured}, noise=[0.1, 0.1, 0.1, 0.2], start=0))


def test_populations_know_limits():
    """The law of a member's measurements is asked with the limits, at many effects at once."""
    problem, cost = posed("lognormal(s)")
    block = problem.measurements.blocks[0]
    mu = np.stack([10 * np.exp(-k * TIMES) for k in (0.5, 0.6)])
    rows = block.density.terms(block.values, mu, np.full_like(mu, 0.3), block.limits).costs.sum(axis=1)
    assert rows == pytest.approx([cost([k, 10.0, 0.3]) for k in (0.5, 0.6)], rel=1e-12)
