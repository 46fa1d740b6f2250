"""Error budget: from noise over derivatives to the raw algebraic estimate (the paper's Section 4).

At a shooting time the square system Phi(z) = d has the root z*, states and parameters, at the exact derivatives d.  A
smoother held fixed gives d + b + W eps with the bias b and noise of covariance Sigma_d, and to first order the estimate
is off by S times that:

    S = -P J_z^-1 J_d,      error ~ N(S b, S Sigma_d S'),      |error| <= |S| r_delta  with probability 1 - delta

(eqs. fixed-design-sensitivity, -linear-law, -algebraic-bound; our Phi has no auxiliary unknowns, so that S is the
inverse of its Jacobian).  The fit stands for the truth: its trajectory gives z*, d and b.  The budget says which
derivative of which output the error comes from, whether derivatives or the algebra limit the raw estimate, and what
would help.  It is about the estimate before refinement; what refinement makes of it is `fit.stderr`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from odejet.algebra.library import Library
from odejet.algebra.memory import memory
from odejet.algebra.system import SquareSystem
from odejet.budget import OutOfBudget
from odejet.data import Experiment
from odejet.errors import DataError, ModelError
from odejet.extras import needed
from odejet.model.cumulated import refuse_windows
from odejet.numerals import moment, short
from odejet.problem import Problem, Unknown
from odejet.problem.stretches import stretch
from odejet.search import shooting
from odejet.search.proposals import algebraic_model
from odejet.simulate import Simulation
from odejet.smooth import Jet, Linear, Smoothed, covariance, fit_series, radius
from odejet.tables import table
from odejet.uncertainty.design import Change, repeated
from odejet.uncertainty.names import Matrix

if TYPE_CHECKING:
    import pandas

GOOD = 0.1
"""A raw estimate with smaller relative errors needs no remedy."""

AMPLIFIED = 10.0
"""An algebra that makes relative errors larger by more than this is what limits the estimate."""

PLACES = 7
"""Shooting times among which the best is taken, if the fit does not name one."""

_SCALE_PLACES = 40


@dataclass(frozen=True, eq=False, repr=False)
class ErrorBudget:
    """The error of the raw estimate at one shooting time, in natural units and derivatives y^(k), k not divided out."""

    time: float
    experiment: str
    estimators: Mapping[str, str]  # by output
    rows: tuple[tuple[str, int], ...]  # (output, order) of every equation
    unknowns: tuple[Unknown, ...]  # states at the shooting time, parameters
    values: np.ndarray  # of the unknowns, from the fit
    derivatives: np.ndarray  # of the rows, from the fit
    scales: np.ndarray  # the size of each derivative along the experiment
    sensitivity: np.ndarray  # S
    bias: np.ndarray  # b
    covariance_of_derivatives: np.ndarray  # Sigma_d
    refined: Mapping[str, float]  # standard errors after refinement, of the parameters
    changes: tuple[Change, ...] = ()  # what would help the refined estimate

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(unknown.label for unknown in self.unknowns)

    # --- the law ---

    @property
    def covariance(self) -> Matrix:
        """S Sigma_d S'."""
        return Matrix(self.unknowns, self.sensitivity @ self.covariance_of_derivatives @ self.sensitivity.T)

    @property
    def stderr(self) -> dict[str, float]:
        """What noise does to each unknown."""
        return self._named(np.sqrt(np.diag(self.covariance.values)))

    @property
    def shift(self) -> dict[str, float]:
        """What the bias of smoothing does to each unknown: S b."""
        return self._named(self.sensitivity @ self.bias)

    @property
    def error(self) -> dict[str, float]:
        """Both together, as a root mean square."""
        return self._named(np.hypot(list(self.stderr.values()), list(self.shift.values())))

    @property
    def norm(self) -> float:
        """The norm of S that belongs to the largest component."""
        return float(np.abs(self.sensitivity).sum(axis=1).max())

    def radius(self, delta: float = 0.05) -> float:
        """r_delta: with probability at least 1 - delta no derivative is off by more."""
        return radius(self.bias, self.covariance_of_derivatives, delta)

    def bound(self, delta: float = 0.05) -> float:
        """|S| r_delta: with that probability, to first order, no unknown is off by more."""
        return self.norm * self.radius(delta)

    def _named(self, values: np.ndarray) -> dict[str, float]:
        return dict(zip(self.labels, values.tolist(), strict=True))

    # --- where it comes from ---

    @property
    def derivative_error(self) -> np.ndarray:
        """The root mean square error of each derivative, relative to its size along the experiment."""
        return np.sqrt(self.bias**2 + np.diag(self.covariance_of_derivatives)) / self.scales

    @property
    def shares(self) -> np.ndarray:
        """What each derivative (columns) adds to the variance of each unknown (rows), as shares.

        Derivatives of one output are correlated, and share what they have together: a negative share makes up for
        errors of the others.  The shares of whole outputs are never negative.
        """
        parts = self.sensitivity * (self.sensitivity @ self.covariance_of_derivatives)
        total = parts.sum(axis=1, keepdims=True)
        return parts / np.where(total > 0, total, 1.0)

    def by_output(self) -> dict[str, dict[str, float]]:
        """Shares of the variance by unknown and output."""
        outputs = list(dict.fromkeys(output for output, _ in self.rows))
        sums = [self.shares[:, [row[0] == output for row in self.rows]].sum(axis=1) for output in outputs]
        return {
            label: dict(zip(outputs, shares, strict=True))
            for label, shares in zip(self.labels, np.array(sums).T.tolist(), strict=True)
        }

    def by_order(self) -> dict[str, dict[int, float]]:
        """Shares of the variance by unknown and order of the derivative."""
        orders = sorted({order for _, order in self.rows})
        sums = [self.shares[:, [row[1] == order for row in self.rows]].sum(axis=1) for order in orders]
        return {
            label: dict(zip(orders, shares, strict=True))
            for label, shares in zip(self.labels, np.array(sums).T.tolist(), strict=True)
        }

    @property
    def relative_error(self) -> dict[str, float]:
        sizes = np.where(self.values != 0, np.abs(self.values), 1.0)
        return self._named(np.array(list(self.error.values())) / sizes)

    @cached_property
    def worst(self) -> str:
        """The unknown with the largest relative error."""
        return max(self.relative_error, key=lambda label: self.relative_error[label])

    @property
    def dominant(self) -> tuple[str, int]:
        """The derivative that does most to the worst unknown."""
        errors = np.sqrt(self.bias**2 + np.diag(self.covariance_of_derivatives))
        return self.rows[int(np.argmax(np.abs(self.sensitivity[self.labels.index(self.worst)]) * errors))]

    @property
    def amplification(self) -> float:
        """How much larger the worst relative error is than that of the worst derivative."""
        return self.relative_error[self.worst] / max(float(self.derivative_error.max()), 1e-300)

    @property
    def limit(self) -> str:
        """What limits the raw estimate: "nothing", "derivatives" or "algebra"."""
        if self.relative_error[self.worst] <= GOOD:
            return "nothing"
        return "algebra" if self.amplification > AMPLIFIED else "derivatives"

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        output, order = self.dominant
        worst, most = self.relative_error[self.worst], 100 * float(self.derivative_error.max())
        kind = "bias of smoothing" if abs(self.shift[self.worst]) > self.stderr[self.worst] else "noise"
        told = {
            "nothing": f"the raw estimate is good: {self.worst} is known to {short(100 * worst, 2)} %",
            "derivatives": f"the derivatives limit the raw estimate: they are off by up to {short(most, 2)} %",
            "algebra": f"the algebra limits the raw estimate: it turns errors of at most {short(most, 2)} % into "
            f"{short(100 * worst, 2)} % of {self.worst}",
        }[self.limit]
        return f"{told}; most of it is {kind} in derivative {order} of {output}"

    def advice(self) -> tuple[str, ...]:
        """What would help: the raw estimate by denser sampling, the refined one by any change of the design."""
        row = self.by_output()[self.worst]
        output = max(row, key=lambda name: row[name])
        factor = math.sqrt(1 - 0.5 * min(max(row[output], 0.0), 1.0))
        raw = f"twice the points of {output} would make the noise in the raw {self.worst} {factor:.2f} times as large"
        best = f"for the refined estimate, best: {self.changes[0]!r}" if self.changes else ""
        return tuple(told for told in (raw, best) if told)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per unknown: value, effect of noise, effect of bias, refined error, shares by derivative."""
        pandas = needed("pandas")
        columns = {
            "value": self.values,
            "stderr": list(self.stderr.values()),
            "shift": list(self.shift.values()),
            "refined": [self.refined.get(label, math.nan) for label in self.labels],
        }
        for i, (output, order) in enumerate(self.rows):
            columns[f"share of {output} order {order}"] = self.shares[:, i]
        return pandas.DataFrame(columns, index=pandas.Index(self.labels, name="quantity"))

    def table(self) -> list[tuple[str, str, str, str, str, str]]:
        """Rows of text: unknown, value, noise, bias, refined error, where the noise comes from."""
        rows = []
        for i, label in enumerate(self.labels):
            shares = self.shares[i]
            most = sorted(range(len(self.rows)), key=lambda k: -abs(shares[k]))[:2]
            origin = ", ".join(f"{_derivative(*self.rows[k])} {100 * shares[k]:.0f} %" for k in most)
            refined = short(self.refined[label], 2) if label in self.refined else ""
            numbers = short(float(self.values[i])), short(self.stderr[label], 2), short(self.shift[label], 2)
            rows.append((label, *numbers, refined, origin))
        return rows

    def __repr__(self) -> str:
        lines = [
            f"error budget of the raw estimate at t = {moment(self.time)}: {self.sentence}",
            *table([HEAD, *self.table()], right=(1, 2, 3, 4)),
            f"|S| = {self.norm:.3g}, r(5 %) = {self.radius():.3g}, bound {self.bound():.3g}",
            *self.advice(),
        ]
        return "\n".join(lines)


HEAD = ("quantity", "value", "by noise", "by bias", "refined", "noise comes from")


def _derivative(output: str, order: int) -> str:
    return output + "'" * order if order < 4 else f"{output}^({order})"


class Fitted(Protocol):
    """What a budget needs of a fit, which stands for the truth."""

    @property
    def problem(self) -> Problem: ...
    @property
    def estimates(self) -> np.ndarray: ...
    @property
    def stderr(self) -> Mapping[str, float]: ...
    @property
    def sds(self) -> Mapping[str, Mapping[str, np.ndarray]]: ...  # of the noise, by experiment and output
    @property
    def smoothed(self) -> Mapping[tuple[str, str], Smoothed]: ...  # as far as they are there
    def simulate(self, times: np.ndarray, experiment: str) -> Simulation: ...


def error_budget(fit: Fitted, own: Experiment, time: float | None = None, estimator: str | None = None) -> ErrorBudget:
    """The budget of an experiment at a shooting time, or at the best of a few; derivatives by an estimator that is
    linear in the data, by default the most trusted of each output."""
    refuse_windows(fit.problem.model, "an error budget")
    system = _system(fit, own)
    smoothed = _smoothed(fit, own, system)
    series = [one.series for one in smoothed.values()]
    times = shooting.shooting_times(series, PLACES) if time is None else np.array([float(time)])
    scales = _scales(fit, own, system)
    found = [_budget(fit, own, system, smoothed, float(t), estimator, scales) for t in times]
    usable = [one for one in found if isinstance(one, ErrorBudget)]
    if not usable:
        raise ModelError(f"there is no error budget: {found[0] if found else 'no shooting time is within the data'}")
    best = min(usable, key=lambda one: one.relative_error[one.worst])
    return _with_changes(best, fit, own)


def _system(fit: Fitted, own: Experiment) -> SquareSystem:
    try:
        model = algebraic_model(fit.problem.conditions[fit.problem.number(own.name)])
        # The one that the fit has used; a fit from a file has none.
        return memory(model).last("system", 1) or Library(model).system()
    except (ModelError, OutOfBudget) as error:
        raise ModelError(f"there is no error budget, because there is no square system: {error}") from None


def _smoothed(fit: Fitted, own: Experiment, system: SquareSystem) -> dict[str, Smoothed]:
    """The smoothed outputs that the system uses; those of a fit from a file are found again."""
    found = {}
    series = stretch(fit.problem.conditions[fit.problem.number(own.name)])
    for name in shooting.orders_of(system):
        if name not in series:
            raise ModelError(f"there is no error budget: {name} has too few measurements between events")
        try:
            found[name] = fit.smoothed.get((own.name, name)) or fit_series(series[name])
        except DataError as error:
            raise ModelError(f"there is no error budget: {name}: {error}") from None
    return found


def _states(fit: Fitted, own: Experiment, system: SquareSystem, times: np.ndarray) -> np.ndarray:
    """States and parameters of the fit at some times."""
    run = fit.simulate(times, own.name)
    if not run.success:
        raise ModelError(f"there is no error budget: {run.message}")
    held = fit.problem.layout.gather(fit.problem.number(own.name), fit.estimates, system.joined.together.parameters)
    return np.column_stack([*run.states.values(), np.tile(held, (len(times), 1))])


def _driven(fit: Fitted, own: Experiment) -> Experiment:
    return fit.problem.conditions[fit.problem.number(own.name)].driven


def _jets(
    system: SquareSystem, driven: Experiment, everything: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Phi, in Taylor coefficients, and its Jacobian along the fit."""
    inputs = shooting.input_series(system, driven, times)
    return system.evaluate(everything[:, system.columns], inputs, everything[0, system.held])


