"""Dose: what is given to a system from outside, at once or over a while.

A table of doses has one per row: its `time`, the `state` that it goes to and its `amount`; a `duration` makes it an
infusion, `every` and `count` repeat it, `steady` is 1 where it has been repeated for ever before, and `experimentId`
tells whose it is.  NONMEM's columns say the same, in any case: TIME, AMT, CMT (the number or the name of the state, the
first by default), RATE (an amount per time; -1 and -2 stand for an unknown rate and an unknown duration), II and ADDL
(further doses and how far apart), SS, ID, and EVID, by which a row is a measurement (0), a dose (1), neither (2), or
empties the system (3, 4).

A bolus is an event that adds to a state.  An infusion adds to its rate: a number of the experiment's model that one
event raises and another lowers again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from odejet.data import arrays
from odejet.errors import DataError, ModelError, clipped, nearest
from odejet.model import Event
from odejet.model.expressions import Expression, Product, Sum, Symbol, constant, number, spelled

COLUMNS = ("time", "state", "amount", "duration", "every", "count", "steady", "experimentId")
SEEN = "seen"
"""A column that tables of doses have where a measurement at the time of one is after it."""

MISSING = ("", ".", "na", "nan")


@dataclass(frozen=True)
class Dose:
    """An amount for a state, by name or by its number among the states; without an amount, the system is emptied."""

    time: Expression
    state: str
    amount: Expression | None
    duration: Expression | None = None  # of an infusion
    every: Expression | None = None
    count: int | None = None
    steady: int | None = None  # 1: at steady state, 2: that is added to what was there, 0: not; None where nobody says
    seen: bool = False  # whether a measurement at its time is after it
    where: str = field(default="", compare=False)  # the row that tells it, for messages

    @property
    def first(self) -> float:
        """When it begins, if that is known."""
        return float(exact) if (exact := constant(self.time)) is not None else np.inf

    @property
    def resets(self) -> bool:
        """Whether what was given before is forgotten."""
        return self.amount is None or self.steady == 1

    def event(self, states: Iterable[str], target: str) -> Event:
        """What happens when it begins: the target, a state or the rate of an infusion, grows."""
        if self.amount is None:
            return Event(at=self.time, set=dict.fromkeys(states, 0), seen=self.seen)
        rate = self.amount if self.duration is None else Product(((1, self.amount), (-1, self.duration)))
        return self._repeated(self.time, target, rate, 1)

    def ending(self, target: str) -> Event | None:
        """What happens when an infusion ends."""
        if self.amount is None or self.duration is None:
            return None
        rate = Product(((1, self.amount), (-1, self.duration)))
        return self._repeated(Sum(((1, self.time), (1, self.duration))), target, rate, -1)

    def _repeated(self, time: Expression, target: str, amount: Expression, sign: int) -> Event:
        grown = Sum(((1, Symbol(target)), (sign, amount)))
        return Event(at=time, set={target: grown}, every=self.every, count=self.count, seen=self.seen)


def without_forgotten(doses: Iterable[Dose]) -> list[Dose]:
    """Doses in which those that something later makes forgotten end there: repetitions and infusions are cut."""
    given = list(doses)
    resets = [(dose.first, i) for i, dose in enumerate(given) if dose.resets]
    if not resets:
        return given
    found = []
    for i, dose in enumerate(given):
        end = min((time for time, j in resets if (time, j) > (dose.first, i)), default=np.inf)
        found += [dose] if end == np.inf or dose.amount is None else _until(dose, end)
    return found


def _until(dose: Dose, end: float) -> list[Dose]:
    """What is given of a dose before a time, if its times are known."""
    parts = [None if part is None else constant(part) for part in (dose.every, dose.duration)]
    if dose.first == np.inf or (dose.every is not None and parts[0] is None):
        return [dose]
    period, length = (None if exact is None else float(exact) for exact in parts)
    times = 1 if period is None else math.ceil((end - dose.first) / period - 1e-9)
    times = times if dose.count is None and period is not None else min(times, dose.count or 1)
    if dose.first >= end or times < 1:
        return []
    whole = times
    if length is not None and dose.amount is not None:
        while whole > 0 and dose.first + (whole - 1) * (period or 0.0) + length > end:
            whole -= 1
    found = [replace(dose, count=whole if period is not None else None)] if whole else []
    for k in range(whole, times):
        begin = dose.first + k * (period or 0.0)
        assert length is not None and dose.amount is not None
        amount = Product(((1, dose.amount), (1, number((end - begin) / length))))
        duration = number(end - begin)
        once = replace(dose, time=number(begin), amount=amount, duration=duration, every=None, count=None)
        found.append(once if k == 0 else replace(once, steady=None))
    return found


Rows = Iterable[tuple[str, Mapping[str, Any]]]
"""The cells of every row by column, with the words that name it in messages."""


def rows_of(table: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of what people hand over: columns by name, a table of pandas, or a list of rows."""
    if hasattr(table, "to_dict") and hasattr(table, "columns"):
        table = {str(name): list(table[name]) for name in table.columns}
    if isinstance(table, Mapping):
        table = _transposed(table)
    if isinstance(table, str | bytes) or not isinstance(table, Iterable):
        raise DataError("doses must be a table with the columns time, state and amount, or a list of its rows")
    for position, row in enumerate(table, 1):
        if not isinstance(row, Mapping):
            raise DataError(f"dose {position}: expected a row such as {{'time': 0, 'state': 'gut', 'amount': 100}}")
        yield f"dose {position}", row


