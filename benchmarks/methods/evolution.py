"""SciPy's differential evolution as it comes, with our refinement of its best point in place of its own."""

from __future__ import annotations

from scipy.optimize import Bounds, differential_evolution

from benchmarks.methods.problem import SEARCH, Answer, Objective, Problem


def solve(problem: Problem) -> Answer:
    objective = Objective(problem)
    misfit, ending = objective.misfit, "the budget of the search is used up"
    with misfit.share(SEARCH):
        found = differential_evolution(
            objective.cost,
            Bounds(objective.low, objective.high),
            maxiter=problem.budget.evaluations,
            polish=False,
            rng=objective.rng,
        )
        ending = found.message
    if misfit.best.size:
        with misfit.share(1.0):
            objective.refine(objective.frame.to(misfit.best))
    return misfit.answer(ending)
