"""Unknowns: the one layout of the vector z of everything that is to be found.

First, experiment by experiment, its unknown initial states and the parameters that have a value of their own there;
then the parameters that experiments share, and last what only the noise depends on.  Which entry of z is which quantity
of which experiment is known here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from odejet.errors import ModelError, nearest
from odejet.model import Model
from odejet.model.expressions import Symbol, delays, spelled
from odejet.problem.conditions import Condition

POSITIVE = (0.0, math.inf)

SHORTEST = 1e-3
"""Of the span of the data, the shortest delay that is looked for where no bounds are given: solving takes at least as
many steps as delays, and a shorter one is seen in few data."""


@dataclass(frozen=True)
class Unknown:
    """One entry of z: a parameter, or the initial state of an experiment."""

    name: str  # of the parameter or state
    label: str  # what tells it apart from all others
    experiment: str | None = None  # where it holds; everywhere, if not given
    is_state: bool = False
    limits: tuple[float, float] = (-math.inf, math.inf)  # of values that mean anything, whatever bounds are given
    usual: tuple[float, float] | None = None  # bounds where none are given


@dataclass(frozen=True, eq=False)
class Unknowns(Sequence[Unknown]):
    """All entries in order, and for every experiment where its states and parameters stand among them."""

    entries: tuple[Unknown, ...]
    places: tuple[Mapping[str, int], ...]  # by experiment: name of an unknown state or parameter -> entry of z

    @overload
    def __getitem__(self, index: int) -> Unknown: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Unknown, ...]: ...
    def __getitem__(self, index: int | slice) -> Unknown | tuple[Unknown, ...]:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Unknown]:
        return iter(self.entries)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(unknown.label for unknown in self.entries)

    @property
    def shared(self) -> np.ndarray:
        """Entries that belong to no single experiment."""
        return np.array([i for i, unknown in enumerate(self.entries) if unknown.experiment is None], dtype=int)

    def gather(self, experiment: int, z: np.ndarray, names: Iterable[str], missing: float = 0.0) -> np.ndarray:
        """The values of states or parameters of an experiment; `missing` for names that are not unknown there."""
        places = self.places[experiment]
        return np.array([z[places[name]] if name in places else missing for name in names])

    def scatter(self, parts: Sequence[Mapping[str, float]]) -> np.ndarray:
        """z from values by name of every experiment: of a shared one, the first that is there; NaN without any."""
        z = np.full(len(self.entries), math.nan)
        for places, values in zip(self.places, parts, strict=True):
            for name, i in places.items():
                if name in values and math.isnan(z[i]):
                    z[i] = values[name]
        return z

    def vector(self, values: Mapping[str, float]) -> np.ndarray:
        """z from a value for every label; a name will do where only one unknown has it."""
        places = {label: i for i, label in enumerate(self.labels)}
        z = np.full(len(self.entries), math.nan)
        for name, value in values.items():
            try:
                place = places[name] if name in places else find(self, name)
            except KeyError as error:
                raise ModelError(error.args[0]) from None
            if isinstance(value, bool) or not _is_finite(value):
                raise ModelError(f"the value of '{name}' must be a finite number, not {value!r}")
            z[place] = float(value)
        missing = [label for label, value in zip(self.labels, z, strict=True) if math.isnan(value)]
        if missing:
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise ModelError(f"no value is given for {', '.join(missing[:5])}{more}")
        return z

    def table(self, z: np.ndarray) -> dict[str, float]:
        """The values of z by label."""
        return dict(zip(self.labels, np.asarray(z, dtype=float).tolist(), strict=True))

    def limited(self, limits: Mapping[int, tuple[float, float]]) -> Unknowns:
        """Return the layout with narrower limits of some entries."""
        entries = list(self.entries)
        for i, (low, high) in limits.items():
            known = entries[i].limits
            entries[i] = replace(entries[i], limits=(max(low, known[0]), min(high, known[1])))
        return replace(self, entries=tuple(entries))

    def positive(self, names: Collection[str]) -> Unknowns:
        """Return the layout in which what has these names is positive."""
        return self.limited({i: POSITIVE for i, one in enumerate(self.entries) if one.name in names})

    def usually(self, bounds: Mapping[str, tuple[float, float]]) -> Unknowns:
        """Return the layout with bounds by name for where none are given."""
        return replace(self, entries=tuple(replace(one, usual=bounds.get(one.name)) for one in self.entries))


def delay_bounds(model: Model, conditions: Sequence[Condition]) -> dict[str, tuple[float, float]]:
    """Return bounds of parameters that are delays: longer ones than the data, and much shorter ones, cannot be seen."""
    tables = (model.states, model.outputs)
    lags = {one.by for table in tables for value in table.values() for one in delays(value)}
    span = max((one.experiment.end - one.experiment.start for one in conditions), default=0.0)
    return {lag.name: (SHORTEST * span, span) for lag in lags if isinstance(lag, Symbol) and span > 0}


def find(unknowns: Sequence[Unknown], name: str) -> int:
    """The position of the unknown with this label, or else of the only one with this name."""
    labels = [unknown.label for unknown in unknowns]
    name = name if name in labels else spelled(name)
    if name in labels:
        return labels.index(name)
    own = [i for i, unknown in enumerate(unknowns) if unknown.name == name]
    if len(own) == 1:
        return own[0]
    if own:
        raise KeyError(f"several unknowns are called '{name}'; ask for one of {', '.join(labels[i] for i in own[:5])}")
    raise KeyError(f"no unknown is called '{name}'{nearest(name, labels)}")


def _is_finite(value: object) -> bool:
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except TypeError:
        return False


def lay_out(
    conditions: Sequence[Condition], order: Sequence[str], local: Sequence[str], noise: Sequence[Sequence[str]]
) -> Unknowns:
    """The unknowns of experiments; shared parameters in the given order, then new ones as they appear, then names that
    only the `noise` of an experiment depends on."""
    several = len(conditions) > 1
    entries: list[Unknown] = []
    places: list[dict[str, int]] = []
    for condition, told in zip(conditions, noise, strict=True):
        own, experiment = condition.model, condition.experiment
        where = f" in {experiment.name}" if several else ""
        mine = [
            Unknown(name, f"{name}({experiment.start:g}){where}", experiment.name, True) for name in own.free_states
        ]
        mine += [
            Unknown(name, f"{name}{where}", experiment.name if several else None)
            for name in own.parameters
            if name in local
        ]
        mine += [
            Unknown(name, f"{name}{where}", experiment.name if several else None, limits=POSITIVE)
            for name in told
            if name in local
        ]
        places.append({unknown.name: len(entries) + i for i, unknown in enumerate(mine)})
        entries += mine
    used = dict.fromkeys(name for one in conditions for name in one.model.parameters if name not in local)
    shared = [name for name in order if name in used] + [name for name in used if name not in order]
    for name in shared:
        for condition, mine_ in zip(conditions, places, strict=True):
            if name in condition.model.parameters:
                mine_[name] = len(entries)
        entries.append(Unknown(name, name))
    for name in dict.fromkeys(name for told in noise for name in told if name not in local):
        for told, mine_ in zip(noise, places, strict=True):
            if name in told:
                mine_[name] = len(entries)
        entries.append(Unknown(name, name, limits=POSITIVE))
    return Unknowns(tuple(entries), tuple(places))
