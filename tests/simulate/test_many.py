"""Many solutions at once are those of one after the other."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.simulate.flow import Flow
from odejet.simulate.many import outputs_of

TIMES = np.array([0.0, 0.5, 1.0, 2.0, 6.0, 12.0])
STATES, OUTPUTS = {"gut": "-ka*gut", "c": "ka*gut/V - Cl/V*c"}, {"y": "c", "z": "gut + c"}


def model(events, **options):
    start = {"gut": 0, "c": 0}
    return oj.Model(STATES, OUTPUTS, initial=start, events=events, name="oral", **options)


@pytest.mark.parametrize(
    "events",
    [
        [oj.Event(at=0, set={"gut": "gut + 100"})],
        [oj.Event(at="lag", set={"gut": "gut + 100*ka"})],
        [oj.Event(at="lag", every=3, count=3, set={"gut": "gut + 100"}), oj.Event(at=2, set={"c": "0"})],
    ],
)
def test_outputs_are_those_of_the_flow(events) -> None:
    flow = Flow(model(events))
    rng = np.random.default_rng(0)
    parameters = np.exp(0.5 * rng.standard_normal((20, len(flow.model.parameters))))
    found = outputs_of(flow, parameters, TIMES, 0.0, 1e-11, 3000)
    for row, values in zip(found, parameters, strict=True):
        run = flow.run(values, [0.0, 0.0], TIMES, start=0.0, sensitivities=False, tolerance=1e-11)
        assert np.array_equal(row, run.outputs[:, :, 0])


def test_an_event_after_the_end_does_not_happen() -> None:
    flow = Flow(model([oj.Event(at="lag", set={"gut": "gut + 100"})]))
    order = list(flow.model.parameters)
    rows = np.ones((3, len(order)))
    rows[:, order.index("lag")] = [50.0, 1.0, 50.0]
    found = outputs_of(flow, rows, TIMES, 0.0, 1e-11, 3000)
    assert np.all(found[[0, 2]] == 0)
    assert found[1, -1, 0] > 0


def test_what_is_not_simple_is_left_to_the_flow() -> None:
    switching = model([oj.Event(when="c > 1", set={"gut": "0"})])
    plain = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 1}, parameters=["k"])
    for one in (switching, plain):
        rows = np.ones((2, len(one.parameters)))
        assert np.isnan(outputs_of(Flow(one), rows, TIMES, 0.0, 1e-11, 3000)).all()
    dosed = Flow(model([oj.Event(at=0, set={"gut": "gut + 1"})]))
    assert np.isnan(outputs_of(dosed, np.ones((1, 3)), TIMES[::-1].copy(), 12.0, 1e-11, 3000)).all()
