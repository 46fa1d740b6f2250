"""Problems: experiments with a start, values and local parameters of their own, in one layout."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odejet as oj
from odejet import Data, DataError, Model, ModelError, Problem
from odejet.objective.jacobian import BlockJacobian
from odejet.problem import joint

DECAY = Model({"x": "-k*x"}, {"y": "x"}, name="decay")
TIMES = np.linspace(1.0, 4.0, 13)


def decay(k: float, first: float, start: float = 0.0, times: np.ndarray = TIMES) -> np.ndarray:
    return first * np.exp(-k * (times - start))


def test_the_initial_state_holds_at_the_start():
    """x(0) = 2 and k = 0.5 explain data that begin at t = 1 exactly, if the start is told."""
    data = Data(TIMES, {"y": decay(0.5, 2.0)}, start=0.0)
    problem = Problem(DECAY, data)
    assert problem.unknowns == ("x(0)", "k")
    found = problem.simulate({"x(0)": 2.0, "k": 0.5})["experiment1"]
    np.testing.assert_allclose(found["y"], decay(0.5, 2.0), rtol=1e-13)
    known = Problem(DECAY, Data(TIMES, {"y": decay(0.5, 2.0)}, initial={"x": 2.0}, start=0.0))
    assert known.unknowns == ("k",)
    assert oj.fit(known).values["k"] == pytest.approx(0.5, rel=1e-9)


def test_a_start_is_by_default_the_first_time_that_data_name():
    assert Problem(DECAY, Data(TIMES, {"y": decay(0.5, 2.0)})).unknowns == ("x(1)", "k")
    unmeasured = np.r_[np.nan, decay(0.5, 2.0)]
    assert Problem(DECAY, Data(np.r_[0.25, TIMES], {"y": unmeasured})).unknowns == ("x(0.25)", "k")


def test_what_is_printed_is_what_is_simulated():
    """Data from t = 1.03: the value of x(1.03) is that of the trajectory there, and before it too."""
    times = 1.03 + np.linspace(0, 3, 20)
    fit = oj.fit(DECAY, Data(times, {"y": decay(0.5, 2.0, times=times)}))
    assert "x(1.03)" in str(fit)
    assert fit.simulate([1.03]).states["x"][0] == pytest.approx(fit.values["x(1.03)"], rel=1e-12)
    assert fit.simulate([0.0]).states["x"][0] == pytest.approx(2.0, rel=1e-9)


def test_a_measurement_before_the_start_is_refused():
    with pytest.raises(DataError, match="measurement at t = 1, but the initial state holds at start = 2"):
        Data(TIMES, {"y": decay(0.5, 2.0)}, start=2.0)


# --- values of an experiment ---

TWO = Model({"x": "-k*T*x"}, {"y": "x"}, fixed={"T": 1}, name="temperatures")


def two(hot: dict, cold: dict | None = None) -> Data:
    return Data.join(
        [
            Data(TIMES, {"y": decay(0.5, 2.0, 1.0)}, name="cold", values=cold),
            Data(TIMES, {"y": decay(1.5, 3.0, 1.0)}, name="hot", values=hot),
        ]
    )


def test_numbers_and_expressions():
    numbers = Problem(TWO, two({"T": 3.0}))
    assert numbers.unknowns == ("x(1) in cold", "x(1) in hot", "k")
    values = {"x(1) in cold": 2.0, "x(1) in hot": 3.0, "k": 0.5}
    assert numbers.misfit.evaluate(numbers.layout.vector(values)).residuals == pytest.approx(np.zeros(26), abs=1e-13)
    own = Problem(TWO, two({"k": "k_hot"}))
    assert own.unknowns == ("x(1) in cold", "x(1) in hot", "k", "k_hot")
    fit = oj.fit(own, positive=None)
    assert fit.values["k_hot"] == pytest.approx(1.5, rel=1e-9) and fit.values["k"] == pytest.approx(0.5, rel=1e-9)


def test_derivatives_by_values_in_expressions():
    """The Jacobian of a problem whose experiments write parameters and initial states as expressions."""
    data = Data.join(
        [
            Data(TIMES, {"y": decay(0.5, 2.0, 1.0)}, name="cold", initial={"x": "2*a"}),
            Data(TIMES, {"y": decay(1.5, 3.0, 1.0)}, name="hot", values={"k": "k*exp(b)"}, initial={"x": "a**2 + b"}),
        ]
    )
    misfit = Problem(TWO, data).misfit
    assert misfit.labels == ("k", "a", "b")
    z = np.array([0.6, 1.2, 0.4])
    exact, h = misfit.evaluate(z).dense, 1e-6
    for i in range(3):
        up, down = (misfit.evaluate(z + sign * h * np.eye(3)[i], jacobian=False).residuals for sign in (1, -1))
        np.testing.assert_allclose(exact[:, i], (up - down) / (2 * h), rtol=1e-6, atol=1e-8)


def test_a_column_named_like_a_parameter_is_its_value(tmp_path):
    lines = ["experimentId,time,y,T", "cold,1,2.0,1", "cold,2,1.2,1", "hot,1,3.0,3", "hot,2,0.7,3", "hot,3,0.1,"]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines))
    problem = Problem(TWO, Data.from_csv(path))
    cold, hot = (str(experiment.values["T"]) for experiment in problem.experiments)
    assert (cold, hot) == ("1", "3")
    path.write_text("\n".join([*lines, "hot,4,0.05,4"]))
    with pytest.raises(DataError, match="column 'T' is named like a parameter but varies from 3 to 4"):
        Problem(TWO, Data.from_csv(path))


def test_values_come_back_from_a_table(tmp_path):
    data = Data.join([Data(TIMES, {"y": decay(0.5, 2.0)}, values={"T": 2.5}, start=0.5, name="a")])
    data.to_csv(tmp_path / "data.csv")
    (again,) = Problem(TWO, Data.from_csv(tmp_path / "data.csv")).experiments
    assert again.start == 0.5 and str(again.values["T"]) == "2.5"
    np.testing.assert_array_equal(again.outputs["y"].values, data.experiments[0].outputs["y"].values)


def test_a_model_file_knows_experiments():
    text = """
    local = ["k"]
    [states]
    x = "-k*T*x"
    [outputs]
    y = "x"
    [fixed]
    T = 1
    [experiments.hot]
    T = 3
    x = "x0"
    """
    model = Model.from_toml_text(text)
    assert Model.from_toml_text(model.to_toml()) == model
    problem = Problem(model, two({}))
    assert problem.unknowns == ("x(1) in cold", "k in cold", "k in hot", "x0")
    with pytest.raises(DataError, match="the model knows of an experiment 'hot'"):
        Problem(model, Data(TIMES, {"y": decay(0.5, 2.0)}, name="warm"))


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"fixed": {"q": 1}}, ModelError, "fixed: the model has no parameter 'q'"),
        ({"fixed": {"k": "1 +"}}, ModelError, "fixed 'k'"),
        ({"local": ["q"]}, ModelError, "local: the model has no parameter 'q'"),
        ({"local": "k"}, ModelError, "local must be a list of names"),
        ({"noise": {"z": 1}}, ModelError, "noise: the model has no output 'z'"),
        ({"noise": {("y1", "y2"): 1}}, ModelError, "noise: errors that y1 and y2 share are not known; give each"),
        ({"bounds": {"q": (0, 1)}}, ModelError, "bounds name 'q'"),
    ],
)
def test_nonsense_gets_a_sentence(options, error, sentence):
    with pytest.raises(error, match=sentence):
        Problem(TWO, two({}), **options)


def test_experiments_that_know_what_is_not_there():
    with pytest.raises(DataError, match="hot: the model has no parameter 'TT'; did you mean 'T'"):
        Problem(TWO, two({"TT": 3.0}))
    bounded = TWO.replace(bounds={"x": (0, 1)})
    with pytest.raises(DataError, match=r"the known initial value 2 of 'x' lies outside its bounds \[0, 1\]"):
        Problem(bounded, Data(TIMES, {"y": decay(0.5, 2.0)}, initial={"x": 2.0}))
    with pytest.raises(DataError, match=r"expected data as oj\.Data has them, not list"):
        Problem(TWO, [1, 2, 3])


# --- fixed and local ---


def test_fixed_numbers_and_equal_parameters():
    model = Model({"x": "-a*x + b*w", "w": "a*x - b*w"}, {"y": "x"})
    data = Data(TIMES, {"y": decay(0.5, 2.0)})
    assert Problem(model, data, fixed={"w": 0, "b": "a"}).unknowns == ("x(1)", "a")
    assert Problem(model, data, fixed={"b": 0.2}).unknowns == ("x(1)", "w(1)", "a")


def test_local_parameters_are_those_of_separate_fits():
    """Nothing is shared, so that the joint optimum is that of each experiment by itself."""
    rng = np.random.default_rng(3)
    parts = [
        Data(TIMES, {"y": decay(k, 2.0, 1.0) + 0.01 * rng.normal(size=13)}, name=name)
        for name, k in (("a", 0.4), ("b", 0.9), ("c", 1.6))
    ]
    together = oj.fit(DECAY, Data.join(parts), noise=0.01, local=["k"])
    assert set(together.values) == {f"{q} in {e}" for q in ("x(1)", "k") for e in "abc"}
    for part in parts:
        name, alone = part.experiments[0].name, oj.fit(DECAY, part, noise=0.01)
        assert together.values[f"k in {name}"] == pytest.approx(alone.values["k"], rel=1e-5)
        assert together.stderr[f"k in {name}"] == pytest.approx(alone.stderr["k"], rel=1e-4)


def test_log_likelihood_is_that_of_the_normal_distribution():
    y = decay(0.5, 2.0, 1.0) + 0.1 * np.sin(40 * TIMES)
    problem = Problem(DECAY, Data(TIMES, {"y": y}), noise=0.1)
    values = {"x(1)": 2.0, "k": 0.5}
    residuals = (y - decay(0.5, 2.0, 1.0)) / 0.1
    expected = -0.5 * residuals @ residuals - 13 * math.log(0.1 * math.sqrt(2 * math.pi))
    assert problem.log_likelihood(values) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ModelError, match=r"no value is given for x\(1\)"):
        problem.log_likelihood({"k": 0.5})
    with pytest.raises(ModelError, match="no unknown is called 'q'"):
        problem.log_likelihood({**values, "q": 1.0})


def test_a_fit_agrees_with_its_problem():
    problem = Problem(DECAY, Data(TIMES, {"y": decay(0.5, 2.0, 1.0) + 0.01 * np.sin(40 * TIMES)}))
    fit = oj.fit(problem)
    assert problem.log_likelihood(fit.values) == pytest.approx(-fit.cost, rel=1e-9)
    with pytest.raises(ModelError, match="a problem has its noise already"):
        oj.fit(problem, noise=0.1)


# --- many experiments ---


@given(seed=st.integers(0, 1000), count=st.integers(24, 30))
@settings(max_examples=10, deadline=None)
def test_blocks_are_the_dense_jacobian(seed, count):
    """Kept in blocks or not, a Jacobian is the same matrix."""
    rng = np.random.default_rng(seed)
    parts = [Data(TIMES[:5], {"y": rng.normal(size=5)}, name=f"e{i}") for i in range(count)]
    model = Model({"x": "-k*x + c"}, {"y": "x + s"})
    misfit = Problem(model, Data.join(parts), local=["k"]).misfit
    z = np.exp(0.2 * rng.normal(size=len(misfit.unknowns)))
    found = misfit.evaluate(z)
    assert isinstance(found.jacobian, BlockJacobian)
    whole = found.jacobian.dense()
    for number in (0, count - 1):
        alone = Problem(model, parts[number]).misfit
        places = misfit.simulator.unknowns.places[number]
        own = [places[unknown.name] for unknown in alone.unknowns]
        rows = slice(5 * number, 5 * number + 5)
        np.testing.assert_array_equal(whole[rows][:, own], alone.evaluate(z[own]).dense)
        assert not np.delete(whole[rows], own, axis=1).any()


def test_threads_give_the_same_numbers():
    """Also where one experiment fails: what was done up to it is told, and nothing more."""
    rng = np.random.default_rng(5)
    parts = [Data(TIMES, {"y": rng.normal(size=13)}, name=f"e{i}") for i in range(9)]
    misfit = Problem(Model({"x": "k*x**2"}, {"y": "x"}), Data.join(parts), local=["k"]).misfit
    for blow_up in (False, True):
        z = np.full(18, 0.2)
        z[9] = 5.0 if blow_up else 0.2
        alone, together = (replace(misfit, jobs=jobs).evaluate(z) for jobs in (1, 4))
        assert (alone.outcome, alone.work, alone.reached) == (together.outcome, together.work, together.reached)
        assert alone.complete is together.complete is not blow_up
        if not blow_up:
            np.testing.assert_array_equal(alone.residuals, together.residuals)
            np.testing.assert_array_equal(alone.dense, together.dense)


# --- all experiments as one model ---


def test_what_two_experiments_tell_together():
    """x' = -a*b*x tells only a*b; with b = 1 in one experiment and b free in the other, both are known."""
    model = Model({"x": "-a*b*x"}, {"y": "x"})
    one = Problem(model, Data(TIMES, {"y": decay(0.5, 2.0)}, name="one"))
    assert {name: one_.kind for name, one_ in oj.identify(one).items() if name in "ab"} == {"a": "none", "b": "none"}
    both = Data.join(
        [
            Data(TIMES, {"y": decay(0.5, 2.0)}, name="one", values={"b": 1.0}),
            Data(TIMES, {"y": decay(0.5, 2.0)}, name="two"),
        ]
    )
    verdict = oj.identify(Problem(model, both))
    assert verdict["a"].kind == "global" and verdict["b"].kind == "global"


