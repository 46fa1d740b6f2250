"""Indices: names with members of sets in brackets, such as `S[3]`, `C[2,5]` or `I[child]`.

A model of many alike parts declares sets, `age = 10` or `age = ["child", "adult"]`, and is written once for all
members: `S[i]` on the left of an equation stands for one equation per member, and `sum(j, C[i,j]*I[j])` adds over all
of them.  An index ranges over the only set there is; where there are several it says which, `S[i in age]` and
`sum(j in age, ...)`, or is called like the set, `S[age]`.  Members may be counted from: `A[i-1]` is the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from odejet.errors import ModelError, clipped, nearest
from odejet.model.names import checked_name

MAX_MEMBERS = 1000

_SPECIFIED = re.compile(r"\s*(?P<base>[^\W\d]\w*)\s*\[(?P<inside>[^\[\]]*)\]\s*")


@dataclass(frozen=True)
class Scope:
    """The sets of a model, and the members that indices stand for at a place."""

    sets: Mapping[str, tuple[str, ...]]
    bound: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # by index: its set, and a member of it

    @classmethod
    def of(cls, given: Any) -> Scope | None:
        """Return the sets of a model, or None where there are none."""
        if not given:
            return None
        if not isinstance(given, Mapping):
            raise ModelError('[sets] must be a table of names and sizes, such as {"age": 10}')
        found: dict[str, tuple[str, ...]] = {}
        for name, told in given.items():
            try:
                found[checked_name(str(name))] = _members(told)
            except ModelError as error:
                raise ModelError(f"[sets] {name}: {error}") from None
        return cls(found)

    def binding(self, text: str) -> tuple[str, str]:
        """Return the index and the set of `i in age`, of the name of a set, or of any name where there is one set."""
        index, within, name = (part.strip() for part in text.partition(" in "))
        if not within:
            name = index if index in self.sets else next(iter(self.sets)) if len(self.sets) == 1 else ""
        if name not in self.sets:
            if name:
                raise ModelError(f"there is no set '{name}'{nearest(name, self.sets) or self._known}")
            raise ModelError(f"the index '{index}' ranges over one of several sets; write '{index} in {self._first}'")
        if not index.isidentifier():
            raise ModelError(f"{clipped(index)} is no index; write a name, such as i")
        if index in self.bound:
            raise ModelError(f"the index '{index}' has a meaning here already; use another letter")
        return index, name

    @property
    def _first(self) -> str:
        return next(iter(self.sets))

    @property
    def _known(self) -> str:
        return f"; there are {', '.join(self.sets)}"

    def over(self, index: str, name: str) -> Iterator[Scope]:
        """Yield the scope with every member for an index."""
        for member in self.sets[name]:
            yield replace(self, bound={**self.bound, index: (name, member)})

    def is_member(self, text: str) -> bool:
        return any(text in members for members in self.sets.values())

    def member(self, text: str) -> str:
        """Return the member that an index, a literal member or a shifted index is."""
        text = text.strip()
        if text in self.bound:
            return self.bound[text][1]
        if shifted := re.fullmatch(r"(\w+)\s*([-+])\s*([0-9]+)", text):
            index, sign, by = shifted.groups()
            if index in self.bound:
                return self._shifted(text, index, int(sign + by))
        if self.is_member(text):
            return text
        if re.fullmatch(r"[0-9]+", text):
            sizes = ", ".join(f"{name} has {members[0]} to {members[-1]}" for name, members in self.sets.items())
            raise ModelError(f"the index {text} is out of range: {sizes}")
        raise ModelError(f"'{text}' is neither an index here nor a member of a set{nearest(text, self.bound)}")

    def _shifted(self, text: str, index: str, by: int) -> str:
        name, member = self.bound[index]
        members = self.sets[name]
        place = members.index(member) + by
        if not 0 <= place < len(members):
            raise ModelError(
                f"the index {text} is out of range where {index} is {member}: {name} has {members[0]} to "
                f"{members[-1]}; write an entry of its own for [{member}]"
            )
        return members[place]

    def entries(self, table: str, given: Mapping[Any, Any]) -> Iterator[tuple[str, Scope, Any]]:
        """Yield the entries of a table, one per member where a name has indices, with the scope that each is read in.

        An entry that names members itself takes the place of the one for all.
        """
        families: list[tuple[str, list[Scope], list[str], Any]] = []
        alone: set[str] = set()
        for key, value in given.items():
            told = _SPECIFIED.fullmatch(key) if isinstance(key, str) else None
            try:
                if told is None:
                    families.append((key, [self], [key], value))
                    continue
                scopes, names = self._family(told["base"], told["inside"].split(","))
            except ModelError as error:
                raise ModelError(f"[{table}] {key}: {error}") from None
            if len(scopes) == 1 and not scopes[0].bound:
                alone.update(names)
            families.append((key, scopes, names, value))
        for _, scopes, names, value in families:
            for scope, name in zip(scopes, names, strict=True):
                if not scope.bound or name not in alone:
                    yield name, scope, value

    def _family(self, base: str, parts: list[str]) -> tuple[list[Scope], list[str]]:
        """The scopes of all members that a name with indices stands for, and their names."""
        scopes = [self]
        indices = []
        for part in (one.strip() for one in parts):
            if self.is_member(part):
                indices.append(part)
                continue
            index, name = scopes[0].binding(part)
            scopes = [inner for scope in scopes for inner in scope.over(index, name)]
            indices.append(index)
        return scopes, [f"{base}[{','.join(scope.member(index) for index in indices)}]" for scope in scopes]

    def listed(self, name: str, value: Any) -> dict[str, Any]:
        """Return the entries of a list, or of a list of lists, that is given for all members of sets at once."""
        told = _SPECIFIED.fullmatch(name)
        inside = told["inside"].split(",") if told else []
        base = told["base"] if told else name
        found = {"": value}
        for depth in range(len(inside) or _depth(value)):
            members = self._members_of(inside[depth] if inside else "", found)
            new: dict[str, Any] = {}
            for key, part in found.items():
                if not isinstance(part, list | tuple) or len(part) != len(members):
                    size = len(part) if isinstance(part, list | tuple) else "no list"
                    raise ModelError(f"there are {len(members)} members for {size} values; give one for each")
                new |= {f"{key},{member}" if key else member: one for member, one in zip(members, part, strict=True)}
            found = new
        return {f"{base}[{key}]": part for key, part in found.items()}

    def _members_of(self, index: str, found: Mapping[str, Any]) -> tuple[str, ...]:
        if index:
            return self.sets[self.binding(index)[1]]
        size = len(next(iter(found.values())))
        alike = [members for members in self.sets.values() if len(members) == size]
        if len(self.sets) == 1:
            return next(iter(self.sets.values()))
        if len(alike) != 1:
            raise ModelError(f"which set has the {size} values? write the name with it, such as C[i in {self._first}]")
        return alike[0]


def _depth(value: Any) -> int:
    return 1 + _depth(value[0]) if isinstance(value, list | tuple) and len(value) else 0


def _members(told: Any) -> tuple[str, ...]:
    if isinstance(told, bool) or not isinstance(told, int | list | tuple):
        raise ModelError(f"a set is a number of members, or a list of their names, not {clipped(str(told))}")
    if isinstance(told, int):
        if not 1 <= told <= MAX_MEMBERS:
            raise ModelError(f"a set has 1 to {MAX_MEMBERS} members, not {told}")
        return tuple(str(i) for i in range(1, told + 1))
    members = tuple(str(one).strip() for one in told)
    if not 1 <= len(members) <= MAX_MEMBERS or len(set(members)) < len(members):
        raise ModelError(f"a set has 1 to {MAX_MEMBERS} members with names of their own")
    for member in members:
        if not re.fullmatch(r"\w+", member):
            raise ModelError(f"{clipped(member)} is no name of a member; use letters, digits and underscores")
    return members
