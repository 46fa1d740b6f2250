"""Population: fits of populations beside other programs, coverage on made ones, and growth with subjects.

python -m benchmarks population table --data FOLDER [--sets ...] [--seeds 0 1 ...]
python -m benchmarks population study [--kinds oral emax two] [--draws 200] [--subjects 40] [--seed 0]
python -m benchmarks population growth [--sizes 25 50 100 200 400 1000] [--seed 0]

FOLDER holds data and results of others (see population_sets).  Every fit is one line of a file, so that stopping and
starting again repeats nothing, and `--until SECONDS` begins no further fit after so many.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import lines as records
from benchmarks.population_sets import SETS, Published
from benchmarks.population_study import KINDS
from benchmarks.store import write_whole
from odejet.population import PopulationFit, exact

RESULTS = Path(__file__).parent / "results" / "population"
FAR = 1e5  # seconds that no fit takes

Record = dict[str, Any]


def main(argv: list[str]) -> int:
    asked = _parser().parse_args(argv)
    tasks = {"table": _table_tasks, "study": _study_tasks, "growth": _growth_tasks}[asked.part]
    path = asked.output / f"{asked.part}.jsonl"
    done = records.read(path)
    keys = {tuple(one["key"]) for one in done}
    begin = time.monotonic()
    for key, task in tasks(asked):
        if key in keys or time.monotonic() - begin > asked.until:
            continue
        found = {"key": list(key), **task()}
        records.add(path, found)
        done.append(found)
        print(key, f"{found['minus_two_log_likelihood']:.3f}", f"{found['processor']:.1f} s", flush=True)
    report = {"table": table_report, "study": study_report, "growth": growth_report}[asked.part]
    text = report(done)
    write_whole(asked.output / f"{asked.part}.md", text)
    print(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks population")
    parser.add_argument("part", choices=("table", "study", "growth"))
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "population")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS), metavar="SET")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS), default=list(KINDS))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--subjects", type=int, default=40)
    parser.add_argument("--sizes", nargs="+", type=int, default=[25, 50, 100, 200, 400, 1000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--until", type=float, default=FAR)
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser


Tasks = Iterator[tuple[tuple[Any, ...], Callable[[], Record]]]


def _table_tasks(asked: argparse.Namespace) -> Tasks:
    for seed in asked.seeds:
        for name in asked.sets:
            yield (name, seed), lambda name=name, seed=seed: _beside(name, asked.data, seed)


def _study_tasks(asked: argparse.Namespace) -> Tasks:
    # Kinds take turns, so that all have about as many wherever the study is stopped.
    for draw in range(asked.draws):
        for kind in asked.kinds:
            yield (kind, asked.subjects, asked.seed, draw), lambda kind=kind, draw=draw: _made(kind, asked, draw)


def _growth_tasks(asked: argparse.Namespace) -> Tasks:
    for size in asked.sizes:
        yield (size, asked.seed), lambda size=size: _fitted(_population("oral", size, asked.seed, 0))


def _population(kind: str, subjects: int, seed: int, draw: int) -> oj.Population:
    rng = np.random.default_rng([seed, draw, list(KINDS).index(kind)])
    return KINDS[kind].make(subjects, rng)


def _made(kind: str, asked: argparse.Namespace, draw: int) -> Record:
    return _fitted(_population(kind, asked.subjects, asked.seed, draw), draw)


def _fitted(population: oj.Population, seed: int = 0) -> Record:
    """Fit a population: what is to be kept of it."""
    begin = time.process_time()
    fit: PopulationFit = oj.fit(population, seed=seed, time_limit=FAR)
    return {
        "processor": time.process_time() - begin,
        "minus_two_log_likelihood": fit.minus_two_log_likelihood,
        "error": 2 * fit.log_likelihood_error,
        "search": str(fit.search),
        "success": fit.success,
        "adequacy": str(fit.adequacy),
        "removed": list(fit.removed),
        "rivals": [one.minus_two_log_likelihood for one in fit.rivals],
        "estimates": {name: one.cells for name, one in fit.population.items()},
        "shrinkage": fit.shrinkage,
    }


def _beside(name: str, folder: Path, seed: int) -> Record:
    """Fit a set, and evaluate the likelihood where another program ended."""
    case = SETS[name](folder)
    found = {**_fitted(case.population, seed), "published": _kept(case.published)}
    if set(case.population.names) <= set(case.published.values):
        found["there"], found["there_error"] = exact(case.population, case.published.values)
    return found


def _kept(published: Published) -> Record:
    return {
        "program": published.program,
        "values": dict(published.values),
        "errors": {name: error for name, error in published.errors.items() if error is not None},
        "minus_two_log_likelihood": published.minus_two_log_likelihood,
        "standard_error": published.standard_error,
    }


# --- reports ---


def table_report(done: Sequence[Record]) -> str:
    """Return the table beside other programs."""
    head = ["set", "seed", "−2 log L", "best fit", "other maxima", "program", "its −2 log L", "−2 log L there"]
    rows = [[*head, "largest difference", "processor s"]]
    for one in done:
        other = one["published"]
        error = f" ± {other['standard_error']:.2f}" if math.isfinite(other["standard_error"]) else ""
        told = other["minus_two_log_likelihood"]
        rows.append(
            [
                *map(str, one["key"]),
                f"{one['minus_two_log_likelihood']:.2f} ± {one['error']:.3f}",
                one["search"],
                ", ".join(f"{value:.2f}" for value in one["rivals"]) or "—",
                other["program"],
                f"{told:.2f}{error}" if math.isfinite(told) else "—",
                f"{one['there']:.2f} ± {one['there_error']:.3f}" if "there" in one else "—",
                _largest(one),
                f"{one['processor']:.0f}",
            ]
        )
    return _markdown(rows)


def _largest(one: Mapping[str, Any]) -> str:
    """The estimate that differs most from the other program's, in that one's standard errors, or in ours."""
    found = []
    for name, cells in one["estimates"].items():
        value = one["published"]["values"].get(name)
        error = one["published"]["errors"].get(name, cells["stderr"])
        if value is not None and error and math.isfinite(error):
            found.append((abs(cells["value"] - value) / error, name))
    return "{1} {0:.2f}".format(*max(found)) if found else "—"


def study_report(done: Sequence[Record]) -> str:
    """Return coverage and bias by kind and parameter."""
    rows = [["model", "data sets", "parameter", "truth", "bias", "95 % intervals that hold it"]]
    remarks = []
    for kind in dict.fromkeys(one["key"][0] for one in done):
        own, truth = [one for one in done if one["key"][0] == kind], KINDS[kind].truth
        for name, true in truth.items():
            cells = [one["estimates"][name] for one in own if name in one["estimates"]]
            values = np.array([cell["value"] for cell in cells])
            held = sum(cell["low"] <= true <= cell["high"] for cell in cells)
            bias = f"{100 * (values.mean() / true - 1):+.1f} %"
            share = f"{held} of {len(cells)} ({100 * held / len(cells):.0f} %)"
            rows.append([kind, str(len(own)), name, f"{true:g}", bias, share])
        failed = sum(not one["success"] for one in own)
        confirmed = sum(one["search"] == "confirmed" for one in own)
        seconds = np.median([one["processor"] for one in own])
        remarks.append(
            f"{kind}: {failed} of {len(own)} fits failed, {confirmed} were confirmed; {seconds:.1f} processor seconds "
            "in the median."
        )
    return _markdown(rows) + "\n" + "\n".join(remarks) + "\n"


def growth_report(done: Sequence[Record]) -> str:
    """Return processor seconds by the number of subjects."""
    rows = [["subjects", "processor s", "per subject", "−2 log L"]]
    for one in sorted(done, key=lambda record: record["key"][0]):
        size, seconds = one["key"][0], one["processor"]
        value = f"{one['minus_two_log_likelihood']:.2f} ± {one['error']:.3f}"
        rows.append([str(size), f"{seconds:.1f}", f"{seconds / size:.3f}", value])
    return _markdown(rows)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
