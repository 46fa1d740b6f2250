"""Checks: what a page says for and against a fit: the certificate, residuals, measurements to look at, correlations."""

from __future__ import annotations

import html
import math

import numpy as np

from odejet.numerals import moment, short, significant, whole
from odejet.report import text
from odejet.report.markup import left_out, name, sentence, soft, table
from odejet.report.pictures import title
from odejet.result import Fit

MOST_SUSPICIOUS = 20
"""Measurements that a page names one by one."""

MOST_CELLS, MOST_PAIRS = 30, 20
"""Unknowns whose correlations are a matrix; of more of them, the strongest pairs are a table of so many rows."""

NUMBERED = 12
"""Unknowns whose correlations are written into the matrix."""


def certificate(fit: Fit) -> str:
    own = fit.certificate
    rows = [
        [
            name(check.output),
            f"{check.points:,}",
            significant(check.level, 3),
            f"{whole(check.chi_square)} / {whole(check.degrees_of_freedom)}",
            _probability(math.nan if text.from_residuals(check) else check.size_p),
            _probability(check.white_p),
        ]
        for check in own.outputs
    ]
    heads = ["output", "points", "noise level", "χ² / d.o.f.", "P of this size", "P of this pattern"]
    told = soft(
        "Residuals of a fit that is right are as large as the noise and have no pattern in time: both probabilities "
        "are then rarely below 0.01. Where only the residuals tell the noise, their size proves nothing (–)."
    )
    shown = table(heads, rows, right=range(1, 6)) + told if rows else ""
    return shown + _suspicious(fit)


def reasons(fit: Fit) -> str:
    """Why a fit is certified, or why not."""
    every = [*fit.certificate.reasons, *fit.adequacy.advice]
    told = "".join(f"<li>{html.escape(sentence(reason))}</li>" for reason in every)
    return f'<ul class="reasons">{told}</ul>' if told else ""


def _suspicious(fit: Fit) -> str:
    """Measurements to look at, which the plots have rings around."""
    found = sorted(fit.certificate.suspicious, key=lambda one: -abs(one.deviation))
    if not found:
        return ""
    several = len(fit.data.experiments) > 1
    rows = [
        [
            name(title(one.output, one.experiment, several)),
            moment(one.time),
            short(one.value, 6),
            short(abs(one.deviation), 3) if math.isfinite(one.deviation) else "very many",
        ]
        for one in found[:MOST_SUSPICIOUS]
    ]
    heads = ["measurement of", "time", "value", "standard deviations away"]
    words = "<p>These measurements are farther away than normal noise goes; the plots have rings around them.</p>"
    more = left_out(len(found) - MOST_SUSPICIOUS, "fit.certificate.suspicious", "measurements")
    return words + table(heads, rows, right=(1, 2, 3)) + more


def _probability(p: float) -> str:
    if not math.isfinite(p):
        return "–"
    tone = "bad" if p < 1e-3 else "fair" if p < 1e-2 else ""
    shown = f"{p:.2g}" if p >= 1e-3 else f"{p:.0e}" if p > 1e-300 else "0"
    return f'<span class="{tone}">{shown}</span>' if tone else shown


def correlation(fit: Fit) -> str:
    """The correlation of every two estimates: a matrix, or the strongest of very many."""
    count = len(fit.labels)
    if count < 2 or not fit.found:
        return ""
    return _matrix(fit) if count <= MOST_CELLS else _strongest(fit)


def _strongest(fit: Fit) -> str:
    matrix = np.nan_to_num(fit.correlation.values)
    pairs = np.argwhere(np.triu(np.ones(matrix.shape, dtype=bool), 1))
    order = np.argsort([-abs(matrix[i, j]) for i, j in pairs], kind="stable")[:MOST_PAIRS]
    rows = [[name(fit.labels[i]), name(fit.labels[j]), _signed(matrix[i, j])] for i, j in pairs[order]]
    words = soft(f"The {len(rows)} strongest of all; fit.correlation has the others.")
    return words + table(["of", "and", "correlation"], rows, right=(2,))


def _matrix(fit: Fit) -> str:
    """Cells in shades of two colours; empty where the data do not determine one of the two."""
    matrix, labels = fit.correlation.values, fit.labels
    cell = 34 if len(labels) <= NUMBERED else 18
    left = 14 + 6.6 * max(min(len(label), 20) for label in labels)
    parts = []
    for i, label in enumerate(labels):
        shown = html.escape(label if len(label) <= 20 else f"{label[:17]}...")
        middle = cell * (i + 0.5)
        parts.append(f'<text class="tick" x="{left - 8:g}" y="{left + middle + 4:g}" text-anchor="end">{shown}</text>')
        turned = f"translate({left + middle + 4:g} {left - 8:g}) rotate(-90)"
        parts.append(f'<text class="tick" transform="{turned}">{shown}</text>')
        for j in range(len(labels)):
            parts.append(_cell(matrix[i, j], left + cell * j, left + cell * i, cell, i == j))
    size = math.ceil(left + cell * len(labels) + 2)
    described = f'role="img" aria-label="correlations of the estimates" viewBox="0 0 {size} {size}"'
    return f'<figure class="matrix"><svg {described} style="width:{size}px">{"".join(parts)}</svg></figure>'


def _cell(value: float, x: float, y: float, size: float, own: bool) -> str:
    if not np.isfinite(value):
        return (
            f'<rect class="fill grey" fill-opacity=".25" x="{x:g}" y="{y:g}" width="{size - 1}" height="{size - 1}"/>'
        )
    colour = "blue" if value > 0 else "rust"
    box = (
        f'<rect class="fill {colour}" fill-opacity="{0.04 + 0.9 * abs(value):.2f}" x="{x:g}" y="{y:g}" '
        f'width="{size - 1}" height="{size - 1}"/>'
    )
    if own or size < 30:
        return box
    # Dark or light numbers, whichever can be read on the shade: the two themes change over at different ones.
    dress = "tick onto" if abs(value) > 0.82 else "tick between" if abs(value) > 0.62 else "tick over"
    middle = f'x="{x + size / 2:g}" y="{y + size / 2 + 4:g}" text-anchor="middle"'
    return f'{box}<text class="{dress}" {middle}>{_signed(value)}</text>'


def _signed(value: float) -> str:
    shown = {"0.00": "0", "1.00": "1.0"}.get(two := f"{abs(value):.2f}", two.removeprefix("0"))
    return ("−" if value < 0 else "") + shown
