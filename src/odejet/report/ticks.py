"""Ticks: where an axis is marked, and how its numbers are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MOST_TICKS = 5
"""Marks on an axis: more would collide in a narrow panel."""

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """A range with its marks; on a logarithmic axis equal factors are equally far."""

    low: float
    high: float
    places: tuple[float, ...]
    labels: tuple[str, ...]
    logarithmic: bool = False

    def fraction(self, values: np.ndarray | float) -> np.ndarray:
        """How far along the axis values are, from 0 to 1 within it."""
        values = np.asarray(values, dtype=float)
        if not self.logarithmic:
            return np.asarray((values - self.low) / (self.high - self.low))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(values / self.low) / math.log(self.high / self.low))


def linear(low: float, high: float, most: int = MOST_TICKS) -> Axis:
    """An axis with at most so many marks at multiples of 1, 2 or 5 times a power of ten."""
    low, high = apart(low, high)
    step = _step((high - low) / most)
    while (last := math.floor(high / step + 1e-9)) - (first := math.ceil(low / step - 1e-9)) + 1 > most:
        step = _step(1.01 * step)
    if last <= first:  # a single mark tells no scale
        step, first, last = _finer(low, high, step, most)
    places = [round(i * step, 12 - math.floor(math.log10(step))) + 0.0 for i in range(first, last + 1)]
    return Axis(low, high, tuple(places), labelled(places, step))


def _finer(low: float, high: float, step: float, most: int) -> tuple[float, int, int]:
    """The widest step below another of which at least two multiples are in a range, and at most so many; their ends."""
    power = 10.0 ** math.floor(math.log10(step * (1 - 1e-9)))
    for width in (m * p for p in (power, 0.1 * power) for m in (8, 6, 5, 4, 3, 2, 1) if m * p < step * (1 - 1e-9)):
        first, last = math.ceil(low / width - 1e-9), math.floor(high / width + 1e-9)
        if 2 <= last - first + 1 <= max(most, 2):
            return width, first, last
    return step, math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)


def symmetric(limit: float) -> Axis:
    """An axis around zero, marked there and once on either side."""
    power = 10.0 ** math.floor(math.log10(0.96 * limit))
    place = next(m * power for m in (8, 6, 5, 4, 3, 2, 1.5, 1) if m * power <= 0.96 * limit)
    return Axis(-limit, limit, (-place, 0.0, place), (f"−{place:g}", "0", f"{place:g}"))


def logarithmic(low: float, high: float, most: int = 4) -> Axis:
    """An axis of positive numbers, marked at powers of ten, or at 1, 2 and 5 times these."""
    for multiples, every in (((1, 2, 5), 1), ((1,), 1), ((1,), 2), ((1,), 3), ((1,), 6), ((1,), 20), ((1,), 100)):
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        places = [m * 10.0**k for k in powers if k % every == 0 for m in multiples if low <= m * 10.0**k <= high]
        if len(places) <= most:
            break
    if len(places) < 2:
        places = [low * (high / low) ** part for part in (0.1, 0.9)]
    return Axis(low, high, tuple(places), tuple(short(place) for place in places), logarithmic=True)


def apart(low: float, high: float) -> tuple[float, float]:
    """Ends that differ enough to draw between them."""
    if high - low > 1e-9 * max(abs(low), abs(high)) and math.isfinite(high - low):
        return low, high
    middle = 0.5 * low + 0.5 * high
    room = 0.1 * abs(middle) or 1.0
    return middle - room, middle + room


def _step(width: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is as wide."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-9))


def labelled(places: Sequence[float], step: float) -> tuple[str, ...]:
    """Numbers with as many digits as tell the marks apart, all alike."""
    largest = max(map(abs, places), default=0.0)
    if largest and (largest >= 1e5 or largest < 1e-3):
        power = math.floor(math.log10(largest))
        decimals = max(0, power - math.floor(math.log10(step)))
        return tuple(_scientific(place / 10.0**power, decimals, power) if place else "0" for place in places)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return tuple(_minus(f"{place:.{decimals}f}") for place in places)


def short(value: float) -> str:
    """A number in few characters."""
    if value and not 1e-3 <= abs(value) < 1e5:
        power = math.floor(math.log10(abs(value)) + 1e-12)
        return _scientific(float(f"{value / 10.0**power:.2g}"), None, power)
    return _minus(f"{value:.2g}" if abs(value) < 1 else f"{float(f'{value:.3g}'):g}")


def _scientific(mantissa: float, decimals: int | None, power: int) -> str:
    shown = f"{mantissa:g}" if decimals is None else f"{mantissa:.{decimals}f}"
    ten = f"10{str(power).translate(_SUPERSCRIPTS)}"
    return ten if shown == "1" else _minus(f"{shown}·{ten}")


def _minus(text: str) -> str:
    return text.replace("-", "−")
