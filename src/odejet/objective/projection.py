"""Projection: a misfit without the scales and offsets of its outputs, and the sizes of their noise, which follow from
all other unknowns.

An output with scales and offsets c is B c + b, with B and b from one simulation with scales of one and offsets of zero.
The best c within its bounds is found by least squares, of logarithms where these are compared; the size of noise that
has one is its rms residual.  Noise that depends on the output is found together with c (see `joint`).  What is left is
a misfit in fewer unknowns (Golub and Pereyra 1973) with the residuals (I - QQ') r, where Q spans the derivatives by all
that was eliminated and is not held on a bound, and Kaufman's (1975) derivative (I - QQ') J of them.  Its gradient is
exact.

The search profits twice: there is less to look for, and no descent begins by scaling a course that does not fit away
to a constant, from where no way leads on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odejet.model.expressions import Symbol, names
from odejet.objective.affine import Affine
from odejet.objective.evaluation import Aim, Eliminated, Evaluation
from odejet.objective.jacobian import DenseJacobian
from odejet.objective.joint import JointNoise
from odejet.objective.line import LinearOutput
from odejet.objective.misfit import Misfit
from odejet.objective.reduced import AnyMisfit, Reduced
from odejet.problem.coordinates import Coordinates
from odejet.problem.measurements import Measurements

_RANK = 1e-12
"""Of the largest singular value: scales and offsets that the data do not tell apart."""

_HELD = 1e-3
"""The cosine of residuals and a column from which on an unknown is not free: on its way to zero it stays where a bound
of the others, or the scale of logarithms, leaves it."""

_TURNS, _SAME = 20, 1e-6
"""Turns in which scales, offsets and sizes of noise follow from each other, and a relative change that ends them."""


def projected(misfit: AnyMisfit, frame: Coordinates) -> Reduced[Elimination] | None:
    """The misfit without scales and offsets; None where there are none."""
    if isinstance(misfit, Reduced) or misfit.in_blocks or not misfit.weighted:
        return None
    found = _eliminable(misfit, frame, misfit.affine)
    gone = {entry for one in found for entry in (*one.scales, *one.offsets)}
    if not gone:
        return None
    found += _without_scales(misfit, frame, found)
    sizes = _sizes(misfit) | {entry for one in found if one.noisy for entry in _own_noise(misfit, frame, one)}
    if len(gone | sizes) == len(misfit.unknowns):
        return None
    return Reduced(misfit, Elimination(misfit, frame, found, np.array(sorted(gone | sizes))))


def _eliminable(misfit: Misfit, frame: Coordinates, found: Sequence[Affine]) -> tuple[Affine, ...]:
    """Without those that have priors, or that may make a logarithm impossible."""
    stated = {one.entry for one in misfit.priors}
    kept = []
    for one in found:
        logarithmic = bool(misfit.measurements.logarithmic[one.output])
        free = {entry for entry in (*one.scales, *one.offsets) if entry not in stated}
        if logarithmic:  # a scale of logarithms is positive anyway
            free -= {entry for entry in one.offsets if frame.low[entry] <= 0}
        if not free >= set(one.offsets):  # beside an offset that stays it is not known what a scale stretches
            free -= set(one.scales)
        if logarithmic and not free >= set(one.scales):
            free = set()
        if one.noisy and not all(frame.signs[entry] > 0 for entry in free):  # these are found by their logarithms
            free = set()
        own = replace(
            one,
            stretched=tuple(pair for pair in one.stretched if pair[1] in free),
            shifted=tuple(pair for pair in one.shifted if pair[1] in free),
        )
        if own.scales or own.offsets:
            kept.append(own)
    return tuple(kept)


def _without_scales(misfit: Misfit, frame: Coordinates, found: Sequence[Affine]) -> tuple[Affine, ...]:
    """Outputs with no scales or offsets to be found whose noise depends on them and on what is theirs alone."""
    with_scales, kept = {one.output for one in found}, []
    for number, output in enumerate(misfit.outputs):
        laws = [block.density for block in misfit.measurements.blocks if block.output == output and block.density]
        squares = all(law.of_squares for law in laws)
        noisy = squares and any(output in names(law.scale) for law in laws)
        plain = Affine(number, (), (), noisy=True)
        if number not in with_scales and noisy and _own_noise(misfit, frame, plain):
            kept.append(plain)
    return tuple(kept)


def _sizes(misfit: Misfit) -> set[int]:
    """Sizes of noise that are rms residuals: what stands alone as the scale of a law of squares, wherever it does."""
    stated = {one.entry for one in misfit.priors}
    found = {int(entry) for entry in misfit.noise_entries} - stated
    for block in misfit.measurements.blocks:
        if block.density is not None and not (block.density.of_squares and isinstance(block.density.scale, Symbol)):
            found -= set(block.density.entries.tolist())
    return found


def _own_noise(misfit: Misfit, frame: Coordinates, part: Affine) -> list[int]:
    """What only the noise of an output depends on, that of no other."""
    output = misfit.outputs[part.output]
    taken = {one.entry for one in misfit.priors}
    own = set[int]()
    for block in misfit.measurements.blocks:
        entries = set() if block.density is None else set(block.density.entries.tolist())
        own, taken = (own | entries, taken) if block.output == output else (own, taken | entries)
    return sorted(entry for entry in own & set(misfit.noise_entries.tolist()) - taken if frame.signs[entry] > 0)


@dataclass(frozen=True, eq=False)
class Elimination:
    """All unknowns from those that others do not follow from."""

    whole: Misfit
    frame: Coordinates
    parts: tuple[Affine, ...]
    gone: np.ndarray  # entries of z that are eliminated
    streams = False  # scales are only known when all experiments are simulated, and derivatives depend on them

    @cached_property
    def kept(self) -> np.ndarray:
        return np.setdiff1d(np.arange(len(self.whole.unknowns)), self.gone)

    @property
    def measurements(self) -> Measurements:
        return self.whole.measurements

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.whole.outputs

    @cached_property
    def lines(self) -> tuple[LinearOutput, ...]:
        """The outputs that have scales or offsets."""
        return tuple(LinearOutput.of(self.measurements, part, self.frame) for part in self.parts)

    @cached_property
    def joints(self) -> dict[int, JointNoise]:
        """Those of them whose noise depends on the output, by their numbers."""
        box, gone, found = (self.frame.low, self.frame.high), set(self.gone.tolist()), dict[int, JointNoise]()
        for number, (part, line) in enumerate(zip(self.parts, self.lines, strict=True)):
            if part.output in self.noisy:
                noise = [entry for entry in _own_noise(self.whole, self.frame, part) if entry in gone]
                output, own = self.outputs[part.output], np.array(noise, dtype=int)
                found[number] = JointNoise.of(line, output, own, self.measurements, box)
        return found

    @cached_property
    def noisy(self) -> set[int]:
        """Outputs whose scales and offsets are eliminated with noise that depends on them."""
        laws = {block.output for block in self.measurements.blocks if block.density is not None}
        return {part.output for part in self.parts if part.noisy and self.outputs[part.output] in laws}

    @cached_property
    def plain_values(self) -> np.ndarray:
        """Scales of one and offsets of zero, with which outputs are simulated; noise of the size of its unit."""
        scales = {entry for part in self.parts for entry in part.scales}
        offsets = {entry for part in self.parts for entry in part.offsets}
        units = self.frame.inside(self.frame.units)
        return np.array([1.0 if e in scales else 0.0 if e in offsets else units[e] for e in self.gone.tolist()])

    @cached_property
    def sizes(self) -> dict[int, np.ndarray]:
        """The measurements whose noise has each of the sizes that are eliminated."""
        gone, found = set(self.gone.tolist()), dict[int, list[np.ndarray]]()
        for rows, block in zip(self.measurements.rows, self.measurements.blocks, strict=True):
            noisy = self.outputs.index(block.output) in self.noisy
            for entry in () if noisy or block.density is None else block.density.entries.tolist():
                if entry in gone:
                    found.setdefault(entry, []).append(np.arange(rows.start, rows.stop))
        return {entry: np.concatenate(rows) for entry, rows in found.items()}

    def filled(self, z: np.ndarray, eliminated: np.ndarray | None = None) -> np.ndarray:
        """All unknowns, with these values of what is eliminated."""
        full = np.empty(len(self.whole.unknowns))
        full[self.kept], full[self.gone] = z, self.plain_values if eliminated is None else eliminated
        return full

    def evaluate(self, whole: Misfit, z: np.ndarray, jacobian: bool, deadline: float, aim: Aim | None) -> Evaluation:
        full = self.filled(z)
        found = whole.predicted(full, jacobian, deadline)
        if found.residuals is None:
            return found
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            outputs = self._fitted(full, found.residuals)
            if not np.isfinite(full).all():
                return replace(found, residuals=None, jacobian=None, message="an output is too large for a number")
            return self._projected(full, whole.compared(full, self._stretched(full, found, outputs)))

    # --- what follows from the others ---

    def _fitted(self, full: np.ndarray, plain: np.ndarray) -> np.ndarray:
        """Enter the best values of what is eliminated; the outputs with them."""
        outputs, mixed = plain.copy(), any(len(self._own_sizes(line)) > 1 for line in self.lines)
        for _ in range(_TURNS if mixed else 1):
            before = full[self.gone]
            sds = self._sds(full)
            for number, line in enumerate(self.lines):
                own = plain[line.rows]
                if number in self.joints:
                    full[self.joints[number].entries] = self.joints[number].best(own, full)
                else:
                    full[line.entries] = line.best(own, 1.0 if sds is None else sds[line.rows])
                outputs[line.rows] = line.at(own, full[line.entries])
            self._measure(full, outputs)
            if np.abs(full[self.gone] - before).max() <= _SAME * np.abs(before).max():
                break
        return outputs

    def _own_sizes(self, line: LinearOutput) -> list[int]:
        """The sizes of noise that the measurements of an output have."""
        return [
            entry for entry, rows in self.sizes.items() if np.any((rows >= line.rows.start) & (rows < line.rows.stop))
        ]

    def _sds(self, full: np.ndarray) -> np.ndarray | None:
        """The noise of every measurement but for a factor of its output; None where it is the same for all of one."""
        sds, laws = self.whole.shapes.copy(), False
        if len(self.joints) == len(self.lines):
            return None
        for rows, block in zip(self.measurements.rows, self.measurements.blocks, strict=True):
            if block.density is not None:
                laws = True
                sds[rows] = block.density.scales(block.values, full)[0]
        return sds if laws or not self.measurements.plain else None

    def _measure(self, full: np.ndarray, outputs: np.ndarray) -> None:
        """Enter the sizes of noise that residuals have, as far as their bounds allow."""
        if not self.sizes:
            return
        residuals = np.empty(self.whole.points)
        for rows, block in zip(self.measurements.rows, self.measurements.blocks, strict=True):
            base = block.density.law.logarithm if block.density is not None else 0.0
            mu, values = outputs[rows], block.values
            residuals[rows] = np.log(mu / values) / base if base else mu - values
        for entry, own in self.sizes.items():
            rms = math.sqrt(float(np.mean(residuals[own] ** 2)))
            full[entry] = min(max(rms, self.frame.low[entry]), self.frame.high[entry])

    def _stretched(self, full: np.ndarray, found: Evaluation, outputs: np.ndarray) -> Evaluation:
        """Predictions and their derivatives at the best scales and offsets."""
        if found.jacobian is None:
            return replace(found, residuals=outputs)
        assert found.residuals is not None
        jacobian = found.dense  # the matrix itself, which is used up
        for line in self.lines:
            rows, plain = line.rows, found.residuals[line.rows]
            jacobian[rows] *= line.factors(full[line.entries])[:, None]
            jacobian[rows.start : rows.stop, line.entries] = line.columns(plain)
        return replace(found, residuals=outputs)

    def _projected(self, full: np.ndarray, found: Evaluation) -> Evaluation:
        """An evaluation of all unknowns as a function of those that are left."""
        if found.residuals is None or found.jacobian is None:
            return found
        whole, values = found.dense, full[self.gone]
        held = (values <= self.frame.low[self.gone]) | (values >= self.frame.high[self.gone])
        held |= _slopes(found.residuals, whole[:, self.gone]) > _HELD
        basis, left = _basis(whole[:, self.gone[~held]]), whole[:, self.kept]
        left = left - basis @ (basis.T @ left)
        return replace(
            found, jacobian=DenseJacobian(left), eliminated=Eliminated(values, DenseJacobian(whole), held.any())
        )

    # --- for a search ---

    def tuned(self, whole: Misfit, z: np.ndarray, found: Evaluation) -> tuple[np.ndarray, Evaluation]:
        if found.eliminated is None:
            return z, found
        own = np.setdiff1d(whole.noise_entries, self.gone)
        full = self.filled(z, found.eliminated.values)
        full, again = whole.tuned(full, found, own, (self.frame.low, self.frame.high))
        return (z, found) if again is found else (full[self.kept], self._projected(full, again))

    def complete(self, found: Evaluation) -> Evaluation:
        """An evaluation at the best scales and offsets, as a function of all unknowns."""
        assert found.eliminated is not None
        return replace(found, jacobian=found.eliminated.jacobian, eliminated=None, predicted=None)

    def on(self, whole: Misfit) -> Elimination:
        return replace(self, whole=whole)


def _slopes(residuals: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The cosines of residuals and columns: zero where an unknown is at its best."""
    sizes = np.sqrt((columns**2).sum(axis=0) * (residuals @ residuals))
    return np.abs(residuals @ columns) / np.where(sizes > 0, sizes, 1.0)


def _basis(matrix: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the columns of a matrix, whatever their sizes."""
    sizes = np.sqrt((matrix**2).sum(axis=0))
    u, s, _ = np.linalg.svd(matrix[:, sizes > 0] / sizes[sizes > 0], full_matrices=False)
    return u[:, : int(np.count_nonzero(s > _RANK * s.max(initial=0.0)))]
