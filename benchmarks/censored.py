"""Censored: whether 95 % intervals hold the truth where 30 % of the values are below the limit of detection.

python -m benchmarks censored --seed 36 --trials 400 [--laws ...] [--ways ...] [--output FILE]

    normal         a drug that is absorbed and eliminated, 40 samples, constant normal noise
    lognormal      the same with log-normal noise of 25 %
    gamma          the same with gamma noise of 25 %
    student        the same with Student's noise of four degrees of freedom
    poisson        the same as counts
    negbinomial    the same as counts of larger variance

Data are drawn by SciPy from values that are the same in all trials.  Every data set is fitted with its limits
(`censored`), without what is below them (`left out`), with half of the limit in its place (`half`), and, to tell what
limits cost from what so few measurements do anyway, as if all values were known (`measured`).  Only the uncertainty is
under test, so fits start from the truth.  A true value is in the profile interval if and only if the
likelihood with the quantity held there is close enough to the optimum.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
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

RESULTS = Path(__file__).parent / "results" / "censored"
MODEL = oj.Model(
    {"gut": "-ka*gut", "x": "ka*gut - k*x"},
    {"c": "x"},
    initial={"gut": "dose", "x": 0},
    name="absorption",
)
TIMES = np.concatenate([np.linspace(0.2, 3, 15), np.linspace(3.5, 10, 25)])
TRUTH = {"ka": 1.5, "k": 0.4, "dose": 10.0}
COUNTED = {**TRUTH, "dose": 200.0}
SHARE = 0.3
WAYS = ("censored", "left out", "half", "measured")
PROFILED = ("censored", "measured")

Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Law:
    """Noise as text, its true scale, the true values, and how SciPy draws measurements of a prediction."""

    noise: str
    scale: float
    draw: Draw
    counts: bool = False

    @property
    def truth(self) -> dict[str, float]:
        return {**(COUNTED if self.counts else TRUTH), **({"s": self.scale} if "(s" in self.noise else {})}


def _dispersed(mu: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(stats.nbinom.rvs(10.0, 10.0 / (10.0 + mu), random_state=rng), dtype=float)


LAWS = {
    "normal": Law("normal(s)", 0.4, lambda mu, rng: stats.norm.rvs(mu, 0.4, random_state=rng)),
    "lognormal": Law("lognormal(s)", 0.25, lambda mu, rng: stats.lognorm.rvs(0.25, scale=mu, random_state=rng)),
    "gamma": Law("gamma(s)", 0.25, lambda mu, rng: stats.gamma.rvs(16.0, scale=mu / 16, random_state=rng)),
    "student": Law("student(s, 4)", 0.3, lambda mu, rng: stats.t.rvs(4, mu, 0.3, random_state=rng)),
    "poisson": Law("poisson", 1.0, lambda mu, rng: 1.0 * stats.poisson.rvs(mu, random_state=rng), counts=True),
    "negbinomial": Law("negbinomial(s)", 0.1, _dispersed, counts=True),
}


def limit_of(law: Law, clean: np.ndarray) -> float:
    """The limit below which the share of the values is expected."""
    draws = np.concatenate([law.draw(clean, np.random.default_rng(i)) for i in range(200)])
    limit = float(np.quantile(draws, SHARE))
    return math.ceil(limit) if law.counts else limit


def values_of(way: str, measured: np.ndarray, limit: float, counts: bool) -> list[Any]:
    """The measurements as each way has them."""
    if way == "measured":
        return measured.tolist()
    instead = {"censored": f"<{limit!r}", "left out": math.nan, "half": round(limit / 2) if counts else limit / 2}[way]
    return [instead if value < limit else float(value) for value in measured]


def cell(name: str, trial: int, seed: int, ways: Sequence[str] = WAYS) -> list[dict[str, Any]]:
    """Which intervals of the fits to one data set hold the truth."""
    law = LAWS[name]
    rng = np.random.default_rng([seed, trial, sorted(LAWS).index(name)])
    dynamic = COUNTED if law.counts else TRUTH
    clean = oj.simulate(MODEL, dynamic, {}, TIMES, start=0.0)["c"]
    measured, limit, found = law.draw(clean, rng), limit_of(law, clean), []
    for way in ways:
        began = time.process_time()
        data = oj.Data(TIMES, {"c": values_of(way, measured, limit, law.counts)}, start=0.0)
        problem = Problem(MODEL, data, positive=True, noise=law.noise)
        z = np.array([law.truth[unknown.name] for unknown in problem.layout])
        fit = Fit.of(problem, refine(problem.misfit, z, frame=problem.frame(z)))
        line: dict[str, Any] = {"law": name, "trial": trial, "way": way, "hidden": int((measured < limit).sum())}
        line |= {"fisher": {}, "profile": {}, "ratio": {}}
        for unknown, true in zip(problem.layout, z.tolist(), strict=True):
            low, high = fit.interval(unknown.label, LEVEL)
            line["fisher"][unknown.name] = bool(low <= true <= high)
            line["ratio"][unknown.name] = round(fit.values[unknown.label] / true, 5)
            if way in PROFILED:
                deviance, quantile = held_at(fit, unknown.label, true, z)
                line["profile"][unknown.name] = bool(deviance <= quantile)
        found.append(line | {"seconds": round(time.process_time() - began, 3)})
    return found


def table(lines: list[dict[str, Any]]) -> str:
    """Coverage and bias by law, way and unknown."""
    text = [
        "Share (%) of true values inside their 95 % intervals where about 30 % of the values are below the limit;",
        "standard errors are over trials.  Bar: 93 to 97 over all unknowns of the model with limits (`censored`).",
        "The bias is that of the median estimate.",
        "",
        "| law | way | fits | censored % | Fisher | ± | profile | ± | Fisher / profile (bias %) by unknown | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(line["law"] for line in lines):
        for way in (one for one in WAYS if any(line["way"] == one for line in lines)):
            own = [line for line in lines if line["law"] == name and line["way"] == way]
            unknowns = list(own[0]["fisher"])
            dynamic = [one for one in unknowns if one in TRUTH]
            hidden = 100 * float(np.mean([line["hidden"] for line in own])) / len(TIMES)
            cells = [f"{mean:.1f} | {error:.1f}" for mean, error in (_share(own, k, dynamic) for k in _KINDS)]
            each = ", ".join(
                f"{u} {_share(own, 'fisher', [u])[0]:.1f} / {_share(own, 'profile', [u])[0]:.1f} ({_bias(own, u):+.1f})"
                for u in unknowns
            ).replace("nan", "–")
            seconds = float(np.median([line["seconds"] for line in own]))
            shares = " | ".join(cells).replace("nan", "–")
            text.append(f"| {name} | {way} | {len(own)} | {hidden:.0f} | {shares} | {each} | {seconds:.2f} |")
    return "\n".join(text) + "\n"


_KINDS = ("fisher", "profile")


def _share(lines: list[dict[str, Any]], kind: str, unknowns: list[str]) -> tuple[float, float]:
    """Percent that hold, and its standard error over trials."""
    shares = np.array([np.mean([line[kind].get(one, math.nan) for one in unknowns]) for line in lines])
    return 100 * float(shares.mean()), 100 * float(shares.std()) / math.sqrt(len(shares))


def _bias(lines: list[dict[str, Any]], unknown: str) -> float:
    return 100 * (float(np.median([line["ratio"][unknown] for line in lines])) - 1)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks censored", description=__doc__)
    parser.add_argument("--seed", type=int, default=36)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args(argv)
    path = arguments.output or RESULTS / f"coverage-seed{arguments.seed}.jsonl"
    lines = records.read(path)
    done = {(line["law"], line["trial"]) for line in lines}
    for trial in range(arguments.trials):
        for name in arguments.laws:
            if (name, trial) not in done:
                for line in cell(name, trial, arguments.seed, arguments.ways):
                    lines.append(line)
                    records.add(path, line)
    path.with_suffix(".md").write_text(table(lines))
    print(table(lines))
    return 0
