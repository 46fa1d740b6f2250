"""Data: what was measured, experiment by experiment.

An experiment holds one series per output, each on its own times (replicates kept, what is NaN left out), known
standard deviations, and what drove it: sampled inputs, functions of `t`, known initial states.  Parameters are shared
by all experiments; initial states and inputs belong to each.  The first observation of an experiment, over all its
outputs, is the time at which its initial state holds.

Data know no model until `checked` compares the two.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.data.series import Series
from odejet.errors import DataError, ModelError, clipped, nearest
from odejet.io import csv
from odejet.jets.inputs import Sampled, sampled
from odejet.model.expressions import checked_name
from odejet.model.grammar import parse

if TYPE_CHECKING:
    import pandas

    from odejet.model import Model
    from odejet.simulate.flow import Flow

IGNORED = ("datasetId", "replicateId")
"""Columns of PEtab that group measurements for plots; they mean nothing to a fit."""

_DEFAULT_NAME = re.compile(r"experiment[0-9]+")
_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Experiment:
    """One experiment; the series hold finite values in the order of time."""

    name: str
    outputs: Mapping[str, Series]
    inputs: Mapping[str, Sampled | str] = field(default_factory=dict)
    initial: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def start(self) -> float:
        """The first observation over all outputs, where the initial state holds."""
        return min(float(series.times[0]) for series in self.outputs.values())

    @cached_property
    def end(self) -> float:
        return max(float(series.times[-1]) for series in self.outputs.values())

    @property
    def points(self) -> int:
        """The number of measurements."""
        return sum(len(series) for series in self.outputs.values())

    @property
    def sampled(self) -> dict[str, Sampled]:
        return {name: value for name, value in self.inputs.items() if isinstance(value, Sampled)}

    def applied(self, model: Model) -> Model:
        """The model of this experiment: with its inputs and its known initial states."""
        if not self.inputs and not self.initial:
            return model
        inputs = {name: None if isinstance(value, Sampled) else value for name, value in self.inputs.items()}
        applied = model.replace(inputs={**model.inputs, **inputs}, initial={**model.initial, **self.initial})
        if applied.parameters != model.parameters:
            lost = next(name for name in model.parameters if name not in applied.parameters)
            raise DataError(f"{self.name}: with its known initial states the parameter '{lost}' has no effect")
        return applied

    def flow(self, model: Model) -> Flow:
        """The solution map of the model in this experiment."""
        from odejet.simulate.flow import Flow

        return Flow(self.applied(model), self.sampled)


@dataclass(frozen=True, eq=False, init=False)
class Data:
    """Measurements of one experiment or, joined, of several.

    `Data(time, {"y1": values})` takes arrays; NaN is what was not measured.  An output on its own grid is a pair
    `(times, values)`.  `noise` gives known standard deviations: a number, or a number or array per output.  `inputs`
    gives what drives this experiment: samples (on `time`, or as a pair), or an expression in `t`; `initial` gives known
    initial states.
    """

    experiments: tuple[Experiment, ...]

    def __init__(
        self,
        time: Any,
        outputs: Mapping[str, Any],
        noise: Any = None,
        inputs: Mapping[str, Any] | None = None,
        name: str | None = None,
        initial: Mapping[str, float] | None = None,
    ) -> None:
        label = _checked_label("experiment1" if name is None else name)
        grid = None if time is None else _column(time, "time")
        given = _named(outputs, "outputs")
        known = _noise(noise, given)
        series = {key: _series(key, *_gridded(key, value, grid), known.get(key)) for key, value in given.items()}
        driven = {key: _input(key, value, grid) for key, value in _named(inputs or {}, "inputs").items()}
        starts = {
            key: _number(value, f"initial state '{key}'") for key, value in _named(initial or {}, "initial").items()
        }
        object.__setattr__(self, "experiments", (_experiment(label, series, driven, starts),))

    @classmethod
    def of(cls, experiments: Iterable[Experiment]) -> Data:
        """Data of experiments that are there already; their names must differ."""
        everything = tuple(experiments)
        if not everything:
            raise DataError("there is no experiment; give at least one")
        names = set()
        for experiment in everything:
            if experiment.name in names:
                raise DataError(f"two experiments are called {clipped(experiment.name)}; give them different names")
            names.add(experiment.name)
        data = cls.__new__(cls)
        object.__setattr__(data, "experiments", everything)
        return data

    @classmethod
    def join(cls, parts: Iterable[Data]) -> Data:
        """All experiments of several data; those without a name of their own are numbered."""
        experiments = [experiment for part in parts for experiment in part.experiments]
        return cls.of(
            replace(experiment, name=f"experiment{i + 1}") if _DEFAULT_NAME.fullmatch(experiment.name) else experiment
            for i, experiment in enumerate(experiments)
        )

    def driven(self, inputs: Mapping[str, Any]) -> Data:
        """The same measurements, with every experiment driven by these inputs too: samples, or expressions in `t`."""
        given = {name: _input(name, value, None) for name, value in _named(inputs, "inputs").items()}
        return Data.of(replace(one, inputs={**one.inputs, **given}) for one in self.experiments)

    # --- tables ---

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Data:
        """The measurements in a CSV file.

        A wide one has a column `time` and one per output; a tidy one has PEtab's `observableId`, `time`, `measurement`
        and perhaps `noiseSd`.  A column `experimentId` tells experiments apart.  Columns (or observables) named like
        an input of the model are its samples, once the data meet a model.
        """
        return _from_table(csv.read(path))

    @classmethod
    def from_dataframe(cls, frame: pandas.DataFrame) -> Data:
        """The same from a table of pandas, wide or tidy."""
        return _from_table(_table(frame))

    def columns(self) -> dict[str, Any]:
        """The columns of a tidy table, sampled inputs among the observables."""
        rows: list[tuple[str, str, np.ndarray, np.ndarray, np.ndarray | None]] = []
        for experiment in self.experiments:
            rows += [(name, experiment.name, s.times, s.values, s.sds) for name, s in experiment.outputs.items()]
            rows += [(name, experiment.name, u.times, u.values, None) for name, u in experiment.sampled.items()]
            if len(experiment.sampled) < len(experiment.inputs) or experiment.initial:
                raise DataError(
                    f"{experiment.name}: a table holds no functions of t and no initial states; put them into the model"
                )
        columns = {
            csv.OBSERVABLE: [name for name, _, times, *_ in rows for _ in range(len(times))],
            csv.EXPERIMENT[0]: [label for _, label, times, *_ in rows for _ in range(len(times))],
            csv.TIME: np.concatenate([times for _, _, times, *_ in rows]),
            csv.MEASUREMENT: np.concatenate([values for _, _, _, values, _ in rows]),
        }
        if any(sds is not None for *_, sds in rows):
            columns[csv.SD] = np.concatenate([np.full(len(t), np.nan) if s is None else s for _, _, t, _, s in rows])
        return columns

    def to_dataframe(self) -> pandas.DataFrame:
        """A tidy table with one measurement per row."""
        import pandas

        return pandas.DataFrame(self.columns())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a tidy CSV file, which `from_csv` reads back."""
        csv.write(path, self.columns())

    # --- looks ---

    def _lines(self) -> list[tuple[str, str, int, str]]:
        """Experiment, series, number of values and what they span, for every series."""
        return [
            (
                experiment.name,
                name if kind == "output" else f"{name} (input)",
                len(series.times),
                f"t = {series.times[0]:.6g} to {series.times[-1]:.6g}",
            )
            for experiment in self.experiments
            for kind, table in (("output", experiment.outputs), ("input", experiment.sampled))
            for name, series in table.items()
        ]

    def _title(self) -> str:
        count, points = len(self.experiments), sum(experiment.points for experiment in self.experiments)
        return f"Data: {count} experiment{'s'[: count != 1]}, {points} measurements"

    def __repr__(self) -> str:
        lines = self._lines()
        shown = [f"  {label}: {name}, {count} values, {span}" for label, name, count, span in lines[:_SHOWN]]
        more = [f"  ... and {len(lines) - _SHOWN} more series"] if len(lines) > _SHOWN else []
        return "\n".join([self._title(), *shown, *more])

    def _repr_html_(self) -> str:
        lines = self._lines()
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in line) + "</tr>" for line in lines[:_SHOWN]
        )
        more = f"<tr><td>and {len(lines) - _SHOWN} more series</td></tr>" if len(lines) > _SHOWN else ""
        heads = "".join(f"<th>{head}</th>" for head in ("experiment", "series", "values", "times"))
        return f"<table><caption>{self._title()}</caption><tr>{heads}</tr>{rows}{more}</table>"


