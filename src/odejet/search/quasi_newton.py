"""Quasi-Newton: the way down by gradients alone, for more unknowns than sensitivities are worth.

Where one way back tells the gradient (see `objective.backward`), hundreds of evaluations cost as much as one with all
sensitivities.  L-BFGS-B (Zhu, Byrd, Lu and Nocedal 1997) learns the curvature from them, within the box.  Where it
ends, least squares with sensitivities take over, whose steps know the curvature (see `descent`).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from odejet.clock import now
from odejet.objective import backward
from odejet.objective.misfit import Misfit
from odejet.objective.reduced import AnyMisfit
from odejet.problem.coordinates import Coordinates


@dataclass(frozen=True)
class QuasiNewtonSettings:
    """When gradients lead, and how far."""

    unknowns: int = 150  # from which on they do
    evaluations: int = 20  # that count as one with sensitivities
    share: float = 0.7  # of the time left, so that some is left for sensitivities where they end
    memory: int = 30  # pairs of steps and changes of the gradient
    decrease: float = 1e-5  # of a step, which matters to nobody
    steps: int = 10  # in a row that come to less together end the way


SETTINGS = QuasiNewtonSettings()


class _OverError(Exception):
    """What may be spent is spent, or nothing is gained any more."""


def serves(misfit: AnyMisfit) -> bool:
    """Return whether gradients lead: there are many unknowns, and one way back tells them."""
    if not isinstance(misfit, Misfit) or len(misfit.unknowns) < SETTINGS.unknowns or not misfit.weighted:
        return False
    return backward.pays(misfit)


def descend(
    misfit: Misfit,
    frame: Coordinates,
    start: np.ndarray,
    time_limit: float,
    evaluations: int,
) -> tuple[np.ndarray, int]:
    """Return where gradients lead from a start in the box, and how many evaluations with sensitivities it counts as."""
    settings = SETTINGS
    way = _Way(misfit, frame, now() + settings.share * time_limit, settings.evaluations * evaluations, settings)
    low, high = frame.box
    theta = np.clip(frame.to(frame.inside(start)), low, high)
    options = {"maxcor": settings.memory, "maxfun": 1 << 30, "maxiter": 1 << 30, "ftol": 0.0, "gtol": 0.0}
    with suppress(_OverError):
        minimize(
            way.value_and_gradient,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=np.column_stack([low, high]),
            options=options,
            callback=way.stepped,
        )
    z = start if way.best is None else frame.back(way.best)
    return z, -(-way.count // settings.evaluations)


class _Way:
    """The best point of a way, and what it has cost."""

    def __init__(
        self, misfit: Misfit, frame: Coordinates, deadline: float, limit: int, settings: QuasiNewtonSettings
    ) -> None:
        self.misfit, self.frame, self.deadline, self.limit, self.settings = misfit, frame, deadline, limit, settings
        self.best: np.ndarray | None = None
        self.cost, self.count = math.inf, 0
        self.costs: list[float] = []  # after every step

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Evaluate, and remember the best; where nothing can be simulated the value is high and the way is level."""
        if self.count >= self.limit or now() > self.deadline:
            raise _OverError
        self.count += 1
        z = self.frame.back(theta)
        found = backward.value_and_gradient(self.misfit, z, self.deadline)
        if found is None:
            if self.best is None:
                raise _OverError
            return self.cost + 1e3 * (1 + abs(self.cost)), np.zeros(len(theta))
        cost, gradient = found
        if cost < self.cost:
            self.best, self.cost = theta.copy(), cost
        return cost, gradient * self.frame.slopes(z)

    def stepped(self, theta: np.ndarray) -> None:
        """Take down a step; it was the last if many together gained nothing that matters."""
        self.costs.append(self.cost)
        steps = self.settings.steps
        if len(self.costs) > steps and self.costs[-1 - steps] - self.cost < steps * self.settings.decrease:
            raise _OverError
