"""Layout: the vector u of everything that is estimated, and what it says of subjects.

First typical values on the scale of their random effect, so that a shift of u is a shift of eta; without one on a
logarithmic scale if they are known to be positive.  Then coefficients of covariates, the Cholesky factors of the blocks
of Omega with the logarithms of their diagonals, the logarithms of sds between occasions, and the logarithms of what the
noise depends on.

The random vector of a subject holds x of every parameter that differs between subjects and, where parameters differ
between occasions, one deviation for each of these and each occasion.  A parameter on an occasion is h(x + deviation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.model.dual import differentiated
from odejet.model.expressions import Expression, names, number, substituted
from odejet.population.effects import EFFECTS, Effect

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Moments:
    """What is expected of subjects: means of x, values of parameters without random effects, and their slopes by the
    first entries of u."""

    means: Array  # (subjects, effects)
    by_means: Array  # (subjects, effects, entries)
    common: Array  # (subjects, parameters without effects), as the model has them
    by_common: Array


@dataclass(frozen=True, eq=False)
class Layout:
    """Names, scales and places of what is estimated."""

    typical: tuple[str, ...]
    coefficients: tuple[str, ...]
    effects: Mapping[str, Effect]  # of the parameters that differ, in the order of the model
    blocks: tuple[tuple[int, ...], ...]  # of Omega, by positions among the effects
    noise: tuple[str, ...]
    levels: Mapping[str, str | None]  # the names of noise levels to be estimated, by output
    covariates: Mapping[str, Expression]
    columns: Mapping[str, Array]  # numbers of subjects
    count: int  # of subjects
    scales: tuple[Effect, ...]  # of typical values
    units: Array  # of typical values and coefficients on a linear scale
    occasional: tuple[str, ...] = ()  # parameters that differ between occasions
    occasions: int = 0  # the most that a subject has

    @classmethod
    def of(
        cls,
        typical: Sequence[str],
        effects: Mapping[str, Effect],
        blocks: Sequence[Sequence[str]],
        levels: Mapping[str, str | None],
        coefficients: Sequence[str],
        noise: Sequence[str],
        covariates: Mapping[str, Expression],
        columns: Mapping[str, Array],
        count: int,
        bounds: Mapping[str, tuple[float, float]],
        occasional: Sequence[str] = (),
        occasions: int = 0,
    ) -> Layout:
        """Lay out u for a population."""
        order = list(effects)
        positive = {name for name, (low, _) in bounds.items() if low >= 0}

        def scale(name: str) -> Effect:
            return effects.get(name, EFFECTS["lognormal" if name in positive else "normal"])

        return cls(
            tuple(typical),
            tuple(coefficients),
            dict(effects),
            tuple(tuple(order.index(name) for name in block) for block in blocks),
            (*(name for name in levels.values() if name is not None), *noise),
            dict(levels),
            dict(covariates),
            dict(columns),
            count,
            tuple(scale(name) for name in typical),
            np.ones(len(typical) + len(coefficients)),
            tuple(occasional),
            occasions if occasional else 0,
        )

    # --- places ---

    @property
    def random(self) -> tuple[str, ...]:
        return tuple(self.effects)

    @property
    def common(self) -> tuple[str, ...]:
        """Parameters without a random effect."""
        return tuple(name for name in self.typical if name not in self.effects)

    @property
    def fixed_effects(self) -> int:
        """Typical values and coefficients, which are the first entries of u."""
        return len(self.typical) + len(self.coefficients)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Rows and columns of the entries of Cholesky factors, in the order of u."""
        return [(block[a], block[b]) for block in self.blocks for a in range(len(block)) for b in range(a + 1)]

    @property
    def omegas(self) -> slice:
        return slice(self.fixed_effects, self.fixed_effects + len(self.pairs))

    @property
    def gammas(self) -> slice:
        """Entries of the sds between occasions."""
        return slice(self.omegas.stop, self.omegas.stop + len(self.occasional))

    @property
    def noises(self) -> slice:
        return slice(self.gammas.stop, self.gammas.stop + len(self.noise))

    @property
    def dimension(self) -> int:
        """Of the random vector of a subject."""
        return len(self.effects) + self.occasions * len(self.occasional)

    def deviations(self, k: int) -> range:
        """Places of the deviations of a parameter on all occasions in the random vector."""
        return range(len(self.effects) + k, self.dimension, len(self.occasional))

    @property
    def individual_names(self) -> tuple[str, ...]:
        """What subjects have: parameters that differ, and these on every occasion, as their models call them."""
        return (*self.random, *(on_occasion(p, o) for o in range(self.occasions) for p in self.occasional))

    @cached_property
    def _incidence(self) -> Array:
        """Scaled parameters of subjects, those of `individual_names`, from the random vector."""
        found = np.eye(self.dimension)
        for k, name in enumerate(self.occasional):
            for place in self.deviations(k):
                found[place, self.random.index(name)] = 1.0
        return found

    @cached_property
    def _laws(self) -> tuple[Effect, ...]:
        own = tuple(self.effects.values())
        return (*own, *(self.effects[p] for _ in range(self.occasions) for p in self.occasional))

    def __len__(self) -> int:
        return self.noises.stop

    @property
    def names(self) -> tuple[str, ...]:
        """What people call the entries, in the order of `natural`."""
        random = self.random
        omegas = [f"omega_{random[a]}" if a == b else f"corr_{random[b]}_{random[a]}" for a, b in self.pairs]
        gammas = [f"gamma_{name}" for name in self.occasional]
        return (*self.typical, *self.coefficients, *omegas, *gammas, *self.noise)

    def measured_in(self, units: Array) -> Layout:
        """Return the layout with other units of what moves on a linear scale."""
        return replace(self, units=units)

    # --- values ---

    def linear(self, j: int) -> bool:
        """Whether a typical value or coefficient moves on a linear scale."""
        return j >= len(self.typical) or self.scales[j].name == "normal"

    def first(self, u: Array) -> tuple[Array, Array]:
        """Typical values and coefficients as the model has them, and their slopes by u."""
        values, slopes = u[: self.fixed_effects] * self.units, self.units.copy()
        for j, scale in enumerate(self.scales):
            if not self.linear(j):
                values[j], slopes[j] = scale.back(u[j]), scale.slope(u[j])
        return values, slopes

    def cholesky(self, u: Array) -> Array:
        """The lower triangle L with Omega = L L', of the whole random vector."""
        factor = np.zeros((self.dimension, self.dimension))
        for value, (a, b) in zip(u[self.omegas], self.pairs, strict=True):
            factor[a, b] = np.exp(value) if a == b else value
        for k, value in enumerate(u[self.gammas]):
            for place in self.deviations(k):
                factor[place, place] = np.exp(value)
        return factor

    def noise_values(self, u: Array) -> Array:
        return np.exp(u[self.noises])

    def natural(self, u: Array) -> Array:
        """The values of all names: typical values, coefficients, sds and correlations, noise."""
        factor = self.cholesky(u)
        omega = factor @ factor.T
        sds = np.sqrt(np.diag(omega))
        second = [sds[a] if a == b else omega[a, b] / (sds[a] * sds[b]) for a, b in self.pairs]
        return np.concatenate([self.first(u)[0], second, np.exp(u[self.gammas]), self.noise_values(u)])

    def slopes(self, u: Array, step: float = 1e-6) -> Array:
        """Derivatives of what is estimated, as people read it, by u."""
        rows = step * np.eye(len(u))
        return np.stack([(self.natural(u + row) - self.natural(u - row)) / (2 * step) for row in rows], axis=1)

    def to(self, values: Mapping[str, float]) -> Array:
        """Return u for values by name."""
        u = np.zeros(len(self))
        for j, name in enumerate((*self.typical, *self.coefficients)):
            u[j] = (
                values[name] / self.units[j] if self.linear(j) else float(self.scales[j].to(np.asarray(values[name])))
            )
        random, omega = self.random, np.zeros((len(self.effects), len(self.effects)))
        for a, b in self.pairs:
            sds = values[f"omega_{random[a]}"] * values[f"omega_{random[b]}"]
            omega[a, b] = omega[b, a] = sds * (1.0 if a == b else values[f"corr_{random[b]}_{random[a]}"])
        u[self.gammas] = np.log([values[f"gamma_{name}"] for name in self.occasional])
        return self.with_omega(u, omega, {name: values[name] for name in self.noise})

    def with_omega(self, u: Array, omega: Array, noise: Mapping[str, float] | None = None) -> Array:
        """Return u with another Omega, of which blocks alone count, and other noise."""
        u = u.copy()
        factor = np.zeros_like(omega)
        for block in self.blocks:
            own = np.ix_(block, block)
            factor[own] = np.linalg.cholesky(omega[own])
        u[self.omegas] = [np.log(factor[a, b]) if a == b else factor[a, b] for a, b in self.pairs]
        if noise is not None:
            u[self.noises] = np.log([noise[name] for name in self.noise])
        return u

    def cholesky_gradient(self, by_omega: Array, factor: Array) -> Array:
        """The gradient by the entries of Cholesky factors from a symmetric one by Omega."""
        by_factor = 2 * by_omega @ factor
        own = [by_factor[a, b] * (factor[a, a] if a == b else 1.0) for a, b in self.pairs]
        between = [sum(by_factor[j, j] * factor[j, j] for j in self.deviations(k)) for k in range(len(self.occasional))]
        return np.array([*own, *between])

    # --- subjects ---

    def moments(self, u: Array, columns: Mapping[str, Array] | None = None) -> Moments:
        """What is expected of subjects: those of the data, or others with these covariates."""
        columns = self.columns if columns is None else columns
        count = self.count if columns is self.columns else max((len(c) for c in columns.values()), default=1)
        values, slopes = self.first(u)
        known = dict(zip((*self.typical, *self.coefficients), values.tolist(), strict=True))
        size = len(values)
        found: dict[str, tuple[Array, Array]] = {}
        for j, name in enumerate(self.typical):
            if name in self.covariates:
                needed = {key: known[key] for key in names(self.covariates[name]) if key in known}
                by = {key: list(known).index(key) for key in needed}
                given = {key: columns[key] for key in names(self.covariates[name]) if key in columns}
                dual = differentiated(self.covariates[name], {**needed, **given}, by, size)
                value = np.broadcast_to(dual.value, (count,))
                slope = np.broadcast_to(np.reshape(dual.gradient, (size, -1)), (size, count)).T * slopes
            else:
                value, slope = np.full(count, values[j]), np.zeros((count, size))
                slope[:, j] = slopes[j]
            found[name] = value, slope
        scaled = []
        with np.errstate(all="ignore"):
            for name, effect in self.effects.items():
                value, slope = found[name]
                if name in self.covariates:
                    scaled.append((effect.to(value), slope * effect.steepness(value)[:, None]))
                else:  # the scale of u itself, or that in units
                    j = self.typical.index(name)
                    row = np.zeros((count, size))
                    row[:, j] = self.units[j] if self.linear(j) else 1.0
                    scaled.append((np.full(count, u[j] * row[0, j]), row))
        scaled += [(np.zeros(count), np.zeros((count, size)))] * (self.dimension - len(self.effects))
        return Moments(
            _stacked([value for value, _ in scaled], (count, 0)),
            _stacked([slope for _, slope in scaled], (count, 0, size)),
            _stacked([found[name][0] for name in self.common], (count, 0)),
            _stacked([found[name][1] for name in self.common], (count, 0, size)),
        )

    def individual(self, x: Array) -> Array:
        """Parameters of subjects, those of `individual_names`, from rows of x."""
        scaled = x @ self._incidence.T
        return np.stack([law.back(scaled[..., k]) for k, law in enumerate(self._laws)], axis=-1)

    def by_x(self, by_individual: Array, x: Array) -> Array:
        """Derivatives by x of rows from those by parameters of subjects: (rows of x, points, parameters)."""
        scaled = x @ self._incidence.T
        slopes = np.stack([law.slope(scaled[..., k]) for k, law in enumerate(self._laws)], axis=-1)
        return np.asarray((by_individual * slopes[:, None, :]) @ self._incidence)

    def expression_for(self, name: str, numbers: Mapping[str, float]) -> Expression:
        """The typical value of a parameter for a subject of whom these numbers are known."""
        known: dict[str, Any] = {key: number(float(value)) for key, value in numbers.items()}
        return substituted(self.covariates[name], known)


def on_occasion(name: str, occasion: int) -> str:
    """Return what a parameter is called on an occasion, which are counted from zero."""
    return f"{name}_occasion{occasion + 1}"


def _stacked(parts: Sequence[Array], empty: tuple[int, ...]) -> Array:
    return np.stack(parts, axis=1) if parts else np.zeros(empty)
