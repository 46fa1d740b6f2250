"""Solving: known roots by hand, exact data, censuses, determinism, PHCpack as an independent program."""

import functools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odejet import Model
from odejet.algebra import homotopy
from odejet.algebra.homotopy import track
from odejet.algebra.monodromy import Fibre, distance, fibre, merge, turned
from odejet.algebra.solve import Solution, solve
from odejet.algebra.system import SquareSystem, Targets, join
from odejet.algebra.tracker import PathEnd
from odejet.budget import Budget, OutOfBudget
from problems import explicit, phcpack, squares, systems

needs_phc = pytest.mark.skipif(phcpack.executable() is None, reason="phc is not installed (Debian: phcpack)")

SQUARE = SquareSystem(join(Model(states={"x": "0"}, outputs={"y": "x**2"})), ((0, 0),), (), 2)
"""x^2 = d: two roots."""
CUBE = SquareSystem(join(Model(states={"x": "0"}, outputs={"y": "x**3 - 3*x"})), ((0, 0),), (), 3)


def target(*values: complex) -> Targets:
    return Targets(np.array(values, dtype=complex)[:, None], np.zeros((len(values), 0, 1)), np.zeros(0))


@functools.cache
def found(name: str) -> Fibre:
    return fibre(squares.square(name))


# --- fibres -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", [SQUARE, CUBE], ids=["square", "cube"])
@pytest.mark.parametrize("seed", range(3))
def test_fibres_are_complete(system, seed):
    known = fibre(system, seed=seed)
    assert known.complete and len(known) == system.roots
    assert np.max(system.residuals(known.roots, known.at.repeated(len(known)))) < 1e-10


def test_without_a_known_count_all_roots_are_found_but_not_claimed():
    unknown = SquareSystem(CUBE.joined, CUBE.rows)
    known = fibre(unknown)
    assert len(known) == 3 and not known.complete


@pytest.mark.parametrize("name", ["lotka_volterra", "fitzhugh_nagumo", "repressilator", "sirt_treatment"])
def test_fibres_of_benchmark_systems(name):
    known = found(name)
    assert known.complete and len(known) == known.system.roots
    assert np.max(known.system.residuals(known.roots, known.at.repeated(len(known)))) < 1e-8


def test_the_same_seed_gives_the_same_fibre():
    np.testing.assert_array_equal(fibre(CUBE, seed=77).roots, fibre(CUBE, seed=77).roots)


def test_a_fibre_that_the_budget_ends_is_not_complete():
    system, whole = found("sirt_treatment").system, Budget(work=1e12)
    assert fibre(system, budget=whole).complete
    needed = 1e12 - whole.left
    for share in (0.3, 0.7):
        part = fibre(system, budget=Budget(work=share * needed))
        assert not part.complete
        assert len(part) < system.roots
    with pytest.raises(OutOfBudget, match="out of reach"):
        fibre(system, budget=Budget(work=1e3))


def test_merge_keeps_what_differs():
    roots = np.array([[1.0, 2.0], [1.0, 2.0 + 1e-9], [1.0, 2.1]], dtype=complex)
    np.testing.assert_array_equal(merge(roots), roots[[0, 2]])
    assert distance(roots[0], roots[2]) == pytest.approx(0.1 / 2.1)


# --- paths ------------------------------------------------------------------------------------------------------------


@given(st.complex_numbers(min_magnitude=0.1, max_magnitude=10.0), st.floats(-2.5, 2.5))
@settings(max_examples=40)
def test_a_root_of_the_square_is_followed_by_continuity(end, phase):
    begin = np.exp(1j * (np.angle(end) - phase))
    start = np.exp(0.5j * np.angle(begin))
    paths = track(SQUARE, np.array([[start]]), target(begin), target(end))
    assert paths.converged.all()
    assert abs(paths.roots[0, 0] ** 2 - end) < 1e-10 * abs(end)


def test_a_path_into_a_double_root_does_not_pretend():
    paths = track(CUBE, np.array([[1.5 + 0j]]), target(1.5**3 - 4.5), target(-2.0))
    assert sum(paths.census().values()) == 1
    assert not paths.converged[0]
    assert abs(paths.roots[0, 0] - 1) < 1e-2  # where it is, but not to the precision of a root
    assert set(paths.census()) == {outcome.name.lower() for outcome in PathEnd}


def test_paths_are_the_same_in_whatever_slices_they_are_followed(monkeypatch):
    known = found("repressilator")
    begin = known.at.repeated(len(known))
    rng = np.random.default_rng(3)
    end = Targets(np.repeat(turned(known.at.data, rng), len(known), 0), begin.inputs, begin.fixed)
    whole = track(known.system, known.roots, begin, end)
    assert whole.converged.any()
    monkeypatch.setattr(homotopy, "SLICE", 1.0)
    sliced = track(known.system, known.roots, begin, end)
    np.testing.assert_array_equal(whole.roots, sliced.roots)
    np.testing.assert_array_equal(whole.evaluations, sliced.evaluations)
    np.testing.assert_array_equal(whole.steps, sliced.steps)


