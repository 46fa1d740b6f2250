"""Records: what is asked for along a solution, taken down at its times and, where jumps happen, between them."""

from __future__ import annotations

from odejet.jets.caps import is_marked, spoil
from odejet.jets.jumps import happen
from odejet.jets.lanes import WIDTH, kernel, load, peek, pointer, poke, store
from odejet.jets.shared import run


@kernel
def observe(memory, layout, drive, times, first, last, trajectory, outputs, tables, modulus):
    """All outputs at times[first:last], from the states there."""
    c = pointer(memory)
    lanes, n, q, m = layout.lanes, len(layout.states), len(layout.outputs), len(layout.inputs)
    code, terms, source, target = pointer(layout.observe), pointer(layout.terms), pointer(trajectory), pointer(outputs)
    inputs, driven = pointer(layout.inputs), pointer(drive.values)
    for i in range(first, last):
        poke(c, layout.time, times[i])
        for j in range(m):
            poke(c, peek(inputs, j), peek(driven, i * m + j))
        for s in range(n):
            if layout.states[s] >= layout.dynamic:
                for lane in range(0, lanes, WIDTH):
                    store(c, layout.states[s] + lane, load(source, (i * n + s) * lanes + lane))
        run(c, code, terms, 0, len(layout.observe), 0, layout.dynamic, lanes, tables, modulus)
        for j in range(q):
            for lane in range(0, lanes, WIDTH):
                store(target, (i * q + j) * lanes + lane, load(c, layout.outputs[j] + lane))
        if is_marked(tables):
            spoil(c, layout, pointer(layout.code), code, terms, target, i * q * lanes, lanes, tables)


@kernel
def record(layout, flat, drive, states, arrays, times, done, t, tables):
    """Rows of the states as what is asked for at t, and the outputs there; `flat` is the layout of a point."""
    first = done
    while done < len(times) and times[done] == t:
        for i in range(len(states)):
            for lane in range(layout.lanes):
                arrays.trajectory[done, i, lane] = states[i, lane]
        done += 1
    observe(arrays.point_memory, flat, drive, times, first, done, arrays.trajectory, arrays.outputs, tables, 0)
    return done


@kernel
def pass_jumps(c, layout, point, flat, drive, before, after, jumps, switches, states, arrays, times, done, t, tables):
    """All jumps at t, or up to one that does not happen, and what is asked for at t before the first that follows it:
    whether all happened, and the times done."""
    happened = True
    while happened and jumps.done[0] < len(jumps.times) and jumps.times[jumps.done[0]] == t:
        if jumps.follows[jumps.done[0]]:
            done = record(layout, flat, drive, states, arrays, times, done, t, tables)
        happened = happen(c, layout, point, flat, drive, before, after, jumps, switches, states, arrays, t, tables)
    if happened:
        done = record(layout, flat, drive, states, arrays, times, done, t, tables)
    return happened, done
