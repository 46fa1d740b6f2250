"""Fits side by side: likelihoods by SciPy, criteria by their definitions, and refusals."""

import math

import numpy as np
import pytest
from scipy import stats

import odejet as oj
from odejet import Data, Model, ModelError
from tests.fits import refined_fit

TIMES = np.linspace(0, 4, 15)
DATA = Data(TIMES, {"y": np.exp(-0.6 * TIMES) + 0.05 * np.random.default_rng(1).normal(size=15)})
DECAY = refined_fit(Model({"x": "-k*x"}, {"y": "x"}, name="decay"), DATA, [1.0, 0.6])
OFFSET = refined_fit(Model({"x": "-k*x"}, {"y": "x + c"}, name="offset"), DATA, [1.0, 0.6, 0.0])
LINE = refined_fit(Model({"x": "b + 0*x"}, {"y": "x"}, name="line"), DATA, [1.0, -0.3])


def test_criteria_are_what_they_are_defined_as():
    found = oj.compare([LINE, DECAY, OFFSET])
    for fit, k in ((DECAY, 3), (OFFSET, 4), (LINE, 3)):
        row, residuals = found[fit.model.name], fit.residuals()["y"]
        likelihood = stats.norm.logpdf(residuals, scale=math.sqrt((residuals**2).mean())).sum()
        assert row.parameters == k and row.log_likelihood == pytest.approx(likelihood)
        assert row.aic == pytest.approx(2 * k - 2 * likelihood)
        assert row.aicc == pytest.approx(row.aic + 2 * k * (k + 1) / (15 - k - 1))
        assert row.bic == pytest.approx(k * math.log(15) - 2 * likelihood)
    assert found.best.name == found[0].name and [row.aicc for row in found] == sorted(row.aicc for row in found)
    weights = np.array(list(found.weights.values()))
    assert weights.sum() == pytest.approx(1)
    assert weights[1] / weights[0] == pytest.approx(math.exp(-0.5 * (found[1].aicc - found[0].aicc)))


def test_the_table_is_text_and_a_data_frame():
    found = oj.compare({"one": DECAY, "two": LINE})
    lines = str(found).splitlines()
    assert lines[0].split() == [
        "model", "parameters", "log-likelihood", "AIC", "AICc", "BIC", "ΔAICc", "weight", "certified"
    ]  # fmt: skip
    assert lines[2].startswith("one") and lines[3].startswith("two") and lines[2].endswith("no")
    assert found.to_dataframe().loc["two", "parameters"] == 3 and len(found) == 2
    assert "<table" in found._repr_html_()


def test_models_that_contain_each_other_are_tested():
    """By Wilks' law; a model of other equations is tested against nothing."""
    fixed = refined_fit(OFFSET.model.replace(fixed={"c": 0}, name="without"), DATA, [1.0, 0.6])
    found = oj.compare({"offset": OFFSET, "without": fixed, "line": LINE})
    (test,) = found.tests
    gain = OFFSET.log_likelihood - fixed.log_likelihood
    assert (test.smaller, test.larger, test.degrees, test.at_bound) == ("without", "offset", 1, False)
    assert test.statistic == pytest.approx(2 * gain)
    assert test.p_value == pytest.approx(stats.chi2.sf(2 * gain, 1))
    assert f"offset against without: {2 * gain:.2f}, 1 degree of freedom, p = " in str(found)


def several(noise: float = 0.05) -> Data:
    rng = np.random.default_rng(5)
    parts = []
    for name, start in (("low", 1.0), ("middle", 2.0), ("high", 4.0)):
        values = start * np.exp(-0.6 * TIMES) + noise * rng.normal(size=15)
        parts.append(Data(TIMES, {"y": values}, name=name, initial={"x": start}).experiments[0])
    return Data.of(parts)


def test_experiments_that_are_left_out_are_foretold():
    """As least squares in closed form does it: k of the others by SciPy, then the law of what was left out."""
    from scipy.optimize import least_squares

    data = several()
    fit = refined_fit(Model({"x": "-k*x"}, {"y": "x"}, name="decay"), data, [0.6])
    wrong = refined_fit(Model({"x": "-k"}, {"y": "x"}, name="line"), data, [0.6])
    found = oj.compare([fit, wrong], cross_validate=True)
    values = {one.name: one.outputs["y"].values for one in data.experiments}
    starts = {"low": 1.0, "middle": 2.0, "high": 4.0}
    for left, measured in values.items():
        others = [name for name in values if name != left]

        def residuals(k, names=others):
            return np.concatenate([starts[name] * np.exp(-k[0] * TIMES) - values[name] for name in names])

        best = least_squares(residuals, [0.6], xtol=1e-12).x
        sd = math.sqrt(np.mean(residuals(best) ** 2))
        expected = stats.norm.logpdf(measured, starts[left] * np.exp(-best[0] * TIMES), sd).sum()
        assert found.validations["decay"].by_experiment[left] == pytest.approx(expected, abs=1e-4)
    assert found["decay"].validation == pytest.approx(found.validations["decay"].total)
    assert found["decay"].validation > found["line"].validation
    assert str(found).splitlines()[0].endswith("left out")


def test_what_others_cannot_foretell_is_refused():
    free = Data.of(
        Data(TIMES, {"y": DATA.experiments[0].outputs["y"].values}, name=name).experiments[0] for name in ("a", "b")
    )
    fit = refined_fit(DECAY.model, free, [1.0, 1.0, 0.6])
    with pytest.raises(ModelError, match=r"'decay': x\(0\).* is unknown in one experiment alone"):
        oj.compare([fit], cross_validate=True)
    with pytest.raises(oj.DataError, match="there is only one"):
        oj.compare([DECAY], cross_validate=True)


def test_models_of_the_same_name_are_numbered():
    assert {row.name for row in oj.compare([DECAY, DECAY, LINE])} == {"decay 1", "decay 2", "line"}
    with pytest.raises(KeyError, match="there are"):
        oj.compare([DECAY, LINE])["other"]


def test_too_few_measurements_for_the_correction():
    few = Data(TIMES[:4], {"y": DATA.experiments[0].outputs["y"].values[:4]})
    fit = refined_fit(DECAY.model, few, [1.0, 0.6])
    found = oj.compare([fit])
    assert found.best.aicc == math.inf and found.best.weight == 1


def test_fits_that_do_not_compare_are_refused():
    values = DATA.experiments[0].outputs["y"].values.copy()
    values[3] += 1e-9
    other = refined_fit(DECAY.model, Data(TIMES, {"y": values}), [1.0, 0.6])
    with pytest.raises(ModelError, match=r"'decay 1' and 'decay 2' are fits to different data \(the measurements of y"):
        oj.compare([DECAY, other])
    renamed = refined_fit(DECAY.model, Data(TIMES, {"y": values}, name="second"), [1.0, 0.6])
    with pytest.raises(ModelError, match="only one of them has measurements of y in experiment1"):
        oj.compare([DECAY, renamed])
    plain = refined_fit(DECAY.model, DATA, [1.0, 0.6], weights="none")
    with pytest.raises(ModelError, match="plain squares"):
        oj.compare([DECAY, plain])
    for wrong, said in (([], "no fits"), ([1], "not int"), ({"a": 1}, "not int"), (DECAY, "one fit only")):
        with pytest.raises(ModelError, match=said):
            oj.compare(wrong)
