"""How measurements stand to their predictions: what the three pictures of an output show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from odejet import ModelError
from odejet.report.diagnostics import by_output, diagnostic_pictures
from odejet.report.html import page
from odejet.report.panels import Dots, Line
from odejet.result import Comparison
from tests.fits import predators


def series(experiment: str, fitted: list[float], values: list[float], sd: float = 0.5) -> Comparison:
    count = len(values)
    return Comparison(
        experiment,
        "y",
        np.arange(count, dtype=float),
        np.array(values),
        np.array(fitted),
        np.full(count, sd),
        np.zeros(count, dtype=bool),
    )


def dots(picture) -> Dots:
    (layer,) = [layer for layer in picture.panels[0].layers if isinstance(layer, Dots)]
    return layer


def test_all_experiments_of_an_output_are_in_one_picture():
    pairs = [series("a", [1.0, 2.0], [1.5, 1.0]), series("b", [3.0, 4.0], [3.0, 5.0])]
    assert [len(group) for group in by_output(pairs).values()] == [2]
    observed, residuals, quantiles = diagnostic_pictures("y", pairs)
    assert dots(observed).x.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert dots(observed).y.tolist() == [1.5, 1.0, 3.0, 5.0]
    assert dots(residuals).y.tolist() == [-1.0, 2.0, 0.0, -2.0]
    assert dots(quantiles).y.tolist() == [-2.0, -1.0, 0.0, 2.0]


def test_quantiles_are_those_that_scipy_expects_of_normal_deviates():
    values = np.random.default_rng(3).normal(size=400)
    *_, quantiles = diagnostic_pictures("y", [series("a", values.tolist(), [0.0] * 400, sd=1.0)])
    drawn = dots(quantiles)
    assert np.all(np.diff(drawn.x) > 0)
    # SciPy puts them at Filliben's positions, which differ from Blom's by less than a hundredth in the middle.
    expected = stats.probplot(values, fit=False)[0]
    assert np.abs(drawn.x - expected)[20:-20].max() < 0.01
    assert np.array_equal(drawn.y, np.sort(values))


def test_predictions_of_many_sizes_are_on_logarithmic_axes_with_the_diagonal():
    fitted = np.geomspace(1e-3, 1e3, 7).tolist()
    observed, residuals, _ = diagnostic_pictures("y", [series("a", fitted, fitted)])
    panel = observed.panels[0]
    assert panel.x.logarithmic and panel.y.logarithmic and residuals.panels[0].x.logarithmic
    (line,) = [layer for layer in panel.layers if isinstance(layer, Line)]
    assert np.array_equal(line.x, line.y)


def test_where_nothing_could_be_simulated_there_is_no_picture():
    assert diagnostic_pictures("y", [series("a", [np.nan, np.nan], [1.0, 2.0])]) == []


def test_the_page_and_fit_plot_show_them(tmp_path):
    fit = predators()
    assert "Residuals and predictions" in page(fit)
    assert len(fit.plot("residuals").subfigs) == 3
    fit.plot("residuals", tmp_path / "residuals.png")
    fit.plot(tmp_path / "fit.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit.svg", "residuals.png"]
    with pytest.raises(ModelError, match="there is no plot 'residual'; did you mean 'residuals'"):
        fit.plot("residual")
