"""Report: the results of a run as docs/benchmark.md, with its tables as CSV and its figures beside it.

python -m benchmarks report [--results DIR ...] [--output docs/benchmark.md]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import comparison, cstr, figures, paper, tables
from benchmarks.cells import Cell, Protocol
from benchmarks.comparison import OURS, Results
from benchmarks.methods import METHODS
from benchmarks.pack import PACKED
from benchmarks.store import Result, Store, write_whole
from benchmarks.tables import Table
from odejet import DataError

WIDTH = 120
TIME_LIMIT = "the time limit was reached"
"""What odejet says of a fit that it has given up."""
OUTPUT = Path(__file__).parents[1] / "docs" / "benchmark.md"
SHOWN_RIVAL = ("ess", "ess-sse")
"""Whose paired outcomes are shown by system, as the paper shows those of AMIGO2; the other rivals' are in tables."""


class Document:
    """Text that grows, and the files it refers to."""

    def __init__(self, output: Path) -> None:
        self.output, self.folder = output, output.with_suffix("")
        self.parts: list[str] = []

    def write(self, *texts: str) -> None:
        """Paragraphs, filled to the width of a page unless they are tables or lists."""
        for paragraph in "\n\n".join(texts).strip().split("\n\n"):
            as_it_is = paragraph.lstrip().startswith(("|", "-", "#", "!", "```"))
            self.parts.append(paragraph.strip() if as_it_is else textwrap.fill(" ".join(paragraph.split()), WIDTH))

    def table(self, table: Table, shown: bool = True) -> None:
        write_whole(self.folder / f"{table.name}.csv", table.csv())
        if shown:
            self.parts.append(table.markdown() if table.rows else "None.")

    def figure(self, name: str, text: str, described: str) -> None:
        write_whole(self.folder / f"{name}.svg", text)
        self.parts.append(f"![{described}]({self.folder.name}/{name}.svg)")

    def save(self) -> None:
        write_whole(self.output, "\n\n".join(self.parts) + "\n")


def read(directories: Sequence[Path]) -> tuple[list[Result], dict[str, Any]]:
    """Results of all directories, which must have been made by the same protocol; that, and their budgets."""
    found: dict[tuple[str, Any], Result] = {}
    settings: dict[str, Any] = {}
    for directory in directories:
        store = Store(directory)
        own = store.settings()
        if not own:
            raise DataError(f"there are no results in {directory}; `python -m benchmarks run` makes them")
        if settings and own["protocol"] != settings["protocol"]:
            raise DataError(f"{directory} has data of another protocol than {directories[0]}; report them apart")
        settings = settings or {"protocol": own["protocol"], "budgets": []}
        if own["budget"] not in settings["budgets"]:
            settings["budgets"].append(own["budget"])
        found |= {(result.method, result.cell): result for result in store.load()}
    return list(found.values()), settings


def compose(found: Sequence[Result], settings: dict[str, Any], output: Path, quick: bool = False) -> Document:
    """The whole document; `quick` leaves out what is computed anew."""
    results, document = Results(found, Protocol(**settings["protocol"])), Document(output)
    if OURS not in results.by_method:
        raise DataError("these results have none of odejet's own; run --methods odejet first")
    document.write("# Benchmark", INTRODUCTION)
    _what_was_run(document, results, settings)
    _bars(document, results)
    _all_cells(document, results)
    if results.rivals:
        _rivals(document, results)
    _variants(document, results)
    _seconds(document, results)
    if not quick:
        document.write("## The square systems", TEMPLATES)
        document.table(tables.templates())
        document.write("## CSTR", CSTR, cstr.report(0, results.protocol))
    _draws(document, results, found)
    return document


def _what_was_run(document: Document, results: Results, settings: dict[str, Any]) -> None:
    protocol = settings["protocol"]
    budgets = [f"{b['evaluations']:,} simulations and at most {b['seconds']:g} s" for b in settings["budgets"]]
    document.write(
        "## What was run",
        f"Data: seed {protocol['seed']}, {protocol['points']} points, noise relative to the {protocol['scale']} of "
        f"each output. Budget of every search but odejet: {' or '.join(budgets)} of a processor; simulations count "
        "alike with and without sensitivities (the paper: 200,000 and 600 s).",
    )
    document.write("\n".join(f"- {line}" for line in coverage(results)))


