"""Population sets: data with several subjects as populations, and what other programs found on them.

The folder is that of the data, which are not part of the project: theophylline, warfarin, phenobarbital and simulated
sets, with the results of nlmixr2, Monolix and NONMEM as these programs write them.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import odejet as oj

Row = dict[str, str]
ORAL = {"gut": "-ka*gut", "central": "ka*gut - Cl/V*central"}


@dataclass(frozen=True)
class Published:
    """Another program's answer: estimates by our names, standard errors, -2 log L as it reports it."""

    program: str
    values: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)
    minus_two_log_likelihood: float = math.nan
    standard_error: float = math.nan  # of the latter


@dataclass(frozen=True)
class Case:
    """A population and what others say of it."""

    population: oj.Population
    published: Published


def rows_by_subject(path: Path, separator: str = ",") -> dict[str, list[Row]]:
    """Return the rows of a table by subject, with column names in capitals."""
    found: dict[str, list[Row]] = {}
    with path.open(encoding="utf-8-sig") as file:
        for row in csv.DictReader(file, delimiter=separator):
            known = {str(key).upper(): value for key, value in row.items()}
            found.setdefault(known["ID"], []).append(known)
    return found


def number(text: str) -> float:
    return 0.0 if text in (".", "") else float(text)


def subject(name: str, rows: list[Row], state: str, dose: str = "AMT", value: str = "DV", **known: float) -> oj.Data:
    """Return one subject: rows with an amount are doses, which may be infusions, all others measurements."""
    given = [row for row in rows if number(row[dose]) > 0]
    seen = [row for row in rows if number(row[dose]) == 0 and row[value] not in (".", "")]
    doses = []
    for row in given:
        one: dict[str, Any] = {"time": number(row["TIME"]), "state": state, "amount": number(row[dose])}
        if number(row.get("RATE", "0")) > 0:
            one["duration"] = one["amount"] / number(row["RATE"])
        doses.append(one)
    series = [number(row["TIME"]) for row in seen], {"cp": [number(row[value]) for row in seen]}
    return oj.Data(*series, name=name, start=0.0, doses=doses, values=known)


def monolix(folder: Path, names: Mapping[str, str]) -> Published:
    """Return the estimates of a project of Monolix; `names` are ours for its own where they differ."""
    values, errors = {}, {}
    with (folder / "populationParameters.txt").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = names.get(row["parameter"], row["parameter"].removesuffix("_pop"))
            values[name] = float(row["value"])
            errors[name] = float(row.get("se_sa") or row.get("se_lin") or "nan")
    lines = (folder / "LogLikelihood" / "logLikelihood.txt").read_text(encoding="utf-8").splitlines()
    told = dict(line.split(",") for line in lines)
    sampled = "importanceSampling" in told.get("criteria", "")
    error = float(told["standardError"]) if sampled and told.get("standardError") else math.nan
    program = "Monolix" if sampled else "Monolix, linearised"
    return Published(program, values, errors, float(told["OFV"]), error)


def theophylline(folder: Path, **bounds: tuple[float, float]) -> Case:
    """Twelve subjects with one oral dose; ka, V and Cl differ, the noise is additive."""
    parts = [
        subject(name, rows, "gut") for name, rows in rows_by_subject(folder / "theophylline" / "theo_sd.csv").items()
    ]
    model = oj.Model(
        ORAL, {"cp": "central/V"}, initial={"gut": 0, "central": 0}, parameters=["ka", "V", "Cl"], bounds=bounds
    )
    population = oj.Population(model, oj.Data.join(parts), dict.fromkeys(["ka", "V", "Cl"], "lognormal"))
    told = json.loads((folder / "theophylline" / "agq.json").read_text(encoding="utf-8"))["reference"]
    table = told["params"]
    found = dict(zip(table["name"], zip(table["estimate"], table["se"], strict=True), strict=True))
    values, errors = {}, {}
    for name, key in (("ka", "tka"), ("Cl", "tcl"), ("V", "tv")):
        values[name] = math.exp(found[key][0])
        errors[name] = values[name] * found[key][1]
        values[f"omega_{name}"] = math.sqrt(found[f"eta.{name.lower()}"][0])
    values["sigma_cp"], errors["sigma_cp"] = found["add.sd"]
    constant = population.points * math.log(2 * math.pi)
    return Case(population, Published("nlmixr2, quadrature", values, errors, told["ofv"] + constant))


def theophylline_fast(folder: Path) -> Case:
    """The same where absorption is known to be the fast step."""
    return theophylline(folder, ka=(0.5, 20.0))


def warfarin(folder: Path, which: str) -> Case:
    """Concentrations of 32 subjects: lag, absorption, one compartment; covariates on V and Cl."""
    parts = []
    for name, rows in rows_by_subject(folder / "warfarin" / "warfarin_data.csv").items():
        own = [row for row in rows if row["DVID"] == "1" or number(row["AMT"]) > 0]
        parts.append(subject(name, own, "gut", wt=number(rows[0]["WT"]), female=1 - number(rows[0]["SEX"])))
    model = oj.Model(ORAL, {"cp": "central/V"}, initial={"gut": 0, "central": 0}, parameters=["ka", "V", "Cl"])
    covariates = {
        "w1": None,
        "w2": {"V": "V*(wt/70)**beta_V", "Cl": "Cl*(wt/70)**beta_Cl"},
        "w3": {"V": "V*exp(beta_V*female)", "Cl": "Cl*exp(beta_Cl*female)"},
    }[which]
    population = oj.Population(
        model,
        oj.Data.join(parts),
        dict.fromkeys(["Tlag", "ka", "V", "Cl"], "lognormal"),
        covariates=covariates,
        noise={"cp": "normal(a + b*cp)"},
        lag={"gut": "Tlag"},
    )
    names = {f"beta_{p}_{suffix}": f"beta_{p}" for p in ("V", "Cl") for suffix in ("lw70", "tSex_F")}
    return Case(population, monolix(folder / "warfarin" / f"monolix_{which}", names))


