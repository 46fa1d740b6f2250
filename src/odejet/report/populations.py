"""Populations: a population fit as one page that needs nothing else."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator

import numpy as np

from odejet import __version__
from odejet.numerals import short
from odejet.population import PopulationFit
from odejet.population.figures import check
from odejet.report.diagnostics import observed_picture, quantile_picture, residual_picture
from odejet.report.markup import SMALL, gallery, key, left_out, name, section, sentence, soft, table
from odejet.report.panels import Area, Dots, Layer, Line, Panel, Picture, Rule, Stripe, size_of, span
from odejet.report.script import POLICY, SCRIPT
from odejet.report.style import STYLE
from odejet.report.ticks import linear

MOST_SUBJECTS = 64
"""Subjects whose curves and parameters a page shows."""


def page(fit: PopulationFit) -> str:
    """Return the whole report."""
    title = html.escape(fit.asked.model.name)
    body = "\n".join(part for part in _parts(fit) if part)
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}: population fit</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style></head>\n<body><main>\n{body}\n"
        f"<footer>odejet {html.escape(__version__)}, seed {fit.seed}</footer>\n"
        f"</main><script>{SCRIPT}</script></body></html>\n"
    )


def _parts(fit: PopulationFit) -> Iterator[str]:
    outputs = {list(fit.asked.model.outputs).index(output): output for output in fit.asked.noises}
    yield _header(fit)
    yield section("Estimates of the population", _estimates(fit))
    marks = key(
        ("dot", "measurements"),
        ("line", "median measured"),
        ("line rust dashed", "5 % and 95 % measured"),
        ("band", "90 % of simulated medians and percentiles"),
    )
    checks = [_check(fit, number, output) for number, output in outputs.items()]
    yield section("Visual predictive check", marks + gallery(checks))
    more = left_out(len(fit.asked.members) - MOST_SUBJECTS, "fit.plot('individual')", "subjects")
    yield section("Subjects", gallery(_subjects(fit), SMALL) + more)
    yield section("Observed and predicted", gallery(list(_observed(fit, outputs)), SMALL))
    words = "CWRES and NPDE of an adequate model scatter about zero with a standard deviation of one everywhere."
    yield section("Residuals (CWRES and NPDE)", soft(words) + gallery(list(_residuals(fit, outputs)), SMALL))
    yield section("Parameters of subjects", _individuals(fit))
    yield section("Model", f"<pre>{html.escape(repr(fit.asked.model))}</pre>")


def _header(fit: PopulationFit) -> str:
    error = 2 * fit.log_likelihood_error
    known = f" ± {error:.3f}" if math.isfinite(error) else ""
    facts = {
        "subjects": str(len(fit.asked.subjects)),
        "measurements": f"{fit.asked.points:,}",
        "-2 log L": f"{fit.minus_two_log_likelihood:.3f}{known}",
        "AIC": f"{fit.aic:.2f}",
        "BIC": f"{fit.bic:.2f}",
        "BICc": f"{fit.bicc:.2f}",
        "seconds": f"{fit.seconds:.1f}",
    }
    shown = "".join(f"<div><dt>{what}</dt><dd>{value}</dd></div>" for what, value in facts.items())
    answers = [f"best fit: {fit.search.sentence}", f"explains the data: {fit.adequacy.sentence}"]
    if fit.removed:
        answers.append(f"the random effect of {', '.join(fit.removed)} was taken out, since its variance went to zero")
    said = "".join(f"<p>{html.escape(sentence(one))}</p>" for one in answers)
    tone, state = ("good", "certified") if fit.certified else ("fair", "not certified")
    title = f'{html.escape(fit.asked.model.name)} <span class="badge {tone}">{state}</span>'
    return f'<header><h1>{title}</h1>{said}<dl class="facts">{shown}</dl></header>'


def _estimates(fit: PopulationFit) -> str:
    rows = [
        [name(one.name), short(one.value, 4), short(one.stderr, 3), " to ".join(short(end, 4) for end in one.interval)]
        for one in fit.population.values()
    ]
    shrinkage = ", ".join(f"{own} {100 * value + 0.0:.0f} %" for own, value in fit.shrinkage.items())
    heads = ["quantity", "value", "± stderr", f"{100 * fit.level:g} % interval"]
    return table(heads, rows, right=(1, 2, 3)) + soft(f"Shrinkage: {html.escape(shrinkage)}.")


def _individuals(fit: PopulationFit) -> str:
    names = list(next(iter(fit.individuals.values())))
    rows = [
        [
            html.escape(subject),
            *(f"{short(own[one], 4)} ± {short(fit.individuals.sd[subject][one], 2)}" for one in names),
        ]
        for subject, own in list(fit.individuals.items())[:MOST_SUBJECTS]
    ]
    more = left_out(len(fit.individuals) - MOST_SUBJECTS, "fit.individuals", "subjects")
    return table(["subject", *names], rows, right=range(1, len(names) + 1)) + more


# --- pictures ---


def _check(fit: PopulationFit, number: int, output: str) -> Picture:
    """Percentiles 5, 50 and 95 of what was measured, and where simulations of the fit have them."""
    columns = fit.residuals
    own = columns["output"] == number
    times, observed = columns["time"][own], columns["observed"][own]
    middles, seen, expected = check(fit, number)
    layers: list[Layer] = []
    for k, colour in enumerate(("rust", "blue", "rust")):
        layers.append(Area(middles, expected[:, k, 0], expected[:, k, 2], colour, 0.25))
    layers.append(Dots(times, observed, "grey", 0.8 * size_of(len(times))))
    for k, colour in enumerate(("rust", "blue", "rust")):
        layers.append(Line(middles, seen[:, k], colour, dashed=k != 1))
    down = linear(*span(observed, expected[np.isfinite(expected)]), 5)
    panel = Panel(tuple(layers), linear(*span(times, room=0.02), 6), down, 260.0)
    return Picture((panel,), f"visual predictive check of {output}", output[:60], wide=True)


def _subjects(fit: PopulationFit) -> list[Picture]:
    """Measurements of every subject with the curves of its own parameters."""
    found, several = [], len(fit.asked.noises) > 1
    for i, subject in enumerate(fit.asked.members[:MOST_SUBJECTS]):
        mode = fit._design.mode(i)
        for block in subject.blocks:
            times, curve = subject.times[block.positions], mode.predictions[block.rows]
            order = np.argsort(times, kind="stable")
            layers = Line(times[order], curve[order]), Dots(times, block.values, size=size_of(len(times)))
            panel = Panel(layers, linear(*span(times, room=0.02), 3), linear(*span(block.values, curve), 3), 100.0)
            title = f"{block.name} in {subject.name}" if several else subject.name
            found.append(Picture((panel,), f"{block.name} of {subject.name}, measured and fitted", title[:32]))
    return found


def _observed(fit: PopulationFit, outputs: dict[int, str]) -> Iterator[Picture]:
    columns = fit.residuals
    for number, output in outputs.items():
        own = columns["output"] == number
        for which, words in (("typical", "of a typical subject"), ("individual", "of each subject")):
            yield observed_picture(f"{output}, {words}", columns[which][own], columns["observed"][own])


def _residuals(fit: PopulationFit, outputs: dict[int, str]) -> Iterator[Picture]:
    columns = fit.residuals
    for number, output in outputs.items():
        own = columns["output"] == number
        for kind in ("cwres", "npde"):
            values, times = columns[kind][own], columns["time"][own]
            title = f"{kind.upper()} of {output}"
            layers = Stripe(-2, 2), Rule(0), Dots(times, values, size=0.8 * size_of(len(times)))
            across, down = linear(*span(times, room=0.02), 4), linear(*span(values, np.array([-2.0, 2.0])))
            yield Picture((Panel(layers, across, down, 170.0),), f"{title} over time", title[:32])
            yield residual_picture(title, columns["typical"][own], values)
            yield quantile_picture(title, values)
