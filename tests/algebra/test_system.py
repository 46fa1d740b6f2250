"""Systems: joined models, targets, and the map Phi with its Jacobian."""

import numpy as np
import pytest

from odejet import Model
from odejet.algebra.system import SquareSystem, Targets, join

LOGISTIC = Model(states={"x": "r*x - x**2"}, outputs={"y": "x"})
"""y = x, y' = r x - x^2: two rows tell x and r."""


def test_the_map_by_hand():
    system = SquareSystem(join(LOGISTIC), ((0, 0), (0, 1)))
    values, jacobian = system.evaluate(np.array([[2.0, 3.0]]), np.zeros((1, 0, 2)), np.zeros(0))
    assert system.unknowns == ("x", "r")
    np.testing.assert_allclose(values, [[2.0, 2.0]])
    np.testing.assert_allclose(jacobian, [[[1.0, 0.0], [-1.0, 2.0]]])


def test_targets_are_taylor_coefficients_of_the_derivatives_given():
    system = SquareSystem(join(LOGISTIC), ((0, 0), (0, 2)))
    targets = system.targets(np.array([[[[1.0, 5.0, 8.0]]]]))
    np.testing.assert_allclose(targets.data, [[1.0, 4.0]])


def test_two_points_share_parameters_only():
    joined = join(Model(states={"x": "r*x*u"}, outputs={"y": "x"}, inputs={"u": "sin(t)"}), 2)
    assert tuple(joined.together.states) == ("x", "x_at_2")
    assert tuple(joined.together.parameters) == ("r",)
    assert joined.split((1, 3)) == (1, (0, 3))


def test_time_in_the_equations_becomes_an_input():
    joined = join(Model(states={"x": "-k*x*t"}, outputs={"y": "x"}), 2)
    assert joined.timed and joined.inputs == 1 and len(joined.together.inputs) == 2


def test_names_at_the_second_point_are_new():
    joined = join(Model(states={"x": "-k*x", "x_at_2": "x"}, outputs={"y": "x_at_2"}), 2)
    assert len(set(joined.together.states)) == 4


def test_known_initial_states_are_free_at_shooting_times():
    joined = join(Model(states={"x": "-k*x"}, outputs={"y": "x"}, initial={"x": 2}))
    assert joined.together.unknowns == ("x", "k")


@pytest.mark.parametrize("wrong, size", [(0.0, 0.0), (0.3, 0.1)])
def test_residuals_are_relative_to_the_largest_term(wrong, size):
    system = SquareSystem(join(LOGISTIC), ((0, 0), (0, 1)))
    roots = np.array([[1.0, 3.0]])
    targets = Targets(np.array([[1.0, 2.0 + wrong]]), np.zeros((1, 0, 2)), np.zeros(0))
    np.testing.assert_allclose(system.residuals(roots, targets), size, atol=1e-12)
