"""Chains of Michaelis-Menten steps: fits of models that grow, and what their sensitivities cost.

    python -m benchmarks chains [--steps 5 10 20 40 80] [--seeds 0] [--limit 120] [--output FILE]

All states are measured, or every third, with noise of one percent at 101 times.  Each fit runs in a process of its own
whose limit counts processor seconds, compiling apart; a fit is as good as the one started from the truth if its
likelihood is no lower by more than what counts.  Beside them stand the milliseconds of a simulation with all
sensitivities to rounding, with them at 1e-8, and without, at the true values: what a gradient costs by the number of
unknowns.  Every fit is one line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import clock, limits
from benchmarks import lines as records
from benchmarks.comparison import AS_GOOD
from benchmarks.store import write_whole
from odejet.objective.courses import ROUGH, THOROUGH, Effort
from odejet.objective.misfit import Misfit
from odejet.search.refine import refine
from problems.chains import drawn_chain

RESULTS = Path(__file__).parent / "results" / "chains"
STEPS, MEASURED = (5, 10, 20, 40, 80), {"all": 1, "third": 3}
REPEATS = 3


def milliseconds(misfit: Misfit, z: np.ndarray, effort: Effort, sensitivities: bool) -> float:
    """Of one simulation, at the best of some."""
    best = math.inf
    for _ in range(REPEATS + 1):  # the first may compile
        begin = time.process_time()
        misfit.courses[0].run(z, effort, sensitivities)
        best = min(best, time.process_time() - begin)
    return 1e3 * best


def perform(steps: int, measured: str, seed: int, limit: float) -> dict[str, Any]:
    """One fit in this process."""
    clock.by_processor()
    subject, truth = drawn_chain(steps, MEASURED[measured], seed)
    problem = subject.problem
    misfit = problem.misfit
    z = np.array([truth[unknown.name] for unknown in misfit.unknowns])
    costs = {
        "gradient_ms": milliseconds(misfit, z, THOROUGH, True),
        "rough_gradient_ms": milliseconds(misfit, z, ROUGH, True),
        "values_ms": milliseconds(misfit, z, ROUGH, False),
    }
    begin, compiled = time.process_time(), limits.compilation.seconds()
    fit = oj.fit(problem, time_limit=limit)
    seconds = time.process_time() - begin - (limits.compilation.seconds() - compiled)
    return {
        "steps": steps,
        "measured": measured,
        "seed": seed,
        "states": len(subject.model.states),
        "unknowns": subject.unknowns,
        "points": subject.points,
        "limit": limit,
        "cpu": seconds,
        "certified": fit.certified,
        "behind": fit.cost - refine(misfit, z, time_limit=limit).cost,
        **costs,
    }


def table(lines: list[dict[str, Any]]) -> str:
    """One row per fit."""
    good = sum(line["behind"] <= AS_GOOD for line in lines)
    false = sum(line["certified"] and line["behind"] > AS_GOOD for line in lines)
    text = [
        "# Chains of Michaelis-Menten steps",
        "",
        f"Of {len(lines)} fits {good} are as good as the one from the truth, "
        f"{sum(line['certified'] for line in lines)} certified, {false} falsely.  Seconds and milliseconds are the "
        "processor's, those of compiling apart.",
        "",
        "| steps | measured | seed | unknowns | points | CPU s | limit | certified | behind | "
        "gradient ms | at 1e-8 ms | values at 1e-8 ms |",
        "|---:|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|",
    ]
    order = {name: i for i, name in enumerate(MEASURED)}
    for line in sorted(lines, key=lambda line: (order[line["measured"]], line["steps"], line["seed"])):
        behind = "0" if abs(line["behind"]) <= AS_GOOD else f"{line['behind']:.3g}"
        text.append(
            f"| {line['steps']} | {line['measured']} | {line['seed']} | {line['unknowns']} | {line['points']} | "
            f"{line['cpu']:.1f} | {line['limit']:g} | {'yes' if line['certified'] else 'no'} | {behind} | "
            f"{line['gradient_ms']:.1f} | {line['rough_gradient_ms']:.1f} | {line['values_ms']:.1f} |"
        )
    return "\n".join(text) + "\n"


def main(argv: list[str]) -> int:
    if argv[:1] == ["--perform"]:
        print(json.dumps(perform(int(argv[1]), argv[2], int(argv[3]), float(argv[4]))))
        return 0
    parser = argparse.ArgumentParser(prog="python -m benchmarks chains", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", nargs="+", type=int, default=STEPS)
    parser.add_argument("--measured", nargs="+", choices=list(MEASURED), default=list(MEASURED))
    parser.add_argument("--seeds", nargs="+", type=int, default=(0,))
    parser.add_argument("--limit", type=float, default=120.0, help="processor seconds")
    parser.add_argument("--output", type=Path, default=RESULTS / "chains.jsonl")
    given = parser.parse_args(argv)
    lines = records.read(given.output)
    done = {(line["steps"], line["measured"], line["seed"]) for line in lines}
    for seed in given.seeds:
        for measured in given.measured:
            for steps in given.steps:
                if (steps, measured, seed) in done:
                    continue
                task = [str(steps), measured, str(seed), str(given.limit)]
                command = [sys.executable, "-m", "benchmarks", "chains", "--perform", *task]
                found = subprocess.run(command, capture_output=True, text=True, check=True)
                lines.append(json.loads(found.stdout))
                records.add(given.output, lines[-1])
                print(f"{steps} {measured} {seed}: {lines[-1]['cpu']:.1f} s", flush=True)
    write_whole(given.output.with_suffix(".md"), table(lines))
    print(table(lines))
    return 0
