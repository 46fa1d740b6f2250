"""Monodromy: all roots of a square system at one generic data point, its fibre, found once per system.

A random point z* is a root for the data Phi(z*).  From there the data are moved to a generic point and around closed
loops; the root comes back as another one.  Phi is dominant and its domain is connected, so all roots at generic data
are reached this way (Duff et al. 2019).  The search ends when as many are known as an exact computation says there are.
Where no exact number is at hand, it ends when `STEADY` loops in a row, each moving every known root, have found
nothing new: a set of roots that is not complete is left by a random loop with a probability that in the generic case
(the full symmetric group) is at least one half, so that the chance to stop early is below 2^-STEADY per missing root;
`complete` is then False, since other groups can be less kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from odejet.algebra.homotopy import track
from odejet.algebra.system import SquareSystem, Targets
from odejet.algebra.tracker import CAREFUL
from odejet.budget import Budget, OutOfBudget
from odejet.errors import ModelError
from odejet.jets.kernel import MAX_ORDER

STEADY = 12
"""Loops in a row without a new root after which the search ends, where the number of roots is not known."""
SEED_EVERY = 4
"""Every so many steady loops another random point is tried."""
LOOPS, GENERIC_POINTS = 60, 8
"""Loops from one generic point, and generic points, after which an incomplete fibre is all there is."""
ATTEMPTS = 10
"""Random points from which a path to generic data is tried."""
BALANCE_ROUNDS, SHAKES = 20, 10
"""Changes of all unknowns at once, and of each unknown, to improve the condition of a random point."""
LEAST_EVALUATIONS = 60
"""A path takes at least so many."""
LEAST = 1e-300
"""Unknowns below this are zero."""
SAME = 1e-6
"""Roots that agree to this, relative to each unknown, are one."""
GENERIC = 1e-4
"""Roots at generic data that agree to this are one, badly known: a false one would hide that a true one is missing."""


@dataclass(frozen=True)
class Fibre:
    """Roots (roots, unknowns) at generic complex data; `complete` when their number is known to be right."""

    system: SquareSystem
    at: Targets
    roots: np.ndarray
    complete: bool
    loops: int
    steady: int = 0
    """The last loops, in a row, that found nothing new."""

    def __len__(self) -> int:
        return len(self.roots)


def fibre(
    system: SquareSystem, *, seed: int = 0, fixed: np.ndarray | None = None, budget: Budget | None = None
) -> Fibre:
    """The fibre of a system at a generic point, as far as the budget lasts; with values for what is fixed, or ones.

    `OutOfBudget` where not even one root at generic data is found within the budget.
    """
    held = np.ones(len(system.fixed)) if fixed is None else np.asarray(fixed, dtype=float)
    budget = Budget() if budget is None else budget
    refuse_too_large(system, budget)
    rng = np.random.default_rng([seed, len(system.unknowns)])
    best: Fibre | None = None
    for _ in range(GENERIC_POINTS):
        try:
            found = _explore(system, held, rng, budget)
        except OutOfBudget:
            if best is None:
                raise
            break
        if best is None or (len(best) < len(found) <= _most(system)) or len(best) > _most(system):
            best = found
        if system.roots is None or best.complete or budget.over:
            break
    assert best is not None
    return best


def refuse_too_large(system: SquareSystem, budget: Budget) -> None:
    """`OutOfBudget` for a system whose search would not get far, by an estimate of the least that it takes."""
    unknowns = len(system.unknowns)
    if system.highest > MAX_ORDER:
        raise OutOfBudget(f"its {unknowns} unknowns need derivatives of order {system.highest}; {MAX_ORDER} are served")
    if not budget.fits(system.memory):
        raise OutOfBudget(f"its square system of {unknowns} unknowns would take {system.memory / 1e9:.1f} GB")
    least = (BALANCE_ROUNDS + SHAKES * unknowns) * system.condition_work + LEAST_EVALUATIONS * system.newton_work
    if not budget.affords(least):
        why = budget.reason or f"the first root alone would take {least:.0e} operations"
        raise OutOfBudget(f"its square system of {unknowns} unknowns is out of reach: {why}")


def _most(system: SquareSystem) -> float:
    """More roots than there are can appear where the equations hardly tell points apart: a bad place to start from."""
    return np.inf if system.roots is None else system.roots


def _explore(system: SquareSystem, fixed: np.ndarray, rng: np.random.Generator, budget: Budget) -> Fibre:
    """Loops from one generic point; where they are slow to find everything, another point may do better."""
    root, begin = _start(system, fixed, rng, budget)
    found = Fibre(system, begin, root, len(root) == system.roots, 0)
    while len(found) < _most(system) and found.loops < LOOPS and not budget.over:
        seeded = found.steady % SEED_EVERY == SEED_EVERY - 1
        after = _seeded(found, rng, budget) if seeded else _loop(found, rng, budget)
        found = replace(after, steady=0 if len(after) > len(found) else found.steady + 1)
        if system.roots is None and found.steady >= STEADY:
            break
    return found


def _start(
    system: SquareSystem, fixed: np.ndarray, rng: np.random.Generator, budget: Budget
) -> tuple[np.ndarray, Targets]:
    """A root at generic data, reached from a random point."""
    for _ in range(ATTEMPTS):
        root, inputs = balanced(system, fixed, rng, budget)
        data, _ = system.evaluate(root, inputs, fixed)
        begin = Targets(data, inputs, fixed)
        generic = Targets(turned(data, rng), inputs, fixed)
        paths = track(system, root, begin, generic, settings=CAREFUL, budget=budget)
        if paths.converged[0]:
            return paths.roots, generic
        budget.check()
    return root, begin


def turned(values: np.ndarray, rng: np.random.Generator, turn: float = 1.0) -> np.ndarray:
    """Numbers of similar size, their phases turned by up to so many half circles."""
    return values * np.exp(0.5 * rng.normal(size=values.shape) + 1j * turn * np.pi * rng.uniform(-1, 1, values.shape))


def _loop(found: Fibre, rng: np.random.Generator, budget: Budget) -> Fibre:
    """All known roots along one loop over two more generic points."""
    here, roots = found.at, found.roots
    # Long loops meet more branch points, short ones cost less: both are tried.
    turn = float(rng.choice([0.5, 1.0]))
    corners = [Targets(turned(here.data, rng, turn), turned(here.inputs, rng, turn), here.fixed) for _ in range(2)]
    for begin, end in zip([here, *corners], [*corners, here], strict=True):
        count = len(roots)
        paths = track(found.system, roots, begin.repeated(count), end.repeated(count), settings=CAREFUL, budget=budget)
        roots = paths.roots[paths.converged]
        if not len(roots):
            return replace(found, loops=found.loops + 1)
    return _with(found, roots)


def _seeded(found: Fibre, rng: np.random.Generator, budget: Budget) -> Fibre:
    """Another random point followed to the data of the fibre: some roots are hard to reach from the others."""
    fixed = found.at.fixed
    try:
        root, inputs = balanced(found.system, fixed, rng, budget)
    except OutOfBudget:
        return found
    data, _ = found.system.evaluate(root, inputs, fixed)
    paths = track(found.system, root, Targets(data, inputs, fixed), found.at, settings=CAREFUL, budget=budget)
    return _with(found, paths.roots[paths.converged])


def _with(found: Fibre, roots: np.ndarray) -> Fibre:
    """The fibre after one more loop, which has found these roots."""
    known = merge(np.concatenate([found.roots, roots]), GENERIC)
    return replace(found, roots=known, complete=len(known) == found.system.roots, loops=found.loops + 1)


def merge(roots: np.ndarray, same: float = SAME) -> np.ndarray:
    """Roots without repetitions, in the order of their first appearance."""
    kept = np.empty_like(roots)
    count = 0
    for root in roots:
        size = np.maximum(np.maximum(np.abs(root), np.abs(kept[:count])), LEAST)
        if np.all(np.max(np.abs(root - kept[:count]) / size, axis=1, initial=0.0) > same):
            kept[count] = root
            count += 1
    return kept[:count]


def distance(one: np.ndarray, other: np.ndarray, least: float = LEAST) -> float:
    """The largest difference of two points, relative to each unknown; below `least` an unknown is zero."""
    size = np.maximum(np.maximum(np.abs(one), np.abs(other)), least)
    return float(np.max(np.abs(one - other) / size, initial=0.0))


def balanced(
    system: SquareSystem, fixed: np.ndarray, rng: np.random.Generator, budget: Budget
) -> tuple[np.ndarray, np.ndarray]:
    """A random complex point at which Phi is well conditioned, and random input jets.

    Models come in all units.  An unknown whose relative change moves no equation noticeably is made larger until it
    does; then sizes are changed at random, one at a time, and kept so if that lowers the condition number.
    """
    shape = (1, system.points * system.joined.inputs, system.highest + 1)
    inputs = _random(shape, rng) / np.arange(1, system.highest + 2)
    root = _random((1, len(system.unknowns)), rng)
    best, least = root, np.inf
    for _ in range(BALANCE_ROUNDS):
        budget.check(system.condition_work)
        condition, effect = _condition(system, root, inputs, fixed)
        if not np.isfinite(condition):
            root = _random(root.shape, rng)
            continue
        if condition < least:
            best, least = root, condition
        root = root * np.clip(effect, 1e-2, 1.0) ** -0.3
    for _ in range(SHAKES * len(system.unknowns)):
        budget.check(system.condition_work)
        root = best.copy()
        root[0, rng.integers(root.shape[1])] *= np.exp(2.0 * rng.normal())
        condition, _ = _condition(system, root, inputs, fixed)
        if condition < least:
            best, least = root, condition
    if not np.isfinite(least):
        raise ModelError(f"{system.joined.model.name}: no point was found where the model can be evaluated")
    return best, inputs


def _condition(
    system: SquareSystem, root: np.ndarray, inputs: np.ndarray, fixed: np.ndarray
) -> tuple[float, np.ndarray]:
    """The condition number of the scaled Jacobian, and the largest effect of each unknown on an equation."""
    data, jacobian = system.evaluate(root, inputs, fixed)
    terms = jacobian[0] * root
    size = np.maximum(np.abs(data[0]), np.max(np.abs(terms), axis=1))[:, None]
    if not (np.all(np.isfinite(terms)) and np.all(size > 0)):
        return np.inf, np.ones(root.shape[1])
    effect = np.max(np.abs(terms) / size, axis=0)
    return float(np.linalg.cond(terms / size)), np.where(effect > 0, effect, 1.0)


def _random(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.uniform(-1.0, 0.5, shape) + 0.25j * np.pi * rng.uniform(-1.0, 1.0, shape))
