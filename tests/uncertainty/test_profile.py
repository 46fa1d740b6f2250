"""Profiles against linear regression, another optimiser, and what likelihoods must obey."""

import math
import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from scipy import optimize, stats

from odejet import Data, Fit, Model, ModelError, simulate
from odejet.problem import Problem
from odejet.search.refine import refine
from odejet.uncertainty.likelihood import Likelihood
from odejet.uncertainty.profile import End, deviance_quantile, profile
from tests.fits import PREDATORS, STRAIGHT, driven, predators, refined_fit

TIMES = np.linspace(0, 4, 25)
VALUES = 0.5 + 1.5 * TIMES + 0.3 * np.random.default_rng(3).normal(size=25)
LINE = refined_fit(STRAIGHT, Data(TIMES, {"y": VALUES}), [0.5, 1.5])


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_a_straight_line_has_the_intervals_of_regression(level):
    regression = stats.linregress(TIMES, VALUES)
    t = stats.t.ppf(0.5 + 0.5 * level, 23)
    for name, value, sd in (
        ("b", regression.slope, regression.stderr),
        ("x", regression.intercept, regression.intercept_stderr),
    ):
        found = LINE.profile(name, level)
        assert found.interval() == pytest.approx((value - t * sd, value + t * sd), abs=2e-3 * t * sd)
        assert found.open == (False, False)


def test_the_line_at_a_later_time_is_an_expression():
    regression = stats.linregress(TIMES, VALUES)
    spread = ((TIMES - TIMES.mean()) ** 2).sum()
    sd = regression.stderr * math.sqrt(spread / 25 + (6 - TIMES.mean()) ** 2)
    value, reach = regression.intercept + 6 * regression.slope, stats.t.ppf(0.975, 23) * sd
    found = LINE.profile("x + 6*b")
    assert found.interval() == pytest.approx((value - reach, value + reach), abs=2e-3 * reach)
    np.testing.assert_allclose(found.unknowns @ [1, 6], found.values, rtol=1e-9)


def test_known_noise_needs_no_student():
    known = refined_fit(STRAIGHT, Data(TIMES, {"y": VALUES}), [0.5, 1.5], noise=0.3)
    sd = 0.3 / math.sqrt(((TIMES - TIMES.mean()) ** 2).sum())
    low, high = known.profile("b").interval()
    assert (high - low) / 2 == pytest.approx(1.959964 * sd, rel=2e-3)
    assert known.profile("b").quantile == pytest.approx(stats.chi2.ppf(0.95, 1))


def test_quantiles_become_those_of_chi_square():
    for level in (0.68, 0.95):
        exact = stats.chi2.ppf(level, 1)
        assert deviance_quantile(level, math.inf, 1.0) == pytest.approx(exact)
        assert deviance_quantile(level, 1e7, 1.0) == pytest.approx(exact, rel=1e-5)
        assert deviance_quantile(level, 5.0, 1.4) > 1.2 * exact
    with pytest.raises(ModelError, match="probability"):
        deviance_quantile(1.5, 5.0, 1.0)


@pytest.mark.parametrize("name", ["k1", "w", "k2*w"])
def test_another_optimiser_finds_nothing_better_at_the_ends(name):
    fit = predators(points=40)
    found = fit.profile(name)
    misfit, asked = fit.likelihood.misfit, fit.likelihood.derived(name)
    for end in found.interval():
        near = found.unknowns[np.argmin(np.abs(found.values - end))]

        def cost(free, end=end, near=near):
            """The likelihood where k2 or the unknown itself is what makes the quantity right."""
            z = np.insert(np.exp(free), 3 if asked.place is None else asked.place, 1.0)
            if asked.place is None:
                z[3] = end / z[1]
            else:
                z[asked.place] = end
            return misfit.score(z)

        start = np.log(np.delete(near, 3 if asked.place is None else asked.place))
        best = optimize.minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-6}).fun
        assert 2 * (best - fit.cost) == pytest.approx(found.quantile, abs=0.03)


