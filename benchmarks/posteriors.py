"""Posteriors that other programs are asked for too: each as a problem of odejet, and as data of a program of Stan."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj
from benchmarks import collection

SHARED = Path(__file__).parents[2] / "shared"
PROGRAMS = Path(__file__).parent / "stan"


@dataclass(frozen=True)
class Subject:
    """One posterior: the problem, the data of Stan's program, and what its unknowns are called there."""

    problem: oj.Problem
    data: Mapping[str, Any]
    names: Mapping[str, str]  # label -> name in Stan's program
    initial: Callable[[Mapping[str, float]], dict[str, Any]] = field(default=dict)  # a start for Stan of unknowns


def _simulated(model: oj.Model, values: Mapping[str, float], times: np.ndarray) -> Mapping[str, np.ndarray]:
    return oj.simulate(model, values, times=times, start=0.0)


def lotka_volterra() -> Subject:
    """Hares and lynxes 1900 to 1920, with the priors of posteriordb."""
    told = json.loads((SHARED / "posteriordb" / "hudson_lynx_hare.json").read_text())
    values = np.vstack([told["y_init"], told["y"]])
    model = oj.Model({"u": "alpha*u - beta*u*v", "v": "-gamma*v + delta*u*v"}, {"y1": "u", "y2": "v"})
    priors = dict.fromkeys(("alpha", "gamma"), "normal(1, 0.5)") | dict.fromkeys(
        ("beta", "delta"), "normal(0.05, 0.05)"
    )
    priors |= dict.fromkeys(("s1", "s2"), "lognormal(-1, 1)") | dict.fromkeys(("u", "v"), "lognormal(log(10), 1)")
    problem = oj.Problem(
        model,
        oj.Data([0, *told["ts"]], {"y1": values[:, 0], "y2": values[:, 1]}),
        noise={"y1": "lognormal(s1)", "y2": "lognormal(s2)"},
        positive=True,
        priors=priors,
    )
    data = {"n": len(told["ts"]), "times": told["ts"], "y": told["y"], "y_first": told["y_init"]}
    names = {"u(0)": "first[1]", "v(0)": "first[2]", "s1": "s[1]", "s2": "s[2]"}
    names |= {name: name for name in ("alpha", "beta", "gamma", "delta")}
    return Subject(
        problem,
        data,
        names,
        lambda z: {
            **{name: z[name] for name in ("alpha", "beta", "gamma", "delta")},
            "first": [z["u(0)"], z["v(0)"]],
            "s": [z["s1"], z["s2"]],
        },
    )


def seir() -> Subject:
    """An outbreak among a thousand: people who are infectious on each of 30 days, overdispersed."""
    model = oj.Model(
        {"S": "-beta*S*I/1000", "E": "beta*S*I/1000 - sigma*E", "I": "sigma*E - gamma*I"},
        {"y": "I"},
        initial={"S": "1000 - i0", "E": "0", "I": "i0"},
        start=0,
    )
    times = np.arange(1.0, 31.0)
    truth = {"beta": 1.2, "sigma": 0.5, "gamma": 0.3, "i0": 3.0}
    mu, a = np.asarray(_simulated(model, truth, times)["y"]), 0.05
    rng = np.random.default_rng(11)
    counts = rng.poisson(mu * rng.gamma(1 / a, a, size=len(mu)))
    priors = {"beta": "lognormal(0, 1)", "sigma": "lognormal(-1, 0.5)", "gamma": "lognormal(-1, 0.5)"}
    problem = oj.Problem(
        model,
        oj.Data(times, {"y": counts.astype(float)}),
        noise="negbinomial(a)",
        positive=True,
        bounds={"i0": (0, 1000)},
        priors=priors | {"i0": "lognormal(1, 1)", "a": "exponential(0.2)"},
    )
    names = {name: name for name in ("beta", "sigma", "gamma", "i0", "a")}
    return Subject(problem, {"n": len(times), "times": times.tolist(), "y": counts.tolist()}, names, dict)


