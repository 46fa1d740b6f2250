"""PEtab Select: problems of model selection as systems biology writes them, with odejet as their calibrator.

The library `petab_select` reads the problem and says which models are next; every one of them is a PEtab problem with
some parameters given and the others estimated, which is posed and fitted here.  Criteria are the library's: they charge
for every estimated parameter of the table.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odejet.errors import ModelError
from odejet.extras import needed
from odejet.io.petab.posing import Posed, pose
from odejet.numerals import short
from odejet.result import Fit
from odejet.selection.calibration import BETTER, fitted, started
from odejet.selection.candidate import is_confirmed
from odejet.selection.selection import NEAR
from odejet.tables import html_table, table

ESTIMATE = "estimate"

SHOWN = 20
"""Models that the table shows."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A model of a problem of PEtab Select with its fit."""

    model: Any  # as the library has it
    posed: Posed
    fit: Fit | None  # None where nothing is unknown
    log_likelihood: float
    criterion: float
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return str(self.model.model_id)

    @property
    def estimated(self) -> frozenset[str]:
        """Ids of all parameters that are estimated."""
        return frozenset(self.posed.ids.values())

    @property
    def values(self) -> dict[str, float]:
        """Estimates by the ids of PEtab."""
        return {} if self.fit is None else {self.posed.ids[label]: value for label, value in self.fit.values.items()}

    @property
    def confirmed(self) -> bool:
        return self.fit is None or is_confirmed(self.fit)


@dataclass(eq=False)
class PetabSelection:
    """The models that were calibrated, the best first, and whether the selection came to its end."""

    criterion: str
    method: str
    models: list[Calibrated] = field(default_factory=list)
    stopped: str = ""  # why it ended early; empty if it did not

    @property
    def best(self) -> Calibrated:
        return self.models[0]

    @property
    def weights(self) -> dict[str, float]:
        least = self.best.criterion
        shares = {one.name: math.exp(-0.5 * (one.criterion - least)) for one in self.models}
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()}

    @property
    def warning(self) -> str:
        """What the ranking rests on that was not confirmed; empty if nothing."""
        near = [one for one in self.models if one.criterion <= self.best.criterion + NEAR and not one.confirmed]
        if not near:
            return ""
        names = ", ".join(one.name for one in near[:3]) + (f" and {len(near) - 3} more" if len(near) > 3 else "")
        return f"the ranking rests on fits that are not confirmed ({names}): a better optimum may change it"

    def __repr__(self) -> str:
        lines = table(self._rows(), right=range(1, 6))
        return "\n".join([*lines, "", f"best: {self.best.name}", *self._said("  ")])

    def _repr_html_(self) -> str:
        return html_table(self._rows(), range(1, 6), notes=[f"best: {self.best.name}", *self._said()])

    def _rows(self) -> list[tuple[str, ...]]:
        weights = self.weights
        head = "model", "estimated", "log-likelihood", self.criterion, f"Δ{self.criterion}", "weight", "confirmed"
        rows: list[tuple[str, ...]] = [head]
        for one in self.models[:SHOWN]:
            numbers = (one.log_likelihood, one.criterion, one.criterion - self.best.criterion)
            ends = short(weights[one.name], 3), "yes" if one.confirmed else "no"
            rows.append((one.name, str(len(one.estimated)), *(f"{number:.2f}" for number in numbers), *ends))
        left = len(self.models) - SHOWN
        return [*rows, (f"and {left} more", *[""] * 6)] if left > 0 else rows

    def _said(self, indent: str = "") -> list[str]:
        """The values of the best model, then how the selection ended and what it rests on."""
        notes = (("stopped", self.stopped), ("warning", self.warning))
        values = [f"{indent}{id_} = {value:.6g}" for id_, value in self.best.values.items()]
        return [*values, *(f"{word}: {note}" for word, note in notes if note)]


def select_petab(
    path: str | os.PathLike[str],
    *,
    total: float = math.inf,
    tell: Callable[[str], object] | None = None,
    **options: Any,
) -> PetabSelection:
    """Select among the models of a PEtab Select problem.

    `options` are those of `fit` for every model, among them `time_limit`; after `total` seconds no further model is
    fitted, and the best so far is the answer.  `tell` is called with a sentence for every model.
    """
    library = needed("petab_select")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library, about its own ways
        return _Run(library, _problem(library, Path(path)), time.monotonic() + total, tell, options).selected()


