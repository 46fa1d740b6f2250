"""Outputs: measurements of an invertible function of something are as good as measurements of the thing itself.

Who measures log(H) knows H; so `log`, `exp`, `sqrt`, `sinh` and `tanh` around an output are taken off before anything
is decided, together with numbers that are added or multiplied.  What is left is often rational, and can be decided.
"""

from __future__ import annotations

from odejet.model import Model
from odejet.model.expressions import Expression, Function, Product, Sum, constant

INVERTIBLE = ("log", "exp", "sqrt", "sinh", "tanh")
"""Functions with one real inverse where they are defined."""


def plain(model: Model) -> Model:
    """The model with outputs that tell the same and are simpler."""
    outputs = {name: inside(expression) for name, expression in model.outputs.items()}
    return model if outputs == dict(model.outputs) else model.replace(outputs=outputs)


def inside(expression: Expression) -> Expression:
    """The argument of an invertible function, numbers around it taken off; else the expression itself."""
    found = bare = expression
    while True:
        match bare:
            case Function(name, argument) if name in INVERTIBLE:
                found = bare = argument
            case Sum(parts) | Product(parts):
                varying = [part for _, part in parts if constant(part) is None]
                if len(varying) != 1 or any(constant(part) == 0 for _, part in parts if isinstance(bare, Product)):
                    return found
                bare = varying[0]
            case _:
                return found
