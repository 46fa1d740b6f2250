"""The page: what it contains, that it needs nothing from outside, and how a real browser shows it."""

import json
import math
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from odejet import Data, Fit, Model
from odejet.report.html import fragment, page
from odejet.report.script import POLICY, SCRIPT
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
        "observed against predicted values of y1",
        "residuals against predicted values of y1",
        "quantiles of the residuals of y1",
        "r over time with its band in experiment1",
        "w over time with its band in experiment1",
        *(f"deviance along {label}" for label in fit.labels),
        "correlations of the estimates",
        "candidates of every unknown, relative to the answer",
        "derivatives of y1 in experiment1",
    ]


def changed(estimate, **values):
    return replace(estimate, parameters={**estimate.parameters, **values})


def test_how_it_was_found_is_folded_away():
    text = page(predators())
    before, folded = text.rsplit("<details>", 1)
    assert "<h2>How it was found</h2>" in folded and folded.index("</details>") > folded.index("first rung")
    for words in ("derivatives of y1", "Error of the raw estimate", "30 kept, 12 not real", "smoothed"):
        assert words in folded and words not in before


def test_digits_agree_between_tables():
    """The value of an unknown has the same digits among the estimates, beside other solutions and in a terminal."""
    fit = predators()
    fit = replace(fit, solutions=(fit.solutions[0], changed(fit.solutions[0], k1=0.9)))
    cells = re.findall(r'<tr><td data-head="quantity"><code>k1</code></td>(.*?)</tr>', page(fit).split("<details>")[0])
    assert len(cells) == 2
    one, other = (re.search(r"<td[^>]*>([^<]*)</td>", row).group(1) for row in cells)
    assert one == other and f" {one} " in str(fit)


def test_only_what_differs_stands_beside_a_rival():
    fit = predators()
    text = page(replace(fit, rivals=(changed(fit.solutions[0], k3=0.9),)))
    section = text[text.index("<h2>All solutions</h2>") :]
    section = section[: section.index("</section>")]
    assert section.count("<code>") == 1 and "<code>k3</code>" in section
    assert "The other 4 quantities are the same" in section


def test_names_are_escaped(evil, evil_page):
    read = Reader(evil_page)
    assert read.tags["img"] == read.tags["b"] == read.tags["script"] - 1 == 0  # one script is the page's own
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
    assert not read.tags.keys() & {"link", "iframe", "object", "embed", "base", "form"}
    assert re.findall(r"<script>(.*?)</script>", evil_page, re.DOTALL) == [SCRIPT]
    style = "".join(re.findall(r"<style.*?</style>", evil_page, re.DOTALL))
    assert "url(http" not in style and "@import" not in style


def test_pictures_refer_to_nothing(evil_page):
    """No ids, so that none can be there twice, and no references."""
    read = Reader(evil_page)
    assert read.values("id") == [] and read.values("href") == [] and "url(" not in evil_page


