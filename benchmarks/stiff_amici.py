"""AMICI's times for the problems of `stiff`: a program for an environment of its own, run by AMICI's Python.

    python stiff_amici.py JOBS FOLDER

JOBS is a file with a list of jobs, each of a name and either `sbml`, a file with a model, and its `parameters` and
`times`, or `petab`, a problem, which is simulated at its published parameters.  Models are compiled into FOLDER once.
For each job and tolerance, with forward sensitivities and without, one line of JSON tells the milliseconds that
CVODES took by AMICI's own account, all conditions and their steady states included, at the best of some repetitions.
"""

import json
import logging
import sys
import time
from pathlib import Path

REPEATS, ENOUGH = 51, 2000.0  # and milliseconds after which there are no more
LONG = 300.0  # milliseconds beyond which nothing is repeated
TINY = 1e-8  # the absolute tolerance, relative to the relative one: at 1e-8 both are AMICI's own defaults


def compiled(job, folder):
    """The job's model, and what simulates it with a solver: a function to AMICI's results."""
    name = "".join(letter if letter.isalnum() else "_" for letter in job["name"])
    place = folder / name
    if "petab" in job:
        return compiled_petab(job, name, place)
    from amici import import_model_module
    from amici.importers.sbml import SbmlImporter
    from amici.sim.sundials import run_simulation

    if not (place / name / "__init__.py").is_file():
        SbmlImporter(job["sbml"]).sbml2amici(name, place, verbose=logging.ERROR)
    model = import_model_module(name, place).get_model()
    known = set(model.get_free_parameter_ids())
    for parameter, value in job["parameters"].items():
        # Names that AMICI keeps to itself have others.
        model.set_free_parameter_by_id(parameter if parameter in known else f"amici_{parameter}", value)
    model.set_timepoints(job["times"])
    return model, lambda solver: [run_simulation(model, solver)]


def compiled_petab(job, name, place):
    import petab.v1 as petab
    from amici.importers.petab.v1 import import_petab_problem
    from amici.sim.sundials.petab.v1 import simulate_petab

    problem = petab.Problem.from_yaml(job["petab"])
    model = import_petab_problem(problem, output_dir=place, model_name=name, verbose=logging.ERROR)

    def run(solver):
        return simulate_petab(petab_problem=problem, amici_model=model, solver=solver)["rdatas"]

    return model, run


def measured(job, folder):
    from amici.sim.sundials import SensitivityMethod, SensitivityOrder

    model, run = compiled(job, folder)
    for tolerance in job["tolerances"]:
        for sensitivities in (False, True):
            solver = model.create_solver()
            solver.set_relative_tolerance(tolerance)
            solver.set_absolute_tolerance(TINY * tolerance)
            solver.set_max_steps(1_000_000)
            solver.set_sensitivity_method(SensitivityMethod.forward)
            solver.set_sensitivity_order(SensitivityOrder.first if sensitivities else SensitivityOrder.none)
            best, spent, well = float("inf"), 0.0, True
            for _ in range(REPEATS):
                begin, results = time.process_time(), run(solver)
                spent += 1e3 * (time.process_time() - begin)
                well = all(result.status == 0 for result in results)
                best = min(best, sum(one.cpu_time + one.preeq_cpu_time + one.posteq_cpu_time for one in results))
                if not well or best > LONG or spent > ENOUGH:
                    break
            yield {
                "problem": job["name"],
                "tolerance": tolerance,
                "sensitivities": sensitivities,
                "amici_ms": best if well else None,
            }


def main():
    jobs, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for job in json.loads(jobs.read_text()):
        for line in measured(job, folder):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
