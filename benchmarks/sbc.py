"""SBC: simulation-based calibration of posteriors, profiles and curvature on six models of different kinds.

python -m benchmarks sbc [--models ...] [--draws 100] [--seed 0] [--time-limit 3600] [--output FILE]

Values are drawn from the priors, data made with them, and the rank of every value among the draws of its posterior
looked at (Talts et al. 2018): uniform ranks, by Kolmogorov and Smirnov, are what is to be shown, p > 0.01 in at least
95 % of all quantities.  Fits begin at the values, so that posteriors are tested and no searches.  Every model is one
line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import lines as records
from benchmarks.store import write_whole

RESULTS = Path(__file__).parent / "results" / "sbc"
SURE = 0.01


def _posed(model: oj.Model, times: Any, **options: Any) -> oj.Problem:
    """A problem whose values are all one: they are replaced."""
    names = list(model.outputs)
    return oj.Problem(model, oj.Data(times, {name: np.ones(len(times)) for name in names}, start=0), **options)


def counts() -> oj.Problem:
    """Infectious people in an outbreak, counted with scatter."""
    model = oj.Model(
        {"S": "-beta*S*I/500", "I": "beta*S*I/500 - gamma*I"},
        {"y": "I"},
        initial={"S": "500 - i0", "I": "i0"},
        start=0,
    )
    priors = {
        "beta": "lognormal(0, 0.3)",
        "gamma": "lognormal(-1, 0.3)",
        "i0": "lognormal(1, 0.5)",
        "a": "gamma(4, 0.05)",
    }
    return _posed(model, np.arange(1.0, 16.0), noise="negbinomial(a)", priors=priors, positive=True)


def lognormal() -> oj.Problem:
    """Decay with errors of the logarithm."""
    model = oj.Model({"x": "-k*x"}, {"y": "x"})
    priors = {"k": "lognormal(-0.5, 0.5)", "x": "lognormal(1, 0.5)", "s": "gamma(5, 0.04)"}
    return _posed(model, np.linspace(0.2, 4, 10), noise="lognormal(s)", priors=priors, positive=True)


def doses() -> oj.Problem:
    """Two doses by mouth, with an error that has a constant and a relative part."""
    model = oj.Model({"d": "-ka*d", "c": "ka*d/V - ke*c"}, {"y": "c"}, initial={"d": "0", "c": "0"})
    times = np.array([0.5, 1, 2, 4, 6, 8, 12, 13, 14, 18, 24.0])
    given = {"time": [0, 12], "state": ["d", "d"], "amount": [100, 100]}
    data = oj.Data(times, {"y": np.ones(len(times))}, doses=given, start=0)
    priors = {"ka": "lognormal(0.3, 0.3)", "ke": "lognormal(-2, 0.3)", "V": "lognormal(3, 0.3)", "b": "gamma(5, 0.02)"}
    return oj.Problem(model, data, noise="normal(0.05 + b*y)", priors=priors, positive=True)


def experiments() -> oj.Problem:
    """Three experiments with a rate in common and a start of their own."""
    model = oj.Model({"x": "-k*x/(K + x)"}, {"y": "x"})
    times = np.linspace(0, 6, 7)
    data = oj.Data.of(
        experiment for i in range(3) for experiment in oj.Data(times, {"y": np.ones(7)}, name=f"e{i + 1}").experiments
    )
    priors = {"k": "lognormal(0, 0.4)", "K": "lognormal(0, 0.4)", "x": "lognormal(1, 0.5)"}
    return oj.Problem(model, data, noise=0.1, priors=priors, positive=True)


def weak() -> oj.Problem:
    """Two rates of which the data tell little more than the sum; priors keep them."""
    model = oj.Model({"x": "-(a + b)*x", "z": "b*x"}, {"y": "x + 0.02*z"})
    priors = {"a": "lognormal(-1, 0.7)", "b": "lognormal(-1, 0.7)", "x": "lognormal(0, 0.3)", "z": "normal(0, 0.5)"}
    return _posed(model, np.linspace(0, 3, 8), noise=0.05, priors=priors)


def funnel() -> oj.Problem:
    """An error whose size few measurements tell: a funnel between it and the value."""
    model = oj.Model({"x": "-k*x"}, {"y": "x"})
    priors = {"k": "halfnormal(0.5)", "x": "student(1, 0.5, 5)", "s": "halfcauchy(0.3)"}
    return _posed(model, np.array([0.0, 1.0, 2.0]), noise="normal(s)", priors=priors, bounds={"s": (1e-4, 30)})


MODELS: Mapping[str, Callable[[], oj.Problem]] = {
    made.__name__: made for made in (counts, lognormal, doses, experiments, weak, funnel)
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks sbc")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=3600.0, help="seconds of each model")
    parser.add_argument("--methods", nargs="+", default=["curvature", "posterior"])
    parser.add_argument("--output", type=Path, default=RESULTS / "sbc.jsonl")
    asked = parser.parse_args(argv)
    known = {line["model"] for line in records.read(asked.output)}
    for name in asked.models:
        if name in known:
            continue
        found = oj.calibrate(
            MODELS[name](),
            draws=asked.draws,
            seed=asked.seed,
            methods=asked.methods,
            search=False,
            time_limit=asked.time_limit,
        )
        line = {
            "model": name,
            "sets": len(found.truths),
            "failures": found.failures,
            "doubtful": found.doubtful,
            "p": found.p_values,
            "covered": {method: found.coverage(method) for method in asked.methods},
            "seconds": found.seconds,
        }
        records.add(asked.output, line)
        print(name, len(found.truths), found.doubtful, found.p_values, flush=True)
    write_whole(asked.output.with_suffix(".md"), table(records.read(asked.output)))
    return 0


def table(lines: list[Any]) -> str:
    """Least p of ranks, and coverage of 95 % intervals, by model."""
    methods = list(lines[0]["covered"]) if lines else []
    heads = [
        "model",
        "data sets",
        "with a warning",
        "quantities",
        "least p",
        *(f"{m}, least and most" for m in methods),
    ]
    text = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for line in lines:
        shares = {m: [own[0] for own in line["covered"][m].values()] for m in methods}
        cells = [line["model"], line["sets"], line["doubtful"], len(line["p"]), f"{min(line['p'].values()):.2g}"]
        cells += [f"{min(own):.0%} to {max(own):.0%}" for own in shares.values()]
        text.append(f"| {' | '.join(map(str, cells))} |")
    every = [p for line in lines for p in line["p"].values()]
    good = sum(p > SURE for p in every)
    text.append(f"\nRanks of {good} of {len(every)} quantities are uniform (p > {SURE:g}).")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
