"""Arrays: from what people hand over, lists, arrays and numbers, to checked series, inputs and known values.

Everything that cannot be used is refused with one sentence that says what was given and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import numpy as np

from odejet.data.censored import Limits, limited, split
from odejet.data.series import Series
from odejet.errors import DataError, ModelError, clipped, nearest
from odejet.jets.inputs import Sampled, sampled
from odejet.model import Event, entries
from odejet.model.events import events as read_events
from odejet.model.expressions import TIME, Expression, number
from odejet.model.grammar import parse
from odejet.model.names import checked_name

SMALLEST = 1e-140
"""Values must be larger, and smaller than its inverse: their squares are computed."""


def named(table: object, what: str) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise DataError(f"{what} must be a dictionary of names and values, such as {{'y1': values}}")
    named: dict[str, Any] = {}
    for key, value in table.items():
        name = output_name(key)
        if name in named:
            raise DataError(f"{what}: the name '{name}' is given twice; remove one of them")
        named[name] = value
    return named


def output_name(name: object) -> str:
    if not isinstance(name, str):
        raise DataError(f"a name must be text, not {clipped(str(name))}")
    try:
        return checked_name(name)
    except ModelError as error:
        raise DataError(str(error)) from None


def label(label: object) -> str:
    if not isinstance(label, str) or not label.strip() or not label.isprintable() or len(label) > 200:
        raise DataError(f"the name of an experiment must be one line of text, not {clipped(str(label))}")
    return label.strip()


def column(values: object, what: str) -> np.ndarray:
    """A one-dimensional array of numbers; what a masked array hides was not measured."""
    if np.asanyarray(values).dtype.kind in "mM" or _holds_dates(values):
        raise DataError(f"{what} are dates or durations; give numbers, such as days since the first measurement")
    try:
        masked: Any = np.ma.asarray(values, dtype=float) if isinstance(values, np.ma.MaskedArray) else None
        array = np.asarray(values, dtype=float) if masked is None else masked.filled(np.nan)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{what} must be numbers; mark what was not measured with NaN") from None
    if array.ndim != 1:
        raise DataError(f"{what} must be a one-dimensional list, not of shape {array.shape}")
    return array


def _holds_dates(values: object) -> bool:
    """Whether a column of objects holds dates, which NumPy would not say."""
    array = np.asanyarray(values)
    return array.dtype == object and any(isinstance(value, (date, timedelta)) for value in array.flat)


def finite(value: object, what: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number):
        raise DataError(f"{what} must be a finite number, not {clipped(str(value))}")
    return number


def is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and not any(np.isscalar(part) for part in value)


def gridded(name: str, value: Any, grid: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of a series that has its own times or shares those of the experiment."""
    times, values = value if is_pair(value) else (grid, value)
    if times is None:
        raise DataError(f"'{name}' has no times; give `time`, or a pair (times, values)")
    t, y = column(times, f"the times of '{name}'"), column(values, f"the values of '{name}'")
    if len(t) != len(y):
        raise DataError(f"'{name}' has {len(y)} values but {len(t)} times")
    return t, y


def measured(name: str, value: Any, grid: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, Limits | None]:
    """Times, values and limits of what was measured, of which some may be censored."""
    times, values = value if is_pair(value) else (grid, value)
    numbers, pairs = split(values, f"the values of '{name}'")
    t, y = gridded(name, (times, numbers) if is_pair(value) else numbers, grid)
    return t, *limited(y, pairs)


def known_sds(noise: Any, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Known standard deviations by output."""
    if noise is None:
        return {}
    if not isinstance(noise, Mapping):
        return dict.fromkeys(outputs, noise)
    known = named(noise, "noise")
    for name in known:
        if name not in outputs:
            raise DataError(f"noise: there is no output '{name}'{nearest(name, outputs)}")
    return known


def series(name: str, times: np.ndarray, values: np.ndarray, sds: Any, limits: Limits | None = None) -> Series:
    """Finite values in the order of time, with their sds."""
    if not (times > -np.inf).all():
        raise DataError(f"'{name}': time {int((~(times > -np.inf)).argmax())} is not a number")
    if np.isinf(values).any():
        raise DataError(f"'{name}': value {int(np.isinf(values).argmax())} is infinite; mark what is missing with NaN")
    largest = np.abs(values[~np.isnan(values)]).max(initial=0.0)
    if largest and not SMALLEST < largest < 1 / SMALLEST:
        raise DataError(f"'{name}': values of size {largest:.3g} have squares that no number holds; use other units")
    kept = np.flatnonzero(~np.isnan(values))
    kept = kept[np.argsort(times[kept], kind="stable")]
    limits = None if limits is None else limits.at(kept)
    if sds is None:
        return Series(times[kept], values[kept], None, limits)
    spread = (
        np.asarray(finite(sds, f"the noise of '{name}'"))
        if np.ndim(sds) == 0
        else column(sds, f"the noise of '{name}'")
    )
    if spread.ndim and len(spread) != len(values):
        raise DataError(f"'{name}' has {len(values)} values but {len(spread)} standard deviations")
    spread = np.broadcast_to(spread, values.shape)[kept]
    if not (np.isfinite(spread) & (spread > 0)).all():
        raise DataError(f"'{name}': standard deviations must be positive numbers wherever there is a measurement")
    return Series(times[kept], values[kept], spread, limits)


def driving(name: str, value: Any, grid: np.ndarray | None) -> Sampled | str:
    if isinstance(value, Sampled):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = repr(finite(value, f"the input '{name}'"))
    if isinstance(value, str):
        try:
            return str(parse(value, ()))
        except ModelError as error:
            raise DataError(f"input '{name}': {error}") from None
    return sampled(*gridded(name, value, grid), f"input '{name}'")


def is_steady(initial: object, before: object) -> bool:
    """Whether an experiment starts at rest; only then was there anything before."""
    try:
        return entries.is_steady(initial, before)
    except ModelError as error:
        raise DataError(str(error).replace("[initial]", "initial").replace("[before]", "before")) from None


def events(given: object) -> tuple[Event, ...]:
    """What happens in an experiment."""
    try:
        return read_events(given)
    except ModelError as error:
        raise DataError(str(error).replace("[events]", "events")) from None


def known(name: str, value: Any, what: str) -> Expression:
    """A known value: a number, or an expression in parameters."""
    if not isinstance(value, str) and not isinstance(value, Expression):
        return number(finite(value, f"{what} '{name}'"))
    try:
        return parse(str(value), None, {TIME: "a known value cannot depend on the time"})
    except ModelError as error:
        raise DataError(f"{what} '{name}': {error}") from None
