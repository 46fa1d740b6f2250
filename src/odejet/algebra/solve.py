"""Solve: all roots of a square system for any number of targets, from its fibre.

The fibre is first moved to a *hub*, generic data of the size that the targets have, and from there to every target: the
way from the hub is short, and the way to it is gone once.  Paths that fail, or that end where another path has ended,
are followed again from another hub and with more care.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.algebra.homotopy import CAREFUL, DEFAULT, NEAR, Outcome, Settings, track
from odejet.algebra.monodromy import Fibre, merge, turned
from odejet.algebra.system import SquareSystem, Targets
from odejet.flow import Flow

TURNS = (0.25, 1.0)
"""Half circles by which hubs turn the data: far ones are generic, near ones are closer to the targets."""
HUBS = 4
"""Hubs from which a target is tried before roots are given up as lost."""
BUDGET = 4000
"""Evaluations per target after which roots that are still missing are not looked for again."""
SOLVED = 1e-9
"""Equations that hold to this, relative to their largest terms, are solved."""
DOUBT = 1e-7
"""Roots whose last correction was larger, relative to the unknowns, are not determined by their equations."""
BRIEF: dict[str, Any] = {"max_steps": 1000, "stiff_steps": 0}
"""What a trajectory that carries a root may cost: of many that are wrong, none may take long."""
REAL = 1e-6
"""Roots whose imaginary parts are below this, relative to each unknown, are real."""


@dataclass(frozen=True)
class Solution:
    """The roots of one target; `lost` counts paths without one, by outcome."""

    roots: np.ndarray
    lost: dict[str, int]

    def real(self, tolerance: float = REAL) -> np.ndarray:
        """The real roots, as real numbers."""
        size = np.maximum(np.abs(self.roots), 1e-300)
        chosen = np.all(np.abs(self.roots.imag) <= tolerance * size, axis=1)
        return self.roots[chosen].real


@dataclass(frozen=True)
class Solutions(Sequence[Solution]):
    """The roots of many targets, and how many paths ended how."""

    system: SquareSystem
    targets: Targets
    each: tuple[Solution, ...]
    census: dict[str, int]
    evaluations: int

    def __getitem__(self, i):
        return self.each[i]

    def __len__(self) -> int:
        return len(self.each)


def solve(
    fibre: Fibre,
    targets: Targets,
    *,
    times: np.ndarray | None = None,
    flow: Flow | None = None,
    seed: int = 0,
    hubs: int = HUBS,
) -> Solutions:
    """Every root of every target that the paths from the fibre reach.

    `times` says that the targets belong to one trajectory of `flow`: estimates at these shooting times, several at each if there
    are several estimators.  Then only the first of each time is reached from a hub, and roots travel between targets:
    to others of the same time over the small difference of their data, to other times with the flow of the model.
    """
    rng = np.random.default_rng([seed, len(targets), len(fibre)])
    search = _Search(fibre, targets, flow)
    first = np.unique(times, return_index=True)[1] if times is not None else np.arange(len(targets))
    for alike in _alike(targets, sorted(int(i) for i in first)):
        search.attempt(alike, rng, DEFAULT, TURNS[0])
    search.transport(times)
    search.spread(times, rng)
    for attempt in range(1, hubs):
        for i in search.open:
            if search.evaluations < BUDGET * len(first) and len(search.found[i]) < len(fibre):
                search.attempt([i], rng, CAREFUL, TURNS[attempt % len(TURNS)])
                search.transport(times)
    each = tuple(Solution(roots, why) for roots, why in zip(search.found, search.lost, strict=True))
    return Solutions(fibre.system, targets, each, search.census, search.evaluations)


class _Search:
    """Roots found so far, and what became of all paths."""

    def __init__(self, fibre: Fibre, targets: Targets, flow: Flow | None) -> None:
        self.fibre, self.targets, self.system, self.flow = fibre, targets, fibre.system, flow
        self.found = [np.zeros((0, len(fibre.system.unknowns)), dtype=complex)] * len(targets)
        self.lost: list[dict[str, int]] = [{}] * len(targets)
        self.census = {outcome.name.lower(): 0 for outcome in Outcome}
        self.evaluations = 0
        self.doubtful: set[int] = set()
        self.sent: set[tuple[int, int]] = set()

    @property
    def open(self) -> list[int]:
        """Targets that miss roots."""
        return [i for i, roots in enumerate(self.found) if len(roots) < len(self.fibre)]

    def attempt(self, chosen: list[int], rng: np.random.Generator, settings: Settings, turn: float) -> None:
        """All paths to some targets from a hub of their size."""
        hub, starts, spent = _hub(self.fibre, self.targets[chosen], rng, turn)
        self.evaluations += spent
        if len(starts):
            count = len(starts)
            begin = _many(hub, len(chosen) * count)
            owners = np.repeat(chosen, count)
            self.follow(np.tile(starts, (len(chosen), 1)), begin, owners, settings)

    def follow(
        self, starts: np.ndarray, begin: Targets, owners: np.ndarray, settings: Settings, bend: float = 0.0, rng=None
    ) -> None:
        """Paths from known roots to the targets that own them."""
        paths = track(self.system, starts, begin, self.targets[owners], settings=settings, bend=bend, rng=rng)
        self.evaluations += int(np.sum(paths.evaluations))
        for name, ended in paths.census().items():
            self.census[name] += ended
        for i in np.unique(owners):
            good = paths.converged & (owners == i)
            if np.any(paths.errors[good] > DOUBT):
                self.doubtful.add(int(i))
            self.found[i] = merge(np.concatenate([self.found[i], paths.roots[good]]))
            outcomes = [Outcome(o).name.lower() for o in paths.outcomes[(owners == i) & ~good]]
            self.lost[i] = {name: outcomes.count(name) for name in dict.fromkeys(outcomes)}

    def keep(self, carried: np.ndarray, owners: np.ndarray) -> None:
        """Carried roots that solve their equations as they are, though Newton's method may not have stayed there."""
        residuals = self.system.residuals(carried, self.targets[owners])
        for root, i in zip(carried[residuals < SOLVED], owners[residuals < SOLVED], strict=True):
            self.found[i] = merge(np.concatenate([self.found[i], root[None]]))

    def spread(self, times: np.ndarray | None, rng: np.random.Generator) -> None:
        """Roots of the first target of each time, followed to the others of that time."""
        for t in np.unique(times) if times is not None else ():
            source, *others = np.flatnonzero(times == t)
            roots = self.found[source]
            if len(roots) and others:
                starts = np.tile(roots, (len(others), 1))
                begin = self.targets[[source] * len(starts)]
                self.follow(starts, begin, np.repeat(others, len(roots)), DEFAULT, 0.3, rng)

    def transport(self, times: np.ndarray | None) -> None:
        """Real roots carried by the flow to the times of targets that miss roots, and from there to their data.

        So are they to targets so ill-conditioned that equations which hold to rounding do not determine the root.
        """
        if self.flow is None or times is None:
            return
        for i in range(len(self.found)):
            for k, root in enumerate(Solution(self.found[i], {}).real()):
                empty = [j for j in sorted({*self.open, *self.doubtful}) if j != i]
                if not empty or (i, k) in self.sent or i in self.doubtful:
                    continue
                self.sent.add((i, k))
                reached, starts = _carried(self.system, self.flow, self.targets, root, times[i], times[empty])
                if len(reached):
                    owners = np.array(empty)[reached]
                    inputs = self.targets.inputs[owners]
                    data, _ = self.system.evaluate(starts, inputs, self.targets.fixed)
                    self.follow(starts, Targets(data, inputs, self.targets.fixed), owners, NEAR)
                    self.keep(starts, owners)


