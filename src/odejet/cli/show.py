"""Show: a model file, checked and printed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from odejet.cli.arguments import described
from odejet.cli.console import Status, put
from odejet.errors import ModelError

if TYPE_CHECKING:
    from odejet.model import Model


def describe(commands: Any) -> None:
    details = "A model that is shown is a model without mistakes: everything in the file is checked."
    parser = described(commands, run, "show", "check a model file and show the model", details)
    parser.add_argument("--latex", action="store_true", help="the equations in LaTeX")


def run(arguments: argparse.Namespace) -> int:
    from odejet.io.formats import read_model

    model = read_model(arguments.model, arguments.free)
    _check(model, arguments.model)
    put(f"{model.latex() if arguments.latex else model!r}\n".encode())
    return Status.DONE


def _check(model: Model, path: str) -> None:
    """Noise and priors, which a model keeps as text until there are data."""
    if not (model.noise or model.priors):
        return
    from odejet.problem import noise, priors

    try:
        noise.new_names({name: noise.noise_of(name, model.noise, ()) for name in model.noise}, model)
        for name, text in model.priors.items():
            priors.read(name, text)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
