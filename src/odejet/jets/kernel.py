"""The interpreter of the tape: one pass computes one order of every Taylor series.

All kernels are compiled once per installation for each number type and take the tape as data.  The coefficients of all
registers live at one pointer `c`, in rows of `lanes` numbers (value, then tangents):

    static register     two rows: value and tangents; then the same with zero in place of the value
    series register     one row per order

`Layout` holds the program with registers replaced by the places of their first rows.

A product of two jets has the tangent  da b + a db.  Computed in every lane alike, this gives twice the product in lane
0; halving that one number afterwards is cheaper than treating it apart.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from odejet.jets.features import LARGEST, watched
from odejet.jets.lanes import (
    add,
    half,
    inverse,
    kernel,
    load,
    madd,
    mul,
    peek,
    pointer,
    poke,
    store,
    sub,
    width,
    zero,
)
from odejet.jets.shared import interprets, run
from odejet.model.tape import Column, Elementary, Op, Tape

_OUT, _A, _B, _C = int(Column.OUT), int(Column.A), int(Column.B), int(Column.C)
_FUNCTION, _PLAIN, _REACH = int(Column.FUNCTION), int(Column.PLAIN), int(Column.REACH)
_BEGIN, _END, _COLUMNS = int(Column.BEGIN), int(Column.END), len(Column)
_LINEAR, _ADVANCE, _MULTIPLY = int(Op.LINEAR), int(Op.ADVANCE), int(Op.MULTIPLY)
_SQUARE, _DIVIDE = int(Op.SQUARE), int(Op.DIVIDE)
_EXP, _LOG, _SIN, _COS = int(Elementary.EXP), int(Elementary.LOG), int(Elementary.SIN), int(Elementary.COS)
_TAN, _SINH, _COSH = int(Elementary.TAN), int(Elementary.SINH), int(Elementary.COSH)
_TANH, _SQRT = int(Elementary.TANH), int(Elementary.SQRT)
_POWER, _BOUNDED = int(Elementary.POWER), int(Elementary.BOUNDED)  # no function comes after these


_ENDS = math.exp(LARGEST)
_VANISHED = 1e-300  # powers below this have series without digits
MAX_ORDER = 32
TABLES = np.arange(MAX_ORDER + 3.0), np.r_[1.0, 1 / np.arange(1.0, MAX_ORDER + 3)]
"""The integers and their reciprocals, for real arithmetic.

