"""Drafts: what somebody has put together on the page, as plain values that the page sends and a study keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from odejet.errors import DataError
from odejet.io.plain import real, text

LANGUAGES = ("equations", "toml", "antimony", "petab")
TASKS = ("fit", "posterior", "population", "models")
"""What may be asked of a draft: its best values, draws of them, how subjects differ, which of several models holds."""

METHODS = ("forward", "backward", "exhaustive")
EFFORTS = ("quick", "auto", "full")
LONGEST = 3600.0
"""Seconds that a fit may take at most."""

MOST_DRAWS = 100_000.0

MAX_ENTRIES = 5000
"""Of any table of a draft."""


@dataclass(frozen=True)
class Draft:
    """A model in one of the languages, data under the names of their columns, and what is known beside them."""

    language: str = "equations"
    text: str = ""
    file: str = ""  # of a PEtab problem: its YAML file
    data: str = ""  # the file of the measurements
    titles: Mapping[str, str] = field(default_factory=dict)  # column or observable -> name in the model; "" is not used
    doses: tuple[Mapping[str, str], ...] = ()
    start: float | None = None  # when initial states hold; by default the first time
    span: float = 10.0  # what is simulated while there are no data
    positive: bool = False
    bounds: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)  # numbers, or expressions in parameters
    free: tuple[str, ...] = ()  # what has a number in the model that is not believed
    noise: Mapping[str, str] = field(default_factory=dict)
    local: tuple[str, ...] = ()
    effort: str = "auto"
    limit: float = 120.0
    task: str = "fit"
    priors: Mapping[str, str] = field(default_factory=dict)
    draws: float = 400.0  # effective draws of a posterior
    random: Mapping[str, str] = field(default_factory=dict)  # how parameters differ between subjects
    correlated: bool = False  # whether these random effects are
    covariates: Mapping[str, str] = field(default_factory=dict)  # typical values as expressions
    switches: Mapping[str, str] = field(default_factory=dict)  # what a model may be without -> its value then
    method: str = "forward"  # in which order models are tried
    values: Mapping[str, float] = field(default_factory=dict)  # where the sliders are

    @classmethod
    def read(cls, told: Any) -> Draft:
        """A draft from plain values that anybody may have written."""
        if not isinstance(told, Mapping):
            raise DataError("a study must be a table of its parts")
        try:
            return cls(**{name: read(told[name]) for name, read in _READERS.items() if name in told})
        except (TypeError, ValueError, KeyError, AttributeError):
            raise DataError("a part of the study has not the form it should have; load the page again") from None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def key(self) -> str:
        """Return a key that drafts share which pose one problem, wherever their sliders are and whatever is asked."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _ASKED}
        return repr(plain)

    @property
    def longest(self) -> float:
        """Seconds that all fits and draws of the task may take together."""
        if self.task == "posterior":
            return 2 * self.limit
        if self.task != "models":
            return self.limit
        count = len(self.switches)
        return self.limit * (2 ** min(count, 12) if self.method == "exhaustive" else 1 + count * (count + 1) // 2)


_ASKED = ("values", "effort", "limit", "task", "draws", "random", "correlated", "covariates", "switches", "method")
"""Fields that change what is asked of a problem, and not the problem."""


def _one_of(allowed: tuple[str, ...]) -> Any:
    def read(value: Any) -> str:
        if value not in allowed:
            raise ValueError("no such word")
        return str(value)

    return read


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("not a truth value")
    return value


def _table(read: Any) -> Any:
    def read_table(value: Any) -> dict[str, Any]:
        if len(value) > MAX_ENTRIES:
            raise ValueError("too many entries")
        return {text(name): read(one) for name, one in value.items()}

    return read_table


def _list(read: Any) -> Any:
    def read_list(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) > MAX_ENTRIES:
            raise TypeError("not a list")
        return tuple(read(one) for one in value)

    return read_list


def _optional(value: Any) -> float | None:
    return None if value is None else real(value)


def _pair(value: Any) -> tuple[float | None, float | None]:
    low, high = value
    return _optional(low), _optional(high)


def _positive(value: Any) -> float:
    found = real(value)
    if not 0 < found < 1e300:
        raise ValueError("not positive")
    return found


_READERS: Mapping[str, Any] = {
    "language": _one_of(LANGUAGES),
    "text": text,
    "file": text,
    "data": text,
    "titles": _table(text),
    "doses": _list(_table(text)),
    "start": _optional,
    "span": _positive,
    "positive": _truth,
    "bounds": _table(_pair),
    "fixed": _table(text),
    "free": _list(text),
    "noise": _table(text),
    "local": _list(text),
    "effort": _one_of(EFFORTS),
    "limit": lambda value: min(_positive(value), LONGEST),
    "task": _one_of(TASKS),
    "priors": _table(text),
    "draws": lambda value: min(_positive(value), MOST_DRAWS),
    "random": _table(text),
    "correlated": _truth,
    "covariates": _table(text),
    "switches": _table(text),
    "method": _one_of(METHODS),
    "values": _table(real),
}
