"""Likelihood: the misfit of a fit around its optimum, whole or with one quantity held at a value.

Holding a quantity g(z) = c takes one unknown away: the *pivot*, on which g depends most, follows from the others by
solving g = c for it, and its sensitivity from theirs by the implicit function theorem.

    dz_p / dz_i = - (dg/dz_i) / (dg/dz_p)

What is left is a misfit in one unknown less, refined as any other: exact sensitivities, bounds, noise levels that
follow the residuals.  The constraint holds to rounding at every step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.decide.statistics import FitCheck, check
from odejet.errors import ModelError
from odejet.problem import coordinates
from odejet.problem.coordinates import Coordinates
from odejet.problem.misfit import Evaluation, Misfit
from odejet.search.refine import MAX_EVALUATIONS, Refined, refine
from odejet.simulate.flow import Outcome
from odejet.uncertainty.derived import Derived, derived
from odejet.uncertainty.fisher import Information, information

PRECISION = 1e-4
"""A predicted decrease of the negative log-likelihood below which a held optimum is found: 0.5 % of an interval."""

_NEWTON_ROUNDS, _LONGEST, _SOLVED = 60, 2.0, 1e-13


@dataclass(frozen=True, eq=False)
class Likelihood:
    """A misfit at its optimum."""

    misfit: Misfit
    frame: Coordinates
    optimum: Refined

    @classmethod
    def of(cls, misfit: Misfit, values: np.ndarray, bounds: Mapping[str, tuple[float, float]]) -> Likelihood:
        """That around values of the unknowns, which lie within their bounds (by label)."""
        # Of a quantity that vanishes, the search needs to know the size all the same.
        frame = coordinates.choose(misfit.unknowns, values, dict(bounds), False)
        optimum = refine(misfit, values, frame=frame, max_evaluations=1)
        if not math.isfinite(optimum.cost):
            raise ModelError("the model cannot be simulated with the values of the fit; fit again")
        return cls(misfit, frame, optimum)

    @cached_property
    def check(self) -> FitCheck:
        return check(self.misfit, self.optimum)

    @cached_property
    def information(self) -> Information:
        return information(self.misfit, self.optimum, self.check)

    @cached_property
    def inner_information(self) -> Information:
        """The same with unknowns that a bound holds taken as known: curvature knows nothing of bounds."""
        return information(self.misfit, self.optimum, self.check, ~self.optimum.held)

    def derived(self, text: str) -> Derived:
        return derived(text, self.misfit.model, self.misfit.unknowns)

    def hold(
        self,
        held: Derived,
        value: float,
        start: np.ndarray,
        time_limit: float = math.inf,
        evaluations: int = MAX_EVALUATIONS,
    ) -> Refined | None:
        """The optimum with a quantity held at a value, near a start; of infinite cost where none can be simulated, and
        None where the quantity depends on nothing that can move."""
        part = Held.of(self.misfit, self.frame, held, value, start)
        if part is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # far from the optimum numbers may be too large
            return refine(
                part,
                np.delete(self.frame.inside(start), part.pivot),
                levels=self.optimum.levels,
                time_limit=time_limit,
                max_evaluations=evaluations,
                precision=PRECISION,
                frame=part.rest,
            )

    def whole(self, held: Derived, value: float, start: np.ndarray, found: Refined) -> np.ndarray:
        """All unknowns of a held optimum."""
        part = Held.of(self.misfit, self.frame, held, value, start)
        z = None if part is None else part.filled(found.z)
        assert z is not None
        return z


class Held(Misfit):
    """A misfit with one quantity held, as a function of all unknowns but the pivot."""

    whole: Misfit
    frame: Coordinates
    rest: Coordinates  # of the unknowns that are left
    held: Derived
    value: float
    pivot: int
    near: np.ndarray  # where to look for the pivot

    @classmethod
    def of(
        cls, whole: Misfit, frame: Coordinates, held: Derived, value: float, near: np.ndarray, pivot: int | None = None
    ) -> Held | None:
        """The misfit with a quantity held; None where the quantity depends on nothing that can move."""
        near = frame.inside(np.asarray(near, dtype=float))
        if pivot is None:
            _, gradient = held.at(near)
            effects = np.abs(gradient * frame.slopes(near))
            if not (np.all(np.isfinite(effects)) and effects.max(initial=0.0) > 0):
                return None
            pivot = int(np.argmax(effects))
        part = object.__new__(cls)
        part.__dict__.update(whole.__dict__)
        part.whole, part.frame, part.held, part.value, part.near, part.pivot = whole, frame, held, value, near, pivot
        part.unknowns = tuple(unknown for i, unknown in enumerate(whole.unknowns) if i != pivot)
        part.rest = Coordinates(*(np.delete(a, pivot) for a in (frame.low, frame.high, frame.signs, frame.units)))
        return part

    def evaluate(self, z: np.ndarray, jacobian: bool = True) -> Evaluation:
        full = self.filled(z)
        if full is None:
            nothing = "the quantity cannot have this value within the bounds"
            return Evaluation(None, None, Outcome.SINGULAR, nothing, 0.0)
        found = self.whole.evaluate(full, jacobian)
        if found.jacobian is None:
            return found
        _, gradient = self.held.at(full)
        slopes = np.delete(-gradient / gradient[self.pivot], self.pivot)
        columns = np.delete(found.jacobian, self.pivot, axis=1) + np.outer(found.jacobian[:, self.pivot], slopes)
        return replace(found, jacobian=columns)

    def filled(self, z: np.ndarray) -> np.ndarray | None:
        """All unknowns, the pivot solved for on its own scale; None where there is no solution within its bounds."""
        full = np.insert(z, self.pivot, self.near[self.pivot])
        if self.held.place is not None:
            full[self.pivot] = self.value
            return full
        low, high = (end[self.pivot] for end in self.frame.box)
        theta = float(self.frame.to(full)[self.pivot])
        for _ in range(_NEWTON_ROUNDS):
            value, gradient = self.held.at(full)
            slope = float(gradient[self.pivot] * self.frame.slopes(full)[self.pivot])
            if not (math.isfinite(value) and math.isfinite(slope)) or slope == 0:
                return None
            # A product of powers has a linear logarithm.
            gap = self.value - value
            move = math.log(self.value / value) * value / slope if value * self.value > 0 else gap / slope
            move = min(max(move, -_LONGEST), _LONGEST)
            if abs(move) <= _SOLVED * max(1.0, abs(theta)):
                return full
            if theta == min(max(theta + move, low), high):
                return None
            theta = min(max(theta + move, low), high)
            full[self.pivot] = self._back(full, theta)
        return None

    def _back(self, full: np.ndarray, theta: float) -> float:
        everything = self.frame.to(full)
        everything[self.pivot] = theta
        return float(self.frame.back(everything)[self.pivot])

    def window(self, *arguments: Any, **options: Any) -> Misfit:
        part = Held.of(
            self.whole.window(*arguments, **options), self.frame, self.held, self.value, self.near, self.pivot
        )
        assert part is not None
        return part
