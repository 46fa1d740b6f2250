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
from pathlib import Path

import numpy as np

from problems import gfan, phcpack, systems
from problems.explicit import PAPER, generic, square, verdict_of
from problems.prolong import Explicit

RESULTS = Path(__file__).parent / "results" / "explicit"


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
