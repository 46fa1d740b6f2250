"""Prediction: outputs and states at any time, with bands of where they and new measurements of them may be.

With the noise of measurements a band reaches sqrt(a^2 + b^2) to either side, a being its own reach there and b that of
the noise (Zou and Donner 2008): for a straight line this is the prediction interval of regression.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from odejet.attach import attached
from odejet.data import Experiment, Series
from odejet.extras import needed
from odejet.problem import Problem
from odejet.problem.distributions import Distribution
from odejet.problem.noise import RELATIVE_FLOOR
from odejet.simulate.flow import Outcome
from odejet.simulate.outputs import Outputs
from odejet.tables import html_table
from odejet.uncertainty.bands import Ends, Tangent
from odejet.uncertainty.fisher import noise_inflation, quantile
from odejet.uncertainty.likelihood import Likelihood

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas

SCREEN = 20
"""Times that a notebook shows."""


@dataclass(frozen=True, eq=False)
class Band:
    """One output or state over time, and where it may be with the probability of the prediction.

    `low` and `high` are for the quantity itself, `measured_low` and `measured_high` for a new measurement of it; NaN
    where it was never measured.  An end may be infinite: the data do not tell.
    """

    name: str
    times: np.ndarray
    values: np.ndarray
    stderr: np.ndarray
    low: np.ndarray
    high: np.ndarray
    measured_low: np.ndarray
    measured_high: np.ndarray
    profiled: np.ndarray  # where profiles tell, and not curvature
    trusted: np.ndarray  # False where curvature is not to be trusted and no profile came to an end

    @property
    def open(self) -> np.ndarray:
        """Where the data leave an end open."""
        return ~(np.isfinite(self.low) & np.isfinite(self.high))

    def __repr__(self) -> str:
        return f"Band of {self.name}: {len(self)} times, {_described(self)}" if len(self) else f"Band of {self.name}"

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, eq=False)
class Prediction(Outputs[Band]):
    """Bands of the outputs by name, and of the states, over the times that were reached."""

    called = "prediction"

    experiment: str
    level: float
    times: np.ndarray
    outputs: Mapping[str, Band]
    states: Mapping[str, Band]
    outcome: Outcome
    message: str
    data: Mapping[str, Series] = field(default_factory=dict)  # what was measured in the experiment

    @property
    def trusted(self) -> bool:
        """Whether every band is to be trusted at all times."""
        return all(bool(band.trusted.all()) for band in (*self.outputs.values(), *self.states.values()))

    def columns(self, states: bool = True) -> dict[str, np.ndarray]:
        """One row per quantity and time, as columns by name."""
        bands = [*self.outputs.values(), *(self.states.values() if states else ())]
        kinds = ["output"] * len(self.outputs) + ["state"] * len(self.states)
        told = {
            "quantity": [np.full(len(band), band.name, dtype=object) for band in bands],
            "kind": [np.full(len(band), kind, dtype=object) for band, kind in zip(bands, kinds, strict=False)],
            "time": [band.times for band in bands],
        }
        told["value"] = [band.values for band in bands]
        for name in ("stderr", "low", "high", "measured_low", "measured_high"):
            told[name] = [getattr(band, name) for band in bands]
        told["method"] = [np.where(band.profiled, "profile", "delta").astype(object) for band in bands]
        return {name: np.concatenate(parts) if parts else np.zeros(0) for name, parts in told.items()}

    def to_dataframe(self, states: bool = True) -> pandas.DataFrame:
        """One row per quantity and time."""
        pandas = needed("pandas")
        return pandas.DataFrame(self.columns(states))

    @attached
    def plot(self, path: str | os.PathLike[str] | None = None, *, states: bool = True) -> matplotlib.figure.Figure:
        """Every band over time, with what was measured; `path` is a file to write (PNG, PDF or SVG)."""
        raise NotImplementedError

    def __repr__(self) -> str:
        lines = [self._title(), *(f"  {words}" for words in self._said())]
        lines += [f"  {kind:6} {band.name}: {_described(band)}" for kind, band in self._bands()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table of bands at no more than a screenful of times."""
        shown = np.unique(np.linspace(0, len(self.times) - 1, min(len(self.times), SCREEN)).astype(int))
        heads = "time", *(f"{band.name}, {100 * self.level:g} % band" for _, band in self._bands())
        rows = [
            (f"{self.times[i]:.6g}", *(_cell(band, i) for _, band in self._bands())) for i in shown if len(self.times)
        ]
        left = len(self.times) - len(shown)
        more = [f"{left} more times are in .to_dataframe()"] if left > 0 else []
        return html_table([heads, *rows], range(len(heads)), self._title(), [*self._said(), *more])

    def _title(self) -> str:
        return f"Prediction of {self.experiment}: {self.span}, {100 * self.level:g} % bands"

    def _said(self) -> list[str]:
        return [] if self.success else [f"stopped: {self.message}"]

    def _bands(self) -> list[tuple[str, Band]]:
        """The bands of outputs, then of states, that reach any time."""
        named = [("output", band) for band in self.outputs.values()]
        return [pair for pair in (*named, *(("state", band) for band in self.states.values())) if len(pair[1])]


