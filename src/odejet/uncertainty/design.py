"""Design: what standard errors an experiment would give, before it is done.

A design is a model with values one expects, times of measurement and the sd of their noise.  Its covariance is that of
a fit at these values, by exact sensitivities; no data are needed.  `changes` tells what would help: twice the points of
an output, a longer or another course of time, a state measured besides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.data import Data, Experiment
from odejet.errors import DataError, ModelError, nearest
from odejet.extras import needed
from odejet.model import Model
from odejet.model.cumulated import refuse_windows
from odejet.numerals import short
from odejet.objective.misfit import Misfit
from odejet.problem import Problem
from odejet.problem.noise import noise_of
from odejet.progress import doing
from odejet.simulate import Simulation, simulate
from odejet.tables import html_table, table
from odejet.uncertainty.fisher import covariance
from odejet.uncertainty.names import ByName, Matrix

if TYPE_CHECKING:
    import pandas

Times = Sequence[float] | np.ndarray | Mapping[str, Sequence[float] | np.ndarray]
Noise = float | str | Mapping[str, float | str]

LONGER = 1.5
"""How much longer the longer experiment of a what-if is."""


@dataclass(frozen=True)
class Change:
    """A what-if: by which factor each standard error would change, below one where it gets better."""

    what: str
    factors: Mapping[str, float]

    @property
    def typical(self) -> float:
        """The geometric mean of the factors that are finite and not zero."""
        logs = [math.log(f) for f in self.factors.values() if 0 < f < math.inf]
        return math.exp(sum(logs) / len(logs)) if logs else 1.0

    def __repr__(self) -> str:
        return f"{self.what}: standard errors times {self.typical:.2g} on average"


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """An experiment that is planned, and what it would tell."""

    model: Model
    parameters: Mapping[str, float]
    initial_state: Mapping[str, float]
    times: Mapping[str, np.ndarray]  # by output
    noise: Noise
    inputs: Mapping[str, Any] | None = None

    @property
    def start(self) -> float:
        """The first measurement, where the initial state holds."""
        return min(float(times[0]) for times in self.times.values())

    @cached_property
    def _misfit(self) -> tuple[Misfit, np.ndarray]:
        """The misfit of noise-free data, and the values that made them."""
        series = {}
        for output, times in self.times.items():
            run = self._simulated(self.model, times)
            if not run.success:
                raise ModelError(f"the design cannot be simulated: {run.message}")
            whole = noise_of(output, self.noise, ()).law.whole
            series[output] = (run.times, np.round(run[output]) if whole else run[output])
        misfit = Problem(self.model, Data(None, series, inputs=dict(self.inputs or {})), noise=self.noise).misfit
        unknown = [name for name, known in zip(misfit.outputs, misfit.known, strict=True) if math.isnan(known)]
        if unknown:
            raise ModelError(f"a design needs the sd of the noise of '{unknown[0]}': a number or a percentage")
        values = {**self.initial_state, **self.parameters}
        missing = [one.name for one in misfit.unknowns if one.name not in values]
        if missing:
            raise ModelError(f"a design needs a value of '{missing[0]}'; give it with the parameters")
        return misfit, np.array([float(values[unknown.name]) for unknown in misfit.unknowns])

    def _simulated(self, model: Model, times: np.ndarray) -> Simulation:
        own = {name: value for name, value in self.parameters.items() if name in model.parameters}
        return simulate(model, own, self.initial_state, times, start=self.start, inputs=self.inputs or None)

    @cached_property
    def covariance(self) -> Matrix:
        misfit, z = self._misfit
        found = misfit.evaluate(z)
        if found.jacobian is None or found.residuals is None:
            raise ModelError(f"the design cannot be simulated: {found.message}")
        levels = misfit.group_levels(misfit.known)
        jacobian, _, _ = found.expected.weighted(found.residuals, misfit.row_groups, levels)
        return Matrix(tuple(misfit.unknowns), covariance(jacobian, np.ones(len(jacobian)))[0])

    @property
    def labels(self) -> tuple[str, ...]:
        return self.covariance.labels

    @property
    def values(self) -> dict[str, float]:
        return ByName(self._misfit[0].unknowns, self._misfit[1].tolist())

    @property
    def stderr(self) -> dict[str, float]:
        """Expected standard errors by label, infinite for what the design does not determine."""
        return ByName(self._misfit[0].unknowns, np.sqrt(np.diag(self.covariance.values)).tolist())

    @property
    def relative(self) -> dict[str, float]:
        """Expected standard errors relative to the values, by label."""
        pairs = zip(self.stderr.values(), self.values.values(), strict=True)
        return ByName(self._misfit[0].unknowns, [sd / abs(value) if value else math.inf for sd, value in pairs])

    @property
    def points(self) -> int:
        return sum(len(times) for times in self.times.values())

    # --- what if ---

    def with_times(self, times: Times) -> Design:
        """Return the design measured at other times; the first stays, since the initial state holds there."""
        changed = replace(self, times=_by_output(times, list(self.times)))
        if changed.start != self.start:
            raise ModelError(f"the initial state holds at t = {self.start:g}; measure some output there")
        return changed

    def with_output(self, expression: str, noise: float | str | None = None, name: str | None = None) -> Design:
        """Return the design with a further output, such as a state; its noise is by default as large, relative to its
        mean, as that of the outputs there are."""
        name = name or _free_name(self.model, expression)
        model = self.model.replace(outputs={**self.model.outputs, name: expression})
        grid = max(self.times.values(), key=len)
        if noise is None:
            values = self._simulated(model, grid)[name]
            noise = self._usual_noise() * (abs(float(values.mean())) or float(values.std()) or 1.0)
        own = {output: self._noise_of(output) for output in self.times}
        return replace(self, model=model, times={**self.times, name: grid}, noise={**own, name: noise})

    def _noise_of(self, output: str) -> float | str:
        return self.noise[output] if isinstance(self.noise, Mapping) else self.noise

    def _usual_noise(self) -> float:
        """The sd of the noise relative to the mean of an output, in the geometric mean over the outputs."""
        misfit, z = self._misfit
        ratios, sds = [], misfit.noise_at(misfit.evaluate(z, jacobian=False), misfit.known).sds
        for rows in misfit.groups:
            size = abs(float(misfit.values[rows].mean())) or float(misfit.values[rows].std()) or 1.0
            ratios.append(float(np.median(sds[rows])) / size)
        return math.exp(float(np.mean(np.log(ratios))))

    def changes(self) -> list[Change]:
        """What would help, the most helpful first: more points, more time, another state measured."""
        with doing("trying what would help"):
            return self._changes()

    def _changes(self) -> list[Change]:
        changes = []
        for output, times in self.times.items():
            denser = np.unique(np.concatenate([times, 0.5 * (times[1:] + times[:-1])]))
            if len(denser) > len(times):
                changes.append(self._change(f"twice the points of {output}", times={**self.times, output: denser}))
        if not self.inputs:
            longer = {output: _longer(times, self.start) for output, times in self.times.items()}
            changes.append(self._change(f"measured {LONGER:g} times as long, with as many points", times=longer))
        measured = {str(expression) for name, expression in self.model.outputs.items() if name in self.times}
        changes += [self._change(f"{s} measured too", output=s) for s in self.model.states if s not in measured]
        return sorted((change for change in changes if change is not None), key=lambda change: change.typical)

    def _change(self, what: str, times: Times | None = None, output: str = "") -> Change | None:
        """What a change does; None where the changed design cannot be simulated."""
        changed = self.with_output(output) if times is None else self.with_times(times)
        before = self.stderr
        try:
            after = changed.stderr
        except (ModelError, DataError):
            return None
        return Change(what, {label: _factor(after[label], sd) for label, sd in before.items()})

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per unknown: value, expected standard error, and its factor under every change."""
        pandas = needed("pandas")
        columns = {"value": list(self.values.values()), "stderr": list(self.stderr.values())}
        columns |= {change.what: [change.factors[label] for label in self.labels] for change in self.changes()}
        return pandas.DataFrame(columns, index=pandas.Index(self.labels, name="quantity"))

    def __repr__(self) -> str:
        lines = ["", *table(self._rows(), right=(1, 2, 3)), "", *map(repr, self.changes())]
        return "\n".join([self._title(), *(f"  {line}".rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        return html_table(self._rows(), (1, 2, 3), self._title(), map(repr, self.changes()))

    def _title(self) -> str:
        return f"design of {self.model.name}: {self.points} measurement{'s' if self.points != 1 else ''}"

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("quantity", "value", "± stderr", "relative")]
        for label, value in self.values.items():
            sd = self.stderr[label]
            shown = f"{sd:.2g}" if math.isfinite(sd) else "unknown"
            rows.append((label, f"{value:.4g}", shown, _percent(self.relative[label])))
        return rows


def design(
    model: Model,
    parameters: Mapping[str, float],
    initial_state: Mapping[str, float] | None,
    times: Times,
    noise: Noise,
    *,
    inputs: Mapping[str, Any] | None = None,
) -> Design:
    """The standard errors to expect from an experiment, and what would make them smaller.

    `times` for all outputs, or by output for those that are measured; `noise` is an sd, a percentage such as "2%" of
    each value, a law such as "lognormal(0.1)" or "poisson", or one of these per output.  Names in a law need a value
    among the parameters.
    """
    refuse_windows(model, "a design")
    by_output = _by_output(times, list(model.outputs))
    for name in by_output:
        if name not in model.outputs:
            raise ModelError(f"the model has no output '{name}'{nearest(name, model.outputs)}")
    planned = Design(model, dict(parameters), dict(initial_state or {}), by_output, noise, inputs)
    if not len(planned._misfit[0].unknowns):
        raise ModelError(f"everything in {model.name} is known, so that there is nothing to plan; leave something open")
    planned.covariance  # noqa: B018 - what is wrong with a design is told here
    return planned


def _by_output(times: Times, outputs: Sequence[str]) -> dict[str, np.ndarray]:
    table = times if isinstance(times, Mapping) else dict.fromkeys(outputs, times)
    if not table:
        raise ModelError("a design needs at least one output that is measured")
    found = {}
    for name, values in table.items():
        try:
            array = np.sort(np.asarray(values, dtype=float))
        except (TypeError, ValueError):
            raise ModelError(f"the times of '{name}' must be numbers") from None
        if array.ndim != 1 or not len(array) or not np.all(np.isfinite(array)):
            raise ModelError(f"the times of '{name}' must be a non-empty list of finite numbers")
        found[name] = array
    return found


def _longer(times: np.ndarray, start: float) -> np.ndarray:
    return start + LONGER * (times - start)


def _free_name(model: Model, expression: str) -> str:
    taken = {*model.states, *model.outputs, *model.inputs, *model.parameters, *model.fixed}
    base = "".join(c if c.isalnum() else "_" for c in f"measured_{expression}")[:40]
    return next(name for name in (base, *(f"{base}_{i}" for i in range(2, 1000))) if name not in taken)


def _factor(after: float, before: float) -> float:
    if math.isinf(before):
        return 1.0 if math.isinf(after) else 0.0
    return after / before if before else 1.0


def _percent(share: float) -> str:
    return f"{short(100 * share, 2)} %" if math.isfinite(share) else "unknown"


def repeated(
    experiment: Experiment,
    model: Model,
    parameters: Mapping[str, float],
    initial_state: Mapping[str, float],
    noise: Mapping[str, float | str],
) -> Design:
    """An experiment that was done as a design, with the values and the noise that were found."""
    return Design(
        model,
        parameters,
        initial_state,
        {name: np.unique(series.times) for name, series in experiment.outputs.items()},
        noise,
        experiment.sampled or None,
    )
