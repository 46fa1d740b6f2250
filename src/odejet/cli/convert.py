"""Convert: a model file in another format, a PEtab problem in version 2, or a saved fit for other tools."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from odejet.cli.arguments import described, is_same
from odejet.cli.console import Status, told
from odejet.cli.networks import is_problem
from odejet.errors import ModelError
from odejet.progress import doing


def describe(commands: Any) -> None:
    details = (
        "Formats go by suffix: .toml, .xml or .sbml (SBML), .ant (Antimony). TOML alone keeps bounds and experiments. "
        "A PEtab problem (.yaml), of either version, is written into the folder OUT in version 2. A saved fit (.json) "
        "becomes its model with the estimates in it, also as a Python function (.py), Stan (.stan) or LaTeX (.tex)."
    )
    parser = described(commands, run, "convert", "write a model file in another format", details, problems=True)
    parser.add_argument("output", metavar="OUT", help="the file to write (.toml, .xml, .sbml or .ant), or a folder")
    parser.add_argument("--experiment", metavar="NAME", help="of a saved fit: which experiment (default: the first)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no words on stderr")


def run(arguments: argparse.Namespace) -> int:
    from odejet.io.formats import read_model, write_model

    if is_problem(arguments.model):
        return _problem(arguments)
    if Path(arguments.model).suffix.lower() == ".json":
        return _fit(arguments)
    if arguments.experiment is not None:
        raise ModelError(f"{arguments.model}: a model has no experiments; leave out --experiment")
    if is_same(arguments.model, arguments.output):
        raise ModelError(f"{arguments.output}: this is the model file; name another file to write to")
    model = read_model(arguments.model, arguments.free)
    write_model(model, arguments.output)
    if not arguments.quiet:
        told(arguments.output)
    return Status.DONE


def _problem(arguments: argparse.Namespace) -> int:
    """A problem, written beside no file that it was read from."""
    from odejet.io.petab import read_petab

    if arguments.free:
        raise ModelError(f"{arguments.model}: its parameter table says what is to be found; leave out --free")
    if Path(arguments.output).suffix:
        raise ModelError(f"{arguments.output}: a problem is written into a folder; name one, without a suffix")
    if os.path.realpath(arguments.output) == os.path.dirname(os.path.realpath(arguments.model)):
        raise ModelError(f"{arguments.output}: this is the folder of the problem; name another to write to")
    path = read_petab(arguments.model).to_petab(arguments.output)
    if not arguments.quiet:
        told(str(path))
    return Status.DONE


def _fit(arguments: argparse.Namespace) -> int:
    """A saved fit, with its estimates."""
    from odejet.io.fits import read

    if arguments.free:
        raise ModelError(f"{arguments.model}: a fit is written with all its estimates; leave out --free")
    with doing(f"writing {arguments.output}", not arguments.quiet):
        read(arguments.model).export(arguments.output, arguments.experiment)
    if not arguments.quiet:
        told(arguments.output)
    return Status.DONE
