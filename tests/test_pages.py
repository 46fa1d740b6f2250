"""The documentation: links lead somewhere, programs run and print what the pages say, pictures come from programs."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import pytest

import odejet
from tests.pages import DOCS, ROOT, Page, same, slug, with_examples

PAGES = [Page(ROOT / "README.md"), *(Page(path) for path in sorted(DOCS.rglob("*.md")))]
TROUBLE = Page(DOCS / "trouble.md")
COMING_FROM = [Page(path) for path in sorted((DOCS / "coming-from").glob("*.md"))]
TUTORIALS = [Page(path) for path in sorted((DOCS / "tutorials").glob("*.md"))]
QUICK = (
    [
        Page(DOCS / name)
        for name in (
            "start.md",
            "theory.md",
            "select.md",
            "export.md",
            "extend.md",
            "api.md",
            "objective.md",
            "posterior.md",
            "predict.md",
            "long-runs.md",
            "noise.md",
        )
    ]
    + COMING_FROM
    + [page for page in TUTORIALS if page.path.name != "anticoagulant.md"]
)
SLOW = [
    pytest.param(Page(DOCS / name), marks=pytest.mark.slow) for name in ("uncertainty.md", "tutorials/anticoagulant.md")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in page.links():
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.path.parent / file).resolve() if file else page.path
        assert target.is_file() and target.is_relative_to(ROOT), f"{page.name}: {link} leads nowhere"
        if anchor:
            assert anchor in Page(target).anchors(), f"{page.name}: {link} names no heading of that page"


@pytest.mark.parametrize("page", QUICK + SLOW, ids=lambda page: page.name)
def test_pages_run_and_print_what_they_show(page, tmp_path, monkeypatch):
    matplotlib.use("agg")
    monkeypatch.chdir(with_examples(tmp_path))
    for block, printed, shown in page.printed():
        if shown is not None:
            assert same(printed, shown.text), f"{page.name} shows\n{shown.text}\nbut\n{block.text}\nprints\n{printed}"
    for picture in page.pictures():
        assert (tmp_path / picture).stat().st_size > 1000
        assert (page.path.parent / picture).is_file()


def test_tutorials_show_answers_and_pictures():
    assert len(TUTORIALS) >= 9
    for page in TUTORIALS:
        assert page.pictures() and page.blocks("text") and all(page.blocks("text"))


def test_the_menu_has_every_page():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        assert f": {page.path.relative_to(DOCS).as_posix()}\n" in menu


def test_every_public_name_has_its_place_and_an_example():
    parts = dict(
        re.findall(r"^### oj\.(\w+)\n(.*?)(?=^##|\Z)", Page(DOCS / "api.md").markdown, re.MULTILINE | re.DOTALL)
    )
    assert sorted(parts) == sorted(odejet.__all__)
    for name, part in parts.items():
        assert f"::: odejet.{name}\n" in part
        code = re.search(r"^```python\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
        assert code and re.search(rf"\boj\.{name}\b", code[1]), name


def test_quoted_messages_are_real():
    """What the page on trouble quotes is what a fit says, up to names and numbers."""
    source = " ".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    said = re.sub(r'"\s+f?"', "", source).lower()
    quoted = re.findall(r"\*([^*\n]+)\*", "\n".join(re.findall(r"^\*.*\*$", TROUBLE.markdown, re.MULTILINE)))
    assert len(quoted) >= 14
    for message in quoted:
        for part in re.split(r"…|\by1\b|=", message.lower()):
            assert part.strip() in said, f"no message says: {part}"


def test_numbers_may_differ_a_little_and_words_may_not():
    assert same("k1 = 0.612  in 3.1 s", "k1 = 0.611 in 0.2 s")
    assert same("x  ----- 1\n", "x --- 1")
    assert same("8 starts agree\n  answered by: multistart\n", "10 starts agree\n")
    assert not same("k1 = 0.612", "k1 = 0.712")
    assert not same("k1 = 0.612", "k2 = 0.612")


def test_headings_are_named_as_the_site_names_them():
    assert slug("What goes wrong, and what to do") == "what-goes-wrong-and-what-to-do"
    assert slug("Prey – `oj.fit`") == "prey-ojfit"


def test_a_page_that_claims_too_much_is_caught(tmp_path):
    path = ROOT / "docs" / "nowhere.md"
    page = Page(path)
    pieces = "```python\nx = 2\n```\n\n<!-- check: x == 3 -->\n"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Page, "markdown", property(lambda _: pieces))
        with pytest.raises(AssertionError, match="claims what is not so"):
            list(page.printed())
    assert not Path(path).exists()
