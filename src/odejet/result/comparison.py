"""Comparison: data beside fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from odejet.data import Data
from odejet.data.censored import Limits
from odejet.decide.outliers import Measurement
from odejet.simulate import Simulation


@dataclass(frozen=True, eq=False)
class Comparison:
    """One output of one experiment: what was measured, what the fit says, and the sd of the noise."""

    experiment: str
    output: str
    times: np.ndarray
    values: np.ndarray
    fitted: np.ndarray  # NaN where the simulation did not get
    sds: np.ndarray
    suspicious: np.ndarray  # which measurements the certificate calls no normal noise
    limits: Limits | None = None  # of measurements that are censored

    @property
    def censored(self) -> np.ndarray:
        """Which measurements are known only to lie between limits."""
        return np.zeros(len(self.times), dtype=bool) if self.limits is None else self.limits.censored

    @property
    def residuals(self) -> np.ndarray:
        """Model minus measurement; of one that is censored to the nearer limit, and zero between limits."""
        if self.limits is None:
            return self.fitted - self.values
        nearest = np.clip(self.fitted, self.limits.lower, self.limits.upper)
        return np.asarray(self.fitted - nearest)

    @property
    def standardised(self) -> np.ndarray:
        """Residuals in units of the noise."""
        return self.residuals / self.sds


def compared(
    data: Data,
    simulated: Callable[[str], Simulation],
    sds: Mapping[str, Mapping[str, np.ndarray]],
    suspicious: Iterable[Measurement],
) -> tuple[Comparison, ...]:
    """Every output of every experiment beside its simulation."""
    named: dict[tuple[str, str], set[tuple[float, float]]] = {}
    for one in suspicious:
        named.setdefault((one.experiment, one.output), set()).add((one.time, one.value))
    found = []
    for experiment in data.experiments:
        simulation = simulated(experiment.name)
        for output, series in experiment.outputs.items():
            places = np.searchsorted(simulation.times, series.times)
            reached = places < len(simulation.times)
            fitted = np.full(len(series), math.nan)
            fitted[reached] = simulation[output][places[reached]]
            own = np.broadcast_to(sds[experiment.name][output], fitted.shape)
            pairs = zip(series.times.tolist(), series.values.tolist(), strict=True)
            marked = np.array([pair in named.get((experiment.name, output), ()) for pair in pairs], dtype=bool)
            found.append(
                Comparison(experiment.name, output, series.times, series.values, fitted, own, marked, series.limits)
            )
    return tuple(found)
