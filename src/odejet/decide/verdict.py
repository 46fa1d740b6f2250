"""Verdict: what can be known of the unknowns of a problem, all experiments together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odejet.identify import Verdict


@dataclass(frozen=True)
class Identifiability:
    """What the verdict says of each unknown, by label."""

    kinds: Mapping[str, str]  # "global", "local", "none" or "undecided"
    combinations: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()  # what would have to be known for all the rest to be
    solutions: int | None = None
    message: str = ""
    roots: int | None = None  # of the square system

    @classmethod
    def of(cls, verdict: Verdict, names: Mapping[str, str]) -> Identifiability:
        """The verdict on a model in the words of a problem: `names` tells how the model calls each of its labels."""
        kinds = {label: verdict[name].kind if name in verdict else "undecided" for label, name in names.items()}
        fix = tuple(label for label, name in names.items() if name in verdict.fix)
        return cls(kinds, verdict.combinations, fix, verdict.solutions, verdict.message, verdict.roots)

    @property
    def unknowable(self) -> tuple[str, ...]:
        """What no data can determine."""
        return tuple(label for label, kind in self.kinds.items() if kind == "none")
