"""The package itself: its public names, and what importing it does not bring along."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType

import pytest

import odejet
from odejet.model import Model

HEAVY = ("numba", "llvmlite", "numpy", "scipy", "pandas", "sympy", "matplotlib", "flint")


def imported(code: str) -> list[str]:
    """Which heavy packages a fresh Python has imported after some code."""
    tell = f"{code}\nimport sys; print(*[name for name in {HEAVY} if name in sys.modules])"
    here = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.check_output([sys.executable, "-c", tell], text=True, env=here).split()


@pytest.mark.parametrize(
    "code",
    [
        "import odejet",
        "import odejet as oj; oj.Model({'x': '-k*x'}), oj.ModelError, dir(oj)",
        "from odejet import Event, Model",
        "import odejet.cli; odejet.cli._parser().format_help()",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code):
    assert imported(code) == []


def test_data_need_no_kernels():
    assert imported("import odejet as oj; oj.Data([0.0, 1.0], {'y': [1.0, 2.0]})") == ["numpy"]


def test_a_simulation_brings_its_kernels():
    code = "import odejet as oj; print(oj.simulate(oj.Model({'x': '-x'}), {}, {'x': 1.0}, [0.0]).states['x'][0])"
    assert imported(code)[:3] == ["1.0", "numba", "llvmlite"]


@pytest.mark.parametrize("name", odejet.__all__)
def test_every_public_name_is_there(name):
    assert not isinstance(getattr(odejet, name), ModuleType)
    assert name in dir(odejet)
    assert getattr(odejet, name) is getattr(odejet, name)


def test_names_that_are_not_public_are_refused():
    with pytest.raises(AttributeError, match=r"^module 'odejet' has no attribute 'simulation'$"):
        odejet.simulation  # noqa: B018


def test_the_package_and_its_parts_have_the_same_names():
    assert odejet.Model is Model


def test_functions_do_not_give_way_to_the_packages_of_their_names():
    """Python would put the package odejet.simulate in the place of the function when something imports it."""
    parts = "import odejet.identify.local, odejet.simulate.flow"
    code = f"import odejet as oj; {parts}; print(oj.identify.__name__, oj.simulate.__name__)"
    assert imported(code)[:2] == ["identify", "simulate"]
