"""Partial: equations that outputs satisfy by themselves, found with less than a whole elimination.

A whole elimination by `projection` may end in one equation that is too long while the others are short, and short ones
may tell all parameters.  So an output may be left out at any time: from then on its derivatives count as known, like
those of an input, and its own equation is not looked for any more.  This is done in two ways.

*Branches.*  After any step the states of some outputs' equations may be closed: their rates hold no other states.  The
elimination then branches off with these outputs and states alone.

*Exchanges.*  Where the next step is too long, states are eliminated among the equations that there are, without
differentiating any: one equation is used up for each state.

What is found are irreducible equations in derivatives of outputs and inputs.  If no other relation holds among the
derivatives in one of them, which a rank tells, its coefficients are as identifiable as those of a whole elimination.
They need not be all that is identifiable.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from flint import nmod_mat, nmod_mpoly

from odejet.budget import OutOfBudget
from odejet.identify.eliminants import Eliminants
from odejet.identify.local import Problem
from odejet.identify.projection import Beyond, Key, Plan, Projection, Step, parts
from odejet.jets import modular

STEP = 3e8
"""Work that one step may take: each is taken some dozens of times."""

MAIN = -1
"""What is no branch."""

MOST_TERMS = 20_000
"""Longer equations are left out."""


def applies(problem: Problem) -> bool:
    """Whether equations may be left out: there are several, of one experiment, in states alone."""
    one = problem.experiments == 1 and not problem.unlimited
    return one and len(problem.model.outputs) > 1 and not len(problem.tape.quadratures)


@dataclass(frozen=True)
class Branch:
    """The outputs and states that go on by themselves after so many steps, and their steps."""

    after: int
    outputs: frozenset[int]
    states: frozenset[str]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Exchange:
    """A state that is eliminated by the equation of an output, from the equations of some others."""

    output: int
    state: str
    others: tuple[int, ...]


@dataclass(frozen=True)
class Parts(Plan):
    """How the equations were found; `orders` are the highest derivatives that occur."""

    branches: tuple[Branch, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    taken: tuple[tuple[int, int], ...] = ()  # the branch and the output of every equation


@dataclass
class Partial(Projection):
    """Equations without states, as many as come out; `plan` is none or one of `Parts`."""

    branches: list[Branch] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    equations: list[nmod_mpoly] = field(default_factory=list)
    taken: list[tuple[int, int]] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)  # of every output, the highest derivative on all ways

    def run(self) -> None:
        self.start()
        self.reached = [0] * self.outputs
        line = self._repeated(self.plan) if isinstance(self.plan, Parts) else self._searched()
        self._collect(line, MAIN)
        self.steps = line.steps

    @property
    def found(self) -> Parts:
        return Parts(
            tuple(self.steps),
            tuple(self.reached),
            self.laws,
            tuple(self.branches),
            tuple(self.exchanges),
            tuple(self.taken),
        )

    @property
    def is_whole(self) -> bool:
        return False

    @property
    def is_prime(self) -> bool:
        """Each equation is irreducible, and each is used by itself."""
        return True

    def coefficients(self) -> dict[Key, dict[tuple[int, ...], int]]:
        """As in a whole elimination, with the number of an equation in the place of an output."""
        return self.coefficients_of(self.equations)

    def _collect(self, line: Partial, branch: int) -> bool:
        """Take over equations without states: those of the plan, or new ones that are sure to tell something."""
        for output, top in enumerate(line.tops):
            if isinstance(self.plan, Parts):
                chosen = (branch, output) in self.plan.taken
            else:
                free = 1 < len(top) <= MOST_TERMS and not line.states_of(top)
                chosen = free and top not in self.equations and self._is_only_relation(top)
            if chosen:
                self.equations.append(top)
                self.taken.append((branch, output))
        return any(number == branch for number, _ in self.taken)

    def states_of(self, top: nmod_mpoly) -> set[str]:
        """The states that are left in an equation."""
        degrees = top.degrees()
        return {name for name in self.left if degrees[self.symbols.index[name]]}

    def _copied(self, work: float = inf) -> Partial:
        """Copy the elimination as far as it came, with so much of the budget."""
        other = copy.copy(self)
        other.budget = self.budget if work == inf else self.budget.at_most(work=work)
        other.symbols = copy.copy(self.symbols)
        other.symbols.values = dict(self.symbols.values)
        other.eliminants = Eliminants(other.symbols, other.budget)
        other.tops, other.left, other.orders = list(self.tops), list(self.left), list(self.orders)
        other.rates, other.steps = dict(self.rates), list(self.steps)
        return other

    # --- finding a way ---

    def _searched(self) -> Partial:
        line, tried = self, set[tuple[frozenset[int], frozenset[str]]]()
        while (step := line._cheapest()) is not None:
            further = line._stepped(step)
            if further is None:
                break
            line = further
            for branch in line._closed():
                if (key := (branch.outputs, branch.states)) not in tried:
                    tried.add(key)
                    self._branch_off(line, branch)
        line = line._copied()
        while (exchange := line._exchanged()) is not None:
            self.exchanges.append(exchange)
        return line

    def _stepped(self, step: Step) -> Partial | None:
        """One step further; None where that takes too long."""
        other = self._copied(STEP)
        try:
            other._take(step)
        except (OutOfBudget, Beyond):
            self.budget.check()
            return None
        other.budget, other.steps = self.budget, [*self.steps, step]
        other.eliminants = Eliminants(other.symbols, self.budget)
        other._note_orders()
        return other

    def _note_orders(self) -> None:
        """Derivatives that occur after a step; while it is taken there may be one more."""
        degrees = [top.degrees() for top in self.tops]
        for name in self.jets:
            if name[0] == "y" and any(d[self.symbols.index[name]] for d in degrees):
                output, order = (int(part) for part in name[1:].split("_"))
                self.reached[output] = max(self.reached[output], min(order + 1, self.highest[output]))

    def _closed(self) -> Iterator[Branch]:
        """Outputs with states that depend on no others."""
        everything = set(self.seen())
        for top in self.tops:
            states = self._closure(self.states_of(top))
            if states and states < everything:
                inside = (i for i, other in enumerate(self.tops) if (own := self.states_of(other)) and own <= states)
                yield Branch(len(self.steps), frozenset(inside), frozenset(states))

    def _closure(self, states: set[str]) -> set[str]:
        """Some states and all that their rates depend on."""
        queue = list(states)
        while queue:
            for part in parts(self.rates[queue.pop()]):
                new = self.states_of(part) - states
                states |= new
                queue += new
        return states

    def _branch_off(self, line: Partial, branch: Branch) -> None:
        own: Partial | None = line._only(branch)
        assert own is not None
        own.steps = []
        while (step := own._cheapest()) is not None:
            own = own._stepped(step)
            if own is None:
                return
        if self._collect(own, len(self.branches)):
            self.branches.append(replace(branch, steps=tuple(own.steps)))

    def _only(self, branch: Branch) -> Partial:
        """The outputs and states of a branch; an equation that is left out says nothing, 1 = 1."""
        own, one = self._copied(), self.symbols.number(1)
        own.tops = [top if i in branch.outputs else one for i, top in enumerate(own.tops)]
        own.left = [name for name in own.left if name in branch.states]
        own.rates = {name: own.rates[name] for name in own.left}
        return own

    def _exchanged(self) -> Exchange | None:
        """Eliminate a state by the shortest equation of the lowest degree, where others hold it too."""
        choices = []
        for output, top in enumerate(self.tops):
            for name in self.states_of(top):
                if sum(name in self.states_of(other) for other in self.tops) > 1:
                    choices.append((self.symbols.degree(top, name), len(top), output, name))
        if not choices:
            return None
        *_, output, name = min(choices)
        others = [i for i, top in enumerate(self.tops) if i != output and name in self.states_of(top)]
        return self._exchange(Exchange(output, name, tuple(others)))

    def _exchange(self, exchange: Exchange) -> Exchange:
        """Take an exchange; those equations are kept that do not become too long."""
        top, one = self.tops[exchange.output], self.symbols.number(1)
        kept = []
        for i, other in enumerate(self.tops):
            if exchange.state in self.states_of(other):
                self.tops[i] = one
            if i in exchange.others:
                limited = self._copied(STEP if self.plan is None else inf).eliminants
                try:
                    self.tops[i] = limited.eliminant(other, top, exchange.state)
                    kept.append(i)
                except OutOfBudget:
                    self.budget.check()
        self.left.remove(exchange.state)
        return replace(exchange, others=tuple(kept))

    def _repeated(self, plan: Parts) -> Partial:
        """The way of a plan."""
        line = self._copied()
        for done in range(len(plan.steps) + 1):
            if done:
                self.budget.check()
                line._take(plan.steps[done - 1])
            for number, branch in enumerate(plan.branches):
                if branch.after == done:
                    own = line._only(branch)
                    for step in branch.steps:
                        self.budget.check()
                        own._take(step)
                    self._collect(own, number)
        for exchange in plan.exchanges:
            line._exchange(exchange)
        return line

    # --- what is found ---

    def _is_only_relation(self, equation: nmod_mpoly) -> bool:
        """Whether the derivatives of outputs in an equation satisfy no other: all but one of them are independent.

        What is conserved, and states without a rate, count as known.
        """
        degrees = equation.degrees()
        inside = [name for name in self.jets if name[0] == "y" and degrees[self.symbols.index[name]]]
        rows = [[int(part) for part in name[1:].split("_")] for name in inside]
        jets = modular.jets(self.tape, self.field, self.point, max(self.highest)).outputs
        size = len(self.tape.states)
        known = [[int(k == i) for k in range(size)] for i in self.problem.still]
        for law in self.laws:
            others = {law.state: 1, **{i: self.field.residue(a) for i, a in law.others}}
            known.append([others.get(k, 0) for k in range(size)])
        own = [[int(x) for x in jets[output, order, 1 : 1 + size]] for output, order in rows]
        return self._rank([*known, *own]) - self._rank(known) == len(own) - 1

    def _rank(self, rows: Sequence[Sequence[int]]) -> int:
        flat = [x for row in rows for x in row]
        return nmod_mat(len(rows), len(self.tape.states), flat, self.prime).rank() if rows else 0
