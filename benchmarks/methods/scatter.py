"""Enhanced scatter search, AMIGO2's global optimiser, in pyPESTO's implementation with a least-squares local search.

The reference set is as large as the method's authors choose it for a number of unknowns (Egea and others 2010); what is
not said here is pyPESTO's default, which is theirs too.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from benchmarks.methods.pesto import ONE_AT_A_TIME, pypesto_problem, quiet
from benchmarks.methods.problem import Answer, Objective, Problem

TOLERANCE = 1e-13
"""Of the local search, as in the paper."""
EVALUATIONS = 200
"""Of one round of a local search."""
ROUNDS = 3
"""How often the outputs are weighted anew by their residuals, where they have weights."""


def reference_set(unknowns: int) -> int:
    """The smallest even d with d (d - 1) >= 10 n."""
    least = math.ceil((1 + math.sqrt(1 + 40 * unknowns)) / 2)
    return max(least + least % 2, 4)


def solve(problem: Problem) -> Answer:
    import pypesto
    from pypesto.optimize.ess import ESSOptimizer

    quiet()
    objective = Objective(problem)
    function = pypesto.Objective(fun=objective.cost)
    with ONE_AT_A_TIME, objective.misfit.share(1.0), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        np.random.seed(problem.seed % 2**32)
        search = ESSOptimizer(
            dim_refset=reference_set(len(objective.low)),
            max_eval=problem.budget.evaluations,
            local_optimizer=local_search(objective),
        )
        search.minimize(pypesto_problem(objective, function))
    return objective.misfit.answer("scatter search")


def local_search(objective: Objective) -> Any:
    """pyPESTO's interface to SciPy's bounded least squares, in rounds between which weights follow the residuals."""
    import pypesto
    from pypesto import optimize

    class LeastSquares(optimize.Optimizer):
        def minimize(self, problem: Any, x0: Any = None, id: Any = None, *_: Any, **__: Any) -> Any:
            x, used = np.asarray(x0, dtype=float), 0
            for _round in range(ROUNDS if objective.misfit.weighted else 1):
                levels = objective.levels(x)
                if levels is None:
                    return _result(pypesto, problem, id, x, math.inf, used)
                found = _least_squares(objective, levels).minimize(_residuals(objective, levels), x, id)
                x, used = found.x, used + found.n_res
            return _result(pypesto, problem, id, x, objective.cost(x), used)

        def is_least_squares(self) -> bool:
            return True

    return LeastSquares()


def _least_squares(objective: Objective, levels: np.ndarray) -> Any:
    from pypesto import optimize

    options = {"xtol": TOLERANCE, "gtol": TOLERANCE, "maxfun": EVALUATIONS, "tr_solver": "exact"}
    return optimize.ScipyOptimizer("ls_trf", tol=TOLERANCE, options=options)


def _residuals(objective: Objective, levels: np.ndarray) -> Any:
    import pypesto

    function = pypesto.Objective(
        res=lambda theta: objective.residuals(theta, levels), sres=lambda theta: objective.jacobian(theta, levels)
    )
    return pypesto_problem(objective, function)


def _result(pypesto: Any, problem: Any, name: Any, x: np.ndarray, value: float, used: int) -> Any:
    result = pypesto.OptimizerResult(id=name, x=x, fval=value, n_fval=used, message="least squares", exitflag=0, time=0)
    result.update_to_full(problem)
    return result
