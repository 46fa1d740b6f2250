"""Compare: saved fits of different models to the same data."""

from __future__ import annotations

import argparse
from typing import Any

from odejet.cli.console import Status, put
from odejet.errors import ModelError
from odejet.progress import doing


def describe(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="saved fits to the same data side by side, by AIC and BIC",
        description="Show fits that `odejet fit --json` saved in one table, the best first: log-likelihood, AIC, AICc, "
        "BIC, and weights by AICc.",
        allow_abbrev=False,
    )
    parser.add_argument("fits", metavar="FIT", nargs="+", help="fit files (JSON)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from odejet.io.fits import read
    from odejet.result import compare

    found = [read(path) for path in arguments.fits]
    names = [fit.model.name for fit in found]
    if len(set(names)) < len(names):  # files tell apart what models do not
        names = list(arguments.fits)
    if len(set(names)) < len(names):
        raise ModelError(f"{max(names, key=names.count)}: this file is named twice; name each fit once")
    with doing("comparing fits", True):
        ranking = compare(dict(zip(names, found, strict=True)))
    put(f"{ranking}\n".encode())
    return Status.DONE
