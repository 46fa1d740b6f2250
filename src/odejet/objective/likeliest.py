"""Likeliest: the most likely scales, offsets and noise of an output for what was simulated of it, as a kernel.

Noise such as a + b*y changes with the scale of y, so that neither follows from the other by least squares.  All of them
follow from the simulated output alone: a few steps of Fisher's scoring, for which nothing is simulated, find the most
likely ones within their bounds.  Every evaluation of a search does this for every output, so that all of it is
compiled, with the formulas of the noise as lists of operations (see `model.formula`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from odejet.jets.compilation import compiled
from odejet.jets.direct import Direct
from odejet.jets.lanes import kernel
from odejet.model.formula import OPERATIONS

_ROUNDS, _LARGEST = 60, 100.0
"""Steps at most, and the largest factor by which one changes anything."""

_SINGULAR = 1e-12
"""Of the curvature: what is added so that a step exists where some of it tells nothing."""

_ENOUGH = 1e-18
"""A predicted decrease of the negative log-likelihood that ends them: the gradient left is no more than its root."""

_DAMPED, _EASED = 1e-2, 10.0
"""The least damping after a step that did not go down, and by how much it changes."""

_ALIKE = 0.9
"""The cosine of two steps that go one way, and how much of the last one a step may be to tell where they lead."""

_RELATIVE = 0.1
"""Of the largest measurement: the size below which noise is taken as constant for a first guess."""

_TINY = float(np.finfo(float).tiny)

_NUMBER, _SYMBOL, _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _POWER, _NEGATE = range(8)
_EXP, _LOG, _SIN, _COS, _TAN, _SINH, _COSH, _TANH, _SQRT = range(8, 17)
_ABS, _MIN, _MAX, _FLOOR, _CEIL, _SIGN = range(17, 23)
_LESS, _AT_MOST, _MORE, _AT_LEAST, _SAME, _OTHER, _AND, _OR, _NOT, _SELECT = range(23, len(OPERATIONS))


class ScaleLaws(NamedTuple):
    """Formulas of the scales of normal noise, one after the other."""

    code: np.ndarray
    numbers: np.ndarray
    ends: np.ndarray  # of the operations of each, after a zero
    symbols: np.ndarray  # (laws, most): which of what is to be found each but the output is; -1 if it is known
    counts: np.ndarray  # of these symbols


class Points(NamedTuple):
    """The measurements of an output."""

    values: np.ndarray
    targets: np.ndarray  # these, or their logarithms
    base: float  # the logarithm of the base in which they are compared; zero where they are as they are
    scale: np.ndarray  # which scale stretches each; -1 where none does
    ones: np.ndarray  # what offsets add to each; they stand after the scales
    law: np.ndarray  # of each


class Workspace(NamedTuple):
    """Memory of one call."""

    registers: np.ndarray  # (operations, 2 + symbols): values and gradients
    symbols: np.ndarray
    vectors: np.ndarray  # (9, size)
    matrices: np.ndarray  # (3, size, size)
    active: np.ndarray  # what a measurement depends on
    moves: np.ndarray  # (2, as many): how it and the scale of its noise move with these


# --- formulas ---


@kernel
def _unary(which, x):  # pragma: no cover - compiled
    """A function and its derivative."""
    if which == _NEGATE:
        return -x, -1.0
    if which == _EXP:
        return np.exp(x), np.exp(x)
    if which == _LOG:
        return np.log(x), 1.0 / x
    if which == _SIN:
        return np.sin(x), np.cos(x)
    if which == _COS:
        return np.cos(x), -np.sin(x)
    if which == _TAN:
        return np.tan(x), 1.0 + np.tan(x) ** 2
    if which == _SINH:
        return np.sinh(x), np.cosh(x)
    if which == _COSH:
        return np.cosh(x), np.sinh(x)
    if which == _TANH:
        return np.tanh(x), 1.0 - np.tanh(x) ** 2
    if which == _SQRT:
        return np.sqrt(x), 0.5 / np.sqrt(x)
    if which == _ABS:
        return (-x, -1.0) if x < 0 else (x, 1.0)
    if which == _FLOOR:
        return np.floor(x), 0.0
    if which == _CEIL:
        return np.ceil(x), 0.0
    if which == _SIGN:
        return (1.0 if x > 0 else -1.0 if x < 0 else x), 0.0
    return (0.0 if x != 0 else 1.0), 0.0  # not


@kernel
def _binary(which, x, y):  # pragma: no cover - compiled
    """A function of two arguments and its derivatives by both."""
    if which == _ADD:
        return x + y, 1.0, 1.0
    if which == _SUBTRACT:
        return x - y, 1.0, -1.0
    if which == _MULTIPLY:
        return x * y, y, x
    if which == _DIVIDE:
        return x / y, 1.0 / y, -x / (y * y)
    if which == _POWER:
        value = x**y
        return value, (y * x ** (y - 1.0) if y != 0 else 0.0), (np.log(x) * value if value != 0 else 0.0)
    if which == _MIN:
        return (y, 0.0, 1.0) if y < x else (x, 1.0, 0.0)
    if which == _MAX:
        return (y, 0.0, 1.0) if y > x else (x, 1.0, 0.0)
    if which == _LESS:
        holds = x < y
    elif which == _AT_MOST:
        holds = x <= y
    elif which == _MORE:
        holds = x > y
    elif which == _AT_LEAST:
        holds = x >= y
    elif which == _SAME:
        holds = x == y
    elif which == _OTHER:
        holds = x != y
    elif which == _AND:
        holds = x != 0 and y != 0
    else:
        holds = x != 0 or y != 0
    return (1.0 if holds else 0.0), 0.0, 0.0


@kernel
def _run(code, numbers, first, last, symbols, registers, lanes):  # pragma: no cover - compiled
    """The value of a formula, and after it its gradient by the symbols, as the row that is told."""
    for i in range(first, last):
        which, row = code[i, 0], i - first
        for k in range(1, lanes):
            registers[row, k] = 0.0
        if which == _NUMBER:
            registers[row, 0] = numbers[code[i, 1]]
            continue
        if which == _SYMBOL:
            registers[row, 0] = symbols[code[i, 1]]
            registers[row, 1 + code[i, 1]] = 1.0
            continue
        a, b = code[i, 1], code[i, 2]
        if which == _SELECT:
            chosen = b if registers[a, 0] != 0 else code[i, 3]
            for k in range(lanes):
                registers[row, k] = registers[chosen, k]
            continue
        if which in (_NEGATE, _NOT) or _EXP <= which <= _ABS or _FLOOR <= which <= _SIGN:
            registers[row, 0], by_a = _unary(which, registers[a, 0])
            by_b = 0.0
        else:
            registers[row, 0], by_a, by_b = _binary(which, registers[a, 0], registers[b, 0])
        for k in range(1, lanes):  # what does not move has no part, though its slope may be infinite
            if registers[a, k] != 0 and by_a != 0:
                registers[row, k] += by_a * registers[a, k]
            if by_b != 0 and registers[b, k] != 0:
                registers[row, k] += by_b * registers[b, k]
    return last - first - 1


@compiled
def _scales(code, numbers, mu, symbols, registers, found):  # pragma: no cover - compiled
    """The value of a formula and its gradient at every prediction, in columns."""
    lanes = len(symbols) + 1
    for i in range(len(mu)):
        symbols[0] = mu[i]
        last = _run(code, numbers, 0, len(code), symbols, registers, lanes)
        for k in range(lanes):
            found[k, i] = registers[last, k]


_fill_scales = Direct(_scales)


def scales(code: np.ndarray, numbers: np.ndarray, mu: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rows of the values of a formula in the output and other symbols, and of its derivatives by all of them."""
    symbols = np.empty(1 + len(values))
    symbols[1:] = values
    found = np.empty((1 + len(symbols), len(mu)))
    _fill_scales(code, numbers, np.ascontiguousarray(mu), symbols, np.empty((len(code), 1 + len(symbols))), found)
    return found


