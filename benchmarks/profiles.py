"""Profiles: whether intervals hold the truth where little is determined: joined experiments and vague valleys.

Nothing is left out because it is called undetermined.  A true value belongs to the 95 % interval if and only if the
likelihood with the quantity held there, everything else at its best, is close enough to the optimum.  So besides how
often intervals hold the truth, every single one is checked: it is *narrow* if it leaves out a true value that belongs
to it, and *wide* if it holds one that does not.  The first is what a walk along a bent valley gets wrong.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import cells
from benchmarks.counting import LEVEL, fitted, grouped, held_at
from odejet.problem import Problem
from odejet.result import Fit
from odejet.uncertainty.practical import DETERMINED, UNDETERMINED, WEAK, kind
from odejet.uncertainty.profile import profile
from problems import systems

POINTS = 75
"""Measurements of every output in an experiment."""
RANGE, BOUNDS = (0.1, 10.0), (1e-5, 1e4)
"""Between what parameters are drawn, evenly by their logarithm, and where a fit may look.

Over two decades there are draws in which a saturation is never reached or a rate too fast to see."""
EXPERIMENTS = {"joined": 10, "valleys": 1}
CHOSEN = {
    "joined": ("biohydrogenation", "daisy_mamil3", "lotka_volterra", "sirt_treatment"),
    "valleys": ("biohydrogenation", "crauste", "cstr", "daisy_mamil4", "hiv"),
}
"""Systems whose likelihood often has long valleys at a noise of a percent, and one beside them that has none."""


@dataclass(frozen=True)
class Joined:
    """True values by label, and data of experiments that share their parameters but not their initial states."""

    system: systems.System
    data: oj.Data
    parameters: Mapping[str, float]
    initial_states: Mapping[str, Mapping[str, float]]  # by experiment

    def vector(self, problem: Problem) -> np.ndarray:
        return np.array(
            [
                self.parameters[one.name] if one.experiment is None else self.initial_states[one.experiment][one.name]
                for one in problem.layout
            ]
        )


def drawn(name: str, noise: float, trial: int, seed: int, experiments: int) -> Joined:
    """One draw of parameters, as many of initial states; the noise of an output has one size in all experiments."""
    system = systems.load(name)
    rng = np.random.default_rng([seed, trial, systems.number(name), experiments])
    times = system.times(POINTS)
    while True:
        parameters = {one: float(np.exp(rng.uniform(*np.log(RANGE)))) for one in system.model.parameters}
        starts = [systems.draw(system, rng)[1] for _ in range(experiments)]
        courses = [cells.trajectory(system, parameters, start, times) for start in starts]
        found = [course for course in courses if course is not None]
        if len(found) == experiments:
            break
    sizes = {y: noise * float(np.mean([abs(course[y].mean()) for course in found])) for y in system.model.outputs}
    parts = [
        oj.Data(times, {y: clean + sizes[y] * rng.normal(size=POINTS) for y, clean in course.items()}, name=f"e{i}")
        for i, course in enumerate(found)
    ]
    return Joined(system, oj.Data.join(parts), parameters, {f"e{i}": start for i, start in enumerate(starts)})


def from_truth(truth: Joined) -> tuple[Fit, np.ndarray]:
    """The fit that the truth leads to, within wide bounds, and the truth."""
    problem = Problem(truth.system.model, truth.data, BOUNDS)
    z = truth.vector(problem)
    return fitted(problem, z), z


def quantities(fit: Fit, z: np.ndarray, skipped: Sequence[str]) -> list[dict[str, Any]]:
    """Of every shared quantity, or every one of a single experiment: what it is called and whether its interval holds.

    A truth within a hundredth of the quantile belongs either way: interpolation is no better.
    """
    several = len(fit.data.experiments) > 1
    found = []
    for unknown, value, true in zip(fit.unknowns, fit.estimates.tolist(), z.tolist(), strict=True):
        if unknown.name in skipped or (several and unknown.experiment is not None):
            continue
        began = time.process_time()
        own = profile(fit.likelihood, unknown.label, LEVEL)
        seconds = time.process_time() - began
        low, high = own.interval()
        holds = bool((own.open[0] or low <= true) and (own.open[1] or true <= high))
        deviance, quantile = held_at(fit, unknown.label, true, z)
        found.append(
            {
                "quantity": unknown.label,
                "kind": kind(value, (low, high), own.open),
                "holds": holds,
                "narrow": bool(not holds and deviance < 0.99 * quantile),
                "wide": bool(holds and not any(own.open) and deviance > 1.01 * quantile),
                "deviance": deviance,
                "seconds": seconds,
            }
        )
    return found


def cell(part: str, name: str, noise: float, trial: int, seed: int) -> dict[str, Any]:
    """Counts of one draw, and the quantities whose interval is not what the likelihood says."""
    truth = drawn(name, noise, trial, seed, EXPERIMENTS[part])
    fit, z = from_truth(truth)
    found = quantities(fit, z, truth.system.unidentifiable)
    line: dict[str, Any] = {"system": name, "noise": noise, "trial": trial, "quantities": len(found)}
    for called in KINDS:
        own = [one for one in found if one["kind"] == called]
        line |= {called: len(own), f"{called} hits": sum(one["holds"] for one in own)}
    for fault in ("narrow", "wide"):
        line[fault] = [one["quantity"] for one in found if one[fault]]
    return line | {"seconds": round(sum(one["seconds"] for one in found), 2)}


KINDS = (DETERMINED, WEAK, UNDETERMINED)


def table(lines: list[dict[str, Any]]) -> str:
    text = [
        "True values inside their 95 % profile intervals, by what the quantity is called; open ends hold everything.",
        "Narrow are intervals that leave out a true value though the likelihood held there is within the quantile,",
        "wide are closed ones that hold one though it is not.",
        "",
        f"| | draws | {' | '.join(KINDS)} | narrow | wide | median CPU s per draw |",
        f"|---|---:|{'---:|' * len(KINDS)}---:|---:|---:|",
    ]
    for title, own in {"all": lines, **grouped(lines)}.items():
        shares = []
        for called in KINDS:
            hits, total = sum(line[f"{called} hits"] for line in own), sum(line[called] for line in own)
            shares.append(f"{hits} of {total} ({100 * hits / total:.1f} %)" if total else "–")
        faults = [sum(len(line[fault]) for line in own) for fault in ("narrow", "wide")]
        seconds = float(np.median([line["seconds"] for line in own]))
        text.append(f"| {title} | {len(own)} | {' | '.join(shares)} | {faults[0]} | {faults[1]} | {seconds:.1f} |")
    named = [f"- {line['system']} {line['trial']}: {', '.join(line['narrow'])}" for line in lines if line["narrow"]]
    return "\n".join(text + (["", "Narrow ones:", "", *named] if named else [])) + "\n"
