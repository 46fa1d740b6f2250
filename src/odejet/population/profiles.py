"""Profiles: the marginal likelihood of a population along one of its parameters, all others at their best.

    deviance(c) = 2 min { - log L(u) : quantity(u) = c } - 2 (- log L at the optimum)

From the optimum the quantity walks outward in both directions.  Nodes follow the posteriors at every point, and the
held maximum is looked for on them.  The root of the deviance is nearly linear in the distance, which tells the next
step and, at the end, where it crosses the quantile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from odejet.budget import OutOfBudget
from odejet.clock import now
from odejet.errors import ModelError, nearest
from odejet.population.estimation import Estimated
from odejet.population.integration import Integrator
from odejet.population.layout import Layout
from odejet.population.marginal import Marginal
from odejet.population.simulating import Members, Simulator
from odejet.uncertainty.profile import End, Profile, Scale, deviance_quantile

Array = np.ndarray

ERROR = 0.06
"""Of the deviance at a point, by its own computation."""

POINTS = 8
"""On one side at most."""

CLOSE = 0.03
"""Of the crossing: near enough for interpolation."""

FARTHEST = math.log(1e3)
"""On a logarithmic scale: what may be so many times larger or smaller has no end."""

GROWTH = 2.5
"""Of a step from one to the next."""

ROUNDS = 2
"""Of nodes at one point, where parameters without random effects move them."""

BETTER = 0.3
"""A deviance below minus this is a better maximum, not an error of its computation."""


def profile(estimated: Estimated, name: str, level: float, time_limit: float, seed: int = 0) -> Profile:
    """Follow the likelihood along a parameter of the population until it leaves the interval of a level."""
    names = estimated.layout.names
    if name not in names:
        raise ModelError(f"there is no parameter '{name}'{nearest(str(name), names)}")
    begin = now()
    deadline = begin + time_limit
    with Simulator(Members(estimated.population.members, deadline)) as simulator:
        walk = _Walk(estimated, names.index(name), level, simulator, seed)
        below, low_end = walk.side(-1, begin + time_limit / 2)
        above, high_end = walk.side(1, deadline)
    points = [*below[::-1], (walk.origin, 0.0, estimated.u), *above]
    values = np.array([float(walk.scale.back(phi)) for phi, _, _ in points])
    values[len(below)] = walk.estimate
    return Profile(
        label=name,
        labels=names,
        scale=walk.scale,
        values=values,
        deviances=np.array([root**2 for _, root, _ in points]),
        unknowns=np.array([estimated.layout.natural(u) for _, _, u in points]),
        estimate=walk.estimate,
        ends=(low_end, high_end),
        level=level,
        degrees_of_freedom=math.inf,
        ratio=1.0,
        bounds=walk.bounds,
        note="a better maximum lies beside it; fit with another seed" if walk.better else "",
        evaluations=walk.evaluations,
        seconds=now() - begin,
    )


class _Walk:
    """The way from the optimum outward, along one parameter."""

    def __init__(self, estimated: Estimated, place: int, level: float, simulator: Simulator, seed: int) -> None:
        self.layout, self.place, self.best = estimated.layout, place, estimated.u
        self.simulator, self.evaluations, self.better = simulator, 0, False
        self.penalty, self.seed = estimated.population.penalty(self.layout), seed
        self.crossing = math.sqrt(deviance_quantile(level, math.inf, 1.0))
        # The maximum on nodes is a little above that of the exact likelihood.
        self.least = 2 * estimated.marginal.value_and_gradient(self.best)[0] + estimated.optimism
        self.marginal = estimated.marginal
        self.estimate = float(self.layout.natural(self.best)[place])
        self.bounds = _bounds(self.layout, place)
        slope = self.layout.slopes(self.best)[place]
        moved = estimated.covariance @ slope
        self.sd = math.sqrt(max(float(slope @ moved), 1e-300))
        keeps_sign = self.bounds[0] >= 0
        self.scale = Scale(1.0, 1.0) if keeps_sign else Scale(0.0, max(abs(self.estimate), self.sd))
        self.origin = float(self.scale.to(self.estimate))
        unit = self.scale.slope(self.estimate)
        self.sd, self.towards = self.sd / unit, moved / self.sd**2 * unit

    def side(self, sign: int, deadline: float) -> tuple[list[tuple[float, float, Array]], End]:
        """Return points on one side, outward: the quantity, the root of its deviance, u; and why there are no more."""
        found: list[tuple[float, float, Array]] = []
        here, root, u, marginal = self.origin, 0.0, self.best, self.marginal
        with np.errstate(divide="ignore"):
            limit = [float(self.scale.to(end)) for end in self.bounds][(sign + 1) // 2]
        farthest = self.origin + sign * FARTHEST
        step = self.crossing * min(self.sd, 1.0)
        integrator = Integrator(self.layout, self.simulator, self.seed, penalty=self.penalty)
        try:
            integrator.adapt_to_modes(u, range(integrator.count))
            integrator.look_for_modes(u)
            while len(found) < POINTS:
                if now() > deadline:
                    return found, End.EFFORT
                phi = here + sign * step
                if sign * (limit - phi) <= 0:
                    phi = 0.5 * (here + limit)
                if sign * (farthest - phi) < 0:
                    return found, End.FAR
                start = u + (phi - here) * self.towards
                u, marginal, deviance = self._held(integrator, marginal, start, float(self.scale.back(phi)))
                if not math.isfinite(deviance):
                    return found, End.UNREACHED
                self.better |= deviance < -BETTER
                before, root = root, math.sqrt(max(deviance, 0.0))
                found.append((phi, root, u))
                if root >= self.crossing * (1 - CLOSE) and (root - before < self.crossing or len(found) > 1):
                    return self._closed(found), End.CLOSED
                gain = (root - before) / max(abs(phi - here), 1e-12)
                step = min((self.crossing * (1 + CLOSE / 2) - root) / max(gain, 1e-12), GROWTH * abs(phi - here))
                here = phi
        except OutOfBudget:
            return found, End.EFFORT
        return found, End.CLOSED if found[-1][1] >= self.crossing else End.FAR

    def _closed(self, found: list[tuple[float, float, Array]]) -> list[tuple[float, float, Array]]:
        """Return points of which the last is not below the quantile: one that is nearly there is carried on to it."""
        phi, root, u = found[-1]
        if root < self.crossing:
            phi = self.origin + (phi - self.origin) * self.crossing / root
            found[-1] = phi, self.crossing, u
        return found

    def _held(
        self, integrator: Integrator, marginal: Marginal, start: Array, value: float
    ) -> tuple[Array, Marginal, float]:
        """The maximum at which the quantity has a value, the nodes there, and its deviance."""
        u = self._maximised(marginal, start, value)
        for _ in range(ROUNDS if self.layout.common else 1):
            marginal, _ = integrator.integrated(u, ERROR)
            u = self._maximised(marginal, u, value)
        return u, marginal, 2 * marginal.value_and_gradient(u)[0] - self.least

    def _maximised(self, marginal: Marginal, start: Array, value: float) -> Array:
        from scipy.optimize import minimize

        unit = self.scale.slope(value)

        def cost(u: Array) -> tuple[float, Array]:
            self.simulator.members.check()
            self.evaluations += 1
            found, gradient = marginal.value_and_gradient(u)
            return (found, gradient) if math.isfinite(found) else (1e15, np.zeros(len(u)))

        held = {
            "type": "eq",
            "fun": lambda u: (self.layout.natural(u)[self.place] - value) / unit,
            "jac": lambda u: self.layout.slopes(u)[self.place] / unit,
        }
        reach = 2.0 + np.abs(start - self.best)
        found: Any = minimize(
            cost,
            start,
            jac=True,
            method="SLSQP",
            bounds=list(zip(start - reach, start + reach, strict=True)),
            constraints=[held],
            options={"maxiter": 60, "ftol": 1e-5},
        )
        return np.asarray(found.x)


def _bounds(layout: Layout, place: int) -> tuple[float, float]:
    """The values that a parameter may have."""
    name = layout.names[place]
    if name.startswith("corr_"):
        return -1.0, 1.0
    if place < len(layout.typical):
        return layout.scales[place].limits
    return (-math.inf, math.inf) if place < layout.fixed_effects else (0.0, math.inf)
