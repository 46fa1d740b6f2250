"""Posterior: draws as pictures, as a table for notebooks and as a page.

Densities are histograms smoothed by a kernel of the width that Silverman's rule gives; the interval by curvature is
shown beside that of the draws where the fit is at hand.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping

import numpy as np

from odejet import __version__
from odejet.attach import attach
from odejet.errors import ModelError
from odejet.report.markup import SMALL, gallery, section, sentence, soft, table
from odejet.report.panels import Area, Dots, Layer, Line, Panel, Picture, Rule, Stripe, size_of, span
from odejet.report.script import POLICY, SCRIPT
from odejet.report.style import STYLE
from odejet.report.ticks import linear
from odejet.result import Fit
from odejet.uncertainty.posterior import Posterior

CORRELATED = 0.5
"""Of ranks: from this on a pair of unknowns is shown."""

MOST_PAIRS, MOST_DENSITIES = 12, 40
"""Pictures that are shown."""

SHOWN = 600
"""Draws in the picture of a pair."""

GRID = 120

Intervals = Mapping[str, Mapping[str, tuple[float, float]]]
"""By label and method: intervals to compare with."""


def compared_intervals(fit: Fit) -> Intervals:
    """Return the intervals of a fit by curvature and by profile, where there are any."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for label in fit.labels:
        own = {}
        for method, asked in (("curvature", fit.interval), ("profile", lambda name: fit.profile(name).interval())):
            try:
                low, high = asked(label)
            except ModelError:  # what cannot be followed has none
                continue
            own[method] = (float(low), float(high))
        found[label] = own
    return found


def pictures(posterior: Posterior, intervals: Intervals | None = None) -> list[Picture]:
    """Densities, then pairs of what is correlated, then bands of outputs."""
    return [*densities(posterior, intervals), *pairs(posterior), *bands(posterior)]


def densities(posterior: Posterior, intervals: Intervals | None = None) -> list[Picture]:
    found = []
    for label in posterior.labels[:MOST_DENSITIES]:
        found.append(_density(label, posterior[label].ravel(), posterior.interval(label), (intervals or {}).get(label)))
    return found


def _density(
    label: str, draws: np.ndarray, interval: tuple[float, float], others: Mapping[str, tuple[float, float]] | None
) -> Picture:
    low, high = np.quantile(draws, [0.001, 0.999])
    x = np.linspace(*span(np.array([low, high]), room=0.1), GRID)
    y = _kernel(draws, x)
    layers: list[Layer] = [Stripe(*interval, vertical=True), Area(x, np.zeros_like(x), y), Line(x, y)]
    layers.append(Rule(float(np.median(draws)), vertical=True))
    colours = {"curvature": "rust", "profile": "grey"}
    for method, ends in (others or {}).items():
        layers += [
            Rule(end, vertical=True, colour=colours.get(method, "ink"), dashed=True)
            for end in ends
            if x[0] <= end <= x[-1]
        ]
    top = float(y.max()) or 1.0
    panel = Panel(tuple(layers), linear(float(x[0]), float(x[-1]), 3), linear(0.0, 1.08 * top, 3), 104)
    return Picture((panel,), f"density of {label}", label[:32], label="")