def _dosed(model: oj.Model, truth: Mapping[str, float], times: np.ndarray, priors: Mapping[str, str]) -> Subject:
    """Concentrations with log-normal error."""
    mu = np.asarray(_simulated(model, truth, times)["y"])
    values = mu * np.exp(0.1 * np.random.default_rng(12).normal(size=len(mu)))
    problem = oj.Problem(
        model,
        oj.Data(times, {"y": values}),
        noise="lognormal(s)",
        positive=True,
        priors={**priors, "s": "lognormal(-2, 1)"},
    )
    names = {name: name for name in (*priors, "s")}
    return Subject(problem, {"n": len(times), "times": times.tolist(), "y": values.tolist()}, names, dict)


def one_compartment() -> Subject:
    """A dose by mouth, absorbed and eliminated."""
    model = oj.Model({"d": "-ka*d", "c": "ka*d/V - ke*c"}, {"y": "c"}, initial={"d": "100", "c": "0"}, start=0)
    times = np.array([0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 18, 24])
    priors = {"ka": "lognormal(0, 1)", "ke": "lognormal(-2, 1)", "V": "lognormal(3, 1)"}
    return _dosed(model, {"ka": 1.2, "ke": 0.15, "V": 25.0}, times, priors)


def two_compartments() -> Subject:
    """A dose into the blood that spreads to the tissue."""
    model = oj.Model(
        {"a": "-(k10 + k12)*a + k21*b", "b": "k12*a - k21*b"},
        {"y": "a/V"},
        initial={"a": "100", "b": "0"},
        start=0,
    )
    times = np.array([0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 18, 24])
    priors = dict.fromkeys(("k10", "k12", "k21"), "lognormal(-1, 1)") | {"V": "lognormal(2, 1)"}
    return _dosed(model, {"k10": 0.4, "k12": 0.6, "k21": 0.3, "V": 8.0}, times, priors)


def robertson() -> Subject:
    """Robertson's kinetics, stiff by nine orders of magnitude."""
    model = oj.Model(
        {"a": "-k1*a + k3*b*c", "b": "k1*a - k3*b*c - k2*b**2", "c": "k2*b**2"},
        {"ya": "a", "yb": "10000*b", "yc": "c"},
        initial={"a": "1", "b": "0", "c": "0"},
        start=0,
    )
    times = np.geomspace(0.01, 1e4, 25)
    run = _simulated(model, {"k1": 0.04, "k2": 3e7, "k3": 1e4}, times)
    rng = np.random.default_rng(13)
    values = {name: np.asarray(run[name]) + 0.02 * rng.normal(size=len(times)) for name in ("ya", "yb", "yc")}
    priors = {"k1": "lognormal(log(0.05), 1)", "k2": "lognormal(log(2e7), 1)", "k3": "lognormal(log(2e4), 1)"}
    problem = oj.Problem(model, oj.Data(times, values), noise=0.02, positive=True, priors=priors)
    rows = np.column_stack(list(values.values()))
    names = {name: name for name in priors}
    return Subject(problem, {"n": len(times), "times": times.tolist(), "y": rows.tolist()}, names, dict)


def boehm() -> Subject:
    """Boehm et al. 2014 from the PEtab collection; its unknowns are uniform on the scale of logarithms."""
    problem = collection.read(collection.FOLDER / "Boehm_JProteomeRes2014").problem
    outputs = problem.experiments[0].outputs
    times = next(iter(outputs.values())).times
    rows = np.column_stack([series.values for series in outputs.values()])
    data = {"n": len(times) - 1, "times": times[1:].tolist(), "y": rows[1:].tolist(), "y_first": rows[0].tolist()}
    labels = problem.unknowns
    return Subject(
        problem,
        data,
        {label: f"k[{i + 1}]" for i, label in enumerate(labels)},
        lambda z: {"u": [math.log(z[label]) for label in labels]},
    )


SUBJECTS: Mapping[str, Callable[[], Subject]] = {
    made.__name__: made for made in (lotka_volterra, seir, one_compartment, two_compartments, robertson, boehm)
}
