"""Calibration as pictures: coverage by method, and the ranks of true values among draws."""

from __future__ import annotations

import math

import numpy as np

from odejet.report.panels import Area, Dots, Layer, Line, Panel, Picture, Rule
from odejet.report.ticks import Axis, linear
from odejet.uncertainty.calibration import Calibration

SURE = 1.63
"""Kolmogorov's quantile of 99 %: so far, over the root of the number, may a distribution of ranks be from uniform."""


def pictures(found: Calibration) -> list[Picture]:
    """Coverage first, then the distribution of ranks of every unknown."""
    ranked = [_ranks(label, own) for label, own in zip(found.labels, found.ranks.T, strict=True)]
    return [*(_coverage(found, method) for method in found.covered), *(one for one in ranked if one is not None)]


def _coverage(found: Calibration, method: str) -> Picture:
    layers: list[Layer] = [Rule(found.level, vertical=True, colour="rust", dashed=True)]
    count = len(found.labels)
    least = found.level
    for i, (share, low, high) in enumerate(found.coverage(method).values()):
        if math.isnan(share):
            continue
        height = float(count - 1 - i)
        layers.append(Line(np.array([low, high]), np.array([height, height])))
        layers.append(Dots(np.array([share]), np.array([height]), "blue"))
        least = min(least, low)
    places = tuple(float(count - 1 - i) for i in range(count))
    down = Axis(-0.6, count - 0.4, places, tuple(label[:18] for label in found.labels))
    panel = Panel(tuple(layers), linear(max(least - 0.05, 0.0), 1.0, 4), down, 24 * count + 10)
    return Picture((panel,), f"coverage by {method}", f"intervals by {method}", label="hold the truth")


def _ranks(label: str, ranks: np.ndarray) -> Picture | None:
    """How far the distribution of ranks is from uniform, and how far chance would bring it."""
    seen = np.sort(ranks[np.isfinite(ranks)])
    if not len(seen):
        return None
    x = np.linspace(0, 1, 101)
    away = np.searchsorted(seen, x, side="right") / len(seen) - x
    reach = SURE / math.sqrt(len(seen))
    layers = (Area(x, np.full(101, -reach), np.full(101, reach), opacity=0.15), Rule(0.0, colour="grey"), Line(x, away))
    limit = max(1.2 * reach, 1.1 * float(np.abs(away).max()))
    panel = Panel(layers, linear(0.0, 1.0, 3), linear(-limit, limit, 3), 104)
    return Picture((panel,), f"ranks of {label} among draws, less uniform", label[:32], label="rank among draws")
