"""Methods that one module declares and another provides."""

import inspect
import os
import subprocess
import sys

import pytest

from odejet import Model
from odejet.attach import attach, attached
from odejet.result.shown import Shown
from odejet.uncertainty.profile import Profile


class Noun:
    """Something that another module can show and make."""

    @attached
    def shown(self, mark: str = "!") -> str:
        """The noun as text."""
        raise NotImplementedError

    @classmethod
    @attached
    def made(cls) -> "Noun":
        """A new one."""
        raise NotImplementedError

    @attached
    def lonely(self) -> str:
        """Nobody provides this."""
        raise NotImplementedError


class Child(Noun):
    """A noun of a kind."""


@attach(Noun.shown)
def shown(noun: Noun, mark: str = "!") -> str:
    return type(noun).__name__ + mark


@attach(Noun.made)
def made(kind: type[Noun]) -> Noun:
    return kind()


def test_a_method_does_what_was_attached():
    assert Noun().shown() == "Noun!"
    assert Noun().shown(mark="?") == "Noun?"
    assert type(Child.made()) is Child


def test_signature_and_docstring_are_those_declared():
    assert str(inspect.signature(Noun.shown)) == "(self, mark: str = '!') -> str"
    assert inspect.getdoc(Noun.shown) == "The noun as text."


def test_a_method_without_provider_says_so():
    with pytest.raises(NotImplementedError, match=r"^Noun\.lonely has no provider"):
        Noun().lonely()


def test_every_declared_method_has_a_function_that_takes_the_same():
    from odejet.attach import _FUNCTIONS, _function

    checked = 0
    for noun in (Model, Shown, Profile):
        for name, member in vars(noun).items():
            declared = getattr(member, "__func__", member)
            if getattr(declared, "__module__", "") == noun.__module__ and hasattr(declared, "__wrapped__"):
                if "NotImplementedError" not in declared.__wrapped__.__code__.co_names:
                    continue
                provided = inspect.signature(_function(f"{noun.__name__}.{name}"))
                wanted = inspect.signature(declared)
                assert list(provided.parameters)[1:] == list(wanted.parameters)[1:], name
                assert [p.default for p in provided.parameters.values()] == [
                    p.default for p in wanted.parameters.values()
                ], name
                checked += 1
    ours = [name for name in _FUNCTIONS if name.partition(".")[0] in ("Model", "Shown", "Profile")]
    assert checked == len(ours) >= 12


def test_importing_the_package_imports_nothing_that_draws_or_reads_files():
    heavy = ("matplotlib", "pandas", "sympy", "tomllib", "odejet.io", "odejet.report", "odejet.result")
    code = f"import sys, odejet; print([name for name in {heavy} if name in sys.modules])"
    here = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=here).strip() == "[]"
