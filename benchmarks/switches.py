"""Switches and events in random models: is any simulation wrong that says it succeeded?

    python -m benchmarks switches [--seed S] [--count N] [--path FILE]

Every model has up to three states, perhaps a fast one beside them (stiff), one to three switches (piecewise, abs, min,
max, floor; in time, in states, in several of them) and perhaps events, at times or on conditions.  The yardsticks are
CVODE with its own root finding and heyoka with its terminal events: right-hand sides have a flag per switch, both
programs stop where one is to change, and start again.  Where flags change without end (the solution slides on a
surface, or events pile up) they have nothing to say; there Euler's method in tiny steps, which chatters along, is a
rough yardstick.  Every model is one line of a file: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import heyoka
import numpy as np
from sksundae.cvode import CVODE

from benchmarks import lines as records
from odejet import Event, Model
from odejet.simulate.flow import Flow, Outcome, Trajectory

RESULTS = Path(__file__).parent / "results" / "switches.jsonl"
WRONG = 1e-6
"""Differences beyond this, relative to the largest value of a state, are wrong; CVODE at 1e-11 and heyoka stay well
below."""

COARSE, FINE = 0.02, 0.002
"""The longest steps of the yardsticks, and those that settle a difference."""

ROUGH, STEP = 1e-2, 1e-4
"""The same beside Euler's method, and its steps."""

BESIDE = 1e-6
"""Times as near to an event are not compared: CVODE places events to 1e-9 at best."""

_END = 12.0
_FAST = 1e4
_AT_ONCE, _INSTANT = 30, 1e-7  # changes of flags within so short a time are endless
_BASES: dict[str, dict[str, str]] = {
    "decay": {"x": "-0.3*x + 0.1"},
    "growth": {"x": "0.5*x*(1 - x/2)"},
    "rotation": {"x": "y", "y": "-x - 0.05*y"},
    "prey": {"x": "0.6*x - 0.5*x*y", "y": "0.4*x*y - 0.5*y"},
    "chain": {"x": "-0.7*x", "y": "0.7*x - 0.2*y", "z": "0.2*y - 0.05*z"},
}


@dataclass
class Case:
    """A random model, and the same with flags that are one or zero: terms of the rates, and the functions that change
    flags, as text for any arithmetic that Python can evaluate."""

    rates: dict[str, str]
    values: dict[str, float]
    kinds: list[str]
    times: np.ndarray
    terms: dict[str, list[str]] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)  # of flags: text in t, states, parameters
    events: list[Event] = field(default_factory=list)
    conditions: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # flag that rises, and what it sets
    planned: list[tuple[float, dict[str, str]]] = field(default_factory=list)

    def flag(self, function: str) -> str:
        """A flag for the sign of a function."""
        self.functions.append(function)
        return f"b[{len(self.functions) - 1}]"


def drawn(seed: int, draw: int) -> Case:
    rng = np.random.default_rng([seed, draw])
    base = str(rng.choice(list(_BASES)))
    rates = dict(_BASES[base])
    values = {name: float(rng.uniform(0.2, 2.0)) for name in rates}
    plain = Flow(Model(rates)).run([], list(values.values()), np.linspace(0, _END, 201), sensitivities=False)
    paths = {name: plain.states[:, i, 0] for i, name in enumerate(rates)}
    case = Case(rates, values, [base], _times(rng))
    case.terms = {name: [rate] for name, rate in rates.items()}
    for i in range(int(rng.integers(1, 4))):
        _add_switch(case, rng, i, paths)
    if rng.random() < 0.4:
        _add_condition(case, rng, paths)
    if rng.random() < 0.3:
        _add_doses(case, rng)
    if rng.random() < 0.2:
        source = next(iter(paths))
        case.rates["f"] = f"-{_FAST:g}*(f - {source})"
        case.terms["f"] = [case.rates["f"]]
        case.values = {**{n: case.values[n] for n in paths}, "f": case.values[source], **case.values}
        case.kinds.append("stiff")
    return case


