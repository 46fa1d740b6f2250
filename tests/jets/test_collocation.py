"""The linear algebra and the rule of collocation against NumPy, and its trajectories against closed forms."""

import numpy as np
import pytest
from numba import njit

from odejet.jets.lanes import padded, pointer
from odejet.jets.linear import factor, factor_in_order, solve, solve_many, solve_many_complex, systems_of
from odejet.jets.radau import radau
from odejet.model import Model
from odejet.simulate.flow import Flow, Outcome
from odejet.simulate.rest import Rest


@njit
def solved(matrices, pivots, filled, counts, right, one):
    """The solutions of the systems in all lanes for many right-hand sides each, in place, and for one."""
    systems, columns = systems_of(matrices, pivots, filled, counts), right.shape[3]
    regular = factor(systems)
    if regular:
        solve(systems, pointer(one))
        solve_many(systems, pointer(right[0, 0]), columns)
        for q in range(1, len(right)):
            solve_many_complex(systems, q, pointer(right[q, 0]), pointer(right[q, 1]), columns)
    return regular


def lists(size):
    return np.zeros(size, np.int64), np.zeros((size, size), np.int64), np.zeros((size, 2), np.int64)


@pytest.mark.parametrize(("size", "systems"), [(1, 2), (9, 3), (39, 5)])
@pytest.mark.parametrize("density", [1.0, 0.2])
def test_linear_systems_agree_with_numpy(size, systems, density):
    rng = np.random.default_rng(size)
    matrix = rng.standard_normal((size, size)) * np.geomspace(1, 1e8, size) * (rng.random((size, size)) < density)
    rates = np.r_[3.0, rng.standard_normal(systems - 1) + 1j * rng.standard_normal(systems - 1)]
    lanes, columns = padded(systems), 8
    matrices = np.zeros((size, size, 2, lanes))
    matrices[:, :, 0], shifts = matrix[:, :, None], np.r_[rates, np.full(lanes - systems, 3.0)]
    matrices[np.arange(size), np.arange(size)] += np.stack([shifts.real, shifts.imag])
    right = rng.standard_normal((systems, 2, size, columns))
    right[0, 1] = 0
    found, one = right.copy(), np.zeros((size, 2, lanes))
    one[:, :, :systems] = right[:, :, :, 0].transpose(2, 1, 0)
    assert solved(matrices, *lists(size), found, one)
    for q in range(systems):
        whole = matrix + rates[q] * np.eye(size)
        for solution in (found[q, 0] + 1j * found[q, 1], (one[:, 0, q] + 1j * one[:, 1, q])[:, None]):
            asked = (right[q, 0] + 1j * right[q, 1])[:, : solution.shape[1]]
            assert np.all(np.abs(whole @ solution - asked) <= 1e-11 * (np.abs(whole) @ np.abs(solution)))


@njit
def solved_in_order(matrices, pivots, filled, counts, rows, below, one):
    systems = systems_of(matrices, pivots, filled, counts)
    regular = factor_in_order(systems, pointer(rows), pointer(below))
    if regular:
        solve(systems, pointer(one))
    return regular


@pytest.mark.parametrize("weight", [1.0, 1e7])
def test_factors_by_lists_of_entries_agree_with_numpy_while_the_diagonal_serves(weight):
    """An arrow: its last row and column and its diagonal; a last row that is much larger asks for other pivots."""
    size, rng = 7, np.random.default_rng(0)
    matrix = np.diag(rng.uniform(1, 2, size))
    matrix[-1, :-1], matrix[:-1, -1] = weight * rng.uniform(1, 2, size - 1), rng.uniform(1, 2, size - 1)
    pivots, filled, counts = lists(size)
    _, rows, _ = lists(size)
    pivots[:], filled[:-1, 0], filled[-1, :-1] = np.arange(size), size - 1, np.arange(size - 1)
    counts[:-1], counts[-1] = (0, 1), (size - 1, size - 1)
    rows[:-1, 0], below = size - 1, np.r_[np.ones(size - 1, np.int64), 0]
    matrices, one = np.zeros((size, size, 2, 4)), rng.standard_normal((size, 2, 4))
    matrices[:, :, 0], right = matrix[:, :, None], one[:, 0, 0] + 1j * one[:, 1, 0]
    assert solved_in_order(matrices, pivots, filled, counts, rows, below, one) == (weight == 1)
    if weight == 1:
        np.testing.assert_allclose(matrix @ (one[:, 0, 0] + 1j * one[:, 1, 0]), right, rtol=1e-12)


