"""The page in a real browser: from an empty page to a report, and all that may happen on the way.

What is printed is the time of a person's path, in seconds of clicks and waiting after the program has started.
"""

from __future__ import annotations

import http.client
import signal
import socket
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odejet import Fit, Model, simulate
from tests.app.browser import LINES, Program, alive, drop, new, noise, table, until

TRUTH = {"k1": 0.6, "k2": 0.5, "k3": 0.3}

# Chaos that is seen through noise: no search is soon done with it.
LONG = "x' = a*(y - x)\ny' = x*(b - z) - y\nz' = x*y - c*z\nq' = d*x - e*q*q\nseen = x*y + q"


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts of prey as a person keeps them."""
    times = np.linspace(0, 20, 81)
    model = Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r"})
    values = simulate(model, TRUTH, {"r": 1.5, "w": 0.5}, times)["y1"] + 0.01 * np.random.default_rng(1).normal(size=81)
    path = tmp_path_factory.mktemp("data") / "rabbits 2024.csv"
    path.write_text("Day,Rabbits\n" + "".join(f"{t:g},{y:.4f}\n" for t, y in zip(times, values, strict=True)))
    return path


# --- the whole way ---


def test_from_an_empty_page_to_a_report(page: Any, counts: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    page.click("#new")
    page.fill("#equations", LINES.replace("k3*w", "k3^w"))
    page.wait_for_selector("#mistake:visible")
    assert page.inner_text("#mistake").startswith("Line 2: The character '^' is not allowed (powers are written **)")
    assert page.inner_text(".editor mark") == "^"
    page.fill("#equations", LINES)
    page.wait_for_selector("#mistake", state="hidden")
    page.wait_for_selector("text=Everything can be known, without ambiguity.")
    drop(page, counts)
    page.wait_for_selector("select[aria-label='What Rabbits is']")
    assert page.input_value("select[aria-label='What Day is']") == "time"
    assert page.input_value("select[aria-label='What Rabbits is']") == "y1"
    page.check("text=All unknowns are positive")
    until(lambda: page.input_value("input[aria-label='Lower bound of k1']") == "0", "unknowns are not positive")

    hand = page.locator(".panel .hand")
    before = hand.get_attribute("d")
    page.focus("input[aria-label='k1, slider']")
    page.keyboard.press("PageUp")
    until(lambda: hand.get_attribute("d") != before, "the slider does not move the curve")

    page.wait_for_selector("#fit:enabled")
    page.click("#fit")
    page.wait_for_selector("#result")
    assert page.inner_text(".result .badge") == "certified"
    rows = page.locator(".result tbody tr")
    assert rows.count() == 5
    shown = dict(
        zip(
            rows.locator("td:first-child").all_inner_texts(),
            rows.locator("td:nth-child(2)").all_inner_texts(),
            strict=True,
        )
    )
    for name, value in TRUTH.items():
        assert float(shown[name]) == pytest.approx(value, rel=0.1)
    found = time.monotonic() - began
    page.wait_for_selector("a.button:has-text('Report')")
    reported = time.monotonic() - began
    page.wait_for_selector("#cancel", state="hidden")
    print(f"\nfrom an empty page to the fit in {found:.1f} s, to its report in {reported:.1f} s")
    check_files(page, tmp_path, shown)
    page.click("text=The whole report")
    frame = page.frame_locator("iframe.report")
    frame.locator("text=Estimates").first.wait_for()


def check_files(page: Any, tmp_path: Path, shown: dict[str, str]) -> None:
    """What can be downloaded is what was found."""
    with page.expect_download() as download:
        page.click("a.button:has-text('All files')")
    download.value.save_as(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as packed:
        names = {name.split("/")[-1] for name in packed.namelist()}
        packed.extractall(tmp_path)
    assert names == {"report.html", "fit.json", "model.toml", "fit.py", "data.csv"}
    fit = Fit.load(next(tmp_path.rglob("fit.json")))
    assert fit.certified and fit.parameters["k1"] == pytest.approx(float(shown["k1"]), rel=1e-3)
    with page.expect_download() as download:
        page.click("a.button:has-text('Report')")
    download.value.save_as(tmp_path / "report.html")
    assert "certified" in (tmp_path / "report.html").read_text()


def test_an_example_with_doses_by_keyboard_alone(page: Any) -> None:
    page.wait_for_selector(".tile")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.example") == "doses":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("#fit:enabled")
    assert page.input_value("input[aria-label='amount of dose 1']") == "100"
    assert page.input_value("input[aria-label='Lower bound of V1']") == "10"
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#cancel")
    page.focus("#cancel")
    page.keyboard.press("Enter")
    page.wait_for_selector(".fits .badge:has-text('cancelled')")
    assert page.evaluate("document.activeElement.id") == "fit"


def test_both_answers_to_doses_are_shown(page: Any, tmp_path: Path) -> None:
    """Absorption and elimination may change places: a table as a clinic in Europe keeps it, one dose, two solutions."""
    hours = np.array([0, 0.5, 1, 2, 4, 6, 8, 12, 24])
    model = Model({"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, {"c": "blood/V"}, initial={"gut": 320, "blood": 0})
    seen = simulate(model, {"ka": 0.9, "ke": 0.1, "V": 40}, {}, hours)["c"] + 0.05 * np.sin(7 * hours)
    lines = (f"{t:g};{y:.2f}".replace(".", ",") for t, y in zip(hours, seen, strict=True))
    (tmp_path / "patient 7.csv").write_text("Zeit (h);Konz (mg/L)\n" + "\n".join(lines))
    page.click("#new")
    page.fill("#equations", "gut' = -ka*gut\nblood' = ka*gut - ke*blood\nconc = blood/V\ngut(0) = 0\nblood(0) = 0")
    drop(page, tmp_path / "patient 7.csv")
    page.wait_for_selector("select[aria-label='What Zeit (h) is']")
    page.click("summary:has-text('Doses')")
    page.click("text=+ Add a dose")
    page.fill("input[aria-label='amount of dose 1']", "320")
    page.press("input[aria-label='amount of dose 1']", "Tab")
    page.check("text=All unknowns are positive")
    until(lambda: page.input_value("input[aria-label='Lower bound of ka']") == "0", "unknowns are not positive")
    page.wait_for_selector("#fit:enabled")
    page.click("#fit")
    page.wait_for_selector("h3:has-text('All solutions')")
    rows = page.locator("[aria-label='All solutions'] tbody tr")
    shown = {row.locator("td").first.inner_text(): row.locator("td.number").all_inner_texts() for row in rows.all()}
    assert set(shown) == {"ka", "ke", "V"} and sorted(map(float, shown["ka"])) == pytest.approx([0.1, 0.9], rel=0.2)
    assert sorted(map(float, shown["V"]))[-1] == pytest.approx(40, rel=0.1)


def test_everything_has_a_name_and_nothing_is_cut(page: Any) -> None:
    page.click("[data-example=theophylline]")
    page.wait_for_selector("#fit:enabled")
    page.wait_for_selector(".chips li")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea, a, svg[role=img], iframe')]
          .filter((one) => one.checkVisibility() && !one.getAttribute('aria-label') && !one.textContent.trim()
            && !one.title && ![...(one.labels || [])].some((label) => label.textContent.trim()))
          .map((one) => one.outerHTML.slice(0, 90))"""
    )
    assert nameless == []
    for width in (400, 900, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]
    assert page.locator("h1").count() == 1


