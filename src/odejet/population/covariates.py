"""Covariates: what is known of each subject, and how typical values depend on it.

A covariate is a number per subject, from the values and the constant columns of its experiment.  One that is text is a
category: `sex` with the values male and female gives the numbers `sex_male` and `sex_female`, one or zero.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from odejet.data import Experiment
from odejet.errors import DataError, ExpressionError, ModelError, nearest
from odejet.model import Model
from odejet.model.expressions import TIME, Expression, Symbol, constant, names, substituted
from odejet.model.grammar import parse
from odejet.model.transform import rewritten

_WORD = re.compile(r"\W+")


class Covariates:
    """The numbers that are known of subjects, by name; looked up by those that an expression needs."""

    def __init__(self, experiments: Sequence[Experiment], model: Model) -> None:
        self.subjects = tuple(one.name for one in experiments)
        self._rows = [_known_of(one, model) for one in experiments]
        self.names = tuple(dict.fromkeys(name for row in self._rows for name in row))
        self._varying = [_varying_of(one) for one in experiments]
        self.categories: dict[str, list[str]] = {}
        for one in experiments:
            for category, level in _categories_of(one, model).items():
                if level not in self.categories.setdefault(category, []):
                    self.categories[category].append(level)

    def __contains__(self, name: str) -> bool:
        return name in self.names or any(name in row for row in self._varying)

    def check_new(self, name: str, where: str) -> None:
        """Refuse a coefficient whose name is nearly that of something known of subjects."""
        varying = (key for row in self._varying for key in row)
        for known in dict.fromkeys([*self.names, *varying]):
            if name.lower() == known.lower():
                raise ModelError(f"{where}: the data have '{known}', not '{name}'; write it as there")
        for category, levels in self.categories.items():
            if name.lower() == category.lower() or name.startswith(f"{category}_"):
                told = " and ".join(levels) if len(levels) < 3 else ", ".join(levels)
                raise ModelError(f"{where}: '{category}' is a category, which is told by {told}, not by '{name}'")

    def column(self, name: str, needed_by: str) -> np.ndarray:
        """One number per subject; refused where a subject has none, or several."""
        missing = [subject for subject, row in zip(self.subjects, self._rows, strict=True) if name not in row]
        category = name.partition("_")[0]
        for subject in missing:
            row, varying = (rows[self.subjects.index(subject)] for rows in (self._rows, self._varying))
            if name in varying:
                raise DataError(
                    f"{subject}: the covariate '{name}' changes over time, but {needed_by} needs one number; keep its "
                    "first value"
                )
            if not any(key.startswith(f"{category}_") for key in row):
                raise DataError(
                    f"{subject}: the covariate '{name}' is missing, and {needed_by} depends on it; add it, or leave "
                    "the subject out"
                )
        # A subject of another category than the one that a name tells has a zero.
        return np.array([row.get(name, 0.0) for row in self._rows])


def _known_of(experiment: Experiment, model: Model) -> dict[str, float]:
    found = dict.fromkeys(_categories_of(experiment, model).values(), 1.0)
    for name, value in _given(experiment).items():
        exact = constant(value) if isinstance(value, Expression) else None
        if isinstance(value, int | float):
            found[name] = float(value)
        elif exact is not None:
            found[name] = float(exact)
    for name, series in experiment.outputs.items():
        if name not in model.outputs and len(series) and (series.values == series.values[0]).all():
            found[name] = float(series.values[0])
    return found


def _categories_of(experiment: Experiment, model: Model) -> dict[str, str]:
    """The number that is one for this subject, by category."""
    found = {}
    for name, value in _given(experiment).items():
        if isinstance(value, str | Symbol) and name not in model.parameters:
            text = value if isinstance(value, str) else value.name
            found[name] = f"{name}_{_WORD.sub('_', text).strip('_')}"
    return found


def _given(experiment: Experiment) -> dict[str, Any]:
    told = {name: one.constant for name, one in experiment.covariates.items() if one.constant is not None}
    return {**told, **experiment.values}


def _varying_of(experiment: Experiment) -> set[str]:
    columns = {name for name, series in experiment.outputs.items() if len(np.unique(series.values)) > 1}
    return columns | {name for name, one in experiment.covariates.items() if len(one.values) and one.constant is None}


def changing(
    covariates: Mapping[str, Expression], model: Model, experiments: Sequence[Experiment]
) -> tuple[Model, dict[str, Expression]]:
    """Return the model in which parameters follow covariates that change over time, and what is left of the others.

    Such a covariate is an input of the model: every value of a table holds until the next, and between those of a
    series lie straight lines.  Coefficients of these parameters become parameters of the model.
    """
    varying = set[str]().union(*(_varying_of(one) for one in experiments)) - set(model.outputs)
    moved = {name: own for name, own in covariates.items() if varying & set(names(own))}
    if not moved:
        return model, dict(covariates)
    tables: dict[str, Any] = {
        key: {name: substituted(value, moved) for name, value in getattr(model, key).items()}
        for key in ("states", "outputs", "initial")
    }
    needed = {name for own in moved.values() for name in names(own)} & varying
    inputs = {**model.inputs, **dict.fromkeys(sorted(needed - set(model.inputs)))}
    return (
        rewritten(model, **tables, inputs=inputs, events=[one.substituted(moved) for one in model.events]),
        {name: own for name, own in covariates.items() if name not in moved},
    )


def expressions(given: Mapping[str, Any] | None, known: Collection[str]) -> dict[str, Expression]:
    """How typical values depend on covariates: texts by parameter, as expressions."""
    if not given:
        return {}
    if not isinstance(given, Mapping):
        raise ModelError("covariates must be a dictionary of parameters and expressions, such as {'V': 'V*(wt/70)'}")
    found = {}
    for name, text in given.items():
        where = f"covariates of '{name}'"
        if name not in known:
            raise ModelError(f"covariates: the model has no parameter '{name}'{nearest(str(name), known)}")
        try:
            # Pharmacometricians write powers as NONMEM and Monolix have them.
            found[name] = parse(str(text).replace("^", "**"), None, {TIME: "a typical value cannot depend on the time"})
        except ExpressionError as error:
            raise error.at(where) from None
        if name not in set(names(found[name])):
            raise ModelError(
                f"{where}: {text} does not contain '{name}', the typical value itself; write '{name}*(wt/70)^0.75', say"
            )
    return found
