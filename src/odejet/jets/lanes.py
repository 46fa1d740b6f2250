"""Lanes: the few vector operations that the Taylor kernels are written in, for each number type.

A jet is stored as rows of lanes: lane 0 is the value, the others are its tangents.  Kernels move over a row in blocks
of `width(c)` lanes, where `c` is a bare pointer: an array would bring its shape and strides along at every call.  For
doubles a block is a hardware vector (LLVM's <4 x double>, which becomes AVX, SSE or NEON); for complex numbers and for
residues modulo a prime it is a single number.  The last argument of every operation is the modulus of the arithmetic,
which doubles and complex numbers ignore.

Residues are kept in Montgomery form, x R mod p with R = 2^64, so that a product costs two multiplications and no
division; their modulus is the tuple (p, -1/p mod R, R mod p) with p < 2^62.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, models, overload, register_model

from odejet.jets import numba_internals, shared
from odejet.jets.compilation import OPTIONS, compiled

kernel = partial(
    njit, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=numba_internals.PartCompiler, **OPTIONS
)
"""Decorator of what only other kernels call."""

inlined = partial(kernel, inline="always")
"""Decorator of what becomes part of its caller before that is compiled: it pays for what is called in one place.

For small kernels that are called often, inlining by LLVM, which `kernel` leaves to it, is better."""


def entry(function, compiler=numba_internals.WholeCompiler):
    """Decorator of what Python calls and what calls other kernels and the interpreter.

    numba compiles again when the file of the function changes; here all files with kernels count.
    """
    dispatcher = compiled(function, pipeline_class=compiler)
    numba_internals.stamp(dispatcher, shared.SOURCES)
    compile_alone = dispatcher.compile

    def compile_with_interpreter(signature):
        shared.make_ready(signature)
        return compile_alone(signature)

    dispatcher.compile = compile_with_interpreter
    return dispatcher


plain_entry = partial(entry, compiler=numba_internals.ByHandCompiler)
"""Decorator of such an entry that has no loops for LLVM to make vectors of, but for those written in lanes."""


numba_internals.import_arrays()

WIDTH = 4


def padded(lanes: int) -> int:
    """The length of a row of doubles with so many lanes: a whole number of blocks."""
    return -(-lanes // WIDTH) * WIDTH


_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_ALIGNMENT = 8
# Residues meet only unsigned constants: mixed with signed ones, numba would turn them into doubles.
_ONE, _TWO = np.uint64(1), np.uint64(2)


class _Block(types.Type):
    def __init__(self) -> None:
        super().__init__(name="odejet.Block")


_block = _Block()


@register_model(_Block)
class _BlockModel(models.PrimitiveModel):
    def __init__(self, manager, fe_type):
        super().__init__(manager, fe_type, _VECTOR)


def _element(pointer):
    """The block type of a pointer type."""
    return _block if pointer.dtype == types.float64 else pointer.dtype


def _place(builder, pointer_type, pointer, index):
    place = builder.gep(pointer, [index])
    return builder.bitcast(place, _VECTOR.as_pointer()) if _element(pointer_type) == _block else place


def _broadcast(builder, scalar):
    vector = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(vector, ir.Constant(_VECTOR, ir.Undefined), mask)


def _parts(context, builder, number):
    value = context.make_complex(builder, types.complex128, value=number)
    return value.real, value.imag


def _complex(context, builder, real, imaginary):
    value = context.make_complex(builder, types.complex128)
    value.real, value.imag = real, imaginary
    return value._getvalue()


# --- operations -------------------------------------------------------------------------------------------------------
# Intrinsics rather than overloaded functions: each is a handful of instructions, and numba's machinery for functions
# would take most of the time of the first compilation.


@intrinsic
def pointer(typingctx, array):
    """A pointer to the first number of a contiguous array, which must outlive it."""

    def generate(context, builder, signature, args):
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), generate


@intrinsic
def width(typingctx, c):
    """Lanes per block at the pointer `c`."""
    lanes = WIDTH if _element(c) == _block else 1
    return types.intp(c), lambda context, builder, signature, args: context.get_constant(types.intp, lanes)


@intrinsic
def load(typingctx, c, i):
    """The block that begins at c[i]."""

    def generate(context, builder, signature, args):
        loaded = builder.load(_place(builder, signature.args[0], *args))
        loaded.align = _ALIGNMENT
        return loaded

    return _element(c)(c, types.intp), generate


@intrinsic
def store(typingctx, c, i, block):
    """Write a block at c[i]."""

    def generate(context, builder, signature, args):
        stored = builder.store(args[2], _place(builder, signature.args[0], *args[:2]))
        stored.align = _ALIGNMENT
        return context.get_dummy_value()

    return types.void(c, types.intp, _element(c)), generate


@intrinsic
def peek(typingctx, c, i):
    """The number c[i]."""

    def generate(context, builder, signature, args):
        return builder.load(builder.gep(args[0], [args[1]]))

    return c.dtype(c, types.intp), generate


@intrinsic
def poke(typingctx, c, i, number):
    """c[i] = number."""

    def generate(context, builder, signature, args):
        builder.store(args[2], builder.gep(args[0], [args[1]]))
        return context.get_dummy_value()

    return types.void(c, types.intp, c.dtype), generate


@intrinsic
def zero(typingctx, c):
    """A block of zeros of the array's type."""

    def generate(context, builder, signature, args):
        return ir.Constant(context.get_value_type(signature.return_type), None)

    return _element(c)(c), generate