def _scales(fit: Fitted, own: Experiment, system: SquareSystem) -> np.ndarray:
    """The root mean square of each derivative along the fit."""
    times = np.linspace(own.start, own.end, _SCALE_PLACES)
    values, _ = _jets(system, _driven(fit, own), _states(fit, own, system, times), times)
    sizes = np.sqrt(np.mean(values**2, axis=0)) * _factorials(system)
    return np.where(sizes > 0, sizes, 1.0)


def _factorials(system: SquareSystem) -> np.ndarray:
    return np.array([float(factorial(order)) for _, order in system.rows])


def _budget(
    fit: Fitted,
    own: Experiment,
    system: SquareSystem,
    smoothed: Mapping[str, Smoothed],
    time: float,
    estimator: str | None,
    scales: np.ndarray,
) -> ErrorBudget | str:
    """The budget at one time, or why there is none."""
    try:
        jets = {
            name: linear_jet(one, time, shooting.orders_of(system)[name], _level(fit, own, name), estimator)
            for name, one in smoothed.items()
        }
    except DataError as error:
        return str(error)
    at = np.array([time])
    everything = _states(fit, own, system, at)
    values, jacobian = _jets(system, _driven(fit, own), everything, at)
    inverse = inverted(jacobian[0], everything[0, system.columns])
    if inverse is None:
        return f"the square system is singular at t = {time:g}"
    outputs = list(system.joined.model.outputs)
    rows = tuple((outputs[output], order) for output, order in system.rows)
    derivatives = values[0] * _factorials(system)
    unknowns = [
        Unknown(name, f"{name}({moment(time)})" if name in system.joined.model.states else name)
        for name in system.unknowns
    ]
    return ErrorBudget(
        time=time,
        experiment=own.name,
        estimators={name: jet.smoother.name if jet.smoother is not None else "" for name, jet in jets.items()},
        rows=rows,
        unknowns=tuple(unknowns),
        values=everything[0, system.columns],
        derivatives=derivatives,
        scales=scales,
        sensitivity=inverse / _factorials(system),
        bias=_bias(fit, own, jets, rows, derivatives),
        covariance_of_derivatives=stacked(jets, rows),
        refined={name: sd for name, sd in fit.stderr.items() if name in system.unknowns and math.isfinite(sd)},
    )


