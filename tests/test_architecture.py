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
    (
        "startup",
        "errors",
        "numerals",
        "extras",
        "progress",
        "attach",
        "processes",
        "clock",
        "tables",
        "renaming",
        "interruption",
        "journal",
    ),
    ("model",),
    ("jets",),
    ("budget",),
    ("identify",),
    ("simulate",),
    ("data",),
    ("problem", "objective"),
    ("smooth",),
    ("algebra",),
    ("search",),
    ("decide",),
    ("uncertainty",),
    ("result",),
    ("population",),
    ("report",),
    ("io",),
    ("fitting", "identifying"),
    ("calibrating",),
    ("selection",),
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


def outside(folder: str, *but: str) -> list[tuple[str, str]]:
    """The modules of a folder of the repository, and the other folders that each imports from."""
    found = []
    for path in sorted((ROOT.parents[1] / folder).rglob("*.py")):
        name = path.relative_to(ROOT.parents[1]).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found += [(name, module.partition(".")[0]) for module in modules if not name.startswith(but)]
    return found


def test_tests_and_benchmarks_share_problems_and_not_each_other() -> None:
    """What both need is in `problems`; only the tests of benchmarks know benchmarks."""
    assert [name for name, other in outside("benchmarks") if other == "tests"] == []
    assert [name for name, other in outside("problems") if other in ("tests", "benchmarks")] == []
    assert [name for name, other in outside("tests", "tests/benchmarks/") if other == "benchmarks"] == []
    assert ("tests/identify/test_zoo.py", "problems") in outside("tests")
    assert [name for name, other in outside("src") if other in ("tests", "benchmarks", "problems")] == []


# --- attached methods ---


def declared(tree: ast.AST) -> Iterator[str]:
    """The methods of a module's classes that a package further down attaches."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            words = {word.id for word in node.decorator_list if isinstance(word, ast.Name)}
            if "attached" in words:
                yield node.name


def methods(tree: ast.AST) -> Iterator[str]:
    """The methods that a module's classes have by themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from {part.name for part in node.body if isinstance(part, ast.FunctionDef)} - set(declared(node))


def called(tree: ast.AST, names: set[str]) -> Iterator[tuple[int, str]]:
    """The methods of these names that a module calls, or hands on, with the lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names and not _is_attaching(node, tree):
            yield node.lineno, node.attr


def _is_attaching(node: ast.Attribute, tree: ast.AST) -> bool:
    calls = (call for call in ast.walk(tree) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name))
    return any(call.func.id == "attach" and node in call.args for call in calls)


ABOVE = [name for name in MODULES if name not in ENTRANCES and RANKS[package(name)] < RANKS["result"]]
TREES = {module: ast.parse(MODULES[module].read_text()) for module in ABOVE}
# Names that some class also has by itself tell nothing: `to_dict` of a verdict is not that of a posterior.
ATTACHED = {name for tree in TREES.values() for name in declared(tree)} - {
    name for tree in TREES.values() for name in methods(tree)
}


@pytest.mark.parametrize("module", ABOVE)
def test_attached_methods_are_for_users(module: str) -> None:
    """What a package further down provides is called by nothing that stands above the results."""
    text = MODULES[module].read_text()
    others = {"matplotlib": "plot", "numba": "load", "pickle": "load"}  # other libraries have methods of these names
    names = ATTACHED - {name for library, name in others.items() if library in text}
    assert list(called(ast.parse(text), names)) == []


def test_a_call_of_an_attached_method_is_seen() -> None:
    assert {"from_toml", "to_toml", "likely"} <= ATTACHED
    for text in ("model.to_toml()", "Model.from_toml(path)", "[verdict.likely for verdict in several]"):
        assert len(list(called(ast.parse(text), ATTACHED))) == 1, text
    assert list(called(ast.parse("@attach(Verdict.likely)\ndef likely(verdict): ..."), ATTACHED)) == []


MEANINGS = 61
"""Names of public classes that stand for more than one thing.  Fewer is better, and none is to be added."""


def test_a_class_name_has_one_meaning() -> None:
    owners: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners.setdefault(node.name, set()).add(name)
    doubles = {name: sorted(where) for name, where in owners.items() if len(where) > 1}
    assert len(doubles) <= MEANINGS, f"give the new one another name: {doubles}"


UNDECLARED = {("decide/optimality.py", "Watch"), ("io/csv.py", "Parser")}
"""Classes with attributes that appear outside of `__init__`, where a reader does not look for them."""


def test_attributes_are_declared() -> None:
    """Every attribute that a method sets is one of `__init__`, of the class or of what it comes from."""
    found = set()
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and set_late(node) and not inherits(node):
                found.add((name, node.name))
    assert found <= UNDECLARED


def inherits(node: ast.ClassDef) -> bool:
    """Whether a class may have attributes from others, a protocol aside."""
    return any(not ast.unparse(base).startswith(("Protocol", "Generic")) for base in node.bases)


def set_late(node: ast.ClassDef) -> set[str]:
    """Attributes of a class that only methods set."""
    known, late = set[str](), set[str]()
    for part in node.body:
        if isinstance(part, ast.AnnAssign | ast.Assign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            known |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(part, ast.FunctionDef):
            attributes = {
                each.attr
                for each in ast.walk(part)
                if isinstance(each, ast.Attribute)
                and isinstance(each.ctx, ast.Store)
                and ast.unparse(each.value) == "self"
            }
            known, late = (known | attributes, late) if part.name == "__init__" else (known, late | attributes)
    return late - known
