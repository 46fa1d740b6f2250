"""Gallery: pages of data sets with their fits, written by one command.

    python -m benchmarks gallery [--systems] [--only NAMES] [--limit SECONDS]

Every data set of `problems.published` is fitted with default settings; its figure goes to `docs/gallery/`, and all that
the page says of it but the question is what the fit says.  With `--systems` the page shows the paper's 25 systems
instead, each with one draw of the benchmark at noise 1e-2.  `--only` without names writes a page again from what is
known.  Seconds are the processor's.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import odejet as oj
from benchmarks import cells
from benchmarks.clock import by_processor
from benchmarks.collection import warm
from benchmarks.store import write_whole
from odejet.jets import compilation
from odejet.numerals import short
from odejet.smooth.threads import one_thread
from problems import systems
from problems.published import PUBLISHED, Published

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = Path(__file__).parent / "results"
MOST_UNKNOWNS = 6
"""Unknowns that a table shows; those that all experiments share come first."""

HEAD = """# Gallery

Published data sets with real measurements, each with the model that is usual for it. Nothing was given but model and
data: no starting values. Every entry is made by `python -m benchmarks gallery` with default settings; the seconds are
the processor's on one core. *Best fit* and *explains the data* are the two answers of a fit
([what they mean](certificate.md)); where the second is "no", the fit is still the best there is, and the intervals are
to be read with care.

"""


SYSTEMS_HEAD = """# The paper's 25 systems

One draw of the [benchmark](benchmark.md) for each: 750 points with noise of 1 % of an output's mean, no starting
values. Every entry is made by `python -m benchmarks gallery --systems` with default settings; the seconds are the
processor's on one core. Where a value is far from the true one its interval says so: data can only tell so much.

"""


@dataclass(frozen=True)
class Gallery:
    """A page: its head, where its facts and figures are kept, and its entries by short name."""

    head: str
    page: Path
    facts: Path
    entries: Mapping[str, Published]
    truths: Callable[[str], Mapping[str, float]] = lambda name: {}

    @property
    def figures(self) -> Path:
        return self.page.with_suffix("")


def _system(name: str) -> Published:
    system, protocol = systems.load(name), cells.Protocol()

    def pose() -> oj.Problem:
        data = cells.measured(cells.draw(name, 0, protocol), cells.Cell(name, 1e-2, 0), protocol)
        return oj.Problem(system.model, data, bounds=systems.protocol().bounds)

    return Published(system.title, "benchmark", "", "", pose)


PUBLISHED_GALLERY = Gallery(HEAD, DOCS / "gallery.md", RESULTS / "gallery.json", PUBLISHED)
SYSTEMS_GALLERY = Gallery(
    SYSTEMS_HEAD,
    DOCS / "gallery-systems.md",
    RESULTS / "gallery-systems.json",
    {name: _system(name) for name in systems.names()},
    lambda name: cells.draw(name, 0, cells.Protocol()).values,
)


def facts(gallery: Gallery, name: str, limit: float) -> dict[str, Any]:
    """Fit one data set, draw it, and return what the page says of it."""
    problem = gallery.entries[name].pose()
    before, compiled = time.process_time(), compilation.seconds()
    fit = oj.fit(problem, time_limit=limit)
    seconds = time.process_time() - before - (compilation.seconds() - compiled)
    fit.plot(gallery.figures / f"{name}.png")
    labels = [label for label, unknown in zip(fit.labels, fit.unknowns, strict=True) if unknown.experiment is None]
    labels += [label for label in fit.labels if label not in labels]
    most = len(labels) if gallery.truths(name) else MOST_UNKNOWNS
    rows = []
    for label in labels[:most]:
        ends = (short(end, 3) for end in fit.interval(label))
        rows.append([label, short(fit.values[label], 4), *ends, fit.kind(label) or "–"])
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
        "more": max(len(labels) - most, 0),
    }


def entry(gallery: Gallery, name: str, told: dict[str, Any]) -> str:
    """Return the part of the page about one data set."""
    one, truth = gallery.entries[name], gallery.truths(name)
    several = f" in {told['experiments']} experiments" if told["experiments"] > 1 else ""
    known = [f"*{one.field.capitalize()}. {one.source}.*", "", one.question, ""] if one.source else []
    reasons = [f"- {reason[:1].upper()}{reason[1:]}." for reason in told["reasons"]]
    lines = [
        f"## {one.title}",
        "",
        *known,
        "```text",
        *told["equations"],
        "```",
        "",
        f"![Measurements of {one.title.lower()} with the fitted curve and its band]({gallery.figures.name}/{name}.png)",
        "",
        f"{told['points']:,} measurements{several}, {told['seconds']:.1f} s. Best fit: **{told['search']}**; "
        f"explains the data: **{told['adequacy']}**{'; **certified**' if told['certified'] else ''}.",
        *(["", *reasons] if reasons else []),
        "",
        f"| quantity | value | 95 % interval |{' true value |' if truth else ''} can it be known? |",
        f"|---|--:|---|{'--:|' if truth else ''}---|",
    ]
    for label, value, low, high, kind in told["rows"]:
        true = f" {short(truth[label.partition('(')[0]], 4)} |" if truth else ""
        lines.append(f"| `{label}` | {value} | {low} to {high} |{true} {kind} |")
    more = [f"and {told['more']} more.", ""] if told["more"] else []
    return "\n".join([*lines, "", *more, *([f"*What it means.* {one.meaning}", ""] if one.meaning else [])])


def page(gallery: Gallery, known: dict[str, dict[str, Any]]) -> str:
    """Return the whole page: a table of all data sets, then one part for each."""
    rows = [
        "| data | field | measurements | seconds | best fit | explains the data | certified |",
        "|---|---|--:|--:|---|---|---|",
    ]
    for name, told in known.items():
        one = gallery.entries[name]
        certified = "yes" if told["certified"] else "no"
        columns = [f"{told['points']:,}", f"{told['seconds']:.1f}", told["search"], told["adequacy"], certified]
        rows.append(f"| {one.title} | {one.field} | {' | '.join(columns)} |")
    entries = [entry(gallery, name, told) for name, told in known.items()]
    return gallery.head + "\n".join([*rows, "", *entries])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gallery", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--systems", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--limit", type=float, default=20.0)
    given = parser.parse_args(argv)
    gallery = SYSTEMS_GALLERY if given.systems else PUBLISHED_GALLERY
    known: dict[str, dict[str, Any]] = json.loads(gallery.facts.read_text()) if gallery.facts.exists() else {}
    gallery.figures.mkdir(exist_ok=True)
    warm()
    by_processor()
    with one_thread():
        for name in gallery.entries if given.only is None else given.only:
            known[name] = facts(gallery, name, given.limit)
            print(name, known[name]["seconds"], known[name]["search"], known[name]["adequacy"], flush=True)
            known = {key: known[key] for key in gallery.entries if key in known}
            write_whole(gallery.facts, json.dumps(known, indent=1) + "\n")
    write_whole(gallery.page, page(gallery, known))
    return 0