def phenobarbital(folder: Path) -> Case:
    """59 neonates with many doses: APGAR in three groups on V, as Monolix has it."""
    path = folder / "phenobarbital" / "monolix" / "phenobarbital_data.csv"
    parts = []
    for name, rows in rows_by_subject(path, ";").items():
        apgar = number(rows[0]["APGAR"])
        groups = {"low": float(apgar <= 3), "high": float(apgar >= 8)}
        parts.append(subject(name, rows, "A", "DOSE", "CONC", **groups))
    model = oj.Model({"A": "-k*A"}, {"cp": "A/V"}, initial={"A": 0}, parameters=["V", "k"])
    population = oj.Population(
        model,
        oj.Data.join(parts),
        {"V": "lognormal", "k": "lognormal"},
        covariates={"V": "V*exp(beta_high*high + beta_low*low)"},
        noise={"cp": "normal(b*cp)"},
    )
    names = {"beta_V_tAPGAR_High": "beta_high", "beta_V_tAPGAR_Low": "beta_low"}
    return Case(population, monolix(path.parent, names))


def phenobarbital_nonmem(folder: Path) -> Case:
    """The same neonates as NONMEM's example has them: clearance and volume by weight."""
    parts = []
    for name, rows in rows_by_subject(folder / "phenobarbital" / "pheno_sd.csv").items():
        parts.append(subject(name, rows, "A", wt=number(rows[0]["WT"]), apgr=number(rows[0]["APGR"])))
    model = oj.Model({"A": "-Cl/V*A"}, {"cp": "A/V"}, initial={"A": 0}, parameters=["Cl", "V"])
    population = oj.Population(
        model,
        oj.Data.join(parts),
        {"Cl": "lognormal", "V": "lognormal"},
        covariates={"Cl": "Cl*wt", "V": "V*wt*piecewise(1 + theta, apgr < 5, 1)"},
        noise={"cp": "normal(b*cp)"},
    )
    lines = (folder / "phenobarbital" / "nonmem" / "pheno.ext").read_text(encoding="utf-8").splitlines()
    rows = {line.split()[0]: [float(cell) for cell in line.split()[1:]] for line in lines[2:]}
    estimates, errors = rows["-1000000000"], rows["-1000000001"]
    values, stderr = {}, {}
    for name, place in (("Cl", 0), ("V", 1), ("theta", 2)):
        values[name], stderr[name] = estimates[place], errors[place]
    for name, place in (("b", 3), ("omega_Cl", 4), ("omega_V", 6)):  # variances, whose roots are ours
        values[name] = math.sqrt(estimates[place])
        stderr[name] = errors[place] / (2 * values[name])
    constant = population.points * math.log(2 * math.pi)
    return Case(population, Published("NONMEM, FOCEI", values, stderr, estimates[7] + constant))


def simulated(folder: Path, which: str) -> Case:
    """120 subjects whose true parameters stand in the data: the rows after the single dose."""
    own, compartments = MADE[which]
    parts, truths = [], []
    for name, rows in rows_by_subject(folder / "simulated" / f"{which}.csv").items():
        single = [row for row in rows if row["SD"] == "1"]
        parts.append(subject(name, single, "gut" if "gut" in compartments else "central"))
        truths.append([number(rows[0][column]) for column in own.values()])
    initial = dict.fromkeys(compartments, 0)
    volume = "V1" if "V1" in own else "V"
    bounds = {"ka": (0.2, 20.0)} if "ka" in own else None
    model = oj.Model(compartments, {"cp": f"central/{volume}"}, initial=initial, parameters=list(own), bounds=bounds)
    population = oj.Population(
        model, oj.Data.join(parts), dict.fromkeys(own, "lognormal"), noise={"cp": "normal(b*cp)"}
    )
    logs = np.log(np.array(truths))
    values = dict(zip(own, np.exp(logs.mean(axis=0)).tolist(), strict=True))
    values |= {f"omega_{name}": sd for name, sd in zip(own, logs.std(axis=0).tolist(), strict=True)}
    return Case(population, Published("the truth", values))


MADE: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "Bolus_1CPT": ({"V": "V", "Cl": "CL"}, {"central": "-Cl/V*central"}),
    "Oral_1CPT": ({"ka": "KA", "V": "V", "Cl": "CL"}, ORAL),
    "Infusion_1CPTMM": ({"V": "V", "Vm": "VM", "Km": "KM"}, {"central": "-Vm*central/(Km*V + central)"}),
    "Bolus_2CPT": (
        {"V1": "V1", "Cl": "CL", "Q": "Q", "V2": "V2"},
        {"central": "-(Cl + Q)/V1*central + Q/V2*other", "other": "Q/V1*central - Q/V2*other"},
    ),
}
"""Parameters with their columns, and equations."""

SETS: dict[str, Callable[[Path], Case]] = {
    "theophylline": theophylline,
    "theophylline, ka above 0.5": theophylline_fast,
    **{f"warfarin {which}": lambda folder, which=which: warfarin(folder, which) for which in ("w1", "w2", "w3")},
    "phenobarbital": phenobarbital,
    "phenobarbital of NONMEM": phenobarbital_nonmem,
    **{name: lambda folder, name=name: simulated(folder, name) for name in MADE},
}
