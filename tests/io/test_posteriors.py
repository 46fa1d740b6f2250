"""Draws in files: what comes back, and what is refused."""

import json

import numpy as np
import pytest

import odejet as oj
from odejet.uncertainty.posterior import Posterior

TIMES = np.linspace(0, 2, 9)
MODEL = oj.Model({"x": "-k*x"}, {"y": "x"})
VALUES = np.exp(-0.8 * TIMES) + 0.05 * np.sin(9 * TIMES)


@pytest.fixture
def draws():
    problem = oj.Problem(
        MODEL, oj.Data(TIMES, {"y": VALUES}), noise=0.05, positive=True, priors={"k": "lognormal(0, 1)"}
    )
    rng = np.random.default_rng(0)
    chains = np.array([1.0, 0.8]) + 0.05 * rng.normal(size=(4, 100, 2)) @ np.array([[1, 0.8], [0, 0.6]])
    return Posterior(problem, chains, 3, 1.5, 200, 50.0, ("a doubt",))


def test_what_is_saved_comes_back(draws, tmp_path):
    pytest.importorskip("arviz")
    path = tmp_path / "draws.json"
    draws.save(path)
    again = oj.Posterior.load(path)
    np.testing.assert_array_equal(again.chains, draws.chains)
    assert again.warnings == draws.warnings and again.problem.priors == draws.problem.priors
    assert again.statistics == draws.statistics and again.labels == draws.labels
    assert again.predict([1.0])["y"]["median"] == pytest.approx(draws.predict([1.0])["y"]["median"])


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"posterior": 99}, "another version"),
        ({"chains": [[[1.0]]]}, "chains"),
        ({"chains": []}, "chains"),
        ({"seed": "x"}, "seed"),
        ({"warnings": [1]}, "warnings"),
    ],
)
def test_files_that_are_no_draws(draws, tmp_path, change, sentence):
    pytest.importorskip("arviz")
    path = tmp_path / "draws.json"
    path.write_text(json.dumps(draws.to_dict() | change))
    with pytest.raises(oj.DataError, match=sentence):
        oj.Posterior.load(path)
    path.write_text("{")
    with pytest.raises(oj.DataError, match="not a JSON file"):
        oj.Posterior.load(path)
    path.write_text("{}")
    with pytest.raises(oj.DataError, match="no draws"):
        oj.Posterior.load(path)


def test_pictures_table_and_page(draws, tmp_path):
    pytest.importorskip("arviz")
    pytest.importorskip("matplotlib")
    figure = draws.plot(tmp_path / "draws.svg")
    # two densities, one pair, one band
    assert len(figure.subfigs) == 4 and (tmp_path / "draws.svg").stat().st_size > 1000
    assert "R-hat" in draws._repr_html_() and "A doubt." in draws._repr_html_()
    draws.report(tmp_path / "draws.html")
    page = (tmp_path / "draws.html").read_text()
    assert "not to be trusted as it is" in page and "What is correlated" in page


def test_densities_are_one_in_all():
    from odejet.report.posterior import _kernel

    x = np.linspace(-5, 5, 120)
    y = _kernel(np.random.default_rng(1).normal(size=4000), x)
    assert y.sum() * (x[1] - x[0]) == pytest.approx(1, abs=1e-3)
    assert y.max() == pytest.approx(1 / np.sqrt(2 * np.pi), rel=0.1)
