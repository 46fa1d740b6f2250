"""Beginning: a fit of very long records begins with their first part.

A million samples of a machine tell its constants to six digits, and a few thousand tell them well enough to begin with:
so these are searched by themselves, in a hundredth of the time, and where that leads is refined on more and more of the
records, up to all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from odejet.data import Data
from odejet.data.experiment import Experiment
from odejet.decide.optima import Provenance
from odejet.decide.optimality import Optimality
from odejet.decide.state import State
from odejet.decide.task import Record, Task
from odejet.errors import DataError, ModelError
from odejet.jets.inputs import Sampled
from odejet.problem import Problem
from odejet.search.refine import Refined, refine

BEGINNING = Provenance("beginning", start="multistart")

LONG = 20_000
"""Times of an experiment from which on it is long: simulations of a small model along as many take a tenth of the time
of a search of the first few thousand."""

FIRST = 2_000
"""Times of its first part."""

GROWTH = 8
"""Times as long is the next part: errors of a frequency that one part leaves are a fraction of a turn on the next."""

SHARE = 0.5
"""Of the time that is left, for the search of the first part."""

EVALUATIONS = 60
"""Of a part on the way."""


def beginning(problem: Problem) -> Problem | None:
    """Return the problem with the first part of long records; None where none is long, or a part tells too little."""
    experiments = problem.experiments
    if all(_count(one) <= LONG for one in experiments) or problem.model.steady:
        return None
    try:
        found = Problem(
            problem.model,
            Data.of(map(_first, experiments)),
            problem.given_bounds,
            problem.positive,
            problem.noise,
            {name: str(value) for name, value in problem.fixed.items()},
            problem.local,
            problem.weights,
            priors=problem.priors,
        )
    except (DataError, ModelError):
        return None
    return found if found.unknowns == problem.unknowns else None


def _count(experiment: Experiment) -> int:
    return max((len(series) for series in experiment.outputs.values()), default=0)


def _first(experiment: Experiment) -> Experiment:
    """An experiment until so many times of its longest series have passed."""
    if _count(experiment) <= LONG:
        return experiment
    longest = max(experiment.outputs.values(), key=len)
    end = float(longest.times[FIRST - 1])
    outputs = {name: series.at(series.times <= end) for name, series in experiment.outputs.items()}
    if not all(len(series) for series in outputs.values()):
        raise DataError("an output is not measured in the first part")
    inputs = {name: _until(one, end) for name, one in experiment.inputs.items()}
    return replace(experiment, outputs=outputs, inputs=inputs)


def _until(given: Sampled | str, end: float) -> Sampled | str:
    """Samples of an input up to the first beyond an end."""
    if isinstance(given, str):
        return given
    last = int(np.searchsorted(given.times, end, side="right")) + 1
    return replace(given, times=given.times[:last], values=given.values[:last])


def begun(state: State, first: Problem, search: Callable[[Task], tuple[Refined, Optimality]]) -> State:
    """With the optimum to which the best values of the first part lead."""
    task = state.task
    with task.stage("beginning"):
        options = replace(task.options, time_limit=max(SHARE * task.left, 1e-3))
        best, answer = search(
            Task(first, options, task.budget.at_most(seconds=options.time_limit), Record(task.record.progress))
        )
        if not math.isfinite(best.cost):
            return state
        z, fraction = best.z, GROWTH * FIRST / max(map(_count, task.problem.experiments))
        while fraction < 1 and task.left > 0:
            part = task.misfit.window(fraction)
            z = refine(part, z, frame=state.frame, time_limit=task.left, max_evaluations=EVALUATIONS).z
            fraction *= GROWTH
        whole = refine(task.misfit, z, frame=state.frame, time_limit=task.left)
    task.record.census.add("refinements", "of a first part")
    told = [f"the first part of the records was searched by itself: {answer.sentence}"]
    known = Optimality(str(answer), answer.starts, answer.agreeing, answer.optima, answer.unseen, told)
    return replace(state.adding(whole, BEGINNING), apart=(whole.cost, known), rounds=1)
