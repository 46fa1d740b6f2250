"""Kernels that are called without a look at the types of their arguments: the types are the same at every call."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from odejet.jets import collocation, taylor
from odejet.jets.direct import Benches, Direct
from odejet.jets.inputs import sampled
from odejet.model import Event, Model
from odejet.simulate.flow import Flow

ROBERTSON = Model({"a": "-k1*a + k3*b*c", "b": "k1*a - k3*b*c - k2*b**2", "c": "k2*b**2"}, {"y": "1000*b"})
VALUES, START, TIMES = [0.04, 3e7, 1e4], [1.0, 0.0, 0.0], np.geomspace(0.1, 1e4, 6)


def runs():
    """Solutions of many kinds, by both methods: smooth, switching, with events and inputs, forward and backward."""
    stiff = Flow(ROBERTSON)
    for tolerance in (1e-6, 1e-14, 1):
        for sensitivities in (False, True):
            yield stiff.run(VALUES, START, TIMES, sensitivities=sensitivities, tolerance=tolerance)
    yield stiff.run(tuple(VALUES), START, [int(time) for time in (0, 1, 2)])
    yield stiff.run(VALUES, START, TIMES[::-1])
    frozen = TIMES.copy()
    frozen.flags.writeable = False
    yield stiff.run(np.array([VALUES, VALUES]).T[:, 0], np.array([START, START]).T[:, 1], frozen[::2])
    rates = {"x": "-k*(x - piecewise(1, t < 2, 2))", "z": "-1000*(z - x)"}
    switching = Flow(
        Model(rates, {"y": "z"}, events=[Event(at=3, set={"x": "x + 1"}), Event(when="x > 2.5", set={"x": "1"})])
    )
    for sensitivities in (False, True):
        yield switching.run([0.7], [0.3, 0.0], np.linspace(0, 9, 5), sensitivities=sensitivities, tolerance=1e-8)
    knots = np.linspace(0, 9, 5)
    driven = Flow(Model({"x": "-k*(x - u)"}, {"y": "x"}, inputs={"u": None}), {"u": sampled(knots, np.sin(knots), "u")})
    for k in (0.5, 1e4):
        yield driven.run([k], [0.3], knots, tolerance=1e-8)


def test_the_types_of_arguments_never_change(monkeypatch):
    seen: dict[int, set] = {}

    def noted(self, *arguments):
        seen.setdefault(id(self), set()).add(tuple(map(self.kernel.typeof_pyval, arguments)))
        return self.kernel(*arguments)

    monkeypatch.setattr(Direct, "__call__", noted)
    assert len(list(runs())) > 10
    assert set(seen) == {id(one) for one in (collocation._follow, taylor._PLAIN, taylor._PASSING)}
    for found in seen.values():
        # Arrays that cannot be written are read alike.
        assert (
            len({str(types).replace("readonly ", "").replace(", False, True)", ", True, True)") for types in found})
            == 1
        )


def test_threads_have_memory_of_their_own():
    flow = Flow(ROBERTSON)
    values = [np.array(VALUES) * factor for factor in np.linspace(0.5, 2, 24)]

    def ends(one):
        return flow.run(one, START, TIMES, tolerance=1e-8).states

    expected = list(map(ends, values))
    with ThreadPoolExecutor(4) as threads:
        for found, alone in zip(threads.map(ends, values), expected, strict=True):
            np.testing.assert_array_equal(found, alone)


def test_nothing_is_left_of_the_call_before():
    """A solution is the same whatever was solved before it in the same memory."""
    flow, large = Flow(ROBERTSON), Flow(Model({f"x{i}": f"-{10**i}*x{i} + 1" for i in range(6)}, {"y": "x0"}))
    first = flow.run(VALUES, START, TIMES, tolerance=1e-8).states
    flow.run([np.inf, 1.0, np.nan], START, TIMES, tolerance=1e-8)
    large.run([], np.ones(6), TIMES, tolerance=1e-8)
    np.testing.assert_array_equal(flow.run(VALUES, START, TIMES, tolerance=1e-8).states, first)


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one))])
def test_memory_does_not_go_to_another_process(copied):
    benches = Benches()
    benches.cleared(lambda: {"a": (3,), "b": (2, 2)}, lambda arrays: arrays)["b"][:] = 5
    assert copied(benches) == {}
    again = benches.cleared(dict, lambda arrays: arrays)
    assert again["a"].shape == (3,) and not again["b"].any()


def test_every_array_begins_with_a_line_of_the_cache():
    made = Benches().cleared(lambda: {"one": (3,), "other": (5, 7), "last": (2, 2, 2)}, dict)
    assert all(array.ctypes.data % 64 == 0 for array in made.values())
    assert {name: array.shape for name, array in made.items()} == {"one": (3,), "other": (5, 7), "last": (2, 2, 2)}
