"""The 25 benchmark systems by name, those that are reported apart, and the draws of their true values.

`systems.toml` holds them; `load("lotka_volterra")` gives one as a model with its time span, `draw` gives values of its
parameters and initial states as the benchmark's protocol wants them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odejet import Model, ModelError
from odejet.errors import nearest
from odejet.io import toml

FILE = Path(__file__).with_name("systems.toml")


@dataclass(frozen=True)
class Protocol:
    """How data are made from a system, and where a search may look."""

    points: int
    low: float
    high: float
    trials: int
    noise: tuple[float, ...]
    bounds: tuple[float, float]


@dataclass(frozen=True)
class System:
    """A model with the time over which it is observed and the unknowns that no data can tell."""

    name: str
    title: str
    model: Model
    time: tuple[float, float]
    unidentifiable: tuple[str, ...]

    def times(self, points: int | None = None) -> np.ndarray:
        """Evenly spaced over the time span; as many as the protocol says, unless told otherwise."""
        return np.linspace(*self.time, points or protocol().points)


@functools.cache
def _document() -> Mapping[str, Any]:
    return toml.loads(toml.read_text(FILE), FILE.name)


@functools.cache
def protocol() -> Protocol:
    table = _document()["protocol"]
    return Protocol(
        points=table["points"],
        low=float(table["low"]),
        high=float(table["high"]),
        trials=table["trials"],
        noise=tuple(float(level) for level in table["noise"]),
        bounds=(float(table["bounds"][0]), float(table["bounds"][1])),
    )


def names() -> tuple[str, ...]:
    """The systems of the benchmark, in alphabetical order."""
    return tuple(sorted(_tables() - set(apart())))


def apart() -> tuple[str, ...]:
    """Systems that are reported beside the benchmark and count to none of its figures."""
    return tuple(sorted(name for name in _tables() if _document()[name]["benchmark"].get("apart")))


def number(name: str) -> int:
    """The position of a system, which seeds its draws; those apart come last, so that they move no others."""
    return (*names(), *apart()).index(name)


def _tables() -> set[str]:
    return set(_document()) - {"protocol"}


@functools.cache
def load(name: str) -> System:
    """One system by name."""
    if name not in _tables():
        raise ModelError(f"there is no benchmark system '{name}'{nearest(name, sorted(_tables()))}")
    tables = {"name": name, **_document()[name]}
    facts = tables.pop("benchmark")
    first, last = (float(end) for end in facts["time"])
    model = Model.from_dict(tables, f"{FILE.name} [{name}]")
    return System(name, facts["title"], model, (first, last), tuple(facts["unidentifiable"]))


def draw(system: System, rng: np.random.Generator) -> tuple[dict[str, float], dict[str, float]]:
    """True values of all parameters and all initial states, each uniform in the protocol's [low, high]."""
    low, high = protocol().low, protocol().high
    parameters = {name: float(rng.uniform(low, high)) for name in system.model.parameters}
    initial_state = {name: float(rng.uniform(low, high)) for name in system.model.states}
    return parameters, initial_state
