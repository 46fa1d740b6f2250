"""Fits against closed forms and certified values: standard errors, intervals, criteria, and what they say in words."""

import importlib
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from odejet import Data, DataError, Fit, Model, ModelError, simulate
from odejet.decide.answer import NO_SEARCH
from odejet.numerals import measured
from odejet.problem import Problem
from odejet.report.html import page
from odejet.result import Certificate, Identifiability
from odejet.search.refine import Ending, refine
from tests.fits import DRIVEN, PREDATORS, STRAIGHT, driven, predators, refined_fit
from tests.search import test_refine as nist

TIMES = np.array([0.0, 0.5, 1.0, 2.5, 3.0, 4.0, 5.5, 7.0, 7.5, 8.0, 9.0, 10.0])
DESIGN = np.column_stack([np.ones_like(TIMES), TIMES])


def line(noise, seed=0):
    return 2.0 + 0.3 * TIMES + noise * np.random.default_rng(seed).normal(size=len(TIMES))


def least_squares(design, values):
    estimate, squares, *_ = np.linalg.lstsq(design, values, rcond=None)
    return estimate, float(squares[0])


# --- standard errors and intervals ---


def test_line_with_unknown_noise():
    values = line(0.1)
    fit = refined_fit(STRAIGHT, Data(TIMES, {"y": values}), [1.0, 1.0])
    estimate, squares = least_squares(DESIGN, values)
    covariance = squares / (len(TIMES) - 2) * np.linalg.inv(DESIGN.T @ DESIGN)
    np.testing.assert_allclose(fit.estimates, estimate, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(fit.covariance), covariance, rtol=1e-9)
    assert fit.noise["y"] == pytest.approx(math.sqrt(squares / (len(TIMES) - 2)), rel=1e-9)
    reach = stats.t.ppf(0.95, len(TIMES) - 2) * math.sqrt(covariance[1, 1])
    np.testing.assert_allclose(fit.interval("b", 0.9), estimate[1] + reach * np.array([-1, 1]), rtol=1e-5)
    expected = covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1])
    assert fit.correlation["x(0)", "b"] == pytest.approx(expected, rel=1e-9)
    assert fit.correlation["b"]["x(0)"] == fit.correlation["x", "b"]


def test_line_with_known_noise():
    values = line(0.1)
    fit = refined_fit(STRAIGHT, Data(TIMES, {"y": values}), [1.0, 1.0], noise=0.25)
    covariance = 0.25**2 * np.linalg.inv(DESIGN.T @ DESIGN)
    estimate, squares = least_squares(DESIGN, values)
    np.testing.assert_allclose(np.asarray(fit.covariance), covariance, rtol=1e-9)
    reach = stats.norm.ppf(0.975) * math.sqrt(covariance[1, 1])
    np.testing.assert_allclose(fit.interval("b"), estimate[1] + reach * np.array([-1, 1]), rtol=1e-5)
    assert fit.chi_square == pytest.approx(squares / 0.25**2, rel=1e-6)
    assert fit.degrees_of_freedom == pytest.approx(len(TIMES) - 2)
    assert fit.certificate.chi_square_p["y"] == pytest.approx(stats.chi2.sf(fit.chi_square, len(TIMES) - 2), rel=1e-6)


def test_criteria_of_a_line():
    values = line(0.1)
    fit = refined_fit(STRAIGHT, Data(TIMES, {"y": values}), [1.0, 1.0])
    n, squares = len(TIMES), least_squares(DESIGN, values)[1]
    twice = n * (math.log(2 * math.pi * squares / n) + 1)
    assert fit.aic == pytest.approx(twice + 2 * 3, rel=1e-9)
    assert fit.bic == pytest.approx(twice + 3 * math.log(n), rel=1e-9)


def test_plain_least_squares_of_unlike_outputs():
    """Unweighted fits get the errors of their own estimator: (X'X)^-1 X'CX (X'X)^-1."""
    model = Model({"x": "b + 0*x"}, {"y1": "x", "y2": "x"})
    rng = np.random.default_rng(4)
    outputs = {"y1": line(0.01, 1), "y2": line(1.0, 2)}
    fit = refined_fit(model, Data(TIMES, outputs), [1.0, 1.0], weights="none")
    design = np.vstack([DESIGN, DESIGN])
    sds = np.repeat([fit.noise["y1"], fit.noise["y2"]], len(TIMES))
    inverse = np.linalg.inv(design.T @ design)
    expected = inverse @ (design.T * sds**2) @ design @ inverse
    np.testing.assert_allclose(np.asarray(fit.covariance), expected, rtol=1e-9)
    # The errors are those of repetitions of the experiment.
    drawn = [
        least_squares(design, np.concatenate([line(0), line(0)]) + np.repeat([0.01, 1.0], 12) * rng.normal(size=24))[0]
        for _ in range(4000)
    ]
    exact = inverse @ (design.T * np.repeat([0.01**2, 1.0], 12)) @ design @ inverse
    np.testing.assert_allclose(np.cov(np.transpose(drawn)), exact, rtol=0.12)