def _times(rng: np.random.Generator) -> np.ndarray:
    times = np.linspace(0, _END, int(rng.choice([2, 3, 5, 30, 200])))
    return times if rng.random() < 0.7 else np.r_[0.0, np.sort(rng.uniform(0, _END, len(times))), _END]


def _add_switch(case: Case, rng: np.random.Generator, i: int, paths: dict[str, np.ndarray]) -> None:
    target, state = (str(rng.choice(list(paths))) for _ in range(2))
    level, name = float(rng.choice(paths[state])), f"a{i}"
    case.values[name] = float(rng.uniform(0.2, 1.5)) * (1 if rng.random() < 0.7 else -1)
    bounded = f"{target}/(1 + {target}**2)"  # so that nothing blows up
    functions = {
        "time": f"t - {rng.uniform(0, _END):.6g}",
        "wave": f"sin({rng.uniform(0.5, 3):.6g}*t) - {rng.uniform(-0.9, 0.9):.6g}",
        "state": f"{state} - {level:.6g}",
        "parameter": f"{state} - {name}",
        "square": f"{state}**2 - {level:.6g}*{target} + {rng.uniform(0, 0.2):.6g}",
    }
    shape, where = str(rng.choice(["piecewise", "window", "abs", "max", "min", "floor"])), str(rng.choice([*functions]))
    g = functions[where]
    if shape == "piecewise":
        ours, theirs = f"piecewise(1, {g} > 0, 0.2)", f"0.2 + 0.8*{case.flag(g)}"
    elif shape == "window":
        other = f"t - {rng.uniform(0, _END):.6g}"
        ours = f"piecewise(1, {g} > 0 and not {other} < 0, 0)"
        theirs = f"{case.flag(g)}*{case.flag(other)}"
    elif shape == "abs":
        ours, theirs = f"abs({g})/(1 + ({g})**2)", f"(2*{case.flag(g)} - 1)*({g})/(1 + ({g})**2)"
    elif shape == "floor":
        # three steps of a slow wave, as the yardsticks need one flag each
        wave = f"1.4*sin({rng.uniform(0.3, 1):.6g}*t)"
        flags = [case.flag(f"{wave} - ({k})") for k in (-1, 0, 1)]
        ours, theirs = f"floor({wave})/2", f"(-2 + {' + '.join(flags)})/2"
    else:
        flag = case.flag(f"{g} - 0.1")
        taken, left = (flag, f"(1 - {flag})") if shape == "max" else (f"(1 - {flag})", flag)
        ours, theirs = f"{shape}({g}, 0.1)/(1 + {state}**2)", f"({taken}*({g}) + {left}*0.1)/(1 + {state}**2)"
    case.rates[target] += f" + {name}*{bounded}*({ours})"
    case.terms[target].append(f"{name}*{bounded}*({theirs})")
    case.kinds.append(f"{shape} in {where}")


def _add_condition(case: Case, rng: np.random.Generator, paths: dict[str, np.ndarray]) -> None:
    state = str(rng.choice(list(paths)))
    level, other = float(rng.choice(paths[state])), str(rng.choice(list(paths)))
    change = {state: f"0.5*{state} + 0.1", other: f"{other} + 0.3"} if rng.random() < 0.5 else {state: f"0.7*{state}"}
    case.events.append(Event(when=f"{state} > {level:.6g}", set=change))
    flag = case.flag(f"{state} - {level:.6g}")
    case.conditions.append((int(flag[2:-1]), change))
    case.kinds.append("condition")


def _add_doses(case: Case, rng: np.random.Generator) -> None:
    first, every, target = float(rng.uniform(0, 4)), float(rng.uniform(0.5, 3)), str(rng.choice(list(case.rates)))
    first, every = round(first, 4), round(every, 4)
    change = {target: f"{target} + 0.4"}
    case.events.append(Event(at=first, every=every, count=5, set=change))
    case.planned += [(first + i * every, change) for i in range(5) if first + i * every <= _END]
    case.kinds.append("doses")


# --- the yardsticks ---


class Endless(Exception):
    pass


