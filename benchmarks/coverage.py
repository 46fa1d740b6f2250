"""Coverage: whether intervals and the theorem's law hold, what combinations are worth, and what profiles cost.

python -m benchmarks coverage [intervals] --seed 8 --trials 20 --noise 1e-4 1e-2 [--systems ...] [--output FILE]
python -m benchmarks coverage law --seed 8 [--trials 500] [--noise 1e-4] [--systems ...]
python -m benchmarks coverage combinations --seed 8 --trials 10 [--noise 1e-2] [--systems ...]
python -m benchmarks coverage timing --seed 8 --trials 5 [--noise 1e-2] [--systems ...]
python -m benchmarks coverage {joined,valleys} --seed 8 --trials 10 [--noise 1e-2] [--systems ...]
python -m benchmarks coverage bands --seed 8 --trials 20 [--noise 1e-2 5e-2] [--systems ...]

Every cell (system, noise, trial) is one line of a file, written as soon as it is known: stopping and starting again
loses and repeats nothing.  Only the uncertainty is under test, so fits start from the truth.  A true value is in the
95 % profile interval if and only if the likelihood with the quantity held there, everything else at its best, is close
enough to the optimum: one fit with one unknown less, in place of the whole profile.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import bands, profiles
from benchmarks import lines as records
from benchmarks.accuracy import Truth, draw
from benchmarks.counting import LEVEL, fitted, grouped, held_at, share
from odejet.algebra.system import SquareSystem
from odejet.errors import DataError, ModelError
from odejet.problem import Problem
from odejet.result import Fit
from odejet.search.shooting import input_series, orders_of
from odejet.smooth import fit_series
from odejet.uncertainty import error_budget as budgets
from odejet.uncertainty.forms import relative_root
from odejet.uncertainty.practical import DETERMINED, UNDETERMINED, judged, kind
from odejet.uncertainty.profile import profile
from problems import systems

RESULTS = Path(__file__).parent / "results" / "uncertainty"
PARTS = ("intervals", "law", "combinations", "timing", "joined", "valleys", "bands")
POINTS = 750

LAW_SYSTEMS = ("lotka_volterra", "seir", "daisy_mamil3", "vanderpol")
COMPOUND_SYSTEMS = ("cstr", "hiv", "crauste")
TIMED_SYSTEMS = {"lotka_volterra": 5.0, "sirt_treatment": 10.0, "cstr": 20.0}
"""With the seconds that profiles of all quantities may take."""


def from_truth(truth: Truth, noise: dict[str, float] | None = None, evaluations: int = 500, **told: Any) -> Fit:
    """The fit that the truth leads to, within the bounds of the protocol."""
    problem = Problem(truth.system.model, truth.data, systems.protocol().bounds, noise=noise)
    start = np.array([truth.values[unknown.name] for unknown in problem.layout])
    return fitted(problem, start, evaluations, **told)


def rounded(value: float) -> float:
    """Three digits, which is what tables need."""
    return float(f"{value:.3g}")


# --- intervals --------------------------------------------------------------------------------------------------------


FIELDS = (
    "system",
    "noise",
    "trial",
    "held",
    "seconds",
    "quantities",
    "lost",
    "fisher",
    "fisher_hits",
    "profile",
    "hits",
)
"""Of a stored cell of intervals: fits that a bound holds, and how many quantities there are, are undetermined, are
called determined by curvature and hold the truth then, and by the rule of `fit.practical` likewise."""


def interval_cell(name: str, noise: float, trial: int, seed: int) -> dict[str, Any]:
    """How many intervals of one fit hold the truth."""
    began = time.process_time()
    fit, quantities = interval_quantities(name, noise, trial, seed)
    fisher = [q["fisher_holds"] for q in quantities if q["fisher"] == DETERMINED]
    called = [q["profile_holds"] for q in quantities if q["called"] == DETERMINED]
    return {
        "system": name,
        "noise": noise,
        "trial": trial,
        "held": int(bool(fit.held)),
        "seconds": round(time.process_time() - began, 2),
        "quantities": len(quantities),
        "lost": sum(q["called"] == UNDETERMINED for q in quantities),
        "fisher": len(fisher),
        "fisher_hits": sum(fisher),
        "profile": len(called),
        "hits": sum(called),
    }


def interval_quantities(name: str, noise: float, trial: int, seed: int) -> tuple[Fit, list[dict[str, Any]]]:
    """Every quantity that can be known: what it is called by curvature and by the rule, and whether both kinds hold."""
    truth = draw(name, noise, trial, seed, POINTS, False)
    fit = from_truth(truth)
    findings, _ = judged(fit.likelihood, fit.intervals(level=LEVEL), LEVEL)
    z = np.array([truth.values[unknown.name] for unknown in fit.unknowns])
    quantities = []
    for unknown, value, true in zip(fit.unknowns, fit.estimates.tolist(), z.tolist(), strict=True):
        if unknown.name in truth.system.unidentifiable:
            continue
        low, high = fit.interval(unknown.label, LEVEL)
        called = findings[unknown.label].kind
        deviance, quantile = held_at(fit, unknown.label, true, z) if called == DETERMINED else (math.nan, 0.0)
        quantities.append(
            {
                "quantity": unknown.label,
                "fisher": kind(value, (low, high)),
                "called": called,
                "fisher_holds": bool(low <= true <= high),
                "profile_holds": bool(deviance <= quantile),
                "deviance": deviance,
            }
        )
    return fit, quantities


def interval_table(lines: list[dict[str, Any]]) -> str:
    """Coverage by noise and by system, of quantities called determined."""
    text = [
        "Share (%) of true values inside their 95 % intervals, over quantities called determined: by curvature for the",
        "Fisher intervals, by the rule of `fit.practical` for those of the profile.  Standard errors are over trials,",
        "since the quantities of one fit err together.  Bars: Fisher 92 to 98, profile 93 to 97.",
        "",
        "| | cells | Fisher | ± | n | profile | ± | n | undetermined quantities | median CPU s | remark |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[dict[str, Any]]] = {}
    for noise in sorted({line["noise"] for line in lines}):
        groups[f"all at {noise:g}"] = [line for line in lines if line["noise"] == noise]
    for title, own in (groups | grouped(lines)).items():
        fisher, ratio = share(own, "fisher", "fisher_hits"), share(own, "profile", "hits")
        remarks = _remark("Fisher", fisher, 92, 98), _remark("profile", ratio, 93, 97), _at_bounds(own)
        remark = "; ".join(filter(None, remarks))
        lost = 100 * sum(line["lost"] for line in own) / max(sum(line["quantities"] for line in own), 1)
        seconds = float(np.median([line["seconds"] for line in own]))
        cells = " | ".join("– | – | 0" if not n else f"{m:.1f} | {s:.1f} | {n:.0f}" for m, s, n in (fisher, ratio))
        text.append(f"| {title} | {len(own)} | {cells} | {lost:.0f} % | {seconds:.2f} | {remark} |")
    return "\n".join(text) + "\n"


def _remark(what: str, found: tuple[float, float, float], low: float, high: float) -> str:
    """Nothing within the bar; else whether so few draws explain it.  All hits have no spread of their own."""
    mean, spread, count = found
    if not count or low <= mean <= high:
        return ""
    # Were 95 % right and the quantities of a fit one, so many trials would vary by this much at least.
    error = max(spread, 100 * math.sqrt(0.95 * 0.05 / count))
    away = abs(mean - 95) / error
    return f"{what} outside: {away:.1f} standard errors from 95{', as draws vary' if away <= 2.5 else ''}"


def _at_bounds(lines: list[dict[str, Any]]) -> str:
    """How many of the misses are in fits with an unknown on a bound, where deviances have not the law of chi-square."""
    missed = [(line["profile"] - line["hits"], line["held"]) for line in lines]
    every, bounded = sum(n for n, _ in missed), sum(n for n, held in missed if held)
    return f"{bounded} of {every} profile misses in fits that a bound holds" if bounded else ""


# --- the theorem ------------------------------------------------------------------------------------------------------


def law_cell(name: str, noise: float, trials: int, seed: int) -> dict[str, Any]:
    """Many noise draws through one fixed fit, beside what the theorem says of them."""
    for trial in range(100):  # some draws have no shooting time at which first order is enough
        truth = draw(name, noise, trial, seed, POINTS, False)
        fit = _true_fit(truth, noise)
        try:
            budget = fit.error_budget()
        except (ModelError, DataError):
            continue
        if budget.relative_error[budget.worst] < SMALL:
            break
    system, estimates, derivatives = _propagated(truth, fit, budget, noise, trials, seed)
    errors = estimates - budget.values
    expected = budget.covariance.values
    sizes = np.sqrt(np.diag(expected))
    empirical = np.cov(errors.T) / np.outer(sizes, sizes)
    theory = expected / np.outer(sizes, sizes)
    centred = (errors.mean(axis=0) - np.array(list(budget.shift.values()))) / sizes
    n, p = len(errors), len(sizes)
    linear = (derivatives - budget.derivatives - budget.bias) @ budget.sensitivity.T
    entry_sd = np.sqrt((np.outer(np.diag(theory), np.diag(theory)) + theory**2) / (n - 1))
    entries = np.abs((empirical - theory) / entry_sd)[np.triu_indices(p)]
    return {
        "system": name,
        "noise": noise,
        "draws": n,
        "lost": trials - n,
        "time": budget.time,
        "unknowns": p,
        "worst relative error": budget.relative_error[budget.worst],
        "largest entry": rounded(float(entries.max())),
        "entries within two": float(np.mean(entries <= 2)),
        "largest mean": rounded(float(np.abs(centred).max() * math.sqrt(n))),
        "joint": rounded(wilks(whitened(errors, budget))),
        "joint linear": rounded(wilks(whitened(linear, budget))),
        "sd ratios": [rounded(float(x)) for x in np.sqrt(np.diag(empirical))],
        "derivatives within r": {
            str(d): float(np.mean(np.abs(derivatives - budget.derivatives).max(axis=1) <= budget.radius(d)))
            for d in (0.05, 0.5)
        },
        "unknowns within bound": {
            str(d): float(np.mean(np.abs(errors).max(axis=1) <= budget.bound(d))) for d in (0.05, 0.5)
        },
        "norm": budget.norm,
        "dominant": list(budget.dominant),
        "rows": len(system.rows),
    }


def whitened(errors: np.ndarray, budget: budgets.ErrorBudget) -> np.ndarray:
    """Errors of the unknowns, in rows, in units that make `S Sigma_d S'` the identity.

    By way of the derivatives, S^-1 errors, whose covariance is far better conditioned than that of the unknowns.
    """
    columns = np.abs(budget.sensitivity).max(axis=0)
    rows = np.abs(budget.sensitivity / columns).max(axis=1)
    scaled = budget.sensitivity / columns / rows[:, None]
    derivatives = np.linalg.solve(scaled, (errors / rows).T) / columns[:, None]
    sds = np.sqrt(np.diag(budget.covariance_of_derivatives))
    root = np.linalg.cholesky(budget.covariance_of_derivatives / np.outer(sds, sds))
    return np.linalg.solve(root, derivatives / sds[:, None]).T


def wilks(white: np.ndarray) -> float:
    """The p-value of the likelihood-ratio test that rows have the identity as covariance, with Bartlett's correction
    (Anderson, An Introduction to Multivariate Statistical Analysis, 10.8)."""
    from scipy.stats import chi2

    n, p = len(white) - 1, white.shape[1]
    sample = np.atleast_2d(np.cov(white.T))
    ratio = n * (np.trace(sample) - np.linalg.slogdet(sample)[1] - p)
    return float(chi2.sf(ratio * (1 - (2 * p + 1 - 2 / (p + 1)) / (6 * n)), p * (p + 1) / 2))


SMALL = 0.03
"""Relative errors of the raw estimate below which first order is enough."""


def _true_fit(truth: Truth, noise: float) -> Fit:
    """A fit that is the truth itself, with the noise known."""
    model = truth.system.model
    clean = _clean(truth)
    sds = {name: noise * abs(float(clean[name].mean())) for name in model.outputs}
    smoothed = {}
    for experiment in truth.data.experiments:
        for name, series in experiment.outputs.items():
            smoothed[experiment.name, name] = fit_series(series)
    return from_truth(truth, sds, evaluations=1, smoothed=smoothed)


def _clean(truth: Truth) -> Any:
    import odejet as oj

    return oj.simulate(truth.system.model, truth.parameters, truth.initial_state, truth.system.times(POINTS))


def _propagated(
    truth: Truth, fit: Fit, budget: budgets.ErrorBudget, noise: float, trials: int, seed: int
) -> tuple[SquareSystem, np.ndarray, np.ndarray]:
    """Raw estimates and derivatives of many noise draws through the fixed smoothers, by Newton's method from z*."""
    own, clean = fit.experiment(), _clean(truth)
    system = budgets._system(fit, own)
    rng = np.random.default_rng([seed, 500])
    derivatives = np.zeros((trials, len(budget.rows)))
    for name, order in orders_of(system).items():
        one = fit.smoothed[own.name, name]
        jet = budgets.linear_jet(one, budget.time, order, 1.0, budget.estimators[name])
        exact = clean[name]
        noisy = exact + noise * abs(exact.mean()) * rng.normal(size=(trials, len(exact)))
        found = (noisy - one.data.center) @ jet.weights.T
        found[:, 0] += one.data.center
        for k, (output, row_order) in enumerate(budget.rows):
            if output == name:
                derivatives[:, k] = found[:, row_order]
    data = derivatives / budgets._factorials(system)
    inputs = np.repeat(input_series(system, own, np.array([budget.time])), trials, axis=0)
    fixed = budgets._states(fit, own, system, np.array([budget.time]))[0, system.held]
    roots = np.repeat(budget.values[None], trials, axis=0)
    for _ in range(30):
        values, jacobian = system.evaluate(roots, inputs, fixed)
        scaled = np.linalg.solve(jacobian * np.abs(budget.values), (data - values)[..., None])[..., 0]
        roots = roots + np.clip(scaled, -0.3, 0.3) * np.abs(budget.values)
    settled = np.abs(scaled).max(axis=1) < 1e-8
    return system, roots[settled], derivatives[settled]


