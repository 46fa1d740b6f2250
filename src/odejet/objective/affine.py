"""Affine: scales and offsets, parameters that only stretch or shift what is measured.

    y = scale * g(x, p, t) + offset        log y = log(scale) + log g(x, p, t)

Given all other unknowns, the best scale and offset of an output are those of a linear regression, so that a search need
not look for them.  They are recognised by the form of the output: such a parameter stands in one output, there as a
factor of all that is not an offset or as a summand, and nowhere else in the model or in the noise, unless this depends
on the output as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from odejet.model import Model
from odejet.model.expressions import Expression, Product, Sum, Symbol, names
from odejet.problem.conditions import Condition
from odejet.problem.measurements import Measurements
from odejet.problem.unknowns import Unknowns


@dataclass(frozen=True)
class Affine:
    """The scales and offsets of one output, as entries of z."""

    output: int
    stretched: tuple[tuple[int, int], ...]  # an experiment and its scale
    shifted: tuple[tuple[int, int], ...]  # an experiment and its offset
    negative: frozenset[int] = frozenset()  # offsets that are subtracted
    noisy: bool = False  # whether its noise depends on it

    @property
    def scales(self) -> tuple[int, ...]:
        return tuple(sorted({entry for _, entry in self.stretched}))

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(sorted({entry for _, entry in self.shifted}))

    def sign(self, offset: int) -> float:
        return -1.0 if offset in self.negative else 1.0


def affine(conditions: Sequence[Condition], unknowns: Unknowns, measurements: Measurements) -> tuple[Affine, ...]:
    """The scales and offsets of every output whose squares are compared."""
    found = []
    elsewhere = {
        entry for block in measurements.blocks if block.density for entry in block.density.places.values()
    } | _shared_by_outputs(conditions, unknowns)
    moving = _moving_entries(conditions, unknowns)
    for number, output in enumerate(measurements.outputs):
        laws = [block.density for block in measurements.blocks if block.output == output and block.density is not None]
        if all(one.of_squares for one in laws):
            logarithmic = bool(measurements.logarithmic[number] or (laws and laws[0].law.logarithm))
            own = _of_output(number, output, conditions, unknowns, logarithmic, elsewhere | moving)
            if own.scales or own.offsets:
                found.append(replace(own, noisy=any(output in names(one.scale) for one in laws)))
    return tuple(found)


def _of_output(
    number: int,
    output: str,
    conditions: Sequence[Condition],
    unknowns: Unknowns,
    logarithmic: bool,
    taken: set[int],
) -> Affine:
    scales: list[tuple[int, int]] = []  # with their experiments
    offsets: list[tuple[int, int]] = []
    signs: dict[int, set[int]] = {}  # of the offsets
    others: set[int] = set()  # what enters this output in another way in some experiment
    for e, (condition, places) in enumerate(zip(conditions, unknowns.places, strict=True)):
        if output not in condition.experiment.outputs:
            continue
        expression = condition.model.outputs[output]
        free = [n for n in dict.fromkeys(names(expression)) if n in condition.model.parameters and n in places]
        free = [name for name in free if places[name] not in taken]
        scale, shifts = _form(expression, free, logarithmic)
        if not condition.cumulated.outputs.get(output, True) and shifts:
            scale, shifts = None, {}  # what is added to a rate makes more of a longer window
        scales += [(e, places[scale])] if scale is not None else []
        offsets += [(e, places[name]) for name in shifts]
        for name, sign in shifts.items():
            signs.setdefault(places[name], set()).add(sign)
        others |= {places[name] for name in free if name != scale and name not in shifts}
    # One that is a scale here and an offset, or something else, there is neither.
    others |= {entry for entry, both in signs.items() if len(both) > 1}
    stretching, shifting = {entry for _, entry in scales}, {entry for _, entry in offsets}
    shifts_left = tuple(pair for pair in offsets if pair[1] not in stretching | others)
    # A scale leaves an offset alone, so that what is to be stretched is known only without one.
    whole = len(shifts_left) == len(offsets)
    return Affine(
        number,
        tuple(pair for pair in scales if whole and pair[1] not in shifting | others),
        shifts_left,
        frozenset(entry for entry, both in signs.items() if both == {-1}),
    )


def _shared_by_outputs(conditions: Sequence[Condition], unknowns: Unknowns) -> set[int]:
    """Entries that stand in more than one output."""
    owner: dict[int, str] = {}
    several: set[int] = set()
    for condition, places in zip(conditions, unknowns.places, strict=True):
        for output in condition.experiment.outputs:
            for name in set(names(condition.model.outputs[output])) & set(places):
                if owner.setdefault(places[name], output) != output:
                    several.add(places[name])
    return several


def _moving_entries(conditions: Sequence[Condition], unknowns: Unknowns) -> set[int]:
    """Entries that move the solution of some experiment, though they may be mere offsets in another."""
    models = {id(condition.model): condition.model for condition in conditions}
    moving = {key: _moving(model) for key, model in models.items()}
    pairs = zip(conditions, unknowns.places, strict=True)
    return {places[name] for condition, places in pairs for name in moving[id(condition.model)] if name in places}


def _moving(model: Model) -> set[str]:
    """Names that do anything but to outputs, or have more than one value."""
    found = {*model.before, *(name for event in model.events for name in event.set)}
    for table in (model.states, model.initial, model.before, model.inputs):
        found |= {name for expression in table.values() if expression is not None for name in names(expression)}
    return found | {name for event in model.events for part in event.expressions() for name in names(part)}


def _form(expression: Expression, free: Sequence[str], logarithmic: bool) -> tuple[str | None, dict[str, int]]:
    """The scale of an output and its offsets with their signs, if it has any.

    In a logarithm all of them must be there: beside a part that stays, neither stands for much.
    """
    terms = list(expression.terms) if isinstance(expression, Sum) else [(1, expression)]
    offsets = {
        term.name: sign
        for sign, term in terms
        if isinstance(term, Symbol) and term.name in free and _count(expression, term.name) == 1
    }
    rest = [(sign, term) for sign, term in terms if not (isinstance(term, Symbol) and term.name in offsets)]
    if logarithmic and (not rest or any(sign < 0 for sign, _ in terms)):
        return None, {}
    for name in free:
        if len(rest) == 1 and name not in offsets and _is_factor(name, rest[0][1]):
            return name, offsets
    return None, {} if logarithmic else offsets


def _is_factor(name: str, term: Expression) -> bool:
    """Whether a term is a name times something without it."""
    if not isinstance(term, Product):
        return False
    own = [(exponent, factor) for exponent, factor in term.factors if name in names(factor)]
    return own == [(1, Symbol(name))]


def _count(expression: Expression, name: str) -> int:
    return sum(other == name for other in names(expression))
