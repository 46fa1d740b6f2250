"""Replicas: several experiments as one model, in which each has states, inputs and outputs of its own.

Counting needs the equations of all experiments at once; this is the model that has them.  The others come before the
model's own names, which so are the first choice where something lost must be held fixed.
"""

from __future__ import annotations

from dataclasses import replace

from odejet.identify import globally, local, orders
from odejet.identify.globally import Count, Engine
from odejet.identify.local import Local
from odejet.model import Model
from odejet.model.transform import copies, joined


def replicated(model: Model, experiments: int) -> Model:
    """The model of several experiments: its own names for one of them, and the parameters once."""
    taken = {*model.states, *model.outputs, *model.inputs, *model.parameters, *model.fixed}
    others = copies(model, (f"_{number}" for number in range(experiments, 1, -1)), taken)
    return joined([*(other for other, _ in others), model], model.parameters)


def count(ranks: Local, engine: Engine, seed: int = 0) -> Count:
    """The solutions that several experiments leave, of parameters and of the states of one of them."""
    problem = ranks.problem
    model = replicated(problem.model, problem.experiments)
    question = local.problem(model, list(problem.functions), problem.inputs)
    together = local.analyse(question, seed, budget=engine.budget)
    found = globally.count(together, orders.choose(together), engine, seed, problem.model.unknowns)
    return replace(found, experiments=problem.experiments)
