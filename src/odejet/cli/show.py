"""Show: a model file, checked and printed."""

from __future__ import annotations

import argparse
from typing import Any

from odejet.cli.arguments import described
from odejet.cli.console import Status, put


def describe(commands: Any) -> None:
    details = "A model that is shown is a model without mistakes: everything in the file is checked."
    parser = described(commands, run, "show", "check a model file and show the model", details)
    parser.add_argument("--latex", action="store_true", help="the equations in LaTeX")


def run(arguments: argparse.Namespace) -> int:
    from odejet.io.formats import read_model

    model = read_model(arguments.model, arguments.free)
    put(f"{model.latex() if arguments.latex else model!r}\n".encode())
    return Status.DONE
