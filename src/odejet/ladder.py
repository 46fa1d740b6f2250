"""Ladder: the rungs of effort by which a fit is found, from a few shooting times to a search of the whole box."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet import candidates as proposals
from odejet import coordinates, shooting
from odejet.algebra.library import Library, library
from odejet.algebra.monodromy import Fibre
from odejet.algebra.system import Targets
from odejet.candidates import ALIKE, Candidate, Census, distance
from odejet.certificate import DENSE, SAME, certify
from odejet.coordinates import Bounds
from odejet.data import Data, Experiment, checked
from odejet.flow import Flow, Outcome
from odejet.misfit import Misfit
from odejet.model import Model
from odejet.multistart import multistart
from odejet.refine import Ending, Refined, refine
from odejet.result import Candidates, Certificate, Fit, Identifiability, Provenance
from odejet.smooth import Smoothed, fit_output
from odejet.smooth.series import MIN_TIMES
from odejet.statistics import FitCheck, check

if TYPE_CHECKING:
    from odejet.progress import Progress


@dataclass(frozen=True)
class Options:
    seed: int
    jobs: int
    effort: str
    refine: bool
    weights: str
    estimators: tuple[str, ...] | None


@dataclass(frozen=True)
class Rung:
    """How much one rung tries: shooting times, pairs, estimators beside the automatic choice, refinements,
    and how often roots that were not found are looked for."""

    name: str
    points: int
    pairs: int
    estimators: int
    refinements: int
    hubs: int


FEW = Rung("a few shooting times", 7, 0, 1, 4, 1)
ALL = Rung("all shooting times", 20, 15, shooting.ESTIMATORS, 8, 2)
MANY_ROOTS = 8
"""Systems with more roots are solved at a few shooting times only, whatever the rung."""
BOX = "multistart"

SECONDS = {"auto": 10.0, "full": 60.0}
"""What the last rung may take."""
REFINE_SECONDS = 10.0
"""What the refinements of one rung may take together."""
STARTS = {"auto": 384, "full": 4096}
EQUAL = 0.05
"""Solutions whose negative log-likelihoods differ by less are as good as each other."""
EXACT_STARTS = 3
"""Refinements down to rounding, of which the best is taken."""
AGREE = 8
"""Starts in the box that must agree: a broad basin of a poor fit is found by several before a narrow good one."""
ALTERNATIVE_PLACES = (0.0, 0.3, 1.0)
"""Where along an experiment the derivatives of an optimum are asked for other roots."""


@dataclass(frozen=True)
class Optimum:
    refined: Refined
    provenance: Provenance


class Ladder:
    """A fit on its way: what was found so far, where it came from, what became of the rest."""

    def __init__(
        self,
        model: Model,
        data: Data,
        bounds: Bounds,
        positive: bool | Collection[str],
        noise: Any,
        options: Options,
        progress: Progress,
    ) -> None:
        self.began = time.perf_counter()
        self.model, self.options, self.progress = model, options, progress
        self.data = checked(data, model)
        self.misfit = Misfit(model, self.data, noise, options.weights)
        self.given = bounds, positive
        self.frame = self._frame(np.ones(len(self.misfit.unknowns)))
        self.census, self.stages = Census(), dict[str, float]()
        self.optima: list[Optimum] = []
        self.elsewhere: list[Refined] = []  # other solutions, wherever they are
        self.cloud: list[Candidate] = []
        self.smoothed: dict[tuple[str, str], Smoothed] = {}
        self.levels = self.misfit.scales
        self.library: Library | None = None
        self.confirmed = self.interrupted = False
        self.certificate = Certificate()

    @cached_property
    def flows(self) -> dict[str, Flow]:
        return {experiment.name: experiment.flow(self.model) for experiment in self.data.experiments}

    def _frame(self, scale: np.ndarray) -> coordinates.Coordinates:
        bounds, positive = self.given
        return coordinates.choose(self.misfit.unknowns, scale, bounds, positive, self.model.bounds)

    # --- the rungs ---

    def climb(self) -> None:
        with self.stage("identify"):
            self.library = library(self.observed())
        with self.stage("smooth"):
            self.smooth()
        for step in self.steps():
            step()
            with self.stage("alternatives"):
                self.alternatives()
            if self.certified() and self.options.effort != "full":
                return

    def observed(self) -> Model:
        """The model with the outputs that were measured: what the others would tell is not known."""
        outputs = {name: self.model.outputs[name] for name in self.misfit.outputs}
        observed = self.model.replace(outputs=outputs) if len(outputs) < len(self.model.outputs) else self.model
        # A parameter of an output that nobody measured stays an unknown of the fit, if not one of the algebra.
        return observed if observed.parameters == self.model.parameters else self.model

    def steps(self) -> list[Callable[[], None]]:
        """The rungs in order; where points are few the box comes early, since nothing else can confirm an optimum."""
        few, every, box = partial(self.shoot, FEW), partial(self.shoot, ALL), self.search_box
        if not self.options.refine:
            return [every if self.options.effort == "full" else few]
        if self.options.effort == "quick":
            return [few]
        if self.options.effort == "full":
            return [every, box]
        return [few, box, every] if np.min(self.misfit.counts) < DENSE else [few, every, box]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.progress.stage(name)
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - begin

    def smooth(self) -> None:
        """All outputs of all experiments, and the noise levels that this suggests."""
        for experiment in self.data.experiments:
            for name, series in experiment.outputs.items():
                if series.distinct >= MIN_TIMES:
                    self.smoothed[experiment.name, name] = fit_output(series.times, series.values, series.sds)
        levels = []
        for number, name in enumerate(self.misfit.outputs):
            found = [s.noise for (_, output), s in self.smoothed.items() if output == name]
            shape = float(np.median(self.misfit.shapes[self.misfit.groups[number]]))
            levels.append(math.sqrt(np.mean(np.square(found))) / shape if found else self.misfit.scales[number])
        self.levels = np.where(self.misfit.estimated, np.maximum(levels, self.misfit.floors), self.misfit.known)

    def shoot(self, rung: Rung) -> None:
        """Candidates of the algebra at the shooting times of a rung, and refinements of the best."""
        with self.stage("algebra"):
            found = [self.propose(experiment, rung) for experiment in self.data.experiments]
        with self.stage("rank"):
            inside, outside = proposals.within(self.combined(found), self.frame, self.census)
            self.cloud = proposals.ranked([*self.cloud, *inside], self.misfit, self.frame, self.levels, self.census)
            if len(self.cloud) < rung.refinements:
                # Noise may have moved every root out of the box; from its border the way back is short.
                self.cloud += proposals.ranked(outside, self.misfit, self.frame, self.levels, self.census)
        with self.stage("refine"):
            self.refine_best(rung)

    def propose(self, experiment: Experiment, rung: Rung) -> list[Candidate]:
        """Candidates of one experiment by itself."""
        assert self.library is not None
        flow = self.flows[experiment.name]
        result: list[Candidate] = []
        for points in (1, 2) if rung.pairs else (1,):
            fibre = self.library.fibre(points)
            if fibre is None:
                self.census.add("algebra", self.library.reason(points))
                continue
            if len(fibre) > MANY_ROOTS:
                rung = replace(FEW, pairs=rung.pairs)
            needed = shooting.orders_of(fibre.system)
            missing = [name for name in needed if (experiment.name, name) not in self.smoothed]
            if missing:
                self.census.add("algebra", f"{experiment.name} has too few measurements of {missing[0]}")
                continue
            times = shooting.shooting_times(experiment, list(needed), rung.points)
            jets = shooting.Jets({n: self.smoothed[experiment.name, n] for n in needed}, times, needed)
            places: list[tuple[int, ...]] = [(i,) for i in range(len(times))]
            if points == 2:
                index = {t: i for i, t in enumerate(times.tolist())}
                places = [(index[a], index[b]) for a, b in shooting.widest_pairs(times, rung.pairs)]
            shots, targets = shooting.targets(
                fibre.system, experiment, jets, places, fibre.at.fixed, self.options.estimators, rung.estimators
            )
            self.census.add("systems", f"{points}-point", len(shots))
            result += proposals.roots(
                fibre,
                shots,
                targets,
                flow,
                experiment.start,
                self.census,
                self.options.seed,
                rung.hubs if points == 1 else 1,
            )
        return result

    def combined(self, found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
        """Candidates for all unknowns: parameters of one experiment, and initial states of each.

        The initial states of another experiment are those of its candidate with the most similar parameters.
        """
        states, unknowns = list(self.model.states), self.misfit.unknowns
        n = len(states)
        result = []
        for number, own in enumerate(found):
            for candidate in own:
                begins = {}
                for other, theirs in enumerate(found):
                    experiment = self.data.experiments[other].name
                    if other == number:
                        begins[experiment] = candidate.z[:n]
                    elif theirs:
                        nearest = min(theirs, key=lambda c: distance(c.z[n:], candidate.z[n:]))
                        begins[experiment] = nearest.z[:n]
                if len(begins) == len(found):
                    z = [
                        begins[u.experiment][states.index(u.name)]
                        if u.experiment is not None
                        else candidate.z[n + self.model.parameters.index(u.name)]
                        for u in unknowns
                    ]
                    result.append(Candidate(np.array(z), candidate.shot, candidate.start))
        return result

    def refine_best(self, rung: Rung) -> None:
        """Refine ranked candidates until two agree and what is left looks like noise."""
        if self.cloud and not any(self.given) and not self.model.bounds:
            best = np.array([c.z for c in self.cloud[:5]])
            self.frame = self._frame(np.median(np.abs(best), axis=0))
        if not self.options.refine:
            self.optima = [Optimum(self.unrefined(c), _provenance(c, rung.name)) for c in self.cloud[:1]]
            return
        deadline = time.perf_counter() + REFINE_SECONDS
        for candidate in self.cloud[: rung.refinements]:
            left = deadline - time.perf_counter()
            if left <= 0:
                self.census.add("refinements", "out of time")
                return
            self.optima.append(Optimum(self.refined(candidate.z, left), _provenance(candidate, rung.name)))
            if self.enough():
                return

    def unrefined(self, candidate: Candidate) -> Refined:
        """A candidate as it is, in the form of a refinement."""
        return refine(self.misfit, candidate.z, levels=self.levels, max_evaluations=1, frame=self.frame)

    def refined(self, z: np.ndarray, seconds: float) -> Refined:
        found = refine(self.misfit, z, levels=self.levels, time_limit=seconds, frame=self.frame)
        self.census.add("refinements", found.ending.name.lower().replace("_", " "))
        return found

    def search_box(self) -> None:
        """Starts in the whole box, or around the scale of what was found."""
        with self.stage(BOX):
            self._search_box()

    def _search_box(self) -> None:
        bounds, positive = self.given
        effort = self.options.effort
        best = self.best
        # Smoothing is not to be trusted here: neither its noise nor, within bounds, the scale of what came of it.
        unbounded = bounds is None and not self.model.bounds
        scale = np.abs(best.refined.z) if best is not None and unbounded else None
        found = multistart(
            self.misfit,
            bounds,
            positive,
            scale,
            None,
            self.options.seed,
            STARTS[effort],
            SECONDS[effort],
            agree=AGREE,
        )
        self.census.add("refinements", "of multistart", len(found))
        self.optima += [Optimum(one, Provenance(BOX, start="multistart")) for one in found]
        now = self.best
        self.confirmed = now is not None and sum(o.cost - now.refined.cost <= SAME for o in found) >= 2

    def alternatives(self) -> None:
        """Other roots at the optimum's own derivatives, as starts: other solutions, or better optima.

        Where the model itself has several solutions they are wanted wherever they are, also outside the bounds.
        """
        best = self.best
        if best is None or self.library is None or not self.options.refine or len(self.data.experiments) > 1:
            return
        fibre, several = self.library.fibre(1), (self.library.verdict.solutions or 1) > 1
        if fibre is None or len(fibre) < 2 or (best.refined.ending is Ending.EXACT and not several):
            return
        deadline = time.perf_counter() + 0.5 * REFINE_SECONDS
        inside, outside = self.other_roots(fibre, best.refined.z)
        for z in inside:
            if (left := deadline - time.perf_counter()) > 0:
                again = self.refined(z, left)
                self.optima.append(Optimum(again, Provenance("other roots", start="algebra")))
        if several:
            free = coordinates.choose(self.misfit.unknowns, best.refined.z, None, self.given[1])
            for z in outside:
                if (left := deadline - time.perf_counter()) > 0:
                    self.elsewhere.append(refine(self.misfit, z, levels=self.levels, time_limit=left, frame=free))

    def other_roots(self, fibre: Fibre, z: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Real roots that share the square system's derivatives with z at a few times: inside the bounds, outside."""
        experiment, system = self.data.experiments[0], fibre.system
        flow, parameters = self.flows[experiment.name], z[len(z) - len(self.model.parameters) :]
        own = {unknown.name: z[i] for i, unknown in enumerate(self.misfit.unknowns) if unknown.experiment is not None}
        states = [own.get(name, 0.0) for name in self.model.states]  # what is known, the flow puts in
        times = experiment.start + np.array(ALTERNATIVE_PLACES) * (experiment.end - experiment.start)
        run = flow.run(parameters, states, times, start=experiment.start, sensitivities=False)
        if run.outcome is not Outcome.COMPLETED:
            return [], []
        everything = np.concatenate([run.states[:, :, 0], np.tile(parameters, (len(times), 1))], axis=1)
        inputs, fixed = shooting.input_series(system, experiment, times), fibre.at.fixed
        data, _ = system.evaluate(everything[:, system.columns], inputs, fixed)
        shots = [shooting.Shot((float(t),), "optimum") for t in times]
        targets = Targets(data, inputs, fixed)
        found = proposals.roots(fibre, shots, targets, flow, experiment.start, Census(), self.options.seed, 2)
        candidates = self.combined([found])
        inside, _ = proposals.within(candidates, self.frame, Census())
        outside = [c for c in candidates if np.any(self.frame.inside(c.z) != c.z)]
        parts = []
        for part in (inside, outside):
            ranked = proposals.ranked(part, self.misfit, self.frame, self.levels, Census())
            parts.append([c.z for c in ranked if distance(c.z, z) > ALIKE][: 2 * len(fibre)])
        return parts[0], parts[1]

    # --- the end ---

    @property
    def best(self) -> Optimum | None:
        finite = [o for o in self.optima if math.isfinite(o.refined.cost)]
        return min(finite, key=lambda o: o.refined.cost, default=None)

    def checks(self) -> FitCheck | None:
        best = self.best
        return None if best is None or not len(best.refined.residuals) else check(self.misfit, best.refined)

    def enough(self) -> bool:
        """Whether more starts from the same rung would tell nothing new."""
        best = self.best
        if best is None:
            return False
        if best.refined.ending is Ending.EXACT:
            # Equations that hold to rounding may still tell values apart where outputs span many decades.
            return sum(o.refined.ending is Ending.EXACT for o in self.optima) >= EXACT_STARTS
        return sum(o.refined.cost - best.refined.cost <= SAME for o in self.optima) >= 2 and self.certified()

    def certified(self) -> bool:
        best, checks = self.best, self.checks()
        if best is None or checks is None:
            return False
        refined = [o.refined for o in self.optima]
        self.certificate = certify(self.misfit, best.refined, refined, checks, self.levels, self.confirmed)
        return self.certificate.granted

    def result(self) -> Fit:
        best = self.best
        if best is None:
            start = self.frame.inside(np.ones(len(self.misfit.unknowns)))
            best = Optimum(refine(self.misfit, start, levels=self.levels, frame=self.frame), Provenance("none"))
        else:
            self.certified()
        certificate = self.certificate
        if self.interrupted:
            certificate = Certificate(False, ("the fit was interrupted",), certificate.outputs, certificate.agreeing)
        found = math.isfinite(best.refined.cost)
        message = "certified" if certificate.granted else "not certified"
        if not found:
            message = "no trajectory of the model reaches the last observation; bounds or other data may help"
        return Fit.of(
            self.misfit,
            best.refined,
            self.data,
            frame=self.frame,
            others=self.others(best.refined),
            verdict=None if self.library is None else Identifiability.of(self.library.verdict),
            success=certificate.granted,
            message=message,
            certificate=certificate,
            provenance=best.provenance,
            census=self.census.table(),
            stages=self.stages,
            seconds=time.perf_counter() - self.began,
            candidates=self._cloud(),
            seed=self.options.seed,
            effort=self.options.effort,
            smoothed=self.smoothed,
        )

    def others(self, best: Refined) -> list[Refined]:
        """Optima as good as the best but elsewhere."""
        kept: list[Refined] = []
        for one in [*(optimum.refined for optimum in self.optima), *self.elsewhere]:
            equal = abs(one.cost - best.cost) <= EQUAL and one.ending.settled
            if equal and all(distance(one.z, other.z) > ALIKE for other in (best, *kept)):
                kept.append(one)
        known = self.library.verdict.solutions if self.library is not None else None
        inside = sorted(kept, key=lambda one: bool(np.any(self.frame.inside(one.z) != one.z)))
        return inside[: known - 1] if known is not None else inside

    def _cloud(self) -> Candidates | None:
        if not self.cloud:
            return None
        sources = tuple(c.shot.estimator or c.start for c in self.cloud)
        return Candidates(np.array([c.z for c in self.cloud]), np.array([c.cost for c in self.cloud]), sources)


def _provenance(candidate: Candidate, rung: str) -> Provenance:
    return Provenance(rung, candidate.shot.estimator, candidate.shot.times, candidate.start)
