"""Code: expressions in the words of programming languages.

A `Language` says how numbers, names, powers and functions are written; what it cannot say is refused by name.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from odejet.errors import ModelError
from odejet.model.expressions import (
    Choice,
    Comparison,
    Function,
    Logic,
    Number,
    Piecewise,
    Power,
    Product,
    Sum,
    Symbol,
    fresh,
)


@dataclass(frozen=True)
class Language:
    """How a programming language writes what models are made of."""

    name: str
    reserved: frozenset[str]
    functions: Mapping[str, str]  # of odejet's functions and choices -> how they are called
    power: Callable[[str, str], str]
    conditional: Callable[[str, str, str], str]  # condition, value if it holds, value if not
    words: Mapping[str, str]  # and, or, not
    ascii: bool = False

    def identifiers(self, names: Iterable[str]) -> dict[str, str]:
        """An identifier for every name, no two alike and none that the language has taken."""
        found: dict[str, str] = {}
        for name in names:
            plain = (
                re.sub(r"[^A-Za-z0-9_]", lambda letter: f"_u{ord(letter.group()):04x}", name) if self.ascii else name
            )
            plain = plain.strip("_") or "x" if self.ascii else plain
            plain = f"{plain}_v" if plain in self.reserved else plain
            found[name] = fresh(plain, set(found.values()))
        return found

    def number(self, value: Fraction) -> str:
        text = repr(float(value))
        return f"({text})" if value < 0 else text

    def write(self, expression: Any, names: Mapping[str, str]) -> str:
        """Write an expression or a condition, its names replaced."""

        def of(part: Any) -> str:
            return self.write(part, names)

        def inner(part: Any) -> str:
            return f"({of(part)})" if isinstance(part, Sum | Product | Comparison | Logic) else of(part)

        match expression:
            case Number(value):
                return self.number(value)
            case Symbol(name):
                return names[name]
            case Sum(terms):
                text = "".join(f" {'-' if sign < 0 else '+'} {inner(term)}" for sign, term in terms)
                return text[3:] if terms[0][0] > 0 else f"-{text[3:]}"
            case Product(factors):
                text = "".join(f"{'*' if exponent > 0 else '/'}{inner(factor)}" for exponent, factor in factors)
                return text[1:] if factors[0][0] > 0 else f"1.0{text}"
            case Power(base, exponent):
                return self.power(of(base), of(exponent))
            case Function(name, argument):
                return f"{self._function(name)}({of(argument)})"
            case Choice(name, arguments):
                return f"{self._function(name)}({', '.join(map(of, arguments))})"
            case Comparison(relation, left, right):
                return f"{inner(left)} {relation} {inner(right)}"
            case Logic("not", (part,)):
                return f"{self.words['not']}({of(part)})"
            case Logic(word, parts):
                return f" {self.words[word]} ".join(f"({of(part)})" for part in parts)
            case Piecewise(values, conditions):
                text = of(values[-1])
                for one, condition in reversed(list(zip(values, conditions, strict=False))):
                    text = self.conditional(of(condition), of(one), text)
                return text
        raise ModelError(f"{expression} cannot be written in {self.name}")

    def _function(self, name: str) -> str:
        if name not in self.functions:
            raise ModelError(f"the function {name} cannot be written in {self.name}")
        return self.functions[name]


_ELEMENTARY = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")

PYTHON = Language(
    "Python",
    frozenset({*keyword.kwlist, "np", "t", "y", "p", "solve_ivp", "PPoly", "min", "max", "abs"}),
    {name: f"np.{name}" for name in (*_ELEMENTARY, "abs", "floor", "ceil", "sign")} | {"min": "min", "max": "max"},
    lambda base, exponent: f"({base})**({exponent})",
    lambda condition, yes, no: f"({yes} if {condition} else {no})",
    {"and": "and", "or": "or", "not": "not "},
)

_STAN_WORDS = (
    "for in while repeat until if then else true false return break continue void real int vector row_vector matrix "
    "array complex functions data parameters model transformed generated quantities lower upper offset multiplier "
    "target var fvar struct typedef auto double float long short bool char class const static template new delete "
    "this namespace using operator public private switch case default do goto enum extern inline register signed "
    "sizeof union unsigned volatile y t theta e pi sqrt2 log2 log10 gamma beta lambda normal exponential poisson"
)

STAN = Language(
    "Stan",
    frozenset(_STAN_WORDS.split()),
    {name: name for name in (*_ELEMENTARY, "floor", "ceil")} | {"abs": "abs", "min": "fmin", "max": "fmax"},
    lambda base, exponent: f"pow({base}, {exponent})",
    lambda condition, yes, no: f"({condition} ? {yes} : {no})",
    {"and": "&&", "or": "||", "not": "!"},
    ascii=True,
)

CASADI = Language(
    "CasADi",
    PYTHON.reserved | {"ca", "x"},
    {name: f"ca.{name}" for name in (*_ELEMENTARY, "floor", "ceil", "sign")}
    | {"abs": "ca.fabs", "min": "ca.fmin", "max": "ca.fmax"},
    PYTHON.power,
    lambda condition, yes, no: f"ca.if_else({condition}, {yes}, {no})",
    # Comparisons of symbols are one or zero, and have no words between them.
    {"and": "*", "or": "+", "not": "ca.logic_not"},
)

_MODELICA_WORDS = (
    "algorithm and annotation assert block break class connect connector constant constrainedby der discrete each else "
    "elseif elsewhen encapsulated end enumeration equation expandable extends external false final flow for function "
    "if import impure in initial inner input loop model not operator or outer output package parameter partial "
    "protected public pure record redeclare replaceable return stream then true type when while within time Real "
    "Integer Boolean String exp log sin cos tan sinh cosh tanh sqrt abs floor ceil sign min max sample pre edge reinit "
    "terminate"
)

MODELICA = Language(
    "Modelica",
    frozenset(_MODELICA_WORDS.split()),
    {name: name for name in (*_ELEMENTARY, "abs", "floor", "ceil", "sign", "min", "max")},
    lambda base, exponent: f"({base})^({exponent})",
    lambda condition, yes, no: f"(if {condition} then {yes} else {no})",
    {"and": "and", "or": "or", "not": "not "},
    ascii=True,
)
