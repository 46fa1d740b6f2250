"""Chain: a prior covariance seen through the data, reduced to what the marginal likelihood needs of it.

For a factor A of the covariance A A^T and data z, an orthogonal change of coordinates that begins with z makes A lower
bidiagonal and leaves of z its length: with diagonal b_i and subdiagonal c_i of the bidiagonal matrix B,

    A A^T + g I  ~  B B^T + g I,        z  ~  |z| e_1,

a chain in which only neighbours meet.  Eliminating it from its end yields pivots p_i without a single subtraction,

    q_i = g + b_i^2 q_{i+1}/p_{i+1},        p_i = q_i + c_i^2,

and with them log det = sum log p_i and z^T (A A^T + g I)^{-1} z = |z|^2/p_1, for any g, to rounding and in linear time.
The reduction costs an eighth of a singular value decomposition.  Independent parts are one chain with b = c = 0 at the
joints; a covariance that is diagonal already is a chain of single links.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba.extending import get_cython_function_address

BLOCK = 32
"""Columns LAPACK reduces at a time."""


class Chain(NamedTuple):
    """Squares of the two diagonals, and of the data, which sit on the first link of each part."""

    diagonal: np.ndarray
    below: np.ndarray
    data: np.ndarray


def links(variances: np.ndarray, data: np.ndarray) -> Chain:
    """The chain of independent data of given prior variances."""
    return Chain(variances, np.zeros(len(variances)), data**2)


def chain(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> Chain:
    """The chain of independent parts, each a factor of its prior covariance and its data."""
    reduced = [_reduce(factor, data) for factor, data in parts]
    return Chain(*(np.concatenate(arrays) for arrays in zip(*reduced, strict=True)))


def _reduce(factor: np.ndarray, data: np.ndarray) -> Chain:
    """Bidiagonalise [z A]: the first reflection sends z to its length, those from the right leave its column alone."""
    rows, columns = factor.shape
    # One row of zeros more than columns keeps LAPACK's form upper bidiagonal; it is a link that holds noise alone.
    matrix = np.zeros((max(rows, columns + 1), columns + 1), order="F")
    matrix[:rows, 0], matrix[:rows, 1:] = data, factor
    upper, above = _bidiagonalise(matrix)
    first = np.zeros(columns + 1)
    first[0] = upper[0] ** 2
    return Chain(np.append(above**2, 0.0), np.append(0.0, upper[1:] ** 2), first)


_pointer = ctypes.c_void_p
_dgebrd = ctypes.CFUNCTYPE(None, *[_pointer] * 11)(get_cython_function_address("scipy.linalg.cython_lapack", "dgebrd"))


def _bidiagonalise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both diagonals of the upper bidiagonal form of a matrix in column order, which is overwritten.

    SciPy lends LAPACK's dgebrd to compiled code only; its address serves here as well.
    """
    rows, columns = matrix.shape
    room = (rows + columns) * BLOCK
    # Both diagonals, the scales of the reflections from both sides, and LAPACK's own room.
    buffer = np.empty(4 * columns + room)
    numbers = np.array([rows, columns, rows, room, 0], dtype=np.intc)
    start, integers = _address(buffer), _address(numbers)
    diagonal, above, left, right, work = (start + i * columns * buffer.itemsize for i in range(5))
    m, n, leading, length, info = (integers + i * numbers.itemsize for i in range(5))
    _dgebrd(m, n, _address(matrix), leading, diagonal, above, left, right, work, length, info)
    return buffer[:columns], buffer[columns : 2 * columns - 1]


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])
