"""Plots show every series, and the derivatives they draw are those of the model."""

import math
from dataclasses import replace

import numpy as np
import pytest

from odejet import Data, Model
from odejet.decide.outliers import Measurement
from odejet.report import plots
from odejet.report.html import page
from odejet.report.svg import inline
from odejet.result import Candidates
from odejet.smooth import fit_output
from odejet.uncertainty import Matrix, Uncertainty
from tests.fits import driven, predators, refined_fit


def test_suspicious_measurements_have_rings_around_them():
    fit = predators()
    series = fit.data.experiments[0].outputs["y1"]
    time, value = float(series.times[7]), float(series.values[7])
    marked = replace(fit.certificate, suspicious=(Measurement("y1", "experiment1", time, value, 31.0),))
    outlying = replace(fit, certificate=marked)
    for panel, y in zip(outlying.plot().get_axes(), (value, outlying.compare()[0].standardised[7]), strict=True):
        rings = [line for line in panel.get_lines() if line.get_markerfacecolor() == "none"]
        assert [(list(ring.get_xdata()), list(ring.get_ydata())) for ring in rings] == [([time], [y])]
    assert all(line.get_markerfacecolor() != "none" for panel in fit.plot().get_axes() for line in panel.get_lines())
    shown = page(outlying)
    assert "standard deviations away" in shown and f"{value:.6g}" in shown
    assert "standard deviations away" not in page(fit)


def test_every_series_has_data_fit_and_residuals():
    fit = driven()
    figure = fit.plot()
    panels = figure.get_axes()
    assert len(panels) == 2 * 4
    for pair, above, below in zip(fit.compare(), panels[::2], panels[1::2], strict=True):
        dots, curve = above.get_lines()
        np.testing.assert_array_equal(dots.get_ydata(), pair.values)
        inside = np.interp(pair.times, curve.get_xdata(), curve.get_ydata())
        np.testing.assert_allclose(inside, pair.fitted, rtol=1e-3)
        np.testing.assert_array_equal(below.get_lines()[-1].get_ydata(), pair.standardised)


def test_derivatives_of_the_model():
    """x' = cos(t) - k x with k near zero, and an input that is sampled in the second term."""
    times = np.linspace(0, 6, 40)
    model = Model({"x": "u - k*x + 0*v"}, {"y": "x"}, {"u": "cos(t)", "v": None})
    data = Data(times, {"y": 1 + np.sin(times)}, inputs={"v": np.zeros(40)})
    fit = refined_fit(model, data, [1.0, 0.01])
    assert abs(fit.parameters["k"]) < 1e-9
    places, found = plots.model_derivatives(fit, "experiment1", "y", times, 3)
    np.testing.assert_array_equal(places, times)
    expected = [1 + np.sin(times), np.cos(times), -np.sin(times), -np.cos(times)]
    np.testing.assert_allclose(found, np.transpose(expected), atol=1e-7)


def test_derivatives_of_sampled_inputs():
    fit = driven()
    times = np.array([0.5, 1.0, 3.0])
    _, found = plots.model_derivatives(fit, "second", "y2", times, 1)
    states = fit.simulate(times, "second").states
    u, v = 2 * np.cos(times), fit.experiment("second").inputs["v"](times)
    np.testing.assert_allclose(found[:, 1], -fit.parameters["k"] * states["x"] + u + v - 0.5 * states["z"], rtol=1e-9)


def test_derivative_panels():
    fit = predators()
    series = fit.experiment().outputs["y1"]
    figure = plots.derivative_figure(fit, "experiment1", "y1", fit_output(series.times, series.values))
    assert [panel.get_ylabel() for panel in figure.get_axes()] == ["value", "first derivative", "second derivative"]


def test_cloud_shows_every_candidate():
    fit = predators()
    panel = plots.cloud_figure(fit).get_axes()[0]
    dots = sum(len(line.get_xdata()) for line in panel.get_lines() if line.get_marker() == "o")
    assert dots == fit.candidates.values.size
    assert [label.get_text() for label in panel.get_yticklabels()] == list(fit.labels)


def test_cloud_of_anything():
    """Candidates that are far off, not finite or equal, and answers of zero."""
    fit = predators()
    rows = np.array([[math.nan] * 5, [1e300] * 5, [-1e-300] * 5, fit.estimates.tolist()])
    for costs in (np.zeros(4), np.array([math.inf, 1.0, 2.0, math.inf])):
        odd = replace(
            fit, estimates=np.array([0.0, *fit.estimates[1:]]), candidates=Candidates(rows, costs, ("a",) * 4)
        )
        assert "<svg" in inline(plots.cloud_figure(odd), "x", "cloud")


def test_correlations_that_do_not_exist_stay_empty():
    fit = predators()
    rows = np.full((5, 5), math.nan)
    np.fill_diagonal(rows, [1.0, 1.0, math.inf, math.inf, math.inf])
    rows[0, 1] = rows[1, 0] = 0.25
    covariance = Matrix(fit.unknowns.entries, rows)
    flat = replace(fit, uncertainty=Uncertainty(covariance, (), dict.fromkeys(fit.labels, math.inf)))
    figure = plots.correlation_figure(flat)
    assert [text.get_text() for text in figure.get_axes()[0].texts] == [".25", ".25"]


def test_names_are_not_mathematics_whatever_the_user_s_style():
    import matplotlib as mpl

    fit = predators(second="$\\frac{1}{$ 100 %")
    with mpl.rc_context({"text.parse_math": True, "axes.facecolor": "red"}):
        drawn = inline(fit.plot(), "x", "plot")
    assert "$\\frac{1}{$ 100 %" in drawn
    assert "#ff0000" not in drawn


@pytest.mark.parametrize("points", [5, 4000])
def test_few_and_many_points(points):
    fit = predators(points=points) if points > 5 else _few()
    pair = fit.compare()[0]
    drawn = inline(plots.series_figure(pair, plots.curves(fit, [pair])[pair.experiment], several=False), "x", "plot")
    assert ("data:image/png;base64" in drawn) == (points > plots.MANY)


def _few():
    times = np.array([0.0, 1, 2, 3, 4])
    return refined_fit(Model({"x": "-k*x"}, {"y": "x"}), Data(times, {"y": np.exp(-times)}), [1.0, 0.9])
