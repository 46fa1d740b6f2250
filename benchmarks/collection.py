"""Collection: problems with real data that others published as PEtab and SBML, as odejet models and data.

    problem = read(Path("../shared/petab/collection/Boehm_JProteomeRes2014"))
    odejet.fit(problem.model, problem.data, bounds=problem.bounds)

A small reader for benchmarks: one condition of a problem, the one with the most measurements, with its numbers written
into the model; or all of them, with numbers per experiment.  Noise is what odejet estimates, unless a file gives
numbers; of a switch at known times the branch is taken that holds halfway; an equilibrium before the experiment is left
out, so that such problems are like the published ones in size and difficulty but not in their optimum.  What has
events, or switches that depend on states or differ between conditions, is refused.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import odejet as oj
from odejet.model.expressions import FUNCTIONS, RESERVED

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
    span = max(float(row["time"]) for row in rows)
    if len(chosen) == 1:
        network = _Network(files["sbml"], settings[chosen[0]], table, span)
    else:
        network = _Network(files["sbml"], {}, table, span, varying=frozenset().union(*settings.values()))
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
    given = {_plain(key): _known(text, network.values) for key, text in settings.items()}
    return oj.Data(
        None,
        outputs,
        noise=noise if len(noise) == len(outputs) else None,
        name=name,
        initial={key: _number_or_text(text) for key, text in given.items() if key in model.states},
        start=0.0,
        values={key: _number_or_text(text) for key, text in given.items() if key in model.parameters},
    )


def _number_or_text(text: str) -> float | str:
    bare = text.strip("()")
    return float(bare) if _is_number(bare) else text


# --- SBML -------------------------------------------------------------------------------------------------------------


def _plain(name: str) -> str:
    """A name that odejet accepts."""
    return f"{name}_" if name in RESERVED or name in ("lambda", "pi") else name


@dataclass
class _Network:
    """A reaction network under one condition; `values` are formulas of what is neither a state nor estimated."""

    path: Path
    settings: Mapping[str, str]
    table: Mapping[str, Mapping[str, str]]
    span: float
    varying: frozenset[str] = frozenset()  # what every condition sets for itself
    values: dict[str, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    initial: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        import libsbml

        document = libsbml.readSBML(str(self.path))
        for option in ("expandFunctionDefinitions", "promoteLocalParameters"):
            properties = libsbml.ConversionProperties()
            properties.addOption(option, True)
            if document.convert(properties) != libsbml.LIBSBML_OPERATION_SUCCESS:
                raise Unreadable(f"libsbml cannot convert it: {option}")
        self.sbml, self._document = document.getModel(), document
        self._libsbml = libsbml
        if self.sbml.getNumEvents():
            raise Unreadable("it has events")
        self._constants()
        self._rates()
        self._starts()

    def _constants(self) -> None:
        """Numbers of the condition go before those of the table of parameters, and these before the model's."""
        sbml = self.sbml
        for element in (*sbml.getListOfCompartments(), *sbml.getListOfParameters()):
            value = element.getSize() if element.getElementName() == "compartment" else element.getValue()
            self.values[element.getId()] = repr(value)
        for name, row in self.table.items():
            if row["estimate"] in ("1", "1.0", "true"):
                self.values[name] = _plain(name)
            else:
                self.values[name] = repr(float(row["nominalValue"]))
        self.values |= {name: _plain(name) for name in self.varying if name in self.values}
        for name, text in self.settings.items():
            if name in self.values:
                self.values[name] = repr(float(text)) if _is_number(text) else self.values[text]
        fixed = {*self.settings, *self.varying}
        for assignment in sbml.getListOfInitialAssignments():
            if sbml.getSpecies(assignment.getSymbol()) is None and assignment.getSymbol() not in fixed:
                self.values[assignment.getSymbol()] = self.text(assignment.getMath())
        self.rules = {r.getVariable(): r.getMath() for r in sbml.getListOfRules() if r.isAssignment()}

    def _rates(self) -> None:
        """The derivative of every state: by reactions, in concentrations unless amounts are meant, or by a rule."""
        sbml = self.sbml
        by_rule = {rule.getVariable(): rule.getMath() for rule in sbml.getListOfRules() if rule.isRate()}
        changing = [s for s in sbml.getListOfSpecies() if not (s.getConstant() or s.getId() in self.rules)]
        for species in changing:
            if not species.getBoundaryCondition():
                self.states[species.getId()] = ""
        self.states |= dict.fromkeys(by_rule, "")
        for species in sbml.getListOfSpecies():
            if species.getId() not in self.states and species.getId() not in self.rules:
                self.values[species.getId()] = self.settings.get(species.getId(), repr(_amount(species)))
        terms: dict[str, list[str]] = {name: [] for name in self.states}
        for reaction in sbml.getListOfReactions():
            law = self.text(reaction.getKineticLaw().getMath())
            for sign, sides in (("-", reaction.getListOfReactants()), ("+", reaction.getListOfProducts())):
                for side in sides:
                    if side.getSpecies() in terms:
                        many = side.getStoichiometry()
                        terms[side.getSpecies()].append(f"{sign} {'' if many == 1 else repr(many) + '*'}({law})")
        for name, parts in terms.items():
            species = sbml.getSpecies(name)
            size = "1.0" if species is None else self.values[species.getCompartment()]
            whole = size in ("1.0", "1") or species.getHasOnlySubstanceUnits()
            total = " ".join(parts) or "0"
            self.states[name] = total if whole else f"({total})/({size})"
        self.states |= {name: self.text(math_) for name, math_ in by_rule.items()}

    def _starts(self) -> None:
        """Initial values: of the condition, of an assignment, or numbers of the model."""
        assigned = {a.getSymbol(): a.getMath() for a in self.sbml.getListOfInitialAssignments()}
        for name in self.states:
            species = self.sbml.getSpecies(name)
            if name in self.settings:
                text = self.settings[name]
                self.initial[name] = repr(float(text)) if _is_number(text) else self.values[text]
            elif name in assigned:
                self.initial[name] = self.text(assigned[name])
            else:
                self.initial[name] = self.values[name] if species is None else repr(_amount(species))

    def formula(self, text: str, local: Mapping[str, str]) -> str:
        """An observable, with the parameters that its measurements override."""
        parsed = self._libsbml.parseL3Formula(text)
        if parsed is None:
            raise Unreadable(f"its formula {text!r} cannot be parsed")
        return self.text(parsed, {key: _known(value, self.values) for key, value in local.items()})

    def model(self, name: str, outputs: Mapping[str, str]) -> oj.Model:
        states = {_plain(key): text for key, text in self.states.items()}
        initial = {_plain(key): text for key, text in self.initial.items()}
        return oj.Model(states, outputs, initial=initial, name=name)

    # --- formulas ---

    def text(self, node: Any, local: Mapping[str, str] | None = None) -> str:
        """A formula of libsbml in our notation."""
        lib, own = self._libsbml, local or {}
        kind = node.getType()
        inner = [node.getChild(i) for i in range(node.getNumChildren())]
        if kind == lib.AST_NAME_TIME:
            return "t"
        if kind == lib.AST_NAME:
            return self._named(node.getName(), own)
        if kind == lib.AST_CONSTANT_E:
            return repr(math.e)
        if node.isNumber():
            return _literal(node.getValue())
        if kind == lib.AST_FUNCTION_PIECEWISE:
            return self.text(self._branch(inner, own), own)
        if kind == lib.AST_PLUS:
            return " + ".join(self.text(child, own) for child in inner) or "0"
        parts = [f"({self.text(child, own)})" for child in inner]
        if kind in (lib.AST_TIMES, lib.AST_DIVIDE):
            return ("*" if kind == lib.AST_TIMES else "/").join(parts) or "1"
        if kind == lib.AST_MINUS:
            return f"-{parts[0]}" if len(parts) == 1 else f"{parts[0]} - {parts[1]}"
        if kind in (lib.AST_POWER, lib.AST_FUNCTION_POWER):
            return f"{parts[0]}**{parts[1]}"
        if kind == lib.AST_FUNCTION_LN:
            return f"log{parts[0]}"
        if kind == lib.AST_FUNCTION_LOG:
            base, argument = (f"{math.log(10)!r}", parts[0]) if len(parts) == 1 else (f"log{parts[0]}", parts[1])
            return f"log{argument}/{base}"
        if kind == lib.AST_FUNCTION_ROOT:
            return f"sqrt{parts[-1]}" if len(parts) == 1 else f"{parts[1]}**(1/{parts[0]})"
        if node.getName() in FUNCTIONS:
            return f"{node.getName()}{parts[0]}"
        raise Unreadable(f"its formula {lib.formulaToL3String(node)!r} is not in odejet's language")

    def _named(self, name: str, local: Mapping[str, str]) -> str:
        if name in ("time", "t") and name not in self.values:
            return "t"
        if name in local:
            return f"({local[name]})"
        if name in self.rules:
            return f"({self.text(self.rules[name])})"
        if name in self.states:
            return _plain(name)
        if name in self.values:
            return f"({self.values[name]})"
        raise Unreadable(f"{name!r} stands nowhere")

    def _branch(self, inner: list[Any], local: Mapping[str, str]) -> Any:
        """The branch that holds halfway; conditions may depend on the time and on numbers only."""
        for value, condition in zip(inner[::2], inner[1::2], strict=False):
            if self._holds(condition, local):
                return value
        if len(inner) % 2 == 0:
            raise Unreadable("no branch of a switch holds halfway")
        return inner[-1]

    def _holds(self, node: Any, local: Mapping[str, str]) -> bool:
        lib, kind = self._libsbml, node.getType()
        inner = [node.getChild(i) for i in range(node.getNumChildren())]
        if kind in (lib.AST_LOGICAL_AND, lib.AST_LOGICAL_OR):
            return (all if kind == lib.AST_LOGICAL_AND else any)(self._holds(child, local) for child in inner)
        if kind == lib.AST_LOGICAL_NOT:
            return not self._holds(inner[0], local)
        if kind in (lib.AST_CONSTANT_TRUE, lib.AST_CONSTANT_FALSE):
            return bool(kind == lib.AST_CONSTANT_TRUE)
        left, right = (self._number(child, local) for child in inner)
        comparisons = {
            lib.AST_RELATIONAL_LT: left < right,
            lib.AST_RELATIONAL_LEQ: left <= right,
            lib.AST_RELATIONAL_GT: left > right,
            lib.AST_RELATIONAL_GEQ: left >= right,
            lib.AST_RELATIONAL_EQ: left == right,
            lib.AST_RELATIONAL_NEQ: left != right,
        }
        return bool(comparisons[kind])

    def _number(self, node: Any, local: Mapping[str, str]) -> float:
        text = self.text(node, local)
        try:
            found = oj.simulate(oj.Model({"x": "1"}, {"y": text}, initial={"x": 0}), {}, {}, [self.span / 2])
        except oj.ModelError as error:
            raise Unreadable(f"a switch depends on {text!r}, which is not a known number") from error
        return float(found["y"][0])


def _literal(value: float) -> str:
    text = repr(float(value))
    if not math.isfinite(value):
        raise Unreadable(f"a number in it is {text}")
    return f"({text})" if value < 0 else text


def _known(text: str, values: Mapping[str, str]) -> str:
    return _literal(float(text)) if _is_number(text) else values[text]


def _amount(species: Any) -> float:
    """What a species begins with, in the unit that its formulas use."""
    return float(
        species.getInitialConcentration() if species.isSetInitialConcentration() else species.getInitialAmount()
    )
