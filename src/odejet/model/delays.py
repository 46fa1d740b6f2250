"""Delays: values of the past in equations, checked and brought to one form.

`delay(a, tau)` is what the expression `a` was a time tau before, and so is every name in it: a state is looked up in
the past of the solution, a sampled input in its samples, and a function of time is the same function of t - tau.
Delays add up where one stands in another.  Before the start a state is what its history says, an expression of t, or
stands still at its initial value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from odejet.errors import ModelError, clipped, nearest
from odejet.model.expressions import (
    TIME,
    Condition,
    Delay,
    Expression,
    Sum,
    Symbol,
    children,
    constant,
    delays,
    names,
    number,
    substituted,
    switches,
)
from odejet.model.wellformed import rebuilt

if TYPE_CHECKING:
    from odejet.model import Model

_ALLOWED = "a delay is a number, a parameter or an expression of these"


def check(
    tables: Mapping[str, Mapping[str, Expression]],
    states: Iterable[str],
    inputs: Iterable[str],
    fixed: Mapping[str, Any],
) -> None:
    """Refuse delays by what changes in time, negative ones, and histories that nothing looks back at."""
    kinds = {**dict.fromkeys(states, "state"), **dict.fromkeys(inputs, "input")}
    looked: set[str] = set()
    for table in ("states", "outputs"):
        for name, expression in tables[table].items():
            for delay in delays(expression):
                looked.update(names(delay.argument))
                _check_one(delay, f"[{table}] {name}", kinds, fixed)
    for name, value in tables["history"].items():
        where = f"[history] {name}"
        if name not in tables["states"]:
            raise ModelError(f"{where}: this is not a state{nearest(name, tables['states'])}")
        if name not in looked:
            raise ModelError(f"{where}: no equation looks back at this state by delay({name}, ...); remove it")
        if switches(value):
            raise ModelError(f"{where}: a history has no branches; give an expression without {_branching(value)}")


def _branching(expression: Expression | Condition) -> str:
    """The switch in an expression, as text."""
    parts: list[Expression | Condition] = [expression]
    while not (inner := [part for part in parts if hasattr(part, "conditions") or hasattr(part, "arguments")]):
        parts = [child for part in parts for child in children(part)]
    return clipped(str(inner[0]))


def _check_one(delay: Delay, where: str, kinds: Mapping[str, str], fixed: Mapping[str, Any]) -> None:
    shown = clipped(str(delay.by))
    for name in names(delay.by):
        if name == TIME:
            raise ModelError(
                f"{where}: the delay {shown} changes in time and may vanish, which is not solved; {_ALLOWED}"
            )
        if name in kinds:
            raise ModelError(
                f"{where}: the delay {shown} depends on the {kinds[name]} '{name}', which is not solved; {_ALLOWED}"
            )
    if next(delays(delay.by), None) is not None or switches(delay.by):
        raise ModelError(f"{where}: the delay {shown} is too involved; {_ALLOWED}")
    exact = constant(substituted(delay.by, {name: number(value) for name, value in fixed.items()}))
    if exact is not None and exact < 0:
        raise ModelError(
            f"{where}: the delay {shown} is negative, and nobody knows the future; write it with the other sign"
        )


def first_values(
    history: Mapping[str, Expression], initial: Mapping[str, Expression], start: float | None
) -> tuple[dict[str, Expression], float | None]:
    """Return initial values, and the time at which they hold, of states that begin where their history ends."""
    if start is None and any(TIME in names(value) for value in history.values()):
        start = 0.0
    begun = {
        name: substituted(value, {TIME: number(start or 0.0)}) for name, value in history.items() if name not in initial
    }
    return {**initial, **begun}, start


def before_start(expression: Expression) -> Expression:
    """Return an expression with delays as it is where every state has always been what it is."""

    def past(name: str, by: Expression) -> Expression:
        return Sum(((1, Symbol(TIME)), (-1, by))) if name == TIME else Symbol(name)

    found: Expression = _plain(expression, past)
    return found


def is_delayed(model: Model) -> bool:
    """Whether an equation looks back in time."""
    return any(next(delays(value), None) is not None for table in _tables(model) for value in table.values())


def _tables(model: Model) -> tuple[Mapping[str, Expression], Mapping[str, Expression]]:
    return model.states, model.outputs


def resolved(model: Model) -> Model:
    """Return the model with delays of single states and sampled inputs only; those of functions of time are gone."""
    if not is_delayed(model):
        return model

    def past(name: str, by: Expression) -> Expression:
        if name == TIME:
            return Sum(((1, Symbol(TIME)), (-1, by)))
        if name in model.states:
            return Delay(Symbol(name), by)
        if name in model.inputs:
            value = model.inputs[name]
            return Delay(Symbol(name), by) if value is None else _shifted(value, by, past)
        return Symbol(name)

    return model.replace(
        **{
            table: {name: _plain(value, past) for name, value in getattr(model, table).items()}
            for table in ("states", "outputs")
        }
    )


_Past = Callable[[str, Expression], Expression]


def _plain(expression: Any, past: _Past) -> Any:
    """The expression with its delays moved to single names."""
    if isinstance(expression, Delay):
        by = expression.by
        return _plain(expression.argument, past) if constant(by) == 0 else _shifted(expression.argument, by, past)
    parts = children(expression)
    return rebuilt(expression, tuple(_plain(part, past) for part in parts)) if parts else expression


def _shifted(expression: Any, by: Expression, past: _Past) -> Any:
    """The expression as it was some time before."""
    match expression:
        case Symbol(name):
            return past(name, by)
        case Delay(argument, more):
            return _shifted(argument, by if constant(more) == 0 else Sum(((1, more), (1, by))), past)
    parts = children(expression)
    return rebuilt(expression, tuple(_shifted(part, by, past) for part in parts)) if parts else expression
