"""Summary: every ratio to a peer that the project claims, measured in one run on one machine.

python -m benchmarks summary [--seed S] [--parts flow smooth roots fits]

Each part runs ours and the peer on the same problems, one after the other, and gives the median of the ratios of their
times over these problems.  A peer that is not installed leaves a line that says so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cells import Cell, Protocol
from benchmarks.methods import METHODS, Budget
from benchmarks.run import Task, work
from benchmarks.store import write_whole
from problems import systems

RESULTS = Path(__file__).parent / "results" / "summary"
SMOOTHED = ("lotka_volterra", "seir", "boost_converter")
ROOTS = ("lotka_volterra", "fitzhugh_nagumo", "repressilator", "sirt_treatment", "hiv")
FITTED = ("lotka_volterra", "seir", "receptor_binding", "daisy_mamil3", "sirt_treatment")
NOISE = 1e-2
RIVALS = ("pypesto", "ess")
TICK = 0.01
"""The resolution of processor seconds of other programs."""


@dataclass(frozen=True)
class Ratio:
    """How many times our time a peer takes, by the median over some problems."""

    what: str
    peer: str
    problems: int
    ours: float  # seconds
    theirs: float
    ratio: float
    least: float
    note: str = ""

    @staticmethod
    def of(what: str, peer: str, pairs: list[tuple[float, float]], note: str = "") -> Ratio:
        """From seconds of ours and theirs on each problem."""
        ratios = [theirs / ours for ours, theirs in pairs]
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        return Ratio(what, peer, len(pairs), ours, theirs, statistics.median(ratios), min(ratios), note)

    @property
    def line(self) -> str:
        times = f"{_seconds(self.ours)} | {_seconds(self.theirs)} | {self.ratio:.3g} | {self.least:.3g}"
        return f"| {self.what} | {self.peer} | {self.problems} | {times} | {self.note} |"


def _seconds(value: float) -> str:
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


HEAD = (
    "| what | peer | problems | ours | theirs | theirs/ours, median | least | |",
    "|---|---|---:|---:|---:|---:|---:|---|",
)


def flow_ratios(seed: int) -> Iterator[Ratio]:
    """A simulation with all sensitivities at 750 points."""
    import heyoka

    from benchmarks import flow

    heyoka.llvm_state.set_diskcache_enabled(False)
    rows = [row for name in systems.names() for row in flow.measure(systems.load(name), 1, seed)]
    heyoka_pairs = [(row.ours_ms / 1e3, row.heyoka_ms / 1e3) for row in rows if row.heyoka_ms is not None]
    cvodes_pairs = [(row.ours_ms / 1e3, row.cvodes_ms / 1e3) for row in rows if row.cvodes_ms is not None]
    compiled = statistics.median(row.heyoka_compile_s for row in rows)
    yield Ratio.of("simulation with sensitivities", "heyoka", heyoka_pairs, f"and {compiled:.2g} s to compile a model")
    yield Ratio.of("simulation with sensitivities", "CVODES (CasADi)", cvodes_pairs)


def smooth_ratios(seed: int) -> Iterator[Ratio]:
    """All estimators of an output against one Gaussian process of scikit-learn."""
    from benchmarks import smooth
    from benchmarks.outputs import outputs

    chosen = [output for output in outputs(seed) if output.system in SMOOTHED and output.name == "y1"]
    races = [smooth.race(output, output.noisy(1e-4, seed)) for output in chosen]
    yield Ratio.of("smoothing one output, all estimators", "scikit-learn, one", [(race[0], race[1]) for race in races])


def root_ratios(seed: int) -> Iterator[Ratio]:
    """All roots of a square system at one target; ours from a fibre that is found once per model."""
    from benchmarks import algebra, explicit
    from odejet.algebra.library import Library
    from problems import phcpack

    if phcpack.executable() is None:
        raise ImportError("phc")
    pairs, once = [], []
    for name in ROOTS:
        system = systems.load(name)
        begin = time.perf_counter()
        fibre = Library(system.model).fibre(1)
        once.append(time.perf_counter() - begin)
        assert fibre is not None
        solved = algebra.exact(fibre, algebra.draw(system, np.random.default_rng(seed)))
        lean = explicit.square(name, beyond=0)
        _, data = explicit.generic(lean, seed)
        before = _children()
        phcpack.roots(lean, data, lambda text: phcpack.polyhedral(text, 300.0).roots)
        pairs.append((solved.seconds / len(solved.errors), max(_children() - before, TICK)))
    note = f"and {statistics.median(once):.2g} s for the fibre, once per model"
    yield Ratio.of("all roots at one target", "PHCpack", pairs, note)


def _children() -> float:
    """Processor seconds of ended child processes."""
    times = os.times()
    return times.children_user + times.children_system


def fit_ratios(seed: int) -> Iterator[Ratio]:
    """Whole fits in processor seconds; rivals until they had found their answer, and whether that was right."""
    protocol, budget = Protocol(seed), Budget()
    cells = [Cell(name, NOISE, 0) for name in FITTED]
    work(Task("odejet", cells[0], protocol, budget))  # kernels are compiled, or loaded, on first use
    ours = [work(Task("odejet", cell, protocol, budget)) for cell in cells]
    for rival in RIVALS:
        theirs = [work(Task(rival, cell, protocol, budget)) for cell in cells]
        worse = sum(other.error > 1.1 * own.error for own, other in zip(ours, theirs, strict=True))
        note = f"with a larger error in {worse} of {len(cells)}"
        both = list(zip(ours, theirs, strict=True))
        title = METHODS[rival].title
        yield Ratio.of("fit", title, [(own.timing.processor, other.timing.processor) for own, other in both], note)
        until = [(own.timing.processor, other.timing.found_at) for own, other in both]
        yield Ratio.of("fit, until it was found", title, until, note)


PARTS: dict[str, Callable[[int], Iterator[Ratio]]] = {
    "flow": flow_ratios,
    "smooth": smooth_ratios,
    "roots": root_ratios,
    "fits": fit_ratios,
}


def measured(parts: list[str], seed: int) -> Iterator[str]:
    yield from HEAD
    for part in parts:
        try:
            yield from (ratio.line for ratio in PARTS[part](seed))
        except ImportError as missing:
            yield f"| {part} | not measured: {missing.name or missing} is not installed | | | | | | |"


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks summary", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    given = options.parse_args(argv)
    lines = []
    for line in measured(given.parts, given.seed):
        print(line, flush=True)
        lines.append(line)
    if given.parts == list(PARTS):
        text = "\n".join(["# Ratios to peers, from one run on one machine", "", *lines])
        write_whole(RESULTS / "summary.md", text + "\n")
    else:
        print("(a part only: not written)", file=sys.stderr)
    return 0
