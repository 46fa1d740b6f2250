"""Show: a model file, checked and printed."""

from __future__ import annotations

import argparse
from typing import Any

from odejet.cli.arguments import described
from odejet.cli.console import Status, put
from odejet.cli.posing import read_checked


def describe(commands: Any) -> None:
    details = "Everything in the file is checked: a model that is shown has no mistakes."
    parser = described(commands, run, "show", "check a model file and show the model", details)
    parser.add_argument("--latex", action="store_true", help="the equations in LaTeX")


def run(arguments: argparse.Namespace) -> int:
    model = read_checked(arguments.model, arguments.free)
    put(f"{model.latex() if arguments.latex else model!r}\n".encode())
    return Status.DONE
