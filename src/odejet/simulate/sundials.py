"""SUNDIALS: stiff models that are too large for collocation, by the BDF methods of CVODE (Cohen and Hindmarsh 1996).

The states and their sensitivities are integrated together.  Ordered by lanes, the Jacobian of the whole is banded: one
copy of the states' Jacobian per lane (second derivatives are left out, which Newton's method does not mind).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO

import numpy as np

Slopes = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(times, rows of value and tangents at each) -> their time derivatives, of shape (points, states, lanes)."""


def integrate(
    slopes: Slopes,
    jacobian: Slopes,
    start: float,
    rows: np.ndarray,
    times: np.ndarray,
    tolerance: float,
    max_steps: int,
) -> np.ndarray:
    """Rows of value and tangents at those of `times`, which lead away from `start`, that were reached."""
    for level in ("WARNING", "ERROR"):  # what goes wrong is told by the outcome, not on the terminal
        os.environ.setdefault(f"SUNLOGGER_{level}_FILENAME", os.devnull)
    from sksundae.cvode import CVODE

    n, lanes = rows.shape
    seeds = np.zeros((1, n, 1 + n))
    seeds[0, np.arange(n), 1 + np.arange(n)] = 1

    def rates(t: float, y: np.ndarray, out: np.ndarray) -> None:
        out[:] = slopes(np.array([t]), y.reshape(1, lanes, n).transpose(0, 2, 1))[0].T.ravel()

    def banded(t: float, y: np.ndarray, _: np.ndarray, matrix: np.ndarray) -> None:
        seeds[0, :, 0] = y[:n]
        block = jacobian(np.array([t]), seeds)[0, :, 1:]
        for lane in range(lanes):
            matrix[lane * n : (lane + 1) * n, lane * n : (lane + 1) * n] = block

    # Absolute tolerances stop small tangents from ruling the step; they follow the size of each lane.
    floor = np.maximum(np.abs(rows).max(axis=0), 1e-3 * np.abs(rows[:, :1]).max())
    solver = CVODE(
        rates,
        rtol=tolerance,
        atol=np.repeat(tolerance * 1e-3 * np.maximum(floor, 1e-300), n),
        linsolver="band",
        lband=n - 1,
        uband=n - 1,
        jacfn=banded,
        max_num_steps=max_steps,
    )
    # CVODE wants each time once, and none that is the start.
    ahead, positions = np.unique(np.abs(times - start), return_inverse=True)
    grid = start + np.sign(times[-1] - start) * ahead[ahead > 0]
    with np.errstate(all="ignore"), redirect_stdout(StringIO()):  # failures are printed, and told by the outcome anyway
        solution = solver.solve(np.r_[start, grid], rows.T.ravel())
    # For a single time it gives all its steps on the way.
    told, solved = (solution.t[[0, -1]], solution.y[[0, -1]]) if len(grid) == 1 else (solution.t, solution.y)
    arrived = np.isclose(told, np.r_[start, grid][: len(told)], rtol=1e-14, atol=0)
    good = int(np.cumprod(arrived & np.all(np.isfinite(solved), axis=1)).sum())
    values = solved[:good].reshape(good, lanes, n).transpose(0, 2, 1)
    places = positions + (ahead[0] > 0)
    done = int(np.searchsorted(places, good))
    return np.ascontiguousarray(values[places[:done]])
