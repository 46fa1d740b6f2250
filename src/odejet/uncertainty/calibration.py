"""Calibration: whether intervals hold what they promise, from data sets that were made with values which are known.

Of simulated data sets it is known which values made them.  Intervals of a level must hold them in that part of all
sets; and the rank of the true value among draws from a posterior is uniform if values were drawn from the prior (Talts,
Betancourt, Simpson, Vehtari and Gelman 2018).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from odejet.attach import attached
from odejet.tables import html_table, table

if TYPE_CHECKING:
    import matplotlib.figure

SURE = 0.01
"""The probability below which a deviation is no chance."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """How often intervals held the true values, and where these stood among draws."""

    labels: tuple[str, ...]
    level: float
    truths: np.ndarray  # (data sets, unknowns)
    covered: Mapping[str, np.ndarray]  # by method, one where the interval holds the truth, NaN without an interval
    ranks: np.ndarray  # of the truth among draws, from 0 to 1; NaN without draws
    drawn_from: str  # "prior" or "fit"
    doubtful: int  # data sets whose draws had warnings
    failures: int  # data sets that had no fit
    seconds: float

    def coverage(self, method: str) -> dict[str, tuple[float, float, float]]:
        """Return by label the part of intervals that hold the truth, and the 99 % interval of that part."""
        return {label: _share(own) for label, own in zip(self.labels, self.covered[method].T, strict=True)}

    @cached_property
    def p_values(self) -> dict[str, float]:
        """By label: how probable ranks are that are so far from uniform; NaN without draws."""
        from scipy.stats import kstest

        found = {}
        for label, own in zip(self.labels, self.ranks.T, strict=True):
            seen = own[np.isfinite(own)]
            found[label] = float(kstest(seen, "uniform").pvalue) if len(seen) else math.nan
        return found

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What intervals do not hold."""
        said = []
        for method in self.covered:
            for label, (share, low, high) in self.coverage(method).items():
                if not math.isnan(share) and not low <= self.level <= high:
                    kind = "too short" if share < self.level else "too long"
                    said.append(
                        f"{self.level:.0%} intervals by {method} of {label} hold the truth in {share:.0%} of the data "
                        f"sets: they are {kind}"
                    )
        least = SURE / max(len(self.labels), 1)
        for label, p in self.p_values.items():
            if self.drawn_from == "prior" and p < least:
                said.append(f"the truth is not spread evenly among the draws of {label} (p = {p:.1g})")
        if self.failures:
            said.append(f"{self.failures} of {self.failures + len(self.truths)} data sets could not be fitted")
        return tuple(said)

    @property
    def success(self) -> bool:
        """Whether nothing speaks against the intervals."""
        return not self.warnings and len(self.truths) > 0

    def summary(self) -> str:
        """Return the table of coverage by method, and what is to be said of it."""
        rows = self._rows()
        return "\n".join([self._title(), "", *table(rows, right=range(1, len(rows[0]))), "", *self._said("- ")])

    __str__ = __repr__ = summary

    def _repr_html_(self) -> str:
        rows = self._rows()
        return html_table(rows, range(1, len(rows[0])), self._title(), self._said())

    def _title(self) -> str:
        told = f"{self.level:.0%} intervals that hold the truth, of {len(self.truths)} data sets drawn from the "
        return told + self.drawn_from

    def _said(self, mark: str = "") -> list[str]:
        return [f"{mark}{one}" for one in self.warnings] or [
            "All intervals hold what they promise, as far as this tells."
        ]

    def _rows(self) -> list[list[str]]:
        heads = ["", *self.covered, *(["p of ranks"] if np.isfinite(self.ranks).any() else [])]
        rows = [heads]
        for label in self.labels:
            shares = [self.coverage(method)[label] for method in self.covered]
            cells = ["" if math.isnan(one) else f"{one:.0%} ({low:.0%} to {high:.0%})" for one, low, high in shares]
            rows.append([label, *cells, *([f"{self.p_values[label]:.2g}"] if len(heads) > 1 + len(cells) else [])])
        return rows

    @attached
    def plot(self, path: str | os.PathLike[str] | None = None) -> matplotlib.figure.Figure:
        """Coverage by method, and the ranks of every unknown beside what chance allows; `path` is a file to write."""
        raise NotImplementedError


def _share(held: np.ndarray) -> tuple[float, float, float]:
    """A share and its interval by Clopper and Pearson."""
    from scipy.stats import beta

    seen = held[np.isfinite(held)]
    n, k = len(seen), int(seen.sum())
    if not n:
        return math.nan, math.nan, math.nan
    low = float(beta.ppf(SURE / 2, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf(1 - SURE / 2, k + 1, n - k)) if k < n else 1.0
    return k / n, low, high
