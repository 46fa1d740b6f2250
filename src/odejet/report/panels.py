"""Panels: what a picture shows, whoever draws it.

A picture is a stack of panels over one axis.  A panel has layers, which are drawn in their order, and two axes.  `svg`
draws pictures for pages and `figures` by matplotlib; both know colours by their names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odejet.report.ticks import Axis, apart

MANY = 3000
"""Measurements beyond which a cloud is drawn, not dots."""

_ROOM = 0.06  # of the range, left free at either end


@dataclass(frozen=True, eq=False)
class Line:
    x: np.ndarray
    y: np.ndarray
    colour: str = "blue"
    dashed: bool = False
    rimmed: bool = False  # with a rim of the ground, to be seen among very many dots


@dataclass(frozen=True, eq=False)
class Area:
    """What lies between two curves."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    colour: str = "blue"
    opacity: float = 0.3


@dataclass(frozen=True, eq=False)
class Dots:
    """Points of one size, each with a rim of the ground around it so that lines and neighbours leave it visible."""

    x: np.ndarray
    y: np.ndarray
    colour: str = "ink"
    size: float = 5.0  # pixels across


@dataclass(frozen=True, eq=False)
class Rings:
    """Points to look at."""

    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Beyond:
    """Points that are farther away than the panel reaches, marked at its edge with how far they are."""

    x: np.ndarray
    above: np.ndarray  # truth values: beyond the upper edge, or the lower
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """A straight line across the panel."""

    at: float
    vertical: bool = False
    colour: str = "blue"
    dashed: bool = False


@dataclass(frozen=True)
class Stripe:
    """What lies between two such lines."""

    low: float
    high: float
    vertical: bool = False
    colour: str = "blue"
    opacity: float = 0.1


Layer = Line | Area | Dots | Rings | Beyond | Rule | Stripe


@dataclass(frozen=True, eq=False)
class Panel:
    """Layers within two axes; `height` in pixels."""

    layers: tuple[Layer, ...]
    x: Axis
    y: Axis
    height: float = 150.0
    label: str = ""  # of the vertical axis


@dataclass(frozen=True, eq=False)
class Picture:
    """Panels over one horizontal axis, with a title, and a description for those who cannot see it."""

    panels: tuple[Panel, ...]
    description: str
    title: str = ""
    label: str = "time"  # of the horizontal axis
    wide: bool = False  # whether it wants all the width there is


def size_of(count: int) -> float:
    """How large so many dots may be, that one sees each of a few and the shape of many."""
    return float(np.clip(10.5 - 2.9 * math.log10(max(count, 1)), 2.2, 7.0))


def span(*values: np.ndarray, room: float = _ROOM) -> tuple[float, float]:
    """The range of all finite values, with some room."""
    every = np.concatenate([np.ravel(one) for one in values])
    every = every[np.isfinite(every)]
    if not len(every):
        return 0.0, 1.0
    low, high = float(every.min()), float(every.max())
    extra = room * (high - low)
    return apart(low - extra, high + extra)


def beyond(x: np.ndarray, y: np.ndarray, low: float, high: float, labels: Sequence[str]) -> Beyond | None:
    """Marks for the points outside of a range, if there are any."""
    outside = (y < low) | (y > high)
    if not outside.any():
        return None
    chosen = np.flatnonzero(outside)
    return Beyond(x[chosen], y[chosen] > high, tuple(labels[i] for i in chosen.tolist()))
