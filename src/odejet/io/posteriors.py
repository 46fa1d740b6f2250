"""Posterior files: draws as JSON with the problem that they belong to, and the report of them as a page.

A file is data that somebody else may have written: nothing in it is executed, and what does not belong there is refused
with a sentence that names the entry.  Numbers come back exactly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NoReturn

import numpy as np

from odejet import __version__
from odejet.attach import attach
from odejet.errors import DataError
from odejet.io import experiments, files
from odejet.io.fits import MAX_BYTES, Entries, posed, read_problem, without_nan
from odejet.io.plain import array, count, real, text
from odejet.problem import Problem
from odejet.report.posterior import page
from odejet.uncertainty.posterior import Posterior

VERSION = 1
"""Of the form of the file; newer ones are refused."""


@attach(Posterior.save)
def write(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write draws, whole or not at all."""
    content = dumps(posterior).encode()
    files.write_all({os.fspath(path): lambda file: file.write(content)})


@attach(Posterior.report)
def report(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    content = page(posterior).encode()
    files.write_all({os.fspath(path): lambda file: file.write(content)})


def dumps(posterior: Posterior) -> str:
    """The text of a file of draws."""
    return json.dumps(encode(posterior), ensure_ascii=False, allow_nan=False) + "\n"


@attach(Posterior.to_dict)
def encode(posterior: Posterior) -> dict[str, Any]:
    """Draws as plain values, with their summary for readers of the file."""
    problem = posterior.problem
    document = {
        "posterior": VERSION,
        "odejet": __version__,
        "success": posterior.success,
        "warnings": list(posterior.warnings),
        "statistics": posterior.statistics,
        "seed": posterior.seed,
        "seconds": posterior.seconds,
        "gradients": posterior.gradients,
        "ess": posterior.ess,
        "unknowns": [{**asdict(unknown), "bounds": problem.bounds[unknown.label]} for unknown in problem.layout],
        **posed(problem),
        "data": [
            experiments.encode(experiment, dict.fromkeys(experiment.outputs, np.asarray(np.nan)))
            for experiment in problem.data.experiments
        ],
        "chains": posterior.chains,
    }
    found: dict[str, Any] = without_nan(document)
    return found


@attach(Posterior.load)
def load(kind: type[Posterior], path: str | os.PathLike[str]) -> Posterior:
    return read(path)


def read(path: str | os.PathLike[str]) -> Posterior:
    """The draws in a file, or one sentence on why there are none."""
    content = files.read_bytes(path, MAX_BYTES, "posterior", DataError)
    try:
        document = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise DataError(f"{path}: this is not a JSON file that draws were saved to; save them again") from None
    return decode(document, str(path))


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def decode(document: Any, where: str) -> Posterior:
    """The draws that `encode` described; `where` names them in messages."""
    if not isinstance(document, Mapping) or "posterior" not in document:
        raise DataError(f"{where}: these are no draws that odejet saved; the entry 'posterior' is missing")
    if document["posterior"] != VERSION:
        raise DataError(
            f"{where}: the draws are of another version of odejet, which reads version {VERSION}; update it"
        )
    entry = Entries(document, where)
    problem, _ = read_problem(entry)
    return Posterior(
        problem=problem,
        chains=entry("chains", lambda told: _chains(told, problem)),
        seed=entry("seed", count),
        seconds=entry("seconds", real),
        gradients=entry("gradients", count),
        ess=entry("ess", real),
        warnings=entry("warnings", lambda told: tuple(map(text, told))),
    )


def _chains(told: Any, problem: Problem) -> np.ndarray:
    chains = [array(chain, (-1, len(problem.unknowns))) for chain in told]
    if not chains or not len(chains[0]) or len({len(chain) for chain in chains}) > 1:
        raise ValueError("chains must have draws, and all as many")
    return np.array(chains)
