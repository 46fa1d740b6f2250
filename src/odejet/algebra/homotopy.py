"""Homotopy: roots followed while the data move, from data whose roots are known to any number of targets.

A path is a root z(s) of Phi(z, u(s)) = d(s) for s from 0 to 1.  Each datum moves on a curve of its own,

    m(s) = m0 exp(s log(m1/m0) + s (1 - s) bend)        geometric, between numbers of any size and phase
    m(s) = m0 + s (m1 - m0) + s (1 - s) bend            straight, where one of them is zero or both are close

so that for generic m0, or a generic complex bend, no two roots meet on the way (Sommese and Wampler 2005, ch. 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odejet.algebra.newton import NEXT, Program, Work
from odejet.algebra.system import SquareSystem, Targets
from odejet.algebra.tracker import DEFAULT, Ends, PathEnd, Settings, follow_all
from odejet.budget import Budget
from odejet.jets.kernel import TABLES, Layout, lay_out

_COMPLEX_TABLES = tuple(table.astype(complex) for table in TABLES)

ZERO = 1e-100
"""Data below this, relative to where they come from or go to, are zero."""
SLICE = 5e7
"""Work between two looks at the clock."""
SETUP = 1e6
"""Work of a call for however few paths."""


@dataclass(frozen=True)
class Paths:
    """Ends of paths, (paths, unknowns), with outcomes; where a path failed, the last point on it."""

    roots: np.ndarray
    outcomes: np.ndarray
    errors: np.ndarray
    """The last correction, relative to the unknowns."""
    steps: np.ndarray
    evaluations: np.ndarray

    @property
    def converged(self) -> np.ndarray:
        return self.outcomes == PathEnd.CONVERGED

    def census(self) -> dict[str, int]:
        """How many paths ended how."""
        return {end.name.lower(): int(np.sum(self.outcomes == end)) for end in PathEnd}


def track(
    system: SquareSystem,
    starts: np.ndarray,
    begin: Targets,
    end: Targets,
    *,
    bend: float = 0.0,
    rng: np.random.Generator | None = None,
    settings: Settings = DEFAULT,
    budget: Budget | None = None,
) -> Paths:
    """Follow a root of each `begin` to a root of each `end`.

    `bend` is the size of a random complex detour, relative to what moves: needed between real data.  Paths that begin
    and end at the same data take the same detour, so that they cannot meet.  Paths that the budget leaves are
    unfinished.
    """
    budget = budget or Budget()
    lanes = len(system.names) + 2
    layout = lay_out(system.tape, lanes, system.highest + 2, free_states=True)
    program = _program(system, layout)
    everything = np.zeros((len(system.names), lanes), dtype=complex)
    everything[np.arange(len(system.names)), 1 + np.arange(len(system.names))] = 1.0
    everything[system.held, 0] = end.fixed
    n = len(system.joined.together.states)
    paths = _paths(_flat(begin), _flat(end), bend, rng)
    lifted = _lifted(system, program, starts, begin)
    ends = _ends(lifted)
    work = _work(layout, program, lifted.shape[1], paths[0].shape[1])
    parameters, states = everything[n:].copy(), everything[:n].copy()
    cost, done, under_way = system.newton_work, 0, False
    budget.spend(SETUP)
    evaluations = max(int(SLICE / cost), 1)
    while done < len(lifted) and not budget.over:
        done, under_way, spent = follow_all(
            layout,
            program,
            parameters,
            states,
            lifted,
            paths,
            _COMPLEX_TABLES,
            settings,
            work,
            ends,
            done,
            under_way,
            evaluations,
        )
        budget.spend(cost * spent)
    return Paths(np.ascontiguousarray(ends.roots[:, -len(system.columns) :]), *ends[1:])


def _work(layout: Layout, program: Program, n: int, moving: int) -> Work:
    return Work(
        residual=np.zeros(n, complex),
        along=np.zeros(n, complex),
        jacobian=np.zeros((n, n), complex),
        rates=np.zeros((len(program.places), program.order, layout.lanes), complex),
        pivots=np.zeros(n, np.int64),
        filled=np.zeros(n, np.int64),
        moving=np.zeros(moving, complex),
        motion=np.zeros(moving, complex),
        step=np.zeros(n, complex),
        sizes=np.zeros(n),
        scales=np.zeros(n),
        table=np.zeros(2 * NEXT, complex),
        points=np.zeros((NEXT + 1, n), complex),
        slopes=np.zeros((NEXT + 1, n), complex),
        times=np.zeros(NEXT + 1),
        progress=np.zeros(3),
        counts=np.zeros(3, np.int64),
        memory=np.zeros(layout.size, complex),
    )


def _ends(starts: np.ndarray) -> Ends:
    count = len(starts)
    return Ends(
        roots=starts.copy(),
        outcomes=np.full(count, PathEnd.UNFINISHED, np.int64),
        errors=np.ones(count),
        steps=np.zeros(count, np.int64),
        evaluations=np.zeros(count, np.int64),
    )


def _program(system: SquareSystem, layout: Layout) -> Program:
    """The unknowns in their order: coefficients of the states, the highest first, then those of the system."""
    n, order = len(system.joined.together.states), system.highest
    places = np.full((n, order + 1), -1, dtype=np.int64)
    moving = np.flatnonzero(layout.states >= layout.dynamic)
    for k in range(1, order + 1):
        places[moving, k] = (order - k) * len(moving) + np.arange(len(moving))
    own = np.full(len(system.names), -1, dtype=np.int64)
    own[system.columns] = order * len(moving) + np.arange(len(system.columns))
    places[:, 0] = own[:n]
    return Program(system.tape.constant_values.astype(complex), system.row_array, places, own[n:].copy(), order)


def _lifted(system: SquareSystem, program: Program, starts: np.ndarray, begin: Targets) -> np.ndarray:
    """All unknowns at the start of each path: coefficients of the states as they follow from those of the system."""
    series = system.series(starts.astype(complex), begin.inputs, begin.fixed)
    lifted = program.places[:, 1:] >= 0
    everything = np.empty((len(starts), np.sum(lifted) + starts.shape[1]), dtype=complex)
    everything[:, program.places[:, 1:][lifted]] = series[:, :, 1:][:, lifted]
    everything[:, np.sum(lifted) :] = starts
    return everything


def _flat(targets: Targets) -> np.ndarray:
    """Everything that moves, one target per row."""
    return np.concatenate([targets.data, targets.inputs.reshape(len(targets.data), -1)], axis=1).astype(complex)


def _paths(begin: np.ndarray, end: np.ndarray, bend: float, rng: np.random.Generator | None) -> tuple:
    """Start, shift, bend and kind of every datum on every path."""
    near = np.abs(end - begin) < 0.5 * np.abs(begin)
    geometric = ~near & (np.abs(end) > ZERO * np.abs(begin)) & (np.abs(begin) > ZERO * np.abs(end))
    shift = end - begin
    shift[geometric] = np.log(end[geometric] / begin[geometric])
    turns = np.zeros_like(shift)
    if bend and rng is not None:
        phases = rng.normal(size=shift.shape[1]) + 1j * rng.normal(size=shift.shape[1])
        turns = bend * phases * np.where(geometric, 1.0, np.abs(shift))
    return begin, shift, turns, geometric
