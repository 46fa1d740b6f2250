"""Collection: problems with real data that others published as PEtab, read, compared and fitted.

    python -m benchmarks collection FOLDER [--only NAMES] [--seeds S ...] [--limit SECONDS] [--output FILE]
                                           [--amici PYTHON] [--models FOLDER]

FOLDER has a folder for each problem, with a YAML file and perhaps the published simulations.  Of each problem the
likelihood at the published values is told and how far simulations are from those published; then it is fitted from its
bounds alone, once per seed, with limits of time in processor seconds.  A fit reaches the published optimum if its
log-likelihood (with priors, its posterior) is at most 0.1 lower; a certificate of one that does not is false.  When it
came how low is kept too, for `race`.  With --amici, an interpreter whose environment has AMICI, likelihood and
simulations are compared with AMICI's, and AMICI's with those published; its compiled models and its answers are kept in
the folder of models.  Every task is one line of a file: stopping and starting again repeats nothing.  Without seeds
nothing is fitted.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import arrivals
from benchmarks import lines as records
from benchmarks.clock import by_processor
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


def yaml_of(folder: Path) -> Path:
    """The file of a problem."""
    own = folder / f"{folder.name}.yaml"
    return own if own.is_file() else next(iter(sorted(folder.glob("*.yaml"))))


def per_arrival(seconds: float, arrived: int) -> str:
    """What one arrival takes, from the seconds of all runs."""
    return f"{seconds / arrived:.1f} s" if arrived else f"more than {seconds:.0f} s"


def read(folder: Path) -> Posed:
    """A problem and the rows of its tables."""
    return pose(yaml_of(folder))


# --- simulations ------------------------------------------------------------------------------------------------------


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file, delimiter="\t")
        return [{key: (text or "").strip() for key, text in row.items() if key} for row in lines]


_KEYS = (
    "observableId",
    "preequilibrationConditionId",
    "simulationConditionId",
    "experimentId",
    "time",
    "observableParameters",
)


def _keyed(rows: list[dict[str, str]], shared: list[str]) -> Iterator[tuple[Any, ...]]:
    """What tells rows apart, with a number for replicates, whose simulations are the same or in the same order."""
    seen = Counter[tuple[Any, ...]]()
    for row in rows:
        # Some programs append what an observable depends on to its id.
        told = row | {"observableId": row["observableId"].split("__")[0]}
        key = tuple(float(told[name]) if name == "time" else told[name] for name in shared)
        seen[key] += 1
        yield (*key, seen[key])


def published(folder: Path) -> np.ndarray | None:
    """The published simulations in the order of the measurements; None where there are none."""
    paths = sorted(folder.glob("simulatedData*.tsv"))
    return _aligned(folder, _rows(paths[0])) if paths else None


def _aligned(folder: Path, simulated: list[dict[str, str]]) -> np.ndarray | None:
    """The simulations of a table in the order of the measurements.

    Where ids or digits of times are others, rows that have the same times are taken as they come.
    """
    tables = sorted(folder.glob("measurement*.tsv"))
    if len(tables) != 1:
        return None
    measured = _rows(tables[0])
    known = measured[0].keys() & simulated[0].keys()
    shared = [name for name in _KEYS if name in known]
    values = [float(row["simulation"]) for row in simulated]
    by_key = dict(zip(_keyed(simulated, shared), values, strict=True))
    found = np.array([by_key.get(key, math.nan) for key in _keyed(measured, shared)])
    times = [np.array([float(row["time"]) for row in rows]) for rows in (measured, simulated)]
    alike = len(measured) == len(simulated) and np.allclose(*times, rtol=1e-6)
    return np.array(values) if alike and not np.isfinite(found).all() else found


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
        found["apart"], found["rows_apart"] = _apart(one.simulated(problem.nominal), theirs)
    return found


def _apart(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, int]:
    """How far simulations are from others, relative to these, and how many are too far or missing."""
    known = np.isfinite(theirs)
    if not known.any():
        return math.nan, len(theirs)
    apart = np.abs(ours - theirs)[known] / np.maximum(np.abs(theirs), TINY * np.abs(theirs[known]).max())[known]
    return float(apart.max()), int(np.count_nonzero(~(apart <= CLOSE)) + np.count_nonzero(~known))


def by_amici(folder: Path, python: Path, models: Path) -> dict[str, Any]:
    """Likelihood and simulations beside those of AMICI, and AMICI's simulations beside those published."""
    answer = models / f"{folder.name}.json"
    if not answer.is_file():
        models.mkdir(parents=True, exist_ok=True)
        tools = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
        command = [str(python), str(Path(__file__).with_name("amici_worker.py")), str(yaml_of(folder)), str(models)]
        done = subprocess.run(command, env=os.environ | tools, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"failed": done.stderr.strip().splitlines()[-1]}
        answer.write_text(done.stdout.splitlines()[-1])
    told = json.loads(answer.read_text())
    one = read(folder)
    ours = one.problem.log_likelihood(one.problem.nominal)
    table = [{key: "" if value is None else str(value) for key, value in row.items()} for row in told["simulations"]]
    simulated = _aligned(folder, table)
    found = {"log_likelihood": told["log_likelihood"], "ours": ours, "compile_seconds": told["compile_seconds"]}
    found["difference"] = abs(ours - told["log_likelihood"]) / max(abs(told["log_likelihood"]), 1.0)
    if simulated is not None:
        found["apart"], found["rows_apart"] = _apart(one.simulated(one.problem.nominal), simulated)
        theirs = published(folder)
        if theirs is not None:
            found["published_apart"], found["published_rows_apart"] = _apart(simulated, theirs)
    return found


