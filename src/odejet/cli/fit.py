"""Fit: data in, a table, a file and a page out."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from odejet.cli.arguments import (
    check_files,
    described,
    read_box,
    read_known,
    read_noise,
    read_number,
    read_values_by_experiment,
)
from odejet.cli.console import Status, complain, put
from odejet.errors import DataError

if TYPE_CHECKING:
    from odejet.io.files import Writer


def describe(commands: Any) -> None:
    details = "Exit status: 0 certified, 1 fitted without a certificate, 2 bad input, 3 no fit."
    summary = "find all parameters and initial states from data"
    parser = described(commands, run, "fit", summary, details)
    add = parser.add_argument
    add("data", metavar="DATA", help="measurements (CSV): a column time and one per output, or PEtab's columns")
    add("--bounds", metavar=("LO", "HI"), nargs=2, help="where to look for every unknown; not needed")
    add("--positive", action="store_true", help="all unknowns are positive")
    add(
        "--noise",
        metavar="NOISE",
        nargs="+",
        action="extend",
        default=[],
        help="a known sd such as 0.1, a relative one such as 2%%, or relative; for one output, such as y1=0.1",
    )
    add("--start", metavar="T", help="when the initial state holds (default: the first time in the data)")
    add(
        "--values",
        metavar="EXPERIMENT:NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="what a parameter or an initial state is in an experiment: a number, or an expression in parameters",
    )
    add(
        "--fix",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="what it is in all experiments, such as D=0.2 or k3=k1",
    )
    add(
        "--local",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="parameters with a value of their own in each experiment",
    )
    add("--inputs", metavar="FILE", help="samples of inputs (CSV): a column time and one per input")
    add("--effort", choices=("quick", "auto", "full"), default="auto", help="how much to try (default %(default)s)")
    add("--seed", metavar="S", type=int, default=0, help="seed of random starts (default %(default)s)")
    add(
        "--jobs",
        metavar="N",
        type=int,
        default=1,
        help="cores it may use; one fit needs one (default 1)",
    )
    add("--time-limit", metavar="SECONDS", type=float, help="give up after so long (default 120; 1200 for full)")
    add(
        "--profile",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="intervals by the likelihood of unknowns or expressions, such as k1 or k1*k2",
    )
    add(
        "--intervals",
        choices=("fisher", "profile"),
        default="fisher",
        help="intervals of all unknowns by curvature, or by the likelihood too (default %(default)s)",
    )
    add("--json", metavar="FILE", help="write the whole fit into a file")
    add("--report", metavar="FILE", help="write a page with all plots (HTML)")
    add("-q", "--quiet", action="store_true", help="no table on stdout")


def run(arguments: argparse.Namespace) -> int:
    from odejet.data import Data
    from odejet.io import csv
    from odejet.io.files import write_all
    from odejet.model import Model

    model = Model.from_toml(arguments.model)
    check_files(arguments)
    bounds = read_box(arguments.bounds)
    noise = read_noise(arguments.noise, model)
    data = Data.from_csv(arguments.data)
    if arguments.inputs:
        data = data.driven(csv.read_inputs(arguments.inputs))

    from odejet.fitting import fit
    from odejet.io.fits import dumps
    from odejet.problem import Problem
    from odejet.report.html import page
    from odejet.uncertainty.derived import derived

    fixed, local = read_known(arguments.fix, "--fix"), arguments.local
    if arguments.start is not None:
        data = data.starting(read_number(arguments.start, "--start"))
    data = data.knowing(read_values_by_experiment(arguments.values), model.states)
    try:
        problem = Problem(model, data, bounds, arguments.positive, noise, fixed, local)
    except DataError as error:
        raise DataError(f"{arguments.data}: {error}") from None
    for name in arguments.profile:
        derived(name, model, problem.layout)
    found = fit(
        problem,
        seed=arguments.seed,
        jobs=arguments.jobs,
        effort=arguments.effort,
        progress=not arguments.quiet,
        time_limit=arguments.time_limit,
    )
    if not found.found:
        return complain(f"{arguments.data}: {found.message}", Status.UNSOLVED)
    contents: dict[str, Writer] = {}
    if arguments.json:
        contents[arguments.json] = lambda file: file.write(dumps(found).encode())
    if arguments.report:
        contents[arguments.report] = lambda file: file.write(page(found).encode())
    write_all(contents)
    if not arguments.quiet:
        asked = [*(found.labels if arguments.intervals == "profile" else ()), *arguments.profile]
        told = [f"  {found.profile(name).sentence}" for name in dict.fromkeys(asked)]
        put("\n".join([str(found), *(["", "  by the likelihood:", *told] if told else []), ""]).encode())
        for file in contents:
            print(f"written: {file}", file=sys.stderr)
    return Status.DONE if found.certificate.granted else Status.UNCERTIFIED
