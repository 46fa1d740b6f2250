"""Estimates: numbers by name, of the population or of its subjects, as a mapping and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from odejet.errors import nearest
from odejet.extras import needed
from odejet.numerals import short
from odejet.population.layout import Layout
from odejet.tables import html_table, table

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Parameter:
    """One estimate of the population."""

    name: str
    value: float
    stderr: float
    interval: tuple[float, float]

    @property
    def rse(self) -> float:
        """The relative standard error."""
        return abs(self.stderr / self.value) if self.value else math.inf

    @property
    def cells(self) -> dict[str, float]:
        low, high = self.interval
        return {"value": self.value, "stderr": self.stderr, "low": low, "high": high}


@dataclass(frozen=True, eq=False)
class Estimates(Mapping[str, Any]):
    """Estimates by name: `fit.population["V"].value`, or `fit.individuals["3"]["V"]` with sds in `individuals.sd`."""

    rows: Mapping[str, Any]
    kind: str  # "parameter" of a population, or "subject"
    cells: Mapping[str, Mapping[str, float]]  # the table by row and column
    sd: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of_population(cls, rows: Mapping[str, Parameter]) -> Estimates:
        return cls(rows, "parameter", {name: one.cells for name, one in rows.items()})

    @classmethod
    def of_subjects(cls, rows: Mapping[str, Mapping[str, float]], sd: Mapping[str, Mapping[str, float]]) -> Estimates:
        cells = {name: {**own, **{f"sd_{key}": s for key, s in sd[name].items()}} for name, own in rows.items()}
        return cls(rows, "subject", cells, sd)

    def __getitem__(self, name: str) -> Any:
        if name not in self.rows:
            raise KeyError(f"there is no {self.kind} '{name}'{nearest(str(name), self.rows)}")
        return self.rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per estimate or per subject."""
        pandas = needed("pandas")
        return pandas.DataFrame.from_dict(dict(self.cells), orient="index").rename_axis(self.kind)

    def __repr__(self) -> str:
        rows = self._rows()
        return "\n".join(table(rows, right=range(1, len(rows[0]))))

    def _repr_html_(self) -> str:
        rows = self._rows()
        return html_table(rows, range(1, len(rows[0])))

    def _rows(self) -> list[tuple[str, ...]]:
        columns = list(next(iter(self.cells.values()), {}))
        rows = [(name, *(short(own[key], 4) for key in columns)) for name, own in self.cells.items()]
        return [("", *columns), *rows]


def interval_of(layout: Layout, name: str, value: float, error: float, level: float) -> tuple[float, float]:
    """Return the interval of an estimate from its standard error, symmetric on the scale where it is most normal."""
    from scipy.special import ndtri

    wide = float(ndtri(0.5 + level / 2)) * error
    if name.startswith("corr_"):
        low, high = (math.tanh(math.atanh(value) + sign * wide / (1 - value**2)) for sign in (-1, 1))
        return low, high
    scale = layout.scales[layout.typical.index(name)].name if name in layout.typical else ""
    if scale == "logitnormal":
        middle, reach = math.log(value / (1 - value)), wide / (value * (1 - value))
        low, high = (1 / (1 + math.exp(min(-middle - sign * reach, 700.0))) for sign in (-1, 1))
        return low, high
    if scale == "lognormal" or name.startswith(("omega_", "gamma_")) or name in layout.noise:
        factor = math.exp(min(wide / value, 700.0))
        return value / factor, value * factor
    return value - wide, value + wide
