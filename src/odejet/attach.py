"""Attach: methods that a noun declares and a package further down provides.

`Fit.plot` draws and `Model.from_toml` reads a file, yet results know nothing of pictures and models nothing of files.
The noun declares such a method with its signature and docstring, the package that can do it attaches a function:

    class Fit:
        @attached
        def plot(self) -> Figure:
            "Data, fit and residuals."
            raise NotImplementedError

    @attach(Fit.plot)
    def fit_figure(fit: Fit) -> Figure: ...

Whoever stands above all packages says in which modules the functions of each noun are, by `provided`; these are
imported when one of its methods is first called, so that nobody waits for what is not used.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])
R = TypeVar("R")

_FUNCTIONS: dict[str, Callable[..., Any]] = {}  # by "Noun.method"
_MODULES: dict[str, tuple[str, ...]] = {}  # by noun


def provided(**modules: tuple[str, ...]) -> None:
    """The modules that attach functions to each noun."""
    _MODULES.update(modules)


def attached(method: Method) -> Method:
    """A method whose function another package attaches; the body stands for the signature only."""
    name = method.__qualname__

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _function(name)(*args, **kwargs)

    return cast(Method, call)


def attach(method: Callable[..., R]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Make a function what a declared method does; it takes the noun itself, or its class, first."""

    def register(function: Callable[..., R]) -> Callable[..., R]:
        _FUNCTIONS[method.__qualname__] = function
        return function

    return register


def _function(name: str) -> Callable[..., Any]:
    if name not in _FUNCTIONS:
        for module in _MODULES.get(name.partition(".")[0], ()):
            importlib.import_module(module)
    if name not in _FUNCTIONS:
        raise NotImplementedError(f"{name} has no provider; import the module of odejet that attaches it")
    return _FUNCTIONS[name]
