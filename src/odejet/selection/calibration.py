"""Calibration: the fit of one candidate, and what other candidates know about it.

A model that contains another explains the data at least as well.  Where its fit does not, its search has missed: the
optimum of the smaller one, with the switch at its value, is a start that leads at least as low.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from odejet.fitting import fit
from odejet.identify.local import NothingTold
from odejet.problem import Problem
from odejet.result import Fit
from odejet.search.refine import Refined, refine
from odejet.selection.candidate import Candidate, is_confirmed
from odejet.selection.switches import Switches

TIME_LIMIT = 30.0
"""Seconds of a fit: most candidates are wrong models, whose fits earn no certificate and would use up any limit."""

BETTER = 1e-3
"""By how much of the log-likelihood a start from another candidate must improve a fit to replace it."""

REFINEMENT = 10.0
"""Seconds of a refinement from another candidate's optimum."""


def fitted(problem: Problem, options: Mapping[str, Any]) -> tuple[Fit | None, float]:
    """Fit a problem, or evaluate one without unknowns; the fit and the log-likelihood."""
    if not problem.unknowns:
        return None, problem.log_likelihood({})
    try:
        found = fit(problem, **{"time_limit": TIME_LIMIT, **options})
    except NothingTold as error:
        # Nothing but the noise makes a difference: with the switches off, what is left may be cut off from all outputs.
        found = Fit.of(problem, _refined(problem, problem.sizes), success=False, message=str(error))
    return found, found.log_likelihood


def candidate(switches: Switches, on: frozenset[str], options: Mapping[str, Any]) -> Candidate:
    """Fit the model in which some switches are on."""
    begin = time.perf_counter()
    problem = switches.problem_with(on)
    found, value = fitted(problem, options)
    free = int(problem.misfit.estimated.sum()) if found is None else found.free
    names = [name for name in switches.names if name in on]
    title = " + ".join(names) if names else "none"
    off = switches.values_off(on)
    return Candidate(title, on, off, problem, found, value, free, time.perf_counter() - begin)


def candidates(
    switches: Switches, wanted: Sequence[frozenset[str]], options: Mapping[str, Any], executor: Executor | None
) -> list[Candidate]:
    """Fit several, here or wherever the executor has room; the answers are the same."""
    if executor is None:
        return [candidate(switches, on, options) for on in wanted]
    waiting = [executor.submit(candidate, switches, on, options) for on in wanted]
    return [future.result() for future in waiting]


def improved(one: Candidate, others: Iterable[Candidate]) -> Candidate:
    """The candidate, begun anew from the optima of others: of those that it contains wherever one of them is better,
    and of those that differ by one switch where its own search has confirmed nothing."""
    if one.fit is None:
        return one
    found = one.fit
    for other in others:
        missed = other.nested_in(one) and other.log_likelihood > found.log_likelihood + BETTER
        beside = not is_confirmed(found) and len(one.estimated ^ other.estimated) == 1
        if missed or beside:
            found = started(found, starts(one.problem, other))
    if found is one.fit:
        return one
    return replace(one, fit=found, log_likelihood=found.log_likelihood, parameters=found.free)


def starts(problem: Problem, other: Candidate) -> dict[str, float]:
    """The values of another candidate in the words of a problem: its estimates, and its switches where they are off."""
    known = dict(other.fit.values) if other.fit is not None else {}
    off = {name: value for name, value in other.off.items() if not isinstance(value, str)}
    expressions = {name: value for name, value in other.off.items() if isinstance(value, str)}
    found: dict[str, float] = {}
    for unknown in problem.layout:
        for source, key in ((known, unknown.label), (known, unknown.name), (off, unknown.name)):
            if key in source:
                found[unknown.label] = float(source[key])
                break
        else:
            text = expressions.get(unknown.name, "")
            found[unknown.label] = float(known.get(text, 1.0))
    return found


def _refined(problem: Problem, start: np.ndarray) -> Refined:
    bounds, positive = problem.given_bounds, problem.positive
    return refine(problem.misfit, start, bounds=bounds, positive=positive, time_limit=REFINEMENT)


def started(fit: Fit, values: Mapping[str, float]) -> Fit:
    """The fit, or the optimum to which these values lead if that is better."""
    problem = fit.problem
    start = np.array([values[label] for label in problem.unknowns])
    found = refine(problem.misfit, start, bounds=problem.given_bounds, positive=problem.positive, time_limit=REFINEMENT)
    if not (math.isfinite(found.cost) and found.cost < fit.cost - BETTER):
        return fit
    return Fit.of(
        problem,
        found,
        verdict=fit.verdict,
        success=False,
        message="found from the optimum of a smaller model, which the search from the box had missed",
        seconds=fit.seconds + found.seconds,
        seed=fit.seed,
        effort=fit.effort,
    )