Nobody divides by zero here: the first integer is set where a function has grown beyond all numbers, and the first
reciprocal is the factor of what such a function counts as (see `stands_still`)."""


class Layout(NamedTuple):
    """A tape laid out for rows of `lanes` numbers and series of `orders` coefficients; places are indices into `c`."""

    size: int
    lanes: int
    orders: int
    dynamic: int  # where the series begin
    code: np.ndarray
    terms: np.ndarray  # (place of coefficient, place of source, place of the coefficient's tangents or 0)
    split: np.ndarray
    observe: np.ndarray
    constants: np.ndarray
    parameters: np.ndarray
    states: np.ndarray
    initial: np.ndarray
    outputs: np.ndarray
    inputs: np.ndarray
    guards: np.ndarray
    watched: np.ndarray
    quadratures: np.ndarray
    switches: np.ndarray
    time: int


def lay_out(tape: Tape, lanes: int, orders: int, free_states: bool = False) -> Layout:
    """The layout of a tape, kept while the tape lives; with `free_states` no initial state is known."""
    key = (lanes, orders, free_states)
    if key not in tape.layouts:
        layout = _lay_out(tape, lanes, orders)
        tape.layouts[key] = layout._replace(initial=np.full_like(layout.initial, -1)) if free_states else layout
    return tape.layouts[key]


def _lay_out(tape: Tape, lanes: int, orders: int) -> Layout:
    dynamic = 2 * tape.statics * lanes

    def place(registers: np.ndarray) -> np.ndarray:
        series = dynamic + (registers - tape.statics) * orders * lanes
        return np.where(registers < 0, -1, np.where(registers < tape.statics, 2 * registers * lanes, series))

    code = tape.code.copy()
    for column in (_OUT, _A, _B, _C):
        code[:, column] = place(code[:, column])
    kinds, registers, exponents = watched(tape).T
    coefficients = place(tape.terms[:, 0])
    tangents = np.where(tape.terms[:, 2] > 0, coefficients + lanes, 0)
    return Layout(
        size=dynamic + (tape.registers - tape.statics) * orders * lanes,
        lanes=lanes,
        orders=orders,
        dynamic=dynamic,
        code=code,
        terms=np.stack([coefficients, place(tape.terms[:, 1]), tangents], axis=1),
        split=tape.split,
        observe=code[tape.observe],
        constants=place(np.array([register for register, _ in tape.constants], dtype=np.int64)),
        parameters=place(tape.parameters),
        states=place(tape.states),
        initial=place(tape.initial),
        outputs=place(tape.outputs),
        inputs=place(tape.inputs),
        guards=place(tape.guards),
        watched=np.column_stack([kinds, place(registers), np.where(exponents < 0, exponents, place(exponents))]),
        quadratures=place(tape.quadratures[:, _OUT]),
        switches=place(tape.switches),
        time=int(place(np.array(tape.time))),
    )


@kernel
def combine(c, o, k, constant, terms, first, last, lanes, factor, modulus):
    """factor ([k = 0] constant + sum_i c_i s_{i,k}), written to `o`."""
    for lane in range(0, lanes, width(c)):
        total = zero(c)
        if k == 0 and constant >= 0:
            total = load(c, constant + lane)
        for i in range(3 * first, 3 * last, 3):
            source = peek(terms, i + 1) + k * lanes
            total = madd(total, peek(c, peek(terms, i)), load(c, source + lane), modulus)
            tangents = peek(terms, i + 2)
            if tangents > 0:
                total = madd(total, peek(c, source), load(c, tangents + lane), modulus)
        store(c, o + lane, madd(zero(c), factor, total, modulus))


@kernel
def convolve(c, o, a, b, first, last, k, lanes, modulus):
    """Lanes of sum_j a_j b_{k-j}, j = first..last; lane 0 comes out doubled."""
    step = width(c)
    x0, y0 = a + first * lanes, b + (k - first) * lanes
    lane = 0
    while lane + step < lanes:  # two blocks at a time, to keep the arithmetic units busy
        left, right, left2, right2 = zero(c), zero(c), zero(c), zero(c)
        x, y = x0, y0
        for _ in range(first, last + 1):
            p, q = peek(c, x), peek(c, y)
            left = madd(left, p, load(c, y + lane), modulus)
            right = madd(right, q, load(c, x + lane), modulus)
            left2 = madd(left2, p, load(c, y + lane + step), modulus)
            right2 = madd(right2, q, load(c, x + lane + step), modulus)
            x, y = x + lanes, y - lanes
        store(c, o + lane, add(left, right, modulus))
        store(c, o + lane + step, add(left2, right2, modulus))
        lane += 2 * step
    if lane < lanes:
        left, right = zero(c), zero(c)
        x, y = x0, y0
        for _ in range(first, last + 1):
            left = madd(left, peek(c, x), load(c, y + lane), modulus)
            right = madd(right, peek(c, y), load(c, x + lane), modulus)
            x, y = x + lanes, y - lanes
        store(c, o + lane, add(left, right, modulus))


@kernel
def convolve_plain(c, o, a, b, last, k, lanes, modulus):
    """Lanes of sum_j a_j b_{k-j}, j = 0..last, where b has no tangents."""
    top = b + k * lanes
    for lane in range(0, lanes, width(c)):
        even, odd = zero(c), zero(c)
        for j in range(0, last, 2):
            even = madd(even, peek(c, top - j * lanes), load(c, a + j * lanes + lane), modulus)
            odd = madd(odd, peek(c, top - (j + 1) * lanes), load(c, a + (j + 1) * lanes + lane), modulus)
        if last % 2 == 0:
            even = madd(even, peek(c, top - last * lanes), load(c, a + last * lanes + lane), modulus)
        store(c, o + lane, add(even, odd, modulus))


@kernel
def convolve_rate(c, o, a, b, last, k, lanes, integers, modulus):
    """Lanes of sum_j j a_j b_{k-j}, j = 1..last; lane 0 comes out doubled."""
    top = b + k * lanes
    for lane in range(0, lanes, width(c)):
        left, right = zero(c), zero(c)
        for j in range(1, last + 1):
            x, y, weight = a + j * lanes, top - j * lanes, peek(integers, j)
            left = madd(left, mul(weight, peek(c, x), modulus), load(c, y + lane), modulus)
            right = madd(right, mul(weight, peek(c, y), modulus), load(c, x + lane), modulus)
        store(c, o + lane, add(left, right, modulus))


@kernel
def square(c, o, a, k, lanes, modulus):
    """out_k = sum_j a_j a_{k-j}; one side of the convolution gives the value and half of every tangent."""
    convolve_plain(c, o, a, a, k, k, lanes, modulus)
    value = peek(c, o)
    for lane in range(0, lanes, width(c)):
        store(c, o + lane, add(load(c, o + lane), load(c, o + lane), modulus))
    poke(c, o, value)


@kernel
def divide(c, out, a, b, with_a, k, lanes, modulus):
    """q_k = (a_k - sum_{j>=1} b_j q_{k-j}) / b_0, and dq_k the same with - db_0 q_k more inside."""
    o = out + k * lanes
    convolve(c, o, b, out, np.int64(1), k, k, lanes, modulus)
    poke(c, o, half(peek(c, o), modulus))
    for lane in range(0, lanes, width(c)):
        numerator = load(c, a + k * lanes + lane) if with_a else zero(c)
        store(c, o + lane, sub(numerator, load(c, o + lane), modulus))
    reciprocal = inverse(peek(c, b), modulus)
    value = mul(peek(c, o), reciprocal, modulus)
    for lane in range(0, lanes, width(c)):
        inner = sub(load(c, o + lane), madd(zero(c), value, load(c, b + lane), modulus), modulus)
        store(c, o + lane, madd(zero(c), reciprocal, inner, modulus))
    poke(c, o, value)


@kernel
def elementary(function, x, exponent):
    """F(x), F'(x) and, for a power, its derivative with respect to the exponent (else 0)."""
    none = 0 * x
    if function == _EXP:
        y = np.exp(x)
        return y, y, none
    if function == _LOG:
        return np.log(x), 1 / x, none
    if function == _SIN:
        return np.sin(x), np.cos(x), none
    if function == _COS:
        return np.cos(x), -np.sin(x), none
    if function == _TAN:
        y = np.tan(x)
        return y, 1 + y * y, none
    if function == _SINH:
        return np.sinh(x), np.cosh(x), none
    if function == _COSH:
        return np.cosh(x), np.sinh(x), none
    if function == _TANH:
        y = np.tanh(x)
        return y, 1 - y * y, none
    if function == _SQRT:
        y = np.sqrt(x)
        return y, 1 / (y + y), none
    y = x**exponent
    return y, exponent * y / x, y * np.log(x)


