"""Experiments: the periods of a problem as starts, known values and events of its model.

What the first period sets holds before anything else is computed from it, as SBML's initial assignments are; what a
later period sets follows from what held just before.  A species keeps its concentration when PEtab changes the size of
its compartment.  Everything here is in names of the network; what differs between experiments is left open in the
model and known in each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from odejet.errors import ModelError
from odejet.io.petab.formulas import parse
from odejet.io.petab.tables import BEFORE, Period, Tables
from odejet.io.sbml.formulas import ZERO, times
from odejet.io.sbml.happenings import begun as at_once
from odejet.io.sbml.network import START, Network
from odejet.model import Event
from odejet.model.expressions import Expression, Symbol, constant, names, number, substituted

Values = dict[str, Expression]


@dataclass
class Course:
    """One experiment, in names of the network: its start, what is known then, and what happens later."""

    name: str
    start: float
    initial: Values = field(default_factory=dict)  # of every state, at the start or before the rest
    values: Values = field(default_factory=dict)  # of constants that conditions change, from the start on
    before: Values | None = None  # what those were while the system came to rest, if it did
    events: list[tuple[float, Values]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Names:
    """What ids of a problem are called in the model."""

    network: Network
    aliases: Mapping[str, str]
    others: Mapping[str, str]  # ids that the model does not have

    def symbol(self, id_: str) -> Expression:
        id_ = self.aliases.get(id_, id_)
        return Symbol(self.network.name_of.get(id_) or self.others.get(id_, id_))

    def name(self, id_: str) -> str:
        return str(self.symbol(id_))

    def is_constant(self, name: str) -> bool:
        return name not in self.network.states and name not in self.network.meanings


@dataclass(frozen=True, eq=False)
class Experiments:
    """All experiments that something was measured in."""

    tables: Tables
    network: Network  # with the parameters of the table in it
    names: Names
    where: str

    @cached_property
    def courses(self) -> tuple[Course, ...]:
        return tuple(self._course(name, periods) for name, periods in self._measured.items())

    @cached_property
    def _measured(self) -> dict[str, tuple[Period, ...]]:
        named = dict.fromkeys(one.experiment for one in self.tables.measurements)
        return {name: self.tables.experiments[name] for name in named}

    @cached_property
    def some_rest(self) -> bool:
        """Whether some experiment begins at rest: then what happens at the start has happened before the rest."""
        return any(periods and periods[0].time == BEFORE for periods in self._measured.values())

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Constants, and names that the model does not have, which some period sets or something at the start."""
        return tuple(dict.fromkeys([*self.set_by_periods, *self.network.assigned]))

    @cached_property
    def set_by_periods(self) -> tuple[str, ...]:
        """Those that some period sets."""
        periods = (period for own in self._measured.values() for period in own)
        ids = dict.fromkeys(id_ for period in periods for id_ in period.changes)
        return tuple(dict.fromkeys(n for id_ in ids if self.names.is_constant(n := self.names.name(id_))))

    def _course(self, name: str, periods: tuple[Period, ...]) -> Course:
        if not periods:
            raise ModelError(f"{self.where}: the experiment '{name}' has no period")
        first, *later = periods
        network = self._at_first(first.changes, name)
        course = Course(name, START if first.time == BEFORE else first.time)
        constants = {target: self._constant(network, target, first.changes, name) for target in self.targets}
        begun = {state: substituted(network.at_start(Symbol(state)), constants) for state in network.initial}
        if self.some_rest:
            begun = {state: substituted(value, constants) for state, value in at_once(network, begun).items()}
        course.initial = {state: _folded(value) for state, value in begun.items()}
        course.values = dict(constants)
        if first.time == BEFORE:
            course.before = constants
            if later:
                main, *later = later
                course.start = main.time
                self._after_rest(course, main)
        course.events += [(period.time, self._changes(period.changes, name)) for period in later]
        return course

    def _at_first(self, changes: Mapping[str, str], name: str) -> Network:
        """The network with what the first period sets in the place of its own values."""
        own = {self.names.aliases.get(id_, id_): self._formula(text, id_, name) for id_, text in changes.items()}
        known = {id_: value for id_, value in own.items() if id_ in self.network.name_of}
        for id_, value in known.items():
            if id_ in names(value):
                raise ModelError(f"{self.where}: the experiment '{name}' begins with '{id_}' as a function of itself")
        return self.network.replaced(known)

    def _constant(self, network: Network, target: str, changes: Mapping[str, str], name: str) -> Expression:
        """What a constant is at first, with other constants that are set written out."""
        told = {self.names.name(id_): text for id_, text in changes.items()}
        if target in network.parameters:
            exact = network.parameters[target]
            return Symbol(target) if exact is None else number(exact)
        if target in network.assigned:
            set_ = {
                other: number(value) for other in self.targets if (value := network.parameters.get(other)) is not None
            }
            found: Expression = substituted(network.at_start(Symbol(target)), set_)
            return found
        return self._formula(told[target], target, name) if target in told else Symbol(target)

    def _after_rest(self, course: Course, main: Period) -> None:
        """What the period after the rest sets: constants from the start on, and states by an event at the start."""
        told = self._changes(main.changes, course.name)
        assert course.before is not None
        reset = [name for id_ in main.reset if self.names.is_constant(name := self.names.name(id_))]
        for name in reset:
            course.values[name] = self._default(name)
        course.values |= {name: value for name, value in told.items() if name in course.values}
        states = {name: value for name, value in told.items() if name not in course.values}
        if states:
            course.events.append((main.time, {n: substituted(v, course.before) for n, v in states.items()}))

    def _default(self, name: str) -> Expression:
        if name in self.network.parameters or name in self.network.assigned:
            exact = self.network.parameters.get(name)
            found: Expression = number(exact) if exact is not None else self.network.at_start(Symbol(name))
            return found
        return Symbol(name)

    def _changes(self, changes: Mapping[str, str], name: str) -> Values:
        """What a later period sets, by state or constant, from what held just before."""
        network = self.network
        told = {self.names.name(id_): network.now(self._formula(text, id_, name)) for id_, text in changes.items()}
        found = dict(told)
        for species, (amount, space) in network.within.items():
            found.pop(species, None)
            if species in told or space in told:
                level = told.get(species, network.now(Symbol(species)))
                found[amount] = times(level, told.get(space, Symbol(space)))
        for target in found:
            if target in network.meanings:
                raise ModelError(f"{self.where}: the experiment '{name}' sets '{target}', which a rule determines")
        return found

    def _formula(self, text: str, id_: str, name: str) -> Expression:
        return parse(text, f"{self.where}: the experiment '{name}': {id_}", self.names.symbol)


