"""App: the page for models, data and fits, in a browser on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from odejet.cli.arguments import whole_number
from odejet.cli.console import Status
from odejet.errors import ModelError

FOLDER = "odejet-studies"


def describe(commands: Any) -> None:
    parser = commands.add_parser(
        "app",
        help="open the page: write equations, drop data, fit",
        description="Open a page in the browser to write equations, drop data, move sliders and fit. It is served on "
        "this machine only and needs nothing from elsewhere.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("folder", metavar="FOLDER", nargs="?", help=f"where studies are kept (default {FOLDER} in your home folder)")
    add("--port", metavar="N", type=whole_number(), default=0, help="the port of the page (default: any that is free)")
    add("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        from odejet.app.serving import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise ModelError("the page needs a web server; pip install 'odejet[app]'") from None
    folder = Path(arguments.folder).expanduser() if arguments.folder else Path.home() / FOLDER
    serve(folder.resolve(), arguments.port, not arguments.no_browser)
    return Status.DONE
