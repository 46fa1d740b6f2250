"""The order of packages: each imports only from those above it, and no module is too long to read.

Imports are read from the source, so that those inside functions and for type checkers count too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "odejet"
ORDER = (
    ("startup", "errors", "numerals", "extras", "progress", "attach"),
    ("model",),
    ("jets",),
    ("budget",),
    ("simulate",),
    ("data",),
    ("problem", "objective"),
    ("identify",),
    ("smooth",),
    ("algebra",),
    ("search",),
    ("decide",),
    ("uncertainty",),
    ("result",),
    ("population",),
    ("report",),
    ("io",),
    ("fitting",),
    ("app",),
    ("cli",),
)
RANKS = {name: rank for rank, names in enumerate(ORDER) for name in names}
ENTRANCES = ("__init__.py", "__main__.py")
"""The package itself, whose names come from everywhere."""

LONGEST = 500
"""Lines of a module."""

MODULES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}


def package(module: str) -> str:
    """The package that a module belongs to, or the module's own name where it stands alone."""
    return module.partition("/")[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The packages of odejet that a module imports from, with the lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports name their module in full"
            whole = node.module == "odejet"
            paths = [f"odejet.{alias.name}" for alias in node.names] if whole else [str(node.module)]
        elif isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names]
        else:
            continue
        for path in paths:
            parts = path.split(".")
            if parts[0] == "odejet" and len(parts) > 1 and not parts[1].startswith("__"):
                yield node.lineno, parts[1]


def test_every_package_has_its_place() -> None:
    assert {package(name) for name in MODULES if name not in ENTRANCES} <= RANKS.keys()


@pytest.mark.parametrize("module", [name for name in MODULES if name not in ENTRANCES])
def test_modules_import_from_above(module: str) -> None:
    rank = RANKS[package(module)]
    against = [
        f"line {line} imports {other}"
        for line, other in imported(ast.parse(MODULES[module].read_text()))
        if RANKS[other] > rank
    ]
    assert against == []


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_short(module: str) -> None:
    assert len(MODULES[module].read_text().splitlines()) <= LONGEST


def test_an_import_against_the_order_is_seen() -> None:
    """Wherever it stands: at the top, in a function, for type checkers."""
    for text in (
        "from odejet.report.text import table",
        "import odejet.io.csv",
        "from odejet import cli",
        "def f():\n    from odejet.result import Fit",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from odejet.io import csv",
    ):
        assert [RANKS[name] > RANKS["uncertainty"] for _, name in imported(ast.parse(text))] == [True], text
