"""Average: linear estimators of one output, weighted by how well their priors explain it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odejet.smooth.smoother import ChebyshevSeries

NEGLIGIBLE = 0.02
"""Parts of less weight are left out."""


def average(parts: Sequence[ChebyshevSeries], name: str) -> ChebyshevSeries:
    """The average of estimators of one series, weighted by exp(evidence)."""
    evidences = np.array([part.evidence for part in parts])
    weights = np.exp(evidences - evidences.max())
    weights /= weights.sum()
    kept = [(float(w), part) for w, part in zip(weights, parts, strict=True) if w > NEGLIGIBLE]
    total = sum(w for w, _ in kept)
    rows = max(part.operator.shape[0] for _, part in kept)
    longest = max((part for _, part in kept), key=lambda part: len(part.coordinates))
    operator, solved = np.zeros((rows, len(longest.coordinates))), np.zeros(rows)
    for weight, part in kept:
        height, width = part.operator.shape
        operator[:height, :width] += weight / total * part.operator
        solved[:height] += weight / total * part.coefficients
    noise = float(np.exp(sum(w / total * np.log(max(part.noise, 1e-300)) for w, part in kept)))
    shares = {part.name: sum(w for w, other in kept if other.name == part.name) / total for _, part in kept}
    described = ", ".join(f"{name} {share:.0%}" for name, share in sorted(shares.items(), key=lambda pair: -pair[1]))
    mean_evidence = float(np.log(np.mean(np.exp(evidences - evidences.max()))) + evidences.max())
    return ChebyshevSeries(
        name, longest.data, operator, longest.coordinates, noise, mean_evidence, longest.size, described, solved
    )
