"""Numerals: numbers as people write them, the same wherever they are shown.

A value has as many digits as its error lets mean something, and stands without an exponent as long as that is short.
"""

from __future__ import annotations

import math

PLAIN = 1e-4, 1e6
"""Sizes of numbers that are written without an exponent."""

MOST = 12
"""Digits of a value, whatever its error."""

FAR = 1e3
"""An end of an interval that is so many times larger or smaller than its middle is known by its size alone."""


def significant(value: float, count: int = 4) -> str:
    """A number with so many digits, and zeros where they end before the point."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if PLAIN[0] <= abs(value) < PLAIN[1]:
        exponent = math.floor(math.log10(abs(float(f"{value:.{count - 1}e}"))))
        return f"{float(f'{value:.{count - 1}e}'):.{max(count - 1 - exponent, 0)}f}"
    mantissa, exponent_text = f"{value:.{count - 1}e}".split("e")
    return f"{mantissa}e{int(exponent_text)}"


def short(value: float, count: int = 4) -> str:
    """The same without zeros at the end that say nothing."""
    shown = significant(value, count)
    mantissa, mark, exponent = shown.partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + mark + exponent


def whole(value: float) -> str:
    """A statistic of any size: digits before the point stand as they are."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e15 else short(value)


def measured(value: float, error: float) -> str:
    """A value with two digits of its error, and never more than twelve or less than three of its own."""
    if not math.isfinite(value) or value == 0 or not math.isfinite(error):
        return f"{value:.3g}"
    if error <= 0:
        return f"{value:.{MOST}g}"
    wanted = math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2
    return significant(value, min(max(wanted, 3), MOST))


def spread(low: float, high: float) -> float:
    """The error that a 95 % interval stands for."""
    return (high - low) / 4 if math.isfinite(high - low) else math.nan


def between(low: float, high: float, error: float, value: float | None = None) -> str:
    """An interval in the digits of its value; ends far from it have few."""

    def end(number: float) -> str:
        if math.isinf(number):
            return "∞" if number > 0 else "-∞"
        far = value is not None and value != 0 and not abs(value) / FAR <= abs(number) <= abs(value) * FAR
        return short(number, 2) if far and number else measured(number, error)

    return f"[{end(low)}, {end(high)}]"


def moment(time: float) -> str:
    """A time, in which a year keeps its digits: 0.339, 1902.5."""
    return f"{time:.6g}" if not 1e6 <= abs(time) < 1e12 else f"{time:.0f}"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 0.0995:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 99.5:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"
