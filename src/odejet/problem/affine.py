"""Affine: scales and offsets, parameters that only stretch or shift what is measured.

    y = scale * g(x, p, t) + offset        log y = log(scale) + log g(x, p, t)

Given all other unknowns, the best scale and offset of an output are those of a linear regression, so that a search need
not look for them.  They are recognised by the form of the output: such a parameter stands in one output, there as a
factor of all that is not an offset or as a summand, and nowhere else in the model or in the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

    @property
    def scales(self) -> tuple[int, ...]:
        return tuple(sorted({entry for _, entry in self.stretched}))

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(sorted({entry for _, entry in self.shifted}))


def affine(conditions: Sequence[Condition], unknowns: Unknowns, measurements: Measurements) -> tuple[Affine, ...]:
    """The scales and offsets of every output whose noise is a level times a shape."""
    found = []
    elsewhere = {
        entry for block in measurements.blocks if block.density for entry in block.density.places.values()
    } | _shared_by_outputs(conditions, unknowns)
    models = {id(condition.model): condition.model for condition in conditions}
    by_model = {key: _moving(model) for key, model in models.items()}
    moving = [by_model[id(condition.model)] for condition in conditions]
    for number, output in enumerate(measurements.outputs):
        if not measurements.densities[number]:
            logarithmic = bool(measurements.logarithmic[number])
            own = _of_output(number, output, conditions, unknowns, moving, logarithmic, elsewhere)
            if own.scales or own.offsets:
                found.append(own)
    return tuple(found)


def _of_output(
    number: int,
    output: str,
    conditions: Sequence[Condition],
    unknowns: Unknowns,
    moving: Sequence[set[str]],
    logarithmic: bool,
    taken: set[int],
) -> Affine:
    scales: list[tuple[int, int]] = []  # with their experiments
    offsets: list[tuple[int, int]] = []
    others: set[int] = set()  # what enters this output in another way in some experiment
    for e, (condition, places) in enumerate(zip(conditions, unknowns.places, strict=True)):
        if output not in condition.experiment.outputs:
            continue
        expression = condition.model.outputs[output]
        free = [n for n in dict.fromkeys(names(expression)) if n in condition.model.parameters and n in places]
        free = [name for name in free if places[name] not in taken and name not in moving[e]]
        scale, shifts = _form(expression, free, logarithmic)
        scales += [(e, places[scale])] if scale is not None else []
        offsets += [(e, places[name]) for name in shifts]
        others |= {places[name] for name in free if name != scale and name not in shifts}
    # One that is a scale here and an offset, or something else, there is neither.
    stretching, shifting = {entry for _, entry in scales}, {entry for _, entry in offsets}
    return Affine(
        number,
        tuple(pair for pair in scales if pair[1] not in shifting | others),
        tuple(pair for pair in offsets if pair[1] not in stretching | others),
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


def _moving(model: Model) -> set[str]:
    """Names that do anything but to outputs, or have more than one value."""
    found = {*model.before, *(name for event in model.events for name in event.set)}
    for table in (model.states, model.initial, model.before, model.inputs):
        found |= {name for expression in table.values() if expression is not None for name in names(expression)}
    return found | {name for event in model.events for part in event.expressions() for name in names(part)}


def _form(expression: Expression, free: Sequence[str], logarithmic: bool) -> tuple[str | None, list[str]]:
    """The scale of an output and its offsets, if it has any."""
    terms = list(expression.terms) if isinstance(expression, Sum) else [(1, expression)]
    offsets = [
        term.name
        for _, term in terms
        if isinstance(term, Symbol) and term.name in free and _count(expression, term.name) == 1
    ]
    rest = [term for _, term in terms if not (isinstance(term, Symbol) and term.name in offsets)]
    if logarithmic:
        if len(terms) > 1 or not rest:
            return None, []
        offsets = []
    for name in free:
        if len(rest) == 1 and name not in offsets and _is_factor(name, rest[0]):
            return name, offsets
    return None, offsets


def _is_factor(name: str, term: Expression) -> bool:
    """Whether a term is a name times something without it."""
    if not isinstance(term, Product):
        return False
    own = [(exponent, factor) for exponent, factor in term.factors if name in names(factor)]
    return own == [(1, Symbol(name))]


def _count(expression: Expression, name: str) -> int:
    return sum(other == name for other in names(expression))
