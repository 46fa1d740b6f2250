"""Pictures: what is shown of a fit, of its derivatives, its profiles and its candidates.

One measurement far from all others does not make the rest unreadable: the axes follow the others, and it stands at the
edge, marked with its distance.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from odejet.data import Series
from odejet.data.censored import Limits
from odejet.errors import ModelError
from odejet.jets.inputs import input_jets
from odejet.jets.numeric import jets
from odejet.model.tape import build
from odejet.report.panels import (
    MANY,
    Area,
    Dots,
    Layer,
    Line,
    Panel,
    Picture,
    Rings,
    Rule,
    Stripe,
    beyond,
    size_of,
    span,
)
from odejet.report.ticks import Axis, linear, logarithmic, short, symmetric
from odejet.result import LEVEL, Band, Comparison, Fit, Prediction
from odejet.simulate import Simulation
from odejet.smooth import Linear, Smoothed
from odejet.uncertainty.bands import GLANCE_EVALUATIONS, QUICK
from odejet.uncertainty.profile import Profile

Curve = Simulation | Prediction
"""A fitted course of an experiment, with bands or without."""

CURVE, SHORT_CURVE = 500, 160
"""Places at which a fitted curve is drawn, and one of very many."""

FEW_DOTS = 40
"""Measurements that do not hide a curve."""

FEW = 8
"""Experiments beyond which curves are drawn with fewer places."""

_DERIVATIVE_PLACES = 200
_NAMES = ("value", "first derivative", "second derivative", "third derivative")
_OPEN = 1.5  # times the range of data and curve, to either side: as far as a band is drawn
_FLAT = 2.5  # times the range of all others: farther a suspicious measurement does not stretch an axis
_TYPICAL, _TIMES = 90, 4.0  # a residual farther than so many times this percentile of all stands at the edge
_LEAST = 2.6  # standard deviations that residuals are always shown to
_FARTHEST = 100.0  # candidates farther from the answer than so many times its size stand at the edge
_NEAR = 2e-2  # deviations below this are drawn on a linear scale


# --- fit and data -----------------------------------------------------------------------------------------------------


def curves(
    fit: Fit, pairs: Sequence[Comparison], states: bool = False, doubts: Collection[str] | None = None
) -> dict[str, Curve]:
    """The experiments on many times, with bands if there is a fit: by profiles as far as a glance goes.

    Where intervals have been looked at, and `doubts` are those that are not to be trusted, bands of many experiments
    come from curvature but where an unknown of the experiment is doubted.
    """
    names = list(dict.fromkeys(pair.experiment for pair in pairs))
    evaluations, seconds = GLANCE_EVALUATIONS // max(len(names), 1), QUICK / max(len(names), 1)
    doubted = {unknown.experiment for unknown in fit.unknowns if unknown.label in (doubts or ())}
    found: dict[str, Curve] = {}
    for name in names:
        own = fit.experiment(name)
        plain = doubts is not None and len(names) > FEW and not doubted & {None, name}
        times = np.linspace(own.start, own.end, CURVE if len(names) < FEW else SHORT_CURVE)
        try:
            how = "delta" if plain else "auto"
            found[name] = fit.predict(times, name, LEVEL, how, states, evaluations, seconds)
        except ModelError:  # without a fit there is nothing to be uncertain about
            found[name] = fit.simulate(times, name)
    return found


def series_picture(
    pair: Comparison, curve: Curve, several: bool, alike: Sequence[Panel] = (), wide: bool = False
) -> Picture:
    """Data, fit and residuals of one output in one experiment; beside panels that are alike it has their range."""
    name = title(pair.output, pair.experiment, several)
    above, below = fitted_panel(pair, curve), residual_panel(pair, curve)
    if alike:
        low, high = min(one.y.low for one in alike), max(one.y.high for one in alike)
        shared, times = linear(low, high, 4), _alike([above.x, *(one.x for one in alike)])
        above = Panel(_fine(above.layers), times, shared, 96)
        below = Panel(_fine(below.layers), times, below.y, 34)
        name = _short(pair.experiment)
    elif wide:
        above = Panel(above.layers, above.x, above.y, 220)
    words = f"fit, data and residuals of {title(pair.output, pair.experiment, several)}"
    return Picture((above, below), words, name, label="" if alike else "time", wide=wide)


def _alike(axes: Sequence[Axis]) -> Axis:
    """One axis for all of them; the first, if they are too different in length to be seen on one."""
    low, high = min(one.low for one in axes), max(one.high for one in axes)
    return linear(low, high) if all(high - low <= 2 * (one.high - one.low) for one in axes) else axes[0]


def _fine(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return the layers with smaller dots."""
    return tuple(replace(one, size=0.65 * one.size) if isinstance(one, Dots) else one for one in layers)


