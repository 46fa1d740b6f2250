"""Rest: where a model comes to rest, with the exact derivative of that state.

At rest the rates vanish, f(x, p) = 0, with the time and the inputs held still.  Newton's method with the Jacobian of
the tape finds such a state, and the implicit function theorem its derivative, J dx = -df/dp dp.  Sums w x that every
solution conserves make J singular; there the equations w x = w x_start replace as many others.

Which state is meant where there are several is for the solution itself to say: where it is told from which states the
rest was approached, the equations are integrated from there for longer and longer, until Newton's method ends nearby.
A state that solutions leave again is none to start from.

Where the model switches, or events wait for conditions, the solution is followed through them until the mode that it
is in has a stable steady state nearby and no switching function can change its sign on the way there.  What is
conserved is what that mode conserves; totals come from the solution itself, for events may have changed them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from odejet.errors import ModelError
from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.lanes import padded
from odejet.jets.numeric import jets, seeded
from odejet.jets.registers import Registers
from odejet.model import Model
from odejet.model.expressions import Expression, evaluate
from odejet.model.modes import Branches, mode
from odejet.model.tape import Tape
from odejet.simulate.flow import Flow, Outcome
from odejet.simulate.program import Ready

ROUNDING = 1e-12
"""Steps of Newton's method below this part of the states are rounding."""

EPSILON = float(np.finfo(float).eps)

ITERATIONS = 30
"""Of Newton's method, which near a solution needs five."""

RELAXATIONS = 30
"""Implicit steps of growing length from a guess, where nothing tells from which states the rest was approached."""

CLOSE = 1e-6
"""Rates as small beside their own terms are those of a point from which Newton's method arrives."""

LEGS, LONGER = (7, 7), 8.0
"""How often, and by which factor, the time of integration grows: from the fastest rate on, over twelve decades.

To set out anew takes longer than the few steps from one time to the next, so that times are asked for by the half."""

NEARBY = 0.05
"""A solution that is as close to a stable steady state, relative to the states, ends there."""

NEUTRAL = 1e-13
"""Eigenvalues as small beside the largest are rounding, and do not bring anything to rest."""

BRIEF: dict[str, Any] = {"tolerance": 1e-8, "max_steps": 3500, "stiff_steps": 350}
"""What each of these integrations may cost."""

MARGIN = 10.0
"""How much further from a steady state than it is now a solution may get on its way there."""

DEPENDENT = 1e-9
"""Singular values as small beside the largest belong to conserved sums: rates at random points leave a wide gap."""


@dataclass(frozen=True, eq=False)
class Laws:
    """Sums of states that never change, one per row of weights."""

    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def replaced(self) -> np.ndarray:
        """Equations that follow from the others, as the laws say."""
        from scipy.linalg import qr  # loaded when it is first asked for: most models start anywhere

        return np.asarray(qr(self.weights, pivoting=True, mode="r")[1][: len(self)])

    @cached_property
    def free(self) -> np.ndarray:
        """A basis of the directions in which totals do not change."""
        return np.linalg.svd(self.weights)[2][len(self) :].T if len(self) else np.eye(self.weights.shape[1])