def coverage(results: Results) -> Iterator[str]:
    """Which methods ran on which cells, in words."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for method in results.methods:
        groups.setdefault(tuple(results.cells(method)), []).append(method)
    for own, methods in groups.items():
        trials, names = {cell.trial for cell in own}, {cell.system for cell in own}
        levels = sorted({cell.noise for cell in own})
        regular = len(own) == len(trials) * len(names) * len(levels)
        systems_told = "all 25 systems" if len(names) == 25 else ", ".join(sorted(names))
        each = f"{len(trials)} trial{'s' if len(trials) > 1 else ''} each"
        told = f"{systems_told} at noise {', '.join(f'{n:g}' for n in levels)}, {each}"
        label = "; ".join(comparison.title(method) for method in methods)
        yield f"{label}: {len(own)} cells ({told}{'' if regular else ', not all of them'})"


def _bars(document: Document, results: Results) -> None:
    """What was promised, and whether it holds."""
    document.write("## Against the bars", BARS)
    document.table(tables.bars(results))
    own = results.cells(OURS)
    rate, limit = comparison.success(results.errors(OURS, own), 0.1), results.expected(own, 0.1, weighted=True)
    verdict = tables.verdict(rate - limit + 1)
    document.write(
        f"SR-10 over all is {rate:.1f}, that of a perfect weighted fit on these draws {limit:.1f}: {verdict}."
    )
    if kept := comparison.kept(results):
        document.write(
            f"Of {kept.fits} fits to noisy data {kept.as_good} are as likely as the fit started from the truth, or "
            f"more likely. {kept.certified} are certified, {kept.falsely} of these falsely: less likely than that one."
        )


def _all_cells(document: Document, results: Results) -> None:
    own = [method for method in results.methods if method.startswith(OURS) or METHODS[method].knows_truth]
    document.write("## Success and error", OVERALL)
    document.table(tables.overall(results))
    document.write("### By noise", "SR-10 in percent:")
    document.table(tables.success_by_noise(results, own, None, "success-by-noise"))
    published = list(paper.METHODS)
    main = [name for name in (OURS, f"{OURS}-sse") if name in results.by_method]
    picture = figures.success_by_noise(results, main, published, None, "Success by noise")
    document.figure("success-by-noise", picture, "success by noise")
    document.write("Median worst error in percent:")
    document.table(tables.error_by_noise(results, own, None, "error-by-noise"))
    document.write("### By system at noise 1e-2", BY_SYSTEM)
    shown = [name for name in (OURS, f"{OURS}-sse", *results.rivals) if name in results.by_method]
    document.table(tables.error_by_system(results, shown))


def _rivals(document: Document, results: Results) -> None:
    common = results.common()
    document.write("## Beside other searches", RIVALS.format(count=len(common)))
    if common:
        everyone = comparison.searches(results, common)
        document.table(tables.success_by_noise(results, everyone, common, "success-by-noise-common"))
        document.write("Median worst error in percent on these cells:")
        document.table(tables.error_by_noise(results, everyone, common, "error-by-noise-common"))
        _optima(document, results, common)
    document.write("### Paired outcomes", PAIRED)
    document.table(tables.paired_summary(results))
    for rival in results.rivals:
        document.table(tables.paired(results, rival), shown=rival in SHOWN_RIVAL)
    document.write("### Where odejet is beaten", BEATEN)
    document.table(tables.beaten(results))


def _optima(document: Document, results: Results, common: Sequence[Cell]) -> None:
    """Who ends where, and when: that is the search alone, without the luck of the noise."""
    noisy = [cell for cell in common if cell.noise > 0]
    if noisy:
        document.write("### Optima", OPTIMA)
        document.table(tables.optima(results, noisy))
        document.figure("optima-by-time", figures.optima_by_time(results, noisy), "optima found beside time")


def _variants(document: Document, results: Results) -> None:
    names = [name for name in results.methods if name in (OURS, f"{OURS}-unrefined", f"{OURS}-aaa")]
    if len(names) > 1:
        document.write("## Refinement and derivative estimators", VARIANTS)
        document.table(tables.success_by_noise(results, names, None, "variants"))
        published = ["proposed", *tables.PAPER_VARIANTS]
        picture = figures.success_by_noise(results, names, published, None, "With and without refinement")
        document.figure("variants", picture, "success with and without refinement")


def _seconds(document: Document, results: Results) -> None:
    document.write("## Seconds", SECONDS)
    document.table(tables.timing(results))
    prepare = [r.timing.prepare for r in itertools.chain(*(found.values() for found in results.by_method.values()))]
    if spent := [value for value in prepare if value > 0]:
        median, high = np.quantile(spent, [0.5, 0.9])
        document.write(
            f"What odejet finds once per model and process, before any data, is not in these figures: median "
            f"{median:.2f} s, P90 {high:.1f} s by the clock."
        )
    ours = results.by_method[OURS].values()
    if late := sum(TIME_LIMIT in r.ending for r in ours):
        document.write(
            f"odejet counts what it tries, but gives up after two minutes by the clock: so it did in {late} of "
            f"{len(ours)} cells, where answers may be better on a faster machine."
        )


def _draws(document: Document, results: Results, found: Sequence[Result]) -> None:
    document.write("## Draws that were refused", REFUSED)
    document.table(tables.refused(results))
    beside = tables.apart(found)
    if beside.rows:
        document.write("## The Brusselator of the textbooks", APART)
        document.table(beside)
    endings = Counter(r.ending for r in found if r.error >= 1e6 and not r.method.startswith(f"{OURS}-"))
    if endings:
        lines = [f"- {count} times: {ending}" for ending, count in endings.most_common(8)]
        document.write("## Cells without an answer", "\n".join(lines))


INTRODUCTION = """
How often odejet finds the true values of 25 published systems, beside what the data allow, beside other searches and
beside the paper's own figures, with a list of where it is beaten. The experiment is the paper's: 25 systems, 10
trials, five noise levels, 750 points, true values in [0.1, 0.9], a search in [1e-5, 10]. One trial of one system at
one noise level is a *cell*. It succeeds at SR-X if every quantity that can be known is within X percent; its worst
error is the largest of these, and no answer counts as 1e6. Every table is in a CSV file in the folder of the same name
as this page.

