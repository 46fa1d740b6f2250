"""Censored: measurements that are known only to lie below, above or between limits.

As text a measurement is `<0.5`, `>100` or `0.1..0.5`.  A single limit is no measurement itself, so that counts below 5
are at most 4; both ends of an interval are, so that counts `1..4` are four.  `<=5` and `>=5` are written for what may
be the limit, too.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.errors import DataError, clipped

_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_ONE_SIDED = re.compile(rf"(<=|>=|<|>|≤|≥)\s*({_NUMBER})")
_INTERVAL = re.compile(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})")
_MEANT = re.compile(r"<|>|≤|≥|[0-9]\s*\.\.\s*[-+.0-9]")

Pair = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Limits:
    """Between which limits each measurement lies; both are the measurement itself where it is known."""

    lower: np.ndarray
    upper: np.ndarray

    @property
    def censored(self) -> np.ndarray:
        """Which measurements are known only to lie between limits."""
        return np.asarray(self.lower < self.upper)

    def at(self, chosen: np.ndarray) -> Limits | None:
        """Return the limits of some of the measurements; None where all of these are known."""
        part = Limits(self.lower[chosen], self.upper[chosen])
        return part if part.censored.any() else None


@dataclass(frozen=True, eq=False, init=False)
class Censored:
    """A measurement that is known to be below or above a limit, or between both; or an array of measurements, some of
    which are: NaN is no limit, and `values` has those that are known.

    `Censored(below=0.5)` stands for one value in a list of measurements, `Censored(values, below=limits)` for all.
    """

    values: Any
    below: Any
    above: Any

    def __init__(self, values: Any = None, *, below: Any = None, above: Any = None) -> None:
        if values is None and below is None and above is None:
            raise DataError("a censored measurement needs a limit; give below, above or both")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "below", below)
        object.__setattr__(self, "above", above)

    @property
    def single(self) -> bool:
        """Whether it stands for one measurement."""
        return all(np.ndim(one) == 0 for one in (self.values, self.below, self.above) if one is not None)

    def pair(self) -> Pair:
        """The limits of a single measurement."""
        return checked(_limit(self.above, -math.inf), _limit(self.below, math.inf))


def _limit(told: Any, missing: float) -> float:
    if told is None:
        return missing
    try:
        value = float(told)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"a limit must be a finite number, not {clipped(str(told))}")
    return value


def checked(lower: float, upper: float) -> Pair:
    """Return limits that leave something between them."""
    if not lower < upper:
        raise DataError(f"the lower limit {lower:g} is not below the upper limit {upper:g}; exchange or correct them")
    return lower, upper


def is_limit(text: str) -> bool:
    """Whether a cell is meant as a limit."""
    return _MEANT.search(text) is not None


def read_limits(text: str) -> Pair:
    """Return the limits that a text such as `<0.5`, `>100` or `0.1..0.5` says."""
    told = text.strip()
    if found := _ONE_SIDED.fullmatch(told):
        sign, value = found[1], _limit(found[2], math.nan)
        # What may be the limit itself is below the next number, which for counts is a count more.
        if sign in ("<=", "≤"):
            value = math.nextafter(value, math.inf)
        elif sign in (">=", "≥"):
            value = math.nextafter(value, -math.inf)
        return (-math.inf, value) if sign in ("<", "<=", "≤") else (value, math.inf)
    if found := _INTERVAL.fullmatch(told):
        return checked(_limit(found[1], math.nan), _limit(found[2], math.nan))
    raise DataError(f"{clipped(told)} is no limit; write <0.5, >100 or 0.1..0.5 with numbers")


def written(lower: float, upper: float) -> str:
    """Return limits as text that reads back the same."""
    if math.isinf(lower):
        return f"<{upper!r}"
    return f">{lower!r}" if math.isinf(upper) else f"{lower!r}..{upper!r}"


def stand_in(lower: float, upper: float) -> float:
    """Return the number that stands for a censored measurement where only its size matters: the limit, or the middle of
    both."""
    if math.isinf(lower):
        return upper
    if math.isinf(upper):
        return lower
    return 0.5 * (max(lower, 0.0) + upper) if upper > 0 else 0.5 * (lower + upper)  # positive where it may be


def limited(values: np.ndarray, pairs: dict[int, Pair]) -> tuple[np.ndarray, Limits | None]:
    """Return values with numbers that stand for those that are censored, and the limits of all."""
    if not pairs:
        return values, None
    values, lower, upper = values.copy(), values.copy(), values.copy()
    for i, (low, high) in pairs.items():
        values[i], lower[i], upper[i] = stand_in(low, high), low, high
    return values, Limits(lower, upper)


def split(values: Any, what: str) -> tuple[Any, dict[int, Pair]]:
    """Return measurements with NaN in place of those that are censored, and the limits of these by position."""
    if isinstance(values, Censored):
        if values.single:
            raise DataError(f"{what} must be a one-dimensional list; put the censored value into one")
        return _of_arrays(values, what)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values, {}
    if np.ndim(values) != 1 or isinstance(values, (str, np.ma.MaskedArray)):
        return values, {}
    pairs: dict[int, Pair] = {}
    cells: list[Any] = []
    for i, value in enumerate(values):
        try:
            if isinstance(value, Censored):
                pairs[i] = value.pair()
            elif isinstance(value, str) and is_limit(value):
                pairs[i] = read_limits(value)
        except DataError as error:
            raise DataError(f"{what}: {error}") from None
        cells.append(math.nan if i in pairs else value)
    return (cells, pairs) if pairs else (values, {})


def _of_arrays(told: Censored, what: str) -> tuple[np.ndarray, dict[int, Pair]]:
    """The measurements of arrays of values and limits."""
    given = [one for one in (told.values, told.below, told.above) if np.ndim(one) == 1]
    lengths = sorted({len(one) for one in given})
    if len(lengths) != 1:
        raise DataError(f"{what}: values and limits have different lengths, {' and '.join(map(str, lengths))}")
    try:
        values, below, above = (
            np.broadcast_to(np.nan if one is None else np.asarray(one, dtype=float), lengths)
            for one in (told.values, told.below, told.above)
        )
    except (TypeError, ValueError):
        raise DataError(f"{what}: values and limits must be numbers, NaN where there is none") from None
    for i in np.flatnonzero((values < below) | (values > above)).tolist():
        limit = f"below={below[i]:g}" if values[i] < below[i] else f"above={above[i]:g}"
        raise DataError(
            f"{what}: the value {values[i]:g} is beyond its own limit, {limit}; put NaN in its place if only the limit "
            "is known, and NaN in the place of the limit if it was measured"
        )
    pairs = {}
    for i in np.flatnonzero(~(np.isnan(below) & np.isnan(above)) & np.isnan(values)).tolist():
        low, high = (-math.inf if np.isnan(above[i]) else above[i]), (math.inf if np.isnan(below[i]) else below[i])
        try:
            pairs[i] = checked(float(low), float(high))
        except DataError as error:
            raise DataError(f"{what}: {error}") from None
    return values.copy(), pairs
