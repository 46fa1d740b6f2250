"""pyPESTO: where every start of a fit has led, as an HDF5 file that pyPESTO reads.

    pypesto.store.read_result("fit.hdf5", problem=True, optimize=True)

Unknowns that are positive are on the scale of log10, as PEtab problems mostly have them; the file says which.  The
value of the objective is the negative log-posterior, the log-likelihood without priors.
"""

from __future__ import annotations

import io
import math
import os
from typing import Any

import numpy as np

from odejet.attach import attach
from odejet.errors import ModelError
from odejet.extras import needed
from odejet.io import files
from odejet.result import Fit

OPTIMIZER = "odejet"


@attach(Fit.to_pypesto)
def write(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write a fit, whole or not at all."""
    content = dumped(fit)
    files.write_all({os.fspath(path): lambda file: file.write(content)})


def hdf5() -> Any:
    """The package that writes such files, or one sentence on how to get it."""
    return needed("h5py")


def dumped(fit: Fit) -> bytes:
    """The content of the file."""
    h5py = hdf5()
    if not fit.attempts:
        raise ModelError("the starts of this fit are not known: a fit that was saved and loaded has its optimum alone")
    bounds = np.array([fit.bounds[label] for label in fit.labels]).reshape(-1, 2)
    logarithmic = bounds[:, 0] >= 0
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        _problem(file.create_group("problem"), fit.labels, bounds, logarithmic, h5py.string_dtype())
        results = file.create_group("optimization/results")
        for number, one in enumerate(sorted(fit.attempts, key=lambda attempt: attempt.cost)):
            if not math.isfinite(one.cost):
                continue
            group = results.create_group(str(number))
            group["x"], group["x0"] = _scaled(one.end, logarithmic), _scaled(one.start, logarithmic)
            group.attrs.update(id=str(number), fval=one.cost, n_fval=one.evaluations, n_grad=one.evaluations)
            group.attrs.update(time=one.seconds, message=one.message, exitflag=int(one.settled), optimizer=OPTIMIZER)
    return buffer.getvalue()


def _problem(group: Any, labels: tuple[str, ...], bounds: np.ndarray, logarithmic: np.ndarray, text: Any) -> None:
    """What pyPESTO keeps of a problem: names, scales and bounds of its unknowns, none of which is fixed."""
    low, high = (_scaled(ends, logarithmic) for ends in bounds.T)
    group["lb_full"], group["ub_full"] = low, high
    group["lb_init_full"], group["ub_init_full"] = low, high
    group.create_dataset("x_names", data=list(labels), dtype=text)
    group.create_dataset("x_scales", data=["log10" if one else "lin" for one in logarithmic], dtype=text)
    group["x_fixed_indices"], group["x_fixed_vals"] = np.zeros(0, dtype=int), np.zeros(0)
    group.attrs["dim_full"] = len(labels)


def _scaled(values: np.ndarray, logarithmic: np.ndarray) -> np.ndarray:
    """Values on the scales of the file."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(logarithmic, np.log10(values), values)
