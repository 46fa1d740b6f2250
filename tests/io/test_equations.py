"""Equations: lines as people write them become the model they mean, and every mistake has its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet import ExpressionError, Model, ModelError
from odejet.io import equations

LINES = """
# prey and predators
r' = k1*r - k2*r*w   # they are eaten
dw/dt = k2*r*w - k3*w

r(0) = 1.5
k3 = 3/10            // known
u (t) = sampled, hold
seen = r + u
"""


def test_lines_are_the_model_they_mean() -> None:
    expected = Model(
        {"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"},
        {"seen": "r + u"},
        inputs={"u": "sampled, hold"},
        initial={"r": 1.5},
        fixed={"k3": "3/10"},
        name="prey",
    )
    assert equations.parse(LINES, "prey") == expected


def test_what_is_written_is_read_again() -> None:
    model = equations.parse(LINES)
    lines = equations.write(model)
    assert lines is not None and equations.parse(lines) == model


def test_a_model_that_is_more_than_equations_has_no_lines() -> None:
    model = Model({"x": "-k*x"}, {"y": "x"})
    assert equations.write(model) == "x' = -k*x\n\ny = x\n"
    for more in ({"bounds": {"k": (0, 1)}}, {"initial": "steady"}, {"noise": {"y": 0.1}}, {"outputs": {"y": 3}}):
        assert equations.write(model.replace(**more)) is None, more


@pytest.mark.parametrize(
    ("text", "where", "position", "reason"),
    [
        ("x' = -k*x\ny = 2*x^2", "[outputs] y", 3, "powers are written"),
        ("x' = -k*x\n  just words", "line 2", 2, "there is no ="),
        ("x' = -k*x\nx'' = 3", "line 2", 0, "cannot stand on the left"),
        ("x' = -k*x\ny =   # nothing", "line 2", 3, "nothing stands to the right"),
        ("x' = -k*x\nx' = 3*x", "line 2", 0, "given twice"),
    ],
)
def test_a_mistake_has_its_place(text: str, where: str, position: int, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        equations.parse(text)
    assert (caught.value.where, caught.value.position) == (where, position)
    assert reason in str(caught.value)


def test_places_of_right_hand_sides() -> None:
    line = equations.read_lines("\n  x'   =  -k*x")[0]
    assert (line.table, line.name, line.value, line.row, line.column) == ("states", "x", "-k*x", 2, 10)


@given(st.text(max_size=80))
def test_any_text_is_a_model_or_a_sentence(text: str) -> None:
    try:
        assert equations.parse(text).states
    except ModelError as error:
        assert str(error)
