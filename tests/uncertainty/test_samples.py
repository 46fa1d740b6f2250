"""Draws against the law they come from."""

import importlib

import numpy as np
import pytest

from odejet import Data, Model, ModelError
from odejet.uncertainty.samples import laplace
from tests.fits import STRAIGHT, predators, refined_fit

TIMES = np.linspace(0, 4, 25)
VALUES = 0.5 + 1.5 * TIMES + 0.3 * np.random.default_rng(3).normal(size=25)


def line():
    return refined_fit(STRAIGHT, Data(TIMES, {"y": VALUES}), [0.5, 1.5], noise=0.05)


def test_laplace_draws_have_the_covariance_of_the_fit():
    fit = line()
    draws = fit.likelihood.frame.back(laplace(fit.likelihood, 20_000, 2, 0)).reshape(-1, 2)
    np.testing.assert_allclose(draws.mean(axis=0), fit.estimates, atol=0.02 * max(fit.stderr.values()))
    np.testing.assert_allclose(np.cov(draws.T), fit.covariance.values, rtol=0.05)


def test_estimated_noise_makes_heavier_tails():
    fit = refined_fit(STRAIGHT, Data(TIMES[:5], {"y": VALUES[:5]}), [0.5, 1.5])
    draws = laplace(fit.likelihood, 20_000, 1, 0)[0]
    spread = (draws - np.median(draws, axis=0)) / np.quantile(np.abs(draws - np.median(draws, axis=0)), 0.5, axis=0)
    assert np.mean(np.abs(spread) > 5) > 0.01  # of a normal law 0.0008


def test_positive_quantities_stay_positive():
    fit = predators(points=20)
    assert np.all(fit.likelihood.frame.back(laplace(fit.likelihood, 500, 2, 0)) > 0)


def test_inference_data():
    pytest.importorskip("arviz")
    fit = line()
    found = fit.to_inference_data(200, 2)
    assert list(found.posterior) == ["x(0)", "b"] and found.posterior["b"].shape == (2, 200)
    assert found.observed_data["y"].shape == (25,)
    again = fit.to_inference_data(200, 2)
    np.testing.assert_array_equal(found.posterior["b"], again.posterior["b"])


def test_emcee_agrees_with_laplace_where_the_law_is_normal():
    pytest.importorskip("arviz"), pytest.importorskip("emcee")
    fit = line()
    found = fit.to_inference_data(600, sampler="emcee").posterior["b"].values
    assert found.mean() == pytest.approx(fit.parameters["b"], abs=0.5 * fit.stderr["b"])
    assert found.std() == pytest.approx(fit.stderr["b"], rel=0.3)


def test_what_is_refused(monkeypatch):
    fit = line()
    with pytest.raises(ModelError, match="sampler must be one of"):
        fit.to_inference_data(sampler="gibbs")
    with pytest.raises(ModelError, match="draws must be"):
        fit.to_inference_data(draws=0)
    lost = refined_fit(Model({"x": "-(a + b)*x"}, {"y": "x"}), Data(TIMES, {"y": np.exp(-TIMES)}), [1.0, 0.5, 0.5])
    with pytest.raises(ModelError, match="say nothing of a, b"):
        laplace(lost.likelihood, 10, 1, 0)

    def missing(name, *rest):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ModelError, match=r"pip install 'odejet\[bayes\]'"):
        fit.to_inference_data()
