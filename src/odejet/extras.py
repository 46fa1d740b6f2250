"""Extras: packages that odejet uses where they are there, and asks for where they are not.

A fit and its report need none of them.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from odejet.errors import ModelError

EXTRAS = {
    "matplotlib": "plot",
    "pandas": "pandas",
    "sympy": "sympy",
    "arviz": "bayes",
    "emcee": "bayes",
    "h5py": "pypesto",
    "libsbml": "petab",
    "antimony": "petab",
    "yaml": "petab",
    "petab_select": "select",
}
"""The extra that brings each package."""

_DISTRIBUTIONS = {"libsbml": "python-libsbml", "yaml": "pyyaml", "petab_select": "petab-select"}


def present(package: str) -> bool:
    """Whether a package is there."""
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:
        return False


def needed(package: str, module: str = "") -> Any:
    """A package, or a module of it, or one sentence on how to get it."""
    try:
        return importlib.import_module(f"{package}.{module}" if module else package)
    except ImportError:
        name = _DISTRIBUTIONS.get(package, package)
        told = f"this needs the package {name}; install it with pip install 'odejet[{EXTRAS[package]}]'"
        raise ModelError(told) from None
