"""Worker of a comparison side by side: fits what it is told by lines of JSON, with whichever odejet is on its path.

Run as `python -P sideby_worker.py` with PYTHONPATH naming the code to measure.  It says first where its code lies, then
answers each job by one line.  Code of different ages keeps the parts it needs in different modules.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

import numpy as np

import odejet as oj

PLACES = {
    "Problem": ("odejet.problem",),
    "Misfit": ("odejet.objective.misfit", "odejet.misfit"),
    "refine": ("odejet.search.refine", "odejet.refine"),
    "one_thread": ("odejet.smooth.threads",),
    "seconds": ("odejet.jets.compilation",),
}
"""Modules that hold a part, the newest first."""


def part(name: str) -> Any:
    """A function or class from the first module that has it."""
    for place in PLACES[name]:
        try:
            return getattr(importlib.import_module(place), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"{oj.__file__} has {name} in none of {', '.join(PLACES[name])}")


compiling, one_thread = part("seconds"), part("one_thread")


def timed(work: Any) -> tuple[Any, float]:
    """A result and its CPU seconds; once more if kernels were compiled meanwhile."""
    while True:
        before, begin = compiling(), time.process_time()
        result = work()
        seconds = time.process_time() - begin
        if compiling() == before:
            return result, seconds


def misfit_of(model: oj.Model, data: oj.Data) -> Any:
    """The misfit, which older code makes of model and data without a problem between."""
    try:
        problem = part("Problem")
    except ImportError:
        return part("Misfit")(model, data)
    return problem(model, data).misfit


def from_truth(model: oj.Model, data: oj.Data, truth: dict[str, float], bounds: Any) -> tuple[float, bool]:
    """The cost that the true values lead to, and whether it is one of rounding."""
    misfit = misfit_of(model, data)
    start = np.array([truth[unknown.name] for unknown in misfit.unknowns])
    found = part("refine")(misfit, start, bounds=bounds, time_limit=60.0)
    return float(found.cost), found.ending.name == "EXACT"


def intervals(fit: oj.Fit, truth: dict[str, float], skipped: list[str]) -> dict[str, Any]:
    """How many quantities the data are said to determine, how many of their intervals hold the truth, and the cost."""
    findings, seconds = timed(lambda: fit.practical.findings)
    known = {label: truth[label.split("(")[0]] for label in findings if label.split("(")[0] not in skipped}
    determined = [label for label in known if findings[label].kind == "determined"]
    hits = sum(findings[label].interval[0] <= known[label] <= findings[label].interval[1] for label in determined)
    return {"determined": len(determined), "hits": hits, "practical_seconds": seconds}


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """One fit beside the one from the truth."""
    model = oj.Model.from_toml_text(job["model"])
    data = oj.Data(job["time"], job["outputs"])
    if job["warm"]:
        oj.fit(model, data, bounds=job["bounds"], effort="quick")
    fit, seconds = timed(lambda: oj.fit(model, data, bounds=job["bounds"], time_limit=job["time_limit"]))
    reference, exact = from_truth(model, data, job["truth"], job["bounds"])
    values = {**fit.initial_state, **fit.parameters}
    errors = [abs(values[name] / true - 1) for name, true in job["truth"].items() if name not in job["skipped"]]
    found = {
        "cost": float(fit.cost),
        "reference": reference,
        "exact": exact,
        "error": float(max(errors, default=0.0)),
        "certified": bool(fit.certificate.granted),
        "seconds": seconds,
        "answered": fit.provenance.sentence,
    }
    return found | (intervals(fit, job["truth"], job["skipped"]) if job["intervals"] else {})


def main() -> None:
    print(json.dumps(oj.__file__), flush=True)
    with one_thread():
        for line in sys.stdin:
            try:
                found = answer(json.loads(line))
            except Exception as error:  # whatever it is, the comparison is to show it and go on
                found = {"failure": f"{type(error).__name__}: {error}"}
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
