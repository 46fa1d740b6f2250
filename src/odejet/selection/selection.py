"""Selection: the models that were fitted, ranked, with what each is worth."""

from __future__ import annotations

import math
import multiprocessing
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.data import Data
from odejet.errors import ModelError
from odejet.extras import needed
from odejet.model import Model
from odejet.numerals import short
from odejet.problem import Problem
from odejet.problem.coordinates import Bounds
from odejet.problem.noise import Given
from odejet.problem.priors import Priors
from odejet.progress import Progress, Wanted
from odejet.result import LEVEL, Fit, Prediction
from odejet.result.nested import NestedTest, likelihood_ratio
from odejet.selection.average import LEAST, averaged
from odejet.selection.calibration import candidates, improved
from odejet.selection.candidate import Candidate, checked_criterion
from odejet.selection.methods import METHODS, On, checked_method
from odejet.selection.switches import Switches
from odejet.tables import html_table, table

if TYPE_CHECKING:
    import pandas

NEAR = 10.0
"""Difference of the criterion within which a better optimum of a model could change the ranking that matters."""

NAMES = {"aic": "AIC", "aicc": "AICc", "bic": "BIC"}


@dataclass(frozen=True, eq=False)
class Selection(Sequence[Candidate]):
    """The candidates of a selection, the best first."""

    candidates: tuple[Candidate, ...]
    switches: tuple[str, ...]
    criterion: str
    method: str

    def __getitem__(self, key: Any) -> Any:
        """A candidate by its rank or by its name."""
        if isinstance(key, str):
            for one in self.candidates:
                if one.name == key:
                    return one
            raise KeyError(f"no model is called '{key}'; there are {', '.join(one.name for one in self.candidates)}")
        return self.candidates[key]

    def __len__(self) -> int:
        return len(self.candidates)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    @property
    def best(self) -> Candidate:
        return self.candidates[0]

    @property
    def fit(self) -> Fit:
        """The fit of the best model."""
        if self.best.fit is None:
            raise ModelError("nothing is unknown in the best model, so that there is no fit of it")
        return self.best.fit

    @property
    def weights(self) -> dict[str, float]:
        """How probable it is, about, that each model is the one that predicts best (Burnham and Anderson 2002)."""
        values = np.array([one.criterion(self.criterion) for one in self.candidates])
        if not np.isfinite(values).any():
            return dict.fromkeys((one.name for one in self.candidates), 1 / len(values))
        shares = np.exp(-0.5 * (values - values.min()))
        return dict(zip((one.name for one in self.candidates), (shares / shares.sum()).tolist(), strict=True))

    @property
    def importance(self) -> dict[str, float]:
        """The weights of all models together that have a switch on, by switch."""
        weights = self.weights
        return {
            name: sum(weights[one.name] for one in self.candidates if name in one.estimated) for name in self.switches
        }

    @property
    def tests(self) -> tuple[NestedTest, ...]:
        """Likelihood-ratio tests of the best model against those that differ from it by one switch."""
        pairs = []
        for other in self.candidates:
            if other is self.best or len(other.estimated ^ self.best.estimated) != 1:
                continue
            small, large = (other, self.best) if other.nested_in(self.best) else (self.best, other)
            at_bound = any(
                _is_at_bound(large.problem, name, small.off[name]) for name in large.estimated - small.estimated
            )
            gain, degrees = large.log_likelihood - small.log_likelihood, large.parameters - small.parameters
            pairs.append(likelihood_ratio(small.name, large.name, gain, degrees, at_bound))
        return tuple(pairs)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Models near the best, or the best itself, whose fits may not be the best that they can do."""
        least = self.best.criterion(self.criterion)
        near = [one for one in self.candidates if not one.criterion(self.criterion) > least + NEAR]
        return tuple(one.name for one in near if not one.confirmed)

    @property
    def warning(self) -> str:
        """What the ranking rests on that was not confirmed; empty if nothing."""
        if not self.unconfirmed:
            return ""
        names = ", ".join(self.unconfirmed[:4]) + (
            f" and {len(self.unconfirmed) - 4} more" * (len(self.unconfirmed) > 4)
        )
        return (
            f"the ranking rests on fits that are not confirmed ({names}): a better optimum may change it; "
            "allow more time_limit, or look at the fits"
        )

    def predict(
        self,
        times: Sequence[float] | np.ndarray | None = None,
        experiment: str | None = None,
        level: float = LEVEL,
        **options: Any,
    ) -> Prediction:
        """Average the predictions of all models by their weights, with bands that hold how much they disagree.

        Options are those of `fit.predict`.
        """
        weights = self.weights
        kept = [one for one in self.candidates if weights[one.name] >= LEAST and one.fit is not None]
        if not kept:
            raise ModelError("nothing is unknown in the models that count, so that there is no fit to predict from")
        found = [one.fit.predict(times, experiment, level, **options) for one in kept if one.fit is not None]
        return averaged(found, [weights[one.name] for one in kept])

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per model."""
        pandas = needed("pandas")
        weights, least = self.weights, self.best.criterion(self.criterion)
        rows = [
            {
                "model": one.name,
                **{name: name in one.estimated for name in self.switches},
                "parameters": one.parameters,
                "log_likelihood": one.log_likelihood,
                "aic": one.aic,
                "aicc": one.aicc,
                "bic": one.bic,
                "difference": one.criterion(self.criterion) - least,
                "weight": weights[one.name],
                "confirmed": one.confirmed,
                "seconds": one.seconds,
            }
            for one in self.candidates
        ]
        return pandas.DataFrame(rows).set_index("model")

    def cells(self) -> list[tuple[str, ...]]:
        """The table as text, with its head."""
        title, weights, least = NAMES[self.criterion], self.weights, self.best.criterion(self.criterion)
        rows: list[tuple[str, ...]] = [
            ("estimated", "parameters", "log-likelihood", title, f"Δ{title}", "weight", "confirmed")
        ]
        for one in self.candidates:
            value = one.criterion(self.criterion)
            beyond = value - least if math.isfinite(value) else math.inf
            ends = f"{beyond:.2f}", short(weights[one.name], 3), "yes" if one.confirmed else "no"
            rows.append((one.name, str(one.parameters), f"{one.log_likelihood:.2f}", f"{value:.2f}", *ends))
        return rows

    def __repr__(self) -> str:
        lines = table(self.cells(), right=range(1, 6))
        lines += ["", *(f"{test}" for test in self.tests)] if self.tests else []
        return "\n".join([*lines, *(["", f"warning: {self.warning}"] if self.warning else [])])

    def _repr_html_(self) -> str:
        warned = [f"warning: {self.warning}"] if self.warning else []
        return html_table(self.cells(), range(1, 6), notes=[*map(str, self.tests), *warned])


