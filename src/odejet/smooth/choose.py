"""Choice: which estimators are admitted for an output, at a time and up to an order, and which one comes first.

Everything is decided from the data.  An interpolant is refused when there is noise to be differentiated, a rational
function when it has a pole among the data, any fit that leaves clearly more than the noise, and a polynomial where its
noise gain has taken off compared with the middle of the data and with the Gaussian process, which happens near the ends
and inside gaps.  Every refusal has its reason in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from odejet.data import Series
from odejet.smooth import noise as noise_of
from odejet.smooth.aaa import Rational
from odejet.smooth.smoother import Jet, Linear, Polynomial, Smoother

OVERSMOOTHED = 2.0
"""A fit whose own noise is this many times the robust estimate has smoothed the signal away."""
UNCONVERGED = 30.0
"""A rational function may miss its samples by this many noise sds (or tolerances) before it is refused."""
CANCELLED = 3.0
"""Rounding in the evaluation of a polynomial may reach this many times the noise."""
MATCHED = 3.0
"""For noise-free data, decaying coordinates that leave at most this many times the noise come first."""
STEEPER = 5.0
"""Towards the ends the noise gain of order j may rise to this power j times its value in the middle..."""
TAKEN_OFF = 6.0
"""... unless it stays within this factor of the gain of the Gaussian process at the same place."""
TAKEN_OFF_CLEAN = 1e4
"""The same where there is only rounding to be amplified, and the bias of an oversmoothed process is the larger risk."""
POLYNOMIALS = ("chebyshev_aicc", "chebyshev_bic", "decay", "blend")
"""Estimators without the stationary prior that keeps Gaussian processes calm near the ends."""


def refusals(data: Series, smoothers: Mapping[str, Smoother], noise: float) -> dict[str, str]:
    """Estimators that are not to be used anywhere for this output, with reasons."""
    found: dict[str, str] = {}
    clean = noise_of.is_clean(data, noise)
    rounding = noise_of.CLEAN * noise_of.floor(data)
    for name, smoother in smoothers.items():
        reason = None
        if isinstance(smoother, Rational):
            reason = _refuse_rational(data, smoother, noise, clean)
        elif isinstance(smoother, Linear) and smoother.noise > max(OVERSMOOTHED * noise, rounding):
            reason = f"it leaves residuals of sd {smoother.noise:.2g} where the noise is {noise:.2g}"
        elif isinstance(smoother, Polynomial) and smoother.cancellation > CANCELLED * noise * data.typical_sd:
            reason = f"its coefficients cancel: evaluation loses {smoother.cancellation:.1g} to rounding"
        if reason is not None:
            found[name] = reason
    return found


def interpolation_refused(data: Series, noise: float) -> str | None:
    """Why the data themselves must not be interpolated, if so."""
    if noise_of.is_clean(data, noise):
        return None
    times = noise / noise_of.floor(data)
    return f"an interpolant would differentiate the noise, whose sd {noise:.2g} is {times:.0e} times rounding"


def _refuse_rational(data: Series, smoother: Rational, noise: float, clean: bool) -> str | None:
    allowed = UNCONVERGED * max(noise if data.sds is None else noise * float(data.sds.max()), data.rounding)
    if clean:
        allowed = max(allowed, 1e-10 * data.scale)
    if smoother.error > allowed:
        return f"it misses the values by {smoother.error:.2g}"
    if smoother.has_real_pole():
        return "it has a pole between the data"
    return None


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
    data = smoother.series
    places = data.middle + data.half_width * np.linspace(-0.6, 0.6, 7)
    return np.asarray(np.median(gains_of(smoother.jets(places, order)), axis=0))


def order_of_trust(data: Series, noise: float, smoothers: Mapping[str, Smoother]) -> tuple[str, ...]:
    """Names in the order in which they are to be tried.

    The blend by evidence is the most accurate over outputs and noise levels.  Noise-free data are the exception: there
    evidence compares how well priors fit rounding, and the decaying coordinates, which adapt most freely, are better.
    """
    preferred = ["blend", "decay", "gp_se", "gp_rq", "chebyshev_bic"]
    falling = smoothers.get("decay")
    if noise_of.is_clean(data, noise) and isinstance(falling, Linear) and falling.noise <= MATCHED * noise:
        preferred.remove("decay")
        preferred.insert(0, "decay")
    return tuple(dict.fromkeys(name for name in (*preferred, *smoothers) if name in smoothers))
