"""What a population is asked, and what is refused."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest

import odejet as oj

TIMES = np.array([0.5, 1.0, 2.0, 4.0])


def decay(**options):
    return oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "x0"}, parameters=["x0", "k"], name="decay", **options)


def subjects(count=3, **values):
    parts = [
        oj.Data(TIMES, {"y": np.exp(-0.1 * (i + 1) * TIMES)}, name=f"s{i}", start=0.0, values=values)
        for i in range(count)
    ]
    return oj.Data.join(parts)


def written(rows):
    """A table in a file of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
        file.write("\n".join(rows) + "\n")
    return file.name


def test_names_are_those_of_the_field() -> None:
    population = oj.Population(
        decay(),
        subjects(wt=70.0),
        {"k": "lognormal", "x0": "normal"},
        correlated=[["x0", "k"]],
        covariates={"k": "k*(wt/70)^beta"},
        noise={"y": "normal(a + b*y)"},
    )
    assert population.names == ("x0", "k", "beta", "omega_x0", "corr_x0_k", "omega_k", "a", "b")
    assert population.subjects == ("s0", "s1", "s2")


def test_text_is_a_category() -> None:
    data = oj.Data.join(
        [
            oj.Data(TIMES, {"y": np.exp(-TIMES)}, name=f"s{i}", start=0.0, values={"sex": word})
            for i, word in enumerate(("male", "female", "male"))
        ]
    )
    population = oj.Population(decay(), data, {"k": "lognormal"}, covariates={"k": "k*(1 + beta*sex_male)"})
    assert population.layout.columns["sex_male"].tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"random": {"K": "lognormal"}}, "no parameter 'K'; did you mean 'k'"),
        ({"random": {"k": "lognorm"}}, "did you mean 'lognormal'"),
        ({"random": {}}, "at least one parameter"),
        ({"random": {"k": "lognormal"}, "correlated": [["k", "x0"]]}, "'x0' has no random effect"),
        ({"random": {"k": "lognormal"}, "correlated": [["k", "k"]]}, "stands twice"),
        ({"random": {"k": "lognormal"}, "covariates": {"q": "q*wt"}}, "no parameter 'q'"),
        ({"random": {"k": "lognormal"}, "covariates": {"k": "(wt/70)^beta"}}, "does not contain 'k'"),
        ({"random": {"k": "lognormal"}, "covariates": {"k": "k*(wt/"}}, "covariates of 'k'"),
        ({"random": {"k": "lognormal"}, "fixed": {"k": 0.1}}, "has a known value"),
        ({"random": {"k": "lognormal"}, "noise": "relative"}, r"write 'normal\(b\*y\)'"),
        ({"random": {"k": "lognormal"}, "noise": {"y": "normal(k)"}}, "a parameter of the model"),
        ({"random": {"k": "lognormal"}, "noise": {"z": "normal(k)"}}, "no output 'z'"),
        ({"random": {"k": "lognormal"}, "occasions": "occ"}, "no column 'occ' of occasions"),
        ({"random": {"k": "lognormal"}, "priors": {"omega_q": "normal(1, 1)"}}, "'omega_q' is not estimated"),
        ({"random": {"k": "lognormal"}, "lag": {"q": "T"}}, "lag: the model has no state 'q'"),
    ],
)
def test_bad_input_gets_one_sentence(options, message) -> None:
    with pytest.raises((oj.ModelError, oj.DataError), match=message):
        oj.Population(decay(), subjects(), **options)


def test_one_subject_is_refused() -> None:
    with pytest.raises(oj.DataError, match="one subject only"):
        oj.Population(decay(), subjects(1), {"k": "lognormal"})


def test_a_missing_covariate_names_the_subject() -> None:
    data = oj.Data.join([subjects(2, wt=70.0), oj.Data(TIMES, {"y": np.exp(-TIMES)}, name="heavy", start=0.0)])
    with pytest.raises(oj.DataError, match="heavy: the covariate 'wt' is missing"):
        oj.Population(decay(), data, {"k": "lognormal"}, covariates={"k": "k*wt/70"})


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("k*(WT/70)^beta", "covariates of 'k': the data have 'wt', not 'WT'; write it as there"),
        ("k*exp(beta*sex)", "covariates of 'k': 'sex' is a category, which is told by sex_male and sex_female, not by"),
        ("k*exp(beta*sex_m)", "'sex' is a category, which is told by sex_male and sex_female, not by 'sex_m'"),
        ("k*exp(beta*sex_Male)", "the data have 'sex_male', not 'sex_Male'"),
    ],
)
def test_what_is_nearly_a_covariate_is_no_coefficient(expression, message) -> None:
    data = oj.Data.join(
        [
            oj.Data(TIMES, {"y": np.exp(-TIMES)}, name=word, start=0.0, values={"sex": word, "wt": weight})
            for word, weight in (("male", 80.0), ("female", 60.0))
        ]
    )
    with pytest.raises(oj.ModelError, match=message):
        oj.Population(decay(), data, {"k": "lognormal"}, covariates={"k": expression})


def test_a_subject_by_itself_is_judged() -> None:
    model = oj.Model(
        {"gut": "-ka*gut", "central": "ka*gut - Cl/V*central"},
        {"cp": "F*central/V"},
        initial={"gut": 100, "central": 0},
        parameters=["ka", "Cl", "V", "F"],
    )
    data = oj.Data.join([oj.Data(TIMES, {"cp": np.exp(-TIMES)}, name=name, start=0.0) for name in ("a", "b")])
    population = oj.Population(model, data, dict.fromkeys(["ka", "Cl", "V"], "lognormal"))
    verdict = oj.identify(population, ("Cl/V",))
    assert verdict["F"].kind == "none"
    assert verdict["V"].kind == "none"
    assert verdict["Cl/V"].kind == "local"
    with pytest.raises(oj.ModelError, match="no subject 'c'"):
        population.alone("c")


