"""Entries: what may stand in the tables of a model, read and checked one by one.

Every refusal names the table and the entry, in the words of the model file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

from odejet.errors import ExpressionError, ModelError, clipped, nearest
from odejet.model.expressions import (
    TIME,
    Condition,
    Expression,
    constant,
    delays,
    names,
    number,
)
from odejet.model.grammar import parse
from odejet.model.names import checked_name
from odejet.model.symbolic import from_sympy
from odejet.model.wellformed import MAX_DEPTH, IllFormed, well_formed

MAX_ENTRIES = 2000
"""States of a network in a file."""
MAX_LINES = 10_000
"""Entries of a table in a file; what a program puts together may have more."""
SAMPLED = "sampled"
"""What stands in a model file in place of the function of an input whose values come with the data."""
JOINED = ("hold", "linear", "spline")
"""How samples are joined, where that is told."""
STEADY = "steady"
"""What stands in place of initial values where the model starts at rest."""

_LOOKING_BACK = ("states", "outputs")  # tables whose expressions may hold delays
_KINDS = {"states": "a state", "outputs": "an output", "inputs": "an input", "parameters": "a parameter"}
_PI = "'pi' is not known here: write 3.141592653589793, or list it in parameters if it is one"


def table(name: str, given: object) -> dict[str, Any]:
    """A table with its names checked and written as Python spells them."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ModelError(f"[{name}] must be a table of names and values, not {_kind(given)}")
    return _unique(name, list(given.items()))


def is_steady(initial: object, before: object) -> bool:
    """Whether a model starts at rest; only then was there anything before."""
    steady = isinstance(initial, str) and initial.strip() == STEADY
    if isinstance(initial, str) and not steady:
        raise ModelError(f'[initial] must be a table of names and values, or "{STEADY}", not {clipped(initial)}')
    if before and not steady:
        raise ModelError(f'[before] tells how a steady state came about; add initial = "{STEADY}", or remove it')
    return steady


def check_sizes(document: Mapping[str, Any]) -> None:
    """Refuse tables of a file that no model needs."""
    for name, told in document.items():
        if isinstance(told, (Mapping, list, tuple)) and len(told) > MAX_LINES:
            raise ModelError(f"[{name}] has {len(told)} entries, and {MAX_LINES} is the limit")


