"""Tables: what results mean, in numbers beside the paper's.

Every function takes results of the 25 systems and gives a `Table`, that Markdown and CSV are written from.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks import ceiling, cells, explicit, paper
from benchmarks.cells import Cell
from benchmarks.comparison import OURS, Results, at, outcomes, reached, searches, success, title
from benchmarks.methods import METHODS
from benchmarks.store import Result
from problems import systems

THRESHOLDS = {"SR-1": 0.01, "SR-10": 0.1, "SR-50": 0.5}
SAME = 0.1
"""Medians whose ratio is closer to one than this are the same."""
ROUNDING = 1e-9
"""Relative errors below are those of rounding, which nobody wins by."""

Value = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Rows of values, and how each column is written."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    styles: tuple[Callable[[float], str], ...] = field(default=(), repr=False)

    def markdown(self) -> str:
        lines = [f"| {' | '.join(self.columns)} |", f"|---|{'---:|' * (len(self.columns) - 1)}"]
        return "\n".join([*lines, *(f"| {' | '.join(self._written(row))} |" for row in self.rows)])

    def _written(self, row: Sequence[Value]) -> list[str]:
        styles = self.styles or (lambda value: f"{value:g}",) * len(row)
        return [
            "" if value is None else value if isinstance(value, str) else style(value)
            for value, style in zip(row, styles, strict=True)
        ]

    def csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(
            ["" if value is None else f"{value:.6g}" if isinstance(value, float) else value for value in row]
            for row in self.rows
        )
        return text.getvalue()


def percent(value: float) -> str:
    return f"{value:.1f}"


def whole(value: float) -> str:
    return f"{value:.0f}"


def error(value: float) -> str:
    """A relative error in percent."""
    return "> 1000" if value > 1000 else f"{value:.3g}"


def seconds(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def plain(value: float) -> str:
    return f"{value:g}"


def verdict(margin: float) -> str:
    """Of a promise that holds with a margin, in points."""
    return "met" if margin >= 0 else f"**missed** by {-margin:.1f}"


def bars(results: Results) -> Table:
    """SR-10 beside the paper's, what a perfect fit reaches on these draws, and what on any."""
    rows: list[tuple[Value, ...]] = []
    for noise in systems.protocol().noise:
        own, luck = at(results.cells(OURS), noise), ceiling.luck(noise)
        theirs = paper.by_noise("sr10_by_noise", "proposed", noise)
        if own and theirs is not None:
            ours = success(results.errors(OURS, own), 0.1)
            started = [cell for cell in own if cell in results.by_method.get("truth", {})]
            from_truth = success(results.errors("truth", started), 0.1) if len(started) == len(own) else None
            any_draws = f"{luck.expected:.1f} ± {luck.spread:.1f}" if luck else None
            limit = results.expected(own, 0.1, weighted=True)
            rows.append((noise, ours, theirs, verdict(ours - theirs), limit, from_truth, any_draws))
    columns = "noise", "odejet", "paper", "", "perfect fit, these draws", "fit from the truth", "perfect fit, any draws"
    return Table("bars", columns, tuple(rows), (plain, percent, percent, plain, percent, percent, plain))


# --- the paper's tables ---


def overall(results: Results) -> Table:
    """Success and error over all cells that a method has, and odejet's success on the same."""
    rows: list[tuple[Value, ...]] = []
    for method in results.methods:
        own = results.cells(method)
        errors = results.errors(method, own)
        shared = results.cells(method, OURS)
        ours = success(results.errors(OURS, shared), 0.1) if shared else None
        shares = [success(errors, threshold) for threshold in THRESHOLDS.values()]
        middle, high = 100 * np.quantile(errors, [0.5, 0.9])
        limit = results.expected(own, 0.1, METHODS[method].weighted)
        rows.append((title(method), len(own), *shares, float(middle), float(high), limit, ours))
    for name, label in paper.METHODS.items():
        theirs = paper.tables()["overall"][name]
        rows.append(
            (label, 1250, *(theirs[key] for key in THRESHOLDS), theirs["median_max"], theirs["p90_max"], None, None)
        )
    columns = ("method", "cells", *THRESHOLDS, "median %", "P90 %", "ceiling of SR-10", "odejet's SR-10 there")
    styles = (plain, whole, percent, percent, percent, error, error, percent, percent)
    return Table("overall", columns, tuple(rows), styles)


def success_by_noise(results: Results, methods: Sequence[str], chosen: Sequence[Cell] | None, name: str) -> Table:
    """SR-10 by noise, on given cells or on those of each method, between the ceilings and the paper."""
    levels = systems.protocol().noise
    rows: list[tuple[Value, ...]] = []
    everything = results.cells(OURS) if chosen is None else chosen
    for weighted, label in ((True, "ceiling, weighted"), (False, "ceiling, unweighted")):
        shares = [
            results.expected(part, 0.1, weighted) for part in ([*(at(everything, n) for n in levels), everything])
        ]
        rows.append((label, len(everything), *map(_finite, shares)))
    for method in methods:
        own = results.cells(method) if chosen is None else chosen
        parts = results.parts(method, own, levels)
        shares = [success(results.errors(method, part), 0.1) for part in parts]
        rows.append((title(method), sum(map(len, parts[:-1])), *map(_finite, shares)))
    if chosen is None:
        rows += _paper_by_noise("sr10_by_noise")
    return Table(name, ("method", "cells", *map(plain, levels), "all"), tuple(rows), (plain, whole, *(percent,) * 6))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


