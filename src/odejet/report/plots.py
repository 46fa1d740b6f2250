"""Plots: a fit against its data, the derivatives it rests on, its candidates, correlations and timings.

Every picture is a matplotlib figure.  Colours are few and named, so that a page can replace them by those of its own
light or dark dress; names from models and data are drawn as they are, never read as mathematics.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from odejet.attach import attach
from odejet.data import Series
from odejet.errors import ModelError
from odejet.jets.inputs import input_jets
from odejet.jets.numeric import jets
from odejet.model.tape import build
from odejet.report.text import duration
from odejet.result import Band, Comparison, Fit, Prediction
from odejet.simulate import Simulation
from odejet.smooth import Linear, Smoothed
from odejet.uncertainty.bands import GLANCE_EVALUATIONS, QUICK
from odejet.uncertainty.profile import Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID, BLUE, GREY, RUST, PAPER = "#222222", "#e5e5e5", "#1f4e79", "#8d8d8d", "#b4531f", "#fefefe"
"""Words and axes, grid lines, the fit, measurements, what is compared with the fit, and empty ground."""

STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.7,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-4, 5),
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "odejet",
}

CURVE = 600
"""Places at which a fitted curve is drawn."""

MANY = 3000
"""Measurements beyond which dots are pixels, not shapes."""

MOST_PANELS = 40
"""Series that one figure shows."""

NARROW, WIDE = 5.0, 11.0
"""Inches of a figure that stands beside others, and of one that stands alone."""

_DERIVATIVE_PLACES = 200
_NAMES = ("value", "first derivative", "second derivative", "third derivative")
_MARGIN = 0.78  # inches for ticks and labels on the left
_OPEN = 1.5  # times the range of data and curve, to either side: as far as a band is drawn
_FARTHEST = 100.0  # candidates farther from the answer than so many times its size stand at the edge
_LINEAR = 2e-2  # deviations below this are drawn on a linear scale

P = ParamSpec("P")
R = TypeVar("R")


def _styled(draw: Callable[P, R]) -> Callable[P, R]:
    """A function that draws in our style, whatever the user's is."""

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        import matplotlib as mpl

        settings: Any = {**mpl.rcParamsDefault, "backend": mpl.rcParams["backend"], **STYLE}
        with mpl.rc_context(settings):
            return draw(*args, **kwargs)

    return styled


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _framed(width: float, height: float) -> Figure:
    """A figure whose panels have a margin for ticks and labels: of many figures, each is drawn once, not measured."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.subplots_adjust(_MARGIN / width, 0.48 / height, 1 - 0.1 / width, 1 - 0.42 / height, hspace=0.16)
    return figure


def _grid(width: float, height: float, rows: int, columns: int) -> Figure:
    """The same for a grid of panels with titles, whose heights have one scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    inner = width - _MARGIN - 0.1, height - 0.4 - 0.3
    gaps = 0.25 * columns / inner[0], 0.6 * rows / inner[1]
    figure.subplots_adjust(_MARGIN / width, 0.4 / height, 1 - 0.1 / width, 1 - 0.3 / height, *gaps)
    return figure


# --- fit and data -----------------------------------------------------------------------------------------------------


@attach(Fit.plot)
@_styled
def fit_figure(fit: Fit) -> Figure:
    """Data, fit and residuals for every output of every experiment."""
    pairs = fit.compare()
    shown = pairs[:MOST_PANELS]
    columns = min(3, math.ceil(math.sqrt(len(shown))))
    rows = math.ceil(len(shown) / columns)
    figure = _figure(4.6 * columns, 3.4 * rows)
    drawn = curves(fit, shown)
    for cell, pair in zip(figure.subfigures(rows, columns, squeeze=False).flat, shown, strict=False):
        _draw_pair(cell, pair, drawn[pair.experiment], several=len(fit.data.experiments) > 1)
    if len(pairs) > len(shown):
        figure.supxlabel(f"and {len(pairs) - len(shown)} more series")
    return figure


@_styled
def series_figure(pair: Comparison, curve: Simulation | Prediction, several: bool, width: float = NARROW) -> Figure:
    """Data, fit and residuals of one output in one experiment."""
    figure = _framed(width, 3.7)
    _draw_pair(figure, pair, curve, several)
    return figure


