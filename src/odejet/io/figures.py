"""Figure files: what draws itself, into a file too; the format goes by its suffix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from odejet.attach import attach
from odejet.errors import ModelError, nearest
from odejet.io import files
from odejet.report import figures
from odejet.report.posterior import pictures
from odejet.result import Fit, Prediction
from odejet.simulate import Simulation
from odejet.uncertainty.posterior import Posterior
from odejet.uncertainty.profile import Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")
"""How the name of a figure may end."""

DOTS_PER_INCH = 150

Name = str | os.PathLike[str] | None


KINDS = {"fit": figures.fit_figure, "residuals": figures.diagnostic_figure}
"""What `fit.plot` draws."""


@attach(Fit.plot)
def fit_figure(fit: Fit, kind: str | os.PathLike[str] = "fit", path: Name = None) -> Figure:
    if path is None and suffix(kind):
        kind, path = "fit", kind
    if kind not in KINDS:
        raise ModelError(f"there is no plot {kind!r}{nearest(str(kind), KINDS)}; there are {', '.join(KINDS)}")
    check(path)
    return written(KINDS[str(kind)](fit), path)


@attach(Prediction.plot)
def prediction_figure(prediction: Prediction, path: Name = None, *, states: bool = True) -> Figure:
    check(path)
    return written(figures.prediction_figure(prediction, states), path)


@attach(Profile.plot)
def profile_figure(profile: Profile, path: Name = None) -> Figure:
    check(path)
    return written(figures.profile_figure(profile), path)


@attach(Simulation.plot)
def simulation_figure(
    simulation: Simulation, path: Name = None, *, measured: Mapping[str, np.ndarray] | None = None
) -> Figure:
    check(path)
    return written(figures.simulation_figure(simulation, measured), path)


@attach(Posterior.plot)
def posterior_figure(posterior: Posterior, path: Name = None) -> Figure:
    check(path)
    return written(figures.figure_of(pictures(posterior)), path)


def check(path: Name) -> None:
    """Refuse a name that no figure can have, before any work."""
    if path is not None and suffix(path) not in FORMATS:
        raise ModelError(f"{os.fspath(path)}: the name of a figure must end in one of {', '.join(FORMATS)}")


def suffix(path: str | os.PathLike[str]) -> str:
    return Path(path).suffix.lower()


def writer(figure: Figure, path: str | os.PathLike[str]) -> files.Writer:
    """What writes a figure into the file of this name."""
    return lambda file: figure.savefig(file, format=suffix(path).removeprefix("."), dpi=DOTS_PER_INCH)


def written(figure: Figure, path: Name) -> Figure:
    """The figure itself, after writing it if a file is named."""
    if path is not None:
        files.write_all({os.fspath(path): writer(figure, path)})
    return figure
