"""Structure: what a law of noise and priors cost where every experiment has unknowns of its own.

python -m benchmarks structure [--experiments 200] [--seed 0] [--rounds 3] [--output FILE]

The same experiments, three local and two shared unknowns, once with normal noise and no priors, once with log-normal
noise of an estimated size and a prior on every local unknown.  Both are refined from one start, in turns; times are
CPU seconds, memory is the peak of what Python and NumPy have in a refinement.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import odejet as oj
from benchmarks.store import write_whole
from odejet.objective.misfit import Misfit
from odejet.search.refine import refine

RESULTS = Path(__file__).parent / "results" / "experiments"
MODEL = oj.Model(
    {"x": "-k*x + a", "w": "k*x - c*w/(m + w)"}, {"y": "x", "v": "w"}, initial={"x": "x0", "w": 0}, name="two pools"
)
SHARED = {"c": 1.2, "m": 0.8}
LOCAL = {"k": -0.5, "a": -1.0, "x0": 1.0}
"""Means of logarithms, which spread by SPREAD."""

SPREAD, NOISE = 0.3, 0.05


@dataclass(frozen=True)
class Cost:
    """What a refinement took."""

    evaluation: float  # seconds, with derivatives
    refinement: float
    evaluations: int
    megabytes: float


def problem(experiments: int, seed: int, whole: bool) -> Misfit:
    """Experiments with log-normal noise and priors, or with neither."""
    rng, times, data = np.random.default_rng(seed), np.linspace(0.2, 6, 20), []
    for number in range(experiments):
        own = {name: float(np.exp(rng.normal(mean, SPREAD))) for name, mean in LOCAL.items()}
        exact = oj.simulate(MODEL, {**own, **SHARED}, {}, times, start=0)
        noise = NOISE * rng.normal(size=(2, len(times)))
        values = {
            name: exact[name] * np.exp(row) if whole else exact[name] + row
            for name, row in zip(MODEL.outputs, noise, strict=True)
        }
        data.append(oj.Data(times, values, start=0, name=f"e{number}"))
    options = {
        "noise": "lognormal(s)",
        "priors": {name: f"lognormal({mean}, {SPREAD})" for name, mean in LOCAL.items()},
    }
    asked = oj.Problem(MODEL, oj.Data.join(data), local=list(LOCAL), positive=True, **(options if whole else {}))
    return asked.misfit


def measured(misfit: Misfit) -> Cost:
    start = np.array([0.1 if unknown.name == "s" else 1.0 for unknown in misfit.unknowns])
    misfit.evaluate(start)  # what is made once
    begin = time.process_time()
    for _ in range(5):
        misfit.evaluate(start)
    middle = time.process_time()
    found = refine(misfit, start, positive=True)
    end = time.process_time()
    tracemalloc.start()
    refine(misfit, start, positive=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Cost((middle - begin) / 5, end - middle, found.evaluations, peak / 1e6)


def table(experiments: int, plain: list[Cost], whole: list[Cost]) -> str:
    def middle(costs: list[Cost], name: str) -> float:
        return float(np.median([getattr(cost, name) for cost in costs]))

    lines = [
        f"{experiments} experiments, three unknowns of their own and two shared ones, 40 measurements each: medians",
        f"of {len(plain)} turns.",
        "",
        "| | normal, no priors | log-normal, priors | ratio |",
        "|---|---:|---:|---:|",
    ]
    shown = {
        "evaluation": "an evaluation with derivatives, ms",
        "refinement": "a refinement, s",
        "evaluations": "evaluations of it",
        "megabytes": "its memory, MB",
    }
    for name, what in shown.items():
        unit = 1000 if name == "evaluation" else 1
        one, other = unit * middle(plain, name), unit * middle(whole, name)
        lines.append(f"| {what} | {one:.3g} | {other:.3g} | {other / one:.2f} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks structure", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS / "structure.md")
    given = parser.parse_args(argv)
    pair = [problem(given.experiments, given.seed, whole) for whole in (False, True)]
    costs = [[measured(misfit) for misfit in pair] for _ in range(given.rounds)]
    shown = table(given.experiments, [one for one, _ in costs], [other for _, other in costs])
    write_whole(given.output, shown)
    print(shown)
    return 0
