"""Shooting: where the algebra is done, and from which derivatives.

The paper's Step 6: shooting times crowd towards the start of an experiment, where trajectories move most; pairs of them
are as far apart as possible.  At each time every estimator that the smoothing admits gives one set of data for the
square system; the first set takes the most trusted estimator of each output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from odejet.algebra.system import SquareSystem, Targets
from odejet.data import Experiment, Series
from odejet.jets.inputs import input_jets
from odejet.smooth import Jet, Smoothed

WARP = 3.0
"""The exponent of the paper's warp."""

AUTOMATIC = "automatic"
"""The set of data that takes the first choice of each output."""

ESTIMATORS = 6
"""Sets of data per shooting time, beside the automatic one."""


@dataclass(frozen=True)
class Shot:
    """Where a set of data comes from: its shooting times and its estimator."""

    times: tuple[float, ...]
    estimator: str


def shooting_times(series: Sequence[Series], count: int) -> np.ndarray:
    """Measured times nearest to the exponentially warped grid, within the times of all given outputs."""
    first = max(float(s.times[0]) for s in series)
    last = min(float(s.times[-1]) for s in series)
    measured = np.unique(np.concatenate([s.times for s in series]))
    measured = measured[(measured >= first) & (measured <= last)]
    if not len(measured):
        return measured
    even = np.arange(count) / max(count - 1, 1)
    wanted = first + (np.exp(WARP * even) - 1) / (np.exp(WARP) - 1) * (last - first)
    return np.unique(measured[np.argmin(np.abs(measured[:, None] - wanted[None, :]), axis=0)])


def widest_pairs(times: np.ndarray, count: int) -> list[tuple[float, float]]:
    """Pairs of shooting times by falling distance."""
    pairs = sorted(combinations(times.tolist(), 2), key=lambda pair: (pair[0] - pair[1], pair[0]))
    return pairs[:count]


class Jets:
    """Derivatives of all outputs of one experiment at chosen times, by every admitted estimator."""

    def __init__(self, smoothed: Mapping[str, Smoothed], times: np.ndarray, orders: Mapping[str, int]) -> None:
        self.times = times
        self._found: dict[str, list[dict[str, Jet]]] = {
            name: smoothed[name].jets(times, orders[name]) for name in orders
        }

    def estimators(self, place: int, wanted: Sequence[str] | None) -> list[str]:
        """Names of the sets of data at a time: the automatic one, then estimators by the trust of all outputs."""
        names: dict[str, int] = {}
        for found in self._found.values():
            for rank, name in enumerate(found[place]):
                names[name] = names.get(name, 0) + rank
        ordered = sorted(names, key=lambda name: (names[name], name))
        if wanted is not None:
            return [name for name in wanted if name == AUTOMATIC or name in names]
        return [AUTOMATIC, *ordered]

    def means(self, place: int, estimator: str, outputs: Sequence[str]) -> list[np.ndarray] | None:
        """Derivatives of the outputs; an output that does not admit the estimator takes its own first choice."""
        rows = []
        for name in outputs:
            found = self._found[name][place] if name in self._found else {}
            if not found:
                return None
            rows.append(found.get(estimator, next(iter(found.values()))).mean)
        return rows


def orders_of(system: SquareSystem) -> dict[str, int]:
    """The highest derivative of each output that a system uses."""
    outputs = list(system.joined.model.outputs)
    orders: dict[str, int] = {}
    for row in system.rows:
        _, (output, order) = system.joined.split(row)
        orders[outputs[output]] = max(orders.get(outputs[output], 0), order)
    return orders


def targets(
    system: SquareSystem,
    experiment: Experiment,
    jets: Jets,
    places: Sequence[tuple[int, ...]],
    fixed: np.ndarray,
    estimators: Sequence[str] | None = None,
    most: int = ESTIMATORS,
) -> tuple[list[Shot], Targets]:
    """The data of a system at shooting points (one or two places among the times of `jets` each), by estimators."""
    model, needed = system.joined.model, orders_of(system)
    series = input_series(system, experiment, jets.times)
    factorials = np.cumprod(np.r_[1.0, np.arange(1, system.highest + 1)])
    shots, data, inputs = [], [], []
    for place in places:
        sets = [jets.estimators(p, estimators) for p in place]
        common = [e for e in sets[0] if all(e in others for others in sets)][: 1 + most]
        seen: list[np.ndarray] = []
        for estimator in common:
            values = np.zeros((system.points * len(model.outputs), system.highest + 1))
            means = [jets.means(p, estimator, list(needed)) for p in place]
            if any(m is None for m in means):
                continue
            for point, rows in enumerate(means):
                for name, row in zip(needed, rows or (), strict=True):
                    at = point * len(model.outputs) + list(model.outputs).index(name)
                    values[at, : len(row)] = row / factorials[: len(row)]
            chosen = values[system.row_array[:, 0], system.row_array[:, 1]]
            if not np.all(np.isfinite(chosen)) or any(np.array_equal(chosen, other) for other in seen):
                continue
            seen.append(chosen)
            shots.append(Shot(tuple(float(jets.times[p]) for p in place), estimator))
            data.append(chosen)
            inputs.append(np.concatenate([series[p] for p in place]))
    shape = (len(shots), system.points * system.joined.inputs, system.highest + 1)
    found = Targets(np.array(data).reshape(len(shots), len(system.rows)), np.array(inputs).reshape(shape), fixed)
    return shots, found


def input_series(system: SquareSystem, experiment: Experiment, times: np.ndarray) -> np.ndarray:
    """Taylor coefficients of the inputs of one point at every time, the time itself last where equations have it."""
    order, model = system.highest, system.joined.model
    series = np.zeros((len(times), system.joined.inputs, order + 1))
    if model.inputs:
        series[:, : len(model.inputs)] = input_jets(model, experiment.inputs, times, order)
    if system.joined.timed:
        series[:, -1, 0] = times
        if order:
            series[:, -1, 1] = 1.0
    return series