@pytest.mark.parametrize("speed", [1.0, 1e3])
def test_steps_go_on_where_the_diagonal_does_not_serve_for_pivots(speed):
    """A slow state after which two fast ones turn, of which neither rate depends on its own state."""
    model = Model({"x": "-x", "u": "w*v", "v": "-w*(u - x) - 0.5*w*v"}, {"y": "u"})
    times = np.linspace(0, 3, 7)[1:]
    found = Flow(model).run([speed], [1.0, 1.0, 0.0], times, start=0.0, tolerance=1e-10)
    assert found.outcome is Outcome.COMPLETED
    matrix = np.array([[-1.0, 0, 0], [0, 0, speed], [speed, -speed, -0.5 * speed]])
    rates, vectors = np.linalg.eig(matrix)
    parts = np.linalg.solve(vectors, [1.0, 1.0, 0.0])
    exact = (np.exp(np.outer(times, rates)) * parts) @ vectors.T
    np.testing.assert_allclose(found.states[:, :, 0], exact.real, atol=1e-8)


@pytest.mark.parametrize("entry", [1.0, np.inf, np.nan])
def test_what_has_no_solution_is_told(entry):
    matrices = np.full((2, 2, 2, 4), entry)
    assert not solved(matrices, *lists(2), np.ones((2, 2, 2, 4)), np.ones((2, 2, 4)))


@pytest.mark.parametrize("stages", [3, 5, 7, 9])
def test_the_transformation_takes_the_stages_apart(stages):
    """The inverse of A is the sum of its parts, mu times column times row, of the real rate and of all pairs."""
    rule = radau(stages)
    total = rule.real_rate * np.outer(rule.together[:, 0], rule.apart[0])
    for q, (x, y) in enumerate(rule.rates):
        row = rule.apart[2 * q + 1] + 1j * rule.apart[2 * q + 2]
        column = rule.together[:, 2 * q + 1] - 1j * rule.together[:, 2 * q + 2]
        total += ((x + 1j * y) * np.outer(column, row)).real
    np.testing.assert_allclose(total @ rule.matrix, np.eye(stages), atol=1e-11)


@pytest.mark.parametrize("stages", [3, 5, 7, 9])
def test_the_rule_in_lanes_is_the_same(stages):
    rule = radau(stages)
    wide, count = rule.abreast, stages + 1
    rng = np.random.default_rng(stages)
    stage = rng.standard_normal(stages)
    parts = np.einsum("j,jpq->pq", np.r_[0.0, stage], wide.apart)
    rates = wide.rates[0] + 1j * wide.rates[1]
    turned = rates * (parts[0] + 1j * parts[1])
    whole = np.einsum("qpi,pq->i", wide.together, np.array([turned.real, turned.imag])[:, : len(wide.together)])
    np.testing.assert_allclose(whole[1:count], rule.inverse @ stage, rtol=1e-9)
    np.testing.assert_allclose((np.r_[0.0, stage] @ wide.inverse)[1:count], rule.inverse @ stage, rtol=1e-12)
    np.testing.assert_allclose((np.r_[0.0, stage] @ wide.analysis)[:count], rule.analysis[:, 1:] @ stage, rtol=1e-12)
    assert not np.any(wide.together[:, :, count:]) and not np.any(wide.together[:, :, 0])


