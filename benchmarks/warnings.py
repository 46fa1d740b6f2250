"""Warnings: whether the intervals by curvature that are wrong are those that a fit warns of.

python -m benchmarks warnings --seed 3 [--quantities 300] [--output FILE] [--report FILE]

Small models of many kinds, drawn with few and noisy measurements so that their quantities are weakly determined: a
quantity counts if its interval by curvature or by profile ends farther than a quarter from its value.  An interval by
curvature is wrong if an end differs from that of the profile by more than half the width of the profile's interval; an
open end is at its bound, or infinite.  It is named if `fit.doubts` has it.  Every fit is one line of a file, written as
soon as it is known: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import lines as records
from benchmarks.counting import LEVEL, fitted
from odejet.errors import DataError, ModelError
from odejet.problem import Problem
from odejet.uncertainty.practical import DETERMINED, kind
from odejet.uncertainty.profile import Profile

RESULTS = Path(__file__).parent / "results" / "uncertainty"

WRONG = 0.5
"""Widths of the profile's interval by which an end may be elsewhere before the interval is wrong."""

Drawn = tuple[oj.Model, dict[str, float], np.ndarray, dict[str, tuple[float, float]]]


def michaelis(rng: np.random.Generator) -> Drawn:
    model = oj.Model({"s": "-v*s/(k + s)"}, {"y": "s"}, initial={"s": "a"}, name="michaelis")
    truth = {"v": rng.uniform(0.5, 2), "k": 10 ** rng.uniform(-1, 1), "a": rng.uniform(1, 5)}
    return model, truth, np.linspace(0, rng.uniform(1, 6), rng.integers(6, 14)), {"k": (1e-3, 1e3), "v": (1e-3, 1e3)}


def bateman(rng: np.random.Generator) -> Drawn:
    model = oj.Model({"d": "-ka*d", "c": "ka*d - ke*c"}, {"y": "c/v"}, initial={"d": 10, "c": 0}, name="bateman")
    truth = {"ka": rng.uniform(0.8, 3), "ke": rng.uniform(0.1, 0.7), "v": rng.uniform(2, 8)}
    return model, truth, np.linspace(0.2, rng.uniform(3, 10), rng.integers(6, 12)), {}


def logistic(rng: np.random.Generator) -> Drawn:
    model = oj.Model({"x": "r*x*(1 - x/K)"}, {"y": "x"}, initial={"x": "x0"}, name="logistic")
    truth = {"r": rng.uniform(0.5, 1.5), "K": rng.uniform(5, 20), "x0": rng.uniform(0.2, 1)}
    return model, truth, np.linspace(0, rng.uniform(2, 6), rng.integers(6, 12)), {"K": (0.1, 1e3)}


def epidemic(rng: np.random.Generator) -> Drawn:
    model = oj.Model(
        {"S": "-beta*S*I", "I": "beta*S*I - gamma*I"}, {"y": "I"}, initial={"S": 1, "I": "I0"}, name="epidemic"
    )
    truth = {"beta": rng.uniform(0.4, 1.2), "gamma": rng.uniform(0.1, 0.35), "I0": 10 ** rng.uniform(-3, -1.5)}
    return model, truth, np.linspace(0, rng.uniform(8, 30), rng.integers(7, 15)), {"beta": (0.05, 5)}


def two_rates(rng: np.random.Generator) -> Drawn:
    model = oj.Model({"x": "-k1*x", "w": "-k2*w"}, {"y": "x + w"}, initial={"x": "a", "w": "b"}, name="two rates")
    truth = {"k1": rng.uniform(1, 3), "k2": rng.uniform(0.1, 0.5), "a": rng.uniform(1, 3), "b": rng.uniform(1, 3)}
    return model, truth, np.linspace(0, rng.uniform(2, 6), rng.integers(8, 16)), {"k1": (0.01, 100), "k2": (0.01, 100)}


def hill(rng: np.random.Generator) -> Drawn:
    model = oj.Model(
        {"x": "b + v*t**2/(k**2 + t**2) - d*x"}, {"y": "x"}, initial={"x": "b/d"}, name="hill", fixed={"d": 0.5}
    )
    truth = {"b": rng.uniform(0.2, 1), "v": rng.uniform(1, 4), "k": rng.uniform(1, 6)}
    return model, truth, np.linspace(0, rng.uniform(3, 10), rng.integers(7, 14)), {"k": (0.01, 100), "v": (1e-3, 1e3)}


def oscillator(rng: np.random.Generator) -> Drawn:
    model = oj.Model({"x": "v", "v": "-w**2*x - 2*g*v"}, {"y": "x"}, initial={"x": "a", "v": 0}, name="oscillator")
    truth = {"w": rng.uniform(0.5, 2), "g": rng.uniform(0.05, 0.6), "a": rng.uniform(1, 3)}
    return model, truth, np.linspace(0, rng.uniform(2, 8), rng.integers(7, 14)), {"g": (1e-3, 10), "w": (0.05, 20)}


