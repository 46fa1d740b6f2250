"""Published problems: the small reader gives the models whose simulations were published with them."""

from __future__ import annotations

import math

import pytest

import odejet as oj
from benchmarks import collection

pytest.importorskip("libsbml", reason="the reader of SBML is not installed")
pytestmark = pytest.mark.skipif(not collection.names(), reason=collection.MISSING)

BASES = {
    "Boehm_JProteomeRes2014": None,
    "Borghans_BiophysChem1997": 10,
    "Crauste_CellSystems2017": None,
    "Elowitz_Nature2000": 10,
    "Rahman_MBS2016": None,
}
"""Problems with simulations, and the base of the logarithm that was measured in place of the value, if so."""


@pytest.mark.parametrize("name", BASES)
def test_simulations_are_those_published(name):
    folder = collection.FOLDER / name
    problem = collection.read(folder)
    (path,) = folder.glob("simulatedData*.tsv")
    rows = collection._rows(path)
    times = sorted({0.0, *(float(row["time"]) for row in rows)})
    found = oj.simulate(problem.model, dict(problem.nominal), {}, times)
    assert found.success and len(rows) == problem.data.experiments[0].points
    for row in rows:
        published, base = float(row["simulation"]), BASES[name]
        published = published if base is None else math.log(published, base)
        value = found[row["observableId"]][times.index(float(row["time"]))]
        assert value == pytest.approx(published, rel=2e-4, abs=2e-5)


def test_bounds_and_published_values_are_those_of_what_is_estimated():
    problem = collection.read(collection.FOLDER / "Boehm_JProteomeRes2014")
    assert set(problem.bounds) == set(problem.nominal) == set(problem.model.parameters)
    assert problem.bounds["k_phos"] == (1e-5, 1e5)
    assert problem.nominal["k_phos"] == pytest.approx(15766.5, rel=1e-3)


def test_known_standard_deviations_are_kept():
    series = collection.read(collection.FOLDER / "Crauste_CellSystems2017").data.experiments[0].outputs
    assert series["observable_Naive"].sds.tolist() == [290.0, 64.0]


def test_conditions_are_experiments_with_numbers_of_their_own():
    folder = collection.FOLDER / "Raia_CancerResearch2011"
    whole = collection.read(folder, every=True)
    rows = {
        row["conditionId"]: float(row["il13_level"]) for row in collection._rows(collection._files(folder)["condition"])
    }
    assert {one.name: float(one.values["il13_level"].value) for one in whole.data.experiments} == rows
    problem = oj.Problem(whole.model, whole.data, whole.bounds)
    assert set(problem.unknowns) == set(whole.nominal)
    alone = collection.read(folder)
    (experiment,) = alone.data.experiments
    one = oj.simulate(alone.model, {name: alone.nominal[name] for name in alone.model.parameters}, {}, [0.0, 60.0])
    together = problem.simulate(whole.nominal, [0.0, 60.0])[experiment.name]
    for output in alone.model.outputs:
        assert together[output][-1] == pytest.approx(one[output][-1], rel=1e-7)


def test_switches_and_events_are_those_of_the_model():
    switching = collection.read(collection.FOLDER / "Brannmark_JBC2010", every=True).model
    assert not switching.is_smooth and not switching.events
    assert len(collection.read(collection.FOLDER / "Liu_IFACPapersOnLine2025").model.events) == 1


def test_what_cannot_be_read_is_told(tmp_path):
    (tmp_path / "model.xml").write_text("<sbml/>")
    with pytest.raises(collection.Unreadable, match="this is not SBML"):
        collection._Network(tmp_path / "model.xml", {}, {})
