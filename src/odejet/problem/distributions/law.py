"""Law: what every distribution of a measurement answers, and what they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

Array = np.ndarray
Method = TypeVar("Method", bound=Callable[..., Any])

SMALLEST_TAIL = 1e-300
"""The least probability that has a normal score, of 37 sds."""

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Terms:
    """What measurements say, one by one: the negative log-likelihood, and for location and scale its derivative and a
    positive weight that stands for its curvature in a step of a search.

    `cross` stands for the mixed curvature by location and scale, where a law has one.
    """

    costs: Array
    by_mu: Array
    by_s: Array
    weight_mu: Array
    weight_s: Array
    cross: Array | None = None


class Distribution(Protocol):
    """A law of measurements y around predictions mu with scales s, all arrays of one shape."""

    @property
    def logarithm(self) -> float:
        """The natural logarithm of the base in which data are compared; zero where they are as they are."""

    @property
    def has_scale(self) -> bool: ...

    @property
    def positive(self) -> bool:
        """Whether only positive predictions make sense."""

    @property
    def largest(self) -> float:
        """The largest prediction that makes sense."""

    @property
    def whole(self) -> bool:
        """Whether measurements are whole numbers."""

    @property
    def robust(self) -> bool:
        """Whether a few measurements may be far away without having much of a say."""

    @property
    def orthogonal(self) -> bool:
        """Whether a measurement tells of location and scale independently: without mixed information."""

    def refusal(self, y: Array) -> str:
        """What is wrong with measurements that this law cannot produce; empty if nothing is."""

    def terms(self, y: Array, mu: Array, s: Array) -> Terms: ...

    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        """The expected information on mu and on s of each measurement."""

    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        """Normal scores, positive where the prediction is above the measurement."""

    def sd(self, mu: Array, s: Array) -> Array: ...

    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array: ...


class Argument(NamedTuple):
    """An argument of a law that is no scale: in words, with an example, and whether it is a whole number."""

    what: str
    example: str
    whole: bool = False


class Form(NamedTuple):
    """How a law is written: how many arguments it has, what makes it of those that are no scale, and which of them is
    the scale, and which the correlation of errors one unit of time apart."""

    arguments: int
    make: Callable[..., Distribution]
    scale: int | None = 0
    written: str = ""  # for messages, such as "student(scale, degrees of freedom)"
    shapes: tuple[Argument, ...] = ()  # the arguments that are neither
    correlation: int | None = None


def silent(method: Method) -> Method:
    """Let what is too large for a number be infinite, without a warning: whoever asked refuses it."""
    return np.errstate(all="ignore")(method)


def excess(x: Array) -> Array:
    """Return x - log(1 + x) without cancellation."""
    small = np.where(np.abs(x) < 1e-2, x, 0.0)
    series = np.zeros_like(small)
    for k in reversed(range(8)):
        series = 1 / (k + 2) - small * series
    return np.where(np.abs(x) < 1e-2, small**2 * series, x - np.log1p(x))


def score_of_tail(residuals: Array, tails: Array) -> Array:
    """Return normal scores from the probability of a residual of the same sign that is at least as large."""
    from scipy.special import ndtri

    return np.asarray(-np.sign(residuals) * ndtri(np.clip(tails, SMALLEST_TAIL, 0.5)))


def score_of_sides(below: Array, above: Array) -> Array:
    """Return normal scores from the probabilities of less and of more, of which the smaller is accurate; half of what
    is neither counts on either side."""
    middle = np.clip(1 - below - above, 0.0, 1.0)
    low, high = below + 0.5 * middle, above + 0.5 * middle
    return np.where(low < high, 1.0, -1.0) * score_of_tail(np.ones_like(low), np.minimum(low, high))
