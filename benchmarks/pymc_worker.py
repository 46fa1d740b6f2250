"""One posterior by PyMC, in an environment of its own: `python pymc_worker.py DATA.json RESULT.json`.

As PyMC's notebook on ODEs recommends: the solution by SciPy's odeint as an operation without gradient, and the sampler
DEMetropolisZ, here with four chains.  Draws and processor seconds are written as JSON.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.ops import as_op
from scipy.integrate import odeint, solve_ivp

DRAWS, TUNE, CHAINS = 8000, 4000, 4


def lotka(data, start):
    times = np.array([0, *data["times"]])
    values = np.vstack([data["y_first"], data["y"]])

    @as_op(itypes=[pt.dvector], otypes=[pt.dmatrix])
    def solution(p):
        return odeint(
            lambda x, t: [p[0] * x[0] - p[1] * x[0] * x[1], -p[2] * x[1] + p[3] * x[0] * x[1]], p[4:6], times
        ).clip(1e-9)

    names = ("alpha", "beta", "gamma", "delta")
    with pm.Model() as model:
        rates = [
            pm.TruncatedNormal(name, centre, sd, lower=0)
            for name, centre, sd in zip(names, (1, 0.05, 1, 0.05), (0.5, 0.05, 0.5, 0.05), strict=True)
        ]
        first = [pm.LogNormal(f"first[{i}]", np.log(10), 1) for i in (1, 2)]
        s = [pm.LogNormal(f"s[{i}]", -1, 1) for i in (1, 2)]
        x = solution(pt.stack([*rates, *first]))
        pm.LogNormal("y", pt.log(x), pt.stack(s), observed=values)
    return model


def compartments(data, start, names, field, output, first, priors):
    times = np.array([0, *data["times"]])

    @as_op(itypes=[pt.dvector], otypes=[pt.dvector])
    def solution(p):
        return output(odeint(field, first, times, args=(p,))[1:], p).clip(1e-12)

    with pm.Model() as model:
        rates = [pm.LogNormal(name, *priors[name]) for name in names]
        s = pm.LogNormal("s", -2, 1)
        pm.LogNormal("y", pt.log(solution(pt.stack(rates))), s, observed=np.array(data["y"]))
    return model


def one_compartment(data, start):
    return compartments(
        data,
        start,
        ("ka", "ke", "V"),
        lambda x, t, p: [-p[0] * x[0], p[0] * x[0] / p[2] - p[1] * x[1]],
        lambda x, p: x[:, 1],
        [100.0, 0.0],
        {"ka": (0, 1), "ke": (-2, 1), "V": (3, 1)},
    )


def two_compartments(data, start):
    return compartments(
        data,
        start,
        ("k10", "k12", "k21", "V"),
        lambda x, t, p: [-(p[0] + p[1]) * x[0] + p[2] * x[1], p[1] * x[0] - p[2] * x[1]],
        lambda x, p: x[:, 0] / p[3],
        [100.0, 0.0],
        {"k10": (-1, 1), "k12": (-1, 1), "k21": (-1, 1), "V": (2, 1)},
    )


def seir(data, start):
    times = np.array([0, *data["times"]])

    def field(x, t, p):
        infections = p[0] * x[0] * x[2] / 1000
        return [-infections, infections - p[1] * x[1], p[1] * x[1] - p[2] * x[2]]

    @as_op(itypes=[pt.dvector], otypes=[pt.dvector])
    def solution(p):
        return odeint(field, [1000 - p[3], 0, p[3]], times, args=(p,))[1:, 2].clip(1e-8)

    with pm.Model() as model:
        beta, sigma, gamma = pm.LogNormal("beta", 0, 1), pm.LogNormal("sigma", -1, 0.5), pm.LogNormal("gamma", -1, 0.5)
        i0, a = pm.LogNormal("i0", 1, 1), pm.Exponential("a", 5)
        mu = solution(pt.stack([beta, sigma, gamma, i0]))
        pm.NegativeBinomial("y", mu=mu, alpha=1 / a, observed=np.array(data["y"]))
    return model


def robertson(data, start):
    times = np.array(data["times"])

    @as_op(itypes=[pt.dvector], otypes=[pt.dmatrix])
    def solution(p):
        def field(t, x):
            first, second, third = p[0] * x[0], p[1] * x[1] ** 2, p[2] * x[1] * x[2]
            return [-first + third, first - third - second, second]

        run = solve_ivp(field, (0, times[-1]), [1, 0, 0], "LSODA", times, rtol=1e-6, atol=1e-10)
        return run.y.T if run.y.shape[1] == len(times) else np.full((len(times), 3), 1e3)

    with pm.Model() as model:
        logs = [("k1", 0.05), ("k2", 2e7), ("k3", 2e4)]
        rates = [pm.LogNormal(name, np.log(centre), 1) for name, centre in logs]
        x = solution(pt.stack(rates)) * np.array([1, 1e4, 1])
        pm.Normal("y", x, 0.02, observed=np.array(data["y"]))
    return model


MODELS = {
    "lotka_volterra": lotka,
    "seir": seir,
    "one_compartment": one_compartment,
    "two_compartments": two_compartments,
    "robertson": robertson,
}


def main(told, result):
    asked = json.loads(Path(told).read_text())
    model = MODELS[asked["subject"]](asked["data"], asked["start"])
    initial = asked["inits"][0]
    flat = {}
    for name, value in initial.items():
        flat |= {f"{name}[{i + 1}]": v for i, v in enumerate(value)} if isinstance(value, list) else {name: value}
    with model:
        step = pm.DEMetropolisZ()
        begun = time.process_time()
        trace = pm.sample(
            DRAWS, tune=TUNE, chains=CHAINS, cores=1, step=step, random_seed=1, progressbar=False, initvals=flat
        )
        seconds = time.process_time() - begun
    draws = {name: trace.posterior[name].values.tolist() for name in flat}
    Path(result).write_text(json.dumps({"seconds": seconds, "draws": draws}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
