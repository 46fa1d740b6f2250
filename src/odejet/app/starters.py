"""Starters: models to begin with when somebody drops a table of NONMEM and has written no equations yet."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from odejet.app.drafts import Draft
from odejet.data import Data

OUTPUT = "conc"


@dataclass(frozen=True)
class Starter:
    """A compartment model as equations, and the parameters that differ between subjects."""

    title: str
    text: str
    parameters: tuple[str, ...]


BOLUS = Starter(
    "into the blood, one compartment",
    "central' = -Cl/V*central\nconc = central/V\ncentral(0) = 0",
    ("Cl", "V"),
)
ABSORBED = Starter(
    "absorbed, one compartment",
    "depot' = -ka*depot\ncentral' = ka*depot - Cl/V*central\nconc = central/V\ndepot(0) = 0\ncentral(0) = 0",
    ("ka", "Cl", "V"),
)
TWO = Starter(
    "into the blood, two compartments",
    "central' = -Cl/V*central - Q/V*central + Q/V2*outer\nouter' = Q/V*central - Q/V2*outer\nconc = central/V\n"
    "central(0) = 0\nouter(0) = 0",
    ("Cl", "V", "Q", "V2"),
)
ABSORBED_TWO = Starter(
    "absorbed, two compartments",
    "depot' = -ka*depot\ncentral' = ka*depot - Cl/V*central - Q/V*central + Q/V2*outer\n"
    "outer' = Q/V*central - Q/V2*outer\nconc = central/V\ndepot(0) = 0\ncentral(0) = 0\nouter(0) = 0",
    ("ka", "Cl", "V", "Q", "V2"),
)
STARTERS = (BOLUS, ABSORBED, TWO, ABSORBED_TWO)


def begun(draft: Draft, data: Data) -> tuple[Draft, str]:
    """The draft with a model for these subjects, and what was chosen; with several of them, as a population."""
    chosen = ABSORBED if _rises(data) else BOLUS
    several = len(data.experiments) > 1
    values = [one.finite.values for each in data.experiments for one in each.outputs.values()]
    positive = all(bool((own > 0).all()) for own in values)
    found = replace(
        draft,
        language="equations",
        text=chosen.text,
        positive=True,
        noise={OUTPUT: f"lognormal(s_{OUTPUT})"} if positive else {},
        task="population" if several else "fit",
        random=dict.fromkeys(chosen.parameters, "lognormal") if several else {},
    )
    return found, f"begun with a model: {chosen.title}"


def _rises(data: Data) -> bool:
    """Whether in most subjects something is highest later than where it was measured first, as by mouth."""
    later = []
    for experiment in data.experiments:
        for one in experiment.outputs.values():
            values = one.finite.values[
                one.finite.times >= min((dose.first for dose in experiment.doses), default=-np.inf)
            ]
            if len(values) > 1:
                later.append(int(np.argmax(values)) > (1 if values[0] == 0 else 0))
    return bool(later) and float(np.mean(later)) > 0.5
