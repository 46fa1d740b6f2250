"""Excitation: events at known times as what they are to identifiability, inputs that are known.

An event that adds e(x, p) to a state at known times t_1, t_2, ... is the term e u in the rate of that state, where the
pulses u at those times are known.  Like any input they are taken to excite the model enough.  Times that depend on
parameters are known too, since outputs break there; the parameters themselves are not decided.  Events on conditions
depend on the course of the solution and are no input, and there nothing is decided.  Where inputs are generic it does
not matter that their own functions switch; switches elsewhere are left to `switching`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odejet.model import Event, Model
from odejet.model.expressions import Expression, Product, Sum, Symbol, constant, fresh, names, number, switches
from odejet.model.modes import decided

CONDITIONS = "the model has events on conditions, and identifiability is decided for events at known times alone"
RESETS = "an event sets a state to another value, and identifiability is decided for events that add to states alone"


def excited(model: Model, generic: bool = True) -> Model | str:
    """The model with inputs in the place of its events, or the reason why there is none; its inputs may be generic."""
    if model.is_smooth:
        return model
    tables: dict[str, Any] = {
        table: {name: value if value is None else decided(value) for name, value in getattr(model, table).items()}
        for table in ("states", "outputs", "inputs", "initial")
    }
    if generic:
        given = tables["inputs"].items()
        tables["inputs"] = {name: None if value is not None and switches(value) else value for name, value in given}
    for event in model.events:
        if event.when is not None:
            return CONDITIONS
    held = [name for name in dict.fromkeys(n for e in model.events for n in e.set) if name not in model.states]
    known = [name for name in held if name in model.fixed and _are_numbers(name, model.events)]
    added = [(_added(name, event), name) for event in model.events for name in event.set if name not in known]
    if any(term is None for term, _ in added):
        return RESETS
    return _driven(model, tables, held, known, added)


def _driven(
    model: Model,
    tables: dict[str, Any],
    held: list[str],
    known: list[str],
    added: list[tuple[Expression | None, str]],
) -> Model:
    """The equations with a pulse for every term that is added; parameters that events set are states or inputs."""
    moving = [name for name in held if name not in known]
    states: dict[str, list[tuple[int, Expression]]] = {name: [(1, rate)] for name, rate in tables["states"].items()}
    states |= {name: [] for name in moving}
    inputs = {**tables["inputs"], **dict.fromkeys(known)}
    taken = {*states, *model.parameters, *model.fixed, *inputs, *model.outputs}
    for i, (term, name) in enumerate(added):
        pulse = fresh(f"pulse_{i}", taken)
        inputs[pulse] = None
        if term is not None:
            states[name].append((1, Product(((1, term), (1, Symbol(pulse))))))
    initial = tables["initial"] | {name: number(model.fixed[name]) for name in moving if name in model.fixed}
    rates = {name: Sum(tuple(terms)) if terms else number(0) for name, terms in states.items()}
    used = {n for table in (rates, tables["outputs"], initial) for value in table.values() for n in names(value)}
    fixed = {name: value for name, value in model.fixed.items() if name in used and name not in held}
    return Model(rates, tables["outputs"], inputs, initial=initial, fixed=fixed, name=model.name)


def _are_numbers(name: str, events: Sequence[Event]) -> bool:
    return all(constant(event.set[name]) is not None for event in events if name in event.set)


def _added(name: str, event: Event) -> Expression | None:
    """What an event adds to a quantity, or None if it does something else."""
    value = event.set[name]
    if value == Symbol(name):
        return number(0)
    if not isinstance(value, Sum) or (1, Symbol(name)) not in value.terms:
        return None
    at = value.terms.index((1, Symbol(name)))
    rest = Sum((*value.terms[:at], *value.terms[at + 1 :]))
    return None if switches(rest) or any(other in event.set for other in names(rest)) else rest
