"""The clock of compilations, with kernels that are compiled for the purpose."""

from __future__ import annotations

import pytest
from numba import njit

from odejet.jets import compilation


def fresh(module: str):
    """A function that calls another, neither compiled before."""

    def inner(x):
        return x + 1

    inner.__module__ = module
    compiled = njit(inner)

    def outer(x):
        return compiled(x) * 2

    outer.__module__ = module
    return njit(outer)


def test_compiling_our_kernels_is_counted_and_calling_them_is_not(capsys):
    kernel, before = fresh("odejet.made_up"), compilation.seconds()
    assert kernel(3) == 8
    after = compilation.seconds()
    assert after > before
    kernel(4)
    assert compilation.seconds() == after
    assert capsys.readouterr().err.count("compiling") <= 1


def test_what_others_compile_is_not_counted():
    before = compilation.seconds()
    assert fresh("somebody_else")(3) == 8
    assert compilation.seconds() == before


def test_nested_compilations_count_once(monkeypatch):
    now = iter([10.0, 17.0])
    monkeypatch.setattr(compilation.time, "perf_counter", lambda: next(now))
    before = compilation.seconds()
    with compilation.counted(), compilation.counted():
        pass
    assert compilation.seconds() - before == pytest.approx(7.0)


def test_the_clock_stands_still_meanwhile(monkeypatch):
    times = iter([10.0, 12.0, 20.0, 20.5])
    monkeypatch.setattr(compilation.time, "perf_counter", lambda: next(times))
    begin = compilation.now()  # at 10
    with compilation.counted():  # from 12 to 20
        during = compilation.now()
    assert during - begin == pytest.approx(2.0)
    assert compilation.now() - begin == pytest.approx(2.5)