def test_a_function_of_a_quantity_has_the_function_of_its_interval():
    fit = predators(points=40)
    plain = np.array(fit.profile("w").interval())
    np.testing.assert_allclose(fit.profile("w**2").interval(), plain**2, rtol=2e-3)
    np.testing.assert_allclose(fit.profile("1/w").interval(), 1 / plain[::-1], rtol=2e-3)
    np.testing.assert_allclose(fit.profile("log(w)").interval(), np.log(plain), rtol=2e-3, atol=2e-3)


def test_lower_levels_are_inside():
    found = LINE.profile("b", 0.99)
    wide, narrow = found.interval(), found.interval(0.5)
    assert wide[0] < narrow[0] < LINE.parameters["b"] < narrow[1] < wide[1]
    assert narrow == pytest.approx(LINE.profile("b", 0.5).interval(), abs=0.02 * (wide[1] - wide[0]))
    with pytest.raises(ModelError, match="profile it again"):
        found.interval(0.999)


# --- intervals without an end ---

DECAY = Data(TIMES, {"y": np.exp(-0.6 * TIMES) + 0.02 * np.random.default_rng(8).normal(size=25)})


def test_rates_of_which_only_the_sum_acts_have_no_ends():
    model = Model({"x": "-(a + b)*x"}, {"y": "x"})
    fit = refined_fit(model, DECAY, [1.0, 0.3, 0.3], bounds={"a": (0, 10), "b": (0, 10), "x": (0, 10)})
    found = fit.profile("a")
    assert found.open[0] and found.ends[0] is End.FAR and found.interval()[0] == 0
    # The other rate cannot be negative, which is where the upper end comes from.
    total = fit.profile("a + b")
    one = refined_fit(Model({"x": "-k*x"}, {"y": "x"}), DECAY, [1.0, 0.6], bounds=(0, 10))
    assert total.interval() == pytest.approx(one.profile("k").interval(), rel=2e-3)
    assert found.interval()[1] == pytest.approx(total.interval()[1], rel=0.01)
    free = refined_fit(model, DECAY, [1.0, 0.3, 0.3]).profile("a")
    assert free.open == (True, True) and free.interval() == (-math.inf, math.inf)
    assert "any value" in free.sentence


def test_a_rate_that_may_be_zero_has_no_lower_end():
    rng = np.random.default_rng(5)
    data = Data(TIMES, {"y": 2 + 0.1 * rng.normal(size=25)})
    fit = refined_fit(Model({"x": "-k*x"}, {"y": "x"}), data, [2.0, 0.01], bounds=(0, 10))
    found = fit.profile("k")
    low, high = found.interval()
    assert found.open == (True, False) and low == 0 and 0 < high < 0.1
    assert "no lower end" in found.sentence


# --- how it is asked for ---


def test_fits_from_files_profile_the_same(tmp_path):
    for fit in (predators(points=40), driven()):
        fit.save(tmp_path / "fit.json")
        back = Fit.load(tmp_path / "fit.json")
        for name in fit.labels[:2]:
            assert back.profile(name).interval() == pytest.approx(fit.profile(name).interval(), rel=1e-6)


def test_intervals_by_both_methods():
    fit = predators()
    fisher, ratio = fit.intervals(), fit.intervals("profile")
    assert list(fisher) == list(ratio) == list(fit.labels)
    for label, value in fit.values.items():
        for table in (fisher, ratio):
            assert table[label][0] < value < table[label][1]
        np.testing.assert_allclose(fisher[label], ratio[label], rtol=0.05)
    assert set(fit.intervals("profile", names=["k1*k2"])) == {"k1*k2"}
    with pytest.raises(ModelError, match="'fisher' or 'profile'"):
        fit.intervals("bootstrap")


def test_plain_squares_have_no_likelihood():
    fit = refined_fit(STRAIGHT, Data(TIMES, {"y": VALUES}), [0.5, 1.5], weights="none")
    with pytest.raises(ModelError, match="needs the likelihood"):
        fit.profile("b")


def test_a_better_optimum_is_told():
    """A profile that starts from somewhere else than the optimum passes it."""
    fit = predators(points=40)
    shifted = refined_fit(PREDATORS, fit.data, fit.estimates, bounds=(0, 10))
    shifted = replace(shifted, estimates=fit.estimates * [1, 1, 1.02, 1, 1], cost=math.inf)
    with pytest.raises(ModelError, match="no fit"):
        shifted.profile("k1")
    moved = replace(shifted, cost=0.0)
    assert "better than the fit" in profile(moved.likelihood, "k1").note