PAPER_VARIANTS = {"proposed_no_polish": "paper: without polishing", "aaa_only_no_polish": "paper: AAA only, without"}


def _paper_by_noise(table: str) -> list[tuple[Value, ...]]:
    everything = paper.tables()["overall"]
    rows: list[tuple[Value, ...]] = []
    for name, label in {**paper.METHODS, **PAPER_VARIANTS}.items():
        if name in paper.tables()[table]:
            values = [paper.by_noise(table, name, noise) for noise in systems.protocol().noise]
            total = everything[name]["SR-10"] if name in everything else None
            if name == "proposed_no_polish":
                total = paper.tables()["sr10_no_polish_overall"]
            rows.append((label, 1250, *values, total if table == "sr10_by_noise" else None))
    return rows


def error_by_noise(results: Results, methods: Sequence[str], chosen: Sequence[Cell] | None, name: str) -> Table:
    """Median worst error in percent by noise."""
    levels = systems.protocol().noise
    rows: list[tuple[Value, ...]] = []
    for method in methods:
        own = results.cells(method) if chosen is None else chosen
        parts = results.parts(method, own, levels)[:-1]
        values = [100 * float(np.median(results.errors(method, part))) if part else None for part in parts]
        rows.append((title(method), sum(map(len, parts)), *values))
    if chosen is None:
        rows += [row[:-1] for row in _paper_by_noise("median_max_by_noise")]
    return Table(name, ("method", "cells", *map(plain, levels)), tuple(rows), (plain, whole, *(error,) * 5))


def error_by_system(results: Results, methods: Sequence[str], noise: float = 1e-2) -> Table:
    """Median worst error in percent at high noise by system; that of a perfect fit is its expectation."""
    rows: list[tuple[Value, ...]] = []
    for name in systems.names():
        row: list[Value] = [systems.load(name).title]
        own = [cell for cell in at(results.cells(OURS), noise) if cell.system == name]
        drawn = [noise * ceiling.of_cell(cell, results.protocol).weighted for cell in own]
        row.append(100 * float(np.median(np.concatenate(drawn))) if drawn else None)
        for method in methods:
            mine = [cell for cell in at(results.cells(method), noise) if cell.system == name]
            row.append(100 * float(np.median(results.errors(method, mine))) if mine else None)
        published = [paper.at_high_noise(systems.load(name).title, theirs) for theirs in paper.METHODS]
        row += ["> 1000" if value is None else value for value in published]
        rows.append(tuple(row))
    columns = ("system", "perfect fit", *map(title, methods), *paper.METHODS.values())
    return Table("error-by-system", columns, tuple(rows), (plain, *(error,) * (len(columns) - 1)))


def paired(results: Results, rival: str) -> Table:
    """SR-10 of odejet and a rival on the same cells, by system, where they differ; beside the paper's with AMIGO2."""
    shared = results.cells(OURS, rival)
    rows: list[tuple[Value, ...]] = []
    for name in (*systems.names(), ""):
        own = [cell for cell in shared if name in (cell.system, "")]
        counts = outcomes(results, rival, own)
        published = paper.tables()["sr10_paired_with_amigo2"].get(systems.load(name).title if name else "")
        if not name or counts[1] or counts[2] or (published and own):
            label = systems.load(name).title if name else "all systems"
            rows.append((label, len(own), *counts, "/".join(map(str, published)) if published else None))
    columns = ("system", "cells", "both", "odejet only", f"{title(rival)} only", "neither", "paper: with AMIGO2")
    return Table(f"paired-{rival}", columns, tuple(rows), (plain, *(whole,) * 6))


def paired_summary(results: Results) -> Table:
    """The last row of every paired table."""
    rows = []
    for rival in results.rivals:
        shared = results.cells(OURS, rival)
        rows.append((title(rival), len(shared), *outcomes(results, rival, shared)))
    columns = ("rival", "cells", "both", "odejet only", "rival only", "neither")
    return Table("paired", columns, tuple(rows), (plain, *(whole,) * 5))


def beaten(results: Results) -> Table:
    """Systems and noise levels where rivals succeed more often than odejet, or as often with a smaller median error."""
    rows: list[tuple[Value, ...]] = []
    for name in systems.names():
        for noise in systems.protocol().noise:
            own = [cell for cell in at(results.common(), noise) if cell.system == name]
            if own:
                ours, middle = _rate_and_median(results, OURS, own)
                rivals = [rival for rival in results.rivals if results.has(rival, own)]
                others = {rival: _rate_and_median(results, rival, own) for rival in rivals}
                oftener = [f"{title(rival)} ({rate:.0f})" for rival, (rate, _) in others.items() if rate > ours]
                closer = [
                    f"{title(rival)} ({error(100 * median)})"
                    for rival, (rate, median) in others.items()
                    if rate == ours and median < (1 - SAME) * middle and middle > ROUNDING
                ]
                if oftener or closer:
                    limit = results.expected(own, 0.1, weighted=True)
                    told = ", ".join(oftener), ", ".join(closer)
                    rows.append((systems.load(name).title, noise, len(own), limit, ours, 100 * middle, *told))
    columns = ("system", "noise", "cells", "ceiling", "odejet's SR-10", "its median %", "more success", "less error")
    return Table("beaten", columns, tuple(rows), (plain, plain, whole, percent, percent, error, plain, plain))