def law_table(lines: list[dict[str, Any]]) -> str:
    text = [
        "Noise draws through one fixed fit.  The covariance of the raw estimates beside `S Sigma_d S'`: the largest",
        "difference of an entry in its sampling standard errors, and the share of entries within two of them; the",
        "largest mean less `S b`, likewise.  Shares of draws within the radius and within the bound, which promise at",
        "least 95 % and 50 %.  The joint p-values are of Wilks' test of the whole covariance at once: of estimates,",
        "and of their linear part `S (d - d* - b)`, which has the law exactly.  Truths whose raw estimate is off by",
        "3 % and more are left out: there first order is not enough.",
        "",
        "| system | noise | draws | t | unknowns | worst error | largest entry | within two | largest mean | "
        "joint p | linear | sd ratios | within r 95 / 50 | within bound 95 / 50 |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        ratios = f"{min(line['sd ratios']):.3f} to {max(line['sd ratios']):.3f}"
        within = [
            " / ".join(f"{100 * line[what][d]:.1f}" for d in ("0.05", "0.5"))
            for what in ("derivatives within r", "unknowns within bound")
        ]
        text.append(
            f"| {line['system']} | {line['noise']:g} | {line['draws']} | {line['time']:.3g} | {line['unknowns']} | "
            f"{100 * line['worst relative error']:.2g} % | {line['largest entry']:.1f} | "
            f"{100 * line['entries within two']:.0f} % | {line['largest mean']:.1f} | "
            f"{line['joint']:.2g} | {line['joint linear']:.2g} | {ratios} | {' | '.join(within)} |"
        )
    return "\n".join(text) + "\n"


# --- combinations and time --------------------------------------------------------------------------------------------


def combination_cell(name: str, noise: float, trial: int, seed: int) -> dict[str, Any]:
    """What the report calls undetermined, and the combinations it names beside their true values."""
    truth = draw(name, noise, trial, seed, POINTS, False)
    fit = from_truth(truth)
    z = np.array([truth.values[unknown.name] for unknown in fit.unknowns])
    began = time.process_time()
    found = fit.practical
    named = []
    for one in found.compounds:
        true = fit.likelihood.derived(one.label).at(z)[0]
        holds = one.interval[0] <= true <= one.interval[1]
        gradient = fit.likelihood.derived(one.label).at(fit.estimates)[1]
        loose = any(found.findings[fit.labels[i]].kind != DETERMINED for i in np.flatnonzero(gradient))
        error = rounded(abs(one.value / true - 1))
        named.append({"text": one.label, "error": error, "holds": bool(holds), "loose": loose})
    return {
        "system": name,
        "noise": noise,
        "trial": trial,
        "undetermined": list(found.undetermined),
        "weak": list(found.weak),
        "possible": rounded(possible(truth, found.undetermined)),
        "combinations": named,
        "seconds": round(time.process_time() - began, 2),
    }


def possible(truth: Truth, undetermined: Sequence[str]) -> float:
    """The least log-sd, by the information at the truth, of a product with an undetermined factor.

    Its largest exponent among those is one, and the exponents of all other factors are at their best.
    """
    fit = from_truth(truth, evaluations=1)
    root = relative_root(fit.likelihood.information, fit.estimates)
    lost = np.array([label in undetermined for label in fit.labels])
    if not lost.any():
        return math.nan
    basis = np.linalg.qr(root[:, ~lost])[0]
    left = root[:, lost] - basis @ (basis.T @ root[:, lost])
    _, sds, vectors = np.linalg.svd(left, full_matrices=False)
    return float((sds / np.abs(vectors).max(axis=1)).min())


def combination_table(lines: list[dict[str, Any]]) -> str:
    text = [
        "Combinations that `fit.practical` names, beside their true values.  A loose factor is one that is not called",
        "determined by itself; where nothing else is left, products of determined quantities are named that are known",
        "better than these.  Possible are draws where, by the information at the truth, some product with an",
        "undetermined factor has a relative standard error below 10 %; beside it, median and range of the least one.",
        "",
        "| system | noise | draws | with undetermined factors | possible | least error | "
        "with a combination within 10 % | of them with a loose factor | combinations | within 10 % | "
        "in their interval | median CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, noise in dict.fromkeys((line["system"], line["noise"]) for line in lines):
        own = [line for line in lines if (line["system"], line["noise"]) == (name, noise)]
        named = [one for line in own for one in line["combinations"]]
        good = [[one["loose"] for one in line["combinations"] if one["error"] <= 0.1] for line in own]
        shares = [
            f"{100 * sum(chosen) / len(named):.0f} %" if named else "–"
            for chosen in ([one["error"] <= 0.1 for one in named], [one["holds"] for one in named])
        ]
        lost = sum(bool(line["undetermined"]) for line in own)
        least = [line["possible"] for line in own]
        reach = f"{np.median(least):.2g} ({min(least):.2g} to {max(least):.2g})"
        text.append(
            f"| {name} | {noise:g} | {len(own)} | {lost} | {sum(one < 0.1 for one in least)} | {reach} | "
            f"{sum(map(bool, good))} | {sum(map(any, good))} | "
            f"{len(named)} | {' | '.join(shares)} | {float(np.median([line['seconds'] for line in own])):.1f} |"
        )
    text += ["", "What was named:", ""]
    for line in lines:
        shown = "; ".join(f"`{one['text']}` ({100 * one['error']:.1f} %)" for one in line["combinations"])
        text.append(f"- {line['system']} {line['trial']}: {shown or 'nothing'}")
    return "\n".join(text) + "\n"


def timing_cell(name: str, noise: float, trial: int, seed: int) -> dict[str, Any]:
    """CPU seconds of the profiles of all quantities of one fit."""
    truth = draw(name, noise, trial, seed, POINTS, False)
    fit = from_truth(truth)
    profile(fit.likelihood, fit.labels[0], LEVEL)  # kernels are compiled, or read from their cache
    began = time.process_time()
    found = [profile(fit.likelihood, label, LEVEL) for label in fit.labels]
    seconds = time.process_time() - began
    closed = sum(not any(one.open) for one in found)
    return {
        "system": name,
        "noise": noise,
        "trial": trial,
        "seconds": seconds,
        "quantities": len(found),
        "closed": closed,
        "points": sum(len(one.values) for one in found),
    }


def timing_table(lines: list[dict[str, Any]]) -> str:
    text = [
        "| system | noise | draws | quantities | median CPU s | largest | bar | closed intervals |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(line["system"] for line in lines):
        for noise in sorted({line["noise"] for line in lines}):
            own = [line for line in lines if line["system"] == name and line["noise"] == noise]
            if own:
                seconds = [line["seconds"] for line in own]
                closed = sum(line["closed"] for line in own) / sum(line["quantities"] for line in own)
                bar = f"{TIMED_SYSTEMS[name]:g}" if name in TIMED_SYSTEMS else ""
                text.append(
                    f"| {name} | {noise:g} | {len(own)} | {own[0]['quantities']} | {np.median(seconds):.2f} | "
                    f"{max(seconds):.2f} | {bar} | {100 * closed:.0f} % |"
                )
    return "\n".join(text) + "\n"


# --- bands ------------------------------------------------------------------------------------------------------------


def band_cell(name: str, noise: float, trial: int, seed: int) -> dict[str, Any]:
    """Counts of the bands of one fit."""
    truth = draw(name, noise, trial, seed, bands.POINTS, False)
    line: dict[str, Any] = {"system": name, "noise": noise, "trial": trial}
    return line | bands.counts(from_truth(truth), truth, noise)


# --- running ----------------------------------------------------------------------------------------------------------

CELLS = {
    "intervals": interval_cell,
    "combinations": combination_cell,
    "timing": timing_cell,
    "joined": partial(profiles.cell, "joined"),
    "valleys": partial(profiles.cell, "valleys"),
    "bands": band_cell,
}
TABLES = {
    "intervals": interval_table,
    "law": law_table,
    "combinations": combination_table,
    "timing": timing_table,
    "joined": profiles.table,
    "valleys": profiles.table,
    "bands": bands.table,
}
DEFAULTS: dict[str, tuple[int, list[float], list[str]]] = {
    "intervals": (20, [1e-4, 1e-2], list(systems.names())),
    "law": (500, [1e-4], list(LAW_SYSTEMS)),
    "combinations": (10, [1e-2], list(COMPOUND_SYSTEMS)),
    "timing": (5, [1e-2], list(TIMED_SYSTEMS)),
    "joined": (10, [1e-2], list(profiles.CHOSEN["joined"])),
    "valleys": (10, [1e-2], list(profiles.CHOSEN["valleys"])),
    "bands": (20, [1e-2, 5e-2], list(bands.SYSTEMS)),
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks coverage", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, default="intervals")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--noise", type=float, nargs="+")
    parser.add_argument("--systems", nargs="+")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args(argv)
    trials, noises, names = DEFAULTS[arguments.part]
    trials = trials if arguments.trials is None else arguments.trials
    path = arguments.output or RESULTS / f"{arguments.part}-seed{arguments.seed}.jsonl"
    rows = records.read(path)
    lines = [row if isinstance(row, dict) else dict(zip(FIELDS, row, strict=True)) for row in rows]
    done = {(line["system"], line["noise"], line.get("trial", 0)) for line in lines}
    for trial in range(min(trials, 1) if arguments.part == "law" else trials):
        for name in arguments.systems or names:
            for noise in arguments.noise or noises:
                if (name, noise, trial) in done:
                    continue
                if arguments.part == "law":
                    line = law_cell(name, noise, trials, arguments.seed)
                else:
                    line = CELLS[arguments.part](name, noise, trial, arguments.seed)
                lines.append(line)
                records.add(path, list(line.values()) if arguments.part == "intervals" else line)
                print(f"{name} {noise:g} {trial}", flush=True)
    path.with_suffix(".md").write_text(TABLES[arguments.part](lines))
    print(TABLES[arguments.part](lines))
    return 0
