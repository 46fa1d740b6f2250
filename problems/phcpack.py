"""PHCpack: all isolated roots of explicit systems by Verschelde's program `phc`, Debian's package phcpack.

`roots` gives what tests and timings compare with: it inserts the unknowns that single equations tell, balances the
coefficients and hands the rest to `phc`: to its black box (`phc -b`), or to its polyhedral homotopies alone (`phc -m`,
then `phc -p`).  The black box also counts roots by degrees and partitions, which takes most of its time for CSTR; but
it tracks better: of the four roots of SIRT `phc -p` loses some with most seeds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from problems.prolong import Explicit, Numeric, Terms, Variable

SEED = "-0123"
"""phc draws random coefficients; the digits after the first are their seed."""

# Answers to the questions of phc, each followed by what it was asked.
VOLUME = (
    "4",  # lifting strategy: MixedVol; the other quick one, DEMiCs, gives varying volumes for CSTR
    "1",  # solve a random system by polyhedral homotopies in double precision
    "n",  # stable mixed volume?
    "n",  # mixed cells on a file of their own?
    "start",  # file for the random system and its roots
    "0",  # change a continuation parameter? 0 for no
    "0",  # how much to tell while tracking: nothing
)
TRACK = (
    "y",  # roots on a file of their own?
    "roots",  # its name
    "start",  # file with the start system
    "y",  # set the continuation parameter of the start roots?
    *("0", "0"),  # to zero, real and imaginary part
    "0",  # change the homotopy? 0 for no
    "0",  # change a continuation parameter?
    "0",  # how much to tell while tracking
)


class Failed(RuntimeError):
    """phc ended without roots."""


def executable() -> str | None:
    """The path of phc, if it is there."""
    return shutil.which("phc")


@dataclass(frozen=True)
class Polyhedral:
    """What polyhedral homotopies tell: the mixed volume, which is the number of paths, and where they ended."""

    mixed_volume: int
    roots: dict[str, np.ndarray]


def black_box(text: str, seconds: float = 60.0) -> dict[str, np.ndarray]:
    """The roots of a system by `phc -b`: for every variable its values, one for each root."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "system"
        source.write_text(text)
        _run(folder, ["-b", "system", "report"], (), seconds)
        # phc appends the roots to its input.
        written, _, found = source.read_text().partition("THE SOLUTIONS")
        if not found:
            raise Failed(f"phc -b found no roots: {written[-200:]}")
        return _read(found)


def polyhedral(text: str, seconds: float = 300.0) -> Polyhedral:
    """The roots of a system by polyhedral homotopies: `phc -m` and `phc -p`."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "system").write_text(text)
        _run(folder, ["-m", "system", "cells"], VOLUME, seconds)
        volume = re.search(r"common mixed volume : (\d+)", (Path(folder) / "cells").read_text())
        if volume is None:
            raise Failed("phc -m found no mixed volume")
        _run(folder, ["-p", "system", "report"], TRACK, seconds)
        return Polyhedral(int(volume.group(1)), _read((Path(folder) / "roots").read_text()))


def _run(folder: str, arguments: Sequence[str], answers: Sequence[str], seconds: float) -> None:
    command = [executable() or "phc", *arguments[:1], SEED, *arguments[1:]]
    try:
        done = subprocess.run(
            command,
            input="".join(f"{answer}\n" for answer in answers),
            capture_output=True,
            text=True,
            timeout=seconds,
            cwd=folder,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"phc {arguments[0]} did not end within {seconds:g} s") from None
    except OSError as error:
        raise Failed(f"phc cannot be run: {error.strerror}") from None
    if done.returncode or "unhandled exception" in done.stdout:
        raise Failed(f"phc {arguments[0]} failed: {done.stdout[-200:]}{done.stderr[-200:]}")


def _read(text: str) -> dict[str, np.ndarray]:
    roots: dict[str, list[complex]] = {}
    for name, real, imaginary in re.findall(r"^ (\w+) :\s+(\S+)\s+(\S+)$", text, re.MULTILINE):
        roots.setdefault(name, []).append(complex(float(real), float(imaginary)))
    return {name: np.array(values) for name, values in roots.items()}


# --- roots of explicit systems ----------------------------------------------------------------------------------------

Solver = Callable[[str], Mapping[str, np.ndarray]]


def roots(explicit: Explicit, data: Mapping[Variable, complex], solver: Solver = black_box) -> np.ndarray:
    """All isolated roots at the data where no cleared denominator vanishes, (roots, unknowns), by phc."""
    system = explicit.at(data)
    told = system.told()
    rest = [i for i in range(system.unknowns) if i not in told]
    small, scales = balanced(system.inserted(told))
    found = solver(small.to_phcpack())
    columns = [found.get(f"z{i + 1}", np.zeros(0)) for i in range(small.unknowns)]
    scaled = distinct(np.stack(columns, axis=-1))
    z = np.empty((len(scaled), system.unknowns), dtype=complex)
    z[:, list(told)] = list(told.values())
    z[:, rest] = scaled * scales
    return z[(system.residuals(z).max(axis=-1, initial=0.0) < 1e-8) & system.genuine(z)]


def balanced(system: Numeric) -> tuple[Numeric, np.ndarray]:
    """The system in unknowns z_i / s_i, its equations scaled, so that coefficients are near one; and the scales s.

    The logarithms of all coefficients are made small in the sense of least squares, as Morgan (1987) proposes.
    """
    count = len(system.equations)
    rows, sizes = [], []
    for i, equation in enumerate(system.equations):
        rows.append(np.hstack([np.tile(np.eye(count)[i], (len(equation.exponents), 1)), equation.exponents]))
        sizes.append(np.log(abs(equation.coefficients)))
    logarithms = np.linalg.lstsq(np.vstack(rows), -np.concatenate(sizes), rcond=None)[0]
    weights, scales = np.exp(logarithms[:count]), np.exp(logarithms[count:])
    scaled = tuple(
        Terms(weight * e.coefficients * np.prod(scales**e.exponents, axis=1), e.exponents)
        for weight, e in zip(weights, system.equations, strict=True)
    )
    denominators = tuple(
        Terms(q.coefficients * np.prod(scales**q.exponents, axis=1), q.exponents) for q in system.denominators
    )
    return Numeric(scaled, denominators, system.unknowns), scales


def distinct(points: np.ndarray, tolerance: float = 1e-6) -> np.ndarray:
    """Points without those that an earlier one equals: two paths may end at the same root."""
    kept: list[np.ndarray] = []
    for point in points:
        if all(np.linalg.norm(point - other) > tolerance * np.linalg.norm(point) for other in kept):
            kept.append(point)
    return np.array(kept).reshape(-1, points.shape[-1])
