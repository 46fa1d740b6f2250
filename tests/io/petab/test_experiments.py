"""Conditions that set what initial assignments are about: the values that hold are those of the condition."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("libsbml", reason="the reader of SBML is not installed")
pytest.importorskip("yaml", reason="the reader of PEtab is not installed")

import odejet as oj

XML = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1"><model id="m">
<listOfCompartments><compartment id="c" size="1" constant="true" spatialDimensions="3"/></listOfCompartments>
<listOfSpecies><species id="x" compartment="c" initialConcentration="1" hasOnlySubstanceUnits="false"
 boundaryCondition="false" constant="false"/></listOfSpecies>
<listOfParameters><parameter id="k"{k} constant="true"/><parameter id="q" value="1" constant="true"/>
<parameter id="r" constant="false"/><parameter id="a" value="1" constant="true"/></listOfParameters>
<listOfInitialAssignments><initialAssignment symbol="q"><math xmlns="http://www.w3.org/1998/Math/MathML"><ci>k</ci></math>
</initialAssignment></listOfInitialAssignments>
<listOfRules><assignmentRule variable="r"><math xmlns="http://www.w3.org/1998/Math/MathML"><apply><plus/><ci>q</ci>
<cn>1</cn></apply></math></assignmentRule></listOfRules>
<listOfReactions><reaction id="R" reversible="false" fast="false"><listOfReactants><speciesReference species="x"
 stoichiometry="1" constant="true"/></listOfReactants><kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML"><apply>
<times/><ci>c</ci><ci>a</ci><ci>r</ci><ci>x</ci></apply></math></kineticLaw></reaction></listOfReactions></model></sbml>"""
"""x' = -a (q + 1) x with x(0) = 1, where q is k at the start."""


def problem(folder: Path, conditions: str, k: str = ' value="1"') -> oj.Problem:
    tables = {
        "model.xml": XML.format(k=k),
        "conditions.tsv": conditions.replace(" ", "\t"),
        "observables.tsv": "observableId\tobservableFormula\tnoiseFormula\nox\tx\t0.1\n",
        "measurements.tsv": "observableId\tsimulationConditionId\tmeasurement\ttime\nox\tc1\t0.4\t1\nox\tc2\t0.2\t1\n",
        "parameters.tsv": "parameterId\tparameterScale\tlowerBound\tupperBound\tnominalValue\testimate\n"
        "a\tlog10\t0.01\t100\t1\t1\n",
        "problem.yaml": "format_version: 1\nparameter_file: parameters.tsv\nproblems:\n- condition_files: "
        "[conditions.tsv]\n  measurement_files: [measurements.tsv]\n  observable_files: [observables.tsv]\n"
        "  sbml_files: [model.xml]\n",
    }
    for name, text in tables.items():
        (folder / name).write_text(text)
    return oj.read_petab(folder / "problem.yaml")


@pytest.mark.parametrize(
    ("conditions", "k", "rates"),
    [
        ("conditionId k\nc1 0.5\nc2 1\n", ' value="1"', (1.5, 2)),
        ("conditionId k\nc1 0\nc2 1\n", ' value="1"', (1, 2)),
        ("conditionId q\nc1 0.5\nc2 0.5\n", ' value="1"', (1.5, 1.5)),
        ("conditionId q\nc1 0.5\nc2 0.5\n", "", (1.5, 1.5)),
        ("conditionId q k\nc1 0 5\nc2 3 7\n", ' value="1"', (1, 4)),
    ],
    ids=["what an assignment names", "zero", "what is assigned", "by what has no value", "both"],
)
def test_a_condition_sets_what_an_initial_assignment_is_about(tmp_path, conditions, k, rates):
    found = problem(tmp_path, conditions, k).simulate({"a": 1.0})
    for (_, simulation), rate in zip(sorted(found.items()), rates, strict=True):
        assert math.isclose(simulation["ox"][0], math.exp(-rate), rel_tol=1e-12)


def test_what_is_measured_when_a_period_begins_belongs_to_it(tmp_path):
    """Situation 19 of docs/instants.md; an event of a model is written so that it stays after its measurement."""
    model = oj.Model({"x": "0*k"}, {"y": "x"}, initial={"x": 1})
    data = oj.Data([0, 1, 2, 3], {"y": [1, 1, 1, 6]}, events=[oj.Event(at=2, set={"x": "x + 5"})])
    path = oj.Problem(model, data, (1e-3, 10), noise=0.1).to_petab(tmp_path / "written")
    again = oj.read_petab(path)
    (later,) = again.simulate(dict.fromkeys(again.unknowns, 1.0)).values()
    assert later["y"].tolist() == [1, 1, 1, 6]
    table = path.parent / "experiments.tsv"
    first, last = table.read_text().splitlines()[1:]
    table.write_text(f"experimentId\ttime\tconditionId\n{first}\nexperiment1\t2\t{last.split(chr(9))[2]}\n")
    again = oj.read_petab(path)
    (together,) = again.simulate(dict.fromkeys(again.unknowns, 1.0)).values()
    assert together["y"].tolist() == [1, 1, 6, 6]
