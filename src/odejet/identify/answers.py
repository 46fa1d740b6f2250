"""Answers: verdicts from what ranks and counts have found, and from nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from odejet.identify import generators, globally, local
from odejet.identify.switching import Ranks
from odejet.identify.verdict import Quantity, Role, Verdict
from odejet.model import Model
from odejet.model.expressions import Symbol

BY_EVENTS = "what enters by events alone is not decided"
ELSEWHERE = "the equations switch, and other values may give the same outputs in another mode"
TOGETHER = "the modes that are visited are known, but how many values all of them together leave is not decided"
EXCHANGED = "events happen at unknown times, and one may be taken for another"
VISITED = "the equations switch, and what the outputs tell of it depends on the modes that are visited"


def nothing(model: Model, functions: Sequence[str], reason: str) -> Verdict:
    """The verdict where not even ranks came out: not in time, or not at all."""
    found = {
        name: Quantity(name, _role(name, model, functions), "undecided", None, reason, tested=False)
        for name in (*model.unknowns, *functions)
    }
    return _plain(model, found, f"nothing is decided: {reason}", reason)


def of_modes(given: Model, question: local.Problem, ranks: Ranks, single: Collection[str] = ()) -> Verdict:
    """The verdict from the ranks of modes, and from what has one value by those that the time chooses."""
    found: dict[str, Quantity] = {}
    for name, telling in ranks.telling.items():
        role = _role(name, question.model, tuple(question.functions))
        if name in ranks.measured or name in single:
            found[name] = Quantity(name, role, "global", 1)
        elif name in ranks.lost:
            found[name] = Quantity(name, role, "none", None)
        elif name in ranks.local:
            found[name] = Quantity(name, role, "undecided", None, TOGETHER if ranks.visited else ELSEWHERE)
        else:
            where = f": it is known where {'; or '.join(mode.label for mode in telling)}" if telling else ""
            found[name] = Quantity(name, role, "undecided", None, VISITED + where, tested=False)
    _add_events(given, found)
    local_, lost, open_ = (
        ", ".join(q.label for q in found.values() if q.role != "function" and test(q))
        for test in (lambda q: q.tested and q.kind != "none", lambda q: q.kind == "none", lambda q: not q.tested)
    )
    undecided = any(q.kind == "undecided" for q in found.values())
    parts = [
        f"{local_} can be known{' up to values elsewhere' if undecided else ''}, by {len(ranks.modes)} modes"
        if local_
        else "",
        f"not {lost}" if lost else "",
        f"of {open_} it depends on the modes that are visited" if open_ else "",
    ]
    return _plain(given, found, "; ".join(part for part in parts if part), _first_reason(found))


def exchangeable(found: Verdict, certain: Collection[str]) -> Verdict:
    """The verdict where events at unknown times may be taken for one another, but for what is certain without them."""
    quantities = {
        name: replace(q, kind="undecided", values=None, reason=EXCHANGED)
        if q.kind in ("global", "local") and q.name not in certain and q.role != "combination"
        else q
        for name, q in found.items()
        if q.role != "combination" or q.kind == "none"
    }
    reason = found.reason or _first_reason(quantities)
    combinations = tuple(text for text in found.combinations if text in quantities)
    return replace(
        found,
        quantities=quantities,
        solutions=None if reason else found.solutions,
        message=message(quantities, None if reason else found.solutions),
        reason=reason,
        combinations=combinations,
        generate=None,
    )


def verdict(given: Model, quantities: dict[str, Quantity], counted: globally.Count | None, reason: str) -> Verdict:
    """What is known of the quantities of a model."""
    undecided = any(q.kind == "undecided" for q in quantities.values())
    reason = (reason or _first_reason(quantities)) if undecided else ""
    infinite = any(q.kind == "local" and q.values is None for q in quantities.values())
    solutions = None if undecided or infinite or counted is None else counted.solutions
    _add_events(given, quantities)
    return replace(_plain(given, quantities, message(quantities, solutions), reason), solutions=solutions)


def _plain(model: Model, quantities: dict[str, Quantity], message: str, reason: str) -> Verdict:
    return Verdict(model, quantities, None, {}, (), None, (), (), message, reason, 0.0, "ranks")


def _role(name: str, model: Model, functions: Sequence[str]) -> Role:
    return "function" if name in functions else "initial state" if name in model.states else "parameter"


def _first_reason(quantities: Mapping[str, Quantity]) -> str:
    return next((q.reason for q in quantities.values() if q.kind == "undecided"), "")


def _add_events(given: Model, quantities: dict[str, Quantity]) -> None:
    """Of what events alone tell, nothing else is said: all the rest is judged without them."""
    for name in given.parameters:
        quantities.setdefault(name, Quantity(name, "parameter", "undecided", None, BY_EVENTS, tested=False))


def quantities(
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


def message(quantities: dict[str, Quantity], solutions: int | None) -> str:
    """One sentence for all."""
    all_own = [q for q in quantities.values() if q.role in ("initial state", "parameter")]
    own = [q for q in all_own if q.tested]
    lost, untested = [q.label for q in own if q.kind == "none"], [q.label for q in all_own if not q.tested]
    if len(lost) == len(own):
        return "nothing can be known by itself"
    rest = "everything else" if lost or untested else "everything"
    turning = [q.label for q in own if q.kind == "local" and q.values is None]
    if turning and not any(q.kind == "undecided" for q in own):
        known = f"{rest} can be known, {', '.join(turning)} but for whole turns"
    elif solutions is None:
        known = f"{rest} can be known up to finitely many values"
    elif solutions == 1:
        known = f"{rest} can be known, without ambiguity"
    else:
        known = f"{rest} can be known, up to {solutions} sets of values that give the same outputs"
    known = f"{known}; not {', '.join(lost)}" if lost else known
    return f"{known}; of {', '.join(untested)} events alone would tell" if untested else known


def told(
    quantities: dict[str, Quantity], survivors: Sequence[str], found: generators.Generators | None
) -> tuple[str, ...]:
    """Combinations for those that are lost, less those that have several values where others stand for them."""
    told_ = [text for text in survivors if quantities[text].role in ("function", "combination")]
    single = [text for text in told_ if found is None or quantities[text].kind != "local"]
    return tuple(dict.fromkeys((*single, *(found.chosen if found else ()))))