# --- the likelihood ---


@kernel
def _scale_at(laws, known, law, mu, at, work):  # pragma: no cover - compiled
    """The register with the scale of noise and its gradient by the output and by all other symbols."""
    work.symbols[0] = mu
    for k in range(laws.counts[law]):
        place = laws.symbols[law, k]
        work.symbols[1 + k] = at[place] if place >= 0 else known[law, k]
    first, last = laws.ends[law], laws.ends[law + 1]
    return _run(laws.code, laws.numbers, first, last, work.symbols, work.registers, 2 + laws.counts[law])


@kernel
def _output(points, plain, at, own, i):  # pragma: no cover - compiled
    """A simulated value with its scale and offsets."""
    mu = plain[i] if points.scale[i] < 0 else at[points.scale[i]] * plain[i]
    first = own - points.ones.shape[1]
    for k in range(points.ones.shape[1]):
        mu += points.ones[i, k] * at[first + k]
    return mu


@kernel
def _moves(points, laws, plain, own, i, by_mu, scaled, last, work):  # pragma: no cover - compiled
    """How one output and the scale of its noise move with what they depend on; of how many that is."""
    moved, wider, active, count = work.moves[0], work.moves[1], work.active, 0
    if points.scale[i] >= 0:
        active[0], moved[0] = points.scale[i], plain[i]
        count = 1
    first = own - points.ones.shape[1]
    for k in range(points.ones.shape[1]):
        if points.ones[i, k] != 0:
            active[count], moved[count] = first + k, points.ones[i, k]
            count += 1
    for k in range(count):
        wider[k] = by_mu * moved[k]
    law = points.law[i]
    for k in range(laws.counts[law] if scaled else 0):
        place = laws.symbols[law, k]
        if place >= 0:
            active[count], moved[count], wider[count] = place, 0.0, work.registers[last, 2 + k]
            count += 1
    return count


