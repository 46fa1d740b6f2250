"""Real: small published data sets, how long a fit takes to end, and beside it a blind multistart by SciPy.

    python -m benchmarks real [--only NAMES] [--limit SECONDS] [--seed S] [--output FILE]

Data are from R's `datasets` and from the examples: few points, models that explain them more or less.  The multistart
has 20 starts drawn evenly in the same box, each led by L-BFGS-B with our exact gradient on the scale of the search to
its end.  Seconds are the processor's.  Every data set is one line of a file: stopping and starting again repeats
nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
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

RESULTS = Path(__file__).parent / "results" / "real" / "fits.jsonl"
EXAMPLES = Path(__file__).parents[1] / "examples"

STARTS, ITERATIONS = 20, 500
"""Of the blind multistart."""

# --- data -------------------------------------------------------------------------------------------------------------

ORANGE_AGES = [118, 484, 664, 1004, 1231, 1372, 1582]
ORANGE = [
    [30, 58, 87, 115, 120, 142, 145],
    [33, 69, 111, 156, 172, 203, 203],
    [30, 51, 75, 108, 115, 139, 140],
    [32, 62, 112, 167, 179, 209, 214],
    [30, 49, 81, 125, 142, 174, 177],
]
INDOMETH_TIMES = [0.25, 0.5, 0.75, 1, 1.25, 2, 3, 4, 5, 6, 8]
INDOMETH = [
    [1.50, 0.94, 0.78, 0.48, 0.37, 0.19, 0.12, 0.11, 0.08, 0.07, 0.05],
    [2.03, 1.63, 0.71, 0.70, 0.64, 0.36, 0.32, 0.20, 0.25, 0.12, 0.08],
    [2.72, 1.49, 1.16, 0.80, 0.80, 0.39, 0.22, 0.12, 0.11, 0.08, 0.08],
    [1.85, 1.39, 1.02, 0.89, 0.59, 0.40, 0.16, 0.11, 0.10, 0.07, 0.07],
    [2.05, 1.04, 0.81, 0.39, 0.30, 0.23, 0.13, 0.11, 0.08, 0.10, 0.06],
    [2.31, 1.44, 1.03, 0.84, 0.64, 0.42, 0.24, 0.17, 0.13, 0.10, 0.09],
]
PUROMYCIN = (
    [0.02, 0.06, 0.11, 0.22, 0.56, 1.10],
    [[76, 47], [97, 107], [123, 139], [159, 152], [191, 201], [207, 200]],
)
CHICK = [42, 51, 59, 64, 76, 93, 106, 125, 149, 171, 199, 205]
USPOP = [3.93, 5.31, 7.24, 9.64, 12.90, 17.10, 23.20, 31.40, 39.80, 50.20, 62.90, 76.00, 92.00, 105.70, 122.80, 131.70]
USPOP += [151.30, 179.30, 203.20]
PRESSURE = [2e-4, 1.2e-3, 6e-3, 0.03, 0.09, 0.27, 0.75, 1.85, 4.2, 8.8, 17.3, 32.1, 57, 96, 157, 247, 376, 558, 806]

LOGISTIC = oj.Model({"N": "r*N*(1 - N/K)"}, {"y": "N"})
TWO_COMPARTMENTS = oj.Model({"c": "-(k10 + k12)*c + k21*p", "p": "k12*c - k21*p"}, {"y": "c"}, initial={"p": 0})


def _several(times: Sequence[float], series: Sequence[Sequence[float]], name: str) -> oj.Data:
    return oj.Data.join(oj.Data(times, {"y": y}, name=f"{name}{i}", start=0) for i, y in enumerate(series, 1))


def _example(name: str, **options: Any) -> Problem:
    data = oj.Data.from_csv(EXAMPLES / f"{name}.csv")
    return Problem(oj.Model.from_toml(EXAMPLES / f"{name}.toml"), data, **options)


def _puromycin() -> Problem:
    times, values = np.repeat(PUROMYCIN[0], 2), np.ravel(PUROMYCIN[1])
    model = oj.Model({"v": "Vm*K/(K + t)**2"}, {"y": "v"}, initial={"v": 0})
    return Problem(model, oj.Data(times, {"y": values}, start=0))


CASES: dict[str, Callable[[], Problem]] = {
    "theophylline, pooled": lambda: _example("theophylline"),
    "theophylline, all local": lambda: _example("theophylline", local=["ka", "ke", "V"]),
    "influenza": lambda: _example("influenza"),
    "hares and lynxes": lambda: _example("hare_lynx"),
    "orange trees, pooled": lambda: Problem(LOGISTIC, _several(ORANGE_AGES, ORANGE, "tree")),
    "orange trees, all local": lambda: Problem(LOGISTIC, _several(ORANGE_AGES, ORANGE, "tree"), local=["r", "K"]),
    "indomethacin, pooled": lambda: Problem(TWO_COMPARTMENTS, _several(INDOMETH_TIMES, INDOMETH, "subject")),
    "indomethacin, first": lambda: Problem(TWO_COMPARTMENTS, oj.Data(INDOMETH_TIMES, {"y": INDOMETH[0]}, start=0)),
    "oxygen demand": lambda: Problem(
        oj.Model({"d": "k*(A - d)"}, {"y": "d"}, initial={"d": 0}),
        oj.Data([1, 2, 3, 4, 5, 7], {"y": [8.3, 10.3, 19.0, 16.0, 15.6, 19.8]}, start=0),
    ),
    "puromycin": _puromycin,
    "chick": lambda: Problem(LOGISTIC, oj.Data([*range(0, 21, 2), 21], {"y": CHICK})),
    "population": lambda: Problem(LOGISTIC, oj.Data(np.arange(19.0), {"y": USPOP})),
    "vapour pressure": lambda: Problem(
        oj.Model({"p": "a*p/(t + c)**2"}, {"y": "p"}), oj.Data(20.0 * np.arange(19), {"y": PRESSURE}), noise="relative"
    ),
}


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
