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

Everything depends on the model and the seed alone, except that a count which does not end within its time is given
up; the number of roots of the result is then None, and the fibre is found without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from flint import nmod_mat

from odejet.algebra.system import Joined, Row, SquareSystem, join
from odejet.budget import Budget, OutOfBudget
from odejet.identify import globally, local, msolve, orders
from odejet.identify.local import Local
from odejet.identify.orders import Orders
from odejet.identify.quotient import Infinite
from odejet.jets.kernel import MAX_ORDER
from odejet.jets.modular import Unlucky
from odejet.model import Model
from odejet.model.expressions import Condition, Expression, children

COUNTS = 6
"""Root counts of other rows."""
TOO_COSTLY = 0.1
"""The part of the time for counts that the first one may take for others to be tried."""
COUNT_SECONDS = {1: 10.0, 2: 0.5}
"""What counting roots may take, by the number of points: a pair is a second opinion only."""
COUNT_SHARE = 0.3
"""The part of the whole time that it may take: roots are found without a count too."""
RANKS_WORK, EXCHANGES_WORK = 1e10, 5e9
"""Operations for exact ranks, and for predicting the errors of other rows."""
TERM = 5e4
"""Operations to write down and lower one term of an equation."""
PROBES = 15
"""Random points at which errors are predicted; their median is taken."""
GROWTH = 3.0
"""By how much noise grows from one Taylor coefficient to the next, relative to the coefficients themselves."""
BETTER = 0.5
"""Rows are exchanged for a predicted error smaller by this factor."""
HOPELESS = 1e10
"""Predicted errors above this are rounding for the most part, and tell nothing about which rows are better."""


def select(model: Model, points: int = 1, *, seed: int = 0, budget: Budget | None = None) -> SquareSystem:
    """The square system of a model at one point or two, with its number of roots where the budget tells it.

    `OutOfBudget` where not even exact ranks come out in time, or equations would need derivatives of too high an order.
    """
    return refined(least(model, points, seed=seed, budget=budget), budget=budget)


@dataclass(frozen=True)
class Least:
    """The rows of least order of a joined model, and the exact ranks that tell so."""

    joined: Joined
    ranks: Local
    rows: Orders
    seed: int

    @property
    def highest(self) -> int:
        """The highest derivative, as low as it can be."""
        return self.rows.highest


def least(model: Model, points: int = 1, *, seed: int = 0, budget: Budget | None = None) -> Least:
    """The first step alone, which is exact and cheap beside the others."""
    budget = Budget() if budget is None else budget
    _refuse_long_equations(model, points, budget)
    joined = join(model, points)
    _refuse_high_orders(joined)
    ranks = local.analyse(local.problem(joined.together), seed, budget=budget.at_most(work=RANKS_WORK))
    greedy = orders.choose(ranks)
    if greedy.highest > MAX_ORDER:
        raise OutOfBudget(f"it needs derivatives of order {greedy.highest}; {MAX_ORDER} are served")
    return Least(joined, ranks, greedy, seed)


def refined(first: Least, *, budget: Budget | None = None) -> SquareSystem:
    """The other steps: rows exchanged for fewer roots and smaller errors."""
    budget = Budget() if budget is None else budget
    joined, ranks, greedy, points = first.joined, first.ranks, first.rows, first.joined.points
    counter = _Counter(ranks, first.seed, budget.share(COUNT_SHARE).at_most(seconds=COUNT_SECONDS[points]))
    roots = counter.roots(greedy)
    best = _Choice(joined, greedy, roots, PredictedErrors(joined, first.seed))
    if roots is None or counter.used > TOO_COSTLY * COUNT_SECONDS[points]:
        return best.system
    exchanges = budget.at_most(work=EXCHANGES_WORK)
    for _ in range(len(greedy.rows)):
        better = _improved(best, ranks, counter, exchanges)
        if better is None:
            break
        best = better
    return best.system


def _refuse_long_equations(model: Model, points: int, budget: Budget) -> None:
    """Writing equations once more for each point, and making a program of them, takes its time."""
    terms = sum(_terms(e) for table in (model.states, model.outputs) for e in table.values())
    if not budget.affords(points * terms * TERM):
        raise OutOfBudget(budget.reason or f"equations with {terms} terms take longer than the time that is left")
    budget.spend(points * terms * TERM)


def _terms(expression: Expression | Condition) -> int:
    return 1 + sum(map(_terms, children(expression)))


