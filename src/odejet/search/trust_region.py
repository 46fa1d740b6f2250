"""Trust region: how long a step may be, by what became of those before it."""

from __future__ import annotations

from dataclasses import dataclass

from odejet.objective.trust import Step


@dataclass(frozen=True)
class RadiusSettings:
    """When a radius changes, and by how much; lengths are in logarithmic units.

    `good`, `poor`, `grow` and `shrink` are those of Moré (1978) and of Conn, Gould and Toint (2000, chapter 17).
    """

    first: float = 0.4
    largest: float = 8.0  # a box may span dozens of units
    smallest: float = 1e-9  # shorter steps are rounding
    good: float = 0.75  # ratio of actual to predicted decrease from which the radius grows
    poor: float = 0.25  # and below which it shrinks
    reliable: float = 1e-4  # the ratio at which a step is taken
    grow: float = 2.0
    shrink: float = 0.25
    retreat: float = 0.1  # where a step cannot be simulated
    narrow: float = 0.04  # steps shorter than this that fail are in a narrow valley


@dataclass
class TrustRegion:
    """The radius, and what the last step has shown."""

    settings: RadiusSettings
    radius: float
    good: bool = True  # whether the last step did what was predicted
    growing: bool = False  # whether the next one may be longer therefore
    winding: bool = False  # whether steps follow the bend of a narrow valley

    @classmethod
    def first(cls, settings: RadiusSettings) -> TrustRegion:
        return cls(settings, settings.first)

    @property
    def is_exhausted(self) -> bool:
        return self.radius < self.settings.smallest

    def begin_again(self) -> None:
        """Return to the first radius."""
        self.radius = self.settings.first

    def is_narrow(self, ratio: float, step: Step) -> bool:
        """Whether a straight step failed that was short already."""
        return ratio < self.settings.poor and not self.winding and step.length < self.settings.narrow

    def takes(self, ratio: float) -> bool:
        """Whether a step with this ratio of actual to predicted decrease is taken."""
        return ratio > self.settings.reliable

    def update(self, ratio: float, step: Step, complete: bool) -> None:
        """Change the radius by how much of its predicted decrease a step has brought."""
        own = self.settings
        if ratio < own.poor:
            self.radius = (own.shrink if complete else own.retreat) * step.length
        self.good = ratio > own.good
        self.growing = self.good and step.damping > 0 and self.radius < own.largest
        if self.growing:
            self.radius = min(own.grow * self.radius, own.largest)
            self.winding &= self.radius < own.narrow
