"""Stiff problems with and without sensitivities, side by side with CVODES and AMICI in one run.

    python -m benchmarks stiff [--problems NAME ...] [--tolerances 1e-6 1e-8 1e-10] [--amici PYTHON] [--write]

Robertson, HIRES, E5, the Oregonator, the pollution model and the ring modulator are those of Hairer and Wanner (1996)
and of the Test Set for IVP Solvers (Mazzia and Magherini 2008); all initial states and parameters are unknowns.  The
others are problems of the public PEtab collection, with all their experiments, at their published parameters.

CVODES runs through CasADi on the classics, on the variational equations where sensitivities are asked for.  AMICI runs
where PYTHON has it, on models that it compiles first, and tells the time that its solver takes; ours is that of the
whole call.  Times are processor milliseconds, the best of some repetitions, each at values that differ from those
before in their last digits, so that no steady state is remembered.  With `--write` the rows of a problem take their
places in the table as soon as they are measured, so that problems may be measured one after the other.  Errors are
relative to the largest value of each state (or output of the collection) and sensitivity: of classics from CVODES at
its tightest, of the others, and of all with `--quick`, from our own solution at the tightest tolerance.

The late sensitivities of E5 rest on y2 - y3 - y4, which is constant and a difference of numbers that are 10^6 times
larger, so that programs in double precision find about four digits of them.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import casadi
import numpy as np

from benchmarks import collection
from odejet.model import Model
from odejet.objective.courses import Effort
from odejet.simulate.flow import TOLERANCE, Flow, Outcome, Trajectory
from problems.yardsticks import Cvodes, _rates

RESULTS = Path(__file__).parent / "results" / "stiff"
WORKER = Path(__file__).with_name("stiff_amici.py")
COLLECTED = ("Boehm", "Raia", "Elowitz", "Fujita", "Brannmark", "Bachmann")
REPEATS, ENOUGH = 51, 2.0
"""Repetitions, and seconds after which there are no more of them."""

NOTHING = 1e-20
LONG = 0.3
"""Seconds of a call beyond which it is not repeated."""

EPSILON = float(np.finfo(float).eps)

STEPS = 1_000_000
"""As many as CVODES and AMICI may take."""


@dataclass(frozen=True)
class Problem:
    """A model at values, with the times at which it is asked for."""

    model: Model
    parameters: dict[str, float]
    initial: dict[str, float]
    times: np.ndarray

    @property
    def values(self) -> tuple[list[float], list[float]]:
        return list(self.parameters.values()), [self.initial.get(state, 0.0) for state in self.model.states]


def problem(states: dict[str, str], parameters: dict[str, float], initial: dict[str, float], times: Any) -> Problem:
    model = Model(states, parameters=tuple(parameters))
    return Problem(model, parameters, initial, np.r_[0.0, times])


def pollution() -> Problem:
    constants = [0.35, 26.6, 1.23e4, 8.6e-4, 8.2e-4, 1.5e4, 1.3e-4, 2.4e4, 1.65e4, 9e3, 0.022, 1.2e4, 1.88, 1.63e4]
    constants += [4.8e6, 3.5e-4, 0.0175, 1e8, 4.44e11, 1.24e3, 2.1, 5.78, 0.0474, 1.78e3, 3.12]
    factors = [
        "1",
        "2*4",
        "5*2",
        "7",
        "7",
        "7*6",
        "9",
        "9*6",
        "11*2",
        "11*1",
        "13",
        "10*2",
        "14",
        "1*6",
        "3",
        "4",
        "4",
        "16",
        "16",
        "17*6",
        "19",
        "19",
        "1*4",
        "19*1",
        "20",
    ]
    rates = [f"k{i}*" + "*".join(f"y{j}" for j in factor.split("*")) for i, factor in enumerate(factors, start=1)]
    balance = {
        1: "-1-10-14-23-24+2+3+9+11+12+22+25", 2: "-2-3-9-12+1+21", 3: "-15+1+17+19+22", 4: "-2-16-17-23+15",
        5: "-3+4+4+6+7+13+20", 6: "-6-8-14-20+3+18+18", 7: "-4-5-6+13", 8: "+4+5+6+7", 9: "-7-8", 10: "-12+7+9",
        11: "-9-10+8+11", 12: "+9", 13: "-11+10", 14: "-13+12", 15: "+14", 16: "-18-19+16", 17: "-20", 18: "+20",
        19: "-21-22-24+23+25", 20: "-25+24",
    }  # fmt: skip
    states = {
        f"y{i}": "".join(
            f" {sign} {rates[int(number) - 1]}"
            for sign, number in zip(
                [c for c in text if c in "+-"], text.replace("-", "+").strip("+").split("+"), strict=True
            )
        ).strip(" +")
        for i, text in balance.items()
    }
    initial = {"y2": 0.2, "y4": 0.04, "y7": 0.1, "y8": 0.3, "y9": 0.01, "y17": 0.007}
    parameters = {f"k{i}": value for i, value in enumerate(constants, start=1)}
    return problem(states, parameters, initial, np.linspace(3, 60, 20))


def ring_modulator() -> Problem:
    drops = {
        1: "y3 - y5 - y7 - u", 2: "-y4 + y6 - y7 - u", 3: "y4 + y5 + y7 + u", 4: "-y3 - y6 + y7 + u",
    }  # fmt: skip
    second = "2*sin(62831.853071795865*t)"
    q = {i: f"g*(exp(d*({drop.replace('u', second)})) - 1)" for i, drop in drops.items()}
    states = {
        "y1": "(y8 - y10/2 + y11/2 + y14 - y1/R)/C",
        "y2": "(y9 - y12/2 + y13/2 + y15 - y2/R)/C",
        "y3": f"(y10 - {q[1]} + {q[4]})/Cs",
        "y4": f"(-y11 + {q[2]} - {q[3]})/Cs",
        "y5": f"(y12 + {q[1]} - {q[3]})/Cs",
        "y6": f"(-y13 - {q[2]} + {q[4]})/Cs",
        "y7": f"(-y7/50 + {q[1]} + {q[2]} - {q[3]} - {q[4]})/Cp",
        "y8": "-y1/4.45",
        "y9": "-y2/4.45",
        "y10": "(y1/2 - y3 - 17.3*y10)/0.0005",
        "y11": "(-y1/2 + y4 - 17.3*y11)/0.0005",
        "y12": "(y2/2 - y5 - 17.3*y12)/0.0005",
        "y13": "(-y2/2 + y6 - 17.3*y13)/0.0005",
        "y14": "(-y1 + sin(6283.1853071795865*t)/2 - 86.3*y14)/0.002",
        "y15": "(-y2 - 636.3*y15)/0.002",
    }
    values = {"g": 40.67286402e-9, "d": 17.7493332, "R": 25e3, "C": 1.6e-8, "Cs": 2e-12, "Cp": 1e-8}
    return problem(states, values, {}, np.linspace(1e-5, 2e-4, 20))


def problems() -> dict[str, Problem]:
    hires = {
        "y1": "-a*y1 + b*y2 + c*y3 + 0.0007", "y2": "a*y1 - 8.75*y2", "y3": "-10.03*y3 + b*y4 + 0.035*y5",
        "y4": "c*y2 + a*y3 - 1.12*y4", "y5": "-1.745*y5 + b*y6 + b*y7",
        "y6": "-k*y6*y8 + 0.69*y4 + a*y5 - b*y6 + 0.69*y7", "y7": "k*y6*y8 - 1.81*y7", "y8": "-k*y6*y8 + 1.81*y7",
    }  # fmt: skip
    return {
        "robertson": problem(
            {"a": "-k1*a + k3*b*c", "b": "k1*a - k3*b*c - k2*b**2", "c": "k2*b**2"},
            {"k1": 0.04, "k2": 3e7, "k3": 1e4},
            {"a": 1.0},
            np.geomspace(0.1, 1e6, 20),
        ),
        "hires": problem(
            hires, {"a": 1.71, "b": 0.43, "c": 8.32, "k": 280.0}, {"y1": 1.0, "y8": 0.0057}, np.linspace(16, 321, 20)
        ),
        "e5": problem(
            {
                "y1": "-A*y1 - B*y1*y3", "y2": "A*y1 - 1000000*C*y2*y3",
                "y3": "A*y1 - B*y1*y3 - 1000000*C*y2*y3 + C*y4", "y4": "B*y1*y3 - C*y4",
            },
            {"A": 7.89e-10, "B": 1.1e7, "C": 1.13e3},
            {"y1": 1.76e-3},
            np.geomspace(1e-2, 1e9, 20),
        ),
        "oregonator": problem(
            {"y1": "s*(y2 + y1*(1 - q*y1 - y2))", "y2": "(y3 - (1 + y1)*y2)/s", "y3": "w*(y1 - y3)"},
            {"s": 77.27, "q": 8.375e-6, "w": 0.161},
            {"y1": 1.0, "y2": 2.0, "y3": 3.0},
            np.linspace(18, 360, 20),
        ),
        "pollution": pollution(),
        "ring modulator": ring_modulator(),
    }  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One problem at one tolerance, with sensitivities or without."""

    problem: str
    states: int
    unknowns: int
    sensitivities: bool
    tolerance: float
    method: str
    ours_ms: float | None
    cvodes_ms: float | None
    amici_ms: float | None
    ours_error: float | None  # of the values
    ours_sensitivity_error: float | None
    cvodes_error: float | None
    cvodes_sensitivity_error: float | None


