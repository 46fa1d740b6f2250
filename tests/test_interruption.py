"""Interruptions: Ctrl-C and SIGTERM leave the best answer of the stage that was under way."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import odejet as oj
from odejet import clock
from odejet.cli import main
from odejet.interruption import gentle
from odejet.progress import Progress

CHIRP = oj.Model({"p": "w*exp(-k*t)"}, {"y": "A*sin(p)"}, initial={"p": 0}, name="chirp")
TIMES = np.linspace(0.1, 6, 25)
NOISE = np.random.default_rng(5).normal(size=25)
DATA = oj.Data(TIMES, {"y": NOISE}, start=0)
BOUNDS = {"k": (0, 2), "w": (0, 60), "A": (0, 5)}


@pytest.fixture(autouse=True)
def foreground():
    """Let Ctrl-C count: a shell that runs the tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_first_interruption_puts_the_clock_forward_and_a_second_ends_all():
    deadline = clock.now() + 100
    with pytest.raises(KeyboardInterrupt), gentle():
        os.kill(os.getpid(), signal.SIGINT)
        assert clock.is_hurried() and clock.now() > deadline
        os.kill(os.getpid(), signal.SIGINT)
    assert not clock.is_hurried() and signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Later:
    """Sends a signal to this process some time after the search of the whole box began."""

    def __init__(self, number):
        self.number, self.timer = number, None

    def __call__(self, stage):
        if stage == "multistart" and self.timer is None:
            self.timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), self.number))
            self.timer.start()


def test_ctrl_c_in_the_middle_of_a_stage_leaves_its_best():
    begin, later = time.perf_counter(), Later(signal.SIGINT)
    found = oj.fit(CHIRP, DATA, bounds=BOUNDS, effort="full", time_limit=300, progress=later)
    assert later.timer is not None and time.perf_counter() - begin < 200
    assert found.found and not found.certified and "interrupted" in found.message
    assert len(found.attempts) > 1 and found.stages["multistart"] > 0.5
    assert all(0 <= spent < 200 for spent in (found.seconds, *found.stages.values()))


def test_sigterm_writes_what_there_is(tmp_path, monkeypatch):
    model = 'name = "chirp"\n[states]\np = "w*exp(-k*t)"\n[outputs]\ny = "A*sin(p)"\n[initial]\np = 0\n'
    rows = "\n".join(f"{t},{y}" for t, y in zip(TIMES, NOISE, strict=True))
    for name, text in (("model.toml", model), ("data.csv", f"time,y\n{rows}\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    later = Later(signal.SIGTERM)
    monkeypatch.setattr(Progress, "stage", lambda _, name: later(name))
    limits = ["--bounds", "0", "60", "--effort", "full", "--time-limit", "300"]
    assert main(["fit", "model.toml", "data.csv", "--json", "f.json", "--quiet", *limits]) == 1
    assert "interrupted" in json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))["message"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_many_fits_need_no_guard_in_the_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import numpy as np
            import odejet as oj
            t = np.linspace(0, 3, 20)
            model = oj.Model({"x": "-k*x"}, {"y": "x"})
            sets = [oj.Data(t, {"y": a*np.exp(-0.5*t) + 0.01*np.sin(9*t)}) for a in (1.0, 2.0, 3.0, 4.0)]
            print([round(f.values["k"], 1) for f in oj.fit_many(model, sets, jobs=2, time_limit=2)])
            """
        ),
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(program)], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.split() == ["[0.5,", "0.5,", "0.5,", "0.5]"], done.stderr