def test_a_pasted_text_tells_its_language(page: Any) -> None:
    page.click("#new")
    page.fill("#equations", '[states]\nx = "-k*x"\n\n[outputs]\ny = "2*x"\n')
    page.wait_for_selector("text=Everything can be known, without ambiguity.")
    assert page.is_checked("input[value=toml]")
    page.click("#home")
    page.click("#new")
    page.fill("#equations", "S -> P; k*S\nS = 5; P = 0; k = 0.4\ny := 2*P\n")
    page.wait_for_selector("text=uncheck what the fit is to find")
    assert page.is_checked("input[value=antimony]")
    page.click("label:has-text('k = 0.4')")
    page.wait_for_selector("input[aria-label='k, slider']")


# --- files of strangers ---

LAUGHS = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><sbml>&b;</sbml>'
HOSTILE = [
    (table("x.csv", b"\xff\xfe\x00\x01binary"), "utf-8"),
    (table("x.csv", b""), "empty"),
    (table("x.csv", "time,y1\n0,one\n1,2\n"), "line 2, column 'y1': 'one' is not a number"),
    (table("x.csv", "time,y1,y1\n0,1,2\n"), "two columns are called 'y1'"),
    (table("x.toml", "[states]\nx = [[[["), "toml"),
    (table("x.toml", "a." * 5000 + "b = 1"), "many dotted parts"),
    (table("x.xml", LAUGHS), "x.xml"),
    (table("x.ant", "import 'other.ant'"), "import reads other files"),
    (table("x.yaml", "format_version: 1\nparameter_file: ../../../etc/passwd\nproblems: [{}]"), "x.yaml"),
    (table("x.yaml", "!!python/object/apply:os.system ['touch /tmp/pwned']"), "x.yaml"),
    (table("x.exe", b"MZ"), "no file of a model or of data"),
    (table("x.xlsx", b"PK"), "save its table there as csv"),
    (table("-.csv", "time,y1\n0,1\n"), "no name for a file"),
]


