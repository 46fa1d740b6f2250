"""What a population fit says, on theophylline where the data are here, and on a small population."""

from __future__ import annotations

import json

import numpy as np
import pytest

import odejet as oj
from odejet.population.diagnostics import (
    Design,
    completed,
    conditional_residuals,
    normality,
    prediction_discrepancies,
)
from odejet.population.figures import check
from tests.population.test_approximations import SHARED, needs_data, rows_of
from tests.population.test_estimation import DECAY, decays


@pytest.fixture(scope="module")
def fit():
    return oj.fit(oj.Population(DECAY, decays(np.random.default_rng(5), 24), {"k": "lognormal"}))


@needs_data
def test_theophylline_has_the_exact_likelihood_of_nine_estimators() -> None:
    parts = []
    for name, rows in rows_of(SHARED / "theophylline" / "theo_sd.csv").items():
        seen = [r for r in rows if r["EVID"] == "0"]
        doses = [{"time": 0.0, "state": "gut", "amount": float(r["AMT"])} for r in rows if r["EVID"] != "0"]
        series = [float(r["TIME"]) for r in seen], {"cp": [float(r["DV"]) for r in seen]}
        parts.append(oj.Data(*series, name=name, start=0.0, doses=doses))
    model = oj.Model(
        {"gut": "-ka*gut", "central": "ka*gut - Cl/V*central"},
        {"cp": "central/V"},
        initial={"gut": 0, "central": 0},
        parameters=["ka", "V", "Cl"],
        bounds={"ka": (0.5, 20)},  # with absorption as the slow step -2 log L is 6 lower, at volumes that nobody has
        name="theophylline",
    )
    population = oj.Population(model, oj.Data.join(parts), dict.fromkeys(["ka", "V", "Cl"], "lognormal"))
    found = oj.fit(population)
    assert found.minus_two_log_likelihood - 132 * np.log(2 * np.pi) <= 118.10 + 0.02
    assert 2 * found.log_likelihood_error < 0.02
    assert found.values["ka"] == pytest.approx(1.58, abs=0.03)
    assert abs(found.shrinkage["ka"]) < 0.05


def test_individuals_are_near_what_was_measured(fit) -> None:
    assert len(fit.individuals) == 24
    assert all(0 < own["k"] < 2 for own in fit.individuals.values())
    assert all(fit.individuals.sd[name]["k"] > 0 for name in fit.individuals)
    assert -0.1 < fit.shrinkage["k"] < 0.3
    assert fit.aic == pytest.approx(2 * 4 - 2 * fit.log_likelihood)
    assert fit.bic == pytest.approx(4 * np.log(24) - 2 * fit.log_likelihood)


def test_diagnostics_of_an_adequate_model_are_standard_normal(fit) -> None:
    table = fit.residuals
    for key in ("cwres", "npde"):
        assert abs(table[key].mean()) < 0.3
        assert table[key].std() == pytest.approx(1, abs=0.2)
    assert fit.npde_probability > 0.01


def test_discrepancies_of_an_odd_subject_are_large() -> None:
    simulated = np.random.default_rng(0).standard_normal((400, 3))
    assert prediction_discrepancies(np.array([5.0, 5.0, 5.0]), simulated).min() > 2.5


def test_a_new_subject_has_bands(fit) -> None:
    found = fit.predict([1.0, 3.0], draws=100)["y"]
    assert np.all(found.low < found.known_low)
    assert np.all(found.known_low < found.typical)
    assert np.all(found.typical < found.known_high)
    assert np.all(found.known_high < found.high)
    expected = fit.values["x0"] * np.exp(-fit.values["k"] * np.array([1.0, 3.0]))
    assert found.typical == pytest.approx(expected, rel=1e-6)


def test_simulated_data_are_those_of_the_design(fit) -> None:
    data = fit.simulate(seed=1)
    assert [one.name for one in data.experiments] == list(fit.asked.subjects)
    assert len(fit.simulate(subjects=50).experiments) == 50
    first, again = (fit.simulate(seed=3).experiments[0].outputs["y"].values for _ in range(2))
    assert np.array_equal(first, again)
    with pytest.raises(oj.ModelError, match="at least 1"):
        fit.simulate(subjects=0)


