"""Descent: a point on its way down to an optimum, step by step (see `refine`)."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from odejet.clock import now
from odejet.objective.arrow import ArrowSolver
from odejet.objective.courses import STIFF_WORK
from odejet.objective.evaluation import Aim, Evaluation
from odejet.objective.linear_model import LinearModel
from odejet.objective.projection import Elimination
from odejet.objective.reduced import AnyMisfit, Reduced
from odejet.objective.trust import Solver, Step, secant
from odejet.problem.coordinates import Coordinates
from odejet.search.ending import Ending
from odejet.search.refined import Refined, refined_at
from odejet.search.vanishing import way_back

_ROUGH = 1e-2  # the relative decrease below which weights follow the residuals
_FIRST_RADIUS, _LARGEST_RADIUS = 0.4, 8.0  # in logarithmic units; a box may span dozens of them
_SMALLEST_RADIUS = 1e-9
_GOOD, _POOR = 0.75, 0.25  # ratios of actual to predicted decrease that change the radius
_GROW, _SHRINK, _RETREAT = 2.0, 0.25, 0.1
_RELIABLE = 1e-4  # the ratio at which a step is taken
_BEND = 0.75  # a correction longer than this, relative to its step, comes from more than curvature
_CORRECTIONS, _SETTLING = 6, 0.5  # how many, and by how much each must shorten the distance to the prediction
_NARROW = 0.04  # steps shorter than this that fail are in a narrow valley
_NEAR = 0.05  # of a step, for differences that tell how it bends
_HINDERED = 3  # steps by kinks of the misfit before the way goes on with all unknowns; one may be chance
_SHARE = 1e-3  # of a step, for differences that tell where it goes
_BETTER = 0.7  # how much closer a prediction must be before the curvature is used
_CREEP, _CREEP_EVALUATIONS = 1e-4, 30  # a decrease that matters to nobody if it takes so many evaluations
_RETURNS, _REACHES = 3, (1.0, 0.3)  # of what has vanished, and how far, on the scale of what the data want
_LONG = 3  # times the work of an ordinary simulation that an evaluation may take without counting as more
_APPROACH = 40  # evaluations to fit what can be simulated of a start that does not reach the end
_WINDOW = 0.8  # of the time that a start reaches: what is fitted first, if it does not reach the end


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
    ) -> None:
        self.misfit, self.frame, self.precision = misfit, frame, precision
        self.levels = np.where(misfit.estimated, levels, misfit.known)
        self.adaptive = False  # whether the levels follow the residuals
        self.deadline, self.limit = deadline, max_evaluations
        self.evaluations, self.work, self.radius = 0, 0, _FIRST_RADIUS
        self.returns = 0  # of unknowns that had vanished
        self.past: deque[tuple[int, float]] = deque()  # what the cost was after how many evaluations, of late
        self.hindered = 0  # steps so far, by kinks of the misfit
        self.good = True  # whether the last step did what was predicted
        self.growing = False  # whether the next one may be longer therefore
        self.low, self.high = frame.box
        size = 0 if misfit.in_blocks else len(self.low)
        self.curvature = np.zeros((size, size))  # second derivatives of the residuals, times these
        self.curved = False  # whether they are used
        self.winding = False  # whether steps follow the bend of a narrow valley
        # Exact data have no optimum where noise has a law of its own: its scale goes to zero.
        self.endless = bool((misfit.measurements.densities & misfit.free_noise).any())
        self.theta = np.empty(0)
        self.here: Evaluation | None = None
        self.failure: Evaluation | None = None
        self.linear: LinearModel | None = None  # the residuals here, and their derivatives by theta
        self.made: tuple[LinearModel, np.ndarray, Solver | ArrowSolver] | None = None  # steps, and of what they are

    @property
    def used(self) -> int:
        """What of the limit is used up: evaluations, or what they cost where simulations are long."""
        return max(self.evaluations, self.work // _LONG)

    # --- the way ---

    def run(self, start: np.ndarray) -> Ending:
        self.theta = np.clip(self.frame.to(self.frame.inside(start)), self.low, self.high)
        found = self.evaluate(self.theta)
        if not found.complete:
            self.failure = found
            return self.approach(found.reached)
        self.stand(self.theta, found)
        self.tune()
        return self.descend()

    def descend(self) -> Ending:
        """Step by step to the end, or to where the way goes on with all unknowns."""
        while (ending := self.advance()) is None:
            self.hindered += self.is_kinked
            if self.hindered == _HINDERED:
                return Ending.EVALUATION_LIMIT
        return ending

    @property
    def is_kinked(self) -> bool:
        """Whether scales or offsets that are left out are on bounds of theirs, and the last step did not do what it
        should, once the way is no longer rough.

        Beyond such a bound the misfit without them bends at once, and a descent may go back and forth along the kink;
        with all unknowns it is a bound like any other.
        """
        assert self.here is not None
        eliminated = self.here.eliminated
        return not self.good and self.adaptive and eliminated is not None and eliminated.held

    def tune(self) -> None:
        """Noise of the size that the residuals have."""
        assert self.here is not None
        box = self.frame.low, self.frame.high
        z, found = self.misfit.tuned(self.frame.back(self.theta), self.here, box=box)
        if found is self.here or not found.complete:
            return
        if self.decrease(found) > 0:
            self.stand(np.clip(self.frame.to(z), self.low, self.high), found)

    def follow(self, part: Reduced[Elimination], start: np.ndarray) -> Ending:
        """The way without scales and offsets, and these at its end."""
        within = Descent(part, part.frame, self.levels, self.deadline, self.limit, self.precision)
        ending = within.run(start[part.kept])
        self.evaluations, self.work = within.evaluations, within.work
        z = within.frame.back(within.theta)
        if within.here is None:
            self.theta, self.failure = self.frame.to(self.frame.inside(part.embedding.filled(z))), within.failure
            return ending
        assert within.here.eliminated is not None
        z = part.embedding.filled(z, within.here.eliminated.values)
        self.theta, self.here = (
            np.clip(self.frame.to(self.frame.inside(z)), self.low, self.high),
            part.embedding.complete(within.here),
        )
        if within.hindered == _HINDERED:
            self.adaptive, self.levels, self.radius = True, within.levels, within.radius
            self.stand(self.theta, self.here)
            ending = self.descend()
        return ending

    def look(self, start: np.ndarray) -> Ending:
        """Stay at the start."""
        self.theta = np.clip(self.frame.to(self.frame.inside(start)), self.low, self.high)
        found = self.evaluate(self.theta)
        if not found.complete:
            self.failure = found
            return Ending.NO_START
        self.here = found
        return Ending.EXACT if self.is_exact() else Ending.EVALUATED

    def approach(self, reached: float) -> Ending:
        """Fit what can be simulated first: its optimum mostly reaches farther."""
        levels = np.where(self.misfit.measurements.densities, self.misfit.scales, self.levels)
        part = self.misfit.window(_WINDOW * reached, levels=levels)
        distinct = len(np.unique(part.times))
        if now() > self.deadline:
            return Ending.TIME_LIMIT
        if part.points < len(self.theta) or distinct < 3 or self.used >= self.limit:
            return Ending.NO_START
        budget = min(self.limit - self.used, _APPROACH)
        before = Descent(part, self.frame, self.levels, self.deadline, budget, self.precision)
        ending = before.run(self.frame.back(self.theta))
        self.evaluations, self.work = self.evaluations + before.evaluations, self.work + before.work
        if before.here is None:
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
        """One accepted or refused step; the ending, if this was the last."""
        if (over := self.over()) is not None:
            return over
        if self.endless and self.is_exact():
            return Ending.EXACT
        solver = self.solver()
        bent = self.curved and isinstance(solver, Solver)
        step = (solver.curved(self.curvature) if bent else solver).step(self.radius)  # type: ignore[union-attr]
        negligible = self.negligible(solver, step)
        if not self.adaptive and (negligible or step.decrease <= _ROUGH * self.weighted_squares(self.levels)):
            self.adaptive = True
            self.reweigh()
            self.curvature, self.curved = np.zeros_like(self.curvature), False
            return None
        if negligible or self.creeps():
            return None if self.returned() else self.end()
        return self.take(solver, step)

    def returned(self) -> bool:
        """Whether unknowns that have all but vanished were brought back, to the benefit of the misfit."""
        if self.returns >= _RETURNS or self.misfit.in_blocks or self.is_exact():
            return False
        assert self.here is not None
        groups, levels, unit = self.misfit.row_groups, self.all_levels(), self.unit()
        self.returns += 1
        way = way_back(self.frame, self.theta, self.here, groups, levels, unit)
        for reach in _REACHES:
            theta = None if way is None else way.up_to(reach)
            if theta is None or self.over() is not None:
                return False
            found = self.evaluate(theta)
            if found.complete and self.decrease(found) > self.precision * self.unit():
                self.stand(theta, found)
                self.tune()
                self.reweigh()
                self.curvature, self.curved, self.radius = np.zeros_like(self.curvature), False, _FIRST_RADIUS
                self.past.clear()
                return True
        return False

    def creeps(self) -> bool:
        """Whether many evaluations together gained nothing that matters, as on the floor of a flat valley.

        As long as every step goes farther than the one before it, one of them soon gains more than all before.
        """
        assert self.here is not None and self.here.residuals is not None
        if not self.adaptive:
            return False
        cost, since = self.misfit.cost(self.here.residuals, rest=self.here.rest), self.evaluations - _CREEP_EVALUATIONS
        self.past.append((self.evaluations, cost))
        while len(self.past) > 1 and self.past[1][0] <= since:
            self.past.popleft()
        when, before = self.past[0]
        return when <= since and before - cost <= _CREEP * self.unit() and not self.growing

    def take(self, solver: Solver | ArrowSolver, step: Step) -> Ending | None:
        """Try a step and, where the residuals turn out to be curved, its correction; change the radius accordingly."""
        move = step.move + self.bend(solver, step) if self.winding else step.move
        theta = np.clip(self.theta + move, self.low, self.high)
        found = self.evaluate(theta, aim := self.aim(step))
        ratio = self.decrease(found) / step.decrease if found.complete else -math.inf
        if found.complete:
            self.choose(solver, step, ratio * step.decrease)
        if found.complete and ratio < _GOOD:
            theta, found, ratio = self.corrected(solver, step, move, theta, found, ratio, aim)
        if ratio < _POOR and not self.winding and step.length < _NARROW and self.curvature.size:
            self.winding = True  # the same step once more, along the bend
            return None
        if ratio < _POOR:
            self.radius = (_SHRINK if found.complete else _RETREAT) * step.length
        self.good = ratio > _GOOD
        self.growing = self.good and step.damping > 0 and self.radius < _LARGEST_RADIUS
        if self.growing:
            self.radius = min(_GROW * self.radius, _LARGEST_RADIUS)
            self.winding &= self.radius < _NARROW
        if ratio > _RELIABLE:
            self.learn(theta, found)
            self.stand(theta, found)
            self.tune()
            if self.adaptive:
                self.reweigh()
        elif self.radius < _SMALLEST_RADIUS:
            return self.end(stalled=True)
        return None

    def bend(self, solver: Solver | ArrowSolver, step: Step) -> np.ndarray:
        """How far the floor of a valley bends away from a step, by the second derivative of the residuals along it.

        Where a valley is so narrow that the end of a straight step tells nothing of it, or cannot be simulated, two
        simulations on the way do, without derivatives (Transtrum and Sethna 2012).
        """
        assert self.here is not None and self.linear is not None
        nothing, ends = np.zeros(len(step.move)), []
        if not self.linear.jacobian.keeps_rows:
            return nothing
        for share in (_NEAR, 2 * _NEAR):
            found = self.misfit.evaluate(self.frame.back(self.theta + share * step.move), False, self.deadline)
            if found.residuals is None or not np.isfinite(found.residuals).all():
                return nothing
            ends.append(found.beyond(self.here, nothing[:1]))
        second = (ends[1] - 2 * ends[0]) / (2 * _NEAR**2)
        own = self.linear.missing(second, self.all_levels(), self.low, self.high)
        move = solver.correction(step, step.move, own)  # type: ignore[arg-type]
        return move if float(np.sqrt(move @ move)) <= _BEND * step.length else nothing

    def choose(self, solver: Solver | ArrowSolver, step: Step, actual: float) -> None:
        """Between the linear model of the residuals and the one with their curvature: the one that knew better."""
        if not self.curvature.size:
            return
        linear = solver.predicted(step.move)
        curved = linear - 0.5 * float(step.move @ self.curvature @ step.move)
        errors = abs(actual - linear), abs(actual - curved)
        self.curved = errors[1] < errors[0] if self.curved else errors[1] < _BETTER * errors[0]

    def learn(self, theta: np.ndarray, found: Evaluation) -> None:
        """What a step tells of the residuals' curvature."""
        if not self.curvature.size:
            return
        assert self.linear is not None
        move, there = theta - self.theta, self.linearised(theta, found)
        squares = self.misfit.scoring is None
        change, structured = there.secant_terms(self.linear, move, self.all_levels(), squares)
        self.curvature = secant(self.curvature, move, change, structured)

    def corrected(
        self,
        solver: Solver | ArrowSolver,
        step: Step,
        total: np.ndarray,
        theta: np.ndarray,
        found: Evaluation,
        ratio: float,
        aim: Aim | None,
    ) -> tuple[np.ndarray, Evaluation, float]:
        """The best of a trial point and of those that its residuals suggest.

        In a narrow curved valley straight steps must be short.  What the trial's residuals have beyond the linear
        model is their second derivative along the step, so the point that undoes it follows the valley's bend: the
        geodesic acceleration of Transtrum and Sethna (2012), from an evaluation that is there already.  Repeated, it
        comes down to the valley's floor as long as every correction brings it much closer to what was predicted.
        """
        assert found.residuals is not None and self.here is not None and self.here.residuals is not None
        assert self.linear is not None
        best = theta, found, ratio
        predicted = self.linear.matvec(step.move) if aim is None else np.empty(0)
        before = math.inf
        for _ in range(_CORRECTIONS):
            there = self.missing(theta, found, predicted)
            move = solver.correction(step, total, there)  # type: ignore[arg-type]
            slow = 1 - ratio > _SETTLING * before
            if slow or float(np.sqrt(move @ move)) > _BEND * step.length or self.over() is not None:
                break
            total, before = total + move, 1 - ratio
            theta = np.clip(self.theta + total, self.low, self.high)
            found = self.evaluate(theta, aim)
            if found.residuals is None:
                break
            ratio = self.decrease(found) / step.decrease
            if ratio > best[2]:
                best = theta, found, ratio
            if ratio > _GOOD:
                break
        return best

    def negligible(self, solver: Solver | ArrowSolver, step: Step) -> bool:
        """Whether nothing is left to be gained: not by this step, nor by one of the linear model that goes farther."""
        if step.decrease <= self.rounding():
            return True
        enough = self.precision * self.unit()
        return step.decrease <= enough and solver.step(max(self.radius, _FIRST_RADIUS)).decrease <= enough

    def over(self) -> Ending | None:
        if now() > self.deadline:
            return Ending.TIME_LIMIT
        return Ending.EVALUATION_LIMIT if self.used >= self.limit else None

    def end(self, stalled: bool = False) -> Ending:
        if self.is_exact():
            return Ending.EXACT
        return Ending.STALLED if stalled else Ending.CONVERGED

    def is_exact(self) -> bool:
        """Whether the residuals of every output are down to rounding."""
        assert self.here is not None
        return self.misfit.is_exact(self.here)

    # --- the point ---

    def evaluate(self, theta: np.ndarray, aim: Aim | None = None) -> Evaluation:
        # A step from where simulations are short to where they are very long is refused, and a shorter one follows.
        short = self.here is not None and self.here.work <= STIFF_WORK
        misfit = self.misfit.brief if short else self.misfit
        found = misfit.evaluate(self.frame.back(theta), deadline=self.deadline, aim=aim)
        self.evaluations, self.work = self.evaluations + 1, self.work + found.work
        if found.residuals is not None and not _usable(found):
            return Evaluation(None, None, found.outcome, "a residual is too large for a number", 0.0)
        return found

    def aim(self, step: Step) -> Aim | None:
        """What a step is to reach by the linear model, where rows of this are not kept.

        Differences of simulations without derivatives tell it to six digits, for a small part of the time of a trial.
        """
        if not self.misfit.large:
            return None
        assert self.here is not None
        first, second = (
            self.misfit.evaluate(self.frame.back(self.theta + share * step.move), False, self.deadline)
            for share in (_SHARE, 2 * _SHARE)
        )
        nothing = np.zeros(self.misfit.rows)
        if not (first.complete and second.complete):
            return self.here.aim(nothing)
        near, far = first.beyond(self.here, nothing), second.beyond(self.here, nothing)
        known = np.isfinite(near @ near + far @ far)
        return self.here.aim((4 * near - far) / (2 * _SHARE) if known else nothing)

    def missing(self, theta: np.ndarray, found: Evaluation, predicted: np.ndarray) -> Solver | ArrowSolver:
        """The linear model there of what the residuals have beyond a prediction."""
        assert self.here is not None
        excess = found.beyond(self.here, predicted) if len(predicted) else predicted
        return self.linearised(theta, found).missing(excess, self.all_levels(), self.low, self.high)

    def stand(self, theta: np.ndarray, found: Evaluation) -> None:
        """Move to a point."""
        assert found.residuals is not None
        self.theta, self.here, self.made = theta, found, None
        self.linear = self.linearised(theta, found)

    def linearised(self, theta: np.ndarray, found: Evaluation) -> LinearModel:
        """Residuals as a linear function of a move of theta."""
        assert found.jacobian is not None and found.residuals is not None
        slopes = self.frame.slopes(self.frame.back(theta))
        return LinearModel(found.jacobian, found.residuals, self.misfit.row_groups, slopes)

    def reweigh(self) -> None:
        assert self.here is not None and self.here.residuals is not None
        self.levels = self.misfit.levels(self.here.residuals)

    def all_levels(self) -> np.ndarray:
        """The levels of all groups of rows."""
        return self.misfit.group_levels(self.levels)

    def solver(self) -> Solver | ArrowSolver:
        """Steps from here; a refused one leaves them as they are."""
        assert self.linear is not None
        if self.made is None or self.made[0] is not self.linear or self.made[1] is not self.levels:
            solver = self.linear.solver(self.all_levels(), self.low - self.theta, self.high - self.theta)
            self.made = self.linear, self.levels, solver
        return self.made[2]

    def weighted_squares(self, levels: np.ndarray) -> float:
        assert self.here is not None and self.here.residuals is not None
        return 0.5 * float((self.misfit.squares(self.here.residuals) / levels**2).sum())

    def unit(self) -> float:
        """What a decrease is compared with: the noise, or the residuals if they are larger or if there is no noise."""
        reduced = 2 * self.weighted_squares(self.levels) / max(self.misfit.points, 1)
        return reduced if not self.misfit.weighted else max(1.0, reduced)

    def rounding(self) -> float:
        """What rounding of the residuals does to half their weighted squares.

        An output that is down to rounding already has no more to gain or to lose, unless all are.
        """
        above = self.levels > self.misfit.floors
        counts = self.misfit.counts * above if above.any() else self.misfit.counts
        errors = np.sqrt((self.misfit.floors / self.levels) ** 2 @ counts)
        size = math.sqrt(2 * self.weighted_squares(self.levels))
        return 0.05 * float(errors) * max(size, float(errors)) / math.sqrt(max(self.misfit.points, 1))

    def decrease(self, found: Evaluation) -> float:
        """How much less the misfit is there than here."""
        assert found.residuals is not None and self.here is not None and self.here.residuals is not None
        if not self.adaptive:
            before, after = self.misfit.squares(self.here.residuals), self.misfit.squares(found.residuals)
            squares = np.where(self.misfit.measurements.densities, 0.0, (before - after) / self.levels**2)
            return 0.5 * float(squares.sum()) + self.here.rest - found.rest
        least = self.misfit.cost(found.residuals, rest=found.rest)
        return self.misfit.cost(self.here.residuals, rest=self.here.rest) - least

    # --- the end ---

    def result(self, ending: Ending, seconds: float) -> Refined:
        n = len(self.theta)
        z = self.frame.back(self.theta)
        if self.here is None or self.here.residuals is None or self.here.jacobian is None:
            nothing = np.empty(0), np.empty((0, n)), self.levels, np.zeros(n, dtype=bool)
            detail = self.failure.message if self.failure is not None else ""
            return Refined(self.misfit.labels, z, math.inf, *nothing, ending, self.evaluations, seconds, detail)
        ends = self.theta <= self.low, self.theta >= self.high
        return refined_at(self.misfit, z, self.here, ends, ending, self.evaluations, seconds)


def _usable(found: Evaluation) -> bool:
    """Whether squares of all numbers are finite."""
    assert found.residuals is not None and found.jacobian is not None
    largest = found.jacobian.largest
    return bool(np.isfinite(found.residuals @ found.residuals) and np.isfinite(largest))