The page is generated by `python -m benchmarks report`, so do not edit it. This repeats all of it, and goes on where it
was stopped:

```
python -m benchmarks run --methods ours oracles --jobs 2
python -m benchmarks run --methods multistart shade ess pypesto de --trials 1 --jobs 2
python -m benchmarks run --methods baselines --trials 1 --noise 0.01 0.0001 --jobs 2
python -m benchmarks run --methods ours --systems apart --jobs 2
python -m benchmarks ceiling
python -m benchmarks pack
python -m benchmarks report
```
"""

BARS = """
What odejet promises: SR-10 at least the paper's at every noise level, and within one point of what a perfect weighted
fit is expected to reach on these draws. The paper's draws are others, and no fit can do better than its draws allow:
*any draws* is what a perfect fit reaches on average, with the standard deviation of a benchmark of ten trials
(`python -m benchmarks ceiling`). SR-10 in percent:
"""

OVERALL = """
The ceiling is the expected SR-10 of a perfect fit with the same loss on the same cells, from the Fisher information
at the truth. The *fit started from the truth* is such a fit on the very data; where the data tell nothing it stays
where it started, which flatters it. A method that ran on fewer cells is to be compared with the last column, odejet's
SR-10 on those cells.
"""

BY_SYSTEM = """
Median worst error in percent, of the cells that each method has; *perfect fit* is the median over the errors that the
Fisher information predicts.
"""

RIVALS = """
All searches use the same compiled simulation with exact sensitivities and the same box, so this compares how they
search, not how their authors' programs simulate. Those marked *unweighted* minimise the sum of squares, the others
the likelihood in which every output has a noise of its own. SR-10 in percent on {count} cells, where a method has all
of them:
"""

OPTIMA = """
Success depends on the noise of a data set, whether its best fit has been found does not. Percent of cells in which a
search ends at the best point that any method with the same loss has found there, the fit from the truth among them;
*best* means half a unit of the log-likelihood, or a thousandth of the sum of squares. A search cannot tell that it has
found the best point and goes on to the end of its budget; in the figure odejet's curve counts until it answers. That
least squares from random starts come close, and are faster where they succeed, is owed to exact sensitivities: they
are a rung of odejet itself.
"""

PAIRED = """
On the cells that both have: who is within 10 percent in all quantities. By system for scatter search, AMIGO2's
method; the paper's column has both/proposed only/AMIGO2 only/neither of its 50 cells.
"""

BEATEN = """
Systems and noise levels where rivals succeed more often than odejet, with their SR-10, or as often and with a median
worst error that is smaller by more than a tenth, with that error in percent. Where the ceiling, the expected SR-10 of
a perfect fit, is near zero, errors are large and their order is luck; with one trial a smaller error may always be.
"""

VARIANTS = """
*Without refinement* is the best algebraic candidate of all shooting times, within the bounds, as it is. *AAA only*
takes derivatives from rational approximations alone, to four standard deviations of the noise that smoothing finds,
also where odejet itself would refuse them. SR-10 in percent:
"""

SECONDS = """
Processor seconds of one data set on one core. A search ends with its budget, so *until found* tells when it had found
the point that it answers with; odejet's seconds are all it takes to answer and to certify. Ratios are medians over
the same cells. The paper's seconds are those of its own machines and programs.
"""

TEMPLATES = """
The highest derivative of an output *h* and the number of equations of the square polynomial system beside the
paper's, and the exact number of its roots at generic data: that is how many paths odejet tracks.
"""

CSTR = """
The paper's controlled example, on this run's first trial (`python -m benchmarks cstr`); the paper's trial has other
true values.
"""

REFUSED = """
Draws whose trajectory blows up or cannot be integrated to 1e-12 are drawn again from the same stream.
"""

APART = """
In the benchmark's scaling, X loses half of what it does in the textbooks, and most draws grow exponentially. The
benchmark keeps it as it was run; this is the textbook's, in none of the figures above.
"""


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks report", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--results", type=Path, nargs="+", default=[PACKED])
    options.add_argument("--output", type=Path, default=OUTPUT)
    options.add_argument("--quick", action="store_true", help="leave out the square systems and the CSTR")
    given = options.parse_args(argv)
    try:
        compose(*read(given.results), given.output, given.quick).save()
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{given.output} and the files in {given.output.with_suffix('')}")
    return 0
