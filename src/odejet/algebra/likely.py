"""Likely: how many values quantities have, by monodromy, where no exact computation comes to an end.

The roots of a square system at generic data are found by monodromy; those that agree with one of them in further
derivatives of the outputs give the same outputs, and are counted.  What takes several values among them has at least so
many: each was found.  What takes one value has one if no root is missing, of which the loops that found nothing new are
the evidence, and no proof.  Such verdicts have kinds of their own, `likely local` and `likely global`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from odejet.algebra.monodromy import GENERIC, STEADY, Fibre, fibre
from odejet.algebra.select import Least, least
from odejet.algebra.system import SquareSystem, join
from odejet.attach import attach
from odejet.budget import Budget, OutOfBudget
from odejet.clock import now
from odejet.errors import ModelError
from odejet.identify import excitation, outputs
from odejet.identify.verdict import Quantity, Verdict
from odejet.jets.kernel import MAX_ORDER
from odejet.model import Model
from odejet.model.expressions import fresh

FURTHER = 3
"""Derivatives beyond those of the square system in which roots are compared: roots that differ do so in the first."""
AGREE = 1e-6
"""Derivatives that agree to this, relative to the terms that they are made of, are equal."""


@attach(Verdict.likely)
def likely(verdict: Verdict, seconds: float = 20.0, seed: int = 0) -> Verdict:
    """The verdict with what monodromy says of quantities that are undecided; as it was where it says nothing."""
    start = now()
    open_ = [name for name, quantity in verdict.items() if quantity.kind == "undecided"]
    model = _generic(verdict)
    if not open_ or model is None:
        return verdict
    try:
        evidence = _explored(model, verdict, Budget.within(seconds), seed)
    except (ModelError, OutOfBudget):
        return verdict
    if evidence is None or (len(evidence.agreeing) < 2 and not evidence.is_full):
        return verdict
    quantities = {name: _likely(q, evidence) if name in open_ else q for name, q in verdict.items()}
    taken = verdict.seconds + now() - start
    return replace(verdict, quantities=quantities, evidence=evidence.sentence, seconds=taken)


def _generic(verdict: Verdict) -> Model | None:
    """The model as its outputs see it; None where the start or the inputs are special, or equations not rational."""
    driven = excitation.excited(verdict.model, verdict.inputs == "generic")
    if not verdict.rows or verdict.experiments.asked != 1 or isinstance(driven, str) or driven.between:
        return None
    model = outputs.plain(driven.model)
    special = model.initial or (model.inputs and verdict.inputs != "generic")
    return None if special else model


@dataclass(frozen=True)
class Evidence:
    """The roots that give the same outputs as one of them, by what was asked: (roots,) each."""

    agreeing: np.ndarray
    values: Mapping[str, np.ndarray]
    roots: int
    loops: int
    complete: bool
    """An exact count says that there are no other roots."""
    steady: bool
    """The last loops found no other."""

    @property
    def sentence(self) -> str:
        end = "all there are, as the last loops found no other" if self.steady else "there may be more"
        end = "as many as an exact count says" if self.complete else end
        return (
            f"{self.roots} root{'s' * (self.roots != 1)} found by monodromy in {self.loops} loops, {end}; "
            f"{len(self.agreeing)} of them give{'s' * (len(self.agreeing) == 1)} the same outputs"
        )

    @property
    def is_full(self) -> bool:
        return self.complete or self.steady

    def different(self, name: str) -> int:
        """How many values a quantity has among the roots that agree."""
        found: list[complex] = []
        for value in self.values[name][self.agreeing]:
            if all(abs(value - other) > GENERIC * max(abs(value), abs(other)) for other in found):
                found.append(value)
        return len(found)


def _likely(quantity: Quantity, evidence: Evidence) -> Quantity:
    if quantity.name not in evidence.values:
        return quantity
    values = evidence.different(quantity.name)
    if values > 1:
        return replace(quantity, kind="likely local", values=values)
    return replace(quantity, kind="likely global", values=1) if evidence.is_full else quantity


def _explored(model: Model, verdict: Verdict, budget: Budget, seed: int) -> Evidence | None:
    """The fibre of the square system of least order, and what its roots say; None for equations without a count."""
    first = least(model, seed=seed, budget=budget)
    asked = [name for name, q in verdict.items() if q.role in ("function", "combination")]
    system = _system(model, asked, first)
    if len(system.tape.quadratures) or system.highest + 1 > MAX_ORDER:
        return None
    found = fibre(replace(system, roots=verdict.roots), seed=seed, budget=budget)
    jets, names = _jets(found, seed), system.unknowns
    values = {name: found.roots[:, names.index(name)] for name in verdict if name in names}
    values |= {text: jets[:, len(model.outputs) + i, 0, 0] for i, text in enumerate(asked)}
    agreeing, steady = _agreeing(jets[:, : len(model.outputs)]), found.steady >= STEADY
    return Evidence(agreeing, values, len(found), found.loops, found.complete, steady)


def _system(model: Model, asked: list[str], first: Least) -> SquareSystem:
    """The square system of least order, of the model with what is asked as further outputs."""
    taken = {*model.states, *model.outputs, *model.inputs, *model.parameters, *model.fixed}
    further = {fresh(f"asked_{i}", taken): text for i, text in enumerate(asked)}
    joined = join(model.replace(outputs={**model.outputs, **further}) if further else model)
    fixed = tuple(first.joined.together.unknowns[i] for i in first.rows.fixed)
    return SquareSystem(joined, tuple(sorted(first.rows.rows, key=lambda row: row[::-1])), fixed)


def _jets(found: Fibre, seed: int) -> np.ndarray:
    """Outputs of all roots beyond the order of the system, with tangents; inputs go on in any way."""
    system, count = found.system, len(found)
    order = min(system.highest + FURTHER, MAX_ORDER)
    rng = np.random.default_rng([seed, order])
    inputs = rng.normal(size=(1, found.at.inputs.shape[1], order + 1)).astype(complex)
    inputs[:, :, : system.highest + 1] = found.at.inputs
    return system.jets(found.roots, np.repeat(inputs, count, 0), found.at.fixed, order)


def _agreeing(jets: np.ndarray) -> np.ndarray:
    """The roots whose derivatives are those of the first."""
    terms = np.max(np.abs(jets[:1, ..., 1:]), axis=-1)
    scale = np.maximum(np.maximum(np.abs(jets[:1, ..., 0]), terms), 1e-300)
    worst = np.max(np.abs(jets[..., 0] - jets[:1, ..., 0]) / scale, axis=(1, 2))
    return np.flatnonzero(worst < AGREE)
