"""Delay equations: accuracy against extended precision, random models beside another solver, and fits of delays.

    python -m benchmarks delays accuracy              12 problems against the method of steps in 50 digits
    python -m benchmarks delays random [--models N]   random models beside SciPy's DOP853 by the method of steps
    python -m benchmarks delays fits [--repeats N]    delays found from noisy data, without bounds

The other solver is SciPy's eighth-order Runge-Kutta method, restarted at every breakpoint and looking back at its own
dense output; its sensitivities are central differences.  A fit is as good as from the truth if its cost is at most that
of a refinement which starts at the true values, plus 0.01; a false certificate is one of a fit that is not.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

import odejet as oj
from odejet.search.refine import refine
from problems.delayed import CASES, compare

RESULTS = Path(__file__).parent / "results" / "delays"
SAME = 0.01


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks delays", description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("accuracy", "random", "fits"))
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=13)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help=f"keep the table in {RESULTS}")
    arguments = parser.parse_args(argv)
    parts: dict[str, Callable[[argparse.Namespace], list[dict]]] = {
        "accuracy": accuracy,
        "random": random,
        "fits": fits,
    }
    rows = parts[arguments.part](arguments)
    if arguments.write:
        RESULTS.mkdir(parents=True, exist_ok=True)
        with (RESULTS / f"{arguments.part}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    return 0


def accuracy(arguments: argparse.Namespace) -> list[dict]:
    rows = []
    for case in CASES:
        values, slopes = compare(case)
        rows.append({"problem": case.name, "values": f"{values:.1e}", "sensitivities": f"{slopes:.1e}"})
        print(f"{case.name:36} values {values:.1e}  sensitivities {slopes:.1e}", flush=True)
    return rows


# --- random models beside another solver ------------------------------------------------------------------------------

TERMS = ("{p}*{x}", "{p}*{x}*{z}", "{p}*{x}/(1 + {z}**2)", "{p}*sin({x})", "{p}*tanh({x} - {z})", "{p}")


def random_model(rng: np.random.Generator) -> tuple[oj.Model, dict[str, float], dict[str, float]]:
    """A model of one to three states with one or two delays and bounded solutions, and values for it."""
    states = ["x", "y", "z"][: rng.integers(1, 4)]
    lags = ["tau", "sigma"][: rng.integers(1, 3)]
    values, equations = {lag: float(rng.uniform(0.3, 2.0)) for lag in lags}, {}
    for state in states:
        terms = [f"-{state}**3", f"-{state}"]
        for _ in range(rng.integers(1, 4)):
            name = f"p{len(values)}"
            values[name] = float(rng.uniform(-1.5, 1.5))
            factors = {
                key: f"{rng.choice(states)}(t - {rng.choice(lags)})" if rng.random() < 0.6 else str(rng.choice(states))
                for key in ("x", "z")
            }
            terms.append(str(rng.choice(TERMS)).format(p=name, **factors))
        equations[state] = " + ".join(terms).replace("+ -", "- ")
    equations[states[0]] += f" + tanh({states[-1]}(t - {lags[-1]})) + {states[0]}(t - {lags[0]})/2"
    model = oj.Model(states=equations, outputs={f"out_{state}": state for state in states})
    used = {name: value for name, value in values.items() if name in model.parameters}
    return model, used, {state: float(rng.uniform(-1, 1)) for state in states}


def by_steps(model: oj.Model, values: dict[str, float], initial: dict[str, float], times: np.ndarray) -> np.ndarray:
    """All states at times by DOP853 from breakpoint to breakpoint."""
    code = {state: _python(str(rate), list(model.states)) for state, rate in model.states.items()}
    lags = [values[lag] for lag in ("tau", "sigma") if lag in values]
    names, end, pieces = list(model.states), float(times[-1]), []
    first = np.array([initial[name] for name in names])

    def past(s: float) -> np.ndarray:
        if s <= 0 or not pieces:
            return first
        return next(piece for begin, piece in reversed(pieces) if begin < s)(s)

    functions = {name: getattr(np, name) for name in ("sin", "tanh", "exp")}
    compiled = [compile(code[name], name, "eval") for name in names]

    def rates(t: float, x: np.ndarray) -> list[float]:
        here = {**functions, **values, **dict(zip(names, x, strict=True)), "t": t}
        here["delay"] = lambda name, lag: past(t - lag)[names.index(name)]
        return [eval(one, {"__builtins__": {}}, here) for one in compiled]

    breaks, sums = {0.0, end}, {0.0}
    for _ in range(9):
        sums = {round(b + lag, 12) for b in sums for lag in lags if b + lag < end}
        breaks |= sums
    # No interval is longer than the shortest delay, so that all that is looked back at is there.
    stops = sorted(breaks)
    stops = sorted({s for a, b in pairwise(stops) for s in np.linspace(a, b, int((b - a) / min(lags)) + 2)})
    x = first
    for begin, stop in pairwise(stops):
        solved = solve_ivp(rates, (begin, stop), x, "DOP853", rtol=1e-12, atol=1e-13, dense_output=True)
        pieces.append((begin, solved.sol))
        x = solved.y[:, -1]
    return np.array([past(float(time)) for time in times])


def _python(rate: str, states: list[str]) -> str:
    """The text of a rate with the names of delayed states as strings."""
    for state in states:
        rate = rate.replace(f"delay({state},", f"delay('{state}',")
    return rate


def random(arguments: argparse.Namespace) -> list[dict]:
    rng, rows = np.random.default_rng(arguments.seed), []
    for number in range(arguments.models):
        model, values, initial = random_model(rng)
        times = np.linspace(0, 6, 13)
        begun = time.process_time()
        ours = oj.simulate(model, values, initial, times, sensitivities=True)
        taken = time.process_time() - begun
        theirs = by_steps(model, values, initial, times)
        states = np.column_stack(list(ours.states.values()))
        scale = np.maximum(np.abs(theirs).max(axis=0), 1e-3)
        worst = float((np.abs(states - theirs) / scale).max()) if ours.success else np.inf
        lag, h = next(name for name in ("tau", "sigma") if name in values), 1e-4
        moved = [by_steps(model, {**values, lag: values[lag] + d}, initial, times) for d in (h, -h)]
        slopes = (moved[0] - moved[1]) / (2 * h)
        mine = np.column_stack([ours.sensitivity(name, lag) for name in model.states])
        away = np.array([min(abs(t % values[lag]), abs(-t % values[lag])) > 2 * h for t in times])
        bend = float((np.abs(mine - slopes)[away] / np.maximum(np.abs(slopes).max(axis=0), 1e-2)).max())
        rows.append({"model": number, "values": f"{worst:.1e}", "by delay": f"{bend:.1e}", "seconds": f"{taken:.4f}"})
        print(f"{number:3} values {worst:.1e}  sensitivity by {lag} {bend:.1e}", flush=True)
    apart = [float(row["values"]) for row in rows]
    slopes = [float(row["by delay"]) for row in rows]
    print(f"{len(rows)} models: values differ by at most {max(apart):.1e}, sensitivities by {max(slopes):.1e}")
    return rows


# --- fits -------------------------------------------------------------------------------------------------------------

STEPS = np.array([0, 5, 5, 20, 20, 32, 32, 60.0]), np.array([0, 0, 1, 1, -0.5, -0.5, 0.7, 0.7])
FITS = {
    "blowflies": (
        oj.Model({"N": "P*N(t - tau)*exp(-N(t - tau)/N0) - d*N"}, {"y": "N"}, name="blowflies"),
        {"P": 8.0, "tau": 15.0, "N0": 400.0, "d": 0.16},
        {"N": 300.0},
        np.linspace(0, 240, 121),
        "lognormal",
        {},
    ),
    "first-order plant": (
        oj.Model({"x": "(K*u(t - d) - x)/T"}, {"y": "x"}, {"u": "sampled"}, initial={"x": 0}),
        {"K": 2.0, "d": 3.3, "T": 5.0},
        {},
        np.linspace(0, 60, 121),
        None,
        {"u": STEPS},
    ),
    "second-order plant": (
        oj.Model(
            {"x": "v", "v": "w**2*(K*u(t - d) - x) - 2*z*w*v"}, {"y": "x"}, {"u": "sampled"}, initial={"x": 0, "v": 0}
        ),
        {"K": 2.0, "d": 2.1, "w": 0.6, "z": 0.4},
        {},
        np.linspace(0, 60, 121),
        None,
        {"u": STEPS},
    ),
    "effect after a delay": (
        oj.Model(
            {"C": "-k*C", "E": "kin - kout*E*(1 + S*C(t - tau))"},
            {"c": "C", "e": "E"},
            initial={"C": 10, "E": "kin/kout"},
            history={"C": 0},
        ),
        {"k": 0.3, "kin": 4.0, "kout": 0.5, "S": 0.3, "tau": 2.0},
        {},
        np.linspace(0, 24, 49),
        None,
        {},
    ),
}


def fits(arguments: argparse.Namespace) -> list[dict]:
    rows = []
    for name, (model, truth, initial, times, law, inputs) in FITS.items():
        for repeat in range(arguments.repeats):
            rng = np.random.default_rng([arguments.seed, repeat])
            true = {key: value * float(np.exp(rng.normal(0, 0.15))) for key, value in truth.items()}
            first = {key: value * float(np.exp(rng.normal(0, 0.15))) for key, value in initial.items()}
            sim = oj.simulate(model, true, first, times, inputs=inputs or None)
            series = {}
            for output, values in sim.outputs.items():
                noise = rng.standard_normal(len(times))
                series[output] = values * np.exp(0.1 * noise) if law else values + 0.03 * np.abs(values).max() * noise
            data = oj.Data(times, series, inputs=inputs) if inputs else oj.Data(times, series)
            options = {"noise": dict.fromkeys(series, "lognormal")} if law else {}
            problem, begun = oj.Problem(model, data, **options), time.process_time()
            fit = oj.fit(problem, seed=repeat)
            seconds = time.process_time() - begun
            best = refine(
                problem.misfit, problem.layout.vector({**_labels(problem, first), **true}), frame=problem.frame()
            )
            gap = problem.objective.value(fit.estimates) - problem.objective.value(best.z)
            good = bool(gap <= SAME)
            lag = next(key for key in ("tau", "d") if key in true and (key != "d" or "tau" not in true))
            away = abs(fit.values[lag] - true[lag]) / fit.stderr[lag]
            row = {"problem": name, "repeat": repeat, "gap": f"{gap:.2e}", "good": good, "certified": fit.certified}
            rows.append(row | {"delay off by sds": f"{away:.2f}", "seconds": f"{seconds:.1f}"})
            print(*rows[-1].values(), sep="  ", flush=True)
    good, certified = sum(row["good"] for row in rows), sum(row["certified"] for row in rows)
    false = sum(row["certified"] and not row["good"] for row in rows)
    print(f"{len(rows)} fits: as good as from the truth {good}, certified {certified}, falsely {false}")
    return rows


def _labels(problem: oj.Problem, first: dict[str, float]) -> dict[str, float]:
    """Initial states by the labels that they have in the problem."""
    return {one.label: first[one.name] for one in problem.layout if one.name in first}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
