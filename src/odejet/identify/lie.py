"""Lie: derivatives of functions of states and parameters along the solutions of a model, as short sums of products.

What can be known of one time can be known of all, so with a function its time derivative is identifiable too.  Where
inputs are generic and rates are linear in them, f + g_1 u_1 + g_2 u_2 + ..., so are the derivatives along f and along
each g_i by themselves.  Terms of known quantities alone, and known common factors, tell nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from odejet.budget import Budget
from odejet.model import Model
from odejet.model.expressions import Expression, Number, Power, Product, Sum, Symbol, names, number

SHORT, LONG = (3, 6), (6, 60)
"""Derivatives that are tried, and terms of each: longer ones than the first are nothing a person would write."""

MOST = 60
"""Functions that are returned."""

PRODUCT = 1e4
"""Operations, in nanoseconds, of the derivative of a term by a term of a rate."""

MOST_PRODUCTS, HIGHEST = 2000, 6
"""Products of terms that are formed at once, and powers."""

Monomial = frozenset[tuple[Expression, int]]
"""A product of powers of symbols, and of sums with negative powers."""

Terms = dict[Monomial, Fraction]


class _NoSumOfProducts(Exception):
    """Functions, roots, or inputs that do not enter linearly."""


def derivatives(
    model: Model,
    functions: Sequence[Expression],
    known: Sequence[str],
    free_inputs: bool,
    limits: tuple[int, int] = SHORT,
    budget: Budget | None = None,
) -> list[str]:
    """Functions and their derivatives up to some order and length that the budget allows, one order after the other."""
    order, longest = limits
    budget = budget or Budget()
    try:
        fields = _fields(model, free_inputs)
    except _NoSumOfProducts:
        fields = []
    plain = {*known, *model.fixed}
    found: list[str] = []
    current = [terms for function in functions if (terms := _short(function))]
    for _ in range(order + 1):
        reduced = [new for terms in current if (new := _reduced(terms, plain, longest))]
        inside = {*model.states, *model.parameters, *model.fixed}
        texts = [_text(terms) for terms in reduced if set(_names(terms)) <= inside and len(set(_names(terms))) > 1]
        found += [text for text in texts if text not in found]
        if budget.over:
            break
        current = sorted(
            (new for terms in current for field in fields if (new := _along(terms, field, budget))), key=len
        )
        del current[MOST:]
        if len(found) > MOST:
            break
    return found[:MOST]


def simplified(text: str, expression: Expression) -> str:
    """The sum of products that an expression is, if that is shorter; empty if it is a number."""
    terms = _short(expression)
    if terms is None:
        return text
    return min(text, _text(terms), key=len) if any(terms) else ""


def _short(function: Expression) -> Terms | None:
    try:
        return _expanded(function)
    except _NoSumOfProducts:
        return None


def _fields(model: Model, free_inputs: bool) -> list[Mapping[str, Terms]]:
    """The rates without inputs, and the factor of every input."""
    fields: dict[str, dict[str, Terms]] = {"": {}}
    for state, rate in model.states.items():
        for monomial, coefficient in _expanded(rate).items():
            inputs = [(a, e) for a, e in monomial if set(names(a)) & set(model.inputs)]
            if inputs and not (free_inputs and len(inputs) == 1 and isinstance(inputs[0][0], Symbol)):
                raise _NoSumOfProducts
            if inputs and inputs[0][1] != 1:
                raise _NoSumOfProducts
            own = fields.setdefault(str(inputs[0][0]) if inputs else "", {})
            own.setdefault(state, {})[monomial - set(inputs)] = coefficient
    return list(fields.values())


def _expanded(expression: Expression) -> Terms:
    match expression:
        case Number(value):
            return {frozenset(): value} if value else {}
        case Symbol():
            return {frozenset({(expression, 1)}): Fraction(1)}
        case Sum(terms):
            total: Terms = {}
            for sign, term in terms:
                _add(total, _expanded(term), Fraction(sign))
            return total
        case Product(factors):
            product: Terms = {frozenset(): Fraction(1)}
            for exponent, factor in factors:
                product = _times(product, _power(factor, exponent))
            return product
        case Power(base, Number(value)) if value.denominator == 1 and value <= HIGHEST:
            return _power(base, int(value))
        case Power(base, Sum(((-1, Number(value)),))) if value.denominator == 1 and value <= HIGHEST:
            return _power(base, -int(value))
    raise _NoSumOfProducts


def _power(base: Expression, exponent: int) -> Terms:
    own = _expanded(base)
    if exponent < 0 and len(own) != 1:
        return {frozenset({(base, exponent)}): Fraction(1)}
    if exponent < 0:
        ((monomial, coefficient),) = own.items()
        own = {frozenset((a, -e) for a, e in monomial): 1 / coefficient}
    total: Terms = {frozenset(): Fraction(1)}
    for _ in range(abs(exponent)):
        total = _times(total, own)
    return total


def _add(total: Terms, terms: Terms, factor: Fraction) -> None:
    for monomial, coefficient in terms.items():
        value = total.pop(monomial, Fraction(0)) + factor * coefficient
        if value:
            total[monomial] = value


def _times(left: Terms, right: Terms) -> Terms:
    if len(left) * len(right) > MOST_PRODUCTS:
        raise _NoSumOfProducts
    total: Terms = {}
    for one, a in left.items():
        for other, b in right.items():
            powers = dict(one)
            for atom, e in other:
                powers[atom] = powers.get(atom, 0) + e
            _add(total, {frozenset((atom, e) for atom, e in powers.items() if e): a}, b)
    return total


def _along(terms: Terms, field: Mapping[str, Terms], budget: Budget) -> Terms | None:
    """The derivative of a sum of products along a field; None where it is zero or too long."""
    if not budget.spend(PRODUCT * len(terms) * max(map(len, field.values()), default=0)):
        return None
    try:
        total = _derived(terms, field)
    except _NoSumOfProducts:
        return None
    return total or None


def _derived(terms: Terms, field: Mapping[str, Terms]) -> Terms:
    total: Terms = {}
    for monomial, coefficient in terms.items():
        for atom, e in monomial:
            rate = field.get(atom.name, {}) if isinstance(atom, Symbol) else _derived(_expanded(atom), field)
            if rate:
                slope: Terms = {frozenset({(atom, -1)}): Fraction(e)}
                _add(total, _times(_times({monomial: coefficient}, slope), rate), Fraction(1))
    return total


def _names(terms: Terms) -> Iterator[str]:
    return (name for monomial in terms for atom, _ in monomial for name in names(atom))


def _reduced(terms: Terms, known: set[str], longest: int) -> Terms | None:
    """The terms that are not known, without common factors that are; None where there are none or too many."""
    kept = {m: c for m, c in terms.items() if not all(set(names(atom)) <= known for atom, _ in m)}
    if not 0 < len(kept) <= longest:
        return None
    for atom, _ in next(iter(kept)):
        if set(names(atom)) <= known:
            powers = [dict(m).get(atom, 0) for m in kept]
            if all(e > 0 for e in powers) or all(e < 0 for e in powers):
                least = min(powers, key=abs)
                factor: Terms = {frozenset({(atom, -least)}): Fraction(1)}
                kept = _times(kept, factor)
    if len(kept) == 1:
        return dict.fromkeys(kept, Fraction(1))
    sign = -1 if 2 * sum(c < 0 for c in kept.values()) > len(kept) else 1
    return {m: sign * c for m, c in kept.items()}


def _text(terms: Terms) -> str:
    ordered = sorted(terms.items(), key=lambda term: (term[1] < 0, len(term[0]), _product(*term)))
    signed = [(1 if c > 0 else -1, _product(m, c)) for m, c in ordered]
    text = "".join((" - " if sign < 0 else " + ") + product for sign, product in signed)
    return text.removeprefix(" + ") if text.startswith(" + ") else "-" + text.removeprefix(" - ")


def _product(monomial: Monomial, coefficient: Fraction) -> str:
    def factor(atom: Expression, e: int) -> str:
        base = str(atom) if isinstance(atom, Symbol) else f"({atom})"
        return base if e == 1 else f"{base}**{e}"

    ordered = sorted(monomial, key=lambda power: str(power[0]))
    above = [factor(atom, e) for atom, e in ordered if e > 0]
    below = [factor(atom, -e) for atom, e in ordered if e < 0]
    size = abs(coefficient)
    if size.numerator != 1 or not above:
        above.insert(0, str(number(Fraction(size.numerator))))
    if size.denominator != 1:
        below.append(str(number(Fraction(size.denominator))))
    divisor = "/(" + "*".join(below) + ")" if len(below) > 1 else "/" + below[0] if below else ""
    return "*".join(above) + divisor
