"""The rule of collocation against NumPy, and its trajectories against closed forms."""

import numpy as np
import pytest

from odejet.jets.radau import radau
from odejet.model import Model
from odejet.simulate.flow import Flow, Outcome
from odejet.simulate.rest import Rest


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


def test_a_tiny_state_beside_a_large_one_grows_as_it_should():
    """From 1e-37 of the largest state, in implicit steps that a fast state asks for."""
    model = Model({"a": "-1e-3*a", "f": "1e5*(a - f)", "x": "r*x", "e": "c*x - 10*e"}, {"y": "x"})
    times = np.array([100.0, 300.0, 600.0])
    found = Flow(model).run([0.1, 1e-20], [1e9, 0.0, 1e-28, 0.0], times, start=0.0)
    assert found.outcome is Outcome.COMPLETED and "collocation" in found.method
    np.testing.assert_allclose(found.states[:, 2, 0], 1e-28 * np.exp(0.1 * times), rtol=1e-9)
    np.testing.assert_allclose(found.states[:, 3, 0], 1e-48 * np.exp(0.1 * times) / 10.1, rtol=1e-6)
