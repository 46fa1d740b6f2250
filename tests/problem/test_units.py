"""Units: what may be added, as the equations tell."""

from __future__ import annotations

import numpy as np
import pytest

from odejet import Data, Model
from odejet.problem import Problem
from odejet.problem.units import units

TIMES = np.linspace(0, 1, 5)
ABSORPTION = {"gut": "-ka*gut", "amount": "ka*gut - ke*amount"}


def alike(states, outputs, **more):
    """Groups of unknowns of one unit, by name."""
    data = Data(TIMES, {name: np.ones(5) for name in outputs})
    problem = Problem(Model(states, outputs, **more), data)
    found: dict[int, set[str]] = {}
    for unknown, unit in zip(problem.layout, units(problem.conditions, problem.layout), strict=True):
        found.setdefault(unit, set()).add(unknown.name)
    return {frozenset(group) for group in found.values()}


def groups(*names):
    return {frozenset(group.split()) for group in names}


@pytest.mark.parametrize(
    ("states", "outputs", "expected"),
    [
        (ABSORPTION, {"conc": "amount/V"}, groups("gut amount", "ka ke", "V")),
        ({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y": "r"}, groups("r w", "k1 k3", "k2")),
        ({"x": "-Vmax*x/(Km + x)"}, {"y": "x"}, groups("x Km", "Vmax")),
        ({"x": "a*exp(-b*t) - c*x"}, {"y": "x"}, groups("x", "a", "b c")),
        ({"x": "-0.3*k*x"}, {"y": "x + m"}, groups("x m", "k")),
        ({"x": "k*(1 - (x/K)**n)"}, {"y": "x"}, groups("x K", "k", "n")),
    ],
)
def test_what_equations_say_of_units(states, outputs, expected):
    assert alike(states, outputs) == expected


def test_a_unit_of_the_time_makes_no_difference():
    """Equations in which every quantity was multiplied by a number of its own say the same."""
    scaled = {"r": "k1*r - 2*k2*r*w", "w": "3*k2*r*w - k3*w"}
    assert alike(scaled, {"y": "5*r"}) == groups("r w", "k1 k3", "k2")