@dataclass
class Yardstick:
    """A case by another program, flag by flag: `leg` is what that program does between two changes."""

    case: Case
    longest: float

    def __post_init__(self) -> None:
        self.states = list(self.case.rates)
        self.numbers = {name: value for name, value in self.case.values.items() if name not in self.case.rates}
        self.scope: dict[str, Any] = self.numbers | {"sin": math.sin}
        arguments = ", ".join(["t", "b", *self.states])
        self.rate = eval(
            f"lambda {arguments}: {self.written(' + '.join(self.case.terms[s]) for s in self.states)}", self.scope
        )
        self.functions = eval(f"lambda {arguments}: {self.written(self.case.functions)}", self.scope)
        self.happened: list[float] = []

    @staticmethod
    def written(texts: Iterable[str]) -> str:
        """Texts as that of a tuple."""
        return "(" + "".join(f"{text}, " for text in texts) + ")"

    def leg(self, t: float, x: np.ndarray, b: list[bool], target: float) -> tuple[float, np.ndarray, bool]:
        """The time and the states where a function loses its sign, or at the target, and whether one did."""
        raise NotImplementedError

    def set(self, x: np.ndarray, change: dict[str, str], t: float) -> np.ndarray:
        place = dict(zip(self.states, x, strict=True)) | {"t": t}
        new = {name: eval(text, dict(self.scope), place) for name, text in change.items()}
        return np.array([new.get(name, value) for name, value in place.items() if name != "t"])

    def flags(self, t: float, x: np.ndarray, b: list[bool] | None = None) -> list[bool]:
        """The flags just after a time: where a function vanishes, by where it goes."""
        found = [value > 0 for value in self.functions(t, b, *x)]
        for _ in range(4):
            before, ahead = found, x + 1e-8 * np.array(self.rate(t, found, *x))
            later = self.functions(t + 1e-8, found, *ahead)
            now = self.functions(t, found, *x)
            found = [(b2 if abs(a) < 1e-7 else a) > 0 for a, b2 in zip(now, later, strict=True)]
            if found == before:
                return found
        raise Endless  # the solution slides

    def run(self) -> np.ndarray:
        case, t, x = self.case, 0.0, np.array([self.case.values[s] for s in self.states])
        b, rows, planned = self.flags(t, x), [], sorted(case.planned, key=lambda one: one[0])
        changes: list[float] = []
        for target in sorted({*case.times.tolist(), *(when for when, _ in planned)}):
            while t < target:
                t, x, stopped = self.leg(t, x, b, target)
                if stopped:
                    changes = [*changes[-_AT_ONCE:], t]
                    if len(changes) > _AT_ONCE and changes[-1] - changes[0] < _INSTANT * _AT_ONCE:
                        raise Endless
                    x, b = self.past(t, x, b)
            while planned and planned[0][0] <= t:
                x = self.set(x, planned.pop(0)[1], t)
                self.happened.append(t)
                x, b = self.cascade(t, x, b, self.flags(t, x))
            if target in case.times:
                rows.append(x)
        return np.array(rows)

    def stepped(self) -> np.ndarray:
        """Euler's method, with flags as they are at each step; events on conditions have to wait for a step."""
        case, x = self.case, np.array([self.case.values[s] for s in self.states])
        planned, rows, t = sorted(case.planned, key=lambda one: one[0]), [x], 0.0
        b = [value > 0 for value in self.functions(t, None, *x)]
        for target in case.times[1:]:
            grid = np.linspace(t, target, 1 + max(1, math.ceil((target - t) / STEP)))
            for h in np.diff(grid):
                x = x + h * np.array(self.rate(t, b, *x))
                t += h
                while planned and planned[0][0] <= t:
                    x = self.set(x, planned.pop(0)[1], t)
                new = [value > 0 for value in self.functions(t, b, *x)]
                x, b = self.cascade_roughly(t, x, b, new)
            t = float(target)
            rows.append(x)
        return np.array(rows)

    def cascade_roughly(self, t: float, x: np.ndarray, b: list[bool], new: list[bool]) -> tuple[np.ndarray, list[bool]]:
        for i, change in self.case.conditions:
            if new[i] and not b[i]:
                x = self.set(x, change, t)
                new = [value > 0 for value in self.functions(t, new, *x)]
        return x, new

    def past(self, t: float, x: np.ndarray, b: list[bool]) -> tuple[np.ndarray, list[bool]]:
        new = self.flags(t, x, b)
        return self.cascade(t, x, b, new)

    def cascade(self, t: float, x: np.ndarray, b: list[bool], new: list[bool]) -> tuple[np.ndarray, list[bool]]:
        for _ in range(20):
            risen = [change for i, change in self.case.conditions if new[i] and not b[i]]
            if not risen:
                return x, new
            for change in risen:
                x = self.set(x, change, t)
            self.happened.append(t)
            b, new = new, self.flags(t, x)
        raise Endless


