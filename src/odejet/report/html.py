"""HTML: a fit as one page that needs nothing else, and as a table for notebooks.

The page has its style and pictures inside, no scripts, and forbids itself any request.  Whatever comes from models and
data is escaped.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from odejet import __version__
from odejet.attach import attach
from odejet.errors import DataError, ModelError
from odejet.jets.compilation import now
from odejet.problem.stretches import stretch
from odejet.report import plots, text
from odejet.report.style import POLICY, STYLE
from odejet.report.svg import inline
from odejet.result import Comparison, Estimate, Fit, Prediction
from odejet.smooth import Smoothed, fit_series
from odejet.uncertainty.practical import DETERMINED, UNDETERMINED, Practical
from odejet.uncertainty.profile import Profile

PROFILE_SECONDS = 20.0
"""What the profiles of a page may take together."""

MOST_DERIVATIVES = 12
"""Series whose derivatives a page shows."""

MOST_STATES = 4
"""Experiments whose states a page shows."""

MOST_SUSPICIOUS = 20
"""Measurements that a page names one by one."""

MOST_BESIDE = 12
"""Solutions that stand side by side."""

BESIDE = 10
"""Unknowns whose correlations are readable in half the width of the page."""

_KINDS = {"global": "good", "local": "fair", "none": "bad"}
_VERDICTS = {
    "global": "one value",
    "local": "one of several values",
    "none": "cannot be known",
    "undecided": "one or several values",
}


def page(fit: Fit) -> str:
    """The whole report."""
    name = html.escape(fit.model.name)
    body = "\n".join(part for part in _parts(fit) if part)
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{name}: fit</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style></head>\n<body><main>\n{body}\n"
        f"<footer>odejet {html.escape(__version__)}, seed {fit.seed}, effort {html.escape(fit.effort)}, weights "
        f"{html.escape(fit.weights)}</footer>\n</main></body></html>\n"
    )


def _parts(fit: Fit) -> Iterator[str]:
    pairs = fit.compare() if fit.found else ()
    yield _header(fit)
    yield _section("Estimates", _estimates(fit) + _remarks(fit))
    yield _solutions(fit)
    yield _section("Is the fit right?", _certificate(fit))
    yield _fit_plots(fit, pairs)
    yield _determined(fit)
    smoothed = _smoothed(fit, pairs[:MOST_DERIVATIVES])
    yield _derivative_plots(fit, pairs, smoothed)
    yield _budget(fit, smoothed)
    correlation = _figure(fit, "correlation", "correlations of the estimates") if len(fit.labels) > 1 else ""
    two = [_section("Correlation of the estimates", correlation), _story(fit)]
    yield f'<div class="pair">{"".join(two)}</div>' if len(fit.labels) <= BESIDE else "".join(two)
    if fit.candidates is not None and len(fit.candidates.costs):
        yield _section("Candidates", _figure(fit, "cloud", "candidates of every unknown, relative to the answer"))
    yield _section("Model", f"<pre>{html.escape(_equations(fit))}</pre>")


def _section(title: str, content: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>\n{content}</section>" if content else ""


# --- words ------------------------------------------------------------------------------------------------------------


def _header(fit: Fit) -> str:
    tone = "bad" if not fit.found else "good" if fit.certificate.granted else "fair"
    facts = {
        "unknowns": str(len(fit.labels)),
        "measurements": str(fit.points),
        "experiments": str(len(fit.data.experiments)),
        "chi-square / dof": f"{fit.chi_square:.4g} / {fit.degrees_of_freedom:.4g}",
        "AIC": f"{fit.aic:.5g}",
        "BIC": f"{fit.bic:.5g}",
        "agreeing starts": str(fit.certificate.agreeing or ""),
        "seconds": f"{fit.seconds:.3g}",
    }
    shown = "".join(
        f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in facts.items() if value and "nan" not in value
    )
    # What the badge does not say already.
    said = fit.message == fit.certificate.message or fit.message in text.state(fit)
    message = "" if said else f"<p>{html.escape(_sentence(fit.message))}</p>"
    known = fit.verdict.message if fit.verdict else ""
    verdict = f'<p class="soft">{html.escape(_sentence(known))}</p>' if known else ""
    return (
        f"<header><h1>{html.escape(fit.model.name)}</h1>"
        f'<p><span class="badge {tone}">{text.state(fit)}</span></p>'
        f"{message}{verdict}<dl class='facts'>{shown}</dl></header>"
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith(".") or not words else ".")


def _estimates(fit: Fit) -> str:
    rows = [
        [_name(label), value, error, interval, _verdict(fit, label)]
        for label, value, error, interval, _ in (text.row(fit, label) for label in fit.labels)
    ]
    return _table(["quantity", "value", "± stderr", "95 % interval", "can it be known?"], rows, right=(1, 2, 3))


def _name(label: str) -> str:
    return f"<code>{html.escape(label)}</code>"


def _verdict(fit: Fit, label: str) -> str:
    kind = fit.kind(label)
    words = (
        [f'<span class="{_KINDS.get(kind, "soft")}">{_VERDICTS.get(kind, html.escape(kind))}</span>'] if kind else []
    )
    if label in fit.undetermined and kind != "none":
        words.append('<span class="bad">not determined by the data</span>')
    if fit.at_bound(label):
        words.append('<span class="fair">at its bound</span>')
    if label not in fit.undetermined and text.anywhere(fit, label):
        words.append('<span class="bad">anywhere in its bounds</span>')
    if label in _doubts(fit):
        words.append(f'<span class="fair">interval {html.escape(_doubts(fit)[label])}</span>')
    return ", ".join(words)


def _doubts(fit: Fit) -> Mapping[str, str]:
    """Intervals by curvature that are not to be trusted."""
    try:
        return fit.doubts
    except (ModelError, DataError):  # a file may hold values with which nothing can be simulated
        return {}


def _remarks(fit: Fit) -> str:
    """What the table cannot say: combinations, and quantities that move together."""
    remarks = []
    if fit.verdict and fit.verdict.combinations:
        remarks.append("Known in combination: " + ", ".join(map(_name, fit.verdict.combinations)) + ".")
    if fit.verdict and fit.verdict.fix:
        known = ", ".join(map(_name, fit.verdict.fix))
        remarks.append(f"Give a value to {known}, and every other quantity can be known.")
    if fit.found and fit.undetermined:
        free = ", ".join(map(_name, fit.undetermined))
        remarks.append(f"Other values of {free} give the same outputs: what the table says of them is one choice.")
    return "".join(f"<p>{remark}</p>" for remark in remarks)


def _determined(fit: Fit) -> str:
    """What the data determine: profile intervals, combinations, and the profiles themselves."""
    if not fit.found or fit.weights != "likelihood":
        return ""
    try:
        found, profiles = _profiled(fit)
    except (ModelError, DataError):  # a file may hold values with which nothing can be simulated
        return ""
    rows = []
    for label, one in found.findings.items():
        own = profiles.get(label)
        value = text.roughly(one.value) if one.kind == UNDETERMINED else f"{one.value:.4g}"
        interval = _shown(own.interval(), own.open) if own is not None else html.escape(one.shown)
        tone = {DETERMINED: "good", UNDETERMINED: "bad"}.get(one.kind, "fair")
        note = f" {html.escape(own.note)}" if own is not None and own.note else ""
        rows.append([_name(label), value, interval, f'<span class="{tone}">{one.kind}</span>{note}'])
    table = _table(["quantity", "value", "95 % profile interval", "by these data"], rows, right=(1, 2))
    named = "".join(
        f"<li>{_name(one.label)} = {one.value:.4g}, 95 % interval {html.escape(one.shown)}</li>"
        for one in found.compounds
    )
    if named:
        named = f"<p>Though single quantities are loose, the data determine</p><ul>{named}</ul>"
    elif len(found.determined) < len(found.findings):
        named = "<p>No product of powers of the loose quantities was found that the data determine.</p>"
    words = (
        '<p class="soft">How much worse the data are explained when one quantity is held and all others are at their '
        "best; the interval holds what stays below the line.</p>"
    )
    drawn = ""
    if profiles:
        described = "deviance along every quantity"
        drawn = (
            f"{words}<figure>{inline(plots.profile_figure(list(profiles.values())), 'profile-', described)}</figure>"
        )
    more = _left_out(len(found.findings) - len(profiles), "fit.profile(name)", "quantities")
    return _section("What the data determine", named + table + drawn + more)


def _profiled(fit: Fit) -> tuple[Practical, dict[str, Profile]]:
    """What is determined, and the profiles of as many unknowns as time allows."""
    began = now()
    found = fit.practical
    profiles = dict(found.profiles)
    for label in fit.labels[: plots.MOST_PANELS]:
        if label not in profiles and now() - began < PROFILE_SECONDS:
            profiles[label] = fit.profile(label)
    return found, {label: profiles[label] for label in fit.labels if label in profiles}


def _shown(interval: tuple[float, float], opened: tuple[bool, bool]) -> str:
    low, high = (f"{end:.4g}" for end in interval)
    if all(opened):
        return "any value"
    return f"below {high}" if opened[0] else f"above {low}" if opened[1] else f"[{low}, {high}]"


def _budget(fit: Fit, smoothed: Mapping[tuple[str, str], Smoothed]) -> str:
    """Where the raw algebraic estimate has its error from, in an experiment that was smoothed whole."""
    known = {experiment for experiment, _ in smoothed}
    own = next((e.name for e in fit.data.experiments if e.name in known), None)
    if not fit.found or own is None:
        return ""
    try:
        budget = replace(fit, smoothed=smoothed).error_budget(experiment=own)
    except (ModelError, DataError):
        return ""
    rows = [[_name(label), *map(html.escape, rest)] for label, *rest in budget.table()]
    heads = ["quantity", "value", "error by noise", "error by bias", "refined ± stderr", "the noise comes from"]
    told = "".join(f"<p>{html.escape(_sentence(one))}</p>" for one in (budget.sentence, *budget.advice()))
    where = f"<p class='soft'>At t = {budget.time:.4g}, before refinement, with the fit standing for the truth.</p>"
    return _section("Error of the raw estimate", told + _table(heads, rows, right=(1, 2, 3, 4)) + where)


def _solutions(fit: Fit) -> str:
    """All equally good solutions side by side, and those nearly as good."""
    words = f"{len(fit.solutions)} sets of values explain the data equally well."
    found = _side_by_side(fit, "solution", fit.solutions, words) if len(fit.solutions) > 1 else ""
    if fit.rivals:
        words = "Other optima are nearly as likely, and no interval around the best one has them."
        found += _side_by_side(fit, "rival", fit.rivals, words)
    return _section("All solutions", found)


def _side_by_side(fit: Fit, what: str, estimates: Sequence[Estimate], words: str) -> str:
    shown = estimates[:MOST_BESIDE]
    rows = []
    for unknown, label in zip(fit.unknowns, fit.labels, strict=True):
        rows.append([_name(label), *(f"{one.value(unknown):.6g}" for one in shown)])
    rows.append(["misfit", *(f"{one.cost:.6g}" for one in shown)])
    rows.append(["within bounds", *("yes" if one.inside_bounds else "no" for one in shown)])
    heads = ["quantity", *(f"{what} {i + 1}" for i in range(len(shown)))]
    more = _left_out(len(estimates) - MOST_BESIDE, f"fit.{what}s", f"{what}s")
    return f"<p>{words}</p>{_table(heads, rows, right=range(1, len(heads)))}{more}"


def _certificate(fit: Fit) -> str:
    certificate = fit.certificate
    reasons = "".join(f"<li>{html.escape(_sentence(reason))}</li>" for reason in certificate.reasons)
    tone, word = ("good", "Certified") if certificate.granted else ("fair", "Not certified")
    rows = [
        [
            _name(check.output),
            str(check.points),
            f"{check.level:.3g}",
            f"{check.chi_square:.4g} / {check.degrees_of_freedom:.4g}",
            _probability(math.nan if text.from_residuals(check) else check.size_p),
            _probability(check.white_p),
        ]
        for check in certificate.outputs
    ]
    heads = [
        "output",
        "points",
        "noise level",
        "chi-square / degrees of freedom",
        "P of this size",
        "P of this autocorrelation",
    ]
    told = (
        '<p class="soft">Residuals of a fit that is right are as large as the noise and not autocorrelated: both '
        "probabilities are then rarely below 0.01. Where only the residuals tell the noise, their size proves "
        "nothing (–).</p>"
    )
    table = _table(heads, rows, right=range(1, 6)) + told if rows else ""
    return f'<p><b class="{tone}">{word}</b></p><ul>{reasons}</ul>{table}{_suspicious(fit)}'


def _suspicious(fit: Fit) -> str:
    """Measurements to look at, which the plots have rings around."""
    found = sorted(fit.certificate.suspicious, key=lambda one: -abs(one.deviation))
    if not found:
        return ""
    several = len(fit.data.experiments) > 1
    rows = [
        [
            _name(plots.title(one.output, one.experiment, several)),
            f"{one.time:.6g}",
            f"{one.value:.6g}",
            f"{abs(one.deviation):.3g}" if math.isfinite(one.deviation) else "very many",
        ]
        for one in found[:MOST_SUSPICIOUS]
    ]
    heads = ["measurement of", "time", "value", "standard deviations away"]
    words = "<p>These measurements are farther away than normal noise goes; the plots have rings around them.</p>"
    more = _left_out(len(found) - MOST_SUSPICIOUS, "fit.certificate.suspicious", "measurements")
    return words + _table(heads, rows, right=(1, 2, 3)) + more


def _probability(p: float) -> str:
    if not math.isfinite(p):
        return "–"
    tone = "bad" if p < 1e-3 else "fair" if p < 1e-2 else ""
    shown = f"{p:.2g}" if p >= 1e-3 else f"{p:.0e}" if p > 1e-300 else "0"
    return f'<span class="{tone}">{shown}</span>' if tone else shown


def _story(fit: Fit) -> str:
    """Where the answer came from, what was dropped on the way, and how long it took."""
    found = fit.provenance
    told = {
        "rung": found.rung,
        "start": found.start,
        "estimator": found.estimator,
        "shooting times": ", ".join(f"{t:.5g}" for t in found.times),
    }
    rows = [[html.escape(key), html.escape(value)] for key, value in told.items() if value]
    rows += [[html.escape(stage), html.escape(text.counts(outcomes))] for stage, outcomes in fit.census.items()]
    story = _table(["where it came from", ""], rows) if rows else ""
    timings = _figure(fit, "timing", "seconds per stage") if fit.stages else ""
    return _section("How it was found", story + timings)


def _equations(fit: Fit) -> str:
    return repr(fit.model)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table of cells that are HTML already; columns `right` hold numbers, and empty ones are left out."""
    kept = [i for i in range(len(heads)) if i == 0 or any(row[i] for row in rows)]
    tags = {i: ' class="number"' if i in right else ' class="name"' for i in kept}
    head = "".join(f"<th{tags[i]}>{html.escape(heads[i])}</th>" for i in kept)
    body = "".join("<tr>" + "".join(f"<td{tags[i]}>{row[i]}</td>" for i in kept) + "</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


# --- pictures ---------------------------------------------------------------------------------------------------------

_FIGURES = {
    "correlation": plots.correlation_figure,
    "cloud": plots.cloud_figure,
    "timing": plots.timing_figure,
}


def _figure(fit: Fit, kind: str, description: str) -> str:
    return f"<figure>{inline(_FIGURES[kind](fit), f'{kind}-', description)}</figure>"


def _fit_plots(fit: Fit, pairs: Sequence[Comparison]) -> str:
    shown, several = pairs[: plots.MOST_PANELS], len(fit.data.experiments) > 1
    if not shown:
        return ""
    width = plots.NARROW if len(shown) > 1 else plots.WIDE
    curves = plots.curves(fit, shown, states=True)
    figures = []
    for i, pair in enumerate(shown):
        drawn = plots.series_figure(pair, curves[pair.experiment], several, width)
        figures.append(f"<figure>{inline(drawn, f'fit{i}-', _described(fit, pair))}</figure>")
    more = _left_out(len(pairs) - len(shown), "fit.plot()")
    words = (
        '<p class="soft">The dark band holds the true curve with a probability of 95 % at each time, the light one a '
        "new measurement. Residuals are in units of the noise; their band is two of them.</p>"
    )
    known = {name: one for name, one in curves.items() if isinstance(one, Prediction)}
    told = f'{words}<div class="plots">{"".join(figures)}</div>{more}'
    return _section("Fit and data", told) + _state_plots(known)


def _state_plots(curves: Mapping[str, Prediction]) -> str:
    """The states of some experiments with their bands."""
    figures = []
    for i, (name, one) in enumerate(list(curves.items())[:MOST_STATES]):
        drawn = plots.band_figure([(band, None) for band in one.states.values()], one.level)
        caption = f"<figcaption>{html.escape(name)}</figcaption>" if len(curves) > 1 else ""
        figures.append(f"<figure>{inline(drawn, f'state{i}-', f'states in {name}')}{caption}</figure>")
    more = _left_out(len(curves) - MOST_STATES, "fit.predict(experiment=name).plot()", "experiments")
    return _section("States", "".join(figures) + more) if figures else ""


def _derivative_plots(fit: Fit, pairs: Sequence[Comparison], smoothed: Mapping[tuple[str, str], Smoothed]) -> str:
    width = plots.NARROW if len(smoothed) > 1 else plots.WIDE
    figures = []
    for i, ((experiment, output), one) in enumerate(smoothed.items()):
        drawn = plots.derivative_figure(fit, experiment, output, one, width=width)
        described = f"derivatives of {output} in {experiment}"
        figures.append(f"<figure>{inline(drawn, f'jet{i}-', described)}</figure>")
    if not figures:
        return ""
    words = (
        '<p class="soft">What smoothing finds in the data alone, with the effect of noise on it (two standard '
        "deviations), beside the derivatives of the fitted model.</p>"
    )
    more = _left_out(len(pairs) - MOST_DERIVATIVES, "odejet.smooth")
    return _section("Derivatives", f'{words}<div class="plots">{"".join(figures)}</div>{more}')


def _smoothed(fit: Fit, pairs: Sequence[Comparison]) -> Mapping[tuple[str, str], Smoothed]:
    """The smoothed series: those of the fit, or, for a fit from a file, found again."""
    found = {}
    for pair in pairs:
        key = pair.experiment, pair.output
        series = stretch(fit.problem.conditions[fit.problem.number(pair.experiment)]).get(pair.output)
        if series is None:
            continue
        try:
            found[key] = fit.smoothed.get(key) or fit_series(series)
        except DataError:
            continue  # too few times for derivatives
    return found


def _left_out(count: int, where: str, what: str = "series") -> str:
    return f'<p class="soft">{count} more {what} are not shown here; see <code>{where}</code>.</p>' if count > 0 else ""


def _described(fit: Fit, pair: Comparison) -> str:
    return f"fit, data and residuals of {plots.title(pair.output, pair.experiment, len(fit.data.experiments) > 1)}"


# --- notebooks --------------------------------------------------------------------------------------------------------


@attach(Fit._repr_html_)
def fragment(fit: Fit) -> str:
    """The table of estimates with what is to be known of it, for notebooks."""
    heads = "".join(f'<th style="text-align:left">{html.escape(head)}</th>' for head in text.HEAD)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{"right" if i in (1, 2) else "left"}">{html.escape(cell)}</td>'
            for i, cell in enumerate(text.row(fit, label))
        )
        + "</tr>"
        for label in fit.labels[: text.MAX_ROWS]
    )
    more = len(fit.labels) - text.MAX_ROWS
    notes = [f"{key}: {value}" for key, value in text.notes(fit).items()]
    notes += [f"and {more} more unknowns"] if more > 0 else []
    under = "<br>".join(map(html.escape, notes))
    return f"<table><caption>{html.escape(text.headline(fit))}</caption><tr>{heads}</tr>{rows}</table><p>{under}</p>"
