"""Fit files: a fit as JSON, with everything it needs to simulate, print and draw itself again.

JSON has no infinities and no NaN, so that such a number is written as null; what null means is known from the place
where it stands: no bound, an infinite standard error, a statistic that does not exist.  All other numbers come back
exactly.  A file is data that somebody else may have written: nothing in it is executed, and what does not belong there
is refused with a sentence that names the entry.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any, NoReturn, TypeVar

import numpy as np

from odejet import __version__
from odejet.attach import attach
from odejet.data import Data
from odejet.decide import Adequacy, Optimality
from odejet.decide.adequacy import UNTESTED, YES, Shortcoming
from odejet.decide.optimality import CONFIRMED, OPEN
from odejet.decide.outliers import Measurement
from odejet.decide.statistics import OutputCheck
from odejet.errors import DataError, ModelError, clipped
from odejet.io import experiments, files
from odejet.io.plain import array as _array
from odejet.io.plain import count as _count
from odejet.io.plain import real as _real
from odejet.io.plain import text as _text
from odejet.model import Model
from odejet.model.calls import Call
from odejet.problem import Problem, Unknowns
from odejet.problem.noise import noise_of
from odejet.problem.problem import WEIGHTS
from odejet.result import Candidates, Certificate, Estimate, Fit, Identifiability, Provenance
from odejet.uncertainty import Matrix, Uncertainty

VERSION = 2
"""Of the form of the file; older versions are read, newer ones are refused."""

MAX_BYTES = 2_000_000_000

T = TypeVar("T")

_RENAMED = {"freedom": "degrees_of_freedom", "memory_z": "autocorrelation_z", "memory_p": "autocorrelation_p"}
"""Names of older files."""


@attach(Fit.save)
def write(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write a fit, whole or not at all."""
    text = dumps(fit)
    files.write_all({os.fspath(path): lambda file: file.write(text.encode())})


def dumps(fit: Fit) -> str:
    """The text of a fit file."""
    return json.dumps(encode(fit), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@attach(Fit.load)
def load(kind: type[Fit], path: str | os.PathLike[str]) -> Fit:
    return read(path)


def read(path: str | os.PathLike[str]) -> Fit:
    """The fit in a file, or one sentence on why there is none."""
    content = files.read_bytes(path, MAX_BYTES, "fit", DataError)
    try:
        document = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: line {error.lineno} is not JSON ({error.msg.lower()}); save the fit again") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: this is not a JSON file that a fit was saved to; save the fit again") from None
    return decode(document, str(path))


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


# --- writing ----------------------------------------------------------------------------------------------------------


@attach(Fit.to_dict)
def encode(fit: Fit) -> dict[str, Any]:
    """A fit as dictionaries, lists, numbers and text; also what follows from the rest, for readers of the file."""
    document = {
        "version": VERSION,
        "odejet": __version__,
        "success": fit.success,
        "message": fit.message,
        "certified": fit.certified,
        "values": fit.values,
        "parameters": fit.parameters,
        "initial_state": fit.initial_state,
        "initial_states": fit.initial_states,
        "stderr": dict(fit.stderr),
        "intervals": {label: list(fit.interval(label)) for label in fit.labels},
        "doubts": _doubts(fit),
        "undetermined": list(fit.undetermined),
        "held": list(fit.held),
        "noise": fit.noise,
        "cost": fit.cost,
        "log_likelihood": fit.log_likelihood,
        "chi_square": fit.chi_square,
        "degrees_of_freedom": fit.degrees_of_freedom,
        "aic": fit.aic,
        "bic": fit.bic,
        "search": _searched(fit.search),
        "adequacy": _explained(fit.adequacy),
        "certificate": {k: v for k, v in asdict(fit.certificate).items() if k not in ("search", "adequacy")},
        "provenance": asdict(fit.provenance),
        "solutions": [asdict(solution) for solution in fit.solutions],
        "rivals": [asdict(rival) for rival in fit.rivals],
        "verdict": None if fit.verdict is None else asdict(fit.verdict),
        "census": fit.census,
        "seconds": fit.seconds,
        "stages": fit.stages,
        **posed(fit.problem),
        "seed": fit.seed,
        "effort": fit.effort,
        "unknowns": [
            {**asdict(unknown), "value": value, "bounds": fit.bounds.get(unknown.label, (-math.inf, math.inf))}
            for unknown, value in zip(fit.unknowns, fit.estimates.tolist(), strict=True)
        ],
        "covariance": fit.covariance.values,
        "directions": fit.uncertainty.directions,
        "noise_freedom": fit.uncertainty.degrees_of_freedom,
        "reach": {label: list(pair) for label, pair in fit.uncertainty.reach.items()},
        "candidates": None if fit.candidates is None else asdict(fit.candidates),
        "data": [experiments.encode(experiment, fit.sds[experiment.name]) for experiment in fit.data.experiments],
    }
    plain: dict[str, Any] = without_nan(document)
    return plain


