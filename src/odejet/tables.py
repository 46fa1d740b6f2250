"""Tables: rows of text in columns, for terminals."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Lines of columns as wide as their widest cell, with a rule under the head; empty columns are left out."""
    kept = [i for i in range(len(rows[0])) if len(rows) == 1 or any(line[i] for line in rows[1:])]
    widths = [max(len(line[i]) for line in rows) for i in kept]

    def joined(cells: Sequence[str]) -> str:
        pairs = zip(kept, widths, strict=True)
        return "  ".join(cells[i].rjust(w) if i in right else cells[i].ljust(w) for i, w in pairs).rstrip()

    return [joined(rows[0]), "  ".join("-" * w for w in widths), *(joined(line) for line in rows[1:])]
