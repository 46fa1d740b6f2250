"""Solve: all roots of a square system for any number of targets, from its fibre.

The fibre is first moved to a *hub*, generic data of the size that the targets have, and from there to every target: the
way from the hub is short, and the way to it is gone once.  Targets that miss roots are tried again from other hubs and
with more care.

Targets that are estimates of one trajectory help each other.  Only the first of each time, the *leader*, is reached
from a hub; its roots are followed to the others of that time over the small difference of their data, and to leaders
of other times with the flow of the model.

At generic data there are as many roots as the fibre has.  A target can have fewer, where paths end at infinity or
meet.  And more can be returned where equations are so ill-conditioned that several points solve them to rounding: they
are told apart by what follows, not here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.algebra.homotopy import track
from odejet.algebra.monodromy import Fibre, merge, turned
from odejet.algebra.system import SquareSystem, Targets
from odejet.algebra.tracker import CAREFUL, DEFAULT, NEAR, PathEnd, Settings
from odejet.budget import Budget
from odejet.simulate.flow import Flow

TURNS = (0.25, 1.0)
"""Half circles by which hubs turn the data: far ones are generic, near ones are closer to the targets."""
HUBS = 4
"""Hubs from which a target is tried before roots are given up as lost."""
PATIENCE = 4000
"""Evaluations per target after which roots that are still missing are not looked for again."""
LEAST = 40_000
"""Evaluations for all targets together after which missing roots are given up, where targets are few."""
ARRIVALS = 4
"""Roots carried to a target from elsewhere that are followed to its data, for each root that it should have."""
DETOURS = (0.3, 1.0)
"""Sizes of the complex detour between estimates at the same time."""
NEARBY, FAR = (2000, 50), (20_000, 2000)
"""Steps, and stiff ones, after which a solution through a root is no longer followed; far to targets without a root."""
WORK = 3e10
"""Operations for all targets together."""
TRAJECTORY = 2e9
"""Operations of one trajectory between targets at most."""
STEP, STIFF_STEP = 1000.0, 2000.0
"""Operations of a step for each register of the tape, and of a stiff one by the cube of the number of states."""
PER_SECOND = 1e9
"""Operations per second, for what cannot be interrupted near the end of the time."""
SOLVED = 1e-9
"""Equations that hold to this, relative to their largest terms, are solved."""
DOUBT = 1e-7
"""Roots whose last correction was larger, relative to the unknowns, are not determined by their equations."""
TINY = 1e-100
"""Data below this are zero."""
ZERO = 1e-8
"""Unknowns below this, relative to their median over the roots, are zero up to rounding."""
REAL = 1e-6
"""Roots whose imaginary parts are below this, relative to each unknown, are real."""


@dataclass(frozen=True)
class Solution:
    """The roots of one target; `lost` counts paths without one, by outcome."""

    roots: np.ndarray
    lost: dict[str, int]

    def real(self, tolerance: float = REAL) -> np.ndarray:
        """The real roots, as real numbers."""
        # Zeros come out as rounding of what the unknown usually is.
        usual = np.median(np.abs(self.roots), axis=0) if len(self.roots) else 0.0
        size = np.maximum(np.abs(self.roots), ZERO * usual)
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
    known: Mapping[str, float] | None = None,
    seed: int = 0,
    hubs: int = HUBS,
    budget: Budget | None = None,
) -> Solutions:
    """Every root of every target that the paths reach.

    `times` says that the targets are estimates of one trajectory at these times, several at each if there are several
    estimators, the most trusted first; with its `flow`, roots of single points travel between times.  `known` are
    parameters of the flow that the system does not have.  When the budget ends, what was found so far is all there is,
    and the census counts the paths that are unfinished.
    """
    rng = np.random.default_rng([seed, len(targets), len(fibre)])
    search = _Search(fibre, targets, times, flow, known or {}, (budget or Budget()).at_most(work=WORK))
    for alike in _alike(targets, search.leaders):
        search.attempt(alike, rng, DEFAULT, TURNS[0])
    search.transport()
    for attempt in range(1, hubs):
        for i in search.missing(search.leaders):
            if (
                search.spent < max(PATIENCE * len(search.leaders), LEAST)
                and search.misses(i)
                and not search.budget.over
            ):
                search.attempt([i], rng, CAREFUL, TURNS[attempt % len(TURNS)])
                search.transport()
    search.transport(FAR)
    search.spread(rng)
    each = tuple(Solution(roots, why) for roots, why in zip(search.found, search.lost, strict=True))
    return Solutions(fibre.system, targets, each, search.census, search.evaluations)


class _Search:
    """Roots found so far, and what became of all paths."""

    def __init__(
        self,
        fibre: Fibre,
        targets: Targets,
        times: np.ndarray | None,
        flow: Flow | None,
        known: Mapping[str, float],
        budget: Budget,
    ) -> None:
        self.fibre, self.targets, self.system, self.budget = fibre, targets, fibre.system, budget
        self.times, self.flow, self.known = times, flow, known
        first = np.arange(len(targets)) if times is None else np.unique(times, return_index=True)[1]
        self.leaders = sorted(int(i) for i in first)
        self.found = [np.zeros((0, len(fibre.system.unknowns)), dtype=complex)] * len(targets)
        self.lost: list[dict[str, int]] = [{}] * len(targets)
        self.census = {outcome.name.lower(): 0 for outcome in PathEnd}
        self.evaluations = 0
        self.doubtful: set[int] = set()
        self.sent: set[tuple[int, int, tuple[int, int]]] = set()
        self.arrivals = np.zeros(len(targets), dtype=int)
        self.spent = 0

    @property
    def patient(self) -> bool:
        """Whether roots that are still missing are worth another attempt."""
        return self.spent < max(PATIENCE * len(self.leaders), LEAST) and not self.budget.over

    def misses(self, i: int) -> bool:
        return len(self.found[i]) < len(self.fibre)

    def missing(self, chosen: Sequence[int]) -> list[int]:
        """Those that miss roots."""
        return [i for i in chosen if self.misses(i)]

    def attempt(self, chosen: list[int], rng: np.random.Generator, settings: Settings, turn: float) -> None:
        """All paths to some targets from a hub of their size."""
        before = self.evaluations
        hub, starts, spent = _hub(self.fibre, self.targets[chosen], rng, turn, self.budget)
        self.evaluations += spent
        if len(starts):
            begin = hub.repeated(len(chosen) * len(starts))
            self.follow(np.tile(starts, (len(chosen), 1)), begin, np.repeat(chosen, len(starts)), settings)
        self.spent += self.evaluations - before

    def approach(self, points: np.ndarray, owners: np.ndarray) -> None:
        """Paths from the data that points solve to those of the targets that own them."""
        if not len(points):
            return
        inputs = self.targets.inputs[owners]
        data, _ = self.system.evaluate(points, inputs, self.targets.fixed)
        self.budget.spend(len(points) * self.system.jet_work)
        # A start that cannot be evaluated leads nowhere.
        good = np.all(np.isfinite(data), axis=1)
        points, inputs, data, owners = points[good], inputs[good], data[good], owners[good]
        if len(points):
            self.follow(points, Targets(data, inputs, self.targets.fixed), owners, NEAR)

    def follow(
        self,
        starts: np.ndarray,
        begin: Targets,
        owners: np.ndarray,
        settings: Settings,
        bend: float = 0.0,
        rng: np.random.Generator | None = None,
    ) -> None:
        """Paths from known roots to the targets that own them."""
        paths = track(
            self.system,
            starts,
            begin,
            self.targets[owners],
            settings=settings,
            bend=bend,
            rng=rng,
            budget=self.budget,
        )
        self.evaluations += int(np.sum(paths.evaluations))
        for name, ended in paths.census().items():
            self.census[name] += ended
        for i in np.unique(owners):
            good = paths.converged & (owners == i)
            if np.any(paths.errors[good] > DOUBT):
                self.doubtful.add(int(i))
            self.found[i] = merge(np.concatenate([self.found[i], paths.roots[good]]))
            outcomes = [PathEnd(o).name.lower() for o in paths.outcomes[(owners == i) & ~good]]
            self.lost[i] = {name: outcomes.count(name) for name in dict.fromkeys(outcomes)}

    def keep(self, carried: np.ndarray, owners: np.ndarray) -> None:
        """Carried roots that solve their equations as they are, though Newton's method may not have stayed there."""
        if not len(owners):
            return
        residuals = self.system.residuals(carried, self.targets[owners])
        for root, i in zip(carried[residuals < SOLVED], owners[residuals < SOLVED], strict=True):
            self.found[i] = merge(np.concatenate([self.found[i], root[None]]))

    def wants(self, i: int, limits: tuple[int, int]) -> bool:
        """Whether roots are carried to a leader: near ones where it misses some, far ones where it has none.

        Equations so ill-conditioned that they hold to rounding without determining the root want others too.
        """
        return not len(self.found[i]) if limits == FAR else self.misses(i) or i in self.doubtful

    def transport(self, limits: tuple[int, int] = NEARBY) -> None:
        """Real roots of leaders carried by the flow to leaders that want them, and from there to their data."""
        if self.flow is None or self.times is None:
            return
        for i in self.leaders:
            if i in self.doubtful:
                continue
            for k, root in enumerate(Solution(self.found[i], {}).real()):
                wanted = np.array([j for j in self.leaders if j != i and self.wants(j, limits)], dtype=np.int64)
                if not len(wanted) or (i, k, limits) in self.sent or self.budget.over:
                    continue
                self.sent.add((i, k, limits))
                reached, starts = self.carried(root, self.times[i], self.times[wanted], limits)
                owners = wanted[reached]
                self.keep(starts, owners)
                # The many false roots of ill-conditioned targets must not keep true ones from being looked at.
                early = self.arrivals[owners] < ARRIVALS * len(self.fibre)
                self.arrivals[owners] += 1
                self.approach(starts[early], owners[early])

    def carried(
        self, root: np.ndarray, start: float, times: np.ndarray, limits: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which times the solution through a real root of one point reaches, and its unknowns there."""
        assert self.flow is not None
        full = self.system.everything(root[None], self.targets.fixed)[0]
        n = len(self.system.joined.model.states)
        named = {**self.known, **dict(zip(self.system.joined.together.parameters, full[n:].tolist(), strict=True))}
        run = self.flow.run(
            # What only an initial value depends on does not matter on the way.
            [named.get(name, 0.0) for name in self.flow.model.parameters],
            full[:n],
            times,
            start=start,
            sensitivities=False,
            free_states=True,
            max_steps=self.affordable(limits[0], STEP * self.system.tape.registers),
            stiff_steps=self.affordable(limits[1], STIFF_STEP * n**3),
        )
        self.budget.spend(STEP * self.system.tape.registers * run.steps)
        states = run.states[:, :, 0]
        everything = np.concatenate([states, np.broadcast_to(full[n:], (len(states), len(full) - n))], axis=1)
        return run.reached, everything[:, self.system.columns]

    def affordable(self, steps: int, work: float) -> int:
        """So many steps of an integration, or fewer where each is so much work that they would take too long."""
        allotted = min(TRAJECTORY, self.budget.left, self.budget.seconds * PER_SECOND)
        return min(steps, int(allotted / work))

    def spread(self, rng: np.random.Generator) -> None:
        """Roots of each leader followed to the other estimates of its time, twice if the first way loses some."""
        if self.times is None:
            return
        for leader in self.leaders:
            alike = [int(i) for i in np.flatnonzero(self.times == self.times[leader]) if i != leader]
            for detour in DETOURS:
                others, roots = self.missing(alike), self.found[leader]
                if len(roots) and others:
                    begin = self.targets[[leader] * (len(others) * len(roots))]
                    owners = np.repeat(others, len(roots))
                    self.follow(np.tile(roots, (len(others), 1)), begin, owners, DEFAULT, detour, rng)


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


def _hub(
    fibre: Fibre,
    targets: Targets,
    rng: np.random.Generator,
    turn: float,
    budget: Budget,
    attempts: int = 2,
) -> tuple[Targets, np.ndarray, int]:
    """Generic data of the targets' size with as many roots as can be brought there, and the evaluations spent."""
    best: tuple[Targets, np.ndarray] | None = None
    spent = 0
    for _ in range(attempts):
        hub = Targets(_near(targets.data, rng, turn), _near(targets.inputs, rng, turn), targets.fixed)
        count = len(fibre)
        paths = track(
            fibre.system,
            fibre.roots,
            fibre.at.repeated(count),
            hub.repeated(count),
            settings=CAREFUL,
            budget=budget,
        )
        spent += int(np.sum(paths.evaluations))
        roots = merge(paths.roots[paths.converged])
        if best is None or len(roots) > len(best[1]):
            best = hub, roots
        if len(roots) == count or budget.over:
            break
    assert best is not None
    return *best, spent


def _near(values: np.ndarray, rng: np.random.Generator, turn: float) -> np.ndarray:
    """Generic numbers of the targets' typical size and sign, turned; where they are mostly zero, something small."""
    middle = np.median(values, axis=0)
    small = 1e-3 * np.max(np.abs(values), axis=0, initial=0.0)
    middle = np.where(np.abs(middle) > np.maximum(small, TINY), middle, np.where(small > TINY, small, 1e-3))
    return turned(middle[None], rng, turn)
