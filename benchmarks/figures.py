"""Figures: success by noise, what refinement and derivative estimators add, and optima found beside time."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import paper
from benchmarks.cells import Cell
from benchmarks.comparison import OURS, Results, at, reached, searches, success, title
from benchmarks.methods import METHODS, PLAIN
from problems import systems

_WEIGHTED, _UNWEIGHTED = "-", ":"


def success_by_noise(results: Results, methods: Sequence[str], published: Sequence[str], chosen: Sequence[Cell] | None,
                     heading: str) -> str:  # fmt: skip
    """SR-10 by noise: ceilings in grey, ours and rivals as lines, the paper's as crosses."""
    figure, axes = _axes()
    levels = systems.protocol().noise
    places = np.arange(len(levels))
    everything = results.cells(OURS) if chosen is None else list(chosen)
    limits = [[results.expected(at(everything, n), 0.1, weighted) for n in levels] for weighted in (True, False)]
    axes.fill_between(places, limits[1], limits[0], color="0.85", label="ceilings: unweighted to weighted")
    for number, method in enumerate(methods):
        own = results.cells(method) if chosen is None else list(chosen)
        shares = [success(results.errors(method, at(own, n)), 0.1) for n in levels]
        style = _WEIGHTED if METHODS[method].weighted else _UNWEIGHTED
        axes.plot(places, shares, style, marker="o", ms=4, color=f"C{number % 10}", label=title(method))
    for number, name in enumerate(published):
        values = [paper.by_noise("sr10_by_noise", name, n) for n in levels]
        known = [(x, y) for x, y in zip(places, values, strict=True) if y is not None]
        axes.plot(*zip(*known, strict=True), "--", marker="x", lw=1, color=f"{0.2 + 0.2 * number:.1f}",
                  label=f"paper: {name.replace('_', ' ')}")  # fmt: skip
    axes.set_xticks(places, [f"{n:g}" for n in levels])
    axes.set(xlabel="noise", ylabel="SR-10 (%)", ylim=(0, 102), title=heading)
    axes.legend(fontsize=7, loc="lower left")
    return _svg(figure)


def optima_by_time(results: Results, chosen: Sequence[Cell]) -> str:
    """The share of cells whose best point a search has found, by processor seconds; odejet's certificate included."""
    figure, axes = _axes()
    families: list[str] = []
    for method in (name for name in searches(results, chosen) if results.has(name, chosen)):
        if (family := method.removesuffix(PLAIN)) not in families:
            families.append(family)
        found = results.by_method[method]
        known = [found[cell].timing for cell in chosen if reached(results, method, cell)]
        tells = [not math.isnan(one.found_at) for one in known]
        times = np.sort([one.found_at if tell else one.processor for one, tell in zip(known, tells, strict=True)])
        shares = 100 * np.arange(1, len(times) + 1) / len(chosen)
        style, color = _WEIGHTED if METHODS[method].weighted else _UNWEIGHTED, f"C{families.index(family)}"
        label = title(method) if all(tells) else f"{title(method)}, until it answers"
        axes.step(times, shares, style, where="post", color=color, label=label)
    axes.set(xscale="log", xlabel="processor seconds until the best point is found", ylabel="cells (%)")
    axes.set(ylim=(0, 102), title=f"Optima by time, {len(chosen)} cells")
    axes.legend(fontsize=7, loc="lower right")
    return _svg(figure)


def _axes() -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "odejet"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.grid(alpha=0.3)
    return figure, axes


def _svg(figure: Any) -> str:
    """As text, the same for the same figure."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
