"""odejet as a user has it, and with parts of it taken away."""

from __future__ import annotations

import math
from typing import Any

import odejet as oj
from benchmarks.methods.problem import Answer, Problem
from odejet.algebra.library import library
from odejet.fitting import is_failure


def prepare(model: oj.Model) -> None:
    """What odejet finds once per model: identifiability and the fibres of its square systems."""
    known = library(model)
    known.verdict  # noqa: B018
    known.fibre(1)
    known.fibre(2)


def fitted(problem: Problem) -> Answer:
    return _answer(problem, weights="likelihood" if problem.weighted else "none")


def unrefined(problem: Problem) -> Answer:
    """The best algebraic candidate of all shooting times, as it is."""
    return _answer(problem, refine=False, effort="full")


def rational(problem: Problem) -> Answer:
    """The same with derivatives of AAA's rational interpolants alone."""
    return _answer(problem, refine=False, effort="full", estimators=["aaa"])


def _answer(problem: Problem, **options: Any) -> Answer:
    found = oj.fit(problem.model, problem.data, bounds=problem.bounds, **options)
    # Without any candidate a fit falls back on a refinement from ones, which variants without refinement do without.
    nothing = not options.get("refine", True) and found.provenance.rung == "none"
    if is_failure(found) or nothing:
        return Answer(None, math.inf, 0, "no candidate" if nothing else found.message)
    values = {**found.initial_state, **found.parameters}
    return Answer(values, found.cost, 0, f"{found.message}; {found.provenance.sentence}")