def fitted_panel(pair: Comparison, curve: Curve) -> Panel:
    """The measurements and what the model says of them."""
    layers: list[Layer] = []
    if isinstance(curve, Prediction):
        band = curve[pair.output]
        layers += _band(band, pair.values)
        line = _ordered(band.times, band.values)
        ends = [one for layer in layers if isinstance(layer, Area) for one in (layer.low, layer.high)]
    else:
        line, ends = _ordered(curve.times, curve[pair.output]), []
    seen = span(pair.values[~pair.suspicious], line[1], *ends)
    whole = span(pair.values, *map(np.array, [seen]), room=0.0)
    low, high = whole if whole[1] - whole[0] <= _FLAT * (seen[1] - seen[0]) else seen
    seen_values = np.where(pair.censored, np.nan, pair.values)
    dots = Dots(pair.times, seen_values, size=size_of(len(pair.times)))
    layers += _bars(pair.times, pair.limits, low, high)
    # A few dots lie on the line, many below it.
    layers += [Line(*line), dots] if len(dots.x) <= FEW_DOTS else [dots, Line(*line, rimmed=len(dots.x) > MANY)]
    layers += _marks(pair, seen_values, low, high, [short(value) for value in pair.values.tolist()])
    return Panel(tuple(layers), _times(pair.times, line[0]), linear(low, high))


def _bars(times: np.ndarray, limits: Limits | None, low: float, high: float) -> list[Layer]:
    """Bars between the limits of what is censored, which run into the frame where there is but one."""
    if limits is None or not (chosen := np.flatnonzero(limits.censored)).size:
        return []
    reach = high - low  # beyond the frame
    ends = np.clip(limits.lower[chosen], low - reach, None), np.clip(limits.upper[chosen], None, high + reach)
    gap = np.full(len(chosen), np.nan)
    x, y = (np.stack(parts, axis=1).ravel() for parts in ((times[chosen], times[chosen], gap), (*ends, gap)))
    marks = [one[np.isfinite(one)] for one in (limits.lower[chosen], limits.upper[chosen])]
    places = [times[chosen][np.isfinite(one)] for one in (limits.lower[chosen], limits.upper[chosen])]
    return [Line(x, y, "grey"), Dots(np.concatenate(places), np.concatenate(marks), "grey", 4.0)]


def residual_panel(pair: Comparison, curve: Curve) -> Panel:
    """Residuals in units of the noise."""
    values = np.where(pair.censored & (pair.residuals == 0), np.nan, pair.standardised)
    sizes = np.abs(values[np.isfinite(values)])
    far = _TIMES * float(np.percentile(sizes, _TYPICAL)) if len(sizes) else 0.0
    most = float(sizes.max(initial=0.0))
    # Where one is far away, the axis follows the others, however small they are.
    limit = max(1.12 * most, _LEAST) if most <= max(far, _LEAST) else 1.25 * float(sizes[sizes <= far].max())
    layers: list[Layer] = [Stripe(-2, 2), Rule(0)]
    layers.append(Dots(pair.times, values, size=size_of(len(pair.times)) * 0.8))
    layers += _marks(pair, values, -limit, limit, [_minus(f"{value:.3g}") for value in values.tolist()])
    axis = symmetric(limit)
    return Panel(tuple(layers), _times(pair.times, curve.times), axis, 62, "res. / sd")


def _marks(pair: Comparison, values: np.ndarray, low: float, high: float, labels: Sequence[str]) -> list[Layer]:
    """Rings around suspicious measurements, and arrows to those beyond the edges."""
    inside = pair.suspicious & (values >= low) & (values <= high)
    found: list[Layer] = [Rings(pair.times[inside], values[inside])] if inside.any() else []
    outside = beyond(pair.times, values, low, high, labels)
    return found + ([outside] if outside is not None else [])


def _times(*times: np.ndarray) -> Axis:
    return linear(*span(*times, room=0.02))