@cache
def warm() -> None:
    """Have Python load what a fit needs."""
    times = np.linspace(0.0, 1.0, 5)
    decay = oj.Model(states={"x": "-k*x"}, outputs={"y": "x"})
    oj.fit(decay, oj.Data(times, {"y": np.exp(-times)}), bounds={"k": (0.1, 10.0)})


def fitted(folder: Path, seed: int, limit: float) -> dict[str, Any]:
    """A fit from nothing but the bounds."""
    warm()
    problem = read(folder).problem
    before, compiled = time.process_time(), compilation.seconds()
    with arrivals.recording(problem.misfit) as course:
        fit = oj.fit(problem, seed=seed, time_limit=limit)
    seconds = time.process_time() - before - (compilation.seconds() - compiled)
    values = fit.values if fit.found else None
    return {
        "log_likelihood": problem.log_likelihood(values) if values else -math.inf,
        "log_posterior": problem.log_posterior(values) if values else -math.inf,
        "certified": bool(fit.certified),
        "seconds": round(seconds, 1),
        "message": fit.message,
        "course": arrivals.last_of(course),
    }


# --- the table --------------------------------------------------------------------------------------------------------


def table(lines: list[dict[str, Any]]) -> str:
    """One line per problem."""
    reading, amici = ({line["problem"]: line for line in lines if line["task"] == task} for task in ("read", "amici"))
    heads = ("problem", "states", "unknowns", "points", "log-likelihood", "simulations apart", "from AMICI's")
    heads += ("likelihood from AMICI's", "best of fits", "reached", "certified", "false", "CPU s")
    rows = [f"| {' | '.join(heads)} |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    for name, one in sorted(reading.items()):
        if "refused" in one:
            rows.append(f"| {name} | {one['refused']} |" + " |" * (len(heads) - 2))
            continue
        cells = [name, *(str(one[key]) for key in ("states", "unknowns", "points"))]
        cells += [f"{one['log_likelihood']:.4f}", _told(one), *_beside(amici.get(name, {})), *_fits(name, one, lines)]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _told(one: dict[str, Any]) -> str:
    """How far simulations are apart, and how many are too far."""
    if "apart" not in one:
        return ""
    return f"{one['apart']:.0e}" + (f" ({one['rows_apart']} rows)" if one["rows_apart"] else "")


def _beside(one: dict[str, Any]) -> list[str]:
    """What AMICI says."""
    return [_told(one), f"{one['difference']:.0e}" if "difference" in one else ""]


def _fits(name: str, published: dict[str, Any], lines: list[dict[str, Any]]) -> list[str]:
    """What fits found."""
    fits = [line for line in lines if line["problem"] == name and line["task"] == "fit" and "refused" not in line]
    if not fits:
        return [""] * 5
    good = [fit for fit in fits if fit["log_posterior"] >= published["log_posterior"] - SHORT]
    certified = [fit for fit in fits if fit["certified"]]
    false = [fit for fit in certified if fit not in good]
    best, seconds = max(fit["log_likelihood"] for fit in fits), float(np.median([fit["seconds"] for fit in fits]))
    return [f"{best:.2f}", f"{len(good)} of {len(fits)}", str(len(certified)), str(len(false)), f"{seconds:.1f}"]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks collection")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--output", type=Path, default=RESULTS / "collection.jsonl")
    parser.add_argument("--amici", type=Path)
    parser.add_argument("--models", type=Path, default=Path(tempfile.gettempdir()) / "odejet-amici")
    options = parser.parse_args(argv)
    lines = records.read(options.output)
    done = {(line["problem"], line["task"], line.get("seed"), line.get("limit")) for line in lines}
    wanted = options.only or names(options.folder)
    tasks = [(name, "read", None, None) for name in wanted]
    tasks += [(name, "amici", None, None) for name in wanted if options.amici]
    tasks += [(name, "fit", seed, options.limit) for seed in options.seeds for name in wanted]
    by_processor()
    for name, task, seed, limit in tasks:
        if (name, task, seed, limit) in done:
            continue
        line: dict[str, Any] = {"problem": name, "task": task}
        try:
            if task == "read":
                line |= compared(options.folder / name)
            elif task == "amici":
                line |= by_amici(options.folder / name, options.amici, options.models)
            else:
                line |= {"seed": seed, "limit": limit, **fitted(options.folder / name, seed or 0, limit or 0.0)}
        except (oj.ModelError, oj.DataError) as error:
            line["refused"] = str(error)
        lines.append(line)
        records.add(options.output, line)
        print(json.dumps(line), flush=True)
    print(table([line for line in lines if line["problem"] in wanted]))
    return 0
