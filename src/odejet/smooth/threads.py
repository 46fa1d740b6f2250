"""Threads: linear algebra of small matrices on one core.

A library of linear algebra that shares a matrix of order one hundred between cores gains nothing, and where the cores
have other work it waits for them a hundred times longer than the arithmetic takes.  One thread also means the same
sums in the same order, so that answers do not depend on the number of cores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

Given = ParamSpec("Given")
Result = TypeVar("Result")


@cache
def _libraries() -> ThreadpoolController:
    """The linear algebra libraries of this process; found once, because looking for them takes a millisecond."""
    return ThreadpoolController().select(user_api="blas")


def one_thread(work: Callable[Given, Result]) -> Callable[Given, Result]:
    """Run a function with linear algebra on one thread."""

    @wraps(work)
    def alone(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with _libraries().limit(limits=1):
            return work(*args, **kwargs)

    return alone
