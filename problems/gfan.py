"""gfan: mixed volumes of explicit systems in exact arithmetic by Jensen's program of that name (Debian: gfan)."""

from __future__ import annotations

import shutil
import subprocess

from problems.prolong import Numeric


def executable() -> str | None:
    """The path of gfan, if it is there."""
    return shutil.which("gfan")


def mixed_volume(system: Numeric, seconds: float = 60.0) -> int:
    """The mixed volume of the Newton polytopes of a square system: its generic number of roots without zeros."""
    supports = ("{" + ",".join(f"({','.join(map(str, row))})" for row in e.exponents) + "}" for e in system.equations)
    done = subprocess.run(
        [executable() or "gfan", "_mixedvolume", "--vectorinput"],
        input="{" + ",\n".join(supports) + "}",
        capture_output=True,
        text=True,
        timeout=seconds,
        check=True,
    )
    return int(done.stdout)