def curves(fit: Fit, pairs: Sequence[Comparison], states: bool = False) -> dict[str, Simulation | Prediction]:
    """The experiments on many times, with bands if there is a fit: by profiles as far as a glance goes."""
    names = list(dict.fromkeys(pair.experiment for pair in pairs))
    evaluations, seconds = GLANCE_EVALUATIONS // max(len(names), 1), QUICK / max(len(names), 1)
    found: dict[str, Simulation | Prediction] = {}
    for name in names:
        times = np.linspace(fit.experiment(name).start, fit.experiment(name).end, CURVE)
        try:
            found[name] = fit.predict(times, name, states=states, evaluations=evaluations, seconds=seconds)
        except ModelError:  # without a fit there is nothing to be uncertain about
            found[name] = fit.simulate(times, name)
    return found


def _draw_pair(figure: Any, pair: Comparison, curve: Simulation | Prediction, several: bool) -> None:
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2.6, "markeredgewidth": 0, "color": GREY}
    dots["rasterized"] = len(pair.times) > MANY
    above.plot(pair.times, pair.values, **dots, label="data")
    if isinstance(curve, Prediction):
        _draw_band(above, curve[pair.output], curve.level, pair.values)
    else:
        above.plot(curve.times, curve[pair.output], color=BLUE, linewidth=1.5, label="fit")
    if pair.suspicious.any():
        rings: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 8, "markerfacecolor": "none"}
        rings |= {"color": RUST, "markeredgewidth": 1.3}
        above.plot(pair.times[pair.suspicious], pair.values[pair.suspicious], **rings, label="suspicious")
        below.plot(pair.times[pair.suspicious], pair.standardised[pair.suspicious], **rings)
    above.set_title(title(pair.output, pair.experiment, several))
    above.legend(loc="best", fontsize=8, handlelength=1.4)
    below.axhspan(-2, 2, color=BLUE, alpha=0.1, linewidth=0)
    below.axhline(0, color=BLUE, linewidth=0.8)
    below.plot(pair.times, pair.standardised, **dots)
    limit = np.nanmax(np.abs(pair.standardised), initial=2.5)
    below.set_ylim(-1.1 * limit, 1.1 * limit)
    below.set_ylabel("residual / sd", fontsize=8)
    below.set_xlabel("time")


def _draw_band(panel: Axes, band: Band, level: float, measured: np.ndarray, name: str = "fit") -> None:
    """A curve with its band, and with that of new measurements around it; ends that are open run into the frame."""
    order = np.argsort(band.times, kind="stable")
    times, values = band.times[order], band.values[order]
    seen = np.concatenate([measured, values])
    centre, size = 0.5 * (seen.min() + seen.max()), float(np.ptp(seen)) or abs(float(seen[0])) or 1.0
    ends = [
        np.clip(end[order], centre - _OPEN * size, centre + _OPEN * size)
        for end in (band.measured_low, band.measured_high, band.low, band.high)
    ]
    if np.isfinite(ends[0]).any():
        panel.fill_between(times, ends[0], ends[1], color=BLUE, alpha=0.1, linewidth=0, label="measurements")
    panel.fill_between(times, ends[2], ends[3], color=BLUE, alpha=0.3, linewidth=0, label=f"{100 * level:g} % band")
    panel.plot(times, values, color=BLUE, linewidth=1.5, label=name)
    if np.max(np.abs(np.nan_to_num(ends) - centre), initial=0.0) > 0.99 * _OPEN * size:
        panel.set_ylim(centre - 0.9 * _OPEN * size, centre + 0.9 * _OPEN * size)


@attach(Prediction.plot)
def prediction_figure(prediction: Prediction, states: bool = True) -> Figure:
    """Every band over time, with what was measured."""
    shown = [(band, prediction.data.get(band.name)) for band in prediction.outputs.values()]
    return band_figure(shown + [(band, None) for band in prediction.states.values() if states], prediction.level)


