"""Angles: unknowns that a model sees by their sines and cosines alone are known but for whole turns.

If a model holds an unknown a only as sin(a) and cos(a), then a and a + 2 pi give the same outputs, and nothing that is
identifiable tells them apart.  If sin(a) and cos(a) have one value each, a has no others than these.
"""

from __future__ import annotations

from collections.abc import Mapping

from odejet.identify.verdict import Quantity
from odejet.model import Model
from odejet.model.expressions import Condition, Expression, Function, Symbol, children, names

TURNS = "it is an angle, known but for whole turns"


def pairs(model: Model) -> dict[str, tuple[str, str]]:
    """The unknowns that are angles, and their sines and cosines."""
    expressions = [*model.states.values(), *model.outputs.values(), *model.initial.values()]
    inside = {name for expression in expressions for name in names(expression)}
    plain = {name for expression in expressions for name in _plain(expression)}
    return {name: (f"sin({name})", f"cos({name})") for name in model.unknowns if name in inside - plain}


def _plain(expression: Expression | Condition) -> set[str]:
    """The names that stand anywhere but alone in a sine or cosine."""
    match expression:
        case Symbol(name):
            return {name}
        case Function("sin" | "cos", Symbol()):
            return set()
    return {name for part in children(expression) for name in _plain(part)}


def known(model: Model, quantities: Mapping[str, Quantity], values: Mapping[str, int]) -> dict[str, Quantity]:
    """Angles of which nothing is known but that sine and cosine have one value, decided, and these as combinations."""
    found: dict[str, Quantity] = {}
    for name, pair in pairs(model).items():
        own = quantities[name]
        if own.kind == "undecided" and all(values.get(text) == 1 for text in pair):
            found[name] = Quantity(name, own.role, "local", None, TURNS)
            found |= {text: Quantity(text, "combination", "global", 1) for text in pair if text not in quantities}
    return found
