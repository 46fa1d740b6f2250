"""Scales and offsets: which are recognised, and that a search without them finds the same optimum."""

import numpy as np
import pytest

import odejet as oj
from odejet.objective.projection import projected
from odejet.problem import Problem
from odejet.problem.distributions import LAWS
from odejet.search import refine as refinement
from odejet.search.refine import Ending, refine

LOGISTIC = {"x": "r*x*(1 - x)"}
TIMES = np.linspace(0, 10, 25)


def logistic_data(expression, noise=0.02, seed=3, name="e1", **values):
    model = oj.Model(LOGISTIC, {"y": expression})
    clean = oj.simulate(model, {"r": 0.9, **values}, {"x": 0.05}, TIMES)["y"]
    return oj.Data(TIMES, {"y": clean * np.exp(noise * np.random.default_rng(seed).normal(size=25))}, name=name)


def eliminated(outputs, states=None, **options):
    """The labels of what is left out of a search."""
    states = states or LOGISTIC
    data = oj.Data(TIMES, dict.fromkeys(outputs, 1 + TIMES))
    problem = Problem(oj.Model(states, outputs), data, **options)
    found = projected(problem.misfit, problem.frame())
    return [] if found is None else [problem.unknowns[i] for i in found.embedding.gone]


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ({"y": "a*x + b"}, ["a", "b"]),
        ({"y": "x*a/3 - b"}, ["a", "b"]),
        ({"y": "a*(x + x**2)"}, ["a"]),
        ({"y": "x + b"}, ["b"]),
        ({"y": "x"}, []),
        ({"y": "a*(x + b)"}, ["a"]),
        ({"y": "x/a"}, []),
        ({"y": "a**2*x"}, []),
        ({"y": "a*x + a"}, []),
        ({"y": "a*x", "w": "a*x**2"}, []),  # in two outputs
        ({"y": "r*x + b"}, ["b"]),  # r moves the state too
        ({"y": "a*x + c*x**2"}, []),  # two scales of different parts
    ],
)
def test_what_is_recognised(outputs, expected):
    assert eliminated(outputs) == expected


def test_what_is_an_offset_here_and_a_state_there_is_neither():
    model = oj.Model(LOGISTIC, {"y": "x + b"}, parameters=["r", "b"])
    data = oj.Data.of(
        oj.Data(TIMES, {"y": 1 + TIMES}, name=name, initial=initial).experiments[0]
        for name, initial in (("e1", {}), ("e2", {"x": "b"}))
    )
    problem = Problem(model, data)
    assert projected(problem.misfit, problem.frame()) is None


def test_priors_and_other_noise_keep_them():
    outputs = {"y": "a*x + b"}
    assert eliminated(outputs, bounds={"a": (1e-3, 1e3)}) == ["a", "b"]
    assert eliminated(outputs, positive=True) == ["a", "b"]
    assert eliminated(outputs, priors={"a": "normal(0, 1)"}) == ["b"]
    assert eliminated(outputs, priors={"b": "normal(0, 1)"}) == []  # what is stretched is not known beside an offset
    assert eliminated(outputs, noise="student(s, 4)") == []
    assert eliminated(outputs, noise={"y": "normal(a*0.1)"}) == ["b"]
    assert eliminated(outputs, noise={"y": "normal(0.1*y)"}) == []
    assert eliminated(outputs, noise={"y": "normal(s + 0.1*y)"}, priors={"b": "normal(0, 1)"}, positive=True) == []
    assert eliminated(outputs, noise="lognormal") == []  # values of any sign have no logarithm
    assert eliminated(outputs, noise="lognormal", positive=True) == ["a", "b"]
    assert eliminated({"y": "a*x"}, noise="lognormal", positive=True) == ["a"]


def test_sizes_of_noise_go_with_scales():
    assert eliminated({"y": "a*x + b"}, noise="normal(s)") == ["a", "b", "s"]
    assert eliminated({"y": "a*x + b"}, noise="normal(s)", priors={"s": "lognormal(0, 1)"}) == ["a", "b"]
    assert eliminated({"y": "a*x", "w": "x**2"}, noise={"y": "normal(s)", "w": "normal(s + 0.1*w)"}) == ["a"]


