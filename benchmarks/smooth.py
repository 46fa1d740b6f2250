"""Smoothing measured: derivative errors of every estimator beside the yardsticks, and speed ratios.

    python -m benchmarks smooth yardsticks --seed 2026     errors of scikit-learn, SciPy and PyNumDiff (slow, resumable)
    python -m benchmarks smooth ours --seed 2026           errors of every estimator of odejet.smooth
    python -m benchmarks smooth table --seed 2026          the comparison, as Markdown
    python -m benchmarks smooth speed                      ratios of times, measured side by side

Results are CSV files with one row per (system, output, noise, estimator): root mean square errors over the interior
80 % of the time span, relative to the size of the derivative there, for orders 0..6 in the columns.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks import differentiators
from benchmarks.outputs import NOISES, Output, outputs
from odejet import smooth

RESULTS = Path(__file__).parent / "results" / "smooth"
ORDER = 6
HEADER = ["system", "output", "noise", "estimator", "seconds", *(f"e{j}" for j in range(ORDER + 1))]
TRUTH = "uncertainty of the truth"
TRUTH_KNOWN = 1e-2
"""Cells whose truth is not known to this relative accuracy are left out."""
Estimator = Callable[[np.ndarray], np.ndarray]


def _record(path: Path, seed: int, estimators: Callable[[Output, float], dict[str, Estimator]]) -> None:
    """Append the missing rows to a CSV file, so that an interrupted run continues where it stopped."""
    done = {(row["system"], row["output"], float(row["noise"]), row["estimator"]) for row in read(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(HEADER)
        for output in outputs(seed, ORDER):
            for noise in NOISES:
                values = output.noisy(noise, seed)
                for name, estimate in estimators(output, noise).items():
                    if (output.system, output.name, noise, name) in done:
                        continue
                    start = time.perf_counter()
                    errors = output.errors(estimate(values))
                    seconds = time.perf_counter() - start
                    cells = [f"{e:.4g}" for e in errors] + [""] * (ORDER + 1 - len(errors))
                    writer.writerow([output.system, output.name, f"{noise:g}", name, f"{seconds:.4g}", *cells])
                    file.flush()


def read(path: Path) -> Iterable[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _quick_yardsticks(output: Output, noise: float) -> dict[str, Estimator]:
    t, places = output.times, output.interior
    found: dict[str, Estimator] = {
        "sklearn SE": lambda y: differentiators.sklearn_gp(t, y, places, ORDER, "SE", restarts=1),
        "scipy spline": lambda y: differentiators.scipy_spline(t, y, places, ORDER),
    }
    # At lower noise scikit-learn's rational quadratic stays where it starts.
    if noise >= 1e-4:
        found["sklearn RQ"] = lambda y: differentiators.sklearn_gp(t, y, places, ORDER, "RQ", restarts=0)
    return found


def _slow_yardsticks(output: Output, noise: float) -> dict[str, Estimator]:
    # At lower noise its error is that of the spline, far above the others.
    if noise < 1e-4:
        return {}
    band = differentiators.bandlimit_of(output.times, output.clean)
    return {"PyNumDiff": lambda y: differentiators.pynumdiff_spline(output.times, y, output.interior, band)}


def _ours(path: Path, seed: int) -> None:
    """Errors of every estimator admitted at all interior points, and of the automatic choice at each."""
    rows = []
    for output in outputs(seed, ORDER):
        for noise in NOISES:
            start = time.perf_counter()
            smoothed = smooth.fit_output(output.times, output.noisy(noise, seed))
            seconds = time.perf_counter() - start
            jets = smoothed.jets(output.interior, ORDER)
            estimates = {
                name: np.array([found[name].mean for found in jets])
                for name in smoothed.smoothers
                if all(name in found for found in jets)
            }
            estimates["automatic"] = np.array([next(iter(found.values())).mean for found in jets])
            for name, values in estimates.items():
                errors = [f"{e:.4g}" for e in output.errors(values)]
                rows.append([output.system, output.name, f"{noise:g}", name, f"{seconds:.4g}", *errors])
            known = [f"{e:.4g}" for e in output.uncertainty[: ORDER + 1]]
            rows.append([output.system, output.name, f"{noise:g}", TRUTH, "0", *known])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])


class Cell:
    """Errors of one derivative at one noise level: of one output, or averaged over the outputs of a system."""

    def __init__(self) -> None:
        self.ours: dict[str, float] = {}
        self.theirs: dict[str, float] = {}

    @property
    def automatic(self) -> float:
        return self.ours["automatic"]

    @property
    def best(self) -> tuple[float, str]:
        return min((error, name) for name, error in self.ours.items())

    @property
    def yardstick(self) -> tuple[float, str]:
        return min((error, name) for name, error in self.theirs.items())


Key = tuple[str, str, float, int]


def _cells(seed: int) -> dict[Key, Cell]:
    """One cell per output, noise and order where the truth is known and every yardstick in question has been run.

    Errors below what is known of the truth count as equal to it, on both sides.
    """
    rows = {kind: list(read(RESULTS / f"{kind}-{seed}.csv")) for kind in ("ours", "yardsticks")}
    truth = {_key(row): row for row in rows["ours"] if row["estimator"] == TRUTH}
    cells: dict[Key, Cell] = defaultdict(Cell)
    for kind, found in rows.items():
        for row in found:
            for j in range(ORDER + 1):
                cell = row[f"e{j}"]
                known = float(truth[_key(row)][f"e{j}"])
                if row["estimator"] == TRUTH or not cell or known > TRUTH_KNOWN:
                    continue
                error = max(float(cell), known) if np.isfinite(float(cell)) else np.inf
                target = cells[*_key(row), j]
                (target.ours if kind == "ours" else target.theirs)[row["estimator"]] = error
    return {key: cell for key, cell in cells.items() if cell.ours and "sklearn SE" in cell.theirs}


def _key(row: dict[str, str]) -> tuple[str, str, float]:
    return row["system"], row["output"], float(row["noise"])


def _by_system(cells: dict[Key, Cell]) -> dict[Key, Cell]:
    """Geometric means over the outputs of a system, of the estimators that every output has."""
    groups: dict[Key, list[Cell]] = defaultdict(list)
    for (system, _, noise, order), cell in cells.items():
        groups[system, "", noise, order].append(cell)
    whole = {}
    for key, members in groups.items():
        cell = Cell()
        for kind in ("ours", "theirs"):
            shared = set.intersection(*(set(getattr(m, kind)) for m in members))
            for name in shared:
                getattr(cell, kind)[name] = float(np.exp(np.mean([np.log(getattr(m, kind)[name]) for m in members])))
        whole[key] = cell
    return whole


def _share(cells: list[Cell], ours: Callable[[Cell], float], slack: float) -> str:
    return f"{100.0 * np.mean([ours(c) <= c.yardstick[0] * slack for c in cells]):.1f}" if cells else ""


def _table(seed: int) -> str:
    """The comparison as Markdown."""
    fine = _cells(seed)
    coarse = _by_system(fine)
    systems = sorted({key[0] for key in fine})
    lines = [
        "# Smoothing: accuracy beside the yardsticks",
        "",
        f"Draw {seed}: {len(systems)} systems, {len({key[:2] for key in fine})} outputs, 750 points, noise eta*|mean|.",
        "Errors are root mean squares over the interior 80 % of the time span, relative to the size of the derivative",
        "there.  Yardsticks: scikit-learn's Gaussian process (squared exponential with one restart; rational quadratic",
        "from noise 1e-4), SciPy's smoothing spline with generalised cross-validation (orders 0-3), PyNumDiff's spline",
        "(orders 0-1, from noise 1e-4) where it has been run.  Cells whose truth rounding spoils are left out.",
        "",
        "## Percent of cells at least as accurate as the best yardstick",
        "",
        "| cells | number | best admitted | automatic | best, 5 % slack | automatic, 5 % slack |",
        "|---|---|---|---|---|---|",
    ]
    for title, cells in (("system x noise x order", coarse), ("output x noise x order", fine)):
        lines.append(_shares(title, list(cells.values())))
    for noise in NOISES:
        lines.append(_shares(f"outputs, noise {noise:g}", [c for k, c in fine.items() if k[2] == noise]))
    for order in range(ORDER + 1):
        lines.append(_shares(f"outputs, order {order}", [c for k, c in fine.items() if k[3] == order]))
    for noise in NOISES:
        lines += ["", f"## Geometric mean error over outputs, noise {noise:g}", "", *_means(fine, noise)]
    lines += ["", "## Systems: automatic / best admitted / best yardstick", "", *_systems_table(coarse, systems)]
    return "\n".join(lines) + "\n"


def _shares(title: str, cells: list[Cell]) -> str:
    columns = [
        _share(cells, ours, slack) for slack in (1.0, 1.05) for ours in (lambda c: c.best[0], lambda c: c.automatic)
    ]
    return f"| {title} | {len(cells)} | " + " | ".join(columns) + " |"


def _means(cells: dict[Key, Cell], noise: float) -> list[str]:
    """One row per estimator that has an error for every output at this noise level."""
    here = {key: cell for key, cell in cells.items() if key[2] == noise}
    lines = ["| estimator | " + " | ".join(f"order {j}" for j in range(ORDER + 1)) + " |", "|---" * (ORDER + 2) + "|"]
    names = list(dict.fromkeys(n for kind in ("ours", "theirs") for c in here.values() for n in getattr(c, kind)))
    for name in ["automatic", "best admitted", *sorted(n for n in names if n != "automatic")]:
        columns = []
        for j in range(ORDER + 1):
            members = [cell for key, cell in here.items() if key[3] == j]
            errors = [c.best[0] if name == "best admitted" else {**c.ours, **c.theirs}.get(name) for c in members]
            present = [e for e in errors if e is not None]
            mean = f"{np.exp(np.mean(np.log(present))):.1e}" if present else ""
            columns.append(mean + (f" ({len(present)}/{len(errors)})" if 0 < len(present) < len(errors) else ""))
        lines.append(f"| {name} | " + " | ".join(columns) + " |")
    return lines


def _systems_table(cells: dict[Key, Cell], systems: list[str]) -> list[str]:
    lines = [
        "| system | noise | " + " | ".join(f"order {j}" for j in range(ORDER + 1)) + " |",
        "|---" * (ORDER + 3) + "|",
    ]
    for system in systems:
        for noise in NOISES:
            columns = []
            for j in range(ORDER + 1):
                cell = cells.get((system, "", noise, j))
                columns.append(f"{cell.automatic:.0e} / {cell.best[0]:.0e} / {cell.yardstick[0]:.0e}" if cell else "")
            if any(columns):
                lines.append(f"| {system} | {noise:g} | " + " | ".join(columns) + " |")
    return lines


def _times(work: Callable[[], object], repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return found


def _speed(seed: int, systems: list[str]) -> str:
    """Ratios of times measured side by side: all our estimators against one scikit-learn fit with three restarts."""
    threads = sorted({library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"})
    lines = [
        "# Smoothing: speed",
        "",
        "All admitted estimators of one 750-point output together (median of five fits before and five after) against",
        "one GaussianProcessRegressor with the squared-exponential kernel and three restarts, in one process.",
        f"Threads of linear algebra: ours always 1, scikit-learn's {', '.join(map(str, threads))}.  Jets: all admitted",
        "estimators at 20 times to order 6, with coefficient rows and gating.",
        "",
        "| output | noise | basis | ours (ms) | jets (ms) | scikit-learn (s) | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    ratios = []
    for output in outputs(seed, ORDER):
        if output.system not in systems or output.name != "y1":
            continue
        for noise in NOISES:
            ours, theirs, jets, size = race(output, output.noisy(noise, seed))
            ratios.append(theirs / ours)
            start = f"| {output.system} {output.name} | {noise:g} | {size} | {1e3 * ours:.0f} | {1e3 * jets:.1f} "
            lines.append(start + f"| {theirs:.1f} | {ratios[-1]:.0f} |")
            print(lines[-1], flush=True)
    above = sum(r >= 50 for r in ratios)
    lines += ["", f"Median ratio {np.median(ratios):.0f}; at least 50 in {above} of {len(ratios)} cases.", ""]
    lines += _growth()
    return "\n".join(lines) + "\n"


def race(output: Output, values: np.ndarray) -> tuple[float, float, float, int]:
    """Seconds of our fit, of scikit-learn's and of our jets, and the size of our basis."""

    def fit() -> smooth.Smoothed:
        return smooth.fit_output(output.times, values)

    first = fit()
    times = output.interior[:: len(output.interior) // 20][:20]
    before = _times(fit, 5)
    theirs = _times(lambda: differentiators.fit_sklearn(output.times, values, "SE", 3), 1)
    ours = [*before, *_times(fit, 5)]
    jets = _times(lambda: first.jets(times, ORDER), 5)
    size = len(getattr(first.smoothers.get("gp_se"), "operator", ()))
    return float(np.median(ours)), theirs[0], float(np.median(jets)), size


def _growth() -> list[str]:
    rng = np.random.default_rng(0)
    lines = ["| points | noise | ours (ms) | against 1,000 points |", "|---|---|---|---|"]
    for noise in (0.0, 0.01):
        base = 0.0
        for n in (1_000, 10_000, 100_000):
            times = np.linspace(0, 10, n)
            values = np.sin(3 * times) * np.exp(-0.1 * times) + noise * rng.standard_normal(n)
            smooth.fit_output(times, values)
            seconds = float(np.median(_times(lambda t=times, v=values: smooth.fit_output(t, v), 3)))
            base = base or seconds
            lines.append(f"| {n:,} | {noise:g} | {1e3 * seconds:.0f} | {seconds / base:.1f} |")
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks smooth", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("part", nargs="?", default="all", choices=["yardsticks", "ours", "table", "speed", "all"])
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--systems", nargs="*", default=["lotka_volterra", "seir", "boost_converter"])
    options = parser.parse_args(argv)
    RESULTS.mkdir(parents=True, exist_ok=True)
    if options.part in ("yardsticks", "all"):
        path = RESULTS / f"yardsticks-{options.seed}.csv"
        _record(path, options.seed, _quick_yardsticks)
        _record(path, options.seed, _slow_yardsticks)
    if options.part in ("ours", "all"):
        _ours(RESULTS / f"ours-{options.seed}.csv", options.seed)
    if options.part in ("table", "all"):
        text = _table(options.seed)
        (RESULTS / f"accuracy-{options.seed}.md").write_text(text)
        print(text)
    if options.part in ("speed", "all"):
        (RESULTS / "speed.md").write_text(_speed(options.seed, options.systems))
    return 0


if __name__ == "__main__":
    sys.exit(main())
