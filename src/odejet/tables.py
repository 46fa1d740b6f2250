"""Tables: rows of text in columns, for terminals and notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Lines of columns as wide as their widest cell, with a rule under the head; empty columns are left out."""
    kept = _kept(rows)
    widths = [max(len(line[i]) for line in rows) for i in kept]

    def joined(cells: Sequence[str]) -> str:
        pairs = zip(kept, widths, strict=True)
        return "  ".join(cells[i].rjust(w) if i in right else cells[i].ljust(w) for i, w in pairs).rstrip()

    return [joined(rows[0]), "  ".join("-" * w for w in widths), *(joined(line) for line in rows[1:])]


def html_table(
    rows: Sequence[Sequence[str]], right: Sequence[int] = (), caption: str = "", notes: Iterable[str] = ()
) -> str:
    """The same rows for notebooks, which have styles of their own: a caption above and notes below, all escaped."""
    kept = _kept(rows)

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ("right" if i in right else "left" for i in kept)
        inner = (
            f'<{tag} style="text-align:{side}">{html.escape(cells[i])}</{tag}>'
            for i, side in zip(kept, sides, strict=True)
        )
        return f"<tr>{''.join(inner)}</tr>"

    head = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    under = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<table>{head}{line(rows[0], 'th')}{''.join(line(one, 'td') for one in rows[1:])}</table>{under}"


def _kept(rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns that are not empty."""
    return [i for i in range(len(rows[0])) if len(rows) == 1 or any(line[i] for line in rows[1:])]