def _rate_and_median(results: Results, method: str, chosen: Sequence[Cell]) -> tuple[float, float]:
    errors = results.errors(method, chosen)
    return success(errors, 0.1), float(np.median(errors))


def optima(results: Results, chosen: Sequence[Cell]) -> Table:
    """How often every search ends at the best known point, by noise."""
    levels = [noise for noise in systems.protocol().noise if noise > 0]
    rows: list[tuple[Value, ...]] = []
    for method in searches(results, chosen):
        parts = results.parts(method, chosen, levels)
        shares = [100 * float(np.mean([reached(results, method, cell) for cell in part])) if part else None
                  for part in parts]  # fmt: skip
        rows.append((title(method), sum(map(len, parts[:-1])), *shares))
    return Table(
        "optima", ("method", "cells", *map(plain, levels), "all"), tuple(rows), (plain, whole, *(percent,) * 5)
    )


def timing(results: Results) -> Table:
    """Processor seconds per data set, and how many times odejet's on the same cells."""
    rows: list[tuple[Value, ...]] = []
    for method in results.methods:
        own = [results.by_method[method][cell].timing for cell in results.cells(method)]
        shared = results.cells(OURS, method)
        spent = np.array([one.processor for one in own])
        found = np.array([one.found_at for one in own if math.isfinite(one.found_at)])
        ratios = [_ratio(results, method, cell, "processor") for cell in shared]
        until = [_ratio(results, method, cell, "found_at") for cell in shared]
        rows.append(
            (
                title(method),
                len(own),
                float(np.median(spent)),
                float(np.quantile(spent, 0.95)),
                float(np.median(found)) if len(found) else None,
                _median(ratios),
                _median(until),
            )
        )
    published = {"proposed_no_polish": "paper: without polishing", **paper.METHODS}
    for name, label in published.items():
        rows.append((label, 1250, paper.tables()["median_seconds"][name], None, None, None, None))
    columns = ("method", "cells", "median s", "P95 s", "s until found", "median ratio to odejet", "ratio until found")
    return Table("seconds", columns, tuple(rows), (plain, whole, seconds, seconds, seconds, percent, percent))


def _ratio(results: Results, method: str, cell: Cell, kind: str) -> float:
    """How many times odejet's processor seconds a method takes for the same cell."""
    theirs = getattr(results.by_method[method][cell].timing, kind)
    return theirs / max(results.by_method[OURS][cell].timing.processor, 1e-9)


def _median(values: Iterable[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return float(np.median(finite)) if finite else None


def templates() -> Table:
    """Sizes of the square systems beside the paper's, and the exact generic number of their roots."""
    rows = []
    for name in systems.names():
        system, verdict = explicit.square(name), explicit.verdict_of(name)
        order, equations = explicit.PAPER[name]
        found = (max(verdict.orders.values()), order, system.sizes.equations, equations, verdict.roots)
        rows.append((systems.load(name).title, *found))
    columns = ("system", "h", "paper: h", "equations", "paper: equations", "roots")
    return Table("templates", columns, tuple(rows), (plain, *(whole,) * 5))


def refused(results: Results) -> Table:
    """How many draws of a system were refused before its trials were complete."""
    rows = []
    for name in systems.names():
        trials = sorted(
            {cell.trial for method in results.methods for cell in results.cells(method) if cell.system == name}
        )
        count = sum(cells.draw(name, trial, results.protocol).refused for trial in trials)
        if count:
            rows.append((systems.load(name).title, len(trials), count, 100 * count / (count + len(trials))))
    return Table(
        "refused",
        ("system", "trials", "refused draws", "percent of draws"),
        tuple(rows),
        (plain, whole, whole, percent),
    )


def apart(found: Sequence[Result]) -> Table:
    """Methods on the systems that are reported beside the benchmark."""
    rows = []
    for name in systems.apart():
        for method in METHODS:
            own = [result for result in found if result.method == method and result.cell.system == name]
            if own:
                errors = np.array([result.error for result in own])
                levels = [[r.error for r in own if r.cell.noise == noise] for noise in systems.protocol().noise]
                shares = [success(np.array(level), 0.1) if level else None for level in levels]
                rows.append((f"{systems.load(name).title}: {title(method)}", len(own), *shares, success(errors, 0.1)))
    columns = ("SR-10", "cells", *map(plain, systems.protocol().noise), "all")
    return Table("apart", columns, tuple(rows), (plain, whole, *(percent,) * 6))
