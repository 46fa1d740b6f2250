"""Coordinates: the scales on which a search moves.

A step should mean the same wherever it is taken.  A quantity that keeps its sign moves on a logarithmic scale, where a
step of one is a factor e; one that may change it on the scale of the inverse hyperbolic sine, which is logarithmic far
from zero and linear near it.

    log:    z = sign * exp(theta)          asinh:  z = unit * sinh(theta)

Bounds on z become bounds on theta.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.errors import ModelError, nearest
from odejet.problem.unknowns import Unknown

DEEPEST = 1e-15
"""A quantity bounded by zero is searched down to this fraction of its unit, or of its upper bound if that is lower."""

HIGHEST = 1e15
"""A quantity without an upper bound is searched up to so many of its units."""

Bounds = tuple[float, float] | Mapping[str, tuple[float, float]] | None


@dataclass(frozen=True)
class Coordinates:
    """A scale for each unknown, and the box in which it may lie."""

    low: np.ndarray  # of z
    high: np.ndarray
    signs: np.ndarray  # 1 or -1 on a logarithmic scale, 0 on that of asinh
    units: np.ndarray  # the size of each

    def inside(self, z: np.ndarray) -> np.ndarray:
        """The nearest point of the box."""
        return np.clip(z, self.low, self.high)

    def to(self, z: np.ndarray) -> np.ndarray:
        """theta for a point z of the box."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.signs == 0, np.arcsinh(z / self.units), self.signs * np.log(np.abs(z)))

    def back(self, theta: np.ndarray) -> np.ndarray:
        """z for theta; rounding does not lead out of the box."""
        with np.errstate(over="ignore"):
            z = np.where(self.signs == 0, self.units * np.sinh(theta), self.signs * np.exp(self.signs * theta))
        return self.inside(z)

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """dz/dtheta."""
        return np.where(self.signs == 0, np.hypot(z, self.units), np.abs(z))

    @property
    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of z without the ends that a search needs: zero or infinite where nothing else was given."""
        with np.errstate(over="ignore"):  # beyond all numbers nothing was given
            reach, floor = HIGHEST * self.units, self._floor
        low = np.where((self.signs > 0) & (self.low <= floor), 0.0, np.where(self.low <= -reach, -np.inf, self.low))
        high = np.where((self.signs < 0) & (-self.high <= floor), 0.0, np.where(self.high >= reach, np.inf, self.high))
        return low, high

    @property
    def _floor(self) -> np.ndarray:
        """How close to zero a quantity that keeps its sign may come."""
        return DEEPEST * np.minimum(np.where(self.signs > 0, self.high, -self.low), self.units)

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of theta, which increases with z."""
        return self.to(self.low), self.to(self.high)


def choose(
    unknowns: Sequence[Unknown],
    scale: np.ndarray,
    bounds: Bounds = None,
    positive: bool | Collection[str] = False,
    model_bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Coordinates:
    """Coordinates for unknowns of about the size of `scale`, whose zeros say nothing.

    `bounds` is one pair for all or one per name, and goes before those of the model; `positive` may be a truth value
    or the names of what is positive.
    """
    pairs = given_bounds(unknowns, bounds, positive, model_bounds)
    low, high = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    signs = np.where(low >= 0, 1.0, np.where(high <= 0, -1.0, 0.0))
    units = _units(np.asarray(scale, dtype=float))
    reach = HIGHEST * units
    whole = Coordinates(np.clip(low, -reach, reach), np.clip(high, -reach, reach), signs, units)
    return Coordinates(
        np.where(signs > 0, np.maximum(whole.low, whole._floor), whole.low),
        np.where(signs < 0, np.minimum(whole.high, -whole._floor), whole.high),
        signs,
        units,
    )


def given_bounds(
    unknowns: Sequence[Unknown],
    bounds: Bounds = None,
    positive: bool | Collection[str] = False,
    model_bounds: Mapping[str, tuple[float, float]] | None = None,
) -> list[tuple[float, float]]:
    """The bounds of every unknown as they were given; infinite where there are none."""
    _check_names(unknowns, bounds, positive)
    return [_pair(unknown, bounds, positive, model_bounds or {}) for unknown in unknowns]


def _units(scale: np.ndarray) -> np.ndarray:
    """The sizes themselves, and for zeros that of the others."""
    sizes = np.abs(scale)
    known = sizes[(sizes > 0) & np.isfinite(sizes)]
    typical = float(np.exp(np.log(known).mean())) if len(known) else 1.0
    return np.where((sizes > 0) & np.isfinite(sizes), sizes, typical)


def _pair(unknown: Unknown, bounds: Bounds, positive: Any, model_bounds: Mapping[str, Any]) -> tuple[float, float]:
    pair: Any = model_bounds.get(unknown.name, unknown.usual)
    if isinstance(bounds, Mapping):
        pair = bounds.get(unknown.label, bounds.get(unknown.name, pair))
    elif bounds is not None:
        pair = bounds
    try:
        low, high = (-math.inf, math.inf) if pair is None else (float(pair[0]), float(pair[1]))
    except (TypeError, ValueError, IndexError, KeyError):
        raise ModelError(f"the bounds of '{unknown.label}' must be two numbers, not {pair!r}") from None
    is_positive = positive if isinstance(positive, bool) else unknown.name in positive or unknown.label in positive
    low = max(low, 0.0, unknown.limits[0]) if is_positive else max(low, unknown.limits[0])
    high = min(high, unknown.limits[1])
    if not low < high:
        raise ModelError(f"the bounds of '{unknown.label}' leave nothing: {low:g} must be below {high:g}")
    return low, high


def _check_names(unknowns: Sequence[Unknown], bounds: Bounds, positive: Any) -> None:
    names = {name for unknown in unknowns for name in (unknown.name, unknown.label)}
    given = {"bounds": bounds if isinstance(bounds, Mapping) else (), "positive": positive}
    for what, collection in given.items():
        for name in () if isinstance(collection, bool) else collection:
            if name not in names:
                raise ModelError(f"{what} name '{name}', which is no unknown of the fit{nearest(name, names)}")