@pytest.mark.parametrize("noise", [None, 0.1, "relative", "lognormal"])
def test_the_gradient_is_that_of_the_best_scales(noise):
    expression = "a*x" if noise == "lognormal" else "a*x + b"
    values = {"a": 30.0} if noise == "lognormal" else {"a": 30.0, "b": 2.0}
    data = logistic_data(expression, **values)
    problem = Problem(oj.Model(LOGISTIC, {"y": expression}), data, noise=noise)
    part = projected(problem.misfit, problem.frame())
    assert part is not None
    z = np.array([0.08, 0.7])
    found = part.evaluate(z)
    plain = part.evaluate(z, jacobian=False)
    np.testing.assert_allclose(plain.residuals, found.residuals, atol=1e-10)
    full = part.embedding.filled(z, found.eliminated.values)
    whole = problem.misfit.evaluate(full)
    np.testing.assert_allclose(whole.residuals, found.residuals, atol=1e-9)
    np.testing.assert_allclose(whole.dense, found.eliminated.jacobian.dense(), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(
        whole.residuals @ whole.dense[:, part.embedding.gone], 0, atol=1e-7
    )  # the best there are
    gradient = found.residuals @ found.dense
    for i, axis in enumerate(np.eye(2)):
        squares = [0.5 * np.sum(part.evaluate(z + s * 1e-6 * axis, False).residuals ** 2) for s in (1, -1)]
        assert gradient[i] == pytest.approx((squares[0] - squares[1]) / 2e-6, rel=1e-5)


def test_the_same_optimum_from_far_away_with_intervals_for_all(monkeypatch):
    parts = [logistic_data("a*x + b", seed=i, name=f"e{i}", a=20.0 * i, b=3.0) for i in (1, 2)]
    problem = Problem(oj.Model(LOGISTIC, {"y": "a*x + b"}), oj.Data.join(parts), local=["a"])
    truth = {"x": 0.05, "r": 0.9, "b": 3.0, "a in e1": 20.0, "a in e2": 40.0}
    z = np.array([truth.get(one.label, truth.get(one.name)) for one in problem.layout])
    start = np.where([one.name in ("a", "b") for one in problem.layout], 1e-3, z * 1.3)
    ours = refine(problem.misfit, start, frame=problem.frame(z))
    monkeypatch.setattr(refinement, "projected", lambda *_: None)
    theirs = refine(problem.misfit, z, frame=problem.frame(z))
    assert ours.cost == pytest.approx(theirs.cost, abs=1e-6)
    np.testing.assert_allclose(ours.z, theirs.z, rtol=1e-3)
    fits = [oj.Fit.of(problem, one) for one in (ours, theirs)]
    for label in problem.unknowns:
        assert fits[0].stderr[label] == pytest.approx(fits[1].stderr[label], rel=1e-2)


def test_a_fit_reports_scales_and_offsets_as_all_others():
    fit = oj.fit(oj.Model(LOGISTIC, {"y": "a*x + b"}), logistic_data("a*x + b", a=3000.0, b=40.0))
    assert fit.values["a"] == pytest.approx(3000, rel=0.05)
    low, high = fit.interval("a")
    assert low < 3000 < high
    low, high = fit.profile("a").interval()
    assert low < fit.values["a"] < high


def test_with_noise_of_another_output_that_is_tuned():
    model = oj.Model({"x": "r*x*(1 - x)", "w": "-k*w"}, {"y": "a*x + b", "v": "w"})
    clean = oj.simulate(model, {"r": 0.9, "k": 0.3, "a": 30.0, "b": 2.0}, {"x": 0.05, "w": 4.0}, TIMES)
    rng = np.random.default_rng(1)
    series = {"y": clean["y"] + 0.3 * rng.normal(size=25), "v": clean["v"] * np.exp(0.1 * rng.normal(size=25))}
    problem = Problem(model, oj.Data(TIMES, series), noise={"v": "lognormal(s)"})
    assert projected(problem.misfit, problem.frame()) is not None
    truth = {"x": 0.05, "w": 4.0, "r": 0.9, "k": 0.3, "a": 1.0, "b": 0.0, "s": 0.5}
    z = np.array([truth[one.name] for one in problem.layout])
    found = refine(problem.misfit, z, frame=problem.frame(z))
    assert found.ending.settled and found.z[problem.unknowns.index("a")] == pytest.approx(30, rel=0.1)
    assert found.cost == pytest.approx(problem.misfit.score(found.z), rel=1e-9)
    assert np.abs(found.gradient * found.z).max() < 0.1


def test_what_an_event_changes_is_neither_scale_nor_offset():
    model = oj.Model(LOGISTIC, {"y": "a*x + b"}, events=[oj.Event(at=5.0, set={"a": "2*a"})])
    problem = Problem(model, oj.Data(TIMES, {"y": 1 + TIMES}))
    found = projected(problem.misfit, problem.frame())
    assert found is not None and [problem.unknowns[i] for i in found.embedding.gone] == ["b"]


def test_noise_that_depends_on_its_output_goes_with_scales():
    noise = {"y": "normal(s + q*y)"}
    assert eliminated({"y": "a*x + b"}, noise=noise, positive=True) == ["a", "b", "s", "q"]
    assert eliminated({"y": "a*x"}, noise=noise, positive=True, priors={"q": "lognormal(0, 1)"}) == ["a", "s"]
    shared = {"y": "normal(s + q*y)", "w": "normal(s)"}  # the size of another output's noise
    assert eliminated({"y": "a*x", "w": "x"}, noise=shared, positive=True) == ["a", "q"]
    assert eliminated({"y": "a*x"}, noise=noise) == []  # a scale that may change its sign


@pytest.mark.parametrize("noise", ["normal(s)", "lognormal(s)", "normal(s + 0.05*y)", "lognormal(s/(1 + y))"])
@pytest.mark.parametrize("bounds", [(1e-3, 1e3), (1e-3, 10.0), {"a": (100.0, 1e3)}, {"a": (1e-3, 6.0)}])
def test_within_bounds_the_gradient_is_that_of_the_best_scales(noise, bounds):
    data = logistic_data("a*x + b", a=30.0, b=2.0)
    problem = Problem(oj.Model(LOGISTIC, {"y": "a*x + b"}), data, noise=noise, bounds=bounds, positive=True)
    part = projected(problem.misfit, problem.frame())
    assert part is not None and [problem.unknowns[i] for i in part.embedding.gone] == ["a", "b", "s"]
    z = np.array([0.08, 0.7])
    found = part.evaluate(z)
    full = part.embedding.filled(z, found.eliminated.values)
    whole = problem.misfit.evaluate(full)
    np.testing.assert_allclose(whole.residuals, found.residuals, atol=1e-9)
    np.testing.assert_allclose(whole.dense, found.eliminated.jacobian.dense(), rtol=1e-9, atol=1e-9)
    frame, slopes = problem.frame(), whole.residuals @ whole.dense
    for entry in part.embedding.gone:  # the best there are, or held on a bound that keeps them from going on
        outward = (full[entry] >= frame.high[entry] and slopes[entry] < 0) or full[entry] <= frame.low[entry]
        assert outward or abs(slopes[entry] * full[entry]) < 1e-4
    gradient = found.residuals @ found.dense
    for i, axis in enumerate(np.eye(2)):
        costs = [
            problem.misfit.cost(e.residuals, rest=e.rest) for s in (1, -1) for e in [part.evaluate(z + s * 1e-6 * axis)]
        ]
        assert gradient[i] == pytest.approx((costs[0] - costs[1]) / 2e-6, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("start", [(50.0, 0.05, 0.1), (0.05, 50.0, 0.1), (100.0, 100.0, 0.1)])
def test_along_a_bound_of_a_scale_the_way_goes_on_with_all_unknowns(start):
    """The scale may not be larger than 0.5, so that a + b is 2 and no less, and a descent without it meets a kink
    there: 500 evaluations did not lead to the optimum."""
    model = oj.Model(
        {"x": "-x", "one": "0*one"},
        {"y": "s*x*(a + b)", "w": "one*a", "v": "one*b"},
        initial={"one": 1, "x": 1},
        parameters=["a", "b", "s"],
    )
    times, wide = np.array([0.0, 0.5, 1.0]), (1e-3, 1e3)
    values = {"y": np.exp(-times), "w": np.full(3, 0.01), "v": np.full(3, 0.01)}
    data = oj.Data(times, values, noise={"y": 1e-4, "w": 1.0, "v": 0.1})
    problem = Problem(model, data, bounds={"a": wide, "b": wide, "s": (1e-3, 0.5)})
    frame = problem.frame()
    begin = dict(zip("abs", start, strict=True))
    end = refine(problem.misfit, np.array([begin[label] for label in problem.misfit.labels]), frame=frame)
    assert projected(problem.misfit, frame) is not None and end.ending is Ending.CONVERGED
    found = dict(zip(end.labels, end.z.tolist(), strict=True))
    # The least of (a - 0.01)^2 + 100 (b - 0.01)^2 where a + b = 2.
    b = 0.01 + 1.98 / 101
    assert found == pytest.approx({"s": 0.5, "b": b, "a": 2 - b}, rel=1e-3)


WITH_SCALES = {
    "normal": ("normal(s)", {"a", "s"}),
    "lognormal": ("lognormal(s)", {"a", "s"}),
    "log10normal": ("log10normal(s)", {"a", "s"}),
    "laplace": ("laplace(s)", set()),
    "loglaplace": ("loglaplace(s)", set()),
    "log10laplace": ("log10laplace(s)", set()),
    "student": ("student(s, 4)", set()),
    "gamma": ("gamma(s)", set()),
    "poisson": ("poisson", set()),
    "negbinomial": ("negbinomial(s)", set()),
    "binomial": ("binomial(40)", set()),
    "betabinomial": ("betabinomial(40, s)", set()),
    "ar1": ("ar1(s, rho)", set()),
    "logar1": ("logar1(s, rho)", set()),
}
"""Of every law: which of a scale and the size of its noise follow from all else by squares."""


@pytest.mark.parametrize("law", LAWS)
def test_every_law_says_what_is_eliminated_beside_it(law):
    """A search looks for the scales of an output whose law is not one of squares: whoever adds a law says so here."""
    assert law in WITH_SCALES, f"say whether scales are eliminated beside {law}, and see `distributions.is_of_squares`"
    noise, expected = WITH_SCALES[law]
    model = oj.Model({"x": "-k*x"}, {"y": "a*x"}, initial={"x": 1})
    data = oj.Data(np.arange(1.0, 9.0), {"y": np.array([30.0, 22, 17, 12, 9, 7, 5, 3])}, start=0)
    objective = oj.Problem(model, data, noise=noise).objective
    gone = set(objective.names) - set(objective.without_scales().names)
    assert gone == expected
