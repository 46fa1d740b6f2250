"""Hostile: small data sets in which signal is easily taken for noise, and certificates that are false.

    python -m benchmarks hostile [--seeds S ...] [--draws N] [--families NAME ...] [--limit SECONDS] [--looks N]
                                 [--output FILE]

Each family is a model whose outputs swing many times within the bounds while the measurements are few: aliasing,
chirps, readouts that fold, sparse oscillators, mixtures, pulses and steps sampled too rarely.  Values are drawn evenly
within bounds, times at random or equidistant, and noise is a part of the amplitude whose sd the fit has to estimate.  A
certificate is false where a better optimum is known, by more than 0.05 of the log-likelihood: the one that the true
values lead to, or the best of a sweep of thousands of other points.  It is empty where the fit explains no more than
the mean of the data does, by Fisher's F at 0.05.  Every fit is one line of a file: stopping and starting again repeats
nothing.  Limits of time count the processor's seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import f as fisher

import odejet as oj
from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.comparison import AS_GOOD
from benchmarks.store import write_whole
from odejet.search.refine import refine
from odejet.search.sweep import sweep
from odejet.smooth.threads import one_thread

RESULTS = Path(__file__).parent / "results" / "hostile" / "fits.jsonl"

LOOKS = 6000
"""Points of the sweep that looks for a better optimum."""

Bounds = Mapping[str, tuple[float, float]]
STILL = {"s": "0"}
"""A model needs a state, and these outputs depend on time alone."""


@dataclass(frozen=True)
class Family:
    """A model, the bounds within which its values are drawn and sought, and how it is measured."""

    states: Mapping[str, str]
    output: str
    bounds: Bounds
    initial: Mapping[str, float]
    duration: float = 5.0
    points: tuple[int, int] = (11, 18)
    even: bool = False  # whether times are equidistant
    noise: tuple[float, float] = (0.05, 0.3)  # of the sd of the output

    @property
    def model(self) -> oj.Model:
        return oj.Model(self.states, {"y": self.output}, initial=self.initial)

    def drawn(self, rng: np.random.Generator) -> tuple[dict[str, float], oj.Data]:
        """True values and data; outputs that hardly move are drawn again."""
        while True:
            truth = {name: float(rng.uniform(*ends)) for name, ends in self.bounds.items()}
            count = int(rng.integers(*self.points, endpoint=True))
            times = np.sort(rng.uniform(0, self.duration, count))
            times = np.linspace(0, self.duration, count) if self.even else np.round(times, 3)
            found = oj.simulate(self.model, truth, {}, np.concatenate([[0.0], times]))
            exact = found.outputs["y"][1:] if found.success else np.zeros(1)
            if found.success and len(np.unique(times)) == count and exact.std() > 0.05 * max(np.abs(exact).max(), 0.1):
                break
        noisy = exact + rng.uniform(*self.noise) * exact.std() * rng.standard_normal(count)
        return truth, oj.Data(times, {"y": np.round(noisy, 4)}, start=0.0)


def _of_time(output: str, bounds: Bounds, **measured: Any) -> Family:
    return Family(STILL, output, bounds, {"s": 0.0}, **measured)


FAMILIES: dict[str, Family] = {
    "alias": _of_time("A*sin(w*t + c)", {"w": (0, 40), "A": (0.2, 3), "c": (-3, 3)}, even=True),
    "sine": _of_time("A*sin(w*t + c)", {"w": (0, 60), "A": (0.2, 3), "c": (-3, 3)}),
    "damped sine": _of_time("exp(-g*t)*sin(w*t)", {"w": (0, 50), "g": (0, 1)}),
    "two sines": _of_time("sin(a*t) + B*sin(b*t)", {"a": (0, 8), "b": (8, 40), "B": (0.2, 2)}, points=(14, 22)),
    "decay and sine": _of_time("exp(-k*t) + B*sin(w*t)", {"k": (0, 2), "w": (0, 40), "B": (0.05, 1)}),
    "beat": _of_time("sin(a*t)*cos(b*t)", {"a": (0, 6), "b": (5, 30)}),
    "quadratic chirp": _of_time("sin(a*t + b*t**2)", {"a": (0, 20), "b": (0, 6)}, duration=4.0),
    "harmonics": _of_time("sin(w*t) + 0.5*sin(2*w*t)", {"w": (0, 30)}, even=True),
    "cubed": _of_time("A*cos(w*t)**3", {"w": (0, 30), "A": (0.2, 3)}),
    "pulse": _of_time("A*exp(-((t - c)/d)**2)", {"c": (0, 5), "d": (0.02, 0.5), "A": (0.5, 3)}, points=(14, 22)),
    "step": _of_time("A*tanh((t - c)/d)", {"c": (0, 5), "d": (0.01, 1), "A": (0.5, 3)}, even=True),
    "phase steps": _of_time("sin(5*tanh((t - c)/d) + a*t)", {"c": (0, 5), "d": (0.05, 1), "a": (0, 20)}),
    "fold": Family({"x": "-k*x"}, "cos(q*x)", {"k": (0, 3), "q": (0, 60)}, {"x": 1}, even=True),
    "fold of growth": Family({"x": "r*x*(1 - x)"}, "sin(q*x)", {"r": (0.2, 4), "q": (0, 50)}, {"x": 0.05}),
    "saturated fold": Family({"x": "1 - k*x"}, "sin(q*x/(1 + x))", {"k": (0.1, 3), "q": (0, 60)}, {"x": 0}),
    "squared fold": Family({"x": "-k*x"}, "cos(q*x**2)", {"k": (0, 1), "q": (0, 60)}, {"x": 1}),
    "chirp": Family({"p": "w*exp(-k*t)"}, "A*sin(p)", {"k": (0, 2), "w": (0, 40), "A": (0.2, 5)}, {"p": 0}),
    "rising chirp": Family({"p": "w*(1 - exp(-k*t))"}, "sin(p)", {"k": (0, 2), "w": (0, 40)}, {"p": 0}),
    "oscillator": Family(
        {"x": "v", "v": "-w**2*x - g*v"}, "x", {"w": (0, 25), "g": (0, 1)}, {"x": 1, "v": 0}, even=True
    ),
    "step response": Family(
        {"x": "v", "v": "w**2*(1 - x) - 2*z*w*v"}, "x", {"w": (0, 40), "z": (0.02, 1)}, {"x": 0, "v": 0}, points=(8, 14)
    ),
    "driven oscillator": Family(
        {"x": "v", "v": "sin(f*t) - w**2*x - 0.3*v"}, "x", {"w": (0.5, 12), "f": (0.5, 20)}, {"x": 0, "v": 0}
    ),
    "pendulum": Family({"x": "v", "v": "-w**2*sin(x)"}, "sin(x)", {"w": (0, 20)}, {"x": 2.5, "v": 0}),
    "rotator": Family({"p": "w + a*sin(p)"}, "cos(p)", {"w": (0, 30), "a": (0, 5)}, {"p": 0}),
    "two rotators": Family(
        {"p": "a", "q": "b + K*sin(p - q)"},
        "cos(p - q)",
        {"a": (0, 15), "b": (10, 40), "K": (0, 5)},
        {"p": 0, "q": 0},
    ),
    "van der Pol": Family(
        {"x": "r*v", "v": "r*(m*(1 - x**2)*v - x)"}, "x", {"m": (0.1, 3), "r": (0.5, 20)}, {"x": 1, "v": 0}
    ),
    "ringing about a mean": _of_time(
        "m + A*exp(-g*t)*cos(w*t)", {"w": (0, 50), "g": (0, 3), "m": (-2, 2), "A": (0.2, 3)}
    ),
    "logarithmic chirp": _of_time("sin(w*log(1 + b*t))", {"w": (0, 60), "b": (0.1, 5)}),
    "modulated phase": _of_time("sin(a*t + c*sin(b*t))", {"a": (0, 20), "b": (0, 10), "c": (0, 3)}, points=(14, 22)),
    "sharp peaks": _of_time("A*cos(w*t)**8", {"w": (0, 20), "A": (0.5, 3)}),
    "two modes": Family(
        {"x": "v", "v": "-a*x + c*(z - x)", "z": "u", "u": "-a*z - c*(z - x)"},
        "x",
        {"a": (0, 400), "c": (0, 200)},
        {"x": 1, "v": 0, "z": 0, "u": 0},
    ),
    "resonance": Family(
        {"x": "v", "v": "cos(f*t) - w**2*x - g*v"},
        "x",
        {"w": (0.5, 20), "f": (0.5, 20), "g": (0, 0.5)},
        {"x": 0, "v": 0},
        points=(14, 22),
    ),
    "hard spring": Family({"x": "v", "v": "-a*x - b*x**3"}, "x", {"a": (0, 100), "b": (0, 200)}, {"x": 1, "v": 0}),
    "fold of a fold": Family({"x": "cos(q*x) - k*x"}, "sin(q*x)", {"k": (0, 2), "q": (0, 30)}, {"x": 0}),
    "decaying turns": Family(
        {"x": "-g*x - w*z", "z": "w*x - g*z"}, "x/(1 + x**2)", {"w": (0, 40), "g": (0, 2)}, {"x": 3, "z": 0}, even=True
    ),
    "predators": Family(
        {"x": "r*(x - x*z)", "z": "r*(x*z - c*z)"}, "x", {"r": (0.5, 15), "c": (0.3, 3)}, {"x": 2, "z": 1}
    ),
}


def explains_nothing(values: np.ndarray, residuals: np.ndarray, unknowns: int) -> bool:
    """Whether a fit follows the data no more closely than noise about a mean would be, by Fisher's F."""
    before, after = float(((values - values.mean()) ** 2).sum()), float((residuals**2).sum())
    took, left = max(unknowns - 1, 1), max(len(values) - unknowns, 1)
    return before <= after or float(fisher.sf((before - after) / took / (after / left), took, left)) > 0.05


