"""Forms: products of powers, and sums, that data determine where they do not determine the parts.

In logarithmic coordinates a product of powers is a linear form a'log z, with variance a'Ca for the covariance C of the
logarithms; a sum is such a form in the unknowns themselves.  The eigenvectors of the information with large eigenvalues
are the forms that the data know best, but people cannot read them; so small whole coefficients of few parts are tried
first, all of them, and where none will do the best-known eigenvectors in the logarithms are freed of their small
exponents and rounded.  Every one is only a proposal: curvature at the optimum made it, and a profile has to confirm it.
Proposals from farther away are those of `valley`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.uncertainty.fisher import RANK, Information

FACTORS, TERMS = 4, 3
"""Longer products and sums are nothing a person would write."""

EXPONENTS, COEFFICIENTS = (1, -1, 2, -2), (1, -1)
MOST_TRIED = 200_000
_DECIMALS = 0.1  # exponents of eigenvectors are rounded to multiples of this
_LEAST, _MOST = 0.1, 4.0  # sizes of their exponents, the largest being one before others are fitted to it
_GAIN, _SHARPER = 3.0, 1.5  # how much better a form must be known than a loose part of it, and than any part
_NEWS = 0.1  # how far, as an angle, the loose parts of a form must be from those of others
_SLACK = 1.5  # how much less precise a rounded or shortened form may be


@dataclass(frozen=True)
class Form:
    """Coefficients of the unknowns in a sum, or their exponents in a product, and its relative sd."""

    coefficients: np.ndarray
    sd: float
    product: bool = True

    @property
    def complexity(self) -> tuple[int, float]:
        """Parts first, then the size of their coefficients; whole ones before others."""
        sizes = np.abs(self.coefficients)
        whole = np.all(self.coefficients == np.round(self.coefficients))
        return int(np.count_nonzero(sizes)) + 2 * (not whole), float(sizes.sum())

    def text(self, names: Sequence[str]) -> str:
        pairs = [(n, a) for n, a in zip(names, self.coefficients.tolist(), strict=True) if a]
        if not self.product:
            ordered = sorted(pairs, key=lambda pair: pair[1] < 0)
            return "".join(
                (" - " if a < 0 else " + " if i else "") + _term(n, abs(a)) for i, (n, a) in enumerate(ordered)
            )
        above = [_power(n, a) for n, a in pairs if a > 0]
        below = [_power(n, -a) for n, a in pairs if a < 0]
        return "/".join(["*".join(above) or "1", *below])

    def at(self, points: np.ndarray) -> np.ndarray:
        """Values at unknowns in rows; NaN where there is none."""
        if not self.product:
            return np.asarray(points @ self.coefficients)
        chosen = self.coefficients != 0
        with np.errstate(all="ignore"):
            return np.asarray(np.prod(points[:, chosen] ** self.coefficients[chosen], axis=1))


def _power(name: str, exponent: float) -> str:
    return name if exponent == 1 else f"{name}**{exponent:g}"


def _term(name: str, coefficient: float) -> str:
    return name if coefficient == 1 else f"{coefficient:g}*{name}"


def exponents_of(count: int) -> np.ndarray:
    """All small whole exponents of so many factors, in rows; no two are powers of each other."""
    every = itertools.product(EXPONENTS, repeat=count)
    return np.array([powers for powers in every if powers[0] > 0 and math.gcd(*powers) == 1])


def proposals(
    known: Information, z: np.ndarray, usable: Sequence[int], precision: float, alike: Sequence[object] = ()
) -> list[Form]:
    """Forms in the unknowns at positions `usable` with a relative sd below `precision`, though some of their parts have
    not; independent of each other, the simplest first.  Sums are for unknowns whose entries of `alike` are equal."""
    usable = [i for i in usable if z[i] != 0]
    root = relative_root(known, z)[:, usable]
    if len(usable) < 2:
        return []
    own = np.sqrt((root**2).sum(axis=0))
    loose = own > precision
    found = list(_products(root, precision, loose))
    if alike:
        found += _sums(root, z[usable], precision, loose, [alike[i] for i in usable])
    chosen = _distinct(sorted(_gaining(found, own, loose), key=lambda form: (*form.complexity, form.sd)), loose)
    if np.all(z[usable] > 0):  # broken powers are for positive numbers only
        chosen = _distinct([*chosen, *_gaining(_eigenvectors(root, precision, loose), own, loose)], loose)
    return [_spread(form, usable, len(z)) for form in chosen]


def sharpest(known: Information, z: np.ndarray, usable: Sequence[int], precision: float) -> list[Form]:
    """Products that are known better than a factor of them, however well that is known."""
    usable = [i for i in usable if z[i] > 0]
    if len(usable) < 2:
        return []
    root = relative_root(known, z)[:, usable]
    own, every = np.sqrt((root**2).sum(axis=0)), np.ones(len(usable), dtype=bool)
    forms = _distinct(_gaining(_eigenvectors(root, precision, every), own, every, _SHARPER), every)
    return [_spread(form, usable, len(z)) for form in forms]


def relative_root(known: Information, z: np.ndarray) -> np.ndarray:
    """A square root R of the covariance of the logarithms of the unknowns: the sd of a form a in them is |R a|.

    Along directions of which nothing is known it is as large as rounding lets one tell; a quantity that is zero has no
    logarithm, and a column that is not finite.
    """
    rows = [*known.roots]
    if len(known.null):
        lengths = np.sqrt(((known.null * known.sizes) ** 2).sum(axis=1))
        rows.append(known.null / (RANK * lengths[:, None]))
    triangle = np.linalg.qr(np.concatenate(rows), mode="r")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(triangle / z)


def _products(root: np.ndarray, precision: float, loose: np.ndarray) -> Iterator[Form]:
    """All products of few factors with small whole exponents that are precise enough and have a loose factor."""
    n, tried = root.shape[1], 0
    for count in range(2, min(FACTORS, n) + 1):
        powers = exponents_of(count)
        for chosen in itertools.combinations(range(n), count):
            if not loose[list(chosen)].any():
                continue
            tried += len(powers)
            if tried > MOST_TRIED:
                return
            sds = np.sqrt(((powers @ root[:, chosen].T) ** 2).sum(axis=1))
            for i in np.flatnonzero(sds <= precision):
                exponents = np.zeros(n)
                exponents[list(chosen)] = powers[i]
                yield Form(exponents if exponents.sum() >= 0 else -exponents, float(sds[i]))


def _sums(
    root: np.ndarray, z: np.ndarray, precision: float, loose: np.ndarray, alike: Sequence[object]
) -> Iterator[Form]:
    """All sums and differences of few loose unknowns of one sort that are precise enough."""
    places = np.flatnonzero(loose)
    for count in range(2, min(TERMS, len(places)) + 1):
        for chosen in itertools.combinations(places.tolist(), count):
            if len({alike[i] for i in chosen}) > 1:
                continue
            for signs in itertools.product(COEFFICIENTS, repeat=count - 1):
                coefficients = np.zeros(len(z))
                coefficients[list(chosen)] = [1, *signs]
                value = float(coefficients @ z)
                sd = float(np.linalg.norm(root @ (coefficients * z))) / abs(value) if value else math.inf
                if sd <= precision:
                    yield Form(oriented(coefficients, value), sd, product=False)


def oriented(coefficients: np.ndarray, value: float) -> np.ndarray:
    """The coefficients of a sum with the sign that makes it positive, unless nothing would be added then."""
    turned = coefficients if value > 0 else -coefficients
    return turned if np.any(turned > 0) else -turned


def _gaining(
    forms: Iterator[Form] | Sequence[Form], own: np.ndarray, loose: np.ndarray, gain: float = _GAIN
) -> list[Form]:
    """Forms that are known much better than a loose part of them."""
    kept = []
    for form in forms:
        exponents = form.coefficients if form.product else np.sign(form.coefficients)
        if float((np.abs(exponents) * own)[loose].max(initial=0.0)) >= gain * form.sd:
            kept.append(form)
    return kept


def _eigenvectors(root: np.ndarray, precision: float, loose: np.ndarray) -> Iterator[Form]:
    """Well-known eigenvectors with few, rounded exponents, the best-known first."""
    _, sds, vectors = np.linalg.svd(root, full_matrices=False)
    for vector, sd in zip(vectors[::-1], sds[::-1], strict=True):
        sizes = np.abs(vector)
        if sd <= precision * sizes.max() and sizes[loose].max(initial=0.0) >= _LEAST * sizes.max():
            form = _rounded(root, vector, precision)
            if form is not None:
                yield form


def _rounded(root: np.ndarray, vector: np.ndarray, precision: float) -> Form | None:
    """Factors are left out, the least useful first, as long as the others are precise enough; then exponents are
    rounded.  None if that does not lead to a form that people can read."""
    largest = int(np.argmax(np.abs(vector)))
    kept = np.flatnonzero(np.abs(vector) >= _LEAST * np.abs(vector[largest]))
    best = _best(root, largest, kept)
    while len(kept) > 2:
        shorter = min((_best(root, largest, kept[kept != i]) for i in kept if i != largest), key=lambda form: form.sd)
        if shorter.sd > max(_SLACK * best.sd, 0.1 * precision):
            break
        best, kept = shorter, np.flatnonzero(shorter.coefficients)
    exponents = np.round(best.coefficients / _DECIMALS) * _DECIMALS
    rounded = Form(exponents, float(np.linalg.norm(root @ exponents)))
    sizes = np.abs(exponents[exponents != 0])
    readable = 2 <= len(sizes) <= FACTORS + 1 and sizes.max() <= _MOST and sizes.min() >= _LEAST
    return rounded if readable and rounded.sd <= precision else None


def _best(root: np.ndarray, largest: int, kept: np.ndarray) -> Form:
    """The most precise product of some factors, the exponent of one of them being one."""
    others = [i for i in kept if i != largest]
    exponents = np.zeros(root.shape[1])
    exponents[largest] = 1.0
    if others:
        exponents[others] = np.linalg.lstsq(root[:, others], -root[:, largest], rcond=None)[0]
    return Form(exponents, float(np.linalg.norm(root @ exponents)))


def _distinct(forms: Sequence[Form], loose: np.ndarray) -> list[Form]:
    kept: list[Form] = []
    for form in forms:
        if is_news(form, kept, loose):
            kept.append(form)
    return kept


def is_news(form: Form, known: Sequence[Form], loose: np.ndarray) -> bool:
    """Whether a form differs from others in its loose parts: well-known ones may stand beside them in many ways."""
    rows = np.array([*(other.coefficients for other in known), form.coefficients])[:, loose]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return bool(np.linalg.matrix_rank(rows / np.where(lengths > 0, lengths, 1.0), tol=_NEWS) == len(rows))


def _spread(form: Form, usable: Sequence[int], n: int) -> Form:
    coefficients = np.zeros(n)
    coefficients[list(usable)] = form.coefficients
    return Form(coefficients, form.sd, form.product)
