"""Course: what a page shows over time: fit and data, and the states."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from odejet.report.diagnostics import by_output, diagnostic_pictures
from odejet.report.markup import MEDIUM, SMALL, folded, gallery, key, left_out, part, section, soft
from odejet.report.panels import Panel
from odejet.report.pictures import Curve, band_picture, curves, fitted_panel, series_picture
from odejet.result import Comparison, Fit, Prediction

MOST_SERIES = 120
"""Series that a page shows."""

MOST_STATES = 8
"""Experiments whose states a page shows."""

MOST_DIAGNOSED = 12
"""Outputs whose residuals a page shows against their predictions."""

FEW_STATES = 4
"""States whose pictures may be large."""

_DATA = ("dot", "data")
_FIT = ("line", "fit")
_BAND = ("band", "95 % band of the curve")
_NEW = ("band light", "95 % band of a new measurement")
_RING = ("ring", "suspicious measurement")


def courses(fit: Fit, pairs: Sequence[Comparison], doubts: Collection[str] | None = None) -> dict[str, Curve]:
    """The course of every experiment of which a series is shown; `doubts` are labels of intervals not to be trusted."""
    return curves(fit, pairs[:MOST_SERIES], states=True, doubts=doubts)


def fit_and_data(fit: Fit, pairs: Sequence[Comparison], drawn: Mapping[str, Curve]) -> str:
    """Every series beside its fit; the experiments of an output stand side by side, on one scale."""
    shown = pairs[:MOST_SERIES]
    if not shown:
        return ""
    ringed = [_RING] if any(pair.suspicious.any() for pair in shown) else []
    banded = [_BAND, _NEW] if any(isinstance(one, Prediction) for one in drawn.values()) else []
    told = key(_DATA, _FIT, *banded, *ringed)
    told += soft("Below each curve: model minus measurement, in units of the noise; the band is from −2 to 2.")
    several = len(fit.data.experiments) > 1
    if several:
        told += "".join(part(output, _multiples(own, drawn)) for output, own in by_output(shown).items())
    else:
        wide = len(shown) == 1
        told += gallery([series_picture(pair, drawn[pair.experiment], several, wide=wide) for pair in shown], MEDIUM)
    told += left_out(len(pairs) - len(shown), "fit.compare()", "series")
    return section("Fit and data", told)


def _multiples(pairs: Sequence[Comparison], drawn: Mapping[str, Curve]) -> str:
    """One output in several experiments: small panels with one scale, for the eye to run across."""
    alike: list[Panel] = [fitted_panel(pair, drawn[pair.experiment]) for pair in pairs]
    return gallery([series_picture(pair, drawn[pair.experiment], True, alike) for pair in pairs], SMALL)


def diagnostics(pairs: Sequence[Comparison]) -> str:
    """Observed and residuals against predicted, and quantiles of the residuals, output by output; folded."""
    groups = list(by_output(pairs).items())
    pictures = [one for output, own in groups[:MOST_DIAGNOSED] for one in diagnostic_pictures(output, own)]
    if not pictures:
        return ""
    words = soft(
        "Of a fit that is right, measurements lie along the diagonal, residuals have no trend over the prediction, and "
        "their quantiles are those of the normal law."
    )
    more = left_out(len(groups) - MOST_DIAGNOSED, 'fit.plot("residuals")', "outputs")
    return folded("Residuals and predictions", words + gallery(pictures, SMALL) + more)


def states(courses: Mapping[str, Curve]) -> str:
    """The states with their bands, folded where there are several experiments."""
    drawn = {name: one for name, one in courses.items() if isinstance(one, Prediction)}
    shown = list(drawn.items())[:MOST_STATES]
    parts = []
    for name, one in shown:
        pictures = [band_picture(band, where=name) for band in one.states.values()]
        shown_as = gallery(pictures, MEDIUM if len(pictures) <= FEW_STATES else SMALL)
        parts.append(part(name, shown_as) if len(drawn) > 1 else shown_as)
    more = left_out(len(drawn) - len(shown), "fit.predict(experiment=name).plot()", "experiments")
    told = "".join(parts) + more
    return folded("States", told) if len(drawn) > 1 else section("States", told)
