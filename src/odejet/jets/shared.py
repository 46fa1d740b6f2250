"""Shared: the interpreter of the tape as one compiled function per number type, which all other kernels call.

numba optimises whatever a kernel calls again as a part of that kernel.  The interpreter is large and everything calls
it, so it is compiled by itself, kept on disk, and called by its address: compiled kernels read the address from a table
that they know by the name of a symbol.  An address is entered when a kernel over its number type is first used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from pathlib import Path

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.ccallback import CFunc
from numba.core.typing import signature
from numba.extending import intrinsic

SOURCES = tuple(
    (path.name, path.stat().st_mtime_ns, path.stat().st_size)
    for path in sorted(
        [
            *Path(__file__).parent.glob("*.py"),
            *(Path(__file__).parents[1] / name for name in ("tape.py", "algebra/homotopy.py")),
        ]
    )
)
"""All files with kernels.  What is kept on disk is compiled again when any of them changes."""

NUMBERS = types.float64, types.complex128, types.uint64

_ADDRESSES = (ctypes.c_int64 * len(NUMBERS))()
_SYMBOL = "odejet_interpreters"
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
        elif isinstance(argument, types.Array) and argument.dtype in NUMBERS and argument.dtype not in _COMPILED:
            _COMPILED[argument.dtype] = _compiled(argument.dtype)
            _ADDRESSES[NUMBERS.index(argument.dtype)] = _COMPILED[argument.dtype].address


def _compiled(number: types.Type) -> CFunc:
    options = {"nopython": True, "error_model": "numpy"}
    function = CFunc(_FUNCTIONS[number], (_arguments(number), types.void), {}, options)
    function.enable_caching()
    function._cache._cache_file._source_stamp = SOURCES
    function.compile()
    return function


def _arguments(number: types.Type) -> tuple[types.Type, ...]:
    """Registers, code, terms; first and last instruction, orders, beginning of series, lanes; tables; modulus."""
    registers, places = types.CPointer(number), types.CPointer(types.int64)
    return (registers, places, places, *5 * (types.int64,), *3 * (registers,), types.CPointer(types.uint64))


@intrinsic
def run(typingctx, c, code, terms, first, last, orders, dynamic, lanes, tables, modulus):
    """Orders below `orders` of the instructions first..last-1.

    `tables` points to the integers, their reciprocals and the reciprocals times the unit of time.
    """
    number = c.dtype

    def generate(context, builder, signature, args):
        *plain, tables, modulus = args
        tables = cgutils.unpack_tuple(builder, tables)
        if number == types.uint64:
            modulus = builder.bitcast(cgutils.alloca_once_value(builder, modulus), ir.IntType(64).as_pointer())
        else:
            modulus = ir.Constant(ir.IntType(64).as_pointer(), None)
        slots = context.get_c_value(builder, ir.ArrayType(ir.IntType(64), len(NUMBERS)), _SYMBOL)
        address = builder.load(cgutils.gep_inbounds(builder, slots, 0, NUMBERS.index(number)))
        kinds = [context.get_value_type(kind) for kind in _arguments(number)]
        function = builder.inttoptr(address, ir.FunctionType(ir.VoidType(), kinds).as_pointer())
        builder.call(function, [*plain, *tables, modulus])
        return context.get_dummy_value()

    plain = _arguments(number)[:8]
    return signature(types.void, *plain, types.UniTuple(c, 3), modulus), generate
