"""Observation: derivatives of outputs by what only outputs depend on.

A scale or an offset moves no state.  Solutions are followed without sensitivities to such parameters; the derivatives
of outputs by them are expressions of their own, evaluated at the states that were found.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.lanes import padded
from odejet.jets.registers import Registers
from odejet.model.derivatives import derivative
from odejet.model.expressions import Expression, names, substituted, switches
from odejet.model.lowering import Lowering
from odejet.model.modes import Equations, equations
from odejet.model.tape import Tape

if TYPE_CHECKING:
    from odejet.model import Model


class Observation:
    """The outputs of a model, as functions of the parameters that no solution feels."""

    def __init__(self, model: Model) -> None:
        functions = {name: value for name, value in model.inputs.items() if value is not None}
        outputs = {name: substituted(value, functions) for name, value in model.outputs.items()}
        felt = {name for part in _moving(model) for name in names(part)}
        felt |= {name for event in model.events for name in event.set}
        # The solution itself keeps an eye on branches, and on the past.
        if any(map(switches, outputs.values())) or model.is_delayed:
            felt |= set(model.parameters)
        self.unfelt = tuple(name for name in model.parameters if name not in felt)
        self._model, self._outputs = model, outputs

    @cached_property
    def _slopes(self) -> dict[tuple[int, int], Expression]:
        """Derivatives that are not zero, by the positions of the output and of the parameter."""
        places = {name: i for i, name in enumerate(self._model.parameters)}
        return {
            (i, places[name]): derivative(output, name)
            for i, output in enumerate(self._outputs.values())
            for name in names(output)
            if name in self.unfelt
        }

    @cached_property
    def _tape(self) -> Tape:
        whole, _ = equations(self._model)
        sampled = {name: None for name, value in self._model.inputs.items() if value is None}
        plain = Equations(whole.fixed, whole.parameters, whole.states, self._outputs, sampled, {})
        return Lowering().maps(plain, [list(self._slopes.values())])[0]

    @cached_property
    def _places(self) -> np.ndarray:
        return np.array(list(self._slopes)).reshape(-1, 2)

    def differentiate(
        self, outputs: np.ndarray, parameters: np.ndarray, states: np.ndarray, times: np.ndarray, inputs: np.ndarray
    ) -> None:
        """Fill in the derivatives of outputs in rows whose last lanes are those of all parameters of the model.

        Parameters that events set are the last of the states.
        """
        if not self.unfelt or not len(times):
            return
        tape = self._tape
        layout = lay_out(tape, padded(1), 1, True)
        registers = Registers(layout, len(times), float, TABLES)
        memory = registers.memory
        memory[:, layout.constants], memory[:, layout.parameters] = tape.constant_values, parameters
        memory[:, layout.states], memory[:, layout.time] = states, times
        if len(layout.inputs):
            memory[:, layout.inputs] = inputs
        registers.run(layout.code, 1)
        which, by = self._places.T
        outputs[:, which, outputs.shape[2] - len(self._model.parameters) + by] = memory[:, layout.outputs]


def _moving(model: Model):
    """All that solutions depend on."""
    for table in (model.states, model.inputs, model.initial, model.before):
        yield from (value for value in table.values() if value is not None)
    for event in model.events:
        yield from event.expressions()
