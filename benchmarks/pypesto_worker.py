"""pyPESTO worker: starts of pyPESTO with AMICI and fides on a published problem, as one line of JSON.

    python benchmarks/pypesto_worker.py PROBLEM.yaml MODELS SECONDS STARTS SEED GOAL

It runs by itself in an environment that has pyPESTO, AMICI and fides, which odejet's own need not have; MODELS is a
folder in which compiled models are kept.  AMICI has its own tolerances, but for an absolute one of 1e-8 where with
these it cannot simulate a single one of some random points.  Starts are refined one after the other on one core, until
one of them ends at the goal (a negative log-likelihood), or until starts or processor seconds are used up.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

TRIED = 5
"""Random points that AMICI may fail to simulate before its absolute tolerance, by default 1e-16, is loosened."""


def loosen(asked: Any) -> None:
    """Give AMICI an absolute tolerance with which it can begin: large states are rounded by more than 1e-16."""
    np.random.seed(0)
    for _ in range(TRIED):
        point = np.random.uniform(asked.lb, asked.ub)
        if np.isfinite(asked.objective(point, (0, 1))[0]):
            return
    asked.objective.amici_solver.set_absolute_tolerance(1e-8)


def raced(path: Path, models: Path, seconds: float, starts: int, seed: int, goal: float) -> dict[str, Any]:
    """When every start has ended, and where."""
    import petab.v1 as petab
    import pypesto.optimize
    import pypesto.petab
    from amici_worker import compiling

    logging.disable(logging.CRITICAL)
    with compiling() as compiled:
        problem = petab.Problem.from_yaml(path)
        name = f"{path.stem}_sensitive"
        importer = pypesto.petab.PetabImporter(problem, output_folder=str(models / name), model_name=name)
        asked = importer.create_problem()
    loosen(asked)
    np.random.seed(seed)
    ends: list[tuple[float, float]] = []
    began = time.process_time()
    while len(ends) < starts and (left := began + seconds - time.process_time()) > 0.0:
        optimizer = pypesto.optimize.FidesOptimizer(verbose=logging.CRITICAL, options={"maxtime": left})
        found = pypesto.optimize.minimize(asked, optimizer=optimizer, n_starts=1, progress_bar=False)
        ends.append((round(time.process_time() - began, 3), float(found.optimize_result.list[0].fval)))
        if ends[-1][1] <= goal:
            break
    return {"compile_seconds": round(compiled[0], 1), "ends": ends}


if __name__ == "__main__":
    yaml, models, *rest = sys.argv[1:]
    print(json.dumps(raced(Path(yaml), Path(models), float(rest[0]), int(rest[1]), int(rest[2]), float(rest[3]))))
