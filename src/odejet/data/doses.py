"""Dose: what is given to a system from outside, at once or over a while.

A table of doses has one per row: its `time`, the `state` that it goes to and its `amount`; a `duration` makes it an
infusion, `every` and `count` repeat it, and `experimentId` tells whose it is.  NONMEM's columns say the same: TIME,
AMT, CMT (the number of the state, one by default), RATE (an amount per time), II and ADDL (further doses and how far
apart), ID, and EVID, by which a row is a measurement (0), a dose (1), neither (2), or empties the system (3, 4).

A bolus is an event that adds to a state.  An infusion adds to its rate: a number of the experiment's model that one
event raises and another lowers again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from odejet.data import arrays
from odejet.errors import DataError, ModelError, clipped, nearest
from odejet.model import Event
from odejet.model.expressions import Expression, Product, Sum, Symbol, constant, number

COLUMNS = ("time", "state", "amount", "duration", "every", "count", "experimentId")
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
    seen: bool = False  # whether a measurement at its time is after it
    where: str = field(default="", compare=False)  # the row that tells it, for messages

    @property
    def first(self) -> float:
        """When it begins, if that is known."""
        return float(exact) if (exact := constant(self.time)) is not None else np.inf

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
        cells = {str(name).strip(): value for name, value in row.items() if not is_missing(value)}
        try:
            doses = _read_nonmem(cells) if "AMT" in row or "EVID" in row else [_read(cells)]
        except (DataError, ModelError) as error:
            raise DataError(f"{where}: {error}") from None
        if doses:
            found.setdefault(_label(cells), []).extend(replace(dose, where=where) for dose in doses)
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
    cells = (dose.time, dose.state, dose.amount, dose.duration, dose.every, dose.count, label)
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


def _label(cells: Mapping[str, Any]) -> str:
    label = cells.get("experimentId", cells.get("ID", ""))
    return f"{label:g}" if isinstance(label, float) else str(label).strip()


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
    return Dose(
        _known(cells, "time"),
        str(cells["state"]).strip(),
        _known(cells, "amount"),
        _positive(cells, "duration"),
        every,
        count if every is not None else None,
        _is_seen(cells),
    )


def _is_seen(cells: Mapping[str, Any]) -> bool:
    seen = _number(cells, SEEN)
    if seen not in (0, 1):
        raise DataError(f"{SEEN} must be 0 or 1: whether a measurement at the time of the dose is after it")
    return bool(seen)


def _read_nonmem(cells: Mapping[str, Any]) -> list[Dose]:
    kind = _number(cells, "EVID", 1.0 if _number(cells, "AMT") else 0.0)
    if kind not in (0, 1, 2, 3, 4):
        raise DataError(f"EVID {kind:g} is not understood; it is 0, 1, 2, 3 or 4")
    if _number(cells, "SS") != 0:
        raise DataError('a dose at steady state (SS) is not understood; write the doses before it, or initial="steady"')
    if kind in (0, 2):
        return []
    if "TIME" not in cells:
        raise DataError("the TIME is missing")
    time, state = number(_number(cells, "TIME")), f"{_number(cells, 'CMT', 1.0):g}"
    seen = _is_seen(cells)
    emptied = [Dose(time, state, None, seen=seen)] if kind in (3, 4) else []
    if kind == 3:
        return emptied
    rate, further = _number(cells, "RATE"), _number(cells, "ADDL")
    if rate < 0:
        raise DataError(f"RATE {rate:g} stands for a parameter; give the infusion as events of the model")
    if further != int(further) or further < 0:
        raise DataError(f"ADDL must be a whole number that is not negative, not {further:g}")
    amount = _number(cells, "AMT")
    dose = Dose(
        time,
        state,
        number(amount),
        number(amount / rate) if rate > 0 else None,
        _positive(cells, "II") if further else None,
        int(further) + 1 if further else None,
        seen,
    )
    return [*emptied, dose]


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