@pytest.mark.slow
def test_hostile_files_get_a_sentence(page: Any, program: Program) -> None:
    new(page, LINES)
    said = page.locator("#banner, #trouble, #mistake")
    for file, words in HOSTILE:
        drop(page, file)
        until(
            lambda words=words: any(words in one.lower() for one in said.all_inner_texts()),
            f"{file['name']}: {words}: {said.all_inner_texts()}",
        )
        page.fill("#equations", LINES)
    page.click(".segments label:has-text('Equations')")
    page.fill("#equations", LINES)
    name = "<img src=x onerror=window.pwned=1>"
    drop(page, table("odd.csv", f"time,{name},y1\n" + "".join(f"{i},{i},{i % 3}\n" for i in range(9))))
    page.wait_for_selector("#fit:enabled")
    assert name in page.inner_text(".columns")
    page.fill("#name", name)
    page.press("#name", "Enter")
    page.wait_for_selector("#saved:has-text('Saved')")
    page.click("#home")
    page.wait_for_selector(f".studies >> text={name}")
    assert page.evaluate("window.pwned") is None
    assert not Path("/tmp/pwned").exists()
    assert program.process.poll() is None


def test_others_are_refused(program: Program) -> None:
    path = "/" + program.address.split("/", 3)[3]
    own = f"127.0.0.1:{program.port}"

    def ask(method: str, path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=60)
        connection.request(method, path, b"{}" if method == "POST" else None, headers)
        return connection.getresponse()

    assert ask("GET", path).status == 200
    assert ask("GET", "/").status == 403
    assert ask("GET", path, Host="evil.example").status == 403
    assert ask("POST", path + "api/studies", Origin="http://evil.example").status == 403
    assert ask("POST", path + "api/studies").status == 403
    assert ask("GET", path + "page/..%2fserver.py").status == 404
    assert ask("GET", path + "api/studies/..%2f..", Origin=f"http://{own}").status == 404
    policy = ask("GET", path).headers["content-security-policy"]
    assert "script-src 'self'" in policy and "connect-src 'self'" in policy
    outside = socket.gethostbyname(socket.gethostname())
    if not outside.startswith("127."):
        with pytest.raises(OSError):
            socket.create_connection((outside, program.port), timeout=5).close()


# --- what takes long ---


@pytest.mark.slow
def test_two_tabs_a_reload_a_cancel_and_a_kill(page: Any, context: Any, program: Program) -> None:
    new(page, LONG, table("noise.csv", noise()))
    page.wait_for_selector("#fit:enabled")
    page.select_option("#effort", "full")
    page.click("#fit")
    page.wait_for_selector(".stages .now:not(:has-text('starting'))")

    # A tab that is loaded again shows the same fit under way, and so does a second tab.
    page.reload()
    page.wait_for_selector("#cancel")
    other = context.new_page()
    other.goto(page.url)
    other.wait_for_selector("#cancel")

    # A second fit beside the first, in the other tab; it ends, the first goes on.
    page.click("#home")
    page.click("[data-example=gain]")
    page.wait_for_selector("#fit:enabled")
    page.click("#fit")
    page.wait_for_selector("#result")
    assert "certified" in page.inner_text(".result .badge")
    other.click("#cancel")
    other.wait_for_selector(".fits .badge:has-text('cancelled')")
    page.wait_for_selector("a.button:has-text('Report')")
    # Two that answer questions, and one that is ready for the next fit.
    until(lambda: len(program.children()) == 3, "processes are left over, or missing")

    # What one tab changes the other shows; what both change at once is not lost without a word.
    page.goto(other.url)
    page.wait_for_selector("#equations")
    until(lambda: page.input_value("#equations") == other.input_value("#equations"), "the study is not loaded")
    page.fill("#equations", LONG + "\n# from the first tab")
    until(lambda: "from the first tab" in other.input_value("#equations"), "the second tab does not follow")
    page.wait_for_selector("#saved:has-text('Saved')")
    page.route("**/api/studies/*/state", lambda route: route.abort())
    other.fill("#equations", LONG + "\n# from the second tab")
    other.wait_for_selector("#saved:has-text('Saved')")
    page.fill("#equations", LONG + "\n# from the first tab again")
    page.click("#banner button:has-text('Load what is there')")
    until(lambda: "from the second tab" in page.input_value("#equations"), "what was there is not loaded")
    page.unroute("**/api/studies/*/state")

    # A kill in the middle of a fit: its process ends too, and all that was found is there after the next start.
    page.wait_for_selector("#fit:enabled")
    page.click("#fit")
    page.wait_for_selector("#cancel")
    other.close()
    stats = [Path(f"/proc/{pid}/stat") for pid in program.children()]
    program.end(signal.SIGKILL)
    until(lambda: not any(map(alive, stats)), "children outlive the program")
    page.wait_for_selector("#banner:has-text('does not answer')")
    program.again()
    page.goto(program.address)
    page.click(".studies >> text=New study")
    page.wait_for_selector(".fits .badge:has-text('interrupted')")
    assert "from the second tab" in page.input_value("#equations")
    page.click("#home")
    page.click(".studies >> text=What cannot be known")
    page.wait_for_selector("#result")