def _cell(band: Band, i: int) -> str:
    return f"{band.values[i]:.4g} ({band.low[i]:.4g} to {band.high[i]:.4g})"


def _described(band: Band) -> str:
    width = np.abs(band.high - band.low)
    words = [f"{band.values.min():.4g} to {band.values.max():.4g}, bands {width.min():.2g} to {width.max():.2g} wide"]
    words += ["by profiles at some times"] if band.profiled.any() else []
    words += ["not to be trusted at some times"] if not band.trusted.all() else []
    return ", ".join(words)


# --- measurements ---


def noise_reach(
    problem: Problem,
    likelihood: Likelihood,
    number: int,
    output: str,
    times: np.ndarray,
    values: np.ndarray,
    level: float,
) -> tuple[np.ndarray, np.ndarray] | None:
    """How far below and above its expected values an output may be measured at these times; None if it never was.

    The noise of an output is that of its measurements: where their standard deviations are known one by one, that of
    those nearest in time.
    """
    misfit = likelihood.misfit
    if output not in misfit.outputs:
        return None
    place = misfit.outputs.index(output)
    inflation = noise_inflation(misfit, likelihood.optimum, likelihood.check)
    blocks = [block for block in problem.measurements.blocks if block.output == output]
    if problem.weights == "likelihood" and (density := blocks[0].density) is not None:
        own = next((block.density for block in blocks if block.experiment == number), None) or density
        return _reach(own.law, level, values, own.scales(values, likelihood.optimum.z)[0])
    sd = float(likelihood.optimum.levels[place] * inflation[place])
    degrees = float(likelihood.information.degrees[place])
    if problem.weights == "likelihood" and (law := problem.noises[output].law).logarithm:
        sd *= quantile(level, degrees) / quantile(level, math.inf)  # as few measurements tell it
        return _reach(law, level, values, sd * _shapes(problem, number, output, times, values))
    reach = quantile(level, degrees) * sd * _shapes(problem, number, output, times, values)
    return reach, reach


def _reach(law: Distribution, level: float, values: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From the values to the quantiles of a law on either side."""
    tail = (1 - level) / 2
    low, high = (law.quantile(p, values, scales) for p in (tail, 1 - tail))
    return np.maximum(values - low, 0.0), np.maximum(high - values, 0.0)


def _shapes(problem: Problem, number: int, output: str, times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The standard deviations of measurements where the noise level is one."""
    blocks = [block for block in problem.measurements.blocks if block.output == output]
    kind = problem.noises[output].kind if problem.weights == "likelihood" else "constant"
    if kind == "relative":
        largest = max(float(np.abs(block.values).max()) for block in blocks)
        return np.maximum(np.abs(values), RELATIVE_FLOOR * largest)
    own = next((block for block in blocks if block.experiment == number), None)
    if own is None:
        return np.full(len(times), float(np.median(np.concatenate([block.shapes for block in blocks]))))
    return np.interp(times, own.times, own.shapes)


def prediction(
    problem: Problem, likelihood: Likelihood, number: int, experiment: Experiment, tangent: Tangent, ends: Ends
) -> Prediction:
    """What is known of an experiment at some times, by name and with the noise of its measurements."""
    names = (*tangent.curves.outputs, *tangent.curves.states)
    bands = []
    for column, name in enumerate(names):
        values, low, high = (part[:, column] for part in (tangent.values, ends.low, ends.high))
        measured = (np.full(len(values), math.nan),) * 2
        if column < len(tangent.curves.outputs):
            noise = noise_reach(problem, likelihood, number, name, tangent.times, values, tangent.level)
            if noise is not None:
                measured = values - np.hypot(values - low, noise[0]), values + np.hypot(high - values, noise[1])
        rest = (part[:, column] for part in (ends.profiled, ends.trusted))
        bands.append(Band(name, tangent.times, values, tangent.sds[:, column], low, high, *measured, *rest))
    count = len(tangent.curves.outputs)
    return Prediction(
        experiment=experiment.name,
        level=tangent.level,
        times=tangent.times,
        outputs={band.name: band for band in bands[:count]},
        states={band.name: band for band in bands[count:]},
        outcome=tangent.outcome,
        message=tangent.message,
        data=experiment.outputs,
    )
