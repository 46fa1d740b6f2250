"""Report picture: docs/report.png, the top of a report as a browser shows it.

python docs/site/report_picture.py, with Chromium on the path.
"""

import subprocess
import tempfile
from pathlib import Path

from PIL import Image

import odejet as oj

ROOT = Path(__file__).parents[2]
WIDTH, HEIGHT = 900, 1082  # down to the end of the card with the curve
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    example = ROOT / "examples" / "lotka_volterra"
    fit = oj.fit(oj.Model.from_toml(f"{example}.toml"), oj.Data.from_csv(f"{example}.csv"))
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "fit.html", Path(folder) / "fit.png"
        fit.report(page)
        size = [f"--window-size={WIDTH},{HEIGHT}", "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
        command = ["chromium", *FLAGS, *size, f"--screenshot={shot}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        Image.open(shot).convert("RGB").quantize(64).save(ROOT / "docs" / "report.png", optimize=True)


if __name__ == "__main__":
    main()
