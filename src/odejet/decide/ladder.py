"""Ladder: the rungs of effort by which a fit is found, from a few shooting times to a search of the whole box."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from odejet.algebra.library import Library
from odejet.data.series import MIN_TIMES
from odejet.decide.certificate import AGREEING, Evidence, certify, like_noise, vague
from odejet.decide.optima import Optima, Optimum
from odejet.decide.statistics import FitCheck, check
from odejet.identify import Verdict
from odejet.jets import compilation
from odejet.jets.compilation import now
from odejet.problem import Problem, coordinates
from odejet.result import Candidates, Certificate, Fit, Identifiability, Provenance
from odejet.search import candidates
from odejet.search.alternatives import Alternatives, alternatives
from odejet.search.candidates import Candidate, Census
from odejet.search.multistart import CONFIRMING, SAME, multistart
from odejet.search.proposals import ALL, FEW, MANY_ROOTS, Proposer, Rung, combined, libraries
from odejet.search.refine import MAX_EVALUATIONS, Ending, Refined, refine
from odejet.smooth import Smoothed, fit_output

if TYPE_CHECKING:
    from odejet.progress import Progress

BOX = "multistart"
STARTS = {"auto": 384, "full": 4096}
"""Starts in the box."""
FIRST_EVALUATIONS, BEHIND = 150, 10.0
"""A refinement that is behind the best by so much after so many evaluations is given up."""
AGREE = 8
"""Starts in the box that must agree: a broad basin of a poor fit is found by several before a narrow good one."""
ALTERNATIVES, SPARE = 4, 3
"""Other roots that are refined in search of a better optimum, and for each solution that is still to be found."""
LIMITS = {"quick": 60.0, "auto": 120.0, "full": 1200.0}
"""Seconds after which a fit gives up, unless told otherwise; what it tries is counted and mostly ends long before."""

NOTABLE = 0.1
"""Seconds of compiling kernels that are told; below, they were only loaded."""


@dataclass(frozen=True)
class Options:
    seed: int
    effort: str
    refine: bool
    estimators: tuple[str, ...] | None
    time_limit: float


class Ladder:
    """A fit on its way: what was found so far, where it came from, what became of the rest."""

    def __init__(
        self,
        problem: Problem,
        options: Options,
        progress: Progress,
    ) -> None:
        self.began = now()
        self.problem, self.options, self.progress = problem, options, progress
        self.model, self.data, self.misfit = problem.model, problem.data, problem.misfit
        self.given = problem.given_bounds, problem.positive
        self.frame = self._frame(np.ones(len(self.misfit.unknowns)))
        self.census, self.stages = Census(), dict[str, float]()
        self.optima = Optima()
        self.checked: tuple[Refined, FitCheck] | None = None  # the last optimum that was judged
        self.challenged: Optimum | None = None  # the optimum whose other roots were tried
        self.cloud: list[Candidate] = []
        self.tried: list[np.ndarray] = []  # starts, none of which is refined twice
        self.smoothed: dict[tuple[str, str], Smoothed] = {}
        self.levels = self.misfit.scales
        self.library: tuple[Library, ...] = ()
        self.searched = self.confirmed = self.interrupted = False
        self.certificate = Certificate()

    def _frame(self, scale: np.ndarray) -> coordinates.Coordinates:
        return self.problem.frame(scale)

    @property
    def left(self) -> float:
        """Seconds before the fit gives up; compiling kernels does not count."""
        return max(self.began + self.options.time_limit - now(), 0.0)

    # --- the rungs ---

    def climb(self) -> None:
        with self.stage("identify"):
            self.library = libraries(self.problem)
        with self.stage("smooth"):
            self.smooth()
        for step in self.steps():
            step()
            if self.options.refine:
                self.settle()
                self.challenge()
            if self.over():
                break
        if self.several > 1 and self.options.refine:
            with self.stage("alternatives"):
                self.find_others()

    def over(self) -> bool:
        """Whether further rungs would change nothing."""
        if not self.left or (self.certified() and self.options.effort != "full"):
            return True
        # Where there are too many valleys to be sure of the best, other starts would not change it.
        return self.searched and self.doubtful()

    @property
    def several(self) -> int:
        """How many solutions the model has, as far as that is known."""
        return (self.verdict.solutions or 1) if self.verdict is not None else 1

    @property
    def verdict(self) -> Verdict | None:
        return self.library[0].verdict if len(self.library) else None

    def steps(self) -> list[Callable[[], None]]:
        """The rungs in order: where a few shooting times are not enough, the box mostly tells more than the others."""
        few, every, box = partial(self.shoot, FEW), partial(self.shoot, ALL), self.search_box
        if not self.options.refine:
            return [every if self.options.effort == "full" else few]
        if self.options.effort == "quick":
            return [few]
        return [every, box] if self.options.effort == "full" else [few, box, every]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.progress.stage(name)
        begin, compiled = now(), compilation.seconds()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + now() - begin
            if (compiling := compilation.seconds() - compiled) > NOTABLE:
                self.stages["compile"] = self.stages.get("compile", 0.0) + compiling

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
            asked = self.smoothed, self.options.estimators, self.options.seed, self.census
            proposer = Proposer(self.problem, self.library, *asked)
            found = [proposer.propose(number, rung) for number in range(len(self.data.experiments))]
        with self.stage("rank"):
            everything = combined(self.problem, found, self.levels)
            inside, outside = candidates.within(everything, self.frame, self.census)
            self.cloud = candidates.ranked([*self.cloud, *inside], self.misfit, self.frame, self.levels, self.census)
            if len(self.cloud) < rung.refinements:
                # Noise may have moved every root out of the box; from its border the way back is short.
                self.cloud += candidates.ranked(outside, self.misfit, self.frame, self.levels, self.census)
        with self.stage("refine"):
            self.refine_best(rung)

    def refine_best(self, rung: Rung) -> None:
        """Refine ranked candidates until no more are needed."""
        if self.cloud and not any(self.given) and not self.model.bounds:
            best = np.array([c.z for c in self.cloud[:5]])
            self.frame = self._frame(np.median(np.abs(best), axis=0))
        if not self.options.refine:
            for c in self.cloud[:1]:
                as_it_is = refine(self.misfit, c.z, levels=self.levels, max_evaluations=1, frame=self.frame)
                self.optima.add(as_it_is, _provenance(c, rung.name))
            return
        new = [c for c in candidates.originals(self.cloud) if not any(np.array_equal(c.z, z) for z in self.tried)]
        for candidate in new[: rung.refinements]:
            if not self.left:
                return
            self.optima.add(self.refined(candidate.z), _provenance(candidate, rung.name))
            self.sharpen()
            if self.enough():
                return

    def refined(self, z: np.ndarray) -> Refined:
        """Where a start leads; one that is far behind the best after a while is not followed to the end."""
        self.tried.append(z)
        best = self.optima.best
        goal = math.inf if best is None else best.refined.cost + BEHIND
        further = partial(refine, self.misfit, levels=self.levels, frame=self.frame)
        found = further(z, time_limit=self.left, max_evaluations=FIRST_EVALUATIONS)
        if found.ending is Ending.EVALUATION_LIMIT and found.cost <= goal:
            found = further(found.z, time_limit=self.left, max_evaluations=MAX_EVALUATIONS - FIRST_EVALUATIONS)
        self.census.add("refinements", found.ending.name.lower().replace("_", " "))
        return found

    def challenge(self) -> None:
        """Try the other roots at the derivatives of an optimum that explains the data.

        Noise may favour another root than the one that all starts have come from.
        """
        best = self.optima.best
        if best is None or best is self.challenged or self.exact or not self.doubtful():
            return
        with self.stage("alternatives"):
            for start in self.other_roots(MANY_ROOTS).inside[:ALTERNATIVES]:
                if (image := self.image(start, best.refined, self.frame)) is not None:
                    self.optima.elsewhere.append(image)
                elif self.left:
                    self.optima.add(self.refined(start), Provenance("other roots", start="algebra"))
        self.challenged = self.optima.best

    def settle(self) -> None:
        """Follow the best to its end, if it was only given up."""
        best = self.optima.best
        if best is not None and best.refined.ending is Ending.EVALUATION_LIMIT:
            with self.stage("refine"):
                found = refine(self.misfit, best.refined.z, frame=self.frame, time_limit=self.left)
                self.optima.found = [optimum for optimum in self.optima.found if optimum is not best]
                self.optima.add(found, best.provenance)

    def sharpen(self) -> None:
        self.optima.sharpen(self.misfit, self.frame, self.left)

    def search_box(self) -> None:
        """Starts in the whole box, or around the scale of what was found."""
        with self.stage(BOX):
            found: list[Refined] = []
            for scale in self.scales():
                found += self.starts_around(scale)
                # What the data leave vague may have any scale, which confirms nothing.
                if self.exact or not self.left or (self.doubtful() and not self.vague()):
                    break
            self.census.add("refinements", "of multistart", len(found))
            self.sharpen()
        self.searched, best = True, self.optima.best
        self.confirmed = best is not None and sum(o.cost - best.refined.cost <= SAME for o in found) >= CONFIRMING

    def scales(self) -> list[np.ndarray | None]:
        """Around what to search, where bounds do not say it: what was found, unless that explains nothing; and one."""
        best, (bounds, _) = self.optima.best, self.given
        if bounds is not None or self.model.bounds or best is None:
            return [None]
        return [np.abs(best.refined.z), None]

    def starts_around(self, scale: np.ndarray | None) -> list[Refined]:
        """Where starts in the box, or around a scale, lead."""
        bounds, positive = self.given
        # Smoothing is not to be trusted here: neither its noise nor, within bounds, the scale of what came of it.
        found = multistart(
            self.misfit,
            bounds,
            positive,
            scale,
            None,
            self.options.seed,
            STARTS[self.options.effort],
            self.left,
            agree=AGREE,
            before=self.optima.refined,
        )
        for one in found:
            self.optima.add(one, Provenance(BOX, start="multistart"))
        return found

    def other_roots(self, most: int | None = None) -> Alternatives:
        """Other roots at the optimum's own derivatives, unless the system has more than `most`."""
        best = self.optima.best
        if best is None or not self.library or len(self.data.experiments) > 1:
            return Alternatives([], [])
        fibre, z = self.library[0].fibre(1), best.refined.z
        if fibre is None or len(fibre) < 2 or (most is not None and len(fibre) > most):
            return Alternatives([], [])
        return alternatives(self.problem, fibre, z, self.frame, self.levels, self.options.seed)

    def find_others(self) -> None:
        """The other solutions of a model that has several, wherever they are, also outside the bounds."""
        best, found = self.optima.best, self.other_roots()
        if best is None:
            return
        free = coordinates.choose(self.misfit.unknowns, best.refined.z, None, self.given[1])
        for starts, frame in ((found.inside, self.frame), (found.outside, free)):
            for start in starts[: SPARE * (self.several - 1)]:
                if len(self.optima.others(self.frame, None)) >= self.several - 1 or not self.left:
                    return
                one = self.as_good(start, best.refined, frame)
                if frame is self.frame and one.cost < best.refined.cost - SAME:
                    self.optima.add(one, Provenance("other roots", start="algebra"))
                else:  # not an independent start, so no witness of the optimum
                    self.optima.elsewhere.append(one)

    def as_good(self, z: np.ndarray, best: Refined, frame: coordinates.Coordinates) -> Refined:
        """A root at the optimum's derivatives, refined unless it has the optimum's trajectory already."""
        image = self.image(z, best, frame)
        return image or refine(self.misfit, z, levels=self.levels, time_limit=self.left, frame=frame)

    def image(self, z: np.ndarray, best: Refined, frame: coordinates.Coordinates) -> Refined | None:
        """A point with the optimum's own trajectory, which is no witness of it; None if it has another."""
        as_it_is = refine(self.misfit, z, max_evaluations=1, frame=frame)
        return replace(as_it_is, ending=best.ending) if abs(as_it_is.cost - best.cost) <= SAME else None

    # --- the end ---

    def checks(self) -> FitCheck | None:
        best = self.optima.best
        if best is None or not len(best.refined.residuals):
            return None
        if self.checked is None or self.checked[0] is not best.refined:
            self.checked = best.refined, check(self.misfit, best.refined)
        return self.checked[1]

    @property
    def exact(self) -> bool:
        """Whether residuals are down to rounding."""
        best = self.optima.best
        return best is not None and best.refined.ending is Ending.EXACT

    def doubtful(self) -> bool:
        """Whether the best optimum explains the data, and others may do so too."""
        checks = self.checks()
        if checks is None or self.exact:
            return False
        return not like_noise(self.misfit, checks, self.levels)

    def vague(self) -> bool:
        """Whether the data leave values vague that they could determine."""
        best, verdict = self.optima.best, self.verdict
        free = len(verdict.fix) * len(self.data.experiments) if verdict is not None else 0
        return best is not None and vague(best.refined, self.frame, free)

    def enough(self) -> bool:
        """Whether more starts from the same rung would tell nothing new."""
        if self.exact or self.certified():
            return True
        # Starts that agree without being enough for a certificate want a search of another kind.
        return self.certificate.agreeing >= AGREEING and self.doubtful() and not self.confirmed

    def certified(self) -> bool:
        best, checks = self.optima.best, self.checks()
        if best is None or checks is None:
            return False
        verdict = self.verdict
        evidence = Evidence(
            optima=self.optima.refined,
            smoothed=self.levels,
            confirmed=self.confirmed,
            vague=self.vague(),
            blunt=self.optima.blunt,
            unknowable=tuple(
                u.label
                for u in self.misfit.unknowns
                if verdict and u.name in verdict and verdict[u.name].kind == "none"
            ),
            roots=(verdict.roots or 1) if verdict else 1,
        )
        self.certificate = certify(self.misfit, best.refined, checks, evidence)
        return self.certificate.granted

    def result(self) -> Fit:
        best = self.optima.best
        if best is None:
            start = self.frame.inside(np.ones(len(self.misfit.unknowns)))
            self.optima.add(refine(self.misfit, start, levels=self.levels, frame=self.frame), Provenance("none"))
            best = self.optima.found[-1]
        else:
            self.certified()
        certificate = self.certificate
        if self.interrupted:
            certificate = replace(certificate, granted=False, reasons=("the fit was interrupted",))
        elif not certificate.granted and not self.left:
            certificate = replace(certificate, reasons=("the time limit was reached", *certificate.reasons))
        message = certificate.message
        if not math.isfinite(best.refined.cost):
            message = "no trajectory of the model reaches the last observation; bounds or other data may help"
        verdict = self.verdict
        return Fit.of(
            self.problem,
            best.refined,
            others=self.optima.others(self.frame, verdict.solutions if verdict is not None else None),
            verdict=None if verdict is None else Identifiability.of(verdict),
            success=certificate.granted,
            message=message,
            certificate=certificate,
            provenance=best.provenance,
            census=self.census.table(),
            stages=self.stages,
            seconds=now() - self.began + self.stages.get("compile", 0.0),
            candidates=self._cloud(),
            seed=self.options.seed,
            effort=self.options.effort,
            smoothed=self.smoothed,
        )

    def _cloud(self) -> Candidates | None:
        if not self.cloud:
            return None
        sources = tuple(c.shot.estimator or c.start for c in self.cloud)
        return Candidates(np.array([c.z for c in self.cloud]), np.array([c.cost for c in self.cloud]), sources)


def _provenance(candidate: Candidate, rung: str) -> Provenance:
    return Provenance(rung, candidate.shot.estimator, candidate.shot.times, candidate.start)
