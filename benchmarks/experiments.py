"""Experiments: fits of several experiments at once, beside optima that SciPy finds from solutions in closed form.

python -m benchmarks experiments [--parts ...] [--output FILE]

    progress      progress curves of an enzyme at four substrate concentrations, Vmax and Km shared
    subjects      theophylline in six people, all three parameters local: the optimum of every subject alone
    absorption    the same with one rate of absorption for all six
    many          200 experiments with three local parameters each, and two shared ones

odejet gets no guess; SciPy starts from many points, or from the truth of simulated data.  Costs are sums of squares.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import OptimizeResult, least_squares
from scipy.special import lambertw

import odejet as oj
from benchmarks import lines as records
from benchmarks.store import write_whole

EXAMPLES = Path(__file__).parents[1] / "examples"
RESULTS = Path(__file__).parent / "results" / "experiments"
SUBJECTS = 6
STARTS = 20
MANY, RATES = 200, (1.3, 0.25)
EQUAL = 1e-6
"""A sum of squares that is larger by less, relative to it, is the same."""


@dataclass(frozen=True)
class Task:
    """What is to be fitted, within how many seconds."""

    part: str
    bar: float
    model: oj.Model
    data: oj.Data
    local: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """What came of one part."""

    part: str
    experiments: int
    unknowns: int
    points: int
    seconds: float
    bar: float  # seconds it may take
    squares: float
    reference: float  # the sum of squares that SciPy finds
    difference: float  # the largest relative difference of a parameter
    certified: bool

    @property
    def equal(self) -> bool:
        return self.squares <= (1 + EQUAL) * self.reference


def squares(fit: oj.Fit) -> float:
    """The sum of squared residuals of all experiments."""
    simulated = fit.problem.simulate(fit.values)
    total = 0.0
    for experiment in fit.data.experiments:
        for output, series in experiment.outputs.items():
            found = simulated[experiment.name]
            total += float(np.sum((found[output][np.searchsorted(found.times, series.times)] - series.values) ** 2))
    return total


def columns(name: str) -> dict[str, dict[str, np.ndarray]]:
    """The numbers in the file of an example, by experiment and column."""
    lines = (EXAMPLES / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    labels = dict.fromkeys(row["experimentId"] for row in rows)
    return {
        label: {
            key: np.array([float(row[key]) for row in rows if row["experimentId"] == label])
            for key in rows[0]
            if key != "experimentId"
        }
        for label in labels
    }


def measured(
    task: Task, reference: Mapping[str, float], cost: float, told: Callable[[dict[str, float]], dict[str, float]] = dict
) -> Line:
    """One fit beside a reference: values by label, and their sum of squares; `told` chooses among twins."""
    begin = time.perf_counter()
    fit = oj.fit(task.model, task.data, local=list(task.local), positive=True)
    seconds = time.perf_counter() - begin
    values = told(dict(fit.values))
    return Line(
        task.part,
        len(task.data.experiments),
        len(values),
        sum(experiment.points for experiment in fit.data.experiments),
        seconds,
        task.bar,
        squares(fit),
        cost,
        max(abs(values[label] / value - 1) for label, value in reference.items()),
        fit.certificate.granted,
    )


# --- progress curves --------------------------------------------------------------------------------------------------


def progress_curve(times: np.ndarray, s0: float, vmax: float, km: float) -> np.ndarray:
    """Substrate by Lambert's function: s/km exp(s/km) = s0/km exp((s0 - vmax t)/km)."""
    return np.asarray(km * lambertw(s0 / km * np.exp((s0 - vmax * times) / km)).real)


def progress() -> Line:
    model, data = example("michaelis_menten")
    curves = columns("michaelis_menten").values()

    def residuals(logs: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [progress_curve(one["time"], one["s0"][0], *np.exp(logs)) - one["substrate"] for one in curves]
        )

    found = best(residuals, 2)
    reference = dict(zip(("Vmax", "Km"), np.exp(found.x).tolist(), strict=True))
    return measured(Task("progress", 10.0, model, data), reference, 2 * found.cost)


