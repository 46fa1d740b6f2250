"""Objective: the negative log-posterior of a problem as a function of its unknowns, for whoever searches or draws.

    value(theta) = - log p(data | theta) - log p(theta)

theta has one number per unknown, in the order of `problem.unknowns`.  Noise levels that are not known follow from the
residuals: each is at its most likely value, which is also what integrating them out under Jeffreys' prior leaves, up to
a constant.  `residuals` and `linearise` are such that J'r is the gradient of the value; where noise is normal with
known sds and there are no priors, the value is half the squares of the residuals and a constant.

`scaled` is the same function on the scale of the search: logarithmic for what keeps its sign, that of the inverse
hyperbolic sine for what may change it.  A density changes with the scale by the Jacobian of the change, which
`log_jacobian` tells by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odejet.clock import now
from odejet.errors import ModelError
from odejet.objective import backward, many, slopes
from odejet.objective.evaluation import Evaluation
from odejet.objective.linear_model import LinearModel
from odejet.objective.misfit import Misfit
from odejet.objective.projection import projected
from odejet.objective.reduced import AnyMisfit, Reduced
from odejet.objective.triangles import by_rows
from odejet.problem.coordinates import Coordinates


@dataclass(frozen=True, eq=False)
class Objective:
    """The negative log-posterior as a function of the unknowns, on the natural scale."""

    misfit: AnyMisfit
    coordinates: Coordinates  # the scale of the search, and its box
    bounds: tuple[np.ndarray, np.ndarray]  # lower and upper ends as given; infinite where there are none
    noise_levels: np.ndarray | None = None  # per output, where they are held
    time_limit: float = 60.0  # seconds after which a simulation is given up

    @property
    def names(self) -> tuple[str, ...]:
        """The labels of the unknowns, in the order of theta."""
        return self.misfit.labels

    def __len__(self) -> int:
        return len(self.misfit.unknowns)

    @property
    def prior_entries(self) -> np.ndarray:
        """The positions of the unknowns that have a prior which is a density of the unknown itself."""
        kept = self.misfit.kept.tolist() if isinstance(self.misfit, Reduced) else range(len(self))
        stated = {prior.entry for prior in self.misfit.priors if not prior.is_on_scale}
        return np.array([i for i, entry in enumerate(kept) if entry in stated], dtype=int)

    @property
    def natural_entries(self) -> np.ndarray:
        """The positions of all unknowns but those whose prior is a density of the logarithm."""
        kept = self.misfit.kept.tolist() if isinstance(self.misfit, Reduced) else range(len(self))
        other = {prior.entry for prior in self.misfit.priors if prior.is_on_scale}
        return np.array([i for i, entry in enumerate(kept) if entry not in other], dtype=int)

    # --- the function ---

    def value(self, theta: Sequence[float] | np.ndarray) -> float:
        """Return the negative log-posterior; infinite outside the bounds and where the model cannot be simulated."""
        z = self._vector(theta)
        if not self._inside(z):
            return math.inf
        if self._has_slopes:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                return slopes.value(self.misfit, z, now() + self.time_limit)  # type: ignore[arg-type]
        found = self._evaluated(z, jacobian=False)
        return math.inf if found is None else self._cost(found)

    def values(self, thetas: np.ndarray, until: float = math.inf) -> np.ndarray:
        """Return the value at every row of thetas, sooner than one by one; NaN for those that are not looked at before
        the clock is beyond `until`."""
        found = np.full(len(thetas), math.inf)
        inside = ((thetas >= self.bounds[0]) & (thetas <= self.bounds[1])).all(axis=1)
        if self._has_slopes:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                found[inside] = many.values(self.misfit, thetas[inside], self.time_limit, until)  # type: ignore[arg-type]
            return found
        for i in np.flatnonzero(inside):
            found[i] = self.value(thetas[i]) if now() <= until else math.nan
        return found

    def value_and_gradient(self, theta: Sequence[float] | np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and its gradient by theta; (inf, NaN) where there is none."""
        z = self._vector(theta)
        nothing = math.inf, np.full(len(z), math.nan)
        if not self._inside(z):
            return nothing
        if self._leads_back:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                found = backward.value_and_gradient(self.misfit, z, now() + self.time_limit)  # type: ignore[arg-type]
            if found is not None:
                return found
        if self._has_slopes:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                found = slopes.value_and_gradient(self.misfit, z, now() + self.time_limit)  # type: ignore[arg-type]
            return found or nothing
        evaluated = self._evaluated(z)
        return nothing if evaluated is None else (self._cost(evaluated), self._weighted(evaluated).gradient())

    @cached_property
    def _compares_all(self) -> bool:
        """Whether the gradient follows from predictions alone: no rows are left out or weighed otherwise."""
        return isinstance(self.misfit, Misfit) and self.misfit.weighted and self.noise_levels is None

    @cached_property
    def _has_slopes(self) -> bool:
        return self._compares_all and not self.misfit.large

    @cached_property
    def _leads_back(self) -> bool:
        """Whether one way back is worth more than sensitivities."""
        return self._compares_all and backward.pays(self.misfit)  # type: ignore[arg-type]

    def residuals(self, theta: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return one number per measurement in units of its noise, then those of noise scales and of priors.

        NaN where the model cannot be simulated.
        """
        z = self._vector(theta)
        found = self._simulated(z, jacobian=False)
        if found.residuals is None:
            return np.full(self.misfit.rows, math.nan)
        return found.residuals / self.misfit.row_levels(self._levels(found))

    def linearise(self, theta: Sequence[float] | np.ndarray) -> LinearModel:
        """Return residuals and their derivatives as a linear model of a move of theta."""
        return self._weighted(self._required(theta))

    def fisher(self, theta: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the expected information: the curvature of the negative log-posterior that is to be expected."""
        found = self._required(theta)
        assert found.residuals is not None
        expected, _, _ = found.expected.weighted(found.residuals, self.misfit.row_groups, self._all_levels(found))
        return np.asarray(expected.T @ expected)

    def log_posterior(self, theta: Sequence[float] | np.ndarray) -> float:
        """Return the logarithm of the posterior density of theta, up to a constant."""
        return -self.value(theta)

    # --- other forms of it ---

    def scaled(self) -> Scaled:
        """Return the objective on the scale of the search."""
        return Scaled(self)

    def without_scales(self) -> Objective:
        """Return the objective as a function of all unknowns but scales and offsets of outputs and sizes of noise that
        follow from them: at each theta these are the best there are.  The objective itself where there are none."""
        reduced = projected(self.misfit, self.coordinates) if self.noise_levels is None else None
        if reduced is None:
            return self
        low, high = self.bounds
        return replace(self, misfit=reduced, coordinates=reduced.frame, bounds=(low[reduced.kept], high[reduced.kept]))

    def with_noise(self, levels: Sequence[float] | np.ndarray) -> Objective:
        """Return the objective with the noise levels of its outputs held, so that it is a sum of squares."""
        held = np.asarray(levels, dtype=float)
        if held.shape != (len(self.misfit.outputs),) or not np.all(held > 0):
            raise ModelError(f"noise levels must be one positive number for each of {', '.join(self.misfit.outputs)}")
        return replace(self, noise_levels=held)

    def noise_at(self, theta: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the most likely noise level of each output."""
        return self._levels(self._required(theta))

    def why(self, theta: Sequence[float] | np.ndarray) -> str | None:
        """Return why the value is infinite; None where it is not."""
        z = self._vector(theta)
        for name, value, low, high in zip(self.names, z, *self.bounds, strict=True):
            if not low <= value <= high:
                return f"{name} = {value:g} is outside its bounds, {low:g} to {high:g}"
        found = self._simulated(z, jacobian=False)
        if found.residuals is not None and np.isfinite(found.residuals).all():
            return None
        if isinstance(self.misfit, Reduced):
            return found.message
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self.misfit.why(z, now() + self.time_limit) or found.message

    # --- parts ---

    def _vector(self, theta: Sequence[float] | np.ndarray) -> np.ndarray:
        z = np.asarray(theta, dtype=float)
        if z.shape != (len(self),):
            raise ModelError(f"theta must have {len(self)} numbers, one for each of {', '.join(self.names[:5])} …")
        return z

    def _inside(self, z: np.ndarray) -> bool:
        return bool(np.all((z >= self.bounds[0]) & (z <= self.bounds[1])))

    def _simulated(self, z: np.ndarray, jacobian: bool) -> Evaluation:
        # Far away numbers may be too large, which is an answer too.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self.misfit.evaluate(z, jacobian, deadline=now() + self.time_limit)

    def _evaluated(self, z: np.ndarray, jacobian: bool = True) -> Evaluation | None:
        found = self._simulated(z, jacobian)
        return found if found.residuals is not None and np.isfinite(found.residuals).all() else None

    def _required(self, theta: Sequence[float] | np.ndarray) -> Evaluation:
        found = self._evaluated(self._vector(theta))
        if found is None:
            raise ModelError(f"there is no objective at these values: {self.why(theta)}")
        return found

    def _levels(self, found: Evaluation) -> np.ndarray:
        assert found.residuals is not None
        return self.misfit.levels(found.residuals) if self.noise_levels is None else self.noise_levels

    def _cost(self, found: Evaluation) -> float:
        assert found.residuals is not None
        return self.misfit.cost(found.residuals, self.noise_levels, found.rest)

    def _all_levels(self, found: Evaluation) -> np.ndarray:
        """The levels of all groups of rows: one for what has a scale of its own."""
        return self.misfit.group_levels(self._levels(found))

    def _weighted(self, found: Evaluation) -> LinearModel:
        assert found.residuals is not None and found.jacobian is not None
        levels, groups = self._all_levels(found), self.misfit.row_groups
        rows = by_rows(levels, groups)
        return LinearModel(found.jacobian.over(levels, groups), found.residuals / rows, groups, np.ones(len(self)))


@dataclass(frozen=True, eq=False)
class Scaled:
    """An objective on the scale of the search: theta = sign exp(x), or unit sinh(x) for what may change its sign."""

    natural_objective: Objective

    @property
    def names(self) -> tuple[str, ...]:
        return self.natural_objective.names

    def __len__(self) -> int:
        return len(self.natural_objective)

    @property
    def _scale(self) -> Coordinates:
        return self.natural_objective.coordinates

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the box of the search, which are finite."""
        return self._scale.box

    def to_natural(self, x: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return theta for a point of the scaled box."""
        return self._scale.back(np.asarray(x, dtype=float))

    def from_natural(self, theta: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the scaled point of theta, or of the nearest theta in the box."""
        return self._scale.to(self._scale.inside(np.asarray(theta, dtype=float)))

    def _inside(self, x: np.ndarray) -> bool:
        return bool(np.all((x >= self.bounds[0]) & (x <= self.bounds[1])))

    def value(self, x: Sequence[float] | np.ndarray) -> float:
        """Return the negative log-posterior, the density being that of theta itself."""
        x = np.asarray(x, dtype=float)
        return self.natural_objective.value(self.to_natural(x)) if self._inside(x) else math.inf

    def value_and_gradient(self, x: Sequence[float] | np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and its gradient by x."""
        x = np.asarray(x, dtype=float)
        if not self._inside(x):
            return math.inf, np.full(len(self), math.nan)
        theta = self.to_natural(x)
        value, gradient = self.natural_objective.value_and_gradient(theta)
        return value, gradient * self._scale.slopes(theta)

    def residuals(self, x: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the residuals at x."""
        return self.natural_objective.residuals(self.to_natural(x))

    def linearise(self, x: Sequence[float] | np.ndarray) -> LinearModel:
        """Return residuals and their derivatives as a linear model of a move of x."""
        theta = self.to_natural(x)
        found = self.natural_objective.linearise(theta)
        return replace(found, slopes=self._scale.slopes(theta))

    def fisher(self, x: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the expected information of x."""
        theta = self.to_natural(x)
        slopes = self._scale.slopes(theta)
        return slopes[:, None] * self.natural_objective.fisher(theta) * slopes

    def log_posterior(self, x: Sequence[float] | np.ndarray) -> float:
        """Return the logarithm of the posterior density of x, up to a constant."""
        x = np.asarray(x, dtype=float)
        if not self._inside(x):
            return -math.inf
        return self.log_jacobian(x, self.natural_objective.natural_entries) - self.value(x)

    def log_jacobian(self, x: Sequence[float] | np.ndarray, entries: Sequence[int] | np.ndarray | None = None) -> float:
        """Return log |d theta / d x| of all unknowns, or of these.

        Adding that of `prior_entries` alone makes unknowns without a prior uniform in x.
        """
        slopes = self._scale.slopes(self.to_natural(x))
        return float(np.log(slopes if entries is None else slopes[np.asarray(entries, dtype=int)]).sum())

    def log_jacobian_gradient(
        self, x: Sequence[float] | np.ndarray, entries: Sequence[int] | np.ndarray | None = None
    ) -> np.ndarray:
        """Return the gradient of `log_jacobian` by x."""
        scale, theta = self._scale, self.to_natural(x)
        # d log cosh(x) = tanh(x) on the scale of asinh; log |theta| is x itself, or -x, on that of logarithms.
        each = np.where(scale.signs == 0, theta / np.hypot(theta, scale.units), scale.signs)
        if entries is None:
            return each
        chosen = np.zeros(len(each))
        chosen[np.asarray(entries, dtype=int)] = each[np.asarray(entries, dtype=int)]
        return chosen