class Values:
    """CVODES through CasADi, for the states alone."""

    def __init__(self, model: Model, times: np.ndarray, tolerance: float) -> None:
        names = [*model.states, *model.parameters, "t"]
        n = len(model.states)
        states, parameters, now = casadi.SX.sym("x", n), casadi.SX.sym("p", len(names) - n - 1), casadi.SX.sym("t")
        symbols = [*casadi.vertsplit(states), *casadi.vertsplit(parameters), now]
        rates = _rates(model, dict(zip(names, symbols, strict=True)), casadi, lambda exact: casadi.SX(float(exact)))
        equations = {"t": now, "x": states, "p": parameters, "ode": casadi.vertcat(*rates)}
        options = {"reltol": tolerance, "abstol": ABSOLUTE * tolerance, "max_num_steps": 1_000_000}
        self.integrator = casadi.integrator("flow", "cvodes", equations, float(times[0]), times[1:].tolist(), options)

    def run(self, parameters: list[float], states: list[float]) -> np.ndarray | None:
        try:
            found = self.integrator(x0=states, p=parameters)["xf"].full().T
        except RuntimeError:
            return None
        return np.vstack([states, found])[:, :, None]


ABSOLUTE = 1e-6
"""Absolute tolerances of CVODES, relative to the relative ones: some states of these problems are small."""


