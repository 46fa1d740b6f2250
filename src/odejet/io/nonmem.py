"""NONMEM files: doses and measurements of many subjects in one table.

A subject (ID) is an experiment; what was measured (DV) is the only output of the model.  Other columns are what
parameters of that name are for the subject.  A point is a missing value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from odejet.data import Data, Experiment, arrays
from odejet.data.doses import Rows, is_missing, read
from odejet.errors import DataError

MEASURED = "DV"
_KNOWN = ("ID", "TIME", "AMT", "CMT", "RATE", "II", "ADDL", "EVID", "SS", "MDV", MEASURED)


def is_header(header: Iterable[str]) -> bool:
    return {"TIME", MEASURED} <= set(header)


def data(rows: Rows) -> Data:
    """The subjects of a file."""
    subjects: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for where, row in rows:
        subjects.setdefault(str(row.get("ID", "experiment1")), []).append((where, row))
    if not subjects:
        raise DataError("there are no rows, so that nothing was measured")
    return Data.of(_subject(name, own) for name, own in subjects.items())


def _subject(name: str, rows: list[tuple[str, Mapping[str, Any]]]) -> Experiment:
    measured: list[tuple[float, float]] = []
    times: list[float] = []
    others: dict[str, Any] = {}
    for where, row in rows:
        try:
            times.append(arrays.finite(row["TIME"], "TIME"))
            if _is_measurement(row):
                measured.append((times[-1], arrays.finite(row[MEASURED], MEASURED)))
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        for key, value in row.items():
            if key not in _KNOWN and not is_missing(value) and others.setdefault(key, value) != value:
                raise DataError(f"{where}: {key} is {value} here and {others[key]} before; a parameter has one value")
    if not measured:
        raise DataError(f"{name}: nothing was measured; remove the subject")
    doses = {"": [dose for own in read(rows).values() for dose in own]}
    values = {key: arrays.finite(value, key) for key, value in others.items()}
    series = tuple(zip(*sorted(measured), strict=True))
    return Data(None, {MEASURED: series}, name=name, start=min(times), values=values).given(doses).experiments[0]


def _is_measurement(row: Mapping[str, Any]) -> bool:
    if is_missing(row[MEASURED]) or _number(row, "MDV") != 0:
        return False
    return _number(row, "AMT" if is_missing(row.get("EVID")) else "EVID") == 0


def _number(row: Mapping[str, Any], name: str) -> float:
    return 0.0 if is_missing(row.get(name)) else arrays.finite(row[name], name)
