"""Descent: a point on its way down to an optimum, step by step (see `refine`).

step         `curvature`: of the linear model of the residuals, or of the one with their second derivatives
trial        `corrections`: where it leads, along the bend of the valley if it has one
acceptance   `trust_region`: what the trial brings beside what was predicted, and how far the next may go
weights      `weighting`: what an output's residuals count
termination  `termination`: what may be spent, and whether anything is gained
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.clock import now
from odejet.objective.arrow import ArrowSolver
from odejet.objective.courses import STIFF_WORK
from odejet.objective.evaluation import Aim, Evaluation
from odejet.objective.projection import Elimination
from odejet.objective.reduced import AnyMisfit, Reduced
from odejet.objective.trust import Solver, Step
from odejet.problem.coordinates import Coordinates
from odejet.search.corrections import CorrectionSettings, Corrector, Point, Trial
from odejet.search.curvature import Curvature
from odejet.search.refined import Refined, refined_at
from odejet.search.termination import Allowance, Creep, Ending
from odejet.search.trust_region import RadiusSettings, TrustRegion
from odejet.search.vanishing import way_back
from odejet.search.weighting import Weighting


@dataclass(frozen=True)
class DescentSettings:
    """When a descent changes its ways."""

    radius: RadiusSettings = field(default_factory=RadiusSettings)
    corrections: CorrectionSettings = field(default_factory=CorrectionSettings)
    rough: float = 1e-2  # the relative decrease below which weights follow the residuals
    hindrances: int = 3  # steps by kinks of the misfit before the way goes on with all unknowns; one may be chance
    returns: int = 3  # of what has vanished
    reaches: tuple[float, ...] = (1.0, 0.3)  # how far back, on the scale of what the data want
    window: float = 0.8  # of the time that a start reaches: what is fitted first, if it does not reach the end
    approach: int = 40  # evaluations for that


SETTINGS = DescentSettings()


class Descent:
    """A point on its way down, with all that is known of the misfit there."""

    def __init__(
        self,
        misfit: AnyMisfit,
        frame: Coordinates,
        levels: np.ndarray,
        deadline: float,
        max_evaluations: int,
        precision: float,
        settings: DescentSettings = SETTINGS,
    ) -> None:
        self.misfit, self.frame, self.precision, self.settings = misfit, frame, precision, settings
        self.box = frame.box
        self.allowance = Allowance(deadline, max_evaluations)
        self.weighting = Weighting.of(misfit, levels)
        self.region = TrustRegion.first(settings.radius)
        self.curvature = Curvature.of_size(0 if misfit.in_blocks else len(self.box[0]))
        self.creep = Creep()
        self.returns = 0  # of unknowns that had vanished
        self.hindered = 0  # steps so far, by kinks of the misfit
        self.theta = np.empty(0)
        self.point: Point | None = None  # at theta, once that is simulated
        self.failure: Evaluation | None = None
        self.made: tuple[Point, Weighting, Solver | ArrowSolver] | None = None  # steps, and of what they are

    @property
    def here(self) -> Evaluation:
        """The misfit at the point."""
        assert self.point is not None
        return self.point.found

    # --- the way ---

    def run(self, start: np.ndarray) -> Ending:
        """Descend from a start to the end."""
        self.theta = self.clipped(start)
        found = self.evaluate(self.theta)
        if not found.complete:
            self.failure = found
            return self.approach(found.reached)
        self.stand(self.theta, found)
        self.tune()
        return self.descend()

    def descend(self) -> Ending:
        """Go step by step to the end, or to where the way goes on with all unknowns."""
        while (ending := self.advance()) is None:
            self.hindered += self.is_kinked
            if self.hindered == self.settings.hindrances:
                return Ending.EVALUATION_LIMIT
        return ending

    @property
    def is_kinked(self) -> bool:
        """Whether scales or offsets that are left out are on bounds of theirs, and the last step did not do what it
        should, once the way is no longer rough.

        Beyond such a bound the misfit without them bends at once, and a descent may go back and forth along the kink;
        with all unknowns it is a bound like any other.
        """
        eliminated = self.here.eliminated
        return not self.region.good and self.weighting.adaptive and eliminated is not None and eliminated.held

    def follow(self, part: Reduced[Elimination], start: np.ndarray) -> Ending:
        """Descend without scales and offsets, and take these at the end."""
        levels, deadline, limit = self.weighting.levels, self.allowance.deadline, self.allowance.limit
        within = Descent(part, part.frame, levels, deadline, limit, self.precision, self.settings)
        ending = within.run(start[part.kept])
        self.allowance = within.allowance
        z = within.frame.back(within.theta)
        if within.point is None:
            self.theta, self.failure = self.frame.to(self.frame.inside(part.embedding.filled(z))), within.failure
            return ending
        assert within.here.eliminated is not None
        z = part.embedding.filled(z, within.here.eliminated.values)
        self.stand(self.clipped(z), part.embedding.complete(within.here))
        if within.hindered == self.settings.hindrances:
            self.weighting = replace(self.weighting, levels=within.weighting.levels, adaptive=True)
            self.region.radius = within.region.radius
            ending = self.descend()
        return ending

    def look(self, start: np.ndarray) -> Ending:
        """Stay at the start."""
        self.theta = self.clipped(start)
        found = self.evaluate(self.theta)
        if not found.complete:
            self.failure = found
            return Ending.NO_START
        self.stand(self.theta, found)
        return Ending.EXACT if self.is_exact() else Ending.EVALUATED

    def approach(self, reached: float) -> Ending:
        """Fit what can be simulated first: its optimum mostly reaches farther."""
        own, spent = self.settings, self.allowance
        levels = np.where(self.misfit.measurements.densities, self.misfit.scales, self.weighting.levels)
        part = self.misfit.window(own.window * reached, levels=levels)
        distinct = len(np.unique(part.times))
        if now() > spent.deadline:
            return Ending.TIME_LIMIT
        if part.points < len(self.theta) or distinct < 3 or spent.left <= 0:
            return Ending.NO_START
        budget = min(spent.left, own.approach)
        before = Descent(part, self.frame, self.weighting.levels, spent.deadline, budget, self.precision, own)
        ending = before.run(self.frame.back(self.theta))
        spent.charge_all(before.allowance)
        if before.point is None:
            return Ending.NO_START if ending.settled else ending
        found = self.evaluate(before.theta)
        if found.complete:
            self.stand(before.theta, found)
            return self.descend()
        if found.reached <= reached * 1.05:
            return Ending.NO_START
        self.theta = before.theta
        return self.approach(found.reached)

    def advance(self) -> Ending | None:
        """Take or refuse one step; the ending, if this was the last."""
        if (over := self.allowance.over()) is not None:
            return over
        if self.is_endless and self.is_exact():
            return Ending.EXACT
        solver = self.solver()
        step = self.curvature.step(solver, self.region.radius)
        negligible = self.negligible(solver, step)
        own = self.weighting
        if not own.adaptive and (negligible or step.decrease <= self.settings.rough * own.squares(self.here)):
            self.weighting = replace(own.following(self.here), adaptive=True)
            self.curvature.forget()
            return None
        if negligible or self.creeps():
            return None if self.returned() else self.end()
        return self.take(solver, step)

    def take(self, solver: Solver | ArrowSolver, step: Step) -> Ending | None:
        """Try a step and, where the residuals turn out to be curved, its correction; change the radius accordingly."""
        assert self.point is not None
        region, enough = self.region, self.region.settings.good
        corrector = Corrector(
            self.settings.corrections, self.point, self.weighting.of_groups, self.box, self.allowance.deadline
        )
        move = step.move + corrector.bend(solver, step) if region.winding else step.move
        aim = corrector.aim(step)
        trial = self.attempt(step, move, aim)
        if trial.found.complete:
            self.curvature.judge(solver, step, trial.ratio * step.decrease)
        if trial.found.complete and trial.ratio < enough:
            trial = corrector.improve(
                solver,
                step,
                trial,
                move,
                aim,
                lambda total: None if self.allowance.over() else self.attempt(step, total, aim),
                enough,
            )
        if region.is_narrow(trial.ratio, step) and self.curvature:
            region.winding = True  # the same step once more, along the bend
            return None
        region.update(trial.ratio, step, trial.found.complete)
        if region.takes(trial.ratio):
            self.move_to(trial)
        elif region.is_exhausted:
            return self.end(stalled=True)
        return None

    def attempt(self, step: Step, move: np.ndarray, aim: Aim | None) -> Trial:
        """Evaluate a move, and compare it with what the step predicts."""
        theta = np.clip(self.theta + move, *self.box)
        found = self.evaluate(theta, aim)
        ratio = self.weighting.decrease(self.here, found) / step.decrease if found.complete else -math.inf
        return Trial(theta, found, ratio)

    def move_to(self, trial: Trial) -> None:
        """Take a trial, and learn from it."""
        assert self.point is not None
        before = self.point
        there = Point(self.misfit, self.frame, trial.theta, trial.found)
        if self.curvature:
            move, squares = trial.theta - self.theta, self.misfit.scoring is None
            terms = there.linear.secant_terms(before.linear, move, self.weighting.of_groups, squares)
            self.curvature.learn(move, *terms)
        self.stand(trial.theta, trial.found)
        self.tune()
        if self.weighting.adaptive:
            self.reweigh()

    def returned(self) -> bool:
        """Bring back unknowns that have all but vanished, if that is to the benefit of the misfit."""
        if self.returns >= self.settings.returns or self.misfit.in_blocks or self.is_exact():
            return False
        unit = self.weighting.unit(self.here)
        self.returns += 1
        way = way_back(self.frame, self.theta, self.here, self.misfit.row_groups, self.weighting.of_groups, unit)
        for reach in self.settings.reaches:
            theta = None if way is None else way.up_to(reach)
            if theta is None or self.allowance.over() is not None:
                return False
            found = self.evaluate(theta)
            if found.complete and self.weighting.decrease(self.here, found) > self.precision * unit:
                self.stand(theta, found)
                self.tune()
                self.reweigh()
                self.curvature.forget()
                self.region.begin_again()
                self.creep.past.clear()
                return True
        return False

    # --- the end ---

    @property
    def is_endless(self) -> bool:
        """Whether exact data would have no optimum: where noise has a law of its own, its scale goes to zero."""
        return bool((self.misfit.measurements.densities & self.misfit.free_noise).any())

    def is_exact(self) -> bool:
        """Whether the residuals of every output are down to rounding."""
        return self.misfit.is_exact(self.here)

    def creeps(self) -> bool:
        """Whether many evaluations together gained nothing that matters.

        As long as every step goes farther than the one before it, one of them soon gains more than all before.
        """
        if not self.weighting.adaptive:
            return False
        assert self.here.residuals is not None
        cost, unit = self.misfit.cost(self.here.residuals, rest=self.here.rest), self.weighting.unit(self.here)
        return self.creep.creeps(self.allowance.evaluations, cost, unit) and not self.region.growing

    def negligible(self, solver: Solver | ArrowSolver, step: Step) -> bool:
        """Whether nothing is left to be gained: not by this step, nor by one of the linear model that goes farther."""
        if step.decrease <= self.weighting.rounding(self.here):
            return True
        enough = self.precision * self.weighting.unit(self.here)
        farther = max(self.region.radius, self.region.settings.first)
        return step.decrease <= enough and solver.step(farther).decrease <= enough

    def end(self, stalled: bool = False) -> Ending:
        if self.is_exact():
            return Ending.EXACT
        return Ending.STALLED if stalled else Ending.CONVERGED

    def result(self, ending: Ending, seconds: float) -> Refined:
        """Return where the descent is, and all that is known there."""
        n, evaluations = len(self.theta), self.allowance.evaluations
        z = self.frame.back(self.theta)
        if self.point is None or self.here.residuals is None or self.here.jacobian is None:
            nothing = np.empty(0), np.empty((0, n)), self.weighting.levels, np.zeros(n, dtype=bool)
            detail = self.failure.message if self.failure is not None else ""
            return Refined(self.misfit.labels, z, math.inf, *nothing, ending, evaluations, seconds, detail)
        ends = self.theta <= self.box[0], self.theta >= self.box[1]
        return refined_at(self.misfit, z, self.here, ends, ending, evaluations, seconds)

    # --- the point ---

    def clipped(self, z: np.ndarray) -> np.ndarray:
        """Return theta for values moved into the box."""
        return np.clip(self.frame.to(self.frame.inside(z)), *self.box)

    def evaluate(self, theta: np.ndarray, aim: Aim | None = None) -> Evaluation:
        """Evaluate residuals and their derivatives, and count it."""
        # A step from where simulations are short to where they are very long is refused, and a shorter one follows.
        short = self.point is not None and self.here.work <= STIFF_WORK
        misfit = self.misfit.brief if short else self.misfit
        found = misfit.evaluate(self.frame.back(theta), deadline=self.allowance.deadline, aim=aim)
        self.allowance.charge(found)
        if found.residuals is not None and not _usable(found):
            return Evaluation(None, None, found.outcome, "a residual is too large for a number", 0.0)
        return found

    def stand(self, theta: np.ndarray, found: Evaluation) -> None:
        """Move to a point."""
        assert found.residuals is not None
        self.theta, self.point = theta, Point(self.misfit, self.frame, theta, found)

    def tune(self) -> None:
        """Give the noise the size that the residuals have."""
        z, found = self.misfit.tuned(self.frame.back(self.theta), self.here, box=(self.frame.low, self.frame.high))
        if found is self.here or not found.complete:
            return
        if self.weighting.decrease(self.here, found) > 0:
            self.stand(np.clip(self.frame.to(z), *self.box), found)

    def reweigh(self) -> None:
        """Let the weights follow the residuals."""
        self.weighting = self.weighting.following(self.here)

    def solver(self) -> Solver | ArrowSolver:
        """Return steps from here; a refused one leaves them as they are."""
        assert self.point is not None
        if self.made is None or self.made[0] is not self.point or self.made[1] is not self.weighting:
            low, high = self.box
            steps = self.point.linear.solver(self.weighting.of_groups, low - self.theta, high - self.theta)
            self.made = self.point, self.weighting, steps
        return self.made[2]


def _usable(found: Evaluation) -> bool:
    """Whether squares of all numbers are finite."""
    assert found.residuals is not None and found.jacobian is not None
    largest = found.jacobian.largest
    return bool(np.isfinite(found.residuals @ found.residuals) and np.isfinite(largest))
