"""Algebraic rules: what they determine, where it enters them linearly.

A rule `0 = f` with one undetermined variable v in it, f = a v + b, says v = -b/a.  Several rules are solved one after
the other, each put into the rest.
"""

from __future__ import annotations

from odejet.errors import ModelError
from odejet.io.sbml.formulas import ONE, ZERO, negative, over, plus, times
from odejet.io.sbml.network import Network
from odejet.model.expressions import Expression, Product, Sum, Symbol, constant, names, substituted


def solve(network: Network, rules: list[Expression], unknown: set[str]) -> None:
    """Make every variable that algebraic rules determine a meaning."""
    left = {i + 1: network.now(rule) for i, rule in enumerate(rules)}
    solved: dict[str, Expression] = {}
    while left:
        place, name, value = _next(left, unknown - solved.keys(), network)
        del left[place]
        new = {name: value}
        left = {i: substituted(rule, new) for i, rule in left.items()}
        solved = {other: substituted(told, new) for other, told in solved.items()} | new
    _check_rest(network, unknown, solved)
    for name, value in solved.items():
        network.parameters.pop(name, None)
        network.assigned.pop(name, None)
        network.meanings[name] = value
    network.forget()


def _check_rest(network: Network, unknown: set[str], solved: dict[str, Expression]) -> None:
    """What could move but is left over stays as it begins, if it alone of the candidates begins with something."""
    rest = sorted(unknown - solved.keys())
    told = [name for name in solved if network.parameters.get(name) is not None or name in network.assigned]
    if rest and (told or any(network.parameters.get(name) is None for name in rest)):
        reason = f"they do not tell which of '{(told or list(solved))[0]}' and '{rest[0]}' they determine"
        raise ModelError(f"{network.where}: the algebraic rules are not supported: {reason}")


def _next(left: dict[int, Expression], unknown: set[str], network: Network) -> tuple[int, str, Expression]:
    """A rule, a variable in it and what that is: rules with the fewest variables first, and variables that begin with
    nothing."""
    where = network.where
    by_need = sorted(unknown, key=lambda name: (network.parameters.get(name) is not None, name))
    inside = {i: [name for name in by_need if name in set(names(rule))] for i, rule in left.items()}
    for place in sorted(left, key=lambda i: len(inside[i])):
        if not inside[place]:
            reason = "it determines no variable, since rules or reactions determine all that it speaks of"
            raise ModelError(f"{where}: algebraic rule {place} is not supported: {reason}")
        for name in inside[place]:
            found = affine(left[place], name)
            if found is not None and constant(found[0]) != 0:
                return place, name, over(negative(found[1]), found[0])
    place = min(left)
    reason = f"'{inside[place][0]}' does not enter it linearly"
    raise ModelError(f"{where}: algebraic rule {place} is not supported: {reason}")


def affine(expression: Expression, name: str) -> tuple[Expression, Expression] | None:
    """(a, b) with expression = a name + b and neither a nor b holding the name, or None."""
    if name not in set(names(expression)):
        return ZERO, expression
    match expression:
        case Symbol():
            return ONE, ZERO
        case Sum(terms):
            parts = [(sign, affine(term, name)) for sign, term in terms]
            if any(part is None for _, part in parts):
                return None
            signed = [tuple(one if sign > 0 else negative(one) for one in part) for sign, part in parts if part]
            return plus(*(a for a, _ in signed)), plus(*(b for _, b in signed))
        case Product(factors):
            slope, rest = None, []
            for exponent, factor in factors:
                if name not in set(names(factor)):
                    rest.append((exponent, factor))
                elif slope is not None or exponent < 0 or (slope := affine(factor, name)) is None:
                    return None
            assert slope is not None
            scale: Expression = ONE
            for exponent, factor in rest:
                scale = times(scale, factor) if exponent > 0 else over(scale, factor)
            return times(slope[0], scale), times(slope[1], scale)
    return None