def test_tables_and_plots():
    found = LINE.profile("b")
    table = found.to_dataframe()
    assert list(table.columns) == ["value", "deviance", "x(0)", "b"]
    assert table["deviance"].min() == 0 and np.all(np.diff(table["value"]) > 0)
    assert len(found.plot().get_axes()) == 1


# --- refits that go wrong ---


def saturating() -> Fit:
    """A rate of which little more than v/K is known: its valley bends."""
    model = Model({"s": "-v*s/(K + s)"}, {"y": "s"})
    times = np.linspace(0, 6, 40)
    exact = simulate(model, {"v": 1.0, "K": 2.0}, {"s": 1.5}, times)["y"]
    noisy = exact + 0.03 * np.random.default_rng(1).normal(size=len(times))
    return refined_fit(model, Data(times, {"y": noisy}), [1.5, 1.0, 2.0], bounds=(0, 1e4))


class Hasty(Likelihood):
    """One whose first refit at every value stops where it started."""

    seen: ClassVar[set[float]] = set()

    def hold(self, held, value, start, time_limit=math.inf, evaluations=500):
        first = value not in self.seen
        self.seen.add(value)
        return super().hold(held, value, start, time_limit, 1 if first else evaluations)


class Misled(Likelihood):
    """One whose first refit at every value ends in another, higher valley."""

    seen: ClassVar[set[float]] = set()

    def hold(self, held, value, start, time_limit=math.inf, evaluations=500):
        found = super().hold(held, value, start, time_limit, evaluations)
        first = value not in self.seen
        self.seen.add(value)
        return replace(found, cost=found.cost + 3) if first else found


@pytest.mark.parametrize("kind", [Hasty, Misled])
def test_an_interval_ends_only_where_refits_have_come_to_their_end(kind):
    own = saturating().likelihood
    kind.seen.clear()
    found = profile(kind(own.misfit, own.frame, own.optimum), "K")
    expected = profile(own, "K")
    assert expected.open == found.open == (False, False)
    low, high = expected.interval()
    assert found.interval()[0] <= 1.01 * low and found.interval()[1] >= 0.99 * high


def test_a_profile_that_time_ends_says_so_however_precise_the_quantity(monkeypatch):
    """A refit that is cut short is no sign that nothing beyond can be reached."""
    times = np.linspace(0, 4, 40)
    noise = 1e-6 * np.random.default_rng(1).normal(size=40)
    data = Data(times, {"y": 2 * np.exp(-0.5 * times) + noise})
    fit = refined_fit(Model({"x": "-k*x"}, {"y": "x"}), data, [2.0, 0.5])
    monkeypatch.setattr(Likelihood, "hold", lambda *_: time.sleep(0.02))
    found = profile(fit.likelihood, "k", 0.95, 0.01)
    assert found.stopped and not any(end is End.UNREACHED for end in found.ends)


def test_many_experiments_in_blocks_have_the_profiles_of_one_matrix(monkeypatch):
    model = Model({"x": "s*(b - x)"}, {"y": "x"}, name="settling")
    times, rng = np.linspace(0, 3, 8), np.random.default_rng(5)
    parts, start = [], {}
    for i in range(25):
        x, b = 1 + 0.1 * i, 3 - 0.05 * i
        values = b + (x - b) * np.exp(-0.8 * times) + 0.02 * rng.normal(size=8)
        parts.append(Data(times, {"y": values}, name=f"e{i}"))
        start |= {f"e{i}": {"x": x, "b": b}}
    data = Data.join(parts)

    def ends():
        problem = Problem(model, data, local=["b"])
        z = np.array([0.8 if one.experiment is None else start[one.experiment][one.name] for one in problem.layout])
        fit = Fit.of(problem, refine(problem.misfit, z, frame=problem.frame(z)))
        return problem.misfit.in_blocks, [end for label in fit.labels[:3] for end in fit.profile(label).interval()]

    in_blocks, found = ends()
    monkeypatch.setattr("odejet.objective.misfit.MANY_EXPERIMENTS", 1000)
    whole, expected = ends()
    assert in_blocks and not whole
    assert found == pytest.approx(expected, rel=1e-4)