def measured(name: str, seed: int, draw: int, limit: float, looks: int = LOOKS) -> dict[str, Any]:
    """One fit, and the best that else is known."""
    family = FAMILIES[name]
    truth, data = family.drawn(np.random.default_rng([seed, draw, *name.encode()]))
    problem = oj.Problem(family.model, data, bounds=dict(family.bounds))
    begin = time.process_time()
    fit = oj.fit(problem, time_limit=limit, seed=draw)
    seconds = time.process_time() - begin
    misfit, frame = problem.misfit, problem.frame()
    ends = [refine(misfit, np.array([truth[label] for label in misfit.labels]), frame=frame)]
    ends += sweep(misfit, frame, problem.sizes, looks, [seed, draw, LOOKS], math.inf)[:1]
    residuals = fit.compare()[0].residuals
    return {
        "family": name,
        "seed": seed,
        "draw": draw,
        "behind": fit.cost - min(end.cost for end in ends),
        "certified": fit.certified,
        "search": str(fit.search),
        "adequacy": str(fit.adequacy),
        "empty": explains_nothing(misfit.values, residuals, len(misfit.unknowns)),
        "seconds": round(seconds, 2),
        "message": fit.message,
    }


def table(lines: list[dict[str, Any]]) -> str:
    """One line per family, and all together."""
    heads = "| family | fits | best known | certified | falsely | empty | confirmed | of these wrong | median CPU s |"
    rows = [heads, "|---" + "|--:" * 8 + "|"]
    groups: dict[str, list[dict[str, Any]]] = {"all": lines}
    for line in lines:
        groups.setdefault(line["family"], []).append(line)
    for name, own in groups.items():
        wrong = [line for line in own if line["behind"] > AS_GOOD]
        certified, confirmed = (
            [line for line in own if test(line)]
            for test in (lambda one: one["certified"], lambda one: one["search"] == "confirmed")
        )
        counts = [len(own), len(own) - len(wrong), len(certified), sum(line in wrong for line in certified)]
        counts += [sum(line["empty"] for line in certified), len(confirmed), sum(line in wrong for line in confirmed)]
        seconds = float(np.median([line["seconds"] for line in own]))
        rows.append(f"| {name} | {' | '.join(map(str, counts))} | {seconds:.1f} |")
    return "\n".join(rows) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks hostile", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--looks", type=int, default=LOOKS)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args(argv)
    lines = records.read(given.output)
    done = {(line["family"], line["seed"], line["draw"]) for line in lines}
    wanted = [(name, seed, draw) for seed in given.seeds for draw in range(given.draws) for name in given.families]
    by_processor()
    with one_thread():
        for key in (key for key in wanted if key not in done):
            line = measured(*key, given.limit, given.looks)
            lines.append(line)
            records.add(given.output, line)
            print(json.dumps(line), flush=True)
    write_whole(given.output.with_suffix(".md"), table(lines))
    print(table(lines))
    return 0
