"""Posterior: draws of all unknowns given the data, what they are worth, and what they predict.

Draws come from `sampling`; what may be wrong with them is said in sentences by `mixing`: chains that do not agree, too
few effective draws, optima between which no chain moves, places that cannot be simulated.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from odejet.attach import attached
from odejet.clock import now
from odejet.errors import ModelError
from odejet.extras import needed
from odejet.objective.evaluation import Evaluation
from odejet.objective.misfit import Misfit
from odejet.problem import Problem, find
from odejet.progress import Progress, Wanted
from odejet.tables import table
from odejet.uncertainty.derived import derived
from odejet.uncertainty.likelihood import Likelihood
from odejet.uncertainty.mixing import doubts, is_enough, settled, statistics
from odejet.uncertainty.replicates import levels_drawn, replicate
from odejet.uncertainty.sampling import drawn

if TYPE_CHECKING:
    import arviz
    import matplotlib.figure

ESS, CHAINS, TIME_LIMIT = 400, 4, 60.0
"""Effective draws of every unknown that are asked for, chains, and seconds."""

PREDICTED = 400
"""Draws that a prediction is made of."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws of all unknowns on their natural scale."""

    problem: Problem
    chains: np.ndarray  # (chains, draws, unknowns)
    seed: int
    seconds: float
    gradients: int  # evaluations of the log-posterior with its gradient
    ess: float  # effective draws that were asked for
    warnings: tuple[str, ...] = field(default=())

    @property
    def labels(self) -> tuple[str, ...]:
        return self.problem.unknowns

    @property
    def success(self) -> bool:
        """Whether nothing speaks against the draws."""
        return not self.warnings

    @property
    def draws(self) -> np.ndarray:
        """All draws, one in each row."""
        return self.chains.reshape(-1, self.chains.shape[2])

    def __len__(self) -> int:
        return self.chains.shape[0] * self.chains.shape[1]

    def __getitem__(self, name: str) -> np.ndarray:
        """The draws of an unknown, or of an expression in unknowns such as "log(2)/k", by chain."""
        try:
            return self.chains[:, :, find(self.problem.layout, name)]
        except KeyError:
            asked = derived(name, self.problem.model, self.problem.layout)
        values = np.array([asked.at(z)[0] for z in self.draws])
        return values.reshape(self.chains.shape[:2])

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """The interval between two quantiles that holds an unknown, or an expression, with this probability."""
        low, high = np.quantile(self[name], [0.5 - level / 2, 0.5 + level / 2])
        return float(low), float(high)

    @cached_property
    def statistics(self) -> dict[str, dict[str, float]]:
        """By label: mean, sd, quantiles, R-hat, effective draws in the bulk and in the tails, error of the mean."""
        return {label: statistics(self.chains[:, :, i]) for i, label in enumerate(self.labels)}

    def summary(self) -> str:
        """Return the table of all unknowns, and what is to be said of the draws."""
        heads = ["", *next(iter(self.statistics.values()))]
        rows = [[label, *map(_shown, own.values())] for label, own in self.statistics.items()]
        said = [f"- {sentence}" for sentence in self.warnings] or ["All chains agree."]
        return "\n".join([self.headline, "", *table([heads, *rows], right=range(1, len(heads))), "", *said])

    __str__ = __repr__ = summary

    @property
    def headline(self) -> str:
        """How many draws there are, and what they took."""
        count, length = self.chains.shape[:2]
        return f"{count} chains of {length} draws in {self.seconds:.3g} s, seed {self.seed}"

    # --- looks and files ---

    @attached
    def _repr_html_(self) -> str:
        raise NotImplementedError

    @attached
    def plot(self, path: str | os.PathLike[str] | None = None) -> matplotlib.figure.Figure:
        """Densities, pairs of what is correlated, and measurements with the band of replicates; `path` is a file to
        write (PNG, PDF or SVG)."""
        raise NotImplementedError

    @attached
    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page that needs nothing else."""
        raise NotImplementedError

    @attached
    def to_dict(self) -> dict[str, Any]:
        """Draws and problem as plain values, ready for JSON."""
        raise NotImplementedError

    @attached
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write draws and problem as JSON, whole or not at all; `oj.Posterior.load` reads them back."""
        raise NotImplementedError

    @classmethod
    @attached
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the draws in a file."""
        raise NotImplementedError

    # --- what they predict ---

    def predict(
        self,
        times: Sequence[float] | np.ndarray | None = None,
        experiment: str | None = None,
        level: float = 0.95,
        draws: int = PREDICTED,
    ) -> dict[str, dict[str, np.ndarray]]:
        """Return the median and the band of every output and state of an experiment at any times.

        `draws` of them are simulated, evenly chosen.
        """
        number = self.problem.number(experiment)
        curves: dict[str, list[np.ndarray]] = {}
        asked = self.problem.times(number) if times is None else np.asarray(times, dtype=float)
        for z in self._chosen(draws):
            found = self.problem.simulate_experiment(number, z, asked)
            if found.success:
                for name, values in (*found.items(), *found.states.items()):
                    curves.setdefault(name, []).append(np.asarray(values))
        ends = {"low": 0.5 - level / 2, "median": 0.5, "high": 0.5 + level / 2}
        return {
            name: {"times": asked, **{what: np.quantile(rows, p, axis=0) for what, p in ends.items()}}
            for name, rows in curves.items()
        }

    def replicated(self, output: str, experiment: str | None = None) -> np.ndarray:
        """Return new measurements of an output at its measured times, by draw: for predictive checks."""
        number = self.problem.number(experiment)
        pairs = zip(self.problem.measurements.rows, self.problem.measurements.blocks, strict=True)
        for rows, block in pairs:
            if block.output == output and block.experiment == number:
                return self._measured[1][:, rows]
        raise ModelError(f"{output} was not measured in {self.problem.experiments[number].name}")

    def _chosen(self, count: int) -> np.ndarray:
        every = self.draws
        return every[np.linspace(0, len(every) - 1, min(count, len(every))).round().astype(int)]

    def to_inference_data(self) -> arviz.InferenceData:
        """Return the draws for ArviZ, with the log-likelihood and a replicate of every measurement, so that LOO, WAIC
        and predictive checks work."""
        arviz = needed("arviz")
        pointwise, replicated = self._measured
        shape = self.chains.shape[:2]
        groups = _series(self.problem)
        return arviz.from_dict(
            posterior={label: self.chains[:, :, i] for i, label in enumerate(self.labels)},
            log_likelihood={name: pointwise[:, rows].reshape(*shape, -1) for name, rows in groups.items()},
            posterior_predictive={name: replicated[:, rows].reshape(*shape, -1) for name, rows in groups.items()},
            observed_data={name: self.problem.measurements.values[rows] for name, rows in groups.items()},
            attrs={"inference_library": "odejet", "model": self.problem.model.name, "sampler": "walnuts"},
        )

    @cached_property
    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        """By draw and measurement: the log-likelihood, and a new measurement."""
        misfit, rng = self.problem.misfit, np.random.default_rng([self.seed, 1])
        pairs = [_measured(misfit, misfit.evaluate(z, jacobian=False), rng) for z in self.draws]
        return np.array([one for one, _ in pairs]), np.array([other for _, other in pairs])


def sample(
    likelihood: Likelihood,
    problem: Problem,
    rivals: Sequence[np.ndarray] = (),
    ess: float = ESS,
    chains: int = CHAINS,
    seed: int = 0,
    time_limit: float = TIME_LIMIT,
    progress: Wanted = None,
) -> Posterior:
    """Return draws around an optimum and its rivals, until all unknowns have so many effective ones or the time is
    over."""
    for name, value in (("ess", ess), ("chains", chains), ("time_limit", time_limit)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise ModelError(f"{name} must be a positive number, not {value!r}")
    if not likelihood.misfit.weighted:
        raise ModelError("draws need the likelihood, and this fit is of plain squares; fit with weights='likelihood'")
    _check_proper(likelihood, problem)
    begin = now()
    optima = [likelihood.optimum.z, *rivals]
    asked = float(ess)
    with Progress(progress, time_limit, "drawing from the posterior") as shown:
        shown.stage("draws")
        found = drawn(
            problem.objective,
            optima,
            lambda draws: is_enough(draws, asked),
            int(chains),
            int(seed),
            time_limit,
            shown.note,
        )
    found, said = settled(found, problem.objective)
    posterior = Posterior(problem, found.chains, int(seed), now() - begin, found.gradients, asked)
    said += doubts(posterior.statistics, found, asked)
    return replace(posterior, warnings=tuple(said))


def _check_proper(likelihood: Likelihood, problem: Problem) -> None:
    """Refuse to draw from what is no probability: nothing bounds an unknown."""
    known, every = likelihood.information, np.eye(len(problem.unknowns))
    stated = {prior.entry for prior in likelihood.misfit.priors}
    loose = [
        label
        for i, (label, moved) in enumerate(zip(problem.unknowns, known.moved(every), strict=True))
        if moved and i not in stated and not all(map(math.isfinite, _scale_ends(problem.bounds[label])))
    ]
    if loose:
        raise ModelError(
            f"nothing bounds {', '.join(loose[:5])}: the data say nothing of it, so that there is no law to draw from; "
            "give bounds or a prior"
        )


def _scale_ends(bounds: tuple[float, float]) -> tuple[float, float]:
    """Bounds on the scale of the search, where zero is infinitely far."""
    low, high = bounds
    return (-math.inf if low == 0 else low), (math.inf if high == 0 else high)


def _shown(number: float) -> str:
    return f"{number:.4g}"


def _series(problem: Problem) -> dict[str, slice]:
    """Where the measurements of each series stand, by output, and by experiment where there are several."""
    several = len(problem.experiments) > 1
    pairs = zip(problem.measurements.rows, problem.measurements.blocks, strict=True)
    return {
        f"{block.output} in {problem.experiments[block.experiment].name}" if several else block.output: rows
        for rows, block in pairs
    }


def _measured(misfit: Misfit, found: Evaluation, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The log-likelihood of every measurement, and a new one of each, with levels drawn where they are not known."""
    levels = misfit.known if found.residuals is None else levels_drawn(misfit, found, rng)
    return replicate(misfit, found, levels, rng)
