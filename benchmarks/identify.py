"""Identify: time per model for the 25 benchmark systems and the zoo of published models, and what hit the budget."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks import systems
from odejet import Model, Verdict, identify


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks identify", description=__doc__)
    parser.add_argument("--engine", choices=("auto", "msolve", "builtin"), default="auto")
    parser.add_argument("--budget", type=float, default=60.0, metavar="S", help="seconds per model")
    parser.add_argument("--only", choices=("benchmark", "zoo"), help="one of the two collections")
    parser.add_argument("names", nargs="*", help="models, by name")
    options = parser.parse_args(argv)
    for title, models in (("benchmark", _benchmark()), ("zoo", _zoo())):
        if options.only in (None, title):
            chosen = [(name, model) for name, model in models if not options.names or name in options.names]
            if chosen:
                _measure(title, chosen, options)
    return 0


def _benchmark() -> Iterator[tuple[str, Model]]:
    return ((name, systems.load(name).model) for name in systems.names())


def _zoo() -> Iterator[tuple[str, Model]]:
    if find_spec("tests") is None or find_spec("tests.zoo") is None:
        return iter(())
    from tests import zoo

    return ((entry.name, entry.model) for entry in zoo.ENTRIES)


def _measure(title: str, models: list[tuple[str, Model]], options: argparse.Namespace) -> None:
    print(
        f"{title}: {'model':36} {'unknowns':>8} {'lost':>4} {'order':>5} {'solutions':>9} {'roots':>6} {'seconds':>8}"
    )
    # The first call of a process loads kernels; it is not the model's doing.
    identify(Model({"x": "-k*x"}, {"y": "x"}))
    start, late = time.monotonic(), []
    for name, model in models:
        verdict = identify(model, budget=options.budget, engine=options.engine)
        print(_row(title, name, verdict), flush=True)
        if verdict.reason or verdict.roots is None:
            late.append(name)
    total = time.monotonic() - start
    print(f"{title}: {len(models)} models in {total:.1f} s with {verdict.method}", end="")
    print(f"; without a full answer in {options.budget:g} s: {', '.join(late)}\n" if late else "\n", flush=True)


def _row(title: str, name: str, verdict: Verdict) -> str:
    counts = ("?" if n is None else str(n) for n in (verdict.solutions, verdict.roots))
    cells = (len(verdict.model.unknowns), len(verdict.names("none")), max(verdict.orders.values()), *counts)
    widths = (8, 4, 5, 9, 6)
    numbers = " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{'':{len(title)}}  {name:36} {numbers} {verdict.seconds:8.2f}"
