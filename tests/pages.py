"""Pages: what the documentation shows, as a program that can be run and held to its word.

The Python blocks of a page are one program, in their order. A block of text right after one of them is what it prints.
A comment `<!-- check: expression -->` holds what the words around it claim, and pictures whose names stand in the
program are files that it writes.

    python -m tests.pages docs/tutorials/doses.md ...

runs pages and writes what they print, and their pictures, anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$|<!-- check: (.*?) -->", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)/:\s]+)\)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
CODE_BLOCKS = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
SECONDS = re.compile(r"\b(?:\d+ min )?\d[\d.]* (?:ms|s|min)\b(?:, (?:msolve|builtin|input-output equations))?")
STORY = re.compile(r"^ *(?:time|census|answered by): .*\n?", re.MULTILINE)
STARTS = re.compile(r"\b\d+ starts\b")
SPACES = re.compile(r"[ ]{2,}|-{3,}")

TOLERANCE = 0.02
"""How far a number that is printed may be from the one on the page: machines differ in rounding, pages do not lie."""


@dataclass(frozen=True)
class Piece:
    """A block of the page, or a check."""

    kind: str  # python, text, check, or another language
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def markdown(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def pieces(self) -> Iterator[Piece]:
        for found in FENCE.finditer(self.markdown):
            kind, text = ("check", found[3]) if found[3] else (found[1], found[2])
            yield Piece(kind, text, found.start(), found.end())

    def blocks(self, language: str) -> list[str]:
        return [piece.text for piece in self.pieces() if piece.kind == language]

    def pictures(self) -> list[str]:
        """Those that the program of the page writes."""
        program = "".join(self.blocks("python"))
        return [name for name in PICTURE.findall(self.markdown) if f'"{name}"' in program]

    def links(self) -> set[str]:
        """Where the page leads to, code apart."""
        return set(LINK.findall(CODE.sub("", self.markdown)))

    def anchors(self) -> set[str]:
        """The places in the page that a link can name."""
        titles = re.findall(r"^#+ (.*)$", CODE_BLOCKS.sub("", self.markdown), flags=re.MULTILINE)
        return {slug(title) for title in titles}

    def printed(self) -> Iterator[tuple[Piece, str, Piece | None]]:
        """Run the page: every Python block, what it prints, and the text that shows it."""
        names: dict[str, object] = {"__name__": "__main__"}
        pieces = list(self.pieces())
        for number, piece in enumerate(pieces):
            line = self.markdown.count("\n", 0, piece.start)
            if piece.kind == "check":
                assert eval(piece.text, names), f"{self.name}: line {line + 1} claims what is not so: {piece.text}"
            if piece.kind != "python":
                continue
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile("\n" * (line + 1) + piece.text, self.name, "exec"), names)
            after = pieces[number + 1] if number + 1 < len(pieces) else None
            shown = after and after.kind == "text" and not self.markdown[piece.end : after.start].strip()
            yield piece, said.getvalue(), after if shown else None


def slug(title: str) -> str:
    """The anchor of a heading, as Markdown's table of contents makes it."""
    words = re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


def same(printed: str, shown: str) -> bool:
    """Whether a page shows what is printed: the same words, numbers nearly the same, seconds of any number.

    How the answer was found, by how many starts and in which stage, is no claim of a page.
    """
    a, b = (STARTS.sub("# starts", SECONDS.sub("# s", STORY.sub("", text))) for text in (printed, shown))
    a, b = (SPACES.sub(" ", text) for text in (a, b))
    words = [[line.strip() for line in NUMBER.sub("#", text).strip().splitlines()] for text in (a, b)]
    if words[0] != words[1]:
        return False
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=True)
    return all(abs(float(x) - float(y)) <= max(TOLERANCE * abs(float(y)), last_digit(y)) for x, y in pairs)


def last_digit(number: str) -> float:
    """One unit of the last digit of a number as it is written."""
    digits, _, power = number.lower().partition("e")
    return 1.01 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def trimmed(text: str) -> str:
    """Without space that nobody sees."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def with_examples(folder: Path) -> Path:
    """A folder with the examples in it, as in a copy of the repository."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("output"))
    return folder


def rewrite(page: Page) -> None:
    """Run a page; put in what it prints and the pictures that it makes."""
    text, home = page.markdown, Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(with_examples(Path(folder)))
        try:
            told = list(page.printed())
        finally:
            os.chdir(home)
        for _, said, shown in reversed(told):
            if shown and not same(said, shown.text):
                text = f"{text[: shown.start]}```text\n{trimmed(said)}\n```{text[shown.end :]}"
        for name in page.pictures():
            shutil.copy(Path(folder) / name, page.path.parent / name)
    page.path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    matplotlib.use("agg")
    for argument in sys.argv[1:]:
        rewrite(Page(Path(argument).resolve()))