# --- what is asked beside values ---


def subjects() -> str:
    """Six people with one dose into the blood each, as NONMEM has them, with spaces between the columns."""
    rng = np.random.default_rng(2)
    rows = ["TABLE NO.  1", " ID TIME AMT DV WT"]
    for number in range(1, 7):
        clearance, volume = 2 * np.exp(0.3 * rng.normal()), 20 * np.exp(0.2 * rng.normal())
        rows.append(f" {number} 0 100 . {60 + number}")
        for hour in (1, 3, 8, 16, 24):
            value = 100 / volume * np.exp(-clearance / volume * hour) * np.exp(0.05 * rng.normal())
            rows.append(f" {number} {hour} . {value:.4f} {60 + number}")
    return "\n".join(rows) + "\n"


def test_a_nonmem_table_becomes_a_population_and_a_new_regimen(page: Any) -> None:
    """Nothing but a table is dropped: a model, a population and what another regimen would do."""
    page.click("#new")
    drop(page, table("clinic.tab", subjects()))
    page.wait_for_selector("#fit:enabled")
    assert page.is_checked("input[name=task][value=population]")
    assert "central' = -Cl/V*central" in page.input_value("#equations")
    assert page.locator(".columns th").all_inner_texts()[4].split() == ["WT", "covariate"]
    page.click("#fit")
    page.wait_for_selector("#result")
    rows = page.locator("[aria-label=Estimates] tbody tr")
    shown = {row.locator("td").first.inner_text(): row.locator("td").nth(1).inner_text() for row in rows.all()}
    assert float(shown["V"]) == pytest.approx(20, rel=0.3) and float(shown["Cl"]) == pytest.approx(2, rel=0.4)
    page.click("summary:has-text('Predict another experiment')")
    page.click(".predict >> text=+ Add a dose")
    for what, value in (("amount", "50"), ("every", "12"), ("times", "3")):
        page.fill(f"input[aria-label='{what} of new dose 1']", value)
    page.click(".predict button:has-text('Predict')")
    page.wait_for_selector(".predict .panel .fit")
    assert page.locator(".predict .panel .band").count() == 2
    page.wait_for_selector("a.button:has-text('Report')")


def test_models_by_switches_and_a_study_as_a_zip(page: Any, tmp_path: Path) -> None:
    page.click("[data-example=gain]")
    page.wait_for_selector("#fit:enabled")
    page.fill("#equations", "x' = b - k*x\ny = x")
    page.wait_for_selector("input[aria-label='b, slider']")
    page.click(".asking label:has-text('Models')")
    page.check("input[aria-label='b may be missing']")
    page.wait_for_selector("#saved:has-text('Saved')")
    with page.expect_download() as download:
        page.click("a.button:has-text('Export the study')")
    download.value.save_as(tmp_path / "study.zip")
    page.click("#fit")
    page.wait_for_selector("[aria-label=Models] tbody tr")
    assert page.locator("[aria-label=Models] tbody tr").count() == 2
    # Another page takes the study as it is.
    page.click("#home")
    page.click("#new")
    drop(page, tmp_path / "study.zip")
    page.wait_for_selector("#fit:enabled")
    assert page.input_value("#equations").startswith("x' = b - k*x")
    assert page.is_checked("input[aria-label='b may be missing']")


def test_a_posterior_has_a_prior_and_agreeing_chains(page: Any) -> None:
    pytest.importorskip("walnutpie")
    page.click("[data-example=gain]")
    page.wait_for_selector("#fit:enabled")
    page.fill("#equations", "x' = -k*x\ny = x")
    page.wait_for_selector("input[aria-label='x(0), slider']")
    page.click(".asking label:has-text('Posterior')")
    page.fill("input[aria-label='Prior of k']", "lognormal(0")
    page.press("input[aria-label='Prior of k']", "Tab")
    page.wait_for_selector("#trouble:has-text('k')")
    page.fill("input[aria-label='Prior of k']", "lognormal(0, 1)")
    page.press("input[aria-label='Prior of k']", "Tab")
    page.wait_for_selector("#fit:enabled")
    page.click("#fit")
    page.wait_for_selector("#result:has-text('posterior')")
    assert page.inner_text(".result .badge") == "chains agree"
    assert "effective draws" in page.inner_text("[aria-label=Estimates]")