def begin(c, o, a, b, e, function, lanes, tables, modulus):
    """Order zero of F(a): its value and tangents."""


@overload(begin)
def _begin(c, o, a, b, e, function, lanes, tables, modulus):
    return _begin_residue if c.dtype == types.uint64 else _begin_number


def stands_still(function, number):
    """Whether the value of a function is too large to be followed, or a power too small.

    Doubles end where exp(x) does: from there on exponentials and bounded powers are constant, so that 1/(1 + exp(x)) is
    zero and not undefined; other powers may overflow.  Those too small are zero, also at a base of zero.  Other numbers
    are never so large.  Whoever evaluates them looks whether twice as much would matter (see `caps`).
    """


@overload(stands_still)
def _stands_still(function, number):
    if number == types.float64:
        return lambda function, number: (
            (abs(number) >= _ENDS and function != _POWER) or (function >= _POWER and abs(number) < _VANISHED)
        )
    return lambda function, number: False


@kernel
def still(number, tables):
    """The value of a function where it stands still."""
    if abs(number) < 1:
        return 0.0
    poke(tables[0], 0, peek(tables[0], 1))
    factor = peek(tables[1], 0).real
    return _ENDS * factor if number.real > 0 else -_ENDS * factor


def _begin_number(c, o, a, b, e, function, lanes, tables, modulus):
    value, slope, growth = elementary(function, peek(c, a), peek(c, e))
    if stands_still(function, value):
        for lane in range(0, lanes, width(c)):
            store(c, o + lane, zero(c))
        poke(c, o, still(value, tables))
        return
    if not np.isfinite(slope):  # as of a root at zero: what does not move it has no part in it
        for lane in range(1, lanes):
            tangent = peek(c, a + lane)
            poke(c, o + lane, 0.0 * value if tangent == 0 else slope * tangent)
        poke(c, o, value)
        return
    for lane in range(0, lanes, width(c)):
        total = madd(zero(c), slope, load(c, a + lane), modulus)
        if function >= _POWER:
            total = madd(total, growth, load(c, e + lanes + lane), modulus)
        store(c, o + lane, total)
    poke(c, o, value)