def lagged(rng: np.random.Generator) -> Drawn:
    model = oj.Model({"x": "-k*max(t - tau, 0)*x"}, {"y": "x"}, initial={"x": "a"}, name="lagged")
    truth = {"k": rng.uniform(0.1, 0.6), "tau": rng.uniform(0.1, 2), "a": rng.uniform(1, 4)}
    return model, truth, np.linspace(0, rng.uniform(3, 6), rng.integers(8, 15)), {"tau": (0, 5), "k": (1e-3, 50)}


FAMILIES: tuple[Callable[[np.random.Generator], Drawn], ...] = (
    michaelis,
    bateman,
    logistic,
    epidemic,
    two_rates,
    hill,
    oscillator,
    lagged,
)


def measured(seed: int, number: int) -> dict[str, Any] | None:
    """One fit: of each weakly determined quantity both intervals, and what is said of it."""
    rng = np.random.default_rng([seed, number])
    model, truth, times, bounds = FAMILIES[number % len(FAMILIES)](rng)
    exact = oj.simulate(model, truth, times=times)["y"]
    level = rng.uniform(0.03, 0.2) * float(np.abs(exact).max())
    data = oj.Data(times, {"y": exact + level * rng.standard_normal(len(times))}, start=0)
    known = bool(rng.random() < 0.5)
    try:
        problem = Problem(model, data, bounds, positive=True, noise=level if known else None)
        fit = fitted(problem, np.array([truth[unknown.name] for unknown in problem.layout]))
        begin = time.perf_counter()
        doubts = fit.doubts
        seconds = time.perf_counter() - begin
        rows = {label: row for label in fit.labels if (row := judged(fit, label, doubts)) is not None}
    except (ModelError, DataError):
        return None
    return {"number": number, "family": model.name, "known": known, "seconds": round(seconds, 3), "rows": rows}


def judged(fit: oj.Fit, label: str, doubts: dict[str, str]) -> dict[str, Any] | None:
    """A weakly determined quantity; none if it is determined, if it has no interval or if its profile was cut short."""
    value, curved, profile = fit.values[label], fit.interval(label), fit.profile(label)
    if profile.stopped or profile.note or not math.isfinite(fit.stderr[label]):
        return None
    ends = profile.interval()
    if kind(value, curved) == kind(value, ends, profile.open) == DETERMINED:
        return None
    return {
        "value": value,
        "curvature": list(curved),
        "profile": list(ends),
        "open": list(profile.open),
        "apart": apart(profile, curved),
        "named": label in doubts,
        "said": doubts.get(label, ""),
    }


def apart(profile: Profile, curved: tuple[float, float]) -> float:
    """By how many widths of the profile's interval an end by curvature is elsewhere."""
    low, high = profile.interval()
    moves = [0.0 if one == other else abs(one - other) for one, other in zip((low, high), curved, strict=True)]
    if math.isinf(high - low):
        return math.inf if any(map(math.isinf, moves)) else 0.0
    return max(moves) / max(high - low, 1e-300)


def table(lines: Sequence[dict[str, Any]]) -> str:
    """How many intervals were wrong and right, and how many of each were named."""
    text = [
        "| family | quantities | wrong | of them named | right | of them named |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    families = [*dict.fromkeys(line["family"] for line in lines), "all"]
    for family in families:
        rows = [row for line in lines if family in (line["family"], "all") for row in line["rows"].values()]
        wrong, right = ([row for row in rows if (row["apart"] > WRONG) is which] for which in (True, False))
        shown = (f"{len(group)} | {_share(group)}" for group in (wrong, right))
        text.append(f"| {family} | {len(rows)} | {' | '.join(shown)} |")
    seconds = sorted(line["seconds"] for line in lines)
    text.append("")
    text.append(f"{len(lines)} fits; looking at the intervals of one took {seconds[len(seconds) // 2]:.2f} s (median).")
    return "\n".join(text) + "\n"


def _share(rows: Sequence[dict[str, Any]]) -> str:
    named = sum(row["named"] for row in rows)
    return f"{named} ({100 * named / len(rows):.0f} %)" if rows else "0"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks warnings", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--quantities", type=int, default=300)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--report", type=Path, help="a Markdown file for the table")
    options = parser.parse_args(argv)
    path = options.output or RESULTS / f"warnings-seed{options.seed}.jsonl"
    lines = records.read(path)
    number = 1 + max((line["number"] for line in lines), default=-1)
    while sum(len(line["rows"]) for line in lines) < options.quantities:
        found = measured(options.seed, number)
        number += 1
        if found is not None:
            records.add(path, found)
            lines.append(found)
    told = (
        f"# Warnings of intervals, seed {options.seed}\n\nIntervals by curvature of weakly determined quantities at "
        f"the level {LEVEL:g}; wrong are those of which an end differs from that of the profile by more than half "
        f"the width of the profile's interval.\n\n{table(lines)}"
    )
    print(told)
    if options.report:
        options.report.write_text(told, encoding="utf-8")
    return 0
