"""Collection: problems with real data that others published as PEtab and SBML, as odejet models and data.

    problem = read(Path("../shared/petab/collection/Boehm_JProteomeRes2014"))
    odejet.fit(problem.model, problem.data, bounds=problem.bounds)

A small reader for benchmarks: one condition of a problem, the one with the most measurements, with its numbers written
into the model; or all of them, with numbers per experiment.  Noise is what odejet estimates, unless a file gives
numbers; an equilibrium before the experiment is left out, so that such problems are like the published ones in size and
difficulty but not in their optimum.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

import odejet as oj
from odejet.io.sbml import read_network
from odejet.io.sbml.building import model_of
from odejet.io.sbml.formulas import Formula
from odejet.model.expressions import RESERVED, TIME, Expression, Symbol, number
from odejet.model.grammar import parse

FOLDER = Path(__file__).parents[2] / "shared" / "petab" / "collection"
MISSING = f"the published problems are not here: {FOLDER} is missing"


class Unreadable(Exception):
    """What this reader cannot write as a model, in one sentence."""


@dataclass(frozen=True)
class Published:
    """A published problem, under one condition or several."""

    name: str
    model: oj.Model
    data: oj.Data
    bounds: Mapping[str, tuple[float, float]]
    nominal: Mapping[str, float]


def names() -> list[str]:
    """The problems that are here."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) if FOLDER.is_dir() else []


def read(folder: Path, every: bool = False) -> Published:
    """A problem under the condition with the most measurements, or under every one of them."""
    files = _files(folder)
    table = {row["parameterId"]: row for row in _rows(files["parameter"])}
    measurements = [row for row in _rows(files["measurement"]) if math.isfinite(float(row["time"]))]
    counted = Counter(row["simulationConditionId"] for row in measurements)
    chosen = list(counted) if every else [counted.most_common(1)[0][0]]
    rows = [row for row in measurements if row["simulationConditionId"] in chosen]
    settings = {row["conditionId"]: _settings(row) for row in _rows(files["condition"]) if row["conditionId"] in chosen}
    if len(chosen) == 1:
        network = _Network(files["sbml"], settings[chosen[0]], table)
    else:
        network = _Network(files["sbml"], {}, table, varying=frozenset().union(*settings.values()))
    measured = _observed(rows, {row["observableId"]: row for row in _rows(files["observable"])}, network)
    model = network.model(folder.name, {name: one.formula for name, one in measured.items()})
    parts = [_experiment(name, settings[name] if len(chosen) > 1 else {}, measured, network, model) for name in chosen]
    bounds = {
        name: (float(row["lowerBound"]), float(row["upperBound"]))
        for name, row in ((_plain(key), row) for key, row in table.items())
        if name in model.parameters
    }
    nominal = {name: float(table[key]["nominalValue"]) for key in table if (name := _plain(key)) in bounds}
    return Published(folder.name, model, oj.Data.join(parts), bounds, nominal)


# --- tables -----------------------------------------------------------------------------------------------------------


def _files(folder: Path) -> dict[str, Path]:
    (document,) = folder.glob("*.yaml")
    listed = yaml.safe_load(document.read_text(encoding="utf-8"))
    (problem,) = listed["problems"]
    kinds = ("condition", "measurement", "observable", "sbml")
    return {"parameter": folder / listed["parameter_file"]} | {
        kind: folder / problem[f"{kind}_files"][0] for kind in kinds
    }


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {key: (text or "").strip() for key, text in row.items()} for row in csv.DictReader(file, delimiter="\t")
        ]


def _settings(row: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in row.items() if key not in ("conditionId", "conditionName") and text}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class _Measured:
    """One kind of measurement: its formula, and times, values and noise (if all are numbers) by condition."""

    formula: str
    series: Mapping[str, tuple[list[float], list[float]]]
    noise: Mapping[str, list[float]]


