"""Shared: the interpreter of the tape as one compiled function per number type, which all other kernels call.

numba optimises whatever a kernel calls as a part of that kernel.  The interpreter is large and everything calls
it, so it is compiled by itself, kept on disk, and called by its address: compiled kernels read the address from a table
that they know by the name of a symbol.  An address is entered when a kernel over its number type is first used.
Python calls the same function by an `Interpreter`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from odejet.jets import compilation
from odejet.jets.numba_internals import ByHandCompiler, CFunc, cgutils, forgiving, from_dtype, signature, stamp

_ELSEWHERE = ("model/tape.py", "algebra/newton.py", "algebra/tracker.py")

SOURCES = tuple(
    (path.name, path.stat().st_mtime_ns, path.stat().st_size)
    for path in sorted(
        [
            *Path(__file__).parent.glob("*.py"),
            *(Path(__file__).parents[1] / name for name in _ELSEWHERE),
        ]
    )
)
"""All files with kernels.  What is kept on disk is compiled again when any of them changes."""

NUMBERS = types.float64, types.complex128, types.uint64

_ADDRESSES = (ctypes.c_int64 * len(NUMBERS))()
_SYMBOL = "odejet_interpreters"
_FUNCTION_TYPE = ctypes.CFUNCTYPE(None, *3 * (ctypes.c_void_p,), *6 * (ctypes.c_int64,), *4 * (ctypes.c_void_p,))
_FUNCTIONS: dict[types.Type, Callable] = {}
_COMPILED: dict[types.Type, CFunc] = {}

llvm.add_symbol(_SYMBOL, ctypes.addressof(_ADDRESSES))


def interprets(*numbers: types.Type) -> Callable[[Callable], Callable]:
    """Decorator of the interpreter for some number types."""

    def register(function: Callable) -> Callable:
        _FUNCTIONS.update(dict.fromkeys(numbers, function))
        return function

    return register


def make_ready(arguments: Iterable[types.Type]) -> None:
    """Compile the interpreters, or load them from disk, for the number types of a kernel's arguments."""
    for argument in arguments:
        if isinstance(argument, types.BaseTuple):
            make_ready(argument.types)
        elif isinstance(argument, types.Array) and argument.dtype in NUMBERS:
            interpreter(argument.dtype)


def interpreter(number: types.Type) -> CFunc:
    """The interpreter for a number type, compiled or loaded from disk when first asked for."""
    if number not in _COMPILED:
        options = {"nopython": True, "error_model": "numpy"}
        function = CFunc(_FUNCTIONS[number], (_arguments(number), types.void), {}, options, ByHandCompiler)
        function.enable_caching()
        stamp(forgiving(function), SOURCES)
        with compilation.counted():
            function.compile()
        _COMPILED[number] = function
        _ADDRESSES[NUMBERS.index(number)] = function.address
    return _COMPILED[number]


class Interpreter:
    """The interpreter as Python calls it, for programs whose sums are in `terms`.

    `tables` hold the integers and their reciprocals; `modulus` is ignored but for residues.
    """

    def __init__(self, terms: np.ndarray, tables: Sequence[np.ndarray], modulus: Any) -> None:
        self._kept = terms, tables[0], tables[1], np.array(modulus, dtype=np.uint64, ndmin=1)
        self._terms, integers, reciprocals, field = map(_address, self._kept)
        self._tables = integers, reciprocals, reciprocals, field

    def run(self, memory: np.ndarray, code: np.ndarray, *sizes: int) -> None:
        """The instructions of `code` on the registers in each row of `memory`; sizes are orders, where series begin,
        lanes."""
        function, first, instructions = _callable(memory.dtype.char), _address(memory), _address(code)
        for point in range(len(memory)):
            place = first + point * memory.strides[0]
            function(place, instructions, self._terms, 0, len(code), 0, *sizes, *self._tables)


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@cache
def _callable(kind: str) -> Callable[..., None]:
    """The interpreter for a type of NumPy's, as Python calls it."""
    return _FUNCTION_TYPE(interpreter(from_dtype(np.dtype(kind))).address)


def _arguments(number: types.Type) -> tuple[types.Type, ...]:
    """Registers, code, terms; first and last instruction and order, beginning of series, lanes; tables; modulus."""
    registers, places = types.CPointer(number), types.CPointer(types.int64)
    return (registers, places, places, *6 * (types.int64,), *3 * (registers,), types.CPointer(types.uint64))


@intrinsic
def run(typingctx, c, code, terms, first, last, k, dynamic, lanes, tables, modulus):
    """Order k of the instructions first..last-1.

    `tables` points to the integers, their reciprocals and the reciprocals times the unit of time.
    """
    number = c.dtype

    def generate(context, builder, signature, args):
        c, code, terms, first, last, k, dynamic, lanes, tables, modulus = args
        tables = cgutils.unpack_tuple(builder, tables)
        if number == types.uint64:
            modulus = builder.bitcast(cgutils.alloca_once_value(builder, modulus), ir.IntType(64).as_pointer())
        else:
            modulus = ir.Constant(ir.IntType(64).as_pointer(), None)
        slots = context.get_c_value(builder, ir.ArrayType(ir.IntType(64), len(NUMBERS)), _SYMBOL)
        address = builder.load(cgutils.gep_inbounds(builder, slots, 0, NUMBERS.index(number)))
        kinds = [context.get_value_type(kind) for kind in _arguments(number)]
        function = builder.inttoptr(address, ir.FunctionType(ir.VoidType(), kinds).as_pointer())
        beyond = builder.add(k, ir.Constant(k.type, 1))
        builder.call(function, [c, code, terms, first, last, k, beyond, dynamic, lanes, *tables, modulus])
        return context.get_dummy_value()

    plain = c, code, terms, *5 * (types.int64,)
    return signature(types.void, *plain, types.UniTuple(c, 3), modulus), generate
