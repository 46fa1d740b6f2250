"""The clock of compilations, with kernels that are compiled for the purpose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import njit

import odejet
from odejet import clock
from odejet.jets import compilation


def fresh(module: str):
    """A function that calls another, neither compiled before."""

    def inner(x):
        return x + 1

    inner.__module__ = module
    compiled = njit(inner)

    def outer(x):
        return compiled(x) * 2

    outer.__module__ = module
    return njit(outer)


def test_compiling_our_kernels_is_counted_and_calling_them_is_not(capsys):
    kernel, before = fresh("odejet.made_up"), compilation.seconds()
    assert kernel(3) == 8
    after = compilation.seconds()
    assert after > before
    kernel(4)
    assert compilation.seconds() == after
    assert capsys.readouterr().err.count("compiling") <= 1


def test_what_others_compile_is_not_counted():
    before = compilation.seconds()
    assert fresh("somebody_else")(3) == 8
    assert compilation.seconds() == before


def test_the_clock_stands_still_meanwhile(monkeypatch):
    times = iter([10.0, 12.0, 20.0, 20.5])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(times))
    begin = clock.now()  # at 10
    with compilation.counted():  # from 12 to 20
        during = clock.now()
    assert during - begin == pytest.approx(2.0)
    assert clock.now() - begin == pytest.approx(2.5)


def test_kernels_have_a_place_where_nothing_of_ours_can_be_written(tmp_path):
    """A package in which no cache can be made, a home that is no folder: numba alone would refuse to import."""
    package = tmp_path / "site" / "odejet"
    shutil.copytree(Path(odejet.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    (tmp_path / "tmp").mkdir()
    code = "import numba, odejet.fitting; print(odejet.__file__); print(numba.config.CACHE_DIR)"
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    paths = {"HOME": "/dev/null/none", "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(package.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=kept | paths, capture_output=True, text=True, check=True)
    file, folder = done.stdout.splitlines()
    assert Path(file).parent == package
    assert Path(folder).parent == tmp_path / "tmp" and Path(folder).stat().st_mode & 0o777 == 0o700
    assert done.stderr.count("\n") == 1 and f"are kept in {folder}; set NUMBA_CACHE_DIR" in done.stderr


def test_a_folder_that_others_can_write_to_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation.tempfile, "tempdir", str(tmp_path))
    shared = tmp_path / f"odejet-kernels-{os.getuid()}"
    shared.mkdir(mode=0o700)
    shared.chmod(0o777)
    assert Path(compilation._temporary_folder()).name not in ("", shared.name)
    shared.chmod(0o700)
    assert compilation._temporary_folder() == str(shared)


def test_code_on_disk_with_types_that_are_gone_is_compiled_again(tmp_path):
    """After an update a class may have another name, while code for the old one is still beside the sources."""
    source = """
from typing import NamedTuple
from odejet.jets.compilation import compiled

class {name}(NamedTuple):
    size: float

@compiled
def doubled(pair):
    return 2 * pair.size

print(doubled({name}({size})))
"""
    module = tmp_path / "kernels.py"
    for name, size in (("Old", 1.5), ("New", 2.5)):
        module.write_text(source.format(name=name, size=size))
        command = [sys.executable, "-c", "import kernels"]
        told = subprocess.run(
            command,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert told.stdout.split() == [str(2 * size)], told.stderr