class Cvode(Yardstick):
    """CVODE with its root finding, at steps short enough to see every change of sign."""

    def leg(self, t: float, x: np.ndarray, b: list[bool], target: float) -> tuple[float, np.ndarray, bool]:
        def rates(t, y, out):
            out[:] = self.rate(t, b, *y)

        def roots(t, y, out):
            out[:] = self.functions(t, b, *y)

        count = len(self.case.functions)
        options = {"rtol": 1e-11, "atol": 1e-13, "max_step": self.longest, "max_num_steps": 1_000_000}
        if count:
            options |= {"eventsfn": roots, "num_events": count}
        found = CVODE(rates, method="BDF" if "f" in self.states else "Adams", **options).solve([t, target], x)
        stopped = bool(count) and found.t_events is not None and len(found.t_events) > 0
        if not stopped and found.t[-1] < target:
            raise Endless
        return float(found.t[-1]), np.array(found.y[-1]), stopped


class Heyoka(Yardstick):
    """heyoka's Taylor integrator, which stops at terminal events; flags are its parameters."""

    def __post_init__(self) -> None:
        super().__post_init__()
        symbols = [heyoka.expression(name) for name in self.states]
        flags = [heyoka.par[i] for i in range(len(self.case.functions))]
        scope = self.numbers | {"sin": heyoka.sin, "t": heyoka.time, "b": flags}
        scope |= dict(zip(self.states, symbols, strict=True))
        rates = [eval(" + ".join(self.case.terms[name]), dict(scope)) for name in self.states]
        events = [heyoka.t_event(eval(text, dict(scope))) for text in self.case.functions]
        system = list(zip(symbols, rates, strict=True))
        self.integrator = heyoka.taylor_adaptive(system, t_events=events, compact_mode=True)

    def leg(self, t: float, x: np.ndarray, b: list[bool], target: float) -> tuple[float, np.ndarray, bool]:
        integrator = self.integrator
        if integrator.time != t or np.any(integrator.state != x):
            integrator.reset_cooldowns()  # where something was set, an event of a moment ago may happen again
            integrator.time, integrator.state[:] = t, x
        integrator.pars[:] = b[: len(integrator.pars)]  # those of conditions come last, and no rate has them
        outcome = integrator.propagate_until(target, max_delta_t=self.longest)[0]
        stopped = -len(self.case.functions) <= int(outcome) < 0
        if not stopped and outcome != heyoka.taylor_outcome.time_limit:
            raise Endless
        return float(integrator.time), integrator.state.copy(), stopped