# --- data and model ---------------------------------------------------------------------------------------------------


def checked(data: Data, model: Model) -> Data:
    """The data as this model reads them: outputs in its order, columns named like inputs as samples of those inputs.

    What does not fit the model is refused with a sentence.  An output that was never measured is simply not used.
    """
    if not model.outputs:
        raise DataError(f"the model {model.name} has no outputs, so that no data say anything about it; add [outputs]")
    result = Data.of(_bound(experiment, model) for experiment in data.experiments)
    points = sum(experiment.points for experiment in result.experiments)
    unknowns = len(model.parameters) + sum(
        sum(state not in model.initial and state not in experiment.initial for state in model.states)
        for experiment in result.experiments
    )
    if points < unknowns:
        raise DataError(f"there are {points} measurements for {unknowns} unknowns of {model.name}; measure more")
    return result


def _bound(experiment: Experiment, model: Model) -> Experiment:
    """One experiment as the model reads it."""
    where = f"{experiment.name}: "
    for name in experiment.outputs:
        if name not in model.outputs and name not in model.inputs:
            raise DataError(f"{where}{_stranger(name, model)}")
    for kind, given, known in (
        ("input", experiment.inputs, model.inputs),
        ("state", experiment.initial, model.states),
    ):
        for name in given:
            if name not in known:
                raise DataError(f"{where}the model has no {kind} '{name}'{nearest(name, known)}")
    outputs = {name: experiment.outputs[name] for name in model.outputs if name in experiment.outputs}
    if not outputs:
        raise DataError(f"{where}none of the outputs {', '.join(list(model.outputs)[:20])} was measured")
    given = {**_samples(experiment, model), **experiment.inputs}
    inputs = {name: given[name] for name in model.inputs if name in given}
    bound = replace(experiment, outputs=outputs, inputs=inputs)
    for name, expression in model.inputs.items():
        if expression is None and name not in inputs:
            raise DataError(
                f"{where}the model's input '{name}' is sampled, but there are no samples; add a column '{name}'"
            )
    for name, samples in bound.sampled.items():
        if not samples.cover(bound.start, bound.end):
            raise DataError(
                f"{where}the input '{name}' is sampled from t = {samples.times[0]:g} to {samples.times[-1]:g}, "
                f"but outputs were measured from {bound.start:g} to {bound.end:g}; sample the input over all of it"
            )
    try:
        bound.applied(model)
    except ModelError as error:
        raise DataError(f"{where}{error}") from None
    return bound


