"""Inputs: what drives a model, as piecewise polynomials and as jets.

An input is a function of `t`, or it was sampled.  A time that is given twice is a jump, and the later value holds from
there on.  Between jumps samples are joined as the model says:

- "hold": every value holds until the next sample, and the last one for good (what a computer puts out);
- "linear": by straight lines;
- "spline": by a cubic spline (not-a-knot);
- if it says nothing, by a spline if that predicts every other sample better than straight lines do, and by straight
  lines otherwise: smooth signals keep their derivatives, rough ones do not ring.

Between two knots an input is a polynomial of degree three at most, so that its Taylor series is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from odejet.errors import DataError
from odejet.model.entries import JOINED

if TYPE_CHECKING:
    from odejet.model import Model

HOLD, LINEAR, SPLINE = JOINED

DEGREE = 3
_FEWEST = 6  # samples that can tell a spline from straight lines
_SLACK = 1e-9  # times outside the samples by less, relative to their span, are rounding
_MERGED = 1e-12  # knots that are closer, relative to the times, are one


@dataclass(frozen=True, eq=False)
class Sampled:
    """A sampled input: values at times in order, where two values at one time are a jump."""

    times: np.ndarray
    values: np.ndarray
    joined: str = ""  # how: "hold", "linear", "spline", or as looks best

    @property
    def end(self) -> float:
        """Until when it is known."""
        return np.inf if self.joined == HOLD else float(self.times[-1])

    def cover(self, first: float, last: float) -> bool:
        return _cover(self.times, first, min(last, float(self.times[-1])) if self.joined == HOLD else last)

    @cached_property
    def pieces(self) -> Pieces:
        """The input as a piecewise polynomial of one row."""
        jumps = np.flatnonzero(np.diff(self.times) == 0) + 1
        parts = np.split(np.arange(len(self.times)), jumps)
        with np.errstate(all="ignore"):
            joined = np.concatenate(
                [_joined(self.times[part], self.values[part], self.joined) for part in parts if len(part) > 1]
            )
        if not np.isfinite(joined).all():
            raise DataError(
                "the samples of an input change too fast for numbers to tell; write a jump as one time twice"
            )
        knots = np.unique(self.times)
        if self.joined == HOLD or len(parts[-1]) == 1:  # the last value holds from there on
            knots = np.r_[knots, 2 * knots[-1] - knots[0]]
            joined = np.r_[joined, [[self.values[-1], 0, 0, 0]]]
        return Pieces(knots, joined[None], self.end)

    def __call__(self, t: np.ndarray | float) -> np.ndarray:
        """The values at times; at a jump, the later one."""
        result: np.ndarray = self.pieces.series(np.atleast_1d(t), 0)[:, 0, 0]
        return result if np.ndim(t) else result[0]


def _cover(times: np.ndarray, first: float, last: float) -> bool:
    """Whether ordered times reach from the first to the last of others, but for rounding."""
    slack = _SLACK * float(times[-1] - times[0])
    return bool(times[0] - slack <= first and last <= times[-1] + slack)


def sampled(times: object, values: object, what: str = "the input") -> Sampled:
    """Check and sort the samples of an input; those that are NaN are left out."""
    try:
        t, u = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{what}: times and values must be numbers") from None
    if t.ndim != 1 or t.shape != u.shape:
        raise DataError(f"{what}: expected as many values as times, not shapes {u.shape} and {t.shape}")
    if not np.isfinite(t).all() or np.isinf(u).any():
        raise DataError(f"{what}: times and values must be finite; mark values that are missing with NaN")
    kept = np.flatnonzero(~np.isnan(u))
    kept = kept[np.argsort(t[kept], kind="stable")]
    t, u = t[kept], u[kept]
    # Tables with replicates repeat an input with every one of them.
    fresh = np.r_[True, (np.diff(t) != 0) | (np.diff(u) != 0)][: len(t)]
    t, u = t[fresh], u[fresh]
    if len(t) < 2 or t[0] == t[-1]:
        raise DataError(f"{what}: an input needs values at two different times at least")
    same = np.diff(t) == 0
    thrice = np.flatnonzero(same[1:] & same[:-1])
    if len(thrice):
        raise DataError(
            f"{what}: more than two different values at t = {t[thrice[0]]:g}; a jump has one before and one after"
        )
    if same[0]:
        raise DataError(f"{what}: two values at t = {t[0]:g}, where the samples begin, are no jump; keep one")
    return Sampled(t, u)


def _joined(times: np.ndarray, values: np.ndarray, joined: str) -> np.ndarray:
    """Coefficients (pieces, degree + 1) of the polynomials between samples, ascending, around the earlier sample."""
    lines = np.zeros((len(times) - 1, DEGREE + 1))
    lines[:, 0] = values[:-1]
    if joined == HOLD:
        return lines
    lines[:, 1] = np.diff(values) / np.diff(times)
    if joined != SPLINE and (joined == LINEAR or len(times) < _FEWEST or not _is_smooth(times, values)):
        return lines
    return _spline(times, values).c[::-1].T


def _is_smooth(times: np.ndarray, values: np.ndarray) -> bool:
    """Whether a spline through every other sample, and the last, predicts the rest better than straight lines do."""
    kept = np.zeros(len(times), dtype=bool)
    kept[::2] = kept[-1] = True
    asked, truth = times[~kept], values[~kept]
    straight = np.interp(asked, times[kept], values[kept]) - truth
    curved = _spline(times[kept], values[kept])(asked) - truth
    return bool(np.linalg.norm(curved) < np.linalg.norm(straight))


def _spline(times: np.ndarray, values: np.ndarray):
    from scipy.interpolate import CubicSpline

    return CubicSpline(times, values)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Piecewise polynomials with common knots: row i in piece k is sum_j coefficients[i, k, j] (t - knots[k])^j."""

    knots: np.ndarray
    coefficients: np.ndarray
    end: float = np.nan  # until when they are known; by default to the last knot

    def __post_init__(self) -> None:
        # Compiled code that is called without a look at types reads any other layout as if it were this one.
        object.__setattr__(self, "knots", np.ascontiguousarray(self.knots))
        object.__setattr__(self, "coefficients", np.ascontiguousarray(self.coefficients))

    def cover(self, first: float, last: float) -> bool:
        if not len(self.coefficients):
            return True
        end = self.knots[-1] if np.isnan(self.end) else min(self.end, max(last, self.knots[0]))
        return _cover(np.array([self.knots[0], end]), first, last)

    def piece(self, times: np.ndarray) -> np.ndarray:
        """The piece that holds from each time on; the last one at the end."""
        return np.clip(np.searchsorted(self.knots, times, side="right") - 1, 0, len(self.knots) - 2)

    def series(self, times: np.ndarray, order: int, piece: np.ndarray | int | None = None) -> np.ndarray:
        """Taylor coefficients (times, rows, order + 1), on the pieces that hold from there on or on a given one."""
        if not len(self.coefficients):
            return np.zeros((len(times), 0, order + 1))
        k = np.broadcast_to(self.piece(times) if piece is None else piece, times.shape)
        shifted = self.coefficients[:, k].transpose(1, 0, 2).copy()
        distance = (times - self.knots[k])[:, None]
        for low in range(DEGREE):  # Horner's scheme moves the centre of a polynomial
            for j in range(DEGREE - 1, low - 1, -1):
                shifted[:, :, j] += distance * shifted[:, :, j + 1]
        result = np.zeros((len(times), len(self.coefficients), order + 1))
        result[:, :, : DEGREE + 1] = shifted[:, :, : order + 1]
        return result

    def stretches(self, start: float, end: float) -> Iterator[tuple[int | None, float]]:
        """The pieces on the way from one time to another, each with the time at which it ends."""
        if not len(self.coefficients):
            yield None, end
            return
        inner = self.knots[1:-1]
        first, last = inner.searchsorted(min(start, end), "right"), inner.searchsorted(max(start, end), "left")
        stops = inner[first : max(first, last)]
        stops = np.r_[stops, end] if end >= start else np.r_[stops[::-1], end]
        for before, stop in zip(np.r_[start, stops[:-1]], stops, strict=True):
            yield int(self.piece(np.array([0.5 * (before + stop)]))[0]), float(stop)


