"""Stages: the steps of a search.  Each takes a state and returns the next; long ones yield every state on the way, so
that an interruption loses little."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from odejet.algebra.library import Library
from odejet.budget import Budget
from odejet.decide.certificate import LOOKS
from odejet.decide.optima import Optimum, Provenance
from odejet.decide.optimality import Watch
from odejet.decide.state import AGREE, BOX, State
from odejet.decide.statistics import is_plausible
from odejet.decide.verdict import Identifiability
from odejet.objective.misfit import Misfit
from odejet.problem import Problem, coordinates, joint
from odejet.problem.coordinates import Coordinates
from odejet.problem.stretches import stretch
from odejet.search import candidates, lags, matching
from odejet.search import sweep as sweeping
from odejet.search.alternatives import EXPERIMENTS, Alternatives, alternatives
from odejet.search.candidates import Candidate
from odejet.search.portfolio import explore
from odejet.search.proposals import FEW, MANY_ROOTS, AlgebraicStarts, Proposer, Rung, combined, libraries
from odejet.search.refine import MAX_EVALUATIONS, SAME, Ending, Refined, evaluated, refine
from odejet.smooth import fit_series

STARTS = {"auto": 1024, "full": 8192}
"""Starts in the box."""
LEAST_LOOKS, MOST_LOOKS = 1024, 32768
"""Points of the box that a sweep looks at."""
LOOK = 300
"""Evaluations for a first look: about as many as one good start needs, or several poor ones."""
FEW_WORK = 4e9
"""Operations of the algebra before the box is searched, which waits for it; the paper's systems need 3.1e9 at most."""
FIRST_EVALUATIONS, BEHIND = 150, 10.0
"""A refinement that is behind the best by so much after so many evaluations is given up."""
TYPICAL = 5
"""Candidates whose medians are the scale of the unknowns, where nothing else tells it."""
ALTERNATIVES, SPARE = 4, 3
"""Other roots that are refined in search of a better optimum, and for each solution that is still to be found."""
ATTEMPTS = 3
"""Seeds with which other roots are looked for, while solutions are missing."""
ALL_SIGNS, SIGNS_AT_A_TIME = 10, 32
"""Unknowns whose sign patterns are all tried, in search of solutions that are still missing."""
SHARPENED, SHARP_STARTS = 4, 384
"""Optima from which a sharp one is looked for, and starts that are drawn if none leads there."""
SHARP = 8.0
"""Relative residuals of so many times the rounding of one operation are those of a whole simulation."""

FROM_BOX = Provenance(BOX, start="multistart")

Steps = Generator[State, None, State]
"""States on the way, and the last of them."""


# --- from smoothed data ---


def identify(state: State) -> State:
    """What can be known at all, from all experiments together."""
    problem = state.task.problem
    with state.task.stage("identify") as budget:
        together = joint(problem)
        if not together.model.unknowns:
            # Only the noise is unknown, and every residual tells it.
            return replace(state, verdict=Identifiability(dict.fromkeys(problem.unknowns, "global")))
        verdict = Identifiability.of(Library(together.model).judged(budget.seconds, together.starts), together.names)
        delayed = any(condition.model.is_delayed for condition in problem.conditions)
        return replace(state, libraries=() if delayed else libraries(problem), verdict=verdict)


def smooth(state: State, first: Problem | None = None) -> State:
    """All outputs of all experiments, or of a first part of them, and the noise levels that this suggests."""
    misfit, smoothed = state.task.misfit, {}
    with state.task.stage("smooth") as budget:
        conditions = (first or state.task.problem).conditions
        for condition in conditions:
            for name, series in stretch(condition).items():
                if not budget.over:
                    smoothed[condition.experiment.name, name] = fit_series(series, budget)
        widths = {(one.experiment.name, name): one.width(name) for one in conditions for name in one.experiment.outputs}
    found = []
    for number, name in enumerate(misfit.outputs):
        sds = [one.noise * widths[key] for key, one in smoothed.items() if key[1] == name]
        own = misfit.groups[number]
        shape = float(np.median(misfit.shapes[own]))
        if misfit.measurements.logarithmic[number]:  # of the logarithm, near the largest values
            shape *= float(np.sqrt(np.mean(misfit.values[own] ** 2)))
        found.append(math.sqrt(np.mean(np.square(sds))) / shape if sds else misfit.scales[number])
    levels = np.where(misfit.estimated, np.maximum(found, misfit.floors), misfit.known)
    return replace(state, smoothed=smoothed, levels=levels)