def linear_jet(smoothed: Smoothed, time: float, order: int, noise: float, estimator: str | None = None) -> Jet:
    """A jet with coefficient rows: by an estimator of this name, or by the most trusted one that is linear."""
    if estimator is not None:
        jet = smoothed.named(estimator).jet(time, order)
        if not jet.linear:
            raise DataError(f"the estimator {estimator!r} is not linear in the data: its error has no law")
        return jet.to(order, noise)
    for smoother in smoothed.admitted(time, order).values():
        if isinstance(smoother, Linear):
            return smoother.jet(time, order).to(order, noise)
    reasons = dict.fromkeys(smoothed.refusals(time, order).values())
    raise DataError(f"no linear estimator is admitted at t = {time:g} ({'; '.join(reasons) or 'none was fitted'})")


def _level(fit: Fitted, own: Experiment, name: str) -> float:
    """The noise of an output as smoothers count it: in natural units, or in multiples of known sds."""
    sds, known = fit.sds[own.name][name], own.outputs[name].sds
    return float(np.median(sds if known is None else sds / known))


def stacked(jets: Mapping[str, Jet], rows: Sequence[tuple[str, int]]) -> np.ndarray:
    """Sigma_d in the order of the rows."""
    starts, place = {}, 0
    for name, jet in jets.items():
        starts[name] = place
        place += len(jet.mean)
    chosen = [starts[output] + order for output, order in rows]
    return covariance(list(jets.values()))[np.ix_(chosen, chosen)]


