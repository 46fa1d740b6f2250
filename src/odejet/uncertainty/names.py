"""Names: numbers by the labels of the unknowns.

An initial state has a label that says when and where it holds, such as x(0) or x(1.5) in batch2, and answers to the
plain name of its state as well where only one unknown has that name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.extras import needed
from odejet.problem import Unknown, find

if TYPE_CHECKING:
    import pandas


class ByName(dict[str, Any]):
    """Values by label, found by name too."""

    def __init__(self, unknowns: Sequence[Unknown], values: Iterable[Any]) -> None:
        super().__init__(zip((unknown.label for unknown in unknowns), values, strict=True))
        self._unknowns = tuple(unknowns)

    def __missing__(self, name: str) -> Any:
        return self[self._unknowns[find(self._unknowns, name)].label]


@dataclass(frozen=True, eq=False)
class Matrix:
    """A square matrix with names: `matrix["k1", "k2"]` is a number, `matrix["k1"]` a row by label."""

    unknowns: tuple[Unknown, ...]
    values: np.ndarray

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(unknown.label for unknown in self.unknowns)

    @property
    def correlation(self) -> Matrix:
        """Of a covariance, the correlations; NaN where a variance is not finite."""
        variances = np.diag(self.values)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = self.values / np.sqrt(np.outer(variances, variances))
        determined = np.isfinite(variances)
        values = np.where(np.outer(determined, determined), np.clip(values, -1, 1), math.nan)
        np.fill_diagonal(values, 1.0)
        return Matrix(self.unknowns, values)

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        if isinstance(key, tuple):
            return float(self.values[find(self.unknowns, key[0]), find(self.unknowns, key[1])])
        return ByName(self.unknowns, self.values[find(self.unknowns, key)].tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def to_dataframe(self) -> pandas.DataFrame:
        pandas = needed("pandas")
        return pandas.DataFrame(self.values, index=list(self.labels), columns=list(self.labels))

    def __repr__(self) -> str:
        width = max([10, *(len(label) for label in self.labels)])
        head = " " * width + "".join(f"  {label:>{width}}" for label in self.labels)
        rows = [
            f"{label:<{width}}" + "".join(f"  {value:>{width}.3g}" for value in row)
            for label, row in zip(self.labels, self.values, strict=True)
        ]
        return "\n".join([head, *rows])
