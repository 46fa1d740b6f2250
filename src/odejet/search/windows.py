"""Growing windows: starts led to the whole of the data, from the beginning of every experiment to more and more of it.

A short piece of an oscillation has no wrong number of periods, so this goes round the local minima that trap a start on
the whole.  What still looks good then is refined on all of the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.clock import now
from odejet.objective.misfit import Misfit
from odejet.objective.reduced import Reduced
from odejet.search.ground import Ground, roughly
from odejet.search.halving import HALVING, Halving
from odejet.search.refine import Refined, refine
from odejet.search.strategy import Evidence


@dataclass(frozen=True)
class Followed:
    """A start that was led to the whole of the coarse data."""

    start: np.ndarray
    z: np.ndarray
    rms: float
    evaluations: int


@dataclass(frozen=True)
class GrowingWindows:
    """The best starts of a batch, led to the whole of the data in parts.

    `close`, `good` and `promising` are about the rms on the coarse data, in units of the outputs' spread: a start is
    refined at once, refined whatever else there is, or refined if it is within this factor of the best so far.
    """

    parts: tuple[tuple[float, int], ...] = ((0.1, 15), (0.3, 20), (1.0, 50))  # of every experiment, and evaluations
    points: int = 30  # measurements per series on the way: enough to tell good from poor
    precision: float = 1e-3  # of the optima on the way
    seen: int = 3  # measurements per series that make the first part a piece of a curve
    scored: int = 8  # starts that are scored together
    followed: int = 8  # starts of a batch that are led on
    at_once: int = 10  # evaluations to fit the whole, where scales are free: most starts that can do it need fewer
    close: float = 0.05
    good: float = 0.01
    promising: float = 1.5
    halving: Halving = HALVING
    name: str = "growing windows"

    def explore(self, ground: Ground, evidence: Evidence, starts: Iterator[np.ndarray]) -> Iterator[Refined | None]:
        """The ends of the best starts of each batch, those that end close to the data first; a pause after each."""
        race, workers = evidence.race(self.halving), evidence.workers

        def promises(end: Followed) -> bool:
            """Whether a followed start is among the best so far."""
            return now() < ground.deadline and end.rms <= max(self.promising * evidence.closest, self.good)

        for batch in starts:
            rest = []
            leads = workers.ahead(self.lead, self.best(evidence, batch))
            for end in leads:
                close = [one.z for one in leads.upcoming if one.rms <= self.close]
                workers.foresee((self.name, "close"), [roughly(z, self.halving.laps[0]) for z in close])
                evidence.others += 0 if end is None else end.evaluations
                if end is not None and end.rms <= self.close:
                    if promises(end):
                        first = workers.ask(roughly(end.z, self.halving.laps[0]))
                        evidence.closest = min(evidence.closest, end.rms)
                        yield from race.enter(end.start, first)
                    yield None
                elif end is not None:
                    rest.append(end)
            rest.sort(key=lambda end: end.rms)
            laps = workers.ahead(self.begun, rest, promises)
            for number, (end, refined) in enumerate(zip(rest, laps, strict=True)):
                if refined is not None:
                    upcoming = zip(rest[number + 1 :], laps.upcoming, strict=False)
                    evidence.foresee(
                        self.name, race, [(end.start, refined), *((one.start, lap) for one, lap in upcoming)]
                    )
                    evidence.closest = min(evidence.closest, end.rms)
                    yield from race.enter(end.start, refined)
                yield None

    def shows_curves(self, ground: Ground) -> bool:
        """Whether the first part of the data has pieces of the usual curve."""
        first = ground.window(self.parts[0][0], self.points)[0]
        return first.points >= self.seen * max(len(ground.misfit.measurements.blocks), 1)

    def best(self, evidence: Evidence, batch: np.ndarray) -> list[np.ndarray]:
        """The starts of a batch that fit the second part best."""
        groups = np.array_split(batch, math.ceil(len(batch) / self.scored))
        scores = np.array([score for group in evidence.workers.ahead(self.scores, groups) for score in group])
        return [batch[i] for i in np.argsort(scores, kind="stable")[: self.followed] if np.isfinite(scores[i])]

    def scores(self, ground: Ground, starts: np.ndarray) -> list[float]:
        return [self.score(ground, z) for z in starts]

    def score(self, ground: Ground, z: np.ndarray) -> float:
        """How far the second part of the data is from a start; one bad point of a good start counts little."""
        if now() > ground.deadline:
            return math.inf
        part = ground.window(self.parts[1][0], self.points)[1]
        own = z[part.kept] if isinstance(part, Reduced) else z
        found = part.evaluate(own, jacobian=False, deadline=ground.deadline)
        if found.residuals is None:
            return math.inf
        with np.errstate(over="ignore"):
            return float(np.log1p((found.residuals / part.row_levels(ground.misfit.scales)) ** 2).sum())

    def lead(self, ground: Ground, z: np.ndarray) -> Followed | None:
        """A start led to the whole of the coarse data: part by part, unless scales are free and it gets there at once.

        A scale that is free fits a short piece of nearly anything, so that there is less to learn from parts.
        """
        windows = [(ground.window(part, self.points)[0], evaluations) for part, evaluations in self.parts]
        if isinstance(ground.window(self.parts[1][0], self.points)[1], Reduced):
            end = self.through(ground, z, [(windows[-1][0], self.at_once)])
            if end is not None and end.rms <= self.close:
                return end
        return self.through(ground, z, windows)

    def through(self, ground: Ground, z: np.ndarray, windows: Sequence[tuple[Misfit, int]]) -> Followed | None:
        """The optimum of one window after the other, each with so many evaluations."""
        start, rms, used = z, math.inf, 0
        for window, evaluations in windows:
            left = ground.deadline - now()
            if left <= 0:
                break
            end = refine(
                window,
                z,
                time_limit=left,
                max_evaluations=evaluations,
                precision=self.precision,
                frame=ground.frame,
            )
            used += end.evaluations
            if math.isinf(end.cost):
                break  # perhaps all of the data are too much for a rough simulation
            z, rms = end.z, end.rms
        return None if math.isinf(rms) else Followed(start, z, rms, used)

    def begun(self, ground: Ground, followed: Followed) -> Refined:
        """The first lap on all of the data."""
        return ground.roughly(followed.z, self.halving.laps[0])
