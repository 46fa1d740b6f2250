"""Replicas: several experiments as one model, in which each has states, inputs and outputs of its own.

Counting needs the equations of all experiments at once; this is the model that has them.  The others come before the
model's own names, which so are the first choice where something lost must be held fixed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from odejet.identify import globally, local, orders
from odejet.identify.globally import Count, Engine
from odejet.identify.local import Local
from odejet.model import Model
from odejet.model.expressions import Expression, Symbol, fresh, substituted


def replicated(model: Model, experiments: int) -> Model:
    """The model of several experiments: its own names for one of them, and the parameters once."""
    taken = {*model.states, *model.outputs, *model.inputs, *model.parameters, *model.fixed}
    parts = []
    for number in range(experiments, 1, -1):
        moving = (*model.states, *model.outputs, *model.inputs)
        parts.append({name: fresh(f"{name}_{number}", taken) for name in moving})
    parts.append({})

    def every(table: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for names in parts:
            symbols: dict[str, Expression] = {name: Symbol(other) for name, other in names.items()}
            for name, value in getattr(model, table).items():
                found[names.get(name, name)] = value if value is None else substituted(value, symbols)
        return found

    return Model(
        states=every("states"),
        outputs=every("outputs"),
        inputs=every("inputs"),
        initial=every("initial"),
        parameters=list(model.parameters),
        fixed=dict(model.fixed),
        name=model.name,
    )


def count(ranks: Local, engine: Engine, seed: int = 0) -> Count:
    """The solutions that several experiments leave, of parameters and of the states of one of them."""
    problem = ranks.problem
    model = replicated(problem.model, problem.experiments)
    question = local.problem(model, list(problem.functions), problem.inputs)
    together = local.analyse(question, seed, budget=engine.budget)
    found = globally.count(together, orders.choose(together), engine, seed, problem.model.unknowns)
    return replace(found, experiments=problem.experiments)
