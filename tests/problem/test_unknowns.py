"""The one layout of everything that is to be found: order, labels, places, and values by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

import odejet as oj
from odejet.problem.unknowns import find

TIMES = np.linspace(0, 1, 5)
MODEL = oj.Model({"x": "-k*x + b", "z": "k*x - d*z"}, {"y": "x"})


def layout(names=("only",), local=(), noise=None, **known):
    parts = [oj.Data(TIMES, {"y": np.ones(5)}, name=name, **known).experiments[0] for name in names]
    return oj.Problem(MODEL, oj.Data.of(parts), local=local, noise=noise).layout


def test_one_experiment_has_states_then_parameters_then_what_only_the_noise_has():
    found = layout(noise={"y": "normal(s)"})
    assert found.labels == ("x(0)", "z(0)", "k", "b", "d", "s")
    assert [unknown.is_state for unknown in found] == [True, True, False, False, False, False]
    assert found[5].limits == (0.0, math.inf)


def test_several_experiments_have_their_own_first_and_shared_ones_last():
    found = layout(("a", "b"), local=["k"])
    assert found.labels == ("x(0) in a", "z(0) in a", "k in a", "x(0) in b", "z(0) in b", "k in b", "b", "d")
    assert found.places[0] == {"x": 0, "z": 1, "k": 2, "b": 6, "d": 7}
    assert found.places[1] == {"x": 3, "z": 4, "k": 5, "b": 6, "d": 7}
    assert found.shared.tolist() == [6, 7]


def test_what_is_known_has_no_place():
    found = layout(initial={"x": 1, "z": "2*k"})
    assert found.labels == ("k", "b", "d")


def test_gather_and_scatter_undo_each_other():
    found, z = layout(("a", "b"), local=["k"]), np.arange(8.0)
    names = ["x", "z", "k", "b", "d"]
    parts = [dict(zip(names, found.gather(i, z, names), strict=True)) for i in range(2)]
    assert parts[1] == {"x": 3.0, "z": 4.0, "k": 5.0, "b": 6.0, "d": 7.0}
    np.testing.assert_array_equal(found.scatter(parts), z)
    assert found.gather(0, z, ["k", "nothing"], missing=-1.0).tolist() == [2.0, -1.0]
    assert np.isnan(found.scatter([{"x": 1.0}, {}])[1:]).all()


def test_values_are_taken_by_label_or_by_a_name_that_only_one_has():
    found = layout(("a", "b"))
    values = {"x(0) in a": 1.0, "z(0) in a": 2.0, "x(0) in b": 3.0, "z(0) in b": 4.0, "k": 5, "b": 6, "d": 7}
    z = found.vector(values)
    assert z.tolist() == [1, 2, 3, 4, 5, 6, 7] and found.table(z) == values
    with pytest.raises(
        oj.ModelError, match=r"several unknowns are called 'x'; ask for one of x\(0\) in a, x\(0\) in b"
    ):
        found.vector({**values, "x": 1.0})


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "1", None])
def test_values_that_are_no_numbers_are_refused(value):
    with pytest.raises(oj.ModelError, match="the value of 'k' must be a finite number"):
        layout().vector({"k": value})


def test_missing_and_strange_names_are_told():
    with pytest.raises(oj.ModelError, match=r"no value is given for x\(0\), z\(0\), b, d$"):
        layout().vector({"k": 1.0})
    with pytest.raises(oj.ModelError, match="no unknown is called 'kk'; did you mean 'k'"):
        layout().vector({"kk": 1.0})
    assert find(layout(), "x") == 0


def test_limits_are_only_ever_narrowed():
    found = layout(noise={"y": "normal(s)"}).limited({5: (-1.0, 3.0), 2: (0.5, math.inf)})
    assert found[5].limits == (0.0, 3.0) and found[2].limits == (0.5, math.inf)
    assert found.limited({5: (1.0, 9.0)})[5].limits == (1.0, 3.0)
