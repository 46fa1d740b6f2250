"""Noise: what is known of the errors of measurement before a fit.

The error of a measurement is normal with the standard deviation *level times shape*.  The shape is one for noise of
constant size, the size of the measurement for relative noise, and the known standard deviation where the data have one;
the level is one number per output, known or to be estimated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.data import Series
from odejet.errors import DataError, ModelError, nearest

RELATIVE_FLOOR = 1e-3
"""Of the largest value of a series: relative noise does not vanish where the signal crosses zero."""

Given = float | str | Mapping[str, float | str] | None
"""Noise as people write it, for all outputs or for each: 0.1, "2%" or "relative"; None where it is to be estimated."""


@dataclass(frozen=True)
class Noise:
    """The noise of one output; a level of NaN is to be estimated."""

    kind: str  # "data", "constant" or "relative"
    level: float = math.nan

    def shapes(self, series: Series) -> np.ndarray:
        """The standard deviation of every measurement where the level is one."""
        if self.kind == "data" and series.sds is not None:
            return np.broadcast_to(np.asarray(series.sds, dtype=float), series.values.shape)
        sizes = np.abs(series.values)
        if self.kind == "relative" and sizes.max() > 0:
            return np.maximum(sizes, RELATIVE_FLOOR * sizes.max())
        return np.ones(len(series.values))


def noise_of(output: str, given: Given, series: Sequence[Series]) -> Noise:
    """The noise of an output that was measured in these series."""
    told = given.get(output) if isinstance(given, Mapping) else given
    if told is None:
        with_sds = {one.sds is not None for one in series}
        if len(with_sds) > 1:
            raise DataError(f"only some of the measurements of '{output}' have a known sd; give it for all or for none")
        return Noise("data", 1.0 if with_sds == {True} else math.nan)
    if not isinstance(told, str):
        return Noise("constant", _positive(output, told, 1.0))
    text = told.strip()
    if text == "relative":
        return Noise("relative")
    if text.endswith("%"):
        return Noise("relative", _positive(output, text[:-1], 0.01))
    raise _refused(output, told)


def check_names(given: Given, outputs: Sequence[str]) -> None:
    """Refuse noise of an output that the model does not have."""
    for name in given if isinstance(given, Mapping) else ():
        if name not in outputs:
            raise ModelError(f"noise: the model has no output '{name}'{nearest(str(name), outputs)}")


def _positive(name: str, value: Any, unit: float) -> float:
    try:
        level = float(value) * unit
    except (TypeError, ValueError):
        level = math.nan
    if isinstance(value, bool) or not (math.isfinite(level) and level > 0):
        raise _refused(name, value)
    return level


def _refused(name: str, value: Any) -> ModelError:
    return ModelError(f"the noise of '{name}' must be a positive number, 'relative' or a percentage, not {value!r}")
