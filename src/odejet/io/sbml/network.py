"""Network: what an SBML model says, in expressions: which quantities move, how, from where, and what the others are.

Every id of the document has a name here, and is one of four things:

    a state        it moves by reactions or a rate rule, or events set it
    a parameter    it is constant, with a number or without
    assigned       it is constant too, but an expression of what holds at the start
    a meaning      it stands for an expression: assignment rules, rates of reactions, computed stoichiometries,
                   concentrations in compartments that change

In formulas a species is its concentration, or its amount if it has only substance units or no space.  Where the size
of its compartment is constant the state is what formulas mean; where it changes the state is the amount, under a name
of its own, since the amount is what a change of size leaves alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from odejet.errors import ModelError, nearest
from odejet.io.sbml.document import MAX_FORMULA
from odejet.io.sbml.formulas import RATE_OF, ZERO, Truth, minus, over, times
from odejet.model.delays import before_start
from odejet.model.entries import text
from odejet.model.expressions import TIME, Expression, Symbol, children, constant, delays, names, number, substituted
from odejet.model.grammar import parse

START = 0
"""When the initial values of a model hold."""


@dataclass
class Happening:
    """An event as SBML has it; it sets states to what it assigns, times a size where these are amounts."""

    id: str
    trigger: Truth
    assignments: dict[str, Expression]
    sizes: dict[str, Expression] = field(default_factory=dict)
    delay: Expression | None = None
    priority: Expression | None = None
    initial_value: bool = True  # of the trigger before the start: if it is false the event may happen at the start
    persistent: bool = True
    from_trigger: bool = True  # whether what is set is computed when it is triggered


@dataclass
class Network:
    """A model as expressions in names; `where` is the file that messages speak of."""

    where: str
    title: str
    name_of: dict[str, str] = field(default_factory=dict)  # by id of the document
    states: dict[str, Expression] = field(default_factory=dict)
    initial: dict[str, Expression] = field(default_factory=dict)  # of states; what is not here is unknown
    parameters: dict[str, Fraction | None] = field(default_factory=dict)
    assigned: dict[str, Expression] = field(default_factory=dict)
    meanings: dict[str, Expression] = field(default_factory=dict)
    amounts: dict[str, Expression] = field(default_factory=dict)  # of species
    concentrations: dict[str, Expression] = field(default_factory=dict)
    within: dict[str, tuple[str, str]] = field(default_factory=dict)  # species whose state is the amount: it, the size
    rules: list[str] = field(default_factory=list)  # what assignment rules determine
    happenings: list[Happening] = field(default_factory=list)
    _now: dict[str, Expression] = field(default_factory=dict)
    _start: dict[str, Expression] = field(default_factory=dict)

    # --- what names come to

    def now(self, expression: Any) -> Any:
        """An expression or condition in states, parameters and time alone."""
        return self._resolved(expression, self._now, self._meaning)

    def at_start(self, expression: Any) -> Any:
        """The value at the start, in parameters alone; before that states stood at their initial values."""
        if isinstance(expression, Expression) and next(delays(expression), None) is not None:
            expression = before_start(self.now(expression))
        return self._resolved(expression, self._start, self._beginning)

    def expression(self, id_: str) -> Expression:
        """What an id of the document means in formulas, in states, parameters and time."""
        if id_ not in self.name_of:
            raise ModelError(f"{self.where}: there is no '{id_}'{nearest(id_, self.name_of)}")
        found: Expression = self.now(Symbol(self.name_of[id_]))
        return found

    def _resolved(self, expression: Any, memory: dict[str, Expression], meaning: Callable[[str], Expression]) -> Any:
        try:
            new = {name: self._found(name, memory, meaning) for name in dict.fromkeys(names(expression))}
        except RecursionError:
            raise ModelError(f"{self.where}: rules depend on each other more deeply than can be followed") from None
        found = substituted(expression, {name: value for name, value in new.items() if value != Symbol(name)})
        if size(found) > MAX_FORMULA:
            raise ModelError(f"{self.where}: a formula has more than {MAX_FORMULA} terms with all rules written out")
        return found

    def _found(self, name: str, memory: dict[str, Expression], meaning: Callable[[str], Expression]) -> Expression:
        if name not in memory:
            memory[name] = _OPEN
            told = meaning(name)
            memory[name] = told if told == Symbol(name) else self._resolved(told, memory, meaning)
        if memory[name] is _OPEN:
            raise ModelError(f"{self.where}: '{name}' is defined by itself; its rules form a circle")
        return memory[name]

    def _meaning(self, name: str) -> Expression:
        if name in self.meanings:
            return self.meanings[name]
        if name in self.assigned:
            constant_: Expression = self.at_start(self.assigned[name])
            return constant_
        if name.startswith(RATE_OF):
            return self.rate(name.removeprefix(RATE_OF))
        return Symbol(name)

    def _beginning(self, name: str) -> Expression:
        if name == TIME:
            return number(START)
        if name in self.assigned:
            return self.assigned[name]
        if name in self.initial:
            return self.initial[name]
        if name in self.states:
            reason = "its initial value is not known, and others depend on it; give it a value"
            raise ModelError(f"{self.where}: '{name}': {reason}")
        return self._meaning(name)

    def rate(self, name: str) -> Expression:
        """The derivative of what a name means."""
        if name in self.states:
            return self.states[name]
        if name in self.parameters or name in self.assigned:
            return ZERO
        if name in self.within:
            amount, space = self.within[name]
            grown = over(times(Symbol(name), self.rate(space)), Symbol(space))
            return minus(over(self.rate(amount), Symbol(space)), grown)
        raise ModelError(f"{self.where}: rateOf '{name}' is not supported, since a rule or a rate law determines it")

    def forget(self) -> None:
        """What names come to is worked out again."""
        self._now, self._start = {}, {}

    # --- other values

    def replaced(self, values: Mapping[str, Any], free: Iterable[str] = ()) -> Network:
        """The network with other values at the start, by id: numbers or expressions in names that are new or
        parameters; those in `free` are unknown.  Species are given as formulas mean them."""
        changed = copy.copy(self)
        for table in ("initial", "parameters", "assigned", "meanings"):
            setattr(changed, table, dict(getattr(self, table)))
        changed.forget()
        for id_, value in {**values, **dict.fromkeys(free)}.items():
            changed._replace(id_, None if value is None else parse(text(value)))
        return changed

    def _replace(self, id_: str, value: Expression | None) -> None:
        name = self.name_of.get(id_)
        if name in self.within:
            name, space = self.within[name]
            value = None if value is None else times(value, Symbol(space))
        if name in self.states:
            self.initial.pop(name, None)
            if value is not None:
                self.initial[name] = value
        elif name in self.parameters or name in self.assigned:
            self.assigned.pop(name, None)
            self.parameters.pop(name, None)
            exact = None if value is None else constant(value)
            if value is None or exact is not None:
                self.parameters[name] = exact
            else:
                self.assigned[name] = value
        elif name is None:
            known = [one for one, name in self.name_of.items() if name in self.parameters or name in self.initial]
            told = nearest(id_, self.name_of) or f"; known are {', '.join(known[:20])}"
            raise ModelError(f"{self.where}: there is no '{id_}'{told}")
        else:
            raise ModelError(f"{self.where}: '{id_}' has no value of its own, since a rule determines it")


_OPEN: Any = Symbol("in the making")


def size(expression: Any, memory: dict[int, int] | None = None) -> int:
    """Nodes of an expression, counting what is shared as often as it stands there."""
    memory = {} if memory is None else memory
    if id(expression) not in memory:
        memory[id(expression)] = 1 + sum(size(child, memory) for child in children(expression))
    return memory[id(expression)]
