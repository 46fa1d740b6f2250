"""Model: a system of ordinary differential equations with outputs, as a value that never changes.

    x' = f(x, u, p, t)    states, their right-hand sides
    y  = g(x, u, p, t)    outputs, what is measured
    u  = u(t)             inputs, known functions of time, sampled with the data, or curves that are to be found
    x(0)                  initial values: unknown, known expressions in the parameters, or at rest: f(x, u, p, t) = 0
    x(t - tau)            states and inputs a time before, also in f and g; before the start the history of x
    events                what sets states and parameters at once, at times or when a condition becomes true

What is neither a state, an input, the time `t` nor fixed is a parameter.  Building a model checks it whole: every
refusal names the table and the entry, in the words of the model file.
"""

from __future__ import annotations

import functools
import html
import os
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NoReturn

from odejet.attach import attached
from odejet.errors import ExpressionError, ModelError, clipped, nearest
from odejet.extras import needed
from odejet.model import curves, delays, entries, parts
from odejet.model import events as happenings
from odejet.model.curves import Curve
from odejet.model.events import Event
from odejet.model.expressions import ZERO, Expression, Symbol, names, number, switches
from odejet.model.regimen import Regimen
from odejet.model.symbolic import to_sympy
from odejet.model.windows import check as check_windows
from odejet.model.windows import unfelt_states

MAX_SHOWN = 60

TABLES = (
    "states",
    "outputs",
    "inputs",
    "initial",
    "before",
    "history",
    "bounds",
    "fixed",
    "experiments",
    "noise",
    "priors",
    "expressions",
)
KEYS = ("name", "parameters", *TABLES, "local", "events", "start", "sets")


