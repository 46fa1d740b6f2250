"""Model: a system of ordinary differential equations with outputs, as a value that never changes.

    x' = f(x, u, p, t)    states, their right-hand sides
    y  = g(x, u, p, t)    outputs, what is measured
    u  = u(t)             inputs, known functions of time or sampled with the data
    x(0)                  initial values: unknown, or known expressions in the parameters

What is neither a state, an input, the time `t` nor fixed is a parameter.  Building a model checks it whole: every
refusal names the table and the entry, in the words of the model file.
"""

from __future__ import annotations

import functools
import html
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from types import MappingProxyType
from typing import Any, NoReturn

from odejet.attach import attached
from odejet.errors import ExpressionError, ModelError, clipped, nearest
from odejet.model.expressions import (
    TIME,
    Expression,
    Function,
    Number,
    Power,
    Product,
    Sum,
    Symbol,
    checked_name,
    constant,
    names,
    number,
)
from odejet.model.grammar import MAX_DEPTH, parse
from odejet.model.symbolic import from_sympy, to_sympy

MAX_ENTRIES = 1000
MAX_SHOWN = 60

TABLES = ("states", "outputs", "inputs", "initial", "bounds", "fixed")
KEYS = ("name", "parameters", *TABLES)
SAMPLED = "sampled"
"""What stands in a model file in place of the function of an input whose values come with the data."""

_KINDS = {"states": "a state", "outputs": "an output", "inputs": "an input", "parameters": "a parameter"}
_PI = "'pi' is not known here: write 3.141592653589793, or list it in parameters if it is one"


