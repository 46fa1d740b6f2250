"""Likelihood: the misfit of a fit around its optimum, whole or with one quantity held at a value.

Holding a quantity g(z) = c takes one unknown away: the *pivot*, on which g depends most, follows from the others by
solving g = c for it, and its sensitivity from theirs by the implicit function theorem.

    dz_p / dz_i = - (dg/dz_i) / (dg/dz_p)

What is left is a misfit in one unknown less, refined as any other: exact sensitivities, bounds, noise levels that
follow the residuals.  The constraint holds to rounding at every step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odejet.decide.statistics import FitCheck, check
from odejet.errors import ModelError
from odejet.objective.evaluation import Aim, Evaluation
from odejet.objective.misfit import Misfit
from odejet.objective.reduced import Reduced
from odejet.problem import Problem
from odejet.problem.coordinates import Coordinates
from odejet.search.refine import MAX_EVALUATIONS, Refined, evaluated, refine
from odejet.simulate.flow import Outcome
from odejet.uncertainty.bounded import Bounded
from odejet.uncertainty.derived import Asked, Derived, derived
from odejet.uncertainty.fisher import Information, firmly_held, information

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
    def full_information(self) -> Information:
        """What the data say of all unknowns, as if there were no bounds."""
        return information(self.misfit, self.optimum, self.check)

    @cached_property
    def information(self) -> Information:
        """What the data say, with unknowns that a bound holds firmly taken as known."""
        firm = firmly_held(self.full_information, self.optimum)
        return information(self.misfit, self.optimum, self.check, ~firm) if firm.any() else self.full_information

    def bounded(self, held: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] | None = None) -> Bounded:
        """The curvature with the bounds of all unknowns, these on theirs."""
        return Bounded.of(self.misfit, self.optimum, self.check, held, bounds or self.frame.given)

    @cached_property
    def inner_information(self) -> Information:
        """The information with unknowns that a bound holds taken as known: curvature knows nothing of bounds."""
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
        holding = Holding.of(self.frame, held, value, start)
        if holding is None:
            return None
        part = Reduced(self.misfit, holding)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # far away numbers may be too large
            return refine(
                part,
                self.frame.inside(start)[part.kept],
                levels=self.optimum.levels,
                time_limit=time_limit,
                max_evaluations=evaluations,
                precision=precision,
                frame=part.frame,
            )

    def whole(self, held: Asked, value: float, start: np.ndarray, found: Refined) -> np.ndarray:
        """All unknowns of a held optimum."""
        holding = Holding.of(self.frame, held, value, start)
        z = None if holding is None else holding.filled(found.z)
        assert z is not None
        return z


_NOWHERE = Evaluation(
    None, None, Outcome.SINGULAR, "the quantity cannot have this value within the bounds", reached=0.0
)


@dataclass(frozen=True, eq=False)
class Holding:
    """All unknowns from those but a pivot, where one quantity is held."""

    frame: Coordinates
    held: Asked
    value: float
    near: np.ndarray  # where to look for the pivot
    pivot: int
    streams = True

    @classmethod
    def of(cls, frame: Coordinates, held: Asked, value: float, near: np.ndarray) -> Holding | None:
        """The way a quantity is held; None where it depends on nothing that can move."""
        near = frame.inside(np.asarray(near, dtype=float))
        _, gradient = held.at(near)
        effects = np.abs(gradient * frame.slopes(near))
        if not (np.all(np.isfinite(effects)) and effects.max(initial=0.0) > 0):
            return None
        return cls(frame, held, value, near, int(np.argmax(effects)))

    @property
    def kept(self) -> np.ndarray:
        return np.delete(np.arange(len(self.near)), self.pivot)

    def on(self, whole: Misfit) -> Holding:
        return self

    def evaluate(self, whole: Misfit, z: np.ndarray, jacobian: bool, deadline: float, aim: Aim | None) -> Evaluation:
        full = self.filled(z)
        return _NOWHERE if full is None else self._projected(full, whole.evaluate(full, jacobian, deadline, aim))

    def tuned(self, whole: Misfit, z: np.ndarray, found: Evaluation) -> tuple[np.ndarray, Evaluation]:
        full = self.filled(z)
        if full is None:
            return z, found
        _, gradient = self.held.at(full)
        free = [i for i in whole.noise_entries.tolist() if not gradient[i]]
        full, again = whole.tuned(full, found, np.array(free, dtype=int), (self.frame.low, self.frame.high))
        return (z, found) if again is found else (full[self.kept], self._projected(full, again))

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
