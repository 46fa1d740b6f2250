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
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from odejet.data.series import MIN_TIMES, DataError, Series, series
from odejet.smooth import aaa, chebyshev, choose, decay, gp
from odejet.smooth import noise as noise_of
from odejet.smooth.blend import NEGLIGIBLE, blend
from odejet.smooth.kernels import Kernel
from odejet.smooth.smoother import Constant, Jet, Linear, Polynomial, Smoother
from odejet.smooth.threads import one_thread

if TYPE_CHECKING:
    import matplotlib.figure

LARGE = 112
"""Bases above this size take their first guess of the kernel from a part of the data."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """All fits of one output."""

    series: Series
    noise: float
    """The noise sd: in natural units, or as a multiple of the known sds."""
    smoothers: dict[str, Smoother]
    refused: dict[str, str]
    """Estimators refused for the whole output, with reasons."""

    _inner: dict[tuple[str, int], np.ndarray] = field(default_factory=dict, repr=False)
    """Usual noise gains by estimator and order, found when they are first needed."""

    def admitted(self, t: float | None = None, order: int = 0) -> dict[str, Smoother]:
        """Estimators in the order of trust; with a time, those admitted there up to the order."""
        refused = self.refusals(t, order)
        return {name: self.smoothers[name] for name in self._trusted if name not in refused}

    def refusals(self, t: float | None = None, order: int = 0) -> dict[str, str]:
        """Reasons by the names of the estimators that are refused."""
        if t is None:
            return dict(self.refused)
        reason = choose.outside(self.series, t)
        if reason is not None:
            return dict.fromkeys(self.smoothers, reason)
        return self._refusals(self._jets(np.array([t]), max(order, 1), (*choose.POLYNOMIALS, self._calm)), 1)[0]

    @one_thread()
    def jets(self, times: np.ndarray, order: int) -> list[dict[str, Jet]]:
        """For each time the jets of the estimators admitted there up to the order, in the order of trust.

        Their error law has the robust noise of the output.  At many times this is much cheaper than one at a time.
        """
        places = np.atleast_1d(np.asarray(times, dtype=float))
        inside = np.flatnonzero([choose.outside(self.series, t) is None for t in places])
        found = self._jets(places[inside], max(order, 1), self._trusted)
        out: list[dict[str, Jet]] = [{} for _ in places]
        for i, refused in enumerate(self._refusals(found, len(inside))):
            admitted = (name for name in self._trusted if name not in refused)
            out[inside[i]] = {name: found[name][i].to(order, self.noise) for name in admitted}
        return out

    def _jets(self, times: np.ndarray, order: int, names: Sequence[str | None]) -> dict[str, list[Jet]]:
        return {name: self.smoothers[name].jets(times, order) for name in names if name in self.smoothers}

    def _refusals(self, jets: dict[str, list[Jet]], places: int) -> list[dict[str, str]]:
        """Refusals at each of the places at which there are jets, of order one at least."""
        local: list[dict[str, str]] = [{} for _ in range(places)]
        clean = noise_of.is_clean(self.series, self.noise)
        for name in choose.POLYNOMIALS:
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
        """The Gaussian process of best evidence: the standard for noise gains."""
        found = [s for s in self.smoothers.values() if isinstance(s, gp.GaussianProcess)]
        return max(found, key=lambda process: process.evidence).name if found else None

    @cached_property
    def _trusted(self) -> tuple[str, ...]:
        return choose.order_of_trust(self.series, self.noise, self.smoothers)

    def __repr__(self) -> str:
        unit = "" if self.series.sds is None else " times the given sds"
        lines = [f"Smoothed output: {len(self.series)} values, noise sd {self.noise:.3g}{unit}"]
        for name, smoother in self.admitted().items():
            lines.append(f"  {name}: {getattr(smoother, 'description', '')}")
        lines += [f"  {name} refused: {reason}" for name, reason in self.refused.items()]
        return "\n".join(lines)


@one_thread()
def fit_output(times: object, values: object, sds: object = None) -> Smoothed:
    """Fit every estimator to one output; NaN marks missing values, `sds` are known standard deviations."""
    data = series(times, values, sds)
    if data.constant:
        floor = noise_of.floor(data)
        return Smoothed(data, floor, {"constant": Constant("constant", data, floor)}, {})
    size, degree = chebyshev.needed_size(data)
    smoothers: dict[str, Smoother] = {}
    polynomials = [chebyshev.fit(data, size, criterion) for criterion in ("bic", "aicc")]
    design = _design(data, size, degree)
    decays = decay.fit(data, design.size)
    processes = _processes(design)
    mixed = blend(_averaged(design, [*decays, *processes, chebyshev.flat(data, size)]), "blend")
    falling = blend(decays, "decay")
    short = [gp.shortened(design, process) for process in processes]
    for fit in [mixed, falling, *processes, *short, *polynomials]:
        smoothers[fit.name] = fit
    noise = noise_of.estimate(data, [mixed, falling, max(processes, key=lambda p: p.evidence), polynomials[0]])
    refused = {}
    reason = choose.interpolation_refused(data, noise)
    if reason is None:
        smoothers["aaa"] = aaa.interpolate(data, 4.0 * noise * data.typical_sd)
        refused["aaa_blend"] = "there is no noise to be freed of: aaa takes the data themselves"
    else:
        smoothers["aaa_blend"] = _rational_blend(data, mixed, noise)
        refused["aaa"] = reason
    refused.update(choose.refusals(data, smoothers, noise))
    return Smoothed(data, noise, smoothers, refused)


def _design(data: Series, size: int, degree: int) -> gp.Design:
    """A basis with room beyond the degree the data ask for."""
    wanted = chebyshev.with_room(degree)
    wanted = min(wanted, size) if size < data.largest_size() else wanted
    return gp.Design.of(data, wanted)


def _averaged(design: gp.Design, parts: list[Polynomial]) -> list[Polynomial]:
    """Estimators to be averaged, Gaussian processes over their length scales too where that makes a difference.

    It makes none in a large basis: so much detail in the data determines the length scale.
    """
    lowest = max(part.evidence for part in parts) + float(np.log(NEGLIGIBLE))
    averaged: list[Polynomial] = []
    for part in parts:
        if isinstance(part, gp.GaussianProcess) and design.size <= LARGE and part.evidence > lowest:
            averaged += gp.neighbours(design, part, lowest)
        else:
            averaged.append(part)
    return averaged


def _processes(design: gp.Design) -> list[gp.GaussianProcess]:
    """Both Gaussian processes; for large bases from a guess, because each trial is dear."""
    if design.size <= LARGE:
        se = gp.fit_se(design)
        return [se, gp.fit_rq(design, se.kernel)]
    guess_se, guess_rq = _guesses(design.series)
    se = gp.fit_se(design, guess_se)
    return [se, gp.fit_rq(design, se.kernel, guess_rq.scaled(se.kernel.length / guess_se.length))]


def _guesses(data: Series) -> tuple[Kernel, Kernel]:
    """Kernels fitted to the liveliest third of the data: both are stationary, so its length scale rules the whole."""
    edges = np.linspace(data.times[0], data.times[-1], 4)
    parts = [_part(data, low, high) for low, high in pairwise(edges)]
    sized = [(*chebyshev.needed_size(part), part) for part in parts if part.distinct >= MIN_TIMES and not part.constant]
    size, degree, part = max(sized, key=lambda found: found[1])
    design = _design(part, size, degree)
    se = gp.search_se(design, refinements=2).kernel
    return se, gp.search_rq(design, se).kernel


def _part(data: Series, low: float, high: float) -> Series:
    inside = (data.times >= low) & (data.times <= high)
    return Series(data.times[inside], data.values[inside], None if data.sds is None else data.sds[inside])


def _rational_blend(data: Series, mixed: Polynomial, noise: float) -> aaa.Rational:
    """AAA on the blend, to a tolerance well below the noise that is left in it."""
    places = data.middle + data.half_width * np.linspace(-0.8, 0.8, 9)
    left = noise * float(np.median([jet.gains[0] for jet in mixed.jets(places, 0)]))
    return aaa.of_smoother(data, mixed, min(2 * len(mixed.operator), aaa.MOST_POINTS), 0.1 * left)