def test_colours_follow_the_dress_of_the_page(evil_page):
    drawn = "".join(re.findall(r"<svg.*?</svg>", evil_page, re.DOTALL))
    assert 'class="dots ink"' in drawn and 'class="line blue"' in drawn
    assert not re.search(r"#[0-9a-f]{3,6}\b", drawn)
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
    fit = replace(fit, solutions=tuple(changed(fit.solutions[0], k=0.1 * i) for i in range(14)))
    read = Reader(page(fit))
    assert sum("fit, data and residuals" in label for label in read.values("aria-label")) == count
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
  const pictures = [...document.querySelectorAll('figure > svg')];
  for (const element of document.querySelectorAll('details')) element.open = true;
  const boxes = pictures.map(element => element.getBoundingClientRect()).map(box => [box.width, box.height]);
  const level = document.querySelectorAll('svg.picture text:not([transform])');
  const words = [...level].map(element => element.getBoundingClientRect());
  const overlapping = pictures.flatMap(element => {
    const ticks = [...element.querySelectorAll('text')].map(one => one.getBoundingClientRect());
    return ticks.filter((one, i) => ticks.slice(i + 1).some(other => one.left < other.right - 1 &&
      other.left < one.right - 1 && one.top < other.bottom - 3 && other.top < one.bottom - 3)).map(one => one.left);
  });
  const cut = [...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1).length;
  const seen = {boxes, overlapping, cut, requests: performance.getEntriesByType('resource').map(entry => entry.name),
    heights: [Math.min(...words.map(box => box.height)), Math.max(...words.map(box => box.height))],
    wider: document.documentElement.scrollWidth - innerWidth, title: document.title,
    saves: document.querySelectorAll('.save button').length,
    ground: getComputedStyle(document.body).backgroundColor};
  const root = standing(pictures[0]);
  const image = new Image();
  const told = () => { document.body.textContent = JSON.stringify(seen) };
  image.onload = () => {
    const canvas = document.createElement('canvas');
    canvas.width = image.width; canvas.height = image.height;
    const pen = canvas.getContext('2d');
    pen.drawImage(image, 0, 0);
    const colours = new Set();
    const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
    for (let i = 0; i < data.length; i += 4) colours.add((data[i] << 16) + (data[i + 1] << 8) + data[i + 2]);
    seen.saved = [image.width, image.height, colours.size];
    told();
  };
  image.onerror = told;
  image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(new XMLSerializer().serializeToString(root));
});
</script>"""


def browse(path, tmp_path, *options):
    """The page as the browser has it once it is loaded, and what it complained of."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += ["--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
    command += ["--virtual-time-budget=5000", *options, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_figures_are_saved_from_the_page(browser, tmp_path):
    fit = predators()
    fit.report(tmp_path / "fit.html")
    page = browser.new_page(accept_downloads=True)
    page.goto((tmp_path / "fit.html").as_uri())
    figure = page.locator("figure").first
    figure.hover()
    for kind in ("SVG", "PNG"):
        with page.expect_download() as download:
            figure.locator(".save button", has_text=kind).click()
        assert download.value.suggested_filename.endswith(f".{kind.lower()}")
        download.value.save_as(tmp_path / f"saved.{kind.lower()}")
    page.close()
    drawn = ElementTree.parse(tmp_path / "saved.svg").getroot()
    assert drawn.tag.endswith("svg") and "y1" in {text.strip() for text in drawn.itertext()}
    with Image.open(tmp_path / "saved.png") as saved:
        colours = saved.convert("RGB").getcolors(1 << 24)
        assert saved.format == "PNG" and min(saved.size) > 100 and len(colours) > 10


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_a_browser_shows_the_page(evil, tmp_path):
    path = tmp_path / "fit.html"
    evil.report(path)
    text, complaints = browse(path, tmp_path)
    assert complaints == []
    pictures = len(Reader(path.read_text()).values("aria-label"))
    assert Reader(text).tags["button"] == 2 * pictures  # the page's own script has run

    # The same page with a script that measures it; the page itself allows none but its own.
    measured = tmp_path / "measured.html"
    open_page = path.read_text().replace(POLICY, POLICY.partition("script-src")[0] + "script-src 'unsafe-inline'")
    measured.write_text(open_page.replace("</body>", MEASURE + "</body>"))
    for width, dark in ((1200, False), (500, True)):
        dress = ["--blink-settings=preferredColorScheme=0"] if dark else []
        text, complaints = browse(measured, tmp_path, f"--window-size={width},900", *dress)
        seen = json.loads(Reader(text[text.index("<body") :]).text)
        assert complaints == []
        assert len(seen["boxes"]) == pictures and min(map(min, seen["boxes"])) > 60
        assert seen["requests"] == [] and seen["wider"] <= 0 and seen["cut"] == 0
        assert seen["overlapping"] == []
        assert 10 < seen["heights"][0] <= seen["heights"][1] < 18  # words keep their size at every width
        assert EVIL in seen["title"]
        assert (seen["ground"] == "rgb(18, 20, 23)") == dark
        assert seen["saved"][0] > seen["boxes"][0][0] and seen["saved"][2] > 20


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_page_forbids_itself_scripts_and_requests(tmp_path):
    """The measurement above could not tell a page without requests from a browser that does not notice them."""
    path = tmp_path / "fit.html"
    extra = "<script>document.title = 'ran'</script><img src='https://example.com/x.png'>"
    path.write_text(page(driven()).replace("</main>", extra + "</main>"))
    text, complaints = browse(path, tmp_path)
    assert "<title>driven: fit</title>" in text
    assert len(complaints) == 2 and all("Content Security Policy" in line for line in complaints)


def test_very_many_quantities_are_folded_away():
    model = Model({"x": "-k*x"}, {"y": "x"}, name="decay")
    times, rng = np.linspace(0, 4, 9), np.random.default_rng(1)
    starts = 1.0 + 0.1 * np.arange(70)
    data = Data.join(
        [
            Data(times, {"y": start * np.exp(-0.5 * times) + 0.01 * rng.normal(size=9)}, name=f"subject {i}")
            for i, start in enumerate(starts)
        ]
    )
    fit = refined_fit(model, data, [*starts, 0.5])
    shown = page(fit)
    assert "<summary>59 more quantities</summary>" in shown  # of 71, the shared one and the first few stand open
    assert shown.index("<code>k</code>") < shown.index("more quantities") < shown.index("x(0) in subject 69")
    assert "deviance along k" in shown
    assert re.search(r"\d+ more quantities", shown.partition("What the data determine")[2])
