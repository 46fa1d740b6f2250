"""Populations: `odejet fit` of a model file with a table [population]."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from odejet.cli.arguments import check_files
from odejet.cli.console import Status, complain, put
from odejet.errors import DataError, ModelError
from odejet.progress import doing

if TYPE_CHECKING:
    from odejet.population import PopulationFit

_OTHERS = ("bounds", "positive", "prior", "values", "fix", "local", "noise", "inputs", "free", "profile", "pypesto")
"""Options that a population has in its file, or not at all."""


def run(arguments: argparse.Namespace, write: Callable[[str, Callable[[], bytes], bool], list[str]]) -> int:
    """Fit a population and tell what was found; `write` writes a file and says what went wrong."""
    from odejet.data import Data
    from odejet.fitting import fit
    from odejet.interruption import termination
    from odejet.population import Population, PopulationFit

    for name in _OTHERS:
        if getattr(arguments, name, None):
            raise ModelError(
                f"{arguments.model}: a population tells this in its file; leave out --{name.replace('_', '-')}"
            )
    if arguments.data is None:
        raise DataError(f"{arguments.model}: a fit of a population needs data; name a CSV file after it")
    check_files(arguments)
    data = Data.from_csv(arguments.data, arguments.doses).without(*arguments.without)
    population = Population.from_toml(arguments.model, data)
    with termination():
        found = fit(
            population,
            seed=arguments.seed,
            jobs=arguments.jobs,
            progress=not arguments.quiet,
            time_limit=arguments.time_limit,
            checkpoint=arguments.checkpoint,
        )
    assert isinstance(found, PopulationFit)
    return _delivered(found, arguments, write)


def _delivered(
    found: PopulationFit, arguments: argparse.Namespace, write: Callable[[str, Callable[[], bytes], bool], list[str]]
) -> int:
    from odejet.report.populations import page

    complaints = []
    if arguments.json:
        content = json.dumps(found.to_dict(), indent=1) + "\n"
        complaints += write(arguments.json, content.encode, arguments.quiet)
    if not arguments.quiet:
        with doing("comparing simulations with the data", True):
            words = f"{found}\n  explains the data: {found.adequacy.sentence}\n"
        if "-" in (arguments.json, arguments.report):
            print(words, file=sys.stderr, end="")
        else:
            put(words.encode())
    if arguments.report:
        complaints += write(arguments.report, lambda: page(found).encode(), arguments.quiet)
    for complaint in complaints:
        complain(complaint, Status.BAD_INPUT)
    if complaints:
        return Status.BAD_INPUT
    return Status.DONE if found.certified else Status.UNCERTIFIED
