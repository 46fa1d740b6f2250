"""Windows: outputs that tell what happened since the last measurement.

    increment(C)    how much C has changed          C(b) - C(a)
    integral(r)     how much a rate comes to        the integral of r from a to b
    mean(x)         the average of x                the same by the time b - a

a being the time of the last measurement of the output, or the start, and b that of the measurement.  Each is the
difference at two times of one *cumulated* quantity, which is a state that begins at zero for integrals; numbers and
parameters may multiply them, and several may be added.

Measured over windows of any length, such an output tells what its *rate* does at every time: what can be known, and
about how large quantities are, are questions about the model with rates for outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from odejet.errors import ModelError
from odejet.model.derivatives import derivative
from odejet.model.expressions import (
    TIME,
    WINDOWS,
    Condition,
    Expression,
    Function,
    Product,
    Sum,
    children,
    delays,
    names,
    switches,
)
from odejet.model.folding import folded

_PLACE = "increment, mean and integral are what happened since the last measurement, and stand in outputs only"


@dataclass(frozen=True)
class Part:
    """One window of an output: what it is of, with its sign and what it is multiplied by."""

    sign: int
    factors: tuple[tuple[int, Expression], ...]
    window: Function

    def times(self, expression: Expression) -> tuple[int, Expression]:
        """An expression with the sign and the factors, as a term of a sum."""
        if not self.factors:
            return self.sign, expression
        # An exponent of -1 cannot stand first.
        ordered = sorted(self.factors, key=lambda factor: -factor[0])
        first = ordered[:1] if ordered[0][0] > 0 else []
        return self.sign, Product((*first, (1, expression), *ordered[len(first) :]))


@dataclass(frozen=True)
class Output:
    """An output over windows: its parts, and of a mean what is added to it, which does not move."""

    parts: tuple[Part, ...]
    added: tuple[tuple[int, Expression], ...] = ()

    @property
    def is_mean(self) -> bool:
        return self.parts[0].window.name == "mean"


def windows(expression: Expression | Condition) -> Iterator[Function]:
    """Iterate over every window in an expression, outer ones before those inside them."""
    found = expression.__dict__.get("_windows")
    if found is None:
        own = (expression,) if isinstance(expression, Function) and expression.name in WINDOWS else ()
        found = expression.__dict__["_windows"] = (
            *own,
            *(window for part in children(expression) for window in windows(part)),
        )
    return iter(found)


Equations = Mapping[str, Mapping[str, Expression]]
"""By table and name."""


def check(equations: Equations, inputs: Mapping[str, object], events: Sequence[Expression | Condition]) -> None:
    """Refuse windows outside of outputs, and in outputs what is no sum of them."""
    states, outputs = equations["states"], equations["outputs"]
    elsewhere: list[tuple[str, Expression | Condition]] = [("an event", part) for part in events]
    for table in ("states", "initial", "before", "expressions"):
        elsewhere += [(f"[{table}] {name}", value) for name, value in equations[table].items()]
    for where, value in elsewhere:
        if any(True for _ in windows(value)):
            raise ModelError(f"{where}: {_PLACE}")
    for name, value in outputs.items():
        if any(True for _ in windows(value)):
            try:
                for part in read(value, {TIME, *states, *inputs}).parts:
                    _check_part(part.window, states, inputs)
            except ModelError as error:
                raise ModelError(f"[outputs] {name}: {error}") from None


def _check_part(window: Function, states: Mapping[str, Expression], inputs: Mapping[str, object]) -> None:
    used = set(names(window.argument))
    if any(True for _ in windows(window.argument)):
        raise ModelError(f"{window} has a window within another; write one state for the inner one")
    if window.name != "increment":
        return
    if not used & {TIME, *states, *inputs}:
        raise ModelError(f"{window} never changes, since it holds parameters only; name a state")
    if driven := used & inputs.keys():
        raise ModelError(
            f"{window} holds the input '{min(driven)}', whose changes are not known as equations; "
            "use integral(rate) or mean(...)"
        )
    if switches(window.argument) or any(True for _ in delays(window.argument)):
        raise ModelError(
            f"{window} switches or looks back; take the increment of a state that is this, or integral(rate)"
        )


def read(expression: Expression, moving: set[str]) -> Output:
    """Return an output as windows and what is added to them; `moving` are the names of all that changes in time."""
    parts: list[Part] = []
    added: list[tuple[int, Expression]] = []
    for sign, factors, term in _terms(1, (), expression):
        if isinstance(term, Function) and term.name in WINDOWS:
            parts.append(Part(sign, factors, term))
        elif any(True for _ in windows(term)):
            raise ModelError(f"'{term}' is no multiple of a window; only numbers and parameters may multiply one")
        else:
            added.append(Part(sign, factors, Function("mean", term)).times(term))
    for part in parts:
        for _, factor in part.factors:
            if moved := moving.intersection(names(factor)):
                raise ModelError(
                    f"'{part.window}' is multiplied by '{min(moved)}', which changes; "
                    "only numbers and parameters may multiply a window"
                )
    kinds = {part.window.name == "mean" for part in parts}
    if len(kinds) > 1:
        raise ModelError("a mean is added to what is no mean; make them two outputs")
    if added and (not all(kinds) or any(moving.intersection(names(term)) for _, term in added)):
        raise ModelError(
            f"'{Sum(tuple(added))}' is added to a window; put it inside, as in increment(C + b*t) or mean(x + b)"
        )
    return Output(tuple(parts), tuple(added))


Factors = tuple[tuple[int, Expression], ...]


def _terms(sign: int, factors: Factors, expression: Expression) -> Iterator[tuple[int, Factors, Expression]]:
    """Yield the terms of an expression, each with its sign and its factors, products of sums multiplied out."""
    match expression:
        case Sum(terms):
            for own, term in terms:
                yield from _terms(sign * own, factors, term)
        case Product(parts):
            holding = [i for i, (_, part) in enumerate(parts) if any(True for _ in windows(part))]
            if len(holding) == 1 and parts[holding[0]][0] > 0:
                i = holding[0]
                yield from _terms(sign, (*factors, *parts[:i], *parts[i + 1 :]), parts[i][1])
            else:
                yield sign, factors, expression
        case _:
            yield sign, factors, expression


# --- rates ---


def rate(window: Function, states: Mapping[str, Expression]) -> Expression:
    """Return the rate of what a window cumulates."""
    if window.name != "increment":
        return window.argument
    terms: list[tuple[int, Expression]] = []
    for name in dict.fromkeys(names(window.argument)):
        if name == TIME or name in states:
            slope = folded(derivative(window.argument, name))
            terms.append((1, slope if name == TIME else Product(((1, slope), (1, states[name])))))
    return folded(Sum(tuple(terms)))


def unfelt_states(equations: Equations, events: Sequence[Expression | Condition]) -> tuple[str, ...]:
    """Return the states of which only increments are seen: where they begin makes no difference to anything."""
    states, outputs = equations["states"], equations["outputs"]
    if not any(True for value in outputs.values() for _ in windows(value)):
        return ()
    seen = {name for value in (*states.values(), *equations["initial"].values(), *events) for name in names(value)}
    found: dict[str, bool] = {}
    for value in outputs.values():
        inside = list(windows(value))
        counted = {name for window in inside if window.name == "increment" for name in names(window.argument)}
        felt = {name for window in inside for name in names(rate(window, states))}
        outside = set(names(value)) - counted
        for name in counted & states.keys():
            found[name] = found.get(name, True) and name not in felt
        seen |= felt | outside
    return tuple(name for name, alone in found.items() if alone and name not in seen)
