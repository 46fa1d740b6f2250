"""Ceiling: how often a perfect fit would succeed, by the Fisher information at the truth.

With J the sensitivities of the outputs to the unknowns and S the covariance of the noise, the errors of the best fit
are normal, to first order:

    weighted        covariance (J' S^-1 J)^-1
    unweighted      covariance P S P',  P = (J'J)^-1 J'

Success asks for every unknown at once, so its probability is counted over draws of such errors.  They grow in
proportion to the noise, so that one set of draws tells every noise level.

python -m benchmarks ceiling [--seeds N]

computes the ceiling of N benchmarks, seed by seed: how much of a success rate is luck of the draw.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import cells
from benchmarks.cells import Cell, Draw, Protocol
from benchmarks.store import write_whole
from odejet.simulate.flow import Flow
from problems import systems

DRAWS = 2000
FILE = Path(__file__).parent / "results" / "ceiling" / "ceiling.csv"


@dataclass(frozen=True)
class Ceiling:
    """Largest relative errors at noise one, drawn for both losses."""

    weighted: np.ndarray
    unweighted: np.ndarray

    def success(self, noise: float, threshold: float, weighted: bool = True) -> float:
        """The probability that every relative error is below a threshold."""
        worst = self.weighted if weighted else self.unweighted
        return float(np.mean(worst * noise <= threshold))


def of_cell(cell: Cell, protocol: Protocol) -> Ceiling:
    return _of_trial(cell.system, cell.trial, protocol)


@functools.lru_cache(maxsize=2048)
def _of_trial(system: str, trial: int, protocol: Protocol) -> Ceiling:
    return ceiling(cells.draw(system, trial, protocol), protocol.scale)


def ceiling(truth: Draw, scale: str = "mean") -> Ceiling:
    jacobian, sds = relative_sensitivities(truth), noise_rows(truth, scale)
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((DRAWS, jacobian.shape[1]))
    informed = sds > 0  # an output whose mean is zero has no noise: it tells all it can, which is taken for granted
    with np.errstate(divide="ignore", invalid="ignore"):
        whitened = jacobian[informed] / sds[informed, None]
    return Ceiling(worst(weighted_root(whitened), draws), worst(unweighted_root(jacobian, sds), draws))


def relative_sensitivities(truth: Draw) -> np.ndarray:
    """Derivatives of all outputs at all times by the logarithms of what can be known; output after output."""
    model, flow = truth.system.model, Flow(truth.system.model)
    run = flow.run(
        [truth.parameters[name] for name in model.parameters],
        [truth.initial_state[name] for name in model.states],
        truth.times,
    )
    names = flow.unknowns()
    kept = [i for i, name in enumerate(names) if name not in truth.system.unidentifiable]
    sizes = np.array([abs(truth.values[names[i]]) for i in kept])
    by_output = np.moveaxis(run.outputs[:, :, 1:], 1, 0)[:, :, kept]
    return by_output.reshape(-1, len(kept)) * sizes


def noise_rows(truth: Draw, scale: str) -> np.ndarray:
    """The sd of every row at noise one."""
    return np.repeat(list(cells.noise_levels(truth, 1.0, scale).values()), len(truth.times))


def weighted_root(whitened: np.ndarray) -> np.ndarray:
    """A matrix A whose A A' is the covariance of a weighted fit."""
    _, inverse = _decomposed(whitened)
    return inverse


def unweighted_root(jacobian: np.ndarray, sds: np.ndarray) -> np.ndarray:
    """A matrix A whose A A' is the covariance of an unweighted fit."""
    u, inverse = _decomposed(jacobian)
    return inverse @ np.linalg.qr(u * sds[:, None], mode="r").T


def _decomposed(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U and D V S^-1 of a matrix U S V' D^-1 with columns scaled to one.

    What is lost in rounding stays as uncertain as rounding leaves it: to take it for known would be to take the worst
    for the best.
    """
    sizes = np.linalg.norm(matrix, axis=0)
    units = 1 / np.where(sizes > 0, sizes, 1.0)
    u, s, vt = np.linalg.svd(matrix * units, full_matrices=False)
    return u, units[:, None] * vt.T / np.maximum(s, np.finfo(float).eps * s[0])


def worst(root: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The largest error of every draw."""
    return np.abs(draws @ root.T).max(axis=1)


# --- the luck of the draw ---


@dataclass(frozen=True)
class Luck:
    """SR-10 in percent that a perfect weighted fit reaches in benchmarks of ten draws per system."""

    expected: float  # over all seeds
    spread: float  # standard deviation of what one benchmark shows
    benchmarks: int


def luck(noise: float) -> Luck | None:
    """From the table of many seeds; None if it lacks this noise level."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if float(row["noise"]) == noise]
    if not rows:
        return None
    rates = np.array([float(row["weighted"]) for row in rows])
    of_noise = np.array([float(row["sd_of_noise"]) for row in rows])
    between = rates.var(ddof=1) if len(rates) > 1 else 0.0
    return Luck(float(rates.mean()), float(np.sqrt(between + np.mean(of_noise**2))), len(rows))


def many(seeds: range) -> str:
    """Expected SR-10 by seed and noise, and how far the noise alone scatters the weighted one, in percent."""
    text, protocol = io.StringIO(), systems.protocol()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["seed", "noise", "weighted", "unweighted", "sd_of_noise"])
    for seed in seeds:
        trials = [(name, trial) for name in systems.names() for trial in range(protocol.trials)]
        found = [ceiling(cells.draw(name, trial, Protocol(seed))) for name, trial in trials]
        for noise in protocol.noise:
            weighted, plain = (np.array([one.success(noise, 0.1, kind) for one in found]) for kind in (True, False))
            scatter = 100 * np.sqrt(np.sum(weighted * (1 - weighted))) / len(found)
            rates = 100 * weighted.mean(), 100 * plain.mean(), scatter
            writer.writerow([seed, f"{noise:g}", *(f"{rate:.4g}" for rate in rates)])
        print(f"seed {seed} of {seeds[-1]}", flush=True)
    return text.getvalue()


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks ceiling", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--seeds", type=int, default=20, help="how many, from 1")
    given = options.parse_args(argv)
    write_whole(FILE, many(range(1, given.seeds + 1)))
    print(FILE)
    return 0
