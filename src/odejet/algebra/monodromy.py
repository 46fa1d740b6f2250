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

import time
from dataclasses import dataclass, replace

import numpy as np

from odejet.algebra.homotopy import CAREFUL, Settings, track
from odejet.algebra.system import SquareSystem, Targets
from odejet.expressions import ModelError

STEADY = 12
LOOPS = 400
ATTEMPTS = 10
DRAWS, BALANCE_ROUNDS = 5, 20
SAME = 1e-6
"""Roots that agree to this, relative to each unknown, are one."""


@dataclass(frozen=True)
class Fibre:
    """Roots (roots, unknowns) at generic complex data; `complete` when their number is known to be right."""

    system: SquareSystem
    at: Targets
    roots: np.ndarray
    complete: bool
    loops: int

    def __len__(self) -> int:
        return len(self.roots)


def fibre(system: SquareSystem, *, seed: int = 0, fixed: np.ndarray | None = None, seconds: float = 60.0) -> Fibre:
    """The fibre of a system at a generic point; with values for what is fixed, one by default."""
    rng = np.random.default_rng([seed, len(system.unknowns)])
    held = np.ones(len(system.fixed)) if fixed is None else np.asarray(fixed, dtype=float)
    root, begin = _start(system, held, rng)
    found = Fibre(system, begin, root, len(root) == system.roots, 0)
    deadline, steady = time.monotonic() + seconds, 0
    while not found.complete and found.loops < LOOPS and time.monotonic() < deadline:
        before = len(found)
        found = _loop(found, rng)
        steady = 0 if len(found) > before else steady + 1
        if system.roots is None and steady >= STEADY:
            break
    return found


def _start(system: SquareSystem, fixed: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Targets]:
    """A root at generic data, reached from a random point."""
    for _ in range(ATTEMPTS):
        root, inputs = balanced(system, fixed, rng)
        data, _ = system.evaluate(root, inputs, fixed)
        begin = Targets(data, inputs, fixed)
        generic = Targets(turned(data, rng), inputs, fixed)
        paths = track(system, root, begin, generic, settings=CAREFUL)
        if paths.converged[0]:
            return paths.roots, generic
    return root, begin


def turned(values: np.ndarray, rng: np.random.Generator, turn: float = 1.0) -> np.ndarray:
    """Numbers of similar size, their phases turned by up to so many half circles."""
    return values * np.exp(0.3 * rng.normal(size=values.shape) + 1j * turn * np.pi * rng.uniform(-1, 1, values.shape))


def _loop(found: Fibre, rng: np.random.Generator, settings: Settings = CAREFUL) -> Fibre:
    """All known roots along one loop over two more generic points."""
    here, roots = found.at, found.roots
    # Long loops meet more branch points, short ones cost less: both are tried.
    turn = float(rng.choice([0.3, 0.6, 1.0]))
    corners = [Targets(turned(here.data, rng, turn), turned(here.inputs, rng, turn), here.fixed) for _ in range(2)]
    for begin, end in zip([here, *corners], [*corners, here], strict=True):
        paths = track(found.system, roots, begin.repeated(len(roots)), end.repeated(len(roots)), settings=settings)
        roots = paths.roots[paths.converged]
        if not len(roots):
            return replace(found, loops=found.loops + 1)
    known = merge(np.concatenate([found.roots, roots]))
    return replace(found, roots=known, complete=len(known) == found.system.roots, loops=found.loops + 1)


def merge(roots: np.ndarray, same: float = SAME) -> np.ndarray:
    """Roots without repetitions, in the order of their first appearance."""
    kept: list[np.ndarray] = []
    for root in roots:
        if all(distance(root, other) > same for other in kept):
            kept.append(root)
    return np.array(kept).reshape(len(kept), roots.shape[1])


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of two roots, relative to each unknown."""
    size = np.maximum(np.maximum(np.abs(one), np.abs(other)), 1e-300)
    return float(np.max(np.abs(one - other) / size))


def balanced(system: SquareSystem, fixed: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random complex point at which every unknown matters, and random input jets.

    Models come in all units.  An unknown whose relative change moves no equation noticeably is made larger until it
    does; of all points tried, the one at which Phi is best conditioned is taken.
    """
    best, inputs, least = None, np.zeros(0), np.inf
    for _ in range(DRAWS):
        shape = (1, system.points * system.joined.inputs, system.highest + 1)
        forced = _random(shape, rng) / np.arange(1, system.highest + 2)
        root = _random((1, len(system.unknowns)), rng)
        for _ in range(BALANCE_ROUNDS):
            data, jacobian = system.evaluate(root, forced, fixed)
            terms = np.abs(jacobian[0] * root)
            size = np.maximum(np.abs(data[0]), np.max(terms, axis=1))[:, None]
            if not (np.all(np.isfinite(terms)) and np.all(size > 0)):
                break
            condition = np.linalg.cond(terms / size * np.exp(1j * np.angle(jacobian[0] * root)))
            if condition < least:
                best, inputs, least = root, forced, condition
            effect = np.max(terms / size, axis=0)
            root = root * np.clip(np.where(effect > 0, effect, 1.0), 1e-2, 1.0) ** -0.3
    if best is None:
        raise ModelError(f"{system.joined.model.name}: no point was found where the model can be evaluated")
    return best, inputs


def _random(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.uniform(-1.0, 0.5, shape) + 0.25j * np.pi * rng.uniform(-1.0, 1.0, shape))
