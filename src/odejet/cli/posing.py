"""Posing: the problem that files and options tell; every complaint names the file or the option that it is about."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odejet.cli.arguments import (
    check_files,
    read_box,
    read_known,
    read_noise,
    read_number,
    read_texts,
    read_values_by_experiment,
)
from odejet.cli.networks import check_unknowns, is_network, is_problem
from odejet.errors import DataError, ModelError, clipped, nearest

if TYPE_CHECKING:
    from odejet.data import Data
    from odejet.jets.inputs import Sampled
    from odejet.model import Model
    from odejet.problem import Problem

_OF_PROBLEMS = (
    "bounds",
    "positive",
    "noise",
    "prior",
    "start",
    "values",
    "fix",
    "local",
    "doses",
    "without",
    "inputs",
    "free",
)
"""Options that tell what a PEtab problem tells itself."""


def posed(arguments: argparse.Namespace) -> Problem:
    """The problem, with everything checked that can be before the fit."""
    from odejet.uncertainty.derived import derived

    problem = _read(arguments) if is_problem(arguments.model) else _told(arguments)
    for name in arguments.profile:
        try:
            derived(name, problem.model, problem.layout)
        except ModelError as error:
            raise ModelError(f"--profile {clipped(name)}: {error}") from None
    return problem


def _read(arguments: argparse.Namespace) -> Problem:
    """The problem in a PEtab file."""
    from odejet.io.petab import read_petab

    for name in ("data", *_OF_PROBLEMS):
        if getattr(arguments, name):
            shown = "the data" if name == "data" else f"--{name}"
            raise ModelError(f"{arguments.model}: a PEtab problem tells this itself; leave out {shown}")
    check_files(arguments)
    return read_petab(arguments.model)


def _told(arguments: argparse.Namespace) -> Problem:
    """The problem that a model file, data and options tell together."""
    if arguments.data is None:
        raise DataError(f"{arguments.model}: a fit of a model needs data; name a CSV file after it")
    model, data = _model_and_data(arguments)
    noise = read_noise(arguments.noise, model)
    fixed = read_known(arguments.fix, "--fix")
    priors = read_texts(arguments.prior, "--prior", "NAME=TEXT, such as k1=normal(1, 0.2)")
    check_laws("--noise", model, noise if isinstance(noise, Mapping) else dict.fromkeys(model.outputs, noise))
    check_priors("--prior", priors)
    data = _known(data, model, arguments, noise)

    from odejet.problem import Problem

    bounds = read_box(arguments.bounds)
    told: dict[str, Any] = {"bounds": bounds, "positive": arguments.positive, "noise": noise, "fixed": fixed}
    told |= {"local": arguments.local, "priors": priors}
    try:
        return Problem(model, data, **told)
    except DataError as error:
        raise error if error.where else DataError(f"{arguments.data}: {error}") from None
    except ModelError as error:
        if not model.priors:
            raise
        Problem(model.replace(priors={}), data, **told)  # complains where not the file's priors are wrong
        raise ModelError(f"{arguments.model} [priors]: {error}") from None


def _model_and_data(arguments: argparse.Namespace) -> tuple[Model, Data]:
    from odejet.data import Data
    from odejet.io.networks import measured

    model = read_checked(arguments.model, arguments.free)
    check_files(arguments)
    data = Data.from_csv(arguments.data, arguments.doses).without(*arguments.without)
    if is_network(arguments.model):
        check_unknowns(model, arguments.model)
        model, data = measured(model, data)
    return model, data


def _known(data: Data, model: Model, arguments: argparse.Namespace, noise: Any) -> Data:
    """The data with what options tell of experiments: their start, their values and their inputs."""
    if arguments.start is not None:
        try:
            data = data.starting(read_number(arguments.start, "--start"))
        except DataError as error:
            raise DataError(f"--start {clipped(arguments.start)}: {error}") from None
    values = read_values_by_experiment(arguments.values)
    try:
        data = data.knowing(values, model.states)
    except DataError as error:
        raise DataError(f"--values: {error}") from None
    _check_values(values, data, model, noise)
    if arguments.inputs:
        first, last = (f(getattr(one, end) for one in data.experiments) for f, end in ((min, "start"), (max, "end")))
        data = data.driven(read_inputs(arguments.inputs, model, first, last))
    return data


def _check_values(values: Mapping[str, Mapping[str, Any]], data: Data, model: Model, noise: Any) -> None:
    """Refuse values of what is neither in the model nor in the noise nor in doses."""
    from odejet.problem.given import names_given
    from odejet.problem.noise import merged

    told = merged(noise, model)
    known = {*model.parameters, *model.fixed, *model.states, *_new_names(told, model)}
    known |= {name for one in data.experiments for name in names_given(one)}
    for experiment, own in values.items():
        for name in own:
            if name not in known:
                what = f"--values {clipped(f'{experiment}:{name}')}"
                raise ModelError(f"{what}: the model has no parameter or state '{name}'{nearest(name, known)}")


# --- what is told as text ---


def read_checked(path: str, free: list[str]) -> Model:
    """The model in a file, with its noise and priors read too, which a model keeps as text until there are data."""
    from odejet.io.formats import read_model

    model = read_model(path, free)
    check_laws(f"{path} [noise]", model, model.noise)
    check_priors(f"{path} [priors]", model.priors)
    return model


def check_laws(where: str, model: Model, told: Any) -> None:
    """Refuse noise that cannot be read, in words that begin with where it stands."""
    if not told:
        return
    try:
        _new_names(told, model)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


def _new_names(told: Any, model: Model) -> tuple[str, ...]:
    """Names that only the noise has."""
    from odejet.problem.noise import new_names, noise_of

    texts = told if isinstance(told, Mapping) else dict.fromkeys(model.outputs, told)
    return new_names({name: noise_of(name, text, ()) for name, text in texts.items() if text is not None}, model)


def check_priors(where: str, told: Mapping[str, Any]) -> None:
    """Refuse priors that cannot be read, in words that begin with where they stand."""
    if not told:
        return
    from odejet.problem.priors import read

    for name, text in told.items():
        try:
            read(name, text)
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None


# --- inputs ---


def read_inputs(path: str, model: Model, first: float, last: float) -> dict[str, Sampled]:
    """The samples of a model's inputs in a file, which must reach over all of a time."""
    from odejet.io import csv

    found = csv.read_inputs(path)
    for name, samples in found.items():
        where = f"{path}: column '{name}'"
        if name not in model.inputs:
            known = nearest(name, model.inputs) or f"; its inputs are {', '.join(model.inputs) or 'none'}"
            raise DataError(f"the model has no input of this name{known}", where)
        if not replace(samples, joined=model.sampling.get(name, "")).cover(first, last):
            span = f"the samples go from t = {samples.times[0]:g} to {samples.times[-1]:g}"
            raise DataError(
                f"{span}, but are needed from {first:g} to {last:g}; sample the input over all of it", where
            )
    return found
