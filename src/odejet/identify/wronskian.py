"""Wronskian: how many experiments determine the coefficients of an input-output equation.

An input-output equation sum_j c_j m_j = 0 is linear in its coefficients.  Along one solution the monomials m_j are
functions of time; if they satisfy no other linear relation with constant coefficients than this one, the solution
determines the c_j up to a common factor, and parameters that give the same outputs give the same coefficients
(Ovchinnikov, Pillay, Pogudin and Scanlon, Computing all identifiable functions of parameters for ODE models, Syst.
Control Lett. 157, 2021).  The rank of the Taylor coefficients of the m_j at a random point modulo a prime tells it: a
rank of one less than their number at some point proves it for nearly all points.

Several experiments together determine them if no other relation holds along all of their solutions: the Taylor
coefficients of all stand beside each other (Ovchinnikov, Pillay, Pogudin and Scanlon, Multi-experiment parameter
identifiability of ODEs and model theory, SIAM J. Appl. Algebra Geom. 6, 2022).  If a further one does not raise the
rank, none does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from flint import nmod_mat, nmod_poly

from odejet.budget import Budget, OutOfBudget
from odejet.identify.local import Problem
from odejet.identify.projection import Projection
from odejet.jets import modular

MARGIN = 8
"""Taylor coefficients beyond the number of monomials."""

ENTRY = 0.4
"""Operations, in nanoseconds, for one entry of a large matrix that is reduced by one row."""


def needed(projection: Projection, problem: Problem, most: int | None, budget: Budget) -> int | None:
    """The least number of experiments that determine all coefficients of a projection.

    None where `most` of them do not, or where no number does.
    """
    found = projection.coefficients()
    monomials: list[list[tuple[int, ...]]] = [[] for _ in range(1 + max(output for output, _ in found))]
    for output, monomial in found:
        monomials[output].append(monomial)
    longest = max(map(len, monomials))
    rows: list[list[list[int]]] = [[[] for _ in own] for own in monomials]
    ranks = [0] * len(monomials)
    for experiments in range(1, (most or longest) + 1):
        jets = _series(projection, problem, longest + MARGIN, experiments)
        grown = False
        for output, own in enumerate(monomials):
            if ranks[output] == len(own) - 1:
                continue
            _ask(len(own), experiments, budget)
            for i, series in _products(jets, own, len(own) + MARGIN, projection.prime):
                rows[output][i] += series
            flat = [x for row in rows[output] for x in row]
            rank = nmod_mat(len(own), len(flat) // len(own), flat, projection.prime).rank()
            grown = grown or rank > ranks[output]
            ranks[output] = rank
        if all(rank == len(own) - 1 for rank, own in zip(ranks, monomials, strict=True)):
            return experiments
        if not grown:
            return None
    return None


def _ask(size: int, experiments: int, budget: Budget) -> None:
    """Count what a rank costs; `OutOfBudget` if that is too much."""
    work = experiments * ENTRY * size**3 + 300.0 * size**2
    if not budget.affords(work) or not budget.fits(30.0 * experiments * size**2):
        raise OutOfBudget("the input-output equations have too many terms")
    budget.check(work)


def _products(
    jets: Sequence[nmod_poly], monomials: Sequence[tuple[int, ...]], length: int, prime: int
) -> Iterator[tuple[int, list[int]]]:
    """The place of every monomial and the Taylor coefficients of its product of powers of series.

    In lexicographic order most of a product is that of the monomial before.
    """
    one = nmod_poly([1], prime)
    powers = [[one] for _ in jets]
    before: tuple[int, ...] = ()
    parts = [one]  # parts[k] is the product of the first k powers
    for place in sorted(range(len(monomials)), key=lambda i: monomials[i]):
        monomial = monomials[place]
        same = next((k for k, (a, b) in enumerate(zip(before, monomial, strict=False)) if a != b), len(before))
        del parts[same + 1 :]
        for series, known, power in zip(jets[same:], powers[same:], monomial[same:], strict=True):
            while len(known) <= power:
                known.append(known[-1].mul_low(series, length))
            parts.append(parts[-1].mul_low(known[power], length) if power else parts[-1])
        before = monomial
        entries = [int(x) for x in parts[-1].coeffs()]
        yield place, entries + [0] * (length - len(entries))


def _series(projection: Projection, problem: Problem, length: int, experiment: int) -> list[nmod_poly]:
    """The derivatives of inputs and outputs along a solution, as series in time, by the names of the projection."""
    prime, tape = projection.prime, problem.tape
    field, generator = modular.Field(prime), random.Random(f"{projection.seed}/wronskian/{experiment}")
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
