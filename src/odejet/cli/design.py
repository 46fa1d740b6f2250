"""Design: errors to expect of an experiment before it is done."""

from __future__ import annotations

import argparse
from typing import Any

from odejet.cli.arguments import add_values, described, read_noise, read_times, read_values
from odejet.cli.console import Status, put
from odejet.cli.posing import read_inputs
from odejet.progress import doing


def describe(commands: Any) -> None:
    details = "No data are needed: the values are what one expects. Changes are judged by what they do to all errors."
    summary = "standard errors to expect of an experiment, and what would make them smaller"
    parser = described(commands, run, "design", summary, details)
    add_values(parser)
    add = parser.add_argument
    add("--times", metavar="TIMES", required=True, help="of all outputs: START:STOP:COUNT, or a list such as 0,0.5,2")
    add(
        "--noise",
        metavar="NOISE",
        nargs="+",
        action="extend",
        required=True,
        help="a standard deviation such as 0.1, or a relative one such as 2%%; of one output: y1=0.1",
    )
    add("--inputs", metavar="FILE", help="samples of inputs (CSV): a column time and one per input")


def run(arguments: argparse.Namespace) -> int:
    from odejet.io.formats import read_model

    model = read_model(arguments.model, arguments.free)
    values, times = read_values(arguments.set, model), read_times(arguments.times)
    noise = read_noise(arguments.noise, model)
    inputs = read_inputs(arguments.inputs, model, times.min(), times.max()) if arguments.inputs else None

    from odejet.uncertainty.design import design

    parameters = {name: values[name] for name in model.parameters}
    states = {name: value for name, value in values.items() if name in model.states}
    with doing("finding the errors to expect", True):
        found = str(design(model, parameters, states, times, noise, inputs=inputs))
    put(f"{found}\n".encode())
    return Status.DONE
