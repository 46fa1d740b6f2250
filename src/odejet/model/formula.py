"""Formula: an expression as a list of operations, each on results of earlier ones, for a kernel to run.

Switches are operations like others: conditions are one or zero, and `select` takes one of two values by them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from odejet.model.expressions import FUNCTIONS, Choice, Comparison, Condition, Expression, Logic, Piecewise, evaluate

OPERATIONS = (
    *("number", "symbol", "add", "subtract", "multiply", "divide", "power", "negate"),
    *FUNCTIONS,
    *("abs", "min", "max", "floor", "ceil", "sign"),
    *("<", "<=", ">", ">=", "==", "!=", "and", "or", "not", "select"),
)
"""By number: what a kernel knows."""

_NUMBERS = {name: i for i, name in enumerate(OPERATIONS)}
NUMBER = _NUMBERS["number"]


@dataclass(frozen=True, eq=False)
class Formula:
    """Operations in order; the last one has the value of the expression."""

    code: np.ndarray  # (operations, 4): which, and of which results, or of which number or symbol
    numbers: np.ndarray


def formula(expression: Expression, symbols: Mapping[str, int], known: Mapping[str, float]) -> Formula:
    """The operations of an expression in symbols with these numbers and in names that are known."""
    recorder = _Recorder()
    values = {name: recorder.made("symbol", place) for name, place in symbols.items()}
    values |= {name: recorder.number(value) for name, value in known.items()}
    last = evaluate(expression, values, _Functions(recorder), recorder.number, recorder.switch)
    used = _used(recorder.operations, last.place)
    places = {old: new for new, old in enumerate(used)}
    code = np.zeros((len(used), 4), dtype=np.int64)
    for row, old in zip(code, used, strict=True):
        name, *operands = recorder.operations[old]
        held = name in ("number", "symbol")
        row[: 1 + len(operands)] = _NUMBERS[name], *(operands if held else [places[one] for one in operands])
    return Formula(code, np.array(recorder.numbers or [0.0]))


def _used(operations: Sequence[tuple[Any, ...]], last: int) -> list[int]:
    """The operations that the last one depends on, and itself."""
    needed, waiting = {last}, [last]
    while waiting:
        name, *operands = operations[waiting.pop()]
        new = [] if name in ("number", "symbol") else [one for one in operands if one not in needed]
        needed |= set(new)
        waiting += new
    return sorted(needed)


@dataclass(eq=False)
class _Recorder:
    """What has been computed so far; what is computed twice is there once."""

    operations: list[tuple[Any, ...]] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    known: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def made(self, name: str, *operands: int) -> _Result:
        key = name, *operands
        if key not in self.known:
            self.known[key] = len(self.operations)
            self.operations.append(key)
        return _Result(self, self.known[key])

    def number(self, value: float | Fraction) -> _Result:
        self.numbers.append(float(value))
        return self.made("number", len(self.numbers) - 1)

    def apply(self, name: str, *operands: _Result) -> _Result:
        return self.made(name, *(one.place for one in operands))

    def switch(self, switch: Choice | Piecewise | Condition, parts: Sequence[_Result]) -> _Result:
        match switch:
            case Choice(name) | Logic(name) if len(parts) == 1:
                return parts[0] if name in ("min", "max", "and", "or") else self.apply(name, *parts)
            case Choice(name) | Logic(name):
                return functools.reduce(functools.partial(self.apply, name), parts)
            case Comparison(relation):
                return self.apply(relation, *parts)
            case Piecewise(branches):
                values, conditions = parts[: len(branches)], parts[len(branches) :]
                chosen = values[-1]
                for holds, value in reversed(list(zip(conditions, values[:-1], strict=True))):
                    chosen = self.apply("select", holds, value, chosen)
                return chosen
        raise AssertionError(switch)


@dataclass(frozen=True, eq=False)
class _Result:
    """What an operation gives, in an arithmetic that records what is done with it."""

    recorder: _Recorder
    place: int

    def __neg__(self) -> _Result:
        return self.recorder.apply("negate", self)

    def __add__(self, other: _Result) -> _Result:
        return self.recorder.apply("add", self, other)

    def __sub__(self, other: _Result) -> _Result:
        return self.recorder.apply("subtract", self, other)

    def __mul__(self, other: _Result) -> _Result:
        return self.recorder.apply("multiply", self, other)

    def __truediv__(self, other: _Result) -> _Result:
        return self.recorder.apply("divide", self, other)

    def __pow__(self, other: _Result) -> _Result:
        return self.recorder.apply("power", self, other)


class _Functions:
    """The elementary functions, recorded."""

    def __init__(self, recorder: _Recorder) -> None:
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._recorder.apply, name)
