"""Planned: an experiment that was not measured, with the values and the uncertainty of a fit.

Parameters that all experiments share are those of the fit.  What each experiment of the data has for itself, initial
states above all, must be told of a new one; if the data have one experiment only, it is that one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from odejet.data import Data, Experiment
from odejet.errors import ModelError, clipped
from odejet.objective.courses import measuring_flows
from odejet.problem import Problem
from odejet.problem.conditions import Condition, unmeasured
from odejet.problem.unknowns import Unknowns
from odejet.result.prediction import Prediction, prediction
from odejet.simulate.simulation import checked_times
from odejet.uncertainty.bands import bands
from odejet.uncertainty.likelihood import Likelihood

if TYPE_CHECKING:
    from odejet.result.fit import Fit


def predicted(
    fit: Fit,
    times: Sequence[float] | np.ndarray | None,
    experiment: str | Data | None,
    level: float,
    method: str,
    states: bool,
    evaluations: int,
    time_limit: float,
) -> Prediction:
    """What a fit predicts of an experiment of its data, or of another."""
    problem, likelihood = fit.problem, fit.likelihood
    if isinstance(experiment, Data):
        if times is None:
            raise ModelError("an experiment that was not measured has no times; give those that are to be predicted")
        likelihood, own = planned(problem, likelihood, experiment)
        number = len(problem.experiments)
    else:
        number = problem.number(experiment)
        own = problem.experiments[number]
    asked = problem.times(number) if times is None else checked_times(times)
    found = bands(likelihood, number, asked, level, method, states, evaluations, time_limit)
    return prediction(problem, likelihood, number, own, *found)


def planned(problem: Problem, likelihood: Likelihood, data: Data) -> tuple[Likelihood, Experiment]:
    """The likelihood of a fit with one more experiment, which has no measurements and stands last."""
    if len(data.experiments) != 1:
        raise ModelError(f"one experiment can be predicted at a time, and these data have {len(data.experiments)}")
    new = replace(data.experiments[0], outputs={})
    model = problem.model
    if model.experiments:  # what a file tells of its experiments by name is not of this one
        model = model.replace(experiments={})
    condition = unmeasured(model, new, problem.fixed)
    simulator = likelihood.misfit.simulator
    places = (*simulator.unknowns.places, _places(problem, condition))
    simulator = replace(
        simulator,
        conditions=(*simulator.conditions, condition),
        flows=(*simulator.flows, *measuring_flows([condition])),
        unknowns=Unknowns(simulator.unknowns.entries, places),
    )
    return replace(likelihood, misfit=replace(likelihood.misfit, simulator=simulator)), condition.experiment


def _places(problem: Problem, condition: Condition) -> dict[str, int]:
    """Where the unknowns of a new experiment stand among those of the fit; one that stands nowhere is refused."""
    layout, own = problem.layout, condition.model
    shared = {unknown.name: i for i, unknown in enumerate(layout) if unknown.experiment is None}
    known = shared | (dict(layout.places[0]) if len(problem.experiments) == 1 else {})
    for name in (*own.free_states, *own.parameters):
        if name not in known:
            what = "initial" if name in own.states else "values"
            raise ModelError(
                f"{condition.experiment.name}: every experiment has its own {clipped(name)}, and nothing tells that of "
                f"one that was not measured; give {what}={{{name!r}: ...}}"
            )
    return {name: known[name] for name in (*own.free_states, *own.parameters)}
