"""Scoring: likelihoods and priors that are no sums of squares, as rows of least squares.

A measurement with prediction mu, scale s and weights w gives two rows: for the location the residual g / sqrt(w) with
the derivative sqrt(w) dmu/dz, where g is the derivative of its negative log-likelihood by mu, and the same for the
scale.  Added up, J'r is then the exact gradient of the negative log-likelihood and J'J its expected curvature, so that
a step of least squares is one of Fisher's scoring.  A prior is one more row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.data.censored import Limits
from odejet.objective.jacobian import Links, RowMap, ScaleRows
from odejet.objective.scored import Memory, Refusal, Scored, not_positive, scored
from odejet.problem.chains import Chain
from odejet.problem.distributions import Terms
from odejet.problem.laws import Density
from odejet.problem.measurements import Measurements, limits_of
from odejet.problem.priors import Term, Truncated

_TUNING, _LONGEST = 30, 1.0
"""Rounds in which scales are fitted to residuals as they are, and the longest step of the first, in logarithmic units;
each that goes down all of it is followed by one of twice the length, since noise may be off by many decades."""

_GAINED = 1e-3
"""A decrease of the negative log-likelihood that is worth no further round: what tells nothing may go anywhere."""

_LEFT = 1e-9
"""Of the information on a prediction: what is left of it at least where the scale is unknown, against rounding."""

_DAMPED, _EASED = 0.1, 10.0
"""The least damping after a step that did not go down, and by how much it changes."""


@dataclass(frozen=True, eq=False)
class Standing:
    """What scoring knows at a point beside residuals and Jacobian."""

    residuals: np.ndarray
    to_rows: RowMap  # from derivatives of predictions to those of the rows
    cost: float  # the exact negative log-likelihood of all measurements that are no squares
    prior: float  # that of the priors
    positions: np.ndarray  # of what every row is about: J is the derivative of this, times `roots`
    roots: np.ndarray
    parts: tuple[Scored, ...]
    terms: tuple[Term, ...]  # of the priors
    last: slice  # their rows
    links: Links | None = None  # what weighted rows have of others, where errors persist

    def weighed(self, positions: np.ndarray) -> np.ndarray:
        """Return positions, or changes of them, in units of the noise here."""
        return positions * self.roots if self.links is None else self.links.applied(positions * self.roots)

    @property
    def information_roots(self) -> np.ndarray:
        """The roots by the expected information, which may differ from those of a step."""
        roots = self.roots.copy()
        for part in self.parts:
            if part.memory is not None or (not part.density.law.orthogonal and part.density.varies):
                continue  # the weights of a step are the information
            by_mu, by_s = part.density.law.information(part.mu, part.s)
            slope_mu, slope_s = _slopes(part.density, part.mu, part.s)
            if part.limits is not None:
                _enter_observed(part, roots, np.sqrt(by_mu) * slope_mu, np.sqrt(by_s) * slope_s)
                continue
            roots[part.rows] = np.sqrt(by_mu) * slope_mu
            if part.density.scale_each:
                roots[part.further] = np.sqrt(by_s) * slope_s
            elif part.density.varies:
                roots[part.further] = np.sqrt(by_s.sum()) * slope_s[:1]
        roots[self.last] = np.sqrt([term.information for term in self.terms])
        return roots

    @property
    def information_ratio(self) -> np.ndarray:
        """What makes the derivatives of a step those of the expected information."""
        with np.errstate(over="ignore", invalid="ignore"):  # weights of a step may be zero or too large for a number
            ratio = self.information_roots / np.where(self.roots > 0, self.roots, 1.0)
        return np.where(np.isfinite(ratio), ratio, 0.0)


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
            # Where a scale is the same for all, so is its row: one row stands for all of them.
            size = rows.stop - rows.start if density.scale_each else density.noise_rows
            parts.append((rows, slice(end, end + size), density, self.measurements.values[rows]))
            end += size
        return parts

    @cached_property
    def limits(self) -> dict[int, Limits | None]:
        """The limits of censored values, by the first row of each of the `blocks`."""
        if all(block.limits is None for block in self.measurements.blocks):
            return {rows.start: None for rows, _, _, _ in self.blocks}
        pairs = list(zip(self.measurements.rows, self.measurements.blocks, strict=True))
        return {
            rows.start: limits_of([block for own, block in pairs if rows.start <= own.start < rows.stop])
            for rows, _, _, _ in self.blocks
        }

    @cached_property
    def chains(self) -> dict[int, Chain | None]:
        """Which measurement the error of each one persists from, by the first row of each of the `blocks`."""
        pairs = list(zip(self.measurements.rows, self.measurements.blocks, strict=True))
        own = {
            rows.start: [block.chain for place, block in pairs if rows.start <= place.start < rows.stop and block.chain]
            for rows, _, density, _ in self.blocks
            if density.correlated
        }
        return {
            rows.start: Chain.joined(own[rows.start]) if rows.start in own else None for rows, _, _, _ in self.blocks
        }

    @cached_property
    def rows(self) -> int:
        points = len(self.measurements.values)
        return points + sum(b.stop - b.start for _, b, _, _ in self.blocks) + len(self.priors)

    @cached_property
    def logarithms(self) -> list[tuple[slice, float]]:
        """Measurements whose logarithms are compared as squares, with that of the base."""
        pairs = zip(self.measurements.rows, self.measurements.blocks, strict=True)
        return [(rows, block.logarithm) for rows, block in pairs if block.density is None and block.logarithm]

    def score(self, z: np.ndarray, predicted: np.ndarray) -> Standing | Refusal:
        """Return the rows that belong to predictions, and how their derivatives follow from those of predictions."""
        measured = self.measurements
        points = len(measured.values)
        compared = self.compared(predicted)
        if isinstance(compared, Refusal):
            return compared
        residuals, factors = np.empty(self.rows), np.ones(points) if compared[1] is None else compared[1]
        residuals[:points] = compared[0][:points]
        parts = list[Scored]()
        for rows, further, density, values in self.blocks:
            found = self.part(rows, further, density, values, predicted, z)
            if isinstance(found, Refusal):
                return found
            parts.append(found)
        residuals[:points][self.squares] -= measured.targets[self.squares]
        if not measured.plain:
            residuals[:points] /= measured.shapes
            factors /= measured.shapes
        positions, roots = residuals.copy(), np.ones(len(residuals))
        filled = [_fill(part, residuals, factors, positions, roots) for part in parts]
        links = self._links(parts)
        scales = tuple(scale for _, scale in filled if scale is not None)
        last = slice(self.rows - len(self.priors), self.rows)
        terms = self._enter(z, last, residuals, positions, roots)
        constants = self._constants(parts, roots, last)
        near = None if links is None else links.at(slice(points))
        to_rows = RowMap(self.rows, factors, scales, *self.constant_rows, constants, near)
        cost, prior = sum(cost for cost, _ in filled), sum(term.cost for term in terms)
        return Standing(residuals, to_rows, cost, prior, positions, roots, tuple(parts), terms, last, links)

    def compared(self, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray | None] | Refusal:
        """Return predictions as they are compared, logarithms where these are, and the derivatives by predictions; None
        where all are one."""
        if not self.logarithms:
            return predicted, None
        compared, factors = predicted.copy(), np.ones(len(self.measurements.values))
        for rows, logarithm in self.logarithms:
            mu = predicted[rows]
            if (bad := ~(mu > 0)).any():
                return not_positive(rows, bad)
            compared[rows], factors[rows] = np.log(mu) / logarithm, 1 / (mu * logarithm)
        return compared, factors

    def part(
        self,
        rows: slice,
        further: slice,
        density: Density,
        values: np.ndarray,
        predicted: np.ndarray,
        z: np.ndarray,
    ) -> Scored | Refusal:
        """Return the measurements of a block at their predictions."""
        limits, chain = self.limits[rows.start], self.chains[rows.start]
        return scored(rows, further, density, values, limits, chain, predicted[rows], z)

    @cached_property
    def squares(self) -> np.ndarray:
        """Which measurements are compared as squares."""
        found = np.ones(len(self.measurements.values), dtype=bool)
        for rows, _, _, _ in self.blocks:
            found[rows] = False
        return found

    @cached_property
    def constant_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that depend on unknowns alone, and these: scales that are the same for all, then priors."""
        rows, entries = list[int](), list[int]()
        for _, further, density, _ in self.blocks:
            if not density.scale_each:
                rows += [row for row in range(further.start, further.stop) for _ in density.entries]
                entries += density.entries.tolist() * (further.stop - further.start)
        rows += range(self.rows - len(self.priors), self.rows)
        entries += [prior.entry for prior in self.priors]
        return np.array(rows, dtype=int), np.array(entries, dtype=int)

    def _constants(self, parts: Sequence[Scored], roots: np.ndarray, last: slice) -> np.ndarray:
        """The derivatives of these rows; the roots of scales are by their logarithms."""
        own = [
            roots[part.further] / part.s[0] * part.by_entries[:, 0]
            if part.memory is None
            else part.memory.noise_rows.derivatives.ravel()
            for part in parts
            if part.density.noise_rows and not part.density.scale_each
        ]
        return np.concatenate([*own, roots[last]])

    def _links(self, parts: Sequence[Scored]) -> Links | None:
        """What rows have of others, where errors persist."""
        if all(part.memory is None for part in parts):
            return None
        found = Links(np.zeros(self.rows, dtype=int), np.zeros(self.rows))
        for part in parts:
            if part.memory is not None:
                found.enter(part.rows, part.memory.links)
                found.enter(part.further, part.memory.noise_rows.links)
        return found

    def _enter(
        self, z: np.ndarray, last: slice, residuals: np.ndarray, positions: np.ndarray, roots: np.ndarray
    ) -> tuple[Term, ...]:
        """Enter the rows of the priors."""
        terms = tuple(one.at(float(z[one.entry])) for one in self.priors)
        entries = [one.entry for one in self.priors]
        positions[last], roots[last] = z[entries], np.sqrt([term.weight for term in terms])
        residuals[last] = _over(np.array([term.slope for term in terms]), roots[last])
        return terms

    def of_block(self, number: int) -> Scoring:
        """Return the scoring of one block of measurements by itself."""
        if number not in self._by_block:
            block = self.measurements.blocks[number]
            self._by_block[number] = Scoring(replace(self.measurements, blocks=(block,)))
        return self._by_block[number]

    @cached_property
    def _by_block(self) -> dict[int, Scoring]:
        return {}

    @cached_property
    def scale_rows(self) -> dict[int, int]:
        """Where the rows of the scales of a block begin, by the first of its measurements."""
        starts = [rows.start for rows in self.measurements.rows]
        return {
            start: further.start + start - rows.start
            for rows, further, density, _ in self.blocks
            if density.scale_each
            for start in starts
            if rows.start <= start < rows.stop
        }


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
    alike, here, damping, bend, longest = _alike(parts), z.copy(), 0.0, 1.0, _LONGEST
    cost, gradient, curvature = _by_scales(alike, here, entries)
    for _ in range(_TUNING):
        at = here[entries]
        held = ((at <= low) & (gradient > 0)) | ((at >= high) & (gradient < 0))
        slope, matrix = np.where(held, 0.0, gradient), np.where(held[:, None] | held, 0.0, curvature)
        matrix = bend * matrix + np.diag(damping * matrix.diagonal() + 1e-9)
        if not (np.isfinite(matrix).all() and np.isfinite(slope).all()):  # curvature that is too large for a number
            break
        step = -np.linalg.lstsq(matrix, slope, rcond=None)[0]
        if not np.all(np.isfinite(step)) or -float(slope @ step) < _GAINED:
            break
        there = here.copy()
        there[entries] = np.clip(at * np.exp(np.clip(step, -longest, longest)), low, high)
        found = _by_scales(alike, there, entries)
        bend = _bend(np.log(there[entries] / at), found[1] - gradient, found[2])
        if found[0] < cost:
            here, (cost, gradient, curvature), damping = there, found, damping / _EASED
            longest *= 2.0 if np.abs(step).max() > longest else 1.0
        else:
            damping, longest = max(_EASED * damping, _DAMPED), _LONGEST
    return here


