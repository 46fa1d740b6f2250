"""Trust region: the radius after steps whose success is given."""

from __future__ import annotations

import numpy as np
import pytest

from odejet.objective.trust import Step
from odejet.search.trust_region import RadiusSettings, TrustRegion

SETTINGS = RadiusSettings(first=1.0, largest=3.0, smallest=0.1)


def step(length: float, damping: float = 1.0) -> Step:
    move = np.array([length, 0.0])
    return Step(move, decrease=1.0, damping=damping, free=np.ones(2, dtype=bool))


@pytest.mark.parametrize(
    ("ratio", "complete", "damping", "radius"),
    [
        (0.9, True, 1.0, 2.0),  # as predicted, and held back: farther
        (0.9, True, 0.0, 1.0),  # as predicted, and as far as it wanted
        (0.5, True, 1.0, 1.0),
        (0.1, True, 1.0, 0.2),  # a quarter of the step
        (-np.inf, False, 1.0, 0.08),  # a tenth, where nothing can be simulated
    ],
)
def test_the_radius_follows_the_ratio(ratio, complete, damping, radius):
    region = TrustRegion.first(SETTINGS)
    region.update(ratio, step(0.8, damping), complete)
    assert region.radius == pytest.approx(radius)
    assert region.good == (ratio > 0.75) and region.takes(ratio) == (ratio > 1e-4)


def test_it_grows_up_to_its_limit_and_ends_below_its_least():
    region = TrustRegion.first(SETTINGS)
    for _ in range(5):
        region.update(1.0, step(region.radius), True)
    assert region.radius == 3.0 and not region.growing
    for _ in range(5):
        region.update(0.0, step(region.radius), True)
    assert region.is_exhausted
    region.begin_again()
    assert region.radius == 1.0


def test_a_short_step_that_fails_is_in_a_narrow_valley_until_steps_are_long_again():
    region = TrustRegion(RadiusSettings(narrow=0.1), 0.05)
    assert region.is_narrow(0.1, step(0.05)) and not region.is_narrow(0.1, step(0.5))
    region.winding = True
    assert not region.is_narrow(0.1, step(0.05))
    for _ in range(2):
        region.update(1.0, step(region.radius), True)
    assert region.radius == pytest.approx(0.2) and not region.winding
