"""Covariate: what a table tells of a subject beside measurements and doses: a weight, a sex, an occasion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Covariate:
    """Numbers or words in the order of time, each with the time from which it holds."""

    times: np.ndarray
    values: np.ndarray  # of numbers, or of words where a column is one of categories

    @property
    def is_number(self) -> bool:
        return self.values.dtype.kind == "f"

    @property
    def constant(self) -> float | str | None:
        """The value, if there is only one."""
        different = set(self.values.tolist())
        return different.pop() if len(different) == 1 else None
