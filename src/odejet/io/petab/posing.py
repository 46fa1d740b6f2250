"""Posing: a PEtab problem as a `Problem`.

An observable whose measurements override parameters of its formulas in several ways is several outputs, called by its
id and a number; `rows` tells which output of which experiment each measurement belongs to.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from odejet.data import Data
from odejet.errors import DataError, ModelError, nearest
from odejet.io.petab import tables as read_tables
from odejet.io.petab.experiments import Course, Experiments, Names, events_of, split
from odejet.io.petab.files import listed
from odejet.io.petab.formulas import INFINITY, parse, replaced
from odejet.io.petab.tables import Measurement, Observable, Tables
from odejet.io.sbml import read_network
from odejet.io.sbml.building import model_of
from odejet.io.sbml.formulas import known_value
from odejet.io.sbml.network import Network
from odejet.io.sbml.semantics import plain_names
from odejet.model import Model
from odejet.model.expressions import TIME, Expression, Symbol, fresh, names, number, substituted
from odejet.problem import Problem


@dataclass(frozen=True)
class Place:
    """Where a measurement stands in the data of a problem."""

    experiment: str
    output: str
    time: float
    value: float


@dataclass(frozen=True, eq=False)
class Posed:
    """A problem, and where the measurements of its tables stand in it, row by row."""

    problem: Problem
    rows: tuple[Place, ...]
    ids: Mapping[str, str]  # of the estimated parameters, by label of the problem's unknowns

    def simulated(self, values: Mapping[str, float]) -> np.ndarray:
        """What the model says of every measurement, in the order of the tables; NaN where it cannot be simulated."""
        found = self.problem.simulate(values)
        return np.array([_at(found[row.experiment], row) for row in self.rows])


def _at(simulation: Any, row: Place) -> float:
    places = np.flatnonzero(simulation.times == row.time)
    return float(simulation[row.output][places[0]]) if len(places) else float("nan")


def pose(path: str | os.PathLike[str], given: Mapping[str, float | None] | None = None) -> Posed:
    """Read the problem that a YAML file of PEtab describes.

    `given` has parameters by id whose values are not those of the table: a number, or None for one to be estimated.
    """
    files = listed(path)
    tables = read_tables.read(files, given)
    network = read_network(files.model)
    where = str(files.path)
    try:
        return _Poser(tables, network, where).posed()
    except DataError as error:
        raise DataError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None
    except ModelError as error:
        if str(error).startswith((where, str(Path(where).parent))):
            raise
        raise ModelError(f"{where}: {error}") from None


@dataclass(frozen=True)
class _Output:
    """One output: what is measured, its noise, and the rows of the table that it has."""

    formula: Expression
    noise: str | None  # as odejet has it; None where every row has a number
    sds: tuple[float, ...]
    rows: tuple[int, ...]


class _Poser:
    """One problem on its way."""

    def __init__(self, tables: Tables, network: Network, where: str) -> None:
        self.tables, self.where = tables, where
        others = [id_ for id_ in dict.fromkeys(self._ids()) if id_ not in network.name_of]
        named = plain_names(iter([*network.name_of, *others]))
        self.names = Names(network, tables.aliases, {id_: named[id_] for id_ in others})
        self.network = self._with_parameters(network)
        self.names = Names(self.network, tables.aliases, self.names.others)
        divided = split(Experiments(tables, self.network, self.names, where))
        self.shared, self.courses = divided.network, divided.courses
        self.numbers: dict[str, Expression] = {
            name: number(value) for name, value in self.shared.parameters.items() if value is not None
        }

    def _ids(self) -> Iterable[str]:
        yield from self.tables.parameters
        for observable in self.tables.observables.values():
            yield from (*observable.placeholders, *observable.noise_placeholders)
        for periods in self.tables.experiments.values():
            for period in periods:
                yield from period.changes

    def _with_parameters(self, network: Network) -> Network:
        """The network with what the table says of its parameters; those it does not have are added to it if known."""
        values: dict[str, float | None] = {}
        free: list[str] = []
        for id_, one in self.tables.parameters.items():
            own = self.tables.aliases.get(id_, id_)
            if network.name_of.get(own) in network.states:
                raise ModelError(f"{self.where}: the parameter '{id_}' changes with time; set it in a condition")
            if own in network.name_of:
                values |= {own: one.nominal} if not one.estimated else {}
                free += [own] if one.estimated else []
        found = network.replaced(values, free)
        for id_, one in self.tables.parameters.items():
            if id_ in self.names.others and not one.estimated:
                found.parameters[self.names.others[id_]] = Fraction(repr(one.nominal))
        return found

    # --- outputs

    def outputs(self) -> dict[str, _Output]:
        """The outputs by name, each with its rows."""
        groups: dict[Any, list[int]] = {}
        parsed: dict[Any, tuple[Expression, Expression]] = {}
        for row, one in enumerate(self.tables.measurements):
            key = one.observable, one.overrides, one.noise_overrides
            if key not in parsed:
                parsed[key] = self._formulas(one)
            formula, noise = parsed[key]
            law = self.tables.observables[one.observable].law
            known = self._number(noise)
            same = (one.observable, formula, None if law == "normal" and known is not None else noise)
            groups.setdefault(same, []).append(row)
        counts: dict[str, int] = {}
        for observable, *_ in groups:
            counts[observable] = counts.get(observable, 0) + 1
        found: dict[str, _Output] = {}
        seen: dict[str, int] = {}
        taken = {*self.shared.name_of.values(), *self.names.others.values(), *self.shared.states}
        for (observable, formula, noise), rows in groups.items():
            seen[observable] = seen.get(observable, 0) + 1
            (own,) = plain_names(iter([observable])).values()
            label = own if counts[observable] == 1 else f"{own}_{seen[observable]}"
            label = fresh(label, {*taken, *found})
            sds: tuple[float, ...] = ()
            if noise is None:
                keys = (self.tables.measurements[row] for row in rows)
                sds = tuple(
                    self._sd(one, parsed[one.observable, one.overrides, one.noise_overrides][1]) for one in keys
                )
            text = None if noise is None else self._noise(self.tables.observables[observable], label, noise)
            found[label] = _Output(formula, text, sds, tuple(rows))
        return found

    def _formulas(self, one: Measurement) -> tuple[Expression, Expression]:
        """What is measured and the scale of its noise, in names of the network; the observable itself is `_OWN`."""
        told = self.tables.observables[one.observable]
        read = {
            self.names.name(id_): parse(text, one.where, self._known)
            for ids, texts in (
                (told.placeholders, one.overrides),
                (told.noise_placeholders, one.noise_overrides),
            )
            for id_, text in zip(ids, texts, strict=True)
        }
        formula = parse(told.formula, f"{told.where}: observableFormula", self._known)
        noise = parse(told.noise, f"{told.where}: noiseFormula", lambda id_: self._in_noise(id_, told))
        if not isinstance(formula, Symbol):
            noise = replaced(noise, formula, _OWN)
        elif not self.names.is_constant(str(formula)):
            noise = substituted(noise, {str(formula): _OWN})
        return substituted(formula, read), self.shared.now(substituted(noise, read))

    def _known(self, id_: str) -> Expression:
        """What an id stands for; one that nobody has is refused."""
        if id_ == INFINITY:
            raise ModelError("infinity has no place in a formula")
        own = self.tables.aliases.get(id_, id_)
        if own not in self.network.name_of and own not in self.names.others:
            known = [*self.network.name_of, *self.names.others]
            raise ModelError(f"{self.where}: there is no '{id_}'{nearest(id_, known)}")
        return self.names.symbol(id_)

    def _in_noise(self, id_: str, told: Observable) -> Expression:
        return _OWN if id_ == told.id else self._known(id_)

    def _number(self, noise: Expression) -> float | None:
        return known_value(substituted(noise, self.numbers))

    def _sd(self, one: Measurement, noise: Expression) -> float:
        value = self._number(noise)
        assert value is not None
        if not value > 0:
            raise ModelError(f"{one.where}: the noise must be positive, not {value:g}")
        return value

    def _noise(self, told: Observable, output: str, noise: Expression) -> str:
        """The law of an output, in its name and in parameters."""
        moving = [name for name in names(noise) if name in self.shared.states or name == TIME]
        if moving:
            reason = f"the noise of '{told.id}' depends on '{moving[0]}', and may depend on the observable itself alone"
            raise ModelError(f"{told.where}: {reason}")
        return f"{told.law}({substituted(noise, {**self.numbers, str(_OWN): Symbol(output)})})"

    # --- the problem

    def posed(self) -> Posed:
        outputs = self.outputs()
        model = model_of(self.shared, {name: one.formula for name, one in outputs.items()})
        noise = {name: one.noise for name, one in outputs.items() if one.noise is not None}
        used = {*model.parameters, *model.fixed, *(n for text in noise.values() for n in _names_in(text))}
        data = Data.of(self._experiment(course, outputs, model, used).experiments[0] for course in self.courses)
        places: dict[int, Place] = {}
        for name, one in outputs.items():
            for row in one.rows:
                told = self.tables.measurements[row]
                places[row] = Place(told.experiment, name, told.time, told.value)
        problem = self._problem(model, data, noise)
        ids = {self.names.name(id_): id_ for id_, one in self.tables.parameters.items() if one.estimated}
        return Posed(problem, tuple(places[row] for row in sorted(places)), ids)

    def _experiment(self, course: Course, outputs: Mapping[str, _Output], model: Model, used: set[str]) -> Data:
        series, sds = {}, {}
        for name, one in outputs.items():
            pairs = [(i, row) for i, row in enumerate(one.rows) if self._is_in(row, course)]
            if pairs:
                told = [self.tables.measurements[row] for _, row in pairs]
                series[name] = [m.time for m in told], [m.value for m in told]
                if one.sds:
                    sds[name] = [one.sds[i] for i, _ in pairs]
        first = min(time for times, _ in series.values() for time in times)
        rest = course.before is not None
        initial = {name: self._plain(value) for name, value in course.initial.items()}
        before = {name: self._plain(value) for name, value in (course.before or {}).items() if name in used}
        return Data(
            None,
            series,
            noise=sds or None,
            name=course.name,
            initial="steady" if rest else initial,
            start=min(course.start, first) if rest and not course.events else course.start,
            values={name: self._plain(value) for name, value in course.values.items() if name in used},
            before={**initial, **before} if rest else None,
            events=events_of(course, self.numbers, {*used, *model.states}),
        )

    def _is_in(self, row: int, course: Course) -> bool:
        return self.tables.measurements[row].experiment == course.name

    def _plain(self, value: Expression) -> Any:
        """A known value, as a number if it is one."""
        found = substituted(value, self.numbers)
        exact = known_value(found)
        return found if exact is None else exact

    def _problem(self, model: Model, data: Data, noise: Mapping[str, str]) -> Problem:
        bare = Problem(model, data, noise=noise or None)
        table = {
            self.names.name(id_): one
            for id_, one in self.tables.parameters.items()
            if one.estimated and self.names.name(id_) in bare.unknowns
        }
        strangers = [label for label in bare.unknowns if label not in table]
        if strangers:
            raise ModelError(f"{self.where}: '{strangers[0]}' has no value; add it to the parameter table")
        return Problem(
            model,
            data,
            bounds={name: one.bounds for name, one in table.items() if one.bounds} or None,
            noise=noise or None,
            priors={name: one.prior for name, one in table.items() if one.prior} or None,
            nominal={name: one.nominal for name, one in table.items() if one.nominal is not None},
        )


_OWN = Symbol("the observable")
"""In the scale of its noise: what is measured."""


def _names_in(text: str) -> Iterable[str]:
    from odejet.model.calls import parse_call

    return [name for argument in parse_call(text)[1] or () for name in names(argument)]