def _carried(
    system: SquareSystem, flow: Flow, targets: Targets, root: np.ndarray, start: float, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which times the solution through a root reaches, and its unknowns there."""
    full = system.everything(root[None], targets.fixed)[0]
    n = len(system.joined.model.states)
    run = flow.run(full[n:], full[:n], times, start=start, sensitivities=False, free_states=True, **BRIEF)
    states = run.states[:, :, 0]
    everything = np.concatenate([states, np.broadcast_to(full[n:], (len(states), len(full) - n))], axis=1)
    return run.reached, everything[:, system.columns]


def _alike(targets: Targets, chosen: list[int]) -> list[list[int]]:
    """Targets in groups whose data are of similar size, so that one hub serves a group."""
    groups: list[list[int]] = []
    sizes = np.log10(np.maximum(np.abs(targets.data), 1e-300))
    for i in chosen:
        for group in groups:
            if np.sqrt(np.mean((sizes[i] - sizes[group[0]]) ** 2)) < 1.0:
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _many(target: Targets, count: int) -> Targets:
    return Targets(np.repeat(target.data, count, 0), np.repeat(target.inputs, count, 0), target.fixed)


def _hub(
    fibre: Fibre,
    targets: Targets,
    rng: np.random.Generator,
    turn: float,
    attempts: int = 2,
    settings: Settings = CAREFUL,
) -> tuple[Targets, np.ndarray, int]:
    """Generic data of the targets' size with as many roots as can be brought there, and the evaluations spent."""
    best: tuple[Targets, np.ndarray] | None = None
    spent = 0
    for _ in range(attempts):
        hub = Targets(_near(targets.data, rng, turn), _near(targets.inputs, rng, turn), targets.fixed)
        count = len(fibre)
        paths = track(fibre.system, fibre.roots, _many(fibre.at, count), _many(hub, count), settings=settings)
        spent += int(np.sum(paths.evaluations))
        roots = merge(paths.roots[paths.converged])
        if best is None or len(roots) > len(best[1]):
            best = hub, roots
        if len(roots) == count:
            break
    assert best is not None
    return *best, spent


def _near(values: np.ndarray, rng: np.random.Generator, turn: float) -> np.ndarray:
    """Generic numbers of the targets' typical size and sign, turned; where they are mostly zero, something small."""
    middle = np.median(values, axis=0)
    small = 1e-3 * np.max(np.abs(values), axis=0, initial=0.0)
    middle = np.where(np.abs(middle) > small, middle, np.where(small > 0, small, 1e-3))
    return turned(middle[None], rng, turn)
