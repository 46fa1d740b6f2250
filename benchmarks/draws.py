"""Draws: effective draws a second of six posteriors, beside Stan, PyMC and emcee, each on one core.

python -m benchmarks draws [--subjects ...] [--programs ...] [--stan PYTHON] [--pymc PYTHON] [--patience 600]
                           [--output FILE]

Programs take turns, subject by subject, in processes of their own: PYTHON is that of an environment with PyStan or
PyMC.
All begin at the optimum.  Stan has one chain of 1,000 draws after 1,000 of warm-up, with its own tolerances; PyMC the
gradient-free DEMetropolisZ over SciPy's odeint, as its notebook on ODEs recommends; emcee its walkers on odejet's
log-posterior.  Counted is the least of all effective numbers, in the bulk and in the tails, over processor seconds from
the optimum on, warm-up included and compilation not.  Every line is kept: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import lines as records
from benchmarks.posteriors import PROGRAMS, SUBJECTS, Subject
from benchmarks.store import write_whole

RESULTS = Path(__file__).parent / "results" / "draws"
WORKERS = Path(__file__).parent
NAMES = ("odejet", "stan", "pymc", "emcee")
ESS = 1000
"""Effective draws that odejet is asked for, about what the others have after their numbers of draws."""

SEED = 1
EMCEE_STEPS, EMCEE_BURN = 2000, 500


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks draws")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    parser.add_argument("--programs", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--stan", default="", metavar="PYTHON", help="with PyStan")
    parser.add_argument("--pymc", default="", metavar="PYTHON", help="with PyMC")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds of the clock after which one is ended")
    parser.add_argument("--output", type=Path, default=RESULTS / "draws.jsonl")
    asked = parser.parse_args(argv)
    known = {(line["subject"], line["program"]) for line in records.read(asked.output)}
    for name in asked.subjects:
        todo = [program for program in asked.programs if (name, program) not in known]
        if not todo:
            continue
        subject = SUBJECTS[name]()
        begun = time.process_time()
        fit = oj.fit(subject.problem, seed=SEED)
        seconds = time.process_time() - begun
        for program in todo:
            found = measured(program, name, subject, fit, asked)
            if found is not None:
                line = {"subject": name, "program": program, **found}
                records.add(asked.output, line | ({"fit": seconds} if program == "odejet" else {}))
                print(json.dumps(line)[:300], flush=True)
    write_whole(asked.output.with_suffix(".md"), table(records.read(asked.output)))
    return 0


def measured(
    program: str, name: str, subject: Subject, fit: oj.Fit, asked: argparse.Namespace
) -> dict[str, Any] | None:
    """What one program makes of a posterior; None where it is not there."""
    start = dict(zip(fit.labels, fit.estimates.tolist(), strict=True))
    if program == "odejet":
        begun = time.process_time()
        found = fit.sample(ess=ESS, seed=SEED, time_limit=asked.patience)
        spent = time.process_time() - begun
        draws = {label: found[label] for label in found.labels}
        return judged(draws, spent, subject) | {"gradients": found.gradients, "said": list(found.warnings)}
    if program == "emcee":
        return by_emcee(fit, subject, asked.patience)
    python = getattr(asked, program)
    if not python:
        return None
    told = {"data": subject.data, "seed": SEED, "inits": [subject.initial(start)], "chains": 1}
    told |= {"draws": 1000, "warmup": 1000, "subject": name}
    if program == "stan":
        return elsewhere([python, "-P", WORKERS / "stan_worker.py", PROGRAMS / f"{name}.stan"], told, subject, asked)
    return elsewhere([python, "-P", WORKERS / "pymc_worker.py"], told | {"start": start}, subject, asked)


def elsewhere(
    command: list[Any], told: Mapping[str, Any], subject: Subject, asked: argparse.Namespace
) -> dict[str, Any]:
    """What a worker in another environment finds."""
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "given.json", Path(folder) / "result.json"
        given.write_text(json.dumps(told))
        try:
            ended = subprocess.run(
                [*map(str, command), str(given), str(result)],
                timeout=asked.patience,
                capture_output=True,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"not ended after {asked.patience:g} s of the clock"}
        if not result.is_file():
            return {"failed": ended.stderr.strip().splitlines()[-1:] or "ended"}
        found = json.loads(result.read_text())
    draws = {
        label: np.array(found["draws"][theirs]) for label, theirs in subject.names.items() if theirs in found["draws"]
    }
    return judged(draws, found["seconds"], subject) | {"divergent": found.get("divergent", 0)}


def by_emcee(fit: oj.Fit, subject: Subject, patience: float) -> dict[str, Any]:
    """emcee on odejet's log-posterior, on the scale of the search."""
    import emcee

    scaled = subject.problem.objective.scaled()
    stated = subject.problem.objective.prior_entries
    x = scaled.from_natural(fit.estimates)
    rng = np.random.default_rng(SEED)
    walkers = 2 * len(x) + 2
    low, high = scaled.bounds
    begin = np.clip(x + 0.05 * rng.normal(size=(walkers, len(x))), low + 1e-6, high - 1e-6)

    def log_density(at: np.ndarray) -> float:
        inside = np.all((at >= low) & (at <= high))
        return scaled.log_jacobian(at, stated) - scaled.value(at) if inside else -np.inf

    sampler = emcee.EnsembleSampler(walkers, len(x), log_density)
    end, begun = time.monotonic() + patience, time.process_time()
    state = sampler.run_mcmc(begin, EMCEE_BURN)
    sampler.reset()
    for _ in sampler.sample(state, iterations=EMCEE_STEPS):
        if time.monotonic() > end:
            break
    spent = time.process_time() - begun
    chain = np.asarray(sampler.get_chain()).transpose(1, 0, 2)
    theta = scaled.to_natural(chain.reshape(-1, len(x))).reshape(chain.shape)
    return judged({label: theta[:, :, i] for i, label in enumerate(fit.labels)}, spent, subject)


