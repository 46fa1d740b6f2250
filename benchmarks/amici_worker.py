"""AMICI worker: the likelihood and the simulations of a published problem by AMICI, as one line of JSON.

    python benchmarks/amici_worker.py PROBLEM.yaml MODELS

It runs by itself in an environment that has AMICI, which odejet's own need not have; MODELS is a folder in which
compiled models are kept.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOLERANCES = 1e-12, 1e-10
"""Absolute and relative, of CVODES and of its steady states."""

STEPS = 1_000_000


def looked_up(path: Path, models: Path) -> dict[str, Any]:
    """The log-likelihood at the published parameters and the simulations, as rows of PEtab's table."""
    import petab.v1 as petab
    from amici.importers.petab.v1 import import_petab_problem
    from amici.sim.sundials.petab.v1 import rdatas_to_simulation_df, simulate_petab

    problem = petab.Problem.from_yaml(path)
    options = {"generate_sensitivity_code": False, "verbose": logging.ERROR}  # values alone, to compile less
    with compiling() as compiled:
        model = import_petab_problem(problem, models / path.stem, model_name=path.stem, **options)
    solver = model.create_solver()
    solver.set_absolute_tolerance(TOLERANCES[0])
    solver.set_relative_tolerance(TOLERANCES[1])
    solver.set_absolute_tolerance_steady_state(TOLERANCES[0])
    solver.set_relative_tolerance_steady_state(TOLERANCES[1])
    solver.set_max_steps(STEPS)
    began = time.process_time()
    found = simulate_petab(problem, amici_model=model, solver=solver)
    simulated = rdatas_to_simulation_df(found["rdatas"], model=model, measurement_df=problem.measurement_df)
    return {
        "log_likelihood": float(found["llh"]),
        "statuses": sorted({int(one.status) for one in found["rdatas"]}),
        "compile_seconds": round(compiled[0], 1),
        "seconds": round(time.process_time() - began, 3),
        "simulations": json.loads(simulated.to_json(orient="records", double_precision=15)),
    }


@contextmanager
def compiling() -> Iterator[list[float]]:
    """Processor seconds of what is done within, with those of compilers that are run."""
    found = [-_seconds()]
    yield found
    found[0] += _seconds()


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(looked_up(Path(sys.argv[1]), Path(sys.argv[2]))))
