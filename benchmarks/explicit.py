"""Explicit: the polynomial systems of the 25 benchmark systems, their sizes beside the paper's, and PHCpack's time.

python -m benchmarks explicit                 the table of sizes, written to results/explicit/sizes.md
python -m benchmarks explicit --phc NAME...   PHCpack at one target of each, to results/explicit/phcpack.md
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from math import factorial
from pathlib import Path

import numpy as np

import odejet as oj
from benchmarks import gfan, phcpack, systems
from benchmarks.prolong import Explicit, Variable, prolong

RESULTS = Path(__file__).parent / "results" / "explicit"

PAPER = {
    "aircraft_pitch": (5, 17),
    "bicycle_model": (2, 10),
    "biohydrogenation": (2, 18),
    "boost_converter": (2, 10),
    "brusselator": (1, 8),
    "crauste": (4, 39),
    "cstr": (6, 26),
    "daisy_mamil3": (4, 21),
    "daisy_mamil4": (2, 22),
    "dc_motor": (3, 11),
    "fitzhugh_nagumo": (4, 14),
    "flexible_arm": (4, 25),
    "forced_lotka_volterra": (2, 12),
    "harmonic_oscillator": (1, 8),
    "hiv": (3, 33),
    "latent_subpopulation": (2, 23),
    "lotka_volterra": (4, 14),
    "mass_spring_damper": (4, 14),
    "quadrotor": (3, 11),
    "receptor_binding": (3, 20),
    "repressilator": (2, 24),
    "seir": (2, 17),
    "sirt_treatment": (4, 26),
    "slow_fast": (2, 21),
    "vanderpol": (1, 8),
}
"""The paper's table of template sizes: the highest derivative of an output h, and the number of equations |F|."""


def square(name: str, beyond: int = 1) -> Explicit:
    """The explicit system of the rows that `identify` chooses."""
    verdict = verdict_of(name)
    outputs = list(verdict.model.outputs)
    rows = tuple((outputs.index(output), order) for output, order in verdict.rows)
    return prolong(verdict.model, (rows,), verdict.fix, beyond)


@functools.cache
def verdict_of(name: str) -> oj.Verdict:
    return oj.identify(systems.load(name).model)


def generic(explicit: Explicit, seed: int, points: int = 1) -> tuple[np.ndarray, dict[Variable, complex]]:
    """A random complex point on the system: its unknowns and its data; inputs are random series."""
    rng = np.random.default_rng(seed)
    model = explicit.model

    def draw(*shape: int) -> np.ndarray:
        return rng.uniform(0.5, 1.5, shape) * np.exp(0.25j * np.pi * rng.uniform(-1, 1, shape))

    orders = 2 + max(variable.order for variable in (*explicit.unknowns, *explicit.data))
    inputs = draw(points, len(model.inputs), orders) / [factorial(k) for k in range(orders)] if model.inputs else None
    return explicit.graph(draw(points, len(model.states)), draw(len(model.parameters)), inputs=inputs)


def sizes_table() -> Iterator[str]:
    """Sizes as Markdown, row by row; the mixed volume, which is what the paper's solver tracks, if gfan is there."""
    head = ["system", "h", "paper", "equations", "paper", "needed", "terms", "monomials", "degree"]
    head += ["mixed volume", "roots"]
    yield f"| {' | '.join(head)} |"
    yield "| ---" + "|---:" * (len(head) - 1) + " |"
    for name in systems.names():
        verdict, system, lean = verdict_of(name), square(name), square(name, beyond=0)
        sizes, (order, equations) = system.sizes, PAPER[name]
        row = [max(verdict.orders.values()), order, sizes.equations, equations, lean.sizes.equations]
        row += [sizes.terms, sizes.monomials, sizes.degree, _mixed_volume(lean), verdict.roots]
        yield f"| {' | '.join(map(str, [name, *row]))} |"


def _mixed_volume(lean: Explicit) -> int | str:
    """Of the equations that remain when what single equations tell is inserted: some of that is zero."""
    if gfan.executable() is None:
        return "-"
    system = lean.at(generic(lean, seed=1)[1])
    rest = system.inserted(system.told())
    return gfan.mixed_volume(rest) if rest.unknowns else 1


WAYS: dict[str, Callable] = {
    "phc -m, phc -p": lambda text, seconds: phcpack.polyhedral(text, seconds).roots,
    "phc -b": phcpack.black_box,
}


def phc_table(names: Sequence[str], seconds: float, seed: int = 1) -> Iterator[str]:
    """What `phc` finds at one random target of each system in both ways, and how long it takes, row by row."""
    yield "| system | unknowns left | way | wall s | processor s | roots | true root to |"
    yield "| ---|---:|---|---:|---:|---:|--- |"
    for name in names:
        lean = square(name, beyond=0)
        z, data = generic(lean, seed)
        left = len(lean.unknowns) - len(lean.at(data).told())
        for way, solver in WAYS.items():
            wall, work = time.perf_counter(), os.times().children_user
            try:
                found = phcpack.roots(lean, data, functools.partial(solver, seconds=seconds))
                nearest = min(np.max(abs(found - z) / np.maximum(abs(z), 1e-3), axis=1), default=np.inf)
                result = f"{len(found)} | {nearest:.0e}"
            except phcpack.Failed as failure:
                result = f"- | {failure}"
            wall, work = time.perf_counter() - wall, os.times().children_user - work
            yield f"| {name} | {left} | {way} | {wall:.1f} | {work:.1f} | {result} |"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks explicit", description=__doc__.partition("\n")[0])
    parser.add_argument("--phc", nargs="+", metavar="NAME", help="time PHCpack on these systems instead")
    parser.add_argument("--seconds", type=float, default=1200.0, help="after which a run of phc is ended")
    options = parser.parse_args(argv)
    if options.phc:
        return _write("phcpack.md", PHC_NOTE, phc_table(options.phc, options.seconds))
    return _write("sizes.md", NOTE, sizes_table())


def _write(file: str, note: str, table: Iterator[str]) -> int:
    lines = [note, ""]
    print(*lines, sep="\n")
    for line in table:
        print(line, flush=True)
        lines.append(line)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / file).write_text("\n".join(lines) + "\n")
    return 0


NOTE = """\
# Explicit polynomial systems

Rows as `identify` chooses them at one shooting point; *paper* is its table of template sizes. Like the paper's, the
systems carry each state one derivative beyond what the rows need; *needed* counts equations without that. Terms and
monomials are counted at generic data; for CSTR the paper has 242, 207 and degree 5 too. The mixed volume (gfan) is the
number of paths of a polyhedral homotopy, for CSTR 134 in the paper; roots are the exact generic number of solutions.
The latent subpopulation differs by one equation because of its rows: with the first derivative of y5 in place of y4's
there are 23."""

PHC_NOTE = """\
# PHCpack on the explicit systems

One random complex target each, in the system without derivatives beyond what is needed, after unknowns that single
equations tell are inserted and coefficients balanced; one thread."""
