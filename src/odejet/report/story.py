"""Story: how a fit was found, for those who ask: where it came from, how long it took, what smoothing and the algebra
had to work with, and the candidates."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace

from odejet.errors import DataError, ModelError
from odejet.numerals import duration, moment
from odejet.problem.stretches import stretch
from odejet.report import text
from odejet.report.markup import bars, folded, gallery, key, left_out, name, part, sentence, soft, table
from odejet.report.pictures import cloud_picture, derivative_picture
from odejet.result import Comparison, Fit
from odejet.smooth import Smoothed, fit_series

MOST_DERIVATIVES = 6
"""Series whose derivatives a page shows."""


MOST_FOLLOWED = 10_000
"""Measurements of an experiment whose errors are followed through the algebra, which takes minutes for more."""


def how_it_was_found(fit: Fit, pairs: Sequence[Comparison]) -> str:
    """A section that is folded away."""
    smoothed = _smoothed(fit, pairs[:MOST_DERIVATIVES])
    parts = [
        _way(fit),
        part("Time", bars([(stage, s, duration(s)) for stage, s in fit.stages.items()]) if fit.stages else ""),
    ]
    if fit.candidates is not None and len(fit.candidates.costs):
        words = soft("How far the candidates were from the answer; the better half by misfit is blue.")
        parts.append(part("Candidates", words + gallery([cloud_picture(fit)])))
    parts.append(part("Derivatives", _derivatives(fit, pairs, smoothed)))
    parts.append(part("Error of the raw estimate", _budget(fit, smoothed)))
    return folded("How it was found", "".join(parts))


def _way(fit: Fit) -> str:
    """Where the answer came from, and what was dropped on the way."""
    found = fit.provenance
    told = {
        "rung": found.rung,
        "start": found.start,
        "estimator": found.estimator,
        "shooting times": ", ".join(map(moment, found.times)),
    }
    rows = [[html.escape(what), html.escape(value)] for what, value in told.items() if value]
    rows += [[html.escape(stage), html.escape(text.counts(outcomes))] for stage, outcomes in fit.census.items()]
    return table(["where it came from", "and what became of all that was tried"], rows) if rows else ""


def _derivatives(fit: Fit, pairs: Sequence[Comparison], smoothed: Mapping[tuple[str, str], Smoothed]) -> str:
    if not smoothed:
        return ""
    words = soft(
        "What smoothing finds in the data alone, with the effect of noise on it (two standard deviations), beside the "
        "derivatives of the fitted model."
    )
    marks = key(("line rust", "smoothed data"), ("line dashed", "fitted model"))
    pictures = [derivative_picture(fit, *where, one) for where, one in smoothed.items()]
    return words + marks + gallery(pictures) + left_out(len(pairs) - MOST_DERIVATIVES, "odejet.smooth", "series")


def _smoothed(fit: Fit, pairs: Sequence[Comparison]) -> Mapping[tuple[str, str], Smoothed]:
    """The smoothed series: those of the fit, or, for a fit from a file, found again."""
    found = {}
    for pair in pairs:
        where = pair.experiment, pair.output
        condition = fit.problem.conditions[fit.problem.number(pair.experiment)]
        series = stretch(condition).get(pair.output)
        if series is None or condition.model.is_delayed:
            continue
        try:
            found[where] = fit.smoothed.get(where) or fit_series(series)
        except DataError:
            continue  # too few times for derivatives
    return found


def _budget(fit: Fit, smoothed: Mapping[tuple[str, str], Smoothed]) -> str:
    """Where the raw algebraic estimate has its error from, in an experiment that was smoothed whole."""
    known = {experiment for experiment, _ in smoothed}
    own = next((e.name for e in fit.data.experiments if e.name in known), None)
    if not fit.found or own is None or fit.experiment(own).points > MOST_FOLLOWED:
        return ""
    try:
        budget = replace(fit, smoothed=smoothed).error_budget(experiment=own)
    except (ModelError, DataError):
        return ""
    rows = [[name(label), *map(html.escape, rest)] for label, *rest in budget.table()]
    heads = ["quantity", "value", "error by noise", "error by bias", "refined ± stderr", "the noise comes from"]
    told = "".join(f"<p>{html.escape(sentence(one))}</p>" for one in (budget.sentence, *budget.advice()))
    where = soft(f"At t = {moment(budget.time)}, before refinement, with the fit standing for the truth.")
    return told + table(heads, rows, right=(1, 2, 3, 4)) + where
