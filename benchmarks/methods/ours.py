"""odejet as a user has it, and with parts of it taken away."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from unittest import mock

import odejet as oj
from benchmarks.methods.problem import Answer, Problem
from odejet.algebra.library import Library
from odejet.budget import Budget
from odejet.fitting import is_failure
from odejet.smooth import Series, Smoothed, aaa, fit_series


def prepare(model: oj.Model) -> None:
    """What odejet finds once per model: identifiability and the fibres of its square systems."""
    known = Library(model)
    known.verdict  # noqa: B018
    known.fibre(1)
    known.fibre(2)


def fitted(problem: Problem) -> Answer:
    return _answer(problem, method=oj.Method(weights="likelihood" if problem.weighted else "none"))


def unrefined(problem: Problem) -> Answer:
    """The best algebraic candidate of all shooting times, as it is."""
    return _answer(problem, method=oj.Method(refine=False), effort="full")


def rational(problem: Problem) -> Answer:
    """The same with derivatives of AAA's rational functions alone, as the paper's variant has it.

    odejet itself refuses these where there is noise or a pole between the data; here they go on regardless.
    """
    with mock.patch("odejet.decide.stages.fit_series", rational_only):
        return _answer(problem, method=oj.Method(refine=False, estimators=["aaa"]), effort="full")


def rational_only(series: Series, budget: Budget | None = None) -> Smoothed:
    """An output smoothed by AAA alone, to a tolerance of four standard deviations of its noise."""
    found = fit_series(series, budget)
    if found.data.constant:
        return found
    only = aaa.interpolate(found.data, 4.0 * found.noise * found.data.typical_sd)
    return replace(found, smoothers={only.name: only}, refused={}, _inner={})


def _answer(problem: Problem, **options: Any) -> Answer:
    found = oj.fit(problem.model, problem.data, bounds=problem.bounds, **options)
    # Without any candidate a fit falls back on a refinement from ones, which variants without refinement do without.
    nothing = not options["method"].refine and found.provenance.rung == "none"
    if is_failure(found) or nothing:
        return Answer(None, math.inf, 0, "no candidate" if nothing else found.message)
    values = {**found.initial_state, **found.parameters}
    return Answer(values, found.cost, 0, f"{found.message}; {found.provenance.sentence}")
