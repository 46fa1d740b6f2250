"""Simulating: the members of a population at many parameters, on several cores and within a limit of time.

What is asked is a list of rows of x by subject.  Answers come in the order of the questions and depend on nothing else,
so that they are the same for any number of cores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from odejet.budget import OutOfBudget
from odejet.clock import now
from odejet.population.marginal import Sample
from odejet.population.nodes import Nodes
from odejet.population.subject import Subject
from odejet.search.workers import Workers

Array = np.ndarray

SLICE = 1024
"""Rows of x that are simulated between two looks at the clock, and that one core is asked for at a time."""


@dataclass(frozen=True, eq=False)
class Request:
    """Nodes at which a subject is to be simulated, beside these values of parameters without random effects; slopes by
    these are exact at every node, or follow those at a few."""

    subject: int
    nodes: Nodes
    common: Array
    exact: bool = True


@dataclass(eq=False)
class Members:
    """The subjects as workers ask them; `deadline` is a time by `clock.now`."""

    subjects: Sequence[Subject]
    deadline: float = math.inf

    def check(self) -> None:
        """Raise `OutOfBudget` when the time is over."""
        if now() > self.deadline:
            raise OutOfBudget("the time is over")

    def run(self, item: tuple[int, Array, Array, bool]) -> tuple[Array, Array | None]:
        """Return predictions at rows of x, and their slopes by parameters without random effects if there are any."""
        i, x, common, exact = item
        self.check()
        if len(common):
            if not exact:
                return self.subjects[i].predict_with_slopes(x, common)
            predictions, _, by_common = self.subjects[i].linearise(x, common)
            return predictions, by_common
        return self.subjects[i].predict(x, common), None


class Simulator:
    """Simulates nodes of subjects, and counts them."""

    def __init__(self, members: Members, executor: Executor | None = None) -> None:
        self.members, self.count = members, 0
        self._workers = Workers(members, executor)

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *of: object) -> None:
        self._workers.__exit__(*of)

    def samples(self, requests: Sequence[Request]) -> Iterator[Sample]:
        """Yield the nodes of every request with the predictions there; `OutOfBudget` when the time is over."""
        items, ends = [], []
        for one in requests:
            x = one.nodes.x
            items += [(one.subject, x[k : k + SLICE], one.common, one.exact) for k in range(0, len(x), SLICE)]
            ends.append(len(items))
        answers, begin = iter(self._workers.ahead(Members.run, items)), 0
        for one, end in zip(requests, ends, strict=True):
            parts = [next(answers) for _ in range(begin, end)]
            begin, self.count = end, self.count + len(one.nodes.x)
            slopes = [part for _, part in parts if part is not None]
            yield Sample(
                self.members.subjects[one.subject],
                one.nodes,
                np.concatenate([predictions for predictions, _ in parts]),
                one.common,
                np.concatenate(slopes) if slopes else None,
            )
