"""Wronskian: whether one experiment determines the coefficients of an input-output equation.

An input-output equation sum_j c_j m_j = 0 is linear in its coefficients.  Along one solution the monomials m_j are
functions of time; if they satisfy no other linear relation with constant coefficients than this one, the solution
determines the c_j up to a common factor, and parameters that give the same outputs give the same coefficients
(Ovchinnikov, Pillay, Pogudin and Scanlon, Computing all identifiable functions of parameters for ODE models, Syst.
Control Lett. 157, 2021).  The rank of the Taylor coefficients of the m_j at a random point modulo a prime tells it: a
rank of one less than their number at some point proves it for nearly all points.
"""

from __future__ import annotations

import random

from flint import nmod_mat, nmod_poly

from odejet.budget import Budget, OutOfBudget
from odejet.identify.local import Problem
from odejet.identify.projection import Projection
from odejet.jets import modular

MARGIN = 8
"""Taylor coefficients beyond the number of monomials."""

ENTRY = 0.4
"""Operations, in nanoseconds, for one entry of a large matrix that is reduced by one row."""


def is_full(projection: Projection, problem: Problem, budget: Budget) -> bool:
    """Whether all coefficients of the equations of a projection are determined by one experiment."""
    found = projection.coefficients()
    sizes = [sum(key[0] == output for key in found) for output in range(projection.outputs)]
    if not budget.affords(sum(ENTRY * n**3 + 300.0 * n**2 for n in sizes)) or not budget.fits(30.0 * max(sizes) ** 2):
        raise OutOfBudget("the input-output equations have too many terms")
    jets = _series(projection, problem, max(sizes) + MARGIN)
    for output, size in enumerate(sizes):
        monomials = [key[1] for key in found if key[0] == output]
        budget.check(ENTRY * size**3)
        length = size + MARGIN
        rows: list[int] = []
        for monomial in monomials:
            product = nmod_poly([1], projection.prime)
            for series, power in zip(jets, monomial, strict=True):
                for _ in range(power):
                    product = product.mul_low(series, length)
            entries = [int(x) for x in product.coeffs()]
            rows += entries + [0] * (length - len(entries))
        if nmod_mat(size, length, rows, projection.prime).rank() < size - 1:
            return False
    return True


def _series(projection: Projection, problem: Problem, length: int) -> list[nmod_poly]:
    """The derivatives of inputs and outputs along a solution, as series in time, by the names of the projection."""
    prime, tape = projection.prime, problem.tape
    field, generator = modular.Field(prime), random.Random(f"{projection.seed}/wronskian")
    known = bool(problem.model.initial)
    order = length + max(projection.highest) + 1
    point = modular.random_point(tape, field, generator, order + 1, known_initial=known)
    own = projection.parameters[: len(tape.parameters)]
    at = modular.point(tape, field, point.states, own, point.time, point.inputs, generator, known_initial=known)
    outputs = modular.jets(tape, field, at, order, tangents=False, known_initial=known).outputs[:, :, 0]
    factorials = [1]
    for k in range(1, order + 1):
        factorials.append(factorials[-1] * k % prime)
    inverse = [pow(f, -1, prime) for f in factorials[:length]]
    result = []
    for name in projection.jets:
        head, order_of = name.split("_")
        number, shift = int(head[1:]), int(order_of)
        series = at.inputs[number] if head[0] == "u" else outputs[number]
        result.append(
            nmod_poly(
                [int(series[j + shift]) * factorials[j + shift] % prime * inverse[j] % prime for j in range(length)],
                prime,
            )
        )
    return result
