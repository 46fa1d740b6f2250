"""Fits of so many measurements that rows of the Jacobian are not kept: the answers of the whole, in little memory."""

import tracemalloc

import numpy as np
import pytest

from odejet import Data, Model, fit
from odejet.decide.statistics import check
from odejet.objective import misfit
from odejet.problem import Problem
from odejet.search.refine import refine
from odejet.uncertainty.design import design
from tests.search.test_refine import LANCZOS, LANCZOS_CERTIFIED, LANCZOS_STARTS, LANCZOS_X, LANCZOS_Y, digits

STEPS = 6
CHAIN = Model(
    {
        f"x{i}": (f"v{i - 1}*x{i - 1}/(m{i - 1} + x{i - 1})" if i else "u") + f" - v{i}*x{i}/(m{i} + x{i})"
        for i in range(STEPS)
    },
    {f"y{i}": f"x{i}" for i in range(STEPS)},
)
TRUTH = {f"v{i}": 0.6 + 0.1 * i for i in range(STEPS)} | {f"m{i}": 0.5 + 0.2 * i for i in range(STEPS)}


def chains(experiments, points, noise=0.01):
    rng, times, found = np.random.default_rng(3), np.linspace(0, 8, points), []
    for number in range(experiments):
        initial = {f"x{i}": float(rng.uniform(0.5, 2)) for i in range(STEPS)}
        known = {"initial": initial, "values": {"u": 0.3 + 0.1 * number}, "name": f"e{number}"}
        problem = Problem(CHAIN, Data(times, {f"y{i}": 0 * times for i in range(STEPS)}, **known)).misfit
        exact = problem.evaluate(np.array([TRUTH[one.name] for one in problem.unknowns]), jacobian=False).residuals
        values = exact.reshape(STEPS, points) + noise * rng.normal(size=(STEPS, points))
        found.append(Data(times, {f"y{i}": values[i] for i in range(STEPS)}, **known))
    return Data.join(found)


@pytest.fixture
def large(monkeypatch):
    """Every problem is large."""
    return lambda: monkeypatch.setattr(misfit, "LARGE", 0)


@pytest.mark.parametrize("start", LANCZOS_STARTS)
def test_certified_lanczos_by_triangles(start, large):
    large()
    problem = Problem(LANCZOS, Data(LANCZOS_X, {"y": LANCZOS_Y})).misfit
    end = refine(problem, np.array([LANCZOS_STARTS[start][label] for label in problem.labels]), positive=True)
    assert not end.by_rows and not len(end.residuals)
    certified = np.array([LANCZOS_CERTIFIED[label] for label in problem.labels])
    order, expected = np.argsort(end.z[3:]), np.argsort(certified[3:])
    assert digits(end.z[3:][order], certified[3:][expected]) > 4
    assert digits(end.z[:3][order], certified[:3][expected]) > 4


def test_answer_errors_checks_and_profiles_are_those_of_the_whole_jacobian(large):
    data, bounds = chains(3, 60), (1e-3, 1e3)
    whole = fit(CHAIN, data, bounds=bounds)
    large()
    found = fit(CHAIN, data, bounds=bounds)
    assert found.certified and whole.certified
    assert found.values == pytest.approx(TRUTH, rel=0.2)
    assert found.values == pytest.approx(whole.values, rel=1e-5)
    assert found.stderr == pytest.approx(whole.stderr, rel=1e-4)
    for one, other in zip(found.certificate.outputs, whole.certificate.outputs, strict=True):
        assert one.degrees_of_freedom == pytest.approx(other.degrees_of_freedom, rel=1e-6)
        assert one.autocorrelation_z == pytest.approx(other.autocorrelation_z, abs=1e-3)
        assert one.outlier_p == pytest.approx(other.outlier_p, rel=1e-3)
    assert found.profile("m2").interval() == pytest.approx(whole.profile("m2").interval(), rel=1e-3)


def test_a_design_of_very_many_points_has_the_same_errors(large):
    def planned():
        states = {f"x{i}": 1.0 for i in range(STEPS)}
        return design(CHAIN, {**TRUTH, "u": 0.4}, states, np.linspace(0, 8, 40), noise=0.01).stderr

    expected = dict(planned())
    large()
    assert dict(planned()) == pytest.approx(expected, rel=1e-6)


def test_memory_grows_by_the_data_and_not_by_data_times_unknowns(large):
    """A refinement and its checks from twice the true values, in one and in six experiments of 6,000 measurements."""
    large()
    peaks, points = {}, 1000
    for experiments in (1, 6):
        problem = Problem(CHAIN, chains(experiments, points, noise=1e-3)).misfit
        start = np.array([2 * TRUTH[one.name] for one in problem.unknowns])
        problem.evaluate(start, jacobian=False)  # what is made once
        tracemalloc.start()
        found = refine(problem, start, positive=True)
        check(problem, found)
        peaks[problem.points] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.z == pytest.approx([TRUTH[one.name] for one in problem.unknowns], rel=0.05)
    (few, least), (many, most) = peaks.items()
    # A row of the Jacobian has 12 numbers, and a search that keeps rows has four Jacobians at a time.
    assert most - least < 16 * 8 * (many - few)
