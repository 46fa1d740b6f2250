"""NONMEM files: doses and measurements of many subjects in one table.

A subject (ID) is an experiment; what was measured (DV) is the only output of the model.  Other columns are what
parameters of that name are for the subject.  A point is a missing value.  Rows of one time are in order: what was
measured in a row before that of a dose was measured before it, in a row after it after it.  Doses that ADDL adds come
before the rows of their times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from odejet.data import Data, Experiment, arrays
from odejet.data.doses import SEEN, Rows, is_missing, read
from odejet.errors import DataError

MEASURED = "DV"
_KNOWN = ("ID", "TIME", "AMT", "CMT", "RATE", "II", "ADDL", "EVID", "SS", "MDV", MEASURED, SEEN)
_APART = 1e-12  # of the largest time: what is measured on both sides of a dose at one time is so far apart


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
    rows = list(_in_order(rows))
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


def _in_order(rows: list[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a subject with the order of those at one time in their cells: whether a dose is seen by what was
    measured then, and a time a little later for what follows a dose that is not."""
    kinds = [_kind(where, row) for where, row in rows]
    ever = {float(row["TIME"]) for (_, row), kind in zip(rows, kinds, strict=True) if kind == MEASURED}
    apart = _APART * (max(map(abs, ever), default=0.0) or 1.0)
    measured: set[float] = set()  # times at which something was, so far
    dosed: set[float] = set()  # and a dose given after that
    passes: dict[float, int] = {}  # how often measurements followed
    for (where, row), kind in zip(rows, kinds, strict=True):
        if kind == "":
            yield where, row
            continue
        time = float(row["TIME"])
        if kind == MEASURED:
            passes[time] = passes.get(time, 0) + (time in dosed)
            measured.add(time)
            dosed.discard(time)
            yield where, {**row, "TIME": time + passes[time] * apart}
        else:
            dosed |= {time} & measured
            own = {**row, "TIME": time + passes.get(time, 0) * apart, SEEN: int(time in ever - measured)}
            yield from ((where, one) for one in _told_apart(own, ever, time in measured))


def _told_apart(row: Mapping[str, Any], ever: set[float], follows: bool) -> Iterator[Mapping[str, Any]]:
    """A dose and those that ADDL adds, which come before what was measured at their times, whatever the first does."""
    further, every = int(_number(row, "ADDL")), _number(row, "II")
    if not any(row["TIME"] + (i + 1) * every in ever for i in range(further)):
        yield row
    elif not follows:
        yield {**row, SEEN: 1}
    else:
        yield {**row, "ADDL": 0, "II": ""}
        last = further == 1
        yield {**row, "TIME": row["TIME"] + every, "ADDL": further - 1, "II": "" if last else every, SEEN: 1}


def _kind(where: str, row: Mapping[str, Any]) -> str:
    """What a row is: a measurement, a dose, or nothing whose order matters."""
    if not _is_finite(row["TIME"]):
        return ""
    try:
        dose = _number(row, "AMT") != 0 if is_missing(row.get("EVID")) else _number(row, "EVID") in (1, 3, 4)
        return MEASURED if _is_measurement(row) else "AMT" if dose else ""
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _is_finite(time: Any) -> bool:
    try:
        return math.isfinite(float(time))
    except (TypeError, ValueError):
        return False


def _is_measurement(row: Mapping[str, Any]) -> bool:
    if is_missing(row[MEASURED]) or _number(row, "MDV") != 0:
        return False
    return _number(row, "AMT" if is_missing(row.get("EVID")) else "EVID") == 0


def _number(row: Mapping[str, Any], name: str) -> float:
    return 0.0 if is_missing(row.get(name)) else arrays.finite(row[name], name)
