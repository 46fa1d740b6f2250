"""Pictures of the page for the documentation: `python docs/site/app_pictures.py`, with Chromium and odejet[app].

It starts the program in a temporary folder, goes the way of a new user, and writes docs/app/*.png.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

INTO = Path(__file__).parents[1] / "app"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
PATIENCE = 300_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "odejet", "app", folder, "--no-browser"]
        program = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert program.stderr is not None
        address = next(found.group() for line in program.stderr if (found := re.search(r"http://\S+/", line)))
        try:
            with sync_playwright() as started:
                browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
                page = browser.new_page(viewport={"width": 1600, "height": 1000})
                page.set_default_timeout(PATIENCE)
                draw(page, address)
                browser.close()
        finally:
            program.send_signal(signal.SIGINT)
            program.wait()


def draw(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(".tile")
    page.set_viewport_size({"width": 1200, "height": 760})
    page.screenshot(path=INTO / "start.png")

    page.click("#new")
    page.fill(
        "#equations", "gut' = -ka*gut\nblood' = ka*gut - ke*blood^2\n\nconc = blood/V\n\ngut(0) = 100\nblood(0) = 0"
    )
    page.wait_for_selector("#mistake:visible")
    page.locator("section[aria-label=Model]").screenshot(path=INTO / "mistake.png")

    page.set_viewport_size({"width": 1600, "height": 1000})
    fitted(page, address, "prey")
    page.screenshot(path=INTO / "study.png")
    # A hand on a slider, over the fit.
    page.fill("input[aria-label='Value of k1']", "0.8")
    page.press("input[aria-label='Value of k1']", "Tab")
    page.wait_for_timeout(1500)
    page.set_viewport_size({"width": 1200, "height": 1000})
    page.locator(".see").screenshot(path=INTO / "sliders.png")

    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 900, "height": 1200})
    fitted(page, address, "theophylline")
    page.locator("section[aria-label=Picture]").screenshot(path=INTO / "theophylline.png")

    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 400, "height": 860})
    page.goto(address)
    page.click("[data-example=doses]")
    page.wait_for_selector(".chips li")
    page.evaluate("scrollTo(0, document.querySelector('section[aria-label=Picture]').offsetTop - 70)")
    page.screenshot(path=INTO / "narrow.png")


def fitted(page: Any, address: str, example: str) -> None:
    page.goto(address)
    page.click(f"[data-example={example}]")
    page.wait_for_selector("#fit:enabled")
    page.wait_for_selector(".chips li")
    page.click("#fit")
    page.wait_for_selector("#result")
    page.wait_for_selector("a.button:has-text('Report')")
    page.wait_for_selector("#cancel", state="hidden")
    page.wait_for_timeout(800)
    page.evaluate("scrollTo(0, 0)")


if __name__ == "__main__":
    main()
