"""Page files: the report of a fit as an HTML file."""

from __future__ import annotations

import os

from odejet.attach import attach
from odejet.io import files
from odejet.progress import doing
from odejet.report.html import page
from odejet.result import Fit


@attach(Fit.report)
def write(fit: Fit, path: str | os.PathLike[str]) -> None:
    with doing(f"writing {os.fspath(path)}"):
        text = page(fit)
    files.write_all({os.fspath(path): lambda file: file.write(text.encode())})
