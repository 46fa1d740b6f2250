"""Arguments with an old name: they work, with a warning, but not beside the new one."""

import numpy as np
import pytest

import odejet as oj
from tests.fits import predators

DECAY = oj.Model({"x": "-k*x"}, {"y": "x"})


def test_time_limit_is_the_one_word_for_time():
    with pytest.warns(DeprecationWarning, match="budget is called time_limit now"):
        old = oj.identify(DECAY, budget=5)
    new = oj.identify(DECAY, time_limit=5)
    assert {name: one.kind for name, one in old.items()} == {name: one.kind for name, one in new.items()}
    with pytest.warns(DeprecationWarning, match="seconds is called time_limit now"):
        found = predators().profile("k1", seconds=5)
    assert found.interval() == predators().profile("k1", time_limit=5).interval()
    with pytest.raises(TypeError, match="give time_limit alone"):
        oj.identify(DECAY, budget=5, time_limit=5)


def test_the_method_of_comparisons_is_one_object():
    times = np.linspace(0, 3, 30)
    data = oj.Data(times, {"y": 2 * np.exp(-0.5 * times) + 0.01 * np.random.default_rng(1).normal(size=30)})
    new = oj.fit(DECAY, data, method=oj.Method(weights="none"))
    with pytest.warns(DeprecationWarning, match=r"method=oj.Method\(weights='none'\)"):
        old = oj.fit(DECAY, data, weights="none")
    assert new.weights == old.weights == "none" and new.values == old.values
    with pytest.raises(oj.ModelError, match="in place of refine"):
        oj.fit(DECAY, data, refine=False, method=oj.Method())
    with pytest.raises(oj.ModelError, match="method must be"):
        oj.fit(DECAY, data, method="quick")
    with pytest.raises(TypeError):
        oj.fit(DECAY, data, (0, 10))
