"""Switches: parameters that a model may do without, and the problems with some of them on.

A switch is a parameter or an initial state, with the value that it has when it is off: a number, or an expression such
as the name of another parameter.  Off it is given that value; on it is estimated like every other unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from odejet.data import Data
from odejet.errors import DataError, ModelError, nearest
from odejet.model import Model
from odejet.problem import Problem
from odejet.problem.variants import variant


@dataclass(frozen=True)
class Switches:
    """A problem whose parameters can be switched off."""

    problem: Problem  # with everything on
    off: Mapping[str, float | str]

    @classmethod
    def of(cls, model: Model | Problem, data: Data | None, switches: Any, posed: Mapping[str, Any]) -> Switches:
        """Pose the largest problem, and check that every switch is one of its unknowns."""
        if isinstance(model, Problem):
            given = [name for name, value in posed.items() if value]
            if data is not None or given:
                what = "data" if data is not None else given[0]
                raise ModelError(f"a problem has its {what} already; give {what} to oj.Problem instead")
            problem = model
        elif data is None:
            raise DataError("a selection needs data: oj.select(model, data, switches=...), or a problem")
        else:
            problem = Problem(model, data, **posed)
        if not isinstance(switches, Mapping) or not switches:
            raise ModelError("switches must name parameters and their values when off, such as {'k5': 0}")
        known = sorted({unknown.name for unknown in problem.layout})
        for name, value in switches.items():
            if name not in known:
                raise ModelError(
                    f"the switch '{name}' is no unknown of {problem.model.name}{nearest(str(name), known)}"
                )
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ModelError(f"the switch '{name}' must be off at a number or an expression, not {value!r}")
        return cls(problem, dict(switches))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.off)

    def values_off(self, on: Collection[str]) -> dict[str, float | str]:
        """What is given where only these switches are on."""
        return {name: value for name, value in self.off.items() if name not in on}

    def problem_with(self, on: Collection[str]) -> Problem:
        """The problem in which only these switches are on."""
        off = self.values_off(on)
        return variant(self.problem, fixed=off) if off else self.problem