@kernel
def function_at(function, x, exponent, tables):
    """F(x), or where it stands still."""
    value = elementary(function, x, exponent)[0]
    return still(value, tables) if stands_still(function, value) else value


def _begin_residue(c, o, a, b, e, function, lanes, tables, modulus):
    # The value was drawn beforehand; its slope F'(a) stands in b, once all values are there.
    value, slope = peek(c, o), peek(c, b)
    for lane in range(0, lanes, width(c)):
        store(c, o + lane, madd(zero(c), slope, load(c, a + lane), modulus))
    poke(c, o, value)


@kernel
def quadrature(c, out, a, b, e, function, reach, k, lanes, tables, modulus):
    """k y_k = sum_{j>=1} j a_j b_{k-j}, where y = F(a) and b = F'(a)."""
    o = out + k * lanes
    if k == 0:
        begin(c, o, a, b, e, function, lanes, tables, modulus)
    elif stands_still(function, peek(c, out)):
        for lane in range(0, lanes, width(c)):
            store(c, o + lane, zero(c))
    else:
        convolve_rate(c, o, a, b, min(k, reach), k, lanes, tables[0], modulus)
        poke(c, o, half(peek(c, o), modulus))
        for lane in range(0, lanes, width(c)):
            store(c, o + lane, madd(zero(c), peek(tables[1], k), load(c, o + lane), modulus))


