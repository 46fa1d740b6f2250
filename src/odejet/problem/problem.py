"""Problem: a model, data, and all that is known beforehand, put together once and checked once.

It is the centre of a fit: every later stage takes it, and nothing in it changes.  What is asked are its unknowns, in
one order; what it answers is how likely the data are with given values of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from odejet.data import Data, Experiment
from odejet.errors import DataError, ModelError, nearest
from odejet.model import Model
from odejet.problem import coordinates
from odejet.problem.conditions import Condition, conditions, felt, fixed_values
from odejet.problem.coordinates import Bounds, Coordinates
from odejet.problem.courses import flows
from odejet.problem.measurements import Block, Measurements
from odejet.problem.misfit import Misfit, Simulator
from odejet.problem.noise import Given, check_names, noise_of
from odejet.problem.scales import scales
from odejet.problem.unknowns import Unknowns, lay_out
from odejet.simulate import Simulation, simulate
from odejet.simulate.flow import Flow

WEIGHTS = ("likelihood", "none")

VANISHING = 1e-6
"""Of its size by the units of the data: an estimate below this says nothing about how large a quantity is."""


class Problem:
    """What a fit is about.

    `bounds` is one pair for all unknowns or one per name or label, `positive` a truth value or names.  `noise` per
    output, or one for all: a number is a known standard deviation, "2%" a known relative one, "relative" an unknown
    one; without it they come from the data or are estimated.  `fixed` gives parameters and initial states in all
    experiments, as numbers or as expressions in parameters (`{"k3": "k1"}`); `local` names parameters with a value of
    their own in each experiment.  `nominal` are values that somebody has published, by label; no fit looks at them.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        bounds: Bounds = None,
        positive: bool | Collection[str] | None = None,
        noise: Given = None,
        fixed: Mapping[str, float | str] | None = None,
        local: Sequence[str] = (),
        weights: str = "likelihood",
        nominal: Mapping[str, float] | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ModelError(f"expected a model as oj.Model has it, not {type(model).__name__}")
        if not isinstance(data, Data):
            hint = "; use oj.Data.from_dataframe" if type(data).__name__ == "DataFrame" else ""
            raise DataError(f"expected data as oj.Data has them, not {type(data).__name__}{hint}")
        if weights not in WEIGHTS:
            raise ModelError(f"weights must be 'likelihood' or 'none', not {weights!r}")
        check_names(noise, list(model.outputs))
        self.model, self.noise, self.weights = model, noise, weights
        self.fixed = fixed_values(fixed, model)
        self.conditions: tuple[Condition, ...] = conditions(model, data, self.fixed)
        self.local = _local(local, model, self.conditions)
        self.layout: Unknowns = lay_out(self.conditions, model.parameters, self.local)
        self.data = Data.of(condition.experiment for condition in self.conditions)
        self.given_bounds, self.positive = bounds, positive or False
        self.nominal = dict(nominal or {})
        self.measurements, self._levels = self._measured()
        self._check_points()
        self.bounds  # noqa: B018 - refuses bounds that make no sense

    def _measured(self) -> tuple[Measurements, np.ndarray]:
        """All measurements, and the noise levels of their outputs as far as these are known."""
        outputs = tuple(name for name in self.model.outputs if any(name in e.outputs for e in self.experiments))
        given = self.noise if self.weights == "likelihood" else 1.0
        blocks: list[Block] = []
        levels = []
        for name in outputs:
            measured = [(i, e.outputs[name]) for i, e in enumerate(self.experiments) if name in e.outputs]
            noise = noise_of(name, given, [series for _, series in measured])
            blocks += [Block(i, name, one.times, one.values, noise.shapes(one)) for i, one in measured]
            levels.append(noise.level)
        return Measurements(outputs, tuple(blocks)), np.array(levels)

    def _check_points(self) -> None:
        points = sum(experiment.points for experiment in self.experiments)
        if points < len(self.layout):
            raise DataError(
                f"there are {points} measurements for {len(self.layout)} unknowns of {self.model.name}; measure more"
            )

    # --- what is asked ---

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        return self.data.experiments

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The labels of everything that is to be found, in the order of z."""
        return self.layout.labels

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The bounds of each unknown by label; infinite where there are none."""
        pairs = coordinates.given_bounds(self.layout, self.given_bounds, self.positive, self.model.bounds)
        return dict(zip(self.unknowns, pairs, strict=True))

    @property
    def is_bounded(self) -> bool:
        """Whether anything at all is known about where to look."""
        return self.given_bounds is not None or bool(self.positive) or bool(self.model.bounds)

    @cached_property
    def sizes(self) -> np.ndarray:
        """About how large each unknown is; one where bounds say where to look."""
        ends = np.array(list(self.bounds.values())).reshape(-1, 2)
        return np.where(np.isfinite(ends).all(axis=1), 1.0, scales(self.conditions, self.layout))

    def sized(self, scale: np.ndarray) -> np.ndarray:
        """Sizes of estimates, of which one that vanishes has the size that its unit suggests."""
        return np.where(np.abs(scale) < VANISHING * self.sizes, self.sizes, np.abs(scale))

    def frame(self, scale: np.ndarray | None = None) -> Coordinates:
        """Coordinates for a search among unknowns of about these sizes."""
        scale = self.sizes if scale is None else self.sized(scale)
        return coordinates.choose(self.layout, scale, self.given_bounds, self.positive, self.model.bounds)

    # --- what it answers ---

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The solution map of every experiment."""
        return flows(self.conditions)

    @cached_property
    def misfit(self) -> Misfit:
        """Residuals and likelihood as functions of z."""
        feelings = tuple(map(self._feelings, self.measurements.outputs))
        simulator = Simulator(self.model, self.conditions, self.flows, self.layout, feelings)
        return Misfit(simulator, self.measurements, self._levels, self.weights == "likelihood")

    def _feelings(self, output: str) -> int:
        """How many unknowns an output feels, all experiments together."""
        entries: set[int] = set()
        for condition, places in zip(self.conditions, self.layout.places, strict=True):
            if output in condition.experiment.outputs:
                entries |= {places[name] for name in felt(condition.model, output)}
        return len(entries)

    def log_likelihood(self, values: Mapping[str, float]) -> float:
        """The log-likelihood of values by label, with noise that is not known at its most likely level.

        Minus infinity where the model cannot be simulated to the last measurement.
        """
        return -self.misfit.score(self.layout.vector(values))

    def simulate(
        self, values: Mapping[str, float], times: Sequence[float] | np.ndarray | None = None, **options: Any
    ) -> dict[str, Simulation]:
        """The trajectories of every experiment by name, at its measured times or at others.

        Further options are those of `odejet.simulate`.
        """
        z = self.layout.vector(values)
        return {
            experiment.name: self.simulate_experiment(number, z, times, **options)
            for number, experiment in enumerate(self.experiments)
        }

    def simulate_experiment(
        self, number: int, z: np.ndarray, times: Sequence[float] | np.ndarray | None = None, **options: Any
    ) -> Simulation:
        """The trajectories of one experiment."""
        own, experiment = self.conditions[number].model, self.experiments[number]
        return simulate(
            own,
            *self.values_in(number, z),
            self.times(number) if times is None else times,
            start=experiment.start,
            inputs=experiment.sampled or None,
            **options,
        )

    def times(self, number: int) -> np.ndarray:
        """All times at which something was measured in an experiment."""
        return np.unique(np.concatenate([one.times for one in self.experiments[number].outputs.values()]))

    def values_in(self, number: int, z: np.ndarray) -> tuple[dict[str, float], dict[str, float]]:
        """The parameters and the initial states that are unknown in an experiment, by name."""
        own, places = self.conditions[number].model, self.layout.places[number]
        free = (state for state in own.states if state not in own.initial)
        parameters, states = ({name: float(z[places[name]]) for name in names} for names in (own.parameters, free))
        return parameters, states

    def number(self, experiment: str | None = None) -> int:
        """The place of an experiment by name, or of the only one."""
        names = [one.name for one in self.experiments]
        if experiment is None and len(names) == 1:
            return 0
        if experiment not in names:
            if experiment is None:
                raise ModelError(f"name one experiment; there are {', '.join(names[:10])}")
            raise ModelError(f"there is no experiment {experiment!r}{nearest(experiment, names)}")
        return names.index(experiment)

    def __repr__(self) -> str:
        count, points = len(self.experiments), sum(experiment.points for experiment in self.experiments)
        more = f" and {len(self.unknowns) - 12} more" if len(self.unknowns) > 12 else ""
        shown = ", ".join(self.unknowns[:12]) + more
        return (
            f"Problem {self.model.name}: {len(self.unknowns)} unknowns from {points} measurements in {count} "
            f"experiment{'s'[: count != 1]}\n  {shown}"
        )


def _local(local: Sequence[str], model: Model, found: Sequence[Condition]) -> tuple[str, ...]:
    """Names with a value of their own in each experiment, from the model and from the problem."""
    if isinstance(local, str):
        raise ModelError(f"local must be a list of names, such as ['{local}']")
    names = tuple(dict.fromkeys([*model.local, *local]))
    known = {name for one in found for name in one.model.parameters}
    for name in names:
        if name not in known and name not in model.parameters:
            raise ModelError(f"local: the model has no parameter '{name}'{nearest(str(name), known)}")
    return names
