"""Pictures show every series, let no outlier hide the rest, and the derivatives they draw are those of the model."""

import math
from dataclasses import replace

import numpy as np
import pytest

from odejet import Data, Model, ModelError
from odejet.decide.outliers import Measurement
from odejet.report.figures import figure_of, fit_figure
from odejet.report.html import page
from odejet.report.panels import MANY, Area, Beyond, Dots, Line, Rings, size_of
from odejet.report.pictures import (
    cloud_picture,
    curves,
    derivative_picture,
    fitted_panel,
    model_derivatives,
    residual_panel,
    series_picture,
)
from odejet.report.svg import drawn
from odejet.report.ticks import linear
from odejet.result import Candidates
from odejet.smooth import fit_output
from tests.fits import driven, predators, refined_fit


def of(kind, panel):
    return [layer for layer in panel.layers if isinstance(layer, kind)]


def first(fit):
    pair = fit.compare()[0]
    return pair, curves(fit, [pair])[pair.experiment]


def marked(fit, place, value=None):
    """The fit with a measurement that the certificate calls suspicious, and that has another value if one is given."""
    series = fit.data.experiments[0].outputs["y1"]
    if value is not None:
        series.values.flags.writeable = True
        series.values[place] = value
    one = Measurement("y1", "experiment1", float(series.times[place]), float(series.values[place]), 31.0)
    return replace(fit, certificate=replace(fit.certificate, suspicious=(one,)))


def test_suspicious_measurements_have_rings_around_them():
    fit = predators()
    pair, curve = first(marked(fit, 7))
    for panel, values in ((fitted_panel(pair, curve), pair.values), (residual_panel(pair, curve), pair.standardised)):
        (rings,) = of(Rings, panel)
        assert (rings.x.tolist(), rings.y.tolist()) == ([pair.times[7]], [values[7]])
    assert not of(Rings, fitted_panel(*first(fit)))
    shown = page(marked(fit, 7))
    assert "standard deviations away" in shown and f"{pair.values[7]:.6g}" in shown
    assert "standard deviations away" not in page(fit)


def test_one_outlier_does_not_flatten_the_rest():
    """The axes follow the others; the outlier stands at the edge with its distance."""
    pair, curve = first(marked(predators(), 7, value=60.0))
    others = np.delete(pair.standardised, 7)
    below = residual_panel(pair, curve)
    assert below.y.high < 2.5 * np.abs(others).max() < abs(pair.standardised[7])
    (mark,) = of(Beyond, below)
    assert mark.x.tolist() == [pair.times[7]] and mark.labels == (f"{pair.standardised[7]:.3g}".replace("-", "−"),)
    above = fitted_panel(pair, curve)
    assert above.y.high < 6 and of(Beyond, above)[0].labels == ("60",)
    assert "60" in drawn(series_picture(pair, curve, several=False))


def test_every_series_has_data_fit_bands_and_residuals():
    fit = driven()
    for pair in fit.compare():
        curve = curves(fit, [pair])[pair.experiment]
        above, below = series_picture(pair, curve, several=True).panels
        np.testing.assert_array_equal(of(Dots, above)[0].y, pair.values)
        np.testing.assert_array_equal(of(Dots, below)[0].y, pair.standardised)
        line, (new, band) = of(Line, above)[0], of(Area, above)
        np.testing.assert_allclose(np.interp(pair.times, line.x, line.y), pair.fitted, rtol=1e-3)
        assert np.all(new.low < band.low) and np.all(band.low < line.y)
        assert np.all(line.y < band.high) and np.all(band.high < new.high)


def test_small_multiples_have_one_scale():
    fit = predators(second="other")
    pairs = fit.compare()
    found = curves(fit, pairs)
    alike = [fitted_panel(pair, found[pair.experiment]) for pair in pairs]
    pictures = [series_picture(pair, found[pair.experiment], True, alike) for pair in pairs]
    assert alike[0].y.high != alike[1].y.high
    assert pictures[0].panels[0].y == pictures[1].panels[0].y
    assert [picture.title for picture in pictures] == ["experiment1", "other"]


def test_derivatives_of_the_model():
    """x' = cos(t) - k x with k near zero, and an input that is sampled in the second term."""
    times = np.linspace(0, 6, 40)
    model = Model({"x": "u - k*x + 0*v"}, {"y": "x"}, {"u": "cos(t)", "v": None})
    data = Data(times, {"y": 1 + np.sin(times)}, inputs={"v": np.zeros(40)})
    fit = refined_fit(model, data, [1.0, 0.01])
    assert abs(fit.parameters["k"]) < 1e-9
    places, found = model_derivatives(fit, "experiment1", "y", times, 3)
    np.testing.assert_array_equal(places, times)
    expected = [1 + np.sin(times), np.cos(times), -np.sin(times), -np.cos(times)]
    np.testing.assert_allclose(found, np.transpose(expected), atol=1e-7)


