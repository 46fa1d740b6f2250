"""Collection: problems with real data that others published as PEtab, read, compared and fitted.

    python -m benchmarks collection FOLDER [--only NAMES] [--seeds S ...] [--limit SECONDS] [--output FILE]

FOLDER has a folder for each problem, with a YAML file and perhaps the published simulations.  Of each problem the
likelihood at the published values is told and how far simulations are from those published; then it is fitted from its
bounds alone, once per seed.  A fit reaches the published optimum if its log-likelihood (with priors, its posterior) is
at most 0.1 lower; a certificate of one that does not is false.  Every task is one line of a file: stopping and starting
again repeats nothing.  Without seeds nothing is fitted.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from odejet.io.petab.posing import Posed, pose
from odejet.jets import compilation

FOLDER = Path(__file__).parents[2] / "shared" / "petab" / "collection"
MISSING = f"the published problems are not here: {FOLDER} is missing"
RESULTS = Path(__file__).parent / "results" / "collection"

SHORT = 0.1
"""Units of the log-likelihood below the published optimum that count as reaching it."""

CLOSE, TINY = 1e-3, 1e-3
"""How far simulations may be from those published: of their size, or of this part of the largest."""


def names(folder: Path | None = None) -> list[str]:
    """The problems in a folder."""
    folder = FOLDER if folder is None else folder
    found = (path.name for path in folder.iterdir() if any(path.glob("*.yaml"))) if folder.is_dir() else ()
    return sorted(found)


def read(folder: Path) -> Posed:
    """A problem and the rows of its tables."""
    own = folder / f"{folder.name}.yaml"
    return pose(own if own.is_file() else next(iter(sorted(folder.glob("*.yaml")))))


# --- simulations ------------------------------------------------------------------------------------------------------


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file, delimiter="\t")
        return [{key: (text or "").strip() for key, text in row.items() if key} for row in lines]


_KEYS = ("observableId", "preequilibrationConditionId", "simulationConditionId", "experimentId", "time")


def _keyed(rows: list[dict[str, str]], shared: list[str]) -> Iterator[tuple[Any, ...]]:
    """What tells rows apart, with a number for replicates, whose simulations are the same or in the same order."""
    seen = Counter[tuple[Any, ...]]()
    for row in rows:
        key = tuple(float(row[name]) if name == "time" else row[name] for name in shared)
        seen[key] += 1
        yield (*key, seen[key])


def published(folder: Path) -> np.ndarray | None:
    """The published simulations in the order of the measurements; None where there are none."""
    paths = sorted(folder.glob("simulatedData*.tsv"))
    tables = sorted(folder.glob("measurement*.tsv"))
    if not paths or len(tables) != 1:
        return None
    measured, simulated = _rows(tables[0]), _rows(paths[0])
    known = measured[0].keys() & simulated[0].keys()
    shared = [name for name in _KEYS if name in known]
    by_key = dict(zip(_keyed(simulated, shared), (float(row["simulation"]) for row in simulated), strict=True))
    return np.array([by_key.get(key, math.nan) for key in _keyed(measured, shared)])


def compared(folder: Path) -> dict[str, Any]:
    """A problem as it was published: its size, its likelihood, and how far our simulations are from theirs."""
    began = time.process_time()
    one = read(folder)
    problem = one.problem
    found: dict[str, Any] = {
        "states": len(problem.model.states),
        "unknowns": len(problem.unknowns),
        "experiments": len(problem.experiments),
        "points": len(one.rows),
        "read_seconds": round(time.process_time() - began, 2),
        "log_likelihood": problem.log_likelihood(problem.nominal),
        "log_posterior": problem.log_posterior(problem.nominal),
    }
    theirs = published(folder)
    if theirs is not None and len(theirs) == len(one.rows):
        ours = one.simulated(problem.nominal)
        sizes = np.maximum(np.abs(theirs), TINY * np.nanmax(np.abs(theirs)))
        apart = np.abs(ours - theirs) / sizes
        found["apart"] = float(np.nanmax(apart))
        found["rows_apart"] = int(np.count_nonzero(~(apart <= CLOSE)))
    return found


def fitted(folder: Path, seed: int, limit: float) -> dict[str, Any]:
    """A fit from nothing but the bounds."""
    problem = read(folder).problem
    before, compiled = time.process_time(), compilation.seconds()
    fit = oj.fit(problem, seed=seed, time_limit=limit)
    seconds = time.process_time() - before - (compilation.seconds() - compiled)
    values = fit.values if fit.found else None
    return {
        "log_likelihood": problem.log_likelihood(values) if values else -math.inf,
        "log_posterior": problem.log_posterior(values) if values else -math.inf,
        "certified": bool(fit.certified),
        "seconds": round(seconds, 1),
        "message": fit.message,
    }


# --- the table --------------------------------------------------------------------------------------------------------


def table(lines: list[dict[str, Any]]) -> str:
    """One line per problem."""
    reading = {line["problem"]: line for line in lines if line["task"] == "read"}
    heads = ("problem", "states", "unknowns", "points", "log-likelihood", "simulations apart", "best of fits")
    heads += ("reached", "certified", "false", "CPU s")
    rows = [f"| {' | '.join(heads)} |", "|---" + "|--:" * 10 + "|"]
    for name, one in sorted(reading.items()):
        if "refused" in one:
            rows.append(f"| {name} | {one['refused']} |" + " |" * 9)
            continue
        fits = [line for line in lines if line["problem"] == name and line["task"] == "fit" and "refused" not in line]
        good = [fit for fit in fits if fit["log_posterior"] >= one["log_posterior"] - SHORT]
        best = max((fit["log_likelihood"] for fit in fits), default=math.nan)
        certified = [fit for fit in fits if fit["certified"]]
        false = [fit for fit in certified if fit not in good]
        seconds = float(np.median([fit["seconds"] for fit in fits])) if fits else math.nan
        apart = f"{one['apart']:.1e} ({one['rows_apart']} rows)" if "apart" in one else "none published"
        rows.append(
            f"| {name} | {one['states']} | {one['unknowns']} | {one['points']} | {one['log_likelihood']:.4f} | {apart} "
            f"| {best:.2f} | {len(good)} of {len(fits)} | {len(certified)} | {len(false)} | {seconds:.1f} |"
        )
    return "\n".join(rows)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks collection")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--output", type=Path, default=RESULTS / "collection.jsonl")
    options = parser.parse_args(argv)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in options.output.read_text().splitlines()] if options.output.is_file() else []
    done = {(line["problem"], line["task"], line.get("seed"), line.get("limit")) for line in lines}
    wanted = [name for name in names(options.folder) if not options.only or name in options.only]
    tasks = [(name, "read", None, None) for name in wanted]
    tasks += [(name, "fit", seed, options.limit) for name in wanted for seed in options.seeds]
    for name, task, seed, limit in tasks:
        if (name, task, seed, limit) in done:
            continue
        line: dict[str, Any] = {"problem": name, "task": task}
        try:
            if task == "read":
                line |= compared(options.folder / name)
            else:
                line |= {"seed": seed, "limit": limit, **fitted(options.folder / name, seed or 0, limit or 0.0)}
        except (oj.ModelError, oj.DataError) as error:
            line["refused"] = str(error)
        lines.append(line)
        with options.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
    print(table([line for line in lines if line["problem"] in wanted]))
    return 0
