"""Identify: time and verdict per model, for the 25 benchmark systems and the zoo of published models.

Answers are kept in `results/identify`, one line of JSON per model, and are measured again only with `--again`; the
table there is written anew each time.  Seconds are those of the processor, in budgets too, so that nothing depends on
what else runs; for this, what `identify` does in a process of its own is done in this one, and so the memory of a row
is that of both.  Without `--engine msolve` no other program is used.  Of models that are not identifiable it is told
whether combinations were found that generate all that is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import clock
from odejet import Model, identify
from odejet.identify import worker
from odejet.identify.globally import Engine
from odejet.identify.msolve import VARIABLE
from problems import systems

RESULTS = Path(__file__).parent / "results" / "identify"

EXACT = "global", "local", "none"

JULIA = {
    "akt_pathway": 1.03, "bilirubin": 3.93, "biohydrogenation_two_outputs": 0.64, "bruno_carotenoids": 0.25,
    "cd8_t_cells": 0.37, "cgv1990": 2.32, "chemical_reaction_network": 0.38, "goodwin": 0.24,
    "hiv_immune_response": 0.46, "hiv_latent": 1.97, "high_dimensional_nonlinear": 16.88,
    "stirred_tank_reactor_recast": 0.55, "llw1987": 0.20, "mapk_five_outputs": 30.88, "mapk_six_outputs": 5.53,
    "lotka_volterra_symmetric": 0.07, "pharmacokinetics_1": 0.28, "pharm": 188.66, "pitavastatin": 8.17, "qy": 30.66,
    "ruminal_lipolysis": 0.13, "seaijrc": 51.42, "seir_births": 0.26, "seir_detected": 0.70, "seir_cumulative": 0.14,
    "seir_prevalence": 0.29, "seir_quarantine": 0.40, "seuir": 0.32, "sir_confined": 0.26,
    "sir_confined_recovered": 0.24, "sir_treated": 0.29, "sir_reported": 0.14, "sirs_forced": 10.88, "siwr": 14.05,
    "siwr_population": 0.65, "sliqr": 1.39, "resistant_bacteria": 27.77, "transfection": 0.12, "sirt_treatment": 0.48,
    "compositional_lotka_volterra": 0.35, "generalised_lotka_volterra": 0.14,
    "generalised_lotka_volterra_two_outputs": 0.16, "p53": 0.96,
}  # fmt: skip
"""Seconds of StructuralIdentifiability.jl for its identifiable functions with states, as published in its repository
(September 2023, Julia 1.9, Icelake server)."""

UNENDING = "qwwc", "jak_stat", "tumour_hu"
"""Those of its models that did not end within the 600 s allowed there."""

MAPLE = {
    "biohydrogenation_two_outputs": "0.01", "chemical_reaction_network": "0.27", "daisy_example_3": "0.01",
    "goodwin": ">300", "nfkb": ">300", "oral_glucose": "0.01", "pharm": ">300", "ruminal_lipolysis": "0.01",
    "sirs_forced": "0.89", "sirt_treatment": "0.02", "slow_fast": "0.01",
}  # fmt: skip
"""Seconds of Maple for the Groebner bases of SIAN's systems modulo one prime, the longest part of SIAN, as published in
the repository of Groebner.jl (January 2024, Xeon Gold 6130, 300 s allowed).  No seconds of DAISY were found for models
that are stated there as they are here."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks identify", description=__doc__)
    parser.add_argument("--engine", choices=("auto", "elimination", "msolve", "builtin"), default="auto")
    parser.add_argument("--budget", type=float, default=60.0, metavar="S", help="seconds of the processor per model")
    parser.add_argument("--only", choices=("benchmark", "zoo"), help="one of the two collections")
    parser.add_argument("--again", action="store_true", help="measure what has been measured")
    parser.add_argument("names", nargs="*", help="models, by name")
    options = parser.parse_args(argv)
    if options.engine != "msolve":
        os.environ[VARIABLE] = ""
        clock.by_processor()
        worker.count = lambda ranks, seed, budget: worker.counted(ranks, Engine(None, budget), seed)
    # The first call of a process loads kernels; it is not the model's doing.
    identify(Model({"x": "-k*x"}, {"y": "x"}))
    for title, models in (("benchmark", _benchmark()), ("zoo", _zoo())):
        if options.only in (None, title):
            _measure(title, models, options)
    _write_tables()
    return 0


def _benchmark() -> dict[str, tuple[Model, dict[str, str], int | None]]:
    """Models with the verdicts that are known, and the number of solutions."""
    found = {}
    for name in systems.names():
        system = systems.load(name)
        kinds = {key: "none" if key in system.unidentifiable else "global" for key in system.model.unknowns}
        found[name] = system.model, kinds, 1
    return found


