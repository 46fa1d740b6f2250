"""Methods: everything that is compared, by name, behind one interface: a problem in, an answer out.

All but odejet itself search with the same compiled objective and the same budget, so that what is compared
is how they search.  Each comes with the likelihood, where every output has its own noise, and as NAME-sse with the
plain sum of squares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.methods import evolution, multistart, oracle, ours, pesto, scatter, shade
from benchmarks.methods.problem import Answer, Budget, Problem
from odejet import Model

__all__ = ["METHODS", "PLAIN", "Answer", "Budget", "Method", "Problem", "families"]

PLAIN = "-sse"
"""Ends the name of a method that minimises the sum of squares."""


@dataclass(frozen=True)
class Method:
    """A way to fit: what it is called, what it is, and what it needs to know of a model before any data."""

    name: str
    title: str
    solve: Callable[[Problem], Answer]
    weighted: bool = True
    prepare: Callable[[Model], None] | None = None
    knows_truth: bool = False


def _registry() -> Mapping[str, Method]:
    own = [
        Method("odejet", "odejet", ours.fitted, prepare=ours.prepare),
        Method("odejet-sse", "odejet, unweighted", ours.fitted, weighted=False, prepare=ours.prepare),
        Method("odejet-unrefined", "odejet without refinement", ours.unrefined, prepare=ours.prepare),
        Method("odejet-aaa", "odejet, AAA only, without refinement", ours.rational, prepare=ours.prepare),
    ]
    others = [
        ("multistart", "multistart least squares", multistart.solve, False),
        ("shade", "SHADE", shade.solve, False),
        ("ess", "scatter search (pyPESTO)", scatter.solve, False),
        ("pypesto", "pyPESTO multistart", pesto.solve, False),
        ("de", "SciPy differential evolution", evolution.solve, False),
        ("truth", "fit started from the truth", oracle.solve, True),
    ]
    both = []
    for name, title, solve, knows in others:
        both.append(Method(name, title, solve, knows_truth=knows))
        both.append(Method(name + PLAIN, f"{title}, unweighted", solve, weighted=False, knows_truth=knows))
    return {method.name: method for method in (*own, *both)}


METHODS = _registry()


def families() -> dict[str, tuple[str, ...]]:
    """Names that stand for several methods."""
    own = tuple(name for name in METHODS if name.startswith("odejet"))
    oracles = tuple(name for name, method in METHODS.items() if method.knows_truth)
    baselines = tuple(name for name in METHODS if name not in (*own, *oracles))
    return {"ours": own, "baselines": baselines, "oracles": oracles, "all": tuple(METHODS)}
