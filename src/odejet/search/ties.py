"""Ties: from stretches with starts of their own to one solution through all of them.

A misfit of the whole jumps where an event passes a measurement, and a solution that is a little wrong is soon wrong
altogether.  So the states at the start of every stretch, the nodes, stay unknowns beside all others, and what a
solution from one node lacks to the next, the tie, counts as a measurement of zero.  Its error is allowed to be large at
first and is made smaller step by step: in the end the nodes lie on one solution, and the unknowns of the whole are
known (Bock 1983, with continuity as a penalty).

Events happen when the data show it: their times are unknowns too, each between two stretches, and that the condition
comes true just then is one more tie.  So no event passes a measurement, and all of this is smooth.  Only where a
condition compares no two numbers, but is made of several, the model's own events happen when they happen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odejet.budget import Budget
from odejet.data import Data, Experiment, Series
from odejet.errors import DataError, ModelError
from odejet.model import Event, Model
from odejet.model.expressions import ZERO, Comparison, Expression, Product, Symbol, evaluate, fresh, number
from odejet.model.expressions import names as names_in
from odejet.model.modes import difference
from odejet.model.transform import rewritten
from odejet.problem import Problem
from odejet.problem.coordinates import Coordinates
from odejet.problem.stretches import between, known_times
from odejet.search.box import batches
from odejet.search.pieces import Pieces, ends, jump_between, likeliest, states_at
from odejet.search.proposals import solved
from odejet.search.refine import Refined, refine

ERRORS = (0.1, 1e-2, 1e-3, 1e-4)
"""Errors of ties, one after the other, relative to how far a state moves."""

EVALUATIONS = 100
"""For each of them."""

DRAWN, FOLLOWED, FOLLOWED_EVALUATIONS = 192, 6, 40
"""Starts that are drawn for what acts through events alone, how many of them are followed, and how far."""

GRID = 8
"""Times at which a condition is looked at between two stretches."""


EDGE = 1e-2
"""Of the time between two stretches: what an event keeps away from both."""


def tied(
    whole: Problem,
    parts: Pieces,
    z: np.ndarray,
    start: np.ndarray,
    levels: np.ndarray,
    frame: Coordinates,
    budget: Budget,
    seed: int = 0,
) -> np.ndarray:
    """Unknowns of a problem by which one solution goes through all its stretches.

    `z` are those of the stretches and `start` those of the whole, NaN where the stretches do not tell them; `levels`
    are of the noise.
    """
    names, known = _Names.of(whole, parts), np.where(np.isnan(start), whole.sizes, start)
    happenings = _happenings(whole, parts, z, known)
    nodes = _nodes(whole, parts, z, known, happenings)
    ranges = _ranges(whole, parts, z, nodes)
    if len(ranges) < len(whole.model.states) or not parts.later:
        return known
    extra = {names.times[i]: one.time for i, one in happenings.items()}
    extra |= {names.nodes[key]: value for key, value in nodes.items() if key in names.nodes}
    start = _with_firsts(whole, parts, start, nodes)
    for error in ERRORS:
        chain = _chain(whole, parts, names, happenings, {state: error * size for state, size in ranges.items()}, error)
        if chain is None or budget.over:
            break
        if np.isnan(start).any():
            begin = _drawn(chain, start, extra, frame, levels, budget, seed)
        else:
            begin = chain.entries(start, extra)
        found = chain.refined(begin, levels, budget, EVALUATIONS)
        if not math.isfinite(found.cost):
            break
        start, told = chain.told(found.z)
        extra |= told
    return np.where(np.isnan(start), known, start)


def _with_firsts(
    whole: Problem, parts: Pieces, start: np.ndarray, nodes: Mapping[tuple[int, str], float]
) -> np.ndarray:
    """A start with the nodes of the first stretches, which are initial states of the whole."""
    found = start.copy()
    for (i, state), value in nodes.items():
        place = whole.layout.places[parts.owners[i]].get(state)
        if i not in parts.later and place is not None and math.isnan(found[place]):
            found[place] = value
    return found


def _drawn(
    chain: _Chain,
    start: np.ndarray,
    extra: Mapping[str, float],
    frame: Coordinates,
    levels: np.ndarray,
    budget: Budget,
    seed: int,
) -> np.ndarray:
    """A start for the chain, with the best that was drawn for what stretches do not tell."""
    whole = chain.whole
    drawn = np.concatenate(list(batches(frame, whole.sizes, np.arange(len(start)), DRAWN, np.random.default_rng(seed))))
    starts = [chain.entries(np.where(np.isnan(start), one, start), extra) for one in drawn]
    scores = [chain.problem.misfit.score(one, chain.levels(levels), budget.deadline) for one in starts]
    ends = [
        chain.refined(starts[i], levels, budget, FOLLOWED_EVALUATIONS)
        for i in np.argsort(scores, kind="stable")[:FOLLOWED]
        if math.isfinite(scores[i])
    ]
    return min(ends, key=lambda end: end.cost).z if ends else starts[0]


def _ranges(whole: Problem, parts: Pieces, z: np.ndarray, nodes: Mapping[tuple[int, str], float]) -> dict[str, float]:
    """How far each state moves, by its values where stretches begin and end."""
    found: dict[str, list[float]] = {}
    for (_, state), value in nodes.items():
        found.setdefault(state, []).append(value)
    for i in range(len(parts.owners)):
        for states in ends(parts.problem, i, z) or ():
            for name, value in states.items():
                found.setdefault(name, []).append(value)
    return {name: float(np.ptp(values)) or max(abs(values[0]), 1.0) for name, values in found.items()}


# --- what happens between stretches ---


@dataclass(frozen=True, eq=False)
class _Happening:
    """An event between two stretches whose time nobody knows."""

    event: Event
    lacking: Expression  # what its condition compares, as a difference
    size: float  # how far that moves
    span: tuple[float, float]  # when it may happen
    time: float  # when it happens by the fit of the stretch before
    states: Mapping[str, float]  # which are these then


def _happenings(whole: Problem, parts: Pieces, z: np.ndarray, start: np.ndarray) -> dict[int, _Happening]:
    """What happens after each stretch that another follows; nothing where some condition compares no two numbers."""
    found = {}
    for i in (later - 1 for later in parts.later):
        owner = parts.owners[i]
        span = parts.problem.experiments[i].end, parts.problem.experiments[i + 1].start
        own = whole.conditions[owner].model
        after = float(np.nextafter(span[1], math.inf))
        if any(known_times(event, span[0], after) for event in own.events if event.when is None):
            continue  # it happens by the clock
        jump, known = jump_between(parts.problem, i, i + 1, z), _values(whole, owner, start)
        event = None if jump is None else likeliest(own.events, jump, known)
        if event is None or not isinstance(event.when, Comparison):
            return {}
        found[i] = _happening(event, parts.problem, i, z, known, span)
    return found


def _happening(
    event: Event, problem: Problem, i: int, z: np.ndarray, known: Mapping[str, float], span: tuple[float, float]
) -> _Happening:
    """An event when its condition is nearest to coming true; half-way, if stretches do not tell when that is."""
    assert isinstance(event.when, Comparison)
    lacking = difference(event.when.left, event.when.right)
    span = span[0] + EDGE * (span[1] - span[0]), span[1] - EDGE * (span[1] - span[0])
    times = (problem.experiments[i].start, *np.linspace(*span, GRID).tolist())
    courses = ((time, states_at(problem, i, z, [time])) for time in times)
    seen = [(time, states[0]) for time, states in courses if states is not None]
    untold = {name: 0.0 for name in names_in(lacking) if name not in known and name not in problem.model.states}
    values = [_value(lacking, {**untold, **known, **states, "t": time}) for time, states in seen]
    size = float(np.ptp([value for value in values if math.isfinite(value)] or [0.0])) or 1.0
    after = [(abs(value), *one) for value, one in zip(values, seen, strict=True) if one[0] >= span[0]]
    if untold:
        after = [(abs(time - 0.5 * sum(span)), time, states) for _, time, states in after]
    _, time, then = min(after, key=lambda one: one[0], default=(0.0, 0.5 * sum(span), {}))
    return _Happening(event, lacking, size, span, time, then)


def _values(whole: Problem, owner: int, z: np.ndarray) -> dict[str, float]:
    """Parameters of an experiment by name, known and unknown."""
    own = whole.conditions[owner].model
    known = {name: float(value) for name, value in own.fixed.items()}
    return known | whole.values_in(owner, z)[0]


def _value(expression: Expression, values: Mapping[str, float]) -> float:
    try:
        return float(evaluate(expression, values, math))
    except (ArithmeticError, ValueError, KeyError):
        return math.nan


def _nodes(
    whole: Problem, parts: Pieces, z: np.ndarray, start: np.ndarray, happenings: Mapping[int, _Happening]
) -> dict[tuple[int, str], float]:
    """States where stretches begin, by the fit of stretches.

    A state that acts through events alone is what makes a condition true when it comes true.
    """
    found: dict[tuple[int, str], float] = {}
    for i, owner in enumerate(parts.owners):
        found |= {(i, state): value for state, value in parts.problem.values_in(i, z)[1].items()}
        one = happenings.get(i, happenings.get(i - 1))
        for state in whole.model.states:
            if state not in parts.problem.model.states and one is not None:
                known = {**_values(whole, owner, start), **one.states, "t": one.time}
                value = solved(one.lacking, state, 0.0, known)
                found |= {} if value is None else {(i, state): value}
    return found


# --- a chain of stretches ---


@dataclass(frozen=True, eq=False)
class _Names:
    """What the states, parameters and outputs of a chain are called that the model does not have."""

    nodes: Mapping[tuple[int, str], str]  # stretch and state -> the parameter that is the state where it begins
    times: Mapping[int, str]  # stretch -> the parameter that is when the event after it happens
    ahead: Mapping[str, str]  # state -> the parameter that is the state where the next stretch begins
    ties: Mapping[str, str]  # state -> the output that is what it lacks
    own: Mapping[tuple[int, str], str]  # experiment and local parameter -> the parameter that it is there
    lacking: str  # the state that keeps what a condition lacked when its event happened
    truth: str  # the output that shows it

    @classmethod
    def of(cls, whole: Problem, parts: Pieces) -> _Names:
        model = whole.model
        taken = {*model.states, *model.parameters, *model.fixed, *model.outputs, *model.inputs, *whole.unknowns}
        places = whole.layout.places if len(whole.conditions) > 1 else ()
        local = [(e, name) for e, mine in enumerate(places) for name in whole.local if name in mine]
        return cls(
            {(i, state): fresh(f"{state}_at_{i}", taken) for i in parts.later for state in model.states},
            {i - 1: fresh(f"time_{i}", taken) for i in parts.later},
            {state: fresh(f"{state}_ahead", taken) for state in model.states},
            {state: fresh(f"{state}_tie", taken) for state in model.states},
            {(e, name): fresh(f"{name}_of_{e}", taken) for e, name in local},
            fresh("lacking", taken),
            fresh("truth", taken),
        )


@dataclass(frozen=True, eq=False)
class _Chain:
    """A problem whose experiments are stretches with their events, each tied to the next."""

    whole: Problem
    problem: Problem
    owners: tuple[int, ...]
    names: _Names
    spans: Mapping[str, tuple[float, float]]  # of the times of events

    def levels(self, levels: np.ndarray) -> np.ndarray:
        """Levels of the noise of all outputs: those of ties are known."""
        return np.concatenate([levels, np.ones(len(self.problem.misfit.outputs) - len(levels))])

    def refined(self, begin: np.ndarray, levels: np.ndarray, budget: Budget, evaluations: int) -> Refined:
        return refine(
            self.problem.misfit,
            begin,
            levels=self.levels(levels),
            time_limit=budget.seconds,
            max_evaluations=evaluations,
            frame=self.problem.frame(begin),
        )

    def entries(self, z: np.ndarray, extra: Mapping[str, float]) -> np.ndarray:
        """The unknowns of the chain from those of the whole and from what the chain has beside them."""
        told = []
        for owner in self.owners:
            own = {name: float(z[place]) for name, place in self.whole.layout.places[owner].items()}
            own |= {new: own[name] for (e, name), new in self.names.own.items() if e == owner}
            told.append({**own, **extra})
        found = self.problem.layout.scatter(told)
        return np.where(np.isnan(found), self.problem.sizes, found)

    def told(self, z: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
        """The unknowns of the whole, and what the chain has beside them."""
        layout = self.problem.layout
        table = {name: float(z[i]) for places in layout.places for name, i in places.items()}
        told = []
        for owner in range(len(self.whole.conditions)):
            first = layout.places[self.owners.index(owner)] if owner in self.owners else {}
            own = {name: float(z[i]) for name, i in first.items()}
            own |= {name: table[new] for (e, name), new in self.names.own.items() if e == owner and new in table}
            told.append({**table, **own})
        found = self.whole.layout.scatter(told)
        extra = (*self.names.nodes.values(), *self.names.times.values())
        return np.where(np.isnan(found), self.whole.sizes, found), {
            name: table[name] for name in extra if name in table
        }

    @property
    def bounds(self) -> dict[str, tuple[float, float]] | None:
        """Those of the whole, as far as its unknowns are unknowns here."""
        pairs, found = list(self.whole.bounds.values()), dict(self.spans)
        for i, owner in enumerate(self.owners):
            back = {new: name for (e, name), new in self.names.own.items() if e == owner}
            for name, entry in self.problem.layout.places[i].items():
                place = self.whole.layout.places[owner].get(back.get(name, name))
                if place is not None and np.isfinite(pairs[place]).any():
                    found[self.problem.unknowns[entry]] = pairs[place]
        return found or None


def _chain(
    whole: Problem,
    parts: Pieces,
    names: _Names,
    happenings: Mapping[int, _Happening],
    errors: Mapping[str, float],
    relative: float,
) -> _Chain | None:
    """The stretches tied by measurements of zero with these errors; None where they make no problem."""
    model = whole.model
    ties = {
        names.ties[state]: _ratio(difference(Symbol(state), Symbol(names.ahead[state])), error)
        for state, error in errors.items()
    }
    ties |= {names.truth: _ratio(Symbol(names.lacking), relative)} if happenings else {}
    noise = {name: whole.noise.get(name) if isinstance(whole.noise, Mapping) else whole.noise for name in whole.noises}
    try:
        bare = _without_events(model, names, ties, bool(happenings))
        posed = Problem(
            bare,
            Data.of(_links(whole, parts, names, happenings, bare)),
            noise={**{name: one for name, one in noise.items() if one is not None}, **dict.fromkeys(ties, 1.0)},
            weights=whole.weights,
        )
    except (DataError, ModelError):
        return None
    chain = _Chain(whole, posed, parts.owners, names, {names.times[i]: one.span for i, one in happenings.items()})
    return replace(chain, problem=posed.bounded(chain.bounds))


def _ratio(value: Expression, error: float) -> Expression:
    return Product(((1, value), (-1, number(error))))


def _without_events(model: Model, names: _Names, ties: Mapping[str, Expression], is_free: bool) -> Model:
    """The model with ties for outputs; what happens is a matter of each stretch."""
    return rewritten(
        model,
        states={**model.states, **({names.lacking: ZERO} if is_free else {})},
        outputs={**model.outputs, **ties},
        initial={},
        before={},
        events=(),
        ordered=False,
    )


def _links(
    whole: Problem, parts: Pieces, names: _Names, happenings: Mapping[int, _Happening], bare: Model
) -> list[Experiment]:
    """The stretches as experiments that begin at their nodes and end where the next one begins."""
    found, states = [], list(whole.model.states)
    for i, (part, owner) in enumerate(zip(parts.problem.experiments, parts.owners, strict=True)):
        own, goes_on = whole.experiments[owner], i + 1 in parts.later
        after = float(np.nextafter(part.end, math.inf))
        end = parts.problem.experiments[i + 1].start if goes_on else after
        # While the time of an event is free, a measurement beside it may belong to either side.
        last = after if happenings else end
        series = {name: between(one.finite, part.start, last) for name, one in own.outputs.items()}
        series = {name: one for name, one in series.items() if len(one)}
        known = {name: number(value) for name, value in whole.conditions[owner].model.fixed.items()}
        values = known | {**own.values, **{name: Symbol(new) for (e, name), new in names.own.items() if e == owner}}
        initial = {**whole.model.initial, **own.initial}
        if i in parts.later:
            initial = {state: Symbol(names.nodes[i, state]) for state in states}
        if goes_on:
            values |= {names.ahead[state]: Symbol(names.nodes[i + 1, state]) for state in states}
            series |= {names.ties[state]: Series(np.array([end]), np.zeros(1)) for state in states}
        else:
            values |= {new: number(0.0) for new in names.ahead.values()}
        if happenings:
            initial = {**initial, names.lacking: number(0.0)}
            series |= {names.truth: Series(np.array([end]), np.zeros(1))} if i in happenings else {}
        events = tuple(_events(whole.conditions[owner].model.events, part.start, end, names, i, happenings))
        used = {*bare.parameters, *bare.fixed, *(n for e in events for one in e.expressions() for n in names_in(one))}
        values = {name: value for name, value in values.items() if name in used}
        link = replace(own, name=part.name, outputs=series, start=part.start, initial=initial, values=values)
        found.append(replace(link, events=events, doses=()))
    return found


def _events(
    events: Sequence[Event], start: float, end: float, names: _Names, i: int, happenings: Mapping[int, _Happening]
) -> Iterator[Event]:
    """What happens from a node to the next: by the clock, and what nobody knows the time of."""
    for event in events:
        if event.when is None:
            if times := known_times(event, start, end):
                yield Event(at=times, set=dict(event.set), seen=event.seen)
        elif not happenings:
            yield event
    if (one := happenings.get(i)) is not None:
        kept = f"({one.lacking})/{one.size!r}"
        yield Event(at=names.times[i], set={**one.event.set, names.lacking: kept}, seen=one.event.seen)
