"""Frame: the estimates of a fit as a data frame of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odejet.extras import needed

if TYPE_CHECKING:
    import pandas

    from odejet.result.fit import Fit


def frame(fit: Fit, level: float) -> pandas.DataFrame:
    """One row per unknown: value, stderr, interval, verdict."""
    pandas = needed("pandas")
    ends = [fit.interval(label, level) for label in fit.labels]
    columns = {
        "value": fit.estimates,
        "stderr": list(fit.stderr.values()),
        "low": [end[0] for end in ends],
        "high": [end[1] for end in ends],
        "verdict": [fit.kind(label) for label in fit.labels],
        "name": [unknown.name for unknown in fit.unknowns],
        "experiment": [unknown.experiment for unknown in fit.unknowns],
    }
    return pandas.DataFrame(columns, index=pandas.Index(fit.labels, name="quantity"))
