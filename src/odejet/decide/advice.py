"""Advice: where a model fails to explain the data, and what to change.

Residuals that differ between experiments say that the subjects differ in something the model takes to be the same.
Which unknowns these may be follows from the sensitivities: one that had a value of its own in each experiment would
take so much of the residuals.  Residuals of one sign over a stretch of time say when the model is wrong.  Where they
are like errors that persist and are forgotten soon, with innovations that look like noise, noise may be what is wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.decide.adequacy import NO, Adequacy, Shortcoming, listed
from odejet.decide.fitted import beside, neighbours
from odejet.decide.outliers import tails_p
from odejet.decide.statistics import WHITE, autocorrelation_tail, experiments
from odejet.objective.misfit import Misfit
from odejet.problem.chains import Chain
from odejet.search.refine import Refined

DIFFER = 1e-3
"""Means of residuals that differ more between experiments than noise does with this probability."""

MOST_LOCAL, MOST_ENTRIES = 3, 5_000_000
"""Unknowns that are named to differ between experiments, and numbers that finding them may take."""

WORTH = 0.5
"""Of what the first of these gains, which further ones must gain too: sensitivities leave something to any of them."""

CLEAR = 4.0
"""Standard errors by which the mean over a stretch of time is off before the stretch is named."""


FEWEST, FORGOTTEN = 20, 0.2
"""Measurements that follow others, from which on it is asked whether errors persist, and the part of the longest series
within which they are forgotten: what lasts longer is the model's."""


def advise(misfit: Misfit, refined: Refined, answer: Adequacy) -> Adequacy:
    """Add to the answer which experiments show each shortcoming, and what to do about them."""
    if answer != NO or not refined.by_rows or not len(refined.residuals):
        return answer
    outputs = [_Output.of(misfit, refined, name) for name in misfit.outputs]
    by_name = {output.name: output for output in outputs}
    reasons = [_placed(reason, by_name.get(reason.output)) for reason in answer.reasons]
    off = [by_name[reason.output] for reason in reasons if reason.kind in ("autocorrelation", "size")]
    off = list(dict.fromkeys(off))
    uneven = [output for output in outputs if output.uneven and len(output.names) > 1]
    told = [words for output in uneven for words in output.of_sizes()]
    told += list(_subjects(misfit, refined, [output for output in off if output.differ]))
    told += [words for output in off if not output.differ and (words := output.stretch())]
    waving = [by_name[reason.output] for reason in reasons if reason.kind == "autocorrelation"]
    told += [words for output in waving if not output.differ and (words := _persistent(misfit, output))]
    return Adequacy(str(answer), reasons, told)


