"""Files: what a problem consists of, by its YAML file, and the rows of its tables.

A YAML file is believed as little as any: it is small, has no aliases, and names files beside it or below, never an
address or a place elsewhere.  Every message begins with the file it is about.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odejet.errors import ModelError, clipped, nearest
from odejet.extras import needed
from odejet.io.files import read_text

MAX_YAML, MAX_TABLE = 1_000_000, 50_000_000
"""Bytes of the YAML file, and of a table."""

MAX_NESTING = 20
"""Of the YAML file; PEtab's own need four."""

MISSING = ("", "nan")
"""What stands in a cell that says nothing, in small letters."""


@dataclass(frozen=True)
class Listed:
    """The files of a problem, by kind, and which version of PEtab they are."""

    path: Path
    version: int
    model: Path
    tables: Mapping[str, tuple[Path, ...]]  # "parameter", "condition", "experiment", ...


@dataclass(frozen=True)
class Row:
    """One row of a table; cells are text without blanks around it."""

    where: str
    cells: Mapping[str, str]

    def get(self, column: str) -> str:
        """The text in a column, empty where there is none."""
        text = self.cells.get(column, "")
        return "" if text.lower() in MISSING else text

    def text(self, column: str) -> str:
        found = self.get(column)
        if not found:
            raise ModelError(f"{self.where}: nothing stands in the column '{column}'")
        return found

    def number(self, column: str) -> float:
        return self.read_number(self.text(column), column)

    def read_number(self, text: str, column: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise ModelError(f"{self.where}: the {column} {clipped(text)} is not a number") from None

    def parts(self, column: str) -> tuple[str, ...]:
        """What stands in a column, separated by semicolons."""
        found = self.get(column)
        return tuple(part.strip() for part in found.split(";")) if found else ()


# --- the YAML file ----------------------------------------------------------------------------------------------------


def listed(path: str | os.PathLike[str]) -> Listed:
    """The files that a problem consists of."""
    path = Path(path)
    told = _document(path)
    version = str(told.get("format_version", "")).split(".")[0]
    if version == "1":
        return _first_version(path, told)
    if version == "2":
        return _second_version(path, told)
    raise ModelError(f"{path}: the format_version must be 1 or 2, not {clipped(str(told.get('format_version')))}")


def _document(path: Path) -> dict[str, Any]:
    yaml = needed("yaml")
    text, depth = read_text(path, MAX_YAML), 0
    try:
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise ModelError(f"{path}: the file has an alias, *{event.anchor}, which PEtab has no use for")
            if depth > MAX_NESTING:
                raise ModelError(f"{path}: lists and tables are nested more than {MAX_NESTING} deep")
        told = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark is not None else ""
        reason = getattr(error, "problem", None) or "it cannot be read"
        raise ModelError(f"{path}: {place}this is not YAML ({reason})") from None
    except ModelError:
        raise
    except ValueError:
        raise ModelError(f"{path}: this is not YAML (a value cannot be read)") from None
    if not isinstance(told, dict):
        raise ModelError(f"{path}: this is no PEtab problem; it must name its format_version and its files")
    return told


def _first_version(path: Path, told: Mapping[str, Any]) -> Listed:
    problems = told.get("problems")
    if not isinstance(problems, list) or not problems or not isinstance(problems[0], dict):
        raise ModelError(f"{path}: 'problems' must list the files of a problem")
    if len(problems) > 1:
        raise ModelError(f"{path}: there are {len(problems)} problems in this file; give a file to each")
    (problem,) = problems
    models = _names(path, problem, "sbml_files")
    kinds = {kind: _paths(path, problem, f"{kind}_files") for kind in ("condition", "measurement", "observable")}
    kinds["parameter"] = _paths(path, told, "parameter_file")
    return _complete(path, 1, models, kinds)


def _second_version(path: Path, told: Mapping[str, Any]) -> Listed:
    extensions = told.get("extensions") or {}
    for name, one in extensions.items() if isinstance(extensions, dict) else ():
        if isinstance(one, dict) and one.get("required"):
            raise ModelError(
                f"{path}: the problem requires the extension {clipped(str(name))}, which is not known here"
            )
    models = told.get("model_files")
    if not isinstance(models, dict) or not all(isinstance(one, dict) for one in models.values()):
        raise ModelError(f"{path}: 'model_files' must tell the language and the location of a model")
    for one in models.values():
        if str(one.get("language", "")).lower() != "sbml":
            raise ModelError(f"{path}: the model is in {clipped(str(one.get('language')))}; only sbml can be read")
    kinds = {
        kind: _paths(path, told, f"{kind}_files")
        for kind in ("parameter", "condition", "experiment", "measurement", "observable", "mapping")
    }
    return _complete(path, 2, [one.get("location") for one in models.values()], kinds)


def _complete(path: Path, version: int, models: Sequence[Any], kinds: Mapping[str, tuple[Path, ...]]) -> Listed:
    if len(models) != 1:
        raise ModelError(f"{path}: there are {len(models)} models; only problems with one model can be read")
    for kind in ("parameter", "measurement", "observable"):
        if not kinds[kind]:
            raise ModelError(f"{path}: no {kind} table is listed")
    return Listed(path, version, _inside(path, models[0]), kinds)


def _names(path: Path, told: Mapping[str, Any], key: str) -> list[Any]:
    found = told.get(key)
    return found if isinstance(found, list) else [] if found is None else [found]


def _paths(path: Path, told: Mapping[str, Any], key: str) -> tuple[Path, ...]:
    return tuple(_inside(path, name) for name in _names(path, told, key))


def _inside(path: Path, name: Any) -> Path:
    """A file that a problem names: below the folder of its YAML file, links followed, and nowhere else."""
    if not isinstance(name, str) or not name.strip() or "\0" in name or not name.isprintable():
        raise ModelError(f"{path}: {clipped(str(name))} is not a file name")
    if "://" in name:
        raise ModelError(f"{path}: {clipped(name)} is an address; save the file beside this one and name it")
    folder = path.resolve().parent
    found = folder / name
    try:
        inside = found.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):
        inside = False
    if not inside or Path(name).is_absolute():
        raise ModelError(f"{path}: {clipped(name)} is outside the folder of the problem; move it there")
    return path.parent / name


# --- tables -----------------------------------------------------------------------------------------------------------


def rows(paths: Sequence[Path], needed: Sequence[str]) -> Iterator[Row]:
    """The rows of tables, which must have the needed columns."""
    for path in paths:
        yield from _table(path, needed)


def _table(path: Path, needed: Sequence[str]) -> Iterator[Row]:
    lines = csv.reader(io.StringIO(read_text(path, MAX_TABLE), newline=""), delimiter="\t")
    try:
        columns = [name.strip() for name in next(lines, [])]
        for name in needed:
            if name not in columns:
                raise ModelError(f"{path}: there is no column '{name}'{nearest(name, columns, cutoff=0.7)}")
        if len(set(columns)) < len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            raise ModelError(f"{path}: two columns are called {clipped(twice)}")
        for cells in lines:
            if any(cell.strip() for cell in cells):
                padded = [cell.strip() for cell in cells] + [""] * (len(columns) - len(cells))
                where = f"{path}: line {lines.line_num}"
                if len(padded) > len(columns) and any(padded[len(columns) :]):
                    raise ModelError(f"{where}: there are {len(padded)} cells in {len(columns)} columns")
                yield Row(where, dict(zip(columns, padded, strict=False)))
    except csv.Error as error:
        raise ModelError(f"{path}: line {lines.line_num}: this is no table ({error})") from None
