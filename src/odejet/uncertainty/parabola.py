"""Parabola: whether the likelihood is the parabola around its optimum that curvature takes it for.

An interval by curvature ends where the parabola reaches the quantile of the deviance.  One refit tells whether the
likelihood does so too: the quantity is held at the end of its interval, everything else starts where curvature would
have it and takes the few steps that are left to its best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odejet.uncertainty.derived import Asked
from odejet.uncertainty.fisher import Information
from odejet.uncertainty.likelihood import Likelihood

ROOM = 0.2
"""Parts of its reach by which an interval by curvature may be wrong before it is not to be trusted."""

PRECISION = 2e-3
"""A predicted decrease of the negative log-likelihood below which a refit has come near enough: what is left to go is
less than a sixteenth of a standard error, beside the two that a probe is away."""

_EVALUATIONS = 12
"""Of a refit: three or four are common, and more are a sign of trouble."""


@dataclass(frozen=True, eq=False)
class Probe:
    """Unknowns away from the optimum, and the root of their deviance; infinite where nothing can be simulated."""

    z: np.ndarray
    root: float

    def confirms(self, crossing: float) -> bool:
        """Whether this is about where the root of the deviance reaches a value."""
        return abs(self.root - crossing) <= ROOM * crossing


@dataclass(frozen=True, eq=False)
class Parabola:
    """The likelihood around its optimum, by curvature."""

    likelihood: Likelihood
    known: Information | None = None  # in place of what the likelihood takes as known on bounds

    @cached_property
    def root(self) -> np.ndarray:
        """R with R'R the covariance of the unknowns, a row for each of them at most."""
        known = self.known or self.likelihood.information
        return np.asarray(np.linalg.qr(np.concatenate(known.roots), mode="r"))

    def directions(self, gradients: np.ndarray) -> np.ndarray:
        """For quantities with these gradients, in rows, unit vectors u: of all moves of the unknowns that change the
        quantity by its standard error, R'u is the most likely."""
        moves = gradients @ self.root.T
        lengths = np.linalg.norm(moves, axis=1, keepdims=True)
        return np.asarray(moves / np.where(lengths > 0, lengths, 1.0))

    def probe(
        self, asked: Asked, value: float, direction: np.ndarray, distance: float, evaluations: int = _EVALUATIONS
    ) -> Probe:
        """The best point with a quantity held at a value, which should be so many standard errors along a direction."""
        frame, best = self.likelihood.frame, self.likelihood.optimum
        theta = frame.to(best.z) + distance * (direction @ self.root) / frame.slopes(best.z)
        return self.hold(asked, value, frame.back(np.clip(theta, *frame.box)), evaluations)

    def hold(self, asked: Asked, value: float, start: np.ndarray, evaluations: int = _EVALUATIONS) -> Probe:
        """The best point with a quantity held at a value, from a start."""
        found = self.likelihood.hold(asked, value, start, evaluations=evaluations, precision=PRECISION)
        if found is None or not math.isfinite(found.cost):
            return Probe(start, math.inf)
        root = math.sqrt(max(2 * (found.cost - self.likelihood.optimum.cost), 0.0))
        return Probe(self.likelihood.whole(asked, value, start, found), root)
