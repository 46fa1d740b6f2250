"""Selection: least orders, exact root counts, full rank, determinism."""

import functools

import numpy as np
import pytest

from odejet import Model
from odejet.algebra.select import PredictedErrors, select
from odejet.algebra.system import SquareSystem
from odejet.identify import msolve
from problems import explicit, systems

ROOTS = {
    "fitzhugh_nagumo": 2,
    "lotka_volterra": 2,
    "repressilator": 2,
    "hiv": 4,
    "sirt_treatment": 4,
    "crauste": 6,
    "cstr": 8,
}
needs_msolve = pytest.mark.skipif(msolve.executable() is None, reason="msolve is not installed")


@functools.cache
def chosen(name: str, points: int = 1) -> SquareSystem:
    return select(systems.load(name).model, points)


@needs_msolve
@pytest.mark.parametrize("name", systems.names())
def test_orders_of_the_paper_and_known_root_counts(name):
    system = chosen(name)
    assert system.highest == explicit.PAPER[name][0]
    assert system.roots == ROOTS.get(name, 1)
    assert len(set(system.rows)) == len(system.unknowns)


@pytest.mark.parametrize("name", ["latent_subpopulation", "receptor_binding", "seir"])
def test_the_jacobian_is_regular(name):
    system = chosen(name)
    rng = np.random.default_rng(0)
    z = rng.uniform(0.5, 1.5, (1, len(system.unknowns)))
    inputs = np.zeros((1, system.joined.inputs, system.highest + 1))
    _, jacobian = system.evaluate(z, inputs, np.ones(len(system.fixed)))
    assert np.linalg.matrix_rank(jacobian[0], tol=1e-12 * np.linalg.norm(jacobian[0])) == len(system.unknowns)


def test_two_points_lower_the_order_of_lotka_volterra():
    assert chosen("lotka_volterra").highest == 4
    pair = chosen("lotka_volterra", 2)
    assert pair.highest == 3
    assert len(pair.rows) == len(pair.unknowns) == 7


def test_rows_with_a_smaller_error_are_preferred_to_greedy_ones():
    """Of two outputs with the same state, the one that barely shows the parameter is listed first."""
    model = Model(states={"x": "k*x"}, outputs={"y1": "x", "y2": "1 + x/1000", "y3": "x"})
    system = select(model)
    assert system.highest == 1 and system.roots == 1
    errors = PredictedErrors(system.joined, seed=0)
    assert np.isfinite(errors.predicted(system))
    dull = SquareSystem(system.joined, ((1, 0), (1, 1)))
    assert errors.predicted(system) < 0.1 * errors.predicted(dull)


def test_what_cannot_be_known_is_fixed():
    system = select(Model(states={"x": "-a*b*x"}, outputs={"y": "x"}))
    assert system.fixed == ("b",)
    assert system.unknowns == ("x", "a") and system.roots == 1


def test_known_initial_states_do_not_help_at_a_shooting_time():
    model = Model(states={"x": "-k*x"}, outputs={"y": "c*x"}, initial={"x": 1})
    assert len(select(model).fixed) == 1


def test_the_same_model_gives_the_same_rows():
    model = systems.load("receptor_binding").model
    assert select(model, seed=3).rows == select(model, seed=3).rows
