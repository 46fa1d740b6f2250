"""Fit: from a model and data to all parameters and initial conditions, without a guess.

    smooth       derivatives of every output
    shoot        square systems at shooting times, all their roots, carried back to the first observation
    refine       the best of them, to the optimum of the likelihood
    alternatives what else has the same derivatives, refined too: other solutions, or a better optimum
    multistart   the whole box, if no certificate was earned by then, or first where points are few

The ladder of effort ends with the first rung that earns a certificate.
"""

from __future__ import annotations

import functools
import math
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from odejet.budget import Budget
from odejet.clock import now
from odejet.data import Data
from odejet.decide import LIMITS, Answer, Options, Record, Task, search
from odejet.errors import DataError, ModelError, clipped
from odejet.io.checkpoints import opened
from odejet.journal import Journal, kept_by
from odejet.model import Model
from odejet.population import Population, PopulationFit, fit_population
from odejet.problem import Problem
from odejet.problem.coordinates import Bounds
from odejet.problem.noise import Given
from odejet.problem.priors import Priors
from odejet.progress import Progress, Wanted
from odejet.result import Fit
from odejet.search.pool import Pool
from odejet.search.strategies import chosen
from odejet.search.workers import Workers, executor_of
from odejet.smooth.threads import one_thread
from odejet.uncertainty import posterior
from odejet.uncertainty.posterior import Posterior

EFFORTS = tuple(LIMITS)

_PATIENT = 1e6
"""Seconds that fits of many data sets may take: each has a limit of its own."""


@dataclass(frozen=True)
class Method:
    """How a fit is made in comparisons with other methods: by plain squares (weights "none"), without refinement, with
    some of the estimators of derivatives alone, or by some of the strategies of the search.

    Strategies are "algebraic starts", "multistart", "growing windows", "iterated local search" and "multiple shooting";
    one with other settings is given as a value, such as `odejet.search.multistart.Multistart(groups=(1,))`.
    """

    weights: str = "likelihood"
    refine: bool = True
    estimators: Sequence[str] | None = None
    strategies: Sequence[Any] | None = None


