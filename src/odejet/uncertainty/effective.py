"""Effective: what draws are worth, by rank-normalised R-hat and effective numbers of draws.

Both are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021).  With chains split in halves, the variance
within W and the variance of all V,

    R-hat = sqrt(V / W),    effective draws = draws / (-1 + 2 sum_k (rho_2k + rho_2k+1)),
    rho_t = 1 - (W - mean autocovariance at lag t) / V,

where sums of neighbouring correlations end before the first negative one and never grow (Geyer 1992).  ArviZ has the
same, but to import it takes longer than to draw from a small model, and a sampler looks at its draws many times.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

TAILS = 0.05, 0.95
"""The quantiles whose effective draws are those of the tails."""


def rhat(draws: np.ndarray) -> float:
    """Return R-hat of draws by chain: the larger of those of the bulk and of how far draws lie from the median."""
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_plain_rhat(_scores(halves)), _plain_rhat(_scores(folded)))


def bulk(draws: np.ndarray) -> float:
    """Return the effective number of draws for what is in the middle of a law."""
    return effective(_scores(_split(draws)))


def tail(draws: np.ndarray) -> float:
    """Return the effective number of draws for the ends of an interval."""
    halves = _split(draws)
    return min(effective((halves <= end).astype(float)) for end in np.quantile(draws, TAILS))


def mean(draws: np.ndarray) -> float:
    """Return the effective number of draws for the mean."""
    return effective(_split(draws))


def effective(chains: np.ndarray) -> float:
    """Return the effective number of numbers in chains as they are; NaN where they do not vary."""
    count, length = chains.shape
    centred = chains - chains.mean(axis=1, keepdims=True)
    size = 1 << (2 * length - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    products = np.fft.irfft(spectrum * spectrum.conj(), size, axis=1)[:, :length].mean(axis=0) / length
    within = products[0] * length / (length - 1)
    every = products[0] + (float(chains.mean(axis=1).var(ddof=1)) if count > 1 else 0.0)
    if not every > 0:
        return math.nan
    correlations = 1 - (within - products) / every
    correlations[0] = 1.0
    pairs = correlations[: length // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    end = int(negative[0]) if len(negative) else len(pairs)
    monotone = float(np.minimum.accumulate(pairs[:end]).sum())
    # The first of the pair that is left out counts once, where it is positive.
    rest = max(float(correlations[2 * end]), 0.0) if 2 * end < length else 0.0
    # Draws that avoid each other may be worth more than as many independent ones, within limits.
    slowness = max(-1 + 2 * monotone + rest, 1 / math.log10(chains.size))
    return chains.size / slowness


def _split(draws: np.ndarray) -> np.ndarray:
    """Halves of chains, without the middle of an odd number of draws."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _scores(draws: np.ndarray) -> np.ndarray:
    """The normal scores of ranks among all draws; equal ones share their mean rank."""
    _, places, counts = np.unique(draws, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - 0.5 * (counts - 1)
    return np.asarray(ndtri((ranks[places.ravel()].reshape(draws.shape) - 0.375) / (draws.size + 0.25)))


def _plain_rhat(chains: np.ndarray) -> float:
    length = chains.shape[1]
    within = float(chains.var(axis=1, ddof=1).mean())
    between = float(chains.mean(axis=1).var(ddof=1))
    return math.sqrt((length - 1) / length + between / within) if within > 0 else math.nan