def _zoo() -> dict[str, tuple[Model, dict[str, str], int | None]]:
    from problems import zoo

    return {
        entry.name: (
            entry.model,
            {**entry.verdicts, **entry.functions, **dict.fromkeys(entry.combinations, "global")},
            entry.solutions,
        )
        for entry in zoo.ENTRIES
    }


def _measure(title: str, models: Mapping[str, tuple], options: argparse.Namespace) -> None:
    known = _read(title)
    for name, (model, kinds, solutions) in models.items():
        if (options.names and name not in options.names) or (name in known and not options.again):
            continue
        known[name] = row = _answer(model, kinds, solutions, options)
        print(f"{title}: {name:40} {row['seconds']:8.2f} s  {row['method']:24} {row['outcome']}", flush=True)
        RESULTS.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"name": key, **value}) for key, value in known.items() if key in models]
        (RESULTS / f"{title}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _answer(model: Model, kinds: Mapping[str, str], solutions: int | None, options: argparse.Namespace) -> dict:
    asked = [key for key in kinds if key not in model.unknowns]
    before = _processor()
    _forget_peak()
    verdict = identify(model, asked, time_limit=options.budget, engine=options.engine)
    seconds = _processor() - before
    # What is likely is no decision.
    exact = {key: q.kind if q.kind in EXACT else "undecided" for key, q in verdict.items()}
    wrong = sorted(key for key, kind in kinds.items() if exact[key] not in (kind, "undecided"))
    open_ = any(exact[key] == "undecided" for key, q in verdict.items() if q.role != "combination")
    if solutions is not None and verdict.solutions not in (None, solutions):
        wrong.append("solutions")
    return {
        "unknowns": len(model.unknowns),
        "lost": len(verdict.names("none")),
        "solutions": verdict.solutions,
        "roots": verdict.roots,
        "method": verdict.method,
        "combinations": verdict.combinations,
        "generate": verdict.generate,
        "seconds": round(seconds, 3),
        "megabytes": _peak(),
        "outcome": f"differs in {', '.join(wrong)}" if wrong else "undecided" if open_ else "agrees",
    }


def _processor() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _forget_peak() -> None:
    """Have the system measure the most memory of this process from now on."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int | None:
    """The most memory that this process has held since, in megabytes; None where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((round(int(line.split()[1]) / 1000) for line in lines if line.startswith("VmHWM")), None)


def _read(title: str) -> dict[str, dict[str, Any]]:
    path = RESULTS / f"{title}.jsonl"
    if not path.exists():
        return {}
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row.pop("name"): row for row in rows}


def _write_tables() -> None:
    """One table per collection, with the seconds that others have published."""
    parts = ["# Identifiability: models, verdicts and seconds\n"]
    for title in ("benchmark", "zoo"):
        rows = _read(title)
        if not rows:
            continue
        decided = sum(row["outcome"] == "agrees" for row in rows.values())
        quick = sum(row["outcome"] == "agrees" and row["seconds"] <= 60 for row in rows.values())
        total = sum(row["seconds"] for row in rows.values())
        parts.append(
            f"## {title}\n\n{len(rows)} models, {decided} decided and as published ({quick} of them within 60 s), "
            f"{total:.1f} s of one core in all, without msolve; at most "
            f"{max(row.get('megabytes') or 0 for row in rows.values())} MB.\n"
        )
        ambiguous = [row for row in rows.values() if row["lost"] or (row["solutions"] or 2) > 1]
        generated = sum(row.get("generate") is True for row in ambiguous)
        parts.append(
            f"{len(ambiguous)} of them are not identifiable; for {generated} of these the combinations that were found "
            "are shown to generate all that can be known; functions that were published are asked for and may help.\n"
        )
        parts.append(
            "| model | unknowns | lost | solutions | combinations | by | MB | seconds | SI.jl | SIAN | verdicts |"
        )
        parts.append("|---|---|---|---|---|---|---|---|---|---|---|")
        for name, row in rows.items():
            julia = f"{JULIA[name]:.2f}" if name in JULIA else ">600" if name in UNENDING else ""
            julia = julia if title == "zoo" else ""
            told = ", ".join(f"`{text}`" for text in row.get("combinations", ()))
            told += " ?" if row in ambiguous and not row.get("generate") else ""
            cells = (name, row["unknowns"], row["lost"], row["solutions"] or "?", told, row["method"])
            cells = (*cells, row.get("megabytes") or "")
            maple = MAPLE.get(name, "") if title == "zoo" else ""
            line = " | ".join(map(str, (*cells, f"{row['seconds']:.2f}", julia, maple, row["outcome"])))
            parts.append(f"| {line} |")
        parts.append("")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "table.md").write_text("\n".join(parts), encoding="utf-8")
