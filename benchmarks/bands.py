"""Bands: whether predictions hold the truth, at each of a few times within and beyond the data.

Fits start from the truth, since only the bands are under test.  A band that ends on both sides is counted by whether
the true curve is in it; that of new measurements by the probability that one is, which is exact where the noise is
normal.  Bands that are open hold everything, and are counted apart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

import odejet as oj
from benchmarks.accuracy import Truth
from benchmarks.counting import LEVEL, Line, grouped, percent
from odejet.result import Band, Fit

POINTS = 30
"""Measurements of every output: few, so that bands are wide and not all of them straight."""

FRACTIONS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.2)
"""Of the time that the data last."""

SYSTEMS = (
    "bicycle_model",
    "brusselator",
    "daisy_mamil3",
    "dc_motor",
    "forced_lotka_volterra",
    "harmonic_oscillator",
    "lotka_volterra",
    "mass_spring_damper",
    "quadrotor",
    "receptor_binding",
    "vanderpol",
)
"""Of two and three states, whose profiles take less than a second."""


def true_curves(truth: Truth, times: np.ndarray) -> oj.Simulation:
    """What is to be predicted; times beyond the data may be more than a solution reaches."""
    return oj.simulate(truth.system.model, truth.parameters, truth.initial_state, times)


def times_of(truth: Truth) -> np.ndarray:
    first, last = truth.system.time
    return first + (last - first) * np.array(FRACTIONS)


def sds(truth: Truth, noise: float) -> dict[str, float]:
    """Of the noise that the data have."""
    exact = true_curves(truth, truth.data.experiments[0].outputs[next(iter(truth.system.model.outputs))].times)
    return {name: noise * abs(float(exact[name].mean())) for name in truth.system.model.outputs}


def judged(fit: Fit, truth: Truth, noise: float, method: str = "auto") -> dict[str, Any]:
    """At each time: bands that end, those that hold the truth, and how probable new measurements are in theirs."""
    times = times_of(truth)
    exact = true_curves(truth, times)
    # Effort is counted, so that a busy machine measures the same.
    found = fit.predict(times, level=LEVEL, method=method, time_limit=math.inf)
    levels = sds(truth, noise)
    count = min(len(exact.times), len(found.times))
    closed, hits = np.zeros(len(times)), np.zeros(len(times))
    measured, outputs = np.zeros(len(times)), np.zeros(len(times))
    bands = [(band, exact[name]) for name, band in found.outputs.items()]
    bands += [(band, exact.states[name]) for name, band in found.states.items()]
    for place in range(count):
        for band, true in _distinct(bands, place):
            if not band.open[place] and band.high[place] > band.low[place]:
                closed[place] += 1
                hits[place] += bool(band.low[place] <= true[place] <= band.high[place])
        for name, band in found.outputs.items():
            if not band.open[place]:
                low, high = band.measured_low[place], band.measured_high[place]
                inside = norm.cdf(high, exact[name][place], levels[name]) - norm.cdf(
                    low, exact[name][place], levels[name]
                )
                outputs[place] += 1
                measured[place] += inside
    every = [*found.outputs.values(), *found.states.values()]
    return {
        "closed": closed.tolist(),
        "hits": hits.tolist(),
        "outputs": outputs.tolist(),
        "measured": [round(value, 4) for value in measured.tolist()],
        "bands": sum(len(band) for band in every),
        "open": sum(int(band.open.sum()) for band in every),
        "profiled": sum(int(band.profiled.sum()) for band in every),
        "untrusted": sum(int((~band.trusted).sum()) for band in every),
    }


def _distinct(bands: list[tuple[Band, np.ndarray]], place: int) -> list[tuple[Band, np.ndarray]]:
    """Each curve once: an output may be a state."""
    found: dict[tuple[float, float], tuple[Band, np.ndarray]] = {}
    for band, true in bands:
        found.setdefault((float(band.values[place]), float(true[place])), (band, true))
    return list(found.values())


def counts(fit: Fit, truth: Truth, noise: float) -> dict[str, Any]:
    """Counts of one fit, by the rule of `fit.predict` and by the delta method alone."""
    began = time.process_time()
    line = judged(fit, truth, noise)
    line["seconds"] = round(time.process_time() - began, 2)
    plain = judged(fit, truth, noise, "delta")
    return line | {f"delta {key}": plain[key] for key in ("closed", "hits")}


def table(lines: list[dict[str, Any]]) -> str:
    text = [
        "Share (%) of true curves inside their 95 % bands that end, by time as a fraction of that of the data, and",
        "the probability (%) of new measurements inside theirs.  Standard errors are over fits, since the curves of",
        "one fit err together.  Bar: 93 to 97.",
        "",
        "| | " + " | ".join(["fits", *(f"t = {one:g}" for one in FRACTIONS), "all"]) + " |",
        "|---|" + "---:|" * (len(FRACTIONS) + 2),
    ]
    for noise in sorted({line["noise"] for line in lines}):
        own = [line for line in lines if line["noise"] == noise]
        for title, count, hits in (
            ("curves", "closed", "hits"),
            ("measurements", "outputs", "measured"),
            ("curves by the delta method alone", "delta closed", "delta hits"),
        ):
            shares = [_share(own, count, hits, place) for place in range(len(FRACTIONS))] + [_share(own, count, hits)]
            text.append(f"| {title}, noise {noise:g} | {len(own)} | {' | '.join(shares)} |")
    text += ["", "| | fits | curves | measurements | by profiles | open | untrusted | median CPU s |"]
    text += ["|---|" + "---:|" * 7]
    for name, own in sorted(grouped(lines).items()):
        total = sum(line["bands"] for line in own)
        parts = [f"{100 * sum(line[key] for line in own) / total:.0f} %" for key in ("profiled", "open", "untrusted")]
        seconds = f"{np.median([line['seconds'] for line in own]):.2f}"
        shares = [_share(own, "closed", "hits"), _share(own, "outputs", "measured")]
        text.append(f"| {name} | {len(own)} | {' | '.join([*shares, *parts, seconds])} |")
    return "\n".join(text) + "\n"


def _share(lines: Sequence[Line], count: str, hits: str, place: int | None = None) -> str:
    """Percent that hold at a time, or at all of them, with its standard error over fits."""
    chosen = slice(None) if place is None else slice(place, place + 1)
    mean, error, total = percent(*([sum(line[key][chosen]) for line in lines] for key in (count, hits)))
    return f"{mean:.1f} ± {error:.1f}" if total else "–"
