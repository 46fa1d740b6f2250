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
