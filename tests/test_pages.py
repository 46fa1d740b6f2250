"""The documentation: links lead somewhere, programs run and print what the pages say, pictures come from programs."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest

from tests.pages import DOCS, ROOT, Page, same, slug, with_examples

PAGES = [Page(ROOT / "README.md"), *(Page(path) for path in sorted(DOCS.rglob("*.md")))]
RUN = [Page(DOCS / name) for name in ("start.md", "theory.md")]


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


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_pages_run_and_print_what_they_show(page, tmp_path, monkeypatch):
    matplotlib.use("agg")
    monkeypatch.chdir(with_examples(tmp_path))
    for block, printed, shown in page.printed():
        if shown is not None:
            assert same(printed, shown.text), f"{page.name} shows\n{shown.text}\nbut\n{block.text}\nprints\n{printed}"
    for picture in page.pictures():
        assert (tmp_path / picture).stat().st_size > 1000
        assert (page.path.parent / picture).is_file()


def test_the_menu_has_every_page():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        assert f": {page.path.relative_to(DOCS).as_posix()}\n" in menu


def test_numbers_may_differ_a_little_and_words_may_not():
    assert same("k1 = 0.612  in 3.1 s", "k1 = 0.611 in 0.2 s")
    assert same("x  ----- 1\n", "x --- 1")
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
