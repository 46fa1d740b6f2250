"""Comparison: results of methods on the same cells, and who found what.

A method that ran on a part of the cells is compared with odejet on that part only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import ceiling
from benchmarks.cells import Cell, Protocol
from benchmarks.methods import METHODS, PLAIN
from benchmarks.store import Result
from problems import systems

OURS = "odejet"
AS_GOOD = 0.05
"""A log-likelihood that is lower by less is as good."""
BEST_LIKELIHOOD, BEST_SQUARES = 0.5, 1e-3
"""Within how much of the log-likelihood, and of the sum of squares relative to it, a point is the best."""


class Results:
    """Results of the 25 systems by method and cell."""

    def __init__(self, results: Iterable[Result], protocol: Protocol) -> None:
        names = systems.names()
        self.protocol = protocol
        self.by_method: dict[str, dict[Cell, Result]] = {name: {} for name in METHODS}
        for result in results:
            if result.cell.system in names and result.method in self.by_method:
                self.by_method[result.method][result.cell] = result
        self.by_method = {name: complete_trials(found) for name, found in self.by_method.items() if found}

    @property
    def methods(self) -> list[str]:
        return list(self.by_method)

    @property
    def rivals(self) -> list[str]:
        """Methods that are neither odejet's own nor told the truth."""
        return [name for name in self.methods if not name.startswith(OURS) and not METHODS[name].knows_truth]

    def cells(self, *methods: str) -> list[Cell]:
        """The cells that all of these methods have."""
        return sorted(set.intersection(*(set(self.by_method.get(name, {})) for name in methods)))

    def common(self) -> list[Cell]:
        """The cells that odejet and every rival with its loss have; those with another may have a part of them."""
        alike = [name for name in self.rivals if METHODS[name].weighted] or self.rivals
        return self.cells(OURS, *alike) if OURS in self.by_method else []

    def has(self, method: str, chosen: Sequence[Cell]) -> bool:
        """Whether a method has all of some cells."""
        own = self.by_method.get(method, {})
        return bool(chosen) and all(cell in own for cell in chosen)

    def parts(self, method: str, chosen: Sequence[Cell], levels: Iterable[float]) -> list[list[Cell]]:
        """Chosen cells by noise level, then all of them; empty where a method lacks some."""
        parts = [*(at(chosen, noise) for noise in levels), list(chosen)]
        return [part if self.has(method, part) else [] for part in parts]

    def errors(self, method: str, chosen: Sequence[Cell]) -> np.ndarray:
        return np.array([self.by_method[method][cell].error for cell in chosen])

    def expected(self, chosen: Sequence[Cell], threshold: float, weighted: bool) -> float:
        """The success of a perfect fit, in percent."""
        chances = [ceiling.of_cell(cell, self.protocol).success(cell.noise, threshold, weighted) for cell in chosen]
        return 100 * float(np.mean(chances)) if chances else math.nan


def complete_trials(found: dict[Cell, Result]) -> dict[Cell, Result]:
    """Without the trials of an unfinished run that lack cells, which would favour the systems that come first."""
    wanted = {(cell.system, cell.noise) for cell in found}
    has = Counter(cell.trial for cell in found)
    complete = {cell: result for cell, result in found.items() if has[cell.trial] == len(wanted)}
    return complete or found


def success(errors: np.ndarray, threshold: float) -> float:
    """Percent of errors below a threshold."""
    return 100 * float(np.mean(errors < threshold)) if len(errors) else math.nan


def at(chosen: Iterable[Cell], noise: float) -> list[Cell]:
    return [cell for cell in chosen if cell.noise == noise]


def title(method: str) -> str:
    return METHODS[method].title


# --- who found what ---


@dataclass(frozen=True)
class Kept:
    """Of fits to noisy data: how many there are, are as good as the fit from the truth, certified, and that falsely."""

    fits: int
    as_good: int
    certified: int
    falsely: int


def kept(results: Results) -> Kept | None:
    """Whether certificates keep their word, where the fit from the truth has run too."""
    shared = [cell for cell in results.cells(OURS, "truth") if cell.noise > 0] if "truth" in results.by_method else []
    if not shared:
        return None
    ours, truths = results.by_method[OURS], results.by_method["truth"]
    good = [ours[cell].cost <= truths[cell].cost + AS_GOOD for cell in shared]
    certified = [ours[cell].ending.startswith("certified") for cell in shared]
    falsely = [granted and not well for granted, well in zip(certified, good, strict=True)]
    return Kept(len(shared), sum(good), sum(certified), sum(falsely))


def outcomes(results: Results, rival: str, chosen: Sequence[Cell]) -> tuple[int, int, int, int]:
    """Cells in which both, only odejet, only the rival and neither of them succeed."""
    if not chosen:
        return 0, 0, 0, 0
    ours, theirs = (results.errors(method, chosen) < 0.1 for method in (OURS, rival))
    pairs = ((ours & theirs), (ours & ~theirs), (~ours & theirs), (~ours & ~theirs))
    both, mine, other, neither = (int(pair.sum()) for pair in pairs)
    return both, mine, other, neither


def reached(results: Results, method: str, cell: Cell) -> bool:
    """Whether a search ends at the best point that any method with its loss has found."""
    weighted = METHODS[method].weighted
    alike = [found for name, found in results.by_method.items() if METHODS[name].weighted == weighted]
    best = min(found[cell].cost for found in alike if cell in found)
    margin = BEST_LIKELIHOOD if weighted else BEST_SQUARES * best
    return results.by_method[method][cell].cost <= best + margin


def searches(results: Results, chosen: Sequence[Cell]) -> list[str]:
    """odejet with both losses and its rivals, as far as they have these cells at some noise level."""
    parts = [at(chosen, noise) for noise in systems.protocol().noise]
    names = [OURS, OURS + PLAIN, *results.rivals]
    return [name for name in names if any(results.has(name, part) for part in parts)]
