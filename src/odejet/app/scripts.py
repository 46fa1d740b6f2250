"""Scripts: the fit of a draft as a Python script that does the same, with the files it reads."""

from __future__ import annotations

from pathlib import Path
from pprint import pformat
from typing import Any

from odejet.app import posing
from odejet.app.drafts import Draft
from odejet.problem import Problem

MODEL, DATA = "model.toml", "data.csv"


def files_of(draft: Draft, folder: Path, problem: Problem) -> dict[str, bytes]:
    """The model and the measurements, as the script reads them; a PEtab problem has its own files."""
    found = {MODEL: problem.model.to_toml().encode()}
    if draft.language != "petab":
        found[DATA] = posing.table(draft, folder, problem.model)
    return found


def script(draft: Draft, folder: Path, problem: Problem) -> str:
    """The script, to be run in the folder of its files."""
    lines = ['"""The fit that odejet app made, again: run it in the folder where its files are."""', ""]
    lines += ["import odejet as oj", ""]
    if draft.language == "petab":
        lines += [f"problem = oj.read_petab({'../../files/' + draft.file!r})"]
    else:
        lines += [f'model = oj.Model.from_toml("{MODEL}")', f'data = oj.Data.from_csv("{DATA}")']
        lines += _more(draft, folder, problem)
        lines += [_call("problem = oj.Problem", ["model", "data"], _posed(draft, problem))]
    keywords = {"effort": draft.effort, "time_limit": draft.limit}
    lines += [_call("fit = oj.fit", ["problem"], keywords), "", "print(fit)", 'fit.save("fit.json")']
    return "\n".join([*lines, 'fit.report("report.html")', ""])


def _more(draft: Draft, folder: Path, problem: Problem) -> list[str]:
    """Doses and the start, which the table does not have."""
    lines = []
    rows = posing.doses(draft)
    if rows:
        lines.append(f"data = data.dosed({pformat(rows, width=100, sort_dicts=False)})")
    data = posing.measured(draft, folder, problem.model)
    start = posing.start_of(draft, data)
    return [*lines, *([f"data = data.starting({start!r})"] if start is not None else [])]


def _posed(draft: Draft, problem: Problem) -> dict[str, Any]:
    bounds = posing.bounds_of(draft, problem)
    noise = posing.noise_of(draft, problem.model)
    given = {"positive": draft.positive, "noise": noise, **posing.options(draft, problem.model), "bounds": bounds}
    return {name: value for name, value in given.items() if value}


def _call(function: str, arguments: list[str], keywords: dict[str, Any]) -> str:
    told = [*arguments, *(f"{name}={_written(value)}" for name, value in keywords.items())]
    line = f"{function}({', '.join(told)})"
    if len(line) <= 100:
        return line
    return "\n".join([f"{function}(", *(f"    {one}," for one in told), ")"])


def _written(value: Any) -> str:
    """A value as Python source; infinity has no literal."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_written(one)}" for name, one in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_written, value)) + ")"
    return f'float("{value}")' if isinstance(value, float) and value in (float("inf"), -float("inf")) else repr(value)
