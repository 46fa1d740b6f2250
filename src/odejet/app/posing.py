"""Posing: the model or the problem that a draft is.

Of what a draft says of unknowns, whatever names none that the model has at the moment is passed over: equations change
while they are written.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from odejet.app.drafts import Draft
from odejet.data import Data
from odejet.data.doses import is_missing
from odejet.data.table import EXPERIMENT, TIME
from odejet.errors import DataError, ModelError
from odejet.io import antimony, columns, equations
from odejet.io.columns import Glance
from odejet.io.csv import data_of, opened
from odejet.io.formats import freed
from odejet.io.networks import MEASURED
from odejet.io.petab import read_petab
from odejet.io.sbml.network import START
from odejet.model import Model
from odejet.population import Population
from odejet.problem import Problem

# --- models -----------------------------------------------------------------------------------------------------------


def model_of(draft: Draft, name: str, folder: Path | None = None) -> Model:
    """The model that a draft describes, with outputs for states that have a column of their own."""
    found = freed_of(draft, plain_model(draft, name))
    titles = {} if folder is None or not draft.data else titles_of(draft, glance_of(folder / draft.data), found)
    measured = [state for state in found.states if state in titles.values()]
    if not measured:
        return found
    outputs = {**found.outputs, **{MEASURED.format(state): state for state in measured}}
    return found.replace(outputs=outputs, parameters=None)


def plain_model(draft: Draft, name: str) -> Model:
    """The model as the text says it."""
    if not draft.text.strip():
        raise ModelError("there is no model yet; write a line such as x' = -k*x")
    if draft.language == "toml":
        found = Model.from_toml_text(draft.text)
        return found.replace(name=name) if found.name == "model" else found
    if draft.language == "antimony":
        return antimony.parse(draft.text, name=name)
    return equations.parse(draft.text, name)


def freed_of(draft: Draft, model: Model) -> Model:
    """The model without the numbers that the draft does not believe."""
    known = {*model.fixed, *model.initial}
    return freed(model, [name for name in draft.free if name in known])


# --- problems ---------------------------------------------------------------------------------------------------------


def problem_of(draft: Draft, folder: Path, name: str) -> Problem:
    """The problem that a draft poses, with the files in a folder."""
    if draft.language == "petab":
        return read_petab(folder / draft.file)
    if not draft.data:
        raise DataError("there are no data yet; drop a table of measurements on the page")
    model = model_of(draft, name, folder)
    data = measured(draft, folder, model)
    noise = noise_of(draft, model) or None
    known = {"priors": priors_of(draft, model), **options(draft, model)}
    problem = Problem(model, data, None, draft.positive, noise, **known)
    bounds = bounds_of(draft, problem)
    return problem.bounded(bounds) if bounds else problem


def population_of(draft: Draft, folder: Path, name: str) -> Population:
    """The population that a draft poses: its experiments are subjects."""
    if draft.language == "petab":
        raise ModelError("a PEtab problem says nothing of how subjects differ; begin a new study for a population")
    if not draft.data:
        raise DataError("there are no data yet; drop a table with several subjects on the page")
    model = model_of(draft, name, folder)
    random = random_of(draft, model)
    if not random:
        raise ModelError("no parameter differs between subjects yet; check those that do")
    bounds = {
        key: (-math.inf if low is None else low, math.inf if high is None else high)
        for key, (low, high) in draft.bounds.items()
        if key in model.parameters
    }
    return Population(
        model.replace(bounds={**model.bounds, **bounds}, local=()),
        measured(draft, folder, model),
        random,
        draft.correlated and len(random) > 1,
        {key: words for key, words in draft.covariates.items() if key in model.parameters and words.strip()},
        noise=noise_of(draft, model) or None,
        fixed=options(draft, model)["fixed"],
        priors=priors_of(draft, model),
    )


def random_of(draft: Draft, model: Model) -> dict[str, str]:
    """The parameters that differ between subjects, and by which law."""
    return {key: law for key, law in draft.random.items() if law and key in model.parameters}


def switches_of(draft: Draft, problem: Problem) -> dict[str, float | str]:
    """What the model may be without, and its value then."""
    known = {unknown.name for unknown in problem.layout}
    found = {key: number_or_text(off) for key, off in draft.switches.items() if off.strip() and key in known}
    if not found:
        raise ModelError("no switch is checked yet; check at least one unknown that the model may be without")
    return found


def priors_of(draft: Draft, model: Model) -> dict[str, str]:
    """What a draft knows of unknowns before the data, by name; of what is known exactly it is passed over."""
    known = _names(draft, model) - {*options(draft, model)["fixed"]}
    told = {key: words.strip() for key, words in draft.priors.items() if words.strip()}
    return {key: words for key, words in told.items() if key.removesuffix("(0)") in known}


def noise_of(draft: Draft, model: Model) -> dict[str, float | str]:
    """What a draft says of the noise, by output."""
    told = {name: words for name, words in draft.noise.items() if name in model.outputs and words.strip()}
    return {name: number_or_text(words) for name, words in told.items()}


def options(draft: Draft, model: Model) -> dict[str, Any]:
    """What a draft fixes, and what is local to experiments."""
    names = _names(draft, model)
    told = {key: words for key, words in draft.fixed.items() if words.strip() and key in names}
    fixed = {key: number_or_text(words) for key, words in told.items() if key not in draft.free}
    return {"fixed": fixed, "local": [key for key in draft.local if key in model.parameters and key not in fixed]}


def _names(draft: Draft, model: Model) -> set[str]:
    """Names that may stand for unknowns: of parameters and states, and words in what is said of the noise."""
    words = {word for told in (*draft.noise.values(), *model.noise.values()) for word in re.findall(r"\w+", str(told))}
    return {*model.parameters, *model.fixed, *model.states, *words}


def bounds_of(draft: Draft, problem: Problem) -> dict[str, tuple[float, float]]:
    """Bounds by label, of the unknowns that the draft gives some, by label or by name; an open end is the model's."""
    found = {}
    for unknown in problem.layout:
        given = draft.bounds.get(unknown.label, draft.bounds.get(unknown.name))
        if given is not None:
            low, high = (
                own if end is None else end for end, own in zip(given, problem.bounds[unknown.label], strict=True)
            )
            if not low < high:
                raise ModelError(f"the bounds of {unknown.label} leave nothing: {low:g} must be below {high:g}")
            found[unknown.label] = low, high
    return found


