"""Child processes: answers, and what happens to those that take too long, too much, or say too much."""

import os
import pickle
import sys
import time

import pytest

from odejet import processes

ROOMY = {"seconds": 60.0, "memory": 2e9}


class Loud:
    """What a child must not be able to have done here."""

    def __reduce__(self):
        return os.putenv, ("ODEJET_SAID", "yes")


def doubled(number: int) -> dict:
    print("libraries may print")
    return {"twice": 2 * number, "bytes": b"\x00", "pair": (1, "a"), "nothing": None}


def slept(seconds: float) -> None:
    time.sleep(seconds)


def filled(size: int) -> int:
    return len(bytearray(size))


def failed() -> None:
    raise ValueError("this is why")


def spoken() -> Loud:
    return Loud()


def test_what_a_function_returns():
    assert processes.run(doubled, 21, **ROOMY) == {"twice": 42, "bytes": b"\x00", "pair": (1, "a"), "nothing": None}


def test_a_function_that_takes_too_long_is_ended():
    with pytest.raises(processes.TimedOut, match="took more than"):
        processes.run(slept, 60.0, seconds=0.5, memory=2e9)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_a_function_that_takes_too_much_memory_is_ended():
    assert processes.run(filled, 10**8, **ROOMY) == 10**8
    with pytest.raises(processes.Ended, match="MemoryError"):
        processes.run(filled, 3 * 10**9, **ROOMY)


def test_a_function_that_fails_says_why():
    with pytest.raises(processes.Ended, match="this is why"):
        processes.run(failed, **ROOMY)


def test_nothing_that_comes_from_a_child_is_executed():
    with pytest.raises(processes.Ended, match="not plain"):
        processes.run(spoken, **ROOMY)
    assert b"putenv" in pickle.dumps(Loud())  # else nothing is tried


def test_programs():
    script = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('so'); sys.exit(3)"
    done = processes.completed([sys.executable, "-I", "-c", script], b"data", **ROOMY)
    assert (done.status, done.output, done.errors) == (3, b"DATA", b"so")
    with pytest.raises(processes.NotStarted):
        processes.completed(["/nowhere/at/all"], **ROOMY)


def test_a_child_that_nobody_waits_for_ends_itself():
    script = "from odejet import processes; import time; processes.end_after(-1.0); time.sleep(60)"
    assert processes.completed([sys.executable, "-c", script], **ROOMY).status != 0