@kernel
def execute(c, code, terms, first, last, k, dynamic, lanes, tables, modulus):
    """Order k of the instructions first..last-1."""
    for row in range(first * _COLUMNS, last * _COLUMNS, _COLUMNS):
        op, out, a, b = peek(code, row), peek(code, row + _OUT), peek(code, row + _A), peek(code, row + _B)
        extra, o = peek(code, row + _C), out + k * lanes
        if op <= _ADVANCE:
            lead = 1 if op == _ADVANCE else 0
            factor = peek(tables[2], k + 1) if op == _ADVANCE else peek(tables[1], 1)
            begin, end = peek(code, row + _BEGIN), peek(code, row + _END)
            combine(c, o + lead * lanes, k, extra, terms, begin, end, lanes, factor, modulus)
        elif op == _MULTIPLY:
            last_order = min(k, peek(code, row + _REACH))
            if peek(code, row + _PLAIN):
                convolve_plain(c, o, a, b, last_order, k, lanes, modulus)
            else:
                convolve(c, o, a, b, np.int64(0), last_order, k, lanes, modulus)
                poke(c, o, half(peek(c, o), modulus))
        elif op == _SQUARE:
            square(c, o, a, k, lanes, modulus)
        elif op == _DIVIDE:
            divide(c, out, a, b, k == 0 or a >= dynamic, k, lanes, modulus)
        else:
            e = extra if extra >= 0 else a
            function, reach = peek(code, row + _FUNCTION), peek(code, row + _REACH)
            quadrature(c, out, a, b, e, function, reach, k, lanes, tables, modulus)
        if out < dynamic:
            keep_tangents(c, out, lanes)


@kernel
def keep_tangents(c, out, lanes):
    """Fill the second row of a static register: its tangents without its value."""
    value = peek(c, out)
    for lane in range(0, lanes, width(c)):
        store(c, out + lanes + lane, load(c, out + lane))
    poke(c, out + lanes, value * 0)


@interprets(types.float64, types.complex128)
def interpret_numbers(c, code, terms, first, last, low, high, dynamic, lanes, integers, reciprocals, advances, modulus):
    """Orders low..high-1 of the instructions first..last-1, for doubles and complex numbers."""
    for k in range(low, high):
        execute(c, code, terms, first, last, k, dynamic, lanes, (integers, reciprocals, advances), 0)


@interprets(types.uint64)
def interpret_residues(
    c, code, terms, first, last, low, high, dynamic, lanes, integers, reciprocals, advances, modulus
):
    """Orders low..high-1 of the instructions first..last-1, for residues."""
    tables, field = (integers, reciprocals, advances), (peek(modulus, 0), peek(modulus, 1), peek(modulus, 2))
    for k in range(low, high):
        execute(c, code, terms, first, last, k, dynamic, lanes, tables, field)


@kernel
def set_row(c, place, rows, i, dynamic, lanes):
    """Write the value and tangents of rows[i] to order zero of a register."""
    for lane in range(lanes):
        poke(c, place + lane, rows[i, lane])
    if place < dynamic:
        keep_tangents(c, place, lanes)


@kernel
def prepare(c, layout, constants, parameters, states, tables, modulus):
    """Order zero of everything static, and of the states; known initial states are written into `states` too."""
    lanes, dynamic = layout.lanes, layout.dynamic
    code, terms, static = pointer(layout.code), pointer(layout.terms), layout.split[0]
    for i in range(len(constants)):
        poke(c, layout.constants[i], constants[i])
    for i in range(len(parameters)):
        set_row(c, layout.parameters[i], parameters, i, dynamic, lanes)
    # Known initial states come from static instructions, and a static state may feed others: hence two rounds.
    known = False
    for i in range(len(states)):
        known = known or layout.initial[i] >= 0
    for _ in range(2 if known else 1):
        for i in range(len(states)):
            set_row(c, layout.states[i], states, i, dynamic, lanes)
        run(c, code, terms, 0, static, 0, dynamic, lanes, tables, modulus)
        for i in range(len(states)):
            if layout.initial[i] >= 0:
                for lane in range(lanes):
                    states[i, lane] = peek(c, layout.initial[i] + lane)


@kernel
def expand(c, layout, t, low, high, last, tables, modulus):
    """Orders low..high-1 of the series instructions before `last`, at time t; the states come to order `high`."""
    poke(c, layout.time, t)
    if layout.orders > 1:
        poke(c, layout.time + layout.lanes, peek(tables[2], 1))
    code, terms = pointer(layout.code), pointer(layout.terms)
    for k in range(low, high):
        run(c, code, terms, layout.split[0], last, k, layout.dynamic, layout.lanes, tables, modulus)
