"""Adequacy: what a model does not explain, where, and what would."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.decide.adequacy import Witness, judge
from odejet.decide.advice import advise
from odejet.decide.statistics import check
from odejet.problem import Problem
from odejet.search.refine import refine

DECAY = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 1})
TIMES = np.linspace(0, 6, 40)
RNG = np.random.default_rng(3)


def answer(model: oj.Model, data: oj.Data, start: list[float], curves: float = 1.0, **options: object) -> oj.Fit:
    problem = Problem(model, data, **options)
    best = refine(problem.misfit, np.array(start))
    smoothed = np.full(len(problem.misfit.outputs), 0.01)
    told = judge(problem.misfit, check(problem.misfit, best), Witness(smoothed, curves))
    return advise(problem.misfit, best, told)


def noise(size: float = 0.01) -> np.ndarray:
    return size * RNG.standard_normal(len(TIMES))


def test_subjects_that_differ_are_named_with_what_differs():
    """Rates differ between subjects, scales do not."""
    model = oj.Model({"x": "-k*x"}, {"y": "a*x"}, initial={"x": 1})
    subjects = [
        oj.Data(TIMES, {"y": np.exp(-k * TIMES) + noise()}, name=f"subject{i}")
        for i, k in enumerate((0.3, 0.5, 0.5, 0.9), 1)
    ]
    found = answer(model, oj.Data.join(subjects), [0.5, 1.0])
    assert found == "no"
    assert any("local=['k']" in words and "above in subject4" in words for words in found.advice)
    assert {"subject1", "subject4"} <= {name for reason in found.reasons for name in reason.experiments}


def test_where_a_model_is_off_in_time_is_told():
    values = np.exp(-0.5 * TIMES) + noise()
    values[(TIMES > 3) & (TIMES < 4.5)] += 0.15
    found = answer(DECAY, oj.Data(TIMES, {"y": values}), [0.5])
    (told,) = found.advice
    assert found == "no" and told.startswith("the model is below the measurements of y between t = ")
    begin, end = (float(part.split()[0].rstrip(":")) for part in told.split("t = ")[1:])
    assert 2.5 < begin < 3.6 and 3.9 < end < 5.0


def test_a_curve_that_explains_nothing_is_no_explanation():
    """Noise about a mean: the curve follows it no better than the mean does."""
    values = np.random.default_rng(8).standard_normal(len(TIMES))
    model = oj.Model({"x": "-k*x"}, {"y": "cos(q*x)"}, initial={"x": 1})
    problem = Problem(model, oj.Data(TIMES, {"y": values}), bounds={"k": (0, 3), "q": (0, 60)})
    best = refine(problem.misfit, np.array([0.5, 3.0]), frame=problem.frame())
    told = judge(problem.misfit, check(problem.misfit, best), Witness(np.array([1.0])))
    assert told == "no" and told.reasons[0].kind == "nothing explained"


def test_the_best_of_very_many_curves_has_to_explain_more():
    values = 0.4 * np.cos(2 * TIMES) + np.random.default_rng(1).standard_normal(len(TIMES)) * 0.4
    model = oj.Model({"x": "-k*x"}, {"y": "a*cos(w*t)"}, initial={"x": 1}, fixed={"k": 1})
    problem = Problem(model, oj.Data(TIMES, {"y": values}))
    best = refine(problem.misfit, np.array([0.4, 2.0]))
    checks = check(problem.misfit, best)
    assert judge(problem.misfit, checks, Witness(np.array([0.4]))) == "yes"
    assert judge(problem.misfit, checks, Witness(np.array([0.4]), curves=1e6)) == "no"


def test_as_many_unknowns_as_measurements_leave_it_untested():
    found = answer(DECAY, oj.Data([1.0, 2.0], {"y": [0.6, 0.4]}), [0.5])
    assert found == "untested" and found.reasons[0].kind == "nothing left"


def test_noise_is_explained():
    found = answer(DECAY, oj.Data(TIMES, {"y": np.exp(-0.5 * TIMES) + noise()}), [0.5])
    assert found == "yes" and found.reasons == found.advice == ()
    with pytest.raises(ValueError, match="no answer"):
        type(found)("perhaps")


@pytest.mark.parametrize(("law", "grows"), [("ar1", False), ("logar1", True)])
def test_errors_that_persist_are_suggested(law, grows):
    """What is left of an error after one step is 0.7 of it; a bump or a trend is not taken for that."""
    rng, times, errors = np.random.default_rng(11), np.arange(120.0) / 20, np.zeros(120)
    for i in range(120):
        errors[i] = 0.7 * errors[i - 1] + np.sqrt(1 - 0.49) * rng.standard_normal()
    clean = np.exp(-0.5 * times)
    values = clean * np.exp(0.1 * errors) if grows else clean + 0.01 * errors
    noise = "lognormal" if grows else None
    found = answer(DECAY, oj.Data(times, {"y": values}), [0.5], noise=noise)
    assert found == "no" and f"noise={{'y': '{law}(s, rho)'}}" in found.advice[-1]
    assert answer(DECAY, oj.Data(times, {"y": values}), [0.5, 0.1, 1e-3], noise=f"{law}(s, rho)") == "yes"
    trend = answer(DECAY, oj.Data(times, {"y": clean + 0.02 * times + 0.001 * errors}), [0.5])
    assert trend == "no" and not any("ar1" in words for words in trend.advice)
