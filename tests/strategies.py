"""Random expressions and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
from hypothesis import strategies as st

from odejet.errors import ModelError
from odejet.model import Model, expressions
from odejet.model.expressions import Expression
from odejet.model.grammar import parse


def numbers() -> st.SearchStrategy[str]:
    """Decimal numbers as they are written."""
    decimals = st.decimals(0, 1000, places=3, allow_nan=False).map(str)
    scientific = st.builds("{}e{}".format, st.integers(1, 99), st.integers(-20, 20))
    return st.one_of(st.integers(0, 30).map(str), decimals, scientific)


def texts(names: Sequence[str], functions: Sequence[str] = (), leaves: int = 12) -> st.SearchStrategy[str]:
    """Expressions in the names as text; without functions they are rational."""

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        operations = [
            st.builds("{} {} {}".format, inner, st.sampled_from("+-*/"), inner),
            st.builds("({}){}({})".format, inner, st.sampled_from("+-*/"), inner),
            st.builds("{}{}".format, st.sampled_from(["-", "+", "--", "- "]), inner),
            st.builds("({})**{}".format, inner, st.sampled_from(["2", "3", "-1", "-2"])),
        ]
        if functions:
            operations.append(st.builds("{}({})".format, st.sampled_from(functions), inner))
        return st.one_of(operations)

    return st.recursive(st.one_of(st.sampled_from(names), numbers()), extend, max_leaves=leaves)


def is_expression(text: str) -> bool:
    """Whether the text obeys the limits: random constants may divide by zero or overflow."""
    try:
        parse(text)
    except ModelError:
        return False
    return True


def evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    """The value of an expression in mpmath's numbers."""
    return expressions.evaluate(
        expression, values, mpmath, lambda exact: mpmath.mpf(exact.numerator) / exact.denominator
    )


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Random rational models with everything a model may have."""
    states = draw(st.lists(st.sampled_from(["x", "y", "z", "r_1", "µ", "β"]), min_size=1, max_size=4, unique=True))
    letters = [*states, "k1", "k2", "alpha", "u", "t"]
    good = texts(letters, leaves=8).filter(is_expression)
    rhs = {state: draw(good) for state in states}
    outputs = {f"out{i}": draw(good) for i in range(draw(st.integers(0, 2)))}
    inputs = {"u": draw(texts(["t"], ["sin", "exp"], leaves=4).filter(is_expression))}
    initial = {
        state: draw(st.one_of(st.floats(-1e9, 1e9).filter(_representable), texts(["k1", "c"], leaves=3)))
        for state in states
        if draw(st.booleans())
    }
    initial = {state: value for state, value in initial.items() if not isinstance(value, str) or is_expression(value)}
    name = draw(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=20))
    name = name if name.strip() and name.isprintable() else "model"
    model = Model(rhs, outputs, inputs, initial=initial, name=name)
    if model.parameters and draw(st.booleans()):
        model = model.replace(parameters=draw(st.permutations(model.parameters)))
    bounds = {key: draw(_intervals()) for key in (*model.states, *model.parameters) if draw(st.booleans())}
    model = model.replace(bounds=bounds)
    fixed = {key: draw(st.fractions(-100, 100, max_denominator=99)) for key in model.parameters if draw(st.booleans())}
    return model.replace(fixed=fixed, bounds={key: value for key, value in bounds.items() if key not in fixed})


def _representable(value: float) -> bool:
    return value == 0 or abs(value) > 1e-290


def _intervals() -> st.SearchStrategy[tuple[float, float]]:
    ends = st.lists(st.floats(allow_nan=False), min_size=2, max_size=2, unique=True)
    return ends.map(sorted).map(tuple)  # type: ignore[arg-type]
