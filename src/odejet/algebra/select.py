"""Select: which equations are solved, for one shooting point and for two that share the parameters.

The paper's Step 5, in this order:

1. The highest derivative order is as small as possible.  Rows taken by increasing order while they raise the rank, an
   exact one modulo a prime, give the least orders at once (see `identify.orders`).
2. Among rows up to that order, fewer roots.  Rows are exchanged one at a time, each exchange exactly of full rank, and
   roots are counted exactly; the search ends at one root, or after `COUNTS` counts.
3. Among equally many roots, a much smaller predicted error: the first-order effect of noise on the unknowns, the
   median over random probe points.

The joined model has no known initial states: at a shooting time in the middle of the data they say nothing.  A model
that can be identified only with their help therefore has unknowns in `fixed`, which must be given values; a fit takes
them from other stages, or does without the algebra.

Everything depends on the model and the seed alone, except that a count which does not end within the budget is given
up; the number of roots of the result is then None, and the fibre is found without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from flint import nmod_mat

from odejet.algebra.system import Joined, Row, SquareSystem, join
from odejet.identify import globally, local, msolve, orders
from odejet.identify.local import Local
from odejet.identify.orders import Orders
from odejet.identify.quotient import Infinite
from odejet.jets.compilation import now
from odejet.jets.modular import Unlucky
from odejet.model import Model

KEPT = 64
"""Systems kept in memory."""
COUNTS = 6
"""Root counts of other rows."""
TOO_COSTLY = 0.1
"""The part of the budget that the first count may take for others to be tried."""
PROBES = 15
GROWTH = 3.0
"""By how much noise grows from one Taylor coefficient to the next, relative to the coefficients themselves."""
BETTER = 0.5
"""Rows are exchanged for a predicted error smaller by this factor."""
HOPELESS = 1e10
"""Predicted errors above this are rounding for the most part, and tell nothing about which rows are better."""


def select(model: Model, points: int = 1, *, seed: int = 0, budget: float = 10.0) -> SquareSystem:
    """The square system of a model at one point or two, with its number of roots where `budget` seconds tell it.

    Models are compared by their text, so that the second fit of a model finds the system of the first.
    """
    return _selected(model.to_toml(), points, seed, budget)


@lru_cache(maxsize=KEPT)
def _selected(text: str, points: int, seed: int, budget: float) -> SquareSystem:
    model = Model.from_toml_text(text)
    joined = join(model, points)
    ranks = local.analyse(local.problem(joined.together), seed)
    greedy = orders.choose(ranks)
    counter = _Counter(ranks, seed, budget)
    roots = counter.roots(greedy)
    best = _Choice(joined, greedy, roots, seed)
    if roots is None or counter.elapsed > TOO_COSTLY * budget:
        return best.system
    for _ in range(len(greedy.rows)):
        better = _improved(best, ranks, counter)
        if better is None:
            break
        best = better
    return best.system


class _Counter:
    """Exact root counts, a limited number of them."""

    def __init__(self, ranks: Local, seed: int, budget: float) -> None:
        self.ranks, self.seed, self.budget, self.start = ranks, seed, budget, now()
        self.left = COUNTS + 1

    @property
    def elapsed(self) -> float:
        return now() - self.start

    def roots(self, square: Orders) -> int | None:
        """The number of roots, or None where it does not come out in time or at all."""
        self.left -= 1
        engine = globally.Engine(msolve.executable(), now() + self.budget)
        try:
            return globally.roots(self.ranks, square, engine, self.seed)
        except (globally.OutOfTime, Infinite, Unlucky, msolve.Failed):
            return None


class _Choice:
    """Rows, their number of roots, and the error that noise is predicted to make."""

    def __init__(self, joined: Joined, square: Orders, roots: int | None, seed: int) -> None:
        names = joined.together.unknowns
        fixed = tuple(names[i] for i in square.fixed)
        self.square, self.roots, self.seed = square, roots, seed
        self.system = SquareSystem(joined, tuple(sorted(square.rows, key=lambda row: row[::-1])), fixed, roots)

    @property
    def error(self) -> float:
        return predicted_error(self.system, self.seed)

    def exchanged(self, square: Orders) -> _Choice:
        return _Choice(self.system.joined, square, None, self.seed)


def _improved(best: _Choice, ranks: Local, counter: _Counter) -> _Choice | None:
    """The first exchange, from the smallest predicted error, that has fewer roots, or as many and a smaller error."""
    assert best.roots is not None
    limit = BETTER * best.error if best.error < HOPELESS else 0.0
    others = sorted(
        ((choice.error, number, choice) for number, choice in enumerate(map(best.exchanged, _exchanges(best, ranks)))),
        key=lambda item: item[:2],
    )
    for error, _, choice in others:
        useful = error < limit or best.roots > 1
        if not useful or counter.left <= 0 or not np.isfinite(error):
            return None
        roots = counter.roots(choice.square)
        if roots is not None and (roots < best.roots or (roots == best.roots and error < limit)):
            choice.roots, choice.system = roots, replace(choice.system, roots=roots)
            return choice
    return None


def _exchanges(choice: _Choice, ranks: Local) -> Iterator[Orders]:
    """Systems that differ in one row, up to the same order, and have full rank."""
    jacobian, rows = ranks.points[0], choice.square.rows
    free = [i for i in range(len(ranks.problem.model.unknowns)) if i not in choice.square.fixed]
    others = [row for row in jacobian.rows if row[1] <= choice.square.highest and row not in rows]
    if not others:
        return
    shares = _shares(
        [jacobian.jets[i, j, 1:] for i, j in rows], [jacobian.jets[i, j, 1:] for i, j in others], free, jacobian.prime
    )
    for k, new in enumerate(others):
        for b, old in enumerate(rows):
            # A basis stays one exactly when the new row has a share of the old one in it.
            if int(shares[b, k]):
                exchanged: tuple[Row, ...] = tuple(new if row == old else row for row in rows)
                yield Orders(exchanged, choice.square.fixed)


def _shares(basis: list[np.ndarray], others: list[np.ndarray], free: list[int], prime: int) -> nmod_mat:
    """The coefficients of other rows in terms of a basis, one column each."""
    left = nmod_mat(len(free), len(basis), [int(row[i]) for i in free for row in basis], prime)
    right = nmod_mat(len(free), len(others), [int(row[i]) for i in free for row in others], prime)
    return left.solve(right)


def predicted_error(system: SquareSystem, seed: int = 0) -> float:
    """The root mean square relative error of the unknowns when outputs have a relative noise of one.

    Noise in a Taylor coefficient is measured by the size of the output times a power of its rate, both taken from
    the jet itself at the probe point, and grows with the order.
    """
    rng = np.random.default_rng([seed, len(system.unknowns)])
    inputs = rng.uniform(0.1, 1.0, (PROBES, system.points * system.joined.inputs, system.highest + 1))
    roots = rng.uniform(0.1, 1.0, (PROBES, len(system.unknowns)))
    jets = system.jets(roots, inputs, np.full(len(system.fixed), 0.5), system.highest)
    powers = np.arange(system.highest + 1)
    sizes = np.max(np.abs(jets[..., 0]), axis=2)
    with np.errstate(all="ignore"):
        rates = np.max((np.abs(jets[:, :, 1:, 0]) / sizes[:, :, None]) ** (1.0 / powers[1:]), axis=2, initial=1e-3)
        noise = sizes[:, :, None] * (GROWTH * rates[:, :, None]) ** powers
        output, order = system.row_array.T
        jacobian = jets[:, output, order][..., 1 + system.columns] * roots[:, None, :]
        scaled = jacobian / noise[:, output, order][..., None]
        return float(np.median([_inverse_norm(matrix) for matrix in scaled]))


def _inverse_norm(matrix: np.ndarray) -> float:
    """The root mean square size of the rows of the inverse; infinite where there is none."""
    if not np.all(np.isfinite(matrix)):
        return np.inf
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(np.sqrt(np.mean(values**-2.0))) if values[-1] > 0 else np.inf