def _transposed(columns: Mapping[Any, Any]) -> list[dict[Any, Any]]:
    """The rows of columns; a single value stands for a column of it."""
    sizes = {len(column) for column in columns.values() if np.ndim(column) > 0}
    if len(sizes) > 1:
        raise DataError(f"the columns of doses have different lengths, {' and '.join(map(str, sorted(sizes)))}")
    count = sizes.pop() if sizes else 1
    full = {name: list(column) if np.ndim(column) > 0 else [column] * count for name, column in columns.items()}
    return [{name: column[i] for name, column in full.items()} for i in range(count)]


def read(rows: Rows) -> dict[str, list[Dose]]:
    """The doses in rows by experiment; an empty name is that of all."""
    found: dict[str, list[Dose]] = {}
    for where, row in rows:
        try:
            doses = _read_nonmem(canonical(row)) if is_nonmem(row) else [_read(_told_cells(row))]
        except (DataError, ModelError) as error:
            raise DataError(f"{where}: {error}") from None
        if doses:
            found.setdefault(label_of(row), []).extend(replace(dose, where=where) for dose in doses)
    return found


def read_nonmem(rows: Rows) -> list[Dose]:
    """The doses in rows under NONMEM's names, from which missing cells are left out."""
    found: list[Dose] = []
    for where, cells in rows:
        try:
            found += (replace(dose, where=where) for dose in _read_nonmem(cells))
        except (DataError, ModelError) as error:
            raise DataError(f"{where}: {error}") from None
    return found


def columns(doses: Mapping[str, Iterable[Dose]]) -> dict[str, list[Any]]:
    """The columns of a table that holds the doses of experiments; what empties a system is written as NONMEM has it."""
    rows = [(label, dose) for label, own in doses.items() for dose in own]
    row_of = _nonmem if any(dose.amount is None for _, dose in rows) else _told
    told = [row_of(*row) for row in rows]
    if any(dose.seen for _, dose in rows):
        told = [{**cells, SEEN: int(dose.seen)} for cells, (_, dose) in zip(told, rows, strict=True)]
    return {name: [row[name] for row in told] for name in (told[0] if told else COLUMNS)}


def _told(label: str, dose: Dose) -> dict[str, Any]:
    cells = (dose.time, dose.state, dose.amount, dose.duration, dose.every, dose.count, dose.steady, label)
    return {name: _cell(cell) for name, cell in zip(COLUMNS, cells, strict=True)}


def _nonmem(label: str, dose: Dose) -> dict[str, Any]:
    known = [None if part is None else constant(part) for part in (dose.time, dose.amount, dose.duration, dose.every)]
    time, amount, length, every = (None if exact is None else float(exact) for exact in known)
    parts = zip((dose.time, dose.amount, dose.duration, dose.every), (time, amount, length, every), strict=True)
    if not dose.state.isdecimal() or any(part is not None and exact is None for part, exact in parts):
        reason = "beside doses that empty a system, NONMEM's columns hold numbers alone, also of states"
        raise DataError(f"{label}: the dose to '{dose.state}' at t = {dose.time} cannot be written: {reason}")
    if every is not None and dose.count is None:
        raise DataError(f"{label}: the dose to '{dose.state}' repeats without end, which NONMEM's columns cannot say")
    return {
        "ID": label,
        "TIME": time,
        "AMT": "" if amount is None else amount,
        "CMT": int(dose.state),
        "RATE": amount / length if amount and length else "",
        "II": "" if every is None else every,
        "ADDL": "" if dose.count is None else dose.count - 1,
        "SS": "" if dose.steady is None else dose.steady,
        "EVID": 3 if amount is None else 1,
    }


