"""Proposals: what the algebra says of each experiment, put together for all of them.

Every experiment by itself gives roots, its states at the start and the parameters of its own model, from the square
systems at its shooting times.  A root of one experiment, with those of all others whose shared parameters are most like
it, is a candidate for all unknowns; what one experiment cannot tell comes from another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.algebra.library import Library
from odejet.budget import Budget
from odejet.clock import now
from odejet.model import Model
from odejet.model.expressions import Expression, Symbol, evaluate, names
from odejet.model.transform import restricted, rewritten
from odejet.problem import Problem
from odejet.problem.conditions import Condition
from odejet.problem.unknowns import Unknowns
from odejet.search import candidates, shooting
from odejet.search.candidates import Candidate, Census, Root, distance
from odejet.search.shooting import Shot
from odejet.smooth import Smoothed

MANY_ROOTS, MANY_ROOTS_POINTS = 8, 4
"""Systems with more roots are solved at very few shooting times only, whatever the rung."""

MANY = 150
"""Roots of all experiments together beyond which only the best of each are put together."""
BEST = 2
"""How many of each experiment these are, judged by its own data."""


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
class AlgebraicStarts:
    """Starts from the roots of square systems, at a few shooting times first and at all of them in the end."""

    name: str = "algebraic starts"


def algebraic_model(condition: Condition) -> Model:
    """The model of an experiment as the algebra sees it: what was measured there, at a time when nothing is known and
    nothing happens."""
    own = condition.model
    measured = condition.experiment.outputs
    if len(measured) == len(own.outputs) and not own.initial and not own.steady and not own.events:
        return own
    return rewritten(restricted(own, measured), initial={}, before={}, events=())


def libraries(problem: Problem) -> tuple[Library, ...]:
    """The algebra of every experiment; experiments that are alike share one."""
    alike = {condition.kind: condition for condition in problem.conditions}
    kinds = {kind: algebraic_model(condition) for kind, condition in alike.items()}
    made = {model.key: Library(model) for model in kinds.values()}
    return tuple(made[kinds[condition.kind].key] for condition in problem.conditions)


@dataclass(frozen=True)
class Proposer:
    """The algebra of all experiments, and the smoothed data to which it is applied."""

    problem: Problem
    libraries: tuple[Library, ...]
    smoothed: Mapping[tuple[str, str], Smoothed]  # by experiment and output
    estimators: tuple[str, ...] | None
    seed: int
    census: Census
    budget: Budget = field(default_factory=Budget)

    def propose(self, number: int, rung: Rung) -> list[Root]:
        """Roots of one experiment by itself, from systems of one point and, if the rung has pairs, of two."""
        return [root for points in ((1, 2) if rung.pairs else (1,)) for root in self.of_points(points, number, rung)]

    def of_points(self, points: int, number: int, rung: Rung) -> list[Root]:
        own, experiment, flow = self.libraries[number], self.problem.experiments[number], self.problem.flows[number]
        distinct = [one.series.distinct for (name, _), one in self.smoothed.items() if name == experiment.name]
        fibre = own.fibre(points, self.budget, highest=max(distinct, default=0) - 1)
        if fibre is None:
            self.census.add("algebra", own.reason(points))
            return []
        if len(fibre) > MANY_ROOTS:
            rung = replace(FEW, points=MANY_ROOTS_POINTS, pairs=rung.pairs)
        needed = shooting.orders_of(fibre.system)
        missing = [name for name in needed if (experiment.name, name) not in self.smoothed]
        if missing:
            self.census.add("algebra", f"{experiment.name} has too few measurements of {missing[0]}")
            return []
        times = shooting.shooting_times([self.smoothed[experiment.name, n].series for n in needed], rung.points)
        jets = shooting.Jets({n: self.smoothed[experiment.name, n] for n in needed}, times, needed)
        places: list[tuple[int, ...]] = [(i,) for i in range(len(times))]
        if points == 2:
            index = {t: i for i, t in enumerate(times.tolist())}
            places = [(index[a], index[b]) for a, b in shooting.widest_pairs(times, rung.pairs)]
        driven = self.problem.conditions[number].driven
        shots, targets = shooting.targets(
            fibre.system, driven, jets, places, fibre.at.fixed, self.estimators, rung.estimators
        )
        self.census.add("systems", f"{points}-point", len(shots))
        hubs = rung.hubs if points == 1 else 1
        census, budget = self.census, self.budget
        return candidates.roots(fibre, shots, targets, flow, experiment.start, census, self.seed, hubs, budget)


# --- candidates for all unknowns ---


def combined(
    problem: Problem, found: Sequence[Sequence[Root]], levels: np.ndarray, deadline: float = math.inf
) -> list[Candidate]:
    """Candidates for all unknowns from the roots of every experiment."""
    complete = [
        [replace(root, values=_completed(condition, root.values)) for root in roots]
        for condition, roots in zip(problem.conditions, found, strict=True)
    ]
    if len(complete) > 1 and sum(map(len, complete)) > MANY:
        complete = _best(problem, complete, levels, deadline)
    middle = []
    if len(complete) > 1 and any(complete):
        firsts = [own[0].values if own else {} for own in complete]
        middle.append(Candidate(_middle(problem, firsts), Shot((), ""), "median"))
    every = [(number, root) for number, own in enumerate(complete) for root in own]
    # Hundreds of experiments are all looked at for each, so that some of them have to do.
    chosen = every if len(every) <= MANY else [every[i] for i in np.linspace(0, len(every) - 1, MANY).astype(int)]
    result: list[Candidate] = []
    for number, root in chosen:
        if result and now() > deadline:
            break
        parts = [
            root.values if other == number else _nearest(root, theirs, problem, number, other)
            for other, theirs in enumerate(complete)
        ]
        result.append(Candidate(_joined(problem, parts, number), root.shot))
    return result + middle


def _completed(condition: Condition, values: Mapping[str, float]) -> dict[str, float]:
    """The values of a root with parameters that only initial values depend on, where these tell them."""
    own, result = condition.model, dict(values)
    result |= {name: float(value) for name, value in own.fixed.items()}
    for state, expression in own.initial.items():
        missing = [name for name in dict.fromkeys(names(expression)) if name not in result]
        if len(missing) == 1 and (value := solved(expression, missing[0], values[state], result)) is not None:
            result[missing[0]] = value
    return result


def solved(expression: Expression, name: str, value: float, known: Mapping[str, float]) -> float | None:
    """The value of a name at which an expression that is linear in it has a value."""
    if isinstance(expression, Symbol):
        return value
    try:
        at = [float(evaluate(expression, {**known, name: point}, math)) for point in (0.0, 1.0, 2.0)]
    except (ArithmeticError, ValueError, KeyError):
        return None  # it depends on something else that is not known
    slope = at[1] - at[0]
    linear = slope != 0 and math.isclose(at[2] - at[1], slope, rel_tol=1e-9)
    return (value - at[0]) / slope if linear else None


def _nearest(root: Root, theirs: Sequence[Root], problem: Problem, number: int, other: int) -> Mapping[str, float]:
    """The values of another experiment whose shared parameters are most like those of a root."""
    if not theirs:
        return {}
    mine, their = problem.layout.places[number], problem.layout.places[other]
    shared = [name for name, i in mine.items() if their.get(name) == i and name in root.values]
    if not shared:
        return theirs[0].values

    def vector(one: Root) -> np.ndarray:
        return np.array([one.values.get(name, math.inf) for name in shared])

    return min(theirs, key=lambda one: distance(vector(one), vector(root))).values


def _joined(problem: Problem, parts: Sequence[Mapping[str, float]], first: int = 0) -> np.ndarray:
    """z from the values of all experiments, those of `first` before the others; guesses for what none of them tells."""
    order = [first, *(i for i in range(len(parts)) if i != first)]
    layout = problem.layout
    z = replace(layout, places=tuple(layout.places[i] for i in order)).scatter([parts[i] for i in order])
    missing = np.isnan(z)
    if missing.any():
        for members in _of_one_name(layout):
            # What is unknown in one experiment is likely to be of the size that it has in the others.
            open_, told = members[missing[members]], members[~missing[members]]
            if len(open_) and len(told):
                z[open_] = float(np.median(z[told]))
            elif len(open_):
                noise = np.isin(open_, list(problem.misfit.noise_entries))
                z[open_] = np.where(noise, problem.sizes[open_], 1.0)
    return z


def _of_one_name(layout: Unknowns) -> list[np.ndarray]:
    """The entries of what has the same name in every experiment."""
    found: dict[str, list[int]] = {}
    for i, unknown in enumerate(layout):
        found.setdefault(unknown.name, []).append(i)
    return [np.array(members) for members in found.values()]


def _middle(problem: Problem, parts: Sequence[Mapping[str, float]]) -> np.ndarray:
    """z with the median of what every experiment says of a shared parameter."""
    z = _joined(problem, parts)
    for i in problem.layout.shared.tolist():
        name = problem.layout[i].name
        told = [
            part[name]
            for part, places in zip(parts, problem.layout.places, strict=True)
            if name in part and name in places
        ]
        if told:
            z[i] = float(np.median(told))
    return z


def _best(problem: Problem, found: Sequence[Sequence[Root]], levels: np.ndarray, deadline: float) -> list[list[Root]]:
    """The roots of each experiment that explain its own data best."""
    kept = []
    nothing: Mapping[str, float] = {}
    for number, own in enumerate(found):
        if now() > deadline:
            kept.append(list(own[:BEST]))
            continue
        alone = problem.misfit.only(number)
        vectors = [_joined(problem, [r.values if i == number else nothing for i in range(len(found))]) for r in own]
        costs = alone.screen(vectors, levels, deadline) if own else np.zeros(0)
        order = [i for i in np.argsort(costs, kind="stable") if math.isfinite(costs[i])]
        kept.append([own[i] for i in order[:BEST]])
    return kept
