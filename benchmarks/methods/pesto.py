"""pyPESTO's multistart as its documentation sets it up for ODE models: the trust-region optimiser Fides with gradient
and Fisher information, from uniform starts on the logarithmic scale."""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np

from benchmarks.methods.problem import Answer, Objective, Problem

STARTS = 100
TOLERANCE = 1e-12
"""Below the default, which would stop at errors of 1e-4 where data have no noise."""

ONE_AT_A_TIME = threading.Lock()
"""pyPESTO draws from NumPy's global generator, which threads share."""


def quiet() -> None:
    for name in ("pypesto", "fides"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def pypesto_problem(objective: Objective, function: Any) -> Any:
    import pypesto

    names = [unknown.name for unknown in objective.misfit.unknowns]
    return pypesto.Problem(objective=function, lb=objective.low, ub=objective.high, x_names=names)


def solve(problem: Problem) -> Answer:
    import pypesto
    from pypesto import optimize

    quiet()
    objective = Objective(problem)
    function = pypesto.Objective(fun=objective.expansion, grad=True, hess=True)
    options = {"maxiter": 1000, "fatol": TOLERANCE, "frtol": TOLERANCE, "xtol": 0.0}
    with ONE_AT_A_TIME, objective.misfit.share(1.0), np.errstate(all="ignore"):
        np.random.seed(problem.seed % 2**32)
        optimize.minimize(
            pypesto_problem(objective, function),
            optimize.FidesOptimizer(options=options, verbose=logging.CRITICAL),
            n_starts=STARTS,
            progress_bar=False,
        )
    return objective.misfit.answer(f"at most {STARTS} starts")
