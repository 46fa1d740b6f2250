"""Error: what a fixed fit does to noise and to the truth (paper, Section 4).

For fixed hyper-parameters the derivative estimates are affine in the data, so that

    d_hat - d = b + W eps ~ N(b, Sigma_d),        Sigma_d = W Sigma_eps W^T     (eq. fixed-design-derivative-error),

with the reconstruction bias b of eq. fixed-design-bias-coordinate.  With probability at least 1 - delta every component
of d_hat - d is within the radius r_delta of eq. fixed-design-radius.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import block_diag

from odejet.smooth.smoother import ChebyshevSeries, Jet, Linear


def covariance(jets: Sequence[Jet], noise: float | None = None) -> np.ndarray:
    """Sigma_d of several jets stacked: correlated where they come from the same data, independent otherwise.

    `noise` replaces each jet's own noise sd.
    """
    groups: dict[int, list[int]] = {}
    for i, jet in enumerate(jets):
        if not isinstance(jet.smoother, Linear):
            raise ValueError(f"the jet at t = {jet.time:g} is of an estimator that is not linear: it has no covariance")
        groups.setdefault(id(jet.smoother.data), []).append(i)
    blocks = [_shared([jets[i] for i in members], noise) for members in groups.values()]
    stacked = block_diag(*blocks)
    starts = np.cumsum([0, *(len(jet.mean) for jet in jets)])
    arranged = [np.arange(starts[i], starts[i + 1]) for members in groups.values() for i in members]
    back = np.argsort(np.concatenate(arranged))
    return stacked[np.ix_(back, back)]


def _shared(jets: Sequence[Jet], noise: float | None) -> np.ndarray:
    """Sigma_d of jets of one series."""
    scales = np.concatenate([np.full(len(jet.mean), jet.noise if noise is None else noise) for jet in jets])
    rows = _common_rows(jets) * scales[:, None]
    return rows @ rows.T


def _common_rows(jets: Sequence[Jet]) -> np.ndarray:
    """Coefficient rows in one orthonormal basis: the shared factorisation if there is one, else the data themselves."""
    sizes = {jet.smoother.size if isinstance(jet.smoother, ChebyshevSeries) else 0 for jet in jets}
    if len(sizes) > 1 or 0 in sizes:
        series = jets[0].smoother.series  # type: ignore[union-attr]
        return np.vstack([jet.weights for jet in jets]) * (1.0 if series.sds is None else series.sds)
    reduced = [jet.reduced for jet in jets if jet.reduced is not None]
    width = max(rows.shape[1] for rows in reduced)
    return np.vstack([np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in reduced])


def radius(bias: np.ndarray, covariance: np.ndarray, delta: float = 0.05) -> float:
    """r_delta: with probability at least 1 - delta no derivative is off by more (eq. fixed-design-radius)."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be between 0 and 1, not {delta}")
    variances = np.diag(covariance)
    return float(np.max(np.abs(bias) + np.sqrt(2.0 * variances * np.log(2.0 * len(variances) / delta))))
