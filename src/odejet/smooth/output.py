"""Output: every estimator of one measured output, fitted together, with one noise level and an automatic first choice.

The estimators share one compressed form of the data, so that fitting all of them costs little more than the dearest:

    blend            average of the priors below by evidence: the usual first choice
    decay            polynomials with decaying coordinates, averaged over how they decay
    gp_se, gp_rq     Gaussian processes, squared-exponential and rational-quadratic
    gp_se_short, …   the same with 0.6 of their length scale
    chebyshev_bic, chebyshev_aicc    least squares, the degree by criterion
    aaa              rational interpolation of the data (noise-free data only)
    aaa_blend        rational approximation of the blend, the data freed of noise (noisy data only)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from odejet.budget import Budget
from odejet.data.series import Series, series
from odejet.errors import DataError

# Importing the file of an estimator registers it.
from odejet.smooth import aaa, blend, chebyshev, choose, decay, gp  # noqa: F401
from odejet.smooth import noise as noise_of
from odejet.smooth.estimator import ESTIMATORS, Workspace
from odejet.smooth.smoother import Constant, Jet, Linear, Smoother
from odejet.smooth.standardised import Standardised
from odejet.smooth.threads import one_thread

if TYPE_CHECKING:
    import matplotlib.figure

SIMPLEST = "chebyshev_bic"
"""The estimator that costs least; all others need what it needs."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """All fits of one output."""

    data: Standardised
    noise: float
    """The noise sd: in natural units, or as a multiple of the known sds."""
    smoothers: dict[str, Smoother]
    """In the order of trust."""
    refused: dict[str, str]
    """Estimators refused for the whole output, with reasons."""

    _inner: dict[tuple[str, int], np.ndarray] = field(default_factory=dict, repr=False)
    """Usual noise gains by estimator and order, found when they are first needed."""

    @property
    def series(self) -> Series:
        return self.data.series

    def admitted(self, t: float | None = None, order: int = 0) -> dict[str, Smoother]:
        """Estimators in the order of trust; with a time, those admitted there up to the order."""
        refused = self.refusals(t, order)
        return {name: self.smoothers[name] for name in self.smoothers if name not in refused}

    def refusals(self, t: float | None = None, order: int = 0) -> dict[str, str]:
        """Reasons by the names of the estimators that are refused."""
        if t is None:
            return dict(self.refused)
        reason = choose.outside(self.series, t)
        if reason is not None:
            return dict.fromkeys(self.smoothers, reason)
        return self._refusals(self._jets(np.array([t]), max(order, 1), (*self._restless, self._calm)), 1)[0]

    @one_thread()
    def jets(self, times: np.ndarray, order: int) -> list[dict[str, Jet]]:
        """For each time the jets of the estimators admitted there up to the order, in the order of trust.

        Their error law has the robust noise of the output.  At many times this is much cheaper than one at a time.
        """
        places = np.atleast_1d(np.asarray(times, dtype=float))
        inside = np.flatnonzero([choose.outside(self.series, t) is None for t in places])
        found = self._jets(places[inside], max(order, 1), tuple(self.smoothers))
        out: list[dict[str, Jet]] = [{} for _ in places]
        for i, refused in enumerate(self._refusals(found, len(inside))):
            admitted = (name for name in self.smoothers if name not in refused)
            out[inside[i]] = {name: found[name][i].to(order, self.noise) for name in admitted}
        return out

    def _jets(self, times: np.ndarray, order: int, names: Sequence[str | None]) -> dict[str, list[Jet]]:
        return {name: self.smoothers[name].jets(times, order) for name in names if name in self.smoothers}

    def _refusals(self, jets: dict[str, list[Jet]], places: int) -> list[dict[str, str]]:
        """Refusals at each of the places at which there are jets, of order one at least."""
        local: list[dict[str, str]] = [{} for _ in range(places)]
        clean = noise_of.is_clean(self.data, self.noise)
        for name in self._restless:
            if self._calm is not None and name in jets and places:
                usual = self._usual_gains(name, jets[name][0].order)
                for place, reason in choose.taken_off(jets[name], jets[self._calm], usual, clean).items():
                    local[place][name] = reason
        found = [{**reasons, **self.refused} for reasons in local]
        for reasons in found:
            if self._calm is not None and reasons.keys() >= self.smoothers.keys():
                # Near the ends a process that smooths too much is still the best there is.
                del reasons[self._calm]
        return found

    def _usual_gains(self, name: str, order: int) -> np.ndarray:
        if (name, order) not in self._inner:
            smoother = self.smoothers[name]
            assert isinstance(smoother, Linear)
            self._inner[name, order] = choose.inner_gains(smoother, order)
        return self._inner[name, order]

    def first(self, t: float | None = None, order: int = 0) -> Smoother:
        """The automatic choice."""
        for smoother in self.admitted(t, order).values():
            return smoother
        reasons = "; ".join(f"{name}: {reason}" for name, reason in self.refusals(t, order).items())
        raise DataError(f"no estimator is admitted ({reasons})")

    def jet(self, t: float, order: int, estimator: str | None = None) -> Jet:
        """Derivatives at one time by the automatic choice or by name, their error law with the robust noise."""
        smoother = self.first(t, order) if estimator is None else self.named(estimator)
        return smoother.jet(t, order).to(order, self.noise)

    def named(self, estimator: str) -> Smoother:
        """One estimator, admitted or not."""
        if estimator not in self.smoothers:
            reason = self.refused.get(estimator, f"there are {', '.join(self.smoothers)}")
            raise DataError(f"this output has no estimator {estimator!r}: {reason}")
        return self.smoothers[estimator]

    def __call__(self, times: np.ndarray | float) -> np.ndarray:
        return self.first()(times)

    def plot(self, orders: int = 2) -> matplotlib.figure.Figure:
        """Data, fit with band, and the first derivatives."""
        from odejet.smooth.plots import plot_output

        return plot_output(self, orders)

    @cached_property
    def _calm(self) -> str | None:
        """The stationary prior of best evidence: the standard for noise gains."""
        found = [s for s in self.smoothers.values() if isinstance(s, gp.GaussianProcess)]
        return max(found, key=lambda process: process.evidence).name if found else None

    @cached_property
    def _restless(self) -> tuple[str, ...]:
        """Linear estimators without a stationary prior, whose noise gains may take off."""
        return tuple(n for n, s in self.smoothers.items() if isinstance(s, Linear) and not s.stationary)

    def __repr__(self) -> str:
        unit = "" if self.series.sds is None else " times the given sds"
        lines = [f"Smoothed output: {len(self.series)} values, noise sd {self.noise:.3g}{unit}"]
        for name, smoother in self.admitted().items():
            lines.append(f"  {name}: {getattr(smoother, 'description', '')}")
        lines += [f"  {name} refused: {reason}" for name, reason in self.refused.items()]
        return "\n".join(lines)


@one_thread()
def fit_series(series: Series, budget: Budget | None = None) -> Smoothed:
    """Fit every estimator to one output; when the budget ends, those that are fitted by then, and one at least."""
    data = Standardised(series)
    if data.constant:
        floor = noise_of.floor(data)
        return Smoothed(data, floor, {"constant": Constant("constant", data, floor)}, {})
    given = Workspace(data, budget)
    given.fitted(SIMPLEST)
    if given.budget.over:
        return _simplest(given)
    unsuited = {name: estimator.unsuited(given) for name, estimator in ESTIMATORS.items()}
    chosen = [name for name, reason in unsuited.items() if reason is None]
    fits = {name: given.fitted(name) for name in chosen}
    unusable = {name: ESTIMATORS[name].refusal(given, fit) for name, fit in fits.items()}
    refused = {name: reason for name, reason in {**unsuited, **unusable}.items() if reason is not None}
    trusted = sorted(chosen, key=lambda name: ESTIMATORS[name].trust(given))
    return Smoothed(data, given.noise, {name: fits[name] for name in trusted}, refused)


def _simplest(given: Workspace) -> Smoothed:
    """The fit that costs least, where there is no time for others."""
    fit = cast(Linear, given.fitted(SIMPLEST))
    refused = {name: given.budget.reason for name in ESTIMATORS if name != SIMPLEST}
    return Smoothed(given.data, max(fit.noise, noise_of.floor(given.data)), {SIMPLEST: fit}, refused)


def fit_output(times: object, values: object, sds: object = None) -> Smoothed:
    """Fit every estimator to one output; NaN marks missing values, `sds` are known standard deviations."""
    return fit_series(series(times, values, sds))
