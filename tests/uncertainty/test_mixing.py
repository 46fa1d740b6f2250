"""What is said of chains: that they agree, stay apart, are too few, or never moved."""

import numpy as np
import pytest

import odejet as oj
from odejet.uncertainty.mixing import doubts, is_enough, settled, statistics
from odejet.uncertainty.sampling import Drawn
from tests.uncertainty.test_posterior import refined_fit

pytest.importorskip("walnutpie")
pytest.importorskip("arviz")

TIMES = np.linspace(0, 1, 12)


def made(chains, origins=(0, 0, 0, 0), **changes):
    told = {"gradients": 100, "failures": 0, "stuck": 1, "stopped": False} | changes
    return Drawn(chains, chains, origins, **told)


def normal(seed=0, length=500, shift=(0, 0, 0, 0)):
    draws = np.random.default_rng(seed).normal(size=(4, length, 2))
    return draws + np.array(shift)[:, None, None]


def table(found):
    return {label: statistics(found.chains[:, :, i]) for i, label in enumerate("ab")}


def test_chains_that_agree():
    found = made(normal())
    assert is_enough(found, 400) and not is_enough(found, 10_000)
    assert doubts(table(found), found, 400) == []


def test_few_draws_and_an_end_of_time():
    found = made(normal(length=40), stopped=True)
    (said,) = doubts(table(found), found, 400)[-1:]
    assert said.startswith("the time was over: ") and said.endswith("and 400 were asked for")


def test_chains_that_differ():
    found = made(normal(shift=(0, 0, 0, 3)))
    assert not is_enough(found, 100)
    assert doubts(table(found), found, 10)[0].startswith("the chains have not come to the same law: R-hat is up to 1.")


def test_draws_that_do_not_move_and_places_without_a_simulation():
    found = made(normal(), stuck=500, failures=20)
    said = doubts(table(found), found, 400)
    assert "20% of the points" in said[0] and "did not move for 500 draws" in said[1]


def test_single_draws_are_not_trusted():
    found = made(normal(length=1), stopped=True)
    said = doubts(table(found), found, 400)
    assert "R-hat is not known" in said[0] and "0 effective draws" in said[1]


def two_minima(noise=0.02):
    """y = x^2 with x free: both signs are as good."""
    model = oj.Model({"x": "-x*k"}, {"y": "x**2"}, fixed={"k": 1})
    values = np.exp(-2 * TIMES) + noise * np.sin(40 * TIMES)
    return refined_fit(model, oj.Data(TIMES, {"y": values}), [1.0], noise=noise, bounds={"x": (-3, 3)})


def test_optima_that_do_not_mix_are_told_with_their_shares():
    from odejet.uncertainty.posterior import sample

    fit = two_minima()
    found = sample(fit.likelihood, fit.problem, [-fit.estimates], ess=100, time_limit=30)
    assert not found.success and len(found.chains) == 4
    (said,) = (one for one in found.warnings if "2 different optima" in one)
    share = float(said.partition("about ")[2].partition("%")[0])
    assert share == pytest.approx(50, abs=10)
    assert (found["x"] < 0).any() and (found["x"] > 0).any()


def test_chains_at_an_optimum_without_a_share_are_left_out():
    fit = two_minima()
    rng = np.random.default_rng(1)
    places = np.concatenate([0.02 * rng.normal(size=(2, 300, 1)), 5 + 0.02 * rng.normal(size=(2, 300, 1))])

    class Objective:
        prior_entries = np.zeros(0, dtype=int)
        coordinates = fit.problem.objective.coordinates

        def scaled(self):
            return fit.problem.objective.scaled()

        def value(self, theta):
            return 0.0 if theta[0] < 1 else 50.0

    kept, said = settled(Drawn(places, places, (0, 0, 1, 1), 100, 0, 1, False), Objective())
    assert len(kept.chains) == 2 and "are left out" in said[0]


def test_the_time_limit_holds():
    import time

    fit = two_minima()
    begin = time.monotonic()
    found = fit.sample(ess=1e6, time_limit=2)
    assert time.monotonic() - begin < 20 and not found.success
    assert "the time was over" in found.warnings[-1]