@dataclass(frozen=True, eq=False)
class _Output:
    """The residuals of one output in units of its noise, experiment by experiment."""

    name: str
    names: tuple[str, ...]  # of experiments
    times: tuple[np.ndarray, ...]
    residuals: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, misfit: Misfit, refined: Refined, name: str) -> _Output:
        rows = misfit.measurements.series(name)
        values = refined.residuals if refined.noise is None else refined.noise.scores
        own = [values[one] for one in rows]
        return cls(name, tuple(experiments(misfit, name)), tuple(misfit.times[one] for one in rows), tuple(own))

    @property
    def differ(self) -> bool:
        """Whether the means of experiments differ (Fisher's F)."""
        from scipy.special import fdtrc

        sizes = np.array([len(one) for one in self.residuals])
        groups, count = len(sizes), int(sizes.sum())
        if groups < 2 or count <= groups:
            return False
        means = np.array([one.mean() for one in self.residuals])
        overall = float(np.concatenate(self.residuals).mean())
        between = float(sizes @ (means - overall) ** 2) / (groups - 1)
        within = sum(float(((r - m) ** 2).sum()) for r, m in zip(self.residuals, means, strict=True)) / (count - groups)
        return within > 0 and float(fdtrc(groups - 1, count - groups, between / within)) < DIFFER

    @property
    def uneven(self) -> bool:
        """Whether residuals are of different sizes in different experiments (Bartlett's test)."""
        from scipy.special import chdtrc

        own = [r for r in self.residuals if len(r) > 2]
        if len(own) < 2:
            return False
        free = np.array([len(r) - 1 for r in own])
        variances = np.array([max(float(r.var(ddof=1)), 1e-300) for r in own])
        pooled = float(free @ variances) / free.sum()
        score = free.sum() * math.log(pooled) - float(free @ np.log(variances))
        score /= 1 + (float((1 / free).sum()) - 1 / free.sum()) / (3 * (len(own) - 1))
        return float(chdtrc(len(own) - 1, score)) < DIFFER

    def of_sizes(self) -> Iterator[str]:
        """That noise differs between experiments, and how to say so."""
        sizes = [float(np.sqrt(np.mean(r**2))) for r in self.residuals]
        largest, least = (pick(range(len(sizes)), key=sizes.__getitem__) for pick in (max, min))
        yield (
            f"the residuals of {self.name} are {sizes[largest] / max(sizes[least], 1e-300):.2g} times as large in "
            f"{self.names[largest]} as in {self.names[least]}: let the noise differ between experiments, by "
            f"noise={{'{self.name}': 'normal(s)'}} and local=['s']"
        )

    def farthest(self) -> list[tuple[float, str]]:
        """How far the mean of each experiment is off, in standard errors, the farthest first."""
        off = [float(r.sum()) / math.sqrt(len(r)) for r in self.residuals]
        return sorted(zip(off, self.names, strict=True), key=lambda one: -abs(one[0]))

    def worst(self) -> tuple[str, ...]:
        """The experiments over which residuals keep one sign for longest, or are off altogether."""
        if len(self.names) < 2:
            return self.names
        scores = [abs(_longest(r)[2]) for r in self.residuals]
        return tuple(
            name for score, name in sorted(zip(scores, self.names, strict=True), reverse=True) if score > CLEAR
        )

    def stretch(self) -> str:
        """When the model is off: in all experiments together, or else in the one where it is off most."""
        times, residuals = np.concatenate(self.times), np.concatenate(self.residuals)
        order = np.argsort(times, kind="stable")
        where, (begin, end, score) = "", _longest(residuals[order])
        times = times[order]
        if abs(score) < CLEAR and len(self.names) > 1:
            found = [_longest(one) for one in self.residuals]
            number = max(range(len(found)), key=lambda i: abs(found[i][2]))
            where, times, (begin, end, score) = f" in {self.names[number]}", self.times[number], found[number]
        if abs(score) < CLEAR:
            return ""
        side = "above" if score > 0 else "below"
        stretch = f"between t = {times[begin]:g} and t = {times[end - 1]:g}"
        return f"the model is {side} the measurements of {self.name} {stretch}{where}: look for what acts then"


def _persistent(misfit: Misfit, output: _Output) -> str:
    """That errors may persist, where noise that does explains the residuals; empty where it does not."""
    law = _persistent_law(misfit, output.name)
    usual = np.concatenate([Chain.of(times).gaps for times in output.times])
    usual = usual[np.isfinite(usual)]
    if not law or len(usual) < FEWEST:
        return ""
    # Correlations of neighbours that are usually far apart, and forgotten within a part of the longest series.
    gap, span = float(np.median(usual)), max(float(np.ptp(times[np.isfinite(times)])) for times in output.times)
    rhos = np.exp(np.log(np.linspace(0.05, 0.98, 94)) / gap)
    rhos = rhos[rhos ** (FORGOTTEN * span) < math.exp(-1)]
    found = [_innovations(output, float(rho)) for rho in rhos]
    if not found:
        return ""
    costs = [0.5 * len(e) * math.log(float(e @ e)) + left for e, left in found]
    best = int(np.argmin(costs))
    if best == len(rhos) - 1:  # what is never forgotten is no noise
        return ""
    innovations = found[best][0] / math.sqrt(float(np.mean(found[best][0] ** 2)))
    lengths = [len(one) for one in output.residuals]
    ends = np.cumsum([0, *lengths]).tolist()
    courses = [slice(a, b) for a, b in itertools.pairwise(ends)]
    variance = 4 * sum(weight**2 * max(length - lag, 0) for length in lengths for lag, weight in neighbours())
    score = float(innovations @ beside(innovations, courses)) / math.sqrt(variance)
    if min(autocorrelation_tail(score, lengths), tails_p(innovations)) < WHITE:
        return ""  # something happened, or lasts
    return (
        f"the residuals of {output.name} are like errors that persist (neighbours are correlated by about "
        f"{rhos[best] ** gap:.2f}): if the measurements and not the model are their cause, say so by "
        f"noise={{'{output.name}': '{law}(s, rho)'}}"
    )


