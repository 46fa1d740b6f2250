"""Figures: pictures drawn by matplotlib, as an object to work on and for files of every format.

Names from models and data are drawn as they are, never read as mathematics, and the user's own settings change nothing.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from odejet.extras import needed
from odejet.report.diagnostics import by_output, diagnostic_pictures
from odejet.report.panels import MANY, Area, Beyond, Dots, Layer, Line, Panel, Picture, Rings, Rule, Stripe
from odejet.report.pictures import (
    band_picture,
    curves,
    found_pictures,
    profile_picture,
    series_picture,
    simulated_picture,
)
from odejet.result import Fit, Prediction
from odejet.simulate import Simulation
from odejet.uncertainty.profile import Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"ink": "#222222", "blue": "#1f4e79", "rust": "#b4531f", "grey": "#8d8d8d", "paper": "#ffffff"}

STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "text.parse_math": False,
    "axes.linewidth": 0.7,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.6,
    "ytick.major.size": 0.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "odejet",
}

MOST_PANELS = 40
"""Pictures that one figure shows."""

PIXELS = 72.0
"""Pixels of a panel in an inch of a figure."""

WIDTH = 4.4
"""Inches of a picture that stands beside others."""

P = ParamSpec("P")
R = TypeVar("R")


def _styled(draw: Callable[P, R]) -> Callable[P, R]:
    """A function that draws in our style, whatever the user's is."""

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        mpl = needed("matplotlib")
        settings: Any = {**mpl.rcParamsDefault, "backend": mpl.rcParams["backend"], **STYLE}
        with mpl.rc_context(settings):
            return draw(*args, **kwargs)

    return styled


def fit_figure(fit: Fit) -> Figure:
    """Data, fit and residuals for every output of every experiment, and inputs that were found."""
    pairs, several = fit.compare(), len(fit.data.experiments) > 1
    shown = pairs[:MOST_PANELS]
    drawn = curves(fit, shown)
    pictures = [series_picture(pair, drawn[pair.experiment], several) for pair in shown]
    figure = figure_of([*pictures, *found_pictures(fit, drawn)])
    if len(pairs) > len(shown):
        figure.supxlabel(f"and {len(pairs) - len(shown)} more series")
    return figure


def diagnostic_figure(fit: Fit) -> Figure:
    """Observed and residuals against predicted, and quantiles of the residuals, a row for every output."""
    return figure_of(
        [one for output, own in by_output(fit.compare()).items() for one in diagnostic_pictures(output, own)], 3
    )


def prediction_figure(prediction: Prediction, states: bool = True) -> Figure:
    """Every band over time, with what was measured."""
    pictures = [band_picture(band, prediction.data.get(band.name)) for band in prediction.outputs.values()]
    return figure_of(pictures + [band_picture(band) for band in prediction.states.values() if states])


def profile_figure(profile: Profile) -> Figure:
    """The deviance along one quantity."""
    return figure_of([profile_picture(profile)])


def simulation_figure(simulation: Simulation, measured: Mapping[str, np.ndarray] | None = None) -> Figure:
    """Every output over time, with values that noise has changed if there are any; states without outputs."""
    shown = simulation.outputs or simulation.states
    return figure_of([simulated_picture(simulation, *one, (measured or {}).get(one[0])) for one in shown.items()])


@_styled
def figure_of(pictures: Sequence[Picture], columns: int | None = None) -> Figure:
    """Draw pictures side by side, in so many columns or in about a square."""
    from matplotlib.figure import Figure

    shown = pictures[:MOST_PANELS]
    columns = columns or max(min(3, math.ceil(math.sqrt(len(shown)))), 1)
    rows = math.ceil(len(shown) / columns)
    height = max((sum(panel.height for panel in one.panels) + 70 for one in shown), default=100.0) / PIXELS
    figure = Figure(figsize=(WIDTH * columns, height * max(rows, 1)), layout="constrained")
    for cell, picture in zip(figure.subfigures(max(rows, 1), columns, squeeze=False).flat, shown, strict=False):
        _draw(cell, picture)
    # Notebooks know how to show a figure only once pyplot has been imported there.
    figure._repr_png_ = functools.partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def _png(figure: Figure) -> bytes:
    """The figure as a notebook shows it."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _draw(figure: Any, picture: Picture) -> None:
    heights = [panel.height for panel in picture.panels]
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for own, panel in zip(axes, picture.panels, strict=True):
        _panel(own, panel)
    axes[0].set_title(picture.title)
    axes[-1].set_xlabel(picture.label)
    figure.align_ylabels(axes)


def _panel(axes: Axes, panel: Panel) -> None:
    for scale, axis in ((axes.set_xscale, panel.x), (axes.set_yscale, panel.y)):
        if axis.logarithmic:
            scale("log")
    axes.minorticks_off()
    axes.set_xlim(panel.x.low, panel.x.high)
    axes.set_ylim(panel.y.low, panel.y.high)
    axes.set_xticks(panel.x.places, panel.x.labels)
    axes.set_yticks(panel.y.places, panel.y.labels)
    axes.set_ylabel(panel.label, fontsize=8)
    for order, layer in enumerate(panel.layers):
        _layer(axes, layer, order + 2)


def _layer(axes: Axes, layer: Layer, order: int) -> None:
    dashes: Any = (0, (4, 2))
    match layer:
        case Line():
            style: Any = dashes if layer.dashed else "-"
            if layer.rimmed:
                axes.plot(layer.x, layer.y, color=COLOURS["paper"], linewidth=3.5, zorder=order)
            axes.plot(layer.x, layer.y, color=COLOURS[layer.colour], linewidth=1.5, linestyle=style, zorder=order)
        case Area():
            colour = COLOURS[layer.colour]
            axes.fill_between(
                layer.x, layer.low, layer.high, color=colour, alpha=layer.opacity, linewidth=0, zorder=order
            )
        case Dots():
            many = len(layer.x) > MANY
            size = 1.5 if many else layer.size
            own: Any = {"linestyle": "none", "marker": "o", "color": COLOURS[layer.colour], "zorder": order}
            own |= {"alpha": 0.08, "markeredgewidth": 0} if many else {"markeredgecolor": COLOURS["paper"]}
            axes.plot(layer.x, layer.y, markersize=size, rasterized=many, **({"markeredgewidth": 0.5} | own))
        case Rings():
            ring: Any = {"linestyle": "none", "marker": "o", "markersize": 9, "markerfacecolor": "none"}
            axes.plot(layer.x, layer.y, color=COLOURS["rust"], markeredgewidth=1.4, zorder=order, **ring)
        case Beyond():
            for x, above, label in zip(layer.x.tolist(), layer.above.tolist(), layer.labels, strict=True):
                end, marker, side = (1.0, "^", -2) if above else (0.0, "v", 2)
                place = axes.get_xaxis_transform()
                axes.plot(
                    [x], [end], marker=marker, color=COLOURS["rust"], transform=place, clip_on=False, zorder=order
                )
                axes.annotate(
                    label,
                    (x, end),
                    (7, side),
                    xycoords=place,
                    textcoords="offset points",
                    va="center",
                    fontsize=8,
                    color=COLOURS["rust"],
                )
        case Rule():
            draw = axes.axvline if layer.vertical else axes.axhline
            draw(layer.at, color=COLOURS[layer.colour], linewidth=0.9, linestyle=dashes if layer.dashed else "-")
        case Stripe():
            span = axes.axvspan if layer.vertical else axes.axhspan
            span(layer.low, layer.high, color=COLOURS[layer.colour], alpha=layer.opacity, linewidth=0)
