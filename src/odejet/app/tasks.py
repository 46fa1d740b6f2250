"""Tasks: what is asked of a draft, done, and kept in a folder: a fit, draws, a population, or models by switches.

The page and `odejet run` do it alike, so that a study gives the same answer wherever it is run.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from odejet.app import posing, results, scripts, studies, views
from odejet.app.drafts import Draft
from odejet.errors import ModelError
from odejet.fitting import fit
from odejet.population import PopulationFit
from odejet.report.posterior import compared_intervals
from odejet.report.posterior import page as posterior_page
from odejet.result import Fit
from odejet.selection import select

FIT, DRAWS, POPULATION = "fit.json", "draws.json", "population.json"
MODELS, RESULT, REPORT, SCRIPT = "models.txt", "result.json", "report.html", "fit.py"

Tell = Callable[[str], object]


@dataclass(frozen=True)
class Done:
    """What came of a task: what the page shows, what a terminal prints, and files."""

    shown: Mapping[str, Any]
    summary: str
    certified: bool  # or, of draws and comparisons, that nothing speaks against them
    files: Mapping[str, Callable[[Path], object]]
    report: Callable[[Path], object]

    def save(self, into: Path) -> None:
        """Write everything but the report, which takes longer."""
        for name, write in self.files.items():
            write(into / name)
        studies.write(into / RESULT, json.dumps(self.shown, allow_nan=False).encode())


def prepare(draft: Draft, folder: Path, name: str, into: Path) -> None:
    """Write the script of a task with the files that it reads, and refuse a draft that poses nothing."""
    problem = posing.problem_of(draft, folder, name)
    if draft.task == "population":
        posing.population_of(draft, folder, name)
    contents = scripts.files_of(draft, folder, problem)
    contents[SCRIPT] = scripts.script(draft, folder, problem).encode()
    for title, content in contents.items():
        studies.write(into / title, content)


def done(draft: Draft, folder: Path, name: str, tell: Tell) -> Done:
    """Do what a draft asks for."""
    return _TASKS[draft.task](draft, folder, name, tell)


def _fitted(draft: Draft, folder: Path, name: str, tell: Tell) -> Fit:
    problem = posing.problem_of(draft, folder, name)
    found = fit(problem, effort=draft.effort, time_limit=draft.limit, progress=tell)
    assert isinstance(found, Fit)
    if not found.found:
        raise ModelError(found.message)
    return found


def _fit(draft: Draft, folder: Path, name: str, tell: Tell) -> Done:
    found = _fitted(draft, folder, name, tell)
    return Done(results.result(found), str(found), found.certified, {FIT: found.save}, found.report)


def _posterior(draft: Draft, folder: Path, name: str, tell: Tell) -> Done:
    found = _fitted(draft, folder, name, tell)
    tell("draws")
    draws = found.sample(ess=draft.draws, time_limit=draft.limit)
    return Done(
        results.posterior(found, draws),
        str(draws),
        draws.success,
        {FIT: found.save, DRAWS: draws.save},
        lambda path: studies.write(path, posterior_page(draws, compared_intervals(found)).encode()),
    )


def _population(draft: Draft, folder: Path, name: str, tell: Tell) -> Done:
    found = fit(posing.population_of(draft, folder, name), time_limit=draft.limit, progress=tell)
    assert isinstance(found, PopulationFit)
    own = list(next(iter(found.individuals.values())))
    apart = posing.problem_of(replace(draft, local=tuple(own), priors={}), folder, name)
    return Done(
        results.population(found, views.Measured(apart)),
        f"{found}\n  explains the data: {found.adequacy.sentence}",
        found.certified,
        {POPULATION: found.save},
        found.report,
    )


def _models(draft: Draft, folder: Path, name: str, tell: Tell) -> Done:
    problem = posing.problem_of(draft, folder, name)
    switches = posing.switches_of(draft, problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the result says it
        found = select(
            problem,
            switches=switches,
            method=draft.method,
            effort=draft.effort,
            time_limit=draft.limit,
            progress=lambda words: tell(words.partition(":")[0]),
        )
    best = found.fit
    files: dict[str, Callable[[Path], object]] = {FIT: best.save}
    files[MODELS] = lambda path: studies.write(path, f"{found}\n".encode())
    return Done(results.models(found), str(found), not found.warning, files, best.report)


_TASKS: Mapping[str, Callable[[Draft, Path, str, Tell], Done]] = {
    "fit": _fit,
    "posterior": _posterior,
    "population": _population,
    "models": _models,
}
