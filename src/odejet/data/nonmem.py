"""NONMEM's tables: doses and measurements of many subjects in one table, as NONMEM, Monolix and nlmixr2 read them.

A subject (ID) is an experiment.  What was measured (DV) is the only output of the model, or the one that DVID tells by
its number or its name.  All other columns are covariates: they stay with the subject, numbers or words, and those that
are called like a parameter or an input of the model tell what that is.  A point is a missing value; names of columns
may be written in any case.

Rows of one time are in order: what was measured in a row before that of a dose was measured before it, in a row after
it after it.  Doses that ADDL adds come before the rows of their times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from odejet.data import arrays
from odejet.data.censored import Pair, checked, is_limit, limited, read_limits
from odejet.data.covariate import Covariate
from odejet.data.doses import NONMEM, SEEN, Rows, canonical_name, event_kind, is_missing, label_of, read_nonmem
from odejet.data.experiment import Experiment
from odejet.data.series import Series
from odejet.data.table import experiment
from odejet.errors import DataError, clipped

MEASURED = "DV"
_BESIDE = ("ID", "AMT", "EVID", "MDV", "CMT", "RATE", "DVID", "ADDL", "CENS")
_DATES = ("DATE", "DAT1", "DAT2", "DAT3")
_COMMENT = "C"
_MANY = 100_000  # doses that ADDL adds
_APART = 1e-12  # of the largest time: what is measured on both sides of a dose at one time is so far apart

Row = tuple[str, Mapping[str, Any]]


def is_header(header: Iterable[str]) -> bool:
    """Whether columns are those of such a table: a time, what was measured, and one more that only they have."""
    given = [str(name).strip() for name in header]
    found = {_title(name, given) for name in given}
    if {"TIME", MEASURED} <= set(given):
        return True
    return {"TIME", MEASURED} <= found and bool(found & set(_BESIDE))


def _title(name: str, header: Iterable[str]) -> str:
    """The name of a column here; Monolix calls what was measured Y."""
    found = canonical_name(name)
    if found.upper() == "Y" and MEASURED not in map(canonical_name, header):
        return MEASURED
    return found


def experiments(rows: Rows) -> list[Experiment]:
    """The subjects of a table."""
    subjects: dict[str, list[Row]] = {}
    titles: dict[str, str] = {}
    for where, row in rows:
        titles = titles or _titles(row, where)
        cells = {titles[name]: value for name, value in row.items() if not is_missing(value)}
        if str(cells.get(_COMMENT, "")).strip().upper() != _COMMENT:  # NONMEM skips what is marked so
            subjects.setdefault(label_of(cells) or "experiment1", []).append((where, cells))
    if not subjects:
        raise DataError("there are no rows, so that nothing was measured")
    words = _words(row for own in subjects.values() for row in own)
    return [_subject(name, own, words) for name, own in subjects.items()]


def _titles(row: Mapping[str, Any], where: str) -> dict[str, str]:
    titles = {name: _title(name, row) for name in row}
    for title, count in Counter(titles.values()).items():
        if count > 1:
            raise DataError(f"{where}: there are two columns {title}; rename or remove one of them")
        if title.upper() in _DATES:
            raise DataError(f"{where}: the column {title} is not understood; give TIME as one number that goes on")
    return titles


def _words(rows: Iterable[Row]) -> set[str]:
    """Columns that hold anything but numbers, which are categories."""
    found: set[str] = set()
    for _, cells in rows:
        for name, value in cells.items():
            if name not in NONMEM and name not in found and not _is_number(value):
                found.add(name)
    return found


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _subject(name: str, rows: list[Row], words: set[str]) -> Experiment:
    measured: dict[str, list[tuple[float, float | Pair]]] = {}
    times: list[float] = []
    for where, cells in rows:
        try:
            if "TIME" not in cells:
                raise DataError("the TIME is missing")
            time = arrays.finite(cells["TIME"], "TIME")
            if times and time < times[-1] and event_kind(cells) in (3, 4):
                raise DataError(f"TIME goes back from {times[-1]:g} to {time:g}; let it go on, or give another ID")
            times.append(time)
            _is_measurement(cells)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
    ordered = list(_in_order(rows))
    for where, cells in ordered:
        try:
            if _is_measurement(cells):
                measured.setdefault(_output(cells), []).append((cells["TIME"], _value(cells)))
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
    if not measured:
        raise DataError(f"{name}: nothing was measured; remove the subject")
    doses = tuple(read_nonmem(ordered))
    series = {key: _series(key, own) for key, own in measured.items()}
    found = experiment(arrays.label(name), series, min(times), doses=doses, started=False)
    return replace(found, covariates=_covariates(rows, times, words))


def _in_order(rows: list[Row]) -> Iterator[Row]:
    """The rows of a subject with the order of those at one time in their cells: whether a dose is seen by what was
    measured then, and a time a little later for what follows a dose that is not."""
    given = [(where, {**cells, "TIME": float(cells["TIME"])}) for where, cells in rows]
    ever = {cells["TIME"] for _, cells in given if _is_measurement(cells)}
    apart = _APART * (max(map(abs, ever), default=0.0) or 1.0)
    measured: set[float] = set()  # times at which something was, so far
    dosed: set[float] = set()  # and a dose given after that
    passes: dict[float, int] = {}  # how often measurements followed
    for where, cells in given:
        time = cells["TIME"]
        if _is_measurement(cells):
            passes[time] = passes.get(time, 0) + (time in dosed)
            measured.add(time)
            dosed.discard(time)
            yield where, {**cells, "TIME": time + passes[time] * apart}
        elif event_kind(cells) in (1, 3, 4):
            dosed |= {time} & measured
            own = {**cells, "TIME": time + passes.get(time, 0) * apart, SEEN: int(time in ever - measured)}
            yield from ((where, one) for one in _told_apart(own, ever, time in measured))
        else:
            yield where, cells


def _told_apart(cells: Mapping[str, Any], ever: set[float], follows: bool) -> Iterator[Mapping[str, Any]]:
    """A dose and those that ADDL adds, which come before what was measured at their times, whatever the first does."""
    further, every = (float(cells[name]) if _is_number(cells.get(name)) else 0.0 for name in ("ADDL", "II"))
    count = int(further) if further == int(further) and 0 < further <= _MANY else 0
    if not any(cells["TIME"] + (i + 1) * every in ever for i in range(count)):
        yield cells
    elif not follows:
        yield {**cells, SEEN: 1}
    else:
        yield {**cells, "ADDL": 0}
        second = {key: value for key, value in cells.items() if key != "SS"}
        yield {**second, "TIME": cells["TIME"] + every, "ADDL": count - 1, SEEN: 1}


def _covariates(rows: list[Row], times: list[float], words: set[str]) -> dict[str, Covariate]:
    found: dict[str, Covariate] = {}
    names = dict.fromkeys(name for _, cells in rows for name in cells if name not in NONMEM)
    order = np.argsort(times, kind="stable")
    for name in names:
        places = [i for i in order if name in rows[i][1]]
        cells = [rows[i][1][name] for i in places]
        values = np.array([str(c).strip() if name in words else float(c) for c in cells])
        found[name] = Covariate(np.array(times)[places], values)
    return found


def _is_measurement(cells: Mapping[str, Any]) -> bool:
    if _number(cells, "MDV") != 0 or event_kind(cells) != 0:
        return False
    return MEASURED in cells or ("LLOQ" in cells and _number(cells, "BLQ") != 0)


def _value(cells: Mapping[str, Any]) -> float | Pair:
    """What was measured in a row: a number, or limits.

    With CENS 1 the value is a limit that it is below, with CENS -1 one that it is above, and LIMIT is the other end, as
    Monolix has it.  BLQ 1 is the first of these, with the limit in LLOQ where there is such a column.
    """
    told = cells.get(MEASURED)
    if isinstance(told, str) and is_limit(told):
        return read_limits(told)
    side, below = _number(cells, "CENS"), _number(cells, "BLQ")
    if side not in (-1, 0, 1) or below not in (0, 1):
        name, value = ("CENS", side) if side not in (-1, 0, 1) else ("BLQ", below)
        raise DataError(f"{name} {value:g} is not understood; CENS is 0, 1 (below DV) or -1 (above), BLQ is 0 or 1")
    limit = cells["LLOQ"] if below and "LLOQ" in cells else told
    value = arrays.finite(limit, MEASURED)
    if not side and not below:
        return value
    other = arrays.finite(cells["LIMIT"], "LIMIT") if "LIMIT" in cells else np.inf if side < 0 else -np.inf
    return checked(value, other) if side < 0 else checked(other, value)


def _series(name: str, measured: list[tuple[float, float | Pair]]) -> Series:
    """A series of numbers and limits with their times."""
    pairs = {i: value for i, (_, value) in enumerate(measured) if isinstance(value, tuple)}
    values = np.array([np.nan if isinstance(value, tuple) else value for _, value in measured])
    numbers, limits = limited(values, pairs)
    return arrays.series(name, np.array([time for time, _ in measured]), numbers, None, limits)


def _output(cells: Mapping[str, Any]) -> str:
    """What was measured: DV, DV2 for the second output of the model, or an output by its name."""
    told = cells.get("DVID", "")
    if told == "":
        return MEASURED
    if _is_number(told):
        which = float(told)
        if which != int(which) or which < 1:
            raise DataError(f"DVID is the number of an output from 1 on, or its name, not {clipped(str(told))}")
        return f"{MEASURED}{int(which)}"
    return arrays.output_name(str(told).strip())


def _number(cells: Mapping[str, Any], name: str) -> float:
    return arrays.finite(cells[name], name) if name in cells else 0.0
