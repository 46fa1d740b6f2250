"""The command line: `odejet fit`, `sample`, `report`, `predict`, `compare`, `select`, `identify`, `simulate`, `design`,
`show`, `convert`, `app` and `run`, a module each.

A command is a pair of functions: `describe` describes its arguments, `run` runs it and returns an exit status.  Results
go to files or to stdout, words to stderr.  Bad input gets one sentence and exit status 2, a model that cannot be solved
or fitted exit status 3, and then nothing is written.  A fit without a certificate is written, with exit status 1.  Of a
fit that was found, what can be written is written: a file that cannot be is told last, with exit status 2.

What takes long to import is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence

from odejet import __version__
from odejet.cli import (
    app,
    compare,
    convert,
    design,
    fit,
    identify,
    predict,
    report,
    run,
    sample,
    select,
    show,
    simulate,
)
from odejet.cli.arguments import Parser, spelled_out
from odejet.cli.console import Status, complain
from odejet.errors import DataError, ModelError
from odejet.startup import begun

COMMANDS = fit, sample, report, predict, compare, select, identify, simulate, design, show, convert, app, run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        begun()
        arguments = _parser().parse_args(spelled_out(sys.argv[1:] if argv is None else argv))
        status: int = arguments.run(arguments)
        return status
    except (ModelError, DataError) as error:
        return complain(str(error), Status.BAD_INPUT)
    except MemoryError:
        return complain("the memory is not large enough for this; ask for fewer times", Status.BAD_INPUT)
    except KeyboardInterrupt:
        return complain("interrupted", Status.INTERRUPTED)
    except BrokenPipeError:
        return Status.BROKEN_PIPE


@functools.cache
def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="odejet",
        description="Fit ordinary differential equations to data, without initial guesses, and tell what can be known.",
        epilog="To begin: odejet fit model.toml data.csv --report fit.html. "
        "Exit status: 0 done, 1 fitted without a certificate, 2 bad input, 3 not solved or not fitted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"odejet {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.describe(commands)
    return parser