@pytest.mark.parametrize("kind", ["vpc", "individual", "observed-predicted", "residuals"])
def test_plots_are_written(fit, kind, tmp_path) -> None:
    fit.plot(kind, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_an_unknown_plot_is_refused(fit) -> None:
    with pytest.raises(oj.ModelError, match="there is no plot 'vcp'; did you mean 'vpc'"):
        fit.plot("vcp")


def test_a_fit_is_saved_as_json(fit, tmp_path) -> None:
    fit.save(tmp_path / "fit.json")
    read = json.loads((tmp_path / "fit.json").read_text())
    assert read["population"]["k"]["value"] == fit.values["k"]
    assert read["log_likelihood"] == fit.log_likelihood


def test_a_name_that_is_not_there_is_refused(fit) -> None:
    with pytest.raises(KeyError, match="no parameter 'omega_K'; did you mean 'omega_k'"):
        fit.population["omega_K"]
    with pytest.raises(KeyError, match="no subject"):
        fit.individuals["nobody"]


def test_two_answers(fit) -> None:
    assert fit.search == "confirmed"
    assert fit.search.agreeing == fit.search.starts >= 3
    assert fit.adequacy == "yes"
    assert fit.certified


def test_a_wrong_noise_is_not_adequate() -> None:
    rng = np.random.default_rng(8)
    data = decays(rng, 24)
    fit = oj.fit(oj.Population(DECAY, data, {"k": "lognormal"}, noise={"y": 0.02}, fixed={"x0": 10}))
    assert fit.adequacy == "no"
    assert "'y'" in fit.adequacy.reasons[0].sentence


def test_populations_are_compared(fit) -> None:
    smaller = oj.fit(oj.Population(DECAY, decays(np.random.default_rng(5), 24), {"k": "lognormal"}, fixed={"x0": 10}))
    ranking = oj.compare({"free": fit, "fixed": smaller})
    assert {row.name for row in ranking} == {"free", "fixed"}
    assert ranking["free"].aic == pytest.approx(fit.aic)
    assert sum(row.weight for row in ranking) == pytest.approx(1)
    (test,) = ranking.tests
    assert (test.smaller, test.larger, test.degrees) == ("fixed", "free", 1)
    assert "BICc" in repr(ranking)


def test_fits_that_do_not_compare_are_refused(fit) -> None:
    other = oj.fit(oj.Population(DECAY, decays(np.random.default_rng(9), 6), {"k": "lognormal"}, fixed={"x0": 10}))
    with pytest.raises(oj.ModelError, match="different data"):
        oj.compare([fit, other])
    with pytest.raises(oj.ModelError, match="do not compare"):
        oj.compare([fit, "a fit"])


def test_tables_have_a_row_per_estimate_and_per_subject(fit) -> None:
    assert list(fit.population.to_dataframe().columns) == ["value", "stderr", "low", "high"]
    assert fit.individuals.to_dataframe().shape == (24, 4)


def test_a_visual_check_does_not_take_a_limit_for_a_measurement(tmp_path) -> None:
    rng, parts = np.random.default_rng(9), []
    times = np.array([1.0, 3.0, 7.0])
    for i in range(12):
        values = 10 * np.exp(-0.3 * np.exp(0.3 * rng.standard_normal()) * times) + 0.3 * rng.standard_normal(3)
        parts.append(oj.Data(times, {"y": [float(v) if v > 4 else "<4" for v in values]}, name=str(i), start=0.0))
    options = {"noise": {"y": "normal(s)"}, "fixed": {"x0": 10}}
    found = oj.fit(oj.Population(DECAY, oj.Data.join(parts), {"k": "lognormal"}, **options))
    table = found.residuals
    assert table["censored"].sum() >= 12
    assert (table["completed"][table["censored"]] < 4).all()
    assert (table["completed"] == table["observed"])[~table["censored"]].all()
    middles, seen, _ = check(found, 0)
    # At the last time nearly all are below the limit, and so is their median.
    assert middles[-1] == 7
    assert seen[-1, 1] < 3
    for kind in ("vpc", "individual", "observed-predicted"):
        found.plot(kind, tmp_path / f"{kind}.png")


def test_censored_values_do_not_spoil_diagnostics() -> None:
    """At the true values, with a third below the limit: taken as measured there, discrepancies would crowd."""
    rng, parts = np.random.default_rng(9), []
    times = np.array([0.5, 1.0, 2.0, 4.0, 7.0])
    for i in range(60):
        values = 10 * np.exp(-0.3 * np.exp(0.3 * rng.standard_normal()) * times) + 0.5 * rng.standard_normal(5)
        parts.append(oj.Data(times, {"y": [float(v) if v > 4 else "<4" for v in values]}, name=str(i), start=0.0))
    population = oj.Population(DECAY, oj.Data.join(parts), {"k": "lognormal"}, noise={"y": "normal(s)"})
    truth = {"k": 0.3, "x0": 10.0, "omega_k": 0.3, "s": 0.5}
    design, found = Design(population, population.layout.to(truth)), {"cwres": [], "npde": [], "as measured": []}
    for i, subject in enumerate(population.members):
        mode, simulated = design.mode(i), design.simulated(i, 500, rng)
        values = completed(design, i, mode)
        hidden = subject.blocks[0].limits is not None and subject.blocks[0].limits.censored
        assert np.all(values[hidden] < 4) and np.all(values[~np.asarray(hidden)] == subject.values[~np.asarray(hidden)])
        found["cwres"].append(conditional_residuals(design, i, mode, values))
        found["npde"].append(prediction_discrepancies(values, simulated))
        found["as measured"].append(prediction_discrepancies(subject.values, simulated))
    table = {key: np.concatenate(rows) for key, rows in found.items()}
    for key in ("cwres", "npde"):
        assert abs(table[key].mean()) < 0.2 and table[key].std() == pytest.approx(1, abs=0.15)
        assert normality(table[key]) > 0.01
    assert normality(table["as measured"]) < 1e-3