# --- theophylline -----------------------------------------------------------------------------------------------------


def bateman(times: np.ndarray, amount: float, ka: float, ke: float, volume: float) -> np.ndarray:
    """Concentration after absorption and elimination, both of first order."""
    return amount / volume * ka / (ka - ke) * (np.exp(-ke * times) - np.exp(-ka * times))


def six() -> tuple[oj.Model, oj.Data, dict[str, tuple[np.ndarray, np.ndarray, float]]]:
    """The model, six subjects, and of each of them times, concentrations and what it swallowed."""
    model, data = example("theophylline")
    chosen = list(columns("theophylline").items())[:SUBJECTS]
    curves = {name: (one["time"], one["conc"], one["dose"][0] * one["weight"][0]) for name, one in chosen}
    return model, oj.Data.of(data.experiments[:SUBJECTS]), curves


def subjects() -> Line:
    """Every subject's own optimum."""
    model, data, curves = six()
    reference, cost = {}, 0.0
    for name, (times, values, amount) in curves.items():
        found = best(lambda logs, t=times, y=values, a=amount: bateman(t, a, *np.exp(logs)) - y, 3)
        own = np.exp(found.x).tolist()
        reference |= dict(zip((f"ka in {name}", f"ke in {name}", f"V in {name}"), own, strict=True))
        cost += 2 * found.cost
    task = Task("subjects", 10.0, model, data, ("ka", "ke", "V"))
    return measured(task, faster_absorption(reference), cost, faster_absorption)


def faster_absorption(values: Mapping[str, float]) -> dict[str, float]:
    """The same concentrations with the faster of the two rates for absorption: ka and ke exchanged, V to match."""
    found = dict(values)
    for label, ka in values.items():
        if label.startswith("ka in "):
            name = label.removeprefix("ka in ")
            ke, volume = values[f"ke in {name}"], values[f"V in {name}"]
            if ka < ke:
                found |= {label: ke, f"ke in {name}": ka, f"V in {name}": volume * ke / ka}
    return found


def absorption() -> Line:
    model, data, curves = six()

    def residuals(logs: np.ndarray) -> np.ndarray:
        ka, own = np.exp(logs[0]), np.exp(logs[1:]).reshape(-1, 2)
        pairs = zip(curves.values(), own, strict=True)
        return np.concatenate([bateman(times, amount, ka, *one) - values for (times, values, amount), one in pairs])

    found = best(residuals, 1 + 2 * SUBJECTS)
    own = np.exp(found.x[1:]).reshape(-1, 2)
    reference = {"ka": float(np.exp(found.x[0]))}
    for name, (ke, volume) in zip(curves, own.tolist(), strict=True):
        reference |= {f"ke in {name}": ke, f"V in {name}": volume}
    return measured(Task("absorption", 10.0, model, data, ("ke", "V")), reference, 2 * found.cost)


# --- many -------------------------------------------------------------------------------------------------------------


