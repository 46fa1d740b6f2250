"""Solutions: whether fits of models that have several return all of them.

python -m benchmarks solutions [--seed 1] [--draws 10] [--noise 1e-4] [--models ...]

Two systems of the benchmark are observed through sums that do not tell their parts apart.  Exchanging the parts of one
solution gives every other, so what a fit returns can be checked without knowing what made the data.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

import odejet as oj
from problems import systems

ALIKE, SHARE = 1e-3, 0.1
"""Values differ by less than this, or than this share of their standard errors, if they are the same."""


@dataclass(frozen=True)
class Exchangeable:
    """A benchmark system with other outputs, and groups of names that go together through every exchange."""

    system: str
    outputs: Mapping[str, str]
    parts: tuple[tuple[str, ...], ...]

    @property
    def model(self) -> oj.Model:
        return systems.load(self.system).model.replace(outputs=dict(self.outputs))

    def partners(self, name: str) -> tuple[str, ...]:
        """What an exchange may put in the place of a name."""
        for group in zip(*self.parts, strict=True):
            if name in group:
                return group
        return (name,)

    def exchanged(self, values: Mapping[str, float]) -> Iterator[dict[str, float]]:
        """Every other solution."""
        for order in itertools.islice(itertools.permutations(self.parts), 1, None):
            renamed = {
                old: values[new]
                for olds, news in zip(self.parts, order, strict=True)
                for old, new in zip(olds, news, strict=True)
            }
            yield {**values, **renamed}


MODELS = {
    "receptor_binding": Exchangeable(
        "receptor_binding",
        {"y1": "L", "y2": "Ca + Cb"},
        (("Ca", "R1tot", "kon1", "koff1"), ("Cb", "R2tot", "kon2", "koff2")),
    ),
    "latent_subpopulation": Exchangeable(
        "latent_subpopulation",
        {"y1": "S", "y2": "I1 + I2 + I3", "y3": "R"},
        (("I1", "a1", "b1"), ("I2", "a2", "b2"), ("I3", "a3", "b3")),
    ),
}


def measured(case: Exchangeable, noise: float, rng: np.random.Generator) -> oj.Data:
    system, model = systems.load(case.system), case.model
    parameters, initial_state = systems.draw(system, rng)
    times = system.times()
    clean = oj.simulate(model, parameters, initial_state, times).outputs
    return oj.Data(
        times, {name: y + noise * abs(y.mean()) * rng.standard_normal(len(times)) for name, y in clean.items()}
    )


def missing(case: Exchangeable, fit: oj.Fit) -> int:
    """How many exchanges of the first solution are not among the others."""
    found = [{**one.parameters, **one.initial_state} for one in fit.solutions]
    others = list(case.exchanged(found[0]))
    errors = {name: max(fit.stderr[partner] for partner in case.partners(name)) for name in found[0]}
    return sum(not any(_alike(other, one, errors) for one in found[1:]) for other in others)


def _alike(one: Mapping[str, float], other: Mapping[str, float], errors: Mapping[str, float]) -> bool:
    """Whether two sets of values are the same beside how well the data determine them."""
    return all(abs(one[name] - other[name]) <= ALIKE * abs(one[name]) + SHARE * errors[name] for name in one)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks solutions", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--noise", type=float, default=1e-4)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    arguments = parser.parse_args(argv)
    for name in arguments.models:
        case, complete, seconds = MODELS[name], 0, []
        for draw in range(arguments.draws):
            data = measured(case, arguments.noise, np.random.default_rng([arguments.seed, draw, *name.encode()]))
            begin = time.process_time()
            fit = oj.fit(case.model, data, bounds=systems.protocol().bounds)
            seconds.append(time.process_time() - begin)
            lacks = missing(case, fit)
            complete += not lacks
            stages = ", ".join(f"{stage} {spent:.2f}" for stage, spent in fit.stages.items())
            print(
                f"{name} {draw}: {len(fit.solutions)} solutions, {lacks} missing, {fit.message} ({stages})", flush=True
            )
        print(
            f"{name}: all solutions in {complete} of {arguments.draws} draws, median {np.median(seconds):.2f} CPU s, "
            f"longest {max(seconds):.2f}",
            flush=True,
        )
    return 0
