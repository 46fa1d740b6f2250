"""Threads: linear algebra of small matrices on one core.

A library of linear algebra that shares a matrix of order one hundred between cores gains nothing, and where the cores
have other work it waits for them a hundred times longer than the arithmetic takes.  One thread also means the same
sums in the same order, so that answers do not depend on the number of cores.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_limits: list[Any] = []
"""One entry per user; only the first of them holds a limit, which the last one lifts."""


def libraries() -> ThreadpoolController:
    """The linear algebra libraries that this package uses: NumPy's and, once it is loaded, SciPy's."""
    return _libraries("scipy.linalg" in sys.modules)


@cache
def _libraries(_: bool) -> ThreadpoolController:
    """Found once in either case, because looking for them takes a millisecond."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread, until the last of those who asked for it at the same time has left.

    The number of threads belongs to the whole process, so that users in different threads of Python share one limit.
    """
    with _lock:
        _limits.append(_limits[0] if _limits else libraries().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()
