"""Fit: data in, a table, a file and a page out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odejet.cli.arguments import (
    check_files,
    described,
    read_box,
    read_known,
    read_noise,
    read_number,
    read_texts,
    read_values_by_experiment,
    seconds,
    whole_number,
)
from odejet.cli.console import Status, complain, put
from odejet.cli.networks import check_unknowns, is_network, is_problem
from odejet.errors import DataError, ModelError
from odejet.numerals import duration
from odejet.progress import Progress

if TYPE_CHECKING:
    from odejet.problem import Problem
    from odejet.result import Fit


NOTICED = 0.5
"""Seconds of work beside the fit that are told."""


def describe(commands: Any) -> None:
    details = "Exit status: 0 certified, 1 fitted without a certificate, 2 bad input, 3 no fit."
    summary = "find all parameters and initial states from data"
    parser = described(commands, run, "fit", summary, details)
    add = parser.add_argument
    add(
        "data",
        metavar="DATA",
        nargs="?",
        help="measurements (CSV): a column time and one per output, or PEtab's columns; a PEtab problem has its own",
    )
    add("--bounds", metavar=("LO", "HI"), nargs=2, help="where to look for every unknown; not needed")
    add("--positive", action="store_true", help="all unknowns are positive")
    add(
        "--noise",
        metavar="NOISE",
        nargs="+",
        action="extend",
        default=[],
        help="a known sd such as 0.1, a relative one such as 2%%, relative, or a law such as 'lognormal(s)'; for one "
        "output, such as y1=0.1",
    )
    add(
        "--prior",
        metavar="NAME=PRIOR",
        nargs="+",
        action="extend",
        default=[],
        help="what is known of an unknown before the data, such as 'k1=lognormal(log(0.3), 0.5)'",
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
    add("--doses", metavar="FILE", help="what was given (CSV): columns time, state, amount and perhaps duration, every")
    add("--inputs", metavar="FILE", help="samples of inputs (CSV): a column time and one per input")
    add("--effort", choices=("quick", "auto", "full"), default="auto", help="how much to try (default %(default)s)")
    add("--seed", metavar="S", type=whole_number(), default=0, help="seed of random starts (default %(default)s)")
    add(
        "--jobs",
        metavar="N",
        type=whole_number(1),
        default=1,
        help="cores on which starts are tried and experiments simulated; the answer is the same for any (default 1)",
    )
    add("--time-limit", metavar="SECONDS", type=seconds, help="give up after so long (default 120; 1200 for full)")
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
    add("--json", metavar="FILE", help="write the whole fit into a file; - is stdout, and words then go to stderr")
    add("--report", metavar="FILE", help="write a page with all plots (HTML); - is stdout")
    add("--pypesto", metavar="FILE", help="write every start and where it has led for pyPESTO (HDF5)")
    add("-v", "--verbose", action="store_true", help="all that was tried, and the time of every stage")
    add("-q", "--quiet", action="store_true", help="no table on stdout")


def run(arguments: argparse.Namespace) -> int:
    from odejet.fitting import fit
    from odejet.io.pypesto import hdf5

    if arguments.pypesto:
        hdf5()  # before the fit, not after it
    problem = _read(arguments) if is_problem(arguments.model) else _posed(arguments)
    found = fit(
        problem,
        seed=arguments.seed,
        jobs=arguments.jobs,
        effort=arguments.effort,
        progress=not arguments.quiet,
        time_limit=arguments.time_limit,
    )
    if not found.found:
        return complain(f"{arguments.data or arguments.model}: {found.message}", Status.UNSOLVED)
    return _delivered(found, arguments)


_OF_PROBLEMS = ("bounds", "positive", "noise", "prior", "start", "values", "fix", "local", "doses", "inputs", "free")
"""Options that tell what a PEtab problem tells itself."""


def _read(arguments: argparse.Namespace) -> Problem:
    """The problem in a PEtab file."""
    from odejet.io.petab import read_petab
    from odejet.uncertainty.derived import derived

    for name in ("data", *_OF_PROBLEMS):
        if getattr(arguments, name):
            shown = "the data" if name == "data" else f"--{name}"
            raise ModelError(f"{arguments.model}: a PEtab problem tells this itself; leave out {shown}")
    check_files(arguments)
    problem = read_petab(arguments.model)
    for name in arguments.profile:
        derived(name, problem.model, problem.layout)
    return problem


def _posed(arguments: argparse.Namespace) -> Problem:
    """The problem, with everything checked that can be before the fit."""
    from odejet.data import Data
    from odejet.io import csv
    from odejet.io.formats import read_model
    from odejet.io.networks import measured

    if arguments.data is None:
        raise DataError(f"{arguments.model}: a fit of a model needs data; name a CSV file after it")
    model = read_model(arguments.model, arguments.free)
    check_files(arguments)
    bounds = read_box(arguments.bounds)
    data = Data.from_csv(arguments.data, arguments.doses)
    if is_network(arguments.model):
        check_unknowns(model, arguments.model)
        model, data = measured(model, data)
    noise = read_noise(arguments.noise, model)
    if arguments.inputs:
        data = data.driven(csv.read_inputs(arguments.inputs))

    from odejet.problem import Problem
    from odejet.uncertainty.derived import derived

    fixed, local = read_known(arguments.fix, "--fix"), arguments.local
    priors = read_texts(arguments.prior, "--prior", "NAME=TEXT, such as k1=normal(1, 0.2)")
    if arguments.start is not None:
        data = data.starting(read_number(arguments.start, "--start"))
    data = data.knowing(read_values_by_experiment(arguments.values), model.states)
    try:
        problem = Problem(model, data, bounds, arguments.positive, noise, fixed, local, priors=priors)
    except DataError as error:
        raise DataError(f"{arguments.data}: {error}") from None
    for name in arguments.profile:
        derived(name, model, problem.layout)
    return problem


def _delivered(found: Fit, arguments: argparse.Namespace) -> int:
    """The file, the table and the page; what cannot be written costs nothing of the rest."""
    from odejet.io.fits import dumps
    from odejet.io.pypesto import dumped
    from odejet.report.html import page

    complaints = []
    if arguments.json:
        complaints += _written(arguments.json, lambda: dumps(found).encode(), arguments.quiet)
    if arguments.pypesto:
        complaints += _written(arguments.pypesto, lambda: dumped(found), arguments.quiet)
    if not arguments.quiet:
        words = _words(found, arguments)
        if "-" in (arguments.json, arguments.report):
            print(words, file=sys.stderr)
        else:
            put(f"{words}\n".encode())
    if arguments.report:
        complaints += _written(arguments.report, lambda: page(found).encode(), arguments.quiet)
    for complaint in complaints:
        complain(complaint, Status.BAD_INPUT)
    if complaints:
        return Status.BAD_INPUT
    return Status.DONE if found.certified else Status.UNCERTIFIED


def _words(found: Fit, arguments: argparse.Namespace) -> str:
    """The table and what stands under it, with the time that it took if one has noticed."""
    from odejet.jets.compilation import now

    asked = [*(found.labels if arguments.intervals == "profile" else ()), *arguments.profile]
    with Progress(True) as shown:
        begin = now()
        shown.stage("looking for what the data determine")
        words = found.summary(arguments.verbose)
        told = []
        for name in dict.fromkeys(asked):
            shown.stage(f"following the likelihood along {name}")
            told.append(f"  {found.profile(name).sentence}")
        spent = now() - begin
    lines = [words, *([f"  time of this table: {duration(spent)}"] if spent > NOTICED else [])]
    return "\n".join([*lines, *(["", "  by the likelihood:", *told] if told else [])])


def _written(path: str, content: Callable[[], bytes], quiet: bool) -> list[str]:
    """Write something to a file, or to stdout if that is called -; what went wrong, if anything."""
    from odejet.io.files import write_all
    from odejet.jets.compilation import now

    begin = now()
    if path == "-":
        put(content())
        return []
    try:
        with Progress(not quiet) as shown:
            shown.stage(f"writing {path}")
            write_all({path: lambda file: file.write(content())})
    except ModelError as error:
        return [str(error)]
    if not quiet:
        spent = now() - begin
        print(f"written: {path}{f' (in {duration(spent)})' if spent > NOTICED else ''}", file=sys.stderr)
    return []