def _refuse_high_orders(joined: Joined) -> None:
    """Every equation is one derivative of one output, so that few outputs need many orders."""
    model = joined.together
    least = -(-len(model.unknowns) // max(len(model.outputs), 1)) - 1
    # What the outputs cannot tell needs no equation: only half of the unknowns are counted on.
    if least // 2 > MAX_ORDER:
        raise OutOfBudget(f"{len(model.unknowns)} unknowns from {len(model.outputs)} outputs need too many derivatives")


class _Counter:
    """Exact root counts, a limited number of them."""

    def __init__(self, ranks: Local, seed: int, budget: Budget) -> None:
        self.ranks, self.seed, self.budget, self.began = ranks, seed, budget, _processor_seconds()
        self.left = COUNTS + 1

    @property
    def used(self) -> float:
        """Seconds of the processor that were used: other programs on the machine do not change them."""
        return _processor_seconds() - self.began

    def roots(self, square: Orders) -> int | None:
        """The number of roots, or None where it does not come out in time or at all."""
        self.left -= 1
        try:
            return globally.roots(self.ranks, square, globally.Engine(msolve.executable(), self.budget), self.seed)
        except (OutOfBudget, Infinite, Unlucky, msolve.Failed):
            return None


def _processor_seconds() -> float:
    """Of this process and the programs that it ran."""
    return sum(os.times()[:4])


class _Choice:
    """Rows, their number of roots, and the error that noise is predicted to make."""

    def __init__(self, joined: Joined, square: Orders, roots: int | None, errors: PredictedErrors) -> None:
        names = joined.together.unknowns
        fixed = tuple(names[i] for i in square.fixed)
        self.square, self.roots, self.errors = square, roots, errors
        self.system = SquareSystem(joined, tuple(sorted(square.rows, key=lambda row: row[::-1])), fixed, roots)

    @cached_property
    def error(self) -> float:
        return self.errors.predicted(self.system)

    def exchanged(self, square: Orders) -> _Choice:
        return _Choice(self.system.joined, square, None, self.errors)


def _improved(best: _Choice, ranks: Local, counter: _Counter, budget: Budget) -> _Choice | None:
    """The first exchange, from the smallest predicted error, that has fewer roots, or as many and a smaller error."""
    assert best.roots is not None
    others = [best.exchanged(square) for square in _exchanges(best, ranks)]
    work = PROBES * best.system.condition_work * len(others)
    if not budget.affords(work):
        return None
    budget.spend(work)
    limit = BETTER * best.error if best.error < HOPELESS else 0.0
    for choice in sorted(others, key=lambda choice: choice.error):
        useful = choice.error < limit or best.roots > 1
        if not useful or counter.left <= 0 or not np.isfinite(choice.error):
            return None
        roots = counter.roots(choice.square)
        if roots is not None and (roots < best.roots or (roots == best.roots and choice.error < limit)):
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


class PredictedErrors:
    """Predicted errors of systems of one joined model, which share their probe points and the jets there.

    Noise in a Taylor coefficient is measured by the size of the output times a power of its rate, both taken from
    the jet itself at the probe point, and grows with the order.
    """

    def __init__(self, joined: Joined, seed: int) -> None:
        self.joined, self.seed = joined, seed
        self.probed: dict[tuple[int, tuple[str, ...]], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def predicted(self, system: SquareSystem) -> float:
        """The root mean square relative error of the unknowns when outputs have a relative noise of one."""
        key = system.highest, system.fixed
        if key not in self.probed:
            self.probed[key] = self.probe(system)
        roots, jets, noise = self.probed[key]
        output, order = system.row_array.T
        with np.errstate(all="ignore"):
            jacobian = jets[:, output, order][..., 1 + system.columns] * roots[:, None, :]
            scaled = jacobian / noise[:, output, order][..., None]
            return float(np.median([_inverse_norm(matrix) for matrix in scaled]))

    def probe(self, system: SquareSystem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Random points, the jets of all outputs there, and the noise of each of their coefficients."""
        rng = np.random.default_rng([self.seed, len(system.unknowns)])
        inputs = rng.uniform(0.1, 1.0, (PROBES, system.points * self.joined.inputs, system.highest + 1))
        roots = rng.uniform(0.1, 1.0, (PROBES, len(system.unknowns)))
        jets = system.jets(roots, inputs, np.full(len(system.fixed), 0.5), system.highest)
        powers = np.arange(system.highest + 1)
        sizes = np.max(np.abs(jets[..., 0]), axis=2)
        with np.errstate(all="ignore"):
            rates = np.max((np.abs(jets[:, :, 1:, 0]) / sizes[:, :, None]) ** (1.0 / powers[1:]), axis=2, initial=1e-3)
            noise = sizes[:, :, None] * (GROWTH * rates[:, :, None]) ** powers
        return roots, jets, noise


def _inverse_norm(matrix: np.ndarray) -> float:
    """The root mean square size of the rows of the inverse; infinite where there is none."""
    if not np.all(np.isfinite(matrix)):
        return np.inf
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(np.sqrt(np.mean(values**-2.0))) if values[-1] > 0 else np.inf
