"""Files: what is read stays within limits, and a pipe is waited for only so long."""

from __future__ import annotations

import os
import threading

import pytest

import odejet as oj
from odejet.io import files

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")

MODEL = '[states]\nx = "-k*x"\n\n[outputs]\ny = "x"\n'


@pytest.mark.parametrize(
    ("read", "error"),
    [(oj.Model.from_toml, oj.ModelError), (oj.Data.from_csv, oj.DataError), (oj.Fit.load, oj.DataError)],
)
def test_a_pipe_that_nobody_writes_to(read, error, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WAITED", 0.2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(error, match=r"this is no file but a pipe, and nothing came through it in 0\.2 s"):
        read(tmp_path / "pipe")


def test_a_pipe_that_somebody_writes_to(tmp_path):
    path = tmp_path / "model.toml"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(MODEL,))
    writer.start()
    assert oj.Model.from_toml(path).unknowns == ("x", "k")
    writer.join()
