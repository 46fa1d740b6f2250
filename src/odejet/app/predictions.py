"""Predictions: what a fit, draws or a population say of an experiment that nobody has made yet, with bands."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from odejet.app import posing, tasks
from odejet.app.drafts import Draft
from odejet.app.results import plain
from odejet.app.views import CURVE
from odejet.data import Data
from odejet.errors import DataError, ModelError
from odejet.io.plain import real
from odejet.population.prediction import Known, predicted
from odejet.result import Fit

LEVEL = 0.95
BAND_SECONDS = 15.0
"""What bands may take before those that are done are shown."""

MOST_ROWS = 200


def predict(asked: Mapping[str, Any], into: Path, folder: Path, name: str) -> dict[str, Any]:
    """The outputs of a new experiment until some time, under doses, inputs and values of its own."""
    start, end = real(asked.get("start", 0.0)), real(asked.get("end"))
    if not start < end < 1e300:
        raise DataError(f"the prediction must end after its start at t = {start:g}")
    times = np.linspace(start, end, CURVE)
    doses = _doses(asked.get("doses"))
    given = {kind: _values(asked.get(kind)) for kind in ("initial", "values", "inputs")}
    if (into / tasks.POPULATION).is_file():
        return _of_population(Draft.read(asked["draft"]), into, folder, name, times, doses, given["values"])
    found = Fit.load(into / tasks.FIT)
    return _of_fit(found, times, doses, {key: words for key, words in given.items() if words})


def _of_fit(fit: Fit, times: np.ndarray, doses: list[dict[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    data = Data(None, {}, name="new", start=float(times[0]), doses=doses or None, **given)
    found = fit.predict(times, data, LEVEL, states=False, time_limit=BAND_SECONDS)
    trusted = all(bool(band.trusted.all()) for band in found.outputs.values())
    return {
        "times": plain(found.times),
        "outputs": {
            output: {
                "values": plain(band.values),
                "low": plain(band.low),
                "high": plain(band.high),
                "outer_low": plain(band.measured_low),
                "outer_high": plain(band.measured_high),
            }
            for output, band in found.outputs.items()
        },
        "words": ["the fit", f"{100 * LEVEL:g} % band of the curve", f"{100 * LEVEL:g} % band of a new measurement"],
        "note": _note(found.message if not found.success else "", trusted),
    }


def _note(message: str, trusted: bool) -> str:
    if message:
        return f"The curve ends early: {message}."
    return "" if trusted else "Some bands rest on curvature that is not to be trusted; more data would tell."


def _of_population(
    draft: Draft,
    into: Path,
    folder: Path,
    name: str,
    times: np.ndarray,
    doses: list[dict[str, Any]],
    values: Mapping[str, Any],
) -> dict[str, Any]:
    population = posing.population_of(draft, folder, name)
    try:
        known = Known.restored(population, json.loads((into / tasks.POPULATION).read_bytes()))
    except (ValueError, KeyError, TypeError, np.linalg.LinAlgError):
        raise DataError("the file of this fit cannot be read; fit the population again") from None
    covariates = {key: value for key, value in values.items() if isinstance(value, float)}
    found = predicted(known, times, doses or None, covariates, LEVEL, 300, 0)
    return {
        "times": plain(times),
        "outputs": {
            output: {
                "values": plain(bands.typical),
                "low": plain(bands.known_low),
                "high": plain(bands.known_high),
                "outer_low": plain(bands.low),
                "outer_high": plain(bands.high),
            }
            for output, bands in found.outputs.items()
        },
        "words": ["a typical subject", "95 % band of the typical subject", "95 % of subjects"],
        "note": "",
    }


def _doses(told: Any) -> list[dict[str, Any]]:
    rows = Draft.read({"doses": told or []}).doses
    if len(rows) > MOST_ROWS:
        raise DataError(f"a prediction may have {MOST_ROWS} rows of doses; use every and times for repeated ones")
    return posing.doses(Draft(doses=rows))


def _values(told: Any) -> dict[str, float | str]:
    """What stands in the fields of the form, by name; numbers or expressions."""
    rows = Draft.read({"fixed": told or {}}).fixed
    found = {key: posing.number_or_text(words) for key, words in rows.items() if words.strip()}
    for key, value in found.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ModelError(f"'{key}' is not a finite number")
    return found
