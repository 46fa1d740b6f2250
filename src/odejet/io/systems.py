"""Systems: a fitted model for tools of control and simulation: CasADi, and Modelica as text.

Both have the values of the fit as parameters.  CasADi gets symbols and expressions, with which optimal control or
another estimation can go on, and an integrator; Modelica gets a model whose events reset states.
"""

from __future__ import annotations

from odejet.data import Experiment
from odejet.errors import ModelError
from odejet.io.code import CASADI, MODELICA, Language
from odejet.model import Model
from odejet.model.events import Event
from odejet.model.expressions import TIME, Comparison, Expression


class _Writer:
    """One model of an experiment in one language."""

    def __init__(self, model: Model, experiment: Experiment, starts: dict[str, float], language: Language) -> None:
        self.model, self.experiment, self.starts, self.language = model, experiment, starts, language
        refused = {"starts in its steady state": model.steady, "has sampled inputs": bool(experiment.sampled)}
        refused["has delays"] = model.is_delayed
        for what, holds in refused.items():
            if holds:
                raise ModelError(f"the model {what}, which cannot be written for {language.name}")
        every = (*model.states, *model.outputs, *model.parameters, *model.fixed, *model.inputs)
        clock = "time" if language is MODELICA else "t"
        self.names = {**language.identifiers(every), TIME: clock}

    def code(self, expression: Expression) -> str:
        return self.language.write(expression, self.names)

    def start(self, state: str) -> str:
        return repr(self.starts[state]) if state in self.starts else self.code(self.model.initial[state])

    def inputs(self) -> dict[str, str]:
        """The formulas of the inputs, by name in the language."""
        return {self.names[name]: self.code(value) for name, value in self.model.inputs.items() if value is not None}


def casadi(model: Model, experiment: Experiment, values: dict[str, float], starts: dict[str, float], name: str) -> str:
    """A module that has the model as CasADi's symbols, and simulates it."""
    if model.events:
        raise ModelError("the model has events or doses, which cannot be written for CasADi; export it to Modelica")
    own = _Writer(model, experiment, starts, CASADI)
    unpacked = [f"    {own.names[state]} = x[{place}]" for place, state in enumerate(model.states)]
    given = [f"    {own.names[key]} = p[{place}]" for place, key in enumerate(values)]
    driven = [f"    {key} = {formula}" for key, formula in own.inputs().items()]
    lines = [
        f'"""{name}, as odejet fitted it; needs CasADi and NumPy."""',
        "",
        "import casadi as ca",
        "import numpy as np",
        "",
        f"STATES = {tuple(model.states)!r}",
        f"OUTPUTS = {tuple(model.outputs)!r}",
        f"VALUES = {values!r}",
        f"START, END = {float(experiment.start)!r}, {float(experiment.end)!r}",
        "",
        "",
        "def model():",
        '    """Time t, states x and parameters p (in the order of VALUES), rates, outputs and initial states."""',
        f'    t, x, p = ca.SX.sym("t"), ca.SX.sym("x", {len(model.states)}), ca.SX.sym("p", {len(values)})',
        *unpacked,
        *given,
        *driven,
        f"    rates = ca.vertcat({', '.join(own.code(rate) for rate in model.states.values())})",
        f"    outputs = ca.vertcat({', '.join(own.code(one) for one in model.outputs.values())})",
        f"    initial = ca.vertcat({', '.join(own.start(state) for state in model.states)})",
        '    return {"t": t, "x": x, "p": p, "rates": rates, "outputs": outputs, "initial": initial}',
        "",
        "",
        "def simulate(times, **values):",
        '    """States and outputs by name at times from START on; values replace those of VALUES."""',
        "    own = model()",
        "    p = np.array([{**VALUES, **values}[name] for name in VALUES], dtype=float)",
        "    times = np.asarray(times, dtype=float)",
        '    problem = {"t": own["t"], "x": own["x"], "p": own["p"], "ode": own["rates"]}',
        '    options = {"reltol": 1e-10, "abstol": 1e-12, "max_num_steps": 100000}',
        '    course = ca.integrator("course", "cvodes", problem, START, times, options)',
        '    first = ca.Function("first", [own["p"]], [ca.DM(0) + own["initial"]])(p)',
        '    states = course(x0=first, p=p)["xf"]',
        '    seen = ca.Function("seen", [own["t"], own["x"], own["p"]], [own["outputs"]])',
        "    outputs = np.hstack([np.array(seen(t, states[:, i], p)) for i, t in enumerate(times)])",
        "    table = {name: np.array(states[i, :]).ravel() for i, name in enumerate(STATES)}",
        "    return table | {name: outputs[i] for i, name in enumerate(OUTPUTS)}",
        "",
    ]
    return "\n".join(lines)


def modelica(model: Model, experiment: Experiment, values: dict[str, float], starts: dict[str, float]) -> str:
    """A model of Modelica; events become `when` clauses."""
    own = _Writer(model, experiment, starts, MODELICA)
    title = MODELICA.identifiers(["".join(c if c.isalnum() else "_" for c in model.name) or "fitted"])
    (name,) = title.values()
    name = name if name[0].isalpha() else f"m_{name}"
    lines = [f"model {name}"]
    lines += [f"  parameter Real {own.names[key]} = {value!r};" for key, value in values.items()]
    lines += [f"  Real {own.names[state]}(start = {own.start(state)}, fixed = true);" for state in model.states]
    lines += [f"  Real {key};" for key in own.inputs()]
    lines += [f"  output Real {own.names[one]};" for one in model.outputs]
    lines += ["equation"]
    lines += [f"  {key} = {formula};" for key, formula in own.inputs().items()]
    lines += [f"  der({own.names[state]}) = {own.code(rate)};" for state, rate in model.states.items()]
    lines += [f"  {own.names[one]} = {own.code(value)};" for one, value in model.outputs.items()]
    for event in model.events:
        lines += _when(own, event)
    span = f"StartTime = {float(experiment.start)!r}, StopTime = {float(experiment.end)!r}, Tolerance = 1e-9"
    return "\n".join([*lines, f"  annotation(experiment({span}));", f"end {name};", ""])


def _when(own: _Writer, event: Event) -> list[str]:
    """An event as `when` clauses: states are reset, and nothing else can be."""
    others = [name for name in event.set if name not in own.model.states]
    if others:
        raise ModelError(f"an event changes the parameter '{others[0]}', which Modelica cannot; only states can be set")
    resets = [f"    reinit({own.names[state]}, {own.code(value)});" for state, value in event.set.items()]
    if event.when is not None:
        if not isinstance(event.when, Comparison) or event.when.relation in ("==", "!="):
            raise ModelError(f"an event when {event.when} cannot be written in Modelica; only one comparison can")
        conditions = [MODELICA.write(event.when, own.names)]
    elif event.every is None:
        conditions = [f"time >= {own.code(time)}" for time in event.at]
    else:
        first, every = own.code(event.at[0]), own.code(event.every)
        last = f" and time < {first} + {event.count - 0.5}*({every})" if event.count is not None else ""
        conditions = [f"sample({first}, {every}){last}"]
    return [line for condition in conditions for line in (f"  when {condition} then", *resets, "  end when;")]