def select(
    model: Model | Problem,
    data: Data | None = None,
    *,
    switches: Mapping[str, float | str],
    criterion: str = "aicc",
    method: str = "forward",
    bounds: Bounds = None,
    positive: bool | Collection[str] | None = None,
    noise: Given = None,
    fixed: Mapping[str, float | str] | None = None,
    local: Sequence[str] = (),
    priors: Priors = None,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Wanted = None,
    **options: Any,
) -> Selection:
    """Which of the models that switches make the data support.

    `switches` are parameters or initial states with their values when off, numbers or expressions: `{"k5": 0}` asks
    whether k5 is needed, `{"k5": "k4"}` whether it differs from k4.  `criterion` is "aicc", "aic" or "bic"; `method`
    fits all models ("exhaustive"), or goes from the smallest or from the largest one switch at a time ("forward",
    "backward").  Models are fitted on `jobs` cores or on an executor, each within a `time_limit` of 30 seconds unless
    you say otherwise; further options are those of `fit`.  A `progress` that is a function is called with a sentence
    for every model.  A model that contains another begins anew from the optimum of the other wherever its fit is worse.
    """
    posed = {"bounds": bounds, "positive": positive, "noise": noise, "fixed": fixed, "local": local, "priors": priors}
    found = Switches.of(model, data, switches, posed)
    if found.problem.weights != "likelihood":
        raise ModelError("plain squares have no likelihood to select by; pose the problem with weights='likelihood'")
    criterion, method = checked_criterion(criterion), checked_method(method)
    told = progress if callable(progress) else None
    with Progress(False if told else progress, words="fitting models") as shown:

        def tell(words: str) -> None:
            shown.note(words)
            if told is not None:
                told(words)

        return _on_cores(found, criterion, method, options, jobs, executor, tell)


def _on_cores(
    found: Switches,
    criterion: str,
    method: str,
    options: Mapping[str, Any],
    jobs: int,
    executor: Executor | None,
    tell: Callable[[str], object],
) -> Selection:
    if executor is None and jobs > 1:
        # Fresh processes: a fork of one that has threads may never wake up.
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as own:
            return _selected(found, criterion, method, options, own, tell)
    return _selected(found, criterion, method, options, executor, tell)


def _selected(
    switches: Switches,
    criterion: str,
    method: str,
    options: Mapping[str, Any],
    executor: Executor | None,
    tell: Callable[[str], object],
) -> Selection:
    known: dict[On, Candidate] = {}

    def evaluate(asked: Sequence[On]) -> list[Candidate]:
        new = [on for on in asked if on not in known]
        for one in candidates(switches, new, options, executor):
            known[one.estimated] = improved(one, list(known.values()))
            tell(f"{one.name}: {NAMES[criterion]} {known[one.estimated].criterion(criterion):.2f}")
        return [known[on] for on in asked]

    METHODS[method](switches.names, evaluate, criterion)
    # Once more, small ones first: what was found last may lead on those that came before.
    for on in sorted(known, key=lambda on: (len(on), sorted(on))):
        known[on] = improved(known[on], [one for key, one in known.items() if key != on])
    order = sorted(known.values(), key=lambda one: (one.criterion(criterion), one.parameters, one.name))
    selection = Selection(tuple(order), switches.names, criterion, method)
    if selection.warning:
        warnings.warn(selection.warning, stacklevel=4)
    return selection


def _is_at_bound(problem: Problem, name: str, off: float | str) -> bool:
    """Whether a switch is off at the end of what it may be, where the usual law of the ratio does not hold."""
    ends = [problem.bounds[unknown.label] for unknown in problem.layout if unknown.name == name]
    return not isinstance(off, str) and any(off in pair for pair in ends)
