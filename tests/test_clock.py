"""The clock of limits, which can be stopped."""

import pytest

from odejet import clock


def test_stops_within_a_stop_count_once(monkeypatch):
    times = iter([10.0, 17.0])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(times))
    before = clock.stood_still()
    assert [clock.stop(), clock.stop(), clock.go_on(), clock.go_on()] == [True, False, False, True]
    assert clock.stood_still() - before == pytest.approx(7.0)


def test_it_stands_still_and_goes_on_from_there(monkeypatch):
    times = iter([10.0, 12.0, 20.0, 20.5])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(times))
    begin = clock.now()
    clock.stop()
    assert clock.now() - begin == pytest.approx(2.0)
    clock.go_on()
    assert clock.now() - begin == pytest.approx(2.5)
