"""Shooting: times that crowd towards the start, pairs that are far apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from odejet import Data
from odejet.search.shooting import WARP, shooting_times, widest_pairs


def _series(data):
    return list(data.experiments[0].outputs.values())


def test_times_follow_the_warp():
    times = np.linspace(0, 1, 100_001)
    chosen = shooting_times(_series(Data(times, {"y": times})), 20)
    exact = np.expm1(WARP * np.arange(20) / 19) / np.expm1(WARP)
    np.testing.assert_allclose(chosen, exact, atol=1e-5)


def test_times_lie_where_all_outputs_are_measured():
    data = Data(None, {"y": (np.arange(0.0, 8), np.zeros(8)), "z": (np.arange(3.0, 12), np.zeros(9))})
    chosen = shooting_times(_series(data), 20)
    assert chosen.min() == 3 and chosen.max() == 7
    apart = Data(None, {"y": ([0.0, 1.0], [0, 0]), "z": ([2.0, 3.0], [0, 0])})
    assert len(shooting_times(_series(apart), 20)) == 0


@given(st.lists(st.integers(-50, 50), unique=True, min_size=2, max_size=8), st.integers(1, 40))
def test_no_pair_left_out_is_wider(times, count):
    pairs = widest_pairs(np.array(sorted(times), dtype=float), count)
    everything = sorted((b - a for a in times for b in times if a < b), reverse=True)
    assert [b - a for a, b in pairs] == everything[:count]
