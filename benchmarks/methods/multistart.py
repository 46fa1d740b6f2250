"""Multistart: our refinement from points drawn evenly in the box, and nothing else."""

from __future__ import annotations

from benchmarks.methods.problem import Answer, Objective, Problem

STARTS = 100


def solve(problem: Problem) -> Answer:
    objective = Objective(problem)
    starts = objective.rng.uniform(objective.low, objective.high, (STARTS, len(objective.low)))
    with objective.misfit.share(1.0):
        for start in starts:
            objective.refine(start)
    return objective.misfit.answer(f"at most {STARTS} starts")
