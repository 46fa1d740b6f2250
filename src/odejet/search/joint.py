"""Joint: the scales and offsets of an output together with noise that depends on the output itself.

Noise such as a + b*y changes with the scale of y, so that neither follows from the other by least squares.  But all of
them follow from the simulated output alone: a few steps of Fisher's scoring, for which nothing is
simulated, find the most likely ones within their bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.problem.measurements import Measurements
from odejet.problem.noise import Density
from odejet.search.line import Line

_ROUNDS, _LARGEST = 60, 100.0
"""Steps at most, and the largest factor by which one changes anything."""

_SINGULAR = 1e-12
"""Of the curvature: what is added so that a step exists where some of it tells nothing."""

_ENOUGH = 1e-11
"""A predicted decrease of the negative log-likelihood that ends them: the gradient left is no more than its root."""

_DAMPED, _EASED = 1e-2, 10.0
"""The least damping after a step that did not go down, and by how much it changes."""

_ALIKE = 0.9
"""The cosine of two steps that go one way, and how much of the last one a step may be to tell where they lead."""

_RELATIVE = 0.1
"""Of the largest measurement: the size below which noise is taken as constant for a first guess."""


@dataclass(frozen=True, eq=False)
class Joint:
    """An output with scales, offsets and noise that are to be found together."""

    line: Line
    noise: np.ndarray  # entries of z that only the noise of this output depends on
    laws: tuple[tuple[Density, np.ndarray], ...]  # with the measurements of each, counted within the output
    low: np.ndarray  # bounds of scales, offsets and noise
    high: np.ndarray

    @classmethod
    def of(
        cls, line: Line, output: str, noise: np.ndarray, measurements: Measurements, box: tuple[np.ndarray, np.ndarray]
    ) -> Joint:
        entries = np.concatenate([line.entries, noise])
        laws: dict[Any, tuple[Density, list[np.ndarray]]] = {}
        for rows, block in zip(measurements.rows, measurements.blocks, strict=True):
            one = block.density
            if block.output == output and one is not None:
                key = one.law, one.scale, tuple(one.places.items()), tuple(one.numbers.items())
                laws.setdefault(key, (one, []))[1].append(np.arange(rows.start, rows.stop) - line.rows.start)
        low = np.maximum(box[0][entries], np.finfo(float).tiny)
        return cls(line, noise, tuple((one, np.concatenate(own)) for one, own in laws.values()), low, box[1][entries])

    @property
    def entries(self) -> np.ndarray:
        return np.concatenate([self.line.entries, self.noise])

    def best(self, plain: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The most likely scales, offsets and noise for an output with scales of one and offsets of zero; NaN where
        there are none.  All else that its noise depends on is as it is in z."""
        columns = self.line.columns(plain)
        found = [(*self._at(plain, columns, z, at), at) for at in self._guesses(plain, z)]
        if not found or not np.isfinite(min(one[0] for one in found)):
            return np.full(len(self.low), np.nan)
        cost, slope, matrix, at = min(found, key=lambda one: one[0])
        low, high, damping, last = self.low, self.high, 0.0, np.zeros(len(at))
        for _ in range(_ROUNDS):
            held = ((at <= low) & (slope > 0)) | ((at >= high) & (slope < 0))
            units = np.where(held, 0.0, 1 / np.sqrt(np.maximum(matrix.diagonal(), np.finfo(float).tiny)))
            scaled = matrix * units * units[:, None] + np.diag(np.where(held, 1.0, damping + _SINGULAR))
            step = -np.linalg.solve(scaled, slope * units) * units
            if not np.all(np.isfinite(step)) or -float(slope @ step) < _ENOUGH * (1 + damping):
                break
            there = np.clip(
                at + step / (1 - _pace(step, last)), np.maximum(low, at / _LARGEST), np.minimum(high, at * _LARGEST)
            )
            after = self._at(plain, columns, z, there)
            if after[0] < cost:
                at, last, (cost, slope, matrix), damping = there, there - at, after, damping / _EASED
            else:
                last, damping = np.zeros(len(at)), max(_EASED * damping, _DAMPED)
        return at

    def _guesses(self, plain: np.ndarray, z: np.ndarray) -> Iterator[np.ndarray]:
        """Values to begin with: by squares as they are and relative to the measurements, and noise of the size of
        the residuals, to which all that it depends on contributes alike."""
        sizes = np.abs(self.line.values)
        largest = float(sizes.max(initial=0.0)) or 1.0
        for sds in (np.ones(len(sizes)), np.maximum(sizes, _RELATIVE * largest)):
            own = self.line.best(plain, sds)
            if np.isfinite(own).all():
                mu, noise = self.line.at(plain, own), np.ones(len(self.noise))
                rms = float(np.sqrt(np.mean((mu - self.line.values) ** 2)))
                for density, rows in self.laws:
                    slopes = np.abs(density.scales(mu[rows], z)[2]).mean(axis=1)
                    for entry, slope in zip(density.entries.tolist(), slopes.tolist(), strict=True):
                        if slope > 0:
                            noise[self.noise == entry] = rms / (slope * len(slopes))
                yield np.clip(np.concatenate([own, noise]), self.low, self.high)

    def _at(
        self, plain: np.ndarray, columns: np.ndarray, z: np.ndarray, at: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The negative log-likelihood, its gradient and its expected curvature."""
        own, full = len(self.line.entries), z.copy()
        full[self.entries] = at
        mu = self.line.at(plain, at[:own])
        slopes = np.zeros((len(at), len(mu)))  # of the output
        slopes[:own] = columns.T
        place = {int(entry): own + i for i, entry in enumerate(self.noise)}
        cost, slope, matrix = 0.0, np.zeros(len(at)), np.zeros((len(at), len(at)))
        for density, rows in self.laws:
            s, by_mu, by_entries = density.scales(mu[rows], full)
            if not (np.all(s > 0) and np.isfinite(s).all() and np.isfinite(mu[rows]).all()):
                return np.inf, slope, matrix
            terms, moved = density.terms(self.line.values[rows], mu[rows], s), slopes[:, rows]
            wider = by_mu * moved
            for entry, row in zip(density.entries.tolist(), by_entries, strict=True):
                if entry in place:
                    wider[place[entry]] += row
            cost += float(terms.costs.sum())
            slope += moved @ terms.by_mu + wider @ terms.by_s
            matrix += (moved * terms.weight_mu) @ moved.T + (wider * terms.weight_s) @ wider.T
        return (cost if np.isfinite(cost) else np.inf), slope, matrix


def _pace(step: np.ndarray, last: np.ndarray) -> float:
    """How much of a step the next one will be, by the last one: where residuals are large, scoring goes one way with
    steps that shorten evenly, and their sum is known beforehand."""
    squares = float(last @ last)
    if not squares:
        return 0.0
    pace = float(step @ last) / squares
    alike = float(step @ last) ** 2 > _ALIKE**2 * squares * float(step @ step)
    return pace if alike and abs(pace) < _ALIKE else 0.0