def _observed(
    rows: list[dict[str, str]], observables: Mapping[str, dict[str, str]], network: _Network
) -> dict[str, _Measured]:
    """One output per observable and per set of parameters that its measurements override."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["observableId"], row.get("observableParameters") or ""), []).append(row)
    count, seen = Counter(name for name, _ in groups), Counter[str]()
    found = {}
    for (name, overrides), own in groups.items():
        seen[name] += 1
        output = _plain(name) if count[name] == 1 else f"{_plain(name)}_{seen[name]}"
        entry = observables[name]
        local = {f"observableParameter{i + 1}_{name}": text for i, text in enumerate(overrides.split(";")) if text}
        found[output] = _measured(network.formula(entry["observableFormula"], local), entry, own)
    return found


def _measured(formula: str, entry: Mapping[str, str], rows: list[dict[str, str]]) -> _Measured:
    base = {"lin": 0.0, "log": 1.0, "log10": math.log(10)}[entry.get("observableTransformation") or "lin"]
    numbers = entry["noiseFormula"].startswith("noiseParameter1") and all(
        _is_number(row.get("noiseParameters") or "") for row in rows
    )
    series: dict[str, tuple[list[float], list[float]]] = {}
    noise: dict[str, list[float]] = {}
    for row in rows:
        times, values = series.setdefault(row["simulationConditionId"], ([], []))
        value = float(row["measurement"])
        times.append(float(row["time"]))
        values.append(math.log(value) / base if base else value)
        if numbers:
            noise.setdefault(row["simulationConditionId"], []).append(float(row["noiseParameters"]))
    return _Measured(f"log({formula})/{base!r}" if base else formula, series, noise)


def _experiment(
    name: str, settings: Mapping[str, str], measured: Mapping[str, _Measured], network: _Network, model: oj.Model
) -> oj.Data:
    """The measurements of one condition, with what it sets: parameters, and species at the start."""
    outputs = {output: one.series[name] for output, one in measured.items() if name in one.series}
    noise = {output: measured[output].noise[name] for output in outputs if name in measured[output].noise}
    given = {network.network.name_of[key]: network.known(text) for key, text in settings.items()}
    return oj.Data(
        None,
        outputs,
        noise=noise if len(noise) == len(outputs) else None,
        name=name,
        initial={key: value for key, value in given.items() if key in model.states},
        start=0.0,
        values={key: value for key, value in given.items() if key in model.parameters},
    )


# --- SBML -------------------------------------------------------------------------------------------------------------


def _plain(name: str) -> str:
    """A name that odejet accepts."""
    return f"{name}_" if name in RESERVED or name in ("lambda", "pi") else name


class _Network:
    """A reaction network under one condition, or under several that each set what is in `varying`."""

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, str],
        table: Mapping[str, Mapping[str, str]],
        varying: frozenset[str] = frozenset(),
    ) -> None:
        self.table = table
        try:
            whole = read_network(path)
            given = {id_: self.known(id_) for id_ in table if id_ in whole.name_of and not self.is_estimated(id_)}
            given |= {id_: self.known(text) for id_, text in settings.items() if id_ in whole.name_of}
            free = {id_ for id_ in whole.name_of if self.is_estimated(id_)} - settings.keys()
            self.network = whole.replaced(given, {*free, *(varying & whole.name_of.keys())})
        except oj.ModelError as error:
            raise Unreadable(str(error)) from None

    def is_estimated(self, id_: str) -> bool:
        return id_ in self.table and self.table[id_]["estimate"] in ("1", "1.0", "true")

    def known(self, text: str) -> float | str:
        """A number, or the name of a parameter that is estimated; numbers of other parameters are in the table."""
        if _is_number(text):
            return float(text)
        return _plain(text) if self.is_estimated(text) else float(self.table[text]["nominalValue"])

    def formula(self, text: str, local: Mapping[str, str]) -> str:
        """An observable, with the parameters that its measurements override."""
        import libsbml

        parsed = libsbml.parseL3Formula(text)
        if parsed is None:
            raise Unreadable(f"its formula {text!r} cannot be parsed")

        def named(id_: str, where: str) -> Expression:
            if id_ in self.network.name_of:
                return Symbol(self.network.name_of[id_])
            if id_ == "t":
                return Symbol(TIME)
            if id_ not in local and id_ not in self.table:
                raise Unreadable(f"{id_!r} stands nowhere")
            value = self.known(local.get(id_, id_))
            return Symbol(value) if isinstance(value, str) else number(value)

        return str(self.network.now(Formula(text, named).expression(parsed)))

    def model(self, name: str, outputs: Mapping[str, str]) -> oj.Model:
        return model_of(self.network, {key: parse(text) for key, text in outputs.items()}, name)
