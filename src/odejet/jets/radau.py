"""Radau: the collocation rules of Radau IIA, and the transformation that takes their stages apart.

A rule with s stages (odd) is L-stable and of order 2s - 1 at the end of a step (Hairer and Wanner 1996, IV.5).  The
linear system of its stages is A^-1 (x) I - h I (x) J.  With A^-1 = V diag(mu) V^-1 it falls into one real system
mu_0 I - h J and (s - 1)/2 complex ones (Butcher 1976; Hairer and Wanner 1996, IV.8).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre, polynomial

_STAGES = ((1e-5, 3), (1e-7, 5), (1e-10, 7))
_MOST = 9


def stages_for(tolerance: float) -> int:
    """How many stages serve a tolerance: more for a smaller one, since each adds two orders."""
    return next((stages for loosest, stages in _STAGES if tolerance >= loosest), _MOST)


class Radau(NamedTuple):
    """The points c of Radau IIA; polynomials have their values at the nodes, which are 0 and the points."""

    points: np.ndarray
    matrix: np.ndarray  # A
    inverse: np.ndarray  # its inverse
    nodes: np.ndarray
    barycentric: np.ndarray
    analysis: np.ndarray  # values at the nodes -> Legendre coefficients on the step
    powers: np.ndarray  # values at the nodes -> coefficients of powers of the place on the step
    real_rate: float  # mu_0
    rates: np.ndarray  # mu_q of the complex pairs, as real and imaginary parts
    apart: np.ndarray  # rows of V^-1: real; then real and imaginary parts of each pair
    together: np.ndarray  # columns of V alike, for sums of parts with their conjugates


@cache
def radau(stages: int) -> Radau:
    # The points are the roots of P_s - P_{s-1}, moved from [-1, 1] to [0, 1].
    points = (np.sort(legendre.legroots(np.r_[np.zeros(stages - 1), -1.0, 1.0]).real) + 1) / 2
    points[-1] = 1.0
    integrals = [legendre.legval(2 * points - 1, legendre.legint(row, lbnd=-1)) / 2 for row in np.eye(stages)]
    matrix = np.stack(integrals, axis=1) @ np.linalg.inv(legendre.legvander(2 * points - 1, stages - 1))
    nodes = np.r_[0.0, points]
    gaps = nodes[:, None] - nodes[None, :] + np.eye(stages + 1)
    inverse = np.linalg.inv(matrix)
    rates, vectors = np.linalg.eig(inverse)
    left = np.linalg.inv(vectors)
    real, pairs = int(np.argmin(np.abs(rates.imag))), np.flatnonzero(rates.imag > 1e-6)
    rows, columns = [left[real].real], [vectors[:, real].real]
    for q in pairs:
        rows += [left[q].real, left[q].imag]
        columns += [2 * vectors[:, q].real, -2 * vectors[:, q].imag]
    return Radau(
        points=points,
        matrix=matrix,
        inverse=inverse,
        nodes=nodes,
        barycentric=1 / gaps.prod(axis=1),
        analysis=np.linalg.inv(legendre.legvander(2 * nodes - 1, stages)),
        powers=np.linalg.inv(polynomial.polyvander(nodes, stages)),
        real_rate=float(rates[real].real),
        rates=np.ascontiguousarray(np.stack([rates[pairs].real, rates[pairs].imag], axis=1)),
        apart=np.ascontiguousarray(rows),
        together=np.ascontiguousarray(np.transpose(columns)),
    )