TIGHT = {"ring modulator": (1e-10, 1e-14)}
"""Relative and absolute tolerances of the reference where 1e-12 and 1e-24 are more than CVODES can hold."""


def exact(name: str, case: Problem) -> np.ndarray | None:
    """The reference for states and sensitivities: CVODES on the variational equations."""
    relative, absolute = TIGHT.get(name, (1e-12, 1e-24))
    return Cvodes(case.model, case.times, relative, absolute, 10_000_000).run(*case.values)


def milliseconds(call: Callable[[], object], repeats: int = REPEATS) -> float:
    times: list[float] = []
    while len(times) < repeats and sum(times) < ENOUGH:
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return 1e3 * min(times)


def error(found: np.ndarray | None, reference: np.ndarray | None) -> float | None:
    """The largest difference, relative to the largest value over time.

    What is smaller than all others by more than `NOTHING` is zero but for rounding, as the states of a gene that is
    switched off.
    """
    if found is None or reference is None or len(found) < len(reference):
        return None
    size = np.abs(reference).max(axis=0)
    gap = np.abs(found - reference).max(axis=0) / np.where(size > NOTHING * size.max(axis=0), size, np.inf)
    return float(gap.max())


class Classic:
    """A model by itself: its states at times."""

    def __init__(self, name: str, independent: bool) -> None:
        self.name, self.case = name, problems()[name]
        self.flow, model = Flow(self.case.model), self.case.model
        self.sizes = len(model.states), len(model.states) + len(model.parameters)
        self.slopes = exact(name, self.case) if independent else self.run(TOLERANCE, True)[0].states
        self.values = None if self.slopes is None else self.slopes[:, :, :1]

    def run(self, tolerance: float, sensitivities: bool) -> list[Trajectory]:
        case, limits = self.case, {"max_steps": STEPS, "stiff_steps": STEPS}
        return [self.flow.run(*case.values, case.times, sensitivities=sensitivities, tolerance=tolerance, **limits)]

    def errors(self, found: list[Trajectory], sensitivities: bool) -> tuple[float | None, float | None]:
        states = found[0].states
        return error(states[:, :, :1], self.values), error(states, self.slopes) if sensitivities else None

    def cvodes(self, tolerance: float, sensitivities: bool) -> tuple[float | None, float | None, float | None]:
        """The time and the errors of CVODES."""
        peer = (Cvodes if sensitivities else Values)(self.case.model, self.case.times, tolerance)
        begin = time.process_time()
        found = peer.run(*self.case.values)
        if found is None:
            return None, None, None
        repeats = 1 if time.process_time() - begin > LONG else REPEATS
        slopes = error(found, self.slopes) if sensitivities else None
        taken = milliseconds(lambda: peer.run(*self.case.values), repeats)
        return taken, error(found[:, :, :1], self.values), slopes

    def job(self, folder: Path) -> dict[str, Any]:
        """What AMICI is to simulate: the model with its initial states as parameters."""
        model, name = self.case.model, self.name.replace(" ", "_")
        initial = {f"{state}_0": self.case.initial.get(state, 0.0) for state in model.states}
        known = {state: f"{state}_0" for state in model.states}
        names = (*self.case.parameters, *initial)
        Model(dict(model.states), parameters=names, initial=known, name=name).to_sbml(folder / f"{name}.xml")
        times = self.case.times.tolist()
        return {"sbml": str(folder / f"{name}.xml"), "parameters": self.case.parameters | initial, "times": times}


