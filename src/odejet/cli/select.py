"""Select: which of several models the data support, by switches or as a problem of PEtab Select."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from odejet.cli.arguments import described, read_known, seconds, whole_number
from odejet.cli.console import Status, complain, put, told
from odejet.cli.fit import describe_experiments, describe_knowledge
from odejet.cli.networks import is_problem
from odejet.cli.posing import posed
from odejet.errors import ModelError
from odejet.io.files import check_writable, write_all

METHODS = ("forward", "backward", "exhaustive")
CRITERIA = ("aicc", "aic", "bic")


def describe(commands: Any) -> None:
    details = (
        "A PEtab Select problem (YAML) says everything itself. Otherwise --switch names parameters that the model may "
        "do without. Exit status: 0 every fit that counts is confirmed, 1 some are not, 2 bad input, 3 no fit."
    )
    summary = "select among models that differ by switches, or those of a PEtab Select problem"
    parser = described(commands, run, "select", summary, details, problems=True)
    parser.add_argument("data", metavar="DATA", nargs="?", help="measurements (CSV); a PEtab problem names its own")
    group = parser.add_argument_group("what to select")
    words = "parameters and initial states that may be off, with their values then, such as k5=0 or k5=k4"
    group.add_argument("--switch", metavar="NAME=VALUE", nargs="+", action="extend", default=[], help=words)
    group.add_argument("--criterion", choices=CRITERIA, help="what is to be least (default aicc)")
    group.add_argument("--method", choices=METHODS, help="the way through the models (default forward)")
    describe_experiments(parser.add_argument_group("what was done"))
    describe_knowledge(parser.add_argument_group("what is known beforehand"))
    group = parser.add_argument_group("how to look")
    group.add_argument("--time-limit", metavar="SECONDS", type=seconds, help="for the fit of each model (default 30)")
    words = "fit no further model after so long; the best so far is the answer (PEtab Select only)"
    group.add_argument("--total", metavar="SECONDS", type=seconds, help=words)
    group.add_argument("--jobs", metavar="N", type=whole_number(1), default=1, help="models fitted at once (default 1)")
    group.add_argument("--seed", metavar="S", type=whole_number(), default=0, help="seed of random starts (default 0)")
    group = parser.add_argument_group("what to tell")
    group.add_argument("--json", metavar="FILE", help="write the fit of the best model into a file")
    group.add_argument("--yaml", metavar="FILE", help="write the best model as PEtab Select has it (YAML)")
    group.add_argument("-q", "--quiet", action="store_true", help="no word on every model")
    parser.set_defaults(profile=[], report=None, pypesto=None)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    return _by_petab(arguments) if is_problem(arguments.model) and not arguments.switch else _by_switches(arguments)


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what makes no sense, before any work."""
    petab = is_problem(arguments.model) and not arguments.switch
    if not petab and not arguments.switch:
        raise ModelError(f"{arguments.model}: say what the model may do without, as in --switch k5=0")
    for name in ("criterion", "method", "data") if petab else ("total", "yaml"):
        if getattr(arguments, name) is not None:
            where = "this is told by a PEtab Select problem itself" if petab else "this is for PEtab Select problems"
            shown = "the data" if name == "data" else f"--{name}"
            raise ModelError(f"{arguments.model}: {where}; leave out {shown}")
    for path in (arguments.json, arguments.yaml):
        if path and path != "-":
            check_writable(path)


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    limit = {} if arguments.time_limit is None else {"time_limit": arguments.time_limit}
    return {"seed": arguments.seed, **limit}


def _tell(arguments: argparse.Namespace) -> Any:
    return None if arguments.quiet else lambda words: print(f"odejet: {words}", file=sys.stderr, flush=True)


def _by_switches(arguments: argparse.Namespace) -> int:
    import warnings

    from odejet.selection import select

    switches = read_known(arguments.switch, "--switch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says it
        found = select(
            posed(arguments),
            switches=switches,
            criterion=arguments.criterion or CRITERIA[0],
            method=arguments.method or METHODS[0],
            jobs=arguments.jobs,
            progress=_tell(arguments),
            **_options(arguments),
        )
    return _delivered(arguments, found, found.best.fit)


def _by_petab(arguments: argparse.Namespace) -> int:
    from odejet.selection.petab_select import select_petab

    options = _options(arguments) | ({} if arguments.total is None else {"total": arguments.total})
    found = select_petab(arguments.model, tell=_tell(arguments), **options)
    status = _delivered(arguments, found, found.best.fit)
    if arguments.yaml:
        found.best.model.to_yaml(arguments.yaml)
        told(arguments.yaml)
    return status


def _delivered(arguments: argparse.Namespace, found: Any, fit: Any) -> int:
    """The table, and the file with the best fit."""
    from odejet.io.fits import dumps

    if arguments.json:
        if fit is None:
            return complain("nothing is unknown in the best model, so that there is no fit to write", Status.UNSOLVED)
        if arguments.json == "-":
            put(dumps(fit).encode())
        else:
            write_all({arguments.json: lambda file: file.write(dumps(fit).encode())})
            told(arguments.json)
    if arguments.json == "-":
        print(found, file=sys.stderr)
    else:
        put(f"{found}\n".encode())
    return Status.UNCERTIFIED if found.warning else Status.DONE
