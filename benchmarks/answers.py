"""Answers: how often a fit that is said to be the best is the best that is known.

    python -m benchmarks answers [--suites systems beyond networks driven hostile] [--seeds S ...] [--only NAMES]
                                 [--limit SECONDS] [--output FILE]

A fit answers whether it is the best by *confirmed*, *likely* or *open*.  Data are drawn of models whose values are
known (`systems` are those of the benchmark at 60 points), and the answer is right if the optimum to which the true
values lead is no better, by more than 0.05 of the log-likelihood.  A fraction k of n answers that are wrong is told
with the upper end of its 95 % interval (Clopper and Pearson).  Every fit is one line of a file: stopping and starting
again repeats nothing.  Limits of time count the processor's seconds.  Without seeds the table is told alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

import odejet as oj
from benchmarks import accuracy, beyond, driven, hostile, networks
from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.comparison import AS_GOOD
from benchmarks.store import write_whole
from odejet.problem import Problem
from odejet.search.refine import refine
from odejet.smooth.threads import one_thread
from problems import systems

RESULTS = Path(__file__).parent / "results" / "answers" / "fits.jsonl"

SUITES = ("systems", "beyond", "networks", "driven", "hostile")
POINTS = 60
"""Measurements of every output of the benchmark's systems: few, so that starts part."""

NETWORKS = 8
"""Random networks of a seed."""

WORDS = ("confirmed", "likely", "open", "certified")


def names(suite: str) -> list[str]:
    """The problems of a suite."""
    if suite == "networks":
        return [str(number) for number in range(NETWORKS)]
    known = {"hostile": hostile.FAMILIES, "driven": driven.SYSTEMS, "systems": systems.names()}
    return sorted(known.get(suite) or beyond.cases())


def posed(suite: str, name: str, seed: int) -> tuple[Problem, dict[str, float]]:
    """A problem with data that were drawn, and its true values."""
    rng = np.random.default_rng([seed, *name.encode()])
    if suite == "systems":
        noise = float(rng.choice(systems.protocol().noise[1:]))
        made = accuracy.draw(name, noise, seed, seed, POINTS, False)
        return Problem(made.system.model, made.data, bounds=systems.protocol().bounds), made.values
    if suite == "driven":
        task = driven.SYSTEMS[name](rng)
        return Problem(task.model, task.data, bounds=task.bounds), {**task.truth, **task.initial}
    if suite == "hostile":
        family = hostile.FAMILIES[name]
        truth, data = family.drawn(rng)
        return Problem(family.model, data, bounds=dict(family.bounds)), truth
    if suite == "beyond":
        case, noise = beyond.cases()[name], beyond.NOISES[-1]
    else:
        case, noise = next(itertools.islice(networks.cases(seed), int(name), None))
    truth, data = case.drawn(rng, noise)
    return Problem(case.model, data, bounds=case.bounds), truth


def measured(suite: str, name: str, seed: int, limit: float) -> dict[str, Any]:
    """One fit and its answers, beside the optimum to which the true values lead."""
    problem, truth = posed(suite, name, seed)
    misfit = problem.misfit
    begin = time.process_time()
    fit = oj.fit(problem, time_limit=limit, seed=seed)
    seconds = time.process_time() - begin
    start = np.array([truth[unknown.name] for unknown in misfit.unknowns])
    best = min(misfit.score(start), refine(misfit, start, frame=problem.frame()).cost)
    return {
        "suite": suite,
        "problem": name,
        "seed": seed,
        "search": str(fit.search),
        "adequacy": str(fit.adequacy),
        "certified": fit.certified,
        "behind": round(fit.cost - best, 6),
        "seconds": round(seconds, 2),
    }


def highest(wrong: int, count: int) -> float:
    """The upper end of the two-sided 95 % interval of a fraction."""
    return 1.0 if wrong == count else float(beta.ppf(0.975, wrong + 1, count - wrong))


def table(lines: Sequence[dict[str, Any]]) -> str:
    """One line for each answer in each suite: how many fits had it, and how many of these were wrong."""
    rows = ["| suite | answer | fits | wrong | at most |", "|---|---|--:|--:|--:|"]
    for suite in [*(one for one in SUITES if any(line["suite"] == one for line in lines)), "all"]:
        own = [line for line in lines if suite in (line["suite"], "all")]
        for word in WORDS:
            told = [line for line in own if (line["certified"] if word == "certified" else line["search"] == word)]
            if told:
                wrong = sum(line["behind"] > AS_GOOD for line in told)
                rows.append(f"| {suite} | {word} | {len(told)} | {wrong} | {100 * highest(wrong, len(told)):.1f} % |")
    return "\n".join(rows) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks answers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=SUITES)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args(argv)
    lines = records.read(given.output)
    done = {(line["suite"], line["problem"], line["seed"]) for line in lines}
    by_processor()
    with one_thread():
        for seed, suite in itertools.product(given.seeds, given.suites):
            for name in names(suite):
                if (suite, name, seed) not in done and (not given.only or name in given.only):
                    lines.append(measured(suite, name, seed, given.limit))
                    records.add(given.output, lines[-1])
                    print(json.dumps(lines[-1]), flush=True)
    write_whole(given.output.with_suffix(".md"), table(lines))
    print(table(lines))
    return 0
