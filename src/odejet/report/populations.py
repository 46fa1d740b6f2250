"""Populations: a population fit as one page that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator

from odejet import __version__
from odejet.numerals import short
from odejet.population import PopulationFit
from odejet.report.markup import section, sentence
from odejet.report.script import POLICY
from odejet.report.style import STYLE

FIGURES = {
    "vpc": "Visual predictive check",
    "individual": "Subjects",
    "observed-predicted": "Observed and predicted",
    "residuals": "Residuals (CWRES and NPDE)",
}


def page(fit: PopulationFit) -> str:
    """Return the whole report."""
    name = html.escape(fit.asked.model.name)
    body = "\n".join(_parts(fit))
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{name}: population fit</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style></head>\n<body><main>\n{body}\n"
        f"<footer>odejet {html.escape(__version__)}, seed {fit.seed}</footer>\n</main></body></html>\n"
    )


def _parts(fit: PopulationFit) -> Iterator[str]:
    yield _header(fit)
    yield section("Estimates of the population", _estimates(fit))
    yield from (section(title, _figure(fit, kind)) for kind, title in FIGURES.items())
    yield section("Parameters of subjects", _individuals(fit))
    yield section("Model", f"<pre>{html.escape(repr(fit.asked.model))}</pre>")


def _header(fit: PopulationFit) -> str:
    facts = {
        "subjects": str(len(fit.asked.subjects)),
        "measurements": f"{fit.asked.points:,}",
        "-2 log L": f"{fit.minus_two_log_likelihood:.3f} ± {2 * fit.log_likelihood_error:.3f}",
        "AIC": f"{fit.aic:.2f}",
        "BIC": f"{fit.bic:.2f}",
        "BICc": f"{fit.bicc:.2f}",
        "seconds": f"{fit.seconds:.1f}",
    }
    shown = "".join(f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in facts.items())
    answers = [f"best fit: {fit.search.sentence}", f"explains the data: {fit.adequacy.sentence}"]
    if fit.removed:
        answers.append(f"the random effect of {', '.join(fit.removed)} was taken out, since its variance went to zero")
    said = "".join(f"<p>{html.escape(sentence(one))}</p>" for one in answers)
    return f"<header><h1>{html.escape(fit.asked.model.name)}</h1>{said}<dl>{shown}</dl></header>"


def _estimates(fit: PopulationFit) -> str:
    rows = [
        [one.name, short(one.value, 4), short(one.stderr, 3), *(short(end, 4) for end in one.interval)]
        for one in fit.population.values()
    ]
    shrinkage = ", ".join(f"{name} {100 * value:.0f} %" for name, value in fit.shrinkage.items())
    return _table(["", "value", "stderr", "low", "high"], rows) + f"<p>Shrinkage: {html.escape(shrinkage)}.</p>"


def _individuals(fit: PopulationFit) -> str:
    names = list(next(iter(fit.individuals.values())))
    rows = [
        [subject, *(f"{short(own[name], 4)} ± {short(fit.individuals.sd[subject][name], 2)}" for name in names)]
        for subject, own in fit.individuals.items()
    ]
    return _table(["subject", *names], rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _figure(fit: PopulationFit, kind: str) -> str:
    buffer = io.BytesIO()
    fit.plot(kind).savefig(buffer, format="png", dpi=110)
    return f'<img alt="{kind}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
