"""Course: a table over time and its plot, as `simulate` and `predict` write them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from odejet.cli.console import put
from odejet.errors import ModelError
from odejet.extras import needed

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

PLOTS = (".png", ".pdf", ".svg")
"""How the name of a plot may end."""


def add_course(parser: argparse.ArgumentParser, what: str) -> None:
    """The options that `write_course` reads."""
    parser.add_argument("--plot", metavar="FILE", help=f"plot {what} into a file ({', '.join(PLOTS)})")
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="write the CSV into a file instead of stdout"
    )


def check_plot(arguments: argparse.Namespace) -> None:
    """Refuse a plot that cannot be, before any work."""
    if not arguments.plot:
        return
    if Path(arguments.plot).suffix.lower() not in PLOTS:
        raise ModelError(f"--plot {arguments.plot}: the name must end in one of {', '.join(PLOTS)}")
    needed("matplotlib")


def write_course(
    columns: Mapping[str, np.ndarray], figure: Callable[[], Figure], arguments: argparse.Namespace
) -> list[str]:
    """Write the plot if it is asked for, and the table to its file or to stdout; the files that were written."""
    from odejet.io import csv
    from odejet.io.figures import writer
    from odejet.io.files import Writer, write_all

    contents: dict[str, Writer] = {}
    if arguments.plot:
        contents[arguments.plot] = writer(figure(), arguments.plot)
    if arguments.output != "-":
        contents[arguments.output] = lambda file: file.writelines(csv.lines(columns))
    write_all(contents)
    if arguments.output == "-":
        put(*csv.lines(columns))
    return list(contents)
