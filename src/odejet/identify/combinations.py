"""Combinations: what of lost quantities survives, written as a person would.

Let v be a direction in which no output changes. A product of powers, prod z_i^a_i, is identifiable when sum_i a_i v_i
/ z_i = 0, and a polynomial sum_m c_m m(z) when sum_m c_m (grad m . v) = 0, for all v at all points. Both are linear
in the unknown constants a and c, so their solutions over a prime field, stacked over enough random points and read
back as small fractions, are all invariants of these forms: the first kind holds those of scalings (`k1*k2`), the
second those of translations (`a01 + a12 + a21`) and more; sums of quotients (`q - q/r`) come last.  The simplest ones
that are independent are kept, and each is tested again at fresh points and primes before it is returned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import gcd, lcm

import numpy as np
from flint import fmpz_mat, nmod_mat

from odejet.budget import Budget, OutOfBudget
from odejet.identify.local import Jacobian, Local, Problem, analyse, kernel, problem, small_fraction
from odejet.jets import modular
from odejet.model.expressions import names

MAX_FEATURES = 400
"""Quadratic polynomials are looked for among at most this many monomials."""

MOST_PAIRS = 12
"""Pairs of lost quantities that are returned."""

MAX_TERMS = 6
"""Longer expressions are nothing a person would write."""


def find(local: Local, seed: int = 0, budget: Budget | None = None) -> tuple[str, ...]:
    """Independent identifiable combinations of the quantities that are lost one by one; those found in the budget."""
    model = local.problem.model
    lost = [name for name in model.unknowns if not local.identifiable[name]]
    target = len(lost) - local.missing
    if target <= 0:
        return ()
    parameters = [name for name in lost if name in model.parameters]
    points = _Points(local, seed, budget or Budget())
    found: tuple[str, ...] = ()
    try:
        candidates = [*_products(points, parameters), *_products(points, lost), *_sums(points, lost, 1)]
        found = _simplest(points, candidates, target)
        if len(found) < target:
            candidates += _sums(points, lost, 2)
            found = _simplest(points, candidates, target)
        if len(found) < target:
            found = _simplest(points, [*candidates, *_quotients(points, lost)], target)
    except (OutOfBudget, modular.Unlucky):
        pass
    return found


def pairs(local: Local) -> list[str]:
    """Products and quotients of two lost quantities that are identifiable, whether others tell them or not."""
    model, at = local.problem.model, local.points[0]
    everything = (*at.point.states, *at.point.parameters)
    lost = [(i, name) for i, name in enumerate(model.unknowns) if not local.identifiable[name]]
    inverse = {i: pow(int(everything[local.problem.columns[i]]), -1, at.prime) for i, _ in lost}
    found: list[str] = []
    for k, (i, one) in enumerate(lost):
        for j, other in lost[k + 1 :]:
            for sign, text in ((1, f"{one}*{other}"), (-1, f"{one}/{other}")):
                if not any((int(v[i]) * inverse[i] + sign * int(v[j]) * inverse[j]) % at.prime for v in at.kernel):
                    found.append(text)
    return found[:MOST_PAIRS]


class _Points:
    """Random points modulo one prime, with the values of the unknowns, as many as are asked for."""

    def __init__(self, local: Local, seed: int, budget: Budget) -> None:
        self.local, self.seed, self.budget = local, seed, budget
        self.question = replace(local.problem, functions={})
        self.found: list[tuple[Jacobian, np.ndarray]] = []

    def enough(self, equations: int) -> list[tuple[Jacobian, np.ndarray]]:
        """Points whose kernels give so many equations, and a few more."""
        count = equations // self.local.missing + 3
        while len(self.found) < count:
            self.budget.check(self.question.work(self.local.order))
            at = self.question.at_random(modular.PRIMES[-1], 1000 * self.seed + len(self.found) + 1, self.local.order)
            everything = (*at.point.states, *at.point.parameters)
            values = np.array([everything[column] for column in self.question.columns], dtype=object)
            self.found.append((at, values))
        return self.found[:count]


def _simplest(points: _Points, candidates: Sequence[str], target: int) -> tuple[str, ...]:
    """Independent candidates, the simplest first, that pass the exact test at fresh points."""
    question = problem(points.question.model, candidates, points.question.inputs, points.question.experiments)
    tested = analyse(question, points.seed + 1, 3, points.budget)
    ordered = sorted(question.functions, key=lambda text: _complexity(text, question))
    return _independent(tested, [text for text in ordered if tested.identifiable[text]], target)


def _complexity(text: str, question: Problem) -> tuple[bool, int, int]:
    """People care for parameters first, and for short expressions."""
    states = any(name in question.model.states for name in names(question.functions[text]))
    return states, text.count("*") + text.count("/") + text.count(" "), len(text)


def _independent(tested: Local, candidates: Sequence[str], target: int) -> tuple[str, ...]:
    """The first candidates whose gradients, restricted to what is lost, are independent."""
    point = tested.points[0]
    lost = [i for i, name in enumerate(tested.problem.model.unknowns) if not tested.identifiable[name]]
    position = {name: i for i, name in enumerate(tested.problem.functions)}
    chosen: list[str] = []
    rows: list[int] = []
    for name in candidates:
        row = [int(x) for x in point.gradients[position[name]][lost]]
        if nmod_mat(len(chosen) + 1, len(lost), rows + row, point.prime).rank() > len(chosen):
            chosen.append(name)
            rows += row
        if len(chosen) == target:
            break
    return tuple(chosen)


def _products(points: _Points, lost: Sequence[str]) -> list[str]:
    if not lost:
        return []
    index = [points.question.model.unknowns.index(name) for name in lost]
    rows: list[list[int]] = []
    for at, values in points.enough(len(lost)):
        inverse = [pow(int(values[i]), -1, at.prime) for i in index]
        rows += [[int(v[i]) * w % at.prime for i, w in zip(index, inverse, strict=True)] for v in at.kernel]
    vectors = [_whole(vector) for vector in _solutions(rows)]
    whole = [v for v in vectors if v is not None]
    if whole:
        short = fmpz_mat(whole).lll().tolist()
        whole += [[int(x) for x in vector] for vector in short]
    return [text for vector in whole if (text := _product(vector, lost))]


def _product(exponents: Sequence[int], symbols: Sequence[str]) -> str:
    if sum(exponents) < 0 or (sum(exponents) == 0 and next((a for a in exponents if a), 0) < 0):
        exponents = [-a for a in exponents]
    above = [_power(name, a) for name, a in zip(symbols, exponents, strict=True) if a > 0]
    below = [_power(name, -a) for name, a in zip(symbols, exponents, strict=True) if a < 0]
    if not 1 < len(above) + len(below) <= MAX_TERMS or max(map(abs, exponents)) > MAX_TERMS:
        return ""
    return "/".join(["*".join(above) or "1", *below])


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}**{exponent}"


def _sums(points: _Points, lost: Sequence[str], degree: int) -> list[str]:
    """Sums of unknowns, or of monomials of degree one and two, with constant coefficients."""
    unknowns = points.question.model.unknowns
    at_loss = {unknowns.index(name) for name in lost}
    monomials: list[tuple[int, ...]] = [(i,) for i in sorted(at_loss)]
    if degree == 2:
        every = range(len(unknowns))
        square = [(i, j) for i in every for j in every if i <= j and (i in at_loss or j in at_loss)]
        if len(square) > MAX_FEATURES:
            square = [(i, j) for i, j in square if i in at_loss and j in at_loss][:MAX_FEATURES]
        monomials = [*reversed(square), *reversed(monomials)]
    rows: list[list[int]] = []
    for at, values in points.enough(len(monomials)):
        rows += [[_along(m, values, v) % at.prime for m in monomials] for v in at.kernel]
    found = [_whole(vector) for vector in _solutions(rows)]
    return [text for vector in found if vector is not None and (text := _sum(vector, monomials, unknowns))]


def _quotients(points: _Points, lost: Sequence[str]) -> list[str]:
    """Sums, with constant coefficients, of products of few lost quantities and their inverses."""
    index = [points.question.model.unknowns.index(name) for name in lost]
    exponents = [e for e in product((0, 1, -1), repeat=len(lost)) if 0 < sum(map(abs, e)) <= 3] if len(lost) < 8 else []
    exponents.sort(key=lambda e: (sum(map(abs, e)), -sum(e)), reverse=True)
    if not exponents or len(exponents) > MAX_FEATURES:
        return []
    rows: list[list[int]] = []
    for at, values in points.enough(len(exponents)):
        own = [int(values[i]) for i in index]
        inverse = [pow(value, -1, at.prime) for value in own]
        sizes = []
        for powers in exponents:
            size = 1
            for value, other, e in zip(own, inverse, powers, strict=True):
                size = size * (value if e > 0 else other if e < 0 else 1) % at.prime
            sizes.append(size)
        for v in at.kernel:
            rates = [int(v[i]) * w % at.prime for i, w in zip(index, inverse, strict=True)]
            row = []
            for powers, size in zip(exponents, sizes, strict=True):
                row.append(size * sum(e * rate for e, rate in zip(powers, rates, strict=True)) % at.prime)
            rows.append(row)
    found = []
    for vector in map(_whole, _solutions(rows)):
        terms = [(c, e) for c, e in zip(vector or (), exponents, strict=bool(vector)) if c]
        if 1 < len(terms) <= MAX_TERMS:
            found.append(" ".join(f"{'-' if c < 0 else '+'} {abs(c)}*{_factors(e, lost)}" for c, e in reversed(terms)))
    return [_tidy(text) for text in found]


def _factors(exponents: Sequence[int], symbols: Sequence[str]) -> str:
    above = [name for name, e in zip(symbols, exponents, strict=True) if e > 0]
    below = [name for name, e in zip(symbols, exponents, strict=True) if e < 0]
    return "/".join(["*".join(above) or "1", *below])


def _tidy(text: str) -> str:
    """Factors of one and a leading plus left out."""
    return re.sub(r"(^|[ (])1\*(?=[^\W\d]|1/)", r"\1", text).removeprefix("+ ")


def _along(monomial: tuple[int, ...], values: np.ndarray, direction: np.ndarray) -> int:
    """The derivative of a monomial of degree one or two."""
    if len(monomial) == 1:
        return int(direction[monomial[0]])
    i, j = monomial
    return int(direction[i]) * int(values[j]) + int(values[i]) * int(direction[j])


def _sum(coefficients: Sequence[int], monomials: Sequence[tuple[int, ...]], symbols: Sequence[str]) -> str:
    terms = [(c, m) for c, m in sorted(zip(coefficients, monomials, strict=True), key=lambda t: t[1]) if c]
    if not 1 < len(terms) <= MAX_TERMS:
        return ""
    sign = -1 if sum(c < 0 for c, _ in terms) * 2 > len(terms) or (terms[0][0] < 0 and len(terms) == 2) else 1
    terms = sorted(((sign * c, m) for c, m in terms), key=lambda t: t[0] < 0)
    text = ""
    for c, monomial in terms:
        powers = [_power(symbols[i], monomial.count(i)) for i in dict.fromkeys(monomial)]
        product = "*".join([*([str(abs(c))] if abs(c) != 1 else []), *powers])
        text += ("" if not text and c > 0 else "-" if not text else " - " if c < 0 else " + ") + product
    return text


def _solutions(rows: list[list[int]]) -> np.ndarray:
    """The constant vectors that satisfy all equations, modulo the prime."""
    matrix = nmod_mat(len(rows), len(rows[0]), [x for row in rows for x in row], modular.PRIMES[-1])
    return kernel(*matrix.rref())


def _whole(vector: Sequence[int]) -> list[int] | None:
    """The residues of small fractions as whole numbers without a common factor; None if they are not small."""
    fractions = [small_fraction(int(x), modular.PRIMES[-1]) for x in vector]
    if any(f is None for f in fractions):
        return None
    common = lcm(*(f.denominator for f in fractions if f is not None))
    whole = [int(f * common) for f in fractions if f is not None]
    divisor = gcd(*whole)
    return [x // divisor for x in whole]
