"""Silence: posteriors of random problems that nobody has looked at: none may crash, and none may fail without a word.

python -m benchmarks silence [--seed 1] [--count 50] [--time-limit 15] [--output FILE]

Half of the problems are networks as `networks` draws them, half are those of `beyond`, all with wide bounds; the noise
is a few percent.  Each is drawn from twice, with different seeds, starting from the fit that the truth leads to, so
that posteriors are tested and no searches.  A failure is silent if both draws have no warning and yet means differ by
more than five of their joint errors.  Every problem is one line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import beyond, networks
from benchmarks import lines as records
from benchmarks.clock import by_processor
from benchmarks.store import write_whole
from odejet.search.refine import refine
from odejet.smooth.threads import one_thread

RESULTS = Path(__file__).parent / "results" / "silence"
BEYOND_NOISE = 0.02
APART = 5.0
"""Joint Monte-Carlo errors: of a thousand unknowns none lies so far by chance."""


def cases(seed: int) -> Iterator[tuple[str, beyond.Case, float]]:
    """Networks and models of `beyond` in turns."""
    drawn = (("network", case, noise) for case, noise in networks.cases(seed))
    known = ((name, case, BEYOND_NOISE) for name, case in itertools.cycle(beyond.cases().items()))
    for pair in zip(drawn, known, strict=False):
        yield from pair


def measured(name: str, case: beyond.Case, noise: float, number: int, seed: int, limit: float) -> dict[str, Any]:
    """What two draws from one posterior say."""
    truth, data = case.drawn(np.random.default_rng([seed, number, *name.encode()]), noise)
    problem = oj.Problem(case.model, data, bounds=case.bounds)
    start = np.array([truth[unknown.name] for unknown in problem.layout])
    line: dict[str, Any] = {"number": number, "name": name, "unknowns": len(start)}
    try:
        fit = oj.Fit.of(problem, refine(problem.misfit, start, frame=problem.frame(start)))
        found = [fit.sample(seed=own, time_limit=limit) for own in (1, 2)]
    except oj.ModelError as error:  # refused by a sentence
        return line | {"refused": str(error)}
    except Exception as error:  # what must not be: counted as a crash
        return line | {"crash": repr(error)}
    gaps = [
        abs(one["mean"] - two["mean"]) / np.hypot(one["MCSE"], two["MCSE"])
        for one, two in zip(*(own.statistics.values() for own in found), strict=True)
    ]
    return line | {
        "rhat": max(row["R-hat"] for own in found for row in own.statistics.values()),
        "ess": min(min(row["ESS bulk"], row["ESS tail"]) for own in found for row in own.statistics.values()),
        "seconds": max(own.seconds for own in found),
        "said": [sentence for own in found for sentence in own.warnings],
        "gap": max(gaps),
    }


def outcome(line: dict[str, Any]) -> str:
    if "crash" in line or "refused" in line:
        return "crash" if "crash" in line else "refused by name"
    if line["said"]:
        return "a sentence"
    return "silent" if not (line["rhat"] <= 1.01 and line["gap"] <= APART) else "converged"


def table(lines: list[Any]) -> str:
    """How many problems ended in which way, and what was said."""
    counts = {"converged": 0, "a sentence": 0, "refused by name": 0, "silent": 0, "crash": 0}
    text = ["", "| problem | unknowns | outcome | R-hat | least effective draws | largest gap | said |"]
    text.append("|---|---|---|---|---|---|---|")
    for line in lines:
        counts[outcome(line)] += 1
        said = line.get("refused") or line.get("crash") or "; ".join(dict.fromkeys(line["said"]))
        numbers = [f"{line[key]:.4g}" if key in line else "" for key in ("rhat", "ess", "gap")]
        cells = [f"{line['number']} {line['name']}", str(line["unknowns"]), outcome(line), *numbers, said]
        text.append(f"| {' | '.join(cells)} |")
    told = ", ".join(f"{what} {count}" for what, count in counts.items())
    return f"{len(lines)} posteriors, each drawn from twice: {told}.\n" + "\n".join(text) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks silence", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--time-limit", type=float, default=15.0, help="processor seconds that draws may take")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args(argv)
    path = given.output or RESULTS / f"seed{given.seed}.jsonl"
    done = {line["number"] for line in records.read(path)}
    by_processor()
    with one_thread():
        for number, (name, case, noise) in zip(range(given.count), cases(given.seed), strict=False):
            if number not in done:
                line = measured(name, case, noise, number, given.seed, given.time_limit)
                records.add(path, line)
                print(number, name, outcome(line), flush=True)
                write_whole(path.with_suffix(".md"), table(records.read(path)))
    print(table(records.read(path)))
    return 0