class Model:
    """An immutable ODE model; `replace` makes a changed copy.

    Values may be text, numbers, SymPy expressions or `Expression`s, and names text or SymPy symbols.  `parameters` may
    be left out: then every name that is left over is one, in order of appearance in states, outputs and initial.  An
    input that is None, or "sampled", has its values in the data.
    """

    __slots__ = ("_declared", "bounds", "fixed", "initial", "inputs", "name", "outputs", "parameters", "states")

    states: Mapping[str, Expression]
    outputs: Mapping[str, Expression]
    inputs: Mapping[str, Expression | None]
    parameters: tuple[str, ...]
    initial: Mapping[str, Expression]
    bounds: Mapping[str, tuple[float, float]]
    fixed: Mapping[str, Fraction]
    name: str
    _declared: tuple[str, ...] | None

    def __init__(
        self,
        states: Mapping[Any, Any],
        outputs: Mapping[Any, Any] | None = None,
        inputs: Mapping[Any, Any] | None = None,
        parameters: Iterable[Any] | None = None,
        initial: Mapping[Any, Any] | None = None,
        bounds: Mapping[Any, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
        name: str = "model",
    ) -> None:
        tables = {"states": states, "outputs": outputs, "inputs": inputs, "initial": initial, "bounds": bounds}
        given = {table: _entries(table, entries) for table, entries in (tables | {"fixed": fixed}).items()}
        if not given["states"]:
            raise ModelError("a model needs at least one state; give states={'x': '-k*x'} or a table [states]")
        declared = None if parameters is None else _declared(parameters, given["fixed"])
        _check_distinct(given, declared or given["fixed"])
        equations = _equations(given, declared)
        constants = {key: _constant(key, value) for key, value in given["fixed"].items()}
        free, used = _parameters(equations, given, declared)
        _check_owners(given, used)
        attributes: dict[str, dict[str, Any]] = {
            **equations,
            "inputs": _inputs(given, used),
            "bounds": {key: _bounds(key, value, constants) for key, value in given["bounds"].items()},
            "fixed": constants,
        }
        for key, value in attributes.items():
            object.__setattr__(self, key, MappingProxyType(value))
        object.__setattr__(self, "parameters", free)
        object.__setattr__(self, "name", _title(name))
        object.__setattr__(self, "_declared", declared)

    def __setattr__(self, key: str, value: object) -> NoReturn:
        raise AttributeError(f"a Model does not change; use model.replace({key}=...)")

    def __delattr__(self, key: str) -> NoReturn:
        raise AttributeError("a Model does not change; use model.replace(...)")

    @property
    def unknowns(self) -> tuple[str, ...]:
        """What data must tell: states without a known initial value, then the free parameters."""
        return (*(state for state in self.states if state not in self.initial), *self.parameters)

    def replace(self, **changes: Any) -> Model:
        """A model like this one, but for the given arguments of the constructor."""
        return Model(**(self.to_dict() | changes))

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Model, **self.to_dict()), ()

    def __eq__(self, other: object) -> bool:
        """Same equations in the same order, same name; the order of known values and bounds means nothing."""
        if not isinstance(other, Model):
            return NotImplemented
        ordered = all(list(getattr(self, t).items()) == list(getattr(other, t).items()) for t in TABLES[:3])
        rest = ("parameters", "initial", "bounds", "fixed", "name")
        return ordered and all(getattr(self, key) == getattr(other, key) for key in rest)

    # Equality looks at every equation; a hash that did too would invite use as a key for no purpose.
    __hash__ = None  # type: ignore[assignment]

    # --- files ---

    @classmethod
    @attached
    def from_toml(cls, path: str | os.PathLike[str]) -> Model:
        """The model in a TOML file; without a `name` of its own it is called like the file."""
        raise NotImplementedError

    @classmethod
    @attached
    def from_toml_text(cls, text: str, where: str = "model") -> Model:
        """The model in a TOML text; `where` names it in messages."""
        raise NotImplementedError

    @attached
    def to_toml(self, path: str | os.PathLike[str] | None = None) -> str:
        """The model as TOML text, also written to `path` if one is given."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "model") -> Model:
        """The model in the tables of a model file, once they are read; `where` names them in messages."""
        for key in document:
            if key not in KEYS:
                kind = "table" if isinstance(document[key], Mapping) else "key"
                hint = nearest(str(key), KEYS, cutoff=0.6) or f"; a model has {', '.join(KEYS)}"
                raise ModelError(f"{where}: unknown {kind} {clipped(str(key))}{hint}")
        try:
            return cls(**{"states": {}, **document})
        except ExpressionError as error:
            raise error.at(_join(where, error.where)) from None
        except ModelError as error:
            raise ModelError(_join(where, str(error))) from None

    def to_dict(self) -> dict[str, Any]:
        """The arguments of the constructor that make this model, by the names of a model file."""
        tables = {table: dict(getattr(self, table)) for table in TABLES}
        return {"name": self.name, "parameters": self._declared, **tables}

    # --- looks ---

    def _sections(self) -> dict[str, list[str]]:
        """The lines to show, by what they are."""
        return {
            "states": [f"{state}' = {rhs}" for state, rhs in self.states.items()],
            "outputs": [f"{output} = {expression}" for output, expression in self.outputs.items()],
            "inputs": [f"{name}(t) = {_shown(expression)}" for name, expression in self.inputs.items()],
            "initial": [f"{state}(0) = {value}" for state, value in self.initial.items()],
            "fixed": [f"{name} = {number(value)}" for name, value in self.fixed.items()],
            "bounds": [f"{self._label(name)} in [{low:g}, {high:g}]" for name, (low, high) in self.bounds.items()],
        }

    def _label(self, name: str) -> str:
        return f"{name}(0)" if name in self.states else name

    def _count(self) -> str:
        shown = [self._label(name) for name in self.unknowns[:MAX_SHOWN]]
        more = [f"and {len(self.unknowns) - MAX_SHOWN} more"] if len(self.unknowns) > MAX_SHOWN else []
        noun = "unknown" if len(self.unknowns) == 1 else "unknowns"
        return f"{len(self.unknowns)} {noun}" + (": " + ", ".join(shown + more) if shown else "")

    def __repr__(self) -> str:
        lines = [f"Model {self.name}"]
        for table, section in self._sections().items():
            lines += [f"  {'' if i else table:8} {line}" for i, line in enumerate(_shortened(section))]
        return "\n".join([*lines, f"  {self._count()}"])

    def _repr_html_(self) -> str:
        rows = []
        for table, section in self._sections().items():
            if section:
                code = "<br>".join(f"<code>{html.escape(line)}</code>" for line in _shortened(section))
                rows.append(f"<tr><th style='text-align:left;vertical-align:top'>{table}</th>")
                rows.append(f"<td style='text-align:left'>{code}</td></tr>")
        caption = f"<caption><b>{html.escape(self.name)}</b>, {html.escape(self._count())}</caption>"
        return f"<table>{caption}{''.join(rows)}</table>"

    def latex(self) -> str:
        """The equations in LaTeX, an `aligned` block for use inside mathematics."""
        import sympy

        everything = [*self.states, *self.outputs, *self.inputs, *self.parameters, *self.fixed]
        symbols = {sympy.Symbol(name): _upright(sympy.latex(sympy.Symbol(name))) for name in everything}

        def tex(value: Expression | str) -> str:
            expression = sympy.Symbol(value) if isinstance(value, str) else to_sympy(value)
            return sympy.latex(expression, symbol_names=symbols)

        lines = [rf"\dot{{{tex(state)}}} &= {tex(rhs)}" for state, rhs in self.states.items()]
        lines += [f"{tex(output)} &= {tex(value)}" for output, value in self.outputs.items()]
        lines += [
            f"{tex(name)}(t) &= " + (rf"\text{{{SAMPLED}}}" if value is None else tex(value))
            for name, value in self.inputs.items()
        ]
        lines += [f"{tex(state)}(0) &= {tex(value)}" for state, value in self.initial.items()]
        lines += [f"{tex(name)} &= {tex(number(value))}" for name, value in self.fixed.items()]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"


def _upright(tex: str) -> str:
    """Words in a name set upright, as in r_eff, lest they read as products; Greek letters are commands."""
    return re.sub(r"(?<![\\A-Za-z])([A-Za-z]{2,})", r"\\mathrm{\1}", tex)


def _shortened(lines: list[str]) -> list[str]:
    more = len(lines) - MAX_SHOWN
    return [*lines[:MAX_SHOWN], f"... and {more} more"] if more > 0 else lines


def _shown(value: Expression | None) -> str:
    return SAMPLED if value is None else str(value)


def _join(where: str, message: str) -> str:
    return f"{where} {message}" if message.startswith("[") else f"{where}: {message}"


# --- reading what was given -------------------------------------------------------------------------------------------


def _entries(table: str, given: object) -> dict[str, Any]:
    """A table with its names checked and written as Python spells them."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ModelError(f"[{table}] must be a table of names and values, not {_kind(given)}")
    return _unique(table, list(given.items()))


