"""Files for pyPESTO: what pyPESTO itself reads in them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import odejet as oj
from odejet.cli import main

MODEL = "[states]\nx = '-k*x'\n[outputs]\ny = 'x'\n"


@pytest.fixture(scope="module")
def fit() -> oj.Fit:
    times = np.linspace(0, 5, 41)
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(times))
    model = oj.Model({"x": "-k*x"}, {"y": "x"})
    return oj.fit(model, oj.Data(times, {"y": 2 * np.exp(-0.7 * times) + noise}), bounds={"k": (1e-3, 1e3)})


def test_pypesto_reads_every_start_and_where_it_led(fit, tmp_path):
    pypesto = pytest.importorskip("pypesto.store", reason="pyPESTO is not installed")
    path = tmp_path / "fit.hdf5"
    fit.to_pypesto(path)
    read = pypesto.read_result(str(path), problem=True, optimize=True, profile=False, sample=False)
    assert read.problem.x_names == list(fit.labels) and len(read.optimize_result.list) == len(fit.attempts)
    best = read.optimize_result.list[0]
    logarithmic = np.array([scale == "log10" for scale in read.problem.x_scales])
    assert dict(zip(fit.labels, logarithmic.tolist(), strict=True))["k"]
    np.testing.assert_allclose(np.where(logarithmic, 10.0**best.x, best.x), fit.estimates, rtol=1e-12)
    assert best.fval == pytest.approx(fit.cost) and best.exitflag == 1
    k = fit.labels.index("k")
    assert (read.problem.lb[k], read.problem.ub[k]) == (-3, 3)
    assert np.all(best.x0 >= read.problem.lb) and np.all(best.x0 <= read.problem.ub)


def test_starts_differ_from_where_they_led(fit):
    assert any(not np.array_equal(one.start, one.end) for one in fit.attempts)


def test_a_loaded_fit_has_no_starts(fit, tmp_path):
    pytest.importorskip("h5py")
    fit.save(tmp_path / "fit.json")
    with pytest.raises(oj.ModelError, match="not known"):
        oj.Fit.load(tmp_path / "fit.json").to_pypesto(tmp_path / "fit.hdf5")
    assert not (tmp_path / "fit.hdf5").exists()


def test_without_h5py_the_command_line_says_so_before_it_fits(fit, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "model.toml").write_text(MODEL)
    assert main(["fit", str(tmp_path / "model.toml"), "nowhere.csv", "--pypesto", "fit.hdf5"]) == 2
    assert "pip install 'odejet[pypesto]'" in capsys.readouterr().err


def test_the_command_line_writes_the_file(fit, tmp_path, capsys):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "model.toml").write_text(MODEL)
    fit.data.to_csv(tmp_path / "data.csv")
    path = tmp_path / "fit.hdf5"
    assert main(["fit", str(tmp_path / "model.toml"), str(tmp_path / "data.csv"), "-q", "--pypesto", str(path)]) == 0
    with h5py.File(path) as file:
        assert {"x", "x0"} <= set(file["optimization/results/0"])
