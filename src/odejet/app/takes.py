"""Takes: files that were dropped on the page, and what becomes of a draft with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from odejet.app import posing, studies
from odejet.app.archives import is_archive, unpacked
from odejet.app.drafts import Draft
from odejet.app.examples import Example, folder
from odejet.app.starters import begun
from odejet.errors import DataError, ModelError
from odejet.io import columns, equations
from odejet.io.antimony import write_antimony
from odejet.io.csv import data_of
from odejet.io.files import read_text
from odejet.io.petab import read_petab
from odejet.io.sbml import read_sbml
from odejet.model import Model

MODEL_BYTES = 2_000_000
TABLES = (".csv", ".tsv", ".txt", ".dat", ".tab", ".prn", ".nm", ".nmdat")
PROBLEMS = (".yaml", ".yml")


def take(draft: Draft, where: Path, names: Sequence[str]) -> tuple[Draft, list[str]]:
    """The draft with these files of a folder, and what was made of each."""
    problems = [name for name in names if _suffix(name) in PROBLEMS]
    if problems:
        return _problem(draft, where, problems)
    notes = []
    for name in names:
        draft, note = _one(draft, where, name)
        notes.append(note)
    return draft, notes


def example(one: Example) -> Draft:
    """The draft that an example begins with."""
    here = folder()
    begun = plainly(Draft(), Model.from_toml(here / one.model))
    begun, _ = take(begun, here, one.files)
    known = dict(one.known)
    bounds = {**begun.bounds, **known.pop("bounds", {})}
    return replace(begun, bounds=bounds, **known)


def _suffix(name: str) -> str:
    return Path(name).suffix.lower()


def _problem(draft: Draft, folder: Path, names: Sequence[str]) -> tuple[Draft, list[str]]:
    if len(names) > 1:
        raise DataError(f"{names[0]} and {names[1]} are both problems of PEtab; drop one of them at a time")
    problem = read_petab(folder / names[0])
    count = sum(one.points for one in problem.experiments)
    taken = Draft(language="petab", file=names[0], text=problem.model.to_toml(), effort=draft.effort, limit=draft.limit)
    return taken, [f"{names[0]}: {len(problem.unknowns)} unknowns, {count} measurements"]


def _one(draft: Draft, folder: Path, name: str) -> tuple[Draft, str]:
    suffix, path = _suffix(name), folder / name
    if suffix == ".toml":
        return _modelled(draft, "toml", read_text(path, MODEL_BYTES)), f"{name}: a model"
    if suffix == ".ant":
        return _modelled(draft, "antimony", read_text(path, MODEL_BYTES)), f"{name}: a model"
    if suffix in (".xml", ".sbml"):
        return plainly(draft, read_sbml(path)), f"{name}: a model"
    if suffix in TABLES:
        return _table(draft, path)
    if suffix in (".xlsx", ".xls", ".ods"):
        raise DataError(f"{name}: this is a file of a spreadsheet program; save its table there as CSV, and drop that")
    if suffix == ".zip" and is_archive(content := path.read_bytes()):
        return _study(content, folder, name)
    if suffix in (".zip", ".omex", ".gz"):
        raise DataError(f"{name}: unpack this, and drop the files that are in it")
    raise ModelError(
        f"{name}: this is no file of a model or of data; drop a table (.csv), a model (.toml, .ant, .xml) or the files "
        "of a PEtab problem together"
    )


def _study(content: bytes, folder: Path, name: str) -> tuple[Draft, str]:
    """A study that the page has exported, with its files."""
    found = unpacked(content, name)
    for title, part in found.files.items():
        studies.write(folder / title, part)
    return found.draft, f"{name}: the study {found.name}"


def plainly(draft: Draft, model: Model) -> Draft:
    """The draft with a model as equations, where these and what the page has fields for can say it; else as TOML."""
    lines = equations.write(model.replace(bounds={}, noise={}, local=()))
    if lines is None:
        return _modelled(draft, "toml", model.to_toml())
    bounds = {name: (_end(low), _end(high)) for name, (low, high) in model.bounds.items()}
    noise = {name: str(told) for name, told in model.noise.items()}
    return replace(_modelled(draft, "equations", lines), bounds=bounds, noise=noise, local=model.local)


def translated(draft: Draft, language: str, name: str) -> str:
    """The model of a draft in another language."""
    model = posing.plain_model(draft, name)
    if language == "antimony":
        return write_antimony(model)
    lines = equations.write(model) if language == "equations" else None
    if language == "equations" and lines is None:
        raise ModelError("this model is more than equations; write it as TOML")
    return model.to_toml() if lines is None else lines


def _end(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _modelled(draft: Draft, language: str, text: str) -> Draft:
    """With another model; what was said of the unknowns of the one before is kept where names agree."""
    kept = draft if draft.language != "petab" else Draft()
    return replace(kept, language=language, text=text, file="")


def _table(draft: Draft, path: Path) -> tuple[Draft, str]:
    if draft.language == "petab":
        raise DataError(f"{path.name}: a PEtab problem has its own data; start a new study for other data")
    content = path.read_bytes()
    glance = columns.glance(content, path.name)
    if glance.kind == "doses":
        rows = posing.dose_rows(content, path.name)
        return replace(draft, doses=tuple(rows)), f"{path.name}: {len(rows)} doses"
    if not glance.rows:
        raise DataError(f"{path.name}: there are no measurements below the first line")
    taken, note = replace(draft, data=path.name, titles={}), f"{path.name}: {glance.rows} rows"
    if glance.kind != "nonmem" or draft.text.strip():
        return taken, note
    taken, chosen = begun(taken, data_of(content, path.name))
    return taken, f"{note}; {chosen}"
