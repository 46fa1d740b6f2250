"""Figures: success by noise, what refinement and derivative estimators add, and success beside time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import paper, systems
from benchmarks.cells import Cell
from benchmarks.methods import METHODS
from benchmarks.tables import OURS, Results, at, success, title

_WEIGHTED, _PLAIN = "-", ":"


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
        style = _WEIGHTED if METHODS[method].weighted else _PLAIN
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


def success_by_time(results: Results, chosen: Sequence[Cell]) -> str:
    """SR-10 beside median processor seconds, on the cells that all methods have."""
    figure, axes = _axes()
    for method in [OURS, *results.rivals]:
        spent = np.median([results.by_method[method][cell].timing.processor for cell in chosen])
        rate = success(results.errors(method, chosen), 0.1)
        axes.plot(spent, rate, "o" if METHODS[method].weighted else "s", ms=6)
        axes.annotate(title(method), (spent, rate), textcoords="offset points", xytext=(5, 3), fontsize=7)
    axes.set(xscale="log", xlabel="median processor seconds per data set", ylabel="SR-10 (%)")
    axes.set_title(f"{len(chosen)} cells; circles with the likelihood, squares with the sum of squares", fontsize=9)
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