def _samples(experiment: Experiment, model: Model) -> dict[str, Sampled]:
    """Columns that are named like inputs."""
    found = {name: series for name, series in experiment.outputs.items() if name in model.inputs}
    for name in found:
        if name in experiment.inputs:
            raise DataError(f"{experiment.name}: the input '{name}' is given twice, in a column and as an input")
    return {name: sampled(series.times, series.values, f"input '{name}'") for name, series in found.items()}


def _stranger(name: str, model: Model) -> str:
    """Why a column is refused."""
    if name in model.states:
        return f"'{name}' is a state, not an output; measure it as an output y = \"{name}\", or remove the column"
    if name in model.parameters or name in model.fixed:
        return f"'{name}' is a parameter of the model, not an output; remove the column"
    hint = nearest(name, [*model.outputs, *model.inputs]) or f"; it has {', '.join(list(model.outputs)[:20])}"
    return f"the model has no output '{name}'{hint}"


# --- from arrays ------------------------------------------------------------------------------------------------------


def _named(table: object, what: str) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise DataError(f"{what} must be a dictionary of names and values, such as {{'y1': values}}")
    named: dict[str, Any] = {}
    for key, value in table.items():
        name = _checked_name(key)
        if name in named:
            raise DataError(f"{what}: the name '{name}' is given twice; remove one of them")
        named[name] = value
    return named


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise DataError(f"a name must be text, not {clipped(str(name))}")
    try:
        return checked_name(name)
    except ModelError as error:
        raise DataError(str(error)) from None


