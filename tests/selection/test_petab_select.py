"""PEtab Select: the official cases, and files that are no problems."""

from __future__ import annotations

from pathlib import Path

import pytest

import odejet as oj
from odejet.cli import main

CASES = Path(__file__).parents[3] / "shared" / "petab" / "select" / "test_cases"

yaml = pytest.importorskip("yaml", reason="PEtab needs PyYAML")
pytest.importorskip("petab_select", reason="pip install 'odejet[select]'")
SLOW = ("0002", "0003", "0005", "0006", "0008")
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the cases of PEtab Select are not beside the project")


@needs_cases
@pytest.mark.parametrize(
    "number",
    ["0001", "0004", "0007", *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)],
)
def test_the_expected_model_is_selected(number):
    from odejet.selection.petab_select import select_petab

    expected = yaml.safe_load((CASES / number / "expected.yaml").read_text())
    found = select_petab(CASES / number / "petab_select_problem.yaml", time_limit=4.0)
    assert found.best.name == expected["model_id"]
    assert found.best.criterion == pytest.approx(expected["criteria"][found.criterion], abs=1e-4)
    assert -found.best.log_likelihood == pytest.approx(expected["criteria"]["NLLH"], abs=1e-4)
    assert found.best.values == pytest.approx(expected["estimated_parameters"], rel=1e-3)


@needs_cases
def test_time_that_is_over_leaves_the_best_so_far():
    from odejet.selection.petab_select import select_petab

    found = select_petab(CASES / "0009" / "petab_select_problem.yaml", time_limit=1.0, total=0.0)
    assert found.stopped and len(found.models) == 1
    assert "stopped: the time is over" in str(found)


@needs_cases
def test_the_command_writes_the_model(tmp_path, capsys):
    problem = CASES / "0007" / "petab_select_problem.yaml"
    status = main(["select", str(problem), "--time-limit", "4", "--yaml", str(tmp_path / "best.yaml"), "-q"])
    assert status in (0, 1) and "best: M1_0-000" in capsys.readouterr().out
    assert yaml.safe_load((tmp_path / "best.yaml").read_text())["model_id"] == "M1_0-000"


def test_a_file_that_is_no_problem_is_refused(tmp_path):
    from odejet.selection.petab_select import select_petab

    path = tmp_path / "problem.yaml"
    path.write_text("format_version: beta_1\ncriterion: AIC\n")
    with pytest.raises(oj.ModelError, match=r"problem.yaml: this is no problem of PEtab Select"):
        select_petab(path)
    with pytest.raises(oj.ModelError, match=r"nowhere.yaml: there is no such file"):
        select_petab(tmp_path / "nowhere.yaml")
