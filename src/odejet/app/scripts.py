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
        if draft.task == "population":
            return "\n".join([*lines, *_population(draft, problem), ""])
        lines += [_call("problem = oj.Problem", ["model", "data"], _posed(draft, problem))]
    return "\n".join([*lines, *_asked(draft, problem), 'fit.report("report.html")', ""])


def _asked(draft: Draft, problem: Problem) -> list[str]:
    """What is done with the problem, to the fit that the report is of."""
    effort = {"effort": draft.effort, "time_limit": draft.limit}
    if draft.task == "models":
        how = {"switches": posing.switches_of(draft, problem), "method": draft.method, **effort}
        found = [_call("selection = oj.select", ["problem"], how), "", "print(selection)", "fit = selection.fit"]
    else:
        found = [_call("fit = oj.fit", ["problem"], effort), "", "print(fit)"]
    if draft.task == "posterior":
        found += [_call("draws = fit.sample", [], {"ess": draft.draws, "time_limit": draft.limit}), "print(draws)"]
        found += ['draws.save("draws.json")', 'draws.report("draws.html")']
    return [*found, 'fit.save("fit.json")']


def _population(draft: Draft, problem: Problem) -> list[str]:
    model = problem.model
    bounds = {key: pair for key, pair in posing.bounds_of(draft, problem).items() if key in model.parameters}
    lines = [_call("model = model.replace", [], {"bounds": {**model.bounds, **bounds}, "local": ()})]
    given = {
        "random": posing.random_of(draft, model),
        "correlated": draft.correlated,
        "covariates": {key: words for key, words in draft.covariates.items() if words.strip()},
        "noise": posing.noise_of(draft, model),
        "fixed": posing.options(draft, model)["fixed"],
        "priors": posing.priors_of(draft, model),
    }
    lines.append(_call("population = oj.Population", ["model", "data"], {k: v for k, v in given.items() if v}))
    lines.append(_call("fit = oj.fit", ["population"], {"time_limit": draft.limit}))
    return [*lines, "", "print(fit)", 'fit.save("population.json")', 'fit.report("report.html")']


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
    given["priors"] = posing.priors_of(draft, problem.model)
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
