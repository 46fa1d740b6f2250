"""Explicit: the polynomial systems of the 25 systems, their sizes in the paper, and generic points on them."""

from __future__ import annotations

import functools
from math import factorial

import numpy as np

import odejet as oj
from problems import systems
from problems.prolong import Explicit, Variable, prolong

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