def _ordered(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(times, kind="stable")
    return times[order], values[order]


def _band(band: Band, measured: np.ndarray) -> list[Layer]:
    """The band of a curve, with that of new measurements around it; ends that are open run into the frame."""
    order = np.argsort(band.times, kind="stable")
    times, values = band.times[order], band.values[order]
    seen = np.concatenate([measured, values])
    seen = seen[np.isfinite(seen)]
    if not len(seen):
        return []
    centre, size = 0.5 * (seen.min() + seen.max()), float(np.ptp(seen)) or abs(float(seen[0])) or 1.0
    new_low, new_high, low, high = (
        np.clip(end[order], centre - _OPEN * size, centre + _OPEN * size)
        for end in (band.measured_low, band.measured_high, band.low, band.high)
    )
    found: list[Layer] = [Area(times, new_low, new_high, opacity=0.12)] if np.isfinite(new_low).any() else []
    return [*found, Area(times, low, high, opacity=0.32)]


def band_picture(band: Band, series: Series | None = None, where: str = "") -> Picture:
    """One output or state over time with its band, and with its measurements if there are any."""
    measured = np.zeros(0) if series is None else series.values
    layers = _band(band, measured)
    ends = [one for layer in layers if isinstance(layer, Area) for one in (layer.low, layer.high)]
    line = _ordered(band.times, band.values)
    layers.append(Line(*line))
    if series is not None:
        layers += _bars(series.times, series.limits, *span(line[1], measured, *ends))
        layers.append(Dots(series.observed.times, series.observed.values, size=size_of(len(series.times))))
    times = _times(line[0]) if series is None else _times(line[0], series.times)
    panel = Panel(tuple(layers), times, linear(*span(line[1], measured, *ends)), 120)
    words = f"{band.name} over time with its band{f' in {where}' if where else ''}"
    return Picture((panel,), words, _short(band.name))


def simulated_picture(
    simulation: Simulation, name: str, values: np.ndarray, measured: np.ndarray | None = None
) -> Picture:
    """One output or state of a simulation, with what noise has made of it if there is any."""
    line = _ordered(simulation.times, values)
    layers: list[Layer] = [Line(*line)]
    if measured is not None:
        layers.insert(0, Dots(simulation.times, measured, "rust", 0.8 * size_of(len(measured))))
        values = np.concatenate([values, measured])
    panel = Panel(tuple(layers), _times(line[0]), linear(*span(values)))
    return Picture((panel,), f"{name} over time", _short(name))


def title(output: str, experiment: str, several: bool) -> str:
    """What a panel shows, cut to its width."""
    return _short(f"{output} in {experiment}" if several else output, 60)


# --- derivatives ------------------------------------------------------------------------------------------------------


def derivative_picture(fit: Fit, experiment: str, output: str, smoothed: Smoothed, orders: int = 2) -> Picture:
    """An output and its derivatives, as smoothing found them in the data and as the fitted model has them.

    The band is two standard deviations of the effect of noise; it does not contain the bias of smoothing.
    """
    data = smoothed.series
    times = np.linspace(data.times[0], data.times[-1], _DERIVATIVE_PLACES)
    smoother = smoothed.first()
    means, sds = smoother.derivatives(times, orders), _noise(smoothed, times, orders)
    places, fitted = model_derivatives(fit, experiment, output, times, orders)
    panels = []
    for order in range(orders + 1):
        layers: list[Layer] = []
        if sds is not None:
            ends = means[:, order] - 2 * sds[:, order], means[:, order] + 2 * sds[:, order]
            layers.append(Area(times, *ends, colour="rust", opacity=0.2))
        layers.append(Line(times, means[:, order], colour="rust"))
        if order == 0:
            layers.append(Dots(data.times, data.values, size=0.7 * size_of(len(data.times))))
        layers.append(Line(places, fitted[:, order], dashed=True))
        # Derivatives of smooth fits run away at the ends; the axis follows the rest.
        axis = linear(*span(means[10:-10, order], fitted[:, order], room=0.15), 4)
        name = _NAMES[order] if order < len(_NAMES) else f"derivative {order}"
        panels.append(Panel(tuple(layers), _times(times), axis, 84, name))
    named = title(output, experiment, len(fit.data.experiments) > 1)
    words = f"derivatives of {output} in {experiment}"
    return Picture(tuple(panels), words, f"{named}, smoothed by {smoother.name}")


def _noise(smoothed: Smoothed, times: np.ndarray, orders: int) -> np.ndarray | None:
    smoother = smoothed.first()
    if not isinstance(smoother, Linear):
        return None
    return np.array([smoothed.noise * smoother.jet(t, orders).gains for t in times])


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


# --- profiles and candidates ------------------------------------------------------------------------------------------


def profile_picture(one: Profile) -> Picture:
    """The deviance along a quantity, its quantile and the interval it leaves; open ends run into the frame."""
    from scipy.interpolate import PchipInterpolator

    phi, signed = one.scale.to(one.values), np.sqrt(one.deviances) * np.sign(one.values - one.estimate)
    fine = np.linspace(phi[0], phi[-1], 120)
    low, high = np.clip(one.interval(), one.values[0], one.values[-1]).tolist()
    layers: list[Layer] = [Stripe(low, high, vertical=True), Rule(one.quantile, colour="rust", dashed=True)]
    layers.append(Rule(one.estimate, vertical=True, colour="grey"))
    if len(phi) > 2 and np.all(np.diff(phi) > 0):
        # The signed root is nearly straight, so that few points draw a smooth curve.
        layers.append(Line(one.scale.back(fine), PchipInterpolator(phi, signed)(fine) ** 2))
    layers.append(Dots(one.values, one.deviances, colour="blue", size=4))
    ends = float(one.values[0]), float(one.values[-1])
    wide = one.scale.sign > 0 and ends[0] > 0 and ends[1] > 20 * ends[0]
    axis = logarithmic(*ends) if wide else linear(*span(one.values, room=0.04), most=3)
    opened = {(True, True): "open", (True, False): "open below", (False, True): "open above"}.get(one.open, "")
    opened = "not followed further" if one.stopped else opened
    panel = Panel(tuple(layers), axis, linear(-0.05 * one.quantile, 1.6 * one.quantile, 4), 104)
    return Picture((panel,), f"deviance along {one.label}", _short(one.label, 24), label=opened)


def cloud_picture(fit: Fit) -> Picture:
    """Every candidate's distance from the answer, one line per unknown; good ones are blue."""
    assert fit.candidates is not None
    labels, cloud = fit.labels, fit.candidates
    scale = np.where(fit.estimates != 0, np.abs(fit.estimates), 1.0)
    with np.errstate(over="ignore"):
        deviations = (cloud.values - fit.estimates) / scale
    reach = min(max(float(np.nanmax(np.abs(deviations), initial=0.1)), 0.15), _FARTHEST)
    deviations = np.clip(deviations, -reach, reach)
    good = cloud.costs <= np.median(cloud.costs) if len(cloud.costs) else np.zeros(0, dtype=bool)
    # Dots beside each other rather than on top, always in the same way.
    jitter = 0.28 * (2 * (np.arange(len(good)) * 0.618034 % 1) - 1)
    heights = len(labels) - 1 - np.arange(len(labels))[None, :] + jitter[:, None]
    layers: list[Layer] = [Rule(0, vertical=True, colour="rust")]
    for chosen, colour in ((~good, "grey"), (good, "blue")):
        layers.append(Dots(_compressed(deviations[chosen]).ravel(), heights[chosen].ravel(), colour, 4))
    limit = float(_compressed(np.array(1.3 * reach)))
    powers = [10.0**k for k in range(-1, 3, 2 if reach > 5 else 1) if 10.0**k <= reach]
    ticks = [*(-power for power in powers[::-1]), 0.0, *powers]
    across = Axis(-limit, limit, tuple(_compressed(np.array(ticks)).tolist()), tuple(map(_percent, ticks)))
    named = tuple(_short(label, 18) for label in labels)
    down = Axis(-0.6, len(labels) - 0.4, tuple(float(len(labels) - 1 - i) for i in range(len(labels))), named)
    panel = Panel(tuple(layers), across, down, 24 * len(labels) + 10)
    words = "candidates of every unknown, relative to the answer"
    return Picture((panel,), words, f"{len(cloud.costs)} candidates", "relative to the answer", wide=True)


def _compressed(deviations: np.ndarray) -> np.ndarray:
    """Logarithmic far from zero and linear near it."""
    return np.arcsinh(deviations / _NEAR)


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _percent(deviation: float) -> str:
    sign = "+" if deviation > 0 else "−" if deviation < 0 else ""
    return f"{sign}{100 * abs(deviation):g} %"


def _short(label: str, most: int = 32) -> str:
    return label if len(label) <= most else f"{label[: most - 3]}..."
