"""Laws: how the measurements of one output in one experiment are distributed, as a function of predictions and z.

A law of `distributions` tells of a measurement with a prediction and a scale.  Here it has the scale that an expression
in unknowns and the output gives it, limits between which censored values lie, and the correlation of errors that
persist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.data.censored import Limits
from odejet.model.expressions import Expression, names, number
from odejet.model.formula import Formula, formula
from odejet.objective.likeliest import scales
from odejet.problem.distributions import Distribution, Laplace, Logarithmic, Normal, Terms, is_of_squares
from odejet.problem.distributions.interval import drawn_within, interval_terms

ROUGHLY = 0.2
"""Of the spread of an output: a residual up to which squares are as good as a robust law, far from an optimum."""


@dataclass(frozen=True, eq=False)
class Density:
    """The law of the measurements of one output in one experiment, as a function of predictions and z."""

    law: Distribution
    scale: Expression  # in the output and in names that have a place
    output: str
    places: Mapping[str, int]  # names of unknowns -> entry of z
    numbers: Mapping[str, float]
    censored: bool = False  # whether some measurements are known only to lie between limits
    correlation: Expression | None = None  # of errors one unit of time apart, in names that have a place

    @cached_property
    def varies(self) -> bool:
        """Whether the scale or the correlation depends on anything that is to be found."""
        return bool(self.places) or self.output in names(self.scale)

    @property
    def correlated(self) -> bool:
        """Whether errors persist from one measurement to the next."""
        return self.correlation is not None

    @property
    def of_squares(self) -> bool:
        """Whether its cost is a sum of squares of residuals or of their logarithms, each in units of its scale."""
        return is_of_squares(self.law) and not self.censored and not self.correlated

    @cached_property
    def sought(self) -> np.ndarray:
        """Which of scale and correlation depend on anything that is to be found, of a law with a correlation."""
        assert self.correlation is not None
        told = [any(name in self.places for name in names(one)) for one in (self.scale, self.correlation)]
        return np.flatnonzero(told)

    @cached_property
    def noise_rows(self) -> int:
        """How many rows stand for what is to be found of its noise, where all measurements share these."""
        return len(self.sought) if self.correlated else int(self.varies)

    def memory(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the correlation of errors one unit of time apart, and its derivatives by the entries of z."""
        code, numbers = self._correlation_formula.code, self._correlation_formula.numbers
        found = scales(code, numbers, np.zeros(1), z[self.entries])
        return float(found[0, 0]), found[2:, 0]

    @cached_property
    def entries(self) -> np.ndarray:
        """Entries of z that the scale depends on by itself."""
        return np.array(list(self.places.values()), dtype=int)

    def rough(self, level: float) -> Density | None:
        """A law of this known scale that least squares can start from; None where squares themselves will do."""
        if not self.law.robust and not self.censored:
            return None
        kind = Laplace(ROUGHLY) if self.law.robust else Normal()
        law: Distribution = Logarithmic(kind, self.law.logarithm) if self.law.logarithm else kind
        return replace(self, law=law, scale=number(level), places={}, numbers={}, correlation=None)

    def scales(self, mu: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The scale of every measurement, its derivative by the prediction, and in rows those by the entries of z."""
        found = scales(self.formula.code, self.formula.numbers, mu, z[self.entries])
        return found[0], found[1], found[2:]

    @cached_property
    def follows_output(self) -> bool:
        """Whether the scale depends on the prediction, so that every measurement has its own."""
        return self.varies and self.output in names(self.scale)

    @cached_property
    def scale_each(self) -> bool:
        """Whether every measurement has a row of its own for its scale: where scales differ, or where what it tells of
        the scale depends on what it tells of the prediction."""
        return self.follows_output or self.coupled

    @cached_property
    def coupled(self) -> bool:
        """Whether what a measurement tells of its scale depends on what it tells of its prediction."""
        return self.varies and (self.censored or not self.law.orthogonal)

    @cached_property
    def formula(self) -> Formula:
        """The scale as a function of the output and the entries of z."""
        return formula(self.scale, self._symbols, self.numbers)

    @cached_property
    def _correlation_formula(self) -> Formula:
        assert self.correlation is not None
        return formula(self.correlation, self._symbols, self.numbers)

    @property
    def _symbols(self) -> dict[str, int]:
        return {self.output: 0, **{name: 1 + i for i, name in enumerate(self.places)}}

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Return a key that equal laws share: an output mostly has one law in many experiments."""
        places, numbers = tuple(self.places.items()), tuple(self.numbers.items())
        return self.law, self.scale, self.output, places, numbers, self.censored, self.correlation

    def terms(self, y: np.ndarray, mu: np.ndarray, s: np.ndarray, limits: Limits | None = None) -> Terms:
        """What measurements say, of which some may be known only to lie between limits; predictions may have further
        axes in front."""
        terms = self.law.terms(y, mu, s)
        if not self.censored:
            return terms
        nothing = np.zeros_like(mu) if terms.cross is None else terms.cross
        terms = replace(terms, cross=nothing)
        if limits is None or not limits.censored.any():
            return terms
        hidden, low, high = (np.broadcast_to(one, mu.shape) for one in (limits.censored, limits.lower, limits.upper))
        within = interval_terms(self.law, low[hidden], high[hidden], mu[hidden], s[hidden])
        return Terms(*(_put(getattr(terms, f.name), hidden, getattr(within, f.name)) for f in fields(Terms)))

    def scores(self, y: np.ndarray, mu: np.ndarray, s: np.ndarray, limits: Limits | None, first: int) -> np.ndarray:
        """Normal scores; what is censored has that of a value drawn from the law within its limits, which fits of many
        such measurements see as they see all others (Dunn and Smyth 1996).  `first` is the number of the first one."""
        if limits is not None and (hidden := limits.censored).any():
            ends = limits.lower[hidden], limits.upper[hidden]
            y = _put(y, hidden, drawn_within(self.law, *ends, mu[hidden], s[hidden], first))
        return self.law.scores(y, mu, s)


def _put(values: np.ndarray, chosen: np.ndarray, others: np.ndarray) -> np.ndarray:
    """A copy of values with others in the place of some of them."""
    found = np.array(np.broadcast_to(values, chosen.shape), dtype=float)
    found[chosen] = others
    return found
