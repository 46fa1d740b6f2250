"""Ranking: fits of different models to the same data, by what their likelihoods are worth beside their parameters.

AIC = 2k - 2 log L and BIC = k log N - 2 log L charge for k parameters, among them the noise levels that were estimated;
AICc = AIC + 2k(k + 1)/(N - k - 1) charges more where measurements are few.  The weight of a fit is proportional to
exp(-AICc/2): about how probable it is that its model predicts best of those compared (Burnham and Anderson 2002).
Models that contain each other are tested by their likelihood ratio, and where there are several experiments each can be
left out in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from odejet.errors import ModelError
from odejet.extras import needed
from odejet.numerals import short
from odejet.progress import doing
from odejet.result.fit import Fit
from odejet.result.nested import NestedTest, nested_tests
from odejet.result.validation import Validation, cross_validated
from odejet.tables import html_table, table

if TYPE_CHECKING:
    import pandas

HEAD = ("model", "parameters", "log-likelihood", "AIC", "AICc", "BIC", "ΔAICc", "weight", "certified", "left out")


@dataclass(frozen=True)
class Ranked:
    """One fit among others."""

    name: str
    parameters: int
    log_likelihood: float
    aic: float
    aicc: float
    bic: float
    weight: float
    certified: bool
    validation: float | None = None  # log-likelihood of experiments that were left out in turn


@dataclass(frozen=True, eq=False)
class Ranking(Sequence[Ranked]):
    """Fits to the same data, the best first."""

    rows: tuple[Ranked, ...]
    tests: tuple[NestedTest, ...] = ()  # of models that contain each other
    validations: Mapping[str, Validation] = field(default_factory=dict)  # by name, where experiments were left out

    def __getitem__(self, key: int | str) -> Ranked:  # type: ignore[override]
        """A fit by its rank or by its name."""
        if isinstance(key, str):
            found = [row for row in self.rows if row.name == key]
            if not found:
                raise KeyError(f"no fit is called '{key}'; there are {', '.join(row.name for row in self.rows)}")
            return found[0]
        return self.rows[key]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.rows)

    @property
    def best(self) -> Ranked:
        return self.rows[0]

    @property
    def weights(self) -> dict[str, float]:
        return {row.name: row.weight for row in self.rows}

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per fit."""
        pandas = needed("pandas")
        return pandas.DataFrame([vars(row) for row in self.rows]).set_index("name")

    def cells(self) -> list[tuple[str, ...]]:
        """The table as text, without its head."""
        least = self.best.aicc
        found = []
        for row in self.rows:
            beyond = row.aicc - least if math.isfinite(row.aicc) else math.inf
            numbers = (f"{one:.2f}" for one in (row.log_likelihood, row.aic, row.aicc, row.bic))
            left_out = "" if row.validation is None else f"{row.validation:.2f}"
            ends = f"{beyond:.2f}", short(row.weight, 3), "yes" if row.certified else "no", left_out
            found.append((row.name, str(row.parameters), *numbers, *ends))
        return found

    def __repr__(self) -> str:
        lines = table([HEAD, *self.cells()], right=(*range(1, 8), 9))
        lines += (
            ["", "likelihood ratios of models that contain each other", *map(str, self.tests)] if self.tests else []
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table([HEAD, *self.cells()], (*range(1, 8), 9), notes=map(str, self.tests))


def compare(fits: Mapping[str, Fit] | Iterable[Fit], *, cross_validate: bool = False) -> Ranking:
    """Rank fits of different models to the same data: log-likelihood, AIC, AICc, BIC, weights, likelihood ratios.

    They are called by the names of their models, or as a dictionary calls them.  `cross_validate` leaves out every
    experiment in turn and tells how likely each model makes it, fitted to the others.
    """
    if isinstance(fits, Fit):
        raise ModelError("there is one fit only; compare a list of fits")
    named = dict(fits) if isinstance(fits, Mapping) else _named(list(fits))
    if not named:
        raise ModelError("there are no fits to compare")
    for name, fit in named.items():
        _check(name, fit)
    first, reference = next(iter(named.items()))
    for name, fit in named.items():
        if difference := _difference(reference, fit):
            raise ModelError(
                f"'{first}' and '{name}' are fits to different data ({difference}); their likelihoods do not compare"
            )
    corrected = np.array([fit.aicc for fit in named.values()])
    weights = _weights(corrected if np.isfinite(corrected).any() else np.array([fit.aic for fit in named.values()]))
    left_out = {}
    with doing("fitting without each experiment in turn") as shown:
        for number, (name, fit) in enumerate(named.items() if cross_validate else ()):
            shown.share(number / len(named), name)
            left_out[name] = cross_validated(name, fit)
    rows = []
    for (name, fit), weight in zip(named.items(), weights, strict=True):
        criteria = fit.log_likelihood, fit.aic, fit.aicc, fit.bic
        total = left_out[name].total if name in left_out else None
        rows.append(Ranked(name, fit.free, *criteria, float(weight), fit.certified, total))
    return Ranking(tuple(sorted(rows, key=lambda row: (row.aicc, row.aic))), nested_tests(named), left_out)


def _named(fits: Sequence[Fit]) -> dict[str, Fit]:
    """Fits by the names of their models, numbered where these are the same."""
    for fit in fits:
        if not isinstance(fit, Fit):
            raise ModelError(f"expected fits as oj.fit returns them, not {type(fit).__name__}")
    names = [fit.model.name for fit in fits]
    seen: dict[str, int] = {}
    result = {}
    for name, fit in zip(names, fits, strict=True):
        seen[name] = seen.get(name, 0) + 1
        result[f"{name} {seen[name]}" if names.count(name) > 1 else name] = fit
    return result


def _check(name: str, fit: Fit) -> None:
    if not isinstance(fit, Fit):
        raise ModelError(f"expected fits as oj.fit returns them, not {type(fit).__name__}")
    if fit.weights != "likelihood":
        raise ModelError(f"'{name}' is a fit of plain squares, which have no likelihood; fit with weights='likelihood'")
    if not fit.found:
        raise ModelError(f"'{name}' found no values that explain the data; leave it out")
    if math.isnan(fit.aic):
        raise ModelError(
            f"the likelihood of '{name}' has no upper bound, so that it does not compare: its noise runs to zero; "
            "give its scale a lower bound and fit again"
        )


def _difference(one: Fit, other: Fit) -> str:
    """What differs in the measurements of two fits; empty if nothing does."""
    tables = [
        {(own.name, output): series for own in fit.data.experiments for output, series in own.outputs.items()}
        for fit in (one, other)
    ]
    for experiment, output in {**tables[0], **tables[1]}:
        pair = [known.get((experiment, output)) for known in tables]
        if pair[0] is None or pair[1] is None:
            return f"only one of them has measurements of {output} in {experiment}"
        if not all(np.array_equal(getattr(pair[0], part), getattr(pair[1], part)) for part in ("times", "values")):
            return f"the measurements of {output} in {experiment} are not the same"
    return ""


def _weights(criteria: np.ndarray) -> np.ndarray:
    shares = np.exp(-0.5 * (criteria - criteria.min()))
    return np.asarray(shares / shares.sum())
