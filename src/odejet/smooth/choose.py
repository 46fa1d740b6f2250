"""Choice: which estimators are admitted at a time and up to an order.

An estimator without a stationary prior is refused where its noise gain has taken off compared with the middle of the
data and with the Gaussian process, which happens near the ends and inside gaps.  Every refusal has its reason in words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odejet.data import Series
from odejet.smooth.smoother import Jet, Linear

STEEPER = 5.0
"""Towards the ends the noise gain of order j may rise to this power j times its value in the middle..."""
TAKEN_OFF = 6.0
"""... unless it stays within this factor of the gain of the Gaussian process at the same place."""
TAKEN_OFF_CLEAN = 1e4
"""Its value where only rounding is amplified, and the bias of an oversmoothed process is the larger risk."""


def outside(data: Series, t: float) -> str | None:
    """Why nothing can be said at this time, if so."""
    if data.times[0] <= t <= data.times[-1]:
        return None
    return f"t = {t:g} is outside the data, which span {data.times[0]:g} to {data.times[-1]:g}"


def taken_off(jets: Sequence[Jet], calm: Sequence[Jet], inner: np.ndarray, clean: bool) -> dict[int, str]:
    """Which jets of a polynomial are not to be used, and why, beside those of a calm Gaussian process.

    `inner` are the polynomial's usual gains (`inner_gains`), to the order of the jets.
    """
    limit, tiny = TAKEN_OFF_CLEAN if clean else TAKEN_OFF, np.finfo(float).tiny
    gains = gains_of(jets)[:, 1:]
    excess = gains / np.maximum(gains_of(calm)[:, 1:], tiny)
    rise = gains / np.maximum(inner[1:], tiny)
    bad = (excess > limit) & (rise > STEEPER ** np.arange(1, len(inner)))
    reasons = {}
    for place in map(int, np.flatnonzero(bad.any(axis=1))):
        j, name = int(bad[place].argmax()), getattr(calm[place].smoother, "name", "the Gaussian process")
        reasons[place] = (
            f"at t = {jets[place].time:g} its noise gain of order {j + 1} is {rise[place, j]:.2g} times that in the "
            f"middle and {excess[place, j]:.2g} times that of {name}"
        )
    return reasons


def gains_of(jets: Sequence[Jet]) -> np.ndarray:
    """The noise gains of jets of one linear estimator, one row per jet."""
    rows = np.array([jet.reduced for jet in jets])
    return np.asarray(np.sqrt(np.einsum("tji,tji->tj", rows, rows)))


def inner_gains(smoother: Linear, order: int) -> np.ndarray:
    """The median noise gains over the middle of the data."""
    data = smoother.data
    places = data.middle + data.half_width * np.linspace(-0.6, 0.6, 7)
    return np.asarray(np.median(gains_of(smoother.jets(places, order)), axis=0))
