"""Likelihood: the misfit of a fit around its optimum, whole or with one quantity held at a value.

Holding a quantity g(z) = c takes one unknown away: the *pivot*, on which g depends most, follows from the others by
solving g = c for it, and its sensitivity from theirs by the implicit function theorem.

    dz_p / dz_i = - (dg/dz_i) / (dg/dz_p)

What is left is a misfit in one unknown less, refined as any other: exact sensitivities, bounds, noise levels that
follow the residuals.  The constraint holds to rounding at every step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.decide.statistics import FitCheck, check
from odejet.errors import ModelError
from odejet.objective.courses import Course
from odejet.objective.evaluation import Aim, Evaluation
from odejet.objective.misfit import Misfit
from odejet.problem import Problem, Unknown
from odejet.problem.coordinates import Coordinates
from odejet.search.refine import MAX_EVALUATIONS, Refined, evaluated, refine
from odejet.simulate.flow import Outcome
from odejet.uncertainty.derived import Asked, Derived, derived
from odejet.uncertainty.fisher import Information, information

PRECISION = 1e-4
"""A predicted decrease of the negative log-likelihood below which a held optimum is found: 0.5 % of an interval."""

_NEWTON_ROUNDS, _LONGEST, _SOLVED = 30, 2.0, 1e-13
_PATIENCE = 4  # rounds that come no nearer, after which there is nothing to come near to
_ROUNDING = 1e-10  # of a quantity that is simulated, where it hardly depends on the pivot


@dataclass(frozen=True, eq=False)
class Likelihood:
    """A misfit at its optimum."""

    misfit: Misfit
    frame: Coordinates
    optimum: Refined

    @classmethod
    def of(cls, problem: Problem, values: np.ndarray) -> Likelihood:
        """That of a problem around values of its unknowns."""
        # Of a quantity that vanishes, the search needs to know the size all the same.
        with np.errstate(over="ignore"):  # values may be as large as numbers get
            misfit, frame = problem.misfit, problem.frame(values)
            optimum = evaluated(misfit, values, frame)
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

    @cached_property
    def triangle(self) -> np.ndarray:
        """R with R'R = J'J, of the Jacobian at the optimum on the scale of the search."""
        return np.asarray(np.linalg.qr(self.optimum.jacobian * self.frame.slopes(self.optimum.z), mode="r"))

    def derived(self, text: str) -> Derived:
        return derived(text, self.misfit.model, self.misfit.unknowns)

    def hold(
        self,
        held: Asked,
        value: float,
        start: np.ndarray,
        time_limit: float = math.inf,
        evaluations: int = MAX_EVALUATIONS,
        precision: float = PRECISION,
    ) -> Refined | None:
        """The optimum with a quantity held at a value, near a start; of infinite cost where none can be simulated, and
        None where the quantity depends on nothing that can move."""
        part = Held.of(self.misfit, self.frame, held, value, start)
        if part is None:
            return None
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # far away numbers may be too large
            return refine(
                part,
                np.delete(self.frame.inside(start), part.pivot),
                levels=self.optimum.levels,
                time_limit=time_limit,
                max_evaluations=evaluations,
                precision=precision,
                frame=part.rest,
            )

    def whole(self, held: Asked, value: float, start: np.ndarray, found: Refined) -> np.ndarray:
        """All unknowns of a held optimum."""
        part = Held.of(self.misfit, self.frame, held, value, start)
        z = None if part is None else part.filled(found.z)
        assert z is not None
        return z


_NOWHERE = Evaluation(
    None, None, Outcome.SINGULAR, "the quantity cannot have this value within the bounds", reached=0.0
)


@dataclass(frozen=True, eq=False)
class Held(Misfit):
    """A misfit with one quantity held, as a function of all unknowns but the pivot."""

    whole: Misfit = field(kw_only=True)
    frame: Coordinates = field(kw_only=True)
    held: Asked = field(kw_only=True)
    value: float = field(kw_only=True)
    near: np.ndarray = field(kw_only=True)  # where to look for the pivot
    pivot: int = field(kw_only=True)

    @classmethod
    def of(
        cls, whole: Misfit, frame: Coordinates, held: Asked, value: float, near: np.ndarray, pivot: int | None = None
    ) -> Held | None:
        """The misfit with a quantity held; None where the quantity depends on nothing that can move."""
        near = frame.inside(np.asarray(near, dtype=float))
        if pivot is None:
            _, gradient = held.at(near)
            effects = np.abs(gradient * frame.slopes(near))
            if not (np.all(np.isfinite(effects)) and effects.max(initial=0.0) > 0):
                return None
            pivot = int(np.argmax(effects))
        parts = {one.name: getattr(whole, one.name) for one in fields(Misfit)}
        return cls(**parts, whole=whole, frame=frame, held=held, value=value, near=near, pivot=pivot)

    @property
    def unknowns(self) -> Sequence[Unknown]:
        return tuple(unknown for i, unknown in enumerate(self.whole.unknowns) if i != self.pivot)

    @property
    def courses(self) -> tuple[Course, ...]:
        return self.whole.courses

    @property
    def in_blocks(self) -> bool:
        return self.whole.in_blocks

    @property
    def large(self) -> bool:
        return self.whole.large

    @cached_property
    def rest(self) -> Coordinates:
        """The coordinates of the unknowns that are left."""
        frame = self.frame
        return Coordinates(*(np.delete(a, self.pivot) for a in (frame.low, frame.high, frame.signs, frame.units)))

    def evaluate(
        self, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf, aim: Aim | None = None
    ) -> Evaluation:
        full = self.filled(z)
        return _NOWHERE if full is None else self._projected(full, self.whole.evaluate(full, jacobian, deadline, aim))

    def tuned(
        self,
        z: np.ndarray,
        found: Evaluation,
        entries: np.ndarray | None = None,
        box: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, Evaluation]:
        full = self.filled(z)
        if full is None:
            return z, found
        _, gradient = self.held.at(full)
        free = [i for i in self.whole.noise_entries.tolist() if not gradient[i]]
        full, again = self.whole.tuned(full, found, np.array(free, dtype=int), (self.frame.low, self.frame.high))
        return (z, found) if again is found else (np.delete(full, self.pivot), self._projected(full, again))

    def _projected(self, full: np.ndarray, found: Evaluation) -> Evaluation:
        """An evaluation as a function of all unknowns but the pivot."""
        if found.jacobian is None:
            return found
        return replace(found, jacobian=found.jacobian.eliminated(self.pivot, self._slopes(full)))

    def _slopes(self, full: np.ndarray) -> np.ndarray:
        """The derivative of the pivot by the other unknowns."""
        _, gradient = self.held.at(full)
        return np.delete(-gradient / gradient[self.pivot], self.pivot)

    def filled(self, z: np.ndarray) -> np.ndarray | None:
        """All unknowns, the pivot solved for on its own scale; None where there is no solution within its bounds."""
        full = np.insert(z, self.pivot, self.near[self.pivot])
        if self.held.place is not None:
            full[self.pivot] = self.value
            return full
        low, high = (end[self.pivot] for end in self.frame.box)
        theta = float(self.frame.to(full)[self.pivot])
        nearest, waited = math.inf, 0
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
            nearest, waited = (abs(gap), 0) if abs(gap) < nearest else (nearest, waited + 1)
            if waited == _PATIENCE:
                return full if nearest <= _ROUNDING * max(abs(self.value), self.held.unit or 0.0) else None
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
