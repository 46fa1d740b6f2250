"""Cumulated: a model whose outputs are over windows, as simulations and as exact arithmetic take it.

A simulation follows what is cumulated, of which a measurement is the difference at two times; integrals are states of
their own, after all others, that begin at zero.  Whoever asks what can be known sees rates for outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from odejet.errors import ModelError
from odejet.model.expressions import TIME, ZERO, Expression, Product, Sum, Symbol, fresh
from odejet.model.folding import folded
from odejet.model.model import Model
from odejet.model.transform import rewritten
from odejet.model.windows import Output, rate, read, windows


def has_windows(model: Model) -> bool:
    """Whether some output tells what happened since its last measurement."""
    return any(True for value in model.outputs.values() for _ in windows(value))


def refuse_windows(model: Model, where: str) -> None:
    """Refuse a model with such outputs, where only outputs at single times have a place."""
    for name, value in model.outputs.items():
        for window in windows(value):
            raise ModelError(
                f"{where} has no word for {window}, what happened since the last measurement, as the output '{name}' "
                "has it; leave this output out, or measure a state"
            )


def of_rates(model: Model) -> Model:
    """Return the model with the rates of its windows for outputs; itself where it has none."""
    if not has_windows(model):
        return model
    outputs = dict(model.outputs)
    for name, value in model.outputs.items():
        if any(True for _ in windows(value)):
            outputs[name] = _rate(read(value, _moving(model)), model)
    return rewritten(model, outputs=outputs, bounds=model.bounds)


def _moving(model: Model) -> set[str]:
    return {TIME, *model.states, *model.inputs}


def _rate(output: Output, model: Model) -> Expression:
    terms = [part.times(rate(part.window, model.states)) for part in output.parts]
    return folded(Sum((*terms, *output.added)))


@dataclass(frozen=True, eq=False)
class Cumulated:
    """A model whose outputs are cumulated where they are over windows, which of them are, and which are means."""

    model: Model
    outputs: Mapping[str, bool]
    shown: int  # states that were there before


def cumulated(model: Model) -> Cumulated:
    """Return the model with what its windows cumulate for outputs; states of integrals follow all others."""
    if not has_windows(model):
        return Cumulated(model, {}, len(model.states))
    taken = {*_moving(model), *model.outputs, *model.parameters, *model.fixed}
    states, initial, outputs = dict(model.states), dict(model.initial), dict(model.outputs)
    made: dict[Expression, str] = {}
    found: dict[str, bool] = {}
    for name, value in model.outputs.items():
        if not any(True for _ in windows(value)):
            continue
        output = read(value, _moving(model))
        terms: list[tuple[int, Expression]] = []
        for part in output.parts:
            if part.window.name == "increment":
                terms.append(part.times(part.window.argument))
                continue
            argument = part.window.argument
            if argument not in made:
                made[argument] = fresh(f"integral_{name}", taken)
                states[made[argument]], initial[made[argument]] = argument, ZERO
            terms.append(part.times(Symbol(made[argument])))
        # Of what stays as it is the mean is itself: its integral over the time is by so much steeper.
        terms += [(sign, Product(((1, Symbol(TIME)), (1, term)))) for sign, term in output.added]
        outputs[name] = folded(Sum(tuple(terms)))
        found[name] = output.is_mean
    if made and model.steady:
        raise ModelError(
            'integrals and means begin at zero, and initial = "steady" asks for a start at rest of all states; '
            "give the initial values instead"
        )
    start: dict[str, Any] = {} if model.steady else {"initial": initial}
    return Cumulated(rewritten(model, states=states, outputs=outputs, **start), found, len(model.states))
