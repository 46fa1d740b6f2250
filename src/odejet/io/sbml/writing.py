"""Writing: models as SBML, Level 3 Version 2.

States are species with rate rules, in a compartment of size one of which they are amounts; outputs are parameters with
assignment rules; what is fixed has a value, and what is not has none.  So what is written is what `read_sbml` reads.
Inputs that are functions of time are written out; bounds, and what is known of single experiments, are not SBML's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from odejet.attach import attach
from odejet.errors import ModelError
from odejet.io.files import write_all
from odejet.io.sbml.network import START
from odejet.model import Model
from odejet.model.cumulated import refuse_windows
from odejet.model.events import Event
from odejet.model.expressions import (
    TIME,
    Choice,
    Comparison,
    Condition,
    Delay,
    Expression,
    Function,
    Logic,
    Number,
    Piecewise,
    Power,
    Product,
    Sum,
    Symbol,
    constant,
    fresh,
    names,
    number,
    substituted,
)
from odejet.model.transform import written_out

MAX_REPEATS = 1000
"""Repetitions of one event, which SBML must have one by one."""

_CORE = "http://www.sbml.org/sbml/level3/version2/core"
_MATHML = "http://www.w3.org/1998/Math/MathML"
_DELAY = '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/delay"> delay </csymbol>'
_TIME = '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/time"> t </csymbol>'
_FUNCTIONS = {"log": "ln", "sqrt": "root", "ceil": "ceiling"}
_RELATIONS = {"<": "lt", "<=": "leq", ">": "gt", ">=": "geq", "==": "eq", "!=": "neq"}


@attach(Model.to_sbml)
def write(model: Model, path: str | os.PathLike[str] | None = None) -> str:
    text = document(model)
    if path is not None:
        write_all({os.fspath(path): lambda file: file.write(text.encode())})
    return text


def document(model: Model) -> str:
    """The text of the SBML document of a model."""
    return written(model)[0]


def written(model: Model) -> tuple[str, dict[str, str]]:
    """The text of the SBML document of a model, and the ids that its names have there."""
    refuse_windows(model, "SBML")
    if model.history:
        raise ModelError(f"{model.name}: in SBML states were before what they are initially; remove [history]")
    writer = _Writer(model)
    text = writer.document()
    return text, writer.ids


def _element(name: str, attributes: Mapping[str, str], inner: Iterable[str] = ()) -> str:
    told = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    inside = "\n".join(inner)
    return f"<{name}{told}>\n{inside}\n</{name}>" if inside else f"<{name}{told}/>"


def _listed(name: str, elements: list[str]) -> list[str]:
    return [_element(name, {}, elements)] if elements else []


class _Writer:
    """One model, with an id for each of its names."""

    def __init__(self, model: Model) -> None:
        self.model = model = written_out(model)
        if model.steady:
            raise ModelError("the model starts in its steady state, which SBML cannot say; give initial values")
        if model.start not in (None, START):
            raise ModelError(f"the model starts at t = {model.start:g}, and SBML at {START}; shift the time by it")
        self.inputs: dict[str, Expression] = {}
        for name, value in model.inputs.items():
            if value is None:
                raise ModelError(f"the input '{name}' is sampled, which SBML cannot say; give it as a function of t")
            self.inputs[name] = value
        self.ids: dict[str, str] = {}
        for name in (*model.states, *model.outputs, *model.parameters, *model.fixed):
            self.own(name)
        self.compartment = self.own("space")
        self.moved = {name for event in model.events for name in event.set}

    def own(self, name: str) -> str:
        """An id for a name: SBML has no letters beyond those of ASCII."""
        plain = re.sub(r"[^A-Za-z0-9_]", lambda letter: f"_u{ord(letter.group()):04x}", name)
        self.ids[name] = fresh(plain, set(self.ids.values()))
        return self.ids[name]

    def document(self) -> str:
        model = self.model
        starts = [self.start(name, value) for name, value in model.initial.items() if constant(value) is None]
        rates = [self.rule("rateRule", name, rate) for name, rate in model.states.items()]
        outputs = [self.rule("assignmentRule", name, value) for name, value in model.outputs.items()]
        inner = [
            *_listed("listOfCompartments", [self.space()]),
            *_listed("listOfSpecies", [self.species(name) for name in model.states]),
            *_listed("listOfParameters", [*self.parameters()]),
            *_listed("listOfInitialAssignments", starts),
            *_listed("listOfRules", [*rates, *outputs]),
            *_listed("listOfEvents", [*self.events()]),
        ]
        id_ = re.sub(r"\W", "_", model.name, flags=re.ASCII)
        id_ = id_ if re.match(r"[A-Za-z_]", id_) else f"_{id_}"
        body = _element("model", {"id": id_, "name": model.name}, inner)
        whole = _element("sbml", {"xmlns": _CORE, "level": "3", "version": "2"}, [body])
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'

    # --- quantities

    def attributes(self, name: str) -> dict[str, str]:
        return {"id": self.ids[name], **({"name": name} if self.ids[name] != name else {})}

    def space(self) -> str:
        return _element(
            "compartment", {"id": self.compartment, "spatialDimensions": "3", "size": "1", "constant": "true"}
        )

    def species(self, name: str) -> str:
        value = constant(self.model.initial[name]) if name in self.model.initial else None
        begins = {} if value is None else {"initialAmount": _decimal(value)}
        told = {"hasOnlySubstanceUnits": "true", "boundaryCondition": "false", "constant": "false"}
        return _element("species", {**self.attributes(name), "compartment": self.compartment, **begins, **told})

    def parameters(self) -> Iterable[str]:
        for name in (*self.model.parameters, *self.model.fixed):
            value = {"value": _decimal(self.model.fixed[name])} if name in self.model.fixed else {}
            moves = "false" if name in self.moved else "true"
            yield _element("parameter", {**self.attributes(name), **value, "constant": moves})
        for name in self.model.outputs:
            yield _element("parameter", {**self.attributes(name), "constant": "false"})

    def start(self, name: str, value: Expression) -> str:
        return _element("initialAssignment", {"symbol": self.ids[name]}, [self.math(value)])

    def rule(self, kind: str, name: str, value: Expression) -> str:
        return _element(kind, {"variable": self.ids[name]}, [self.math(value)])

    # --- events

    def events(self) -> Iterable[str]:
        ordered = _order_matters(self.model.events)
        for position, event in enumerate(self.model.events):
            for trigger, at_start in self.triggers(event, position + 1):
                priority = number(len(self.model.events) - position) if ordered else None
                yield self.event(event, position + 1, trigger, at_start, priority)

    def triggers(self, event: Event, position: int) -> Iterable[tuple[Condition, bool]]:
        """The conditions of an event, and whether it happens if they hold at the start."""
        if event.when is not None:
            yield event.when if event.seen else _just_after(event.when), False
            return
        times: list[Expression] = list(event.at)
        if event.every is not None:
            if event.count is None or event.count > MAX_REPEATS:
                reason = f"SBML has no events that repeat; give a count of at most {MAX_REPEATS}"
                raise ModelError(f"[events] event {position}: {reason}")
            first, every = event.at[0], event.every
            times = [first, *(_later(first, every, i) for i in range(1, event.count))]
        begun = number(START)
        for time in times:
            value = constant(time)
            # What SBML has at 10 is after `time >= 10` and before `time > 10`.
            reached = Comparison(">=" if event.seen else ">", Symbol(TIME), time)
            if value is None:
                yield Logic("and", (reached, Comparison(">=", time, begun))), True
            elif value >= START:
                yield reached, True

    def event(
        self, event: Event, position: int, trigger: Condition, at_start: bool, priority: Expression | None
    ) -> str:
        told = {"initialValue": "false" if at_start else "true", "persistent": "true"}
        assignments = [
            _element("eventAssignment", {"variable": self.ids[name]}, [self.math(value)])
            for name, value in event.set.items()
        ]
        inner = [
            _element("trigger", told, [self.math(trigger)]),
            *([] if priority is None else [_element("priority", {}, [self.math(priority)])]),
            *_listed("listOfEventAssignments", assignments),
        ]
        id_ = self.own(f"event_{position}")
        return _element("event", {"id": id_, "useValuesFromTriggerTime": "false" if priority else "true"}, inner)

    # --- formulas

    def math(self, expression: Expression | Condition) -> str:
        inner = self.tree(substituted(expression, self.inputs))
        return f'<math xmlns="{_MATHML}">{inner}</math>'

    def tree(self, expression: Any) -> str:
        """The MathML of an expression or condition."""
        match expression:
            case Number(value):
                return _cn(value)
            case Symbol(name):
                return _TIME if name == TIME else f"<ci> {escape(self.ids[name])} </ci>"
            case Sum(terms):
                return self.sum(terms)
            case Product(factors):
                return self.product(factors)
            case Power(base, exponent):
                return _apply("power", self.tree(base), self.tree(exponent))
            case Function(name, argument):
                return _apply(_FUNCTIONS.get(name, name), self.tree(argument))
            case Delay(argument, by):
                return f"<apply>{_DELAY}{self.tree(argument)}{self.tree(by)}</apply>"
            case Choice("sign", (argument,)):
                zero, one = number(0), number(1)
                signs = (one, number(-1), zero)
                return self.tree(Piecewise(signs, (Comparison(">", argument, zero), Comparison("<", argument, zero))))
            case Choice(name, arguments):
                return _apply(_FUNCTIONS.get(name, name), *map(self.tree, arguments))
            case Comparison(relation, left, right):
                return _apply(_RELATIONS[relation], self.tree(left), self.tree(right))
            case Logic(word, parts):
                return _apply(word, *map(self.tree, parts))
            case Piecewise(values, conditions):
                pieces = [
                    f"<piece>{self.tree(value)}{self.tree(condition)}</piece>"
                    for value, condition in zip(values, conditions, strict=False)
                ]
                return f"<piecewise>{''.join(pieces)}<otherwise>{self.tree(values[-1])}</otherwise></piecewise>"
        raise AssertionError(expression)

    def sum(self, terms: tuple[tuple[int, Expression], ...]) -> str:
        if len(terms) == 2 and terms[0][0] > 0 > terms[1][0]:
            return _apply("minus", *(self.tree(term) for _, term in terms))
        found = [self.tree(term) if sign > 0 else _apply("minus", self.tree(term)) for sign, term in terms]
        return found[0] if len(found) == 1 else _apply("plus", *found)

    def product(self, factors: tuple[tuple[int, Expression], ...]) -> str:
        above = [self.tree(factor) for exponent, factor in factors if exponent > 0]
        below = [self.tree(factor) for exponent, factor in factors if exponent < 0]
        top, bottom = (one[0] if len(one) == 1 else _apply("times", *one) for one in (above, below))
        return _apply("divide", top, bottom) if below else top


def _apply(operator: str, *arguments: str) -> str:
    return f"<apply><{operator}/>{''.join(arguments)}</apply>"


def _decimal(value: Fraction) -> str:
    """A number as an attribute: the decimal it is, or the nearest double."""
    text = str(Number(abs(value)))
    return repr(float(value)) if text.startswith("(") else f"{'-' if value < 0 else ''}{text}"


def _cn(value: Fraction) -> str:
    text = _decimal(value)
    if value.denominator == 1 and text.isdecimal() and value < 2**31:
        return f'<cn type="integer"> {text} </cn>'
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f'<cn type="e-notation"> {mantissa} <sep/> {int(exponent)} </cn>'
    return f"<cn> {text} </cn>"


def _just_after(condition: Condition) -> Condition:
    """A condition on the time that becomes true just after, since what is asked for at that time is before it."""
    match condition:
        case Comparison(">=", Symbol("t"), time) if (at := constant(time)) is not None and at > START:
            return Comparison(">", Symbol(TIME), time)
    return condition


def _later(first: Expression, every: Expression, count: int) -> Expression:
    return Sum(((1, first), (1, Product(((1, number(count)), (1, every))))))


def _order_matters(events: tuple[Event, ...]) -> bool:
    """Whether events set what others set or read."""
    for i, one in enumerate(events):
        for other in (*events[:i], *events[i + 1 :]):
            read = {name for value in other.set.values() for name in names(value)} | other.set.keys()
            if read & one.set.keys():
                return True
    return False
