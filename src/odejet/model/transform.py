"""Transform: models made of other models, as values.

    rewritten(model, states=..., events=...)    other equations, less what no longer occurs in them
    restricted(model, outputs)                  some of the outputs
    renamed(model, {"k": "k_hot"})              other names
    joined([one, other])                        several models side by side, which share what has one name
    known(model, {"k": 2})                      parameters as numbers

A model that is rewritten holds equations alone: bounds, noise, priors, what is known in single experiments and the time
at which initial values hold are for problems, and stay only where they are given.  The inputs that are in a model stay,
used or not, and regimens with the events that go on after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from odejet.errors import ModelError
from odejet.model.curves import KINDS, written
from odejet.model.entries import STEADY
from odejet.model.expressions import TIME, Condition, Expression, Symbol, delays, fresh, names, substituted
from odejet.model.model import Model
from odejet.model.names import ended

EQUATIONS = ("states", "outputs", "initial", "before", "history")


def rewritten(model: Model, *, ordered: bool = True, **tables: Any) -> Model:
    """Return the model with other tables, without the parameters and numbers that no longer occur.

    Parameters keep their order, and new ones follow; unless `ordered` all are in the order in which they appear.
    """
    given = _equations(model) | ({"regimens": ()} if "events" in tables else {}) | tables
    start = given["initial"] if isinstance(given["initial"], Mapping) else {}
    parts: list[Expression | Condition] = [*given["states"].values(), *given["outputs"].values(), *start.values()]
    parts += [part for event in given["events"] for part in event.expressions()]
    looked = {name for part in parts for delay in delays(part) for name in names(delay.argument)}
    given["history"] = {name: value for name, value in given["history"].items() if name in looked & {*given["states"]}}
    parts += given["history"].values()
    used = dict.fromkeys(name for part in parts for name in names(part))
    moving = {TIME, *given["states"], *given["inputs"]}
    before = given["before"]
    if "before" not in tables:
        before = {name: value for name, value in before.items() if name in used or name in moving}
    used |= dict.fromkeys(name for value in before.values() for name in names(value))
    own = [name for name in used if name not in moving]
    fixed = {name: value for name, value in given["fixed"].items() if name in own}
    first = [name for name in (*model.parameters, *model.fixed) if name in own]
    given |= {"before": before, "fixed": fixed, "parameters": list(dict.fromkeys([*first, *own])) if ordered else None}
    if "bounds" in tables:
        free = {*given["states"], *own} - fixed.keys()
        given["bounds"] = {name: pair for name, pair in tables["bounds"].items() if name in free}
    if "local" in tables:
        given["local"] = [name for name in tables["local"] if name in own]
    return Model(**given)


def _equations(model: Model) -> dict[str, Any]:
    """The tables that say what a model does, with inputs as its file has them."""
    found = model.to_dict()
    return {key: found[key] for key in (*EQUATIONS, "inputs", "fixed", "events", "name")} | {"regimens": model.regimens}


def with_named(model: Model) -> Model:
    """Return the model with its named expressions as further outputs."""
    if not model.expressions:
        return model
    return rewritten(model, outputs={**model.outputs, **model.expressions}, bounds=model.bounds)


def written_out(model: Model) -> Model:
    """Return the model with its curves as expressions in t, which switch at knots; these have to be known."""
    if not model.curves:
        return model
    for name, curve in model.curves.items():
        if not curve.knots:
            raise ModelError(
                f"[inputs] {name}: where the knots of {curve} are depends on the data; give {KINDS[curve.kind]}=[...]"
            )
    inputs = {name: value for name, value in model.to_dict()["inputs"].items() if name not in model.curves}
    named = {name: written(curve, name) for name, curve in model.curves.items()}
    found = model.replace(inputs=inputs, expressions={**model.expressions, **named})
    return found.replace(expressions={})


def restricted(model: Model, outputs: Iterable[str]) -> Model:
    """Return the model with some of its outputs."""
    kept = set(outputs)
    return rewritten(model, outputs={name: value for name, value in model.outputs.items() if name in kept})


def known(model: Model, values: Mapping[str, Any]) -> Model:
    """Return the model with numbers for some of its parameters; other names are left aside."""
    return model.replace(fixed={**model.fixed, **{n: v for n, v in values.items() if n in model.parameters}})


def renamed(model: Model, new: Mapping[str, str]) -> Model:
    """Return the equations under other names."""
    symbols: dict[str, Expression] = {name: Symbol(other) for name, other in new.items()}
    found = _equations(model)
    for table in EQUATIONS:
        if isinstance(found[table], Mapping):
            found[table] = {new.get(key, key): substituted(value, symbols) for key, value in found[table].items()}
    for table in ("inputs", "fixed"):
        found[table] = {new.get(key, key): value for key, value in found[table].items()}
    found |= {key: [one.renamed(new) for one in found[key]] for key in ("events", "regimens")}
    return Model(**found, parameters=[new.get(name, name) for name in (*model.parameters, *model.fixed)])


def joined(models: Sequence[Model], parameters: Iterable[str] | None = None) -> Model:
    """Return several models as one, in which what has one name is one; it starts at rest if any of them does.

    Parameters are in the order given, by default in the one in which they appear.
    """
    tables: dict[str, Any] = {table: {} for table in (*EQUATIONS, "inputs", "fixed")}
    for model in models:
        for table, entries in tables.items():
            entries |= getattr(model, table)
    if any(model.steady for model in models):
        tables["initial"] = STEADY
    tables |= {key: [one for model in models for one in getattr(model, key)] for key in ("events", "regimens")}
    return Model(**tables, parameters=None if parameters is None else list(parameters), name=models[0].name)


def copies(model: Model, endings: Iterable[str], taken: set[str]) -> Iterator[tuple[Model, dict[str, str]]]:
    """Yield copies with states, outputs and inputs of their own, and the map of names; parameters are shared."""
    for ending in endings:
        new = {name: fresh(ended(name, ending), taken) for name in (*model.states, *model.outputs, *model.inputs)}
        yield renamed(model, new), new
