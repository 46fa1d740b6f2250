"""Search: maxima of an evidence in one variable, with few evaluations and no randomness."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

MOST_STEPS = 8
REFINEMENTS = 6
CLOSE = 0.01
"""A parabola whose peak is this share of the bracket from the best place has nothing more to find."""
LOPSIDED, WIDE = 4.0, 0.4
"""Sides of a bracket this unequal are evened out by a place at this share of the wider one."""
HOPELESS = 100.0
"""A start whose log evidence is this far below the best is not worth following."""


def climb(evidence: Callable[[float], float], starts: np.ndarray, refinements: int = REFINEMENTS) -> float:
    """The best of a grid of starts, refined between its neighbours.

    The starts are taken in order, and the rest is left out once the evidence has fallen far and keeps falling.
    """
    values: list[float] = []
    for place in starts:
        values.append(evidence(float(place)))
        if len(values) > 3 and values[-1] < values[-2] < max(values) - HOPELESS:
            break
    best = int(np.argmax(values))
    low, high = max(best - 1, 0), min(best + 1, len(values) - 1)
    found = [(float(starts[i]), values[i]) for i in range(low, high + 1)]
    if len(found) == 2:
        # The best start is the first or the last of them: a place between it and its neighbour makes three.
        between = 0.5 * (found[0][0] + found[1][0])
        found.insert(1, (between, evidence(between)))
    return _refine(evidence, found, refinements)[0]


def _refine(
    evidence: Callable[[float], float], found: list[tuple[float, float]], refinements: int
) -> tuple[float, float]:
    """The maximum between the first and last of three places, from the best place and its neighbours.

    A parabola finds the peak once it is well inside; the evidence falls off a cliff towards long length scales, and
    where the best place has one neighbour much closer than the other, the wide side is searched first.
    """
    for _ in range(refinements):
        best = max(range(len(found)), key=lambda i: found[i][1])
        left = min(max(best - 1, 0), len(found) - 3)
        three = found[left : left + 3]
        (low, _), (middle, _), (high, _) = three
        if max(middle - low, high - middle) > LOPSIDED * min(middle - low, high - middle):
            peak = middle + WIDE * ((low if middle - low > high - middle else high) - middle)
        else:
            peak = parabola((low, middle, high), tuple(value for _, value in three))
            if min(abs(peak - place) for place, _ in three) < CLOSE * (high - low):
                break
        found = sorted([*found, (peak, evidence(peak))])
    return max(found, key=lambda pair: pair[1])


def bracketed(evidence: Callable[[float], float], middle: float, step: float, high: float) -> tuple[float, float]:
    """Walk uphill until the maximum is bracketed; the peak of the parabola through the bracket, and its height."""

    def beyond(places: list[float], sign: float) -> None:
        """Walk in one direction as long as it leads uphill."""
        for _ in range(MOST_STEPS):
            places.append(min(places[-1] + sign * step, high))
            values[places[-1]] = evidence(places[-1])
            if values[places[-1]] <= values[places[-2]] or places[-1] == high:
                break

    values = {middle: evidence(middle)}
    walked = [middle]
    beyond(walked, 1.0)
    if len(walked) == 2 and values[walked[1]] <= values[middle]:
        walked = [walked[1], middle]
        beyond(walked, -1.0)
    three = tuple(sorted(walked[-3:])) if len(walked) > 2 else (middle - step, *sorted(walked))
    heights = tuple(values[v] if v in values else evidence(v) for v in three)
    peak = parabola(three, heights)
    return peak, max(*heights, lagrange(three, heights, peak))


def lagrange(places: Sequence[float], values: Sequence[float], place: float) -> float:
    """The value at a place of the polynomial through some points."""
    total = 0.0
    for i, (here, value) in enumerate(zip(places, values, strict=True)):
        others = [p for j, p in enumerate(places) if j != i]
        total += value * float(np.prod([(place - p) / (here - p) for p in others]))
    return total


def parabola(places: tuple[float, ...], values: tuple[float, ...]) -> float:
    """Where the parabola through three points has its maximum, kept between the outer ones."""
    (a, b, c), (fa, fb, fc) = places, values
    above, below = (b - a) ** 2 * (fb - fc) - (b - c) ** 2 * (fb - fa), (b - a) * (fb - fc) - (b - c) * (fb - fa)
    if below == 0.0:
        return b
    return float(min(max(b - 0.5 * above / below, a), c))
