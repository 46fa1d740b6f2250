"""Optimality: whether the best optimum that was found is the best there is.

The answer rests on independent starts in the box and never on whether the model explains the data.  If n starts ended
in w different optima, those not seen yet hold the share w(w+1)/(n(n-1)) of all starts, by expectation (Boender and
Rinnooy Kan 1987); and if very many ended at the best, one that a tenth of them lead to would have been seen.  Ends of
one cost are one optimum: they lie along one valley, or differ in what nothing determines.

A search has its answer as well where nothing can be better: residuals are down to rounding, or they are the noise that
the data show by themselves, and the starts agree (see `certificate`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.search.refine import Refined

CONFIRMED, LIKELY, OPEN = "confirmed", "likely", "open"

ONE = 0.05
"""Ends whose negative log-likelihoods differ by less are one optimum: a valley that is nearly flat is followed no
farther than that."""

UNSEEN = {CONFIRMED: 0.002, LIKELY: 0.01}
"""The share of starts that optima not seen yet may hold: 32 starts that end at one optimum confirm it, or 55 at two."""

AGREEING = {CONFIRMED: 40, LIKELY: 15}
"""Starts that end at the best optimum and tell as much, however many others there are."""

PATIENCE, LONGER = 3000, 5
"""Evaluations with derivatives, and times those that it took to meet the best optimum first, after which it is likely
that there is no better one, and a search ends: in nearly all problems that take longer to confirm it, a start takes
seconds."""

FEWEST = 3
"""Starts that must end at an optimum in any case."""


class Optimality(str):
    """Whether this is the best fit: "confirmed", "likely" or "open", with what that rests on."""

    __slots__ = ("agreeing", "optima", "reasons", "starts", "unseen")
    starts: int  # independent ones that ended at an optimum
    agreeing: int  # those that ended at this one
    optima: int  # different ones that were met
    unseen: float  # the share of starts that optima not seen yet may hold
    reasons: tuple[str, ...]  # what the answer rests on, or what is missing

    def __new__(
        cls,
        word: str,
        starts: int = 0,
        agreeing: int = 0,
        optima: int = 0,
        unseen: float = 1.0,
        reasons: Sequence[str] = (),
    ) -> Optimality:
        if word not in (CONFIRMED, LIKELY, OPEN):
            raise ValueError(f"{word!r} is no answer to whether a fit is the best")
        self = super().__new__(cls, word)
        self.starts, self.agreeing, self.optima, self.unseen = starts, agreeing, optima, unseen
        self.reasons = tuple(reasons)
        return self

    def __getnewargs__(self) -> tuple[str, int, int, int, float, tuple[str, ...]]:  # type: ignore[override]
        return str(self), self.starts, self.agreeing, self.optima, self.unseen, self.reasons

    @property
    def sentence(self) -> str:
        """The answer with what it rests on."""
        return "; ".join((str(self), *self.reasons))


@dataclass(frozen=True)
class Effort:
    """What a search of the box has taken so far, in evaluations with derivatives."""

    spent: int = 0
    first: int = 0  # when the best optimum was met
    best: float = math.inf  # its cost

    def going_on(self, best: float, spent: int) -> Effort:
        """Later, when the best is this."""
        better = best < self.best - ONE
        return Effort(spent, spent if better else self.first, best if better else self.best)

    @property
    def long(self) -> bool:
        """Whether a better optimum would likely have been met by now."""
        return self.spent >= max(PATIENCE, LONGER * self.first)


@dataclass(frozen=True)
class Tally:
    """Where independent starts ended."""

    starts: int  # that ended at an optimum
    agreeing: int  # at the best
    optima: int
    long: bool = False  # whether a better one would likely have been met by now

    @classmethod
    def of(cls, ends: Iterable[Refined], best: float, effort: Effort | None = None) -> Tally:
        """The ends of starts, told apart by their costs; `best` is the lowest cost that is known."""
        costs = np.sort([one.cost for one in ends if one.ending.settled and np.isfinite(one.cost)])
        agreeing = int(np.count_nonzero(costs - best <= ONE))
        optima = int(np.count_nonzero(np.diff(costs) > ONE)) + (len(costs) > 0)
        return cls(len(costs), agreeing, optima, effort is not None and effort.long)

    @property
    def unseen(self) -> float:
        """The share of starts that optima not seen yet may hold."""
        if self.starts < 2:
            return 1.0
        return min(self.optima * (self.optima + 1) / (self.starts * (self.starts - 1)), 1.0)

    @property
    def word(self) -> str:
        """What the starts alone tell of the best optimum."""
        for word in (CONFIRMED, LIKELY):
            enough = self.agreeing >= AGREEING[word] or self.unseen <= UNSEEN[word]
            if enough and self.agreeing >= FEWEST:
                return word
        return LIKELY if self.long and self.agreeing >= FEWEST else OPEN

    @property
    def sentence(self) -> str:
        starts = f"{self.starts} start{'s' * (self.starts != 1)}"
        optima = f"{self.optima} {'optimum' if self.optima == 1 else 'optima'}"
        if not self.starts:
            return "no start in the box ended at an optimum"
        return (
            f"{self.agreeing} of {starts} in the box ended here and met {optima}; others may hold "
            f"{100 * self.unseen:.2g} % of starts"
        )

    def answer(self, word: str | None = None, reasons: Sequence[str] = ()) -> Optimality:
        """The answer that follows, or another that something else tells."""
        told = reasons or (self.sentence,)
        return Optimality(word or self.word, self.starts, self.agreeing, self.optima, self.unseen, told)


def is_answered(word: str, effort: Effort) -> bool:
    """Whether more starts would tell nothing new: the best optimum is confirmed, or after many evaluations likely."""
    return word == CONFIRMED or (word == LIKELY and effort.spent >= PATIENCE)


@dataclass
class Watch:
    """Asks during a search whether it has its answer."""

    before: Sequence[Refined]  # where starts of earlier searches ended
    effort: Effort  # of these, and of this search as far as it has come

    def __post_init__(self) -> None:
        self._earlier = self.effort.spent

    def __call__(self, ends: Sequence[Refined], spent: int) -> bool:
        """Whether the ends of all starts, and the evaluations that they took, are enough."""
        every = [*ends, *self.before]
        best = min((one.cost for one in every), default=math.inf)
        self.effort = self.effort.going_on(best, self._earlier + spent)
        return is_answered(Tally.of(every, best, self.effort).word, self.effort)