@_styled
def band_figure(bands: Sequence[tuple[Band, Series | None]], level: float) -> Figure:
    """Bands over time, each with its measurements if there are any."""
    shown = bands[:MOST_PANELS]
    columns = max(min(3, math.ceil(math.sqrt(len(shown)))), 1)
    rows = math.ceil(len(shown) / columns)
    figure = _figure(3.7 * columns, 2.5 * rows)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel, (band, series) in zip(panels, shown, strict=False):
        if series is not None:
            panel.plot(series.times, series.values, "o", markersize=2.6, markeredgewidth=0, color=GREY, label="data")
        _draw_band(panel, band, level, np.zeros(0) if series is None else series.values, "prediction")
        panel.set_title(_short(band.name))
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    panels[0].legend(loc="best", fontsize=8, handlelength=1.4)
    figure.supxlabel("time", fontsize="medium")
    return figure


def title(output: str, experiment: str, several: bool) -> str:
    """What a panel shows, cut to its width."""
    text = f"{output} in {experiment}" if several else output
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- derivatives ------------------------------------------------------------------------------------------------------


@_styled
def derivative_figure(
    fit: Fit, experiment: str, output: str, smoothed: Smoothed, orders: int = 2, width: float = NARROW
) -> Figure:
    """An output and its derivatives, as smoothing found them in the data and as the fitted model has them.

    The band is two standard deviations of the effect of noise; it does not contain the bias of smoothing.
    """
    data = smoothed.series
    times = np.linspace(data.times[0], data.times[-1], _DERIVATIVE_PLACES)
    smoother = smoothed.first()
    means, sds = smoother.derivatives(times, orders), _band(smoothed, times, orders)
    places, fitted = model_derivatives(fit, experiment, output, times, orders)
    figure = _framed(width, 1.5 * (orders + 1) + 0.6)
    panels = figure.subplots(orders + 1, 1, sharex=True, squeeze=False)[:, 0]
    dots: dict[str, Any] = {"rasterized": len(data.times) > MANY, "markeredgewidth": 0}
    panels[0].plot(data.times, data.values, "o", markersize=2.2, color=GREY, **dots)
    for order, panel in enumerate(panels):
        if sds is not None:
            low, high = means[:, order] - 2 * sds[:, order], means[:, order] + 2 * sds[:, order]
            panel.fill_between(times, low, high, color=RUST, alpha=0.2, linewidth=0)
        panel.plot(times, means[:, order], color=RUST, linewidth=1.2, label=f"smoothed ({smoother.name})")
        panel.plot(places, fitted[:, order], color=BLUE, linewidth=1.2, linestyle=(0, (4, 2)), label="fitted model")
        panel.set_ylabel(_NAMES[order] if order < len(_NAMES) else f"derivative {order}", fontsize=8)
        # Labels stand in one line, however wide the numbers are.
        panel.yaxis.set_label_coords(-(_MARGIN - 0.12) / (width - _MARGIN - 0.1), 0.5)
        _focus(panel, np.concatenate([means[10:-10, order], fitted[:, order]]))
    panels[0].set_title(title(output, experiment, len(fit.data.experiments) > 1))
    panels[0].legend(loc="best", fontsize=8, handlelength=1.8)
    panels[-1].set_xlabel("time")
    return figure


def _band(smoothed: Smoothed, times: np.ndarray, orders: int) -> np.ndarray | None:
    smoother = smoothed.first()
    if not isinstance(smoother, Linear):
        return None
    return np.array([smoothed.noise * smoother.jet(t, orders).gains for t in times])


def _focus(panel: Axes, values: np.ndarray) -> None:
    """Derivatives of smooth fits run away at the ends; the axis follows the rest."""
    finite = values[np.isfinite(values)]
    if len(finite):
        low, high = float(finite.min()), float(finite.max())
        room = 0.15 * (high - low) or 0.1 * max(abs(high), 1.0)
        panel.set_ylim(low - room, high + room)


def model_derivatives(
    fit: Fit, experiment: str, output: str, times: np.ndarray, orders: int
) -> tuple[np.ndarray, np.ndarray]:
    """Times that the fit reaches, and the derivatives of an output there, exact by Taylor series."""
    number = fit.problem.number(experiment)
    own, model = fit.problem.experiments[number], fit.problem.conditions[number].model
    simulation = fit.simulate(times, experiment)
    if not len(simulation.times):
        return simulation.times, np.zeros((0, orders + 1))
    series = jets(
        build(model, free_inputs=True),
        np.column_stack(list(simulation.states.values())),
        fit.problem.layout.gather(number, fit.estimates, model.parameters),
        simulation.times,
        order=orders,
        inputs=input_jets(model, own.inputs, simulation.times, orders),
    )
    return simulation.times, series.output_derivatives[:, list(model.outputs).index(output), :, 0]


