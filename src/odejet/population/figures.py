"""Figures: what pharmacometricians look at before they believe a population model."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.errors import ModelError, nearest
from odejet.extras import needed

if TYPE_CHECKING:
    import matplotlib.figure

    from odejet.population.result import PopulationFit

Array = np.ndarray

BINS = 12
"""Groups of times of a visual predictive check, each with about as many measurements."""


def drawn(fit: PopulationFit, kind: str, path: str | os.PathLike[str] | None) -> matplotlib.figure.Figure:
    """Return a figure of one kind, and write it to a file if there is a path."""
    if kind not in KINDS:
        raise ModelError(f"there is no plot {kind!r}{nearest(str(kind), KINDS)}; there are {', '.join(KINDS)}")
    figures = needed("matplotlib.figure")
    figure = figures.Figure(figsize=(8, 5), layout="constrained")
    KINDS[kind](fit, figure)
    if path is not None:
        figure.savefig(path)
    return figure


def _outputs(fit: PopulationFit) -> list[tuple[int, str]]:
    return [(list(fit.asked.model.outputs).index(name), name) for name in fit.asked.noises]


def bins_of(times: Array) -> list[Array]:
    """Return groups of measurements by time: those at one time stay together."""
    distinct = np.unique(times)
    if len(distinct) <= BINS:
        return [np.flatnonzero(times == time) for time in distinct]
    edges = np.unique(np.quantile(times, np.linspace(0, 1, BINS + 1)))
    places = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, len(edges) - 2)
    return [np.flatnonzero(places == k) for k in range(len(edges) - 1) if (places == k).any()]


def check(fit: PopulationFit, output: int) -> tuple[Array, Array, Array]:
    """Return the middle of each group of times, percentiles 5, 50 and 95 of what was measured there, and for each of
    these the percentiles 5, 50 and 95 among simulations of the design: (groups,), (groups, 3), (groups, 3, 3).

    A censored value counts as one drawn within its limits: percentiles outside of these are as if it were measured.
    """
    table = fit.residuals
    own = table["output"] == output
    times, observed = table["time"][own], table["completed"][own]
    simulated = np.concatenate(fit.simulations, axis=1)[:, own]
    middles, seen, expected = [], [], []
    for group in bins_of(times):
        middles.append(float(np.median(times[group])))
        seen.append(np.percentile(observed[group], (5, 50, 95)))
        inside = np.nanpercentile(simulated[:, group], (5, 50, 95), axis=1)
        expected.append(np.nanpercentile(inside, (5, 50, 95), axis=1).T)
    return np.array(middles), np.array(seen), np.array(expected)


def _vpc(fit: PopulationFit, figure: Any) -> None:
    outputs, table = _outputs(fit), fit.residuals
    axes = np.atleast_1d(figure.subplots(1, len(outputs)))
    for axis, (output, name) in zip(axes, outputs, strict=True):
        own = table["output"] == output
        middles, seen, expected = check(fit, output)
        for k, colour in enumerate(("tab:blue", "tab:red", "tab:blue")):
            axis.fill_between(middles, expected[:, k, 0], expected[:, k, 2], color=colour, alpha=0.2, linewidth=0)
            axis.plot(middles, seen[:, k], color=colour, linestyle="-" if k == 1 else "--")
        own &= ~table["censored"]
        axis.plot(table["time"][own], table["observed"][own], ".", color="0.4", markersize=3)
        axis.set(xlabel="time", ylabel=name, title="visual predictive check")


def _individual(fit: PopulationFit, figure: Any) -> None:
    design, count = fit._design, min(len(fit.asked.members), 16)
    columns = min(4, count)
    axes = np.atleast_1d(figure.subplots(-(-count // columns), columns, sharex=True)).ravel()
    for i, axis in enumerate(axes[:count]):
        subject, mode = fit.asked.members[i], design.mode(i)
        for block in subject.blocks:
            times = subject.times[block.positions]
            (line,) = axis.plot(times, mode.predictions[block.rows], "-", linewidth=1)
            shown = ~block.censored
            axis.plot(times[shown], block.values[shown], ".", color=line.get_color(), markersize=4)
            if block.limits is not None and block.censored.any():
                low, high = block.limits.lower[block.censored], block.limits.upper[block.censored]
                # A limit that there is stands for one that there is not.
                ends = np.where(np.isfinite(low), low, high), np.where(np.isfinite(high), high, low)
                axis.vlines(times[block.censored], *ends, color=line.get_color(), linewidth=1)
                axis.plot(np.repeat(times[block.censored], 2), np.ravel(ends, "F"), "_", color=line.get_color())
        axis.set_title(subject.name, fontsize=8)


def _observed(fit: PopulationFit, figure: Any) -> None:
    table = fit.residuals
    measured = ~table["censored"]
    observed = table["observed"][measured]
    for axis, key in zip(figure.subplots(1, 2), ("typical", "individual"), strict=True):
        predicted = table[key][measured]
        axis.plot(predicted, observed, ".", markersize=4)
        ends = [min(predicted.min(), observed.min()), max(predicted.max(), observed.max())]
        axis.plot(ends, ends, color="0.5")
        axis.set(xlabel=f"predicted, {key}", ylabel="observed")


def _residuals(fit: PopulationFit, figure: Any) -> None:
    table = fit.residuals
    axes = figure.subplots(2, 2)
    for row, key in zip(axes, ("cwres", "npde"), strict=True):
        for axis, over in zip(row, ("time", "typical"), strict=True):
            axis.plot(table[over], table[key], ".", markersize=4)
            axis.axhline(0, color="0.5")
            axis.set(xlabel=over, ylabel=key.upper())


KINDS: dict[str, Callable[[Any, Any], None]] = {
    "vpc": _vpc,
    "individual": _individual,
    "observed-predicted": _observed,
    "residuals": _residuals,
}
