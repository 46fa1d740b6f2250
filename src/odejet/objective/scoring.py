"""Scoring: likelihoods and priors that are no sums of squares, as rows of least squares.

A measurement with prediction mu, scale s and weights w gives two rows: for the location the residual g / sqrt(w) with
the derivative sqrt(w) dmu/dz, where g is the derivative of its negative log-likelihood by mu, and the same for the
scale.  Added up, J'r is then the exact gradient of the negative log-likelihood and J'J its expected curvature, so that
a step of least squares is one of Fisher's scoring.  A prior is one more row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from odejet.problem.measurements import ROUNDING, Measurements
from odejet.problem.noise import Density
from odejet.problem.priors import Term, Truncated

_ROUNDED = 1e-9
"""Of the largest measurement: a mean of counts below zero by less is rounding."""


_TUNING, _LONGEST = 30, 1.0
"""Rounds in which scales are fitted to residuals as they are, and the longest step of one, in logarithmic units."""

_GAINED = 1e-3
"""A decrease of the negative log-likelihood that is worth no further round: what tells nothing may go anywhere."""

_DAMPED, _EASED = 0.1, 10.0
"""The least damping after a step that did not go down, and by how much it changes."""


@dataclass(frozen=True, eq=False)
class Refusal:
    """A measurement that cannot be compared with its prediction."""

    row: int
    message: str


@dataclass(frozen=True, eq=False)
class Scored:
    """Measurements of one law at predictions and scales."""

    rows: slice
    further: slice  # the rows of their scales; empty where these are known
    density: Density
    values: np.ndarray
    mu: np.ndarray
    s: np.ndarray
    by_mu: np.ndarray  # derivatives of s
    by_entries: np.ndarray

    @property
    def is_exact(self) -> bool:
        """Whether predictions differ from measurements by no more than rounding."""
        values, mu, base = self.values, self.mu, self.density.law.logarithm
        if base:
            with np.errstate(divide="ignore"):
                values, mu = np.log(values) / base, np.log(mu) / base
        largest = float(np.abs(values).max(initial=1.0 if base else 0.0))
        return bool(np.sqrt(np.mean((mu - values) ** 2)) <= ROUNDING * largest)


@dataclass(frozen=True, eq=False)
class Standing:
    """What scoring knows at a point beside residuals and Jacobian."""

    cost: float  # the exact negative log-likelihood of all measurements that are no squares
    prior: float  # that of the priors
    positions: np.ndarray  # of what every row is about: J is the derivative of this, times `roots`
    roots: np.ndarray
    parts: tuple[Scored, ...]
    terms: tuple[Term, ...]  # of the priors
    last: slice  # their rows

    @property
    def information_roots(self) -> np.ndarray:
        """The roots by the expected information, which may differ from those of a step."""
        roots = self.roots.copy()
        for part in self.parts:
            by_mu, by_s = part.density.law.information(part.mu, part.s)
            slope_mu, slope_s = _slopes(part.density, part.mu, part.s)
            roots[part.rows] = np.sqrt(by_mu) * slope_mu
            if part.density.varies:
                roots[part.further] = np.sqrt(by_s) * slope_s
        roots[self.last] = np.sqrt([term.information for term in self.terms])
        return roots


@dataclass(frozen=True, eq=False)
class Scoring:
    """The rows of a misfit: measurements, then scales that are not known, then priors."""

    measurements: Measurements
    priors: tuple[Truncated, ...] = ()

    @cached_property
    def blocks(self) -> list[tuple[slice, slice, Density, np.ndarray]]:
        """Where the measurements of every law stand, and where their scales do; those of one output that follow each
        other with one law are together."""
        found = list[tuple[slice, Density]]()
        for rows, block in zip(self.measurements.rows, self.measurements.blocks, strict=True):
            if block.density is None:
                continue
            before = found[-1] if found else None
            if before is not None and before[0].stop == rows.start and before[1].key == block.density.key:
                rows = slice(before[0].start, rows.stop)
                found.pop()
            found.append((rows, block.density))
        end, parts = len(self.measurements.values), []
        for rows, density in found:
            size = rows.stop - rows.start if density.varies else 0
            parts.append((rows, slice(end, end + size), density, self.measurements.values[rows]))
            end += size
        return parts

    @cached_property
    def rows(self) -> int:
        points = len(self.measurements.values)
        return points + sum(b.stop - b.start for _, b, _, _ in self.blocks) + len(self.priors)

    @cached_property
    def logarithms(self) -> list[tuple[slice, float]]:
        """Measurements whose logarithms are compared as squares, with that of the base."""
        pairs = zip(self.measurements.rows, self.measurements.blocks, strict=True)
        return [(rows, block.logarithm) for rows, block in pairs if block.density is None and block.logarithm]

    def score(self, z: np.ndarray, residuals: np.ndarray, jacobian: np.ndarray | None) -> Standing | Refusal:
        """Turn predictions, and in `jacobian` their derivatives, into rows, in their place."""
        for rows, logarithm in self.logarithms:
            mu = residuals[rows].copy()
            if (bad := ~(mu > 0)).any():
                return _refusal(rows, bad)
            residuals[rows] = np.log(mu) / logarithm
            if jacobian is not None:
                jacobian[rows] /= (mu * logarithm)[:, None]
        parts, squares = [], np.ones(len(residuals), dtype=bool)
        for rows, further, density, values in self.blocks:
            found = _scored(rows, further, density, values, residuals[rows], z)
            if isinstance(found, Refusal):
                return found
            parts.append(found)
            squares[rows] = squares[further] = False
        measured = self.measurements
        points = len(measured.values)
        squares[points:] = False
        residuals[squares] = (residuals[:points] - measured.targets)[squares[:points]]
        if not measured.plain:
            residuals[:points] /= measured.shapes
            if jacobian is not None:
                jacobian[:points] /= measured.shapes[:, None]
        positions, roots = residuals.copy(), np.ones(len(residuals))
        cost = sum(_fill(part, residuals, jacobian, positions, roots) for part in parts)
        last = slice(self.rows - len(self.priors), self.rows)
        terms = self._enter(z, last, residuals, jacobian, positions, roots)
        return Standing(cost, sum(t.cost for t in terms), positions, roots, tuple(parts), terms, last)

    def _enter(
        self,
        z: np.ndarray,
        last: slice,
        residuals: np.ndarray,
        jacobian: np.ndarray | None,
        positions: np.ndarray,
        roots: np.ndarray,
    ) -> tuple[Term, ...]:
        """The rows of the priors."""
        terms = tuple(one.at(float(z[one.entry])) for one in self.priors)
        entries = [one.entry for one in self.priors]
        positions[last], roots[last] = z[entries], np.sqrt([term.weight for term in terms])
        residuals[last] = _over(np.array([term.slope for term in terms]), roots[last])
        if jacobian is not None:
            jacobian[np.arange(last.start, last.stop), entries] = roots[last]
        return terms


def tuned(
    z: np.ndarray,
    parts: Sequence[Scored],
    entries: np.ndarray,
    box: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """z with the positive unknowns that only scales depend on at their most likely values for these predictions,
    within a box of z; one that is held on its bound lets the others go on."""
    if not len(entries):
        return z.copy()
    low, high = (side[entries] for side in box) if box is not None else (0.0, np.inf)
    alike, here, damping = _alike(parts), z.copy(), 0.0
    cost, gradient, curvature = _by_scales(alike, here, entries)
    for _ in range(_TUNING):
        at = here[entries]
        held = ((at <= low) & (gradient > 0)) | ((at >= high) & (gradient < 0))
        slope, matrix = np.where(held, 0.0, gradient), np.where(held[:, None] | held, 0.0, curvature)
        matrix = matrix + np.diag(damping * matrix.diagonal() + 1e-9)
        step = -np.linalg.lstsq(matrix, slope, rcond=None)[0]
        if not np.all(np.isfinite(step)) or -float(slope @ step) < _GAINED:
            break
        there = here.copy()
        there[entries] = np.clip(at * np.exp(np.clip(step, -_LONGEST, _LONGEST)), low, high)
        found = _by_scales(alike, there, entries)
        if found[0] < cost:
            here, (cost, gradient, curvature), damping = there, found, damping / _EASED
        else:
            damping = max(_EASED * damping, _DAMPED)
    return here


def _by_scales(
    alike: Sequence[tuple[Density, np.ndarray, np.ndarray]], z: np.ndarray, entries: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """The negative log-likelihood, its gradient by the logarithms of these entries and its expected curvature."""
    place = {int(entry): i for i, entry in enumerate(entries)}
    cost, gradient, curvature = 0.0, np.zeros(len(entries)), np.zeros((len(entries), len(entries)))
    for density, values, mu in alike:
        s, _, by_entries = density.scales(mu, z)
        terms = density.terms(values, mu, s)
        rows = np.zeros((len(entries), len(s)))
        for entry, row in zip(density.entries.tolist(), by_entries, strict=True):
            if entry in place:
                rows[place[entry]] = row * z[entry]
        cost += float(terms.costs.sum())
        gradient += rows @ terms.by_s
        curvature += (rows * terms.weight_s) @ rows.T
    return cost, gradient, curvature


def _alike(parts: Sequence[Scored]) -> list[tuple[Density, np.ndarray, np.ndarray]]:
    """Laws with all their measurements and predictions: an output mostly has the same one in many experiments."""
    found: dict[Any, list[Scored]] = {}
    for part in parts:
        found.setdefault(part.density.key, []).append(part)
    return [
        (own[0].density, np.concatenate([one.values for one in own]), np.concatenate([one.mu for one in own]))
        for own in found.values()
    ]


def _scored(
    rows: slice, further: slice, density: Density, values: np.ndarray, mu: np.ndarray, z: np.ndarray
) -> Scored | Refusal:
    """Measurements at their predictions, if their law allows these."""
    mu = mu.copy()
    if density.law.positive:
        least = 0.0 if density.law.logarithm else -_ROUNDED * (1 + float(values.max(initial=0.0)))
        bad = ~(mu > 0) & ((values > 0) | ~(mu >= least))
        if bad.any():
            return _refusal(rows, bad)
        mu = np.maximum(mu, 0.0)
    s, by_mu, by_entries = density.scales(mu, z)
    if (bad := ~((s > 0) & np.isfinite(s))).any():
        return Refusal(rows.start + int(np.argmax(bad)), f"the scale of the noise of {density.output} is not positive")
    return Scored(rows, further, density, values, mu, s, by_mu, by_entries)


def _refusal(rows: slice, bad: np.ndarray) -> Refusal:
    return Refusal(rows.start + int(np.argmax(bad)), "an output is not positive, as its noise demands")


def _fill(
    part: Scored,
    residuals: np.ndarray,
    jacobian: np.ndarray | None,
    positions: np.ndarray,
    roots: np.ndarray,
) -> float:
    """The rows of one law, and its negative log-likelihood."""
    density, rows, further, mu = part.density, part.rows, part.further, part.mu
    terms = density.terms(part.values, mu, part.s)
    root = np.sqrt(terms.weight_mu)
    slope_mu, slope_s = _slopes(density, mu, part.s)
    positions[rows] = np.log(mu) if density.law.logarithm else mu
    residuals[rows], roots[rows] = _over(terms.by_mu, root), root * slope_mu
    if density.varies:
        root_s = np.sqrt(terms.weight_s)
        positions[further], roots[further] = np.log(part.s), root_s * slope_s
        residuals[further] = _over(terms.by_s, root_s)
        if jacobian is not None:
            jacobian[further] = (root_s * part.by_mu)[:, None] * jacobian[rows]
            jacobian[further.start : further.stop, density.entries] += (root_s * part.by_entries).T
    if jacobian is not None:
        jacobian[rows] *= root[:, None]
    return float(terms.costs.sum())


def _slopes(density: Density, mu: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From derivatives by positions to those by mu and s: positions are logarithms where a law is of logarithms."""
    return (mu if density.law.logarithm else np.ones_like(mu)), s


def _over(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """A ratio that is zero where nothing is weighed."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)
