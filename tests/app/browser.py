"""Browser: `odejet app` as it runs, Chromium as it is started, and what a person does to the page."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
SOURCE = Path(__file__).parents[2] / "src"
LINES = "r' = k1*r - k2*r*w\nw' = k2*r*w - k3*w\ny1 = r"

PATIENCE = 120_000
"""Milliseconds; machines may be busy."""


@dataclass
class Program:
    """`odejet app`, running."""

    folder: Path
    process: subprocess.Popen[str]
    address: str

    @property
    def port(self) -> int:
        return int(self.address.split(":")[2].split("/")[0])

    def children(self) -> set[int]:
        """The processes that it has started and that still run."""
        listed = (Path(f"/proc/{pid}/stat") for pid in os.listdir("/proc") if pid.isdecimal())
        return {int(stat.parent.name) for stat in listed if alive(stat, self.process.pid)}

    def again(self) -> None:
        """Start it again in the same folder."""
        self.process, self.address = started(self.folder)

    def end(self, how: int = signal.SIGINT) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)


def alive(stat: Path, parent: int | None = None) -> bool:
    """Whether a process runs, by its file in /proc; if a parent is given, as a child of that."""
    try:
        state, ancestor, *_ = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return state != "Z" and parent in (None, int(ancestor))


def started(folder: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "odejet", "app", str(folder), "--no-browser"]
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"http://127\.0\.0\.1:\d+/\S+/", line):
            return process, found.group()
    raise AssertionError("the program has told no address")


def watch(page: Any, complaints: list[str]) -> None:
    page.on("pageerror", lambda error: complaints.append(str(error)))
    own = "http://127.0.0.1:"
    page.on("request", lambda asked: None if asked.url.startswith(own) else complaints.append(asked.url))


def new(page: Any, text: str, *files: Path | dict[str, Any]) -> None:
    """A new study with equations and files."""
    page.click("#new")
    page.fill("#equations", text)
    if files:
        drop(page, *files)


def drop(page: Any, *files: Path | dict[str, Any]) -> None:
    page.set_input_files("input[type=file]", list(files))


def table(name: str, content: bytes | str) -> dict[str, Any]:
    data = content.encode() if isinstance(content, str) else content
    return {"name": name, "mimeType": "text/csv", "buffer": data}


def noise(rows: int = 60) -> str:
    values = np.random.default_rng(0).normal(size=rows).cumsum()
    return "time,seen\n" + "".join(f"{i / 3:.3f},{value:.3f}\n" for i, value in enumerate(values))


def until(true: Any, what: str, seconds: float = PATIENCE / 1000) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)
