"""Projection: the equations that outputs and inputs satisfy by themselves, with the states eliminated.

The states trace a curve whose coordinates are replaced one by one by derivatives of outputs (Dong, Goodbrake,
Harrington and Pogudin, Differential elimination for dynamical models via projections with applications to structural
identifiability, SIAM J. Appl. Algebra Geom. 7, 2023).  At every step there are

    coordinates    the states that are left, and y_l^(k) for k < o_l
    rates          x' = N / D for every state that is left, or a polynomial relation of x' and the coordinates
    tops           for every output one irreducible polynomial P_l in the coordinates and y_l^(o_l)

A step takes an output l and a state x of P_l, eliminates x between P_l and its time derivative, replaces x by means of
P_l everywhere else, and so exchanges x for y_l^(o_l).  When no P_l holds a state any more, they are the input-output
equations.  Eliminants have factors too many; the right one vanishes at a point of the curve, which is known because
the model can be evaluated.  It is irreducible whatever the field, as the curve's family is parametrised rationally.

What does not change in time counts as a parameter: states without a rate, and sums of states that are conserved,
by which one state less is left.  (Not so with several experiments, which have only the parameters in common.)  Most
parameters are numbers here, modulo a prime: this is what makes it fast.  A few may be symbols.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import factorial

from flint import nmod_mpoly

from odejet.budget import Budget
from odejet.identify.conservation import Law, conserved
from odejet.identify.eliminants import Eliminants
from odejet.identify.local import Problem
from odejet.identify.polynomials import Polynomial
from odejet.identify.ring import Run
from odejet.identify.symbols import Arithmetic, NotRational, Ratio, Symbols, evaluated
from odejet.jets import modular
from odejet.model.tape import Column, Elementary, Tape

__all__ = ["Beyond", "Key", "NotRational", "Plan", "Projection", "Relation", "Step", "refusal"]

Key = tuple[int, tuple[int, ...]]
"""An output and the exponents of a monomial in the derivatives of inputs and outputs."""


class Beyond(Exception):
    """The equation of an output needs a higher derivative than was allowed for."""


def refusal(problem: Problem) -> str:
    """Why a model cannot be treated; empty where it can."""
    tape, kinds = problem.tape, (Elementary.EXP, Elementary.LOG)
    code = tape.code[tape.split[0] :]
    if any(int(row[Column.FUNCTION]) not in kinds for row in tape.quadratures):
        return "the model has roots or angles"
    if problem.has_functions_of_parameters:
        return "the model has functions of parameters"
    uses_time = tape.time in code[:, [Column.A, Column.B]] or any(int(s) == tape.time for _, s, _ in tape.terms)
    return "the model depends on time" if uses_time or tape.time in tape.outputs else ""


@dataclass(frozen=True)
class Step:
    """Eliminate a state by an output's equation; with `by`, first write `by` = new + c state, which makes it linear."""

    output: int
    state: str
    by: str = ""


@dataclass(frozen=True)
class Plan:
    """The steps, the order that the equation of every output reaches, and what is conserved."""

    steps: tuple[Step, ...]
    orders: tuple[int, ...]
    laws: tuple[Law, ...] = ()


@dataclass(frozen=True)
class Relation:
    """A parameter as a rational function of others; variables are numbers of parameters."""

    parameter: int
    above: Polynomial
    below: Polynomial