def test_intervals_cover():
    """With six points Student's t matters: normal quantiles would cover 88 %."""
    times = TIMES[:6]
    rng, hits, trials = np.random.default_rng(7), 0, 300
    for _ in range(trials):
        values = 2 + 0.3 * times + 0.1 * rng.normal(size=6)
        problem = Problem(STRAIGHT, Data(times, {"y": values}))
        fit = Fit.of(problem, refine(problem.misfit, np.array([2.0, 0.3])))
        low, high = fit.interval("b")
        hits += low <= 0.3 <= high
    assert 0.915 <= hits / trials <= 0.985


NIST = {
    "misra1a": (
        nist.MISRA,
        Data(nist.MISRA_X, {"y": nist.MISRA_Y}),
        {"b1": (2.3894212918e02, 2.7070075241e00), "b2": (5.5015643181e-04, 7.2668688436e-06)},
        1.0187876330e-01,
    ),
    "lanczos3": (
        nist.LANCZOS,
        Data(nist.LANCZOS_X, {"y": nist.LANCZOS_Y}),
        {
            "a(0)": (8.6816414977e-02, 1.7197908859e-02),
            "b(0)": (8.4400777463e-01, 4.1488663282e-02),
            "c(0)": (1.5825685901e00, 5.8371576281e-02),
            "p": (9.5498101505e-01, 9.7041624475e-02),
            "q": (2.9515951832e00, 1.0766312506e-01),
            "s": (4.9863565084e00, 3.4436403035e-02),
        },
        2.9923229172e-05,
    ),
}


@pytest.mark.parametrize("name", NIST)
def test_certified_standard_deviations(name):
    model, data, certified, noise = NIST[name]
    fit = refined_fit(model, data, [value for value, _ in certified.values()], bounds=(0, 1e4))
    assert fit.labels == tuple(certified)
    for label, (value, sd) in certified.items():
        assert fit.values[label] == pytest.approx(value, rel=1e-4)
        assert fit.stderr[label] == pytest.approx(sd, rel=1e-3)
    assert fit.noise["y"] == pytest.approx(noise, rel=1e-4)


# --- what the data do not determine ---

DECAY = Data(np.linspace(0, 3, 40), {"y": 2 * np.exp(-0.6 * np.linspace(0, 3, 40)) + 0.01 * np.cos(np.arange(40.0))})


def test_undetermined_quantities_have_infinite_errors_and_others_do_not():
    product = refined_fit(Model({"x": "-a*b*x"}, {"y": "x"}), DECAY, [1.9, 0.8, 0.9])
    single = refined_fit(Model({"x": "-k*x"}, {"y": "x"}), DECAY, [1.9, 0.7])
    assert product.undetermined == ("a", "b")
    assert math.isinf(product.stderr["a"]) and math.isinf(product.stderr["b"])
    assert product.stderr["x"] == pytest.approx(single.stderr["x(0)"], rel=1e-6)
    assert math.isnan(product.covariance["a", "x(0)"])
    assert math.isnan(product.correlation["a", "b"])
    assert product.interval("a") == (-math.inf, math.inf)
    (direction,) = product.uncertainty.directions
    a, b = product.parameters["a"], product.parameters["b"]
    assert direction["x(0)"] == 0
    assert a * direction["b"] + b * direction["a"] == pytest.approx(0, abs=1e-9)


def test_every_undetermined_direction_moves_few():
    fit = refined_fit(Model({"x": "-a*b*x"}, {"y": "c*x"}), DECAY, [1.1, 0.8, 0.7, 1.5], bounds=(0, 10))
    assert fit.undetermined == ("x(0)", "a", "b", "c")
    moved = {frozenset(label for label, part in one.items() if part) for one in fit.uncertainty.directions}
    assert moved == {frozenset(("a", "b")), frozenset(("x(0)", "c"))}
    assert fit.interval("a") == (0, 10)


