"""Published problems: simulations are those published with them, tasks are done once, the table counts."""

from __future__ import annotations

import json

import pytest

from benchmarks import collection

pytest.importorskip("libsbml", reason="the reader of SBML is not installed")
here = pytest.mark.skipif(not collection.names(), reason=collection.MISSING)

NAMES = (
    "Boehm_JProteomeRes2014",
    "Crauste_CellSystems2017",
    "Elowitz_Nature2000",
    "Rahman_MBS2016",
    "Weber_BMC2015",
)


def likelihood_by_petab(folder):
    """The log-likelihood that the library petab computes of the published simulations."""
    petab = pytest.importorskip("petab.v1", reason="the library petab is not installed")
    calculate = pytest.importorskip("petab.v1.calculate", reason="the library petab is not installed")
    problem = petab.Problem.from_yaml(str(folder / f"{folder.name}.yaml"))
    simulated = problem.measurement_df.drop(columns="measurement")
    simulated["simulation"] = collection.published(folder)
    return calculate.calculate_llh(problem.measurement_df, simulated, problem.observable_df, problem.parameter_df)


@here
@pytest.mark.parametrize("name", NAMES)
def test_likelihood_and_simulations_are_those_published(name):
    folder = collection.FOLDER / name
    found = collection.compared(folder)
    assert found["rows_apart"] == 0 and found["apart"] < collection.CLOSE
    assert found["log_likelihood"] == pytest.approx(likelihood_by_petab(folder), rel=1e-4)


LARGE = collection.FOLDER.parent / "large"


@pytest.mark.slow
@pytest.mark.skipif(not collection.names(LARGE), reason=f"the large problems are not here: {LARGE} is missing")
@pytest.mark.parametrize(
    ("name", "likelihood"),
    [
        # Of Chen's, the published simulations have -130669.5; ours do not depend on tolerances to ten digits.
        ("Chen_MSB2009", -130591.753),
        ("Smith_BMCSystBiol2013", -888198.44),
        ("Beer_MolBioSystems2014", 58622.91),
    ],
)
def test_likelihoods_of_the_largest_problems(name, likelihood):
    problem = collection.read(LARGE / name).problem
    assert problem.log_likelihood(problem.nominal) == pytest.approx(likelihood, abs=0.01)


@here
def test_conditions_are_experiments_with_numbers_of_their_own():
    problem = collection.read(collection.FOLDER / "Raia_CancerResearch2011").problem
    levels = {one.name: float(one.values["il13_level"].value) for one in problem.experiments}
    (path,) = (collection.FOLDER / "Raia_CancerResearch2011").glob("experimentalCondition*.tsv")
    assert levels == {row["conditionId"]: float(row["il13_level"]) for row in collection._rows(path)}


@here
def test_a_task_is_done_once(tmp_path, capsys):
    arguments = ["--only", "Boehm_JProteomeRes2014", "--output", str(tmp_path / "lines.jsonl")]
    collection.main(arguments)
    collection.main(arguments)
    (line,) = (tmp_path / "lines.jsonl").read_text().splitlines()
    assert json.loads(line)["unknowns"] == 9
    assert capsys.readouterr().out.count("| Boehm_JProteomeRes2014 |") == 2


def test_the_table_counts_what_was_reached_and_what_was_certified_falsely():
    size = {"states": 1, "unknowns": 2, "points": 3, "log_likelihood": -10.0, "log_posterior": -10.0}
    fit = {"problem": "p", "task": "fit", "seconds": 2.0}
    lines = [
        {"problem": "p", "task": "read", **size},
        {**fit, "log_likelihood": -10.05, "log_posterior": -10.05, "certified": True},
        {**fit, "log_likelihood": -12.0, "log_posterior": -12.0, "certified": True},
    ]
    row = collection.table(lines).splitlines()[-1]
    assert row.split(" | ")[-5:] == ["-10.05", "1 of 2", "2", "1", "2.0 |"]
