"""Proposals: what the algebra says of each experiment, put together for all of them.

Every experiment by itself gives candidates for its initial states and the parameters, from the square systems at its
shooting times.  The parameters of one experiment with the initial states of each are a candidate for all unknowns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odejet.algebra.library import Library
from odejet.data import Data, Experiment
from odejet.model import Model
from odejet.problem.misfit import Misfit
from odejet.search import candidates, shooting
from odejet.search.candidates import Candidate, Census, distance
from odejet.simulate.flow import Flow
from odejet.smooth import Smoothed

MANY_ROOTS, MANY_ROOTS_POINTS = 8, 4
"""Systems with more roots are solved at very few shooting times only, whatever the rung."""


@dataclass(frozen=True)
class Rung:
    """How much one rung of the ladder tries: shooting times, pairs, estimators beside the automatic choice,
    refinements, and how often roots that were not found are looked for."""

    name: str
    points: int
    pairs: int
    estimators: int
    refinements: int
    hubs: int


FEW = Rung("a few shooting times", 7, 0, 1, 6, 1)
ALL = Rung("all shooting times", 20, 15, shooting.ESTIMATORS, 8, 2)


@dataclass(frozen=True)
class Proposer:
    """The algebra of a model, and the smoothed data to which it is applied."""

    library: Library
    smoothed: Mapping[tuple[str, str], Smoothed]  # by experiment and output
    estimators: tuple[str, ...] | None
    seed: int
    census: Census

    def propose(self, experiment: Experiment, flow: Flow, rung: Rung) -> list[Candidate]:
        """Candidates of one experiment by itself, from systems of one point and, if the rung has pairs, of two."""
        return [
            candidate
            for points in ((1, 2) if rung.pairs else (1,))
            for candidate in self.of_points(points, experiment, flow, rung)
        ]

    def of_points(self, points: int, experiment: Experiment, flow: Flow, rung: Rung) -> list[Candidate]:
        fibre = self.library.fibre(points)
        if fibre is None:
            self.census.add("algebra", self.library.reason(points))
            return []
        if len(fibre) > MANY_ROOTS:
            rung = replace(FEW, points=MANY_ROOTS_POINTS, pairs=rung.pairs)
        needed = shooting.orders_of(fibre.system)
        missing = [name for name in needed if (experiment.name, name) not in self.smoothed]
        if missing:
            self.census.add("algebra", f"{experiment.name} has too few measurements of {missing[0]}")
            return []
        times = shooting.shooting_times(experiment, list(needed), rung.points)
        jets = shooting.Jets({n: self.smoothed[experiment.name, n] for n in needed}, times, needed)
        places: list[tuple[int, ...]] = [(i,) for i in range(len(times))]
        if points == 2:
            index = {t: i for i, t in enumerate(times.tolist())}
            places = [(index[a], index[b]) for a, b in shooting.widest_pairs(times, rung.pairs)]
        shots, targets = shooting.targets(
            fibre.system, experiment, jets, places, fibre.at.fixed, self.estimators, rung.estimators
        )
        self.census.add("systems", f"{points}-point", len(shots))
        hubs = rung.hubs if points == 1 else 1
        return candidates.roots(fibre, shots, targets, flow, experiment.start, self.census, self.seed, hubs)


def combined(model: Model, data: Data, misfit: Misfit, found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Candidates for all unknowns: parameters of one experiment, and initial states of each.

    The initial states of another experiment are those of its candidate with the most similar parameters.
    """
    states, n = list(model.states), len(model.states)
    result = []
    for number, own in enumerate(found):
        for candidate in own:
            begins = {}
            for other, theirs in enumerate(found):
                experiment = data.experiments[other].name
                if other == number:
                    begins[experiment] = candidate.z[:n]
                elif theirs:
                    nearest = min(theirs, key=lambda c: distance(c.z[n:], candidate.z[n:]))
                    begins[experiment] = nearest.z[:n]
            if len(begins) == len(found):
                z = [
                    begins[u.experiment][states.index(u.name)]
                    if u.experiment is not None
                    else candidate.z[n + model.parameters.index(u.name)]
                    for u in misfit.unknowns
                ]
                result.append(Candidate(np.array(z), candidate.shot, candidate.start))
    return result
