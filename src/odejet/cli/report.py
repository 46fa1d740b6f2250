"""Report: a saved fit as a page."""

from __future__ import annotations

import argparse
from typing import Any

from odejet.cli.arguments import is_same
from odejet.cli.console import Status, put, told
from odejet.errors import ModelError
from odejet.io.files import check_writable
from odejet.progress import Progress


def describe(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="a saved fit as a page with all plots",
        description="Write a fit that `odejet fit --json` saved as one HTML page.",
        allow_abbrev=False,
    )
    parser.add_argument("fit", metavar="FIT", help="fit file (JSON)")
    parser.add_argument("output", metavar="OUT", help="file to write to (HTML); - is stdout")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if is_same(arguments.fit, arguments.output):
        raise ModelError(f"{arguments.output}: this is the fit file; name another file to write to")
    if arguments.output != "-":
        check_writable(arguments.output)

    from odejet.io.fits import read
    from odejet.report.html import page

    found = read(arguments.fit)
    if arguments.output == "-":
        put(page(found).encode())
    else:
        with Progress(True) as shown:
            shown.stage(f"writing {arguments.output}")
            found.report(arguments.output)
        told(arguments.output)
    return Status.DONE
