"""Paper: the figures that the paper publishes, beside which ours are shown.

`paper_tables.json` holds them, in percent unless named otherwise.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from problems import systems

FILE = Path(__file__).with_name("paper_tables.json")

METHODS = {"proposed": "paper: proposed", "amigo2": "paper: AMIGO2", "shade": "paper: SHADE"}
"""Its methods, and what they are called beside ours."""


@functools.cache
def tables() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def level(noise: float) -> str:
    """A noise level as the tables name it."""
    return f"{noise:.0e}".replace("e-0", "e-") if noise else "0"


def by_noise(table: str, method: str, noise: float) -> float | None:
    """An entry of a table whose columns are the protocol's noise levels."""
    levels = systems.protocol().noise
    row = tables()[table].get(method)
    return None if row is None or noise not in levels else row[levels.index(noise)]


def at_high_noise(title: str, method: str) -> float | None:
    """The median worst error of a system at noise 1e-2; None stands for more than 1000."""
    return tables()["median_max_at_1e-2_by_system"].get(title, {}).get(method)
