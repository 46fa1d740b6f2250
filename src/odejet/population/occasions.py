"""Occasions: parameters that differ between the visits of a subject, too.

A column of the table tells the occasion of every row.  In the model of a subject such a parameter is a state that stays
as it is and is set anew when an occasion begins, so that what was given on one occasion is carried over to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odejet.data import Experiment
from odejet.data.covariate import Covariate
from odejet.errors import DataError, ModelError, nearest
from odejet.model import Event, Model
from odejet.model.expressions import ZERO, Symbol, constant
from odejet.model.transform import rewritten
from odejet.population.layout import on_occasion


@dataclass(frozen=True)
class Occasions:
    """Which column tells occasions, and the parameters that differ between them."""

    column: str = ""
    parameters: tuple[str, ...] = ()

    @classmethod
    def read(cls, given: Any, random: Sequence[str]) -> Occasions:
        """Return what is asked: the name of a column, for all random effects, or a column with a list of parameters."""
        if given is None:
            return cls()
        if isinstance(given, str):
            return cls(given, tuple(random))
        if not isinstance(given, Mapping) or len(given) != 1:
            raise ModelError("occasions is the name of a column, or {'occ': ['ka', 'Cl']} for some parameters")
        ((column, names),) = given.items()
        if isinstance(names, str) or not isinstance(names, Sequence) or not names:
            raise ModelError(f"occasions: the parameters of '{column}' must be a list such as ['ka']")
        for name in names:
            if name not in random:
                raise ModelError(f"occasions: '{name}' has no random effect{nearest(str(name), random)}")
        return cls(str(column), tuple(name for name in random if name in names))

    def model(self, model: Model) -> Model:
        """Return the model in which these parameters are states that stay as they are."""
        if not self.parameters:
            return model
        states = {**model.states, **dict.fromkeys(self.parameters, ZERO)}
        if not isinstance(model.initial, Mapping) or model.steady:
            raise ModelError("a model that begins at steady state cannot have occasions; give initial values")
        initial = {**model.initial, **{name: Symbol(on_occasion(name, 0)) for name in self.parameters}}
        return rewritten(model, states=states, initial=initial)

    def subject(self, experiment: Experiment) -> tuple[Experiment, int]:
        """Return a subject in which these parameters change with the occasion, and the number of its occasions."""
        if not self.parameters:
            return experiment, 0
        begins = [float(time) for time in self._begins(experiment)]
        events = [
            Event(at=time, set={name: on_occasion(name, o) for name in self.parameters}, seen=True)
            for o, time in enumerate(begins)
            if o
        ]
        return replace(experiment, events=(*experiment.events, *events)), len(begins)

    def _begins(self, experiment: Experiment) -> list[float]:
        told = self._told(experiment)
        given = [float(time) for time in (constant(dose.time) for dose in experiment.doses) if time is not None]
        times = np.unique(np.concatenate([told.times, given, *(one.times for one in experiment.outputs.values())]))
        # Rows of a table are as far apart as rounding, where order at one time counts.
        missing = [t for t in times if np.abs(told.times - t).min() > 1e-9 * max(1.0, abs(t))]
        if missing:
            raise DataError(
                f"{experiment.name}: the occasion '{self.column}' of the row at t = {missing[0]:g} is missing; give "
                "one in every row"
            )
        labels, begins = list[Any](), list[float]()
        for time, value in zip(told.times.tolist(), told.values.tolist(), strict=True):
            if not labels or value != labels[-1]:
                if value in labels:
                    raise DataError(
                        f"{experiment.name}: the occasion {value} of '{self.column}' begins again at t = {time:g}; "
                        "number occasions in the order of time"
                    )
                labels.append(value)
                begins.append(time)
        return begins

    def _told(self, experiment: Experiment) -> Covariate:
        if self.column in experiment.covariates:
            return experiment.covariates[self.column]
        if self.column in experiment.outputs:
            series = experiment.outputs[self.column]
            return Covariate(series.times, series.values)
        known = [*experiment.covariates, *experiment.outputs]
        raise DataError(
            f"{experiment.name}: there is no column '{self.column}' of occasions{nearest(self.column, known)}"
        )