class Collected:
    """A problem of the collection: the outputs of all its experiments at its published parameters."""

    def __init__(self, name: str, independent: bool) -> None:
        self.name, self.folder = name, next(iter(collection.FOLDER.glob(f"{name}_*")))
        problem = collection.read(self.folder).problem
        misfit = problem.misfit
        self.z = misfit.unknowns.vector(problem.nominal)
        self.courses, self.calls = [course for course in misfit.courses if course.series], 0
        self.sizes = len(problem.model.states), len(problem.unknowns)
        self.reference = self.run(TOLERANCE, True)

    def run(self, tolerance: float, sensitivities: bool) -> list[Trajectory]:
        self.calls += 1
        effort, z = Effort(tolerance, STEPS, STEPS), self.z * (1 + 4 * EPSILON * (self.calls % REPEATS))
        return [course.run(z, effort, sensitivities) for course in self.courses]

    def errors(self, found: list[Trajectory], sensitivities: bool) -> tuple[float | None, float | None]:
        pairs = list(zip(found, self.reference, strict=True))
        gaps = [error(one.outputs[:, :, :1], other.outputs[:, :, :1]) or 0.0 for one, other in pairs]
        slopes = [error(one.outputs, other.outputs) or 0.0 for one, other in pairs] if sensitivities else []
        return max(gaps), max(slopes, default=None)

    def cvodes(self, tolerance: float, sensitivities: bool) -> tuple[None, None, None]:
        return None, None, None

    def job(self, folder: Path) -> dict[str, Any]:
        own = self.folder / f"{self.folder.name}.yaml"
        return {"petab": str(own if own.is_file() else next(iter(sorted(self.folder.glob("*.yaml")))))}


