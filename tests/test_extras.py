"""Extras: what is not installed is asked for in one sentence, and nothing that a fit needs is among them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import odejet as oj
from odejet.extras import EXTRAS, needed, present

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("package", EXTRAS)
def test_what_is_missing_is_asked_for(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(oj.ModelError, match=rf"pip install 'odejet\[{EXTRAS[package]}\]'"):
        needed(package)
    assert not present(package)


def test_every_extra_brings_what_it_is_asked_for():
    named = {"libsbml": "python-libsbml", "yaml": "pyyaml", "petab_select": "petab-select"}
    for package, extra in EXTRAS.items():
        brought = PROJECT["optional-dependencies"][extra]
        assert any(one.startswith(named.get(package, package)) for one in brought), package


def test_a_fit_and_its_report_need_no_extra(tmp_path):
    """Where none of them can be imported, a fit is found and written all the same."""
    code = f"""
import sys
for name in {(*EXTRAS, "rich", "mpmath")!r}:
    sys.modules[name] = None
import numpy as np, odejet as oj
times = np.linspace(0, 3, 12)
fit = oj.fit(oj.Model({{"x": "-k*x"}}, {{"y": "x"}}), oj.Data(times, {{"y": np.exp(-times)}}))
print(fit.summary(), len(fit._repr_html_()))
fit.report(sys.argv[1])
"""
    page = tmp_path / "fit.html"
    path = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", code, str(page)], check=True, env=path, capture_output=True, text=True)
    assert "<h2>Fit and data</h2>" in page.read_text(encoding="utf-8")


def test_large_tables_are_read_without_pandas(monkeypatch, tmp_path):
    monkeypatch.setattr("odejet.io.csv._LARGE", 10)
    path = tmp_path / "data.csv"
    path.write_text("time,y\n" + "".join(f"{t},{t * t}\n" for t in range(30)))
    quick = oj.Data.from_csv(path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    careful = oj.Data.from_csv(path)
    for one in (quick, careful):
        np.testing.assert_array_equal(one.experiments[0].outputs["y"].values, np.arange(30.0) ** 2)
