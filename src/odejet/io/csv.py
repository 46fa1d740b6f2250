"""CSV files: tables of measurements that somebody else wrote, and writing them back.

A table is *wide*, with a column `time` and one per output, or *tidy* in the words of PEtab, with one measurement per
line: `observableId, time, measurement`.  Delimiters are commas, semicolons (then a decimal comma is understood) or
tabs; lines that start with # and empty ones are skipped; cells may be quoted.  A measurement that is censored is
`<0.5`, `>100` or `0.1..0.5`.  Every refusal names file and line.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.attach import attach
from odejet.data import Data, nonmem
from odejet.data.censored import is_limit, limited, read_limits
from odejet.data.doses import Dose
from odejet.data.doses import read as read_rows
from odejet.data.table import OBSERVABLE, SD, TIME, Labels, Table, check_header, experiments, is_text
from odejet.errors import DataError, clipped
from odejet.extras import needed, present
from odejet.io import files
from odejet.jets.inputs import Sampled, sampled

if TYPE_CHECKING:
    import pandas

MAX_BYTES = 2_000_000_000
MAX_COLUMNS = 20_000
MISSING = frozenset(("", "na", "n/a", "nan", "null"))
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(\D|$)|\d{1,2}:\d{2}")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_QUOTED = re.compile(r'"[^"]*"?')
_CHUNK = 1 << 15  # rows that are converted at once
_LARGE = 2_000_000  # characters that are worth the time of importing pandas


# --- reading ----------------------------------------------------------------------------------------------------------


@attach(Data.from_csv)
def read_data(kind: type[Data], path: str | os.PathLike[str], doses: str | os.PathLike[str] | None = None) -> Data:
    found = data_of(_read_bytes(path), str(path))
    return found if doses is None else found.given(read_doses(doses))


def data_of(content: bytes, where: str) -> Data:
    """The measurements in the bytes of a file; `where` names it in messages."""
    parser = opened(content, where)
    if nonmem.is_header(parser.header()):
        return Data.of(nonmem.experiments(parser.cells()))
    return Data.of(experiments(parser.table()))


def read_doses(path: str | os.PathLike[str]) -> dict[str, list[Dose]]:
    """The doses in a table, by experiment; cells may be expressions in parameters."""
    found = read_rows(opened(_read_bytes(path), str(path)).cells())
    if not found:
        raise DataError(f"{path}: there is no dose; expected the columns time, state and amount")
    return found


def read(path: str | os.PathLike[str]) -> Table:
    """The table in a file."""
    return parse(_read_bytes(path), str(path))


def _read_bytes(path: str | os.PathLike[str]) -> bytes:
    return files.read_bytes(path, MAX_BYTES, "data", DataError)


def parse(data: bytes, where: str) -> Table:
    """The table in the bytes of a file; `where` names it in messages."""
    return opened(data, where).table()


def opened(data: bytes, where: str) -> Parser:
    """The bytes of a file as text whose rows can be read."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"{where}: line {line} is not UTF-8 text; save the file as CSV in UTF-8") from None
    return Parser(text, where)


def _uncovered(text: str) -> str:
    """A text whose header can be seen: tables of NONMEM begin with a line of their number, those of Monolix with #."""
    first, mark, rest = text.partition("\n")
    if first.startswith("TABLE NO."):
        return f"{mark}{rest}"
    if first.startswith("#") and nonmem.is_header(re.split(r"[\s,;]+", first[1:].strip())):
        return f"{first[1:]}{mark}{rest}"
    return text


