"""Gauss-Newton: a second estimate from each root, from all measured derivatives instead of the chosen rows.

A square system uses as many derivatives as there are unknowns and ignores the others.  With the covariance Sigma_d of
all derivatives up to the highest used order (paper, eq. fixed-design-derivative-error), the estimate of least variance
near a root minimises

    (Phi(z) - d)^T Sigma_d^-1 (Phi(z) - d),

which takes a few damped Gauss-Newton steps.  Sigma_d knows noise, not the bias of the smoother, so the result is an
estimate beside the root, not instead of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np

from odejet.algebra.system import SquareSystem
from odejet.smooth import Jet, covariance

STEPS = 4
HALVINGS = 6
FLOOR = 1e-8
"""Combinations of derivatives whose variance is smaller than this, relative to the others, are not trusted more."""
SETTLED = 1e-6
"""Steps smaller than this, relative to the unknowns, end the iteration: noise is larger."""


@dataclass(frozen=True)
class Measured:
    """All Taylor coefficients (outputs of the joined model, orders) at one target, and their covariance."""

    values: np.ndarray
    covariance: np.ndarray
    inputs: np.ndarray
    fixed: np.ndarray

    @cached_property
    def whitener(self) -> np.ndarray:
        """W with W Sigma_d W^T = 1, up to the floor on small variances."""
        sds = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        sds = np.where(sds > 0, sds, max(1e-3 * sds.max(initial=0.0), 1e-300))
        variances, directions = np.linalg.eigh(self.covariance / np.outer(sds, sds))
        variances = np.maximum(variances, FLOOR * variances[-1])
        return (directions / np.sqrt(variances)).T / sds


@dataclass(frozen=True)
class Improved:
    """Estimates (roots, unknowns), their misfit in units of the noise before and after, and whether it decreased."""

    estimates: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def moved(self) -> np.ndarray:
        return self.after < self.before


def measured(
    system: SquareSystem,
    jets: Sequence[Jet],
    inputs: np.ndarray | None = None,
    fixed: Sequence[float] = (),
    order: int | None = None,
) -> Measured:
    """What was measured at one target: jets of all outputs at the first point, then at the second.

    `inputs` are Taylor coefficients, as in `Targets`, of all inputs of the joined model.  Jets must come from
    estimators that are linear in the data: others have no covariance.  Derivatives up to the highest order of the
    system are used, unless `order` says otherwise.
    """
    orders = (system.highest if order is None else order) + 1
    scale = np.array([1.0 / factorial(k) for k in range(orders)])
    values = np.array([jet.mean[:orders] * scale for jet in jets])
    lengths = [len(jet.mean) for jet in jets]
    starts = np.cumsum([0, *lengths[:-1]])
    chosen = np.concatenate([start + np.arange(orders) for start in starts])
    scales = np.tile(scale, len(jets))
    spread = covariance(jets)[np.ix_(chosen, chosen)] * np.outer(scales, scales)
    forced = np.zeros((system.points * system.joined.inputs, orders)) if inputs is None else inputs
    return Measured(values, spread, forced, np.asarray(fixed, dtype=float))


def beyond(system: SquareSystem, roots: np.ndarray, target: Measured, steps: int = STEPS) -> Improved:
    """Estimates from real roots of one target, each by its own damped iteration."""
    estimates = np.array(roots, dtype=float).reshape(-1, len(system.unknowns))
    before, after = np.zeros(len(estimates)), np.zeros(len(estimates))
    for number, root in enumerate(estimates):
        estimates[number], before[number], after[number] = _iterate(system, root, target, steps)
    return Improved(estimates, before, after)


def _iterate(system: SquareSystem, root: np.ndarray, target: Measured, steps: int) -> tuple[np.ndarray, float, float]:
    """One estimate, and the misfit before and after."""
    residual, jacobian = _residual(system, root, target)
    first = misfit = _square(residual)
    for _ in range(steps):
        step = _step(jacobian, residual, root)
        if step is None or not np.isfinite(misfit):
            break
        for halving in range(HALVINGS):
            trial = root - step * 0.5**halving
            residual_there, jacobian_there = _residual(system, trial, target)
            if _square(residual_there) < misfit:
                break
        else:
            break
        small = np.max(np.abs(trial - root) / np.maximum(np.abs(root), 1e-300)) < SETTLED
        root, residual, jacobian, misfit = trial, residual_there, jacobian_there, _square(residual_there)
        if small:
            break
    return root, first, misfit


def _residual(system: SquareSystem, root: np.ndarray, target: Measured) -> tuple[np.ndarray, np.ndarray]:
    """Phi - d in units of the noise, and its Jacobian."""
    jets = system.jets(root[None], target.inputs[None], target.fixed, target.values.shape[1] - 1)[0]
    rows = jets.reshape(-1, jets.shape[-1])
    difference = rows[:, 0] - target.values.ravel()
    return target.whitener @ difference, target.whitener @ rows[:, 1 + system.columns]


def _square(residual: np.ndarray) -> float:
    total = float(residual @ residual)
    return total if np.isfinite(total) else np.inf


def _step(jacobian: np.ndarray, residual: np.ndarray, root: np.ndarray) -> np.ndarray | None:
    """The Gauss-Newton step, unknowns measured by their size."""
    sizes = np.maximum(np.abs(root), 1e-300)
    scaled = jacobian * sizes
    if not (np.all(np.isfinite(scaled)) and np.all(np.isfinite(residual))):
        return None
    return sizes * np.linalg.lstsq(scaled, residual, rcond=1e-13)[0]
