"""Report: a saved fit as a page."""

from __future__ import annotations

import argparse
from typing import Any

from odejet.cli.arguments import is_same
from odejet.cli.console import Status
from odejet.errors import ModelError


def describe(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="a saved fit as a page with all plots",
        description="Write a fit that `odejet fit --json` saved as one HTML page.",
        allow_abbrev=False,
    )
    parser.add_argument("fit", metavar="FIT", help="fit file (JSON)")
    parser.add_argument("output", metavar="OUT", help="file to write to (HTML)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if is_same(arguments.fit, arguments.output):
        raise ModelError(f"{arguments.output}: this is the fit file; name another file to write to")

    from odejet.result import Fit

    Fit.load(arguments.fit).report(arguments.output)
    return Status.DONE
