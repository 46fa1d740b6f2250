"""Breakpoints: the times at which solutions of delay equations are less smooth, and what looks back at them.

At its start a solution leaves its history, and a derivative jumps; a delay later the next derivative does, since the
rate looks back at the first jump, and so on: every delay smooths by one order, and beyond some order nothing is seen of
it.  Knots of sampled inputs and doses do the same from their own times on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.inputs import Pieces
from odejet.jets.past import STATE, Sources, Stops

MOST = 20_000
"""Breakpoints that are followed; those of higher orders are left out where there would be more."""

_SAME = 1e-13  # breakpoints that are closer, relative to the times, are one
_KNOT = 1e-12  # a jump at a knot that is smaller, relative to the input, is rounding
_SEEN = 1  # the highest order of a breakpoint at which rates jump


class Breakpoints(NamedTuple):
    """Times in order with their tangents, and the lowest derivative of the solution that jumps at each."""

    times: np.ndarray
    moved: np.ndarray
    orders: np.ndarray
    paused: np.ndarray

    def merged(self, tolerance: float) -> Breakpoints:
        """Return one breakpoint for all at one time, that of the lowest order; where something happens comes first."""
        order = np.lexsort((self.orders, -self.paused, self.times))
        times = self.times[order]
        groups = np.r_[0, np.cumsum(np.diff(times) > tolerance)] if len(times) else np.zeros(0, int)
        ranked = order[np.lexsort((self.orders[order], -self.paused[order], groups))]
        first = np.r_[True, np.diff(np.sort(groups)) > 0] if len(times) else np.zeros(0, bool)
        return Breakpoints(*(part[ranked[first]] for part in self))

    def within(self, start: float, end: float) -> Breakpoints:
        kept = (self.times > start) & (self.times < end)
        return Breakpoints(*(part[kept] for part in self))


def joined(parts: list[Breakpoints]) -> Breakpoints:
    return Breakpoints(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def stops(
    start: float, end: float, sources: Sources, knots: Breakpoints, pauses: np.ndarray, kinds: np.ndarray, highest: int
) -> Stops:
    """Return the stops on the way to the end: breakpoints up to an order, and where delayed values pass one.

    Something of a kind, as `Stops` has them, happens at each of the `pauses`.
    """
    lanes = sources.lags.shape[1]
    tolerance = _SAME * max(abs(start), abs(end))
    lags = sources.lags[sources.kinds == STATE]
    begin = Breakpoints(np.array([start]), np.zeros((1, lanes)), np.zeros(1, int), np.zeros(1, int))
    happening = Breakpoints(pauses, np.zeros((len(pauses), lanes)), np.zeros(len(pauses), int), kinds)
    every = joined([begin, joined([happening, knots]).within(start, end)]).merged(tolerance)
    new, order = every, 0
    while len(new.times) and len(lags) and order <= highest and len(every.times) < MOST:
        shifted = (new.times[:, None] + lags[:, 0]).ravel()
        moved = (new.moved[:, None] + np.c_[np.zeros(len(lags)), lags[:, 1:]]).reshape(-1, lanes)
        orders = np.repeat(new.orders + 1, len(lags))
        later = Breakpoints(shifted, moved, orders, np.zeros(len(shifted), int)).within(start, end).merged(tolerance)
        known = len(every.times)
        every = joined([every, later]).merged(tolerance)
        new, order = (later, order + 1) if len(every.times) > known else (later.within(end, end), order)
    followed = order if len(every.times) >= MOST else highest
    return _table(every, sources, tolerance, followed)


def _table(every: Breakpoints, sources: Sources, tolerance: float, highest: int) -> Stops:
    """The stops after the start, with the segments of the past in which each value is looked up between them."""
    boundary = every.orders <= highest
    begun = every.times[boundary]
    places = np.empty((len(every.times), len(sources.kinds)), dtype=np.int64)
    for q, (kind, lag) in enumerate(zip(sources.kinds, sources.lags[:, 0], strict=True)):
        edges = begun if kind == STATE else sources.knots
        places[:, q] = np.searchsorted(edges + lag, every.times + tolerance, side="right")
        if kind != STATE:
            places[:, q] = np.clip(places[:, q] - 1, 0, len(edges) - 2)
    return Stops(
        np.ascontiguousarray(every.times[1:]),
        np.ascontiguousarray(every.moved[1:]),
        np.ascontiguousarray(boundary[1:]),
        np.ascontiguousarray(every.orders[1:] <= _SEEN),
        np.ascontiguousarray(every.paused[1:]),
        places,
    )


def knots_of(pieces: Pieces, row: int, lag: np.ndarray) -> Breakpoints:
    """Return the breakpoints of solutions that an input leads to which is looked up some time before."""
    inner, lanes = pieces.knots[1:-1], len(lag)
    ending = pieces.series(inner, 3, np.arange(len(inner)))[:, row]
    beginning = pieces.coefficients[row, 1:]
    width = np.minimum(np.diff(pieces.knots)[:-1], np.diff(pieces.knots)[1:])
    jumps = np.abs(beginning - ending) * width[:, None] ** np.arange(4)
    seen = jumps > _KNOT * np.abs(pieces.coefficients[row, :, 0]).max(initial=1e-300)
    orders = np.where(seen.any(axis=1), 1 + np.argmax(seen, axis=1), 9)
    moved = np.tile(np.r_[0.0, lag[1:]], (len(inner), 1)).reshape(-1, lanes)
    return Breakpoints(inner + lag[0], moved, orders, np.zeros(len(inner), int))
