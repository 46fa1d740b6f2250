"""Parts: models of many alike parts and of named expressions, written out when a model is made.

    sets         {"age": 10}                                     what indices range over
    states       {"S[i]": "-force[i]*S[i]"}                      an equation for each member
    expressions  {"force[i]": "beta*sum(j, C[i,j]*I[j]/N[j])"}   a name for what stands in several equations
    fixed        {"C": [[...], ...]}                             numbers for all members at once

What is left are equations as anybody could have written them one by one, under names such as `S[3]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from odejet.errors import ExpressionError, ModelError, nearest
from odejet.model import entries
from odejet.model.curves import is_curve
from odejet.model.events import Event
from odejet.model.expressions import TIME, Expression, names, substituted
from odejet.model.grammar import parse
from odejet.model.indices import Scope

EQUATIONS = ("states", "outputs", "initial", "before", "history", "inputs", "expressions")
OTHERS = ("bounds", "noise", "priors")
LISTS = ("parameters", "local")

_INDEX = re.compile(r"\[([^\[\]]*)\]")

Tables = dict[str, Any]


def plain(arguments: Tables, expressions: Any, sets: Any) -> tuple[Tables, dict[str, Expression]]:
    """Return the arguments of a model without indices and names of expressions, and what these stand for."""
    found = written_out(sets, {**arguments, "expressions": expressions})
    stated = named(found.pop("expressions") or {})
    return with_expressions(found, stated), stated


def written_out(sets: Any, tables: Tables) -> Tables:
    """Return the arguments of a model with one entry for each member of the sets."""
    scope = Scope.of(sets)
    if scope is None:
        return tables
    found = dict(tables)
    for table in (*EQUATIONS, *OTHERS, "fixed"):
        if isinstance(found.get(table), Mapping):
            found[table] = _table(table, found[table], scope)
    for key in LISTS:
        if isinstance(found.get(key), Iterable) and not isinstance(found[key], str):
            told = scope.entries(key, dict.fromkeys(found[key]))
            found[key] = [name for name, _, _ in told]
    if found.get("events"):
        found["events"] = [_event(event, scope) for event in found["events"]]
    return found


def _table(table: str, given: Mapping[Any, Any], scope: Scope) -> dict[Any, Any]:
    listed: dict[Any, Any] = {}
    for name, value in given.items():
        if table in ("fixed", "initial") and isinstance(value, list | tuple):
            try:
                listed |= scope.listed(str(name), value)
            except ModelError as error:
                raise ModelError(f"[{table}] {name}: {error}") from None
        else:
            listed[name] = value
    return {name: _value(table, name, value, own) for name, own, value in scope.entries(table, listed)}


def _value(table: str, name: str, value: Any, scope: Scope) -> Any:
    """An entry with the members of its scope in the place of indices."""
    if not isinstance(value, str):
        return value
    try:
        if table == "inputs" and is_curve(value):
            return value
        if table in OTHERS or (table == "inputs" and value.strip().startswith(entries.SAMPLED)):
            return _INDEX.sub(lambda told: f"[{','.join(map(scope.member, told[1].split(',')))}]", value)
        return parse(value, past=True, scope=scope)
    except ExpressionError as error:
        raise error.at(f"[{table}] {name}") from None
    except ModelError as error:
        raise ModelError(f"[{table}] {name}: {error}") from None


def _event(event: Any, scope: Scope) -> Any:
    """An event that sets all members of what it sets."""
    fields = event.to_dict() if isinstance(event, Event) else dict(event)
    if not isinstance(fields.get("set"), Mapping):
        return event
    made: dict[str, Any] = {}
    for name, own, value in scope.entries("events", fields["set"]):
        made[name] = parse(entries.text(value), scope=own)
    return Event(**{**fields, "set": made})


# --- named expressions ---


def named(given: Mapping[str, Any]) -> dict[str, Expression]:
    """Return named expressions in states, inputs and parameters alone, those in each other put in."""
    read = {name: _read("expressions", name, value) for name, value in entries.table("expressions", given).items()}
    done: dict[str, Expression] = {}

    def resolved(name: str, waiting: tuple[str, ...]) -> Expression:
        if name in waiting:
            chain = " -> ".join((*waiting[waiting.index(name) :], name))
            raise ModelError(f"[expressions] {name}: this is defined by itself ({chain})")
        if name not in done:
            inner = {other: resolved(other, (*waiting, name)) for other in names(read[name]) if other in read}
            done[name] = substituted(read[name], inner)
        return done[name]

    return {name: resolved(name, ()) for name in read}


def with_expressions(tables: Tables, expressions: Mapping[str, Expression]) -> Tables:
    """Return the arguments of a model with expressions in the place of their names."""
    for table in ("states", "inputs", "outputs"):
        for name in tables.get(table) or {}:
            if name in expressions:
                raise ModelError(f"[expressions] {name}: the name is in [{table}] already; rename one of them")
    found = dict(tables)
    for table in ("states", "outputs", "initial", "before", "history"):
        if isinstance(found.get(table), Mapping):
            found[table] = {name: _put_in(table, name, value, expressions) for name, value in found[table].items()}
    if found.get("events"):
        read = [event if isinstance(event, Event) else Event(**event) for event in found["events"]]
        found["events"] = [event.substituted(expressions) for event in read]
    return found


def _put_in(table: str, name: Any, value: Any, expressions: Mapping[str, Expression]) -> Any:
    if isinstance(value, int | float):
        return value
    return substituted(_read(table, name, value), expressions)


def _read(table: str, name: Any, value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    try:
        return parse(entries.text(value), past=True)
    except ExpressionError as error:
        raise error.at(f"[{table}] {name}") from None
    except ModelError as error:
        raise ModelError(f"[{table}] {name}: {error}") from None


def check(expressions: Mapping[str, Expression], known: Iterable[str]) -> None:
    """Refuse named expressions of what no equation knows."""
    everything = {TIME, *known}
    for name, value in expressions.items():
        for other in names(value):
            if other not in everything:
                raise ModelError(
                    f"[expressions] {name}: no equation uses '{other}', so nothing can be said of it"
                    f"{nearest(other, everything)}"
                )
