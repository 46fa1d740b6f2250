"""Integrals: whether a model has rational first integrals; if it has none, one experiment tells all coefficients.

The monomials of an input-output equation satisfy no other linear relation over the constants of the field of rational
functions of the states.  If these constants are the parameters alone, one solution determines all coefficients
(Ovchinnikov, Pillay, Pogudin and Scanlon, Computing all identifiable functions of parameters for ODE models, Syst.
Control Lett. 157, 2021), and the large matrices of `wronskian` need not be formed.

A constant that is no parameter is a rational first integral.  There is none if at some equilibrium, for some
parameters and constant inputs, the eigenvalues of the Jacobian satisfy no relation k_1 l_1 + ... + k_n l_n = 0 with
whole numbers k (Poincaré; Shi, J. Math. Anal. Appl. 335, 2007): such an equilibrium is isolated, so that it is there
for nearly all parameters, and a relation that holds for all holds there too.

Relations survive modulo a prime q, where they are linear ones over the field of q elements.  Roots of a polynomial c
without double roots satisfy none if and only if l, l^q, l^(q^2), ... are independent modulo c(l), as a polynomial with
only such powers has a linear space of roots.  Parameters are drawn from an extension of the field, of a degree above
the number of states.  All of this proves that there is no integral; where it fails, nothing is known.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from flint import fq_default_ctx, fq_default_poly_ctx, nmod_mpoly

from odejet.identify.projection import Projection
from odejet.identify.symbols import Ratio, Symbols

LONGEST = 2000
"""Terms of an equation of rest beyond which no equilibrium is looked for."""

MOST_STATES = 16
"""States up to which eigenvalues are looked at."""


def absent(projection: Projection) -> bool:
    """Whether a model has no integral for sure; its projection has been started with all parameters as symbols."""
    states = projection.seen()
    rates = [projection.rates[name] for name in states]
    if not 0 < len(states) <= MOST_STATES:
        return False
    plain = [rate for rate in rates if isinstance(rate, Ratio)]
    symbols = projection.symbols
    for single in (True, False):
        solved = _rest(symbols, [rate.above for rate in plain], states, single)
        if solved is not None and _independent(symbols, plain, states, solved):
            return True
    return False


def _rest(
    symbols: Symbols, equations: Sequence[nmod_mpoly], states: Sequence[str], single: bool
) -> list[tuple[str, Ratio]] | None:
    """An equilibrium: unknowns by others, each by those that follow; with `single`, states may be zero."""
    left = [e for e in equations if not e.is_zero()]
    solved: list[tuple[str, Ratio]] = []
    while left:
        choices = []
        for place, equation in enumerate(left):
            if len(equation) > LONGEST:
                return None
            for factor, _ in equation.factor()[1]:
                degrees = factor.degrees()
                # What holds no state is no equation of rest, but a condition on parameters.
                if any(degrees[symbols.index[s]] for s in states) and (single or len(factor) > 1):
                    choices += [
                        ((name not in states, len(factor), place, name), factor)
                        for name in symbols.names
                        if degrees[symbols.index[name]] == 1
                    ]
        if not choices:
            return None
        (_, _, place, name), factor = min(choices, key=lambda choice: choice[0])
        parts = symbols.coefficients(factor, name)
        value = Ratio(-parts[0], parts[1])
        solved.append((name, value))
        del left[place]
        left = [e for e in (symbols.replaced(e, name, value) for e in left) if not e.is_zero()]
    return solved


def _independent(
    symbols: Symbols, rates: Sequence[Ratio], states: Sequence[str], solved: Sequence[tuple[str, Ratio]]
) -> bool:
    """Whether the eigenvalues at an equilibrium satisfy no relation, at a random point of a large field."""
    field = fq_default_ctx(symbols.prime, len(states) + 1, "a")
    generator, root = random.Random(len(symbols.names)), field.gen()
    values = {}
    for name in symbols.names:
        value = field.zero()
        for _ in range(field.degree()):
            value = value * root + generator.randrange(symbols.prime)
        # Inputs are constant.
        values[name] = field.zero() if name[0] == "u" and not name.endswith("_0") else value
    for name, own in reversed(solved):
        below = _at(own.below, symbols, values, field)
        if below.is_zero():
            return False
        values[name] = _at(own.above, symbols, values, field) / below
    rows = []
    for rate in rates:
        below = _at(rate.below, symbols, values, field)
        if below.is_zero() or not _at(rate.above, symbols, values, field).is_zero():
            return False
        rows.append([_at(rate.above.derivative(name), symbols, values, field) / below for name in states])
    return _no_relation(rows, field)


def _at(polynomial: nmod_mpoly, symbols: Symbols, values: Mapping[str, Any], field: Any) -> Any:
    total = field.zero()
    for exponents, coefficient in polynomial.terms():
        term = field.one() * int(coefficient)
        for name, power in zip(symbols.names, exponents, strict=True):
            if power:
                term = term * values[name] ** power
        total = total + term
    return total


def _no_relation(matrix: list[list[Any]], field: Any) -> bool:
    """Whether the eigenvalues of a matrix are linearly independent over the prime field."""
    ring: Any = fq_default_poly_ctx(field)
    characteristic = ring(_characteristic(matrix, field))
    if not characteristic.is_squarefree():
        return False
    power, rows = ring([0, 1]) % characteristic, []
    for _ in matrix:
        rows.append([*power.coeffs(), *[field.zero()] * (len(matrix) - power.length())])
        power = power.pow_mod(field.prime(), characteristic)
    return _rank(rows) == len(rows)


def _characteristic(matrix: list[list[Any]], field: Any) -> list[Any]:
    """The coefficients of a characteristic polynomial from the lowest, by Faddeev and Le Verrier."""
    size = range(len(matrix))
    found = [field.one()]
    product = [[field.zero() for _ in size] for _ in size]
    for k in range(1, len(matrix) + 1):
        for i in size:
            product[i][i] = product[i][i] + found[-1]
        product = [[sum((matrix[i][m] * product[m][j] for m in size), field.zero()) for j in size] for i in size]
        found.append(sum((product[i][i] for i in size), field.zero()) * (field.one() * -k).inverse())
    return found[::-1]


def _rank(rows: list[list[Any]]) -> int:
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((row for row in rows[rank:] if not row[column].is_zero()), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows.insert(rank, pivot)
        rank += 1
        for i in range(rank, len(rows)):
            factor = rows[i][column] / pivot[column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], pivot, strict=True)]
    return rank
