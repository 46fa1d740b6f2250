"""Result: the answer of a population fit, by name.

Typical values, coefficients, omegas (sds of random effects, on their scale), correlations and noise have a value, a
standard error and an interval; every subject has its parameters with their sds.  Intervals are symmetric on the scale
on which an estimate is nearest to normal: logarithms for what is positive, logits for shares, Fisher's z for
correlations.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.attach import attached
from odejet.data import Data, Series
from odejet.decide.adequacy import NO, UNTESTED, YES, Adequacy, Shortcoming
from odejet.decide.optimality import CONFIRMED, LIKELY, OPEN, Optimality
from odejet.errors import ModelError
from odejet.population.diagnostics import (
    Design,
    completed,
    conditional_residuals,
    normality,
    prediction_discrepancies,
)
from odejet.population.estimates import Estimates, Parameter, interval_of
from odejet.population.estimation import SUCCESS, Estimated
from odejet.population.expected import expected
from odejet.population.figures import drawn
from odejet.population.population import Population
from odejet.population.prediction import Known, PopulationPrediction, predicted
from odejet.population.profiles import profile
from odejet.population.rivals import Rival
from odejet.progress import doing
from odejet.uncertainty.profile import SECONDS, Profile

if TYPE_CHECKING:
    import matplotlib.figure

Array = np.ndarray

LEVEL = 0.95
UNSURE = 0.5
"""The error of -2 log L above which no answer is confirmed."""

UNUSUAL = 0.01
"""The probability below which discrepancies are not those of an adequate model."""

VAGUE = 0.5
"""The relative standard error from which on little is known."""

REPLICATES = 500
"""Simulations of the design that diagnostics compare the data with."""


@dataclass(frozen=True, eq=False)
class PopulationFit:
    """A population fit: the maximum of the marginal likelihood, with what is known about it."""

    estimated: Estimated
    seconds: float
    seed: int = 0
    level: float = LEVEL

    @property
    def asked(self) -> Population:
        """The population as it was estimated, without random effects whose variance went to zero."""
        return self.estimated.population

    @property
    def names(self) -> tuple[str, ...]:
        return self.estimated.layout.names

    # --- the population ---

    @cached_property
    def values(self) -> dict[str, float]:
        """The estimates of the population by name."""
        return dict(zip(self.names, self.estimated.layout.natural(self.estimated.u).tolist(), strict=True))

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the estimates, in the order of `names`, from the observed information."""
        slopes = self.estimated.layout.slopes(self.estimated.u)
        return slopes @ self.estimated.covariance @ slopes.T

    @cached_property
    def population(self) -> Estimates:
        """Everything that was estimated: value, standard error and interval by name."""
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        rows = {}
        for name, error in zip(self.names, errors.tolist(), strict=True):
            interval = interval_of(self.estimated.layout, name, self.values[name], error, self.level)
            rows[name] = Parameter(name, self.values[name], error, interval)
        return Estimates.of_population(rows)

    # --- subjects ---

    @cached_property
    def individuals(self) -> Estimates:
        """The parameters of every subject: those of the mean of its posterior on the scale of the effects, and sds."""
        values, sds = {}, {}
        layout, moments = self.estimated.layout, self.estimated.layout.moments(self.estimated.u)
        for i, (sample, found) in enumerate(
            zip(self.estimated.marginal.samples, self.estimated.integrals, strict=True)
        ):
            name = self.asked.subjects[i]
            phi = layout.individual(sample.nodes.x)
            middle = found.shares @ phi
            sd = np.sqrt(np.maximum(found.shares @ (phi - middle) ** 2, 0.0))
            centre = layout.individual((found.shares @ sample.nodes.x)[None])[0]
            names = layout.individual_names
            values[name] = dict(zip(names, centre.tolist(), strict=True))
            values[name] |= dict(zip(layout.common, moments.common[i].tolist(), strict=True))
            sds[name] = dict(zip(names, sd.tolist(), strict=True)) | dict.fromkeys(layout.common, 0.0)
        return Estimates.of_subjects(values, sds)

    @cached_property
    def effects(self) -> dict[str, dict[str, float]]:
        """The random effects eta of every subject, at the mean of its posterior."""
        layout, means = self.estimated.layout, self.estimated.layout.moments(self.estimated.u).means
        return {
            name: dict(zip(layout.random, (found.shares @ sample.nodes.x - means[i]).tolist(), strict=False))
            for i, (name, sample, found) in enumerate(
                zip(self.asked.subjects, self.estimated.marginal.samples, self.estimated.integrals, strict=True)
            )
        }

    @cached_property
    def shrinkage(self) -> dict[str, float]:
        """How much less the effects of subjects differ than omega says: 1 - sd(eta)/omega, zero where data are rich."""
        return {
            name: 1 - float(np.std([own[name] for own in self.effects.values()], ddof=1)) / self.values[f"omega_{name}"]
            for name in self.estimated.layout.random
        }

    # --- criteria ---

    @property
    def log_likelihood(self) -> float:
        """The logarithm of the marginal likelihood, with all constants."""
        return self.estimated.log_likelihood

    @property
    def log_likelihood_error(self) -> float:
        """The standard error of `log_likelihood` from its own computation."""
        return self.estimated.error / 2

    @property
    def minus_two_log_likelihood(self) -> float:
        return -2 * self.log_likelihood

    @property
    def free(self) -> int:
        """The number of estimated parameters of the population."""
        return len(self.names)

    @property
    def aic(self) -> float:
        return 2 * self.free - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """BIC with the number of subjects, as Monolix has it."""
        return self.free * math.log(len(self.asked.subjects)) - 2 * self.log_likelihood

    @property
    def bicc(self) -> float:
        """BIC in which what differs between subjects counts by subjects, and all else by measurements."""
        layout = self.estimated.layout
        by_subject = len(layout.pairs) + sum(1 for name in layout.typical if name in layout.effects)
        by_subject += len(layout.coefficients)
        others = self.free - by_subject
        return (
            by_subject * math.log(len(self.asked.subjects))
            + others * math.log(self.asked.points)
            - 2 * self.log_likelihood
        )

    @property
    def removed(self) -> tuple[str, ...]:
        """Parameters whose random effect was taken out, since its variance went to zero."""
        return self.estimated.removed

    @property
    def success(self) -> bool:
        """Whether the maximum was reached: no further step promises anything that matters."""
        return not self.estimated.stopped and self.estimated.gain < SUCCESS

    @property
    def rivals(self) -> tuple[Rival, ...]:
        """Other maxima of the likelihood that are not far below this one, the best first."""
        return self.estimated.rivals

    # --- what the data and their design tell ---

    def profile(self, name: str, level: float = LEVEL, time_limit: float = SECONDS) -> Profile:
        """The likelihood along a parameter of the population, all others at their best: `.interval()`, `.plot()`.

        Where a variance is barely known, or an interval by curvature is too even, this one is to be trusted.
        """
        return profile(self.estimated, name, level, time_limit, self.seed)

    @cached_property
    def expected(self) -> Estimates:
        """The standard errors that the design promises at the estimates, by the expected Fisher information."""
        return expected(self.asked, self.values, self.level)

    @property
    def vague(self) -> tuple[str, ...]:
        """Typical values, omegas and noise of which even a perfect analysis of this design would tell little."""
        return tuple(
            name
            for name, one in self.expected.items()
            if one.stderr > VAGUE * abs(one.value)
            and name not in self.estimated.layout.coefficients
            and not name.startswith("corr_")
        )

    # --- two answers ---

    @property
    def search(self) -> Optimality:
        """Whether this is the best fit: "confirmed", "likely" or "open", by starts that led to the same maximum."""
        starts, agreeing = self.estimated.starts, self.estimated.agreeing
        words = f"{agreeing} of {starts} starts lead to the same maximum"
        if not self.success:
            reason = self.estimated.stopped or "no maximum was reached"
            return Optimality(OPEN, starts, agreeing, starts - agreeing + 1, 1.0, (words, reason))
        word = CONFIRMED if agreeing >= 3 else LIKELY if agreeing > 1 else OPEN
        reasons = [words, *(one.sentence(self.minus_two_log_likelihood) for one in self.rivals)]
        if self.estimated.far and math.isfinite(max(self.estimated.far)):
            reasons.append(
                f"-2 log L elsewhere is larger by about {', '.join(f'{one:.0f}' for one in self.estimated.far)}"
            )
        if word == CONFIRMED and not self.estimated.error < UNSURE:
            word = LIKELY
            reasons.append(f"-2 log L is known to ± {self.estimated.error:.2g} only")
        return Optimality(word, starts, agreeing, starts - agreeing + 1, 1 / max(agreeing, 1), reasons)

    @cached_property
    def adequacy(self) -> Adequacy:
        """Whether the model explains the data: "yes", "no" or "untested", by NPDE, output by output."""
        if self.asked.points <= self.free:
            return Adequacy(UNTESTED)
        table, found = self.residuals, []
        for output, name in enumerate(self.asked.model.outputs):
            own = table["npde"][table["output"] == output]
            if len(own) and (probability := normality(own)) < UNUSUAL / len(self.asked.noises):
                words = (
                    f"the prediction discrepancies of '{name}' have mean {own.mean():.2f} and sd {own.std():.2f} in "
                    f"place of 0 and 1, which chance alone gives with a probability of {probability:.2g}"
                )
                found.append(Shortcoming(name, (), "tails", words))
        advice = ("look at fit.plot('vpc') and fit.plot('residuals')",) if found else ()
        return Adequacy(NO if found else YES, found, advice)

    @property
    def certified(self) -> bool:
        """Whether both answers are the best there are."""
        return self.search == CONFIRMED and self.adequacy == YES

    # --- diagnostics ---

    @cached_property
    def _design(self) -> Design:
        return Design(self.asked, self._plain_u)

    @cached_property
    def _plain_u(self) -> Array:
        """u in the layout of the population itself, whose units are one."""
        return self.asked.layout.to(self.values)

    @cached_property
    @doing("simulating the design")
    def simulations(self) -> tuple[Array, ...]:
        """Simulated measurements of every subject's design, in rows."""
        rng = np.random.default_rng([self.seed, 1])
        return tuple(self._design.simulated(i, REPLICATES, rng) for i in range(len(self.asked.members)))

    @cached_property
    @doing("computing residuals")
    def residuals(self) -> dict[str, Array]:
        """Columns of every measurement: subject, time, observed, predicted (typical and individual), CWRES, NPDE.

        Of a censored value `completed` is one drawn within its limits, which CWRES and NPDE are of.
        """
        design, columns = self._design, []
        for i, subject in enumerate(self.asked.members):
            mode = design.mode(i)
            typical = subject.predict(design.means[i][None], design.common[i])[0]
            observed = completed(design, i, mode)
            columns.append(
                {
                    "subject": np.full(subject.points, i),
                    "time": subject.measured_at,
                    "output": np.concatenate([np.full(len(block.values), block.output) for block in subject.blocks]),
                    "observed": subject.values,
                    "censored": np.concatenate([block.censored for block in subject.blocks]),
                    "completed": observed,
                    "typical": typical,
                    "individual": mode.predictions,
                    "cwres": conditional_residuals(design, i, mode, observed),
                    "npde": prediction_discrepancies(observed, self.simulations[i]),
                }
            )
        return {key: np.concatenate([own[key] for own in columns]) for key in columns[0]}

    @cached_property
    def npde_probability(self) -> float:
        """The probability that an adequate model has NPDE as unusual as these."""
        return normality(self.residuals["npde"])

    # --- what it predicts ---

    def simulate(self, subjects: int | None = None, seed: int = 0) -> Data:
        """Return measurements as the fitted population would give them: of the subjects of the data, or of so many,
        whose designs are those of the data in turn."""
        rng, count = np.random.default_rng([seed, 2]), len(self.asked.members)
        wanted = count if subjects is None else subjects
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise ModelError(f"subjects must be a whole number of at least 1, not {subjects!r}")
        found = []
        for number in range(wanted):
            i = number % count
            values = self._design.simulated(i, 1, rng)[0]
            outputs = {
                block.name: Series(self.asked.members[i].times[block.positions], values[block.rows])
                for block in self.asked.members[i].blocks
            }
            name = self.asked.subjects[i] if subjects is None else f"simulated{number + 1}"
            found.append(replace(self.asked.data.experiments[i], name=name, outputs=outputs))
        return Data.of(found)

    @doing("predicting a new subject")
    def predict(
        self,
        times: Any,
        doses: Any = None,
        covariates: Mapping[str, float] | None = None,
        level: float = 0.9,
        draws: int = 400,
        seed: int = 0,
    ) -> PopulationPrediction:
        """Return outputs of a new subject with these doses and covariates: the typical one, and bands.

        The band of the population holds a share `level` of subjects; that of knowledge is what the data leave open of
        the typical subject.
        """
        known = Known(self.asked, self.estimated.layout, self.estimated.u, self.estimated.covariance)
        return predicted(known, np.asarray(times, dtype=float), doses, dict(covariates or {}), level, draws, seed)

    # --- looks ---

    @doing("drawing a figure")
    def plot(self, kind: str = "vpc", path: str | os.PathLike[str] | None = None) -> matplotlib.figure.Figure:
        """Draw "vpc", "individual", "observed-predicted" or "residuals"; `path` is a file to write."""
        return drawn(self, kind, path)

    @attached
    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page (HTML) with the estimates, both answers and all figures."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Everything that people would want to keep, as JSON has it."""
        return {
            "format": "odejet population fit 1",
            "model": self.asked.model.name,
            "population": {
                one.name: {"value": one.value, "stderr": one.stderr, "interval": list(one.interval)}
                for one in self.population.values()
            },
            "covariance": self.covariance.tolist(),
            "individuals": {name: dict(own) for name, own in self.individuals.items()},
            "individual_sds": {name: dict(own) for name, own in self.individuals.sd.items()},
            "shrinkage": self.shrinkage,
            "removed": list(self.removed),
            "rivals": [
                {"minus_two_log_likelihood": one.minus_two_log_likelihood, "error": one.error, "values": {**one.values}}
                for one in self.rivals
            ],
            "log_likelihood": self.log_likelihood,
            "log_likelihood_error": self.log_likelihood_error,
            "aic": self.aic,
            "bic": self.bic,
            "bicc": self.bicc,
            "success": self.success,
            "search": {"answer": str(self.search), "reasons": list(self.search.reasons)},
            "adequacy": {"answer": str(self.adequacy), "reasons": [one.sentence for one in self.adequacy.reasons]},
            "seed": self.seed,
            "seconds": self.seconds,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the results as JSON."""
        text = json.dumps(self.to_dict(), indent=1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    def __repr__(self) -> str:
        title, criteria, *said = self._said()
        lines = [criteria, *repr(self.population).splitlines(), *said]
        return "\n".join([title, *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        title, *said = self._said()
        return f"<p>{html.escape(title)}</p>{self.population._repr_html_()}<p>{'<br>'.join(map(html.escape, said))}</p>"

    def _said(self) -> list[str]:
        """What was fitted, its criteria, and what is to be known of the answer, as lines."""
        pop, least = self.asked, self.estimated
        lines = [
            f"Population fit of {pop.model.name}: {len(pop.subjects)} subjects, {pop.points} measurements, "
            f"{self.seconds:.1f} s",
            f"-2 log L = {self.minus_two_log_likelihood:.3f} ± {least.error:.3f}, "
            f"AIC {self.aic:.2f}, BIC {self.bic:.2f}",
            "shrinkage: " + ", ".join(f"{name} {100 * value:.0f} %" for name, value in self.shrinkage.items()),
            f"best fit: {self.search.sentence}",
        ]
        if self.vague:
            lines.append(f"the design tells little of {', '.join(self.vague)}: see fit.expected")
        if self.removed:
            lines.append(f"taken out: the random effect of {', '.join(self.removed)}, whose variance went to zero")
        if least.stopped:
            lines.append(f"not at the maximum: {least.stopped}")
        elif not self.success:
            lines.append(f"not at the maximum: another {least.gain:.2g} of -2 log L is to be expected")
        return lines
