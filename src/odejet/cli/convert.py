"""Convert: a model file in another format."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from odejet.cli.arguments import described, is_same
from odejet.cli.console import Status
from odejet.errors import ModelError


def describe(commands: Any) -> None:
    details = (
        "Formats go by suffix: .toml, .xml or .sbml (SBML), .ant (Antimony). TOML alone keeps bounds and experiments."
    )
    parser = described(commands, run, "convert", "write a model file in another format", details)
    parser.add_argument("output", metavar="OUT", help="the file to write (.toml, .xml, .sbml or .ant)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no words on stderr")


def run(arguments: argparse.Namespace) -> int:
    from odejet.io.formats import read_model, write_model

    if is_same(arguments.model, arguments.output):
        raise ModelError(f"{arguments.output}: this is the model file; name another file to write to")
    model = read_model(arguments.model, arguments.free)
    write_model(model, arguments.output)
    if not arguments.quiet:
        print(f"written: {arguments.output}", file=sys.stderr)
    return Status.DONE
