"""Jets over real and complex numbers: the Taylor series of states and outputs at given points, with tangents.

This is the map Phi of the method, (x(t0), p) -> (y_i^(j)(t0)), and its Jacobian.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np

from odejet.jets.kernel import MAX_ORDER, TABLES, lay_out
from odejet.jets.lanes import padded
from odejet.jets.registers import expand_points
from odejet.model.tape import Tape

_COMPLEX_TABLES = tuple(table.astype(complex) for table in TABLES)


@dataclass(frozen=True)
class Jets:
    """Taylor coefficients y^(k)/k! of shape (points, quantities, orders, 1 + tangents).

    Lane 0 is the value; the others are its derivatives with respect to the states and then the parameters.
    """

    states: np.ndarray
    outputs: np.ndarray

    @property
    def output_derivatives(self) -> np.ndarray:
        """The derivatives y^(k) themselves."""
        return self.outputs * _factorials(self.outputs.shape[2])


def _factorials(orders: int) -> np.ndarray:
    return np.array([float(factorial(k)) for k in range(orders)])[:, None]


def jets(
    tape: Tape,
    states: np.ndarray,
    parameters: np.ndarray,
    times: np.ndarray | float = 0.0,
    *,
    order: int,
    tangents: bool = False,
    inputs: np.ndarray | None = None,
) -> Jets:
    """Series at one point or, with a leading axis, at many; complex where any argument is.

    `inputs` holds the Taylor coefficients (points, inputs, order + 1) of the inputs of a tape built with `free_inputs`.
    """
    if not 0 <= order <= MAX_ORDER:
        raise ValueError(f"the order must be between 0 and {MAX_ORDER}, not {order}")
    points = max(np.ndim(states) - 1 and len(states), np.ndim(parameters) - 1 and len(parameters), np.size(times))
    kind = complex if any(np.iscomplexobj(a) for a in (states, parameters, times, inputs) if a is not None) else float
    n, m = len(tape.states), len(tape.parameters)
    used = 1 + (n + m if tangents else 0)
    lanes = used if kind is complex else padded(used)
    series = np.zeros((points, len(tape.inputs), order + 1), dtype=kind)
    if inputs is not None:
        series[:] = inputs
    state_series, output_series = expand_points(
        lay_out(tape, lanes, order + 2, free_states=True),
        tape.constant_values.astype(kind),
        seeded(parameters, points, m, lanes, 1 + n if tangents else None, kind),
        seeded(states, points, n, lanes, 1 if tangents else None, kind),
        np.broadcast_to(np.asarray(times, dtype=kind), points).copy(),
        series,
        np.zeros((points, 0), dtype=kind),
        order,
        _COMPLEX_TABLES if kind is complex else TABLES,
        0,
    )
    return Jets(state_series[..., :used], output_series[..., :used])


def seeded(values: np.ndarray, points: int, count: int, lanes: int, first: int | None, kind: type) -> np.ndarray:
    """Rows of value and tangents: the tangent of quantity i is one in lane first + i."""
    rows: np.ndarray = np.zeros((points, count, lanes), dtype=kind)
    rows[:, :, 0] = values
    if first is not None:
        rows[:, np.arange(count), first + np.arange(count)] = 1
    return rows