def many() -> Line:
    """Sums of two decays: local amounts and offset, shared rates."""
    model = oj.Model(
        {"x": "-fast*x", "z": "-slow*z"}, {"y": "x + z + offset"}, initial={"x": "a", "z": "b"}, name="two decays"
    )
    rng = np.random.default_rng(MANY)
    times = np.linspace(0, 6, 12)
    amounts = rng.uniform(1, 3, size=(MANY, 3))
    values = amounts @ decays(times, RATES).T
    values += 0.01 * rng.normal(size=values.shape)
    found = least_squares(lambda rates: projected(times, rates, values)[1], RATES, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    best_amounts, _ = projected(times, found.x, values)
    reference = dict(zip(("fast", "slow"), found.x.tolist(), strict=True))
    for i, own in enumerate(best_amounts.T.tolist()):
        reference |= dict(zip((f"a in e{i}", f"b in e{i}", f"offset in e{i}"), own, strict=True))
    data = oj.Data.join([oj.Data(times, {"y": row}, name=f"e{i}") for i, row in enumerate(values)])
    task = Task("many", 60.0, model, data, ("a", "b", "offset"))
    return measured(task, reference, 2 * found.cost, faster_first)


def decays(times: np.ndarray, rates: Sequence[float]) -> np.ndarray:
    """What the local parameters multiply, in columns."""
    return np.column_stack([np.exp(-rates[0] * times), np.exp(-rates[1] * times), np.ones_like(times)])


def projected(times: np.ndarray, rates: Sequence[float], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The local parameters, in columns, that are best with these rates, and what they leave of the measurements."""
    basis = decays(times, rates)
    amounts, *_ = np.linalg.lstsq(basis, values.T, rcond=None)
    return amounts, (basis @ amounts - values.T).ravel()


def faster_first(values: Mapping[str, float]) -> dict[str, float]:
    """The same sums with the names of the two decays exchanged, if the first is the slower one."""
    if values["fast"] >= values["slow"]:
        return dict(values)
    exchanged = {"fast": "slow", "slow": "fast", "a": "b", "b": "a"}
    names = {label: label.split(" in ") for label in values}
    return {" in ".join([exchanged.get(first, first), *rest]): values[label] for label, (first, *rest) in names.items()}


# --- running ----------------------------------------------------------------------------------------------------------


def best(residuals: Callable[[np.ndarray], np.ndarray], size: int) -> OptimizeResult:
    """The best of many local searches, from logarithms that are drawn."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(STARTS):
        with np.errstate(all="ignore"):
            start = rng.normal(size=size)
            if np.all(np.isfinite(residuals(start))):
                found.append(least_squares(residuals, start, xtol=1e-15, ftol=1e-15, gtol=1e-15, x_scale="jac"))
    return min(found, key=lambda one: one.cost)


def example(name: str) -> tuple[oj.Model, oj.Data]:
    return oj.Model.from_toml(EXAMPLES / f"{name}.toml"), oj.Data.from_csv(EXAMPLES / f"{name}.csv")


PARTS: dict[str, Callable[[], Line]] = {
    "progress": progress,
    "subjects": subjects,
    "absorption": absorption,
    "many": many,
}


def table(lines: list[Line]) -> str:
    text = [
        "Sums of squares beside those that SciPy finds with solutions in closed form, equal if larger by less than",
        f"{EQUAL:g} of their size; the largest difference is relative, of a parameter.  Seconds are by the clock.",
        "",
        "| | experiments | unknowns | points | seconds | may take | sum of squares | SciPy's | equal | "
        "largest difference | certified |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|---:|---|",
    ]
    for line in lines:
        sizes = f"{line.experiments} | {line.unknowns} | {line.points} | {line.seconds:.2f} | {line.bar:g}"
        costs = f"{line.squares:.8g} | {line.reference:.8g} | {'yes' if line.equal else '**no**'}"
        known = f"{line.difference:.1e} | {'yes' if line.certified else 'no'}"
        text.append(f"| {line.part} | {sizes} | {costs} | {known} |")
    return "\n".join(text) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks experiments", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--output", type=Path, default=RESULTS / "experiments.jsonl")
    given = parser.parse_args(argv)
    path = given.output
    lines = {line.part: line for line in (Line(**found) for found in records.read(path))}
    for part in given.parts:
        if part not in lines:
            PARTS[part]() if part == "progress" else None  # the first fit of a process reads its kernels
            lines[part] = PARTS[part]()
            records.add(path, asdict(lines[part]))
            print(f"{part}: {lines[part].seconds:.2f} s", flush=True)
    shown = table([lines[part] for part in PARTS if part in lines])
    write_whole(path.with_suffix(".md"), shown)
    print(shown)
    return 0
