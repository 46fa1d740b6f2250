"""State: what a search knows so far, and what follows from it.

A state does not change: stages take one and return the next.  Its questions only compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from odejet.algebra.library import Library
from odejet.decide.adequacy import NO, Witness, reasons_against_tests, shortcomings
from odejet.decide.certificate import AGREEING, ROUGH, Certificate, Evidence, certify, is_vague
from odejet.decide.optima import Optima, Optimum, Provenance
from odejet.decide.optimality import PATIENT, Effort, Optimality, is_answered
from odejet.decide.task import Task
from odejet.decide.verdict import Identifiability
from odejet.problem.coordinates import Coordinates
from odejet.search.candidates import Candidate
from odejet.search.portfolio import CONFIRMING
from odejet.search.refine import SAME, Refined
from odejet.smooth import Smoothed

BOX = "multistart"
"""The rung that does not rest on smoothing."""

AGREE = 8
"""Starts in the box that must agree: a broad basin of a poor fit is found by several before a narrow good one."""

UNEXPLAINED = 0.1
"""The sd of residuals of an output in units of that of the data, beyond which signal may be taken for noise."""

FEW = 30
"""Points of an output through which curves may pass that differ between them: aliases leave residuals as small as you
like, and within bounds that somebody has given a frequency may be one of many."""

MANY = 200
"""Points of an output that are too many for a signal to pass for white noise: sweeps beside 750 points found nothing
and took up to sixty times as long as the rest of a fit."""


@dataclass(frozen=True, eq=False)
class State:
    """Evidence: candidates, optima, and the witnesses for and against them."""

    task: Task
    frame: Coordinates
    levels: np.ndarray  # of the noise, as smoothing finds them
    libraries: tuple[Library, ...] = ()  # the algebra of every experiment
    verdict: Identifiability | None = None
    smoothed: Mapping[tuple[str, str], Smoothed] = field(default_factory=dict)  # by experiment and output
    cloud: tuple[Candidate, ...] = ()  # candidates of the algebra, best first
    tried: tuple[np.ndarray, ...] = ()  # starts, none of which is refined twice
    optima: Optima = field(default_factory=Optima)
    challenged: Optimum | None = None  # the optimum whose other roots were tried
    blunt: bool = False  # whether small measurements are not explained down to their rounding, after an attempt
    rounds: int = 0  # of the search of the box
    effort: Effort = field(default_factory=Effort)  # of the search of the box
    apart: tuple[float, Optimality] | None = None  # the optimum of experiments one by one: its cost, and how sure it is
    looks: int = 0  # points of the box that a sweep has looked at
    limits: tuple[str, ...] = ()  # which unknowns of the best optimum run off

    @classmethod
    def of(cls, task: Task) -> State:
        """Nothing is known yet."""
        misfit = task.misfit
        levels = np.where(misfit.estimated, misfit.scales, misfit.known)
        return cls(task, task.problem.frame(), levels)

    def adding(self, refined: Refined, provenance: Provenance) -> State:
        """With one more optimum."""
        return replace(self, optima=self.optima.adding(Optimum(self.task.misfit, refined, provenance)))

    # --- questions ---

    @property
    def best(self) -> Optimum | None:
        return self.optima.best

    @property
    def counted(self) -> int:
        """How many solutions the model has, as far as that is known."""
        return (self.verdict.solutions or 1) if self.verdict is not None else 1

    @cached_property
    def determined(self) -> np.ndarray:
        """Which unknowns have values that data can tell."""
        unknowable = self.verdict.unknowable if self.verdict is not None else ()
        return np.array([label not in unknowable for label in self.task.misfit.labels])

    @cached_property
    def others(self) -> list[Refined]:
        """Optima as good as the best, as many as the model can have."""
        known = None if self.verdict is None else self.verdict.solutions
        return self.optima.others(self.frame, known, self.determined)

    @property
    def rivals(self) -> list[Refined]:
        """Optima nearly as likely as the best, and elsewhere."""
        return self.optima.rivals(self.others, self.determined)

    @property
    def counts_nothing(self) -> bool:
        """Whether it is not known how many solutions the model has, so that any end may be one."""
        return self.verdict is None or self.verdict.solutions is None

    @property
    def missing(self) -> int:
        """How many solutions were not found, of those that the model has."""
        return self.counted - 1 - len(self.others)

    @property
    def is_exact(self) -> bool:
        """Whether residuals are down to rounding."""
        return self.best is not None and self.best.is_exact

    @cached_property
    def explains_data(self) -> bool:
        """Whether the residuals of the best optimum look like noise; then others may explain the data too."""
        if self.best is None or self.is_exact:
            return False
        return not shortcomings(self.task.misfit, self.best.check, Witness(self.levels, self.curves))

    @property
    def curves(self) -> float:
        """How many essentially different curves the box has, if much of an output may be signal taken for noise."""
        misfit = self.task.misfit
        if self.best is None or self.is_exact or not (misfit.counts < MANY).any():
            return 1.0
        levels = np.array([output.level for output in self.best.check.outputs])
        given = np.delete(np.array(self.frame.given), misfit.noise_entries, axis=1)
        unexplained = (levels > UNEXPLAINED * misfit.deviations) & (misfit.counts < MANY)
        doubtful = unexplained | ((misfit.counts < FEW) & np.isfinite(given).all())
        return self.task.curves if doubtful.any() else 1.0

    @property
    def is_tested(self) -> bool:
        """Whether the best optimum leaves degrees of freedom to test it by."""
        return self.best is not None and not reasons_against_tests(self.task.misfit, self.best.check)

    @cached_property
    def is_vague(self) -> bool:
        """Whether the data leave values vague that they could determine."""
        free = len(self.verdict.fix) if self.verdict is not None else 0
        return self.best is not None and is_vague(self.best.misfit, self.best.refined, self.frame, free)

    @cached_property
    def box(self) -> list[Refined]:
        """Where starts in the box ended."""
        return [one.refined for one in self.optima.found if one.provenance.rung == BOX]

    @property
    def search(self) -> Optimality:
        """Whether the best optimum is the best there is."""
        return self.certificate.search

    @property
    def is_rough(self) -> bool:
        """Whether starts may be too few for the box to have been searched as densely as outputs can swing in it."""
        return self.best is not None and self.curves > ROUGH

    @property
    def is_confirmed(self) -> bool:
        """Whether a search without smoothing has led to the best optimum too."""
        return self.optima.at_best(BOX) >= CONFIRMING

    @cached_property
    def certificate(self) -> Certificate:
        """Whether the best optimum may be trusted, by what is known so far."""
        if self.best is None:
            return Certificate()
        verdict = self.verdict
        evidence = Evidence(
            optima=self.optima.refined,
            smoothed=self.levels,
            confirmed=self.is_confirmed,
            vague=self.is_vague,
            blunt=self.blunt,
            unknowable=verdict.unknowable if verdict else (),
            roots=verdict.roots if verdict else None,
            box=self.box,
            effort=self.effort,
            apart=self.apart[1] if self.apart is not None and self.best.cost >= self.apart[0] - SAME else None,
            curves=self.curves,
            looks=self.looks + len(self.box),
        )
        return certify(self.best, evidence)

    @property
    def is_certified(self) -> bool:
        return self.certificate.granted

    @property
    def is_answered(self) -> bool:
        """Whether the search has its answer, so that more starts would tell nothing new; or enough of them agree on an
        optimum that goes through any data and will never be tested."""
        # Confirmation is worth the time if it is asked for, and more of it if it earns a certificate.
        patient = self.certificate.adequacy != NO and not self.effort.is_long(PATIENT)
        asked = self.task.options.effort == "full"
        if is_answered(self.search, Effort() if asked or patient else self.effort):
            return True
        return self.explains_data and not self.is_tested and self.optima.at_best(BOX) >= AGREE

    @property
    def has_enough(self) -> bool:
        """Whether starts in the box that agree need no others: they earn a certificate or are the answer, or the box
        wants another search."""
        return self.is_certified or self.is_rough or self.is_answered

    @property
    def is_enough(self) -> bool:
        """Whether more starts from the same rung would tell nothing new."""
        if self.is_exact or self.is_certified:
            return True
        # Starts that agree without being enough for a certificate want a search of another kind.
        return self.certificate.agreeing >= AGREEING and self.explains_data and not self.is_confirmed
