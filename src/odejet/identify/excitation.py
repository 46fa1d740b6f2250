"""Excitation: events as known inputs, for between them a model is what it is without them.

Times at which something is added to a state are taken to be known and many: what is added, `x -> x + a(p)`, excites the
model as an input does, `x' = f + a(p) u`.  Other events set the state to another, from where on the model goes on as
before.  What occurs in those alone, or in the times of events, is not decided.
"""

from __future__ import annotations

from collections.abc import Iterator

from odejet.model import Event, Model
from odejet.model.expressions import Expression, Product, Sum, Symbol, names, switches


def excited(model: Model) -> Model:
    """The model without events, with an input for whatever they add."""
    if not model.events:
        return model
    states, inputs = dict(model.states), dict(model.inputs)
    taken = {*model.states, *model.inputs, *model.outputs, *model.parameters, *model.fixed}
    for event in model.events:
        for state, amount in _added(event, model):
            name = f"event_{len(inputs)}"
            while name in taken:
                name += "_"
            taken.add(name)
            inputs[name] = None
            states[state] = Sum(((1, states[state]), (1, Product(((1, amount), (1, Symbol(name)))))))
    tables = (states, model.outputs, model.initial, model.before)
    used = {name for table in tables for value in table.values() for name in names(value)}
    return model.replace(
        states=states,
        inputs=inputs,
        events=(),
        parameters=[name for name in (*model.parameters, *model.fixed) if name in used],
        fixed={name: value for name, value in model.fixed.items() if name in used},
        bounds={},
        experiments={},
        local=(),
        priors={},
    )


def _added(event: Event, model: Model) -> Iterator[tuple[str, Expression]]:
    """What an event adds to states."""
    for name, value in event.set.items():
        match value:
            case Sum(terms) if name in model.states and (1, Symbol(name)) in terms and not switches(value):
                rest = tuple(term for term in terms if term != (1, Symbol(name)))
                involved = {other for _, term in rest for other in names(term)}
                if rest and not involved & {*model.states, *model.inputs, "t"}:
                    yield name, Sum(rest)
