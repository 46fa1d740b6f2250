"""Alternatives: what else has the derivatives of an optimum.

The square system at the exact derivatives of an optimum has the optimum itself as a root.  Its other real roots agree
with it in all those derivatives, at that time: they are the other solutions of a model that has several, and good
starts where the data cannot tell one root from another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odejet.algebra.monodromy import Fibre
from odejet.algebra.system import Targets
from odejet.budget import Budget
from odejet.problem import Problem
from odejet.problem.coordinates import Coordinates
from odejet.search import candidates, shooting
from odejet.search.candidates import ALIKE, Census, Root, distance
from odejet.search.proposals import combined
from odejet.simulate.flow import Outcome

PLACES = (0.0, 0.3, 1.0)
"""Where along an experiment the derivatives are taken."""
EXPERIMENTS = 6
"""Experiments whose other roots are looked for; what they share is then known for all."""
ATTEMPTS = 2
"""How often roots that were not found are looked for."""


@dataclass(frozen=True)
class Alternatives:
    """Values with the same derivatives, best first: inside the bounds, and outside."""

    inside: list[np.ndarray]
    outside: list[np.ndarray]


def alternatives(
    problem: Problem,
    fibres: Sequence[Fibre | None],
    z: np.ndarray,
    frame: Coordinates,
    levels: np.ndarray,
    seed: int,
    budget: Budget | None = None,
) -> Alternatives:
    """Real roots that share with z the derivatives of the square system of each experiment, at a few of its times.

    Other roots of one experiment, with those of the others whose shared parameters are most like it, are values of all
    unknowns.  An experiment without a fibre keeps the values that it has.
    """
    found = [_roots(problem, number, fibre, z, seed, budget) for number, fibre in enumerate(fibres)]
    together = combined(problem, found, levels)
    for candidate in together:
        candidate.z[problem.misfit.noise_entries] = z[problem.misfit.noise_entries]
    inside, _ = candidates.within(together, frame, Census())
    outside = [c for c in together if np.any(frame.inside(c.z) != c.z)]
    parts = []
    for part in (inside, outside):
        # The ranking may hold a root twice, from two times; which of the equally good ones, rounding decides.
        others = [z]
        for candidate in candidates.ranked(part, problem.misfit, frame, levels, Census()):
            if all(distance(candidate.z, other) > ALIKE for other in others):
                others.append(candidate.z)
        parts.append(others[1:])
    return Alternatives(*parts)


def _roots(
    problem: Problem, number: int, fibre: Fibre | None, z: np.ndarray, seed: int, budget: Budget | None
) -> list[Root]:
    """The roots of one experiment at the derivatives of its optimum; itself, if no others are to be found."""
    condition, flow = problem.conditions[number], problem.flows[number]
    experiment, own = condition.driven, condition.model
    times = experiment.start + np.array(PLACES) * (experiment.end - experiment.start)
    parameters, states = (problem.layout.gather(number, z, names) for names in (own.parameters, own.states))
    known = dict(zip(own.parameters, parameters.tolist(), strict=True))
    run = flow.run(parameters, states, times, start=experiment.start, sensitivities=False)
    if run.outcome is not Outcome.COMPLETED:
        return []
    if fibre is None:
        begin = dict(zip(own.states, run.states[0, :, 0].tolist(), strict=True))
        return [Root({**begin, **known}, shooting.Shot((experiment.start,), "optimum"))]
    system = fibre.system
    held = problem.layout.gather(number, z, system.joined.together.parameters)
    everything = np.concatenate([run.states[:, :, 0], np.tile(held, (len(times), 1))], axis=1)
    inputs, fixed = shooting.input_series(system, experiment, times), fibre.at.fixed
    values, _ = system.evaluate(everything[:, system.columns], inputs, fixed)
    shots = [shooting.Shot((float(t),), "optimum") for t in times]
    told = {name: value for name, value in known.items() if name not in system.joined.together.parameters}
    targets = Targets(values, inputs, fixed)
    return candidates.roots(fibre, shots, targets, flow, experiment.start, Census(), seed, ATTEMPTS, budget, told)
