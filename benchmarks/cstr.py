"""CSTR: the paper's controlled example, where a good fit need not mean a good answer.

python -m benchmarks cstr [--trial N] [--seed S]

A stirred tank of which only the temperature is measured.  Concentration and reaction rate are latent, and the heat
balance knows them only through the product H C r.  This script shows what follows from that:

1. the estimates of one trial over the noise levels, beside the standard errors that the Fisher information predicts:
   the product H C0 r0 is known better than its factors, and in the end all of them are lost;
2. the square polynomial system of 26 equations, its singular values, and the sensitivity matrix dz/dd, by which errors
   of the output's derivatives reach the unknowns (the paper's local error bound): the implicit function theorem for
   F(z, d) = 0 gives dz/dd = -(dF/dz)^-1 dF/dd.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np

import odejet as oj
from benchmarks import ceiling, cells, explicit, paper
from benchmarks.cells import Cell, Draw, Protocol
from odejet.numerals import short
from problems import systems
from problems.prolong import Explicit, Numeric, Terms, Variable

SYSTEM = "cstr"
LATENT = {"dH_rhoCP": "H", "C": "C0", "r_eff": "r0"}
PLACES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Parts of the time span at which the system is looked at."""


@dataclass(frozen=True)
class Row:
    """Estimates of the latent factors at one noise level."""

    noise: float
    factors: dict[str, float]
    rmse: float  # of the output against that without noise
    factor_error: float  # the relative standard error of H, predicted at the truth
    product_error: float

    @property
    def product(self) -> float:
        return math.prod(self.factors.values())


@dataclass(frozen=True)
class Sensitivity:
    """The square system at one time of a trajectory."""

    time: float
    unknowns: tuple[str, ...]  # parameters and states at that time
    data: tuple[str, ...]  # derivatives of the output
    matrix: np.ndarray  # relative: d log|z| / d log|d|
    singular_values: np.ndarray  # of dF/dz

    @property
    def ratio(self) -> float:
        return float(self.singular_values[0] / self.singular_values[-1])

    @property
    def amplification(self) -> float:
        """How much the largest relative error of a derivative is magnified at worst."""
        return float(np.abs(self.matrix).sum(axis=1).max())


# --- estimates ---


def estimates(truth: Draw, noise: float, trial: int, protocol: Protocol) -> Row:
    data = cells.measured(truth, Cell(SYSTEM, noise, trial), protocol)
    fit = oj.fit(truth.system.model, data, bounds=systems.protocol().bounds)
    values = {**fit.initial_state, **fit.parameters}
    simulated = oj.simulate(truth.system.model, fit.parameters, fit.initial_state, truth.times)["y1"]
    rmse = float(np.sqrt(np.mean((simulated - truth.clean["y1"]) ** 2)))
    factor, product = predicted(truth, protocol)
    factors = {short: values[name] for name, short in LATENT.items()}
    return Row(noise, factors, rmse, noise * factor, noise * product)


def predicted(truth: Draw, protocol: Protocol) -> tuple[float, float]:
    """Relative standard errors of H and of H C0 r0 at noise one, by the Fisher information at the truth."""
    rows = ceiling.noise_rows(truth, protocol.scale)
    root = ceiling.weighted_root(ceiling.relative_sensitivities(truth) / rows[:, None])
    model = truth.system.model
    names = [*model.states, *model.parameters]
    latent = [root[names.index(name)] for name in LATENT]
    return float(np.linalg.norm(latent[0])), float(np.linalg.norm(sum(latent)))


# --- the square system ---


def sensitivity(truth: Draw, place: float) -> Sensitivity:
    """The system that `identify` chooses, on the true trajectory, at a part of its time span."""
    model, (first, last) = truth.system.model, truth.system.time
    time = first + place * (last - first)
    states = oj.simulate(model, truth.parameters, truth.initial_state, [first, time]).states
    system = explicit.square(SYSTEM)
    z, data = system.graph(
        np.array([[states[name][1] for name in model.states]]), np.array(list(truth.parameters.values())), time
    )
    by_unknowns = jacobian(system.at(data), z)
    measured = [variable for variable in system.data if variable.name in model.outputs]
    kept = [i for i, variable in enumerate(system.unknowns) if variable.order == 0]
    rates = -np.linalg.solve(by_unknowns, by_data(system, z, data, measured))[kept]
    sizes = np.array([abs(data[variable]) for variable in measured])
    return Sensitivity(
        time,
        tuple(str(system.unknowns[i]) for i in kept),
        tuple(map(str, measured)),
        np.real(rates) * sizes / np.abs(z[kept])[:, None],
        np.linalg.svd(by_unknowns, compute_uv=False),
    )