@pytest.mark.parametrize("stages", [3, 5, 9])
def test_the_rule_integrates_polynomials_of_its_degree_exactly(stages):
    rule = radau(stages)
    powers = np.arange(stages)
    np.testing.assert_allclose(
        rule.matrix @ rule.points[:, None] ** powers, rule.points[:, None] ** (powers + 1) / (powers + 1), atol=1e-14
    )
    # The last row is the quadrature of Radau, exact to degree 2 s - 2.
    for power in range(2 * stages - 1):
        assert rule.matrix[-1] @ rule.points**power == pytest.approx(1 / (power + 1), abs=1e-14)


def test_states_at_rest_drive_stiff_ones_and_pass_on_their_sensitivity():
    """x' = -k (x - z) with z' = 0: x = z + (x0 - z) exp(-k t), and every derivative of it."""
    times = np.linspace(0, 3, 7)[1:]
    found = Flow(Model({"x": "-k*(x - z)", "z": "0"}, {"y": "x*z"})).run([1e5], [2.0, 0.7], times, start=0.0)
    assert found.outcome is Outcome.COMPLETED
    assert "collocation" in found.method
    np.testing.assert_allclose(found.outputs[:, 0, 0], 0.49, rtol=1e-12)
    np.testing.assert_allclose(found.states[:, 0, 1:], [[0, 1, 0]] * 6, atol=1e-12)
    np.testing.assert_allclose(found.outputs[:, 0, 2], 1.4, rtol=1e-12)


def test_series_take_over_again_where_implicit_steps_do_not_pay():
    """A fast oscillation needs short steps of any method: a trial of collocation is given up soon."""
    times = np.linspace(0, 30, 41)
    found = Flow(Model({"p": "w*q", "q": "-w*p"}, {"y": "p"})).run([400.0], [0.0, 1.0], times)
    assert found.outcome is Outcome.COMPLETED
    assert "collocation" in found.method
    assert found.steps > 500
    np.testing.assert_allclose(found.states[:, 0, 0], np.sin(400 * times), atol=1e-9)
    np.testing.assert_allclose(found.states[:, 0, -1], times * np.cos(400 * times), atol=1e-7)


@pytest.mark.parametrize("tiny", [0.0, 1e-20, 1e-48])
def test_states_that_are_zero_do_not_drown_tiny_ones(tiny):
    """As of a drug that was not given: s and c stay zero, e and w are what is left of something, and b is stiff."""
    model = Model(
        {
            "s": "-s",
            "c": "b*s - 3*c",
            "b": "-100000*(b - 1 - u) - b*s + 3*c + u*b",
            "u": "-b*u + 0.01*(1 - u)",
            "e": "c - e",
            "w": "b*s - 3*w",
        },
        {"y": "b"},
        initial={"s": "0", "c": "0", "w": "0"},
    )
    flow, times = Flow(model), np.array([10.0, 50.0])
    run = flow.run([], [0, 0, 2, 0.3, tiny, 0], times, start=0.0, sensitivities=False)
    assert run.outcome is Outcome.COMPLETED and "collocation" in run.method
    b, u = run.states[-1, 2:4, 0]
    # The fast state follows the slow one: b = 1 + u to 1e-5, and u rests where b u = (1 - u)/100.
    assert b == pytest.approx(1 + u, rel=2e-5) and (1 + u) * u == pytest.approx(0.01 * (1 - u), rel=1e-4)
    np.testing.assert_allclose(run.states[:, 4, 0], tiny * np.exp(-times), rtol=1e-6, atol=1e-15 * tiny)
    np.testing.assert_allclose(run.states[:, [0, 1, 5], 0], 0, atol=1e-25)  # what rounding leaves of zeros


