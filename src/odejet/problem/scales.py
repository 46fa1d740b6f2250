"""Scales: about how large each unknown is, in the units of the data, before anything was fitted.

In an equation that means something, terms that are added are of one kind, and so of about one size: x' = k1*x - k2*x*w
says that k1 and k2*w are of the size of one over a time.  The sizes of the outputs and the span of the times are known,
so the logarithms of all other sizes follow from linear equations, by least squares; what these leave open is taken to
be of size one.  A search without bounds then begins at the same place whatever the units are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import splu

from odejet.jets.inputs import Sampled
from odejet.model.expressions import TIME, constant, substituted
from odejet.problem.conditions import Condition
from odejet.problem.noise import Noise
from odejet.problem.terms import Kind, Reader
from odejet.problem.unknowns import Unknowns

CHANGES = 5.0
"""How often things change within an experiment, about: its span divided by this is the unit of time."""

ONE = 1e-3
"""The weight of the wish to be of size one, beside that of an equation."""

LARGE = 300
"""Sizes beyond which the normal equations are solved, which are sparse: an SVD of thousands takes minutes."""

MOST = 6
"""Experiments whose equations are used; in others, what has the same name has about the same size."""


def scales(
    conditions: Sequence[Condition], unknowns: Unknowns, noises: Mapping[str, Noise] | None = None
) -> np.ndarray:
    """About how large each unknown is, always positive; `noises` are those of the outputs."""
    sizes = _Sizes()
    found: dict[int, int] = {}  # entry of z -> variable
    for condition, places in list(zip(conditions, unknowns.places, strict=True))[:MOST]:
        found |= _enter(sizes, condition, places, found, noises or {})
    solved = sizes.solve()
    logs = np.full(len(unknowns), math.nan)
    for entry, variable in found.items():
        logs[entry] = solved[variable]
    by_name: dict[str, list[float]] = {}
    for unknown, value in zip(unknowns, logs.tolist(), strict=True):
        if not math.isnan(value):
            by_name.setdefault(unknown.name, []).append(value)
    filled = [
        float(np.median(by_name.get(unknown.name, [0.0]))) if math.isnan(value) else value
        for unknown, value in zip(unknowns, logs.tolist(), strict=True)
    ]
    return np.exp(np.clip(filled, -650.0, 650.0))


def _enter(
    sizes: _Sizes,
    condition: Condition,
    places: Mapping[str, int],
    known: Mapping[int, int],
    noises: Mapping[str, Noise],
) -> dict[int, int]:
    """Add the equations of one experiment; the variables of its unknowns."""
    own, experiment = condition.model, condition.experiment
    everything = dict.fromkeys((*own.states, *own.parameters, *places))
    variables = {name: known.get(places[name], -1) if name in places else -1 for name in everything}
    variables = {name: sizes.variable() if i < 0 else i for name, i in variables.items()}
    time = math.log(max(experiment.end - experiment.start, 1e-300) / CHANGES)
    constants = {TIME: time} | {name: _log(float(value)) for name, value in own.fixed.items()}
    for name, given in experiment.inputs.items():
        if isinstance(given, Sampled):
            constants[name] = _log(float(np.abs(given.values).max()))
    reader = _Reader(sizes.rows, variables=variables, constants=constants)
    for state, rate in own.states.items():
        reader.equate(rate, ({variables[state]: 1.0}, -time))
    for state, value in own.initial.items():
        if constant(value) != 0:
            reader.equate(value, ({variables[state]: 1.0}, 0.0))
    for event in own.events:
        for when in (*event.at, *(() if event.every is None else (event.every,))):
            if constant(when) is None:
                reader.equate(when, ({}, time))
        for name, value in event.set.items():
            if name in variables and constant(value) != 0:
                reader.equate(value, ({variables[name]: 1.0}, 0.0))
    for name, series in condition.series.items():
        largest = float(np.abs(series.values).max())
        if largest > 0:
            reader.equate(own.outputs[name], ({}, math.log(largest)))
            constants[name] = math.log(largest)
    for name, series in experiment.outputs.items():
        if name in noises and (scale := noises[name].scale) is not None:
            reader.equate(substituted(scale, experiment.values), ({}, math.log(noises[name].typical(series))))
    return {places[name]: i for name, i in variables.items() if name in places}


def _log(value: float) -> float:
    return math.log(abs(value)) if value else 0.0


@dataclass
class _Sizes:
    """Linear equations for the logarithms of sizes."""

    count: int = 0
    rows: list[Kind] = field(default_factory=list)  # each to be zero

    def variable(self) -> int:
        self.count += 1
        return self.count - 1

    def solve(self) -> np.ndarray:
        terms = [(i, *term) for i, (coefficients, _) in enumerate(self.rows) for term in coefficients.items()]
        rows, columns, entries = np.array(terms).reshape(-1, 3).T
        shape = len(self.rows), self.count
        matrix = csr_array((entries, (rows.astype(int), columns.astype(int))), shape=shape)  # adds up doubles
        right = np.array([-offset for _, offset in self.rows])
        if self.count > LARGE:
            normal = matrix.T @ matrix + ONE**2 * eye_array(self.count)
            return np.asarray(splu(csc_array(normal)).solve(matrix.T @ right))
        whole = np.concatenate([matrix.toarray(), ONE * np.eye(self.count)])
        return np.linalg.lstsq(whole, np.concatenate([right, np.zeros(self.count)]), rcond=None)[0]


@dataclass
class _Reader(Reader):
    """Expressions as sizes."""

    variables: Mapping[str, int] = field(kw_only=True)
    constants: Mapping[str, float] = field(kw_only=True)

    def number(self, value: float) -> Kind | None:
        return ({}, math.log(value)) if value else None

    def name(self, name: str) -> Kind:
        return ({self.variables[name]: 1.0}, 0.0) if name in self.variables else ({}, self.constants.get(name, 0.0))
