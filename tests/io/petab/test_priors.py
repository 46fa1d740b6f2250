"""Priors of version 1 on the scale of a parameter: what is read, and that published posteriors come out."""

from __future__ import annotations

from pathlib import Path

import pytest

from odejet import ModelError, read_petab
from odejet.io.petab.files import Row
from odejet.io.petab.tables import _first_prior

FOLDER = Path(__file__).parents[4] / "shared" / "petab" / "collection"


def prior(kind: str, parameters: str, scale: str) -> str:
    cells = {"objectivePriorType": kind, "objectivePriorParameters": parameters, "parameterScale": scale}
    return _first_prior(Row("parameters.tsv, line 2", cells))


@pytest.mark.parametrize(
    ("kind", "scale", "expected"),
    [
        ("parameterScaleNormal", "log10", "normal_log10(-1.0, 0.5)"),
        ("parameterScaleLaplace", "log", "laplace_log(-1.0, 0.5)"),
        ("parameterScaleUniform", "log10", "uniform_log10(-1.0, 0.5)"),
        ("parameterScaleNormal", "lin", "normal(-1.0, 0.5)"),
        ("normal", "log10", "normal(-1.0, 0.5)"),
        ("logNormal", "log10", "lognormal(-1.0, 0.5)"),
    ],
)
def test_a_prior_is_one_on_the_scale_of_its_parameter_where_it_says_so(kind, scale, expected):
    assert prior(kind, "-1;0.5", scale) == expected


def test_a_scale_or_prior_that_does_not_exist_is_refused():
    with pytest.raises(ModelError, match="the parameterScale must be lin, log or log10"):
        prior("parameterScaleNormal", "0;1", "log2")
    with pytest.raises(ModelError, match="there is no prior 'parameterScaleGamma'"):
        prior("parameterScaleGamma", "0;1", "log10")


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the published problems are not here: {FOLDER} is missing")
@pytest.mark.parametrize(("name", "expected"), [("Schwen_PONE2014", -956.52), ("Isensee_JCB2018", -3953.83)])
def test_published_values_have_the_posterior_that_others_tell(name, expected):
    problem = read_petab(FOLDER / name / f"{name}.yaml")
    assert problem.log_posterior(problem.nominal) == pytest.approx(expected, abs=0.01)