class Parser:
    """One file: its rows can be run through again, to find the line of a cell that is wrong."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        self.where = where
        self.text = _uncovered(self.text)
        first = next((line for line in self.lines() if line.strip()), "")
        unquoted = _QUOTED.sub("", first)
        self.delimiter = next((mark for mark in "\t;," if mark in unquoted), ",")
        if self.delimiter not in unquoted and nonmem.is_header(first.split()):
            self.delimiter = " "  # NONMEM's own tables
            self.text = "\n".join(map(str.strip, self.text.split("\n")))
        self.decimal_comma = self.delimiter == ";"
        self.plain = "_" not in text and text.isascii()

    def lines(self) -> Iterator[str]:
        """Every line, with comments made empty so that the count of lines stays."""
        lines = io.StringIO(self.text)
        if "#" not in self.text:
            return lines
        return ("\n" if line.lstrip().startswith("#") else line for line in lines)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Rows with the number of their last line; empty ones are skipped."""
        reader = csv.reader(self.lines(), delimiter=self.delimiter, skipinitialspace=True)
        try:
            for row in reader:
                if len(row) > MAX_COLUMNS:
                    cells = f"line {reader.line_num} has {len(row)} cells, and {MAX_COLUMNS} is the limit"
                    raise DataError(f"{self.where}: {cells}; keep fewer columns")
                if row and any(row):
                    yield reader.line_num, row
        except csv.Error as error:
            raise DataError(f"{self.where}: line {reader.line_num} is not CSV: {error}") from None

    def header(self) -> list[str]:
        return self.titles(next(self.rows(), (0, []))[1])

    def titles(self, cells: list[str]) -> list[str]:
        """The names of the columns, which end where there is none: every line may end with a delimiter."""
        names = [cell.strip() for cell in cells]
        while names and not names[-1]:
            names.pop()
        return names

    def cells(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Every row with the words that name it in messages: its cells by column, as they stand in the file."""
        rows = self.rows()
        header = self.titles(next(rows, (0, []))[1])
        for line, row in rows:
            if len(row) < len(header) or any(cell.strip() for cell in row[len(header) :]):
                cells = f"{len(row)} cell{'s'[: len(row) != 1]}"
                raise DataError(f"{self.where}: line {line} has {cells}, but there are {len(header)} columns")
            yield f"{self.where}: line {line}", dict(zip(header, (cell.strip() for cell in row), strict=False))

    def table(self) -> Table:
        rows = self.rows()
        line, header = next(rows, (0, []))
        if not header:
            raise DataError(f"{self.where}: the file is empty; expected a column 'time' and one for each output")
        header = self.titles(header)
        check_header(header, self.where)
        if len(self.text) > _LARGE and present("pandas") and (quick := self.quick(header, line)):
            return quick
        tidy = OBSERVABLE in header
        textual = [is_text(name, tidy) for name in header]
        columns: list[list[Any]] = [[] for _ in header]
        self.pairs: dict[str, dict[int, tuple[float, float]]] = {}
        self.converted = 0
        while chunk := list(islice(rows, _CHUNK)):
            for j, cells in enumerate(self.transposed(chunk, len(header))):
                columns[j].append(cells if textual[j] else self.numbers(cells, header[j], chunk))
            self.converted += len(chunk)
        if not columns[0]:
            raise DataError(f"{self.where}: there are no measurements below the first line")
        named = list(zip(header, columns, textual, strict=True))
        numbers = {name: np.concatenate(parts) for name, parts, text in named if not text}
        texts = {name: Labels.of(chain.from_iterable(parts)) for name, parts, text in named if text}
        limits = {}
        for name, pairs in self.pairs.items():
            numbers[name], limits[name] = limited(numbers[name], pairs)
        return Table(numbers, texts, self.place, self.where, {k: v for k, v in limits.items() if v is not None})

    def quick(self, header: list[str], line: int) -> Table | None:
        """A large file by pandas, ten times faster; None where anything is unusual, for the careful way to judge."""
        start = 0
        for _ in range(line):
            start = self.text.find("\n", start) + 1
        body = self.text[start:] if start else ""
        tidy = OBSERVABLE in header
        textual = [i for i, name in enumerate(header) if is_text(name, tidy)]
        # Cells beyond the last column are read one by one, which pandas takes long for.
        longer = body.count(self.delimiter) > (body.count("\n") + 1) * (len(header) - 1)
        if '"' in body or "#" in body or longer or (frame := self.frame(body, len(header), textual)) is None:
            return None
        # Short lines would have been filled up.
        if not len(frame) or body.count(self.delimiter) != len(frame) * (len(header) - 1):
            return None
        numbers = {}
        for i, name in enumerate(header):
            if i not in textual:
                if frame[i].dtype.kind not in "fi":
                    return None
                numbers[name] = frame[i].to_numpy(dtype=float)
                if _not_finite(numbers[name], name).any():
                    return None
        texts = {header[i]: Labels.of(frame[i].tolist()) for i in textual}
        return Table(numbers, texts, self.place, self.where)

    def frame(self, body: str, width: int, textual: list[int]) -> pandas.DataFrame | None:
        pandas = needed("pandas")
        # Before its third version, numbers were read quickly or exactly.
        exactly: Any = {} if int(pandas.__version__.split(".")[0]) >= 3 else {"float_precision": "round_trip"}
        options: Any = {
            "sep": self.delimiter,
            "header": None,
            "names": list(range(width)),
            "index_col": False,
            "dtype": dict.fromkeys(textual, str),
            "decimal": "," if self.decimal_comma and "," in body else ".",
            "skipinitialspace": True,
            "keep_default_na": False,
            "na_values": {i: ["", "NA", "nan", "NaN"] for i in range(width) if i not in textual},
        }
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # cells beyond the last column
            try:
                return pandas.read_csv(io.BytesIO(body.encode()), **options, **exactly)
            except (ValueError, OverflowError, pandas.errors.ParserWarning):
                return None

    def transposed(self, chunk: list[tuple[int, list[str]]], width: int) -> list[tuple[str, ...]]:
        """The columns of some rows; cells beyond the last column must be empty."""
        rows = [row for _, row in chunk]
        if set(map(len, rows)) != {width}:
            for i, (line, row) in enumerate(chunk):
                if len(row) < width or any(cell.strip() for cell in row[width:]):
                    cells = f"{len(row)} cell{'s'[: len(row) != 1]}"
                    raise DataError(f"{self.where}: line {line} has {cells}, but there are {width} columns")
                rows[i] = row[:width]
        return list(zip(*rows, strict=True))

    def numbers(self, cells: Sequence[str], name: str, chunk: list[tuple[int, list[str]]]) -> np.ndarray:
        try:
            # Python reads 1_000 and digits of other scripts as numbers; whoever wrote them may have meant another.
            numbers = np.array(list(map(float if self.plain else _plainly, cells)))
        except ValueError:
            pairs = zip(cells, chunk, strict=True)
            numbers = np.array([self.number(cell, name, line, i) for i, (cell, (line, _)) in enumerate(pairs)])
        bad = _not_finite(numbers, name)
        if bad.any():
            i = int(bad.argmax())
            raise self.error(chunk[i][0], name, f"{clipped(cells[i])} is not finite")
        return numbers

    def number(self, cell: str, name: str, line: int, place: int) -> float:
        """The number in a cell; NaN where there is none, and where it is a limit, which is noted."""
        text = cell.strip()
        if text.lower() in MISSING:
            return np.nan
        if name not in (TIME, SD) and is_limit(text):
            try:
                pair = read_limits(text.replace(",", ".") if self.decimal_comma else text)
            except DataError as error:
                reason, _, remedy = str(error).partition("; ")
                raise self.error(line, name, reason, remedy) from None
            self.pairs.setdefault(name, {})[self.converted + place] = pair
            return np.nan
        try:
            return _plainly(text.replace(",", ".") if self.decimal_comma else text)
        except ValueError:
            raise self.error(line, name, f"{clipped(cell)} is not a number", _remedy(text)) from None

    def error(self, line: int, name: str, reason: str, remedy: str = "") -> DataError:
        usual = "every line needs a time" if name == TIME else "leave the cell empty where nothing was measured"
        remedy = remedy or usual
        return DataError(f"{self.where}: line {line}, column {clipped(name)}: {reason}; {remedy}")

    def place(self, row: int) -> str:
        """The file and line of a row of numbers."""
        line, _ = next(islice(self.rows(), row + 1, None))
        return f"{self.where}: line {line}"


def read_inputs(path: str | os.PathLike[str]) -> dict[str, Sampled]:
    """The samples of inputs in a wide table: a column `time` and one per input; a time that stands twice is a jump."""
    table = read(path)
    if table.texts:
        raise DataError(f"{path}: inputs stand in a column 'time' and one for each of them, and in no other columns")
    times = table.numbers[TIME]
    found = {name: sampled(times, u, f"{path}: {name}") for name, u in table.numbers.items() if name != TIME}
    if not found:
        raise DataError(f"{path}: there is no column but 'time'; add one for each input")
    return found


def _plainly(text: str) -> float:
    """A number that is written with the characters of numbers only."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def _remedy(text: str) -> str:
    """What to write instead of something that only looks like a number; empty where nothing comes to mind."""
    if _DATE.match(text):
        return "dates and times of day become numbers as hours or days since the start"
    digits = unicodedata.normalize("NFKC", text).replace("_", "")
    return f"write {digits}" if digits != text and _NUMBER.fullmatch(digits) else ""


def _not_finite(numbers: np.ndarray, name: str) -> np.ndarray:
    """What may not stand in a column: infinities; in that of times NaN, and inf is the end."""
    return ~(numbers > -np.inf) if name == TIME else np.isinf(numbers)


# --- writing ----------------------------------------------------------------------------------------------------------


@attach(Data.to_csv)
def write_data(data: Data, path: str | os.PathLike[str], doses: str | os.PathLike[str] | None = None) -> None:
    tables = {path: data.columns(dosed=doses is not None)}
    if doses is not None:
        if not any(one.doses for one in data.experiments):
            raise DataError(f"there are no doses to write to {doses}; leave it out")
        tables[doses] = data.dose_columns()
    files.write_all({os.fspath(p): _writer(columns) for p, columns in tables.items()})


def write(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """Columns as a table of comma-separated values; numbers read back are the same numbers, NaN is an empty cell."""
    files.write_all({os.fspath(path): _writer(columns)})


def _writer(columns: Mapping[str, Any]) -> Callable[[Any], None]:
    return lambda file: file.writelines(lines(columns))


def lines(columns: Mapping[str, Any]) -> Iterator[bytes]:
    """The text of a table, some thousand lines at a time."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    length = len(next(iter(columns.values())))
    for first in range(0, length, 4096):
        parts = [_cells(column[first : first + 4096]) for column in columns.values()]
        writer.writerows(zip(*parts, strict=True))
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue().encode()


def _cells(column: Any) -> list[object]:
    items = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return ["" if isinstance(item, float) and math.isnan(item) else item for item in items]
