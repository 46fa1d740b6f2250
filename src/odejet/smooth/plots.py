"""Plots: one output with its fit, a band of two standard deviations, and the first derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odejet.smooth.smoother import Linear

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odejet.smooth.output import Smoothed

PLACES = 300
BLUE, GREY = "#1f4e79", "#9a9a9a"


def plot_output(smoothed: Smoothed, orders: int = 2, estimator: str | None = None, title: str = "") -> Figure:
    """A figure with orders + 1 panels: the data with the fit, then each derivative.

    The band is two standard deviations of the effect of measurement noise; it does not contain the bias of the fit.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 2.1 * (orders + 1) + 0.6), layout="constrained")
    panels = figure.subplots(orders + 1, 1, sharex=True, squeeze=False)[:, 0]
    data = smoothed.series
    times = np.linspace(data.times[0], data.times[-1], PLACES)
    smoother = smoothed.first() if estimator is None else smoothed.named(estimator)
    means = smoother.derivatives(times, orders)
    sds = _sds(smoothed, smoother, times, orders)
    panels[0].plot(data.times, data.values, ".", color=GREY, markersize=3, label="data", zorder=1)
    for j, panel in enumerate(panels):
        _draw(panel, times, means[:, j], None if sds is None else sds[:, j])
        panel.set_ylabel(("value", "first derivative", "second derivative")[j] if j < 3 else f"derivative {j}")
    panels[0].set_title(title or f"{smoother.name}, noise sd {smoothed.noise:.2g}", loc="left", fontsize="medium")
    panels[-1].set_xlabel("time")
    return figure


def _sds(smoothed: Smoothed, smoother: object, times: np.ndarray, orders: int) -> np.ndarray | None:
    if not isinstance(smoother, Linear):
        return None
    return np.array([smoothed.noise * jet.gains for jet in smoother.jets(times, orders)])


def _draw(panel: Axes, times: np.ndarray, means: np.ndarray, sds: np.ndarray | None) -> None:
    if sds is not None:
        panel.fill_between(times, means - 2 * sds, means + 2 * sds, color=BLUE, alpha=0.2, linewidth=0)
    panel.plot(times, means, color=BLUE, linewidth=1.5)
    # The band widens without bound towards the ends; the axis follows the curve in the interior.
    inner = means[len(means) // 20 : -len(means) // 20]
    low, high = float(inner.min()), float(inner.max())
    room = 0.25 * (high - low) or max(abs(high), 1.0) * 0.1
    panel.set_ylim(low - room, high + room)
    panel.grid(color="#e5e5e5", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