def roots(state: State, rung: Rung) -> list[Candidate]:
    """Candidates from the roots of square systems, where there are any."""
    task = state.task
    if not state.libraries:
        return []
    with task.stage("algebra") as budget:
        budget = budget.at_most(work=FEW_WORK) if rung is FEW else budget
        asked = state.libraries, state.smoothed, task.options.estimators, task.options.seed
        proposer = Proposer(task.problem, *asked, task.record.census, budget)
        found = [proposer.propose(number, rung) for number in range(len(task.problem.experiments))]
    with task.stage("rank") as budget:
        return combined(task.problem, found, state.levels, budget.deadline)


def matches(state: State) -> list[Candidate]:
    """Candidates of a model whose states are all measured: roots of a large one are too sensitive to noise, and one
    that looks back in time has none."""
    task = state.task
    way = lags if lags.is_lagged(task.problem) else matching
    with task.stage("match") as budget:
        found = way.candidates(task.problem, state.smoothed, state.levels, state.frame, budget)
    task.record.census.add("candidates", "matched", len(found))
    return found


def shoot(state: State, rung: Rung) -> Steps:
    """Candidates at the shooting times of a rung, and refinements of the best."""
    task, record = state.task, state.task.record
    matched = matching.is_matched(task.problem) or lags.is_lagged(task.problem)
    everything = matches(state) if matched else roots(state, rung)
    with task.stage("rank") as budget:
        inside, outside = candidates.within(everything, state.frame, record.census)
        ranked = partial(
            candidates.ranked,
            misfit=task.misfit,
            frame=state.frame,
            levels=state.levels,
            census=record.census,
            deadline=budget.deadline,
        )
        cloud = ranked([*state.cloud, *inside])
        if len(cloud) < rung.refinements:
            # Noise may have moved every root out of the box; from its border the way back is short.
            cloud += ranked(outside)
        frame = state.frame
        if cloud and not task.problem.is_bounded:
            frame = task.problem.frame(np.median([np.abs(c.z) for c in cloud[:TYPICAL]], axis=0))
        state = replace(state, cloud=tuple(cloud), frame=frame)
    yield state
    with task.stage("refine") as budget:
        return (yield from refine_best(state, rung, budget))


def refine_best(state: State, rung: Rung, budget: Budget) -> Steps:
    """Refine ranked candidates until no more are needed."""
    task = state.task
    if not task.options.refine:
        for candidate in state.cloud[:1]:
            as_it_is = evaluated(task.misfit, candidate.z, state.frame)
            yield (state := state.adding(as_it_is, _provenance(candidate, rung.name)))
        return state
    new = [c for c in candidates.originals(state.cloud) if not any(np.array_equal(c.z, z) for z in state.tried)]
    for candidate in new[: rung.refinements]:
        if budget.over:
            break
        yield (state := sharpen(refined(state, candidate.z, _provenance(candidate, rung.name), budget)))
        if state.is_enough:
            break
    return state


def refined(state: State, z: np.ndarray, provenance: Provenance, budget: Budget) -> State:
    """With the optimum to which a start leads; one far behind the best after a while is not followed to the end."""
    task = state.task
    goal = math.inf if state.best is None else state.best.cost + BEHIND
    further = partial(refine, task.misfit, levels=state.levels, frame=state.frame)
    found = further(z, time_limit=budget.seconds, max_evaluations=FIRST_EVALUATIONS)
    if found.ending is Ending.EVALUATION_LIMIT and found.cost <= goal:
        found = further(found.z, time_limit=budget.seconds, max_evaluations=MAX_EVALUATIONS - FIRST_EVALUATIONS)
    found = replace(found, start=state.frame.inside(z))
    task.record.census.add("refinements", found.ending.name.lower().replace("_", " "))
    return replace(state.adding(found, provenance), tried=(*state.tried, z))


def settle(state: State) -> State:
    """Follow the best to its end, if it was only given up."""
    best, task = state.best, state.task
    if best is None or best.refined.ending is not Ending.EVALUATION_LIMIT:
        return state
    with task.stage("refine") as budget:
        found = refine(task.misfit, best.refined.z, frame=state.frame, time_limit=budget.seconds)
    return replace(state, optima=state.optima.replacing(best, replace(best, refined=found)))


# --- other roots ---


def challenge(state: State) -> Steps:
    """Try the other roots at the derivatives of an optimum that explains the data.

    Noise may favour another root than the one that all starts have come from.
    """
    best = state.best
    if best is None or best is state.challenged or not state.explains_data:
        return state
    if state.task.options.strategy(AlgebraicStarts) is None:
        return state
    with state.task.stage("alternatives") as budget:
        for start in other_roots(state, budget, MANY_ROOTS).inside[:ALTERNATIVES]:
            if (image := image_of(best, start, state.frame)) is not None:
                state = replace(state, optima=state.optima.adding_elsewhere(image))
            elif not budget.over:
                state = refined(state, start, Provenance("other roots", start="algebra"), budget)
            yield state
    return replace(state, challenged=state.best)


