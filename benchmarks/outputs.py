"""Outputs: the measured series of the benchmark systems, with the truth beside them.

One `Output` is one output of one system for one draw of parameters and initial states, by the protocol of the paper:
750 equispaced points, everything uniform in [0.1, 0.9], noise of sd eta*|mean y|.  The exact derivatives at interior
points come from Taylor arithmetic on the model, never from differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from odejet import simulate
from odejet.jets.numeric import jets
from odejet.model.tape import build
from problems import systems

NOISES = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)
POINTS = 750
LARGEST = 1e100
"""Draws whose outputs leave this range have blown up, whatever the integrator says."""


@dataclass(frozen=True, eq=False)
class Output:
    system: str
    name: str
    times: np.ndarray
    clean: np.ndarray
    interior: np.ndarray
    truth: np.ndarray
    """Derivatives 0..h at the interior points, of shape (points, h + 1)."""
    shaken: np.ndarray
    """The same from states that differ by a relative 1e-13: what rounding in the states does to the truth."""

    def noisy(self, eta: float, seed: int) -> np.ndarray:
        """The series with noise of sd eta*|mean|, the same standard normal draw for every eta."""
        rng = np.random.default_rng([seed, crc32(f"{self.system}/{self.name}".encode())])
        return self.clean + eta * abs(self.clean.mean()) * rng.standard_normal(len(self.clean))

    @property
    def scales(self) -> np.ndarray:
        """The size of each derivative over the interior; for a constant, its value over powers of the time span."""
        sizes = rms(self.truth)
        span = self.times[-1] - self.times[0]
        floor = 1e-12 * np.abs(self.clean).max() / span ** np.arange(len(sizes))
        return np.where(sizes > floor, sizes, 1e12 * floor)

    @property
    def uncertainty(self) -> np.ndarray:
        """How well the truth is known, relative to the scales: below this, errors are not told apart.

        On a strongly attracting slow manifold (Brusselator) rounding of the states ruins high derivatives.
        """
        return np.fmax(rms(self.shaken - self.truth) / self.scales, 1e-14)

    def errors(self, estimates: np.ndarray) -> np.ndarray:
        """Root mean square error of derivatives 0..h over the interior, relative to the scales."""
        orders = estimates.shape[1]
        return rms(estimates - self.truth[:, :orders]) / self.scales[:orders]


def rms(columns: np.ndarray) -> np.ndarray:
    """Root mean square of each column, safe against overflow; infinite where a column is not finite."""
    largest = np.abs(columns).max(axis=0)
    scale = np.where(np.isfinite(largest) & (largest > 0), largest, 1.0)
    sizes = scale * np.sqrt(np.mean((columns / scale) ** 2, axis=0))
    return np.where(np.isfinite(sizes), sizes, np.inf)


def outputs(seed: int, order: int = 6, points: int = POINTS, margin: float = 0.1, places: int = 41) -> Iterator[Output]:
    """Every output of every system for one draw each, with `places` interior points at least `margin` from the ends."""
    for name in systems.names():
        yield from _of_system(systems.load(name), seed, order, points, margin, places)


def _of_system(
    system: systems.System, seed: int, order: int, points: int, margin: float, places: int
) -> Iterator[Output]:
    model, (low, high) = system.model, system.time
    rng = np.random.default_rng([seed, crc32(system.name.encode())])
    times = system.times(points)
    interior = np.linspace(low + margin * (high - low), high - margin * (high - low), places)
    while True:
        parameters, initial = systems.draw(system, rng)
        sim = simulate(model, parameters, initial, times)
        if sim.success and max(np.abs(sim[name]).max() for name in model.outputs) < LARGEST:
            break
    inside = simulate(model, parameters, initial, np.concatenate([[low], interior]))
    states = np.column_stack([inside.states[name][1:] for name in model.states])
    values = np.array([parameters[name] for name in model.parameters])
    tape = build(model)
    signs = rng.choice([-1.0, 1.0], states.shape)
    truth, shaken = (
        jets(tape, start, values, interior, order=order).output_derivatives[..., 0]
        for start in (states, states * (1 + 1e-13 * signs))
    )
    for i, name in enumerate(model.outputs):
        yield Output(system.name, name, times, sim[name], interior, truth[:, i], shaken[:, i])
