"""Select: which equations are solved, for one shooting point and for two that share the parameters.

The paper's Step 5: the highest derivative order is made as small as possible, by exact ranks modulo primes.
"""

from __future__ import annotations

import time

from odejet.algebra.system import SquareSystem, join
from odejet.identify import globally, local, msolve, orders
from odejet.identify.quotient import Infinite
from odejet.jets.modular import Unlucky
from odejet.model import Model


def select(model: Model, points: int = 1, *, seed: int = 0, budget: float = 10.0) -> SquareSystem:
    """The square system of a model at one point or two, with its number of roots where `budget` seconds tell it."""
    joined = join(model, points)
    ranks = local.analyse(local.problem(joined.together), seed)
    square = orders.choose(ranks)
    fixed = tuple(joined.together.unknowns[i] for i in square.fixed)
    try:
        engine = globally.Engine(msolve.executable(), time.monotonic() + budget)
        roots = globally.roots(ranks, square, engine, seed)
    except (globally.OutOfTime, Infinite, Unlucky, msolve.Failed):
        roots = None
    return SquareSystem(joined, square.rows, fixed, roots)