# --- profiles ---------------------------------------------------------------------------------------------------------


@attach(Profile.plot)
def one_profile_figure(profile: Profile) -> Figure:
    """The deviance along one quantity."""
    return profile_figure([profile])


@_styled
def profile_figure(profiles: Sequence[Profile]) -> Figure:
    """The deviance along each quantity, its quantile and the interval it leaves; open ends run into the frame."""
    shown = profiles[:MOST_PANELS]
    columns = min(4, math.ceil(math.sqrt(len(shown))))
    rows = math.ceil(len(shown) / columns)
    figure = _grid(2.75 * columns if columns > 1 else NARROW, 2.1 * rows if columns > 1 else 3.2, rows, columns)
    panels = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for panel, one in zip(panels, shown, strict=False):
        _draw_profile(panel, one)
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    for panel in panels[: len(shown) : columns]:
        panel.set_ylabel("deviance", fontsize=8)
    return figure


def _draw_profile(panel: Axes, one: Profile) -> None:
    from scipy.interpolate import PchipInterpolator

    phi, signed = one.scale.to(one.values), np.sqrt(one.deviances) * np.sign(one.values - one.estimate)
    fine = np.linspace(phi[0], phi[-1], 200)
    # The signed root is nearly straight, so that few points draw a smooth curve.
    curve = PchipInterpolator(phi, signed)(fine) ** 2 if len(phi) > 2 and np.all(np.diff(phi) > 0) else None
    low, high = one.interval()
    inside = np.clip([low, high], one.values[0], one.values[-1])
    panel.axvspan(inside[0], inside[1], color=BLUE, alpha=0.1, linewidth=0)
    panel.axhline(one.quantile, color=RUST, linewidth=1.0, linestyle=(0, (4, 2)))
    if curve is not None:
        panel.plot(one.scale.back(fine), curve, color=BLUE, linewidth=1.4)
    panel.plot(one.values, one.deviances, "o", color=BLUE, markersize=3, markeredgewidth=0)
    panel.axvline(one.estimate, color=GREY, linewidth=0.8)
    if one.scale.sign > 0 and one.values[-1] > 20 * one.values[0]:
        panel.set_xscale("log")
    else:
        panel.locator_params(axis="x", nbins=4)
    panel.set_ylim(-0.05 * one.quantile, 1.6 * one.quantile)
    panel.set_title(
        _short(one.label, 30)
        + {(True, True): " (open)", (True, False): " (open below)"}.get(
            one.open, " (open above)" if one.open[1] else ""
        )
    )


# --- candidates, correlations, timings --------------------------------------------------------------------------------


@_styled
def cloud_figure(fit: Fit) -> Figure:
    """Every candidate's distance from the answer, one line per unknown; good ones are blue."""
    assert fit.candidates is not None
    labels, cloud = fit.labels, fit.candidates
    scale = np.where(fit.estimates != 0, np.abs(fit.estimates), 1.0)
    with np.errstate(over="ignore"):
        deviations = (cloud.values - fit.estimates) / scale
    reach = min(max(float(np.nanmax(np.abs(deviations), initial=0.1)), 0.15), _FARTHEST)
    deviations = np.clip(deviations, -reach, reach)
    order = np.argsort(-cloud.costs, kind="stable")
    good = cloud.costs <= np.median(cloud.costs) if len(cloud.costs) else np.zeros(0, dtype=bool)
    figure = _figure(WIDE, 1.0 + 0.28 * len(labels))
    panel = figure.subplots()
    # Dots beside each other rather than on top, always in the same way.
    jitter = 0.28 * (2 * (np.arange(len(order)) * 0.618034 % 1) - 1)
    dots: dict[str, Any] = {"markersize": 3, "markeredgewidth": 0, "alpha": 0.65}
    dots["rasterized"] = cloud.values.size > MANY
    for chosen, colour, name in ((~good, GREY, "worse half"), (good, BLUE, "better half by misfit")):
        rows = order[chosen[order]]
        for i in range(len(labels)):
            label = name if i == 0 else None
            panel.plot(_compressed(deviations[rows, i]), i + jitter[rows], "o", color=colour, label=label, **dots)
    panel.axvline(0, color=RUST, linewidth=1.0, label="answer")
    limit = float(_compressed(np.array(1.3 * reach)))
    panel.set_xlim(-limit, limit)
    powers = [0.1 * 10.0**k for k in range(6) if 0.1 * 10.0**k <= reach]
    ticks = np.array([*(-power for power in powers[::-1]), 0.0, *powers])
    panel.set_xticks(_compressed(ticks), [_percent(tick) for tick in ticks])
    panel.set_yticks(range(len(labels)), [_short(label) for label in labels])
    panel.set_ylim(len(labels) - 0.4, -0.6)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28 / (0.3 + 0.28 * len(labels))), ncols=3, fontsize=8)
    panel.set_title(f"{len(cloud.costs)} candidates, relative to the answer")
    return figure


