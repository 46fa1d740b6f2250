"""Budget: how much a stage may still do, in counted work, in time and in memory.

Work is counted so that the same question gets the same answer on every machine; its unit is one operation of compiled
arithmetic, about a nanosecond, and a stage says beforehand or as it goes how many it does.  The clock is the last
resort, for machines slower than foreseen and for users in a hurry.  Memory is asked for by size before it is taken.

A budget is shared by making parts of it: what a part spends is spent of the whole, and a part ends when the whole does.

    whole = Budget.within(30.0)
    half = whole.share(0.5)
    while half.spend(1e6):
        ...                                  # a slice of work, of a million operations
    why = half.reason                        # "the time is over", "the work allotted is done", or "" if neither is so
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from odejet.clock import now

PER_SECOND = 1e9
"""Operations per second."""
MEMORY = 5e8
"""Bytes that one stage may ask for at once: with what stands already, a process stays well below two gigabytes."""


class OutOfBudget(Exception):
    """A stage that has no other way to say so has reached the end of its budget; the message is the reason."""


@dataclass
class Budget:
    """Work and time that are left; `deadline` is a time by `clock.now`."""

    work: float = inf
    deadline: float = inf
    memory: float = MEMORY
    whole: Budget | None = None
    """What this is a part of."""
    spent: float = 0.0

    @classmethod
    def within(cls, seconds: float, work: float = inf) -> Budget:
        """A budget that begins now."""
        return cls(work, now() + seconds)

    @property
    def seconds(self) -> float:
        """What the clock leaves, never negative."""
        return max(self.deadline - now(), 0.0)

    @property
    def left(self) -> float:
        """The work that may still be done: none once the clock has run out."""
        return 0.0 if self.over else self._least_work()

    @property
    def most(self) -> float:
        """Operations that may still be done, by work and by time."""
        return min(self.left, PER_SECOND * self.seconds)

    @property
    def over(self) -> bool:
        return bool(self.reason)

    @property
    def reason(self) -> str:
        """Why no more may be done; empty while more may be."""
        if self._least_work() <= 0.0:
            return "the work allotted is done"
        return "the time is over" if now() >= self.deadline else ""

    def spend(self, work: float = 1.0) -> bool:
        """Count some work; whether anything is left for more."""
        part: Budget | None = self
        while part is not None:
            part.work -= work
            part.spent += work
            part = part.whole
        return not self.over

    def check(self, work: float = 0.0) -> None:
        """Count some work; `OutOfBudget` if nothing is left for more."""
        if not self.spend(work):
            raise OutOfBudget(self.reason)

    def fits(self, size: float) -> bool:
        """Whether so many bytes may be taken."""
        return size <= self.memory

    def affords(self, work: float) -> bool:
        """Whether so much work is left, and about the time for it: asked before a step that cannot be interrupted."""
        return work <= self.most

    def share(self, fraction: float) -> Budget:
        """A part of what is left, both of the work and of the time."""
        deadline = self.deadline if self.deadline == inf else now() + fraction * self.seconds
        return Budget(fraction * self._least_work(), deadline, self.memory, self)

    def at_most(self, *, work: float = inf, seconds: float = inf) -> Budget:
        """A part that ends after so much work or time, or with the whole if that is sooner."""
        return Budget(min(work, self._least_work()), min(self.deadline, now() + seconds), self.memory, self)

    def _least_work(self) -> float:
        """Parts that were made at the same time may have spent what this one was promised."""
        return max(self.work if self.whole is None else min(self.work, self.whole._least_work()), 0.0)
