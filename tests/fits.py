"""Fits to test with: refined from starts near the values that made the data, without a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from odejet import Data, Model, identify, simulate
from odejet.decide import Candidates, Identifiability, Provenance
from odejet.problem import Problem
from odejet.result import Fit
from odejet.search.refine import refine

PREDATORS = Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r"}, name="predators")
STRAIGHT = Model({"x": "b + 0*x"}, {"y": "x"}, name="straight line")
DRIVEN = Model(
    {"x": "-k*x + u", "z": "v - m*z"},
    {"y1": "x", "y2": "x + z"},
    {"u": "sin(t)", "v": None},
    bounds={"k": (0, 10)},
    fixed={"m": 0.5},
    name="driven",
)


def refined_fit(
    model: Model,
    data: Data,
    start: Any,
    noise: Any = None,
    weights: str = "likelihood",
    bounds: Any = None,
    **told: Any,
) -> Fit:
    """The fit to which a start leads."""
    problem = Problem(model, data, bounds, noise=noise, weights=weights)
    start = np.asarray(start, dtype=float)
    return Fit.of(problem, refine(problem.misfit, start, frame=problem.frame(start)), **told)


def predators(name: str = "predators", points: int = 80, seed: int = 1, second: str | None = None) -> Fit:
    """A fit with all that a report shows; `second` names a further experiment."""
    model = PREDATORS.replace(name=name)
    values, rng = {"k1": 0.7, "k2": 0.4, "k3": 0.5}, np.random.default_rng(seed)
    times = np.linspace(0, 20, points)

    def measured(label: str, r: float, w: float) -> Data:
        exact = simulate(model, values, {"r": r, "w": w}, times)["y1"]
        return Data(times, {"y1": exact + 0.05 * rng.normal(size=points)}, name=label)

    data = measured("experiment1", 1.2, 0.6)
    start = [1.2, 0.6]
    if second is not None:
        data, start = Data.join([data, measured(second, 2.0, 0.3)]), [*start, 2.0, 0.3]
    start = np.array([*start, *values.values()])
    names = {unknown.label: unknown.name for unknown in Problem(model, data).layout}
    cloud = Candidates(start * np.exp(0.2 * rng.normal(size=(30, len(start)))), rng.chisquare(5, 30), ("blend",) * 30)
    return refined_fit(
        model,
        data,
        start * np.exp(0.05 * rng.normal(size=len(start))),
        bounds=(0, 10),
        verdict=Identifiability.of(identify(model), names),
        candidates=cloud,
        provenance=Provenance("first rung", "blend", (3.25,), "algebra"),
        census={"solved": {"kept": 30, "not real": 12}, "refined": {"kept": 3}},
        stages={"smooth": 0.13, "solve": 0.05, "refine": 0.01},
        seconds=0.2,
    )


def driven(seed: int = 2) -> Fit:
    """Two experiments with sampled and other inputs, known sds, a known initial state and different grids."""
    rng = np.random.default_rng(seed)
    times, few = np.linspace(0, 5, 25), np.linspace(0.5, 4.5, 9)
    ramp = (np.array([0.0, 2.0, 2.0, 5.0]), np.array([1.0, 1.5, 0.5, 0.7]))
    parts = []
    for label, inputs, initial in (
        ("first", {"v": ramp}, {}),
        ("second", {"v": ramp, "u": "2*cos(t)"}, {"z": 1.5}),
    ):
        states = {"x": 1.0, "z": 0.4} | initial
        exact = simulate(DRIVEN, {"k": 0.8}, states, times, inputs=inputs)
        y1 = exact["y1"] + 0.02 * rng.normal(size=25)
        y2 = np.interp(few, times, exact["y2"]) + 0.03 * rng.normal(size=9)
        sds = {"y2": np.linspace(0.02, 0.04, 9)}
        parts.append(Data(None, {"y1": (times, y1), "y2": (few, y2)}, sds, inputs, label, initial))
    return refined_fit(DRIVEN, Data.join(parts), [0.9, 0.5, 1.1, 0.7])
