"""Worker of the gate: times tasks with whichever odejet is on its path, by nothing but public names.

Run as `python -P gate_worker.py` with PYTHONPATH naming the code to measure, in a folder that has `examples`.  It says
first where its code lies, then answers each line of JSON by one.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import odejet as oj

PREDATORS = {"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}
RATES = {"k1": 1.0, "k2": 0.5, "k3": 0.7}
ROBERTSON = {
    "a": "-0.04*a + 1e4*b*c",
    "b": "0.04*a - 1e4*b*c - 3e7*b**2",
    "c": "3e7*b**2",
}


def example(name: str) -> tuple[oj.Model, oj.Data]:
    return oj.Model.from_toml(f"examples/{name}.toml"), oj.Data.from_csv(f"examples/{name}.csv")


def repeat(count: int, work: Callable[[], object]) -> None:
    """Do something that takes too little to be timed alone."""
    for _ in range(count):
        work()


def fitted(name: str, **options: Any) -> Callable[[], object]:
    model, data = example(name)
    return lambda: oj.fit(model, data, **options)


def identified() -> Callable[[], object]:
    models = [oj.Model.from_toml(f"examples/{name}.toml") for name in ("sirt", "receptor_binding", "michaelis_menten")]
    return lambda: [oj.identify(model, engine="elimination") for model in models]


def profiled() -> Callable[[], object]:
    """Profiles of one fit, each at a level of its own since a fit keeps those that it has."""
    model, data = example("lotka_volterra")
    fit, numbers = oj.fit(model, data, positive=True), itertools.count()
    return lambda: [
        fit.profile(name, level=0.95 - 1e-5 * next(numbers)) for _ in range(5) for name in ("k1", "k2", "k3")
    ]


def simulated(model: oj.Model, values: tuple[dict, dict], times: np.ndarray, count: int, **options: Any) -> Any:
    return partial(repeat, count, lambda: oj.simulate(model, *values, times, **options))


def made(task: str) -> Callable[[], object]:
    """Return the work of a task, with everything read and built that is not to be timed."""
    predators = oj.Model(PREDATORS, {"y": "r"}), (RATES, {"r": 1.0, "w": 0.5}), np.linspace(0.0, 20.0, 201)
    robertson = oj.Model(ROBERTSON, {"y": "a"}), ({}, {"a": 1.0, "b": 0.0, "c": 0.0}), np.geomspace(1e-3, 1e4, 40)
    makers: dict[str, Callable[[], Callable[[], object]]] = {
        "simulate": partial(simulated, *predators, 500),
        "sensitivities": partial(simulated, *predators, 500, sensitivities=True),
        "stiff": partial(simulated, *robertson, 300, start=0.0),
        "profile": profiled,
        "identify": identified,
        "decay": partial(fitted, "decay", positive=True),
        "enzyme": partial(fitted, "michaelis_menten", positive=True),
        "predators": partial(fitted, "lotka_volterra", positive=True),
        "experiments": partial(fitted, "two_experiments", positive=True),
    }
    return makers[task]()


def processor() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def main() -> None:
    print(json.dumps(oj.__file__), flush=True)
    ready: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        task = json.loads(line)["task"]
        try:
            if task not in ready:
                ready[task] = made(task)
            begin = processor()
            ready[task]()
            found: dict[str, Any] = {"seconds": processor() - begin}
        except Exception as error:  # whatever it is, the gate is to show it
            found = {"failure": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
