"""Independent programs to compare with."""

from __future__ import annotations

from collections.abc import Sequence

import heyoka
import numpy as np

from odejet.model import Model
from tests.strategies import evaluate


class _Functions:
    """heyoka's functions under the names of ours."""

    exp, log, sin, cos, tan = heyoka.exp, heyoka.log, heyoka.sin, heyoka.cos, heyoka.tan
    sinh, cosh, tanh, sqrt = heyoka.sinh, heyoka.cosh, heyoka.tanh, heyoka.sqrt


class Heyoka:
    """heyoka's Taylor integrator for the variational equations of a model, at its tightest tolerance."""

    def __init__(self, model: Model) -> None:
        states = {name: heyoka.expression(name) for name in model.states}
        values = {name: heyoka.par[i] for i, name in enumerate(model.parameters)} | states | {"t": heyoka.time}
        values |= {name: heyoka.expression(float(value)) for name, value in model.fixed.items()}
        values |= {name: evaluate(expression, values, _Functions) for name, expression in model.inputs.items()}
        rates = [evaluate(rate, values, _Functions) for rate in model.states.values()]
        system = list(zip(states.values(), [heyoka.expression(0.0) + rate for rate in rates], strict=True))
        unknowns = [*states.values(), *(heyoka.par[i] for i in range(len(model.parameters)))]
        self.size, self.width = len(states), len(unknowns)
        self.integrator = heyoka.taylor_adaptive(
            heyoka.var_ode_sys(system, unknowns, order=1),
            [0.0] * self.size,
            pars=[0.0] * len(model.parameters),
            compact_mode=True,
        )
        self.start = self.integrator.state.copy()

    def run(
        self, parameters: Sequence[float], states: Sequence[float], times: np.ndarray, max_steps: int = 100_000
    ) -> np.ndarray | None:
        """States with their sensitivities, (times, states, 1 + unknowns); None when the end is not reached."""
        integrator = self.integrator
        integrator.state[:] = self.start
        integrator.state[: self.size] = states
        integrator.pars[:] = parameters
        integrator.time = times[0]
        rows = integrator.propagate_grid(times, max_steps=max_steps)[5]
        if len(rows) < len(times):
            return None
        values, tangents = rows[:, : self.size], rows[:, self.size : self.size * (1 + self.width)]
        return np.concatenate([values[:, :, None], tangents.reshape(len(times), self.size, self.width)], axis=2)