def _cell(value: Any) -> Any:
    """A number as one, what is missing as nothing."""
    if not isinstance(value, Expression):
        return "" if value is None else value
    exact = constant(value)
    return str(value) if exact is None else float(exact)


def is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or (isinstance(value, float) and np.isnan(value))


NONMEM = (
    "ID",
    "TIME",
    "AMT",
    "CMT",
    "RATE",
    "TINF",
    "II",
    "ADDL",
    "EVID",
    "SS",
    "MDV",
    "DV",
    "DVID",
    "CENS",
    "LIMIT",
    "BLQ",
    "LLOQ",
)
"""Columns that have a meaning of their own, in any case."""

_OTHERWISE = {"YTYPE": "DVID", "#ID": "ID", "BQL": "BLQ", "BLOQ": "BLQ", "LOQ": "LLOQ"}
"""What Monolix calls some of them."""


def canonical_name(name: Any) -> str:
    """NONMEM's name of a column, in whatever case it is written; other names as they are."""
    text = str(name).strip()
    upper = _OTHERWISE.get(text.upper(), text.upper())
    return upper if upper in NONMEM else text


def canonical(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The cells of a row that are there, under NONMEM's names."""
    return {canonical_name(name): value for name, value in row.items() if not is_missing(value)}


def is_nonmem(names: Iterable[Any]) -> bool:
    """Whether columns are those of doses in NONMEM's words."""
    found = {canonical_name(name) for name in names}
    return bool(found & {"AMT", "EVID"})


def label_of(row: Mapping[Any, Any]) -> str:
    """The experiment that a row is of; empty where it does not say."""
    cells = canonical(row)
    label = cells.get("experimentId", cells.get("ID", ""))
    return f"{label:g}" if isinstance(label, float) else str(label).strip()


def _told_cells(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name).strip(): value for name, value in row.items() if not is_missing(value)}


def _read(cells: Mapping[str, Any]) -> Dose:
    for name in cells:
        if name not in (*COLUMNS, SEEN):
            hint = nearest(name, COLUMNS) or f"; doses have {', '.join(COLUMNS)}"
            raise DataError(f"the column {clipped(name)} is not understood{hint}")
    for name in COLUMNS[:3]:
        if name not in cells:
            raise DataError(f"the {name} is missing")
    every, count = _positive(cells, "every"), _whole(cells, "count")
    if every is None and count not in (None, 1):
        raise DataError(f"{count} doses need a time between them; give every, too")
    told = None if "steady" not in cells else _plain(cells["steady"])
    if told not in (None, 0, 1, 2):
        raise DataError(
            f"steady is 1 for a dose at steady state, 2 where that is added, or 0, not {clipped(str(told))}"
        )
    steady = None if told is None else int(told)
    dose = Dose(
        _known(cells, "time"),
        spelled(str(cells["state"]).strip()),
        _known(cells, "amount"),
        _positive(cells, "duration"),
        every,
        count if every is not None else None,
        steady,
        _is_seen(cells),
    )
    if steady:
        _check_steady(dose, "every")
    return dose


def _check_steady(dose: Dose, period: str) -> None:
    """Refuse a dose at steady state of which nobody knows when the others were."""
    time, every = constant(dose.time), None if dose.every is None else constant(dose.every)
    length = None if dose.duration is None else constant(dose.duration)
    if every is None:
        raise DataError(f"a dose at steady state needs the time between doses as a number; give {period}, too")
    if time is None:
        raise DataError("a dose at steady state is given at a time that is a number")
    if length is not None and length > every:
        times = f"lasts {float(length):g}, longer than its {period} of {float(every):g}"
        raise DataError(f"an infusion at steady state {times}; write the doses out")


def _is_seen(cells: Mapping[str, Any]) -> bool:
    seen = _number(cells, SEEN)
    if seen not in (0, 1):
        raise DataError(f"{SEEN} must be 0 or 1: whether a measurement at the time of the dose is after it")
    return bool(seen)


