"""Ranking: population fits to the same data, by what their likelihoods are worth beside their parameters.

AIC, BIC (with the number of subjects) and BICc (in which what does not differ between subjects counts by measurements,
Delattre et al. 2014) charge for parameters; weights are those of AIC.  Populations that contain each other are tested
by their likelihood ratio; where the larger one has one variance more, the smaller stands at its bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odejet.errors import ModelError
from odejet.extras import needed
from odejet.numerals import short
from odejet.population.result import PopulationFit
from odejet.result import compare as compare_fits
from odejet.result.nested import NestedTest, likelihood_ratio
from odejet.tables import html_table, table

if TYPE_CHECKING:
    import pandas

HEAD = ("population", "parameters", "-2 log L", "±", "AIC", "BIC", "BICc", "ΔAIC", "weight")


@dataclass(frozen=True)
class RankedPopulation:
    """One population fit among others."""

    name: str
    parameters: int
    minus_two_log_likelihood: float
    error: float
    aic: float
    bic: float
    bicc: float
    weight: float


@dataclass(frozen=True, eq=False)
class PopulationRanking(Sequence[RankedPopulation]):
    """Population fits to the same data, that with the least AIC first."""

    rows: tuple[RankedPopulation, ...]
    tests: tuple[NestedTest, ...]

    def __getitem__(self, key: int | str) -> RankedPopulation:  # type: ignore[override]
        """A fit by its rank or by its name."""
        if isinstance(key, str):
            found = [row for row in self.rows if row.name == key]
            if not found:
                raise KeyError(f"no fit is called '{key}'; there are {', '.join(row.name for row in self.rows)}")
            return found[0]
        return self.rows[key]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[RankedPopulation]:
        return iter(self.rows)

    @property
    def best(self) -> RankedPopulation:
        return self.rows[0]

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per fit."""
        pandas = needed("pandas")
        return pandas.DataFrame([vars(row) for row in self.rows]).set_index("name")

    def __repr__(self) -> str:
        lines = table(self._rows(), right=range(1, len(HEAD)))
        if self.tests:
            lines += ["", "likelihood ratios of populations that contain each other", *map(str, self.tests)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self._rows(), range(1, len(HEAD)), notes=map(str, self.tests))

    def _rows(self) -> list[tuple[str, ...]]:
        cells: list[tuple[str, ...]] = [HEAD]
        for row in self.rows:
            criteria = (f"{one:.2f}" for one in (row.aic, row.bic, row.bicc, row.aic - self.best.aic))
            likelihood = f"{row.minus_two_log_likelihood:.2f}", f"{row.error:.2f}"
            cells.append((row.name, str(row.parameters), *likelihood, *criteria, short(row.weight, 3)))
        return cells


def compare(fits: Mapping[str, Any] | Iterable[Any], *, cross_validate: bool = False) -> Any:
    """Rank fits of different models to the same data: likelihoods, criteria, weights, likelihood ratios.

    They are called by the names of their models, or as a dictionary calls them.  Fits of populations have AIC, BIC and
    BICc, others AIC, AICc and BIC; of these `cross_validate` leaves out every experiment in turn and tells how likely
    each model makes it, fitted to the others.
    """
    if not isinstance(fits, Mapping | Iterable):
        return compare_fits(fits, cross_validate=cross_validate)
    named = fits if isinstance(fits, Mapping) else list(fits)
    found = list(named.values()) if isinstance(named, Mapping) else named
    are_populations = [isinstance(one, PopulationFit) for one in found]
    if not any(are_populations):
        return compare_fits(named, cross_validate=cross_validate)
    if not all(are_populations):
        raise ModelError("fits of populations and others do not compare: one likelihood is marginal, the other is not")
    if cross_validate:
        raise ModelError("fits of populations are not cross-validated; leave cross_validate out")
    return _ranked(dict(named) if isinstance(named, Mapping) else _numbered(found))


def _numbered(fits: Sequence[PopulationFit]) -> dict[str, PopulationFit]:
    names = [fit.asked.model.name for fit in fits]
    return {f"{name} {i + 1}" if names.count(name) > 1 else name: fits[i] for i, name in enumerate(names)}


def _ranked(fits: Mapping[str, PopulationFit]) -> PopulationRanking:
    first, reference = next(iter(fits.items()))
    for name, fit in fits.items():
        if _measured(fit) != _measured(reference):
            raise ModelError(f"'{first}' and '{name}' are fits to different data; their likelihoods do not compare")
    least = min(fit.aic for fit in fits.values())
    weights = {name: math.exp(0.5 * (least - fit.aic)) for name, fit in fits.items()}
    total = sum(weights.values())
    rows = [
        RankedPopulation(
            name,
            fit.free,
            fit.minus_two_log_likelihood,
            2 * fit.log_likelihood_error,
            fit.aic,
            fit.bic,
            fit.bicc,
            weights[name] / total,
        )
        for name, fit in fits.items()
    ]
    tests = [
        _test(small, inner, large, outer)
        for small, inner in fits.items()
        for large, outer in fits.items()
        if _is_nested(inner, outer)
    ]
    return PopulationRanking(tuple(sorted(rows, key=lambda row: row.aic)), tuple(tests))


def _measured(fit: PopulationFit) -> list[tuple[str, bytes, bytes]]:
    members = fit.asked.members
    return [(one.name, one.measured_at.tobytes(), one.values.tobytes()) for one in members]


def _is_nested(inner: PopulationFit, outer: PopulationFit) -> bool:
    """Tell if one population is the other with less: the same model and noise, and some of its estimates."""
    parts = ("states", "outputs", "inputs", "events")
    first, second = inner.asked.given_model, outer.asked.given_model
    same = all(getattr(first, part) == getattr(second, part) for part in parts)
    same = same and repr(inner.asked.noise) == repr(outer.asked.noise)
    laws = all(outer.asked.random.get(name) == law for name, law in inner.asked.random.items())
    return bool(same and laws and set(inner.names) < set(outer.names))


def _test(small: str, inner: PopulationFit, large: str, outer: PopulationFit) -> NestedTest:
    more = set(outer.names) - set(inner.names)
    at_bound = len(more) == 1 and next(iter(more)).startswith(("omega_", "gamma_"))
    gain = outer.log_likelihood - inner.log_likelihood
    return likelihood_ratio(small, large, gain, len(more), at_bound)
