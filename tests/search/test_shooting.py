"""Shooting: times that crowd towards the start, pairs that are far apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from odejet.data import Series
from odejet.search.shooting import WARP, shooting_times, widest_pairs


def test_times_follow_the_warp():
    times = np.linspace(0, 1, 100_001)
    chosen = shooting_times([Series(times, times)], 20)
    exact = np.expm1(WARP * np.arange(20) / 19) / np.expm1(WARP)
    np.testing.assert_allclose(chosen, exact, atol=1e-5)


def test_times_lie_where_all_outputs_are_measured():
    chosen = shooting_times([Series(np.arange(0.0, 8), np.zeros(8)), Series(np.arange(3.0, 12), np.zeros(9))], 20)
    assert chosen.min() == 3 and chosen.max() == 7
    apart = [Series(np.array([0.0, 1.0]), np.zeros(2)), Series(np.array([2.0, 3.0]), np.zeros(2))]
    assert len(shooting_times(apart, 20)) == 0


@given(st.lists(st.integers(-50, 50), unique=True, min_size=2, max_size=8), st.integers(1, 40))
def test_no_pair_left_out_is_wider(times, count):
    pairs = widest_pairs(np.array(sorted(times), dtype=float), count)
    everything = sorted((b - a for a in times for b in times if a < b), reverse=True)
    assert [b - a for a, b in pairs] == everything[:count]
