"""HTML: a fit as one page that needs nothing else, and as a table for notebooks.

The page has its style and pictures inside and forbids itself any request.  Its only script, which lets one save
pictures, is named by its hash: no other can run.
"""

from __future__ import annotations

import html
from collections.abc import Iterator

from odejet import __version__
from odejet.attach import attach
from odejet.report import answer, checks, course, story, text
from odejet.report.markup import section, sentence
from odejet.report.script import POLICY, SCRIPT
from odejet.report.style import STYLE
from odejet.result import Fit


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
        f"{html.escape(fit.weights)}</footer>\n</main><script>{SCRIPT}</script></body></html>\n"
    )


def _parts(fit: Fit) -> Iterator[str]:
    pairs = fit.compare() if fit.found else ()
    known = answer.known(fit)
    courses = course.courses(fit, pairs, known.doubts)
    yield _header(fit)
    yield section("Estimates", answer.estimates(fit, known))
    yield section("All solutions", answer.solutions(fit))
    yield course.fit_and_data(fit, pairs, courses)
    yield section("Is the fit right?", checks.certificate(fit))
    yield course.diagnostics(pairs)
    yield course.states(courses)
    yield section("What the data determine", answer.determined(fit, known))
    yield section("Correlation of the estimates", checks.correlation(fit))
    yield section("Model", f"<pre>{html.escape(repr(fit.model))}</pre>")
    yield story.how_it_was_found(fit, pairs)


def _header(fit: Fit) -> str:
    tone = "bad" if not fit.found else "good" if fit.certificate.granted else "fair"
    shown = "".join(f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in text.facts(fit).items())
    # What the badge does not say already.
    said = fit.message == fit.certificate.message or fit.message in text.state(fit)
    message = "" if said else f"<p>{html.escape(sentence(fit.message))}</p>"
    known = fit.verdict.message if fit.verdict else ""
    verdict = f'<p class="soft">With perfect data: {html.escape(sentence(known, False))}</p>' if known else ""
    return (
        f'<header><h1>{html.escape(fit.model.name)} <span class="badge {tone}">{text.state(fit)}</span></h1>'
        f"{checks.reasons(fit)}{message}{verdict}<dl class='facts'>{shown}</dl></header>"
    )


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
        for label in text.ordered(fit)[: text.MAX_ROWS]
    )
    more = len(fit.labels) - text.MAX_ROWS
    notes = [f"{key}: {value}" for key, value in text.notes(fit).items()]
    notes += [f"and {more} more unknowns"] if more > 0 else []
    under = "<br>".join(map(html.escape, notes))
    return f"<table><caption>{html.escape(text.headline(fit))}</caption><tr>{heads}</tr>{rows}</table><p>{under}</p>"
