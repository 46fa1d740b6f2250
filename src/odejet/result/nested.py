"""Nested: likelihood-ratio tests of a model against one that contains it.

Twice the gain of the log-likelihood follows chi-square about, with as many degrees of freedom as the larger model has
parameters more (Wilks).  Where the smaller model is at a bound of the larger one, as a rate that cannot be negative at
zero, half of all data drawn from it gain nothing at all: with one parameter the probability is half of that (Self and
Liang 1987); with several the plain one is an upper bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odejet.decide.statistics import chi_square_tail
from odejet.numerals import short
from odejet.result.fit import Fit


@dataclass(frozen=True)
class NestedTest:
    """Whether the data need what a larger model has more."""

    smaller: str
    larger: str
    statistic: float  # twice the gain of the log-likelihood
    degrees: int
    p_value: float  # of a gain at least this large if the smaller model were true
    at_bound: bool  # whether the smaller model stands at a bound of the larger one

    def __str__(self) -> str:
        degrees = f"{self.degrees} degree{'s'[: self.degrees != 1]} of freedom"
        note = ", at a bound" if self.at_bound else ""
        probability = f"p = {short(self.p_value, 3)}"
        return f"{self.larger} against {self.smaller}: {self.statistic:.2f}, {degrees}{note}, {probability}"


def likelihood_ratio(smaller: str, larger: str, gain: float, degrees: int, at_bound: bool = False) -> NestedTest:
    """Test a gain of the log-likelihood by a larger model; one that gains nothing has a probability of one."""
    statistic = max(2 * gain, 0.0)
    value = 1.0 if degrees < 1 else chi_square_tail(statistic, degrees)
    if at_bound and degrees == 1 and statistic > 0:
        value /= 2
    return NestedTest(smaller, larger, statistic, degrees, value, at_bound)


def nested_tests(fits: Mapping[str, Fit]) -> tuple[NestedTest, ...]:
    """Test every fit against every other that it contains."""
    found = []
    for small, inner in fits.items():
        for large, outer in fits.items():
            if is_nested(inner, outer):
                gain, degrees = outer.log_likelihood - inner.log_likelihood, outer.free - inner.free
                found.append(likelihood_ratio(small, large, gain, degrees, _is_at_bound(inner, outer)))
    return tuple(found)


def is_nested(inner: Fit, outer: Fit) -> bool:
    """Whether one fit is of the other's model, with some of its unknowns given."""
    parts = ("states", "outputs", "inputs", "events")
    same = all(getattr(inner.model, part, None) == getattr(outer.model, part, None) for part in parts)
    names = [{unknown.name for unknown in fit.unknowns} for fit in (inner, outer)]
    given = [_given(fit) for fit in (inner, outer)]
    kept = all(given[0].get(name) == value for name, value in given[1].items())
    return same and kept and set(inner.labels) < set(outer.labels) and names[1] - names[0] <= given[0].keys()


def _given(fit: Fit) -> dict[str, object]:
    """Parameters and initial states that are not estimated, by name."""
    return {**fit.model.initial, **fit.model.fixed, **fit.problem.fixed}


def _is_at_bound(inner: Fit, outer: Fit) -> bool:
    given = _given(inner)
    for unknown in outer.unknowns:
        if unknown.label in inner.labels:
            continue
        value = getattr(given.get(unknown.name), "value", None)
        if value is not None and float(value) in outer.bounds.get(unknown.label, ()):
            return True
    return False
