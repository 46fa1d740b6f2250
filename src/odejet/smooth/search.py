"""Search: maxima of an evidence in one variable, with few evaluations and no randomness."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
MOST_STEPS = 8
HOPELESS = 100.0
"""A start whose log evidence is this far below the best is not worth following."""


def climb(evidence: Callable[[float], float], starts: np.ndarray) -> float:
    """The best of a grid of starts, refined between its neighbours.

    The starts are taken in order, and the rest is left out once the evidence has fallen far and keeps falling.
    """
    values: list[float] = []
    for place in starts:
        values.append(evidence(float(place)))
        if len(values) > 3 and values[-1] < values[-2] < max(values) - HOPELESS:
            break
    best = int(np.argmax(values))
    low, high = starts[max(best - 1, 0)], starts[min(best + 1, len(starts) - 1)]
    return _golden(evidence, float(low), float(high), (float(starts[best]), values[best]))[0]


def _golden(
    evidence: Callable[[float], float], low: float, high: float, best: tuple[float, float], steps: int = 6
) -> tuple[float, float]:
    """Golden-section search for the maximum between two places; the best place seen and its evidence."""
    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [evidence(v) for v in inner]
    for step in range(steps):
        best = max([best, *zip(inner, values, strict=True)], key=lambda pair: pair[1])
        if step == steps - 1:
            break
        if values[0] > values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - GOLDEN * (high - low)
            values[0] = evidence(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + GOLDEN * (high - low)
            values[1] = evidence(inner[1])
    return best


def bracketed(
    evidence: Callable[[float], float], middle: float, step: float, high: float, refine: bool = True
) -> tuple[float, float]:
    """Walk uphill until the maximum is bracketed, then refine by a parabola if asked; place and evidence."""
    places = [middle - step, middle, min(middle + step, high)]
    values = [evidence(v) for v in places]
    for _ in range(MOST_STEPS):
        if values[0] > values[1]:
            places = [places[0] - step, *places[:2]]
            values = [evidence(places[0]), *values[:2]]
        elif values[2] > values[1] and places[2] < high:
            places = [*places[1:], min(places[2] + step, high)]
            values = [*values[1:], evidence(places[2])]
        else:
            break
    found = list(zip(places, values, strict=True))
    if refine:
        peak = parabola(tuple(places), tuple(values))
        found.append((peak, evidence(peak)))
    return max(found, key=lambda pair: pair[1])


def parabola(places: tuple[float, ...], values: tuple[float, ...]) -> float:
    """Where the parabola through three points has its maximum, kept between the outer ones."""
    (a, b, c), (fa, fb, fc) = places, values
    above, below = (b - a) ** 2 * (fb - fc) - (b - c) ** 2 * (fb - fa), (b - a) * (fb - fc) - (b - c) * (fb - fa)
    if below == 0.0:
        return b
    return float(min(max(b - 0.5 * above / below, a), c))
