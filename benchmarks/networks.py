"""Networks: fits of reaction networks drawn at random, which nobody has looked at, beside fits from the truth.

python -m benchmarks networks [--seed 1] [--count 100] [--bounds] [--time-limit ...]

A network has two to four species and as many reactions or more: supply, decay, conversion, binding, saturated and
inhibited steps, at random.  Some species are measured, at many times or at few, some initial amounts are known, and the
noise is a few percent of each output's spread.  Every fit is one line of a file: stopping and starting again repeats
nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import odejet as oj
from benchmarks import lines as records
from benchmarks.beyond import Case, measured, table
from benchmarks.clock import by_processor
from benchmarks.comparison import AS_GOOD
from benchmarks.store import write_whole
from odejet.smooth.threads import one_thread

RESULTS = Path(__file__).parent / "results" / "networks"
POINTS = (8, 15, 40, 100)
NOISES = (0.01, 0.03, 0.1)
FLAT = 0.05
"""An output whose spread is less than this share of its size tells next to nothing, and is drawn again."""


def reaction(rng: np.random.Generator, species: list[str], number: int) -> tuple[str, dict[str, int], list[str]]:
    """The rate of a random reaction, what it makes (or takes, if negative) of each species, and its parameters."""
    a, b, c = (str(rng.choice(species)) for _ in range(3))
    k, K = f"k{number}", f"K{number}"
    other = b if b != a else None
    kinds: list[tuple[str, dict[str, int], list[str]]] = [
        (k, {a: 1}, [k]),
        (f"{k}*{a}", {a: -1}, [k]),
        (f"{k}*{a}/({K} + {a})", {a: -1} | ({other: 1} if other else {}), [k, K]),
        (f"{k}*{a}", {a: -1} | ({other: 1} if other else {}), [k]),
    ]
    if other:
        kinds += [
            (f"{k}*{a}*{b}", {a: -1, b: -1} | ({c: 1} if c not in (a, b) else {}), [k]),
            (f"{k}*{a}*{b}", {a: -1, b: 1}, [k]),
            (f"{k}/(1 + ({b}/{K})**2)", {a: 1}, [k, K]),
        ]
    return kinds[int(rng.integers(len(kinds)))]


def network(rng: np.random.Generator) -> tuple[dict[str, str], list[str]]:
    """Rate equations of all species, and parameters."""
    species = [f"s{i + 1}" for i in range(int(rng.integers(2, 5)))]
    rates: dict[str, list[str]] = {name: [] for name in species}
    parameters: list[str] = []
    for number in range(1, len(species) + int(rng.integers(1, 3)) + 1):
        rate, change, own = reaction(rng, species, number)
        parameters += own
        for name, amount in change.items():
            rates[name].append(f"{'-' if amount < 0 else '+'} {rate}")
    return {name: " ".join(terms).removeprefix("+ ") for name, terms in rates.items()}, parameters


def drawn(rng: np.random.Generator) -> Case | None:
    """A network with values at which all its outputs move; None if these do not."""
    states, parameters = network(rng)
    if not all(states.values()):
        return None
    names = list(states)
    seen = sorted(rng.choice(len(names), size=int(rng.integers(1, len(names) + 1)), replace=False))
    initial = {name: float(np.exp(rng.normal(0.5, 0.7))) for name in names}
    known = {name: float(f"{initial[name]:.2g}") for name in names if rng.random() < 0.3}
    values = {name: float(np.exp(rng.normal(-0.5, 0.8))) for name in parameters}
    outputs = {f"y{i + 1}": names[i] for i in seen}
    model = oj.Model(states, outputs, parameters=tuple(parameters), initial=known)
    times = np.linspace(0, float(rng.uniform(3, 15)), int(rng.choice(POINTS)))
    found = oj.simulate(model, values, {name: initial[name] for name in names if name not in known}, times)
    if not found.success or any(y.std() < FLAT * abs(y).max() or abs(y).max() > 1e4 for y in found.outputs.values()):
        return None
    unknown = {name: value for name, value in initial.items() if name not in known}
    if len(times) * len(outputs) < 2 * (len(unknown) + len(values)):
        return None
    return Case(model, values, unknown, times)


def cases(seed: int) -> Iterator[tuple[Case, float]]:
    """Networks and the noise of their data, without end."""
    rng = np.random.default_rng(seed)
    while True:
        case = drawn(rng)
        if case is not None:
            yield case, float(rng.choice(NOISES))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks networks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--time-limit", type=float, default=60.0, help="processor seconds that a fit may take")
    parser.add_argument("--bounds", action="store_true", help="give each unknown wide bounds")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args(argv)
    path = given.output or RESULTS / f"seed{given.seed}{'-bounds' if given.bounds else ''}.jsonl"
    lines = records.read(path)
    done = {line["number"] for line in lines}
    by_processor()
    with one_thread():
        for number, (case, noise) in zip(range(given.count), cases(given.seed), strict=False):
            if number in done:
                continue
            name = f"{len(case.model.states)} states, {len(case.times)} times"
            line = measured(name, case, noise, number, given.seed, given.bounds, given.time_limit)
            line |= {"number": number, "written": str(case.model)}
            lines.append(line)
            records.add(path, line)
            mark = "" if line["behind"] <= AS_GOOD else f"  BEHIND by {line['behind']:.3g}"
            told = f"{'' if line['certified'] else 'not '}certified, {line['answered']}"
            print(f"{number} {name} {noise:g}: {line['seconds']:.2f} s, {told}{mark}", flush=True)
    lines.sort(key=lambda line: (line["noise"], line["model"]))
    write_whole(path.with_suffix(".md"), table(lines))
    print(table(lines))
    return 0
