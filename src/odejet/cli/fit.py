"""Fit: data in, a table, a file and a page out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odejet.cli.arguments import described, seconds, whole_number
from odejet.cli.console import Status, complain, put
from odejet.cli.posing import posed
from odejet.errors import ModelError
from odejet.numerals import duration
from odejet.progress import Progress

if TYPE_CHECKING:
    from odejet.result import Fit


NOTICED = 0.5
"""Seconds of work beside the fit that are told."""


def describe(commands: Any) -> None:
    details = "Exit status: 0 certified, 1 fitted without a certificate, 2 bad input, 3 no fit."
    summary = "find all parameters and initial states from data"
    parser = described(commands, run, "fit", summary, details, problems=True)
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        help="measurements (CSV): a column time and one per output, or PEtab's columns; a PEtab problem names its own",
    )
    describe_experiments(parser.add_argument_group("what was done"))
    describe_knowledge(parser.add_argument_group("what is known beforehand"))
    _describe_search(parser.add_argument_group("how to look"))
    _describe_results(parser.add_argument_group("what to tell"))


def _several(group: Any, name: str, metavar: str, words: str) -> None:
    """An option that takes one value or more, and may be repeated."""
    group.add_argument(name, metavar=metavar, nargs="+", action="extend", default=[], help=words)


def describe_experiments(group: Any) -> None:
    add = group.add_argument
    words = "what was given (CSV): the columns time, state, amount and, if needed, duration, every, count, steady"
    add("--doses", metavar="FILE", help=words)
    _several(group, "--without", "NAME", "columns of the data to leave out")
    add("--inputs", metavar="FILE", help="samples of inputs (CSV): a column time and one per input")
    add("--start", metavar="T", help="when the initial state holds (default: the first time in the data)")
    words = "what a parameter or an initial state is in an experiment: a number, or an expression in parameters"
    _several(group, "--values", "EXPERIMENT:NAME=VALUE", words)
    _several(group, "--local", "NAME", "parameters with a value of their own in each experiment")


def describe_knowledge(group: Any) -> None:
    add = group.add_argument
    add("--positive", action="store_true", help="all unknowns are positive")
    add("--bounds", metavar=("LO", "HI"), nargs=2, help="where to look for every unknown; not needed")
    words = "what a parameter or an initial state is in all experiments, such as D=0.2 or k3=k1"
    _several(group, "--fix", "NAME=VALUE", words)
    words = (
        "of all outputs: a known standard deviation such as 0.1 or 2%%, relative for an unknown share of the value, or "
        "a law such as 'lognormal(s)'; of one output: y1=0.1"
    )
    _several(group, "--noise", "NOISE", words)
    words = "what is known of an unknown before the data, such as 'k1=lognormal(log(0.3), 0.5)'"
    _several(group, "--prior", "NAME=PRIOR", words)


def _describe_search(group: Any) -> None:
    add = group.add_argument
    add("--effort", choices=("quick", "auto", "full"), default="auto", help="how much to try (default %(default)s)")
    add("--time-limit", metavar="SECONDS", type=seconds, help="give up after so long (default 120; 1200 for full)")
    words = "cores on which starts are tried and experiments simulated; the answer is the same for any (default 1)"
    add("--jobs", metavar="N", type=whole_number(1), default=1, help=words)
    words = "keep what is found in a file, from which the same command goes on should it be killed"
    add("--checkpoint", metavar="FILE", help=words)
    add("--seed", metavar="S", type=whole_number(), default=0, help="seed of random starts (default %(default)s)")


def _describe_results(group: Any) -> None:
    add = group.add_argument
    add("--report", metavar="FILE", help="write a page with all plots (HTML); - is stdout")
    add("--json", metavar="FILE", help="write the whole fit into a file; - is stdout, and words then go to stderr")
    add("--pypesto", metavar="FILE", help="write every start and where it led, for pyPESTO (HDF5)")
    words = "intervals of all unknowns by curvature, or by the likelihood too (default %(default)s)"
    add("--intervals", choices=("fisher", "profile"), default="fisher", help=words)
    words = "intervals by the likelihood of unknowns or expressions, such as k1 or k1*k2"
    _several(group, "--profile", "NAME", words)
    add("-v", "--verbose", action="store_true", help="all that was tried, and the time of every stage")
    add("-q", "--quiet", action="store_true", help="no table on stdout")


def run(arguments: argparse.Namespace) -> int:
    from odejet.cli import populations
    from odejet.fitting import fit
    from odejet.interruption import termination
    from odejet.io.populations import is_population
    from odejet.io.pypesto import hdf5

    if is_population(arguments.model):
        return populations.run(arguments, _written)
    if arguments.pypesto:
        hdf5()  # before the fit, not after it
    with termination():
        found = fit(
            posed(arguments),
            seed=arguments.seed,
            jobs=arguments.jobs,
            effort=arguments.effort,
            progress=not arguments.quiet,
            time_limit=arguments.time_limit,
            checkpoint=arguments.checkpoint,
        )
    if not found.found:
        return complain(f"{arguments.data or arguments.model}: {found.message}", Status.UNSOLVED)
    return _delivered(found, arguments)


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
    from odejet.clock import now

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
    from odejet.clock import now
    from odejet.io.files import write_all

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
