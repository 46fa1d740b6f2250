"""Sample: data in, draws from the posterior out."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from odejet.cli.arguments import described, seconds, whole_number
from odejet.cli.console import Status, complain, put
from odejet.cli.fit import describe_experiments, describe_knowledge
from odejet.cli.posing import posed
from odejet.progress import doing

if TYPE_CHECKING:
    from odejet.result import Fit
    from odejet.uncertainty.posterior import Posterior


def describe(commands: Any) -> None:
    details = "Exit status: 0 chains agree, 1 drawn with doubts, 2 bad input, 3 no fit."
    summary = "draw all unknowns from their posterior, with R-hat and effective draws"
    parser = described(commands, run, "sample", summary, details, problems=True)
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        help="measurements (CSV): a column time and one per output, or PEtab's columns; a PEtab problem names its own",
    )
    describe_experiments(parser.add_argument_group("what was done"))
    describe_knowledge(parser.add_argument_group("what is known beforehand"))
    group = parser.add_argument_group("how to draw")
    add = group.add_argument
    add("--ess", metavar="N", type=whole_number(1), default=400, help="effective draws of all (default %(default)s)")
    add("--chains", metavar="N", type=whole_number(1), default=4, help="at least so many (default %(default)s)")
    add("--time-limit", metavar="SECONDS", type=seconds, default=60.0, help="of drawing (default 60)")
    add("--seed", metavar="S", type=whole_number(), default=0, help="of fit and draws (default %(default)s)")
    group = parser.add_argument_group("what to tell")
    add = group.add_argument
    words = "write a page with densities beside intervals by curvature and profile (HTML); - is stdout"
    add("--report", metavar="FILE", help=words)
    add("--json", metavar="FILE", help="write all draws into a file; - is stdout, and words then go to stderr")
    add("-q", "--quiet", action="store_true", help="no table on stdout")
    parser.set_defaults(profile=[])


def run(arguments: argparse.Namespace) -> int:
    from odejet.fitting import fit
    from odejet.interruption import termination

    with termination():
        found = fit(posed(arguments), seed=arguments.seed, progress=not arguments.quiet)
        if not found.found:
            return complain(f"{arguments.data or arguments.model}: {found.message}", Status.UNSOLVED)
        draws = found.sample(
            ess=arguments.ess,
            chains=arguments.chains,
            seed=arguments.seed,
            time_limit=arguments.time_limit,
            progress=not arguments.quiet,
        )
    return _delivered(found, draws, arguments)


def _delivered(fit: Fit, draws: Posterior, arguments: argparse.Namespace) -> int:
    from odejet.io.posteriors import dumps
    from odejet.report.posterior import compared_intervals, page

    contents = {}
    if arguments.json:
        contents[arguments.json] = dumps(draws).encode()
    if arguments.report:
        with doing(f"writing {arguments.report}", not arguments.quiet):
            contents[arguments.report] = page(draws, compared_intervals(fit)).encode()
    if not arguments.quiet:
        if "-" in contents:
            print(draws.summary(), file=sys.stderr)
        else:
            put(f"{draws.summary()}\n".encode())
    _write(contents, arguments.quiet)
    return Status.DONE if draws.success else Status.UNCERTIFIED


def _write(contents: dict[str, bytes], quiet: bool) -> None:
    """Write all files, or none of them."""
    from odejet.io.files import write_all

    if "-" in contents:
        put(contents.pop("-"))
    write_all({path: lambda file, content=content: file.write(content) for path, content in contents.items()})  # type: ignore[misc]
    if contents and not quiet:
        print(f"written: {', '.join(contents)}", file=sys.stderr)