def _kernel(draws: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A kernel estimate of the density on a grid, from a histogram."""
    step = x[1] - x[0]
    counts, _ = np.histogram(draws, bins=np.append(x - step / 2, x[-1] + step / 2))
    spread = min(float(draws.std()), float(np.subtract(*np.quantile(draws, [0.75, 0.25]))) / 1.34) or step
    width = max(0.9 * spread * len(draws) ** -0.2 / step, 0.5)
    kernel = np.exp(-0.5 * (np.arange(-GRID, GRID + 1) / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum())[GRID : GRID + len(counts)]
    return np.asarray(smooth / (len(draws) * step))


def pairs(posterior: Posterior) -> list[Picture]:
    """Draws of pairs of unknowns whose ranks are correlated, the most correlated first."""
    draws = posterior.draws
    if draws.shape[1] < 2 or len(draws) < 3:
        return []
    ranks = draws.argsort(axis=0).argsort(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = np.nan_to_num(np.atleast_2d(np.corrcoef(ranks.T)))
    places = [(i, j) for i in range(len(ranks.T)) for j in range(i) if abs(correlations[i, j]) >= CORRELATED]
    places.sort(key=lambda pair: -abs(correlations[pair]))
    chosen = draws[np.linspace(0, len(draws) - 1, min(SHOWN, len(draws))).astype(int)]
    found = []
    for i, j in places[:MOST_PAIRS]:
        x, y = chosen[:, j], chosen[:, i]
        panel = Panel((Dots(x, y, "blue", 3.0),), linear(*span(x), 3), linear(*span(y), 4), 150)
        first, second = posterior.labels[j], posterior.labels[i]
        words = f"{second} against {first}, rank correlation {correlations[i, j]:.2f}"
        found.append(Picture((panel,), words, second[:32], label=first[:32]))
    return found


def bands(posterior: Posterior) -> list[Picture]:
    """Outputs with the bands of the curve and of new measurements, and what was measured."""
    found = []
    several = len(posterior.problem.experiments) > 1
    for experiment in posterior.problem.experiments:
        for name, series in experiment.outputs.items():
            rows = posterior.replicated(name, experiment.name)
            order = np.argsort(series.times, kind="stable")
            times = series.times[order]
            low, high = (np.asarray(np.nanquantile(rows, p, axis=0))[order] for p in (0.025, 0.975))
            middle = np.nanmedian(rows, axis=0)[order]
            layers = (
                Area(times, low, high, opacity=0.2),
                Line(times, middle),
                Dots(series.times, series.values, size=size_of(len(times))),
            )
            panel = Panel(layers, linear(*span(times, room=0.02)), linear(*span(series.values, low, high)), 120)
            title = f"{name} in {experiment.name}" if several else name
            found.append(Picture((panel,), f"{title}: measurements and 95 % of replicates", title[:60]))
    return found


# --- words ---


HEADS = ("unknown", "mean", "sd", "2.5 %", "median", "97.5 %", "R-hat", "ESS bulk", "ESS tail", "MCSE")


@attach(Posterior._repr_html_)
def fragment(posterior: Posterior) -> str:
    """The table of all unknowns with what is said of the draws, for notebooks."""
    return f"<p>{html.escape(posterior.headline)}</p>{_table(posterior)}{_said(posterior)}"


def _table(posterior: Posterior) -> str:
    rows = [
        [html.escape(label), *(f"{own[head]:.4g}" for head in HEADS[1:])] for label, own in posterior.statistics.items()
    ]
    return table(HEADS, rows, right=range(1, len(HEADS)))


def _said(posterior: Posterior) -> str:
    lines = "".join(f"<li>{html.escape(sentence(one))}</li>" for one in posterior.warnings)
    return f"<ul>{lines}</ul>" if lines else soft("All chains agree.")


def page(posterior: Posterior, intervals: Intervals | None = None) -> str:
    """The report of draws, as one page that needs nothing else."""
    name = html.escape(posterior.problem.model.name)
    body = "\n".join(_parts(posterior, name, intervals))
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{name}: posterior</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style></head>\n<body><main>\n{body}\n"
        f"<footer>odejet {html.escape(__version__)}, seed {posterior.seed}</footer>\n"
        f"</main><script>{SCRIPT}</script></body></html>\n"
    )


def _parts(posterior: Posterior, name: str, intervals: Intervals | None) -> Iterator[str]:
    tone, state = ("good", "chains agree") if posterior.success else ("fair", "not to be trusted as it is")
    yield f'<header><h1>{name} <span class="badge {tone}">{state}</span></h1>{_said(posterior)}</header>'
    yield section("Posterior", soft(html.escape(posterior.headline)) + _table(posterior))
    words = "Shaded: 95 % of the draws." + (
        " Dashed: intervals by curvature (rust) and by profile (grey)." if intervals else ""
    )
    yield section("Densities", soft(words) + gallery(densities(posterior, intervals), SMALL))
    yield section("What is correlated", gallery(pairs(posterior), SMALL))
    yield section("Predictions", soft("95 % of replicates, and what was measured.") + gallery(bands(posterior)))
    if intervals:
        yield section("Intervals beside each other", _beside(posterior, intervals))


def _beside(posterior: Posterior, intervals: Intervals) -> str:
    methods = list(dict.fromkeys(method for own in intervals.values() for method in own))
    rows = []
    for label in posterior.labels:
        own = {"draws": posterior.interval(label), **intervals.get(label, {})}
        rows.append(
            [
                html.escape(label),
                *(f"{own[m][0]:.4g} to {own[m][1]:.4g}" if m in own else "" for m in ("draws", *methods)),
            ]
        )
    return table(["unknown", "draws", *methods], rows)