def _with_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let weights, refine and estimators be given one by one, with a warning."""

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        told = {name.name: options.pop(name.name) for name in fields(Method) if name.name in options}
        if told:
            given = ", ".join(f"{name}={value!r}" for name, value in told.items())
            message = f"fit: give method=oj.Method({given}) in place of {', '.join(told)}"
            if options.get("method") is not None:
                raise ModelError(message)
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            options["method"] = Method(**told)
        return function(*arguments, **options)

    return called


@_with_method
def fit(
    model: Model | Problem | Population,
    data: Data | Sequence[Data] | None = None,
    *,
    bounds: Bounds = None,
    positive: bool | Collection[str] | None = None,
    noise: Given = None,
    seed: int = 0,
    jobs: int = 1,
    effort: str = "auto",
    progress: Wanted = None,
    fixed: Mapping[str, float | str] | None = None,
    local: Sequence[str] = (),
    priors: Priors = None,
    method: Method | None = None,
    time_limit: float | None = None,
    executor: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Fit | PopulationFit:
    """Every parameter and initial condition of a model, from data alone: of a problem, or of a model and data.

    `data` are one or several experiments as `oj.Data`, or a list of such.

    Of a `Population`, the law by which subjects differ; of the options it takes `seed`, `jobs`, `executor`,
    `time_limit` and `progress`.

    `bounds` is one pair for all unknowns or one per name, `positive` a truth value or names; neither is needed.
    `noise` per output, or one for all: a number is a known sd, "2%" a known relative sd, "relative" an unknown one, and
    a text such as "lognormal(s)" or "poisson" a law; without it sds come from the data or are estimated.  `priors` by
    name are texts such as "normal(1, 0.2)".  `fixed` gives values of parameters and initial states, as numbers or
    expressions; `local` names parameters with a value of their own in each experiment.

    `effort` moves how much is tried: "quick" ends after a few shooting times, "auto" when the answer is certified,
    "full" tries all of it.  What is tried is counted, so that the answer does not depend on the speed of the machine
    unless it takes longer than `time_limit` seconds.  Starts of a search that takes long are tried on `jobs` cores, and
    many experiments are simulated on them.  An `executor` of `concurrent.futures`, or a Dask client, tries starts
    wherever its workers are, beside this process.  The answer is the same for any number of workers, which may come and
    go: what is lost with one is done here.  `fit_many` spreads data sets over cores or an executor.
    `checkpoint` names a file in which the search keeps what it has found: the same fit, started again after it was
    killed, goes on from there and gives the answer that it would have given.  The file is removed when the search has
    come to its end; it stays where an interruption or the time limit ended it, to go on later or with more time.
    `progress=True` shows a bar in terminals and notebooks, and a function is called with the name of every stage; by
    default a notebook or a prompt shows the bar of what takes longer than two seconds, and a program none.
    `method` is for comparisons with other methods, such as `oj.Method(refine=False)`.

    `fit.success` tells that the search came to an end, `fit.certified` that the answer is confirmed.
    """
    method = Method() if method is None else method
    if not isinstance(method, Method):
        raise ModelError(
            f"method must be oj.Method(weights=..., refine=..., estimators=..., strategies=...), not {method!r}"
        )
    options = _checked(seed, jobs, effort, method, time_limit)
    budget = Budget.within(options.time_limit)
    posed = {"bounds": bounds, "positive": positive, "noise": noise, "fixed": fixed, "local": local, "priors": priors}
    posed["weights"] = method.weights
    if isinstance(model, Population):
        _check_posed(data, posed)
        if checkpoint is not None:
            raise ModelError("fits of populations keep no checkpoint; leave checkpoint out")
        with Progress(progress) as told, one_thread(), _workforce(jobs, executor) as team:
            return fit_population(model, seed, told.stage, budget.deadline, team)
    problem = _problem(model, data, posed)
    problem.check_points()
    with (
        _workforce(jobs, executor) as team,
        _kept(checkpoint, problem, options) as keeper,
        Progress(progress, options.time_limit) as told,
        one_thread(),
    ):
        answer = search(Task(problem, replace(options, executor=team), budget, Record(told)))
        if keeper is not None:
            keeper.close(keep=answer.is_interrupted or budget.over)
    return _fit(answer)


@contextmanager
def _kept(path: str | os.PathLike[str] | None, problem: Problem, options: Options) -> Iterator[Journal | None]:
    """Keep what a search finds in a file, if one is named."""
    if path is None:
        yield None
        return
    keeper = opened(path, problem, options)
    try:
        with kept_by(keeper):
            yield keeper
    finally:
        keeper.close(keep=True)


@contextmanager
def _workforce(jobs: int, given: Any) -> Iterator[Executor | None]:
    """Those who work beside this process: an executor that somebody else ends, or further processes."""
    if given is not None:
        if (executor := executor_of(given)) is None:
            raise ModelError(
                "executor must be one of concurrent.futures, such as ProcessPoolExecutor(4), or a Dask client, "
                f"not {type(given).__name__} {clipped(str(given))}"
            )
        yield executor
    elif jobs > 1:
        with Pool(jobs - 1) as pool:
            yield pool
    else:
        yield None


def _problem(model: Model | Problem, data: Data | Sequence[Data] | None, posed: Mapping[str, Any]) -> Problem:
    """The problem that is meant: one that is there already, or a model and data put together."""
    if not isinstance(model, Problem):
        if data is None:
            raise DataError("a fit needs data: oj.fit(model, data), or oj.fit(problem)")
        return Problem(model, data, **posed)
    _check_posed(data, posed, "problem")
    return model


def _check_posed(data: Data | Sequence[Data] | None, posed: Mapping[str, Any], kind: str = "population") -> None:
    """Refuse what a problem or a population has already."""
    given = [name for name, value in posed.items() if value and value != "likelihood"]
    if data is not None or given:
        what = "data" if data is not None else given[0]
        raise ModelError(f"a {kind} has its {what} already; give {what} to oj.{kind.title()} instead")


def _fit(answer: Answer) -> Fit:
    """An answer with what follows from it: uncertainty, criteria, solutions by name."""
    return Fit.of(
        answer.problem,
        answer.best,
        others=answer.others,
        rivals=answer.rivals,
        attempts=answer.attempts,
        verdict=answer.verdict,
        message=answer.message,
        certificate=answer.certificate,
        provenance=answer.provenance,
        census=answer.census,
        stages=answer.stages,
        seconds=answer.seconds,
        candidates=answer.candidates,
        seed=answer.options.seed,
        effort=answer.options.effort,
        smoothed=answer.smoothed,
    )


def _checked(
    seed: int,
    jobs: int,
    effort: str,
    method: Method,
    time_limit: float | None,
) -> Options:
    if effort not in EFFORTS:
        raise ModelError(f"effort must be one of {', '.join(EFFORTS)}, not {effort!r}")
    _whole("seed", seed, 0)
    _whole("jobs", jobs, 1)
    estimators = method.estimators
    if isinstance(estimators, str):
        raise ModelError("estimators must be a list of names, such as ['aaa']")
    limit = LIMITS[effort] if time_limit is None else time_limit
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise ModelError(f"time_limit must be a positive number of seconds, not {time_limit!r}")
    return Options(
        seed,
        jobs,
        effort,
        bool(method.refine),
        None if estimators is None else tuple(estimators),
        float(limit),
        chosen(method.strategies),
    )


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ModelError(f"{name} must be a whole number of at least {least}, not {value!r}")


@dataclass(frozen=True)
class Failure:
    """A data set that could not be fitted, and why."""

    message: str
    success: bool = False


def sample(
    problem: Problem | Fit,
    ess: float = posterior.ESS,
    chains: int = posterior.CHAINS,
    seed: int = 0,
    time_limit: float = posterior.TIME_LIMIT,
    progress: Wanted = None,
) -> Posterior:
    """Draws of all unknowns of a problem from their posterior, found by a fit first; needs `odejet[bayes]`.

    Sampling goes on until every unknown has `ess` effective draws or the time is over; what is wrong with the draws is
    in `warnings` and in the summary.
    """
    found = problem if isinstance(problem, Fit) else fit(problem, seed=seed, time_limit=time_limit, progress=progress)
    return found.sample(ess=ess, chains=chains, seed=seed, time_limit=time_limit, progress=progress)


def fit_many(
    model: Model, data_sets: Sequence[Data], executor: Executor | None = None, jobs: int = 1, **options: Any
) -> list[Fit | Failure]:
    """One fit per data set; a data set that cannot be fitted leaves a `Failure` in its place.

    They run on any executor, or without one on `jobs` processes of this machine; `options` are those of `fit`.  The
    answers are the same wherever they come from.
    """
    _whole("jobs", jobs, 1)
    if executor is None and jobs > 1 and len(data_sets) > 1:
        many = _Many(model, options)
        with Pool(min(jobs, len(data_sets)) - 1) as pool, Workers(many, pool) as workers:
            return list(workers.ahead(_Many.attempt, data_sets))
    if executor is None:
        found: list[Fit | Failure] = []
        with Progress(options.get("progress") if len(data_sets) > 1 else False, words="fitting data sets") as shown:
            for number, data in enumerate(data_sets):
                shown.share(number / len(data_sets), f"{number + 1} of {len(data_sets)}")
                found.append(_attempt(model, data, options))
        return found
    waiting = [executor.submit(_attempt, model, data, options) for data in data_sets]
    return [future.result() for future in waiting]


class _Many:
    """One model and how it is fitted, for processes beside this one."""

    def __init__(self, model: Model, options: Mapping[str, Any]) -> None:
        self.model, self.options = model, dict(options)
        self.deadline = now() + _PATIENT

    def attempt(self, data: Data) -> Fit | Failure:
        return _attempt(self.model, data, self.options)


def _attempt(model: Model, data: Data, options: Mapping[str, Any]) -> Fit | Failure:
    try:
        return fit(model, data, **options)
    except (ModelError, DataError) as error:
        return Failure(str(error))


def is_failure(outcome: Fit | Failure) -> bool:
    """Whether a data set of `fit_many` has no fit at all."""
    return isinstance(outcome, Failure) or not math.isfinite(outcome.cost)