def find_others(state: State) -> Steps:
    """The other solutions of a model that has several, wherever they are, also outside the bounds."""
    best, task = state.best, state.task
    if best is None or state.counted < 2:
        return state
    with task.stage("alternatives", last=True) as budget:
        free = coordinates.choose(task.misfit.unknowns, task.problem.sized(best.refined.z), None, task.problem.positive)
        for start, frame in _other_starts(state, best, free, budget):
            if state.missing <= 0 or budget.over:
                break
            one = image_of(best, start, frame)
            if one is None:
                one = refine(task.misfit, start, levels=state.levels, time_limit=budget.seconds, frame=frame)
            if frame is state.frame and one.cost < best.cost - SAME:
                state = state.adding(one, Provenance("other roots", start="algebra"))
            else:  # not an independent start, so no witness of the optimum
                state = replace(state, optima=state.optima.adding_elsewhere(one))
            yield state
    return state


def _other_starts(
    state: State, best: Optimum, free: Coordinates, budget: Budget
) -> Iterator[tuple[np.ndarray, Coordinates]]:
    """Where other solutions may be, and in which coordinates: other roots, then other signs."""
    spare = SPARE * (state.counted - 1)
    for attempt in range(ATTEMPTS):
        found = other_roots(state, budget, attempt=attempt)
        for starts, frame in ((found.inside, state.frame), (found.outside, free)):
            yield from ((start, frame) for start in starts[:spare])
    for start in sign_twins(best, free, budget):
        yield start, state.frame if np.all(state.frame.inside(start) == start) else free


def sign_twins(best: Optimum, frame: Coordinates, budget: Budget) -> list[np.ndarray]:
    """Points that differ from the optimum in signs only and have its trajectory.

    All sign patterns are tried where unknowns are few, otherwise those of up to three changes, while there is time.
    """
    z, screen = best.refined.z, partial(best.misfit.screen, levels=best.refined.levels)
    places = np.flatnonzero((frame.signs == 0) & (z != 0)).tolist()
    most = len(places) if len(places) <= ALL_SIGNS else 3
    every = (pattern for size in range(1, most + 1) for pattern in itertools.combinations(places, size))
    patterns = itertools.islice(every, 2**ALL_SIGNS)
    (cost,), twins = screen([z]), list[np.ndarray]()
    while (some := list(itertools.islice(patterns, SIGNS_AT_A_TIME))) and not budget.over:
        points = np.tile(z, (len(some), 1))
        for point, pattern in zip(points, some, strict=True):
            point[list(pattern)] *= -1
        alike = np.isclose(screen(list(points)), cost, rtol=1e-9, atol=SAME)
        twins += list(points[alike])
    return twins


def other_roots(state: State, budget: Budget, most: int | None = None, attempt: int = 0) -> Alternatives:
    """Other roots at the best optimum's own derivatives, of experiments whose system has several.

    A challenge, which is for systems of up to `most` roots, is for single experiments: several hardly leave noise the
    choice between roots.
    """
    task, best = state.task, state.best
    if best is None or not state.libraries or (most is not None and len(state.libraries) > 1):
        return Alternatives([], [])
    known = [own.fibre(1, budget) if i < EXPERIMENTS else None for i, own in enumerate(state.libraries)]
    fibres = [one if one is not None and 2 <= len(one) <= (most or math.inf) else None for one in known]
    if not any(fibres):
        return Alternatives([], [])
    asked = task.problem, fibres, best.refined.z, state.frame, state.levels, task.options.seed + attempt
    return alternatives(*asked, budget)


def image_of(best: Optimum, z: np.ndarray, frame: Coordinates) -> Refined | None:
    """A point with the optimum's own trajectory, which is no witness of it; None if it has another."""
    as_it_is = evaluated(best.misfit, z, frame)
    return as_it_is if abs(as_it_is.cost - best.cost) <= SAME else None


# --- without smoothed data ---


def search_box(state: State) -> Steps:
    """Starts in the whole box, or around the scale of what was found; other ones in each round."""
    task, count = state.task, len(state.optima.found)
    seed = task.options.seed if not state.rounds else (task.options.seed, state.rounds)
    with task.stage(BOX):
        for scale in _scales(state):
            state = starts_around(state, scale, seed, task.left)
            yield state
            # What the data leave vague may have any scale, which confirms nothing.
            if state.is_exact or not task.left or (state.explains_data and not state.is_vague):
                break
        task.record.census.add("refinements", "of multistart", len(state.optima.found) - count)
        return replace(sharpen(state), rounds=state.rounds + 1)


