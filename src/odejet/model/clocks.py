"""Clocks: models whose equations switch at known times only, which leaves states as they are."""

from __future__ import annotations

from odejet.model.expressions import TIME, Choice, Comparison, Condition, Expression, children, names, switches
from odejet.model.model import Model


def switches_by_the_clock(model: Model) -> bool:
    """Return whether all switches are at times that nothing moves, and none is in an output or an event."""
    if model.events or any(map(switches, model.outputs.values())):
        return False
    inputs = [value for value in model.inputs.values() if value is not None]
    fixed = {TIME, *model.fixed}
    return all(_by_the_clock(part, fixed) for part in (*model.states.values(), *inputs, *model.initial.values()))


def _by_the_clock(part: Expression | Condition, fixed: set[str]) -> bool:
    if isinstance(part, Choice) or (isinstance(part, Comparison) and not set(names(part)) <= fixed):
        return False
    return all(_by_the_clock(inner, fixed) for inner in children(part))
