"""Identifiability: what the verdict on a model says of each unknown, as a fit keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odejet.identify import Verdict


@dataclass(frozen=True)
class Identifiability:
    """What the verdict on the model says of each unknown, by name (initial states by their state's)."""

    kinds: Mapping[str, str]
    combinations: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    solutions: int | None = None
    message: str = ""

    @classmethod
    def of(cls, verdict: Verdict) -> Identifiability:
        kinds = {name: quantity.kind for name, quantity in verdict.items() if quantity.role != "function"}
        return cls(kinds, verdict.combinations, verdict.fix, verdict.solutions, verdict.message)