def inverted(jacobian: np.ndarray, root: np.ndarray) -> np.ndarray | None:
    """The inverse of a Jacobian, unknowns and equations brought to similar sizes first."""
    columns = np.where(root != 0, np.abs(root), 1.0)
    sizes = np.abs(jacobian * columns).max(axis=1)
    if not (np.all(np.isfinite(jacobian)) and np.all(sizes > 0)):
        return None
    try:
        inverse = columns[:, None] * np.linalg.inv(jacobian * columns / sizes[:, None]) / sizes
    except np.linalg.LinAlgError:
        return None
    return inverse if np.all(np.isfinite(inverse)) else None


def _bias(
    fit: Fitted, own: Experiment, jets: Mapping[str, Jet], rows: Sequence[tuple[str, int]], derivatives: np.ndarray
) -> np.ndarray:
    """b: what the fixed smoothers make of the fit's own trajectory, less its derivatives."""
    expected = {}
    for name, jet in jets.items():
        assert isinstance(jet.smoother, Linear)
        data = jet.smoother.data
        times, back = np.unique(data.times, return_inverse=True)
        clean = fit.simulate(times, own.name)[name][back]
        expected[name] = jet.weights @ (clean - data.center)
        expected[name][0] += data.center
    return np.array([expected[output][order] for output, order in rows]) - derivatives


def _with_changes(budget: ErrorBudget, fit: Fitted, own: Experiment) -> ErrorBudget:
    number = fit.problem.number(own.name)
    condition = fit.problem.conditions[number]
    known = condition.model, *fit.problem.values_in(number, fit.estimates)
    try:
        noise = {name: float(np.median(sds)) for name, sds in fit.sds[own.name].items()}
        return replace(budget, changes=tuple(repeated(condition.driven, *known, noise).changes()))
    except (ModelError, DataError):
        return budget
