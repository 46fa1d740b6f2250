"""Table: measurements in rows and columns, wide or tidy, and the experiments in them.

A *wide* table has a column `time` and one per output; a *tidy* one has PEtab's `observableId`, `time`, `measurement`
and perhaps `noiseSd`.  A column `experimentId` tells experiments apart.  Where a table comes from, a file or pandas, is
known only by the words with which it names its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.data import arrays
from odejet.data.censored import Limits, limited, split, written
from odejet.data.experiment import Experiment
from odejet.data.series import Series
from odejet.errors import DataError, clipped, nearest
from odejet.jets.inputs import Sampled
from odejet.model.expressions import Expression, constant

if TYPE_CHECKING:
    import pandas

TIME, OBSERVABLE, MEASUREMENT, SD = "time", "observableId", "measurement", "noiseSd"
EXPERIMENT = ("experimentId", "simulationConditionId")
"""PEtab's names, of its second and first version, for what tells experiments apart."""

IGNORED = ("datasetId", "replicateId")
"""Columns of PEtab that group measurements for plots; they mean nothing to a fit."""


@dataclass(frozen=True, eq=False)
class Labels:
    """A column of text: the different texts in order of appearance, and which of them stands in each row."""

    names: tuple[str, ...]
    codes: np.ndarray

    @classmethod
    def of(cls, cells: Iterable[str]) -> Labels:
        raw: dict[str, int] = {}
        codes = np.array([raw.setdefault(cell, len(raw)) for cell in cells], dtype=np.int64)
        names: dict[str, int] = {}
        clean = np.array([names.setdefault(cell.strip(), len(names)) for cell in raw], dtype=np.int64)
        return cls(tuple(names), clean[codes])


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of numbers and of text by name, and where they came from: `place(row)` names it in messages."""

    numbers: Mapping[str, np.ndarray]
    texts: Mapping[str, Labels]
    place: Callable[[int], str]
    where: str
    limits: Mapping[str, Limits] = field(default_factory=dict)  # of columns with censored values

    @property
    def tidy(self) -> bool:
        return OBSERVABLE in self.texts


def is_text(name: str, tidy: bool) -> bool:
    """Whether a column holds text: what tells experiments apart and, in a tidy table, all but the three of numbers."""
    return name not in (TIME, MEASUREMENT, SD) if tidy else name in EXPERIMENT


def check_header(header: Sequence[str], where: str) -> None:
    """Refuse columns without a name or with the name of another, and tables without the columns they need."""
    seen: set[str] = set()
    for i, name in enumerate(header):
        if not name:
            raise DataError(f"{where}: column {i + 1} has no name; name it in the first line, or remove it")
        if name in seen:
            raise DataError(f"{where}: two columns are called {clipped(name)}; rename or remove one of them")
        seen.add(name)
    needed = (TIME, MEASUREMENT) if OBSERVABLE in header else (TIME,)
    for name in needed:
        if name not in header:
            hint = nearest(name, header, cutoff=0.6) or f"; the columns are {', '.join(map(clipped, header[:20]))}"
            raise DataError(f"{where}: there is no column '{name}'{hint}")
    if all(name in header for name in EXPERIMENT):
        raise DataError(f"{where}: there are two columns for experiments, {' and '.join(EXPERIMENT)}; remove one")


def experiment(
    name: str,
    outputs: Mapping[str, Series],
    start: float,
    inputs: Mapping[str, Sampled | str] | None = None,
    initial: Mapping[str, Expression] | None = None,
    values: Mapping[str, Expression] | None = None,
    planned: bool = False,
    **further: Any,
) -> Experiment:
    """An experiment in which something was measured, unless it is `planned`, and what `further` is known of it; series
    without a value are left out."""
    measured = {key: series for key, series in outputs.items() if len(series)}
    if not measured and not planned:
        raise DataError(f"{name}: nothing was measured; give at least one value that is not NaN")
    tables = (dict(inputs or {}), dict(initial or {}), dict(values or {}))
    return Experiment(name, measured, *tables, start=float(start), **further)


def of_frame(frame: pandas.DataFrame) -> Table:
    """A table of pandas as if it came from a file."""
    where = "the table"
    header = [str(name).strip() for name in frame.columns]
    check_header(header, where)
    tidy = OBSERVABLE in header
    numbers, texts, limits = {}, {}, dict[str, Limits]()
    for i, name in enumerate(header):
        column = frame.iloc[:, i]
        if column.dtype.kind in "mM":
            raise DataError(
                f"{where}: the column {clipped(name)} holds dates; give numbers, such as days since the start"
            )
        if is_text(name, tidy):
            texts[name] = Labels.of(column.astype(object).where(column.notna(), "").astype(str))
        else:
            try:
                numbers[name] = column.to_numpy(dtype=float, na_value=np.nan)
            except (TypeError, ValueError):
                numbers[name], own = _with_limits(column, f"{where}: the column {clipped(name)}")
                limits |= {} if own is None else {name: own}
    return Table(numbers, texts, lambda row: f"{where}: row {row}", where, limits)


def _with_limits(column: pandas.Series, what: str) -> tuple[np.ndarray, Limits | None]:
    """The numbers of a column of which some cells are limits."""
    cells, pairs = split(column.astype(object).where(column.notna(), np.nan).tolist(), what)
    try:
        return limited(np.array(cells, dtype=float), pairs)
    except (TypeError, ValueError):
        raise DataError(f"{what} must hold numbers") from None


def frame_rows(frame: pandas.DataFrame) -> Iterator[tuple[str, dict[str, Any]]]:
    """The cells of every row of a table of pandas, with the words that name it in messages."""
    names = [str(name).strip() for name in frame.columns]
    columns = [frame.iloc[:, i].astype(object).where(frame.iloc[:, i].notna(), None) for i in range(len(names))]
    for i, cells in enumerate(zip(*columns, strict=True)):
        yield f"the table: row {i}", dict(zip(names, cells, strict=True))


def experiments(table: Table) -> Iterator[Experiment]:
    """The experiments in a table."""
    if not len(table.numbers[TIME]):
        raise DataError(f"{table.where}: there are no rows, so that nothing was measured")
    labels = next((table.texts[name] for name in EXPERIMENT if name in table.texts), None)
    if labels is None:
        labels = Labels(("experiment1",), np.zeros(len(table.numbers[TIME]), dtype=np.int64))
    _check_texts(table, labels)
    _check_sds(table)
    try:
        build = _tidy if table.tidy else _wide
        yield from [build(table, rows, labels.names[i]) for i, rows in _groups(labels.codes)]
    except DataError as error:
        raise DataError(f"{table.where}: {error}") from None


def _groups(codes: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Every code with the positions at which it stands, in one pass whatever their number."""
    order = np.argsort(codes, kind="stable")
    present, first = np.unique(codes[order], return_index=True)
    return list(zip(present.tolist(), np.split(order, first[1:]), strict=True))


