"""Store: results of cells on disk, one file each, written whole or not at all; or packed, one table per method.

    DIR/settings.json                          how data were made, and the budget
    DIR/METHOD/SYSTEM/NOISE-TRIAL.json         a cell
    DIR/METHOD.csv                             the same without the estimates, for keeping

A cell that is in either form is done.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell
from odejet import DataError

SETTINGS = "settings.json"
_UNFINISHED = ".part"


@dataclass(frozen=True)
class Timing:
    """Seconds of one cell; all else in a result is the same whenever it is computed."""

    seconds: float  # by the clock
    processor: float  # of the thread that did it
    prepare: float = 0.0  # by the clock, once per model and process, before any data
    found_at: float = math.nan  # processor seconds until no better point was found


@dataclass(frozen=True)
class Result:
    """What a method made of a cell."""

    method: str
    cell: Cell
    error: float  # the largest relative error of what can be known
    cost: float
    evaluations: int
    ending: str
    timing: Timing
    values: Mapping[str, float] | None = field(default=None, compare=False)

    def to_json(self) -> str:
        table = asdict(self)
        table["cost"] = self.cost if math.isfinite(self.cost) else None
        table["timing"] = {name: value if math.isfinite(value) else None for name, value in table["timing"].items()}
        return json.dumps(table, allow_nan=False, indent=1)

    @staticmethod
    def from_json(text: str) -> Result:
        table = json.loads(text)
        table["cell"] = Cell(**table["cell"])
        table["cost"] = math.inf if table["cost"] is None else table["cost"]
        timing = {name: math.nan if value is None else value for name, value in table["timing"].items()}
        return Result(**{**table, "timing": Timing(**timing)})


class Store:
    """A directory of results."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    # --- settings ---

    def claim(self, settings: Mapping[str, Any]) -> None:
        """Note the settings, or make sure that they are those of what is there already."""
        path = self.directory / SETTINGS
        if not path.exists():
            write_whole(path, json.dumps(settings, indent=1) + "\n")
        elif self.settings() != settings:
            raise DataError(f"{path} has other settings than asked for; give another directory with --results")

    def settings(self) -> dict[str, Any]:
        path = self.directory / SETTINGS
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    # --- cells ---

    def path(self, method: str, cell: Cell) -> Path:
        return self.directory / method / cell.system / f"{cell.noise:g}-{cell.trial}.json"

    def save(self, result: Result) -> None:
        write_whole(self.path(result.method, result.cell), result.to_json() + "\n")

    def load(self) -> list[Result]:
        """Every result, packed or not, in the order of methods and cells; a cell's own file goes first."""
        found = {(result.method, result.cell): result for result in self._packed()}
        for path in sorted(self.directory.glob("*/*/*.json")):
            result = Result.from_json(path.read_text(encoding="utf-8"))
            found[result.method, result.cell] = result
        return [found[key] for key in sorted(found)]

    def done(self) -> set[tuple[str, Cell]]:
        return {(result.method, result.cell) for result in self.load()}

    def clean(self) -> None:
        """Remove what an interrupted run was about to write."""
        for path in self.directory.rglob(f".*{_UNFINISHED}"):
            path.unlink(missing_ok=True)

    # --- tables ---

    def _packed(self) -> Iterator[Result]:
        for path in sorted(self.directory.glob("*.csv")):
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    yield _from_row(path.stem, row)

    def pack(self, target: Path) -> None:
        """Write all results as one table per method."""
        results = self.load()
        for method in dict.fromkeys(result.method for result in results):
            rows = [_row(result) for result in results if result.method == method]
            text = io.StringIO()
            writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            write_whole(target / f"{method}.csv", text.getvalue())
        write_whole(target / SETTINGS, json.dumps(self.settings(), indent=1) + "\n")


def _row(result: Result) -> dict[str, str]:
    cell, timing = result.cell, result.timing
    row = {"system": cell.system, "noise": f"{cell.noise:g}", "trial": str(cell.trial)}
    row |= {"error": f"{result.error:.6g}", "cost": f"{result.cost:.10g}", "evaluations": str(result.evaluations)}
    row |= {entry.name: f"{getattr(timing, entry.name):.4g}" for entry in fields(Timing)}
    return row | {"ending": result.ending}


def _from_row(method: str, row: Mapping[str, str]) -> Result:
    return Result(
        method,
        Cell(row["system"], float(row["noise"]), int(row["trial"])),
        float(row["error"]),
        float(row["cost"]),
        int(row["evaluations"]),
        row["ending"],
        Timing(**{entry.name: float(row[entry.name]) for entry in fields(Timing)}),
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file so that nobody ever sees a part of it, whatever happens."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}{_UNFINISHED}")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
