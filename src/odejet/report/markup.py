"""Markup: sections, tables and figures of a page.

Whatever comes from models and data is escaped before it gets here; cells and contents are HTML already.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from odejet.report.panels import Picture
from odejet.report.svg import drawn

SMALL, MEDIUM = "small", "medium"
"""How wide the pictures in a grid are at least."""

MOST_IN_A_ROW = 6
"""Small pictures side by side, as many as the widest page has room for."""


def section(title: str, content: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>\n{content}</section>" if content else ""


def folded(title: str, content: str) -> str:
    """A section that is closed until it is asked for."""
    summary = f"<summary><h2>{html.escape(title)}</h2></summary>"
    return f"<details>{summary}\n{content}</details>" if content else ""


def more(summary: str, content: str) -> str:
    """What of a section is closed until it is asked for."""
    return f"<details><summary>{html.escape(summary)}</summary>\n{content}</details>" if content else ""


def part(title: str, content: str) -> str:
    """A part of a section with its own heading."""
    return f"<h3>{html.escape(title)}</h3>\n{content}" if content else ""


def soft(words: str) -> str:
    return f'<p class="soft">{words}</p>'


def name(label: str) -> str:
    return f"<code>{html.escape(label)}</code>"


def toned(words: str, tone: str) -> str:
    return f'<span class="{tone}">{html.escape(words)}</span>'


def sentence(words: str, begins: bool = True) -> str:
    """Words as a sentence, or as the end of one."""
    return (words[:1].upper() if begins else words[:1]) + words[1:] + ("" if words.endswith(".") or not words else ".")


def left_out(count: int, where: str, what: str) -> str:
    return soft(f"{count} more {what} are not shown here; see <code>{where}</code>.") if count > 0 else ""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """A table of cells that are HTML; columns `right` hold numbers, and empty ones are left out.

    Where the page is narrow every row becomes a card, whose lines are named by the heads.
    """
    right = set(right)
    kept = [i for i in range(len(heads)) if i == 0 or any(row[i] for row in rows)]
    tags = {i: ' class="number"' if i in right else "" for i in kept}
    named = {i: html.escape(heads[i], quote=True) for i in kept}
    head = "".join(f"<th{tags[i]}>{named[i]}</th>" for i in kept)

    def cell(row: Sequence[str], i: int) -> str:
        # A cell without content would be a line of its own on a card.
        return f'<td{tags[i]} data-head="{named[i]}">{row[i]}</td>' if row[i] or i in right else f"<td{tags[i]}></td>"

    body = "".join("<tr>" + "".join(cell(row, i) for i in kept) + "</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Amounts as bars: what, how much, and how that is said."""
    largest = max((amount for _, amount, _ in rows), default=0.0) or 1.0
    lines = "".join(
        f'<span>{html.escape(what)}</span><span><i style="width:{70 * amount / largest:.3g}%"></i> {said}</span>'
        for what, amount, said in rows
    )
    return f'<div class="bars">{lines}</div>'


def key(*entries: tuple[str, str]) -> str:
    """What the marks of pictures stand for, told once for all of them."""
    words = "".join(f'<span><i class="mark {kind}"></i>{html.escape(text)}</span>' for kind, text in entries)
    return f'<p class="key">{words}</p>'


def gallery(pictures: Sequence[Picture], size: str = MEDIUM) -> str:
    """Pictures side by side, as many in a row as there is room for."""
    figures = "".join(f"<figure{' class=wide' * one.wide}>{drawn(one)}</figure>" for one in pictures)
    return f'<div class="gallery {size}" style="--row:{_in_a_row(len(pictures))}">{figures}</div>' if pictures else ""


def _in_a_row(count: int) -> int:
    """Pictures in a row of a wide page, so that the last row is about as full as the others."""
    rows = -(-count // MOST_IN_A_ROW)
    return -(-count // rows) if rows > 1 else MOST_IN_A_ROW