@kernel
def _likelihood(points, laws, known, plain, own, at, base, sds, squares, slope, matrix, work):  # pragma: no cover
    """The negative log-likelihood, its gradient and its expected curvature; with known sds, squares, half the squares
    of the residuals."""
    size, cost = len(at), 0.0
    for a in range(size):
        slope[a] = 0.0
        for b in range(size):
            matrix[a, b] = 0.0
    moved, wider, active = work.moves[0], work.moves[1], work.active
    for i in range(len(plain)):
        mu, last, s, by_mu = _output(points, plain, at, own, i), 0, sds[i], 0.0
        if not squares:
            last = _scale_at(laws, known, points.law[i], mu, at, work)
            s, by_mu = work.registers[last, 0], work.registers[last, 1]
        if not (s > 0 and np.isfinite(s) and np.isfinite(mu) and (mu > 0 or base == 0)):
            return np.inf
        r, steep = (mu - points.values[i]) / s, 1 / s
        if base != 0:
            r, steep = (np.log(mu) / base - points.targets[i]) / s, 1 / (s * mu * base)
        cost += 0.5 * r * r + (0.0 if squares else np.log(s))
        count = _moves(points, laws, plain, own, i, by_mu, not squares, last, work)
        by_mu, by_s, weight, weight_s = r * steep, (1 - r * r) / s, steep * steep, 2 / (s * s)
        if squares:
            by_s = weight_s = 0.0
        for k in range(count):
            a = active[k]
            slope[a] += by_mu * moved[k] + by_s * wider[k]
            for m in range(count):
                matrix[a, active[m]] += weight * moved[k] * moved[m] + weight_s * wider[k] * wider[m]
    return cost if np.isfinite(cost) else np.inf


# --- the way to the optimum ---


