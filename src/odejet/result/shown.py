"""Shown: how a fit is looked at and kept in files, which packages further down provide.

Results know nothing of text, pictures, pages or formats; they declare what can be asked of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from odejet.attach import attached

if TYPE_CHECKING:
    import matplotlib.figure


class Shown:
    """What can be shown and written."""

    # --- looks ---

    @attached
    def summary(self, verbose: bool = False) -> str:
        """The table of estimates and the story of the fit, as text, all of it if `verbose`; compounds that the data
        determine are looked for, which may take some seconds."""
        raise NotImplementedError

    @attached
    def __str__(self) -> str:
        """The summary with what is known already."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self)

    @attached
    def _repr_html_(self) -> str:
        raise NotImplementedError

    @attached
    def plot(
        self, kind: str | os.PathLike[str] = "fit", path: str | os.PathLike[str] | None = None
    ) -> matplotlib.figure.Figure:
        """Draw "fit", data, fit and residuals of every series, or "residuals", how these stand to the predictions.

        `path` is a file to write (PNG, PDF or SVG); `fit.plot("fit.png")` is short for `fit.plot("fit", "fit.png")`.
        """
        raise NotImplementedError

    @attached
    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page that needs nothing else: verdict, table, plots, timings."""
        raise NotImplementedError

    # --- files ---

    @attached
    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names of the attributes, ready for JSON; `from_dict` reads them back."""
        raise NotImplementedError

    @classmethod
    @attached
    def from_dict(cls, document: Mapping[str, Any], where: str = "the fit") -> Self:
        """The fit in the plain values of a file; `where` names it in messages."""
        raise NotImplementedError

    @attached
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a JSON file, whole or not at all."""
        raise NotImplementedError

    @attached
    def to_pypesto(self, path: str | os.PathLike[str]) -> None:
        """Write every start and where it has led to an HDF5 file that pyPESTO reads; needs `odejet[pypesto]`."""
        raise NotImplementedError

    @attached
    def export(self, path: str | os.PathLike[str], experiment: str | None = None) -> None:
        """Write the fitted model of an experiment, by default the first, for other tools: as a Python function of NumPy
        and SciPy alone (.py), for Stan (.stan, with its data as JSON), in LaTeX (.tex), SBML, Antimony or TOML."""
        raise NotImplementedError

    @classmethod
    @attached
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The fit in a JSON file; nothing in it is executed."""
        raise NotImplementedError