def measured(draft: Draft, folder: Path, model: Model) -> Data:
    """The measurements of a draft under the names of the model, with doses and the start."""
    data = _data(*_table_asked(draft, folder, model))
    rows = doses(draft)
    if rows:
        data = data.dosed(rows)
    start = start_of(draft, data)
    return data if start is None else data.starting(start)


def start_of(draft: Draft, data: Data) -> float | None:
    """When initial states hold: what was given, or with networks the time zero; None where the data tell."""
    if draft.start is not None:
        return draft.start
    first = min(one.start for one in data.experiments)
    return float(START) if draft.language == "antimony" and first > START else None


# --- columns ----------------------------------------------------------------------------------------------------------


def glance_of(path: Path) -> Glance:
    """A glance at the file of the measurements."""
    return _glance(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _glance(path: Path, _modified: int) -> Glance:
    return columns.glance(path.read_bytes(), path.name)


def titles_of(draft: Draft, glance: Glance, model: Model) -> dict[str, str]:
    """What each column is: as somebody has chosen, or else by its name; empty for one that is not used."""
    if glance.kind == "nonmem":
        return {}
    own = [name for name in model.outputs if not (name.endswith(MEASURED.format("")) and name not in glance.names)]
    plain = {str(value): name for name, value in model.outputs.items() if name in own and str(value) in model.states}
    states = [name for name in model.states if name not in plain]
    known = (*own, *model.inputs, *model.parameters, *model.fixed, *states)
    names = tuple(name for name in glance.names if name not in draft.titles)
    taken = set(draft.titles.values())
    left = tuple(name for name in own if name not in taken)
    timed = glance.kind == "wide" and TIME not in taken
    guessed = columns.guess(names, known, left, timed, glance.words) if names else {}
    guessed = {name: plain.get(name, title) for name, title in guessed.items()}
    return {name: draft.titles.get(name, guessed.get(name, "")) for name in glance.names}


def table(draft: Draft, folder: Path, model: Model) -> bytes:
    """The file of the measurements with its columns called as the model calls them."""
    return _retitled(*_table_asked(draft, folder, model))


def _table_asked(draft: Draft, folder: Path, model: Model) -> tuple[Path, int, tuple[tuple[str, str], ...]]:
    """The file of the measurements, when it was written, and the titles of its columns in this model."""
    path = folder / draft.data
    glance = glance_of(path)
    known = {TIME, *EXPERIMENT, *model.outputs, *model.inputs, *model.parameters, *model.fixed, *model.states}
    outputs = {name: MEASURED.format(name) if name in model.states else name for name in known}
    titles = {name: outputs.get(title, "") for name, title in titles_of(draft, glance, model).items()}
    if glance.kind == "wide" and TIME not in titles.values():
        raise DataError(f"{draft.data}: no column is the time; choose one")
    if glance.kind != "nonmem" and not any(name in model.outputs for name in titles.values()):
        raise DataError(f"{draft.data}: no column is an output of the model; choose what each column measures")
    return path, path.stat().st_mtime_ns, tuple(titles.items())


def _retitled(path: Path, _modified: int, titles: tuple[tuple[str, str], ...]) -> bytes:
    content = path.read_bytes()
    return columns.retitled(content, dict(titles), path.name) if titles else content


@lru_cache(maxsize=4)
def _data(path: Path, modified: int, titles: tuple[tuple[str, str], ...]) -> Data:
    return data_of(_retitled(path, modified, titles), path.name)


def doses(draft: Draft) -> list[dict[str, Any]]:
    """The rows of the table of doses in which anything stands."""
    rows = [{name: cell for name, cell in row.items() if not is_missing(cell)} for row in draft.doses]
    return [row for row in rows if row.keys() - {"state", "experimentId"}]


def dose_rows(content: bytes, where: str) -> list[dict[str, str]]:
    """The rows of a file of doses, as the page shows them."""
    return [{name: cell for name, cell in row.items() if cell} for _, row in opened(content, where).cells()]


def number_or_text(told: str) -> float | str:
    """What stands in a field: a number if it is one."""
    try:
        value = float(told)
    except ValueError:
        return told.strip()
    if not math.isfinite(value):
        raise ModelError(f"{told.strip()!r} is not a finite number")
    return value
