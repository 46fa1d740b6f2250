"""First roots of polynomials on a step, against NumPy's roots and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from odejet.jets.lanes import pointer
from odejet.jets.roots import LENGTH, NONE, bernstein, changes_of_sign, crossing, first_root, no_switches


@njit
def root_of(q, degree, end, b):
    return first_root(pointer(q), degree, end, pointer(b))


@njit
def in_bernstein(q, degree, low, width, b):
    bernstein(pointer(q), degree, low, width, pointer(b))
    return changes_of_sign(pointer(b), degree)


@njit
def crossed(c, sign, vanishing, known, h, end, polynomials):
    return crossing(pointer(c), 0, 1, sign, vanishing, known, h, end, polynomials)


def first(coefficients, end: float = 1.0) -> float:
    q, b = np.zeros(LENGTH), np.zeros(LENGTH)
    q[: len(coefficients)] = coefficients
    return root_of(q, len(coefficients) - 1, end, b)


def with_roots(*roots: float) -> np.ndarray:
    """The polynomial with these roots that is positive at zero."""
    found = np.polynomial.polynomial.polyfromroots(roots)
    return found * np.sign(found[0])


@pytest.mark.parametrize("seed", range(30))
def test_the_first_root_is_that_of_numpy(seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=rng.integers(3, 25))
    q[0] = abs(q[0]) + 0.01
    roots = np.polynomial.polynomial.polyroots(q)
    real = np.sort(roots[(abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < 1)].real)
    expected = real[0] if len(real) else NONE
    assert first(q) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-7])
def test_a_close_pair_is_found(gap):
    """What dips below zero between two roots is not stepped over."""
    assert first(with_roots(0.6, 0.6 + gap)) == pytest.approx(0.6, abs=1e-2 * gap + 1e-9)


def test_a_touch_is_no_root():
    assert first(with_roots(0.6, 0.6)) == NONE
    assert first(with_roots(0.6, 0.6, 0.9)) == pytest.approx(0.9)


def test_roots_beyond_the_end_are_none_and_at_the_end_are_there():
    assert first(with_roots(0.7), end=0.5) == NONE
    assert first(with_roots(0.5), end=0.5) == pytest.approx(0.5)
    assert first(with_roots(2.0)) == NONE


def test_bernsteins_coefficients_bound_the_polynomial():
    """Ends are values, and all values lie between the least and the largest; changes of sign count roots."""
    q, b = np.zeros(LENGTH), np.zeros(LENGTH)
    q[:5] = with_roots(0.3, 0.5, -1.0, 2.0)
    changes = in_bernstein(q, 4, 0.2, 0.7, b)
    values = np.polynomial.polynomial.polyval(np.linspace(0.2, 0.9, 200), q[:5])
    assert b[0] == pytest.approx(values[0]) and b[4] == pytest.approx(values[-1])
    assert b[:5].min() <= values.min() and values.max() <= b[:5].max()
    assert changes in (0, 2)  # two roots, or what is left of them between a positive start and a positive end


@pytest.mark.parametrize("h", [0.5, -0.5, 2.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_switching_function_loses_its_sign_where_its_series_does(h, sign):
    """g(s) = sign (1 - s/0.3 in units of the direction): the place is a share of the step."""
    place = 0.3 * np.sign(h)
    c = np.zeros(LENGTH)
    c[:2] = sign, -sign / place
    expected = place / h if abs(h) > 0.3 else NONE
    assert crossed(c, sign, 0, 1, h, NONE, no_switches(1).polynomials) == pytest.approx(expected)


def test_a_root_where_the_step_begins_is_taken_out():
    """g = s (0.4 - s) starts at zero and is positive after: it loses its sign at 0.4 and not at 0."""
    c = np.zeros(LENGTH)
    c[1:3] = 0.4, -1.0
    assert crossed(c, 1.0, 1, 2, 1.0, NONE, no_switches(1).polynomials) == pytest.approx(0.4)
