"""Portfolio: several strategies in turn, since nobody knows beforehand which leads to the optimum of a box.

Starts led by growing windows and starts on all of the data take turns, those first that suit the data: windows where
they show pieces of the usual curve, all of the data where series are sparse.  Iterated local search goes between, from
the best that these have found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.clock import now
from odejet.objective.misfit import Misfit
from odejet.problem import coordinates
from odejet.problem.coordinates import Bounds
from odejet.search.box import batches, ties
from odejet.search.ground import Ground, exactly
from odejet.search.local_search import IteratedLocalSearch
from odejet.search.multistart import PLAIN_GROUPS, Multistart
from odejet.search.refine import MAX_EVALUATIONS, SAME, Ending, Refined
from odejet.search.screen import rough_effort
from odejet.search.strategy import Evidence, Plausible, Strategy, agreeing
from odejet.search.windows import GrowingWindows
from odejet.search.workers import Workers

STARTS = 4096
"""Starts drawn, unless time or the goal ends the search before."""

CONFIRMING = 2
"""Starts of a search that must lead to an optimum which another search has found."""

SETTLED = 8
"""Starts that agree on the best optimum, from which on only more of them tell anything: strategies that lead there for
less have more turns, and starts are taken as they are drawn, as counting them supposes."""

BOX: tuple[Strategy, ...] = (Multistart(), GrowingWindows(), IteratedLocalSearch())
"""The strategies by which a box is searched."""


def explore(
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
    plausible: Plausible = lambda _: True,
    accepted: Callable[[Sequence[Refined]], bool] = lambda _: True,
    answered: Callable[[Sequence[Refined], int], bool] = lambda *_: False,
    strategies: Sequence[Strategy] = BOX,
    executor: Executor | None = None,
) -> list[Refined]:
    """The optima that were found, best first; the same for the same seed, as far as time allows.

    The search ends when an optimum's cost is at most `goal` or its residuals are down to rounding, when the best one
    was reached from `agree` starts, is `plausible` and all ends are `accepted`, when the ends of starts and the
    evaluations that they took are `answered` to be enough, when `starts` or `evaluations` are used up or when the time
    is over.  `scale` is the size of each unknown, known or guessed: where there are no bounds starts lie around it.
    `levels` are noise levels to begin the refinements with; `candidates` are starts that go before those drawn;
    `before` are optima of other searches, which count towards `agree` once two starts of this one lead there too.  An
    `executor` works ahead.
    """
    deadline = now() + time_limit
    sizes = np.ones(len(misfit.unknowns)) if scale is None else np.asarray(scale, dtype=float)
    frame = coordinates.choose(misfit.unknowns, sizes, bounds, positive, misfit.model.bounds)
    drawn = batches(frame, sizes, ties(misfit), starts, np.random.default_rng(seed))
    first = list(itertools.islice(drawn, 1))
    effort = rough_effort(misfit, [z for batch in first for z in batch], deadline)
    drawn = itertools.chain(first, drawn)
    ground = Ground(replace(misfit, jobs=1), frame, levels, deadline, effort)
    with Workers(ground, executor) as workers:
        evidence = Evidence(ground, workers, sizes, before, np.atleast_1d(seed).tolist())
        portfolio = Portfolio(evidence, strategies, plausible, brief=math.isfinite(evaluations))
        for _ in portfolio.steps(drawn, frame.inside(np.array(candidates, dtype=float)) if len(candidates) else None):
            if portfolio.over(goal, agree, accepted, answered) or evidence.spent >= evaluations:
                break
    return evidence.optima


@dataclass
class Turns:
    """The turns of a strategy, and where they have led."""

    strategy: Strategy
    steps: Iterator[Refined | None] = field(default_factory=lambda: iter(()))
    spent: int = 0  # evaluations
    ends: list[Refined] = field(default_factory=list)

    def price(self, cost: float) -> float:
        """The evaluations that one more end at an optimum of this cost may be expected to take."""
        return (self.spent + 1) / (agreeing(self.ends, cost) + 1)


class Portfolio:
    """Strategies that share the time of a search."""

    def __init__(
        self,
        evidence: Evidence,
        strategies: Sequence[Strategy],
        plausible: Plausible = lambda _: True,
        brief: bool = False,
    ) -> None:
        self.evidence, self.ground, self.plausible = evidence, evidence.ground, plausible
        self.windows = next((one for one in strategies if isinstance(one, GrowingWindows)), GrowingWindows())
        self.shows_curves = self.windows.shows_curves(self.ground)
        # Windows take many simulations before anything is refined on all of the data, too many for a brief search.
        drawing = [one for one in strategies if not isinstance(one, IteratedLocalSearch)]
        if brief:
            drawing = [one for one in drawing if not isinstance(one, GrowingWindows)] or drawing
        drawing.sort(key=lambda one: isinstance(one, GrowingWindows) != self.shows_curves)
        self.drawing = drawing
        self.hopping = [one for one in strategies if isinstance(one, IteratedLocalSearch)]

    def steps(self, drawn: Iterator[np.ndarray], candidates: np.ndarray | None = None) -> Iterator[None]:
        """The first batch by the strategy that suits the data, beside windows half as much on all of the data; then
        starts by each strategy, all for as long.  Hops go between, as soon as there is anything to hop from."""
        if candidates is not None:
            led = Turns(self.windows)
            self.take(led, [candidates])
            while self.goes(led):
                yield
        hops = [Turns(one, one.explore(self.ground, self.evidence, iter(()))) for one in self.hopping]
        if not self.drawing:
            yield from self.hops_alone(hops[0], drawn)
            return
        first, *others = (Turns(strategy) for strategy in self.drawing)
        self.take(first, itertools.islice(drawn, 1))
        for turns in others:
            self.take(turns, drawn)
        while self.goes(first):
            yield
            for turns in others if self.shows_curves and not self.is_explained else ():
                if turns.spent <= first.spent / 2 and self.goes(turns):
                    yield
            for turns in hops if self.evidence.optima else ():
                if turns.spent * self.between_hops <= first.spent / 2:
                    self.goes(turns)
                    yield
        self.take(first, drawn)
        every, counted = [*others, first], self.counted
        while every:
            if self.is_settled and counted is not None:
                self.take(counted, drawn)
                every, counted = [*every, counted], None
            turns = self.next_of(every)
            if not self.goes(turns):  # there are no more starts
                every.remove(turns)
            yield
            for turns in hops if every else ():
                if turns.spent * self.between_hops <= sum(turns.spent for turns in every) / len(every):
                    self.goes(turns)
                    yield

    def hops_alone(self, hops: Turns, drawn: Iterator[np.ndarray]) -> Iterator[None]:
        """Hops from where the first start leads, as many as there are starts."""
        first, every = itertools.tee(drawn)
        self.take(hops, first)
        for _ in itertools.chain.from_iterable(every):
            self.goes(hops)
            yield

    def take(self, turns: Turns, starts: Iterable[np.ndarray]) -> None:
        """Let a strategy go on with these, when its turn comes."""
        turns.steps = turns.strategy.explore(self.ground, self.evidence, iter(starts))

    def goes(self, turns: Turns) -> bool:
        """One turn of a strategy, up to its next end or pause; whether there was anything left to explore."""
        evidence = self.evidence
        before, spent, nothing = len(evidence.ends), evidence.spent, object()
        end = next(turns.steps, nothing)
        if isinstance(end, Refined):
            evidence.add(self.polished(end))
        turns.ends += evidence.ends[before:]
        turns.spent += evidence.spent - spent
        return end is not nothing

    def next_of(self, every: Sequence[Turns]) -> Turns:
        """Who has the next turn: the strategy that has had least, or the more, the less it takes to lead to an optimum
        which explains the data or on which many starts agree.  Turns are counted by what they take, since a start may
        take a hundred times as long as another."""
        if not self.is_explained and not self.is_settled:
            return min(every, key=lambda turns: turns.spent)
        return min(every, key=lambda turns: turns.spent * turns.price(self.evidence.best_cost))

    def over(
        self,
        goal: float,
        agree: int,
        accepted: Callable[[Sequence[Refined]], bool],
        answered: Callable[[Sequence[Refined], int], bool],
    ) -> bool:
        """Whether no more starts are wanted, or there is no time for them."""
        evidence = self.evidence
        if now() > self.ground.deadline:
            return True
        if not evidence.optima:
            return False
        is_answered = answered(evidence.optima, evidence.spent)
        best = evidence.optima[0]
        if best.cost <= goal or best.ending is Ending.EXACT:
            return True
        own, others = (agreeing(optima, best.cost) for optima in (evidence.optima, evidence.before))
        better = any(other.cost < best.cost - SAME for other in evidence.before)
        if better or own < min(CONFIRMING, agree):
            return False
        return is_answered or (own + others >= agree and self.plausible(best) and accepted(evidence.optima))

    @property
    def is_explained(self) -> bool:
        """Whether the best optimum explains curves of data; sparse data are explained by poor optima."""
        return bool(self.evidence.optima) and self.shows_curves and self.plausible(self.evidence.optima[0])

    @property
    def is_settled(self) -> bool:
        """Whether so many starts agree that more of them are only counted."""
        return self.agreeing >= SETTLED

    @property
    def counted(self) -> Turns | None:
        """Starts as they are drawn, where those of a multistart are chosen from several."""
        chosen = next((one for one in self.drawing if isinstance(one, Multistart)), None)
        return None if chosen is None or chosen.groups == PLAIN_GROUPS else Turns(replace(chosen, groups=PLAIN_GROUPS))

    @property
    def agreeing(self) -> int:
        """How many starts have led to the best optimum."""
        return agreeing((*self.evidence.optima, *self.evidence.before), self.evidence.best_cost)

    @property
    def between_hops(self) -> int:
        """How much longer than hops each strategy has its turns: the more starts agree on an optimum, since only starts
        can still tell anything then, by leading there too."""
        return max(self.agreeing, 1)

    def polished(self, end: Refined) -> Refined:
        """Where exact simulations lead from a rough end, if it is among the best so far; one that comes to creep above
        the best is not followed for long.

        Where data are nearly exact no rough simulation comes as near to them, so that those are compared too.
        """
        evidence, polish = self.evidence, self.evidence.polish
        if end.cost > max(evidence.best_cost, evidence.least) + polish.behind or now() >= self.ground.deadline:
            return end
        start, most = end.start, MAX_EVALUATIONS - polish.first
        for evaluations, further in ((polish.first, most), (most, 0)):
            exact = evidence.workers.ask(exactly(end.z, evaluations))
            evidence.others += exact.evaluations
            if math.isinf(exact.cost):
                break
            reach = polish.pace * (end.cost - exact.cost) * further / evaluations
            end = replace(exact, start=start)
            if end.ending is not Ending.EVALUATION_LIMIT or end.cost - max(reach, 0.0) > evidence.best_cost:
                break
        return end
