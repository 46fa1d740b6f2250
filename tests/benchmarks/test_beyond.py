"""Models beyond the benchmark: all can be simulated as SciPy does it and fitted from the truth; results are counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp

import odejet as oj
from benchmarks import beyond
from benchmarks.comparison import AS_GOOD
from odejet.model.symbolic import to_sympy
from odejet.problem import Problem
from odejet.search.refine import Ending, refine


def test_there_are_models_of_many_fields():
    assert len(beyond.cases()) >= 40


def by_scipy(case: beyond.Case) -> dict[str, np.ndarray]:
    """The outputs at the case's own values, from SymPy's translation of the model and an integrator of SciPy."""
    model = case.model
    inputs = {name: to_sympy(text) for name, text in model.inputs.items()}
    values = {**{name: float(to_sympy(text)) for name, text in model.initial.items()}, **case.initial}
    arguments = [sympy.Symbol("t"), *map(sympy.Symbol, model.states)]
    given = [(sympy.Symbol(name), text) for name, text in inputs.items()]
    given += [(sympy.Symbol(name), value) for name, value in case.parameters.items()]
    rates, outputs = (
        sympy.lambdify(arguments, [to_sympy(text).subs(given) for text in table.values()], "numpy")
        for table in (model.states, model.outputs)
    )
    begin = [values[name] for name in model.states]
    scale = np.maximum(np.abs(begin), 1e-6)
    course = solve_ivp(
        lambda t, x: rates(t, *x), case.times[[0, -1]], begin, "Radau", case.times, rtol=1e-8, atol=1e-9 * scale
    )
    assert course.success
    return dict(zip(model.outputs, np.broadcast_arrays(*outputs(course.t, *course.y), course.t), strict=False))


@pytest.mark.parametrize("name", beyond.cases())
def test_a_model_is_simulated_as_scipy_does_it(name):
    case = beyond.cases()[name]
    found = oj.simulate(case.model, case.parameters, case.initial, case.times)
    assert found.success
    for output, values in by_scipy(case).items():
        np.testing.assert_allclose(found[output], values, rtol=1e-4, atol=1e-5 * np.abs(values).max())


@pytest.mark.parametrize("name", beyond.cases())
def test_draws_give_data_that_lead_from_the_truth_to_an_optimum(name):
    case = beyond.cases()[name]
    truth, data = case.drawn(np.random.default_rng(0), 0.02)
    assert list(truth) == list(case.model.unknowns)
    assert set(case.unidentifiable) <= set(truth)
    assert all(low < truth[unknown] < high for unknown, (low, high) in case.bounds.items())
    for series in data.experiments[0].outputs.values():
        assert len(series.values) == len(case.times) and np.all(np.isfinite(series.values))
    misfit = Problem(case.model, data).misfit
    found = refine(misfit, np.array([truth[unknown.name] for unknown in misfit.unknowns]), case.bounds)
    assert found.ending is Ending.CONVERGED


@pytest.mark.parametrize("bounds", [[], ["--bounds"]])
def test_a_fit_is_measured_beside_the_one_from_the_truth(tmp_path, bounds):
    output = tmp_path / "some.jsonl"
    asked = ["--models", "logistic", "--draws", "1", "--noise", "0.02", "--output", str(output), *bounds]
    assert beyond.main(asked) == 0
    assert "| logistic | 1 | 1 |" in output.with_suffix(".md").read_text()
    before = output.read_text()
    assert beyond.main(asked) == 0 and output.read_text() == before


def test_bounds_are_around_the_decade_and_keep_a_sign_only_where_it_is_known():
    case = beyond.Case(beyond.cases()["logistic"].model, {"r": 0.6, "K": -40.0}, {"x": 2.0}, np.arange(3.0))
    assert case.bounds == {
        "x": pytest.approx((1e-3, 1e3)),
        "r": pytest.approx((1e-3, 1e3)),
        "K": pytest.approx((-1e5, 1e5)),
    }


def test_fits_are_counted():
    kinds = [(0.0, True), (-3.0, True), (2.0, True), (math.inf, False)]
    lines = [
        {"model": "m", "noise": 0.01, "behind": behind, "certified": certified, "seconds": 1.0}
        for behind, certified in kinds
    ]
    assert "| m | 4 | 2 | 1 | 3 | 1 | 1.00 | 1.00 |" in beyond.table(lines)


@pytest.mark.slow
def test_where_the_misfit_may_be_no_parabola_two_starts_are_not_enough():
    """Cholera has a second optimum that is worse by 2.2 and as sharp, and both starts from smoothed data end there."""
    line = beyond.measured("cholera", beyond.cases()["cholera"], 0.02, 0, 2302, bounded=True)
    assert line["behind"] <= AS_GOOD
    assert line["certified"]