def test_an_unknown_without_effect():
    # The parameter c acts only where nothing was measured.
    model = Model({"x": "-k*x", "z": "c*x"}, {"y": "x", "y2": "z"})
    fit = refined_fit(model, DECAY, [1.9, 1.0, 0.7, 1.0])
    assert fit.undetermined == ("z(0)", "c")
    assert math.isfinite(fit.stderr["k"])


def test_no_start():
    model = Model({"x": "k*x**2"}, {"y": "x"})
    data = Data([0, 1, 2, 3.0], {"y": [1, 2, 3, 4.0]})
    problem = Problem(model, data)
    end = refine(problem.misfit, np.array([1e3, 1e3]))
    assert end.ending is Ending.NO_START
    fit = Fit.of(problem, end)
    assert not fit.success and not fit.certificate.granted
    assert fit.undetermined == fit.labels and math.isinf(fit.cost)
    assert "no fit" in fit.summary() and "cannot be simulated" in fit.summary()
    assert len(fit.plot().get_axes()) == 2


# --- positivity and bounds ---


def test_intervals_of_positive_quantities_are_log_normal():
    fit = refined_fit(PREDATORS, predators().data, predators().estimates, bounds=(0, 10))
    value, sd = fit.parameters["k1"], fit.stderr["k1"]
    low, high = fit.interval("k1", 0.99)
    assert low * high == pytest.approx(value**2)
    reach = stats.t.ppf(0.995, fit.uncertainty.degrees_of_freedom["k1"]) * sd / value
    assert math.log(high / value) == pytest.approx(reach)
    free = refined_fit(PREDATORS, predators().data, predators().estimates)
    low, high = free.interval("k1", 0.99)
    assert (low + high) / 2 == pytest.approx(free.parameters["k1"])


def test_bounds_cut_intervals_and_are_named():
    values = line(0.1)
    fit = refined_fit(STRAIGHT, Data(TIMES, {"y": values}), [1.0, 0.2], bounds={"b": (0, 0.25)})
    assert fit.at_bound("b") and not fit.at_bound("x")
    low, high = fit.interval("b")
    assert high == 0.25 and 0 < low < 0.25
    assert "at its bound" in fit.summary()


def test_what_the_data_do_not_narrow_is_told():
    """A rate that acts only through a term of the size of rounding."""
    model = Model({"x": "-k*x + 0.000001*c"}, {"y": "x"})
    fit = refined_fit(model, DECAY, [1.9, 0.6, 1.0], bounds=(0, 10))
    assert fit.interval("c") == (0, 10) and math.isfinite(fit.stderr["c"])
    assert fit.summary().count("anywhere in its bounds") == 1


def test_zero_is_a_bound_of_both_signs():
    times = np.linspace(0, 3, 30)
    for sign, bounds in ((1, (0, 10)), (-1, (-10, 0))):
        # The data want a rate of the other sign, so that the search ends at zero.
        data = Data(times, {"y": 1 - sign * 0.2 * times})
        fit = refined_fit(STRAIGHT, data, [1.0, sign * 0.1], bounds={"b": bounds})
        assert fit.bounds["b"] == bounds
        assert fit.at_bound("b") and not fit.at_bound("x")
        # Its slope there keeps it nearer to zero than its standard error tells.
        far = stats.t.ppf(0.975, fit.uncertainty.degrees_of_freedom["b"]) * fit.stderr["b"]
        assert fit.interval("b") == pytest.approx(fit.profile("b").interval(), abs=0.05 * far)
        assert max(map(abs, fit.interval("b"))) < 0.5 * far


def test_pickles():
    """Fits travel between processes."""
    fit = pickle.loads(pickle.dumps(driven()))
    assert fit.to_dict() == driven().to_dict() | {"stages": fit.stages, "seconds": fit.seconds}


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95.0, math.nan])
def test_levels_are_probabilities(level):
    with pytest.raises(ValueError, match=r"between 0 and 1"):
        predators().interval("k1", level)


def test_unknown_names_are_refused():
    with pytest.raises(ModelError, match="did you mean 'k1'"):
        predators().interval("K1")
    with pytest.raises(KeyError, match="k11"):
        predators().stderr["k11"]


# --- names, experiments, simulation ---


def test_one_experiment_by_name():
    fit = predators()
    assert list(fit.parameters) == ["k1", "k2", "k3"]
    assert list(fit.initial_state) == ["r", "w"]
    assert fit.initial_states == {"experiment1": fit.initial_state}
    simulation = simulate(PREDATORS, fit.parameters, fit.initial_state, fit.data.experiments[0].outputs["y1"].times)
    np.testing.assert_array_equal(fit.simulate()["y1"], simulation["y1"])
    measured = fit.data.experiments[0].outputs["y1"].values
    np.testing.assert_array_equal(fit.residuals()["y1"], simulation["y1"] - measured)
    assert fit.solutions[0].parameters == fit.parameters
    assert fit.solutions[0].initial_state == fit.initial_state
    assert fit.solutions[0].inside_bounds


