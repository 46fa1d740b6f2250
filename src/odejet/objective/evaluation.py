"""Evaluation: what a misfit is at a point, with derivatives.

Residuals are one number per measurement and are kept; their derivatives are that many times as many as there are
unknowns, and kept in the form that suits the problem (see `jacobian`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odejet.objective.jacobian import Jacobian, Links
from odejet.objective.scoring import Standing
from odejet.simulate.flow import Outcome


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Residuals in units of their noise's shape and their derivative by z; None where the simulation broke off."""

    residuals: np.ndarray | None  # of all measurements, then of scales of the noise and of priors
    jacobian: Jacobian | None
    outcome: Outcome
    message: str
    reached: float  # the fraction of the time span that was simulated, the least of all experiments
    work: int = 1  # in units of an ordinary simulation of all experiments
    standing: Standing | None = None  # of what is no sum of squares
    predicted: tuple[np.ndarray, Jacobian | None] | None = None  # outputs and their derivatives, if noise may change
    eliminated: Eliminated | None = None  # what is no unknown of a search

    @property
    def rest(self) -> float:
        """What the cost has beside squares."""
        return 0.0 if self.standing is None else self.standing.cost + self.standing.prior

    @property
    def positions(self) -> np.ndarray:
        """What every row is about, in units of its noise: the residuals, where these are compared as squares."""
        assert self.residuals is not None
        return self.residuals if self.standing is None else self.standing.weighed(self.standing.positions)

    def beyond(self, here: Evaluation, predicted: np.ndarray) -> np.ndarray:
        """Return what the residuals have changed by since `here` beyond the change that a linear model predicted."""
        assert self.residuals is not None and here.residuals is not None
        if self.standing is None or here.standing is None:
            return np.asarray(self.residuals - (here.residuals + predicted))
        return here.standing.weighed(self.standing.positions - here.standing.positions) - predicted

    def aim(self, change: np.ndarray) -> Aim:
        """Return what a step from here is to reach that changes positions by so much."""
        assert self.residuals is not None
        if self.standing is None:
            return Aim(self.residuals, self.positions + change, np.ones(len(self.residuals)))
        return Aim(self.residuals, self.positions + change, self.standing.roots, self.standing.links)

    @property
    def complete(self) -> bool:
        return self.residuals is not None

    @property
    def dense(self) -> np.ndarray:
        """The Jacobian as one matrix."""
        assert self.jacobian is not None
        return self.jacobian.dense()

    @property
    def expected(self) -> Jacobian:
        """The Jacobian with weights by the expected information, which is what the data are worth."""
        assert self.jacobian is not None
        return self.jacobian if self.standing is None else self.jacobian.scaled(self.standing.information_ratio)


@dataclass(frozen=True, eq=False)
class Aim:
    """What a step is to reach, for rows that are not kept: residuals where it began, what positions are to be in units
    of the noise there, and these units."""

    before: np.ndarray
    target: np.ndarray
    roots: np.ndarray
    links: Links | None = None

    def missed(self, rows: slice, positions: np.ndarray) -> np.ndarray:
        """Return by how much the positions of some rows, all of a series, are not what they are to be."""
        there = positions * self.roots[rows]
        return np.asarray((there if self.links is None else self.links.at(rows).applied(there)) - self.target[rows])


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Unknowns that follow from the others: their best values, and the derivatives of the residuals there by all."""

    values: np.ndarray
    jacobian: Jacobian
    held: bool  # whether a bound holds one of them


@dataclass(frozen=True, eq=False)
class NoiseAt:
    """The noise of every measurement at a point."""

    scores: np.ndarray  # residuals that normal noise of unit size would have with the same probability
    sds: np.ndarray  # in the units of the measurement
    scales: np.ndarray  # of the law, in the units in which values are compared
    degrees: np.ndarray  # per output: how many independent measurements would tell its noise as well
