"""Curves: whether bands of an input that nobody recorded hold the truth, from weekly counts alone.

python -m benchmarks curves --seed 36 --trials 200 [--kinds ...] [--output FILE]

    spline     an endemic disease whose rate of infection is a spline with a knot every four weeks
    season     the same, where the true rate is a cosine over the year, which no spline is exactly
    steps      a rate that changes at once, at known times

Counts of 52 weeks are drawn by NumPy from Poisson's law.  Only the uncertainty is under test, so fits start from the
truth, at knots for the cosine.  The bands are those of `fit.predict`, by the delta method and, in some trials, as they
are by default, with profiles where the delta method is not to be trusted; looked at are 53 times from the start on.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import lines as records
from odejet.problem import Problem
from odejet.result import Fit
from odejet.search.refine import refine

RESULTS = Path(__file__).parent / "results" / "curves"
SEASON = "0.4*(1 + 0.2*cos(6.283185307179586*t/364))"
KINDS = {
    "spline": "spline(every=28, positive)",
    "season": "spline(every=28, positive)",
    "steps": "steps(at=[0, 91, 182, 273], positive)",
}
WEEKS = np.arange(7.0, 365.0, 7.0)
LOOKED = np.arange(0.0, 365.0, 7.0)
KNOWN = {"I0": 200.0}
WITH_PROFILES = 20
"""Every so many trials bands are also made as they are by default."""


def model(rate: str) -> oj.Model:
    """Infected people become immune, and lose that in half a year; every new case is counted."""
    return oj.Model(
        {"S": "-beta*S*I/N + w*(N - S - I)", "I": "beta*S*I/N - g*I", "C": "beta*S*I/N"},
        {"cases": "increment(C)"},
        inputs={"beta": rate},
        initial={"S": "0.6*N", "I": "I0"},
        fixed={"N": 20000, "g": 0.2, "w": 0.005},
        name="endemic",
    )


def seasonal(times: np.ndarray) -> np.ndarray:
    return np.asarray(0.4 * (1 + 0.2 * np.cos(2 * math.pi * times / 364)))


def truth_of(kind: str, problem: Problem) -> dict[str, float]:
    """The true values of all unknowns; of a season, those at knots."""
    (curve,) = problem.model.curves.values()
    knots = np.array(curve.knots)
    levels = np.array([0.45, 0.36, 0.42, 0.5]) if kind == "steps" else seasonal(knots)
    return {**KNOWN, **dict(zip(curve.names("beta"), levels.tolist(), strict=True))}


def cell(kind: str, trial: int, seed: int) -> dict[str, Any]:
    """Where the bands of one data set hold the truth."""
    began, rng = time.process_time(), np.random.default_rng([seed, trial, sorted(KINDS).index(kind)])
    blank = Problem(model(KINDS[kind]), oj.Data(WEEKS, {"cases": np.ones(len(WEEKS))}, start=0), noise="poisson")
    values = truth_of(kind, blank)
    if kind == "season":
        clean = oj.simulate(model(SEASON), KNOWN, {}, WEEKS, start=0)
        rate = seasonal(LOOKED)
    else:
        clean = blank.simulate(values)["experiment1"]
        rate = blank.simulate(values, LOOKED)["experiment1"]["beta"]
    counts = rng.poisson(clean["cases"]).astype(float)
    problem = Problem(model(KINDS[kind]), oj.Data(WEEKS, {"cases": counts}, start=0), noise="poisson")
    z = problem.layout.vector(values)
    fit = Fit.of(problem, refine(problem.misfit, z, frame=problem.frame(z)))
    line: dict[str, Any] = {"kind": kind, "trial": trial, "counts": int(counts.sum())}
    for method in ("delta", "auto") if trial % WITH_PROFILES == 0 else ("delta",):
        band = fit.predict(LOOKED, method=method, states=False)["beta"]
        line[method] = float(np.mean((band.low <= rate) & (rate <= band.high)))
        line[f"{method}_width"] = float(np.median((band.high - band.low) / band.values))
    inside = [low <= values[name] <= high for name, (low, high) in ((n, fit.interval(n)) for n in problem.unknowns)]
    return line | {"unknowns": float(np.mean(inside)), "seconds": round(time.process_time() - began, 2)}


def table(lines: list[dict[str, Any]]) -> str:
    """Coverage of bands and intervals by kind."""
    text = [
        "Share (%) of times at which the 95 % band of the unknown rate holds the true one, and of unknowns inside",
        "their intervals; standard errors are over trials.  Width is that of the band in the median, in percent of",
        "the rate.",
        "",
        "| rate | fits | counts | band, delta method | ± | width | band, default (fits) | intervals | CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind in dict.fromkeys(line["kind"] for line in lines):
        own = [line for line in lines if line["kind"] == kind]
        shares = np.array([line["delta"] for line in own])
        auto = [line["auto"] for line in own if "auto" in line]
        median = {key: float(np.median([line[key] for line in own])) for key in ("counts", "delta_width", "seconds")}
        held = 100 * float(np.mean([line["unknowns"] for line in own]))
        text.append(
            f"| {kind} | {len(own)} | {median['counts']:.0f} | {100 * shares.mean():.1f} "
            f"| {100 * shares.std() / math.sqrt(len(own)):.1f} | {100 * median['delta_width']:.0f} "
            f"| {100 * float(np.mean(auto)):.1f} ({len(auto)}) | {held:.1f} | {median['seconds']:.1f} |"
        )
    return "\n".join(text) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks curves", description=__doc__)
    parser.add_argument("--seed", type=int, default=36)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args(argv)
    path = arguments.output or RESULTS / f"coverage-seed{arguments.seed}.jsonl"
    lines = records.read(path)
    done = {(line["kind"], line["trial"]) for line in lines}
    for trial in range(arguments.trials):
        for kind in arguments.kinds:
            if (kind, trial) not in done:
                lines.append(cell(kind, trial, arguments.seed))
                records.add(path, lines[-1])
    path.with_suffix(".md").write_text(table(lines))
    print(table(lines))
    return 0