def measured(seed: int, draw: int) -> dict:
    case = drawn(seed, draw)
    states = list(case.rates)
    parameters = [name for name in case.values if name not in case.rates]
    model = Model(case.rates, parameters=parameters, events=case.events)
    flow = Flow(model)
    given = [case.values[p] for p in parameters], [case.values[s] for s in states], case.times
    runs = [flow.run(*given, sensitivities=with_them) for with_them in (True, False)]
    outcome = next((run.outcome for run in runs if run.outcome is not Outcome.COMPLETED), Outcome.COMPLETED)
    row = {"seed": seed, "draw": draw, "kinds": case.kinds, "outcome": outcome.name, "method": runs[0].method[:20]}
    row |= {"steps": runs[0].steps, "times": len(case.times)}
    differences: dict[str, float | None] = {}
    happened: list[float] = []
    for program in (Cvode, Heyoka):
        difference, when = None, []
        if outcome is Outcome.COMPLETED:
            difference, when = compared(program(case, COARSE), runs)
        if difference is not None and difference > WRONG:  # is it the yardstick?
            difference, when = compared(program(case, FINE), runs)
        differences[program.__name__.lower()], happened = difference, happened + when
    if outcome is Outcome.COMPLETED and all(difference is None for difference in differences.values()):
        row["rough"] = roughly(case, runs[0].states[:, :, 0])
    sensitivity = _sensitivity(flow, given, runs[0].states, happened) if outcome is Outcome.COMPLETED else None
    return row | differences | {"sensitivity": sensitivity, "events": len(happened) // 2}


def compared(yardstick: Yardstick, runs: list[Trajectory]) -> tuple[float | None, list[float]]:
    """The largest difference from a yardstick, if it has something to say, and when events happened there."""
    try:
        exact = yardstick.run()
    except (Endless, ArithmeticError, ValueError):
        return None, yardstick.happened
    clear = np.array([all(abs(t - when) > BESIDE for when in yardstick.happened) for t in yardstick.case.times])
    scale = np.maximum(np.abs(exact).max(axis=0), 1e-300)
    found = [float((np.abs(run.states[clear, :, 0] - exact[clear]) / scale).max()) for run in runs]
    return max(found), yardstick.happened


def roughly(case: Case, found: np.ndarray) -> float:
    exact = Yardstick(case, STEP).stepped()
    return float((np.abs(found - exact) / np.maximum(np.abs(exact).max(axis=0), 1e-300)).max())


def _sensitivity(flow: Flow, given, states: np.ndarray, happened: list[float]) -> float | None:
    """The sensitivity to the first parameter against a central difference, relative to its largest value."""
    parameters, initial, times = given
    step, lane = 1e-6 * parameters[0], 1 + len(initial)
    moved = []
    for sign in (1, -1):
        run = flow.run([parameters[0] + sign * step, *parameters[1:]], initial, times, sensitivities=False)
        if run.outcome is not Outcome.COMPLETED:
            return None
        moved.append(run.states[:, :, 0])
    quotient = (moved[0] - moved[1]) / (2 * step)
    clear = np.array([all(abs(t - when) > 1e-3 for when in happened) for t in times])
    scale = np.maximum(np.abs(quotient[clear]).max(), 1.0)
    return float(np.abs(states[clear][:, :, lane] - quotient[clear]).max() / scale)


def summary(rows: list[dict]) -> str:
    programs = ("cvode", "heyoka")
    wrong = [row for row in rows if max(row[p] or 0 for p in programs) > WRONG or row.get("rough", 0) > ROUGH]
    outcomes = {name: sum(row["outcome"] == name for row in rows) for name in sorted({r["outcome"] for r in rows})}
    slopes = np.array([row["sensitivity"] for row in rows if row["sensitivity"] is not None] or [0.0])
    judged = {p: np.array([row[p] for row in rows if row[p] is not None] or [0.0]) for p in programs}
    beside = "; ".join(
        f"{len(found)} beside {program}, largest difference {found.max():.1e}, median {np.median(found):.1e}"
        for program, found in judged.items()
    )
    return (
        f"{len(rows)} models, {len(wrong)} wrong ({', '.join(str(row['draw']) for row in wrong)}): {beside}; "
        f"{sum('rough' in row for row in rows)} beside Euler's method; outcomes {outcomes}; sensitivities against "
        f"differences: median {np.median(slopes):.1e}, 95 % below {np.quantile(slopes, 0.95):.1e}"
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks switches", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--path", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    rows = records.read(arguments.path)
    rows = [row for row in rows if row["seed"] == arguments.seed]
    done = {row["draw"] for row in rows}
    arguments.path.parent.mkdir(parents=True, exist_ok=True)
    for draw in range(arguments.count):
        if draw not in done:
            rows.append(row := measured(arguments.seed, draw))
            records.add(arguments.path, row)
    print(summary(rows))
    return 0