def posed(problem: Problem) -> dict[str, Any]:
    """How a problem is posed, beside its data and bounds."""
    return {
        "weights": problem.weights,
        "noise_given": written(problem.noise),
        "priors": written(problem.priors),
        "fixed": {name: str(value) for name, value in problem.fixed.items()},
        "local": list(problem.local),
        "model": {"name": problem.model.name, "toml": problem.model.to_toml()},
    }


def _doubts(fit: Fit) -> Mapping[str, str]:
    """Intervals that are not to be trusted; none where the fit cannot be simulated."""
    try:
        return fit.doubts
    except (ModelError, DataError):
        return {}


def _searched(search: Optimality) -> dict[str, Any]:
    return {"answer": str(search)} | {name: getattr(search, name) for name in Optimality.__slots__}


def _explained(adequacy: Adequacy) -> dict[str, Any]:
    return {
        "answer": str(adequacy),
        "reasons": [reason._asdict() for reason in adequacy.reasons],
        "advice": adequacy.advice,
    }


def without_nan(value: Any) -> Any:
    """Arrays as lists, mappings as dictionaries, numbers that JSON lacks as None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(entry) for entry in value]
    return value


# --- reading ----------------------------------------------------------------------------------------------------------


@attach(Fit.from_dict)
def from_dict(kind: type[Fit], document: Mapping[str, Any], where: str = "the fit") -> Fit:
    return decode(document, where)


def decode(document: Any, where: str) -> Fit:
    """The fit that `encode` described; `where` names it in messages."""
    if not isinstance(document, Mapping) or "version" not in document:
        raise DataError(f"{where}: this is not a fit that odejet saved; it has no version")
    version = document["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise DataError(f"{where}: {clipped(str(version))} is no version of a fit file; save the fit again")
    if version > VERSION:
        raise DataError(f"{where}: the file has version {version} and this odejet reads up to {VERSION}; update odejet")
    entry = Entries(document, where)
    problem, old = read_problem(entry)
    labels, n = problem.unknowns, len(problem.unknowns)
    granted = entry("certificate", _certificate).granted  # what files without the two answers say of both
    # Labels as this version writes them, whatever the file calls them.
    now = dict(zip(old, labels, strict=True))

    def named(name: str) -> tuple[str, ...]:
        """The labels of a verdict, which the first version gave by the names of the model."""
        of_name = tuple(unknown.label for unknown in problem.layout if unknown.name == name)
        return of_name if version == 1 else (now.get(name, name),)

    return Fit(
        problem=problem,
        estimates=entry("unknowns", lambda told: _array([one["value"] for one in told], (n,), math.nan)),
        uncertainty=Uncertainty(
            Matrix(problem.layout.entries, entry("covariance", lambda told: _covariance(told, n))),
            entry("directions", lambda told: tuple({now[_text(k)]: _real(v) for k, v in one.items()} for one in told)),
            entry("noise_freedom", lambda told: {now[label]: _real(told[label], math.inf) for label in old}),
            entry("reach", lambda told: {now[_text(k)]: _reaches(v) for k, v in told.items()}, {}),
        ),
        bounds=entry("unknowns", lambda told: dict(zip(labels, (_pair(one["bounds"]) for one in told), strict=True))),
        held=entry("held", lambda told: tuple(now[label] for label in _texts(told))),
        sds=entry("data", lambda told: {one["name"]: _sds(one["outputs"]) for one in told}),
        cost=entry("cost", lambda told: _real(told, math.inf)),
        aic=entry("aic", lambda told: _real(told, math.nan)),
        bic=entry("bic", lambda told: _real(told, math.nan)),
        success=entry("success", _truth),
        message=entry("message", _text),
        solutions=entry("solutions", lambda told: tuple(_solution(one, problem.layout) for one in told)),
        rivals=entry("rivals", lambda told: tuple(_solution(one, problem.layout) for one in told), ()),
        certificate=replace(
            entry("certificate", _certificate),
            search=entry("search", _search, {"answer": CONFIRMED if granted else OPEN}),
            adequacy=entry("adequacy", _adequacy, {"answer": YES if granted else UNTESTED}),
        ),
        provenance=entry("provenance", _provenance),
        census=entry(
            "census", lambda told: {_text(k): {_text(w): _count(c) for w, c in v.items()} for k, v in told.items()}
        ),
        stages=entry("stages", _reals),
        seconds=entry("seconds", _real),
        verdict=entry("verdict", lambda told: _verdict(told, named)),
        candidates=entry("candidates", lambda told: _candidates(told, n)),
        seed=entry("seed", _count),
        effort=entry("effort", _text),
    )


class Entries:
    """The entries of a fit file, each read by a function that may find them wrong in its own way."""

    def __init__(self, document: Mapping[str, Any], where: str) -> None:
        self.document, self.where = document, where

    def __call__(self, name: str, convert: Callable[[Any], T], otherwise: Any = None) -> T:
        """One entry; `otherwise` stands for one that older files do not have."""
        if name not in self.document and otherwise is not None:
            return convert(otherwise)
        if name not in self.document:
            raise DataError(f"{self.where}: the entry '{name}' is missing; save the fit again")
        try:
            return convert(self.document[name])
        except (ModelError, DataError) as error:
            told = str(error).splitlines()[0].removeprefix(f"{self.where}: ").removeprefix(f"{self.where} ")
            raise DataError(f"{self.where}: the entry '{name}' cannot be used: {told}") from None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
            raise DataError(
                f"{self.where}: the entry '{name}' has not the form of a fit's; save the fit again"
            ) from None


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("not a truth value")
    return value


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        raise TypeError("not a list")
    return tuple(_text(value) for value in values)


def _reals(table: Mapping[str, Any], nothing: float | None = None) -> dict[str, float]:
    return {_text(key): _real(value, nothing) for key, value in table.items()}


def _pair(ends: Any) -> tuple[float, float]:
    low, high = ends
    return _real(low, -math.inf), _real(high, math.inf)


def _reaches(ends: Any) -> tuple[float, float]:
    below, above = ends
    return _real(below, math.inf), _real(above, math.inf)


def _covariance(rows: Any, n: int) -> np.ndarray:
    values = _array(rows, (n, n), math.nan)
    diagonal = np.diag(values)
    if np.any(diagonal < 0):
        raise ValueError("a negative variance")
    np.fill_diagonal(values, np.where(np.isnan(diagonal), math.inf, diagonal))
    return values


def read_problem(entry: Entries) -> tuple[Problem, tuple[str, ...]]:
    """The problem of the file, and the labels by which the file calls its unknowns."""
    model = entry("model", lambda told: Model.from_toml_text(_text(told["toml"]), entry.where))
    data = entry("data", lambda told: Data.of(experiments.decode(one) for one in told))
    options: dict[str, Any] = {
        "noise": entry("noise_given", _noise),
        "weights": entry("weights", _weights),
        "fixed": entry("fixed", lambda told: {_text(name): _text(value) for name, value in told.items()}, {}),
        "local": entry("local", _texts, ()),
        "priors": entry("priors", lambda told: {_text(name): _text(value) for name, value in told.items()}, {}),
    }
    problem = entry("data", lambda _: Problem(model, data, **options))
    labels = entry("unknowns", lambda told: _labels(told, problem.layout))
    pairs = entry("unknowns", lambda told: [_pair(one["bounds"]) for one in told])
    return entry("unknowns", lambda _: problem.bounded(dict(zip(problem.unknowns, pairs, strict=True)))), labels


def _labels(told: Any, layout: Unknowns) -> tuple[str, ...]:
    """The labels of the file, whose unknowns must be those of the problem."""
    found = [(_text(one["name"]), one["experiment"]) for one in told]
    if found != [(unknown.name, unknown.experiment) for unknown in layout]:
        raise DataError("they are not the unknowns of the model in these experiments; save the fit again")
    labels = tuple(_text(one["label"]) for one in told)
    if len(set(labels)) < len(labels):
        raise DataError("two of them have the same label; save the fit again")
    return labels


def _sds(outputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {
        name: _array(series["sds"], (len(series["times"]),), math.nan)
        if isinstance(series["sds"], list)
        else np.asarray(_real(series["sds"], math.nan))
        for name, series in outputs.items()
    }


def _solution(told: Mapping[str, Any], unknowns: Unknowns) -> Estimate:
    parameters = _reals(told["parameters"], math.nan)
    states = {_text(name): _reals(table, math.nan) for name, table in told["initial_states"].items()}
    for unknown in unknowns:
        if not (unknown.label in parameters or unknown.name in states.get(unknown.experiment or "", ())):
            raise ValueError("an unknown has no value")
    return Estimate(parameters, states, _real(told["cost"], math.inf), _truth(told["inside_bounds"]))


def written(told: Any) -> Any:
    """Laws as texts, alone or by name."""
    if isinstance(told, Mapping):
        return {name: written(law) for name, law in told.items()}
    return str(told) if isinstance(told, Call) else told


def _noise(told: Any) -> Any:
    """What was known of the noise: a number, a text, nothing, or one of these per output."""
    if isinstance(told, Mapping):
        return {_text(name): _noise(value) for name, value in told.items()}
    if isinstance(told, str):
        noise_of("each output", told, ())
        return told
    return None if told is None else _real(told)


def _weights(told: Any) -> str:
    if told not in WEIGHTS:
        raise ValueError("no such weights")
    return str(told)


def _certificate(told: Mapping[str, Any]) -> Certificate:
    return Certificate(
        _truth(told["granted"]),
        _texts(told["reasons"]),
        tuple(_output_check(one) for one in told["outputs"]),
        _count(told["agreeing"]),
        _reals(told["noise"], math.nan),
        tuple(_measurement(one) for one in told.get("suspicious", ())),
    )


def _search(told: Mapping[str, Any]) -> Optimality:
    counts = {name: _count(told.get(name, 0)) for name in ("starts", "agreeing", "optima")}
    reasons = _texts(told.get("reasons", ()))
    return Optimality(_text(told["answer"]), unseen=_real(told.get("unseen", 1.0)), reasons=reasons, **counts)


def _adequacy(told: Mapping[str, Any]) -> Adequacy:
    reasons = [
        Shortcoming(_text(one["output"]), _texts(one["experiments"]), _text(one["kind"]), _text(one["sentence"]))
        for one in told.get("reasons", ())
    ]
    return Adequacy(_text(told["answer"]), reasons, _texts(told.get("advice", ())))


def _measurement(told: Mapping[str, Any]) -> Measurement:
    numbers = {name: _real(told[name]) for name in ("time", "value")}
    deviation = _real(told["deviation"], math.inf)
    return Measurement(_text(told["output"]), _text(told["experiment"]), deviation=deviation, **numbers)


def _output_check(told: Mapping[str, Any]) -> OutputCheck:
    told = {_RENAMED.get(name, name): value for name, value in told.items()}
    numbers = {name: _real(told[name], math.inf) for name in ("degrees_of_freedom", "level", "chi_square")}
    probabilities = ("size_p", "autocorrelation_z", "autocorrelation_p", "runs_p")
    numbers |= {name: _real(told[name], math.nan) for name in probabilities}
    numbers |= {name: _real(told.get(name, 1.0), math.nan) for name in ("outlier_p", "tails_p")}
    numerical = _truth(told.get("numerical", False))
    return OutputCheck(output=_text(told["output"]), points=_count(told["points"]), numerical=numerical, **numbers)


def _provenance(told: Mapping[str, Any]) -> Provenance:
    times = tuple(_array(told["times"], (-1,)).tolist())
    return Provenance(_text(told["rung"]), _text(told["estimator"]), times, _text(told["start"]))


def _verdict(told: Mapping[str, Any] | None, now: Callable[[str], tuple[str, ...]]) -> Identifiability | None:
    """What can be known, `now` telling the labels that a name in the file stands for."""
    if told is None:
        return None
    counts = [None if told.get(name) is None else _count(told[name]) for name in ("solutions", "roots")]
    return Identifiability(
        {label: _text(kind) for name, kind in told["kinds"].items() for label in now(_text(name))},
        _texts(told["combinations"]),
        tuple(label for name in _texts(told["fix"]) for label in now(name)),
        counts[0],
        _text(told["message"]),
        counts[1],
    )


def _candidates(told: Mapping[str, Any] | None, n: int) -> Candidates | None:
    if told is None:
        return None
    values = _array(told["values"], (-1, n), math.nan)
    sources = _texts(told["sources"])
    if len(sources) != len(values):
        raise ValueError("not as many sources as candidates")
    return Candidates(values, _array(told["costs"], (len(values),), math.inf), sources)