def _bend(move: np.ndarray, change: np.ndarray, curvature: np.ndarray) -> float:
    """How much more the likelihood bends along a move than is expected of it, at least once.

    Of predictions that are far off it bends more than of true ones, and steps by what is expected alone would go from
    one side of the best scale to the other without end.
    """
    expected, seen = float(move @ curvature @ move), float(move @ change)
    return max(seen / expected, 1.0) if math.isfinite(seen) and 0 < expected < math.inf else 1.0


def _by_scales(alike: Sequence[_Alike], z: np.ndarray, entries: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The negative log-likelihood, its gradient by the logarithms of these entries and its expected curvature."""
    place = {int(entry): i for i, entry in enumerate(entries)}
    cost, gradient, curvature = 0.0, np.zeros(len(entries)), np.zeros((len(entries), len(entries)))
    for one in alike:
        found = scored(slice(0, len(one.mu)), slice(0, 0), one.density, one.values, one.limits, one.chain, one.mu, z)
        if isinstance(found, Refusal):
            return math.inf, gradient, curvature
        memory, terms = found.memory, found.terms
        by_entries = found.by_entries if memory is None else memory.by_entries.T
        rows = np.zeros((len(entries), by_entries.shape[1]))
        for entry, row in zip(one.density.entries.tolist(), by_entries, strict=True):
            if entry in place:
                rows[place[entry]] = row * z[entry]
        cost += float(found.costs.sum())
        if memory is None:
            gradient += rows @ terms.by_s
            curvature += (rows * terms.weight_s) @ rows.T
        else:
            gradient += rows @ memory.innovations.gradient
            curvature += rows @ memory.innovations.information @ rows.T
    return cost, gradient, curvature


@dataclass(frozen=True, eq=False)
class _Alike:
    """Measurements and predictions of one law."""

    density: Density
    values: np.ndarray
    mu: np.ndarray
    limits: Limits | None
    chain: Chain | None


def _alike(parts: Sequence[Scored]) -> list[_Alike]:
    """Laws with all their measurements and predictions: an output mostly has the same one in many experiments."""
    found: dict[Any, list[Scored]] = {}
    for part in parts:
        found.setdefault(part.density.key, []).append(part)
    return [
        _Alike(
            own[0].density,
            np.concatenate([one.values for one in own]),
            np.concatenate([one.mu for one in own]),
            limits_of(own),
            Chain.joined([one.memory.innovations.chain for one in own if one.memory]) if own[0].memory else None,
        )
        for own in found.values()
    ]


def _fill(
    part: Scored, residuals: np.ndarray, factors: np.ndarray, positions: np.ndarray, roots: np.ndarray
) -> tuple[float, ScaleRows | None]:
    """Enter the rows of one law; return its negative log-likelihood, and how the rows of its scales come about."""
    density, rows, further, mu = part.density, part.rows, part.further, part.mu
    if part.memory is not None:
        return _fill_persistent(part, part.memory, residuals, factors, positions, roots), None
    terms = part.terms
    root = np.sqrt(terms.weight_mu)
    slope_mu, slope_s = _slopes(density, mu, part.s)
    positions[rows] = np.log(mu) if density.law.logarithm else mu
    residuals[rows], roots[rows] = _over(terms.by_mu, root), root * slope_mu
    factors[rows] *= root
    if not density.varies:
        return float(terms.costs.sum()), None
    if not density.scale_each:
        root_s = np.sqrt(terms.weight_s.sum())
        positions[further], roots[further] = np.log(part.s[:1]), root_s * slope_s[:1]
        residuals[further] = _over(terms.by_s.sum(), root_s)
        return float(terms.costs.sum()), None
    root_s = np.sqrt(terms.weight_s)
    positions[further], roots[further] = np.log(part.s), root_s * slope_s
    residuals[further] = _over(terms.by_s, root_s)
    by_mu = part.by_mu
    if terms.cross is not None:
        by_mu = by_mu + _couple(part, terms, residuals, factors, positions, roots)
    scale = ScaleRows(rows, further, root_s * by_mu, density.entries, root_s * part.by_entries)
    return float(terms.costs.sum()), scale


def _fill_persistent(
    part: Scored, memory: Memory, residuals: np.ndarray, factors: np.ndarray, positions: np.ndarray, roots: np.ndarray
) -> float:
    """Enter the rows of innovations and of the noise that these tell of; return the negative log-likelihood."""
    density, rows, mu = part.density, part.rows, part.mu
    root = np.sqrt(density.law.information(mu, part.s)[0] / memory.innovations.left)
    positions[rows] = np.log(mu) if density.law.logarithm else mu
    residuals[rows], roots[rows] = memory.innovations.values, root * _slopes(density, mu, part.s)[0]
    factors[rows] *= root
    if density.noise_rows:
        noise = memory.noise_rows
        residuals[part.further], roots[part.further], positions[part.further] = (
            noise.residuals,
            noise.roots,
            noise.positions,
        )
    return float(part.costs.sum())


def _couple(
    part: Scored, terms: Terms, residuals: np.ndarray, factors: np.ndarray, positions: np.ndarray, roots: np.ndarray
) -> np.ndarray:
    """Take mixed information on prediction and scale into their rows, and return by how much a scale's row feels the
    prediction.

    With the information [[a, c], [c, b]] the row of the scale is sqrt(b) (ds + c/b dmu), and what is left for that of
    the prediction is sqrt(a - c^2/b) dmu with the efficient score.
    """
    assert terms.cross is not None
    rows, slope_mu = part.rows, _slopes(part.density, part.mu, part.s)[0]
    share = _over(terms.cross, terms.weight_s)
    root = np.sqrt(np.maximum(terms.weight_mu - share * terms.cross, _LEFT * terms.weight_mu))
    factors[rows] *= _over(root, np.sqrt(terms.weight_mu))
    residuals[rows], roots[rows] = _over(terms.by_mu - share * terms.by_s, root), root * slope_mu
    positions[part.further] += share / part.s * (part.mu - part.values)
    return share


def _enter_observed(part: Scored, roots: np.ndarray, by_mu: np.ndarray, by_s: np.ndarray) -> None:
    """Enter the roots of measurements without limits; those of others have the information that is left of them."""
    assert part.limits is not None
    seen = ~part.limits.censored
    roots[part.rows] = np.where(seen, by_mu, roots[part.rows])
    if part.density.varies:
        roots[part.further] = np.where(seen, by_s, roots[part.further])


def _slopes(density: Density, mu: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From derivatives by positions to those by mu and s: positions are logarithms where a law is of logarithms."""
    return (mu if density.law.logarithm else np.ones_like(mu)), s


def _over(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """A ratio that is zero where nothing is weighed."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)
