"""COPASI worker: one of COPASI's searches on a published problem, a line of JSON for each of its runs.

    python benchmarks/copasi_worker.py PROBLEM.yaml FOLDER METHOD SECONDS RUNS SEED GOAL

It runs by itself in an environment that has copasi-basico and copasi-petab-importer, which odejet's own need not have;
FOLDER is for files of its own.  COPASI minimises a sum of squares with one weight per column, so it can express a
problem whose noise is normal with known standard deviations, by which each measurement and its observable are divided;
not steady states before an experiment, nor priors.  The method is run again and again from random values within the
bounds, on one core, until a run ends at the goal (a negative log-likelihood) or until runs are used up; when the
processor seconds are, the system ends it wherever it is.
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

TOLERANCE = 1e-8
"""Relative, of COPASI's integrator: its own 1e-6 moves the likelihood of Crauste's problem by 0.08."""


class NotExpressibleError(Exception):
    """What COPASI cannot be told."""


def divided(problem: Any) -> tuple[Any, float]:
    """The problem with noise of size one, and what its negative log-likelihood is beside half the sum of squares."""
    import pandas
    import petab.v1 as petab

    observables, rows = [], []
    made: dict[tuple[str, float], str] = {}
    rest = 0.0
    for _, row in problem.measurement_df.iterrows():
        given = problem.observable_df.loc[row["observableId"]]
        deviation = _deviation(row, given)
        rest += math.log(math.sqrt(2 * math.pi) * deviation)
        key = row["observableId"], deviation
        if key not in made:
            made[key] = f"{row['observableId']}_{len(made)}"
            # Placeholders end in the observable's name.
            formula = str(given["observableFormula"]).replace(f"_{row['observableId']}", f"_{made[key]}")
            own = {"observableId": made[key], "observableFormula": f"({formula}) / {deviation!r}", "noiseFormula": 1}
            observables.append(own)
        own = {"observableId": made[key], "measurement": row["measurement"] / deviation, "noiseParameters": ""}
        rows.append({**row.to_dict(), **own})
    changed = petab.Problem(
        model=problem.model,
        condition_df=problem.condition_df,
        measurement_df=pandas.DataFrame(rows),
        observable_df=pandas.DataFrame(observables).set_index("observableId"),
        parameter_df=problem.parameter_df,
    )
    return changed, rest


def _deviation(row: Any, observable: Any) -> float:
    """The standard deviation of a measurement, where it is a number."""
    if observable.get("observableTransformation", "lin") not in ("lin", "", None):
        raise NotExpressibleError("measurements on a logarithmic scale")
    if observable.get("noiseDistribution", "normal") not in ("normal", "", None):
        raise NotExpressibleError("noise that is not normal")
    formula, given = str(observable["noiseFormula"]), str(row.get("noiseParameters", ""))
    text = given if formula == f"noiseParameter1_{row['observableId']}" else formula
    try:
        return float(text)
    except ValueError:
        raise NotExpressibleError("noise that is estimated") from None


def expressible(problem: Any) -> None:
    """Raise where the problem has what COPASI cannot be told."""
    measured, parameters = problem.measurement_df, problem.parameter_df
    if "preequilibrationConditionId" in measured and measured["preequilibrationConditionId"].notna().any():
        raise NotExpressibleError("steady states before the experiment")
    if "objectivePriorType" in parameters and parameters["objectivePriorType"].notna().any():
        raise NotExpressibleError("priors")


def search(method: str, runs: int, seed: int, goal: float, rest: float) -> None:
    """Print the processor seconds and the cost at the end of every run."""
    import basico

    began = time.process_time()
    for run in range(runs):
        told = {"name": method, "Random Number Generator": 1, "Seed": 1 + 1000 * seed + run}
        problem = {"Randomize Start Values": True, "Calculate Statistics": False}
        basico.run_parameter_estimation(settings={"method": told, "problem": problem}, update_model=False)
        cost = 0.5 * basico.get_fit_statistic()["obj"] + rest
        print(json.dumps({"seconds": round(time.process_time() - began, 3), "cost": cost}), flush=True)
        if cost <= goal:
            break


def main(path: Path, folder: Path, method: str, seconds: float, runs: int, seed: int, goal: float) -> None:
    """Print why COPASI cannot be asked, or its runs."""
    import basico
    import petab.v1 as petab
    from basico.petab import load_petab, write_problem_to

    logging.disable(logging.CRITICAL)
    problem = petab.Problem.from_yaml(path)
    try:
        expressible(problem)
        changed, rest = divided(problem)
    except NotExpressibleError as reason:
        print(json.dumps({"inexpressible": str(reason)}))
        return
    os.chdir(folder)  # COPASI writes a report where it runs
    files = write_problem_to(changed, str(folder), "divided")
    load_petab(files["problem"], str(folder))
    basico.set_task_settings("Time-Course", {"method": {"Relative Tolerance": TOLERANCE}})
    used = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (used, used))
    search(method, runs, seed, goal, rest)


if __name__ == "__main__":
    yaml, folder, method, *numbers = sys.argv[1:]
    main(Path(yaml), Path(folder), method, float(numbers[0]), int(numbers[1]), int(numbers[2]), float(numbers[3]))
