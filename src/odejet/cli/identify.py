"""Identify: what can be known at all, as a table or as JSON."""

from __future__ import annotations

import argparse
from typing import Any, Literal

from odejet.cli.arguments import described, seconds, whole_number
from odejet.cli.console import Status, put
from odejet.progress import Progress


def describe(commands: Any) -> None:
    details = "The answer holds for data without noise; it comes from the model alone and needs no data."
    summary = "tell which parameters and initial states can be known at all"
    parser = described(commands, run, "identify", summary, details)
    add = parser.add_argument
    add("--json", action="store_true", help="the verdict as JSON instead of a table")
    add(
        "--functions",
        metavar="EXPRESSION",
        nargs="+",
        action="extend",
        default=[],
        help="expressions in parameters and initial states to be judged too, such as k1*k2",
    )
    add(
        "--inputs",
        choices=("generic", "actual"),
        default="generic",
        help="take inputs to be any that excite the model enough, or those in the file (default %(default)s)",
    )
    add(
        "--experiments",
        metavar="N",
        type=_experiments,
        default=1,
        help="ask what so many experiments with the same parameters tell, or any number of them (default %(default)s)",
    )
    add("--budget", metavar="SECONDS", type=seconds, default=60.0, help="stop counting solutions then (default 60)")
    add("--seed", metavar="S", type=whole_number(), default=0, help="seed of the random points (default %(default)s)")


def _experiments(text: str) -> int | Literal["any"]:
    if text == "any":
        return "any"
    try:
        return whole_number(1)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; any is for any number") from None


def run(arguments: argparse.Namespace) -> int:
    from odejet.io.formats import read_model

    model = read_model(arguments.model, arguments.free)

    from odejet.identifying import identify

    asked = arguments.functions, arguments.inputs, arguments.budget, arguments.seed
    with Progress(True, arguments.budget) as shown:
        shown.stage("identify")
        verdict = identify(model, *asked, experiments=arguments.experiments)
    put(f"{verdict.to_json() if arguments.json else verdict}\n".encode())
    return Status.DONE
