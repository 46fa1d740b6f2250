"""Population study: populations made by formulas that odejet has no part in, for coverage, bias and growth.

oral   one compartment with absorption: ka, V and Cl differ
emax   an effect that saturates, at a concentration that falls: E0, Emax and EC50 differ
two    two compartments after a bolus: V and Cl differ and are correlated, Cl grows with weight
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import odejet as oj

Array = np.ndarray
DOSE = 320.0


@dataclass(frozen=True)
class Made:
    """A kind of population: what is true, and how one is made with so many subjects."""

    truth: Mapping[str, float]
    make: Callable[[int, np.random.Generator], oj.Population]


ORAL = {"ka": 1.0, "V": 30.0, "Cl": 3.0, "omega_ka": 0.4, "omega_V": 0.2, "omega_Cl": 0.3, "b": 0.1}
EMAX = {"E0": 5.0, "Emax": 30.0, "EC50": 3.0, "omega_E0": 0.3, "omega_Emax": 0.25, "omega_EC50": 0.4, "a": 1.0}
TWO = {
    "V": 15.0,
    "Cl": 3.0,
    "Q": 4.0,
    "V2": 25.0,
    "beta": 0.75,
    "omega_V": 0.25,
    "corr_V_Cl": 0.5,
    "omega_Cl": 0.3,
    "b": 0.1,
}


def oral(subjects: int, rng: np.random.Generator) -> oj.Population:
    times, parts = np.array([0.5, 1, 2, 4, 7, 12, 18, 24.0]), []
    for i in range(subjects):
        ka, v, cl = (ORAL[name] * np.exp(ORAL[f"omega_{name}"] * rng.standard_normal()) for name in ("ka", "V", "Cl"))
        k = cl / v
        mean = DOSE * ka / (v * (ka - k)) * (np.exp(-k * times) - np.exp(-ka * times))
        doses = {"time": [0.0], "state": ["gut"], "amount": [DOSE]}
        seen = mean * (1 + ORAL["b"] * rng.standard_normal(len(times)))
        parts.append(oj.Data(times, {"cp": seen}, name=str(i + 1), start=0.0, doses=doses))
    model = oj.Model(
        {"gut": "-ka*gut", "central": "ka*gut - Cl/V*central"},
        {"cp": "central/V"},
        initial={"gut": 0, "central": 0},
        parameters=["ka", "V", "Cl"],
        bounds={"ka": (0.3, 20)},  # absorption is known to be the fast step
    )
    random = dict.fromkeys(["ka", "V", "Cl"], "lognormal")
    return oj.Population(model, oj.Data.join(parts), random, noise={"cp": "normal(b*cp)"})


def emax(subjects: int, rng: np.random.Generator) -> oj.Population:
    times, parts = np.array([0.5, 2, 4, 8, 12, 18, 24.0]), []
    for i in range(subjects):
        base, most, half = (
            EMAX[name] * np.exp(EMAX[f"omega_{name}"] * rng.standard_normal()) for name in ("E0", "Emax", "EC50")
        )
        dose = (2.0, 8.0, 32.0)[i % 3]
        c = dose * np.exp(-0.15 * times)
        seen = base + most * c / (half + c) + EMAX["a"] * rng.standard_normal(len(times))
        parts.append(oj.Data(times, {"E": seen}, name=str(i + 1), start=0.0, values={"dose": dose}))
    model = oj.Model(
        {"c": "-0.15*c"},
        {"E": "E0 + Emax*c/(EC50 + c)"},
        initial={"c": "dose"},
        parameters=["E0", "Emax", "EC50", "dose"],
    )
    random = dict.fromkeys(["E0", "Emax", "EC50"], "lognormal")
    return oj.Population(model, oj.Data.join(parts), random, noise={"E": "normal(a)"})


def two(subjects: int, rng: np.random.Generator) -> oj.Population:
    times, parts = np.array([0.25, 0.5, 1, 2, 4, 8, 12, 24.0]), []
    for i in range(subjects):
        weight = float(np.clip(70 + 14 * rng.standard_normal(), 40, 120))
        z = rng.standard_normal(2)
        second = TWO["corr_V_Cl"] * z[0] + np.sqrt(1 - TWO["corr_V_Cl"] ** 2) * z[1]
        v = TWO["V"] * np.exp(TWO["omega_V"] * z[0])
        cl = TWO["Cl"] * (weight / 70) ** TWO["beta"] * np.exp(TWO["omega_Cl"] * second)
        mean = _two_exponentials(times, v, cl, TWO["Q"], TWO["V2"])
        seen = mean * (1 + TWO["b"] * rng.standard_normal(len(times)))
        doses = {"time": [0.0], "state": ["central"], "amount": [DOSE]}
        parts.append(oj.Data(times, {"cp": seen}, name=str(i + 1), start=0.0, doses=doses, values={"wt": weight}))
    model = oj.Model(
        {"central": "-(Cl + Q)/V*central + Q/V2*other", "other": "Q/V*central - Q/V2*other"},
        {"cp": "central/V"},
        initial={"central": 0, "other": 0},
        parameters=["V", "Cl", "Q", "V2"],
        bounds={"Q": (0, np.inf), "V2": (0, np.inf)},
    )
    return oj.Population(
        model,
        oj.Data.join(parts),
        {"V": "lognormal", "Cl": "lognormal"},
        correlated=True,
        covariates={"Cl": "Cl*(wt/70)**beta"},
        noise={"cp": "normal(b*cp)"},
    )


def _two_exponentials(times: Array, v: float, cl: float, q: float, v2: float) -> Array:
    """Return the concentration after a bolus, in closed form."""
    out, forth, back = cl / v, q / v, q / v2
    total = out + forth + back
    root = np.sqrt(total**2 - 4 * out * back)
    fast, slow = (total + root) / 2, (total - root) / 2
    first = (fast - back) / (fast - slow) * np.exp(-fast * times)
    return np.asarray(DOSE / v * (first + (back - slow) / (fast - slow) * np.exp(-slow * times)))


KINDS = {"oral": Made(ORAL, oral), "emax": Made(EMAX, emax), "two": Made(TWO, two)}