def _persistent_law(misfit: Misfit, output: str) -> str:
    """The law of noise that persists in place of that of an output; empty where there is none."""
    blocks = [block for block in misfit.measurements.blocks if block.output == output]
    laws = [block.density for block in blocks if block.density is not None]
    if any(not law.of_squares for law in laws):
        return ""
    grows = any(law.follows_output for law in laws) or any(np.ptp(block.shapes) > 0 for block in blocks)
    if grows and not all((block.values > 0).all() for block in blocks):
        return ""
    return "logar1" if grows or any(block.logarithm for block in blocks) else "ar1"


def _innovations(output: _Output, rho: float) -> tuple[np.ndarray, float]:
    """The innovations of the residuals of an output, and what their likelihood has beside their squares."""
    found = [Chain.of(t).innovations(r, rho) for t, r in zip(output.times, output.residuals, strict=True)]
    return np.concatenate([one.values for one in found]), 0.5 * sum(float(np.log(one.left).sum()) for one in found)


def _longest(residuals: np.ndarray) -> tuple[int, int, float]:
    """The stretch whose mean is off by most standard errors: where it begins and ends, and by how many."""
    sums = np.concatenate([[0.0], np.cumsum(residuals)])
    count = len(residuals)
    best = (0, count, 0.0)
    for length in sorted({max(round(count * part), 2) for part in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)}):
        if length <= count:
            scores = (sums[length:] - sums[:-length]) / math.sqrt(length)
            at = int(np.argmax(np.abs(scores)))
            if abs(scores[at]) > abs(best[2]):
                best = (at, at + length, float(scores[at]))
    return best


def _placed(reason: Shortcoming, output: _Output | None) -> Shortcoming:
    """With the experiments that show it."""
    if output is None or reason.experiments:
        return reason
    return reason._replace(experiments=output.worst())


def _subjects(misfit: Misfit, refined: Refined, outputs: Sequence[_Output]) -> Iterator[str]:
    """That experiments differ, and in what."""
    if not outputs:
        return
    names = _to_make_local(misfit, refined)
    for output in outputs:
        off = output.farthest()
        high, low = ([name for score, name in off if sign * score > 2] for sign in (1, -1))
        sides = [
            f"{side} in {listed(side_names, 3)}" for side, side_names in (("above", high), ("below", low)) if side_names
        ]
        told = f"the residuals of {output.name} differ between experiments (the model is {' and '.join(sides)})"
        remedy = f": let {', '.join(names)} differ, by local={list(names)!r}" if names else ": subjects differ"
        yield told + remedy if sides else f"the residuals of {output.name} differ between experiments{remedy}"


def _to_make_local(misfit: Misfit, refined: Refined) -> tuple[str, ...]:
    """Shared unknowns that take most of the residuals if each experiment has its own value, as long as they are worth
    it (by the criterion of Schwarz)."""
    shared = [i for i, u in enumerate(misfit.unknowns) if u.experiment is None and i not in set(misfit.noise_entries)]
    count, places = len(refined.residuals), len(misfit.simulator.conditions)
    if not shared or count * places > MOST_ENTRIES or len(refined.jacobian) < count:
        return ()
    rows = np.empty(count, dtype=int)
    for place, block in zip(misfit.measurements.rows, misfit.measurements.blocks, strict=True):
        rows[place] = block.experiment
    jacobian, left = refined.jacobian[:count], refined.residuals
    basis, chosen = _orthonormal(jacobian[:, ~refined.held]), list[int]()
    left, first = left - basis @ (basis.T @ left), 0.0
    while len(chosen) < MOST_LOCAL:
        gains, bases = [], []
        for entry in shared:
            columns = np.where(rows[:, None] == np.arange(places), jacobian[:, [entry]], 0.0)
            own = _orthonormal(columns - basis @ (basis.T @ columns))
            took = float(((own.T @ left) ** 2).sum())
            squares = max(float(left @ left), 1e-300)
            gain = -0.5 * count * math.log(max(1 - took / squares, 1e-12)) - 0.5 * own.shape[1] * math.log(count)
            gains.append(gain if entry not in chosen else -math.inf)
            bases.append(own)
        best = int(np.argmax(gains))
        if gains[best] <= WORTH * max(first, 0.0):
            break
        first = max(first, gains[best])
        chosen.append(shared[best])
        left = left - bases[best] @ (bases[best].T @ left)
        basis = np.concatenate([basis, bases[best]], axis=1)
    return tuple(misfit.unknowns[i].name for i in chosen)


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """A basis of what they span."""
    sizes = np.sqrt((columns**2).sum(axis=0))
    columns = columns[:, sizes > 0] / sizes[sizes > 0]
    if not columns.size:
        return np.empty((len(columns), 0))
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    return u[:, s > 1e-8 * s.max(initial=0.0)]
