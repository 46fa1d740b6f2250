"""Checkpoints: which fit a journal belongs to."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from odejet import __version__
from odejet.decide import Options
from odejet.errors import ModelError
from odejet.io import experiments
from odejet.io.fits import posed, without_nan
from odejet.journal import Journal
from odejet.problem import Problem


def opened(path: str | os.PathLike[str], problem: Problem, options: Options) -> Journal:
    """Open the journal of a fit, or begin one; `DataError` if the file belongs to another."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ModelError(f"checkpoint must be the name of a file, not {path!r}")
    return Journal(str(os.fspath(path)), title(problem, options))


def title(problem: Problem, options: Options) -> dict[str, Any]:
    """Return all that the way of a search depends on but its time limit, which may be another when it goes on."""
    given = {
        **posed(problem),
        "bounds": dict(problem.bounds),
        "positive": sorted(problem.positive) if not isinstance(problem.positive, bool) else problem.positive,
        "data": [
            experiments.encode(one, {name: own.values for name, own in one.outputs.items()})
            for one in problem.experiments
        ],
    }
    text = json.dumps(without_nan(given), sort_keys=True)
    return {
        "version of odejet": __version__,
        "problem": hashlib.sha256(text.encode()).hexdigest(),
        "seed": options.seed,
        "effort": options.effort,
        "method": repr((options.refine, options.estimators, options.strategies)),
    }