def _problem(library: Any, path: Path) -> Any:
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file")
    try:
        problem = library.Problem.from_yaml(path)
    except Exception as error:  # the library raises whatever its parts raise
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{path}: this is no problem of PEtab Select: {told}") from None
    # A file does not choose where something is written.
    problem.candidate_space_arguments.pop("summary_tsv", None)
    return problem


class _Run:
    """One selection on its way."""

    def __init__(
        self, library: Any, problem: Any, end: float, tell: Callable[[str], object] | None, options: Mapping[str, Any]
    ) -> None:
        self.library, self.problem, self.end, self.tell, self.options = library, problem, end, tell, options
        self.known: dict[str, Calibrated] = {}
        method = getattr(problem.method, "value", problem.method)
        self.selection = PetabSelection(str(getattr(problem.criterion, "value", problem.criterion)), str(method))

    def selected(self) -> PetabSelection:
        space = None
        while not self.selection.stopped:
            begun = self.library.ui.start_iteration(problem=self.problem, candidate_space=space)
            space, models = begun["candidate_space"], begun["uncalibrated_models"]
            done = [model for model in models if self._calibrate(model)]
            ended = self.library.ui.end_iteration(
                problem=self.problem, candidate_space=space, calibrated_models=self.library.Models(done)
            )
            if ended["terminate"]:
                break
        self.selection.models = sorted(self.known.values(), key=lambda one: (one.criterion, len(one.estimated)))
        if not self.selection.models:
            raise ModelError("the problem has no model to select")
        return self.selection

    def _calibrate(self, model: Any) -> bool:
        """Fit a model, and tell the library how well it fits; not after the end of the time."""
        if time.monotonic() > self.end and self.known:
            self.selection.stopped = "the time is over; models that are left were not fitted"
            return False
        begin = time.perf_counter()
        posed = pose(model.model_subspace_petab_yaml, dict(_given(model)))
        found, value = fitted(posed.problem, self.options)
        one = Calibrated(model, posed, found, value, math.nan)
        if found is not None:
            found = self._begun_anew(one, found)
            value = found.log_likelihood
        criteria = self.library.constants.Criterion
        model.set_criterion(criteria.NLLH, -value)
        one = Calibrated(model, posed, found, value, math.nan, time.perf_counter() - begin)
        model.set_estimated_parameters(one.values)
        criterion = float(model.get_criterion(self.problem.criterion))
        self.known[str(model.hash)] = one = Calibrated(model, posed, found, value, criterion, one.seconds)
        if self.tell is not None:
            self.tell(f"{one.name}: {self.selection.criterion} {criterion:.4f}")
        return True

    def _begun_anew(self, one: Calibrated, fit: Fit) -> Fit:
        """The fit, or a better optimum to which those of models that differ by one or two parameters lead."""
        others = [other for other in self.known.values() if 0 < len(other.estimated ^ one.estimated) <= 2]
        for other in sorted(others, key=lambda other: -other.log_likelihood)[:3]:
            missed = other.estimated < one.estimated and other.log_likelihood > fit.log_likelihood + BETTER
            if missed or not is_confirmed(fit):
                values = {**_fixed(other.model), **other.values}
                fit = started(fit, {label: _start(id_, values, fit, label) for label, id_ in one.posed.ids.items()})
        return fit


def _start(id_: str, values: Mapping[str, float], fit: Fit, label: str) -> float:
    return values[id_] if id_ in values else fit.values[label]


def _given(model: Any) -> Iterable[tuple[str, float | None]]:
    """The parameters of a model by id, None for those to be estimated."""
    groups = getattr(model, "metaparameters", None) or {}
    for id_, value in model.parameters.items():
        for own in groups.get(id_, [id_]):
            yield own, None if value == ESTIMATE else float(value)


def _fixed(model: Any) -> dict[str, float]:
    return {id_: value for id_, value in _given(model) if value is not None}
