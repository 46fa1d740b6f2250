"""Predict: outputs and states of a saved fit at any time, with bands."""

from __future__ import annotations

import argparse
from typing import Any

from odejet.cli.arguments import is_same, read_number, read_times
from odejet.cli.console import Status, complain, told
from odejet.cli.course import add_course, check_plot, write_course
from odejet.errors import ModelError
from odejet.io.files import check_writable
from odejet.progress import doing


def describe(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="outputs and states of a saved fit at any time, with bands",
        description="Write what a fit that `odejet fit --json` saved says of any time, past the data too, as CSV: a "
        "row per quantity and time, with the band of the curve and that of a new measurement.",
        epilog="Bands come from the curvature of the likelihood where that is to be trusted, and from profiles of the "
        "likelihood where it is not.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("fit", metavar="FIT", help="fit file (JSON)")
    add("--times", metavar="TIMES", help="START:STOP:COUNT, or a list such as 0,0.5,2 (default: those of the data)")
    add("--experiment", metavar="NAME", help="which experiment to predict, if there are several")
    add("--level", metavar="P", default="0.95", help="the probability of the bands (default %(default)s)")
    add(
        "--method",
        choices=("auto", "delta", "profile"),
        default="auto",
        help="bands by curvature, by profiles, or by either where it is right (default %(default)s)",
    )
    add("--states", action="store_true", help="the states too")
    add_course(parser, "the bands")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    times = None if arguments.times is None else read_times(arguments.times)
    level = read_number(arguments.level, "--level")

    from odejet.io.fits import read

    with doing("finding the bands of a prediction", True):
        found = read(arguments.fit).predict(times, arguments.experiment, level, arguments.method, arguments.states)
    if not found.success:
        return complain(found.message, Status.UNSOLVED)
    files = write_course(found.columns(arguments.states), lambda: found.plot(states=arguments.states), arguments)
    told(*files)
    if not found.trusted:
        complain("some bands are not to be trusted: their profiles took too long; ask for fewer times", Status.DONE)
    return Status.DONE


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what makes no sense, before any work."""
    check_plot(arguments)
    written = [path for path in (arguments.plot, arguments.output) if path and path != "-"]
    for path in written:
        if is_same(path, arguments.fit):
            raise ModelError(f"{path}: this is the fit file; name another file to write to")
        check_writable(path)
    if len(written) == 2 and is_same(*written):
        raise ModelError(f"{written[0]}: this is what -o writes too; name another file to write to")