def test_paths_that_the_budget_leaves_are_unfinished(monkeypatch):
    monkeypatch.setattr(homotopy, "SLICE", 1.0)
    starts = np.array([[2.0 + 0j], [-2.0 + 0j]])
    every = Budget(work=1e9)
    both = track(SQUARE, starts, target(4.0, 4.0), target(9j, 9j), budget=every)
    assert both.converged.all()
    spent = 1e9 - every.left - homotopy.SETUP
    half = track(SQUARE, starts, target(4.0, 4.0), target(9j, 9j), budget=Budget(homotopy.SETUP + 0.6 * spent))
    assert half.census()["unfinished"] == half.census()["converged"] == 1
    assert half.roots[0, 0] == both.roots[0, 0]
    none = track(SQUARE, starts, target(4.0, 4.0), target(9j, 9j), budget=Budget.within(0.0))
    assert none.census()["unfinished"] == 2


# --- targets ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1.8, 1.8).filter(lambda value: abs(value) > 1e-6), min_size=1, max_size=4))
@settings(max_examples=25)
def test_all_roots_of_a_cubic(values):
    solutions = solve(fibre(CUBE), target(*values))
    for value, solution in zip(values, solutions, strict=True):
        expected = np.sort(np.roots([1, 0, -3, -value]).real)
        np.testing.assert_allclose(np.sort(solution.real()[:, 0]), expected, rtol=1e-8, atol=1e-8)


def test_targets_are_solved_as_far_as_the_budget_lasts():
    known, targets = fibre(CUBE), target(*np.linspace(-1.5, 1.5, 7))
    everything = solve(known, targets)
    assert everything.census["unfinished"] == 0
    # Enough to reach a hub, and no more.
    part = solve(known, targets, budget=Budget(work=1.5 * homotopy.SETUP))
    assert part.census["unfinished"] > 0
    assert not any(len(each.roots) for each in part)


def test_roots_at_zero_are_real():
    solution = solve(fibre(CUBE), target(0.0))[0]
    np.testing.assert_allclose(np.sort(solution.real()[:, 0]), [-(3**0.5), 0, 3**0.5], atol=1e-12)


def test_complex_roots_are_not_real():
    solution = solve(fibre(SQUARE), target(-4.0))[0]
    assert len(solution.roots) == 2 and not len(solution.real())
    np.testing.assert_allclose(np.sort(solution.roots[:, 0].imag), [-2, 2])


def test_the_tolerance_of_real_roots_is_relative():
    solution = Solution(np.array([[1e6 + 0.1j], [1e-6 + 1e-7j]]), {})
    assert solution.real().tolist() == [[1e6]]


def test_the_same_seed_gives_the_same_roots():
    known, at = found("lotka_volterra"), squares.draw(systems.load("lotka_volterra"), np.random.default_rng(1))
    times = squares.warped(*at.system.time, 4)
    data, _ = known.system.evaluate(
        at.at(times)[:, known.system.columns], squares.inputs_at(known.system, times), np.ones(0)
    )
    targets = Targets(data, squares.inputs_at(known.system, times), np.ones(0))
    one, other = (solve(known, targets, times=times, flow=at.flow, seed=5) for _ in range(2))
    assert one.census == other.census and sum(one.census.values()) > 0
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine.roots, theirs.roots)


EXACT = ["lotka_volterra", "sirt_treatment", "repressilator", "receptor_binding", "dc_motor", "crauste", "cstr"]


@pytest.mark.parametrize("name", EXACT)
def test_the_truth_is_among_the_roots_of_exact_data(name):
    truth = squares.draw(systems.load(name), np.random.default_rng(99))
    system = squares.square(name)
    result = squares.exact(fibre(system, fixed=truth.fixed(system)), truth)
    assert np.mean(result.errors < 1e-4) >= 0.95
    assert result.residual < 1e-8


def test_a_thermal_runaway_is_solved_where_it_begins_and_carried_on():
    truth = squares.draw(systems.load("cstr"), np.random.default_rng([616161, 11, 4, ord("c")]))
    known = found("cstr")
    times = squares.warped(*truth.system.time)
    data, _ = known.system.evaluate(truth.at(times), squares.inputs_at(known.system, times), np.ones(0))
    assert np.max(np.abs(data)) > 1e100
    assert np.mean(squares.exact(known, truth).errors < 1e-4) >= 0.95


# --- an independent program -------------------------------------------------------------------------------------------


def polyhedral(text: str, seconds: float) -> Mapping[str, np.ndarray]:
    return phcpack.polyhedral(text, seconds).roots


PHC = [
    ("lotka_volterra", phcpack.black_box),
    ("fitzhugh_nagumo", phcpack.black_box),
    ("repressilator", phcpack.black_box),
    ("sirt_treatment", phcpack.black_box),
    ("hiv", polyhedral),
    pytest.param("hiv", phcpack.black_box, marks=pytest.mark.slow),
    pytest.param("cstr", phcpack.black_box, marks=pytest.mark.slow),
]


@needs_phc
@pytest.mark.parametrize(("name", "solver"), PHC)
def test_the_roots_at_random_data_are_those_of_phcpack(name, solver):
    lean = explicit.square(name, beyond=0)
    _, data = explicit.generic(lean, seed=1)
    theirs = phcpack.roots(lean, data, functools.partial(solver, seconds=1500))
    known = found(name)
    ours = solve(known, squares.complex_targets(known.system, data))[0].roots
    columns = [[variable.name for variable in lean.unknowns].index(name) for name in known.system.unknowns]
    assert len(ours) == len(theirs) == known.system.roots
    for root in ours:
        assert min(distance(root, other) for other in theirs[:, columns]) < 1e-6