def test_derivatives_of_sampled_inputs():
    fit = driven()
    times = np.array([0.5, 1.0, 3.0])
    _, found = model_derivatives(fit, "second", "y2", times, 1)
    states = fit.simulate(times, "second").states
    u, v = 2 * np.cos(times), fit.experiment("second").inputs["v"](times)
    np.testing.assert_allclose(found[:, 1], -fit.parameters["k"] * states["x"] + u + v - 0.5 * states["z"], rtol=1e-9)


def test_derivative_panels():
    fit = predators()
    series = fit.experiment().outputs["y1"]
    picture = derivative_picture(fit, "experiment1", "y1", fit_output(series.times, series.values))
    assert [panel.label for panel in picture.panels] == ["value", "first derivative", "second derivative"]


def test_cloud_shows_every_candidate():
    fit = predators()
    (panel,) = cloud_picture(fit).panels
    assert sum(len(layer.x) for layer in of(Dots, panel)) == fit.candidates.values.size
    assert panel.y.labels == fit.labels


def test_cloud_of_anything():
    """Candidates that are far off, not finite or equal, and answers of zero."""
    fit = predators()
    rows = np.array([[math.nan] * 5, [1e300] * 5, [-1e-300] * 5, fit.estimates.tolist()])
    for costs in (np.zeros(4), np.array([math.inf, 1.0, 2.0, math.inf])):
        odd = replace(
            fit, estimates=np.array([0.0, *fit.estimates[1:]]), candidates=Candidates(rows, costs, ("a",) * 4)
        )
        assert "<svg" in drawn(cloud_picture(odd))


@pytest.mark.parametrize("points", [5, 80, 4000])
def test_few_and_many_points(points):
    """Each of a few is a dot of its own; of very many one sees where they are, in a page of modest size."""
    fit = predators(points=points) if points > 5 else _few()
    shown = drawn(series_picture(*first(fit), several=False))
    assert (shown.count("h0") >= 2 * points) == (points <= MANY)
    assert len(shown) < 120_000
    assert size_of(5) > size_of(80) > size_of(4000) > 2


def _few():
    times = np.array([0.0, 1, 2, 3, 4])
    return refined_fit(Model({"x": "-k*x"}, {"y": "x"}), Data(times, {"y": np.exp(-times)}), [1.0, 0.9])


# --- by matplotlib ---


def test_figures_show_the_same():
    fit = driven()
    panels = fit_figure(fit).get_axes()
    assert len(panels) == 2 * 4
    for pair, above in zip(fit.compare(), panels[::2], strict=True):
        assert any(np.array_equal(line.get_ydata(), pair.values) for line in above.get_lines())


def test_names_are_not_mathematics_whatever_the_user_s_style():
    import matplotlib as mpl

    fit = predators(second="$\\frac{1}{$ 100 %")
    with mpl.rc_context({"text.parse_math": True, "axes.facecolor": "red"}):
        figure = fit.plot()
        figure.canvas.draw()
    assert any("$\\frac{1}{$ 100 %" in panel.get_title(loc="left") for panel in figure.get_axes())
    assert all(panel.get_facecolor()[:2] != (1.0, 0.0) for panel in figure.get_axes())


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_plots_go_into_files(tmp_path, suffix, start):
    _few().plot(tmp_path / f"fit.{suffix}")
    assert (tmp_path / f"fit.{suffix}").read_bytes().startswith(start)


def test_a_name_that_no_figure_has(tmp_path):
    with pytest.raises(ModelError, match=r"fit\.gif: the name of a figure must end in one of \.png, \.pdf, \.svg"):
        _few().plot(tmp_path / "fit.gif")
    assert list(tmp_path.iterdir()) == []


def test_a_figure_of_nothing():
    assert figure_of([]).get_axes() == []


def test_small_multiples_have_one_axis_of_time_unless_they_differ_much():
    pair, curve = first(predators())
    own = fitted_panel(pair, curve)
    longer, far = (replace(own, x=linear(0, end)) for end in (1.5 * pair.times[-1], 50 * pair.times[-1]))
    above, below = series_picture(pair, curve, True, alike=[own, longer]).panels
    assert above.x == below.x and above.x.high == longer.x.high
    assert series_picture(pair, curve, True, alike=[own, far]).panels[0].x == own.x