def test_every_unknown_has_a_name_in_the_joint_model():
    parts = [Data(TIMES, {"y": decay(0.5, 2.0)}, name=f"subject {i}") for i in range(9)]
    problem = Problem(DECAY, Data.join(parts), local=["k"])
    together = joint(problem)
    assert set(together.names) == set(problem.unknowns)
    assert set(together.names.values()) == set(together.model.unknowns)


def test_the_verdict_is_about_the_problem_as_posed():
    """A dose that is known tells the volume, which the model alone could not."""
    model = Model({"c": "-k*c"}, {"y": "c/V"})
    data = Data(TIMES, {"y": decay(0.5, 2.0, 1.0)}, initial={"c": 10.0})
    fit = oj.fit(model, data)
    assert fit.kind("V") == "global" and fit.values["V"] == pytest.approx(5.0, rel=1e-9)


MICRO, MU = "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}"


@pytest.mark.parametrize("name", [MICRO, MU])
def test_names_are_spelled_in_one_way_wherever_they_are_given(name):
    """Python takes the micro sign and the Greek mu for one letter, and so does everything that takes a name."""
    model = Model({"x": f"-{MICRO}*x", f"z{MU}": f"-z{MICRO}"}, {"y": f"x + q + z{MU}"})
    times = np.linspace(0, 3, 8)
    data = Data(times, {"y": np.exp(-times)}, name=f"at 3 {MICRO}M")
    known = {"fixed": {f"z{name}": 0.5}, "priors": {name: "normal(1, 0.2)"}}
    problem = Problem(model, data, bounds={name: (0.1, 5)}, positive=[name], **known)
    assert problem.bounds[MU] == (0.1, 5)
    assert math.isfinite(problem.log_likelihood({"x": 1.0, name: 1.0, "q": 0.0}))
    found = oj.simulate(model, {name: 1.0, "q": 0.0}, {"x": 1.0, f"z{name}": 0.0}, times, sensitivities=True)
    assert np.allclose(found.sensitivity("y", name), -times * np.exp(-times))
    two = Data.join([data, Data(times, {"y": np.exp(-times)}, name="b")])
    local = Problem(model, two, local=[name], bounds={f"{name} in at 3 {MICRO}M": (0.1, 5)})
    assert local.bounds[f"{MU} in at 3 {MICRO}M"] == (0.1, 5)
    assert oj.identify(model)[name].kind == "global"
    with pytest.raises(ModelError, match=r"bounds: the name .* is given twice"):
        Problem(model, data, bounds={MICRO: (0, 1), MU: (0, 2)})


def test_a_list_of_data_is_joined():
    one, other = Data([0, 1], {"y": [1.0, 0.5]}, name="a"), Data([0, 2], {"y": [2.0, 0.3]}, name="b")
    model = Model({"x": "-k*x"}, {"y": "x"})
    assert [each.name for each in Problem(model, [one, other]).experiments] == ["a", "b"]
    with pytest.raises(DataError, match="two experiments are called 'a'"):
        Problem(model, (one, one))
