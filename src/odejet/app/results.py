"""Results: a fit as the page shows it, and fits beside each other, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from odejet.app.views import MOST_PANELS, times_of
from odejet.errors import DataError, ModelError
from odejet.numerals import measured, significant
from odejet.report import text
from odejet.result import Fit, compare

BANDED = 16
"""Experiments whose curves have bands on the page."""

MOST_SOLUTIONS = 8
"""Equally good sets of values that stand side by side."""


def result(fit: Fit) -> dict[str, Any]:
    """What the page shows of a fit."""
    tone = "bad" if not fit.found else "good" if fit.certified else "fair"
    return {
        "state": text.state(fit),
        "tone": tone,
        "found": fit.found,
        "certified": fit.certified,
        "message": fit.message,
        "verdict": fit.verdict.message if fit.verdict else "",
        "search": str(fit.search),
        "adequacy": str(fit.adequacy),
        "reasons": [*fit.certificate.reasons, *fit.adequacy.advice] if not fit.certified else [],
        "rows": [_row(fit, label) for label in text.ordered(fit)] if fit.found else [],
        "values": {label: value for label, value in fit.values.items() if math.isfinite(value)},
        "noise": _noise(fit),
        "suspicious": [
            {"experiment": one.experiment, "output": one.output, "time": one.time, "value": one.value}
            for one in fit.certificate.suspicious[:100]
        ],
        "solutions": _solutions(fit),
        "facts": text.facts(fit),
        "stages": {name: round(seconds, 3) for name, seconds in fit.stages.items()},
        "seconds": round(fit.seconds, 3),
        "model": fit.model.name,
        "points": fit.points,
        "bands": _bands(fit),
    }


def _row(fit: Fit, label: str) -> dict[str, Any]:
    _, value, error, interval, remark = text.row(fit, label)
    return {
        "label": label,
        "value": value,
        "error": error,
        "interval": interval,
        "kind": fit.kind(label),
        "remark": remark.removeprefix(fit.kind(label)).lstrip(", "),
    }


def _solutions(fit: Fit) -> list[dict[str, Any]]:
    """In what sets of values differ that explain the data equally well, a row for each quantity."""
    beside = fit.solutions[:MOST_SOLUTIONS]
    rows = [(one.label, [measured(each.value(one), fit.stderr[one.label]) for each in beside]) for one in fit.unknowns]
    return [{"label": label, "cells": cells} for label, cells in rows if len(set(cells)) > 1]


def _noise(fit: Fit) -> list[dict[str, Any]]:
    return [
        {"experiment": experiment, "output": output, "sd": significant(float(np.median(sds)), 3)}
        for experiment, table in fit.sds.items()
        for output, sds in table.items()
        if np.isfinite(np.median(sds))
    ]


def _bands(fit: Fit) -> list[dict[str, Any]]:
    """The curves of the fit with their bands, experiment by experiment."""
    found: list[dict[str, Any]] = []
    if not fit.found:
        return found
    for experiment in fit.data.experiments[: min(BANDED, MOST_PANELS)]:
        try:
            prediction = fit.predict(times_of(experiment), experiment.name, method="delta", states=False)
        except (ModelError, DataError):  # what cannot be simulated has no band
            continue
        found.append(
            {
                "experiment": experiment.name,
                "times": _plain(prediction.times),
                "outputs": {
                    name: {"values": _plain(band.values), "low": _plain(band.low), "high": _plain(band.high)}
                    for name, band in prediction.outputs.items()
                },
            }
        )
    return found


def _plain(values: np.ndarray) -> list[float | None]:
    """Numbers as JSON has them: an open end is null."""
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in values]


def comparison(fits: Mapping[str, Fit]) -> dict[str, Any]:
    """Fits beside each other: how likely each is, and its values."""
    ranking = compare(fits)
    best = ranking.best.aicc
    labels = dict.fromkeys(label for fit in fits.values() for label in fit.labels)
    return {
        "rows": [
            {
                "name": row.name,
                "parameters": row.parameters,
                "aicc": f"{row.aicc:.2f}" if math.isfinite(row.aicc) else "",
                "bic": f"{row.bic:.2f}",
                "beyond": f"{row.aicc - best:.2f}" if math.isfinite(row.aicc) else "",
                "weight": f"{100 * row.weight:.3g} %",
            }
            for row in ranking
        ],
        "values": [
            {"label": label, "cells": {name: _cell(fit, label) for name, fit in fits.items()}} for label in labels
        ],
    }


def _cell(fit: Fit, label: str) -> str:
    if label not in fit.labels:
        return ""
    _, value, error, _, _ = text.row(fit, label)
    return f"{value} ± {error}" if math.isfinite(fit.stderr[label]) else value
