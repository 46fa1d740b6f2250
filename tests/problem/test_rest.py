"""Experiments that start at rest, and measurements of what a model comes to in the end."""

import numpy as np
import pytest

import odejet as oj
from odejet.problem import Problem

MODEL = oj.Model({"x": "k*s - d*x", "z": "d*x - e*z"}, {"y": "z"})
TIMES = np.array([0.0, 0.5, 1.0, 2.0, 4.0, np.inf])


def exact(k, d, e, s, before, t):
    """z after a step of s at rest, in closed form."""
    x, z = k * s / d, k * s / e
    x0, z0 = k * before / d - x, k * before / e - z
    fast = z0 - x0 * d / (e - d)
    with np.errstate(invalid="ignore"):  # complex steps at t = inf
        return z + x0 * d / (e - d) * np.exp(-d * t) + fast * np.exp(-e * t)


def measured(**known):
    values = exact(0.8, 0.5, 1.3, 2.0, 1.0, TIMES)
    return oj.Data(TIMES, {"y": values}, initial="steady", before={"s": 1}, values={"s": 2}, **known)


def test_a_problem_starts_at_rest_with_exact_derivatives():
    problem = Problem(MODEL, measured())
    assert problem.unknowns == ("k", "d", "e")
    z = np.array([0.8, 0.5, 1.3])
    found = problem.misfit.evaluate(z)
    np.testing.assert_allclose(found.residuals, 0.0, atol=1e-14)
    steps = 1e-30j * np.eye(3)
    columns = [exact(*(z + step), 2.0, 1.0, TIMES).imag / 1e-30 for step in steps]
    columns = np.where(np.isfinite(columns), columns, [[2 / 1.3], [0.0], [-2 * 0.8 / 1.3**2]])
    np.testing.assert_allclose(found.dense, np.transpose(columns), rtol=1e-12, atol=1e-14)


def test_a_model_file_and_its_experiments_say_the_same():
    problem = Problem(MODEL, measured())
    told = MODEL.replace(experiments={"experiment1": {"s": 2, "initial": "steady", "before": {"s": 1}}})
    assert oj.Model.from_toml_text(told.to_toml()) == told
    plain = oj.Data(TIMES, {"y": measured().experiments[0].outputs["y"].values})
    whole = MODEL.replace(initial="steady", before={"s": 1})
    assert oj.Model.from_toml_text(whole.to_toml()) == whole and 'initial = "steady"' in whole.to_toml()
    values = {"k": 0.7, "d": 0.4, "e": 1.2}
    expected = problem.log_likelihood(values)
    assert Problem(told, plain).log_likelihood(values) == expected
    assert Problem(whole, plain, fixed={"s": 2}).log_likelihood(values) == expected


def test_where_rest_is_approached_from_may_be_what_the_model_knows():
    model = oj.Model({"A": "-k*A + B", "B": "k*A - B"}, {"y": "B"}, initial={"A": "T", "B": 0})
    problem = Problem(model, oj.Data([0.0, 1.0, 2.0], {"y": [1.0, 1.0, 1.0]}, initial="steady"))
    assert problem.unknowns == ("k", "T")
    np.testing.assert_allclose(problem.simulate({"k": 2.0, "T": 1.5})["experiment1"]["y"], 1.0, rtol=1e-14)


def test_a_fit_finds_the_parameters_and_comes_back_from_its_file(tmp_path):
    problem = Problem(MODEL, measured(noise=1e-3))
    fit = oj.fit(problem)
    true, swapped = {"k": 0.8, "d": 0.5, "e": 1.3}, {"k": 0.4 / 1.3, "d": 1.3, "e": 0.5}
    found = sorted((solution.parameters for solution in fit.solutions), key=lambda one: one["d"])
    assert found == [pytest.approx(true, rel=1e-5), pytest.approx(swapped, rel=1e-5)]  # the same k*d and curves
    fit.save(tmp_path / "fit.json")
    again = oj.Fit.load(tmp_path / "fit.json")
    assert again.problem.unknowns == problem.unknowns
    assert again.problem.log_likelihood(fit.values) == problem.log_likelihood(fit.values)
    fit.report(tmp_path / "fit.html")
    assert "steady" in repr(again.problem.conditions[0].model)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"before": {"s": 1}}, "before tells how a steady state came about"),
        ({"initial": "calm"}, "initial must be a table of names and values"),
        ({"initial": "steady", "before": {"q": 1}}, "the model has no parameter, input or state 'q'"),
        ({"initial": "steady", "before": {"s": "t"}}, "before 's'"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(arguments, sentence):
    with pytest.raises(oj.DataError, match=sentence):
        Problem(MODEL, oj.Data([0.0, 1.0, 2.0, 3.0], {"y": [1.0, 2.0, 3.0, 4.0]}, **arguments))


def test_measurements_in_the_end_alone_want_a_start():
    with pytest.raises(oj.DataError, match="give the start"):
        oj.Data([np.inf], {"y": [1.0]})
    assert oj.Data([np.inf], {"y": [1.0]}, start=0.0).experiments[0].end == 0.0
