"""Measurements: every measured value of a problem as one vector, output by output and experiment by experiment.

A part of them (the first part of every experiment, or a few points of each series) is again such a vector, so that a
search may look at less than all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from odejet.data.censored import Limits
from odejet.problem.chains import Chain
from odejet.problem.laws import Density

ROUNDING = 16 * float(np.finfo(float).eps)
"""Of the largest value: what rounding leaves in a simulated output."""

DECADES = 1e3
"""The largest value beside the median of an output that spans decades."""

NEARBY, DIP = 50, 0.1
"""Rounding is relative to the largest values of such a part of a series, times this."""


@dataclass(frozen=True, eq=False)
class Block:
    """The measurements of one output in one experiment."""

    experiment: int
    output: str
    times: np.ndarray
    values: np.ndarray
    shapes: np.ndarray  # the standard deviations where the noise level is one
    logarithm: float = 0.0  # of the base in which values are compared; zero where they are as they are
    density: Density | None = None  # a law with a scale of its own, in place of a level times shapes
    limits: Limits | None = None  # of values that are censored; such a block has a law

    @cached_property
    def targets(self) -> np.ndarray:
        """What a prediction is compared with: the values, or their logarithms."""
        return np.log(self.values) / self.logarithm if self.logarithm else self.values

    @cached_property
    def chain(self) -> Chain | None:
        """Which measurement the error of each one persists from; None where errors are independent."""
        return Chain.of(self.times) if self.density is not None and self.density.correlated else None

    def at(self, chosen: np.ndarray) -> Block:
        limits = None if self.limits is None else self.limits.at(chosen)
        parts = {"times": self.times[chosen], "values": self.values[chosen], "shapes": self.shapes[chosen]}
        return replace(self, **parts, limits=limits)

    @property
    def censored(self) -> np.ndarray:
        """Which values are known only to lie between limits."""
        return np.zeros(len(self.times), dtype=bool) if self.limits is None else self.limits.censored


@dataclass(frozen=True, eq=False)
class Measurements:
    """Blocks in the order of outputs, then experiments, as one vector."""

    outputs: tuple[str, ...]
    blocks: tuple[Block, ...]

    @cached_property
    def values(self) -> np.ndarray:
        return np.concatenate([block.values for block in self.blocks])

    @cached_property
    def targets(self) -> np.ndarray:
        """The values, or their logarithms where these are compared."""
        return np.concatenate([block.targets for block in self.blocks])

    @cached_property
    def censored(self) -> np.ndarray:
        """Which values are known only to lie between limits."""
        return np.concatenate([block.censored for block in self.blocks])

    @cached_property
    def times(self) -> np.ndarray:
        return np.concatenate([block.times for block in self.blocks])

    @cached_property
    def shapes(self) -> np.ndarray:
        return np.concatenate([block.shapes for block in self.blocks])

    @cached_property
    def rows(self) -> tuple[slice, ...]:
        """Where each block stands."""
        ends = np.cumsum([0] + [len(block.times) for block in self.blocks]).tolist()
        return tuple(slice(a, b) for a, b in itertools.pairwise(ends))

    @cached_property
    def groups(self) -> tuple[slice, ...]:
        """Where each output stands."""
        found = []
        for name in self.outputs:
            own = [rows for rows, block in zip(self.rows, self.blocks, strict=True) if block.output == name]
            found.append(slice(own[0].start, own[-1].stop) if own else slice(0, 0))
        return tuple(found)

    def series(self, output: str) -> list[slice]:
        """Where the measurements of an output in each experiment stand."""
        return [rows for rows, block in zip(self.rows, self.blocks, strict=True) if block.output == output]

    @cached_property
    def counts(self) -> np.ndarray:
        return np.array([rows.stop - rows.start for rows in self.groups])

    @cached_property
    def floors(self) -> np.ndarray:
        """The level that rounding has, per output."""
        largest = np.array([np.abs(self.targets[rows] / self.shapes[rows]).max(initial=0.0) for rows in self.groups])
        largest = np.where(self.logarithmic, np.maximum(largest, 1.0), largest)
        return ROUNDING * np.where(self.densities, 1.0, np.where(largest > 0, largest, largest.max() or 1.0))

    @cached_property
    def scales(self) -> np.ndarray:
        """The spread of each output, in units of the shape of its noise."""
        return np.maximum([_scale(self.targets[rows] / self.shapes[rows]) for rows in self.groups], self.floors)

    @cached_property
    def plain(self) -> bool:
        """Whether all shapes are one."""
        return bool(np.all(self.shapes == 1.0))

    @cached_property
    def logarithmic(self) -> np.ndarray:
        """Which outputs are compared on the scale of logarithms."""
        return self._which(lambda block: block.logarithm != 0)

    @cached_property
    def densities(self) -> np.ndarray:
        """Which outputs have a law with a scale of its own."""
        return self._which(lambda block: block.density is not None)

    @cached_property
    def usual(self) -> bool:
        """Whether all noise is normal, a level times a shape."""
        return not (self.logarithmic.any() or self.densities.any())

    def _which(self, holds: Callable[[Block], bool]) -> np.ndarray:
        with_it = {block.output for block in self.blocks if holds(block)}
        return np.array([name in with_it for name in self.outputs])

    # --- parts ---

    def part(self, spans: Sequence[tuple[float, float]], fraction: float, points: int | None) -> Measurements:
        """The first part of every experiment, of which these are the first and last times, thinned to so many points
        per series."""
        blocks = []
        for block in self.blocks:
            start, end = spans[block.experiment]
            last = start + fraction * (end - start)
            last = last if fraction < 1 else np.inf  # what was measured at rest is in the whole only
            size = max(int(np.searchsorted(block.times, last, side="right")), 1)
            chosen = np.arange(size)
            if points is not None and size > points:
                chosen = np.unique(np.linspace(0, size - 1, points).round().astype(int))
            blocks.append(block.at(chosen))
        return replace(self, blocks=tuple(blocks))

    def only(self, experiment: int) -> Measurements:
        """The measurements of one experiment."""
        return replace(self, blocks=tuple(block for block in self.blocks if block.experiment == experiment))

    def squares(self, levels: np.ndarray) -> Measurements:
        """Give every output normal noise of one known level, for least squares far from an optimum.

        Where the law lets measurements be far away, only residuals of a fraction of the level are squared.
        """
        by_output = dict(zip(self.outputs, levels.tolist(), strict=True))
        blocks = (replace(one, density=one.density and one.density.rough(by_output[one.output])) for one in self.blocks)
        return replace(self, blocks=tuple(blocks))

    def by_rounding(self) -> Measurements | None:
        """With shapes relative to the output at the time, as rounding is; None where this is no other."""
        if not self.plain or not self.usual or not any(_spans_decades(self.values[rows]) for rows in self.groups):
            return None
        return replace(self, blocks=tuple(replace(one, shapes=_sizes_nearby(one.values)) for one in self.blocks))


def _spans_decades(values: np.ndarray) -> bool:
    sizes = np.abs(values)
    return bool(len(sizes) and sizes.max() > DECADES * np.median(sizes))


def _sizes_nearby(values: np.ndarray) -> np.ndarray:
    """How large an output is around each of its measurements: what crosses zero there is rounded like the rest."""
    sizes, reach = np.abs(values), max(len(values) // NEARBY, 1)
    padded = np.pad(sizes, reach, mode="edge")
    nearby = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(axis=1)
    return np.where(nearby > 0, np.maximum(sizes, DIP * nearby), sizes.max(initial=0.0) or 1.0)


class Limited(Protocol):
    """Values of which some may have limits."""

    @property
    def values(self) -> np.ndarray: ...

    @property
    def limits(self) -> Limits | None: ...


def limits_of(rows: Sequence[Limited]) -> Limits | None:
    """The limits of several blocks as one; None where nothing is censored."""
    if all(block.limits is None for block in rows):
        return None
    pairs = [(b.values, b.values) if b.limits is None else (b.limits.lower, b.limits.upper) for b in rows]
    lower, upper = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return Limits(lower, upper)


def _scale(values: np.ndarray) -> float:
    """The spread of an output, or its size if it does not vary."""
    if not len(values):
        return 1.0
    spread = float(values.std())
    return spread if spread > 1e-6 * float(np.abs(values).max()) else float(np.abs(values).max()) or 1.0
