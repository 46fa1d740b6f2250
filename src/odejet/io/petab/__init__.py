"""PEtab: estimation problems as systems biology writes them, versions 1 and 2, read and written."""

from __future__ import annotations

import os

from odejet.io.petab.posing import pose
from odejet.problem import Problem


def read_petab(path: str | os.PathLike[str]) -> Problem:
    """The problem that a YAML file of PEtab describes, version 1 or 2, with its model in SBML.

    Estimated parameters are the unknowns, with their bounds and priors; `problem.nominal` has the published values.
    """
    return pose(path).problem
