"""Real: small published data sets, how long a fit takes to end, and beside it a blind multistart by SciPy.

    python -m benchmarks real [--only NAMES] [--limit SECONDS] [--seed S] [--output FILE]

The data sets are those of `problems.published`: few points, models that explain them more or less.  The multistart
has 20 starts drawn evenly in the same box, each led by L-BFGS-B with our exact gradient on the scale of the search to
its end.  Seconds are the processor's.  Every data set is one line of a file: stopping and starting again repeats
nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

import odejet as oj
from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.collection import warm
from benchmarks.store import write_whole
from odejet.jets import compilation
from odejet.problem import Problem
from odejet.search.box import sampled_box
from odejet.smooth.threads import one_thread
from problems.published import FURTHER, PUBLISHED

RESULTS = Path(__file__).parent / "results" / "real" / "fits.jsonl"

STARTS, ITERATIONS = 20, 500
"""Of the blind multistart."""

CASES: dict[str, Callable[[], Problem]] = {**{name: one.pose for name, one in PUBLISHED.items()}, **FURTHER}


def blind(problem: Problem, seed: int) -> float:
    """The best of 20 starts by SciPy."""
    scaled, frame = problem.objective.scaled(), problem.frame()
    low, high = sampled_box(frame, problem.sizes)

    def cost(theta: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(all="ignore"):
            value, gradient = scaled.value_and_gradient(theta)
        return (
            (value, gradient) if math.isfinite(value) and np.isfinite(gradient).all() else (1e10, np.zeros(len(theta)))
        )

    rng, best = np.random.default_rng(seed), math.inf
    for start in low + rng.random((STARTS, len(low))) * (high - low):
        box = list(zip(*frame.box, strict=True))
        found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": ITERATIONS})
        best = min(best, float(found.fun))
    return best


def _seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    before, compiled = time.process_time(), compilation.seconds()
    answer = work()
    return answer, round(time.process_time() - before - (compilation.seconds() - compiled), 2)


def measured(name: str, seed: int, limit: float) -> dict[str, Any]:
    """One data set: a fit, and the blind multistart."""
    warm()
    problem = CASES[name]()
    problem.misfit.score(problem.frame().inside(problem.sizes))  # kernels are loaded for neither
    fit, seconds = _seconds(lambda: oj.fit(problem, seed=seed, time_limit=limit))
    best, blind_seconds = _seconds(lambda: blind(CASES[name](), seed))
    told = {"data": name, "seed": seed, "seconds": seconds, "cost": fit.cost, "certified": fit.certified}
    told |= {word: str(getattr(fit, word, "")) for word in ("search", "adequacy")}
    return told | {"blind_seconds": blind_seconds, "blind_cost": best, "message": fit.message}


def table(lines: list[dict[str, Any]]) -> str:
    rows = [
        "| data | ends after | best fit | explains the data | certified | blind | blind is behind by |",
        "|---|--:|---|---|---|--:|--:|",
    ]
    for line in lines:
        behind = line["blind_cost"] - line["cost"]
        cells = [
            line["data"],
            f"{line['seconds']:.1f} s",
            line["search"],
            line["adequacy"],
            "yes" if line["certified"] else "no",
        ]
        rows.append(f"| {' | '.join(cells)} | {line['blind_seconds']:.1f} s | {behind:.2f} |")
    return "\n".join(rows) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks real", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args(argv)
    lines = records.read(given.output)
    done = {(line["data"], line["seed"]) for line in lines}
    by_processor()
    with one_thread():
        for name in (name for name in given.only if (name, given.seed) not in done):
            lines.append(measured(name, given.seed, given.limit))
            records.add(given.output, lines[-1])
            print(json.dumps(lines[-1]), flush=True)
    write_whole(given.output.with_suffix(".md"), table(lines))
    print(table(lines))
    return 0