def test_several_experiments():
    fit = driven()
    assert fit.labels == ("x(0) in first", "z(0) in first", "x(0) in second", "k")
    assert list(fit.initial_state) == ["first", "second"]
    assert list(fit.initial_states["second"]) == ["x"]
    first, second = fit.data.experiments
    times = np.linspace(0, 5, 11)
    by_hand = simulate(
        DRIVEN.replace(inputs={**DRIVEN.inputs, "u": "2*cos(t)"}),
        fit.parameters,
        {"x": fit.initial_states["second"]["x"], "z": 1.5},
        times,
        start=0.0,
        inputs={"v": second.inputs["v"]},
    )
    np.testing.assert_allclose(fit.simulate(times, "second")["y2"], by_hand["y2"], rtol=1e-12)
    with pytest.raises(ModelError, match="name one experiment; there are first, second"):
        fit.simulate()
    with pytest.raises(ModelError, match="no experiment 'secnd'; did you mean 'second'"):
        fit.simulate(experiment="secnd")
    pairs = fit.compare()
    assert [(pair.experiment, pair.output) for pair in pairs] == [
        (experiment, output) for experiment in ("first", "second") for output in ("y1", "y2")
    ]
    # Residuals in units of the noise are those that were minimised, but for degrees of freedom where it is estimated.
    assert np.std(pairs[0].standardised) == pytest.approx(1, abs=0.4)
    np.testing.assert_allclose(pairs[1].sds, np.linspace(0.02, 0.04, 9))
    assert fit.noise["first"]["y2"] == pytest.approx(0.03)
    assert first.points + second.points == fit.points == 68


def test_relative_noise_grows_with_the_measurement():
    data = predators().data
    fit = refined_fit(PREDATORS, data, predators().estimates, noise="relative")
    (pair,) = fit.compare()
    np.testing.assert_allclose(pair.sds / pair.values, pair.sds[0] / pair.values[0])


def test_table():
    fit = predators()
    frame = fit.to_dataframe()
    assert list(frame.index) == ["r(0)", "w(0)", "k1", "k2", "k3"]
    assert frame.loc["k2", "value"] == fit.parameters["k2"]
    assert (frame.loc["k2", "low"], frame.loc["k2", "high"]) == fit.interval("k2")
    assert set(frame["verdict"]) == {"global"}
    assert list(fit.covariance.to_dataframe().columns) == list(fit.labels)
    assert "k3" in repr(fit.covariance)


def test_values_are_what_the_problem_takes():
    for fit in (predators(), driven()):
        assert list(fit.values) == list(fit.labels) == list(fit.problem.unknowns)
        assert list(fit.values.values()) == fit.estimates.tolist()
        assert fit.problem.log_likelihood(fit.values) == pytest.approx(-fit.cost, rel=1e-9)
    assert fit.values["k"] == fit.parameters["k"] and fit.values["z"] == fit.initial_states["first"]["z"]
    with pytest.raises(KeyError, match="several unknowns are called 'x'"):
        fit.values["x"]


def test_initial_states_are_called_by_their_time():
    """Data that begin at 1.03 tell the state there."""
    times = np.linspace(1.03, 4, 30)
    data = Data(times, {"y": 2 * np.exp(-0.6 * times) + 0.01 * np.cos(np.arange(30.0))})
    fit = refined_fit(Model({"x": "-k*x"}, {"y": "x"}), data, [1.0, 0.7])
    assert fit.labels == ("x(1.03)", "k")
    assert fit.stderr["x"] == fit.stderr["x(1.03)"] and fit.interval("x") == fit.interval("x(1.03)")
    assert fit.profile("x").label == "x(1.03)" and "x(1.03)" in str(fit)
    assert fit.simulate([1.03]).states["x"][0] == fit.values["x"] == fit.initial_state["x"]
    assert {"x(1.03)", "k"} == set(fit.to_dict()["stderr"]) == set(fit.to_dict()["values"])
    assert "x(1.03)" in fit._repr_html_() and "x(0)" not in fit._repr_html_() + fit.summary()


# --- words ---