def _check_texts(table: Table, labels: Labels) -> None:
    """Refuse empty names, and columns of PEtab that would change what the measurements mean."""
    for column, kind in ((labels, "experiment"), (table.texts.get(OBSERVABLE), "observable")):
        if column is not None and "" in column.names:
            row = int((column.codes == column.names.index("")).argmax())
            raise DataError(f"{table.place(row)}: the name of the {kind} is missing")
    for name, column in table.texts.items():
        if name not in (OBSERVABLE, *EXPERIMENT, *IGNORED) and column.names != ("",):
            known = f"{OBSERVABLE}, {TIME}, {MEASUREMENT}, {SD} and {EXPERIMENT[0]}"
            raise DataError(f"{table.where}: the column {clipped(name)} is not understood; known are {known}")


def _check_sds(table: Table) -> None:
    if table.tidy and SD in table.numbers:
        bad = table.numbers[SD] <= 0
        if bad.any():
            sd = table.numbers[SD][bad][0]
            raise DataError(f"{table.place(int(bad.argmax()))}: the standard deviation {sd:g} is not positive")


def _wide(table: Table, rows: np.ndarray, name: str) -> Experiment:
    times = table.numbers[TIME][rows]
    series = {
        arrays.output_name(key): arrays.series(key, times, values[rows], None, _limits(table, key, rows))
        for key, values in table.numbers.items()
        if key != TIME
    }
    if len(series) < len(table.numbers) - 1:
        raise DataError("two columns have the same name; rename or remove one of them")
    return experiment(arrays.label(name), series, float(times.min()), started=False)


def _limits(table: Table, column: str, rows: np.ndarray) -> Limits | None:
    limits = table.limits.get(column)
    return None if limits is None else limits.at(rows)


def _tidy(table: Table, rows: np.ndarray, name: str) -> Experiment:
    observables = table.texts[OBSERVABLE]
    times, values = table.numbers[TIME], table.numbers[MEASUREMENT]
    sds = table.numbers.get(SD)
    series = {}
    for i, places in _groups(observables.codes[rows]):
        key, members = observables.names[i], rows[places]
        known = None if sds is None or np.isnan(sds[members]).all() else sds[members]
        if arrays.output_name(key) in series:
            raise DataError(f"two observables are called '{arrays.output_name(key)}'; use one spelling")
        series[arrays.output_name(key)] = arrays.series(
            key, times[members], values[members], known, _limits(table, MEASUREMENT, members)
        )
    return experiment(arrays.label(name), series, float(times[rows].min()), started=False)


# --- writing ---

Rows = tuple[str, str, np.ndarray, np.ndarray, np.ndarray | None]
"""Name, experiment, times, values and known sds of one series."""


def _cells(series: Series) -> np.ndarray:
    """The values of a series, with limits as text."""
    if series.limits is None:
        return series.values
    cells = series.values.astype(object)
    for i in np.flatnonzero(series.censored).tolist():
        cells[i] = written(float(series.limits.lower[i]), float(series.limits.upper[i]))
    return cells


def rows(experiment: Experiment, dosed: bool = False) -> Iterator[Rows]:
    """The rows of a tidy table that hold an experiment, but for doses that stand elsewhere; what a table cannot hold is
    refused."""
    numbers = {name: constant(value) for name, value in experiment.values.items()}
    if experiment.doses and not dosed:
        raise DataError(
            f"{experiment.name}: doses stand in a table of their own; give to_csv its name, doses='doses.csv'"
        )
    happens = experiment.events or experiment.steady
    unwritten = len(experiment.sampled) < len(experiment.inputs) or experiment.initial or happens
    if unwritten or any(value is None for value in numbers.values()):
        raise DataError(
            f"{experiment.name}: a table holds measurements, samples and numbers, but no initial states, events or "
            "expressions; put those into the model"
        )
    start, label = np.array([experiment.start]), experiment.name
    first = next(iter(experiment.outputs))
    if all(series.times[0] > experiment.start for series in experiment.outputs.values()):
        yield first, label, start, np.array([np.nan]), None  # a row without a measurement tells the start
    for name, series in experiment.outputs.items():
        yield name, label, series.times, _cells(series), series.sds
    for name, samples in experiment.sampled.items():
        yield name, label, samples.times, samples.values, None
    for name, value in numbers.items():
        yield name, label, start, np.array([float(value or 0)]), None