def _checked_label(label: object) -> str:
    if not isinstance(label, str) or not label.strip() or not label.isprintable() or len(label) > 200:
        raise DataError(f"the name of an experiment must be one line of text, not {clipped(str(label))}")
    return label.strip()


def _column(values: object, what: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{what} must be numbers; mark what was not measured with NaN") from None
    if array.ndim != 1:
        raise DataError(f"{what} must be a one-dimensional list, not of shape {array.shape}")
    return array


def _number(value: object, what: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number):
        raise DataError(f"{what} must be a finite number, not {clipped(str(value))}")
    return number


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and not any(np.isscalar(part) for part in value)


def _gridded(name: str, value: Any, grid: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of a series that has its own times or shares those of the experiment."""
    times, values = value if _is_pair(value) else (grid, value)
    if times is None:
        raise DataError(f"'{name}' has no times; give `time`, or a pair (times, values)")
    t, y = _column(times, f"the times of '{name}'"), _column(values, f"the values of '{name}'")
    if len(t) != len(y):
        raise DataError(f"'{name}' has {len(y)} values but {len(t)} times")
    return t, y


def _noise(noise: Any, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Known standard deviations by output."""
    if noise is None:
        return {}
    if not isinstance(noise, Mapping):
        return dict.fromkeys(outputs, noise)
    known = _named(noise, "noise")
    for name in known:
        if name not in outputs:
            raise DataError(f"noise: there is no output '{name}'{nearest(name, outputs)}")
    return known


def _series(name: str, times: np.ndarray, values: np.ndarray, sds: Any) -> Series:
    """Finite values in the order of time, with their sds."""
    if not np.isfinite(times).all():
        raise DataError(f"'{name}': time {int((~np.isfinite(times)).argmax())} is not a finite number")
    if np.isinf(values).any():
        raise DataError(f"'{name}': value {int(np.isinf(values).argmax())} is infinite; mark what is missing with NaN")
    kept = np.flatnonzero(~np.isnan(values))
    kept = kept[np.argsort(times[kept], kind="stable")]
    if sds is None:
        return Series(times[kept], values[kept])
    spread = (
        np.asarray(_number(sds, f"the noise of '{name}'"))
        if np.ndim(sds) == 0
        else _column(sds, f"the noise of '{name}'")
    )
    if spread.ndim and len(spread) != len(values):
        raise DataError(f"'{name}' has {len(values)} values but {len(spread)} standard deviations")
    spread = np.broadcast_to(spread, values.shape)[kept]
    if not (np.isfinite(spread) & (spread > 0)).all():
        raise DataError(f"'{name}': standard deviations must be positive numbers wherever there is a measurement")
    return Series(times[kept], values[kept], spread)


def _input(name: str, value: Any, grid: np.ndarray | None) -> Sampled | str:
    if isinstance(value, Sampled):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = repr(_number(value, f"the input '{name}'"))
    if isinstance(value, str):
        try:
            return str(parse(value, ()))
        except ModelError as error:
            raise DataError(f"input '{name}': {error}") from None
    return sampled(*_gridded(name, value, grid), f"input '{name}'")


def _experiment(
    name: str, outputs: Mapping[str, Series], inputs: Mapping[str, Sampled | str], initial: Mapping[str, float]
) -> Experiment:
    """An experiment in which something was measured; series without a value are left out."""
    measured = {key: series for key, series in outputs.items() if len(series)}
    if not measured:
        raise DataError(f"{name}: nothing was measured; give at least one value that is not NaN")
    return Experiment(name, measured, dict(inputs), dict(initial))


# --- from tables ------------------------------------------------------------------------------------------------------


def _table(frame: pandas.DataFrame) -> csv.Table:
    """A table of pandas as if it came from a file."""
    where = "the table"
    header = [str(name).strip() for name in frame.columns]
    csv.check_header(header, where)
    tidy = csv.OBSERVABLE in header
    numbers, texts = {}, {}
    for i, name in enumerate(header):
        column = frame.iloc[:, i]
        if csv.is_text(name, tidy):
            texts[name] = csv.Labels.of(column.astype(object).where(column.notna(), "").astype(str))
        else:
            try:
                numbers[name] = column.to_numpy(dtype=float, na_value=np.nan)
            except (TypeError, ValueError):
                raise DataError(f"{where}: the column {clipped(name)} must hold numbers") from None
    return csv.Table(numbers, texts, lambda row: f"{where}: row {row}", where)


def _from_table(table: csv.Table) -> Data:
    if not len(table.numbers[csv.TIME]):
        raise DataError(f"{table.where}: there are no rows, so that nothing was measured")
    labels = next((table.texts[name] for name in csv.EXPERIMENT if name in table.texts), None)
    if labels is None:
        labels = csv.Labels(("experiment1",), np.zeros(len(table.numbers[csv.TIME]), dtype=np.int64))
    _check_texts(table, labels)
    _check_sds(table)
    try:
        build = _tidy if table.tidy else _wide
        return Data.of(build(table, rows, labels.names[i]) for i, rows in _groups(labels.codes))
    except DataError as error:
        raise DataError(f"{table.where}: {error}") from None


def _groups(codes: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Every code with the positions at which it stands, in one pass whatever their number."""
    order = np.argsort(codes, kind="stable")
    present, first = np.unique(codes[order], return_index=True)
    return list(zip(present.tolist(), np.split(order, first[1:]), strict=True))


def _check_texts(table: csv.Table, labels: csv.Labels) -> None:
    """Refuse empty names, and columns of PEtab that would change what the measurements mean."""
    for column, kind in ((labels, "experiment"), (table.texts.get(csv.OBSERVABLE), "observable")):
        if column is not None and "" in column.names:
            row = int((column.codes == column.names.index("")).argmax())
            raise DataError(f"{table.place(row)}: the name of the {kind} is missing")
    for name, column in table.texts.items():
        if name not in (csv.OBSERVABLE, *csv.EXPERIMENT, *IGNORED) and column.names != ("",):
            known = f"{csv.OBSERVABLE}, {csv.TIME}, {csv.MEASUREMENT}, {csv.SD} and {csv.EXPERIMENT[0]}"
            raise DataError(f"{table.where}: the column {clipped(name)} is not understood; known are {known}")


def _check_sds(table: csv.Table) -> None:
    if table.tidy and csv.SD in table.numbers:
        bad = table.numbers[csv.SD] <= 0
        if bad.any():
            sd = table.numbers[csv.SD][bad][0]
            raise DataError(f"{table.place(int(bad.argmax()))}: the standard deviation {sd:g} is not positive")


def _wide(table: csv.Table, rows: np.ndarray, name: str) -> Experiment:
    times = table.numbers[csv.TIME][rows]
    series = {
        _checked_name(key): _series(key, times, values[rows], None)
        for key, values in table.numbers.items()
        if key != csv.TIME
    }
    if len(series) < len(table.numbers) - 1:
        raise DataError("two columns have the same name; rename or remove one of them")
    return _experiment(_checked_label(name), series, {}, {})


def _tidy(table: csv.Table, rows: np.ndarray, name: str) -> Experiment:
    observables = table.texts[csv.OBSERVABLE]
    times, values = table.numbers[csv.TIME], table.numbers[csv.MEASUREMENT]
    sds = table.numbers.get(csv.SD)
    series = {}
    for i, places in _groups(observables.codes[rows]):
        key, members = observables.names[i], rows[places]
        known = None if sds is None or np.isnan(sds[members]).all() else sds[members]
        if _checked_name(key) in series:
            raise DataError(f"two observables are called '{_checked_name(key)}'; use one spelling")
        series[_checked_name(key)] = _series(key, times[members], values[members], known)
    return _experiment(_checked_label(name), series, {}, {})
