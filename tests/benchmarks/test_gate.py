"""The gate: ratios to a reference commit, of two codes in turns, and a loss that is seen."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks import gate


class Answers:
    """A worker whose tasks take as long as it is told, the first answer longer, as kernels are compiled then."""

    directory = "somewhere"

    def __init__(self, *seconds: float) -> None:
        self.seconds, self.asked = list(seconds), 0

    def ask(self, _job: dict) -> dict:
        self.asked += 1
        return {"seconds": 100.0 if self.asked == 1 else self.seconds[(self.asked - 2) % len(self.seconds)]}


def test_the_least_time_counts_and_compiling_does_not():
    timed = gate.measure("simulate", [Answers(1.0, 3.0), Answers(5.0, 1.05)], rounds=4)
    assert (timed.reference, timed.current) == (1.0, 1.05)
    assert timed.ratio == pytest.approx(1.05)


def test_what_seems_slower_is_measured_again_and_a_loss_stays_one():
    noisy = Answers(1.3, 1.3, 1.0, 1.0, 1.0)
    assert gate.judged("fit", [Answers(1.0), noisy], 2, 1.1).ratio <= 1.1
    slower = Answers(1.2)
    assert gate.judged("fit", [Answers(1.0), slower], 2, 1.1).ratio > 1.1
    assert slower.asked == (2 + 1) * (gate.AGAIN + 1)


def test_a_task_that_fails_ends_the_gate():
    class Broken(Answers):
        def ask(self, _job: dict) -> dict:
            return {"failure": "ValueError: no"}

    with pytest.raises(SystemExit, match="fit failed in somewhere: ValueError: no"):
        gate.measure("fit", [Answers(1.0), Broken()], 1)


def test_the_table_marks_what_is_slower():
    rows = gate.table([gate.Timed("fit", 1.0, 1.2), gate.Timed("simulate", 1.0, 0.9)], 1.1).splitlines()
    assert rows[1].endswith("1.200  slower") and rows[2].endswith("0.900")


def test_a_commit_that_is_not_here_is_told():
    with pytest.raises(SystemExit, match="is not in this copy of the repository"):
        gate.checkout("0" * 40)


def test_the_reference_is_a_whole_commit_of_this_history():
    assert len(gate.REFERENCE) == 40
    known = subprocess.run(["git", "cat-file", "-t", gate.REFERENCE], cwd=gate.ROOT, capture_output=True, check=False)
    if known.returncode:
        pytest.skip("the history of this copy does not reach the reference commit")
    assert known.stdout.strip() == b"commit"
