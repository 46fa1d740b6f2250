"""Gallery: the page of published data sets with their fits, written by one command.

    python -m benchmarks gallery [--only NAMES] [--limit SECONDS]

`--only` without names writes the page again from what is known.
Every data set of `problems.published` is fitted with default settings; its figure goes to `docs/gallery/`, and all that
the page says of it but the question is what the fit says.  Seconds are the processor's.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import odejet as oj
from benchmarks.clock import by_processor
from benchmarks.collection import warm
from benchmarks.store import write_whole
from odejet.jets import compilation
from odejet.numerals import short
from odejet.smooth.threads import one_thread
from problems.published import PUBLISHED, Published

DOCS = Path(__file__).parents[1] / "docs"
FACTS = Path(__file__).parent / "results" / "gallery.json"
MOST_UNKNOWNS = 6
"""Unknowns that a table shows; those that all experiments share come first."""

HEAD = """# Gallery

Published data sets with real measurements, each with the model that is usual for it. Nothing was given but model and
data: no starting values. Every entry is made by `python -m benchmarks gallery` with default settings; the seconds are
the processor's on one core. *Best fit* and *explains the data* are the two answers of a fit
([what they mean](certificate.md)); where the second is "no", the fit is still the best there is, and the intervals are
to be read with care.

"""


def facts(name: str, limit: float) -> dict[str, Any]:
    """Fit one data set, draw it, and return what the page says of it."""
    problem = PUBLISHED[name].pose()
    before, compiled = time.process_time(), compilation.seconds()
    fit = oj.fit(problem, time_limit=limit)
    seconds = time.process_time() - before - (compilation.seconds() - compiled)
    fit.plot(DOCS / "gallery" / f"{name}.png")
    labels = [label for label, unknown in zip(fit.labels, fit.unknowns, strict=True) if unknown.experiment is None]
    labels += [label for label in fit.labels if label not in labels]
    rows = [
        [label, short(fit.values[label], 4), *(short(end, 3) for end in fit.interval(label)), fit.kind(label) or "–"]
        for label in labels[:MOST_UNKNOWNS]
    ]
    return {
        "equations": [f"{state}' = {rate}" for state, rate in problem.model.to_dict()["states"].items()],
        "points": sum(len(series) for one in problem.data.experiments for series in one.outputs.values()),
        "experiments": len(problem.data.experiments),
        "seconds": round(seconds, 1),
        "search": str(fit.search),
        "adequacy": str(fit.adequacy),
        "certified": fit.certified,
        "reasons": [reason.sentence for reason in fit.adequacy.reasons] + list(fit.adequacy.advice),
        "rows": rows,
        "more": max(len(labels) - MOST_UNKNOWNS, 0),
    }


def entry(name: str, one: Published, told: dict[str, Any]) -> str:
    """Return the part of the page about one data set."""
    several = f" in {told['experiments']} experiments" if told["experiments"] > 1 else ""
    lines = [
        f"## {one.title}",
        "",
        f"*{one.field.capitalize()}. {one.source}.*",
        "",
        one.question,
        "",
        "```text",
        *told["equations"],
        "```",
        "",
        f"![Measurements of {one.title.lower()} with the fitted curve and its band](gallery/{name}.png)",
        "",
        f"{told['points']} measurements{several}, {told['seconds']:.1f} s. Best fit: **{told['search']}**; "
        f"explains the data: **{told['adequacy']}**{'; **certified**' if told['certified'] else ''}.",
        *([""] + [f"- {reason[:1].upper()}{reason[1:]}." for reason in told["reasons"]] if told["reasons"] else []),
        "",
        "| quantity | value | 95 % interval | can it be known? |",
        "|---|--:|---|---|",
        *(f"| `{label}` | {value} | {low} to {high} | {kind} |" for label, value, low, high, kind in told["rows"]),
        "",
        *([f"and {told['more']} more.", ""] if told["more"] else []),
    ]
    return "\n".join(lines)


def page(known: dict[str, dict[str, Any]]) -> str:
    """Return the whole page: a table of all data sets, then one part for each."""
    rows = [
        "| data | field | measurements | seconds | best fit | explains the data | certified |",
        "|---|---|--:|--:|---|---|---|",
    ]
    for name, told in known.items():
        one = PUBLISHED[name]
        certified = "yes" if told["certified"] else "no"
        cells = [f"{told['points']}", f"{told['seconds']:.1f}", told["search"], told["adequacy"], certified]
        rows.append(f"| {one.title} | {one.field} | {' | '.join(cells)} |")
    return (
        HEAD + "\n".join(rows) + "\n\n" + "\n".join(entry(name, PUBLISHED[name], told) for name, told in known.items())
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gallery", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="*", choices=list(PUBLISHED), default=list(PUBLISHED))
    parser.add_argument("--limit", type=float, default=20.0)
    given = parser.parse_args(argv)
    known: dict[str, dict[str, Any]] = json.loads(FACTS.read_text()) if FACTS.exists() else {}
    (DOCS / "gallery").mkdir(exist_ok=True)
    warm()
    by_processor()
    with one_thread():
        for name in given.only:
            known[name] = facts(name, given.limit)
            print(name, known[name]["seconds"], known[name]["search"], known[name]["adequacy"], flush=True)
            ordered = {key: known[key] for key in PUBLISHED if key in known}
            write_whole(FACTS, json.dumps(ordered, indent=1) + "\n")
    ordered = {key: known[key] for key in PUBLISHED if key in known}
    write_whole(DOCS / "gallery.md", page(ordered))
    return 0
