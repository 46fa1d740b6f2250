"""Report pictures: docs/report.png and docs/report-experiments.png, reports as a browser shows them.

python docs/site/report_picture.py, with Chromium on the path and Playwright.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import odejet as oj

ROOT = Path(__file__).parents[2]
WIDTH = 1000
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
CURVES = "section:has(h2:text-is('Fit and data'))"


OWN = {"local": ["ka", "ke", "V"], "bounds": {"V": (10, 100), "ka": (0.01, 100), "ke": (0.001, 10)}}


def fitted(name: str, **told: Any) -> oj.Fit:
    example = ROOT / "examples" / name
    return oj.fit(oj.Model.from_toml(f"{example}.toml"), oj.Data.from_csv(f"{example}.csv"), **told)


def shown(browser: Any, fit: oj.Fit, into: str, top: bool) -> None:
    """The card with the curves, and if asked for all that stands above it."""
    with tempfile.TemporaryDirectory() as folder:
        page, shot = browser.new_page(viewport={"width": WIDTH, "height": 900}), Path(folder) / "shot.png"
        fit.report(Path(folder) / "fit.html")
        page.goto((Path(folder) / "fit.html").as_uri())
        card = page.locator(CURVES).bounding_box()
        start = 0 if top else card["y"] - 6
        clip = {"x": 0, "y": start, "width": WIDTH, "height": card["y"] + card["height"] + 6 - start}
        page.screenshot(path=shot, full_page=True, clip=clip)
        Image.open(shot).convert("RGB").quantize(256).save(ROOT / "docs" / into, optimize=True)
        page.close()


def main() -> None:
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        shown(browser, fitted("lotka_volterra"), "report.png", top=True)
        shown(browser, fitted("theophylline", **OWN), "report-experiments.png", top=False)
        browser.close()


if __name__ == "__main__":
    main()