@intrinsic
def madd(typingctx, total, scalar, block, modulus):
    """total + scalar * block."""
    number = types.float64 if block == _block else block

    def generate(context, builder, signature, args):
        total, scalar, block, modulus = args
        if signature.return_type == _block:
            product = builder.fmul(_broadcast(builder, scalar), block, flags=("contract",))
            return builder.fadd(total, product, flags=("contract",))
        product = _product(context, builder, signature, scalar, block, modulus)
        return _sum(context, builder, signature, total, product, modulus)

    return block(block, number, block, modulus), generate


@intrinsic
def mul(typingctx, left, right, modulus):
    """left * right, of single numbers."""

    def generate(context, builder, signature, args):
        return _product(context, builder, signature, *args)

    return right(right, right, modulus), generate


@intrinsic
def add(typingctx, left, right, modulus):
    """left + right."""

    def generate(context, builder, signature, args):
        return _sum(context, builder, signature, *args)

    return left(left, left, modulus), generate


@intrinsic
def sub(typingctx, left, right, modulus):
    """left - right."""

    def generate(context, builder, signature, args):
        left, right, modulus = args
        kind = signature.return_type
        if kind == types.uint64:
            less = builder.icmp_unsigned("<", left, right)
            difference = builder.sub(left, right)
            prime = builder.extract_value(modulus, 0)
            return builder.select(less, builder.add(difference, prime), difference)
        if kind == types.complex128:
            (a, b), (x, y) = (_parts(context, builder, number) for number in (left, right))
            return _complex(context, builder, builder.fsub(a, x), builder.fsub(b, y))
        return builder.fsub(left, right)

    return left(left, left, modulus), generate


@intrinsic
def spread(typingctx, number):
    """A block of doubles that are all the same."""
    return _block(types.float64), lambda context, builder, signature, args: _broadcast(builder, args[0])


@intrinsic
def product(typingctx, left, right):
    """The product of two blocks, lane by lane."""
    return _block(left, right), lambda context, builder, signature, args: builder.fmul(*args, flags=("contract",))


@intrinsic
def quotient(typingctx, left, right):
    """The quotient of two blocks, lane by lane."""
    return _block(left, right), lambda context, builder, signature, args: builder.fdiv(*args)


@intrinsic
def plus(typingctx, total, left, right):
    """total + left * right, lane by lane."""

    def generate(context, builder, signature, args):
        return builder.fadd(args[0], builder.fmul(*args[1:], flags=("contract",)), flags=("contract",))

    return _block(total, left, right), generate


