"""Verdict: what can be known of a model, as a value that prints as a table.

Kinds: `global` (one value), `local` (finitely many values, `values` says how many; None of an angle that is known but
for whole turns), `none` (a continuum of values), and `undecided`: finitely many values, but whether one or several is
not known, for the reason given; where not even that is known, the quantity is not `tested`.  These are exact.
`likely global` and `likely local` (with at least so many `values`) rest on numerical evidence, which is given too.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from odejet.attach import attached
from odejet.extras import needed
from odejet.model import Model
from odejet.tables import table

if TYPE_CHECKING:
    import pandas

Kind = Literal["global", "local", "none", "undecided", "likely global", "likely local"]
Role = Literal["initial state", "parameter", "function", "combination"]


@dataclass(frozen=True)
class Quantity:
    """The verdict on one quantity."""

    name: str
    role: Role
    kind: Kind
    values: int | None  # how many values give the same outputs; None: infinitely many, or not known
    reason: str = ""
    tested: bool = True  # false where not even ranks tell whether its values are finitely many

    @property
    def label(self) -> str:
        """The name as it is printed: initial states with the time."""
        return f"{self.name}(0)" if self.role == "initial state" else self.name

    @property
    def told(self) -> str:
        """The kind as it is printed, which says what ranks alone tell."""
        return "at least local" if self.kind == "undecided" and self.tested else self.kind

    @property
    def sentence(self) -> str:
        match self.kind:
            case "global":
                return "yes, one value"
            case "local":
                return f"one of {self.values} values" if self.values else "yes, but for whole turns"
            case "none":
                return "no, any value"
            case "likely global":
                return "yes, and likely one value"
            case "likely local":
                return f"one of at least {self.values} values"
        return "yes, but perhaps several values" if self.tested else "not decided"


@dataclass(frozen=True)
class Experiments:
    """How many experiments with the same parameters a verdict is about.

    `asked` is None for as many as one likes; then fewer than `least` tell less, and `enough` tell all that any number
    can, as far as this is known.
    """

    asked: int | None = 1
    least: int = 1
    enough: int | None = None

    @property
    def sentence(self) -> str:
        """What there is to say of them; nothing for one experiment."""
        if self.asked == 1:
            return ""
        if self.asked is not None:
            return f"from {self.asked} experiments with the same parameters; initial states are those of one of them"
        if self.enough is None:
            return f"{_many(self.least)} at least; how many tell all that any number can is not known"
        told = f"{_many(self.enough)} tell{'s' * (self.enough == 1)} all that any number with the same parameters can"
        fewer = "" if self.enough == self.least else "; whether fewer do is not decided"
        return told + (fewer or ("" if self.enough == 1 else "; fewer tell less"))


def _many(experiments: int) -> str:
    return "1 experiment" if experiments == 1 else f"{experiments} experiments"


_WHOLE = {True: "; all else that can be known follows", False: "; more can be known", None: ""}


@dataclass(frozen=True, repr=False)
class Verdict(Mapping[str, Quantity]):
    """Verdicts by name; `verdict["k1"].kind`, initial states under their state's name."""

    model: Model
    quantities: Mapping[str, Quantity]
    solutions: int | None  # sets of values of the identifiable quantities that give the same outputs; None: undecided
    orders: Mapping[str, int]  # highest derivative of each output in the square system
    rows: tuple[tuple[str, int], ...]  # (output, order) of each equation of the square system
    roots: int | None  # its generic number of solutions; None: not known
    combinations: tuple[str, ...]  # identifiable combinations of quantities that are not
    fix: tuple[str, ...]  # quantities that, once known, make all others identifiable
    message: str
    reason: str  # why something is undecided, else empty
    seconds: float
    method: str
    experiments: Experiments = Experiments()
    inputs: str = "generic"
    evidence: str = ""  # what is likely is so because of this
    generate: bool | None = None  # whether all that is identifiable follows from what is known, alone or combined

    def __getitem__(self, name: str) -> Quantity:
        return self.quantities[name.removesuffix("(0)")]

    def __iter__(self) -> Iterator[str]:
        return iter(self.quantities)

    def __len__(self) -> int:
        return len(self.quantities)

    __hash__ = None  # type: ignore[assignment]

    def names(self, kind: Kind) -> tuple[str, ...]:
        """The parameters and initial states of one kind."""
        return tuple(q.name for q in self.values() if q.kind == kind and q.role in ("initial state", "parameter"))

    @attached
    def likely(self, seconds: float = 20.0, seed: int = 0) -> Verdict:
        """The verdict with what so many seconds of monodromy tell of quantities that are undecided.

        Kinds become `likely global` or `likely local`, and `evidence` says why; what is exact stays as it is.
        """
        raise NotImplementedError

    # --- looks ---

    def _notes(self) -> list[str]:
        """What stands under the table."""
        derivatives = ", ".join(f"{output} to order {order}" for output, order in self.orders.items())
        count = "an unknown number of" if self.roots is None else self.roots
        equations = f"{len(self.rows)} equation{'s' * (len(self.rows) > 1)}"
        roots = f"{count} root{'s' * (self.roots != 1)}"
        notes = [self.experiments.sentence] if self.experiments.sentence else []
        notes += [f"derivatives needed: {derivatives} ({equations} at one time, {roots})"] if self.rows else []
        if self.combinations:
            whole = {True: "; all else that can be known follows", False: "; more can be known", None: ""}[
                self.generate
            ]
            notes.append(f"known in combination: {', '.join(self.combinations)}{whole}")
        if self.fix:
            labels = ", ".join(self[name].label for name in self.fix)
            notes.append(f"give a value to {labels}, and every other quantity is identifiable")
        if self.evidence:
            notes.append(f"likely, not proven ({self.reason}): {self.evidence}")
        elif self.reason:
            notes.append(f"undecided: {self.reason}")
        digits = 0 if self.seconds >= 10 else 1 if self.seconds >= 1 else 2
        return [*notes, f"{self.seconds:.{digits}f} s, {self.method}"]

    def __str__(self) -> str:
        rows = [("quantity", "can it be known?", "verdict")]
        rows += [(q.label, q.sentence, q.told) for q in self.values()]
        head = f"{self.model.name}: {self.message}"
        return "\n".join([head, "", *(f"  {line}" for line in table(rows)), "", *(f"  {n}" for n in self._notes())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colours = {"global": "#2f6f52", "local": "#8b681f", "none": "#a33b2b"}
        cells = "".join(
            f"<tr><td style='text-align:left'><code>{html.escape(q.label)}</code></td>"
            f"<td style='text-align:left'>{q.sentence}</td>"
            f"<td style='text-align:left;color:{colours.get(q.kind, '#666666')}'><b>{q.told}</b></td></tr>"
            for q in self.values()
        )
        head = "<tr><th style='text-align:left'>quantity</th><th>can it be known?</th><th>verdict</th></tr>"
        caption = f"<caption><b>{html.escape(self.model.name)}</b>: {html.escape(self.message)}</caption>"
        notes = "<br>".join(html.escape(note) for note in self._notes())
        return f"<table>{caption}{head}{cells}</table><p>{notes}</p>"

    # --- as data ---

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names of the attributes, ready for JSON."""
        quantities = {
            name: {"role": q.role, "kind": q.kind, "values": q.values, "tested": q.tested, "reason": q.reason}
            for name, q in self.items()
        }
        return {
            "model": self.model.name,
            "quantities": quantities,
            "solutions": self.solutions,
            "orders": dict(self.orders),
            "rows": [list(row) for row in self.rows],
            "roots": self.roots,
            "combinations": list(self.combinations),
            "fix": list(self.fix),
            "message": self.message,
            "reason": self.reason,
            "seconds": self.seconds,
            "method": self.method,
            "experiments": asdict(self.experiments),
            "inputs": self.inputs,
            "evidence": self.evidence,
            "generate": self.generate,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per quantity, with the columns role, kind, values and reason."""
        pandas = needed("pandas")
        columns = ["quantity", "role", "kind", "values", "reason"]
        rows = [(q.name, q.role, q.kind, q.values, q.reason) for q in self.values()]
        frame = pandas.DataFrame(rows, columns=columns).set_index("quantity")
        return frame.astype({"values": "Int64"})