def _folded(value: Expression) -> Expression:
    """A number as one."""
    exact = constant(value)
    return value if exact is None else number(exact)


# --- what the model has and what experiments know ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Split:
    """The network that all experiments share, and the experiments with all that is their own."""

    network: Network
    courses: tuple[Course, ...]


def split(experiments: Experiments) -> Split:
    """Leave open in the network what experiments know, and put into it what all of them begin with."""
    open_ = _open(experiments)
    moved = _moved(experiments.courses, open_)
    courses = [_own(course, open_, moved) for course in experiments.courses]
    shared = experiments.network.replaced({})
    if experiments.some_rest:
        shared.happenings = [replace(one, initial_value=True) for one in shared.happenings]
    for name in open_:
        shared.assigned.pop(name, None)
        shared.parameters[name] = None
    for name in moved:
        del shared.parameters[name]
    shared.states = {**shared.states, **dict.fromkeys(moved, ZERO)}
    first = courses[0].initial
    shared.initial = {
        name: value for name, value in first.items() if all(course.initial[name] == value for course in courses)
    }
    for course in courses:
        course.initial = {name: value for name, value in course.initial.items() if name not in shared.initial}
    return Split(shared, tuple(courses))


def _own(course: Course, open_: set[str], moved: Iterable[str]) -> Course:
    """An experiment with what it alone knows; constants that it moves are states."""
    values = {name: value for name, value in course.values.items() if name in open_ and name not in moved}
    values = {name: value for name, value in values.items() if value != Symbol(name)}
    if course.before is None:
        return replace(course, values=values, initial=course.initial | {name: course.values[name] for name in moved})
    before = {name: value for name, value in course.before.items() if name in open_ and name not in moved}
    before = {name: value for name, value in before.items() if value != values.get(name, Symbol(name))}
    initial = course.initial | {name: course.before[name] for name in moved}
    changed = {name: course.values[name] for name in moved if course.values[name] != initial[name]}
    events = [(course.start, changed), *course.events] if changed else course.events
    return replace(course, values=values, initial=initial, before=before, events=events)


def _open(experiments: Experiments) -> set[str]:
    """Constants that are known in experiments: all that conditions set, and what follows from these at the start."""
    network, courses = experiments.network, experiments.courses
    found = set(experiments.set_by_periods)
    for name in experiments.targets:
        if name not in found:
            told = {course.values[name] for course in courses} | {(c.before or c.values)[name] for c in courses}
            if len(told) > 1 or found & set(names(network.at_start(Symbol(name)))):
                found.add(name)
    return found


def _moved(courses: Iterable[Course], open_: set[str]) -> list[str]:
    """Constants that periods change and that are not numbers in between: states that stand still but for that."""
    courses = tuple(courses)
    set_ = dict.fromkeys(name for course in courses for _, told in course.events for name in told if name in open_)
    return [name for name in set_ if any(constant(course.values[name]) is None for course in courses)]


def events_of(course: Course, numbers: Mapping[str, Expression], used: Collection[str]) -> list[Event]:
    """What happens in an experiment to names that are used, with constants of the model as numbers.

    A measurement at the time at which a period begins belongs to that period.
    """
    felt = [(time, {name: value for name, value in told.items() if name in used}) for time, told in course.events]
    return [
        Event(at=number(time), set={name: substituted(value, numbers) for name, value in told.items()}, seen=True)
        for time, told in felt
        if told
    ]