class Model:
    """An immutable ODE model; `replace` makes a changed copy.

    Values may be text, numbers, SymPy expressions or `Expression`s, and names text or SymPy symbols.  `parameters` may
    be left out: then every name that is left over is one, in order of appearance in states, outputs and initial.  An
    input that is None, or "sampled", has its values in the data; "sampled, hold" (or linear, or spline) says how they
    are joined; one that nobody recorded is a curve that is to be found, "spline(knots=[0, 30, 60])" (see
    `odejet.model.curves`).  `experiments` tells what parameters and initial states are in single experiments, and
    `local` which parameters have a value of their own in each.  `events` are `Event`s, or tables with their arguments.
    `noise` by output and `priors` by name are texts or numbers, as `oj.Problem` takes them, and for problems only.

    `expressions` names what stands in several equations, and what is to be predicted beside outputs; `sets` what
    indices range over (see `odejet.model.parts`).  Both are put in when the model is made.

    `start` is the time at which initial values hold; without it they hold when an experiment begins.
    `initial="steady"` starts at the equilibrium; `before` tells what parameters and inputs were until then, and from
    which states it was approached, where totals are conserved.  `history` tells what states that a delay looks back at
    were before the start, as expressions of t; without one they stood at their initial values.
    """

    __slots__ = (
        "_declared",
        "before",
        "bounds",
        "curves",
        "events",
        "experiments",
        "expressions",
        "fixed",
        "history",
        "initial",
        "inputs",
        "local",
        "name",
        "noise",
        "outputs",
        "parameters",
        "priors",
        "regimens",
        "sampling",
        "start",
        "states",
        "steady",
    )

    states: Mapping[str, Expression]
    outputs: Mapping[str, Expression]
    inputs: Mapping[str, Expression | None]
    sampling: Mapping[str, str]
    curves: Mapping[str, Curve]
    parameters: tuple[str, ...]
    initial: Mapping[str, Expression]
    steady: bool
    before: Mapping[str, Expression]
    history: Mapping[str, Expression]
    bounds: Mapping[str, tuple[float, float]]
    fixed: Mapping[str, Fraction]
    expressions: Mapping[str, Expression]
    experiments: Mapping[str, Mapping[str, Any]]
    local: tuple[str, ...]
    noise: Mapping[str, float | str]
    priors: Mapping[str, str]
    events: tuple[Event, ...]
    regimens: tuple[Regimen, ...]
    start: float | None
    name: str
    _declared: tuple[str, ...] | None

    def __init__(
        self,
        states: Mapping[Any, Any],
        outputs: Mapping[Any, Any] | None = None,
        inputs: Mapping[Any, Any] | None = None,
        parameters: Iterable[Any] | None = None,
        initial: Mapping[Any, Any] | str | None = None,
        bounds: Mapping[Any, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
        name: str = "model",
        experiments: Mapping[Any, Any] | None = None,
        local: Iterable[Any] | None = None,
        noise: Mapping[Any, Any] | None = None,
        priors: Mapping[Any, Any] | None = None,
        events: Iterable[Any] | None = None,
        before: Mapping[Any, Any] | None = None,
        start: Any = None,
        regimens: Iterable[Any] = (),
        history: Mapping[Any, Any] | None = None,
        expressions: Mapping[Any, Any] | None = None,
        sets: Mapping[Any, Any] | None = None,
    ) -> None:
        stated: dict[str, Expression] = {}
        if expressions or sets:
            tables = {"states": states, "outputs": outputs, "inputs": inputs, "initial": initial, "before": before}
            tables |= {"history": history, "bounds": bounds, "fixed": fixed, "noise": noise, "priors": priors}
            lists = {"parameters": parameters, "local": local, "events": events}
            plain, stated = parts.plain({**tables, **lists}, expressions, sets)
            states, outputs, inputs = plain["states"], plain["outputs"], plain["inputs"]
            initial, before, history = plain["initial"], plain["before"], plain["history"]
            bounds, fixed, noise, priors = (plain[key] for key in ("bounds", "fixed", "noise", "priors"))
            parameters, local, events = plain["parameters"], plain["local"], plain["events"]
        steady = entries.is_steady(initial, before)
        first = {"initial": None if steady else initial, "before": before, "history": history}
        told_tables = {
            "states": states,
            "outputs": outputs,
            "inputs": inputs,
            **first,
            "bounds": bounds,
            "fixed": fixed,
        }
        given = {name_: entries.table(name_, told) for name_, told in told_tables.items()}
        given["inputs"], unknown = curves.taken_out(given["inputs"])
        if not given["states"]:
            raise ModelError("a model needs at least one state; give states={'x': '-k*x'} or a table [states]")
        at_knots = curves.values_used(unknown)
        declared = None if parameters is None else entries.declared_names(parameters, given["fixed"])
        if declared is not None:
            declared = tuple(dict.fromkeys([*declared, *(n for value in at_knots.values() for n in names(value))]))
        entries.check_distinct(given, declared or given["fixed"])
        equations = entries.equations(given, declared)
        constants = {key: entries.fixed_value(key, value) for key, value in given["fixed"].items()}
        delays.check(equations, given["states"], given["inputs"], constants)
        begin = entries.start(start)
        if equations["history"] and not steady:
            equations["initial"], begin = delays.first_values(equations["history"], equations["initial"], begin)
        found = happenings.events(events)
        told = dict(enumerate(part for event in found for part in event.expressions()))
        free, used = entries.parameters({**equations, "events": told, "curves": at_knots}, given, declared)
        occurring = {name for table_ in equations.values() for value in table_.values() for name in names(value)}
        happenings.check(found, given["states"], given["inputs"], given["outputs"], used, occurring)
        entries.check_owners(given, (*used, *unknown))
        check_windows({**equations, "expressions": stated}, given["inputs"], list(told.values()))
        parts.check(stated, (*given["states"], *given["inputs"], *used))
        if not steady:
            involved = [*told.values(), *(Symbol(name_) for event in found for name_ in event.set)]
            equations["initial"] = {**dict.fromkeys(unfelt_states(equations, involved), ZERO), **equations["initial"]}
        attributes: dict[str, dict[str, Any]] = {
            **equations,
            "expressions": stated,
            "inputs": entries.inputs(given, used),
            "sampling": entries.sampling(given["inputs"]),
            "curves": unknown,
            "bounds": {key: entries.bounds(key, value, constants) for key, value in given["bounds"].items()},
            "fixed": constants,
            "experiments": _with_events(entries.experiments(experiments, given["states"], used)),
            "noise": entries.noise(noise, given["outputs"]),
            "priors": entries.priors(priors),
        }
        for key, value in attributes.items():
            object.__setattr__(self, key, MappingProxyType(value))
        object.__setattr__(self, "steady", steady)
        object.__setattr__(self, "parameters", free)
        object.__setattr__(self, "local", entries.local_names(local, (*used, *unknown)))
        object.__setattr__(self, "events", found)
        object.__setattr__(self, "regimens", tuple(regimens))
        object.__setattr__(self, "start", begin)
        object.__setattr__(self, "name", entries.title(name))
        object.__setattr__(self, "_declared", declared)

    def __setattr__(self, key: str, value: object) -> NoReturn:
        raise AttributeError(f"a Model does not change; use model.replace({key}=...)")

    def __delattr__(self, key: str) -> NoReturn:
        raise AttributeError("a Model does not change; use model.replace(...)")

    @property
    def unknowns(self) -> tuple[str, ...]:
        """What data must tell: states without a known initial value, then the free parameters."""
        return (*self.free_states, *self.parameters)

    @property
    def free_states(self) -> tuple[str, ...]:
        """States whose initial value is unknown."""
        return () if self.steady else tuple(state for state in self.states if state not in self.initial)

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
        first = ("initial", "steady", "before", "history", "sampling", "curves", "events", "regimens", "start")
        rest = (
            *first,
            "parameters",
            "bounds",
            "fixed",
            "expressions",
            "experiments",
            "local",
            "noise",
            "priors",
            "name",
        )
        return ordered and all(getattr(self, key) == getattr(other, key) for key in rest)

    # Equality looks at every equation; a hash that did too would invite use as a key for no purpose.
    __hash__ = None  # type: ignore[assignment]

    @property
    def key(self) -> tuple[Any, ...]:
        """All that the model is, to look up what is known of it: models with one key are equal."""
        tables = (tuple(getattr(self, table).items()) for table in TABLES if table != "experiments")
        others = (
            self.steady,
            self.events,
            self.regimens,
            self.start,
            *self.sampling.items(),
            *self.curves.items(),
            repr(self.experiments),
        )
        return (self.name, self.parameters, *others, *tables)

    @property
    def is_delayed(self) -> bool:
        """Whether an equation looks back in time."""
        return delays.is_delayed(self)

    @property
    def is_smooth(self) -> bool:
        """Whether the equations have neither branches nor events."""
        tables = (self.states, self.outputs, self.inputs, self.initial)
        expressions = (value for table in tables for value in table.values() if value is not None)
        return not self.events and not any(map(switches, expressions))

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

    @attached
    def to_sbml(self, path: str | os.PathLike[str] | None = None) -> str:
        """The model as SBML (Level 3 Version 2), also written to `path` if one is given."""
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
            entries.check_sizes(document)
            return cls(**{"states": {}, **document})
        except ExpressionError as error:
            raise error.at(_join(where, error.where)) from None
        except ModelError as error:
            raise ModelError(_join(where, str(error))) from None

    def to_dict(self) -> dict[str, Any]:
        """The arguments of the constructor that make this model, by the names of a model file."""
        tables: dict[str, Any] = {table: dict(getattr(self, table)) for table in TABLES}
        if self.steady:
            tables["initial"] = entries.STEADY
        tables["inputs"] |= {name: f"{entries.SAMPLED}, {how}" for name, how in self.sampling.items()}
        tables["inputs"] |= {name: str(curve) for name, curve in self.curves.items()}
        return {
            "name": self.name,
            "parameters": self._declared,
            "local": self.local,
            "events": list(self.events),
            **({"regimens": self.regimens} if self.regimens else {}),
            **({} if self.start is None else {"start": self.start}),
            **tables,
        }

    # --- looks ---

    def _sections(self) -> dict[str, list[str]]:
        """The lines to show, by what they are."""
        return {
            "states": [f"{state}' = {rhs}" for state, rhs in self.states.items()],
            "outputs": [f"{output} = {expression}" for output, expression in self.outputs.items()],
            "named": [f"{name} = {value}" for name, value in self.expressions.items()],
            "inputs": [f"{name}(t) = {self._driving(name)}" for name in self.inputs],
            "initial": [f"{state}(0) = {value}" for state, value in self.initial.items()] or ["steady"] * self.steady,
            "before": [f"{name} = {value}" for name, value in self.before.items()],
            "history": [f"{name}(t) = {value}" for name, value in self.history.items()],
            "fixed": [f"{name} = {number(value)}" for name, value in self.fixed.items()],
            "bounds": [f"{self._label(name)} in [{low:g}, {high:g}]" for name, (low, high) in self.bounds.items()],
            "local": list(self.local),
            "noise": [f"{name}: {value}" for name, value in self.noise.items()],
            "priors": [f"{name}: {value}" for name, value in self.priors.items()],
            "events": [str(event) for event in self.events],
            **{
                label: [line for name, value in known.items() for line in self._told(name, value)]
                for label, known in self.experiments.items()
            },
        }

    def _told(self, name: str, value: Any) -> list[str]:
        """The lines of one entry of an experiment."""
        if isinstance(value, Mapping):
            return [f"before: {', '.join(f'{n} = {v}' for n, v in value.items())}"]
        return list(map(str, value)) if isinstance(value, tuple) else [f"{self._label(name)} = {value}"]

    def _driving(self, name: str) -> str:
        """What an input is, as a model file says it."""
        how, value = self.sampling.get(name), self.curves.get(name, self.inputs[name])
        return f"{entries.SAMPLED}, {how}" if how else entries.SAMPLED if value is None else str(value)

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
        sympy = needed("sympy")
        everything = [*self.states, *self.outputs, *self.inputs, *self.parameters, *self.fixed]
        symbols = {sympy.Symbol(name): _upright(sympy.latex(sympy.Symbol(name))) for name in everything}

        def tex(value: Expression | str) -> str:
            expression = sympy.Symbol(value) if isinstance(value, str) else to_sympy(value)
            return sympy.latex(expression, symbol_names=symbols)

        lines = [rf"\dot{{{tex(state)}}} &= {tex(rhs)}" for state, rhs in self.states.items()]
        lines += [f"{tex(output)} &= {tex(value)}" for output, value in self.outputs.items()]
        lines += [
            f"{tex(name)}(t) &= " + (rf"\text{{{entries.SAMPLED}}}" if value is None else tex(value))
            for name, value in self.inputs.items()
        ]
        lines += [f"{tex(state)}(0) &= {tex(value)}" for state, value in self.initial.items()]
        lines += [rf"\dot{{{tex(state)}}}(0) &= 0" for state in self.states if self.steady]
        lines += [f"{tex(name)} &= {tex(number(value))}" for name, value in self.fixed.items()]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"


def _with_events(told: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is told of experiments, with the events in them read."""
    for label, known in told.items():
        if not isinstance(known.get(entries.EVENTS_KEY), Expression):
            try:
                found = happenings.events(known.pop(entries.EVENTS_KEY, None))
                known |= {entries.EVENTS_KEY: found} if found else {}
            except ModelError as error:
                raise ModelError(f"[experiments.{label}] {error}") from None
    return told


def _upright(tex: str) -> str:
    """Words in a name set upright, as in r_eff, lest they read as products; Greek letters are commands."""
    return re.sub(r"(?<![\\A-Za-z])([A-Za-z]{2,})", r"\\mathrm{\1}", tex)


def _shortened(lines: list[str]) -> list[str]:
    more = len(lines) - MAX_SHOWN
    return [*lines[:MAX_SHOWN], f"... and {more} more"] if more > 0 else lines


def _join(where: str, message: str) -> str:
    return f"{where} {message}" if message.startswith("[") else f"{where}: {message}"
