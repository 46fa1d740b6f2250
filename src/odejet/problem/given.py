"""Given: what happens in an experiment and what is put into it, as events of its own model.

What is done to an experiment comes first, then the events of the model, which may be an answer to it, then doses.  A
bolus adds to a state.  Every state that something is infused into has one more term, a rate that is zero but while an
infusion lasts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from odejet.data import Experiment
from odejet.data.doses import Dose, without_forgotten
from odejet.errors import DataError, ModelError, nearest
from odejet.model import Event, Model, entries
from odejet.model.expressions import ZERO, Expression, Sum, Symbol, constant, fresh, names
from odejet.model.regimen import Regimen


@dataclass(frozen=True, eq=False)
class Given:
    """The events of an experiment, the equations with the rates of infusions, and these rates at first."""

    events: tuple[Event, ...]
    states: Mapping[str, Expression]
    rates: Mapping[str, Fraction]
    regimens: tuple[Regimen, ...] = ()


def given_in(model: Model, experiment: Experiment) -> Given:
    """What a model and an experiment say that happens in it."""
    told = model.experiments.get(experiment.name, {}).get(entries.EVENTS_KEY, ())
    events: list[Event] = [*(told if isinstance(told, tuple) else ()), *experiment.events, *model.events]
    states, rates, order = dict(model.states), dict[str, Fraction](), list(model.states)
    regimens: dict[tuple[float, float, bool], tuple[Event, ...]] = {}
    for dose in without_forgotten(experiment.doses):
        state = _state(dose, order)
        target = state if dose.duration is None else _rate(state, model)
        if target != state and target not in rates:
            states[state], rates[target] = Sum(((1, states[state]), (1, Symbol(target)))), Fraction(0)
        own = [event for event in (dose.event(order, target), dose.ending(target)) if event is not None]
        events += own
        if dose.steady:
            key = dose.first, _period(dose), dose.steady == 2
            once = replace(dose, time=ZERO, every=None, count=None)
            told = [event for event in (once.event(order, target), once.ending(target)) if event is not None]
            regimens[key] = (*regimens.get(key, ()), *told)
    if regimens:
        _check_held([*experiment.events, *model.events], states)
    return Given(tuple(events), states, rates, tuple(Regimen(*key[:2], own, key[2]) for key, own in regimens.items()))


def _check_held(events: list[Event], states: Collection[str]) -> None:
    """Refuse parameters that change where doses have always been the same."""
    held = [name for event in events for name in event.set if name not in states]
    if held:
        raise ModelError(f"an event sets '{held[0]}', so that no steady state of doses is known; write the doses out")


def _period(dose: Dose) -> float:
    """The time between the doses of a regimen, which is a number."""
    exact = None if dose.every is None else constant(dose.every)
    assert exact is not None
    return float(exact)


def _state(dose: Dose, states: list[str]) -> str:
    """The state that a dose goes to, which may be given by its number."""
    return states[int(dose.state) - 1] if dose.state.isdecimal() else dose.state


def _rate(state: str, model: Model) -> str:
    """A name for the rate of infusion into a state."""
    taken = {*model.states, *model.inputs, *model.outputs, *model.parameters, *model.fixed}
    return fresh(f"infusion_{state}", taken)


def names_given(experiment: Experiment) -> list[str]:
    """Names in what an experiment alone says that happens."""
    parts = [part for event in experiment.events for part in event.expressions()]
    cells = ((dose.time, dose.amount, dose.duration, dose.every) for dose in experiment.doses)
    parts += [part for row in cells for part in row if part is not None]
    return [name for part in parts for name in names(part)]


def check_given(experiment: Experiment, states: Collection[str]) -> None:
    """Refuse doses to what is no state, and what happens before the experiment begins."""
    where, start = experiment.name, experiment.start
    for dose in experiment.doses:
        row = dose.where or where
        if experiment.steady and dose.every is not None and dose.steady is None and not experiment.before:
            reason = f'initial="steady" is rest without doses, but one is repeated every {dose.every}'
            remedy = "give the doses a column steady: 1 for the steady state that they lead to, 0 for rest before them"
            raise DataError(f"{reason}; {remedy}", row)
        if dose.state.isdecimal() and not 1 <= int(dose.state) <= len(states):
            raise DataError(f"a dose goes to state number {dose.state}, but there are {len(states)}", row)
        if not dose.state.isdecimal() and dose.state not in states:
            reason = f"a dose goes to '{dose.state}', which is no state{nearest(dose.state, states)}"
            raise DataError(reason, f"{row}, column 'state'" if dose.where else row)
        if dose.first < start:
            raise DataError(f"a dose is given at t = {dose.first:g}, before the start at {start:g}", row)
    for event in experiment.events:
        for time in event.at:
            exact = constant(time)
            if exact is not None and exact < start:
                raise DataError(f"{where}: an event happens at t = {float(exact):g}, before the start at {start:g}")