@kernel
def _solve(factor, right):  # pragma: no cover - compiled
    """The solution of a positive definite system, in place of both; pivots that rounding takes are replaced."""
    size = len(right)
    for j in range(size):
        pivot = factor[j, j]
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        factor[j, j] = np.sqrt(max(pivot, _SINGULAR * factor[j, j]))
        for i in range(j + 1, size):
            total = factor[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / factor[j, j]
    for i in range(size):
        for k in range(i):
            right[i] -= factor[i, k] * right[k]
        right[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            right[i] -= factor[k, i] * right[k]
        right[i] /= factor[i, i]


@kernel
def _pace(step, last):  # pragma: no cover - compiled
    """How much of a step the next one will be, by the last one: where residuals are large, scoring goes one way with
    steps that shorten evenly, and their sum is known beforehand."""
    along, squares, own = 0.0, 0.0, 0.0
    for a in range(len(step)):
        along, squares, own = along + step[a] * last[a], squares + last[a] * last[a], own + step[a] * step[a]
    if squares == 0:
        return 0.0
    pace = along / squares
    return pace if along * along > _ALIKE * _ALIKE * squares * own and abs(pace) < _ALIKE else 0.0


@kernel
def _step(at, low, high, slope, matrix, damping, fixed, step, units, factor):  # pragma: no cover - compiled
    """A step of scoring within bounds, without those from `fixed` on; the decrease that it predicts."""
    size = len(at)
    for a in range(size):
        held = (at[a] <= low[a] and slope[a] > 0) or (at[a] >= high[a] and slope[a] < 0) or a >= fixed
        units[a] = 0.0 if held else 1 / np.sqrt(max(matrix[a, a], _TINY))
    for a in range(size):
        step[a] = -slope[a] * units[a]
        for b in range(size):
            factor[a, b] = matrix[a, b] * units[a] * units[b]
        factor[a, a] += damping + _SINGULAR if units[a] > 0 else 1.0
    _solve(factor, step)
    decrease = 0.0
    for a in range(size):
        step[a] *= units[a]
        decrease -= slope[a] * step[a]
    return decrease


@kernel
def _descend(points, laws, known, plain, own, at, low, high, base, sds, squares, work):  # pragma: no cover - compiled
    """Lead to the optimum, in place; the cost there.  With known sds, squares, noise stays as it is."""
    vectors, size = work.vectors, len(at)
    slope, after, step, units, last, there = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5]
    matrix, next_matrix, factor = work.matrices[0], work.matrices[1], work.matrices[2]
    cost, damping = _likelihood(points, laws, known, plain, own, at, base, sds, squares, slope, matrix, work), 0.0
    last[:] = 0.0
    for _ in range(_ROUNDS):
        if cost == np.inf:
            break
        decrease = _step(at, low, high, slope, matrix, damping, own if squares else size, step, units, factor)
        if not decrease >= _ENOUGH * (1 + damping) * (1 + cost if squares else 1.0):
            break
        longer = 1 - _pace(step, last)
        for a in range(size):
            least, most = max(low[a], at[a] / _LARGEST), min(high[a], at[a] * _LARGEST)
            if squares and base == 0:
                least, most = low[a], high[a]
            there[a] = min(max(at[a] + step[a] / longer, least), most)
        then = _likelihood(points, laws, known, plain, own, there, base, sds, squares, after, next_matrix, work)
        if then < cost:
            for a in range(size):
                last[a] = there[a] - at[a]
                at[a], slope[a] = there[a], after[a]
                for b in range(size):
                    matrix[a, b] = next_matrix[a, b]
            cost, damping = then, damping / _EASED
        else:
            last[:] = 0.0
            damping = max(_EASED * damping, _DAMPED)
    return cost


@kernel
def _guess(points, laws, known, plain, own, first, at, low, high, sds, work):  # pragma: no cover - compiled
    """Values to begin with: scales and offsets by squares with these sds, and noise of the size of the residuals, to
    which all that it depends on contributes alike, as it does at the first values."""
    base, size, sizes, counts = points.base, len(at), work.vectors[6], work.vectors[7]
    for a in range(size):
        at[a] = min(max(first[a], low[a]), high[a])
    if own > 0:
        if base != 0:
            for i in range(len(sds)):
                sds[i] *= points.values[i]
            _descend(points, laws, known, plain, own, at, low, high, 0.0, sds, True, work)
            for i in range(len(sds)):
                sds[i] /= points.values[i]
        _descend(points, laws, known, plain, own, at, low, high, base, sds, True, work)
    squares = 0.0
    sizes[:], counts[:] = 0.0, 0.0
    for i in range(len(plain)):
        mu, law = _output(points, plain, at, own, i), points.law[i]
        r = np.log(mu) / base - points.targets[i] if base != 0 else mu - points.values[i]
        squares += r * r
        last = _scale_at(laws, known, law, mu, at, work)
        for k in range(laws.counts[law]):
            place = laws.symbols[law, k]
            if place >= 0:
                sizes[place] += abs(work.registers[last, 2 + k]) * laws.counts[law]
                counts[place] += 1
    rms = np.sqrt(squares / len(plain))
    for a in range(own, size):
        if sizes[a] > 0:
            at[a] = min(max(rms * counts[a] / sizes[a], low[a]), high[a])


@compiled
def _find(points, laws, known, plain, own, first, low, high, sds, work, found):  # pragma: no cover - compiled
    """The optimum to which the better of two guesses leads; whether there is one."""
    largest, least, at = 0.0, np.inf, work.vectors[8]
    for i in range(len(plain)):
        largest = max(largest, abs(points.values[i]))
        if not np.isfinite(plain[i]):
            return False
    for relative in range(2):
        for i in range(len(plain)):
            sds[i] = max(abs(points.values[i]), _RELATIVE * (largest if largest > 0 else 1.0)) if relative else 1.0
        _guess(points, laws, known, plain, own, first, at, low, high, sds, work)
        slope, matrix = work.vectors[0], work.matrices[0]
        cost = _likelihood(points, laws, known, plain, own, at, points.base, sds, False, slope, matrix, work)
        if cost < least:
            least = cost
            for a in range(len(at)):
                found[a] = at[a]
    if least == np.inf:
        return False
    return _descend(points, laws, known, plain, own, found, low, high, points.base, sds, False, work) < np.inf


_find_directly = Direct(_find)


def likeliest(
    points: Points,
    laws: ScaleLaws,
    known: np.ndarray,
    plain: np.ndarray,
    own: int,
    first: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """The most likely scales and offsets, `own` of them, and noise, for an output with scales of one and offsets of
    zero; NaN where there are none.  `known` are the values of the symbols of laws that are not to be found, `first`
    tells about how large the others are."""
    size, most = len(low), laws.symbols.shape[1]
    work = Workspace(
        np.empty((int(np.diff(laws.ends).max(initial=1)), 2 + most)),
        np.empty(1 + most),
        np.empty((9, size)),
        np.empty((3, size, size)),
        np.empty(size + most, dtype=np.int64),
        np.empty((2, size + most)),
    )
    found = np.empty(size)
    arguments: tuple[Any, ...] = points, laws, known, np.ascontiguousarray(plain), own, first, low, high
    there = _find_directly(*arguments, np.empty(len(plain)), work, found)
    return found if there else np.full(size, np.nan)