NO_PIECES = Pieces(np.zeros(0), np.zeros((0, 0, DEGREE + 1)))


def merged(inputs: Sequence[Sampled]) -> Pieces:
    """Several inputs as one piecewise polynomial, over the times that all of them cover."""
    if not inputs:
        return NO_PIECES
    first = max(item.times[0] for item in inputs)
    end, last = min(item.end for item in inputs), min(item.pieces.knots[-1] for item in inputs)
    if not first < min(end, last):
        raise DataError("the sampled inputs have no time in common; sample them over the same times")
    knots = np.unique(np.concatenate([item.pieces.knots for item in inputs]))
    knots = knots[(knots >= first) & (knots <= last)]
    # A piece as short as rounding would hold no Taylor step.
    apart = np.diff(knots) > _MERGED * max(abs(first), abs(last))
    knots = np.r_[knots[:-1][apart], knots[-1]]
    middles = 0.5 * (knots[1:] + knots[:-1])
    rows = np.stack([item.pieces.series(knots[:-1], DEGREE, item.pieces.piece(middles))[:, 0] for item in inputs])
    # Where all inputs stay constant, as between two doses, steps may go on.
    still = np.all((rows[:, 1:] == rows[:, :-1]).all(axis=2) & (rows[:, 1:, 1:] == 0).all(axis=2), axis=0)
    kept = np.r_[True, ~still]
    return Pieces(np.r_[knots[:-1][kept], knots[-1]], rows[:, kept], end)