@intrinsic
def minus(typingctx, total, left, right):
    """total - left * right, lane by lane."""

    def generate(context, builder, signature, args):
        return builder.fsub(args[0], builder.fmul(*args[1:], flags=("contract",)), flags=("contract",))

    return _block(total, left, right), generate


@intrinsic
def larger(typingctx, total, block):
    """The larger of a block and of the sizes of another, lane by lane; what is no number is left out."""

    def generate(context, builder, signature, args):
        total, block = args
        negative = builder.fcmp_ordered("<", block, ir.Constant(_VECTOR, None))
        size = builder.select(negative, builder.fneg(block), block)
        return builder.select(builder.fcmp_ordered(">", size, total), size, total)

    return _block(total, block), generate


def _product(context, builder, signature, left, right, modulus):
    kind = signature.return_type
    if kind == types.uint64:
        return _multiply_reduce(builder, left, right, modulus)
    if kind == types.complex128:
        (a, b), (x, y) = (_parts(context, builder, number) for number in (left, right))
        real = builder.fsub(builder.fmul(a, x), builder.fmul(b, y))
        return _complex(context, builder, real, builder.fadd(builder.fmul(a, y), builder.fmul(b, x)))
    return builder.fmul(left, right)


def _sum(context, builder, signature, left, right, modulus):
    kind = signature.return_type
    if kind == types.uint64:
        prime = builder.extract_value(modulus, 0)
        total = builder.add(left, right)
        return builder.select(builder.icmp_unsigned(">=", total, prime), builder.sub(total, prime), total)
    if kind == types.complex128:
        (a, b), (x, y) = (_parts(context, builder, number) for number in (left, right))
        return _complex(context, builder, builder.fadd(a, x), builder.fadd(b, y))
    return builder.fadd(left, right)


def _multiply_reduce(builder, left, right, modulus):
    """left * right / R mod p (Montgomery 1985), through 128-bit products."""
    prime, negative_inverse = builder.extract_value(modulus, 0), builder.extract_value(modulus, 1)
    wide, narrow = ir.IntType(128), ir.IntType(64)
    product = builder.mul(builder.zext(left, wide), builder.zext(right, wide))
    quotient = builder.mul(builder.trunc(product, narrow), negative_inverse)
    total = builder.add(product, builder.mul(builder.zext(quotient, wide), builder.zext(prime, wide)))
    reduced = builder.trunc(builder.lshr(total, ir.Constant(wide, 64)), narrow)
    over = builder.icmp_unsigned(">=", reduced, prime)
    return builder.select(over, builder.sub(reduced, prime), reduced)


@kernel
def power_mod(number, exponent, modulus):
    """number ** exponent of a residue."""
    result = modulus[2]
    while exponent > 0:
        if exponent & _ONE:
            result = mul(result, number, modulus)
        number = mul(number, number, modulus)
        exponent >>= _ONE
    return result


# The two below must be functions of one name for all number types, since a division is one line in the kernels.


def inverse(number, modulus):
    """1 / number."""


def half(number, modulus):
    """number / 2."""


@overload(inverse)
def _inverse(number, modulus):
    if number == types.uint64:
        return lambda number, modulus: power_mod(number, modulus[0] - _TWO, modulus)
    if number == types.complex128:
        return lambda number, modulus: reciprocal(number)
    return lambda number, modulus: 1 / number


@kernel
def reciprocal(number):
    """1 / number of a complex number, infinite for zero, where numba's own division would raise."""
    size = max(abs(number.real), abs(number.imag))
    real, imaginary = number.real / size, number.imag / size
    scale = 1.0 / (size * (real * real + imaginary * imaginary))
    return complex(real * scale, -imaginary * scale)


@overload(half)
def _half(number, modulus):
    if number == types.uint64:
        return lambda number, modulus: (number >> _ONE) + (number & _ONE) * ((modulus[0] + _ONE) >> _ONE)
    return lambda number, modulus: 0.5 * number
