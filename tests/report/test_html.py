"""The page: what it contains, that it needs nothing from outside, and how a real browser shows it."""

import json
import math
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from odejet import Data, Fit, Model
from odejet.report.html import fragment, page
from odejet.report.style import POLICY
from odejet.result import Identifiability
from tests.fits import driven, predators, refined_fit

EVIL = "<script>alert(1)</script> & \"a\" 'b' <img src=http://example.com/x.png onerror=alert(2)>"


class Reader(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = Counter(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)

    def values(self, name):
        return [value for _, key, value in self.attributes if key == name]


@pytest.fixture(scope="module")
def evil():
    fit = predators(name=EVIL, second="</svg><b>'\"&amp;")
    return replace(fit, message=EVIL, effort=EVIL, verdict=Identifiability({"k1": EVIL}, (EVIL,), (EVIL,), 1, EVIL))


@pytest.fixture(scope="module")
def evil_page(evil):
    return page(evil)


def test_what_the_page_shows():
    fit = predators()
    read = Reader(page(fit))
    for word in (*fit.labels, "first rung", "30 kept, 12 not real", "k1*r - k2*r*w", "fitted, not certified"):
        assert word in read.text, word
    described = read.values("aria-label")
    assert described == [
        "fit, data and residuals of y1",
        "states in experiment1",
        "deviance along every quantity",
        "derivatives of y1 in experiment1",
        "correlations of the estimates",
        "seconds per stage",
        "candidates of every unknown, relative to the answer",
    ]


def test_names_are_escaped(evil, evil_page):
    read = Reader(evil_page)
    assert read.tags["script"] == read.tags["img"] == read.tags["b"] - 1 == 0  # one <b> is the page's own
    assert not [name for _, name, _ in read.attributes if name.startswith("on")]
    assert read.text.count("alert(1)") >= 6
    assert any("</svg><b>" in words for words in read.words)
    assert Reader(fragment(evil)).tags["script"] == 0
    assert "alert(1)" in Reader(fragment(evil)).text


def test_nothing_comes_from_outside(evil_page):
    read = Reader(evil_page)
    assert POLICY in read.values("content")
    for name in ("src", "href", "action", "data", "srcset", "xlink:href"):
        assert all(value.startswith(("#", "data:")) for value in read.values(name)), name
    assert not read.tags.keys() & {"link", "script", "iframe", "object", "embed", "base", "form"}
    style = "".join(re.findall(r"<style.*?</style>", evil_page, re.DOTALL))
    assert "url(http" not in style and "@import" not in style


def test_ids_are_unique_and_references_have_targets(evil_page):
    read = Reader(evil_page)
    ids = read.values("id")
    assert len(ids) == len(set(ids))
    wanted = {value[1:] for value in read.values("href") if value.startswith("#")}
    wanted |= set(re.findall(r"url\(#([^)]*)\)", evil_page))
    assert wanted and wanted <= set(ids)


def test_colours_follow_the_dress_of_the_page(evil_page):
    drawn = "".join(re.findall(r"<svg.*?</svg>", evil_page, re.DOTALL))
    assert "var(--ink)" in drawn and "var(--blue)" in drawn
    assert "#222222" not in drawn and "#1f4e79" not in drawn
    assert "prefers-color-scheme: dark" in evil_page


def test_the_same_fit_gives_the_same_page(tmp_path):
    fit = predators()
    fit.save(tmp_path / "fit.json")
    assert page(Fit.load(tmp_path / "fit.json")) == page(fit)


def test_many_outputs_and_solutions():
    count = 14
    states = {f"a_state_with_a_long_name_{i}": f"-k*a_state_with_a_long_name_{i}" for i in range(count)}
    model = Model(states, {f"y{i}": name for i, name in enumerate(states)})
    times = np.linspace(0, 3, 12)
    data = Data(times, {f"y{i}": (i + 1) * np.exp(-times) for i in range(count)})
    fit = refined_fit(model, data, [*range(1, count + 1), 0.9])
    fit = replace(fit, solutions=fit.solutions * 14)
    read = Reader(page(fit))
    assert sum("fit, data and residuals" in label for label in read.values("aria-label")) == count
    assert "2 more series are not shown here" in read.text
    assert "14 sets of values" in read.text and "2 more solutions are not shown here" in read.text


def test_a_fit_that_failed():
    fit = replace(predators(), success=False, cost=math.inf, message="no candidate could be simulated")
    read = Reader(page(fit))
    assert "No candidate could be simulated." in read.text and "no fit" in read.text
    assert "Fit and data" not in read.text


def test_a_fit_without_a_certificate_is_shown_whole():
    read = Reader(page(replace(predators(), success=False, message="not certified")))
    assert "fitted, not certified" in read.text and "Fit and data" in read.text


def test_fragment_for_notebooks():
    fit = predators()
    read = Reader(fit._repr_html_())
    assert read.tags["tr"] == 1 + len(fit.labels)
    assert "predators: fitted, not certified" in read.text


# --- a real browser ---

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

MEASURE = """<script>
addEventListener('load', () => {
  const boxes = [...document.querySelectorAll('svg, img')].map(element => {
    const box = element.getBoundingClientRect();
    const drawn = element.getBBox ? element.getBBox() : box;
    return [box.width, box.height, drawn.width, drawn.height];
  });
  const seen = {boxes, requests: performance.getEntriesByType('resource').map(entry => entry.name),
    wider: document.documentElement.scrollWidth - innerWidth, title: document.title,
    ground: getComputedStyle(document.body).backgroundColor};
  document.body.textContent = JSON.stringify(seen);
});
</script>"""


def browse(path, tmp_path, *options):
    """The page as the browser has it once it is loaded, and what it complained of."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += ["--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
    command += ["--virtual-time-budget=5000", *options, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_a_browser_shows_the_page(evil, evil_page, tmp_path):
    path = tmp_path / "fit.html"
    evil.report(path)
    text, complaints = browse(path, tmp_path)
    assert complaints == []
    read = Reader(text)
    assert read.tags["script"] == 0 and read.tags["svg"] == Reader(evil_page).tags["svg"] == 10

    # The same page with a script that measures it; the page itself allows none.
    measured = tmp_path / "measured.html"
    open_page = path.read_text().replace(POLICY, "script-src 'unsafe-inline'; " + POLICY)
    measured.write_text(open_page.replace("</main>", "</main>" + MEASURE))
    for width, dark in ((1200, False), (420, True)):
        dress = ["--blink-settings=preferredColorScheme=0"] if dark else []
        text, complaints = browse(measured, tmp_path, f"--window-size={width},900", *dress)
        seen = json.loads(Reader(text[text.index("<body") :]).text)
        assert complaints == []
        assert len(seen["boxes"]) == 10 and min(map(min, seen["boxes"])) > 20
        assert seen["requests"] == []
        assert seen["wider"] <= 0
        assert EVIL in seen["title"]
        assert (seen["ground"] == "rgb(18, 20, 23)") == dark


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_page_forbids_itself_scripts_and_requests(tmp_path):
    """The measurement above could not tell a page without requests from a browser that does not notice them."""
    path = tmp_path / "fit.html"
    extra = "<script>document.title = 'ran'</script><img src='https://example.com/x.png'>"
    path.write_text(page(driven()).replace("</main>", extra + "</main>"))
    text, complaints = browse(path, tmp_path)
    assert "<title>driven: fit</title>" in text
    assert len(complaints) == 2 and all("Content Security Policy" in line for line in complaints)
