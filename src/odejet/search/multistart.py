"""Multistart: the optimum of a misfit from nothing but a box, by many starts of which few are followed.

Batches of starts are searched in several ways in turn, since nobody knows beforehand which leads to the optimum.
By parts, the best of many starts are led to the whole of the data: first the beginning of every experiment, then more
and more of it.  A short piece of an oscillation has no wrong number of periods, so this goes round the local minima
that trap a start on the whole.  What still looks good then enters a race (see `race`), in which starts are refined on
all of the data as far as they are good.  Other starts enter it at once; where series are sparse these come first.  Hops
(see `hops`) lead on from the best that these have found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.clock import now
from odejet.objective.courses import ROUGH, Effort
from odejet.objective.misfit import Misfit
from odejet.objective.projection import projected
from odejet.objective.reduced import AnyMisfit, Reduced
from odejet.problem import coordinates
from odejet.problem.coordinates import Bounds, Coordinates
from odejet.search.hops import Hops
from odejet.search.race import PACE, Race
from odejet.search.refine import MAX_EVALUATIONS, Ending, Refined, refine
from odejet.search.screen import Screen, rough_effort
from odejet.search.workers import Workers

STARTS = 4096
"""Starts drawn, unless time or the goal ends the search before."""

ROUND, SCORED, FOLLOWED = 64, 8, 8
"""Starts drawn at a time, in groups of so many scored, and how many of them are followed."""

DECADES, NEAR_DECADES = 2.0, 1.0
"""On either side of the scale: where to look for what has no bounds, and where first."""

PARTS = ((0.1, 15), (0.3, 20), (1.0, 50))
"""Parts of every experiment that are fitted one after the other, and evaluations for each: a short piece of an
oscillation has no wrong number of periods."""

SEEN = 3
"""Measurements per series that make the first part a piece of a curve."""

GROUPS = (1, 4, 1, 12, 1, 45)
"""Starts of which the best one races: one, and few or many in turn.  What fits best at once leads to the optimum of
some problems, and on others, where an output that vanishes fits better than a wrong one, away from it."""

AT_ONCE = 10
"""Evaluations to fit the whole at once, where scales are free: most starts that can do it need fewer."""

POINTS, PRECISION = 30, 1e-3
"""Measurements per series while a start is followed, and how well these are fitted: enough to tell good from poor."""

CLOSE, GOOD, PROMISING = 0.05, 0.01, 1.5
"""By its rms on the coarse data, in units of the outputs' spread, a followed start is refined at once, refined whatever
else there is, or refined if it is within this factor of the best so far."""

BEHIND = 3.0
"""The end of a race that is behind the best by more is not refined any better."""

POLISH = 120
"""Evaluations without roughness after which it is asked whether more could lead to the best: most ends need fewer."""

SAME = 1e-3
"""Optima whose negative log-likelihoods differ by less are one: refinements end within 1e-7 of an optimum."""

CONFIRMING = 2
"""Starts of a search that must lead to an optimum which another search has found."""


@dataclass(frozen=True)
class _Followed:
    """A start that was led to the whole of the coarse data."""

    start: np.ndarray
    z: np.ndarray
    rms: float
    evaluations: int


def multistart(
    misfit: Misfit,
    bounds: Bounds = None,
    positive: bool | Collection[str] = False,
    scale: np.ndarray | None = None,
    levels: np.ndarray | None = None,
    seed: int | Sequence[int] = 0,
    starts: int = STARTS,
    time_limit: float = math.inf,
    goal: float = -math.inf,
    agree: int = 3,
    evaluations: float = math.inf,
    candidates: Sequence[np.ndarray] = (),
    before: Sequence[Refined] = (),
    plausible: Callable[[Refined], bool] = lambda _: True,
    answered: Callable[[Sequence[Refined], int], bool] = lambda *_: False,
) -> list[Refined]:
    """The optima that were found, best first; the same for the same seed, as far as time allows.

    The search ends when an optimum's cost is at most `goal` or its residuals are down to rounding, when the best one
    was reached from `agree` starts and is `plausible`, when the ends of starts and the evaluations that they took are
    `answered` to be enough, when `starts` or `evaluations` are used up or when the time is over.  `scale` is the size
    of each unknown, known or guessed: where there are no bounds starts lie around it.  `levels` are noise levels to
    begin the refinements with; `candidates` are starts that go before those drawn; `before` are optima of other
    searches, which count towards `agree` once two starts of this one lead there too.
    """
    deadline = now() + time_limit
    sizes = np.ones(len(misfit.unknowns)) if scale is None else np.asarray(scale, dtype=float)
    frame = coordinates.choose(misfit.unknowns, sizes, bounds, positive, misfit.model.bounds)
    drawn = batches(frame, sizes, _ties(misfit), starts, np.random.default_rng(seed))
    first = list(itertools.islice(drawn, 1))
    effort = rough_effort(misfit, [z for batch in first for z in batch], deadline)
    drawn = itertools.chain(first, drawn)
    guide = _Guide(replace(misfit, jobs=1), frame, levels, deadline, effort)
    hops = Hops(
        guide.screen,
        levels,
        deadline,
        np.random.default_rng([*np.atleast_1d(seed).tolist(), len(sizes)]),
        sampled_box(frame, sizes),
    )
    with Workers(guide, misfit.jobs - 1) as workers:
        search = _Search(guide, workers, hops, before, plausible, answered, brief=math.isfinite(evaluations))
        steps = search.steps(drawn)
        if len(candidates):
            steps = itertools.chain(search.by_parts(frame.inside(np.array(candidates, dtype=float))), steps)
        for _ in steps:
            if search.over(goal, agree) or search.spent >= evaluations:
                break
    return search.found


class _Guide:
    """Leads starts to all of the data, by parts of it or at once; what becomes of one depends on no other."""

    def __init__(
        self,
        misfit: Misfit,
        frame: Coordinates,
        levels: np.ndarray | None,
        deadline: float,
        effort: Effort = ROUGH,
    ) -> None:
        self.misfit, self.frame, self.levels, self.deadline, self.effort = misfit, frame, levels, deadline, effort
        self.parts = [misfit.window(horizon, POINTS, misfit.scales, effort) for horizon, _ in PARTS]
        self.early, self.whole = (projected(part, frame) or part for part in self.parts[1:])
        self.track = Race.on(misfit, frame, levels, deadline, effort)
        self.screen = Screen.of(self.track.misfit, frame)

    def scores(self, starts: np.ndarray) -> list[float]:
        return [self.score(z, self.early) for z in starts]

    def score(self, z: np.ndarray, part: AnyMisfit) -> float:
        """How far a part of the data is from a start; one bad point of a good start counts little."""
        if now() > self.deadline:
            return math.inf
        own = z[part.kept] if isinstance(part, Reduced) else z
        found = part.evaluate(own, jacobian=False, deadline=self.deadline)
        if found.residuals is None:
            return math.inf
        with np.errstate(over="ignore"):
            return float(np.log1p((found.residuals / part.row_levels(self.misfit.scales)) ** 2).sum())

    def entrant(self, group: np.ndarray) -> tuple[np.ndarray, Refined] | None:
        """The best start of a group, and where its first lap ends."""
        start = self.screen.best(list(group), self.deadline)
        return None if start is None else (start, replace(self.track, deadline=self.deadline).run(start, 0))

    def follow(self, z: np.ndarray) -> _Followed | None:
        """A start led to the whole of the coarse data: part by part, unless scales are free and it gets there at once.

        A scale that is free fits a short piece of nearly anything, so that there is less to learn from parts.
        """
        if isinstance(self.early, Reduced):
            end = self.led(z, [(self.parts[-1], AT_ONCE)])
            if end is not None and end.rms <= CLOSE:
                return end
        return self.led(z, [(part, evaluations) for part, (_, evaluations) in zip(self.parts, PARTS, strict=True)])

    def led(self, z: np.ndarray, parts: Sequence[tuple[Misfit, int]]) -> _Followed | None:
        """The optimum of one part after the other, each with so many evaluations."""
        start, rms, used = z, math.inf, 0
        for part, evaluations in parts:
            left = self.deadline - now()
            if left <= 0:
                break
            end = refine(part, z, time_limit=left, max_evaluations=evaluations, precision=PRECISION, frame=self.frame)
            used += end.evaluations
            if math.isinf(end.cost):
                break  # perhaps all of the data are too much for a rough simulation
            z, rms = end.z, end.rms
        return None if math.isinf(rms) else _Followed(start, z, rms, used)

    def begin(self, followed: _Followed) -> Refined:
        """The first lap on all of the data."""
        return replace(self.track, deadline=self.deadline).run(followed.z, 0)

    def refined(self, z: np.ndarray, evaluations: int) -> Refined:
        left = self.deadline - now()
        return refine(
            self.misfit, z, levels=self.levels, time_limit=left, max_evaluations=evaluations, frame=self.frame
        )


@dataclass
class _Way:
    """A way to search batches of starts, and where it has led."""

    search: Callable[[np.ndarray], Iterator[None]]
    steps: Iterator[None] = field(default_factory=lambda: iter(()))
    starts: int = 0
    spent: int = 0  # evaluations
    ends: list[Refined] = field(default_factory=list)

    def take(self, batches: Iterable[np.ndarray]) -> None:
        """Go on with these, when their turn comes."""
        self.steps = itertools.chain.from_iterable(map(self.search, batches))

    def success(self, cost: float) -> float:
        """The part of its starts that may be expected to lead to an optimum of this cost."""
        return (_agreeing(self.ends, cost) + 1) / (self.starts + 2)


class _Search:
    """The optima so far."""

    def __init__(
        self,
        guide: _Guide,
        workers: Workers,
        hops: Hops,
        before: Sequence[Refined],
        plausible: Callable[[Refined], bool],
        answered: Callable[[Sequence[Refined], int], bool],
        brief: bool = False,
    ) -> None:
        self.guide, self.workers, self.hops = guide, workers, hops
        self.before, self.plausible, self.answered, self.brief = before, plausible, answered, brief
        self.runners = Race.on(guide.misfit, guide.frame, guide.levels, guide.deadline, guide.effort)
        self.ends: list[Refined] = []  # as they were found
        self.found: list[Refined] = []  # the best first
        self.least = math.inf  # rms of the best coarse fit, in units of the outputs' spread
        self.others = 0  # evaluations that neither the race nor hops have made

    def by_parts(self, batch: np.ndarray) -> Iterator[None]:
        """The best starts of a batch, led to the whole of the data in parts, those that end close to the data first; a
        pause after each."""
        groups = np.array_split(batch, math.ceil(len(batch) / SCORED))
        scores = np.array([score for part in self.workers.ahead("scores", groups) for score in part])
        best = [batch[i] for i in np.argsort(scores, kind="stable")[:FOLLOWED] if np.isfinite(scores[i])]
        rest = []
        for end in self.workers.ahead("follow", best):
            self.others += 0 if end is None else end.evaluations
            if end is not None and end.rms <= CLOSE:
                if self.promises(end):
                    yield from self.followed(end, self.guide.begin(end))
                yield
            elif end is not None:
                rest.append(end)
        rest.sort(key=lambda end: end.rms)
        for end, refined in zip(rest, self.workers.ahead("begin", rest, self.promises), strict=True):
            if refined is not None:
                yield from self.followed(end, refined)
            yield

    def race(self, batch: np.ndarray) -> Iterator[None]:
        """The best start of each group, in a race with all others; a pause after each."""
        ends = itertools.accumulate(itertools.cycle(GROUPS))
        cuts = list(itertools.takewhile(lambda end: end < len(batch), ends))
        groups = np.split(batch, cuts)
        for entrant in self.workers.ahead("entrant", groups):
            if entrant is not None:
                yield from self.enter(*entrant)
            yield

    def enter(self, start: np.ndarray, first: Refined) -> Iterator[None]:
        """One more start in the race, after its first lap; a pause after each that ends now."""
        for end in self.runners.enter(start, first):
            self.polish(end)
            yield

    def steps(self, batches: Iterator[np.ndarray]) -> Iterator[None]:
        """The first batch in the way that suits the data, beside parts of the data half as much on all of them; then
        starts in each way, all for as long.  Hops go between, as soon as there is anything to hop from."""
        first, *others = (_Way(search) for search in self.ways)
        hops = _Way(lambda _: iter(()), self.hop())
        first.take(itertools.islice(batches, 1))
        for way in others:
            way.take(batches)
        while self.goes(first):
            yield
            for way in others if self.shows_curves and not self.is_explained else ():
                if way.spent <= first.spent / 2 and self.goes(way):
                    yield
            if self.found and hops.spent * self.between_hops <= first.spent / 2:
                self.goes(hops)
                yield
        first.take(batches)
        ways = [*others, first]
        while ways:
            way = self.next_of(ways)
            if not self.goes(way):  # there are no more starts
                ways.remove(way)
            yield
            if ways and hops.spent * self.between_hops <= sum(way.spent for way in ways) / len(ways):
                self.goes(hops)
                yield

    def goes(self, way: _Way) -> bool:
        """Search on in one way up to its next pause; whether there was anything left to search."""
        before, spent = len(self.ends), self.spent
        gone = next(way.steps, way) is not way
        way.ends += self.ends[before:]
        way.starts, way.spent = way.starts + gone, way.spent + self.spent - spent
        return gone

    @property
    def spent(self) -> int:
        """Evaluations so far, with derivatives: beside these, others take little time."""
        return self.runners.spent + self.hops.spent + self.others

    def next_of(self, ways: Sequence[_Way]) -> _Way:
        """Which way has the next turn: the one that has had least, or those more that lead to an optimum which explains
        the data.  Turns are counted by what they take, since a start may take a hundred times as long as another."""
        if not self.is_explained:
            return min(ways, key=lambda way: way.spent)
        return min(ways, key=lambda way: (way.spent + 1) / way.success(self.best_cost))

    def hop(self) -> Iterator[None]:
        """Hops from the best so far; only one that leads to a better optimum tells anything."""
        while True:
            end = self.hops.hop([*self.found, *self.before, *self.runners.standing])
            if end is not None and end.cost < self.best_cost - SAME:
                self.polish(end)
            yield

    def promises(self, followed: _Followed) -> bool:
        """Whether a followed start is among the best so far."""
        return now() < self.guide.deadline and followed.rms <= max(PROMISING * self.least, GOOD)

    def followed(self, followed: _Followed, first: Refined) -> Iterator[None]:
        """A followed start in the race with all others."""
        self.least = min(self.least, followed.rms)
        yield from self.enter(followed.start, first)

    @property
    def ways(self) -> tuple[Callable[[np.ndarray], Iterator[None]], ...]:
        """How batches are searched, in turn: first by parts if these show pieces of the usual curve.

        Parts take many simulations before anything is refined on all of the data, too many for a brief search.
        """
        if self.brief:
            return (self.race,)
        return (self.by_parts, self.race) if self.shows_curves else (self.race, self.by_parts)

    @property
    def shows_curves(self) -> bool:
        """Whether the first part of the data has pieces of the usual curve."""
        return self.guide.parts[0].points >= SEEN * max(len(self.guide.misfit.measurements.blocks), 1)

    def over(self, goal: float, agree: int) -> bool:
        if now() > self.guide.deadline:
            return True
        if not self.found:
            return False
        answered = self.answered(self.found, self.spent)
        best = self.found[0]
        if best.cost <= goal or best.ending is Ending.EXACT:
            return True
        own, others = (_agreeing(optima, best.cost) for optima in (self.found, self.before))
        better = any(other.cost < best.cost - SAME for other in self.before)
        if better or own < min(CONFIRMING, agree):
            return False
        return (own + others >= agree and self.plausible(best)) or answered

    @property
    def is_explained(self) -> bool:
        """Whether the best optimum explains curves of data; sparse data are explained by poor optima."""
        return bool(self.found) and self.shows_curves and self.plausible(self.found[0])

    @property
    def between_hops(self) -> int:
        """How much longer than hops each way is searched: the more starts agree on an optimum that explains the data,
        since only starts can still tell anything then, by leading there too."""
        return max(_agreeing((*self.found, *self.before), self.best_cost), 1) if self.is_explained else 1

    def polish(self, end: Refined) -> None:
        """Refine the end of a race without roughness, if it is among the best so far.

        Where data are nearly exact no rough simulation comes as near to them, so that those are compared too.
        """
        if end.cost <= max(self.best_cost, self.runners.least) + BEHIND and now() < self.guide.deadline:
            end = self.polished(end)
        self.add(end)

    def polished(self, end: Refined) -> Refined:
        """Where exact simulations lead from there; one that comes to creep above the best is not followed for long."""
        start = end.start
        for evaluations, further in ((POLISH, MAX_EVALUATIONS - POLISH), (MAX_EVALUATIONS - POLISH, 0)):
            exact = self.guide.refined(end.z, evaluations)
            self.others += exact.evaluations
            if math.isinf(exact.cost):
                break
            reach = PACE * (end.cost - exact.cost) * further / evaluations
            end = replace(exact, start=start)
            if end.ending is not Ending.EVALUATION_LIMIT or end.cost - max(reach, 0.0) > self.best_cost:
                break
        return end

    def add(self, end: Refined) -> None:
        if math.isfinite(end.cost):
            self.ends.append(end)
            self.found = sorted([*self.found, end], key=lambda refined: refined.cost)

    @property
    def best_cost(self) -> float:
        return min((one.cost for one in (*self.found[:1], *self.before)), default=math.inf)


def _agreeing(optima: Sequence[Refined], cost: float) -> int:
    """How many of these are optima of this cost."""
    return sum(abs(one.cost - cost) <= SAME and one.ending.settled for one in optima)


def _ties(misfit: Misfit) -> np.ndarray:
    """Which unknowns are drawn together, by number: all of one name where there are very many experiments, since these
    are likely to be alike; otherwise each by itself."""
    names = [unknown.name for unknown in misfit.unknowns]
    return np.array([names.index(name) for name in names] if misfit.in_blocks else range(len(names)))


def batches(
    frame: Coordinates, sizes: np.ndarray, ties: np.ndarray, starts: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Latin hypercubes, in turn near the given sizes, on the scale of the coordinates, and even in the values.

    Evenly drawn values of a quantity that spans many decades are all of its largest size, so it keeps its scale; bounds
    that begin at zero say that its largest size is meant.
    """
    low, high = sampled_box(frame, sizes)
    near_low, near_high = sampled_box(frame, sizes, NEAR_DECADES, whole=False)
    drawn, kind = 0, 0
    while drawn < starts:
        size = min(ROUND, starts - drawn)
        cube = (np.argsort(rng.random((size, len(sizes))), axis=0) + rng.random((size, len(sizes)))) / size
        cube = cube[:, ties]
        if kind == 0:
            batch = frame.back(near_low + cube * (near_high - near_low))
        elif kind == 1:
            batch = frame.back(low + cube * (high - low))
        else:
            ends = frame.back(low), frame.back(high)
            even = ends[0] + cube * (ends[1] - ends[0])
            narrow = (frame.signs == 0) | (np.abs(high - low) <= 2 * DECADES * math.log(10) + 1e-9) | from_zero(frame)
            batch = np.where(narrow, even, frame.back(low + cube * (high - low)))
        yield batch
        drawn, kind = drawn + size, (kind + 1) % 3


