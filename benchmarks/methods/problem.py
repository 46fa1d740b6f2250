"""Problem: what a method is given, what it answers, and the objective that all of them share.

The unknowns are searched on a logarithmic scale in the protocol's box.  An evaluation is one simulation, with or
without sensitivities.  Evaluations are what the budget counts first, so that an answer does not depend on what else the
machine does; processor seconds bound it from outside.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

import odejet as oj
from odejet.objective.evaluation import Aim, Evaluation
from odejet.objective.misfit import Misfit
from odejet.problem import coordinates
from odejet.search.refine import MAX_EVALUATIONS, refine

SEARCH = 0.8
"""The part of a budget that a search without local steps may use before its best points are refined."""

BETTER = 1e-2
"""What counts as a better point when the time of the answer is taken, in units of the log-likelihood."""


@dataclass(frozen=True)
class Budget:
    """What a search may use."""

    evaluations: int = 10_000
    seconds: float = 10.0


@dataclass(frozen=True)
class Problem:
    """A data set to be fitted; `truth` is for the oracles alone."""

    model: oj.Model
    data: oj.Data
    bounds: tuple[float, float]
    weighted: bool = True
    budget: Budget = Budget()
    seed: int = 0
    truth: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Values by name, None if there are none, and what they cost."""

    values: dict[str, float] | None
    cost: float  # of the method's own objective
    evaluations: int
    ending: str
    found_at: float = math.nan  # processor seconds until no better point was found, where a method can tell


class Over(BaseException):
    """The budget is used up.  No library that catches errors catches this one."""


class Counted(Misfit):
    """A misfit that counts its evaluations, ends with the budget and remembers the best point it was asked about."""

    def __init__(self, problem: Problem) -> None:
        posed = oj.Problem(problem.model, problem.data, weights="likelihood" if problem.weighted else "none").misfit
        super().__init__(posed.simulator, posed.measurements, posed.known, posed.weighted)
        self.budget, self.evaluations = problem.budget, 0
        self.began = time.thread_time()
        self.part = 1.0
        self.best, self.least, self.found_at = np.empty(0), math.inf, math.nan
        self._milestone = math.inf

    @property
    def seconds(self) -> float:
        return time.thread_time() - self.began

    @property
    def brief(self) -> Misfit:
        """Itself: another would count apart."""
        return self

    @property
    def left(self) -> int:
        return max(int(self.part * self.budget.evaluations) - self.evaluations, 0)

    def evaluate(
        self, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf, aim: Aim | None = None
    ) -> Evaluation:
        if self.left == 0 or self.seconds > self.part * self.budget.seconds:
            raise Over
        self.evaluations += 1
        found = super().evaluate(z, jacobian, deadline, aim)
        if found.residuals is not None:
            self._remember(z, self.cost(found.residuals))
        return found

    def _remember(self, z: np.ndarray, cost: float) -> None:
        if cost < self.least:
            self.best, self.least = np.array(z), cost
            if cost < self._milestone - self._margin(cost):
                self._milestone, self.found_at = cost, self.seconds

    def _margin(self, cost: float) -> float:
        """What two points differ by that are the same but for rounding, or beside the noise."""
        if self.weighted:
            return max(BETTER, 1e-5 * abs(cost))
        return BETTER * abs(cost) / max(self.points, 1) + float(self.counts @ self.floors**2)

    @contextmanager
    def share(self, part: float) -> Iterator[None]:
        """A stage of the search that ends quietly when this part of the budget is used."""
        before, self.part = self.part, part
        try:
            yield
        except Over:
            pass
        finally:
            self.part = before

    def answer(self, ending: str) -> Answer:
        """The best point that was evaluated."""
        if math.isinf(self.least):
            return Answer(None, math.inf, self.evaluations, f"{ending}; no simulation reached the last time")
        values = {unknown.name: float(value) for unknown, value in zip(self.unknowns, self.best, strict=True)}
        return Answer(values, self.least, self.evaluations, ending, self.found_at)


class Objective:
    """The misfit as optimisers want it: functions of theta, the logarithms of the unknowns, in a box."""

    def __init__(self, problem: Problem) -> None:
        self.misfit = Counted(problem)
        self.frame = coordinates.choose(self.misfit.unknowns, np.ones(len(self.misfit.unknowns)), problem.bounds)
        self.low, self.high = self.frame.box
        self.rng = np.random.default_rng(problem.seed)
        self._last: tuple[bytes, Evaluation] | None = None

    def __deepcopy__(self, _: object) -> Objective:
        """Itself: pyPESTO copies objectives, and a copy would count apart."""
        return self

    def cost(self, theta: np.ndarray) -> float:
        """The objective alone; infinite where a simulation does not reach the last time."""
        residuals = self.misfit.evaluate(self.frame.back(theta), jacobian=False).residuals
        return math.inf if residuals is None else self.misfit.cost(residuals)

    def costs(self, thetas: np.ndarray) -> np.ndarray:
        return np.array([self.cost(theta) for theta in thetas])

    def expansion(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The objective, its gradient and its Fisher information (Gauss and Newton's Hessian).

        With levels as likely as possible the derivative of the profile is that at these levels.
        """
        found, n = self._evaluated(theta), len(theta)
        if found.residuals is None or found.jacobian is None:
            return math.inf, np.full(n, math.nan), np.full((n, n), math.nan)
        rows = self.misfit.row_levels(self.misfit.levels(found.residuals))
        jacobian = found.dense * self.frame.slopes(self.frame.back(theta)) / rows[:, None]
        return self.misfit.cost(found.residuals), (found.residuals / rows) @ jacobian, jacobian.T @ jacobian

    def residuals(self, theta: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Residuals in units of given levels; large ones where a simulation fails, so that a step is refused."""
        found = self._evaluated(theta)
        if found.residuals is None:
            return np.full(self.misfit.points, 1e10)
        return found.residuals / self.misfit.row_levels(levels)

    def jacobian(self, theta: np.ndarray, levels: np.ndarray) -> np.ndarray:
        found = self._evaluated(theta)
        if found.jacobian is None:
            return np.zeros((self.misfit.points, len(theta)))
        return found.dense * self.frame.slopes(self.frame.back(theta)) / self.misfit.row_levels(levels)[:, None]

    def levels(self, theta: np.ndarray) -> np.ndarray | None:
        """The most likely noise level of every output."""
        residuals = self._evaluated(theta).residuals
        return None if residuals is None else self.misfit.levels(residuals)

    def refine(self, theta: np.ndarray) -> None:
        """Our own refinement from a point, as far as the budget goes."""
        most = min(self.misfit.left, MAX_EVALUATIONS)
        refine(self.misfit, self.frame.back(theta), max_evaluations=most, frame=self.frame)

    def _evaluated(self, theta: np.ndarray) -> Evaluation:
        """An evaluation with sensitivities; optimisers ask for residuals and derivatives one after the other."""
        key = theta.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self.misfit.evaluate(self.frame.back(theta))
        return self._last[1]
