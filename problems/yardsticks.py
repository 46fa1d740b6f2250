"""Yardsticks: the same trajectories and sensitivities by independent programs.

Each takes a model, is set up once, and gives states with their sensitivities as an array (times, states, 1 + unknowns),
or None where it does not reach the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import casadi
import heyoka
import numpy as np
from scipy.integrate import solve_ivp

from odejet.model import Model
from odejet.model.expressions import evaluate


def _rates(model: Model, values: dict[str, Any], functions: Any, number: Any) -> list[Any]:
    """The right-hand sides in another program's arithmetic."""
    values = values | {name: number(value) for name, value in model.fixed.items()}
    values |= {name: evaluate(expression, values, functions, number) for name, expression in model.inputs.items()}
    return [number(Fraction(0)) + evaluate(rate, values, functions, number) for rate in model.states.values()]


class Heyoka:
    """heyoka's Taylor integrator for the variational equations, in compact mode at its tightest tolerance."""

    def __init__(self, model: Model) -> None:
        states = [heyoka.expression(name) for name in model.states]
        parameters = [heyoka.par[i] for i in range(len(model.parameters))]
        values = dict(zip([*model.states, *model.parameters, "t"], [*states, *parameters, heyoka.time], strict=True))
        rates = _rates(model, values, heyoka, lambda exact: heyoka.expression(float(exact)))
        system = heyoka.var_ode_sys(list(zip(states, rates, strict=True)), [*states, *parameters], order=1)
        start = {"pars": [0.0] * len(parameters), "compact_mode": True}
        self.size, self.width = len(states), len(states) + len(parameters)
        self.integrator = heyoka.taylor_adaptive(system, [0.0] * self.size, **start)
        self.start = self.integrator.state.copy()

    def run(
        self, parameters: Sequence[float], states: Sequence[float], times: np.ndarray, max_steps: int = 100_000
    ) -> np.ndarray | None:
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


class _Variational:
    """The equations of states and sensitivities together, in CasADi's expressions; ordered lane by lane."""

    def __init__(self, model: Model) -> None:
        self.size, self.width = len(model.states), len(model.states) + len(model.parameters)
        time = casadi.SX.sym("t")
        states, parameters = casadi.SX.sym("x", self.size), casadi.SX.sym("p", len(model.parameters))
        tangents = casadi.SX.sym("s", self.size, self.width)
        symbols = [*casadi.vertsplit(states), *casadi.vertsplit(parameters), time]
        values = dict(zip([*model.states, *model.parameters, "t"], symbols, strict=True))
        rates = casadi.vertcat(*_rates(model, values, casadi, lambda exact: casadi.SX(float(exact))))
        forcing = casadi.horzcat(casadi.SX(self.size, self.size), casadi.jacobian(rates, parameters))
        moved = casadi.mtimes(casadi.jacobian(rates, states), tangents) + forcing
        self.time, self.parameters = time, parameters
        self.unknowns = casadi.vertcat(states, casadi.vec(tangents))
        self.rates = casadi.vertcat(rates, casadi.vec(moved))

    def start(self, states: Sequence[float]) -> np.ndarray:
        return np.r_[states, np.eye(self.size, self.width).T.ravel()]

    def arrange(self, rows: np.ndarray) -> np.ndarray:
        return rows.reshape(len(rows), 1 + self.width, self.size).transpose(0, 2, 1)


class Cvodes:
    """SUNDIALS's CVODES through CasADi, on the variational equations."""

    def __init__(
        self,
        model: Model,
        times: np.ndarray,
        tolerance: float = 1e-10,
        absolute: float | None = None,
        max_steps: int = 100_000,
    ) -> None:
        """The absolute tolerance is the relative one, unless it is given."""
        self.equations = _Variational(model)
        problem = {
            "t": self.equations.time,
            "x": self.equations.unknowns,
            "p": self.equations.parameters,
            "ode": self.equations.rates,
        }
        smallest = tolerance if absolute is None else absolute
        options = {"reltol": tolerance, "abstol": smallest, "max_num_steps": max_steps}
        self.integrator = casadi.integrator("flow", "cvodes", problem, float(times[0]), times[1:].tolist(), options)

    def run(self, parameters: Sequence[float], states: Sequence[float]) -> np.ndarray | None:
        start = self.equations.start(states)
        try:
            solution = self.integrator(x0=start, p=parameters)["xf"].full().T
        except RuntimeError:  # CasADi's way to say that CVODES gave up
            return None
        return self.equations.arrange(np.vstack([start, solution]))


class Radau:
    """SciPy's implicit Radau method at its tightest tolerance: slow, but it follows stiff solutions."""

    def __init__(self, model: Model) -> None:
        self.equations = _Variational(model)
        arguments = [self.equations.time, self.equations.unknowns, self.equations.parameters]
        self.rates = casadi.Function("rates", arguments, [self.equations.rates])
        jacobian = casadi.jacobian(self.equations.rates, self.equations.unknowns)
        self.jacobian = casadi.Function("jacobian", arguments, [casadi.densify(jacobian)])

    def run(self, parameters: Sequence[float], states: Sequence[float], times: np.ndarray) -> np.ndarray | None:
        solution = solve_ivp(
            lambda t, x: self.rates(t, x, parameters).full().ravel(),
            (times[0], times[-1]),
            self.equations.start(states),
            "Radau",
            times,
            jac=lambda t, x: self.jacobian(t, x, parameters).full(),
            rtol=1e-13,
            atol=1e-30,
        )
        return self.equations.arrange(solution.y.T) if solution.success else None