def _compressed(deviations: np.ndarray) -> np.ndarray:
    """Logarithmic far from zero and linear near it."""
    return np.arcsinh(deviations / _LINEAR)


def _percent(deviation: float) -> str:
    sign = "+" if deviation > 0 else "−" if deviation < 0 else ""
    return f"{sign}{100 * abs(deviation):g} %"


@_styled
def correlation_figure(fit: Fit) -> Figure:
    """The correlation of every two estimates; grey where the data do not determine one of them."""
    matrix, labels = fit.correlation.values, fit.labels
    n = len(labels)
    size = min(max(1.8 + 0.36 * n, 3.2), 11.0)
    figure = _figure(size + 1.0, size)
    panel = figure.subplots()
    panel.set_facecolor(GREY)
    lines: dict[str, Any] = {"edgecolors": PAPER, "linewidth": 0.5} if n <= 40 else {"rasterized": True}
    shades = panel.pcolormesh(np.ma.masked_invalid(matrix), cmap=_shades(), vmin=-1, vmax=1, **lines)
    names = [_short(label, 20) for label in labels]
    every = max(1, math.ceil(n / 40))
    panel.set_xticks(np.arange(0, n, every) + 0.5, names[::every], rotation=90)
    panel.set_yticks(np.arange(0, n, every) + 0.5, names[::every])
    panel.set_ylim(n, 0)
    panel.set_aspect("equal")
    panel.grid(visible=False)
    panel.tick_params(length=0)
    for side in ("left", "bottom"):
        panel.spines[side].set_visible(False)
    if n <= 14:
        _write_numbers(panel, matrix)
    bar = figure.colorbar(shades, ax=panel, shrink=0.7, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.outline.set_visible(False)
    return figure


def _shades() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("correlation", ["#b4532a", "#e9c3ac", "#f6f4f0", "#aac4dd", "#1f4e7a"])


def _write_numbers(panel: Axes, matrix: np.ndarray) -> None:
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            if i != j and np.isfinite(value):
                colour = "#ffffff" if abs(value) > 0.75 else "#1a1a1a"
                text = f"{value:.2f}".replace("0.", ".").replace("-", "−")
                panel.text(j + 0.5, i + 0.5, text, color=colour, ha="center", va="center", fontsize=7)


@_styled
def timing_figure(fit: Fit) -> Figure:
    """Seconds per stage."""
    names, seconds = list(fit.stages), np.array(list(fit.stages.values()))
    figure = _figure(NARROW, 0.5 + 0.27 * len(names))
    panel = figure.subplots()
    panel.barh(range(len(names)), seconds, color=BLUE, height=0.62)
    for i, value in enumerate(seconds):
        panel.annotate(duration(value), (value, i), (4, 0), textcoords="offset points", va="center", fontsize=8)
    panel.set_yticks(range(len(names)), [_short(name) for name in names])
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xlim(0, 1.15 * max(float(seconds.max(initial=0.0)), 1e-9))
    panel.grid(visible=False, axis="y")
    panel.set_xlabel("seconds")
    return figure


def _short(label: str, most: int = 32) -> str:
    return label if len(label) <= most else f"{label[: most - 3]}..."