def _read_nonmem(cells: Mapping[str, Any]) -> list[Dose]:
    kind, state = event_kind(cells), _compartment(cells)
    if kind not in (0, 1, 2, 3, 4):
        raise DataError(f"EVID {kind:g} is not understood; it is 0, 1, 2, 3 or 4")
    if kind in (0, 2):
        return []
    if "TIME" not in cells:
        raise DataError("the TIME is missing")
    time, seen = number(_number(cells, "TIME")), _is_seen(cells)
    emptied = [Dose(time, state, None, seen=seen)] if kind in (3, 4) else []
    if kind == 3:
        return emptied
    further, steady = _number(cells, "ADDL"), _steady(cells)
    if further != int(further) or further < 0:
        raise DataError(f"ADDL must be a whole number that is not negative, not {further:g}")
    amount = number(_number(cells, "AMT"))
    if steady and constant(amount) == 0:
        raise DataError("the steady state of a constant infusion (AMT 0 with SS) is not understood; repeat doses by II")
    repeated = bool(further or steady)
    dose = Dose(
        time,
        state,
        amount,
        _duration(cells, amount, state),
        _positive(cells, "II") if repeated else None,
        int(further) + 1 if repeated else None,
        steady,
        seen,
    )
    if further and dose.every is None:
        raise DataError(f"ADDL {further:g} needs the time between doses; give II, too")
    if steady:
        _check_steady(dose, "II")
    return [*emptied, dose]


def event_kind(cells: Mapping[str, Any]) -> float:
    """The EVID of a row; without one, what has an amount is a dose.  101 is a dose to the first state, 201 to the
    second and so on, as files for RxODE have it."""
    kind = _number(cells, "EVID", 1.0 if _number(cells, "AMT") else 0.0)
    return 1.0 if 100 < kind < 10_000 and kind % 100 == 1 else kind


def _compartment(cells: Mapping[str, Any]) -> str:
    """The number of the state that a dose goes to, or its name."""
    kind = _number(cells, "EVID")
    if kind > 100:
        return f"{int(kind) // 100}"
    told = _plain(cells.get("CMT", 1.0))
    return f"{told:g}" if isinstance(told, float) else str(spelled(str(told).strip()))


def _steady(cells: Mapping[str, Any]) -> int | None:
    """Whether a dose is one at steady state; without a period none is, whatever number stands for missing."""
    told = _number(cells, "SS")
    if told in (0, 1, 2, 3):
        return (1 if told == 3 else int(told)) if "SS" in cells else None
    if _number(cells, "II"):
        raise DataError(f"SS {told:g} is not understood; it is 0, 1 or 2")
    return 0


def _duration(cells: Mapping[str, Any], amount: Expression, state: str) -> Expression | None:
    """How long an infusion lasts: by its RATE, by TINF, or as an unknown that is called as NONMEM has it."""
    rate, suffix = _number(cells, "RATE"), state if state.isdecimal() else f"_{state}"
    if rate == -1:
        return Product(((1, amount), (-1, Symbol(f"R{suffix}"))))
    if rate == -2:
        return Symbol(f"D{suffix}")
    if rate < 0:
        raise DataError(f"RATE {rate:g} is not understood; it is an amount per time, -1 or -2")
    exact = constant(amount)
    if rate > 0 and exact:
        return number(float(exact) / rate)
    return _positive(cells, "TINF")


def _known(cells: Mapping[str, Any], name: str) -> Expression:
    value = cells[name]
    return arrays.known(name, _plain(value), "the dose's")


def _plain(value: Any) -> Any:
    """A cell as a number where it is one, also where a file has it as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _positive(cells: Mapping[str, Any], name: str) -> Expression | None:
    if name not in cells or _plain(cells[name]) == 0:
        return None
    value = _known(cells, name)
    exact = constant(value)
    if exact is not None and exact < 0:
        raise DataError(f"the {name} {float(exact):g} is negative")
    return value


def _whole(cells: Mapping[str, Any], name: str) -> int | None:
    if name not in cells:
        return None
    value = _plain(cells[name])
    if isinstance(value, bool) or not isinstance(value, float) or value != int(value) or value < 1:
        raise DataError(f"the {name} must be a whole number of at least 1, not {clipped(str(cells[name]))}")
    return int(value)


def _number(cells: Mapping[str, Any], name: str, missing: float = 0.0) -> float:
    return arrays.finite(cells[name], name) if name in cells else missing