Zero = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Where rates vanish, with their derivatives there by states and by parameters."""


class Slopes:
    """The rates of a tape with their derivatives by states and by parameters, at one state after the other."""

    def __init__(self, tape: Tape, parameters: int) -> None:
        self.states, self.parameters = len(tape.states), parameters
        lanes = padded(1 + self.states + parameters)
        self.layout = layout = lay_out(tape, lanes, 3, True)
        self.registers = Registers(layout, 1, float, TABLES)
        self.registers.prepare(
            tape.constant_values,
            seeded(np.zeros(parameters), 1, parameters, lanes, 1 + self.states, float),
            seeded(np.zeros(self.states), 1, self.states, lanes, 1, float),
        )
        self.moving = np.flatnonzero(layout.states >= layout.dynamic)
        self.places = layout.states[self.moving, None] + lanes + np.arange(lanes)

    def under(self, p: np.ndarray) -> Slopes:
        """Return a copy with memory of its own and these parameters in it."""
        made = copy(self)
        made.registers = self.registers.copy()
        made.registers.memory[0, self.layout.parameters] = p
        return made

    def at(self, x: np.ndarray) -> Zero:
        memory, n = self.registers.memory, self.states
        memory[0, self.layout.states] = x
        self.registers.run(self.layout.code[: self.layout.split[0]], 1)
        self.registers.expand(np.zeros(1), 2)
        found = np.zeros((n, self.layout.lanes))
        found[self.moving] = memory[0, self.places]
        return found[:, 0], found[:, 1 : 1 + n], found[:, 1 + n : 1 + n + self.parameters]


@dataclass(frozen=True, eq=False)
class Rested:
    """A steady state in rows of value and derivatives, or why there is none."""

    rows: np.ndarray
    outcome: Outcome


class Rest:
    """The steady states of a model in which nothing depends on time, as a function of its parameters.

    Where it is told from which states rest is approached, by the model or by a call, the steady state is the one that
    the solution reaches.
    """

    def __init__(self, model: Model, approached: bool = False) -> None:
        self.flow = Flow(model)
        self.approached = approached or not model.free_states
        self._last: dict[bool, tuple[bytes, Rested]] = {}  # the last that was known, with and without derivatives
        self._slopes: dict[int, Slopes] = {}  # by tape
        laws, are_numbers = self.conserved()
        self._laws: dict[int | None, tuple[Laws, bool]] = {None: (laws, are_numbers)}  # by tape
        lost = [name for i, name in enumerate(model.states) if np.any(np.abs(laws.weights[:, i]) > DEPENDENT)]
        missing = [name for name in lost if name in model.free_states]
        if missing and not approached:
            raise ModelError(
                f"{model.name}: a sum of {', '.join(lost[:8])} does not change, so that the steady state depends on "
                f"where it is approached from; tell `before` a value of {', '.join(missing[:8])}"
            )

    # --- equations ---

    def value(self, g: Expression, x: np.ndarray, p: np.ndarray) -> float:
        """A switching function at a point."""
        model = self.flow.model
        values = {name: float(value) for name, value in model.fixed.items()}
        values |= dict(zip((*model.states, *model.parameters), [*x.tolist(), *p.tolist()], strict=True))
        try:
            return float(evaluate(g, values, math))
        except (ArithmeticError, ValueError, TypeError):
            return 0.0

    def ready(self, x: np.ndarray, p: np.ndarray) -> Ready:
        """The mode of a model with switches at a point: each with the branch that it takes there."""
        program = self.flow.program
        assert program is not None
        branches = Branches(
            lambda g: int(np.sign(self.value(g, x, p))), lambda argument: math.floor(self.value(argument, x, p))
        )
        return program.ready(mode(program.equations, program.branching, program.conditions, branches))

    def tape(self, x: np.ndarray, p: np.ndarray) -> Tape:
        """The equations at a point."""
        return self.flow.tape if self.flow.program is None else self.ready(x, p).tape

    def rates(self, x: np.ndarray, p: np.ndarray, tape: Tape | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The rates at points, one per row, and their derivatives by parameters; of one mode if its tape is given."""
        n = x.shape[1]
        if tape is None and self.flow.program is None:
            tape = self.flow.tape
        with np.errstate(all="ignore"):
            if tape is not None:
                found = jets(tape, x, p, order=1, tangents=True).states[:, :, 1]
            else:
                each = [
                    jets(self.tape(a, b), a[None], b[None], order=1, tangents=True) for a, b in zip(x, p, strict=True)
                ]
                found = np.concatenate([one.states[:, :, 1] for one in each])
        return found[..., 0], found[..., 1 + n :]

    def slopes(self, tape: Tape) -> Slopes:
        """Rates with derivatives, set up once for every tape."""
        if id(tape) not in self._slopes:
            self._slopes[id(tape)] = Slopes(tape, len(self.flow.model.parameters))
        return self._slopes[id(tape)]

    def conserved(self, tape: Tape | None = None) -> tuple[Laws, bool]:
        """Sums of states that never change, or not in one mode, one per row, at random parameters; and whether the
        parameters matter."""
        rng = np.random.default_rng(0)
        n, m = len(self.flow.model.states), len(self.flow.model.parameters)
        points, ones = np.exp(rng.normal(size=(2 * n + 4, n))), np.ones((2 * n + 4, 1))
        each = np.exp(rng.normal(size=(len(points), m)))
        for_all, for_one = (_dependent(self.rates(points, p, tape)[0]) for p in (each, ones * each[:1]))
        return (Laws(for_all), True) if len(for_all) == len(for_one) else (Laws(for_one), False)

    def laws_at(self, p: np.ndarray, tape: Tape | None = None) -> tuple[Laws, np.ndarray]:
        """The sums that never change with these parameters, and their derivatives by parameters.

        With rates F at many points w F = 0, hence dw F = -w dF; what dw adds along other laws does not matter.
        """
        key = None if tape is None else id(tape)
        if key not in self._laws:
            self._laws[key] = self.conserved(tape)
        laws, are_numbers = self._laws[key]
        n = laws.weights.shape[1]
        if are_numbers or not len(laws):
            return laws, np.zeros((len(laws), n, len(p)))
        points = np.exp(np.random.default_rng(1).normal(size=(2 * n + 4, n)))
        rates, slopes = self.rates(points, np.tile(p, (len(points), 1)), tape)
        weights = _dependent(rates, len(laws))
        moved = -np.einsum("ki,xip->kxp", weights, slopes)
        return Laws(weights), np.einsum("kxp,xi->kip", moved, np.linalg.pinv(rates).T, optimize=True)

    # --- solutions ---

    def known(self, p: np.ndarray, derivatives: bool) -> Rested:
        """The steady state that is approached from where the model says, in rows of value and derivatives by `p`.

        The last one is remembered: experiments that begin at the same rest ask for it one after the other.
        """
        key = p.tobytes()
        if derivatives not in self._last or self._last[derivatives][0] != key:
            lanes = np.arange(1, 1 + len(p)) if derivatives else np.zeros(0, dtype=int)
            self._last[derivatives] = key, self.settled(p, self.started(p, derivatives), lanes)
        return self._last[derivatives][1]

    def settled(self, p: np.ndarray, start: np.ndarray, lanes: np.ndarray) -> Rested:
        """The steady state for these values.

        `start` has rows of value and derivatives, of which those by `p` are in `lanes`, if there are any.
        """
        if self.approached and self.flow.program is not None:
            return self.followed(p, lanes, start)
        laws, slopes = self.laws_at(p)
        point = _Point(self, p, laws, laws.weights @ start[:, 0])
        zero, outcome = point.found(start[:, 0], self.approached)
        return Rested(start if zero is None else point.derived(zero, start, lanes, slopes), outcome)

    def followed(self, p: np.ndarray, lanes: np.ndarray, start: np.ndarray) -> Rested:
        """The steady state of a model with switches that the solution from the start reaches, through all events."""
        unstable, sizes = False, np.abs(start[:, 0])
        for time, x in _Point(self, p, Laws(np.zeros((0, len(start)))), np.zeros(0)).integrated(start[:, 0]):
            sizes = np.maximum(sizes, np.abs(x))
            mode = self.ready(x, p)
            laws, slopes = self.laws_at(p, mode.tape)
            rows = start
            for exactly in (False, True):
                point = _Point(self, p, laws, laws.weights @ x, mode.tape)
                zero = point.newton(x, NEARBY)
                stable = zero is not None and point.is_stable(zero[1])
                unstable = unstable or (zero is not None and not stable)
                if zero is None or not stable or not self.is_settled(mode, x, zero[0], sizes, p):
                    break
                if exactly or not len(laws):
                    return Rested(point.derived(zero, rows, lanes, slopes), Outcome.COMPLETED)
                # What the mode conserves is what the solution has brought there.
                found = self.carried(p, lanes, start, time)
                if found is None or self.ready(found[:, 0], p) is not mode:
                    break
                rows, x = found, found[:, 0]
        return Rested(start, Outcome.UNSTABLE if unstable else Outcome.RESTLESS)

    def carried(self, p: np.ndarray, lanes: np.ndarray, start: np.ndarray, time: float) -> np.ndarray | None:
        """Rows of the solution from rows at the start, after some time."""
        n, used = start.shape
        run = self.flow.run(p, start[:, 0], [time], start=0.0, sensitivities=used > 1, free_states=True)
        if run.outcome is not Outcome.COMPLETED:
            return None
        rows, found = np.zeros((n, used)), run.states[0]
        rows[:, 0] = found[:, 0]
        if used > 1:
            rows[:, 1:] = found[:, 1 : 1 + n] @ start[:, 1:]
            rows[:, lanes] += found[:, 1 + n :]
        return rows

    def is_settled(self, mode: Ready, x: np.ndarray, rest: np.ndarray, sizes: np.ndarray, p: np.ndarray) -> bool:
        """Whether no switching function changes its sign on the way from x to a steady state.

        On the way states stay within a multiple of the distance, relative to the size that each has had; a function
        that vanishes at rest to rounding is not reached in finite time.
        """
        scales = np.where(sizes > 0, sizes, 1.0)
        distance = float((np.abs(x - rest) / scales).max(initial=0.0))
        for g in mode.watched:
            there = self.value(g, rest, p)
            slack, rounding = (
                sum(abs(self.value(g, rest + shift * row, p) - there) for row in np.diag(sizes))
                for shift in (MARGIN * distance, ROUNDING)
            )
            held = abs(there) > slack and there * self.value(g, x, p) > 0
            if not held and not (abs(there) <= rounding and distance <= CLOSE):
                return False
        return True

    def started(self, p: np.ndarray, derivatives: bool) -> np.ndarray:
        """Where the model itself says that rest is approached from; one where it does not."""
        n, free = len(self.flow.model.states), len(self.flow.model.free_states)
        rows = self.flow.run(p, np.ones(n), [0.0], start=0.0, sensitivities=derivatives).states[0]
        return np.delete(rows, np.arange(1, 1 + free), axis=1) if derivatives else rows