def test_a_number_that_the_model_knows_may_be_a_covariate() -> None:
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "wt"}, parameters=["k", "wt"])
    population = oj.Population(model, subjects(wt=70.0), {"k": "lognormal"}, covariates={"k": "k*(wt/60)^beta"})
    assert population.names == ("k", "beta", "omega_k", "sigma_y")
    u = population.layout.to({"k": 0.2, "beta": 2.0, "omega_k": 0.3, "sigma_y": 0.1})
    assert population.layout.moments(u).means[:, 0] == pytest.approx(np.log(0.2 * (70 / 60) ** 2))


def test_a_covariate_that_changes_moves_its_parameter() -> None:
    weights = np.array([70.0, 70.0, 140.0, 140.0])
    rows = ["ID,TIME,DV,WT"]
    for subject in (1, 2):
        rows += [f"{subject},{t:g},{np.exp(-t):g},{w:g}" for t, w in zip(TIMES, weights, strict=True)]
    data = oj.Data.from_csv(written(rows))
    population = oj.Population(
        decay(), data, {"k": "lognormal"}, covariates={"k": "k*(WT/70)^beta"}, fixed={"x0": 1}, noise={"y": "normal(s)"}
    )
    assert population.names == ("k", "beta", "omega_k", "s")
    found = population.members[0].predict(np.log([[0.3]]), np.array([2.0]))[0]
    spent = 0.3 * (np.minimum(TIMES, 2) - TIMES[0]) + 0.3 * 4 * np.maximum(TIMES - 2, 0)
    assert found == pytest.approx(np.exp(-spent), rel=1e-6)


def test_doses_may_begin_later() -> None:
    rows = ["ID,TIME,AMT,DV,CMT"]
    for subject in (1, 2):
        rows += [f"{subject},0,100,.,1", *(f"{subject},{t:g},.,{np.exp(-t):g},2" for t in TIMES)]
    model = oj.Model(
        {"gut": "-ka*gut", "A": "ka*gut - k*A"}, {"c": "A"}, initial={"gut": 0, "A": 0}, parameters=["ka", "k"]
    )
    population = oj.Population(
        model, oj.Data.from_csv(written(rows)), {"k": "lognormal", "Tlag": "lognormal"}, lag={"gut": "Tlag"}
    )
    assert population.names[:3] == ("ka", "k", "Tlag")
    found = population.members[0].predict(np.log([[0.3, 0.7]]), np.array([1.5]))[0]
    late = np.maximum(TIMES - 0.7, 0)
    assert found == pytest.approx(100 * 1.5 / 1.2 * (np.exp(-0.3 * late) - np.exp(-1.5 * late)), abs=1e-6)


def test_a_prior_pulls_an_estimate() -> None:
    data = subjects(6)
    options = {"noise": {"y": 0.05}, "fixed": {"x0": 1}}
    free = oj.fit(oj.Population(decay(), data, {"k": "lognormal"}, **options))
    priors = {"k": "lognormal(log(1), 0.01)"}
    pulled = oj.fit(oj.Population(decay(), data, {"k": "lognormal"}, priors=priors, **options))
    assert free.values["k"] < 0.5
    assert 0.9 < pulled.values["k"] < 1.05
    assert pulled.log_likelihood < free.log_likelihood


def test_unknown_initial_states_are_refused() -> None:
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, parameters=["k"])
    with pytest.raises(oj.ModelError, match="initial value of 'x'"):
        oj.Population(model, subjects(), {"k": "lognormal"})


def test_a_known_value_has_no_random_effect() -> None:
    with pytest.raises(oj.ModelError, match="the data give its value"):
        oj.Population(decay(), subjects(k=0.1), {"k": "lognormal"})


def test_options_of_a_population_are_its_own() -> None:
    population = oj.Population(decay(), subjects(), {"k": "lognormal"})
    with pytest.raises(oj.ModelError, match="a population has its noise already"):
        oj.fit(population, noise=0.1)


def test_columns_of_a_table_of_nonmem_are_covariates(tmp_path) -> None:
    lines = ["ID,TIME,AMT,DV,WT,SEX"]
    for subject, weight, sex in ((1, 60, "F"), (2, 80, "M"), (3, 75, "M")):
        lines += [f"{subject},0,100,.,{weight},{sex}", f"{subject},1,.,{50 / weight},{weight},{sex}"]
        lines += [f"{subject},{t},.,{50 / weight / t},{weight},{sex}" for t in (2, 4)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    model = oj.Model({"A": "-k*A"}, {"c": "A/V"}, initial={"A": 0}, parameters=["k", "V"], name="bolus")
    population = oj.Population(
        model,
        oj.Data.from_csv(tmp_path / "table.csv"),
        {"k": "lognormal", "V": "lognormal"},
        covariates={"V": "V*(WT/70)^beta*(1 + theta*SEX_F)"},
    )
    assert population.layout.columns["WT"].tolist() == [60, 80, 75]
    assert population.layout.columns["SEX_F"].tolist() == [1, 0, 0]
    assert population.names == ("k", "V", "beta", "theta", "omega_k", "omega_V", "sigma_c")
