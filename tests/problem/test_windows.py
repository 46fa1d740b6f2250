"""Outputs over windows of time against closed forms and a likelihood written by hand."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import poisson

import odejet as oj
from odejet.errors import DataError, ModelError
from odejet.model.cumulated import cumulated, of_rates

EPIDEMIC = oj.Model(
    {"S": "-b*S*I/N", "E": "b*S*I/N - k*E", "I": "k*E - g*I", "C": "k*E"},
    {"cases": "rho*increment(C)"},
    initial={"S": "N - I0", "E": 0, "I": "I0"},
    fixed={"N": 100000, "k": 0.2},
    noise={"cases": "poisson"},
)
TRUTH = {"b": 0.35, "g": 0.15, "rho": 0.3, "I0": 12.0}
WEEKS = np.arange(7.0, 210.0, 7.0)

DECAY = oj.Model(
    {"A": "-k*A"},
    {"urine": "integral(k*f*A)", "level": "mean(A)", "loss": "-increment(A)", "x": "A"},
    initial={"A": "D"},
)
VALUES = {"k": 0.2, "f": 0.4, "D": 100.0}


def _counts():
    return np.random.default_rng(1).poisson(oj.simulate(EPIDEMIC, TRUTH, times=WEEKS, start=0)["cases"])


def _expected(values):
    """The expected counts of every week, by another integrator."""

    def rates(_, x):
        s, e, i, _ = x
        new = values["b"] * s * i / 1e5
        return [-new, new - 0.2 * e, 0.2 * e - values["g"] * i, 0.2 * e]

    start = [1e5 - values["I0"], 0, values["I0"], 0]
    found = solve_ivp(rates, (0, WEEKS[-1]), start, "DOP853", np.r_[0, WEEKS], rtol=2.3e-14, atol=1e-13)
    return values["rho"] * np.diff(found.y[3])


def test_weekly_counts_have_the_likelihood_that_one_writes_by_hand():
    counts = _counts()
    problem = oj.Problem(EPIDEMIC, oj.Data(WEEKS, {"cases": counts}, start=0))
    for values in (TRUTH, {**TRUTH, "b": 0.4, "rho": 0.2}):
        by_hand = poisson.logpmf(counts, _expected(values)).sum()
        assert problem.log_likelihood(values) == pytest.approx(by_hand, rel=1e-10)


def test_their_gradient_is_that_of_the_likelihood():
    objective = oj.Problem(EPIDEMIC, oj.Data(WEEKS, {"cases": _counts()}, start=0)).objective
    z = np.array([{**TRUTH}[name] for name in objective.names])
    _, gradient = objective.value_and_gradient(z)
    for i, slope in enumerate(gradient):
        step = np.zeros(len(z))
        step[i] = 1e-5 * z[i]
        assert slope == pytest.approx((objective.value(z + step) - objective.value(z - step)) / (2 * step[i]), rel=1e-5)


def test_what_can_be_known_is_what_the_rates_tell():
    verdict = oj.identify(EPIDEMIC)
    assert {name: verdict[name].kind for name in EPIDEMIC.unknowns} == dict.fromkeys(EPIDEMIC.unknowns, "global")
    # A count of an unknown part of an unknown population tells neither.
    hidden = EPIDEMIC.replace(fixed={"k": 0.2})
    assert oj.identify(hidden)["rho"].kind == "none"


def test_where_a_counter_begins_makes_no_difference_and_is_not_asked():
    assert "C" not in EPIDEMIC.unknowns
    seen = EPIDEMIC.replace(outputs={"cases": "increment(C)", "all": "C"}, initial={"S": "N - I0", "E": 0, "I": "I0"})
    assert "C" in seen.replace(noise=None).unknowns
    reset = oj.Model({"C": "r"}, {"y": "increment(C)"}, events=[oj.Event(at=3, set={"C": 0})])
    assert "C" in reset.unknowns


def _decayed(times):
    begin = np.r_[0, times[:-1]]
    left = np.exp(-0.2 * begin) - np.exp(-0.2 * times)
    return {"urine": 40 * left, "level": 500 * left / (times - begin), "loss": 100 * left}


def test_integrals_means_and_increments_of_a_decay():
    times = np.array([1, 2, 4, 8, 12, 24.0])
    for name, exact in _decayed(times).items():
        found = oj.simulate(DECAY, VALUES, times=times, start=0)
        assert found[name] == pytest.approx(exact, rel=1e-13)
        assert list(found.states) == ["A"]


def test_windows_end_at_the_times_of_their_own_output():
    times, others = np.array([1, 2, 4, 8, 12, 24.0]), np.linspace(0, 24, 9)
    exact = _decayed(times)
    data = oj.Data(None, {"urine": (times, exact["urine"]), "x": (others, 100 * np.exp(-0.2 * others))}, start=0)
    found = oj.Problem(DECAY, data).simulate(VALUES)["experiment1"]
    assert found["urine"][np.searchsorted(found.times, times)] == pytest.approx(exact["urine"], rel=1e-12)
    # A time in between lies in the window that ends next, and beyond the last window one begins.
    between = oj.Problem(DECAY, data).simulate(VALUES, [0.0, 3.0, 3.9, 30.0, 36.0])["experiment1"]["urine"]
    assert between[:3] == pytest.approx(exact["urine"][[0, 2, 2]], rel=1e-12)
    assert between[3:] == pytest.approx(40 * (np.exp([-4.8, -6.0]) - np.exp([-6.0, -7.2])), rel=1e-9)


def test_replicates_are_over_one_window():
    times = np.array([1, 1, 2, 2.0])
    data = oj.Data(times, {"urine": [1.0, 1.1, 0.9, 0.8]}, start=0)
    found = oj.Problem(DECAY.replace(outputs={"urine": "integral(k*f*A)"}), data).simulate(VALUES)["experiment1"]
    assert found["urine"] == pytest.approx(_decayed(np.array([1.0, 2.0]))["urine"], rel=1e-12)


def test_a_measurement_is_before_an_event_at_its_time():
    model = oj.Model({"C": "r"}, {"y": "increment(C)"}, initial={"C": 0}, events=[oj.Event(at=2, set={"C": "C + 5"})])
    assert oj.simulate(model, {"r": 1}, times=[1, 2, 3], start=0)["y"] == pytest.approx([1, 1, 6], rel=1e-14)


def test_a_fit_recovers_what_counts_tell_and_predicts_the_weeks_to_come():
    fit = oj.fit(EPIDEMIC, oj.Data(WEEKS, {"cases": _counts()}, start=0))
    assert fit.certified
    for name, value in TRUTH.items():
        low, high = fit.interval(name)
        assert low < value < high
    ahead = WEEKS[-1] + 7 * np.arange(1, 4)
    band = fit.predict(np.r_[WEEKS, ahead])["cases"]
    assert band.values == pytest.approx(fit.simulate(np.r_[WEEKS, ahead])["cases"], rel=1e-10)
    again = oj.Model.from_toml_text(fit.model.to_toml())
    assert again == fit.model


def test_other_models_are_what_they_were():
    plain = oj.Model({"x": "-k*x"}, {"y": "x"})
    assert of_rates(plain) is plain and cumulated(plain).model is plain


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("increment(3)", "increment of a number"),
        ("increment(N)", "never changes"),
        ("I*increment(C)", "is multiplied by 'I', which changes"),
        ("increment(C) + b", "put it inside"),
        ("log(mean(I))", "no multiple of a window"),
        ("mean(I) + I", "put it inside"),
        ("increment(mean(C))", "within another"),
        ("mean(I) + increment(C)", "make them two outputs"),
        ("increment(abs(C))", "switches"),
        ("increment(C, 7)", "exactly one argument"),
        ("increment(u)", "holds the input 'u'"),
    ],
)
def test_what_is_no_window_is_refused_with_a_sentence(output, words):
    states = {"S": "-b*S*I/N", "I": "b*S*I/N - g*I + u", "C": "b*S*I/N"}
    with pytest.raises(ModelError, match=words.replace("(", r"\(")):
        oj.Model(states, {"cases": output}, inputs={"u": "sin(t)"})


def test_windows_stand_in_outputs_only():
    with pytest.raises(ModelError, match=r"\[states\] x: increment, mean and integral .* stand in outputs only"):
        oj.Model({"x": "-k*mean(x)"}, {"y": "x"})
    with pytest.raises(ModelError, match="an event: increment"):
        oj.Model({"x": "-k*x"}, {"y": "x"}, events=[oj.Event(at=1, set={"x": "increment(x)"})])


def test_a_window_without_length_is_refused():
    with pytest.raises(DataError, match="is measured at the start, t = 1; give an earlier start"):
        oj.Problem(DECAY, oj.Data([1, 2.0], {"urine": [1, 1]}))


def test_a_start_at_rest_is_refused():
    model = oj.Model({"x": "k*(1 - x)"}, {"y": "mean(x)"}, initial="steady", events=[oj.Event(at=1, set={"x": 2})])
    with pytest.raises(DataError, match="begin at zero"):
        oj.Problem(model, oj.Data([1, 2.0], {"y": [1, 1]}, start=0))


def test_formats_without_a_word_for_it_refuse(tmp_path):
    problem = oj.Problem(DECAY, oj.Data([1, 2, 3, 4.0], {"urine": [1, 1, 1, 1]}, start=0))
    with pytest.raises(ModelError, match="PEtab has no word for"):
        problem.to_petab(tmp_path)
    with pytest.raises(ModelError, match="SBML has no word for"):
        DECAY.to_sbml()


def test_a_count_that_a_reset_makes_impossible_is_told_so():
    model = oj.Model(
        {"I": "r*I", "C": "r*I"},
        {"cases": "C"},
        initial={"C": 0},
        noise={"cases": "poisson"},
        events=[oj.Event(at=0, every=7, set={"C": 0})],
    )
    # Without a start the experiment begins with the first count, where nothing has happened yet.
    fit = oj.fit(model, oj.Data([7, 14, 21, 28.0], {"cases": [3, 9, 30, 92]}), time_limit=20)
    assert "trajectories reach the last observation" in fit.message
    assert "at t = 7" in fit.message
