"""Scales of a search: there and back, slopes, bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet.errors import ModelError
from odejet.problem.coordinates import choose
from odejet.problem.unknowns import Unknown

UNKNOWNS = (Unknown("x", "x(0)", "e"), Unknown("k", "k"), Unknown("m", "m"))
sizes = st.floats(1e-6, 1e6)


@given(sizes, sizes, st.floats(-1e6, 1e6))
def test_there_and_back(positive, negative, any_sign):
    frame = choose(UNKNOWNS, np.array([1.0, -2.0, 3.0]), {"x": (0, np.inf), "k": (-np.inf, 0)})
    z = np.array([positive, -negative, any_sign])
    np.testing.assert_allclose(frame.back(frame.to(z)), z, rtol=1e-13, atol=1e-15)


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3))
def test_slopes_are_derivatives_and_positive(theta):
    frame = choose(UNKNOWNS, np.array([1.0, -2.0, 3.0]), {"x": (0, np.inf), "k": (-np.inf, 0)})
    theta, step = np.array(theta), 1e-6
    slopes = frame.slopes(frame.back(theta))
    difference = (frame.back(theta + step) - frame.back(theta - step)) / (2 * step)
    np.testing.assert_allclose(slopes, difference, rtol=1e-7)
    assert np.all(slopes > 0)


def test_bounds_become_bounds():
    frame = choose(UNKNOWNS, np.ones(3), {"x(0)": (1e-5, 10), "k": (-3, 2), "m": (-9, -1)})
    low, high = frame.box
    np.testing.assert_allclose(low, [np.log(1e-5), np.arcsinh(-3), -np.log(9)])
    np.testing.assert_allclose(high, [np.log(10), np.arcsinh(2), 0], atol=1e-15)
    np.testing.assert_array_equal(frame.back(high + 5), [10, 2, -1])
    np.testing.assert_array_equal(frame.inside(np.array([11.0, -4, 0])), [10, -3, -1])


def test_zero_is_a_lower_bound_of_a_positive_quantity():
    frame = choose(UNKNOWNS, np.array([0.0, 0, 0]), positive=["k"])
    assert frame.signs.tolist() == [0, 1, 0]
    assert np.all(np.isfinite(frame.to(frame.inside(np.zeros(3)))))
    assert frame.inside(np.zeros(3))[1] > 0


def test_the_models_bounds_hold_unless_others_are_given():
    frame = choose(UNKNOWNS, np.ones(3), {"k": (1, 2)}, model_bounds={"k": (3, 4), "m": (5, 6)})
    assert frame.low[1:].tolist() == [1, 5]
    assert choose(UNKNOWNS, np.ones(3), (0, 7), model_bounds={"k": (3, 4)}).high.tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("bounds", "positive", "sentence"),
    [
        ({"kk": (0, 1)}, False, "bounds name 'kk', which is no unknown of the fit; did you mean 'k'"),
        (None, ["y"], "positive name 'y'"),
        ({"k": (2, 1)}, False, "the bounds of 'k' leave nothing: 2 must be below 1"),
        ({"k": (-2, 0)}, True, "the bounds of 'k' leave nothing"),
        ({"k": "ab"}, False, "the bounds of 'k' must be two numbers"),
    ],
)
def test_refusals(bounds, positive, sentence):
    with pytest.raises(ModelError, match=sentence.replace("(", r"\(")):
        choose(UNKNOWNS, np.ones(3), bounds, positive)
