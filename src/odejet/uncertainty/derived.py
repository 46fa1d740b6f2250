"""Derived: what one may ask about, an unknown or an expression in the unknowns, with its exact gradient.

Names are those of the model: a parameter, or a state for its initial value; what the model fixes has its number.  The
gradient comes from dual numbers (`model.dual`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odejet.errors import ModelError, clipped
from odejet.model import Model
from odejet.model.dual import differentiated
from odejet.model.expressions import Expression, Function, Number, Power, Product, Sum, Symbol, names, substituted
from odejet.model.grammar import parse
from odejet.problem import Unknown


class Asked(Protocol):
    """A quantity whose likelihood one may ask for: a function of the unknowns z with its gradient."""

    @property
    def label(self) -> str: ...

    @property
    def place(self) -> int | None:
        """The position of the unknown that it is, if it is one."""

    @property
    def unit(self) -> float | None:
        """A size that is neither small nor large for it; None if its own is as good as any."""

    def at(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient; not finite where it has no value."""

    def keeps_sign(self, signs: np.ndarray) -> bool:
        """Whether it cannot change its sign, the unknowns having these (zero: any)."""


@dataclass(frozen=True, eq=False)
class Derived:
    """A function of the unknowns z."""

    label: str
    expression: Expression
    places: Mapping[str, int]  # of the names it may contain among z
    numbers: Mapping[str, float]  # of names whose values are known
    size: int  # of z

    @property
    def place(self) -> int | None:
        """The position of the unknown that it is, if it is one."""
        return self.places.get(self.expression.name) if isinstance(self.expression, Symbol) else None

    @property
    def unit(self) -> None:
        """Its size is that of its value."""

    def at(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient; not finite where the expression has no value."""
        values = {name: float(z[i]) for name, i in self.places.items()}
        found = differentiated(self.expression, {**values, **self.numbers}, self.places, self.size)
        return float(found.value), found.gradient

    def keeps_sign(self, signs: np.ndarray) -> bool:
        """Whether it cannot change its sign: a product of powers of unknowns that do not change theirs."""
        return _keeps_sign(self.expression, {name: signs[i] != 0 for name, i in self.places.items()})


def derived(
    text: str,
    model: Model,
    unknowns: Sequence[Unknown],
    own: Mapping[str, int] | None = None,
    where: str = "",
    named: Mapping[str, Expression] | None = None,
) -> Derived:
    """What a text means: the label of an unknown, or an expression.

    In one experiment, of the name `where`, names are those of its own values, whose places among the unknowns are
    `own`, and the model is its own too; otherwise a name must have one value in all of them.  `named` are expressions
    with names.
    """
    labels = [unknown.label for unknown in unknowns]
    if text in labels:
        return Derived(text, Symbol("it"), {"it": labels.index(text)}, {}, len(labels))
    places: dict[str, int] = dict(own or {})
    several: set[str] = set()
    for i, unknown in enumerate(unknowns if own is None else ()):
        several |= {unknown.name} & set(places)
        places[unknown.name] = i
    numbers = {name: float(value) for name, value in model.fixed.items()}
    named = model.expressions if named is None else named
    refused = {name: why for name, why in _refused(model, unknowns, several).items() if name not in named}
    expression = substituted(parse(text, known=[*places, *numbers, *named], refused=refused), named)
    for name in names(expression):
        if name not in places and name not in numbers:
            why = refused.get(name, f"'{name}' is not known here")
            raise ModelError(
                f"{clipped(text)} stands for {clipped(str(expression))}, and {why}; fit.predict has its course"
            )
    label = unknowns[places[text]].label if text in places else f"{text} in {where}" if where else text
    return Derived(label, expression, places, numbers, len(labels))


def _refused(model: Model, unknowns: Sequence[Unknown], several: set[str]) -> dict[str, str]:
    """Names of the model that have no one value, with what to do instead."""
    refused = {"t": "a quantity does not depend on the time"}
    for name in several:
        own = [unknown for unknown in unknowns if unknown.name == name]
        what = "an initial value" if own[0].is_state else "a value"
        refused[name] = (
            f"'{name}' has {what} of its own in every experiment; name one, such as experiment={own[0].experiment!r}, "
            f"or ask for one of {', '.join(unknown.label for unknown in own[:5])}"
        )
    for table, what in ((model.outputs, "an output"), (model.inputs, "an input")):
        refused |= {name: f"'{name}' is {what}; ask about parameters and initial states" for name in table}
    unknown_names = {unknown.name for unknown in unknowns}
    known = {name for name in model.states if name not in unknown_names}
    return refused | {name: f"the initial value of '{name}' is known" for name in known}


def _keeps_sign(expression: Expression, sure: Mapping[str, bool]) -> bool:
    match expression:
        case Number():
            return True
        case Symbol(name):
            return sure.get(name, True)
        case Product(factors):
            return all(_keeps_sign(factor, sure) for _, factor in factors)
        case Sum(((_, term),)):
            return _keeps_sign(term, sure)
        case Power(base, _):
            return _keeps_sign(base, sure)
        case Function("exp", _):
            return True
        case Function("sqrt", argument):
            return _keeps_sign(argument, sure)
        case _:
            return False