def amici(
    python: str, cases: Sequence[Classic | Collected], tolerances: list[float], folder: Path
) -> dict[tuple[str, bool, float], float | None]:
    """AMICI's milliseconds, from a process of its own; its models are compiled into the folder once."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [{"name": case.name, "tolerances": tolerances} | case.job(folder) for case in cases]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    # Compiling needs the tools that stand beside this Python.
    places = {"PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [python, str(WORKER), str(folder / "jobs.json"), str(folder)]
    told = subprocess.run(command, env=os.environ | places, capture_output=True, text=True, check=False).stdout
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    return {(line["problem"], line["sensitivities"], line["tolerance"]): line["amici_ms"] for line in lines}


def measure(
    case: Classic | Collected, tolerances: list[float], peers: dict[tuple[str, bool, float], float | None]
) -> list[Row]:
    rows = []
    for sensitivities in (False, True):
        for tolerance in tolerances:
            begin = time.process_time()
            found = case.run(tolerance, sensitivities)
            repeats = 1 if time.process_time() - begin > LONG else REPEATS
            completed = all(one.outcome is Outcome.COMPLETED for one in found)
            call = lambda s=sensitivities, t=tolerance: case.run(t, s)  # noqa: E731
            errors = case.errors(found, sensitivities) if completed else (None, None)
            cvodes_ms, *cvodes_errors = case.cvodes(tolerance, sensitivities)
            rows.append(
                Row(
                    problem=case.name,
                    states=case.sizes[0],
                    unknowns=case.sizes[1],
                    sensitivities=sensitivities,
                    tolerance=tolerance,
                    method=found[0].method.split(" from")[0] if completed else found[0].outcome.name,
                    ours_ms=milliseconds(call, repeats) if completed else None,
                    cvodes_ms=cvodes_ms,
                    amici_ms=peers.get((case.name, sensitivities, tolerance)),
                    ours_error=errors[0],
                    ours_sensitivity_error=errors[1],
                    cvodes_error=cvodes_errors[0],
                    cvodes_sensitivity_error=cvodes_errors[1],
                )
            )
            print(rows[-1], file=sys.stderr)
    return rows


def number(value: float | None, style: str) -> str:
    return "-" if value is None else format(value, style)


def quotient(above: float | None, below: float | None) -> float | None:
    return None if above is None or below is None else above / below


def table(rows: list[Row]) -> str:
    lines = [
        "| problem | states, unknowns | sensitivities | tolerance | ours ms | AMICI ms | AMICI/ours | CVODES ms "
        "| CVODES/ours | error | of sensitivities | CVODES's error | of sensitivities |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = [
            row.problem,
            f"{row.states}, {row.unknowns}",
            "with" if row.sensitivities else "without",
            f"{row.tolerance:.0e}",
            number(row.ours_ms, ".2f"),
            number(row.amici_ms, ".2f"),
            number(quotient(row.amici_ms, row.ours_ms), ".1f"),
            number(row.cvodes_ms, ".2f"),
            number(quotient(row.cvodes_ms, row.ours_ms), ".1f"),
            number(row.ours_error, ".0e"),
            number(row.ours_sensitivity_error, ".0e"),
            number(row.cvodes_error, ".0e"),
            number(row.cvodes_sensitivity_error, ".0e"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    classics = list(problems())
    parser = argparse.ArgumentParser(prog="python -m benchmarks stiff", description=__doc__.split("\n")[0])
    parser.add_argument("--problems", nargs="+", default=[*classics, *COLLECTED], metavar="NAME")
    parser.add_argument("--tolerances", nargs="+", type=float, default=[1e-6, 1e-8, 1e-10])
    parser.add_argument("--quick", action="store_true", help="our own solution as every reference")
    parser.add_argument("--amici", metavar="PYTHON", help="a Python that has AMICI")
    parser.add_argument("--models", type=Path, default=RESULTS / "models", help="where AMICI compiles")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS}")
    options = parser.parse_args(argv)
    rows: list[Row] = []
    for name in options.problems:
        case = (Classic if name in classics else Collected)(name, not options.quick)
        peers = amici(options.amici, [case], options.tolerances, options.models) if options.amici else {}
        found = measure(case, options.tolerances, peers)
        again = {(row.problem, row.sensitivities, row.tolerance) for row in found}
        before = known() if options.write else rows  # others may have been measured meanwhile
        rows = [row for row in before if (row.problem, row.sensitivities, row.tolerance) not in again] + found
        rows.sort(key=lambda row: ([*classics, *COLLECTED].index(row.problem), row.sensitivities, -row.tolerance))
        if options.write:
            write(rows)
    print(table(rows))
    return 0


def known() -> list[Row]:
    """The rows of the table as it is."""
    if not (RESULTS / "stiff.csv").is_file():
        return []
    texts, names = {"problem", "method"}, [field.name for field in fields(Row)]
    rows = []
    with (RESULTS / "stiff.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            values = {name: line[name] if name in texts else ast.literal_eval(line[name] or "None") for name in names}
            rows.append(Row(**values))
    return rows


def write(rows: list[Row]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "stiff.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    text = f"# Stiff problems beside AMICI and CVODES\n\n{counted(rows)}\n{table(rows)}\n\n{NOTES}"
    (RESULTS / "stiff.md").write_text(text)


NOTES = """\
Errors of the first six problems are from CVODES at 1e-12 (the ring modulator: 1e-10, which bounds its errors by about
2e-7); those of the others are from our own solution at the tightest tolerance, so that they show consistency and not
truth.  The largest errors of Bachmann's sensitivities are those of numbers that are zero but for rounding, 1e-18 and
less beside outputs of one.  Where AMICI's column is empty it failed.
"""


def counted(rows: list[Row]) -> str:
    """On how many problems ours is as fast as was asked for."""
    lines = []
    for tolerance in dict.fromkeys(row.tolerance for row in rows):
        without, with_ = (
            [
                quotient(row.amici_ms, row.ours_ms)
                for row in rows
                if (row.tolerance, row.sensitivities) == (tolerance, s)
            ]
            for s in (False, True)
        )
        lines.append(
            f"At {tolerance:.0e} ours is not slower than AMICI without sensitivities on "
            f"{sum(one is not None and one >= 1 for one in without)} of {len(without)} problems, and at least three "
            f"times faster with them on {sum(one is not None and one >= 3 for one in with_)} of {len(with_)}."
        )
    return "\n".join(lines) + "\n"
