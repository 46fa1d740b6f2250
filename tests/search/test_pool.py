"""Pool: processes that answer as an executor does, are replaced when they die, and end with it."""

from __future__ import annotations

import os
import time
from concurrent.futures import wait
from concurrent.futures.process import BrokenProcessPool
from operator import truediv

import pytest

from odejet import processes
from odejet.search.pool import Pool


def test_answers_come_from_other_processes():
    with Pool(2) as pool:
        futures = [pool.submit(pow, i, 2) for i in range(6)]
        assert [future.result(60) for future in futures] == [0, 1, 4, 9, 16, 25]
        assert pool.submit(os.getpid).result(60) != os.getpid()


def test_an_error_there_is_told_and_harms_nobody():
    with Pool(1) as pool:
        with pytest.raises(processes.Ended, match="ZeroDivisionError"):
            pool.submit(truediv, 1, 0).result(60)
        assert pool.submit(truediv, 1, 2).result(60) == 0.5


def test_a_process_that_dies_is_replaced():
    with Pool(1) as pool:
        first = pool.submit(os.getpid).result(60)
        with pytest.raises(processes.Ended, match="before it answered"):
            pool.submit(os._exit, 3).result(60)
        assert pool.submit(os.getpid).result(60) != first


def test_a_question_that_ends_every_process_is_given_up(monkeypatch):
    monkeypatch.setattr("odejet.search.pool.RESTARTS", 1)
    with Pool(1) as pool:
        for _ in range(2):
            with pytest.raises(processes.Ended):
                pool.submit(os._exit, 3).result(60)
        with pytest.raises(BrokenProcessPool):
            pool.submit(os.getpid).result(60)


def test_no_process_outlives_the_pool():
    with Pool(1) as pool:
        number = pool.submit(os.getpid).result(60)
        busy = pool.submit(time.sleep, 100)
        while not busy.running():
            time.sleep(0.01)
    assert wait([busy], 10).done and busy.exception() is not None
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(os.getpid)