def _dependent(rates: np.ndarray, count: int | None = None) -> np.ndarray:
    """An orthonormal basis of the combinations of columns that vanish in every row, so many if the number is known."""
    rates = rates[np.isfinite(rates).all(axis=1)]
    if not len(rates):
        return np.zeros((0, rates.shape[1]))
    sizes = np.abs(rates).max(axis=0)
    sizes[sizes == 0] = 1.0
    _, values, basis = np.linalg.svd(rates / sizes, full_matrices=True)
    values = np.r_[values, np.zeros(len(basis) - len(values))]
    if count is None:
        count = int(np.sum(values <= DEPENDENT * values.max(initial=0.0)))
    # A combination of scaled columns is one of the columns themselves, with other weights.
    weights = basis[len(basis) - count :] / sizes
    return np.linalg.qr(weights.T)[0].T if count else weights


@dataclass(frozen=True, eq=False)
class _Point:
    """The search for a steady state with given parameters and given totals of what is conserved."""

    rest: Rest
    p: np.ndarray
    laws: Laws
    totals: np.ndarray
    mode: Tape | None = None  # in which it is searched; else in the one of each point

    @cached_property
    def _slopes(self) -> dict[int, Slopes]:
        return {}

    def rates(self, x: np.ndarray) -> Zero:
        """The rates at a state, and their derivatives by states and by parameters."""
        tape = self.mode or self.rest.tape(x, self.p)
        if id(tape) not in self._slopes:
            self._slopes[id(tape)] = self.rest.slopes(tape).under(self.p)
        return self._slopes[id(tape)].at(x)

    def solve(self, jacobian: np.ndarray, right: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """dx with J dx = right, where the laws have these right-hand sides instead."""
        matrix, right = jacobian.copy(), right.copy()
        if len(self.laws):
            replaced = self.laws.replaced
            matrix[replaced], right[replaced] = self.laws.weights, totals
        sizes = np.abs(matrix).max(axis=1, keepdims=True)
        sizes[sizes == 0] = 1.0
        try:
            return np.linalg.solve(matrix / sizes, right / (sizes if right.ndim > 1 else sizes[:, 0]))
        except np.linalg.LinAlgError:
            return np.full_like(right, np.nan)

    def derived(self, zero: Zero, start: np.ndarray, lanes: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Rows of a steady state, from rows with the same totals; `slopes` are those of the laws by parameters."""
        x, jacobian, by_parameters = zero
        rows = np.zeros_like(start)
        rows[:, 0] = x
        if start.shape[1] > 1:
            right, totals = np.zeros((len(x), start.shape[1] - 1)), self.laws.weights @ start[:, 1:]
            right[:, lanes - 1] = -by_parameters
            totals[:, lanes - 1] += np.einsum("kip,i->kp", slopes, start[:, 0] - x)
            rows[:, 1:] = self.solve(jacobian, right, totals)
        return rows

    def found(self, start: np.ndarray, approached: bool) -> tuple[Zero | None, Outcome]:
        """The steady state that solutions from the start reach; any stable one near it if nothing says more."""
        unstable = False
        for way in itertools.chain([] if approached else self.guesses(start), (x for _, x in self.integrated(start))):
            zero = self.newton(way, NEARBY if approached else np.inf)
            if zero is not None and self.is_stable(zero[1]):
                return zero, Outcome.COMPLETED
            unstable = unstable or zero is not None
        return None, Outcome.UNSTABLE if unstable else Outcome.RESTLESS

    def newton(self, start: np.ndarray, nearby: float) -> Zero | None:
        """The zero of the rates to which Newton's method leads, to rounding; None if it leads nowhere, or far away."""
        x = start
        for _ in range(ITERATIONS):
            rates, jacobian, _ = self.rates(x)
            if not (np.isfinite(rates).all() and np.isfinite(jacobian).all()):
                return None
            step = self.solve(jacobian, -rates, self.totals - self.laws.weights @ x)
            if not np.isfinite(step).all():
                return None
            x = x + step
            if nearby < np.inf and np.abs(x - start).max() > nearby * max(np.abs(start).max(), np.abs(x).max()):
                return None
            sizes = np.maximum(np.abs(x), ROUNDING * np.abs(x).max())
            terms = np.abs(jacobian) @ sizes
            if np.all(np.abs(step) <= ROUNDING * sizes) or np.all(np.abs(rates) <= EPSILON * terms):
                # Those rates too must vanish whose equations the laws have replaced.
                return self.cleared(x) if np.all(np.abs(rates) <= CLOSE * terms) else None
        return None

    def cleared(self, x: np.ndarray) -> Zero:
        """A zero of the rates, without what rounding has left of states that can be zero just as well.

        Solutions would have to follow such remains while they die away, each as exactly as it is small.
        """
        remains = (x != 0) & (np.abs(x) <= ROUNDING * np.abs(x).max(initial=0.0))
        while remains.any():
            rates, jacobian, by_parameters = self.rates(np.where(remains, 0.0, x))
            held = remains & (rates == 0)
            if np.array_equal(held, remains):
                return np.where(remains, 0.0, x), jacobian, by_parameters
            remains = held
        return (x, *self.rates(x)[1:])

    def guesses(self, start: np.ndarray) -> Iterator[np.ndarray]:
        yield start
        yield self.relaxed(start)

    def relaxed(self, x: np.ndarray) -> np.ndarray:
        """Implicit steps from a guess, longer as the rates fall: to where Newton's method ends nearby."""
        rates, jacobian, _ = self.rates(x)
        if not (np.isfinite(rates).all() and np.isfinite(jacobian).all()):
            return x
        length = 0.1 * max(np.abs(x).max(), 1e-300) / max(np.abs(rates).max(), 1e-300)
        for _ in range(RELAXATIONS):
            if np.all(np.abs(rates) <= CLOSE * (np.abs(jacobian) @ np.maximum(np.abs(x), CLOSE * np.abs(x).max()))):
                break
            trial = x + np.linalg.lstsq(np.eye(len(x)) / length - jacobian, rates, rcond=None)[0]
            after, slopes, _ = self.rates(trial)
            before, now = np.abs(rates).max(), np.abs(after).max()
            if not (np.isfinite(after).all() and np.isfinite(slopes).all()) or now > 10 * before:
                length *= 0.1
                continue
            x, rates, jacobian = trial, after, slopes
            length *= min(max(before / max(now, 1e-300), 0.5), 10.0)
        return x

    def integrated(self, x: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        """The solution from x at later and later times."""
        time = 0.0
        yield time, x
        _, jacobian, _ = self.rates(x)
        fastest = np.abs(jacobian).max() if np.isfinite(jacobian).all() else 1.0
        span = 1.0 / fastest if fastest > 0 else 1.0
        for legs in LEGS:
            times = np.cumsum(span * LONGER ** np.arange(legs))
            run = self.rest.flow.run(self.p, x, times, start=0.0, sensitivities=False, free_states=True, **BRIEF)
            for later, states in zip(times, run.states, strict=False):
                yield time + float(later), states[:, 0]
            if run.outcome is not Outcome.COMPLETED:
                return
            time, x, span = time + float(times[-1]), run.states[-1, :, 0], span * LONGER**legs

    def is_stable(self, jacobian: np.ndarray) -> bool:
        """Whether nearby solutions with the same totals come back."""
        moving = self.laws.free.T @ jacobian @ self.laws.free
        if not moving.size:
            return True
        values = np.linalg.eigvals(moving)
        return bool(np.all(values.real < -NEUTRAL * np.abs(values).max()))
