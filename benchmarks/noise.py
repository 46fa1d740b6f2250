"""Noise: whether 95 % intervals hold the truth where the noise is not normal of one size.

python -m benchmarks noise --seed 16 --trials 400 [--laws ...] [--output FILE]

    lognormal      a predator and its prey, 30 measurements each, log-normal noise of 15 %
    mixed          the same with noise that has an additive and a proportional part
    student        the same with Student's noise of four degrees of freedom
    poisson        an epidemic, counted on 30 days
    negbinomial    the same with counts of larger variance

Data are drawn by SciPy from values that are the same in all trials.  Only the uncertainty is under test, so fits start
from the truth.  A true value is in the profile interval if and only if the likelihood with the quantity held there is
close enough to the optimum.  Every trial is one line of a file, so that stopping loses nothing.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import odejet as oj
from benchmarks import lines as records
from benchmarks.profiles import LEVEL, held_at
from odejet.problem import Problem
from odejet.result import Fit
from odejet.search.refine import refine

RESULTS = Path(__file__).parent / "results" / "noise"
PREDATORS = oj.Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r", "y2": "w"}, name="predators")
EPIDEMIC = oj.Model(
    {"S": "-beta*S*I/1000", "I": "beta*S*I/1000 - gamma*I"},
    {"sick": "I"},
    initial={"S": "1000 - I0", "I": "I0"},
    name="epidemic",
)
LIVING = {"r": 1.0, "w": 0.5, "k1": 0.7, "k2": 0.5, "k3": 0.6}
SICK = {"beta": 0.9, "gamma": 0.3, "I0": 4.0}

Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Law:
    """A model, its noise as text by output, true values, and how SciPy draws measurements of a prediction."""

    model: oj.Model
    noise: Mapping[str, str]
    truth: Mapping[str, float]
    times: np.ndarray
    draw: Draw


def _counts(mu: np.ndarray, dispersion: float, rng: np.random.Generator) -> np.ndarray:
    size = 1 / dispersion
    return np.asarray(stats.nbinom.rvs(size, size / (size + mu), random_state=rng), dtype=float)


YEARS, DAYS = np.linspace(0, 20, 30), np.arange(1.0, 31.0)
LAWS = {
    "lognormal": Law(
        PREDATORS,
        {"y1": "lognormal(s)", "y2": "lognormal(s)"},
        {**LIVING, "s": 0.15},
        YEARS,
        lambda mu, rng: stats.lognorm.rvs(0.15, scale=mu, random_state=rng),
    ),
    "mixed": Law(
        PREDATORS,
        {"y1": "normal(a + b*y1)", "y2": "normal(a + b*y2)"},
        {**LIVING, "a": 0.05, "b": 0.1},
        YEARS,
        lambda mu, rng: stats.norm.rvs(mu, 0.05 + 0.1 * mu, random_state=rng),
    ),
    "student": Law(
        PREDATORS,
        {"y1": "student(s, 4)", "y2": "student(s, 4)"},
        {**LIVING, "s": 0.1},
        YEARS,
        lambda mu, rng: stats.t.rvs(4, mu, 0.1, random_state=rng),
    ),
    "poisson": Law(
        EPIDEMIC,
        {"sick": "poisson"},
        SICK,
        DAYS,
        lambda mu, rng: np.asarray(stats.poisson.rvs(mu, random_state=rng), dtype=float),
    ),
    "negbinomial": Law(
        EPIDEMIC,
        {"sick": "negbinomial(a)"},
        {**SICK, "a": 0.05},
        DAYS,
        lambda mu, rng: _counts(mu, 0.05, rng),
    ),
}


def cell(name: str, trial: int, seed: int) -> dict[str, Any]:
    """Which intervals of one fit hold the truth."""
    law, began = LAWS[name], time.process_time()
    rng = np.random.default_rng([seed, trial, sorted(LAWS).index(name)])
    states = {key: value for key, value in law.truth.items() if key in law.model.states}
    parameters = {key: value for key, value in law.truth.items() if key in law.model.parameters}
    clean = oj.simulate(law.model, parameters, states, law.times, start=0.0)
    data = oj.Data(law.times, {output: law.draw(clean[output], rng) for output in law.model.outputs}, start=0.0)
    problem = Problem(law.model, data, positive=True, noise=dict(law.noise))
    z = np.array([law.truth[unknown.name] for unknown in problem.layout])
    fit = Fit.of(problem, refine(problem.misfit, z, frame=problem.frame(z)))
    fisher, profile = {}, {}
    for unknown, true in zip(problem.layout, z.tolist(), strict=True):
        low, high = fit.interval(unknown.label, LEVEL)
        deviance, quantile = held_at(fit, unknown.label, true, z)
        fisher[unknown.name], profile[unknown.name] = bool(low <= true <= high), bool(deviance <= quantile)
    seconds = round(time.process_time() - began, 3)
    return {"law": name, "trial": trial, "seconds": seconds, "fisher": fisher, "profile": profile}


def table(lines: list[dict[str, Any]]) -> str:
    """Coverage by law and by unknown."""
    text = [
        "Share (%) of true values inside their 95 % intervals; standard errors are over trials, since quantities of",
        "one fit err together.  Bar: 93 to 97 over all unknowns of the model; those of the noise are shown apart.",
        "",
        "| law | fits | Fisher | ± | profile | ± | of noise: Fisher | profile | by unknown: Fisher / profile | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(line["law"] for line in lines):
        own = [line for line in lines if line["law"] == name]
        unknowns = list(own[0]["fisher"])
        model = LAWS[name].model
        dynamic = [one for one in unknowns if one in (*model.states, *model.parameters)]
        noise = [one for one in unknowns if one not in dynamic]
        cells = []
        for kind in ("fisher", "profile"):
            mean, error = _share(own, kind, dynamic)
            cells.append(f"{mean:.1f} | {error:.1f}")
        apart = [f"{_share(own, kind, noise)[0]:.1f}" if noise else "" for kind in ("fisher", "profile")]
        each = ", ".join(
            f"{u} {_share(own, 'fisher', [u])[0]:.1f} / {_share(own, 'profile', [u])[0]:.1f}" for u in unknowns
        )
        seconds = float(np.median([line["seconds"] for line in own]))
        text.append(f"| {name} | {len(own)} | {' | '.join(cells)} | {' | '.join(apart)} | {each} | {seconds:.2f} |")
    return "\n".join(text) + "\n"


def _share(lines: list[dict[str, Any]], kind: str, unknowns: list[str]) -> tuple[float, float]:
    """Percent that hold, and its standard error over trials."""
    shares = np.array([np.mean([line[kind][one] for one in unknowns]) for line in lines])
    return 100 * float(shares.mean()), 100 * float(shares.std()) / math.sqrt(len(shares))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks noise", description=__doc__)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args(argv)
    path = arguments.output or RESULTS / f"coverage-seed{arguments.seed}.jsonl"
    lines = records.read(path)
    done = {(line["law"], line["trial"]) for line in lines}
    for trial in range(arguments.trials):
        for name in arguments.laws:
            if (name, trial) not in done:
                lines.append(cell(name, trial, arguments.seed))
                records.add(path, lines[-1])
    path.with_suffix(".md").write_text(table(lines))
    print(table(lines))
    return 0
