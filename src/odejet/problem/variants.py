"""Variants: a problem posed again with some of its experiments, with more of its unknowns given, or with other noise.

What is known of unknowns (bounds, priors, signs, published values) is kept for those that are still unknown: without a
parameter another may have no place in the equations, and without an experiment its own values are nowhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from odejet.data import Data
from odejet.problem.problem import Problem


def variant(
    problem: Problem,
    data: Data | None = None,
    fixed: Mapping[str, float | str] | None = None,
    noise: Mapping[str, float | str] | None = None,
) -> Problem:
    """Pose a problem again with other data, more given values, or other noise of some outputs."""
    given: dict[str, Any] = {**problem.fixed, **(fixed or {})}
    local = [name for name in problem.local if name not in given]
    # Laws and priors of the model are among those of the problem already.
    model = problem.model.replace(priors=None, noise=None)
    posed: dict[str, Any] = {
        "noise": {**_by_output(problem), **(noise or {})} or None,
        "fixed": given,
        "local": local,
        "weights": problem.weights,
    }
    data = problem.data if data is None else data
    measured = {output for experiment in data.experiments for output in experiment.outputs}
    if posed["noise"]:
        posed["noise"] = {output: law for output, law in posed["noise"].items() if output in measured} or None
    left = {unknown.name for unknown in Problem(model, data, **posed).layout}
    return Problem(
        model,
        data,
        bounds=_about(problem.given_bounds, left),
        positive=_about(problem.positive, left),
        nominal=_about(problem.nominal, left),
        priors=_about(problem.priors, left),
        **posed,
    )


def _by_output(problem: Problem) -> dict[str, Any]:
    """The noise that was given, output by output."""
    if problem.noise is None:
        return {}
    if isinstance(problem.noise, Mapping):
        return dict(problem.noise)
    return dict.fromkeys(problem.model.outputs, problem.noise)


def _about(given: Any, names: Collection[str]) -> Any:
    """What is known of unknowns, by name or label or as a list of names, as far as it is about these."""
    if isinstance(given, Mapping):
        return {key: value for key, value in given.items() if _name(key) in names} or None
    if isinstance(given, Sequence | set | frozenset) and all(isinstance(one, str) for one in given):
        return [key for key in given if _name(key) in names]
    return given


def _name(label: Any) -> str:
    """The name in a label: x of `x(0)` and of `x(0) in a`, k of `k in a`."""
    return str(label).partition(" in ")[0].partition("(")[0]