def _unique(table: str, pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_ENTRIES:
        raise ModelError(f"[{table}] has {len(pairs)} entries, and {MAX_ENTRIES} is the limit")
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


def _declared(parameters: object, fixed: Iterable[str]) -> tuple[str, ...]:
    """All parameters by name: the given ones, and after them fixed ones that were not listed."""
    if not isinstance(parameters, Iterable) or isinstance(parameters, (str, bytes, AbstractSet, Mapping)):
        raise ModelError(f"parameters must be a list of names, not {_kind(parameters)}")
    return tuple(dict.fromkeys([*_unique("parameters", [(key, None) for key in parameters]), *fixed]))


def _check_distinct(given: Mapping[str, Mapping[str, Any]], declared: Iterable[str]) -> None:
    """One name, one meaning."""
    owners: dict[str, str] = {}
    for table in _KINDS:
        for name in declared if table == "parameters" else given[table]:
            if name in owners:
                reason = f"the name is already that of {_KINDS[owners[name]]}; rename one of them"
                raise ModelError(f"[{'fixed' if name in given['fixed'] else table}] {name}: {reason}")
            owners[name] = table


def _equations(
    given: Mapping[str, Mapping[str, Any]], declared: tuple[str, ...] | None
) -> dict[str, dict[str, Expression]]:
    """States, outputs and known initial values; each with the names it may not use and why."""
    outputs = {name: f"'{name}' is an output; write its expression instead" for name in given["outputs"]}
    fixed = declared or tuple(given["fixed"])
    known = None if declared is None else (*given["states"], *given["inputs"], *declared)
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
            ("initial", declared, before),
        )
    }


_INITIAL = "an initial value may hold numbers and parameters only"


def _inputs(given: Mapping[str, Mapping[str, Any]], parameters: Iterable[str]) -> dict[str, Expression | None]:
    """Inputs, which are functions of the time alone; None for those that are sampled."""
    kinds = {name: kind for table, kind in _KINDS.items() for name in given.get(table, parameters)}
    refused = {name: f"'{name}' is {kind}; an input may depend on t alone" for name, kind in kinds.items()}
    refused.setdefault("pi", "'pi' is not known here: write 3.141592653589793")
    return {
        key: None if _is_sampled(value) else _expression("inputs", key, value, (), refused)
        for key, value in given["inputs"].items()
    }


def _is_sampled(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip() == SAMPLED)


def _parameters(
    equations: Mapping[str, Mapping[str, Expression]],
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
    every = used if declared is None else declared
    return tuple(name for name in every if name not in given["fixed"]), every


def _check_owners(given: Mapping[str, Mapping[str, Any]], parameters: Iterable[str]) -> None:
    """Bounds belong to parameters and to initial states."""
    known = (*given["states"], *parameters)
    for name in given["bounds"]:
        if name not in known:
            hint = nearest(name, known) or f"; known are {', '.join(known[:20])}"
            raise ModelError(f"[bounds] {name}: this is neither a state nor a parameter{hint}")


def _expression(
    table: str, key: str, value: object, known: Iterable[str] | None, refused: Mapping[str, str]
) -> Expression:
    """Whatever stands for an expression, read as text: so all kinds obey one grammar and print as they are read."""
    try:
        return parse(_text(value), known, refused)
    except ExpressionError as error:
        raise error.at(f"[{table}] {key}") from None
    except ModelError as error:
        raise ModelError(f"[{table}] {key}: {error}") from None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        if isinstance(value, (Number, Symbol, Sum, Product, Power, Function)):
            return str(value)
        if _is_sympy(value, "Basic"):
            return str(from_sympy(value))
    except RecursionError:
        raise ModelError(f"the expression is nested more than {MAX_DEPTH} deep; split it") from None
    if _is_number(value):
        return str(number(value))
    raise ModelError(f"expected an expression, as text or a number, not {_kind(value)}")


def _constant(key: str, value: object) -> Fraction:
    expression = _expression("fixed", key, value, (), {TIME: "a fixed value cannot depend on t"})
    exact = constant(expression)
    if exact is None:
        raise ModelError(f"[fixed] {key}: expected a number, not the expression {clipped(str(expression))}")
    try:
        number(exact)
    except ModelError as error:
        raise ModelError(f"[fixed] {key}: {error}") from None
    return exact


def _bounds(key: str, value: Any, fixed: Mapping[str, Fraction]) -> tuple[float, float]:
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


def _title(name: object) -> str:
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