def judged(draws: Mapping[str, np.ndarray], seconds: float, subject: Subject) -> dict[str, Any]:
    """Effective draws a second, means and sds."""
    import arviz

    worth = {
        label: min(float(arviz.ess(own, method="bulk")), float(arviz.ess(own, method="tail")))
        for label, own in draws.items()
    }
    least = min(worth.values())
    return {
        "seconds": seconds,
        "ess": least,
        "rate": least / seconds,
        "rhat": max(float(arviz.rhat(own)) for own in draws.values())
        if next(iter(draws.values())).shape[0] > 1
        else None,
        "mean": {label: float(np.mean(own)) for label, own in draws.items()},
        "sd": {label: float(np.std(own)) for label, own in draws.items()},
    }


def table(lines: list[Any]) -> str:
    """Rates by subject and program, and how many times Stan's odejet's is."""
    rows = {}
    for line in lines:
        rows.setdefault(line["subject"], {})[line["program"]] = line
    text = ["| posterior | odejet | Stan | times Stan | PyMC | emcee |", "|---|---|---|---|---|---|"]
    ratios = []
    for name, row in rows.items():
        cells = {program: _shown(row.get(program)) for program in NAMES}
        both = all("rate" in row.get(program, {}) for program in ("odejet", "stan"))
        ratio = row["odejet"]["rate"] / row["stan"]["rate"] if both else None
        ratios += [ratio] if ratio is not None else []
        times = "" if ratio is None else f"{ratio:.1f}"
        text.append(
            f"| {name.replace('_', ' ')} | {cells['odejet']} | {cells['stan']} | {times} | {cells['pymc']} | "
            f"{cells['emcee']} |"
        )
    if ratios:
        text.append(f"\nTimes Stan: median {np.median(ratios):.1f}, least {min(ratios):.1f}.")
    return (
        "\n".join(
            ["Effective draws a processor second, the least of all unknowns, in the bulk and in the tails.", "", *text]
        )
        + "\n"
    )


def _shown(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return ""
    if "failed" in line:
        return "failed"
    doubtful = "" if line["rhat"] is None or line["rhat"] <= 1.01 else f" (R-hat {line['rhat']:.2f})"
    return f"{line['rate']:.3g}{doubtful}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
