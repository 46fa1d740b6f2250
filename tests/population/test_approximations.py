"""The objective functions of other programs at their own values."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import odejet as oj
from odejet.population import exact, objective

SHARED = Path("/work/shared/population")
needs_data = pytest.mark.skipif(not SHARED.exists(), reason="the data sets of /work/shared/population are not here")


def rows_of(path: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of a table by subject."""
    found: dict[str, list[dict[str, str]]] = {}
    with open(path, encoding="utf-8-sig") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["ID"], []).append(row)
    return found


def wang(noise: str) -> oj.Population:
    parts = [
        oj.Data([float(r["Time"]) for r in rows], {"y": [float(r["Y"]) for r in rows]}, name=name)
        for name, rows in rows_of(SHARED / "wang2007" / "Wang2007.csv").items()
    ]
    model = oj.Model({"x": "-ke*x"}, {"y": "x"}, initial={"x": 10}, parameters=["ke"], name="wang")
    return oj.Population(model, oj.Data.join(parts), {"ke": "lognormal"}, noise={"y": noise})


@needs_data
@pytest.mark.parametrize(
    ("noise", "method", "published"),
    [
        ("normal(b*y)", "fo", 39.213),
        ("normal(b*y)", "foce", 39.207),
        ("normal(b*y)", "focei", 39.458),
        ("normal(b)", "fo", 0.026),
        ("normal(b)", "focei", -2.059),
        ("lognormal(b)", "fo", 40.055),
        ("lognormal(b)", "focei", 40.039),
    ],
)
def test_wang(noise, method, published) -> None:
    values = {"ke": 0.5, "omega_ke": 0.2, "b": math.sqrt(0.1)}
    found = objective(wang(noise), values, method) - 20 * math.log(2 * math.pi)
    assert found == pytest.approx(published, abs=1e-3)


@needs_data
def test_the_exact_likelihood_of_wang() -> None:
    population = wang("normal(b*y)")
    value, error = exact(population, {"ke": 0.5, "omega_ke": 0.2, "b": math.sqrt(0.1)}, error=0.001)
    assert value - 20 * math.log(2 * math.pi) == pytest.approx(39.3548, abs=1e-3)
    assert error < 1e-3


def phenobarbital() -> oj.Population:
    parts = []
    for name, rows in rows_of(SHARED / "phenobarbital" / "pheno_sd.csv").items():
        given, seen = ([r for r in rows if (r["EVID"] == "1") == dose] for dose in (True, False))
        doses = [{"time": float(r["TIME"]), "state": "A", "amount": float(r["AMT"])} for r in given]
        values = {"wt": float(rows[0]["WT"]), "apgr": float(rows[0]["APGR"])}
        series = [float(r["TIME"]) for r in seen], {"cp": [float(r["DV"]) for r in seen]}
        parts.append(oj.Data(*series, name=name, start=0.0, doses=doses, values=values))
    model = oj.Model({"A": "-Cl/V*A"}, {"cp": "A/V"}, initial={"A": 0}, parameters=["Cl", "V"], name="pheno")
    covariates = {"Cl": "Cl*wt", "V": "V*wt*piecewise(1 + theta, apgr < 5, 1)"}
    effects = {"Cl": "lognormal", "V": "lognormal"}
    return oj.Population(model, oj.Data.join(parts), effects, covariates=covariates, noise={"cp": "normal(b*cp)"})


@needs_data
def test_phenobarbital_of_nonmem() -> None:
    population = phenobarbital()
    values = {
        "Cl": 4.69555e-3,
        "V": 0.984258,
        "theta": 0.158920,
        "omega_Cl": math.sqrt(0.0293508),
        "omega_V": math.sqrt(0.0279060),
        "b": math.sqrt(0.0132410),
    }
    found = objective(population, values) - population.points * math.log(2 * math.pi)
    assert found == pytest.approx(586.276, abs=0.002)


@needs_data
def test_laplace_is_near_the_exact_likelihood() -> None:
    values = {"ke": 0.5, "omega_ke": 0.2, "b": 0.1}
    population = wang("normal(b*y)")
    assert objective(population, values, "laplace") == pytest.approx(objective(population, values, "focei"), abs=0.5)


def test_what_is_missing_is_named() -> None:
    times = np.array([1.0, 2.0])
    data = oj.Data.join([oj.Data(times, {"y": times}, name=name) for name in "ab"])
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 1}, parameters=["k"])
    population = oj.Population(model, data, {"k": "lognormal"}, noise={"y": "normal(s)"})
    with pytest.raises(oj.ModelError, match="no value is given for omega_k"):
        objective(population, {"k": 1, "s": 1})
    with pytest.raises(oj.ModelError, match="fo, foce, focei, laplace, exact"):
        objective(population, {"k": 1, "s": 1, "omega_k": 1}, "saem")
