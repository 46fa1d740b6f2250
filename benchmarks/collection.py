"""Collection: problems with real data that others published as PEtab and SBML, as odejet models and data.

    problem = read(Path("../shared/petab/collection/Boehm_JProteomeRes2014"))
    odejet.fit(problem.model, problem.data, bounds=problem.bounds)

A small reader for benchmarks: one condition of a problem, the one with the most measurements, with its numbers written
into the model.  Noise is what odejet estimates, unless a file gives numbers; of a switch at known times the branch is
taken that holds halfway; an equilibrium before the experiment is left out, so that such problems are like the published
ones in size and difficulty but not in their optimum.  What has events, or switches that depend on states, is refused.
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
    """One condition of a published problem."""

    name: str
    model: oj.Model
    data: oj.Data
    bounds: Mapping[str, tuple[float, float]]
    nominal: Mapping[str, float]


def names() -> list[str]:
    """The problems that are here."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) if FOLDER.is_dir() else []


def read(folder: Path) -> Published:
    """The condition with the most measurements of a problem."""
    files = _files(folder)
    table = {row["parameterId"]: row for row in _rows(files["parameter"])}
    measurements = [row for row in _rows(files["measurement"]) if math.isfinite(float(row["time"]))]
    (condition, _), *_ = Counter(row["simulationConditionId"] for row in measurements).most_common(1)
    own = [row for row in measurements if row["simulationConditionId"] == condition]
    settings = next(row for row in _rows(files["condition"]) if row["conditionId"] == condition)
    span = max(float(row["time"]) for row in own)
    network = _Network(files["sbml"], _settings(settings), table, span)
    outputs, series, noise = _observed(own, {row["observableId"]: row for row in _rows(files["observable"])}, network)
    model = network.model(folder.name, outputs)
    data = oj.Data(None, series, noise=noise or None, start=0.0)
    bounds = {
        name: (float(row["lowerBound"]), float(row["upperBound"]))
        for name, row in ((_plain(key), row) for key, row in table.items())
        if name in model.parameters
    }
    nominal = {name: float(table[key]["nominalValue"]) for key in table if (name := _plain(key)) in bounds}
    return Published(folder.name, model, data, bounds, nominal)


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


def _observed(
    rows: list[dict[str, str]], observables: Mapping[str, dict[str, str]], network: _Network
) -> tuple[dict[str, str], dict[str, tuple[list[float], list[float]]], dict[str, Any]]:
    """Formulas, times and values, and noise where it is given by numbers; one output per kind of measurement."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["observableId"], row.get("observableParameters") or ""), []).append(row)
    count = Counter(name for name, _ in groups)
    outputs, series, noise, seen = {}, {}, {}, Counter[str]()
    for (name, overrides), own in groups.items():
        seen[name] += 1
        output = _plain(name) if count[name] == 1 else f"{_plain(name)}_{seen[name]}"
        entry = observables[name]
        local = {f"observableParameter{i + 1}_{name}": text for i, text in enumerate(overrides.split(";")) if text}
        formula = network.formula(entry["observableFormula"], local)
        values = [float(row["measurement"]) for row in own]
        transformation = entry.get("observableTransformation") or "lin"
        if transformation != "lin":
            base = math.log(10) if transformation == "log10" else 1.0
            formula, values = f"log({formula})/{base!r}", [math.log(value) / base for value in values]
        sds = [row.get("noiseParameters") or "" for row in own]
        if entry["noiseFormula"].startswith("noiseParameter1") and all(map(_is_number, sds)):
            noise[output] = [float(text) for text in sds]
        outputs[output] = formula
        series[output] = ([float(row["time"]) for row in own], values)
    return outputs, series, noise if len(noise) == len(outputs) else {}


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
        for name, text in self.settings.items():
            if name in self.values:
                self.values[name] = repr(float(text)) if _is_number(text) else self.values[text]
        for assignment in sbml.getListOfInitialAssignments():
            if sbml.getSpecies(assignment.getSymbol()) is None and assignment.getSymbol() not in self.settings:
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
