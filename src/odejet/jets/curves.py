"""Curves: the known functions of time that drive a model whose inputs are curves, as piecewise polynomials."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from odejet.jets.inputs import DEGREE, HOLD, Pieces, Sampled
from odejet.model import Model
from odejet.model.curves import STEPS, Curve, driven, pieces

_FAR = 1e3
"""Spans of the knots before the first and after the last over which a curve stays as it is there."""


@dataclass(frozen=True, eq=False)
class Basis(Sampled):
    """What a curve with the value one at a knot and zero at all others is."""

    coefficients: np.ndarray = field(default_factory=lambda: np.zeros((0, DEGREE + 1)))  # by piece, from the first knot

    @cached_property
    def pieces(self) -> Pieces:
        before = np.zeros((1, DEGREE + 1))
        before[0, 0] = self.coefficients[0, 0]
        return Pieces(self.times, np.concatenate([before, self.coefficients])[None], self.end)


def basis(curve: Curve) -> list[Sampled]:
    """Return the basis functions of a curve by knot."""
    knots = np.array(curve.knots)
    room = _FAR * (knots[-1] - knots[0])
    first, last = knots[0] - room, knots[-1] + room
    if curve.kind == STEPS:
        times = np.r_[first, np.repeat(knots[1:], 2), last]
        return [Sampled(times, np.repeat(row, 2), HOLD) for row in np.eye(len(knots))]
    exact = pieces(curve)
    coefficients = np.zeros((len(knots), len(knots), DEGREE + 1))  # by knot, then by piece
    for i, row in enumerate(exact):
        for k, polynomial in enumerate(row):
            coefficients[k, i, : len(polynomial)] = [float(value) for value in polynomial]
    times = np.r_[first, knots, last]
    units = np.eye(len(knots))
    return [Basis(times, np.r_[one[0], one, one[-1]], HOLD, own) for one, own in zip(units, coefficients, strict=True)]


def expanded(model: Model, recorded: Collection[str] = ()) -> tuple[Model, dict[str, Sampled]]:
    """Return the model with known functions of time in the place of its curves, and these; the curves themselves are
    named expressions in them.  Those that are `recorded` are inputs as any others."""
    if not model.curves:
        return model, {}
    unknown = {name: curve for name, curve in model.curves.items() if name not in recorded}
    taken = {*model.states, *model.outputs, *model.inputs, *model.parameters, *model.fixed, *model.expressions}
    curves, places = driven(unknown, taken)
    inputs = {name: value for name, value in model.to_dict()["inputs"].items() if name not in model.curves}
    inputs |= dict.fromkeys([*(name for name in model.curves if name in recorded), *places])
    found = model.replace(inputs=inputs, expressions={**model.expressions, **curves})
    bases = {name: basis(curve) for name, curve in unknown.items()}
    return found, {function: bases[name][place] for function, (name, place) in places.items()}
