"""Diagnostics: how measurements stand to their predictions, output by output, with all experiments together.

Observed against predicted values lie along the diagonal; standardised residuals have no trend over the prediction; and
their quantiles lie along those of the normal law.  Beside fit and data over time these are the pictures in which
people look for a wrong size of the noise, a wrong law and a model that is wrong in one range.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from odejet.report.panels import Dots, Layer, Line, Panel, Picture, Rule, Stripe, size_of, span
from odejet.report.ticks import linear, logarithmic
from odejet.result import Comparison

WIDE = 100.0
"""Largest over smallest value beyond which positive values are shown on logarithmic axes."""

HEIGHT = 170.0
"""Pixels of a panel: about as high as wide beside two others."""


def by_output(pairs: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    """Group the series of all experiments by their output."""
    groups: dict[str, list[Comparison]] = {}
    for pair in pairs:
        groups.setdefault(pair.output, []).append(pair)
    return groups


def diagnostic_pictures(output: str, pairs: Sequence[Comparison]) -> list[Picture]:
    """Return observed against predicted, residuals against predicted, and a quantile plot of one output."""
    predicted, observed, residuals = (
        np.concatenate(columns)
        for columns in zip(*((pair.fitted, pair.values, pair.standardised) for pair in pairs), strict=True)
    )
    censored = np.concatenate([pair.censored for pair in pairs])
    known = np.isfinite(predicted) & np.isfinite(observed) & np.isfinite(residuals) & ~censored
    if not known.any():
        return []
    predicted, observed, residuals = predicted[known], observed[known], residuals[known]
    return [
        observed_picture(output, predicted, observed),
        residual_picture(output, predicted, residuals),
        quantile_picture(output, residuals),
    ]


def observed_picture(output: str, predicted: np.ndarray, observed: np.ndarray) -> Picture:
    values = np.concatenate([predicted, observed])
    if values.min() > 0 and values.max() > WIDE * values.min():
        axis = logarithmic(float(values.min()) / 1.1, 1.1 * float(values.max()))
    else:
        axis = linear(*span(values), 4)
    diagonal = np.geomspace(axis.low, axis.high) if axis.logarithmic else np.array([axis.low, axis.high])
    layers: tuple[Layer, ...] = (Line(diagonal, diagonal, colour="grey"), _dots(predicted, observed))
    return _picture("observed against predicted values", output, Panel(layers, axis, axis, HEIGHT, "observed"))


def residual_picture(output: str, predicted: np.ndarray, residuals: np.ndarray) -> Picture:
    wide = predicted.min() > 0 and predicted.max() > WIDE * predicted.min()
    across = (
        logarithmic(float(predicted.min()) / 1.1, 1.1 * float(predicted.max())) if wide else linear(*span(predicted), 4)
    )
    layers: tuple[Layer, ...] = (Stripe(-2, 2), Rule(0), _dots(predicted, residuals))
    panel = Panel(layers, across, linear(*span(residuals, np.array([-2.0, 2.0]))), HEIGHT, "res. / sd")
    return _picture("residuals against predicted values", output, panel)


def quantile_picture(output: str, residuals: np.ndarray) -> Picture:
    """Ordered residuals against the quantiles that as many normal deviates are expected at (Blom's positions)."""
    count = len(residuals)
    expected = ndtri((np.arange(1, count + 1) - 0.375) / (count + 0.25))
    ordered = np.sort(residuals)
    across, down = linear(*span(expected, np.array([-2.0, 2.0])), 5), linear(*span(ordered, np.array([-2.0, 2.0])), 5)
    ends = np.array([across.low, across.high])
    layers: tuple[Layer, ...] = (Line(ends, ends, colour="grey"), _dots(expected, ordered))
    return _picture("quantiles of the residuals", output, Panel(layers, across, down, HEIGHT, "res. / sd"), "normal")


def _dots(x: np.ndarray, y: np.ndarray) -> Dots:
    return Dots(x, y, size=0.8 * size_of(len(x)))


def _picture(what: str, output: str, panel: Panel, label: str = "predicted") -> Picture:
    title = output if len(output) <= 32 else f"{output[:29]}..."
    return Picture((panel,), f"{what} of {output}", title, label)
