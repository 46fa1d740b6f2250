"""Bending: a map that takes the bends out of a law, so that a normal law of u is more like it.

A posterior of a nonlinear model is rarely normal: one direction is a parabola of another.  With w of mean zero and unit
variance, in the order of its spread,

    w_j = spread_j u_j + sum_{i <= k < j} bend_jik (u_i u_k - [i = k]),

which is solved for u one by one, has a constant Jacobian, and derivatives that cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEADING = 4
"""Directions whose products bend the others: the widest ones do."""

SURE, WORTH = 4.0, 0.05
"""Standard errors by which a bend must differ from none, if this part of all draws were independent."""


@dataclass(frozen=True, eq=False)
class Bending:
    """The map from u to w."""

    spread: np.ndarray
    bends: np.ndarray  # (directions, products)

    @classmethod
    def none(cls, size: int) -> Bending:
        """Return the identity."""
        return cls(np.ones(size), np.zeros((size, len(_pairs(size)[0]))))

    @classmethod
    def of(cls, w: np.ndarray) -> Bending:
        """Return the map that draws of w show, one in each row."""
        count, size = w.shape
        spread, bends, u = np.ones(size), np.zeros((size, len(_pairs(size)[0]))), np.empty_like(w)
        least = SURE**2 / max(WORTH * count, 1.0)
        for j in range(size):
            seen = np.flatnonzero(_pairs(size)[1] < j)
            left = w[:, j] - w[:, j].mean()
            if len(seen):
                products = _products(u, size)[:, seen]
                # Those that explain least are left out, one after the other.
                while len(seen):
                    gram = products.T @ products + len(seen) * np.eye(len(seen))
                    own = np.linalg.solve(gram, products.T @ left)
                    rest = float(np.mean((left - products @ own) ** 2))
                    strength = own**2 / np.maximum(rest * np.linalg.inv(gram).diagonal() * count, 1e-300)
                    worst = int(np.argmin(strength))
                    if strength[worst] >= least:
                        bends[j, seen] = own
                        left = left - products @ own
                        break
                    seen, products = np.delete(seen, worst), np.delete(products, worst, axis=1)
            spread[j] = max(float(left.std()), 1e-3)
            u[:, j] = left / spread[j]
        return cls(spread, bends)

    @property
    def is_straight(self) -> bool:
        """Whether no direction bends another."""
        return not self.bends.any()

    def to_w(self, u: np.ndarray) -> np.ndarray:
        """Return w for u, or for every row of it."""
        straight = u * self.spread
        return straight if self.is_straight else straight + _products(u, len(self.spread)) @ self.bends.T

    def to_u(self, w: np.ndarray) -> np.ndarray:
        """Return u for w, or for every row of it."""
        if self.is_straight:
            return w / self.spread
        u = np.zeros_like(w)
        for j, (spread, bends) in enumerate(zip(self.spread, self.bends, strict=True)):
            # Products of what is not known yet have no bend here.
            u[..., j] = (w[..., j] - _products(u, len(self.spread)) @ bends) / spread
        return u

    def gradient(self, u: np.ndarray, by_w: np.ndarray) -> np.ndarray:
        """Return the gradient by u from that by w."""
        found = by_w * self.spread
        if self.is_straight:
            return found
        first, second = _pairs(len(u))
        by_products = by_w @ self.bends
        np.add.at(found, first, by_products * u[second])
        np.add.at(found, second, by_products * u[first])
        return found


def _pairs(size: int) -> tuple[np.ndarray, np.ndarray]:
    second, first = np.tril_indices(min(LEADING, size))
    return first, second


def _products(u: np.ndarray, size: int) -> np.ndarray:
    first, second = _pairs(size)
    return np.asarray(u[..., first] * u[..., second] - (first == second))