@pytest.mark.parametrize("tolerance", [1e-6, 1e-8, 1e-16])
@pytest.mark.parametrize("start", [0.0, 1e-3])
def test_sensitivities_are_followed_where_values_rest(tolerance, start):
    """An oscillator beside a stiff state, at rest or not: u = u0 cos(w t), so that du/du0 oscillates in any case."""
    times = np.linspace(0, 3, 7)
    flow = Flow(Model({"y": "-a*(y - cos(t))", "u": "w*v", "v": "-w*u"}))
    run = flow.run([1e5, 30.0], [1.0, start, 0.0], times, tolerance=tolerance)
    assert run.outcome is Outcome.COMPLETED and "collocation" in run.method
    np.testing.assert_allclose(run.states[:, 1, 0], start * np.cos(30 * times), atol=max(tolerance, 1e-15))
    np.testing.assert_allclose(run.states[:, 1, 2], np.cos(30 * times), atol=max(tolerance, 1e-12))


def test_sensitivities_that_have_died_away_are_not_followed():
    """A stirred tank that is flushed in 1e-5 forgets C(0): to follow what is left takes a step per time constant."""
    heat = "(s - T)/(2*tau) + 0.03*q*r*C - 2*w*T + 0.86*w"
    tank = {"C": "(1 - C)/(2*tau) - 2*r*C", "T": heat, "r": f"12.5*r/T**2*({heat})"}
    times, flow = np.linspace(0, 10, 41), Flow(Model(tank, parameters=["tau", "s", "q", "w"]))
    run = flow.run([1e-5, 0.294, 6.0, 0.1], [0.9989, 0.2931, 1e-5], times, max_steps=1000, stiff_steps=200)
    assert run.outcome is Outcome.COMPLETED and "collocation" in run.method
    np.testing.assert_allclose(run.states[1:, :, 1], 0, atol=1e-14)  # by C(0)
    np.testing.assert_allclose(
        run.states[1:, 2, 3], run.states[1:, 2, 0] / 1e-5, rtol=1e-6
    )  # r is proportional to r(0)


@pytest.mark.parametrize("growth", [1.0, 1.7, 2.2, 3.1])
def test_a_fast_state_stays_with_a_slow_one_that_grows_by_decades(growth):
    """y follows 1/x ever faster, and Newton's method converges slowly where x changes much within a step."""
    flow = Flow(Model({"x": "g*x", "y": "x - y*x**2"}, {"out": "y"}))
    times = np.linspace(0.5, 6.0, 12)
    run = flow.run([growth], [3.0, 0.4], times, start=0.0, sensitivities=False, tolerance=1e-14)
    assert run.outcome is Outcome.COMPLETED
    exact = 3.0 * np.exp(growth * times)
    np.testing.assert_allclose(run.states[:, 0, 0], exact, rtol=1e-11)
    np.testing.assert_allclose(run.states[8:, 1, 0], 1 / exact[8:] + growth / exact[8:] ** 3, rtol=1e-8)


BINDING = {
    "L": "a - d*L - f*L*R + f*K*C",
    "R": "s - g*R - f*L*R + f*K*C",
    "C": "f*L*R - f*K*C - u*C + w*P",
    "P": "u*C - w*P - v*P",
}


@pytest.mark.parametrize(
    "values",
    [
        {"a": 0.0016, "d": 0.33, "f": 1800.0, "K": 0.0053, "s": 0.0053, "g": 0.79, "u": 650.0, "w": 20.0, "v": 0.053},
        {"a": 0.17, "d": 0.36, "f": 3600.0, "K": 0.33, "s": 0.19, "g": 0.88, "u": 17000.0, "w": 130.0, "v": 8.7},
    ],
)
def test_what_has_come_to_rest_is_passed_in_few_steps(values):
    """Updates that are rounding from the first on have settled: values and sensitivities stay where they came to."""
    start = {"L": 1, "R": 1, "C": 0, "P": 0}
    model = Model(BINDING, {"y": "P"}, initial=start)
    p = [values[name] for name in model.parameters]
    run = Flow(model).run(p, np.zeros(4), [0.0, 1e3], start=0.0, max_steps=5000, stiff_steps=300)
    assert run.outcome is Outcome.COMPLETED
    rest = Rest(Model(BINDING, initial=start)).known(np.array(p), True)
    np.testing.assert_allclose(run.states[1], rest.rows, rtol=1e-6, atol=1e-12)