@dataclass
class Projection:
    """One elimination at a point: parameters are residues, but for those in `symbolic`, by their numbers.

    After the model's own parameters come states without a rate, and the values of the laws of the plan.
    """

    problem: Problem
    prime: int
    parameters: Sequence[int]
    symbolic: Sequence[int] = ()
    relations: Sequence[Relation] = ()
    plan: Plan | None = None
    reach: int | None = None  # without a plan, the highest derivative of an output; None for any that may be needed
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    steps: list[Step] = field(default_factory=list)
    # What `start` makes of the model, and elimination changes.
    symbols: Symbols = field(init=False, repr=False)
    eliminants: Eliminants = field(init=False, repr=False)
    point: modular.Point = field(init=False, repr=False)
    rates: dict[str, Ratio | nmod_mpoly] = field(init=False, repr=False)  # of the states
    tops: list[nmod_mpoly] = field(init=False, repr=False)  # the equation of the highest derivative of each output
    orders: list[int] = field(init=False, repr=False)  # of these derivatives
    left: list[str] = field(init=False, repr=False)  # the states that are not eliminated
    laws: tuple[Law, ...] = field(init=False, repr=False)  # what is conserved, and its values
    values_of_laws: list[Ratio] = field(init=False, repr=False)

    @cached_property
    def tape(self) -> Tape:
        return self.problem.tape

    @cached_property
    def outputs(self) -> int:
        return len(self.problem.model.outputs)

    @cached_property
    def field(self) -> modular.Field:
        return modular.Field(self.prime)

    @cached_property
    def highest(self) -> tuple[int, ...]:
        """The derivatives of outputs that may be needed."""
        most = len(self.tape.states) + len(self.tape.quadratures)
        return self.plan.orders if self.plan else (min(most, self.reach or most),) * self.outputs

    @cached_property
    def jets(self) -> tuple[str, ...]:
        """The names of the derivatives of inputs and outputs."""
        inputs = [f"u{i}_{k}" for i in range(len(self.tape.inputs)) for k in range(max(self.highest) + 1)]
        outputs = (f"y{i}_{k}" for i, highest in enumerate(self.highest) for k in range(highest + 1))
        return (*inputs, *outputs)

    # --- the model ---

    def start(self) -> None:
        """States, rates and outputs as rational functions, and a point of the curve."""
        self.laws = self.plan.laws if self.plan else ()
        functions = [f"f{place}" for place in range(len(self.tape.quadratures))]
        moving = {f"x{i}": int(r) for i, r in enumerate(self.tape.states) if i not in self.problem.still}
        states = list(moving)
        own = [f"p{i}" for i in self.symbolic]
        rates = [f"d{name}" for name in (*states, *functions)]
        self.symbols = Symbols((*own, *states, *functions, *rates, *self.jets), self.prime)
        self.eliminants = Eliminants(self.symbols, self.budget)
        self._place_point()
        run = self._run()
        moving |= {f"f{i}": int(row[Column.OUT]) for i, row in enumerate(self.tape.quadratures)}
        self.rates = {}
        for name, register in moving.items():
            self.budget.check()
            rate = run.at(register, 1)
            self.rates[name] = rate
            below = self.symbols.at(rate.below)
            if below == 0:
                raise modular.Unlucky("a zero denominator")
            self.symbols.values[f"d{name}"] = self.symbols.at(rate.above) * pow(below, -1, self.prime) % self.prime
        self.tops = []
        for output in range(self.outputs):
            value = run.output(output, 0)
            self.tops.append(self.symbols.gens[f"y{output}_0"] * value.below - value.above)
        self.orders = [0] * self.outputs
        self.left = list(moving)
        if self.plan is None and self.problem.experiments == 1 and not self.problem.unlimited:
            self.laws = self._find_laws()
        first = len(self.problem.model.parameters) + len(self.problem.still)
        for k, law in enumerate(self.laws):
            self._apply(law, first + k)

    def _find_laws(self) -> tuple[Law, ...]:
        """What is conserved of the states that the outputs see; its values become parameters."""
        seen = self.seen()
        measured = {name for name in seen if any(self.symbols.degree(top, name) for top in self.tops)}
        states = sorted((name for name in seen if name[0] == "x"), key=lambda name: name in measured)
        laws = conserved(self.tape, self.field, [int(name[1:]) for name in states], self.seed)
        first = len(self.problem.model.parameters)
        self.parameters = [*self.parameters[: first + len(self.problem.still)], *map(self._law_value, laws)]
        one = self.symbols.number(1)
        self.values_of_laws = [Ratio(self.symbols.number(self._law_value(law)), one) for law in laws]
        return laws

    def _law_value(self, law: Law) -> int:
        return law.value(self.point.states, self.field)

    def seen(self) -> list[str]:
        """The states that the outputs depend on, directly or through others."""
        seen: list[str] = []
        queue: list[nmod_mpoly] = list(self.tops)
        while queue:
            degrees = queue.pop().degrees()
            for name in self.left:
                if degrees[self.symbols.index[name]] and name not in seen:
                    seen.append(name)
                    queue += parts(self.rates[name])
        return seen

    def _apply(self, law: Law, number: int) -> None:
        """Replace a state by the value of a law and the other states."""
        symbols, name = self.symbols, f"x{law.state}"
        first = len(self.problem.model.parameters) + len(self.problem.still)
        value = self.values_of_laws[number - first]
        for i, a in law.others:
            term = Ratio(symbols.gens[f"x{i}"] * (-self.field.residue(a) % self.prime), symbols.number(1))
            value = value + term
        self.left.remove(name)
        del self.rates[name]
        for other in self.left:
            self.rates[other] = self._with_value(self.rates[other], name, value)
        self.tops = [
            self.eliminants.vanishing(symbols.replaced(top, name, value)) if symbols.degree(top, name) else top
            for top in self.tops
        ]

    def _place_point(self) -> None:
        order = max(self.highest)
        generator = random.Random(f"{self.seed}/projection")
        point = modular.random_point(self.tape, self.field, generator, order + 1)
        own, first = list(point.states), len(self.problem.model.parameters)
        for k, i in enumerate(self.problem.still):
            own[i] = self.parameters[first + k]
        for k, law in enumerate(self.laws, first + len(self.problem.still)):
            own[law.state] = (self.parameters[k] - law.rest(own, self.field)) % self.prime
        arguments = own, self.parameters[:first], point.time, point.inputs, generator
        self.point = modular.point(self.tape, self.field, *arguments)
        found = modular.jets(self.tape, self.field, self.point, order, tangents=False)
        values = self.symbols.values
        for i in self.symbolic:
            values[f"p{i}"] = int(self.parameters[i])
        for i, value in enumerate(self.point.states):
            if i not in self.problem.still:
                values[f"x{i}"] = value
        for i, value in enumerate(self.point.drawn):
            values[f"f{i}"] = value
        for i, series in enumerate(self.point.inputs):
            for k in range(order + 1):
                values[f"u{i}_{k}"] = series[k] * factorial(k) % self.prime
        for output in range(self.outputs):
            for k in range(self.highest[output] + 1):
                values[f"y{output}_{k}"] = int(found.outputs[output, k, 0]) * factorial(k) % self.prime

    def _run(self) -> Run:
        """The tape to first order over rational functions."""
        symbols = self.symbols
        one = symbols.number(1)
        ring = Arithmetic(symbols, self.field)
        parameters = [
            Ratio(symbols.gens[f"p{i}"], one) if i in self.symbolic else ring.number(value)
            for i, value in enumerate(self.parameters)
        ]
        for relation in self.relations if self.symbolic else ():
            above, below = (evaluated(part, parameters, ring) for part in (relation.above, relation.below))
            parameters[relation.parameter] = ring.quotient(above, below)
        first = len(self.problem.model.parameters)
        still = dict(zip(self.problem.still, parameters[first:], strict=False))
        states = [still[i] if i in still else Ratio(symbols.gens[f"x{i}"], one) for i in range(len(self.tape.states))]
        self.values_of_laws = parameters[first + len(self.problem.still) :]
        parameters = parameters[:first]
        run = Run(self.tape, ring.field, self.point, ring, states, parameters, known_initial=False)
        for i, register in enumerate(self.tape.inputs):
            run.series[int(register)] = [Ratio(symbols.gens[f"u{i}_{k}"], one) for k in (0, 1)]
        run.extend(1)
        return run

    # --- elimination ---

    def run(self) -> None:
        """Eliminate all states that the outputs see."""
        self.start()
        pending = list(self.plan.steps) if self.plan else None
        while True:
            step = self._cheapest() if pending is None else (pending.pop(0) if pending else None)
            if step is None:
                break
            self.steps.append(step)
            self.budget.check()
            self._take(step)

    @property
    def found(self) -> Plan:
        return Plan(tuple(self.steps), tuple(self.orders), self.laws)

    def _cheapest(self) -> Step | None:
        """Low degree in the state first, then few terms."""
        best: tuple[tuple[int, int, int], Step] | None = None
        rates = [(own, len(part), part.degrees()) for own in self.left for part in parts(self.rates[own])]
        for output, top in enumerate(self.tops):
            degrees = top.degrees()
            self.budget.check()
            for name in self.left:
                place = self.symbols.index[name]
                if degree := degrees[place]:
                    others = sum(length for own, length, inside in rates if inside[place] and own != name)
                    cost = (degree, len(top), others)
                    if best is None or cost < best[0]:
                        best = cost, Step(output, name)
        if best is not None and best[0][0] > 1:
            for output, top in enumerate(self.tops):
                for state, by in self._pairs(top):
                    if self._slope(top, state, by) is not None:
                        return Step(output, state, by)
        return None if best is None else best[1]

    def _pairs(self, top: nmod_mpoly) -> Iterable[tuple[str, str]]:
        degrees = top.degrees()
        inside = [name for name in self.left if degrees[self.symbols.index[name]] == 2]
        return ((a, b) for a in inside for b in inside if a != b)

    def _slope(self, top: nmod_mpoly, state: str, by: str) -> Ratio | None:
        """c, free of states and derivatives, such that `top` is linear in `state` once `by` = new + c state.

        The second derivative along (1, c) must vanish: P_aa + 2 c P_ab + c^2 P_bb = 0, with c = -P_ab / P_bb.
        """
        bb, ab = top.derivative(by).derivative(by), top.derivative(state).derivative(by)
        aa = top.derivative(state).derivative(state)
        if bb.is_zero() or ab.is_zero():
            return None
        slope = Ratio(-ab, bb).reduced()
        free = set(self.symbols.index.values()) - {self.symbols.index[f"p{i}"] for i in self.symbolic}
        if any(part.degrees()[i] for part in (slope.above, slope.below) for i in free):
            return None
        along = aa * slope.below**2 + 2 * ab * slope.above * slope.below + bb * slope.above**2
        return slope if along.is_zero() else None

    def _change(self, step: Step) -> None:
        """Write `by` = new + c state everywhere; the new state keeps the name."""
        symbols, (state, by) = self.symbols, (step.state, step.by)
        slope = self._slope(self.tops[step.output], state, by)
        if slope is None or not all(isinstance(self.rates[name], Ratio) for name in (state, by)):
            raise modular.Unlucky("a change of variables that is not possible at this point")
        c = symbols.at(slope.above) * pow(symbols.at(slope.below), -1, self.prime) % self.prime
        for name, other in ((by, state), (f"d{by}", f"d{state}")):
            symbols.values[name] = (symbols.values[name] - c * symbols.values[other]) % self.prime
        own = self.rates[by], self.rates[state]
        minus = Ratio(-slope.above, slope.below)
        self.rates[by] = own[0] + minus * own[1]  # type: ignore[operator]
        value = Ratio(symbols.gens[by] * slope.below + symbols.gens[state] * slope.above, slope.below)
        self.tops = [self.eliminants.vanishing(symbols.replaced(top, by, value)) for top in self.tops]
        for name in self.left:
            self.rates[name] = self._with_value(self.rates[name], by, value)

    def _with_value(self, rate: Ratio | nmod_mpoly, name: str, value: Ratio) -> Ratio | nmod_mpoly:
        """A rate in which a state is replaced by a rational function."""
        symbols = self.symbols
        if not any(symbols.degree(part, name) for part in parts(rate)):
            return rate
        if not isinstance(rate, Ratio):
            return self.eliminants.vanishing(symbols.replaced(rate, name, value))
        self.eliminants.ask(sum(len(part) for part in (rate.above, rate.below)) * (len(value.above) + len(value.below)))
        above, below = (symbols.replaced(part, name, value) for part in (rate.above, rate.below))
        lift = symbols.degree(rate.below, name) - symbols.degree(rate.above, name)
        above, below = (above * value.below**lift, below) if lift > 0 else (above, below * value.below**-lift)
        return Ratio(above, below).reduced()

    def _take(self, step: Step) -> None:
        if step.by:
            self._change(step)
        symbols, output, name = self.symbols, step.output, step.state
        top = self.tops[output]
        derivative = self._derivative(output)
        raised = self.eliminants.eliminant(derivative, top, name)
        self.left.remove(name)
        del self.rates[name]
        parts = symbols.coefficients(top, name)
        if len(parts) == 2:
            value = Ratio(-parts[0], parts[1])
            for other in self.left:
                self.rates[other] = self._with_value(self.rates[other], name, value)
            self.tops = [
                self.eliminants.vanishing(symbols.replaced(p, name, value), parts[1:])
                if i != output and symbols.degree(p, name)
                else p
                for i, p in enumerate(self.tops)
            ]
        else:
            for other in self.left:
                self.rates[other] = self._relation(other, top, name)
            self.tops = [p if i == output else self.eliminants.eliminant(p, top, name) for i, p in enumerate(self.tops)]
        self.tops[output] = raised
        self.orders[output] += 1

    def _relation(self, state: str, top: nmod_mpoly, name: str) -> Ratio | nmod_mpoly:
        """A rate after another state was eliminated by an equation that is not linear in it."""
        rate = self.rates[state]
        if isinstance(rate, Ratio):
            if not self.symbols.degree(rate.above, name) and not self.symbols.degree(rate.below, name):
                return rate
            rate = self.symbols.gens[f"d{state}"] * rate.below - rate.above
        return self.eliminants.eliminant(rate, top, name)

    def _derivative(self, output: int) -> nmod_mpoly:
        """The time derivative of an output's equation, in the coordinates and one more derivative of the output."""
        symbols, top = self.symbols, self.tops[output]
        total, common = symbols.number(0), symbols.number(1)
        plain = symbols.number(0)
        degrees = top.degrees()
        for name in self.left:
            if degrees[symbols.index[name]]:
                rate, slope = self.rates[name], top.derivative(name)
                if isinstance(rate, Ratio):
                    shared = common.gcd(rate.below)
                    left, right = common // shared, rate.below // shared
                    total, common = total * right + slope * rate.above * left, common * right
                else:
                    plain += slope * symbols.gens[f"d{name}"]
        for jet in self.jets:
            if degrees[symbols.index[jet]]:
                head, order = jet.split("_")
                if (raised := f"{head}_{int(order) + 1}") not in symbols.gens:
                    raise Beyond
                plain += top.derivative(jet) * symbols.gens[raised]
        result = self.eliminants.vanishing(total + plain * common, [common])
        for name in self.left:
            rate = self.rates[name]
            if not isinstance(rate, Ratio) and symbols.degree(result, f"d{name}"):
                result = self.eliminants.eliminant(result, rate, f"d{name}")
        for other, own in enumerate(self.tops):
            highest = f"y{other}_{self.orders[other]}"
            if other != output and symbols.degree(result, highest) and symbols.degree(own, highest):
                result = self.eliminants.eliminant(result, own, highest)
        return result

    # --- what is found ---

    def coefficients(self) -> dict[Key, dict[tuple[int, ...], int]]:
        """The coefficient of every monomial of every equation, as a polynomial in the symbolic parameters.

        The coefficients of one equation are known up to a common factor.
        """
        return self.coefficients_of(self.tops)

    def coefficients_of(self, equations: Sequence[nmod_mpoly]) -> dict[Key, dict[tuple[int, ...], int]]:
        first = len(self.symbols.names) - len(self.jets)
        many = len(self.symbolic)
        found: dict[Key, dict[tuple[int, ...], int]] = {}
        for output, top in enumerate(equations):
            for exponents, coefficient in top.terms():
                key = output, exponents[first:]
                found.setdefault(key, {})[exponents[:many]] = int(coefficient)
        return found

    @property
    def is_whole(self) -> bool:
        """Whether all relations between derivatives of outputs follow from the equations."""
        return True

    @property
    def is_prime(self) -> bool:
        """Whether the equations define one component for sure: at most one is not linear in its top."""
        symbols = self.symbols
        tops = (symbols.degree(top, f"y{i}_{self.orders[i]}") for i, top in enumerate(self.tops))
        return sum(degree > 1 for degree in tops) <= 1


def parts(rate: Ratio | nmod_mpoly) -> list[nmod_mpoly]:
    """The polynomials that a rate is made of."""
    return [rate.above, rate.below] if isinstance(rate, Ratio) else [rate]
