"""Examples: studies to start from with one click.

Their files are those of the folder `examples` of the project; a wheel has a copy of it beside this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Example:
    """A model, its data, and what is known beside them."""

    title: str
    question: str
    model: str
    data: str
    doses: str = ""
    known: Mapping[str, Any] = field(default_factory=dict)  # further fields of the draft

    @property
    def files(self) -> tuple[str, ...]:
        """What a study of it holds."""
        return tuple(name for name in (self.data, self.doses) if name)


EXAMPLES = {
    "prey": Example(
        "Prey and predators",
        "Only the prey are counted. Can all five unknowns be found?",
        "lotka_volterra.toml",
        "lotka_volterra.csv",
    ),
    "influenza": Example(
        "Influenza at a school",
        "How many boys were in bed on each of 14 days: how fast did it spread?",
        "influenza.toml",
        "influenza.csv",
        known={"positive": True},
    ),
    "doses": Example(
        "A drug every twelve hours",
        "Six doses, absorbed after a lag that nobody knows.",
        "repeated_doses.toml",
        "repeated_doses.csv",
        "repeated_doses_given.csv",
        known={"positive": True, "bounds": {"V1": (10.0, 100.0)}, "start": 0.0},
    ),
    "theophylline": Example(
        "Theophylline in twelve people",
        "One dose each; everybody has rates and a volume of their own.",
        "theophylline.toml",
        "theophylline.csv",
        known={
            "local": ("ka", "ke", "V"),
            "bounds": {"V": (10.0, 100.0), "ka": (0.01, 100.0), "ke": (0.001, 10.0)},
        },
    ),
    "enzyme": Example(
        "An enzyme at four concentrations",
        "Progress curves from several starts share two constants.",
        "michaelis_menten.toml",
        "michaelis_menten.csv",
        known={"positive": True},
    ),
    "pelts": Example(
        "Hares and lynxes",
        "A hundred years old, with noise in per cent.",
        "hare_lynx.toml",
        "hare_lynx.csv",
        known={"positive": True},
    ),
    "receptors": Example(
        "Two receptors, one signal",
        "Nothing tells the receptors apart: two solutions.",
        "receptor_binding.toml",
        "receptor_binding.csv",
    ),
    "gain": Example(
        "What cannot be known",
        "A decay seen through an unknown gain.",
        "decay.toml",
        "decay.csv",
    ),
}


def folder() -> Path:
    """Where the files of the examples are: beside this module, or in the project that it belongs to."""
    beside = Path(__file__).with_name("examples")
    return beside if beside.is_dir() else Path(__file__).parents[3] / "examples"