def _scales(state: State) -> list[np.ndarray]:
    """Around what to search, where bounds do not say it: what was found, and what the units of the data suggest."""
    best, problem = state.best, state.task.problem
    if problem.given_bounds is not None or problem.model.bounds or best is None:
        return [problem.sizes]
    return [problem.sized(best.refined.z), problem.sizes]


def look(state: State) -> State:
    """With the optima of the first few starts in the box, before anything else that may take long."""
    task = state.task
    other = task.options.seed, LOOK  # starts that no round of the search itself draws again
    with task.stage("look") as budget:
        return starts_around(state, task.problem.sizes, other, budget.seconds, LOOK)


def starts_around(
    state: State, scale: np.ndarray, seed: int | tuple[int, int], seconds: float, evaluations: float = math.inf
) -> State:
    """With the optima to which starts in the box, or around a scale, lead."""
    task = state.task
    # Smoothing is not to be trusted here: neither its noise nor, within bounds, the scale of what came of it.
    plausible = lru_cache(partial(is_plausible, task.misfit))  # the best is asked for at every start
    watch = Watch(state.box, state.effort, plausible)
    optimum = lru_cache(partial(Optimum, task.misfit, provenance=FROM_BOX))  # what is known of one is asked for again
    found = explore(
        task.misfit,
        task.problem.given_bounds,
        task.problem.positive,
        scale,
        seed=seed,
        starts=STARTS[task.options.effort],
        time_limit=seconds,
        agree=AGREE,
        evaluations=evaluations,
        before=state.optima.refined,
        plausible=plausible,
        accepted=lambda ends: with_optima(state, map(optimum, ends)).has_enough,
        answered=watch,
        strategies=task.options.box,
        executor=task.options.executor,
    )
    return with_optima(replace(state, effort=watch.effort), map(optimum, found))


def with_optima(state: State, optima: Iterable[Optimum]) -> State:
    """With the optima at which starts in the box ended."""
    return replace(state, optima=state.optima.adding(*optima))


def sweep(state: State) -> Steps:
    """With the optima to which the best of very many points of the box lead, as dense as outputs can swing in it."""
    task, count = state.task, len(state.optima.found)
    looks = int(min(max(LOOKS * state.curves - state.looks, LEAST_LOOKS), MOST_LOOKS)) * (1 + (state.looks > 0))
    seed = task.options.seed, state.rounds, LEAST_LOOKS
    with task.stage(BOX) as budget:
        found = sweeping.sweep(task.misfit, state.frame, task.problem.sizes, looks, seed, budget.deadline)
        state = with_optima(state, [Optimum(task.misfit, one, FROM_BOX) for one in found])
        task.record.census.add("refinements", "of sweeps", len(state.optima.found) - count)
        yield (state := replace(state, looks=state.looks + looks, rounds=state.rounds + 1))
    return state


# --- down to the rounding of every measurement ---


def sharpen(state: State) -> State:
    """Go on to the rounding of every measurement, if residuals of one size are at that of the largest.

    What rounding does to a simulation is relative to the output at the time, so residuals of that size are refined.
    """
    task, optima = state.task, state.optima
    if optima.sharp is not None or not state.is_exact or (fine := task.misfit.by_rounding()) is None:
        return state
    order = sorted(optima.found, key=lambda optimum: (not optimum.is_exact, optimum.cost))
    for optimum in optima.found[-1:] if state.blunt else order[:SHARPENED]:
        one = refine(fine, optimum.refined.z, frame=state.frame, time_limit=task.left)
        if _is_sharp(fine, one):
            return _with_sharp(state, one, optimum.provenance)
    if state.blunt:
        return state
    low, high = state.frame.low.tolist(), state.frame.high.tolist()
    box = {u.label: (a, b) for u, a, b in zip(fine.unknowns, low, high, strict=True)}
    drawn = explore(
        fine,
        box,
        starts=SHARP_STARTS,
        time_limit=task.left,
        plausible=partial(is_plausible, fine),
        executor=task.options.executor,
    )
    if drawn and _is_sharp(fine, drawn[0]):
        return _with_sharp(state, drawn[0], FROM_BOX)
    return replace(state, blunt=True)


def _is_sharp(fine: Misfit, one: Refined) -> bool:
    return one.ending.settled and not np.any(one.levels > SHARP * fine.floors)


def _with_sharp(state: State, one: Refined, provenance: Provenance) -> State:
    """With a sharp optimum, in the terms of the misfit itself."""
    misfit = state.task.misfit
    sharp = Optimum(misfit, evaluated(misfit, one.z, state.frame), provenance, sharp=True)
    return replace(state, optima=replace(state.optima, sharp=sharp), blunt=False)


def _provenance(candidate: Candidate, rung: str) -> Provenance:
    return Provenance(rung, candidate.shot.estimator, candidate.shot.times, candidate.start)
