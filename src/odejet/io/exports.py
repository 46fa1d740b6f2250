"""Exports: a fitted model for other tools, by the suffix of the file.

    .py             a function of NumPy and SciPy alone
    .casadi.py      symbols and an integrator of CasADi
    .mo             a model of Modelica
    .stan           a Stan program with the measurements beside it as JSON
    .tex            the equations and a table of the estimates
    .toml .xml .ant the model with its estimates, as odejet, SBML and Antimony have it

What is written is the model of one experiment, with the values of the fit.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from odejet.attach import attach
from odejet.data import Experiment
from odejet.errors import ModelError
from odejet.extras import needed
from odejet.io.antimony import write_antimony
from odejet.io.code import PYTHON, STAN
from odejet.io.files import write_all
from odejet.io.formats import ANTIMONY, SBML
from odejet.io.sbml.writing import document
from odejet.io.systems import casadi, modelica
from odejet.model import Model
from odejet.model.cumulated import has_windows, refuse_windows
from odejet.model.events import Event
from odejet.model.expressions import TIME, Comparison, Expression
from odejet.numerals import measured
from odejet.result import Fit

CASADI, MODELICA = ".casadi.py", ".mo"
SUFFIXES = (".py", CASADI, MODELICA, ".stan", ".tex", ".toml", *SBML, *ANTIMONY)


@attach(Fit.export)
def export(fit: Fit, path: str | os.PathLike[str], experiment: str | None = None) -> None:
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        raise ModelError(f"{path}: the name must end in one of {', '.join(SUFFIXES)}")
    if not fit.found:
        raise ModelError("there is no fit to write: the model cannot be simulated to the last time")
    texts = {os.fspath(path): text_of(fit, suffix, experiment)}
    if suffix == ".stan":
        texts[os.fspath(Path(path).with_suffix(".json"))] = stan_data(fit, experiment)
    write_all({name: lambda file, text=text: file.write(text.encode()) for name, text in texts.items()})  # type: ignore[misc]


def suffix_of(path: str | os.PathLike[str]) -> str:
    """How the name of a file ends, where that says what it holds."""
    return CASADI if os.fspath(path).lower().endswith(CASADI) else Path(path).suffix.lower()


def text_of(fit: Fit, suffix: str, experiment: str | None = None) -> str:
    """The text of the file of a fit."""
    if suffix not in (".tex", ".toml"):
        refuse_windows(fit.problem.model, f"a file {suffix}")
    if suffix == ".py":
        return python(fit, experiment)
    if suffix in (CASADI, MODELICA):
        own, parameters, states = _values(fit, experiment)
        values = {**{name: float(value) for name, value in own.fixed.items()}, **parameters}
        if suffix == MODELICA:
            return modelica(own, _experiment(fit, experiment), values, states)
        return casadi(own, _experiment(fit, experiment), values, states, _quoted(own.name))
    if suffix == ".stan":
        return stan(fit, experiment)
    if suffix == ".tex":
        return latex(fit)
    model = valued(fit, experiment)
    if suffix in SBML:
        return document(model)
    return write_antimony(model) if suffix in ANTIMONY else model.to_toml()


def valued(fit: Fit, experiment: str | None = None) -> Model:
    """The model of an experiment with the estimates as known values."""
    own, parameters, states = _values(fit, experiment)
    fixed = {**{name: float(value) for name, value in own.fixed.items()}, **parameters}
    start = {} if own.steady else {"initial": {**own.initial, **states}}
    dropped = dict.fromkeys(("bounds", "noise", "priors", "parameters", "local", "experiments"))
    return own.replace(fixed=fixed, **start, **dropped)


def _values(fit: Fit, experiment: str | None) -> tuple[Model, dict[str, float], dict[str, float]]:
    number_ = fit.problem.number(experiment if experiment is not None else fit.problem.experiments[0].name)
    own = fit.problem.conditions[number_].model
    if has_windows(fit.problem.model):  # as they are written, and not as rates
        own = own.replace(outputs={name: fit.problem.model.outputs[name] for name in own.outputs})
    return own, *fit.problem.values_in(number_, fit.estimates)


def _experiment(fit: Fit, experiment: str | None) -> Experiment:
    return fit.problem.experiments[fit.problem.number(experiment or fit.problem.experiments[0].name)]


# --- Python -----------------------------------------------------------------------------------------------------------

_SIMULATE = '''

def simulate(times, **values):
    """States and outputs by name at increasing times from START on; values replace those of VALUES and of INITIAL."""
    p = {**VALUES, **{name: value for name, value in values.items() if name in VALUES}}
    y = np.array([float(values.get(name, value)) for name, value in zip(STATES, initial(p), strict=True)])
    strangers = values.keys() - VALUES.keys() - set(STATES)
    if strangers:
        raise KeyError(f"the model has no {sorted(strangers)[0]}")
    times = np.asarray(times, dtype=float)
    if len(times) and times[0] < START:
        raise ValueError(f"the model begins at t = {START}")
    found, now, end = np.empty((len(times), len(STATES))), START, float(times[-1]) if len(times) else START
    results = np.empty((len(times), len(OUTPUTS)))
    changes = sorted(((time, number) for time, number in timed(p) if time >= START), key=lambda change: change[0])
    done = 0
    while True:
        # A measurement at the time of a change is before it.
        stop = min(end, changes[0][0]) if changes else end
        wanted = times[done:][times[done:] <= stop]
        solution = None
        if stop > now:
            triggers = [_trigger(number, p) for number in range(len(CONDITIONS))]
            solution = solve_ivp(
                rates, (now, stop), y, "LSODA", dense_output=True, args=(p,), events=triggers or None,
                rtol=RTOL, atol=ATOL, max_step=MAX_STEP,
            )
            if not solution.success:
                raise RuntimeError(solution.message)
            if solution.status == 1:
                stop = float(solution.t[-1])
                wanted = wanted[wanted <= stop]
        for time in wanted:
            at = y if solution is None or time <= now else solution.sol(time)
            found[done], results[done] = at, outputs(time, at, p)
            done += 1
        y, now = (y if solution is None else solution.y[:, -1].copy()), max(now, stop)
        if solution is not None and solution.status == 1:
            number = next(i for i, hits in enumerate(solution.t_events) if len(hits))
            y, p = CONDITIONS[number][1](now, y, p)
            continue
        if changes and changes[0][0] <= now:
            y, p = CHANGES[changes.pop(0)[1]](now, y, p)
            continue
        if done == len(times):
            break
    table = {name: found[:, i] for i, name in enumerate(STATES)}
    return table | {name: results[:, i] for i, name in enumerate(OUTPUTS)}


def _trigger(number, p):
    root, direction = CONDITIONS[number][0], CONDITIONS[number][2]

    def trigger(t, y, _p):
        return root(t, y, p)

    trigger.terminal, trigger.direction = True, direction
    return trigger


if __name__ == "__main__":
    times = np.linspace(START, END, 11)
    table = simulate(times)
    print("time", *OUTPUTS)
    for row, time in enumerate(times):
        print(f"{time:.6g}", *(f"{table[name][row]:.6g}" for name in OUTPUTS))
'''


class _Python:
    """The program of one model."""

    def __init__(self, fit: Fit, experiment: str | None) -> None:
        self.fit, self.experiment = fit, _experiment(fit, experiment)
        self.model, self.parameters, self.states = _values(fit, experiment)
        if self.model.steady:
            raise ModelError("the model starts in its steady state, which the program cannot find; give initial values")
        every = (*self.model.states, *self.model.parameters, *self.model.fixed, *self.model.inputs)
        self.names = {**PYTHON.identifiers(every), TIME: "t"}

    def text(self) -> str:
        model, lines = self.model, self.head()
        lines += ["", "", *self.inputs(), "def rates(t, y, p):", '    """The right-hand sides."""', *self.unpacked()]
        lines += [f"    return np.array([{', '.join(self.code(rate) for rate in model.states.values())}])"]
        lines += ["", "", "def outputs(t, y, p):", '    """What is measured."""', *self.unpacked()]
        lines += [f"    return np.array([{', '.join(self.code(one) for one in model.outputs.values())}], dtype=float)"]
        lines += ["", "", "def initial(p):", '    """The state at START."""', *self.unpacked(states=False)]
        lines += [f"    return [{', '.join(self.start(state) for state in model.states)}]", "", *self.events()]
        return "\n".join(lines) + _SIMULATE

    def head(self) -> list[str]:
        model, experiment = self.model, self.experiment
        values = {**{name: float(value) for name, value in model.fixed.items()}, **self.parameters}
        scale = max((float(np.abs(one.values).max()) for one in experiment.outputs.values()), default=1.0) or 1.0
        jagged = bool(experiment.sampled) or any(value is not None for value in model.inputs.values())
        step = (experiment.end - experiment.start) / 500 if jagged and experiment.end > experiment.start else math.inf
        return [
            f'"""{_quoted(model.name)} as odejet fitted it to {_quoted(experiment.name)}; needs NumPy and SciPy."""',
            "",
            "import numpy as np",
            "from scipy.integrate import solve_ivp",
            *(["from scipy.interpolate import PPoly"] if experiment.sampled else []),
            "",
            f"STATES = {tuple(model.states)!r}",
            f"OUTPUTS = {tuple(model.outputs)!r}",
            f"VALUES = {values!r}",
            f"START, END = {float(experiment.start)!r}, {float(experiment.end)!r}",
            f"RTOL, ATOL, MAX_STEP = 1e-9, {1e-11 * scale!r}, {_float(step)}",
        ]

    def inputs(self) -> list[str]:
        lines = []
        for name, samples in self.experiment.sampled.items():
            pieces = samples.pieces
            power = np.asarray(pieces.coefficients[0])[:, ::-1].T  # highest power first, as SciPy has it
            lines += [f"_{self.names[name]} = PPoly(np.array({power.tolist()!r}), np.array({pieces.knots.tolist()!r}))"]
        return [*lines, "", ""] if lines else []

    def unpacked(self, states: bool = True) -> list[str]:
        """Names of states, parameters and inputs as local variables."""
        lines = []
        if states:
            lines += [f"    {', '.join(self.names[name] for name in self.model.states)}, = y"]
        lines += [f"    {self.names[name]} = p[{name!r}]" for name in (*self.model.parameters, *self.model.fixed)]
        for name, value in self.model.inputs.items() if states else ():
            known = f"float(_{self.names[name]}(t))" if name in self.experiment.sampled else self._input(name, value)
            lines.append(f"    {self.names[name]} = {known}")
        return lines

    def _input(self, name: str, value: Expression | None) -> str:
        if value is None:
            raise ModelError(f"the input '{name}' has no samples in {self.experiment.name}")
        return self.code(value)

    def start(self, state: str) -> str:
        return repr(self.states[state]) if state in self.states else self.code(self.model.initial[state])

    def code(self, expression: Expression) -> str:
        return PYTHON.write(expression, self.names)

    def events(self) -> list[str]:
        """Functions that change the state, the times of those that have times, and the conditions of the others."""
        lines: list[str] = []
        timed: list[str] = []
        conditions: list[str] = []
        changes: list[str] = []
        for count, event in enumerate(self.model.events):
            lines += ["", *self.change(count, event), ""]
            if event.when is None:
                timed += [f"(time, {len(changes)}) for time in {self.times(event)}"]
                changes += [f"_change_{count}"]
                continue
            if not isinstance(event.when, Comparison) or event.when.relation in ("==", "!="):
                raise ModelError(f"an event when {event.when} cannot be written in Python; only one comparison can")
            sides = self.code(event.when.left), self.code(event.when.right)
            lines += [
                "",
                f"def _root_{count}(t, y, p):",
                *self.unpacked(),
                f"    return ({sides[0]}) - ({sides[1]})",
                "",
            ]
            rising = 1 if event.when.relation in (">", ">=") else -1
            conditions += [f"(_root_{count}, _change_{count}, {rising})"]
        found = " + ".join(f"[{one}]" for one in timed) or "[]"
        lines += ["", "def timed(p):", '    """When which change happens."""', *self.unpacked(states=False)]
        lines += [f"    return {found}", "", ""]
        return [*lines, f"CHANGES = [{', '.join(changes)}]", f"CONDITIONS = [{', '.join(conditions)}]"]

    def change(self, count: int, event: Event) -> list[str]:
        lines = [f"def _change_{count}(t, y, p):", *self.unpacked(), "    y, p = y.copy(), dict(p)"]
        for place, state in enumerate(self.model.states):
            if state in event.set:
                lines.append(f"    y[{place}] = {self.code(event.set[state])}")
        for name, value in event.set.items():
            if name not in self.model.states:
                lines.append(f"    p[{name!r}] = {self.code(value)}")
        return [*lines, "    return y, p"]

    def times(self, event: Event) -> str:
        if event.every is None:
            return f"[{', '.join(self.code(time) for time in event.at)}]"
        first, every = self.code(event.at[0]), self.code(event.every)
        count = event.count if event.count is not None else f"1 + int(max(END - ({first}), 0.0)/({every}))"
        return f"[({first}) + i*({every}) for i in range({count})]"


def python(fit: Fit, experiment: str | None = None) -> str:
    """A program that simulates the fit with NumPy and SciPy alone."""
    return _Python(fit, experiment).text()


def _float(value: float) -> str:
    return "np.inf" if math.isinf(value) else repr(value)


def _quoted(text: str) -> str:
    """A name that cannot end the docstring it stands in."""
    return "".join(c if c.isalnum() or c in " _-.,()" else "_" for c in text)


# --- Stan -------------------------------------------------------------------------------------------------------------


def stan(fit: Fit, experiment: str | None = None) -> str:
    """A Stan program of an experiment, with the bounds of the fit and normal noise of unknown size."""
    return _Stan(fit, experiment).text()


def stan_data(fit: Fit, experiment: str | None = None) -> str:
    """The measurements for a Stan program, as JSON."""
    own = _experiment(fit, experiment)
    names = STAN.identifiers(own.outputs)
    times = np.unique(np.concatenate([one.finite.times for one in own.outputs.values()]))
    times = times[times > own.start]
    found: dict[str, Any] = {"N": len(times), "times": times.tolist(), "t0": float(own.start)}
    for name, series in own.outputs.items():
        if series.limits is not None:
            raise ModelError(f"'{name}' has censored values, which the program in Stan does not know; leave them out")
        kept = np.isin(series.times, times)
        found[f"n_{names[name]}"] = int(kept.sum())
        found[f"at_{names[name]}"] = (np.searchsorted(times, series.times[kept]) + 1).tolist()
        found[f"{names[name]}_measured"] = series.values[kept].tolist()
    return json.dumps(found, indent=1) + "\n"


class _Stan:
    """The program of one model."""

    def __init__(self, fit: Fit, experiment: str | None) -> None:
        self.fit, self.experiment = fit, _experiment(fit, experiment)
        self.model, self.parameters, self.states = _values(fit, experiment)
        refused = {
            "starts in its steady state": self.model.steady,
            "has events": bool(self.model.events),
            "has sampled inputs": bool(self.experiment.sampled),
        }
        for what, holds in refused.items():
            if holds:
                raise ModelError(f"the model {what}, which the program in Stan cannot have")
        model = self.model
        every = (*model.outputs, *model.states, *model.parameters, *model.fixed, *model.inputs)
        self.names = {**STAN.identifiers(every), TIME: "t"}
        self.outputs = {name: self.names[name] for name in self.experiment.outputs}

    def text(self) -> str:
        states = list(self.model.states)
        arguments = "".join(f", real {self.names[name]}" for name in self.parameters)
        passed = "".join(f", {self.names[name]}" for name in self.parameters)
        starts = ", ".join(self.start(state) for state in states)
        unpacked = [f"  real {self.names[name]} = y[{place}];" for place, name in enumerate(states, 1)]
        lines = [
            f"// {_quoted(self.model.name)}, from a fit of odejet; the measurements are in the JSON file of this name.",
            "functions {",
            f" vector rates(real t, vector y{arguments}) {{",
            *unpacked,
            *self.constants(),
            *self.inputs(),
            f"  return [{', '.join(self.code(rate) for rate in self.model.states.values())}]';",
            " }",
            "}",
            "data {",
            " int<lower=1> N;",
            " array[N] real times;",
            " real t0;",
        ]
        for name in self.outputs.values():
            lines += [f" int n_{name};", f" array[n_{name}] int at_{name};", f" vector[n_{name}] {name}_measured;"]
        lines += ["}", "parameters {"]
        lines += [f" real{self.bounds(name)} {self.names[name]};" for name in self.parameters]
        lines += [f" real{self.bounds(name)} {self.names[name]}_0;" for name in self.states]
        lines += [f" real<lower=0> sigma_{name};" for name in self.outputs.values()]
        lines += ["}", "transformed parameters {"]
        lines += [f" array[N] vector[{len(states)}] course;"]
        lines += [f" vector[N] {name};" for name in self.outputs.values()]
        lines += [" {", *self.constants(), f"  vector[{len(states)}] first = [{starts}]';"]
        lines += [f"  course = ode_bdf_tol(rates, first, t0, times, 1e-8, 1e-8, 100000{passed});"]
        lines += ["  for (i in 1:N) {", "   real t = times[i];", "   vector[" + f"{len(states)}] y = course[i];"]
        lines += [f"  {line}" for line in (*unpacked, *self.inputs())]
        lines += [f"   {own}[i] = {self.code(self.model.outputs[name])};" for name, own in self.outputs.items()]
        lines += [
            "  }",
            " }",
            "}",
            "model {",
            " // Flat between the bounds; add what you know, such as k ~ lognormal(0, 1);",
        ]
        lines += [f" {own}_measured ~ normal({own}[at_{own}], sigma_{own});" for own in self.outputs.values()]
        return "\n".join([*lines, "}", ""])

    def constants(self) -> list[str]:
        return [f"  real {self.names[name]} = {float(value)!r};" for name, value in self.model.fixed.items()]

    def inputs(self) -> list[str]:
        return [
            f"  real {self.names[name]} = {self.code(value)};"
            for name, value in self.model.inputs.items()
            if value is not None
        ]

    def start(self, state: str) -> str:
        return f"{self.names[state]}_0" if state in self.states else self.code(self.model.initial[state])

    def code(self, expression: Expression) -> str:
        return STAN.write(expression, self.names)

    def bounds(self, name: str) -> str:
        """The bounds of an unknown; those that are infinite are left out."""
        labels = [unknown.label for unknown in self.fit.unknowns if unknown.name == name]
        low, high = self.fit.bounds.get(labels[0], (-math.inf, math.inf)) if labels else (-math.inf, math.inf)
        told = [f"lower={low!r}"] * math.isfinite(low) + [f"upper={high!r}"] * math.isfinite(high)
        return f"<{', '.join(told)}>" if told else ""


# --- LaTeX ------------------------------------------------------------------------------------------------------------


def latex(fit: Fit) -> str:
    """The equations, and a table of the estimates with their intervals."""
    needed("sympy")
    rows = []
    for label in fit.labels:
        low, high = fit.interval(label)
        value = measured(fit.values[label], fit.stderr[label])
        rows.append(f"{_tex(label)} & {_tex(value)} & {_tex(_end(low))} & {_tex(_end(high))} \\\\")
    body = "\n".join(rows)
    return (
        f"% {_quoted(fit.model.name)}\n\\[\n{fit.model.latex()}\n\\]\n\n"
        "\\begin{tabular}{lrrr}\n\\hline\nquantity & estimate & from & to (95\\,\\%) \\\\\n\\hline\n"
        f"{body}\n\\hline\n\\end{{tabular}}\n"
    )


def _end(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "open"


def _tex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    return "".join(special.get(c, f"\\{c}" if c in "_%&#${}" else c) for c in text)