def from_zero(frame: Coordinates) -> np.ndarray:
    """Of which unknowns the bounds begin, or end, at zero."""
    low, high = frame.given
    return ((low == 0) & np.isfinite(high)) | ((high == 0) & np.isfinite(low))


def sampled_box(
    frame: Coordinates, sizes: np.ndarray, decades: float = DECADES, whole: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Where to draw: around the sizes and within the bounds.

    The whole means the bounds themselves where both are given, and either sign where it is not known; otherwise an
    unknown keeps the sign of its size, since few quantities of models are negative.
    """
    theta_low, theta_high = frame.box
    signs = np.where(frame.signs != 0, frame.signs, np.where(sizes < 0, -1.0, 1.0))
    ends = np.sort(signs * np.where(sizes == 0, 1.0, np.abs(sizes)) * 10.0 ** np.array([[-decades], [decades]]), axis=0)
    if whole:
        ends = np.where(frame.signs == 0, np.abs(ends).max(axis=0) * np.array([[-1.0], [1.0]]), ends)
    low, high = np.maximum(frame.to(ends[0]), theta_low), np.minimum(frame.to(ends[1]), theta_high)
    given = np.isfinite(frame.given[0]) & np.isfinite(frame.given[1])
    all_of_it = (given & whole) | (low >= high)
    return np.where(all_of_it, theta_low, low), np.where(all_of_it, theta_high, high)
