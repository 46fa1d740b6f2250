"""Data: what was measured, experiment by experiment.

Parameters are shared by all experiments unless a problem says otherwise; initial states, inputs and known values
belong to each.  Data know no model until a problem puts the two together.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.attach import attached
from odejet.data import arrays, nonmem, table
from odejet.data.doses import Dose, rows_of
from odejet.data.doses import columns as dose_columns
from odejet.data.doses import read as read_doses
from odejet.data.experiment import Experiment
from odejet.errors import DataError, clipped, nearest
from odejet.extras import needed
from odejet.model.expressions import spelled_keys

if TYPE_CHECKING:
    import pandas

_DEFAULT_NAME = re.compile(r"experiment[0-9]+")
_SHOWN = 12


@dataclass(frozen=True, eq=False, init=False)
class Data:
    """Measurements of one experiment or, joined, of several.

    `Data(time, {"y1": values})` takes arrays; NaN is what was not measured.  An output on its own grid is a pair
    `(times, values)`, and a value that is known only to lie below, above or between limits is `Censored(below=0.5)`
    or a text such as "<0.5".  `noise` gives known standard deviations: a number, or a number or array per output.
    `inputs` gives what drives this experiment: samples (on `time`, or as a pair), or an expression in `t`.
    `initial` gives known initial states and `values` what parameters are in this experiment: numbers, or
    expressions in parameters, where a name that is new is one more unknown.  The initial state holds at `start`, by
    default the first time given, whether something was measured then or not.

    `initial="steady"` starts at rest; `before` tells what parameters and inputs were until then, where they were
    others, and from which states rest was approached.  A time that is `inf` is the steady state in the end.

    Data of an experiment that was not measured have no outputs: `Data(None, {}, doses=..., start=0)` is for
    `fit.predict`.

    `events` are what happens in this experiment, and `doses` what is given to it: a table with the columns time, state
    and amount (or those of NONMEM), as `odejet.data.doses` says.
    """

    experiments: tuple[Experiment, ...]

    def __init__(
        self,
        time: Any,
        outputs: Mapping[str, Any],
        noise: Any = None,
        inputs: Mapping[str, Any] | None = None,
        name: str | None = None,
        initial: Mapping[str, float | str] | str | None = None,
        start: float | None = None,
        values: Mapping[str, float | str] | None = None,
        before: Mapping[str, float | str] | None = None,
        events: Iterable[Any] | None = None,
        doses: Any = None,
    ) -> None:
        label = arrays.label("experiment1" if name is None else name)
        grid = None if time is None else arrays.column(time, "time")
        given = arrays.named(outputs, "outputs")
        sds = arrays.known_sds(noise, given)
        measured = {key: arrays.measured(key, value, grid) for key, value in given.items()}
        first = min((times.min(initial=np.inf) for times, _, _ in measured.values()), default=np.inf)
        given_doses = _doses_of_one(doses)
        if start is None:
            first = min([first, *(dose.first for dose in given_doses)])
        steady = arrays.is_steady(initial, before)
        known = {
            what: {key: arrays.known(key, value, what) for key, value in arrays.named(told or {}, what).items()}
            for what, told in (("initial", None if steady else initial), ("values", values), ("before", before))
        }
        experiment = table.experiment(
            label,
            {key: arrays.series(key, t, y, sds.get(key), limits) for key, (t, y, limits) in measured.items()},
            first if start is None else arrays.finite(start, "start"),
            {key: arrays.driving(key, value, grid) for key, value in arrays.named(inputs or {}, "inputs").items()},
            planned=not given,
            steady=steady,
            events=arrays.events(events),
            doses=given_doses,
            started=start is not None,
            **known,
        )
        object.__setattr__(self, "experiments", (experiment,))

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
        """Add inputs to every experiment: samples, or expressions in `t`."""
        given = {name: arrays.driving(name, value, None) for name, value in arrays.named(inputs, "inputs").items()}
        return Data.of(replace(one, inputs={**one.inputs, **given}) for one in self.experiments)

    def dosed(self, doses: Any) -> Data:
        """Add doses to the experiment that each of them names, or to all.

        An experiment to which something was given before its start begins then.
        """
        return self.given(read_doses(rows_of(doses)))

    def given(self, found: Mapping[str, Sequence[Dose]]) -> Data:
        """Add doses by experiment; those under an empty name go to all."""
        names = [one.name for one in self.experiments]
        for name, own in found.items():
            if name and name not in names:
                reason = f"there is no experiment {clipped(name)} that doses are given to{nearest(name, names)}"
                raise DataError(reason, own[0].where if own else "")
        experiments = []
        for one in self.experiments:
            mine = (*found.get("", ()), *found.get(one.name, ()))
            start = min([one.start, *(dose.first for dose in mine)])
            experiments.append(replace(one, doses=(*one.doses, *mine), start=start))
        return Data.of(experiments)

    def starting(self, start: float) -> Data:
        """Let the initial state of every experiment hold at this time."""
        return Data.of(replace(one, start=arrays.finite(start, "start"), started=True) for one in self.experiments)

    def knowing(self, known: Mapping[str, Mapping[str, float | str]], states: Collection[str] = ()) -> Data:
        """Fix values by experiment and name: of parameters, or of these states at the start."""
        names = [one.name for one in self.experiments]
        for name in known:
            if name not in names:
                hint = nearest(name, names) or f"; there are {', '.join(names[:20])}"
                raise DataError(f"there is no experiment {clipped(name)}{hint}")
        found = []
        for one in self.experiments:
            own = spelled_keys(known.get(one.name, {}), one.name)
            told = {key: arrays.known(key, value, one.name) for key, value in own.items()}
            values = {**one.values, **{key: value for key, value in told.items() if key not in states}}
            initial = {**one.initial, **{key: value for key, value in told.items() if key in states}}
            found.append(replace(one, values=values, initial=initial))
        return Data.of(found)

    def without(self, *names: str) -> Data:
        """Leave out columns of these names: measured outputs and covariates."""
        gone = {arrays.output_name(name) for name in names}
        known = {name for one in self.experiments for name in (*one.outputs, *one.covariates)}
        for name in gone - known:
            raise DataError(f"there is no column '{name}' to be left out{nearest(name, known)}")
        return Data.of(
            replace(
                one,
                outputs={name: series for name, series in one.outputs.items() if name not in gone},
                covariates={name: own for name, own in one.covariates.items() if name not in gone},
            )
            for one in self.experiments
        )

    # --- tables ---

    @classmethod
    @attached
    def from_csv(cls, path: str | os.PathLike[str], doses: str | os.PathLike[str] | None = None) -> Data:
        """The measurements in a CSV file.

        A wide one has a column `time` and one per output; a tidy one has PEtab's `observableId`, `time`, `measurement`
        and perhaps `noiseSd`.  A column `experimentId` tells experiments apart.  Columns (or observables) named like
        an input of the model are its samples, once the data meet a model, and one named like a parameter is what that
        parameter is in the experiment.  `doses` names a file with what was given to them; a file of NONMEM has both.
        """
        raise NotImplementedError

    @classmethod
    def from_dataframe(cls, frame: pandas.DataFrame) -> Data:
        """Read a table of pandas: wide, tidy, or with NONMEM's columns."""
        if nonmem.is_header(map(str, frame.columns)):
            return cls.of(nonmem.experiments(table.frame_rows(frame)))
        return cls.of(table.experiments(table.of_frame(frame)))

    def columns(self, dosed: bool = False) -> dict[str, Any]:
        """The columns of a tidy table: measurements, and as observables sampled inputs and known numbers.

        Doses have a table of their own, `dose_columns`; unless it is `dosed`, data that have some are refused.
        """
        rows = [row for experiment in self.experiments for row in table.rows(experiment, dosed)]
        columns = {
            table.OBSERVABLE: [name for name, _, times, *_ in rows for _ in range(len(times))],
            table.EXPERIMENT[0]: [label for _, label, times, *_ in rows for _ in range(len(times))],
            table.TIME: np.concatenate([times for _, _, times, *_ in rows]),
            table.MEASUREMENT: np.concatenate([values for _, _, _, values, _ in rows]),
        }
        if any(sds is not None for *_, sds in rows):
            columns[table.SD] = np.concatenate([np.full(len(t), np.nan) if s is None else s for _, _, t, _, s in rows])
        return columns

    def dose_columns(self) -> dict[str, list[Any]]:
        """The columns of a table of all doses, as `dosed` and files have them."""
        return dose_columns({one.name: one.doses for one in self.experiments})

    def to_dataframe(self) -> pandas.DataFrame:
        """A tidy table with one measurement per row."""
        pandas = needed("pandas")
        return pandas.DataFrame(self.columns())

    @attached
    def to_csv(self, path: str | os.PathLike[str], doses: str | os.PathLike[str] | None = None) -> None:
        """Write a tidy CSV file, and one of doses beside it; `from_csv` reads them back."""
        raise NotImplementedError

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


def _doses_of_one(doses: Any) -> tuple[Dose, ...]:
    """The doses of the only experiment."""
    found = read_doses(rows_of(doses)) if doses is not None else {}
    if len(found) > 1:
        raise DataError("the doses are of several experiments; join the data of these first, and use data.dosed(doses)")
    return tuple(dose for one in found.values() for dose in one)
