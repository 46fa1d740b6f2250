"""Affine: scales and offsets, parameters that only stretch or shift what is measured.

    y = scale * g(x, p, t) + offset        log y = log(scale) + log g(x, p, t)

Given all other unknowns, the best scale and offset of an output are those of a linear regression, so that a search need
not look for them.  They are recognised by the form of the output: such a parameter stands in one output, there as a
factor of all that is not an offset or as a summand, and nowhere else in the model or in the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from odejet.model import Model, expressions
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
    for number, output in enumerate(measurements.outputs):
        if not measurements.densities[number]:
            own = _of_output(number, output, conditions, unknowns, bool(measurements.logarithmic[number]), elsewhere)
            if own.scales or own.offsets:
                found.append(own)
    return tuple(found)


def _of_output(
    number: int, output: str, conditions: Sequence[Condition], unknowns: Unknowns, logarithmic: bool, taken: set[int]
) -> Affine:
    scales: list[tuple[int, int]] = []  # with their experiments
    offsets: list[tuple[int, int]] = []
    others: set[int] = set()  # what enters this output in another way in some experiment
    for e, (condition, places) in enumerate(zip(conditions, unknowns.places, strict=True)):
        if output not in condition.experiment.outputs:
            continue
        expression = condition.model.outputs[output]
        free = [n for n in dict.fromkeys(names(expression)) if n in condition.model.parameters and n in places]
        free = [name for name in free if places[name] not in taken and not _in_dynamics(name, condition.model)]
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


def _in_dynamics(name: str, model: Model) -> bool:
    """Whether a parameter does anything but to outputs, or has more than one value."""
    changes = any(name in event.set for event in model.events) or name in model.before
    return changes or any(name in names(expression) for expression in _dynamics(model))


def _dynamics(model: Model) -> Iterator[Expression | expressions.Condition]:
    for table in (model.states, model.initial, model.before, model.inputs):
        yield from (expression for expression in table.values() if expression is not None)
    for event in model.events:
        yield from event.expressions()


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
