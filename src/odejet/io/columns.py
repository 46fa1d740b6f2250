"""Columns: a glance at a table that somebody else wrote, and the same table under the names of a model.

A column of a wide table, or an observable of a tidy one, is called whatever its author liked.  `retitled` gives each
the name it has in a model and leaves out the others; cells stay as they stand in the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from odejet.data import nonmem
from odejet.data.doses import is_nonmem
from odejet.data.table import EXPERIMENT, OBSERVABLE, TIME
from odejet.errors import DataError, clipped
from odejet.io.csv import Parser, opened

SHOWN = 6
"""Rows that a glance shows."""


@dataclass(frozen=True)
class Glance:
    """What a table looks like before anything is known of it."""

    kind: str  # "wide", "tidy", "nonmem" or "doses"
    names: tuple[str, ...]  # of the columns; of the observables, if it is tidy
    rows: int
    first: tuple[tuple[str, ...], ...]  # some rows of a wide table

    @property
    def words(self) -> tuple[str, ...]:
        """The columns of a wide table that hold words, not numbers."""
        if self.kind != "wide":
            return ()
        cells = {name: [row[i] for row in self.first if i < len(row) and row[i]] for i, name in enumerate(self.names)}
        return tuple(
            name for name, own in cells.items() if own and not any(c.isdecimal() for cell in own for c in cell)
        )


def glance(data: bytes, where: str) -> Glance:
    """The kind of a table, the names in it and its first rows."""
    found = opened(data, where)
    header = found.header()
    if not header:
        raise DataError(f"{where}: the file is empty; expected a column of times and one for each output")
    if twice := next((name for name, count in Counter(header).items() if count > 1), ""):
        raise DataError(f"{where}: two columns are called {clipped(twice)}; rename or remove one of them")
    kind = _kind(header)
    if kind == "tidy":
        names = tuple(dict.fromkeys(cells[OBSERVABLE] for _, cells in found.cells()))
    else:
        names = tuple(header)
    rows = islice(found.rows(), 1, None)
    first = tuple(tuple(cell.strip() for cell in row[: len(header)]) for _, row in islice(rows, SHOWN))
    return Glance(kind, names, len(first) + sum(1 for _ in rows), first)


def _kind(header: list[str]) -> str:
    if nonmem.is_header(header):
        return "nonmem"
    if OBSERVABLE in header:
        return "tidy"
    return "doses" if {"amount", "state"} <= set(header) or is_nonmem(header) else "wide"


def guess(
    names: tuple[str, ...],
    known: tuple[str, ...],
    outputs: tuple[str, ...],
    timed: bool = True,
    words: Collection[str] = (),
) -> dict[str, str]:
    """A name for every column: that of the model where they agree in all but case, the time, or nothing.

    Where one column and one of the `outputs` are left over, they belong together; columns that hold `words` are none.
    `timed` is whether one must be the time: the first, if none is called so.
    """
    small = {name.lower(): name for name in known}
    found = {name: name if name in (TIME, *EXPERIMENT) else small.get(name.lower(), "") for name in names}
    if timed and TIME not in found.values():
        times = [name for name in names if re.split(r"[^a-z]", name.lower())[0] in _TIMES and not found[name]]
        if times or not found[names[0]]:
            found[(times or names)[0]] = TIME
    if timed and not any(name in EXPERIMENT for name in found.values()):
        groups = [name for name in names if name.lower() in _GROUPS and not found[name]]
        found |= dict.fromkeys(groups[:1], EXPERIMENT[0])
    free = [name for name in names if not found[name] and name not in words]
    left = [name for name in outputs if name not in found.values()]
    return found | (dict(zip(free, left, strict=True)) if len(free) == len(left) == 1 else {})


_TIMES = (
    "time",
    "t",
    "times",
    "hour",
    "hours",
    "h",
    "day",
    "days",
    "minute",
    "minutes",
    "min",
    "second",
    "seconds",
    "s",
    "week",
    "weeks",
    "year",
    "years",
    "date",
)
_GROUPS = ("experiment", "experimentid", "id", "subject", "group", "condition", "replicate", "patient", "animal")


def retitled(data: bytes, titles: Mapping[str, str], where: str) -> bytes:
    """The table with its columns (a tidy one: its observables) called by these titles; those without are left out."""
    found = opened(data, where)
    kept = [name for name, title in titles.items() if title]
    twice = [title for title in map(titles.__getitem__, kept) if list(titles.values()).count(title) > 1]
    if twice:
        names = " and ".join(clipped(name) for name in kept if titles[name] == twice[0])
        raise DataError(f"{where}: the columns {names} cannot both be '{twice[0]}'; choose one of them")
    rows = _tidy_rows(found, titles) if OBSERVABLE in found.header() else _wide_rows(found, titles)
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=found.delimiter, lineterminator="\n")
    written = 0
    for line, row in rows:
        # Every row keeps its line, so that messages about the table are messages about the file.
        buffer.write("\n" * (line - written - 1))
        writer.writerow(row)
        written = max(line, written + 1)
    return buffer.getvalue().encode()


def _tidy_rows(found: Parser, titles: Mapping[str, str]) -> Iterator[tuple[int, list[str]]]:
    place = found.header().index(OBSERVABLE)
    rows = found.rows()
    yield next(rows)
    for line, row in rows:
        name = row[place].strip() if place < len(row) else ""
        if titles.get(name, name):
            yield line, [titles.get(name, name) if i == place else cell for i, cell in enumerate(row)]


def _wide_rows(found: Parser, titles: Mapping[str, str]) -> Iterator[tuple[int, list[str]]]:
    header = found.header()
    places = [i for i, name in enumerate(header) if titles.get(name)]
    for number, (line, row) in enumerate(found.rows()):
        # A row that is too short stays so, for whoever reads the table to refuse.
        yield line, [row[i] if number else titles[header[i]] for i in places if i < len(row)]