def _unique(table: str, pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in pairs:
        name = _name(table, key)
        if name in entries:
            raise ModelError(f"[{table}] {name}: this name is given twice; remove one of them")
        entries[name] = value
    return entries


def _name(table: str, key: object) -> str:
    if not isinstance(key, str) and not _is_sympy(key, "Symbol"):
        raise ModelError(f"[{table}] a name must be text, not {_kind(key)}")
    try:
        return checked_name(str(key))
    except ModelError as error:
        raise ModelError(f"[{table}] {error}") from None


def declared_names(parameters: object, fixed: Iterable[str]) -> tuple[str, ...]:
    """All parameters by name: the given ones, and after them fixed ones that were not listed."""
    if not isinstance(parameters, Iterable) or isinstance(parameters, (str, bytes, AbstractSet, Mapping)):
        raise ModelError(f"parameters must be a list of names, not {_kind(parameters)}")
    return tuple(dict.fromkeys([*_unique("parameters", [(key, None) for key in parameters]), *fixed]))


def check_distinct(given: Mapping[str, Mapping[str, Any]], declared: Iterable[str]) -> None:
    """One name, one meaning."""
    owners: dict[str, str] = {}
    for table in _KINDS:
        for name in declared if table == "parameters" else given[table]:
            if name in owners:
                reason = f"the name is already that of {_KINDS[owners[name]]}; rename one of them"
                raise ModelError(f"[{'fixed' if name in given['fixed'] else table}] {name}: {reason}")
            owners[name] = table


def equations(
    given: Mapping[str, Mapping[str, Any]], declared: tuple[str, ...] | None
) -> dict[str, dict[str, Expression]]:
    """States, outputs and known initial values; each with the names it may not use and why."""
    outputs = {name: f"'{name}' is an output; write its expression instead" for name in given["outputs"]}
    fixed = declared or tuple(given["fixed"])
    told = None if declared is None else dict.fromkeys(declared)  # for looking up, in their order
    known = None if told is None else {**dict.fromkeys((*given["states"], *given["inputs"])), **told}
    inside = outputs if "pi" in (*given["states"], *given["inputs"], *fixed) else {"pi": _PI} | outputs
    before = {
        name: f"'{name}' is {_KINDS[table]}; {_INITIAL}" for table in ("states", "inputs") for name in given[table]
    }
    before |= inside | {TIME: f"'t' is the time; {_INITIAL}"}
    for name in given["initial"]:
        if name not in given["states"]:
            raise ModelError(f"[initial] {name}: this is not a state{nearest(name, given['states'])}")
    return {
        table: {key: _expression(table, key, value, names_, refused) for key, value in given[table].items()}
        for table, names_, refused in (
            ("states", known, inside),
            ("outputs", known, inside),
            ("initial", told, before),
            ("before", told, before),
            ("history", told, {name: reason for name, reason in before.items() if name != TIME}),
        )
    }


_INITIAL = "an initial value may hold numbers and parameters only"


def inputs(given: Mapping[str, Mapping[str, Any]], parameters: Iterable[str]) -> dict[str, Expression | None]:
    """Inputs, which are functions of the time alone; None for those that are sampled."""
    kinds = {name: kind for table, kind in _KINDS.items() for name in given.get(table, parameters)}
    refused = {name: f"'{name}' is {kind}; an input may depend on t alone" for name, kind in kinds.items()}
    refused.setdefault("pi", "'pi' is not known here: write 3.141592653589793")
    return {
        key: None if _sampled(value) is not None else _expression("inputs", key, value, (), refused)
        for key, value in given["inputs"].items()
    }


def sampling(given: Mapping[str, Any]) -> dict[str, str]:
    """How the samples of inputs are joined, where that is told."""
    found = {key: how for key, value in given.items() if (how := _sampled(value))}
    for key, how in found.items():
        if how not in JOINED:
            raise ModelError(
                f"[inputs] {key}: samples are joined by {', '.join(JOINED)}, not {clipped(how)}; "
                f'write "{SAMPLED}, {JOINED[0]}", or "{SAMPLED}" alone'
            )
    return found


def _sampled(value: object) -> str | None:
    """How the samples of an input are joined, empty where that is not told; None for a function of time."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return None
    word, comma, how = (part.strip() for part in value.partition(","))
    return how if word == SAMPLED and bool(comma) == bool(how) else None


def parameters(
    equations: Mapping[str, Mapping[Any, Expression | Condition]],
    given: Mapping[str, Mapping[str, Any]],
    declared: tuple[str, ...] | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The free parameters, and all of them; one that occurs nowhere can never be known."""
    occurring = dict.fromkeys(name for table in equations.values() for value in table.values() for name in names(value))
    others = {TIME, *given["states"], *given["inputs"]}
    used = tuple(name for name in occurring if name not in others)
    for name in declared or given["fixed"]:
        if name not in used:
            table = "fixed" if name in given["fixed"] else "parameters"
            reason = "no equation uses this parameter, so nothing can be said of it; remove it"
            raise ModelError(f"[{table}] {name}: {reason}{nearest(name, used)}")
    for name in given["before"]:
        if name not in (*used, *given["states"], *given["inputs"]):
            raise ModelError(f"[before] {name}: this is no parameter, input or state{nearest(name, used)}")
    every = used if declared is None else declared
    return tuple(name for name in every if name not in given["fixed"]), every


def check_owners(given: Mapping[str, Mapping[str, Any]], parameters: Iterable[str]) -> None:
    """Bounds belong to parameters and to initial states."""
    known = (*given["states"], *parameters)
    for name in given["bounds"]:
        if name not in known:
            hint = nearest(name, known) or f"; known are {', '.join(known[:20])}"
            raise ModelError(f"[bounds] {name}: this is neither a state nor a parameter{hint}")


def _expression(
    table: str, key: str, value: object, known: Collection[str] | None, refused: Mapping[str, str]
) -> Expression:
    """Whatever stands for an expression: all kinds obey one grammar and print as they are read."""
    try:
        found = tree(value)
        past = table in _LOOKING_BACK
        strange = found is None or any(
            n in refused or (known is not None and n != TIME and n not in known) for n in names(found)
        )
        if strange or (not past and next(delays(found), None) is not None):
            return parse(text(value), known, refused, past)
        return found
    except ExpressionError as error:
        raise error.at(f"[{table}] {key}") from None
    except RecursionError:
        raise ModelError(f"[{table}] {key}: the expression is nested more than {MAX_DEPTH} deep; split it") from None
    except ModelError as error:
        raise ModelError(f"[{table}] {key}: {error}") from None


def tree(value: Any) -> Any:
    """Return an expression or condition as it may stand in a model; None where it has to be read as text."""
    if not isinstance(value, Expression | Condition):
        return None
    try:
        return well_formed(value)
    except IllFormed:
        return None  # reading its text says what is wrong, and where


def text(value: Any) -> str:
    """Whatever stands for an expression, as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, Expression):
        return str(value)
    if _is_sympy(value, "Basic"):
        return str(from_sympy(value))
    if _is_number(value):
        return str(number(value))
    raise ModelError(f"expected an expression, as text or a number, not {_kind(value)}")


def fixed_value(key: str, value: object) -> Fraction:
    expression = _expression("fixed", key, value, (), {TIME: "a fixed value cannot depend on t"})
    exact = constant(expression)
    if exact is None:
        raise ModelError(f"[fixed] {key}: expected a number, not the expression {clipped(str(expression))}")
    try:
        number(exact)
    except ModelError as error:
        raise ModelError(f"[fixed] {key}: {error}") from None
    return exact


def bounds(key: str, value: Any, fixed: Mapping[str, Fraction]) -> tuple[float, float]:
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, AbstractSet, Mapping)):
        raise ModelError(f"[bounds] {key}: expected two numbers [low, high], not {_kind(value)}")
    pair = list(value)
    if len(pair) != 2 or not all(_is_number(end) for end in pair):
        contents = " and ".join(_kind(end) for end in pair) if len(pair) == 2 else f"{len(pair)} entries"
        raise ModelError(f"[bounds] {key}: expected two numbers [low, high], not {contents}")
    try:
        low, high = (float(end) for end in pair)
    except OverflowError:
        raise ModelError(f"[bounds] {key}: a bound is out of range; write inf or -inf for none") from None
    if math.isnan(low) or math.isnan(high) or not low < high:
        raise ModelError(f"[bounds] {key}: the lower bound {low:g} must be below the upper bound {high:g}")
    if key in fixed and not low <= fixed[key] <= high:
        raise ModelError(f"[bounds] {key}: the fixed value {float(fixed[key]):g} lies outside [{low:g}, {high:g}]")
    return low, high


def start(value: Any) -> float | None:
    """The time at which initial values hold, if the model says so."""
    if value is None:
        return None
    if not _is_number(value) or not math.isfinite(float(value)):
        raise ModelError(f"start is the time at which initial values hold, a finite number, not {_kind(value)}")
    return float(value)


def title(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 200:
        shown = clipped(name) if isinstance(name, str) else _kind(name)
        raise ModelError(f"the model's name must be one line of text, not {shown}")
    return name


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def _is_sympy(value: object, kind: str) -> bool:
    """Whether the value is SymPy's; it cannot be if nobody has imported SymPy, and we need not for that."""
    sympy = sys.modules.get("sympy")
    return sympy is not None and isinstance(value, getattr(sympy, kind))


_WORDS: tuple[tuple[Any, str], ...] = (
    (type(None), "None"),
    (bool, "a truth value"),
    (Real, "a number"),
    (Decimal, "a number"),
    (str, "text"),
    (Mapping, "a table"),
    ((list, tuple), "a list"),
    ((date, datetime, time), "a date or time"),
)


def _kind(value: object) -> str:
    """What a value is, in the words of a model file."""
    return next((word for kind, word in _WORDS if isinstance(value, kind)), f"a {type(value).__name__}")


def experiments(given: object, states: Iterable[str], parameters: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What is known in single experiments: values of parameters and of initial states, by experiment and name.

    What happens there stands as it was given."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ModelError(f"[experiments] must be tables of names and values, not {_kind(given)}")
    known = (*states, *parameters)
    refused = {name: f"'{name}' is a state; {_INITIAL}" for name in states} | {TIME: f"'t' is the time; {_INITIAL}"}
    found = {}
    reserved = [key for key in (STEADY_KEY, BEFORE_KEY, EVENTS_KEY) if key not in known]
    for label, known_here in given.items():
        where = f"experiments.{label}"
        if not isinstance(label, str) or not label.strip() or not label.isprintable():
            raise ModelError(f"[experiments] a name must be one line of text, not {clipped(str(label))}")
        told = table(where, known_here)
        for name in told:
            if name not in (*known, *reserved):
                raise ModelError(f"[{where}] {name}: this is neither a state nor a parameter{nearest(name, known)}")
        start = {name: told.pop(name) for name in reserved if name in told}
        found[label] = {name: _expression(where, name, value, None, refused) for name, value in told.items()}
        found[label] |= _rest(where, start, refused)
        if EVENTS_KEY in start:
            found[label][EVENTS_KEY] = start[EVENTS_KEY]
    return found


STEADY_KEY, BEFORE_KEY, EVENTS_KEY = "initial", "before", "events"
"""What may stand among the values of an experiment, unless a parameter is called so."""


def _rest(where: str, start: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any]:
    """How an experiment starts at rest."""
    initial, before = (start.get(key) for key in (STEADY_KEY, BEFORE_KEY))
    try:
        if initial is not None and not isinstance(initial, str):
            raise ModelError(f'[initial] here can only be "{STEADY}"; give values by the names of the states')
        is_steady(initial, before)
    except ModelError as error:
        raise ModelError(f"[{where}] {str(error).replace('[', '').replace(']', '')}") from None
    if before is not None:
        told = table(f"{where}.before", before)
        before = {name: _expression(f"{where}.before", name, value, None, refused) for name, value in told.items()}
    return {key: value for key, value in ((STEADY_KEY, initial), (BEFORE_KEY, before)) if value is not None}


def local_names(given: object, parameters: Iterable[str]) -> tuple[str, ...]:
    """Parameters that have a value of their own in each experiment."""
    if given is None:
        return ()
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise ModelError(f"local must be a list of names, not {_kind(given)}")
    known, local = tuple(parameters), tuple(dict.fromkeys(_name("local", name) for name in given))
    for name in local:
        if name not in known:
            raise ModelError(f"[local] {name}: this is no parameter of the model{nearest(name, known)}")
    return local


def noise(given: object, outputs: Iterable[str]) -> dict[str, float | str]:
    """What is known of the noise by output, read when there are data."""
    found: dict[str, float | str] = {}
    for name, value in table("noise", given).items():
        if name not in outputs:
            raise ModelError(f"[noise] {name}: this is not an output{nearest(name, outputs)}")
        if not isinstance(value, str) and not _is_number(value):
            raise ModelError(f"[noise] {name}: expected a number or text such as 'lognormal(s)', not {_kind(value)}")
        found[name] = value if isinstance(value, str) else float(value)
    return found


def priors(given: object) -> dict[str, str]:
    """Priors by name, read when there are data."""
    found: dict[str, str] = {}
    for name, value in table("priors", given).items():
        if not isinstance(value, str):
            raise ModelError(f"[priors] {name}: expected text such as 'normal(1, 0.2)', not {_kind(value)}")
        found[name] = value
    return found