# --- jets -------------------------------------------------------------------------------------------------------------


def input_jets(model: Model, given: Mapping[str, Sampled | str], t: np.ndarray | float, order: int) -> np.ndarray:
    """Taylor coefficients u^(k)/k! of all inputs of a model at a time, of shape (inputs, order + 1).

    `given` are the inputs of an experiment, which replace those of the model.  Many times give (times, inputs,
    order + 1).  Where a sampled input jumps, its jet is that of the piece which begins there.
    """
    times = np.atleast_1d(np.asarray(t, dtype=float))
    result = np.zeros((len(times), len(model.inputs), order + 1))
    functions: dict[int, object] = {}
    for i, (name, expression) in enumerate(model.inputs.items()):
        source = given.get(name, expression)
        if isinstance(source, Sampled):
            result[:, i] = source.pieces.series(times, order)[:, 0]
        elif source is None:
            raise DataError(f"the input '{name}' is sampled, but there are no samples of it")
        else:
            functions[i] = source
    if functions:
        result[:, list(functions)] = _function_jets(list(functions.values()), times, order)
    return result if np.ndim(t) else result[0]


def _function_jets(functions: Sequence[object], times: np.ndarray, order: int) -> np.ndarray:
    """Taylor coefficients of expressions in t, as the outputs of a model that does nothing else; where one switches,
    of the branch that begins there."""
    from odejet.jets.numeric import jets
    from odejet.model import Model
    from odejet.model.modes import analytic_at
    from odejet.model.tape import build

    clock = Model({"idle": 0}, {f"f{i}": function for i, function in enumerate(functions)})
    branches: dict[tuple, list[int]] = {}
    for i, t in enumerate(times):
        here = tuple(analytic_at(function, float(t)) for function in clock.outputs.values())
        branches.setdefault(here, []).append(i)
    result = np.zeros((len(times), len(functions), order + 1))
    for here, places in branches.items():
        tape = build(clock.replace(outputs=dict(zip(clock.outputs, here, strict=True))))
        states, nothing = np.zeros((len(places), 1)), np.zeros((len(places), 0))
        result[places] = jets(tape, states, nothing, times[places], order=order).outputs[..., 0]
    return result
