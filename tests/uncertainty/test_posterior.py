"""Draws against posteriors that are known: in closed form, and from reference draws that others made."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import odejet as oj
from odejet.search.refine import refine
from odejet.uncertainty.sampling import Target
from tests.fits import STRAIGHT

pytest.importorskip("walnutpie")
pytest.importorskip("arviz")

TIMES = np.linspace(0, 4, 25)
VALUES = 0.5 + 1.5 * TIMES + 0.3 * np.random.default_rng(3).normal(size=25)
FLAT = {"x": "uniform(-10, 10)", "b": "uniform(-10, 10)"}
REFERENCE = Path(__file__).parents[3] / "shared" / "posteriordb"


def refined_fit(model, data, start, **options):
    problem = oj.Problem(model, data, **options)
    start = np.asarray(start, dtype=float)
    return oj.Fit.of(problem, refine(problem.misfit, start, frame=problem.frame(start)))


def line(**options):
    """x(0) + b t: normal with known noise, Student's t where it is estimated."""
    return refined_fit(STRAIGHT, oj.Data(TIMES, {"y": VALUES}), [0.5, 1.5], **options)


def design():
    return np.column_stack([np.ones_like(TIMES), TIMES])


def test_the_gradient_of_the_target():
    fit = line(noise=0.3, priors={"b": "normal(1, 0.5)"}, bounds={"b": (0, 5)})
    target = Target.at(fit.problem.objective, fit.estimates)
    w = np.array([0.7, -0.4])
    value, gradient = target(w)
    for i, step in enumerate(1e-5 * np.eye(2)):
        assert gradient[i] == pytest.approx((target(w + step)[0] - target(w - step)[0]) / 2e-5, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(target.natural(target.v(target.to_w(fit.estimates))), fit.estimates, rtol=1e-9)
    assert np.isfinite(value)


def test_normal_draws_where_the_noise_is_known():
    fit = line(
        noise=0.3, bounds={"x": (-10, 10), "b": (-10, 10)}, priors={"x": "uniform(-10, 10)", "b": "uniform(-10, 10)"}
    )
    found = fit.sample(ess=400, seed=1)
    covariance = 0.09 * np.linalg.inv(design().T @ design())
    centre = np.linalg.lstsq(design(), VALUES, rcond=None)[0]
    assert found.success and found.warnings == ()
    for i, label in enumerate(found.labels):
        own = found.statistics[label]
        assert own["mean"] == pytest.approx(centre[i], abs=4 * own["MCSE"])
        assert own["sd"] == pytest.approx(np.sqrt(covariance[i, i]), rel=0.08)
        assert own["R-hat"] <= 1.01 and min(own["ESS bulk"], own["ESS tail"]) >= 400


def test_students_draws_where_the_noise_is_estimated():
    """Jeffreys' prior of the noise leaves t laws with as many degrees of freedom as there are measurements left over,
    with unknowns that are uniform on their natural scale."""
    flat = {"x": "uniform(-10, 10)", "b": "uniform(-10, 10)"}
    fit = refined_fit(
        STRAIGHT,
        oj.Data(TIMES[:6], {"y": VALUES[:6]}),
        [0.5, 1.5],
        priors=flat,
        bounds={"x": (-10, 10), "b": (-10, 10)},
    )
    found = fit.sample(ess=1000, seed=2)
    matrix = design()[:6]
    centre, squares = np.linalg.lstsq(matrix, VALUES[:6], rcond=None)[:2]
    scale = np.sqrt(squares[0] / 4 * np.linalg.inv(matrix.T @ matrix).diagonal())
    for i, label in enumerate(found.labels):
        law = stats.t(4, centre[i], scale[i])
        for p in (0.05, 0.25, 0.5, 0.75, 0.95):
            assert np.mean(found[label] <= law.ppf(p)) == pytest.approx(p, abs=0.03)


def test_expressions_intervals_and_the_same_seed():
    fit = line(noise=0.3)
    found = fit.sample(ess=200, seed=3)
    np.testing.assert_allclose(found["2*b"], 2 * found["b"])
    low, high = found.interval("2*b", 0.9)
    assert np.mean((found["2*b"] >= low) & (found["2*b"] <= high)) == pytest.approx(0.9, abs=0.01)
    np.testing.assert_array_equal(fit.sample(ess=200, seed=3).chains, found.chains)
    assert not np.array_equal(fit.sample(ess=200, seed=4).chains, found.chains)
    assert "R-hat" in found.summary() and str(found) == found.summary()


def test_predictions_and_groups_for_arviz():
    import arviz

    fit = line(noise=0.3)
    found = fit.sample(ess=200, seed=5)
    band = found.predict([1.0, 2.0])["y"]
    exact = np.sqrt(
        0.09 * np.einsum("ij,jk,ik->i", *(design()[[6, 12]], np.linalg.inv(design().T @ design()), design()[[6, 12]]))
    )
    np.testing.assert_allclose(band["high"] - band["low"], 2 * 1.96 * exact, rtol=0.2)
    data = found.to_inference_data()
    assert {"posterior", "log_likelihood", "posterior_predictive", "observed_data"} <= set(data.groups())
    draws = found.draws
    first = stats.norm.logpdf(VALUES[3], draws[:, 0] + draws[:, 1] * TIMES[3], 0.3)
    np.testing.assert_allclose(data.log_likelihood["y"].values.reshape(len(draws), -1)[:, 3], first, rtol=1e-9)
    assert arviz.loo(data).elpd_loo == pytest.approx(first.mean() * 25, abs=20)
    spread = data.posterior_predictive["y"].values.reshape(len(draws), -1).std(axis=0)
    np.testing.assert_allclose(spread, 0.3, rtol=0.2)


@pytest.mark.parametrize("noise", ["lognormal(0.1)", "poisson", "student(0.3, 4)", "laplace(0.3)", "negbinomial(0.1)"])
def test_replicates_of_every_law_have_its_spread(noise):
    times = np.linspace(0, 2, 30)
    counts = noise in ("poisson", "negbinomial(0.1)")
    values = np.round(50 * np.exp(-times)) if counts else 5 * np.exp(-times) + 0.1 * np.sin(9 * times)
    model = oj.Model({"x": "-k*x"}, {"y": "x"})
    fit = refined_fit(model, oj.Data(times, {"y": values}), [values[0], 1.0], noise=noise, positive=True)
    found = fit.sample(ess=100, seed=1)
    replicas = found.to_inference_data().posterior_predictive["y"].values.reshape(len(found), -1)
    inside = np.mean(
        (values >= np.quantile(replicas, 0.005, axis=0)) & (values <= np.quantile(replicas, 0.995, axis=0))
    )
    assert np.isfinite(replicas).all() and inside > 0.85


def test_what_nothing_bounds_is_refused_by_name():
    model = oj.Model({"x": "-(a + b)*x"}, {"y": "x"})
    times = np.linspace(0, 2, 20)
    data = oj.Data(times, {"y": np.exp(-times) + 0.01 * np.sin(9 * times)})
    loose = refined_fit(model, data, [1.0, 0.5, 0.5], positive=True)
    with pytest.raises(oj.ModelError, match="nothing bounds a, b"):
        loose.sample()
    bounded = refined_fit(model, data, [1.0, 0.5, 0.5], bounds={"a": (0.1, 2), "b": (0.1, 2)})
    assert len(bounded.sample(ess=50, time_limit=20)) > 0
    with pytest.raises(oj.ModelError, match="ess must be a positive number"):
        bounded.sample(ess=-1)


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the reference draws of posteriordb are not beside the project")
def test_predators_and_prey_as_in_posteriordb():
    data = json.loads((REFERENCE / "hudson_lynx_hare.json").read_text())
    with zipfile.ZipFile(REFERENCE / "hudson_lynx_hare-lotka_volterra.draws.json.zip") as archive:
        reference = json.loads(archive.read(archive.namelist()[0]))
    model = oj.Model({"u": "alpha*u - beta*u*v", "v": "-gamma*v + delta*u*v"}, {"y1": "u", "y2": "v"})
    values = np.vstack([data["y_init"], data["y"]])
    rates = {
        "alpha": "normal(1, 0.5)",
        "gamma": "normal(1, 0.5)",
        "beta": "normal(0.05, 0.05)",
        "delta": "normal(0.05, 0.05)",
    }
    sizes = dict.fromkeys(("s1", "s2"), "lognormal(-1, 1)") | dict.fromkeys(("u", "v"), "lognormal(log(10), 1)")
    problem = oj.Problem(
        model,
        oj.Data([0, *data["ts"]], {"y1": values[:, 0], "y2": values[:, 1]}),
        noise={"y1": "lognormal(s1)", "y2": "lognormal(s2)"},
        positive=True,
        priors=rates | sizes,
    )
    found = oj.sample(problem, ess=400, seed=0)
    names = {"u(0)": "z_init[1]", "v(0)": "z_init[2]", "alpha": "theta[1]", "beta": "theta[2]", "gamma": "theta[3]"}
    names |= {"delta": "theta[4]", "s1": "sigma[1]", "s2": "sigma[2]"}
    for label, theirs in names.items():
        known, own = np.concatenate([chain[theirs] for chain in reference]), found.statistics[label]
        error = max(3 * np.hypot(own["MCSE"], known.std() / 100), 0.05 * known.std())
        assert own["mean"] == pytest.approx(known.mean(), abs=error)
        assert own["sd"] == pytest.approx(known.std(), rel=0.08)


def test_a_scale_whose_most_probable_value_is_zero():
    """Counts that scatter less than Poisson's: the density of the dispersion has its mode on the bound, and its law is
    known by quadrature."""
    times = np.linspace(0, 2, 8)
    mu = 50 * np.exp(-times)
    counts = np.round(mu)
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "50"}, fixed={"k": 1})
    data = oj.Data(times, {"y": counts})
    fit = refined_fit(model, data, [1e-9], noise="negbinomial(a)", positive=True, priors={"a": "halfnormal(0.5)"})
    found = fit.sample(ess=1000, seed=1)
    grid = np.geomspace(1e-9, 4, 20001)
    logs = stats.halfnorm.logpdf(grid, scale=0.5)
    logs += stats.nbinom.logpmf(counts, 1 / grid[:, None], 1 / (1 + grid[:, None] * mu)).sum(axis=1)
    weights = np.exp(logs - logs.max()) * grid  # of logarithms
    below = np.cumsum(weights) / weights.sum()
    assert found.success
    for p in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.mean(found["a"] <= grid[np.searchsorted(below, p)]) == pytest.approx(p, abs=0.03)
