"""Tables and the report from results made up by hand, whose figures can be counted."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import comparison, figures, report, tables
from benchmarks.cells import PENALTY, Cell, Protocol
from benchmarks.comparison import Results
from benchmarks.store import Result, Store, Timing
from odejet import DataError
from problems import systems

PROTOCOL = Protocol(seed=1, points=40)
SETTINGS = {"protocol": {"seed": 1, "points": 40, "scale": "mean"}, "budget": {"evaluations": 10, "seconds": 1.0}}
LEVELS = systems.protocol().noise


def result(
    method: str, system: str, noise: float, trial: int, error: float, seconds: float = 1.0, cost: float = 0.0
) -> Result:
    timing = Timing(seconds, seconds, 0.0, 0.5 * seconds if method != "odejet" else math.nan)
    return Result(method, Cell(system, noise, trial), error, cost, 1, "made up", timing)


def sample() -> list[Result]:
    """odejet fails in one of four trials of SEIR at 1e-2, SHADE in two others; at the other levels both succeed."""
    made = []
    for noise in LEVELS:
        for trial in range(4):
            high = noise == 1e-2
            made.append(result("odejet", "seir", noise, trial, 0.3 if high and trial == 0 else 0.001, 0.5))
            made.append(result("shade", "seir", noise, trial, 0.6 if high and trial in (1, 2) else 0.002, 5.0))
            made.append(result("odejet", "vanderpol", noise, trial, 0.02, 0.5))
            made.append(result("shade", "vanderpol", noise, trial, 0.01, 5.0))
    return made


RESULTS = Results(sample(), PROTOCOL)


def row(table: tables.Table, name: str) -> dict[str, object]:
    found = next(values for values in table.rows if values[0] == name)
    return dict(zip(table.columns, found, strict=True))


def test_overall_success_is_counted():
    ours = row(tables.overall(RESULTS), "odejet")
    assert ours["cells"] == 40
    assert (ours["SR-1"], ours["SR-10"], ours["SR-50"]) == (47.5, 97.5, 100.0)
    theirs = row(tables.overall(RESULTS), "SHADE")
    assert theirs["SR-10"] == 95.0 and theirs["odejet's SR-10 there"] == 97.5
    assert row(tables.overall(RESULTS), "paper: AMIGO2")["SR-10"] == 85.0


def test_success_is_strict():
    assert comparison.success(np.array([0.1, 0.0999, PENALTY]), 0.1) == pytest.approx(100 / 3)


def test_by_noise_beside_the_ceilings_and_the_paper():
    table = tables.success_by_noise(RESULTS, ["odejet"], None, "x")
    assert row(table, "odejet")["0.01"] == 87.5 and row(table, "odejet")["all"] == 97.5
    assert row(table, "ceiling, weighted")["0"] == 100.0
    assert row(table, "paper: proposed")["0.01"] == 65.2
    assert row(table, "paper: without polishing")["1e-08"] is None
    errors = tables.error_by_noise(RESULTS, ["shade"], None, "y")
    assert row(errors, "SHADE")["0.0001"] == pytest.approx(0.6)
    assert row(errors, "paper: SHADE")["0.01"] == 5.97


def test_paired_outcomes_are_counted():
    assert comparison.outcomes(RESULTS, "shade", RESULTS.cells("odejet", "shade")) == (37, 2, 1, 0)
    assert row(tables.paired(RESULTS, "shade"), "SEIR")["SHADE only"] == 1
    assert row(tables.paired_summary(RESULTS), "SHADE")["odejet only"] == 2


def test_where_a_rival_is_better_is_said():
    table = tables.beaten(RESULTS)
    assert {(name, noise) for name, noise, *_ in table.rows} == {("Van der Pol", noise) for noise in LEVELS}
    assert table.rows[0][-2:] == ("", "SHADE (1)")
    worse = Results([result("odejet", "seir", 0.0, 0, 0.3), result("de", "seir", 0.0, 0, 0.001)], PROTOCOL)
    assert tables.beaten(worse).rows[0][-2:] == ("SciPy differential evolution (100)", "")
    same = Results([result("odejet", "seir", 0.0, 0, 1e-12), result("de", "seir", 0.0, 0, 1e-14)], PROTOCOL)
    assert not tables.beaten(same).rows  # rounding is no victory


def test_a_method_with_the_other_loss_may_have_a_part_of_the_cells():
    some = [
        result("shade-sse", one.cell.system, 1e-2, one.cell.trial, 0.5) for one in sample() if one.method == "shade"
    ]
    results = Results([*sample(), *dict.fromkeys(some)], PROTOCOL)
    assert results.common() == RESULTS.common()
    found = row(
        tables.success_by_noise(results, comparison.searches(results, results.common()), results.common(), "x"),
        "SHADE, unweighted",
    )
    assert found["cells"] == 8 and found["0.01"] == 0.0
    assert found["0"] is None and found["all"] is None


def test_optima_are_the_best_that_any_method_with_the_same_loss_has_found():
    def made(costs: dict[str, float]) -> Results:
        return Results([result(name, "seir", 1e-2, 0, 0.1, 1.0, cost) for name, cost in costs.items()], PROTOCOL)

    def reached(costs: dict[str, float]) -> list[str]:
        results = made(costs)
        names = comparison.searches(results, results.common())
        return [name for name in names if comparison.reached(results, name, Cell("seir", 1e-2, 0))]

    assert reached({"odejet": -100.0, "shade": -99.6, "de": -99.4}) == ["odejet", "shade"]
    assert reached({"odejet": -100.0, "truth": -103.0}) == []
    assert reached({"odejet": 7.0, "odejet-sse": 2.0, "shade-sse": 2.001, "de-sse": 2.1}) == [
        "odejet", "odejet-sse", "shade-sse"
    ]  # fmt: skip
    table = tables.optima(made({"odejet": 0.0, "de": 1.0}), [Cell("seir", 1e-2, 0)])
    assert row(table, "odejet")["all"] == 100.0 and row(table, "SciPy differential evolution")["0.01"] == 0.0


def test_bars_say_by_how_much_they_are_missed():
    table = tables.bars(RESULTS)
    high, none = (next(values for values in table.rows if values[0] == noise) for noise in (1e-2, 0.0))
    assert high[1:4] == (87.5, 65.2, "met") and none[-1] == "100.0 ± 0.0"
    failed = Results([result("odejet", "seir", 0.0, 0, 0.3)], PROTOCOL)
    assert tables.bars(failed).rows[0][3] == "**missed** by 99.6"


def test_certificates_are_held_against_the_fit_from_the_truth():
    made = []
    for trial, (behind, said) in enumerate([(0.0, "certified"), (-2.0, "not certified"), (3.0, "certified")]):
        ours = result("odejet", "seir", 1e-2, trial, 0.1, cost=behind)
        made += [replace(ours, ending=f"{said}: so"), result("truth", "seir", 1e-2, trial, 0.1)]
    assert comparison.kept(Results(made, PROTOCOL)) == comparison.Kept(fits=3, as_good=2, certified=2, falsely=1)
    assert comparison.kept(RESULTS) is None


def test_seconds_are_compared_on_the_same_cells():
    found = row(tables.timing(RESULTS), "SHADE")
    assert found["median s"] == 5.0 and found["median ratio to odejet"] == 10.0 and found["ratio until found"] == 5.0
    assert row(tables.timing(RESULTS), "paper: proposed")["median s"] == 661


def test_unfinished_trials_and_systems_apart_are_left_out():
    more = [*sample(), result("odejet", "seir", 0.0, 4, 0.9), result("odejet", "brusselator_textbook", 0.0, 0, 0.9)]
    assert Results(more, PROTOCOL).cells("odejet") == RESULTS.cells("odejet")
    assert row(tables.apart(more), "Brusselator (textbook): odejet")["all"] == 0.0


def test_by_system_has_every_system_and_the_paper():
    table = tables.error_by_system(RESULTS, ["odejet", "shade"])
    assert len(table.rows) == 25
    assert row(table, "SEIR")["odejet"] == pytest.approx(0.1)
    assert row(table, "CSTR")["paper: proposed"] == "> 1000" and row(table, "CSTR")["odejet"] is None


def test_csv_and_markdown_hold_the_same_rows():
    table = tables.overall(RESULTS)
    read = list(csv.reader(io.StringIO(table.csv())))
    assert len(read) == 1 + len(table.rows) == len(table.markdown().splitlines()) - 1
    assert read[0] == list(table.columns)


def test_figures_are_the_same_each_time():
    one, other = (figures.optima_by_time(RESULTS, RESULTS.common()) for _ in range(2))
    assert one == other and "<svg" in one


def test_the_report_is_written_whole(tmp_path):
    store = Store(tmp_path / "results")
    store.claim(SETTINGS)
    for one in sample():
        store.save(one)
    output = tmp_path / "docs" / "benchmark.md"
    assert report.main(["--results", str(store.directory), "--output", str(output), "--quick"]) == 0
    text = output.read_text()
    assert "| 0.01 | 87.5 | 65.2 | met |" in text
    assert "| odejet | 40 | 47.5 | 97.5 | 100.0 |" in text
    assert "odejet; SHADE: 40 cells (seir, vanderpol at noise 0, 1e-08, 1e-06, 0.0001, 0.01, 4 trials each)" in text
    for name in ("success-by-noise.svg", "optima-by-time.svg"):
        assert f"(benchmark/{name})" in text and (tmp_path / "docs" / "benchmark" / name).exists()
    assert (tmp_path / "docs" / "benchmark" / "overall.csv").read_text().startswith("method,cells,SR-1")


def test_results_of_different_data_are_not_mixed(tmp_path):
    for number in (1, 2):
        store = Store(tmp_path / str(number))
        store.claim({**SETTINGS, "protocol": {**SETTINGS["protocol"], "seed": number}})
        store.save(result("odejet", "seir", 0.0, 0, 0.1))
    with pytest.raises(DataError, match="data of another protocol"):
        report.read([tmp_path / "1", tmp_path / "2"])
    with pytest.raises(DataError, match="there are no results in"):
        report.read([tmp_path / "3"])
