"""Renaming: arguments that were called something else in an earlier version, which still works with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def renamed(old: str, new: str) -> Callable[[Function], Function]:
    """Let a function take the keyword argument `new` by its old name too."""

    def decorated(function: Function) -> Function:
        @functools.wraps(function)
        def called(*arguments: Any, **options: Any) -> Any:
            if old in options:
                if new in options:
                    raise TypeError(f"{function.__name__}: {old} is another name of {new}; give {new} alone")
                warnings.warn(f"{function.__name__}: {old} is called {new} now", DeprecationWarning, stacklevel=2)
                options[new] = options.pop(old)
            return function(*arguments, **options)

        return cast(Function, called)

    return decorated
