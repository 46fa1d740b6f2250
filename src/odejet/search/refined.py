"""Refined: where a refinement came to, and what is known of the misfit there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

import numpy as np

from odejet.journal import packed, unpacked
from odejet.objective.evaluation import Evaluation, NoiseAt
from odejet.objective.noise_model import NoiseModel
from odejet.search.termination import Ending


@dataclass(frozen=True, eq=False)
class Refined:
    """The end of a refinement; residuals and Jacobian (by z) are in units of the noise level of their output.

    Where measurements are very many, nothing is kept that has a number for each: `jacobian` has the triangles of
    outputs in place of their rows, of which singular values and lengths are the same, all together and each alone.
    """

    labels: tuple[str, ...]
    z: np.ndarray
    cost: float  # of the misfit: a negative log-likelihood, or half the sum of squares; infinite without a start
    residuals: np.ndarray  # none where the Jacobian has no rows for them
    jacobian: np.ndarray
    levels: np.ndarray  # most likely noise level per output of the misfit; one for laws with a scale of their own
    held: np.ndarray  # which unknowns sit on a bound that keeps them from going on
    ending: Ending
    evaluations: int
    seconds: float
    detail: str = ""
    gradient: np.ndarray = field(default_factory=lambda: np.empty(0))  # of the cost by z
    prior: float = 0.0  # what priors have of the cost
    noise: NoiseAt | None = None  # of every measurement, where it is not a level times a shape everywhere
    rms: float = math.nan  # of the residuals
    groups: tuple[slice, ...] = ()  # where the rows of each output are in the Jacobian, and after them all others
    by_rows: bool = True  # whether the Jacobian has a row for every residual
    start: np.ndarray = field(default_factory=lambda: np.empty(0))  # where it began, in the box

    @property
    def simulated(self) -> bool:
        """Whether there is a point at all."""
        return len(self.jacobian) > 0

    def packed(self) -> bytes:
        """Return all of it as data, for a journal."""
        noise = self.noise
        return packed(
            {
                **{name: getattr(self, name) for name in _PLAIN},
                "ending": self.ending.name,
                "groups": [(one.start, one.stop) for one in self.groups],
                "noise": None if noise is None else [len(noise.scores)],
                **({} if noise is None else {"noise." + name: getattr(noise, name) for name in _NOISE}),
            }
        )

    @classmethod
    def unpacked(cls, content: bytes, labels: tuple[str, ...]) -> Refined:
        """Return what was packed; `ValueError` where it belongs to other unknowns."""
        told = unpacked(content)
        noise = None if told["noise"] is None else NoiseAt(*(told["noise." + name] for name in _NOISE))
        if told["z"].shape != (len(labels),) or told["jacobian"].shape[1:] != (len(labels),):
            raise ValueError("it has other unknowns")
        return cls(
            labels=labels,
            ending=Ending[told["ending"]],
            groups=tuple(slice(*pair) for pair in told["groups"]),
            noise=noise,
            **{name: told[name] for name in _PLAIN},
        )

    @property
    def message(self) -> str:
        return f"{self.ending.value}: {self.detail}" if self.detail else self.ending.value


_NOISE = tuple(one.name for one in fields(NoiseAt))
_PLAIN = tuple(one.name for one in fields(Refined) if one.name not in ("labels", "ending", "groups", "noise"))
"""What is a number, a text, a truth value or an array."""


def refined_at(
    misfit: NoiseModel,
    z: np.ndarray,
    found: Evaluation,
    ends: tuple[np.ndarray, np.ndarray],
    ending: Ending,
    evaluations: int,
    seconds: float,
) -> Refined:
    """A refinement that ended at z with this evaluation; `ends` are the unknowns at their lower and upper bounds."""
    assert found.residuals is not None
    levels = misfit.levels(found.residuals)
    rows = misfit.row_levels(levels)
    assert found.jacobian is not None
    residuals, by_rows = found.residuals / rows, found.jacobian.keeps_rows
    every = misfit.group_levels(levels)
    gradient = found.jacobian.gradient(found.residuals, misfit.row_groups, every)
    # One matrix at a time: it may be large.
    jacobian, _, groups = found.expected.weighted(found.residuals, misfit.row_groups, every)
    return Refined(
        labels=misfit.labels,
        z=z,
        cost=misfit.cost(found.residuals, rest=found.rest),
        residuals=residuals if by_rows else np.empty(0),
        jacobian=jacobian,
        levels=levels,
        held=(ends[0] & (gradient > 0)) | (ends[1] & (gradient < 0)),
        ending=ending,
        evaluations=evaluations,
        seconds=seconds,
        gradient=gradient,
        rms=float(np.sqrt(np.mean(residuals**2))),
        groups=groups,
        by_rows=by_rows,
        prior=0.0 if found.standing is None else found.standing.prior,
        noise=None if found.standing is None else misfit.noise_at(found, levels),
    )
