"""PEtab's own test suites: likelihoods, simulations and formulas that others have computed."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from odejet.io.petab.formulas import parse
from odejet.io.petab.posing import Posed, pose
from odejet.model.expressions import chosen, evaluate
from odejet.problem.priors import Truncated, read

yaml = pytest.importorskip("yaml", reason="PEtab needs pyyaml")
pytest.importorskip("libsbml", reason="PEtab needs python-libsbml")

SUITE = Path(__file__).parents[4] / "shared" / "petab" / "test_suite"
CASES = sorted(SUITE.glob("v*/sbml/[0-9]*"))
pytestmark = pytest.mark.skipif(not CASES, reason=f"PEtab's test suite is not here: {SUITE} is missing")


def label(case: Path) -> str:
    return f"{case.parents[1].name}-{case.name}"


def solution(case: Path) -> dict:
    return yaml.safe_load((case / f"_{case.name}_solution.yaml").read_text())


def posed(case: Path) -> Posed:
    return pose(case / f"_{case.name}.yaml")


def expected_simulations(case: Path, told: dict) -> list[float]:
    found = []
    for name in told["simulation_files"]:
        with (case / name).open(newline="") as file:
            found += [float(row["simulation"]) for row in csv.DictReader(file, delimiter="\t")]
    return found


def chi_square(one: Posed, simulated: np.ndarray) -> float:
    """The sum of squared residuals, each beside its noise, on the scale of the noise."""
    problem, total = one.problem, 0.0
    z = problem.layout.vector(problem.nominal)
    by_place = {}
    for block, rows in zip(problem.measurements.blocks, problem.measurements.rows, strict=True):
        for i, time in enumerate(block.times):
            by_place.setdefault((block.experiment, block.output, time), rows.start + i)
    scales = problem.misfit.noise_at(problem.misfit.evaluate(z, jacobian=False), problem._levels).scales
    for place, value in zip(one.rows, simulated, strict=True):
        row = by_place[problem.number(place.experiment), place.output, place.time]
        unit = problem.noises[place.output].law.logarithm
        log = (lambda x, unit=unit: math.log(x) / unit) if unit else float
        total += ((log(value) - log(place.value)) / scales[row]) ** 2
    return total


@pytest.mark.parametrize("case", CASES, ids=label)
def test_likelihood_and_simulations(case):
    one, told = posed(case), solution(case)
    nominal = one.problem.nominal
    assert one.problem.log_likelihood(nominal) == pytest.approx(told["llh"], abs=told["tol_llh"])
    found = one.simulated(nominal)
    assert found == pytest.approx(expected_simulations(case, told), abs=told["tol_simulations"])
    assert chi_square(one, found) == pytest.approx(told["chi2"], abs=told["tol_chi2"])


@pytest.mark.parametrize("case", CASES, ids=label)
def test_what_is_written_is_read_the_same_and_passes_petabs_own_checks(case, tmp_path):
    petab = pytest.importorskip("petab.v2", reason="the library petab is not installed")
    before = posed(case).problem
    path = before.to_petab(tmp_path / "written")
    after = pose(path).problem
    assert (after.unknowns, after.bounds, after.priors) == (before.unknowns, before.bounds, before.priors)
    assert after.nominal == before.nominal and after.model == before.model
    assert [one.name for one in after.experiments] == [one.name for one in before.experiments]
    values = before.nominal
    assert after.log_likelihood(values) == pytest.approx(before.log_likelihood(values), rel=1e-9)
    assert after.log_posterior(values) == pytest.approx(before.log_posterior(values), rel=1e-9)
    warning = petab.lint.ValidationIssueSeverity.WARNING
    assert [str(issue) for issue in petab.lint_problem(str(path)) if issue.level > warning] == []


@pytest.mark.parametrize("number", ["0024", "0025"])
def test_priors_are_petabs(number):
    case = SUITE / "v2.0.0" / "sbml" / number
    with (case / "_parameters.tsv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["estimate"] == "true"]
    told = solution(case)
    for row in rows:
        low, high, value = (float(row[key]) for key in ("lowerBound", "upperBound", "nominalValue"))
        kind = row["priorDistribution"].replace("-", "") or "uniform"
        arguments = row["priorParameters"].replace(";", ", ") or f"{low!r}, {high!r}"
        prior = Truncated(0, read(row["parameterId"], f"{kind}({arguments})"), low, high)
        assert -prior.at(value).cost == pytest.approx(told["log_prior"][row["parameterId"]], abs=told["tol_log_prior"])


def in_python(switch, parts):
    return np.float64(chosen(switch, [float(part) for part in parts]))


def formulas() -> list[tuple[str, object]]:
    path = SUITE / "v2.0.0" / "math" / "math_tests.yaml"
    cases = yaml.safe_load(path.read_text())["cases"] if path.is_file() else []
    return [(str(case["expression"]), case["expected"]) for case in cases]


@pytest.mark.parametrize(("text", "expected"), formulas())
def test_formulas(text, expected):
    found = parse(text, "here")
    if isinstance(expected, str) and expected.strip("-+") != "inf":
        assert str(found).replace(" ", "") == expected.replace(" ", "")
        return
    with np.errstate(all="ignore"):
        value = evaluate(found, {"inf": np.float64(np.inf)}, np, lambda exact: np.float64(float(exact)), in_python)
    assert float(value) == pytest.approx(float(expected), rel=1e-14, abs=1e-14)
