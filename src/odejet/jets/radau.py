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

from odejet.jets.lanes import padded

_STAGES = ((1e-4, 3), (1e-10, 7))  # five take no less time than seven, since their nodes take as many lanes
_MOST = 9


def stages_for(tolerance: float) -> int:
    """How many stages serve a tolerance: more for a smaller one, since each adds two orders."""
    return next((stages for loosest, stages in _STAGES if tolerance >= loosest), _MOST)


class Abreast(NamedTuple):
    """A Radau rule for kernels that keep the nodes in lanes, or the systems that the stages fall into."""

    nodes: np.ndarray  # in lanes; lanes without a node are as the start
    rates: np.ndarray  # (2, systems): real and imaginary parts; lanes without a system have the real one
    inverse: np.ndarray  # (nodes, lanes): columns of A^-1
    apart: np.ndarray  # (nodes, 2, systems): columns of V^-1, real and imaginary parts
    together: np.ndarray  # (systems, 2, lanes): columns of V alike
    analysis: np.ndarray  # (nodes, lanes): what a node contributes to the Legendre coefficients, which are in lanes


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
    abreast: Abreast


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
    analysis = np.linalg.inv(legendre.legvander(2 * nodes - 1, stages))
    return Radau(
        points=points,
        matrix=matrix,
        inverse=inverse,
        nodes=nodes,
        barycentric=1 / gaps.prod(axis=1),
        analysis=analysis,
        powers=np.linalg.inv(polynomial.polyvander(nodes, stages)),
        real_rate=float(rates[real].real),
        rates=np.ascontiguousarray(np.stack([rates[pairs].real, rates[pairs].imag], axis=1)),
        apart=np.ascontiguousarray(rows),
        together=np.ascontiguousarray(np.transpose(columns)),
        abreast=_abreast(nodes, inverse, rates[[real, *pairs]], np.array(rows), np.array(columns), analysis),
    )


def _abreast(
    nodes: np.ndarray,
    inverse: np.ndarray,
    rates: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    analysis: np.ndarray,
) -> Abreast:
    count, systems = len(nodes), len(rates)
    lanes, wide = padded(count), padded(systems)
    weights, apart = np.zeros((2, count, lanes)), np.zeros((count, 2, wide))
    weights[0, 1:, 1:count], weights[1, :, :count] = inverse.T, analysis.T
    together, speeds = np.zeros((systems, 2, lanes)), np.array([np.full(wide, rates[0].real), np.zeros(wide)])
    speeds[:, :systems] = rates.real, rates.imag
    apart[1:, 0, 0], together[0, 0, 1:count] = rows[0], columns[0]
    for q in range(1, systems):
        for part in range(2):
            apart[1:, part, q], together[q, part, 1:count] = rows[2 * q - 1 + part], columns[2 * q - 1 + part]
    return Abreast(np.r_[nodes, np.zeros(lanes - count)], speeds, weights[0], apart, together, weights[1])