def jacobian(system: Numeric, z: np.ndarray) -> np.ndarray:
    """dF/dz."""
    return np.array([gradient(equation, z) for equation in system.equations])


def gradient(terms: Terms, z: np.ndarray) -> np.ndarray:
    """Of a polynomial: every term's exponent times the term with that exponent lowered by one."""
    result = np.zeros(len(z), dtype=complex)
    for place in np.flatnonzero(terms.exponents.any(axis=0)):
        lowered = terms.exponents.copy()
        lowered[:, place] = np.maximum(lowered[:, place] - 1, 0)
        result[place] = (terms.exponents[:, place] * np.prod(z**lowered, axis=1)) @ terms.coefficients
    return result


def by_data(system: Explicit, z: np.ndarray, data: dict[Variable, complex], variables: list[Variable]) -> np.ndarray:
    """dF/dd: the derivatives of the output enter linearly, so a difference of any size is exact."""
    here, columns = system.at(data).values(z), []
    for variable in variables:
        step = max(abs(data[variable]), 1.0)
        columns.append((system.at({**data, variable: data[variable] + step}).values(z) - here) / step)
    return np.stack(columns, axis=1)


# --- the report ---


def table(truth: Draw, rows: list[Row]) -> str:
    """Estimates beside the truth and beside the paper's trial, whose other values are not published."""
    head = "noise | H | C0 | r0 | H C0 r0 | rmse | sd of H, predicted | of H C0 r0 | paper: H C0 r0 | paper: rmse"
    lines = [f"| {head} |", "|---" * 10 + "|"]
    true = {short: truth.values[name] for name, short in LATENT.items()}
    published = paper.tables()["cstr_trial"]
    product = f"{published['truth']['HCr']:g}"
    lines.append(f"| truth | {_numbers([*true.values(), math.prod(true.values())])} | | | | {product} | |")
    for row in rows:
        theirs = published.get(paper.level(row.noise), {})
        numbers = _numbers([*row.factors.values(), row.product])
        columns = [f"{theirs[key]:g}" if key in theirs else "" for key in ("HCr", "rmse")]
        expected = f"{short(100 * row.factor_error, 2)} % | {short(100 * row.product_error, 2)} %"
        lines.append(f"| {row.noise:g} | {numbers} | {row.rmse:.2g} | {expected} | {' | '.join(columns)} |")
    return "\n".join(lines)


def _numbers(values: list[float]) -> str:
    return " | ".join(f"{value:.3g}" for value in values)


def matrix_table(found: Sensitivity) -> str:
    lines = [f"| | {' | '.join(found.data)} |", "|---" * (1 + len(found.data)) + "|"]
    lines += [f"| {name} | {_numbers(row.tolist())} |" for name, row in zip(found.unknowns, found.matrix, strict=True)]
    return "\n".join(lines)


def report(trial: int, protocol: Protocol) -> str:
    truth = cells.draw(SYSTEM, trial, protocol)
    rows = [estimates(truth, noise, trial, protocol) for noise in systems.protocol().noise]
    found = [sensitivity(truth, place) for place in PLACES]
    sizes = explicit.square(SYSTEM).sizes
    ratios = ", ".join(f"{one.ratio:.1e} at t = {one.time:g}" for one in found)
    published = paper.tables()["cstr_template"]
    middle = found[len(found) // 2]
    return f"""\
{table(truth, rows)}

The square system has {sizes.equations} equations in {sizes.unknowns} unknowns, {sizes.terms} terms, {sizes.monomials}
different monomials and degree {sizes.degree}
(paper: {published["equations"]}, {published["unknowns"]}, {published["terms"]}, {published["unique_terms"]},
{published["max_degree"]}). The ratio of the largest to the smallest singular value of dF/dz on this trajectory:
{ratios} (paper: about {published["singular_value_ratio"]:.0e}).

Relative sensitivity of parameters and states to the derivatives of y1 at t = {middle.time:g}: an entry is the
percentage by which one percent of a derivative changes an unknown.

{matrix_table(middle)}

At worst, relative errors of the derivatives are magnified {min(one.amplification for one in found):.0e} to
{max(one.amplification for one in found):.0e} times.
"""


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks cstr", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--trial", type=int, default=0)
    options.add_argument("--seed", type=int, default=Protocol().seed)
    given = options.parse_args(argv)
    print(report(given.trial, Protocol(given.seed)))
    return 0
