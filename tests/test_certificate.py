"""Certificates: granted to noise on which starts agree, refused with the reason otherwise."""

from __future__ import annotations

import numpy as np

from odejet import Data, Model
from odejet.certificate import certify
from odejet.misfit import Misfit
from odejet.refine import refine
from odejet.result import Certificate
from odejet.statistics import check

LINE = Model({"x": "-k*x"}, {"y": "x"})


def judged(wrong: float = 0.0, points: int = 201, starts: int = 2, confirmed: bool = False) -> Certificate:
    """The certificate of a fit to a decay with noise 0.01 and a wave that the model does not explain."""
    times = np.linspace(0, 5, points)
    noise = 0.01 * np.random.default_rng(0).standard_normal(points)
    data = Data(times, {"y": 2 * np.exp(-0.5 * times) + wrong * np.sin(4 * times) + noise})
    misfit = Misfit(LINE, data)
    best = refine(misfit, np.array([1.8, 0.6]))
    return certify(misfit, best, [best] * starts, check(misfit, best), np.array([0.01]), confirmed)


def test_noise_is_certified():
    assert judged().granted


def test_what_is_no_noise_is_not():
    certificate = judged(wrong=0.1)
    assert not certificate.granted
    assert "have memory" in certificate.sentence and "larger than the noise" in certificate.sentence


def test_one_start_is_not_enough():
    assert judged(starts=1).reasons == ("only one start ended at this optimum",)


def test_few_points_need_a_search_without_smoothing():
    assert "with so few points" in judged(points=40).sentence
    assert judged(points=40, confirmed=True).granted
