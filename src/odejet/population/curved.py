"""Curved: a law of random effects whose later coordinates follow the earlier ones along parabolas.

Coordinates are taken in order, those that the data tell least of first.  Each is normal around a quadratic polynomial
of those before it: where a clearance follows from an absorption rate of which little is known, the posterior is a bent
ridge, and a normal law leaves out its ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

Array = np.ndarray

LOG_2PI = math.log(2 * math.pi)
FAR = 4.0
"""Standard deviations beyond which parabolas are not followed any further."""

RIDGE = 1e-3
"""What is added to the normal equations of squares and products, so that few nodes do not bend much."""

FLOOR = 1e-3
"""Of a variance: what is added to that around a parabola."""


@dataclass(frozen=True, eq=False)
class Curved:
    """Normal laws one after the other, in coordinates that are standardised."""

    order: Array  # of the coordinates
    centre: Array
    scale: Array
    coefficients: tuple[Array, ...]
    sds: Array

    @classmethod
    def following(cls, x: Array, shares: Array, spread: Array) -> Curved:
        """Return the law that follows nodes with these shares; `spread` are sds of the population."""
        centre = shares @ x
        scale = np.sqrt(shares @ (x - centre) ** 2) + 1e-12 * spread
        order = np.argsort(-scale / spread, kind="stable")
        s = ((x - centre) / scale)[:, order]
        coefficients, sds = [], []
        for j in range(x.shape[1]):
            terms = _terms(s[:, :j])
            weighted = terms.T * shares
            normal = weighted @ terms + np.diag([1e-9] * (1 + j) + [RIDGE] * (terms.shape[1] - 1 - j))
            found = np.linalg.solve(normal, weighted @ s[:, j])
            coefficients.append(found)
            sds.append(math.sqrt(shares @ (s[:, j] - terms @ found) ** 2 + FLOOR))
        return cls(order, centre, scale, tuple(coefficients), np.array(sds))

    @property
    def dimensions(self) -> int:
        return len(self.centre)

    def wider(self, times: float) -> Curved:
        """Return the law with larger sds around the same parabolas."""
        return replace(self, sds=times * self.sds)

    def at(self, z: Array) -> Array:
        """Rows of standard normal numbers as points of the law."""
        s, x = np.zeros_like(z), np.empty_like(z)
        for j in range(z.shape[1]):
            s[:, j] = _terms(s[:, :j]) @ self.coefficients[j] + self.sds[j] * z[:, j]
        x[:, self.order] = s
        return self.centre + x * self.scale

    def log_density(self, x: Array) -> Array:
        s = ((x - self.centre) / self.scale)[:, self.order]
        found = np.full(len(x), -float(np.log(self.scale * self.sds[np.argsort(self.order)]).sum()))
        for j in range(x.shape[1]):
            found -= 0.5 * ((s[:, j] - _terms(s[:, :j]) @ self.coefficients[j]) / self.sds[j]) ** 2
        return found - 0.5 * x.shape[1] * LOG_2PI


def _terms(before: Array) -> Array:
    """One, the coordinates before, their squares and products."""
    near, count = np.clip(before, -FAR, FAR), before.shape[1]
    second = [near[:, a] * near[:, b] for a in range(count) for b in range(a + 1)]
    return np.stack([np.ones(len(near)), *near.T, *second], axis=1)
