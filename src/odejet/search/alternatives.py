"""Alternatives: what else has the derivatives of an optimum.

The square system at the exact derivatives of an optimum has the optimum itself as a root.  Its other real roots agree
with it in all those derivatives, at that time: they are the other solutions of a model that has several, and good
starts where the data cannot tell one root from another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odejet.algebra.monodromy import Fibre
from odejet.algebra.system import Targets
from odejet.budget import Budget
from odejet.problem import Problem
from odejet.problem.coordinates import Coordinates
from odejet.search import candidates, shooting
from odejet.search.candidates import ALIKE, Census, distance
from odejet.search.proposals import combined
from odejet.simulate.flow import Outcome

PLACES = (0.0, 0.3, 1.0)
"""Where along an experiment the derivatives are taken."""
ATTEMPTS = 2
"""How often roots that were not found are looked for."""


@dataclass(frozen=True)
class Alternatives:
    """Values with the same derivatives, best first: inside the bounds, and outside."""

    inside: list[np.ndarray]
    outside: list[np.ndarray]


def alternatives(
    problem: Problem,
    fibre: Fibre,
    z: np.ndarray,
    frame: Coordinates,
    levels: np.ndarray,
    seed: int,
    budget: Budget | None = None,
) -> Alternatives:
    """Real roots that share the square system's derivatives with z at a few times of the only experiment."""
    (experiment,), (flow,), system = problem.experiments, problem.flows, fibre.system
    own = problem.conditions[0].model
    times = experiment.start + np.array(PLACES) * (experiment.end - experiment.start)
    parameters, states = (problem.layout.gather(0, z, names) for names in (own.parameters, own.states))
    run = flow.run(parameters, states, times, start=experiment.start, sensitivities=False)
    if run.outcome is not Outcome.COMPLETED:
        return Alternatives([], [])
    held = problem.layout.gather(0, z, system.joined.together.parameters)
    everything = np.concatenate([run.states[:, :, 0], np.tile(held, (len(times), 1))], axis=1)
    inputs, fixed = shooting.input_series(system, experiment, times), fibre.at.fixed
    values, _ = system.evaluate(everything[:, system.columns], inputs, fixed)
    shots = [shooting.Shot((float(t),), "optimum") for t in times]
    known = dict(zip(own.parameters, parameters.tolist(), strict=True))
    told = {name: value for name, value in known.items() if name not in system.joined.together.parameters}
    targets = Targets(values, inputs, fixed)
    roots = candidates.roots(fibre, shots, targets, flow, experiment.start, Census(), seed, ATTEMPTS, budget, told)
    found = combined(problem, [roots], levels)
    inside, _ = candidates.within(found, frame, Census())
    outside = [c for c in found if np.any(frame.inside(c.z) != c.z)]
    parts = []
    for part in (inside, outside):
        # The ranking may hold a root twice, from two times; which of the equally good ones, rounding decides.
        others = [z]
        for candidate in candidates.ranked(part, problem.misfit, frame, levels, Census()):
            if all(distance(candidate.z, other) > ALIKE for other in others):
                others.append(candidate.z)
        parts.append(others[1:])
    return Alternatives(*parts)
