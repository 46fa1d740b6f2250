"""Direct: kernels that Python calls without a look at the types of their arguments, and memory that it lends them.

numba finds compiled code by the types of all arguments, through every array of every tuple.  For kernels with a hundred
arrays that takes as long as a dozen steps, and to allot the arrays takes no less.  Where the types are always the same,
they are looked at once; and memory is that of the call before.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from odejet.jets.numba_internals import entry_point

_LINE = 8  # numbers in a line of the cache


class Direct:
    """A kernel whose arguments have the same types at every call: arrays are contiguous, floats no integers."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self._first(arguments) if self._compiled is None else self._compiled(*arguments)

    def _first(self, arguments: tuple[Any, ...]) -> Any:
        found = self.kernel(*arguments)
        self._compiled = entry_point(self.kernel, arguments)
        return found


class _Ground(threading.local):
    """Memory of a thread, which one kernel after the other uses: it stays in the processor's cache."""

    numbers = np.zeros(0)

    def of(self, size: int) -> np.ndarray:
        if len(self.numbers) < size:
            self.numbers = _aligned(2 * size)
        return self.numbers


def _aligned(size: int) -> np.ndarray:
    """Zeros that begin with a line of the cache: vectors that lie across two take a quarter longer."""
    numbers = np.zeros(size + _LINE)
    first = -(numbers.ctypes.data // numbers.itemsize) % _LINE
    return numbers[first : first + size]


_GROUND = _Ground()


class Bench(NamedTuple):
    """Arrays for a kernel, in memory of this thread that it has for one call."""

    ground: np.ndarray
    numbers: np.ndarray  # of all arrays that are to be zero
    made: Any


class Benches(dict[int, Bench]):
    """Those of one program, by thread; nothing of them goes to another process."""

    def cleared(
        self, shapes: Callable[[], Mapping[str, tuple[int, ...]]], make: Callable[[Any], Any], scratch: int = 0
    ) -> Any:
        """Return what is made of arrays of some shapes, which are all zero but for so many of the last."""
        thread = threading.get_ident()
        bench = self.get(thread)
        if bench is None or bench.ground is not _GROUND.numbers:
            bench = self[thread] = _bench(shapes(), make, scratch)
        bench.numbers.fill(0)
        return bench.made

    def __reduce__(self) -> tuple[Any, ...]:
        return Benches, ()


def _bench(shapes: Mapping[str, tuple[int, ...]], make: Callable[[Any], Any], scratch: int) -> Bench:
    sizes = [math.prod(shape) for shape in shapes.values()]
    ends = np.cumsum([-(-size // _LINE) * _LINE for size in sizes]).tolist()
    numbers = _GROUND.of(ends[-1])[: ends[-1]]
    places = zip(shapes.items(), [0, *ends], sizes, strict=False)
    arrays = {name: numbers[begin : begin + size].reshape(shape) for (name, shape), begin, size in places}
    return Bench(_GROUND.numbers, numbers[: ends[-1 - scratch]], make(arrays))
