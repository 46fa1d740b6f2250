"""Site: what MkDocs does not do by itself.

The home page is README.md, files outside docs/ that pages link to become part of the site, and formulas become MathML,
which browsers draw without a script.  A page that would fetch something from elsewhere is a warning, which ends a
strict build.
"""

from __future__ import annotations

import html
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

LOG = logging.getLogger("mkdocs.hooks.site")
ROOT = Path(__file__).parents[2]
PROJECT = "project"  # the folder of the site for files from outside docs/
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
FETCHED = re.compile(
    r'<(?:script|img|iframe)[^>]*\ssrc="(?:https?:)?//|<link[^>]*rel="(?:stylesheet|preconnect|icon)[^>]*//'
)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """The pages of docs/, the README as home, and what both link to."""
    home = relinked((ROOT / "README.md").read_text(encoding="utf-8"), "README.md", "index.md")
    files.append(File.generated(config, "index.md", content=home))
    waiting = [(ROOT / "README.md", "README.md")]
    waiting += [
        (Path(page.abs_src_path), f"docs/{page.src_uri}") for page in files.documentation_pages() if page.abs_src_path
    ]
    known = {where for _, where in waiting}
    while waiting:
        path, where = waiting.pop()
        for target in outside(path.read_text(encoding="utf-8"), where) - known:
            known.add(target)
            source = ROOT / target
            if not source.is_file():
                continue  # the link stays as it is and strict mode tells
            if source.suffix == ".md":
                content = relinked(source.read_text(encoding="utf-8"), target, f"{PROJECT}/{target}")
                files.append(File.generated(config, f"{PROJECT}/{target}", content=content))
                waiting.append((source, target))
            else:
                files.append(File.generated(config, f"{PROJECT}/{target}", abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that leave docs/ lead to their place in the site."""
    inside = page.file.abs_src_path is not None and page.file.generated_by is None
    return relinked(markdown, f"docs/{page.file.src_uri}", page.file.src_uri) if inside else markdown


def on_page_content(content: str, **_: Any) -> str:
    """Formulas as MathML."""
    return FORMULA.sub(lambda found: mathml(html.unescape(found[3]), found[2] == "["), content)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    if found := FETCHED.search(output):
        LOG.warning("%s needs the network: %s", page.file.src_uri, found[0])
    return output


def mathml(latex: str, block: bool) -> str:
    return convert(latex, display="block" if block else "inline")


def targets(markdown: str, where: str) -> set[str]:
    """The files of the project that a file of it at `where` links to."""
    folder = posixpath.dirname(where)
    return {posixpath.normpath(posixpath.join(folder, found[2])) for found in LINK.finditer(markdown)}


def outside(markdown: str, where: str) -> set[str]:
    return {target for target in targets(markdown, where) if not target.startswith(("docs/", ".."))}


def relinked(markdown: str, where: str, place: str) -> str:
    """The text of the project's file at `where` with its links as they are at its `place` in the site."""
    folder, there = posixpath.dirname(where), posixpath.dirname(place)

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[2]))
        if target.startswith("..") or not (ROOT / target).is_file():
            return found[0]
        inside = target.removeprefix("docs/") if target.startswith("docs/") else f"{PROJECT}/{target}"
        inside = "index.md" if target == "README.md" else inside
        return f"{found[1]}{posixpath.relpath(inside, there or '.')}{found[3] or ''}{found[4]}"

    return LINK.sub(moved, markdown)
