"""Abreast: the right-hand sides at several points of time and state at once, one in each lane.

The registers are those of a layout with two orders, whose lanes elsewhere hold tangents.  What is static is the same in
all lanes.  An instruction is read once for all points, which takes longer than its arithmetic.
"""

from __future__ import annotations

from odejet.jets.kernel import function_at
from odejet.jets.lanes import WIDTH, kernel, load, madd, peek, poke, product, quotient, store, zero
from odejet.model.tape import Column, Op

_OUT, _A, _B, _C = int(Column.OUT), int(Column.A), int(Column.B), int(Column.C)
_FUNCTION, _BEGIN, _END, _COLUMNS = int(Column.FUNCTION), int(Column.BEGIN), int(Column.END), len(Column)
_ADVANCE, _MULTIPLY, _SQUARE, _DIVIDE = int(Op.ADVANCE), int(Op.MULTIPLY), int(Op.SQUARE), int(Op.DIVIDE)


@kernel
def take_statics(point, source, count):
    """What is static, into so many lanes of each register, from the values in the registers of another layout."""
    for register in range(point.dynamic // (2 * point.lanes)):
        value = peek(source.p, 2 * register * source.lanes)
        for lane in range(count):
            poke(point.p, 2 * register * point.lanes + lane, value)


@kernel
def find_rates_abreast(point, piece, t, h, places, count):
    """Time derivatives of all states at t + h times the places of so many lanes, from their values in the registers.

    They are the first orders of the states.  Lanes without a place have that of the first.
    """
    c, lanes = point.p, point.lanes
    for lane in range(lanes):
        now = t + h * places[lane if lane < count else 0]
        for i in range(point.sampled):
            a, d, total = 4 * (i * point.pieces + piece), now - peek(point.knots, piece), 0.0
            for k in range(3, -1, -1):
                total = total * d + peek(point.coefficients, a + k)
            poke(c, peek(point.inputs, i) + lane, total)
        poke(c, point.time + lane, now)
    run_abreast(point, point.code, point.first, point.last, count)


@kernel
def run_abreast(point, code, first, last, count):
    """Values of the instructions first..last-1 in all lanes, of which so many have a point."""
    c, lanes, terms = point.p, point.lanes, point.terms
    for row in range(first * _COLUMNS, last * _COLUMNS, _COLUMNS):
        op, out, a, b = peek(code, row), peek(code, row + _OUT), peek(code, row + _A), peek(code, row + _B)
        if op <= _ADVANCE:
            constant, out = peek(code, row + _C), out + lanes if op == _ADVANCE else out
            begin, end = 3 * peek(code, row + _BEGIN), 3 * peek(code, row + _END)
            lane = 0
            while lane + WIDTH < lanes:  # two blocks at a time: a term is looked up once for both
                total = load(c, constant + lane) if constant >= 0 else zero(c)
                beside = load(c, constant + lane + WIDTH) if constant >= 0 else zero(c)
                for i in range(begin, end, 3):
                    weight, source = peek(c, peek(terms, i)), peek(terms, i + 1) + lane
                    total = madd(total, weight, load(c, source), 0)
                    beside = madd(beside, weight, load(c, source + WIDTH), 0)
                store(c, out + lane, total)
                store(c, out + lane + WIDTH, beside)
                lane += 2 * WIDTH
            if lane < lanes:
                total = load(c, constant + lane) if constant >= 0 else zero(c)
                for i in range(begin, end, 3):
                    total = madd(total, peek(c, peek(terms, i)), load(c, peek(terms, i + 1) + lane), 0)
                store(c, out + lane, total)
        elif op <= _SQUARE:
            b = b if op == _MULTIPLY else a
            for lane in range(0, lanes, WIDTH):
                store(c, out + lane, product(load(c, a + lane), load(c, b + lane)))
        elif op == _DIVIDE:
            for lane in range(0, lanes, WIDTH):
                store(c, out + lane, quotient(load(c, a + lane), load(c, b + lane)))
        else:
            function, e = peek(code, row + _FUNCTION), peek(code, row + _C)
            for lane in range(count):
                poke(c, out + lane, function_at(function, peek(c, a + lane), peek(c, e if e >= 0 else a), point.tables))
