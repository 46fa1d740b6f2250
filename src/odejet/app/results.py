"""Results: a fit as the page shows it, and fits beside each other, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from odejet.app.views import MOST_PANELS, Measured, times_of
from odejet.errors import DataError, ModelError
from odejet.numerals import between, duration, measured, significant
from odejet.population import PopulationFit
from odejet.problem import Problem
from odejet.report import text
from odejet.result import Fit, compare
from odejet.selection import Selection
from odejet.uncertainty.posterior import Posterior

BANDED = 16
"""Experiments whose curves have bands on the page."""

MOST_MODELS = 40
"""Models of a comparison that are listed."""

MOST_SOLUTIONS = 8
"""Equally good sets of values that stand side by side."""


def result(fit: Fit) -> dict[str, Any]:
    """What the page shows of a fit."""
    tone = "bad" if not fit.found else "good" if fit.certified else "fair"
    return {
        "kind": "fit",
        "heads": ["quantity", "value", "± stderr", "95 % interval", "can it be known?"],
        "form": _form(fit.problem),
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
        bands = {name: (band.values, band.low, band.high) for name, band in prediction.outputs.items()}
        found.append(_band(experiment.name, prediction.times, bands))
    return found


def _band(experiment: str, times: np.ndarray, bands: Mapping[str, tuple[np.ndarray, ...]]) -> dict[str, Any]:
    parts = ("values", "low", "high")
    outputs = {name: dict(zip(parts, map(plain, own), strict=True)) for name, own in bands.items()}
    return {"experiment": experiment, "times": plain(times), "outputs": outputs}


def plain(values: np.ndarray) -> list[float | None]:
    """Numbers as JSON has them: an open end is null."""
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in values]


def _form(problem: Problem) -> dict[str, Any]:
    """What may be said of a new experiment: the ends of those that were made, and names with what they were."""
    model, several = problem.model, len(problem.experiments) > 1
    own = {one.name for one in problem.layout if one.experiment is not None and several}
    return {
        "start": min(one.start for one in problem.experiments),
        "end": max(one.end for one in problem.experiments),
        "states": list(model.states),
        "inputs": list(model.inputs),
        "needed": sorted(own),
        "values": [*model.parameters, *model.fixed],
    }


# --- draws, populations, models ---


def posterior(fit: Fit, draws: Posterior) -> dict[str, Any]:
    """Draws beside the fit that they began from."""
    rows = []
    for label in text.ordered(fit):
        own = draws.statistics[label]
        low, high = draws.interval(label)
        sd = own["sd"]
        few = min(own["ESS bulk"], own["ESS tail"])
        rows.append(
            {
                "label": label,
                "value": measured(own["mean"], sd),
                "error": significant(sd, 2),
                "interval": between(low, high, sd),
                "kind": "",
                "remark": "",
                "note": f"R-hat {own['R-hat']:.3f}, {few:.0f} effective draws",
            }
        )
    agreed = draws.success
    return result(fit) | {
        "kind": "posterior",
        "heads": ["quantity", "mean", "± sd", "95 % interval", "draws"],
        "state": "chains agree" if agreed else "drawn, with doubts",
        "tone": "good" if agreed else "fair",
        "message": draws.headline,
        "verdict": "",
        "reasons": list(draws.warnings),
        "rows": rows,
        "solutions": [],
        "bands": _drawn_bands(draws),
    }


def _drawn_bands(draws: Posterior) -> list[dict[str, Any]]:
    found = []
    for experiment in draws.problem.experiments[: min(BANDED, MOST_PANELS)]:
        times = times_of(experiment)
        curves = draws.predict(times, experiment.name, draws=200)
        outputs = {name: curves[name] for name in draws.problem.model.outputs if name in curves}
        found.append(_band(experiment.name, times, {n: (b["median"], b["low"], b["high"]) for n, b in outputs.items()}))
    return found


def population(fit: PopulationFit, apart: Measured) -> dict[str, Any]:
    """A population: the law of its subjects, and the curve of each at its own values."""
    rows = []
    for one in fit.population.values():
        note = f"shrinkage {100 * fit.shrinkage[one.name]:.0f} %" if one.name in fit.shrinkage else ""
        rows.append(
            {
                "label": one.name,
                "value": measured(one.value, one.stderr),
                "error": significant(one.stderr, 2),
                "interval": between(one.interval[0], one.interval[1], one.stderr),
                "kind": "",
                "remark": "",
                "note": note,
            }
        )
    values = {f"{name} in {who}": value for who, own in fit.individuals.items() for name, value in own.items()}
    values |= fit.values
    curves = apart.curves(values)
    state = "confirmed" if fit.certified else "at the maximum" if fit.success else "not at the maximum"
    form = _form(apart.problem)
    return {
        "kind": "population",
        "heads": ["quantity", "value", "± stderr", "95 % interval", "between subjects"],
        "form": form | {"needed": list(fit.estimated.layout.columns), "inputs": [], "states": form["states"]},
        "state": state,
        "tone": "good" if fit.certified else "fair",
        "found": True,
        "certified": fit.certified,
        "message": f"best fit: {fit.search.sentence}",
        "verdict": f"explains the data: {fit.adequacy.sentence}",
        "search": str(fit.search),
        "adequacy": str(fit.adequacy),
        "reasons": [f"the random effect of {name} was taken out: its variance went to zero" for name in fit.removed],
        "rows": rows,
        "values": {label: value for label, value in values.items() if math.isfinite(value)},
        "noise": [],
        "suspicious": [],
        "solutions": [],
        "facts": {
            "subjects": str(len(fit.asked.subjects)),
            "measurements": f"{fit.asked.points:,}",
            "−2 log L": f"{fit.minus_two_log_likelihood:.2f} ± {significant(2 * fit.log_likelihood_error, 1)}",
            "AIC": f"{fit.aic:.2f}",
            "BIC": f"{fit.bic:.2f}",
            "time": duration(fit.seconds),
        },
        "stages": {},
        "seconds": round(fit.seconds, 3),
        "model": fit.asked.model.name,
        "points": fit.asked.points,
        "bands": [
            {
                "experiment": one["experiment"],
                "times": one["times"],
                "outputs": {name: {"values": line, "low": None, "high": None} for name, line in one["outputs"].items()},
            }
            for one in curves
        ],
    }


def models(selection: Selection) -> dict[str, Any]:
    """Models that switches make, ranked, and the fit of the best."""
    best = selection.fit
    weights, least = selection.weights, selection.best.aicc
    return result(best) | {
        "kind": "models",
        "models": {
            "heads": ["model with", "numbers", "AICc", "ΔAICc", "weight", "confirmed"],
            "rows": [
                [
                    one.name,
                    str(one.parameters),
                    f"{one.aicc:.1f}",
                    f"{one.aicc - least:.1f}" if math.isfinite(one.aicc) else "",
                    _share(weights[one.name]),
                    "yes" if one.confirmed else "no",
                ]
                for one in selection.candidates[:MOST_MODELS]
            ],
        },
        "importance": {name: _share(weight) for name, weight in sorted(selection.importance.items())},
        "tests": [str(test) for test in selection.tests],
        "message": f"best model: {selection.best.name}",
        "reasons": [selection.warning] if selection.warning else [],
    }


def _share(weight: float) -> str:
    """A weight as a share that people can read."""
    return f"{100 * weight:.3g} %" if weight >= 0.0005 else "< 0.1 %"


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
                "weight": _share(row.weight),
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