def test_looking_at_a_fit_computes_nothing(monkeypatch):
    """Neither the misfit nor any trajectory is needed to print what is known."""
    loose = refined_fit(Model({"x": "-a*b*x"}, {"y": "x"}), DECAY, [1.9, 0.8, 0.9], bounds=(0, 10))
    fit = pickle.loads(pickle.dumps(loose))

    def fail(*_, **__):
        raise AssertionError("something was computed")

    for name in ("Likelihood.of", "practical", "simulate", "Problem.misfit"):
        target, _, attribute = name.rpartition(".")
        module = importlib.import_module("odejet.result.fit")
        monkeypatch.setattr(getattr(module, target) if target else module, attribute, fail, raising=False)
    assert repr(fit) == str(fit) and "certificate: not granted" in repr(fit)
    assert "determined in combination" not in repr(fit) and "<table>" in fit._repr_html_()
    monkeypatch.undo()
    assert "determined in combination: a*b" in fit.summary()
    assert "determined in combination: a*b" in repr(fit)  # now it is known


def test_summary_names_everything():
    fit = predators()
    text = fit.summary(verbose=True)
    assert "census" not in str(fit)
    for word in (
        *fit.labels,
        "global",
        "not certified",
        "census of solved: 30 kept, 12 not real",
        "first rung",
        "blend",
        "t = 3.25",
        "smooth 0.13 s",
    ):
        assert word in text, word
    assert not fit.certified
    granted = replace(fit, certificate=Certificate(True, ("two starts agree",), fit.certificate.outputs, 2))
    assert granted.certified
    assert granted.summary().startswith("predators: certified, 5 unknowns from 80 measurements in 0.2 s")
    assert "certificate: granted: two starts agree" in granted.summary()
    assert fit.certificate.whiteness_p["y1"] == fit.certificate.outputs[0].white_p


def test_verdicts_that_are_not_global_are_told():
    fit = refined_fit(
        Model({"x": "-a*b*x"}, {"y": "x"}),
        DECAY,
        [1.9, 0.8, 0.9],
        verdict=Identifiability({"x(0)": "global", "a": "none", "b": "none"}, ("a*b",)),
    )
    text = fit.summary()
    assert "known in combination: a*b" in text
    assert "not determined: a, b" in text
    assert fit.kind("a") == "none" and fit.kind("x(0)") == "global"


def test_solutions_side_by_side():
    problem = Problem(STRAIGHT, Data(TIMES, {"y": line(0.1)}))
    ends = [refine(problem.misfit, np.array([1.0, slope])) for slope in (0.2, 0.4)]
    frame_free = Fit.of(problem, ends[0], others=ends[1:])
    assert len(frame_free.solutions) == 2
    assert frame_free.solutions[1].cost == ends[1].cost
    assert "2 sets of values" in frame_free.summary()


def test_rivals_stand_beside_the_answer():
    problem = Problem(STRAIGHT, Data(TIMES, {"y": line(0.1)}))
    best, rival = (refine(problem.misfit, np.array([1.0, slope])) for slope in (0.2, 0.4))
    moved = replace(rival, z=rival.z + [0.0, 7.25], cost=rival.cost + 1.6)
    fit = Fit.of(problem, best, rivals=[moved])
    assert fit.rivals[0].parameters["b"] == moved.z[1] and len(fit.solutions) == 1
    for shown in (str(fit), page(fit), str(Fit.from_dict(fit.to_dict()))):
        assert measured(moved.z[1], fit.stderr["b"]) in shown and "rival 1" in shown
    assert "rival" not in str(Fit.of(problem, best))


def test_values_that_no_search_led_to_say_so_first():
    fit = replace(predators(), provenance=NO_SEARCH)
    assert str(fit).startswith("predators: no search led to these values")
    assert "no search led to these values" in fit._repr_html_()


def test_data_of_another_model_are_refused():
    with pytest.raises(DataError, match="no output 'other'"):
        Problem(STRAIGHT, Data(TIMES, {"other": line(0.1)}))


def test_a_first_fit_tells_what_compiling_took():
    slow = replace(predators(), seconds=70.0, stages={"compile": 62.0, "refine": 2.0})
    assert "time: 70 s, of which compiling took 62 s, once" in str(slow)
    assert "<dt>time</dt><dd>70 s</dd></div><div><dt>of which compiling</dt><dd>62 s</dd>" in page(slow)
    quick = replace(slow, stages={"compile": 3.0, "refine": 2.0})
    assert "compiling" not in str(quick) and "compiling" not in page(quick)


def test_by_what_it_was_answered_is_for_those_who_ask():
    assert "answered by" not in str(predators()) and "answered by" in predators().summary(verbose=True)
