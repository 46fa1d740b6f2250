"""Ratios: coefficients of input-output equations as expressions, with all parameters as symbols.

Ratios of coefficients of one equation are identifiable, if an experiment determines them, and all of them together
generate what is identifiable of the parameters.  The shortest are written out: products of the factors that are not
known, each with small fractions as coefficients.  These are read back from residues modulo one prime, and compared
with an elimination at another point modulo another prime.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from flint import Ordering, nmod_mpoly, nmod_mpoly_ctx

from odejet.budget import Budget
from odejet.identify import wronskian
from odejet.identify.globally import PRIME
from odejet.identify.local import Problem
from odejet.identify.projection import Key, Plan, Projection, refusal
from odejet.jets.modular import PRIMES, Field

MOST_MONOMIALS = 100
"""Equations of more monomials are not written with all parameters as symbols."""

MOST_TERMS = 300
"""Longer coefficients are left out."""

LONGEST = 24
"""Terms of a ratio, in all its factors."""

COMMON = 1e3
"""Operations, in nanoseconds, for the common factor of two coefficients, for every pair of their terms."""

MOST = 40
"""Ratios that are returned, the shortest."""

REFERENCES = 3
"""Coefficients, the shortest of an equation, that all others are compared with."""

NUMERATOR, DENOMINATOR = 1000, 100
"""Coefficients are smaller; a residue without meaning is such a fraction with a probability below 1e-4."""


@dataclass(frozen=True)
class Factor:
    """A polynomial with whole coefficients, by the exponents of its monomials, and its power in a ratio."""

    terms: Mapping[tuple[int, ...], int]
    power: int

    def at(self, values: Sequence[int], prime: int) -> int:
        total = 0
        for exponents, c in self.terms.items():
            for value, e in zip(values, exponents, strict=True):
                c = c * pow(value, e, prime) % prime
            total += c
        return total % prime

    def inside(self, names: Sequence[str]) -> set[str]:
        return {name for e in self.terms for name, power in zip(names, e, strict=True) if power}


@dataclass(frozen=True)
class Written:
    """The ratio of two coefficients of an equation, but for a number."""

    keys: tuple[Key, Key]
    factors: tuple[Factor, ...]

    def at(self, values: Sequence[int], prime: int) -> int:
        product = 1
        for factor in self.factors:
            product = product * pow(factor.at(values, prime), factor.power, prime) % prime
        return product

    def text(self, names: Sequence[str], known: Collection[str]) -> str:
        """Without the factors that are known; empty where nothing is left."""
        factors = [f for f in self.factors if not f.inside(names) <= set(known)]
        above, below = (
            sorted((_power(f, names) for f in factors if f.power * sign > 0), key=lambda text: (text[0] == "(", text))
            for sign in (1, -1)
        )
        if not factors:
            return ""
        if len(above) < len(below):  # the inverse is as good
            above, below = below, above
        if len(factors) == 1 and abs(factors[0].power) == 1:
            return _sum(factors[0], names)
        return "/".join(["*".join(above), *below])


def find(problem: Problem, known: Collection[str], seed: int, budget: Budget) -> list[str]:
    """Ratios as expressions in the parameters of a model, the shortest first; none where they do not tell for sure."""
    model = problem.model
    if refusal(problem) or problem.experiments > 1 or problem.unlimited:
        return []
    first = _at_random(problem, PRIME, None, seed, budget)
    lengths = [len(top) for top in first.tops]
    if not first.is_prime or max(lengths) > MOST_MONOMIALS or wronskian.needed(first, problem, 1, budget) is None:
        return []
    names = [*model.parameters, *(list(model.states)[i] for i in problem.still), *_laws(first)]
    every = range(len(first.parameters))
    told = problem, PRIME, first.parameters, every, (), first.found, None, seed, budget
    whole = Projection(*told)
    whole.run()
    other = _at_random(problem, PRIMES[0], first.found, seed + 1, budget)
    right = [ratio for ratio in _ratios(whole, budget) if _agrees(ratio, other)]
    texts = dict.fromkeys(text for ratio in right if (text := ratio.text(names, known)))
    return sorted(texts, key=len)[:MOST]


def _at_random(problem: Problem, prime: int, plan: Plan | None, seed: int, budget: Budget) -> Projection:
    """An elimination with numbers for all parameters."""
    point = problem.at_random(prime, seed, 1).point
    parameters = [*point.parameters, *(point.states[i] for i in problem.still)]
    if plan:
        parameters += [law.value(point.states, Field(prime)) for law in plan.laws]
    projection = Projection(problem, prime, parameters, plan=plan, seed=seed, budget=budget)
    projection.run()
    return projection


def _laws(projection: Projection) -> Iterator[str]:
    """What is conserved, in terms of states."""
    states = list(projection.problem.model.states)
    for law in projection.laws:
        terms = "".join(f" {'-' if a < 0 else '+'} {abs(a)}*{states[i]}" for i, a in law.others)
        yield f"({states[law.state]}{terms})".replace(" 1*", " ")


def _ratios(projection: Projection, budget: Budget) -> Iterator[Written]:
    """Those of every equation, to the shortest of its coefficients."""
    size = len(projection.symbolic)
    names = tuple(f"p{i}" for i in range(size))
    context = nmod_mpoly_ctx.get(names, modulus=projection.prime, ordering=Ordering.degrevlex)
    equations: dict[int, list[tuple[Key, nmod_mpoly]]] = {}
    for key, parts in projection.coefficients().items():
        if len(parts) <= MOST_TERMS:
            equations.setdefault(key[0], []).append((key, context.from_dict(parts)))
    for own in equations.values():
        own.sort(key=lambda pair: len(pair[1]))
        for place, (one, below) in enumerate(own[:REFERENCES]):
            for key, above in own[place + 1 :]:
                budget.check(COMMON * len(above) * len(below))
                factors = _factors(above, below, projection.prime)
                if factors and sum(len(f.terms) for f in factors) <= LONGEST:
                    yield Written((key, one), factors)


def _factors(above: nmod_mpoly, below: nmod_mpoly, prime: int) -> tuple[Factor, ...] | None:
    """Irreducible factors of a ratio; None where it is long, or where coefficients are no small numbers."""
    shared = above.gcd(below)
    found: list[Factor] = []
    for polynomial, power in ((above // shared, 1), (below // shared, -1)):
        if len(polynomial) > MOST_TERMS:
            return None
        for factor, multiple in polynomial.factor()[1]:
            whole = _whole({tuple(map(int, e)): int(c) for e, c in factor.terms()}, prime)
            if whole is None:
                return None
            found.append(Factor(whole, power * int(multiple)))
    return tuple(found)


def _whole(terms: Mapping[tuple[int, ...], int], prime: int) -> dict[tuple[int, ...], int] | None:
    """Whole coefficients without a common factor, up to a number; None where they are not small."""
    inverse = pow(next(iter(terms.values())), -1, prime)
    fractions = {e: _small(c * inverse % prime, prime) for e, c in terms.items()}
    found = {e: c for e, c in fractions.items() if c is not None}
    if len(found) < len(terms):
        return None
    common = lcm(*(c.denominator for c in found.values()))
    whole = {e: int(c * common) for e, c in found.items()}
    divisor = gcd(*whole.values())
    sign = -1 if 2 * sum(c < 0 for c in whole.values()) > len(whole) else 1
    return {e: sign * c // divisor for e, c in whole.items()}


def _small(residue: int, prime: int) -> Fraction | None:
    for below in range(1, DENOMINATOR):
        above = residue * below % prime
        above -= prime if 2 * above > prime else 0
        if abs(above) < NUMERATOR:
            return Fraction(above, below)
    return None


def _agrees(ratio: Written, other: Projection) -> bool:
    """Whether a ratio is right at another point modulo another prime, but for a number, which is small too."""
    found = {key: parts[()] for key, parts in other.coefficients().items()}
    above, below = (found.get(key, 0) for key in ratio.keys)
    try:
        value = ratio.at([int(x) for x in other.parameters], other.prime)
        rest = above * pow(below * value, -1, other.prime) % other.prime
    except ValueError:
        return False
    return _small(rest, other.prime) is not None


def _power(factor: Factor, names: Sequence[str]) -> str:
    text, power = _sum(factor, names), abs(factor.power)
    text = f"({text})" if len(factor.terms) > 1 else text
    return text if power == 1 else f"{text}**{power}"


def _sum(factor: Factor, names: Sequence[str]) -> str:
    text = ""
    for exponents, c in sorted(factor.terms.items(), key=lambda term: term[1] < 0):
        powers = [name if e == 1 else f"{name}**{e}" for name, e in zip(names, exponents, strict=True) if e]
        size = [str(abs(c))] if abs(c) != 1 or not powers else []
        text += (" - " if c < 0 else " + ") + "*".join([*size, *powers])
    return text.removeprefix(" + ")
