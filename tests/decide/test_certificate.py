"""Certificates: granted to noise on which starts agree, refused with the reason otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from odejet import Data, Model
from odejet.decide.certificate import FIRM, Certificate, Evidence, certify, is_vague
from odejet.decide.optima import Optimum
from odejet.objective.misfit import Misfit
from odejet.problem import Problem, coordinates
from odejet.search.refine import Ending, Refined, refine

LINE = Model({"x": "-k*x"}, {"y": "x"})


def refined(wrong: float = 0.0, points: int = 201) -> tuple[Misfit, Refined]:
    """A fit to a decay with noise 0.01 and a wave that the model does not explain."""
    times = np.linspace(0, 5, points)
    noise = 0.01 * np.random.default_rng(0).standard_normal(points)
    data = Data(times, {"y": 2 * np.exp(-0.5 * times) + wrong * np.sin(4 * times) + noise})
    misfit = Problem(LINE, data).misfit
    return misfit, refine(misfit, np.array([1.8, 0.6]))


def judged(
    wrong: float = 0.0, points: int = 201, starts: int = 2, behind: Sequence[float] = (), **known: object
) -> Certificate:
    """Its certificate, if so many starts ended there and others so far behind."""
    misfit, best = refined(wrong, points)
    optima = [best] * starts + [replace(best, cost=best.cost + more) for more in behind]
    return certify(Optimum(misfit, best), Evidence(optima, np.array([0.01]), **known))


def test_noise_is_certified():
    assert judged().granted


def test_what_is_no_noise_is_not():
    certificate = judged(wrong=0.1)
    assert not certificate.granted
    assert "are autocorrelated" in certificate.sentence and "larger than the noise" in certificate.sentence


def test_one_start_is_not_enough():
    assert judged(starts=1).reasons == ("only one start ended at this optimum",)


def test_few_points_need_a_search_without_smoothing():
    assert "with so few points" in judged(points=40).sentence
    assert judged(points=40, confirmed=True).granted


def test_other_valleys_ask_for_more_starts():
    """Boender and Rinnooy Kan: w(w+1)/(n(n-1)) of all starts are expected to lead elsewhere."""
    certificate = judged(behind=[3.0])
    assert certificate.reasons == (
        "3 starts ended at 2 optima of nearly the same likelihood, and there may be a better",
    )
    assert judged(starts=8, behind=[3.0]).granted  # 6/72 of all starts may lead elsewhere
    assert not judged(starts=8, behind=[1.0, 3.0]).granted  # 12/90 of them
    assert judged(behind=[50.0]).granted  # an optimum that the data rule out is no rival


def test_vague_values_ask_for_more_starts():
    assert "leave values so vague, only a search without smoothing" in judged(starts=5, vague=True).sentence
    assert "so vague that 4 starts" in judged(starts=4, vague=True, confirmed=True).sentence
    assert judged(starts=5, vague=True, confirmed=True).granted


def test_several_roots_want_a_confirmation_where_some_values_cannot_be_known():
    assert judged(roots=6).granted and judged(unknowable=("k",)).granted
    assert "may have several roots" in judged(roots=6, unknowable=("k",)).sentence
    assert judged(roots=6, unknowable=("k",), confirmed=True).granted


def test_a_little_autocorrelation_wants_a_confirmation():
    certificate = judged(wrong=0.005)
    assert 1e-4 < certificate.outputs[0].white_p < 1e-2
    assert "where residuals are a little autocorrelated" in certificate.sentence
    assert "8 starts cannot rule out a better optimum" in judged(starts=8, wrong=0.005, confirmed=True).sentence
    assert judged(starts=FIRM, wrong=0.005, confirmed=True).granted


@pytest.mark.parametrize(("sd", "expected"), [(0.001, False), (2.0, True)])
def test_data_that_tell_no_rate_leave_it_vague(sd, expected):
    times = np.linspace(0, 5, 51)
    data = Data(times, {"y": 2 * np.exp(-0.05 * times) + sd * np.random.default_rng(1).standard_normal(51)})
    misfit = Problem(LINE, data).misfit
    frame = coordinates.choose(misfit.unknowns, np.ones(2), (1e-5, 10.0))
    assert is_vague(misfit, refine(misfit, np.array([2.0, 0.05]), frame=frame), frame) is expected


def test_what_no_data_determine_is_named():
    certificate = judged(unknowable=("a", "b"))
    assert certificate.granted and "many values of a, b do as well" in certificate.message


def test_the_noise_is_corrected_for_what_the_fit_took():
    misfit, best = refined(points=12)
    certificate = certify(Optimum(misfit, best), Evidence([best, best], np.array([0.01]), True))
    assert certificate.noise["y"] == pytest.approx(float(best.levels[0]) * np.sqrt(12 / 10))


def outlying(values: np.ndarray, **known: object) -> Certificate:
    """The certificate of a fit to a decay at 200 times."""
    misfit = Problem(LINE, Data(np.linspace(0, 5, 200), {"y": values})).misfit
    best = refine(misfit, np.array([1.0, 0.7]))
    optima, level = [best] * 8, float(best.levels[0])
    return certify(Optimum(misfit, best), Evidence(optima, np.array([level]), confirmed=True, **known))


def decays(noise: np.ndarray) -> np.ndarray:
    return np.exp(-0.7 * np.linspace(0, 5, 200)) + 0.01 * noise


def test_one_outlier_withholds_the_certificate_and_is_named():
    values = decays(np.random.default_rng(0).standard_normal(200))
    assert outlying(values).granted
    for wrong in (1000.0, values[100] + 0.1):
        values[100] = wrong
        certificate = outlying(values)
        assert not certificate.granted
        assert [(one.output, one.value) for one in certificate.suspicious] == [("y", wrong)]
        (reason,) = certificate.reasons
        assert f"y = {wrong:g} at t = 2.51256 is" in reason and "correct it or leave it out" in reason


def test_nothing_is_suspicious_before_the_optimum():
    values = decays(np.random.default_rng(0).standard_normal(200))
    values[100] = 1000.0
    misfit = Problem(LINE, Data(np.linspace(0, 5, 200), {"y": values})).misfit
    best = replace(refine(misfit, np.array([1.0, 0.7])), ending=Ending.TIME_LIMIT)
    certificate = certify(Optimum(misfit, best), Evidence([best] * 8, best.levels, confirmed=True))
    assert not certificate.granted and certificate.suspicious == ()
    assert "the measurement" not in certificate.sentence and "time limit" in certificate.reasons[0]


def test_heavy_tails_withhold_the_certificate():
    """Noise of two sizes: no single point is too far away for normal noise, but all together are."""
    rng = np.random.default_rng(4)
    certificate = outlying(decays(rng.standard_normal(200) * np.where(rng.random(200) < 0.15, 4.0, 1.0)))
    assert not certificate.granted and certificate.outputs[0].outlier_p > 1e-4
    (reason,) = certificate.reasons
    assert "the residuals of y have heavier tails than normal noise" in reason and "give the sds" in reason
    worst = max(certificate.suspicious, key=lambda one: abs(one.deviation))
    assert f"most of all at t = {worst.time:g}" in reason


@pytest.mark.parametrize(("points", "said"), [(2, "nothing is left"), (3, "only one degree of freedom"), (4, "")])
def test_nothing_tested_nothing_certified(points, said):
    times = np.arange(points, dtype=float)
    values = np.exp(-0.7 * times) + 0.01 * np.array([1, -1, -1, 1])[:points]
    misfit = Problem(LINE, Data(times, {"y": values})).misfit
    best = refine(misfit, np.array([1.0, 0.7]))
    certificate = certify(Optimum(misfit, best), Evidence([best] * 8, np.array([1.0]), confirmed=True))
    assert certificate.granted is (not said)
    assert said in certificate.reasons[0] and (not said or f"{points} measurements" in certificate.reasons[0])


def test_errors_of_a_simulation_are_no_reason_against_a_certificate():
    """Data of a solver that is good to eleven digits: residuals are autocorrelated, and mean nothing."""
    times = np.linspace(0, 5, 200)
    values = np.exp(-0.7 * times) + 1e-12 * np.sin(9 * times)
    misfit = Problem(LINE, Data(times, {"y": values})).misfit
    best = refine(misfit, np.array([1.0, 0.7]))
    smoothed = np.array([1e-15])
    assert best.ending is not Ending.EXACT
    unconfirmed, confirmed = (
        certify(Optimum(misfit, best), Evidence([best] * 2, smoothed, confirmed=known)) for known in (False, True)
    )
    assert "too small to be noise, only a search without smoothing" in unconfirmed.sentence
    assert confirmed.message.startswith("certified: the residuals are down to the errors of a simulation and 2 starts")


def test_roots_that_nobody_counted_may_be_several():
    assert "may have several roots" in judged(roots=None, unknowable=("k",)).sentence
