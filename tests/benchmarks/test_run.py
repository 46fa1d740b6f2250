"""Runs that are killed, repeated, spread over processes and over a cluster give the same results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import run
from benchmarks.cells import Cell, Protocol
from benchmarks.methods import METHODS, Answer, Budget
from benchmarks.run import Progress, Task, methods_of, tasks_of
from benchmarks.store import Result, Store, Timing
from odejet import DataError, ModelError

ROOT = Path(__file__).parents[2]
PROTOCOL, BUDGET = Protocol(seed=4, points=60), Budget(evaluations=60, seconds=60.0)


def few(method: str = "truth") -> list[Task]:
    return tasks_of([method], ["seir", "vanderpol"], [0.0, 1e-2], range(2), PROTOCOL, BUDGET)


def answers(directory: Path) -> dict[str, dict]:
    """Everything but the seconds, by file."""
    found = {}
    for path in sorted(directory.glob("*/*/*.json")):
        table = json.loads(path.read_text())
        del table["timing"]
        found[str(path.relative_to(directory))] = table
    return found


# --- one process ---


def test_tasks_go_trial_by_trial():
    tasks = tasks_of(["odejet", "truth"], ["seir", "hiv"], [0.0, 1e-2], range(3), PROTOCOL, BUDGET)
    assert [task.cell.trial for task in tasks] == sorted(task.cell.trial for task in tasks)
    assert len(set(tasks)) == len(tasks) == 24


def test_families_stand_for_methods():
    assert methods_of(["ours", "odejet", "shade"]) == [
        "odejet", "odejet-sse", "odejet-unrefined", "odejet-aaa", "shade"
    ]  # fmt: skip
    with pytest.raises(ModelError, match="there is no method 'amigo'"):
        methods_of(["amigo"])


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, monkeypatch):
    undisturbed, store = Store(tmp_path / "one"), Store(tmp_path / "other")
    run.run(few(), undisturbed, quiet=True)
    computed = []
    original = run.work

    def stopping(task: Task) -> Result:
        if len(computed) == 3:
            raise KeyboardInterrupt
        computed.append(task)
        return original(task)

    monkeypatch.setattr(run, "work", stopping)
    with pytest.raises(KeyboardInterrupt):
        run.run(few(), store, quiet=True)
    assert len(answers(store.directory)) == 3
    monkeypatch.setattr(run, "work", lambda task: computed.append(task) or original(task))
    assert len(run.run(few(), store, quiet=True)) == 5
    assert sorted(map(str, computed)) == sorted(map(str, few()))
    assert answers(store.directory) == answers(undisturbed.directory)
    assert run.run(few(), store, quiet=True) == []


def test_what_a_method_raises_is_its_answer(monkeypatch):
    def broken(_):
        raise FloatingPointError("overflow")

    monkeypatch.setitem(METHODS, "broken", run.METHODS["truth"].__class__("broken", "broken", broken))
    result = run.work(Task("broken", Cell("seir", 0.0, 0), PROTOCOL, BUDGET))
    assert result.error == 1e6 and result.ending == "FloatingPointError: overflow"


def test_no_method_but_an_oracle_is_told_the_truth(monkeypatch):
    seen = []

    def spy(problem):
        seen.append(problem.truth)
        return Answer(None, 0.0, 0, "spied")

    kind = run.METHODS["truth"].__class__
    monkeypatch.setitem(METHODS, "spy", kind("spy", "spy", spy))
    monkeypatch.setitem(METHODS, "oracle", kind("oracle", "oracle", spy, knows_truth=True))
    for name in ("spy", "oracle"):
        run.work(Task(name, Cell("seir", 0.0, 0), PROTOCOL, BUDGET))
    assert seen[0] == {} and seen[1]
    assert [name for name, method in METHODS.items() if method.knows_truth] == ["truth", "truth-sse", "oracle"]


def test_both_losses_search_from_the_same_points():
    seeds = [run._seed(Task(name, Cell("seir", 1e-2, 0), PROTOCOL, BUDGET)) for name in ("shade", "shade-sse", "de")]
    assert seeds[0] == seeds[1] != seeds[2]


def test_two_runs_do_not_write_to_the_same_place(tmp_path):
    with run._alone(tmp_path), pytest.raises(DataError, match="another run is writing to"):
        run.run(few(), Store(tmp_path), quiet=True)


def test_the_time_that_is_left_follows_each_method():
    tasks = few("truth") + few("shade")
    progress = Progress(tasks, 0, 2, quiet=True)
    timing = Timing(10.0, 10.0)
    progress.note(Result("shade", tasks[-1].cell, 0.1, 0.0, 1, "", timing))
    progress.note(Result("truth", tasks[0].cell, 0.1, 0.0, 1, "", Timing(1.0, 1.0)))
    assert progress.seconds_left() == pytest.approx((7 * 10 + 7 * 1) / 2)


def test_the_command_refuses_what_it_does_not_know(tmp_path, capsys):
    assert run.main(["--methods", "amigo", "--results", str(tmp_path)]) == 2
    assert run.main(["--systems", "seirr", "--results", str(tmp_path)]) == 2
    assert "did you mean 'seir'" in capsys.readouterr().err


# --- many processes ---

SYSTEMS, TRIALS = ["seir", "vanderpol", "harmonic_oscillator", "latent_subpopulation"], 10
COMMAND = [sys.executable, "-m", "benchmarks", "run", "--methods", "multistart", "--systems", *SYSTEMS,
           "--trials", str(TRIALS), "--evaluations", "60", "--points", "100"]  # fmt: skip
CELLS = len(SYSTEMS) * TRIALS * 5


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}


def start(directory: Path, *options: str) -> subprocess.Popen:
    command = [*COMMAND, "--results", str(directory), *options]
    return subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)


def written(directory: Path) -> int:
    return len(list(directory.glob("*/*/*.json")))


def wait_for(directory: Path, count: int, process: subprocess.Popen) -> None:
    while written(directory) < count and process.poll() is None:
        time.sleep(0.02)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, dict]:
    directory = tmp_path_factory.mktemp("undisturbed")
    assert start(directory).wait() == 0
    found = answers(directory)
    assert len(found) == CELLS == 200
    return found


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_is_killed_ten_times_gives_the_same_files(tmp_path, undisturbed, jobs):
    rng = np.random.default_rng(jobs)
    for _ in range(10):
        process = start(tmp_path, "--jobs", str(jobs))
        before = written(tmp_path)
        wait_for(tmp_path, before + int(rng.integers(1, 20)), process)
        time.sleep(rng.uniform(0, 0.3))
        assert process.poll() is None, "the run ended before it could be killed"
        kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*/*.json")}
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert all(path.stat().st_mtime_ns == stamp for path, stamp in kept.items()), "a cell was repeated"
    assert start(tmp_path, "--jobs", str(jobs)).wait() == 0
    assert answers(tmp_path) == undisturbed
    assert not list(tmp_path.rglob(".*.part"))


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same_files(tmp_path, undisturbed, monkeypatch):
    distributed = pytest.importorskip("distributed")
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            workers = client.run(os.getpid)
        assert len(set(workers.values())) == 2
        victim = next(iter(workers.values()))

        def kill_in_the_middle() -> None:
            while written(tmp_path) < CELLS // 2:
                time.sleep(0.02)
            os.kill(victim, signal.SIGKILL)

        threading.Thread(target=kill_in_the_middle, daemon=True).start()
        assert start(tmp_path, "--dask", cluster.scheduler_address).wait() == 0
        with pytest.raises(ProcessLookupError):
            os.kill(victim, 0)
    assert answers(tmp_path) == undisturbed


POISON = 1


def deadly(task: Task) -> Result:
    """Stands for `work` where a cell brings its process down."""
    if task.cell.trial == POISON:
        os._exit(1)
    return Result(task.method, task.cell, 0.5, 0.0, 1, "alive", Timing(0.0, 0.0))


def test_a_cell_that_brings_its_process_down_costs_no_other(monkeypatch):
    monkeypatch.setattr(run, "work", deadly)
    tasks = sorted(
        tasks_of(["truth"], ["seir"], [0.0], range(6), PROTOCOL, BUDGET), key=lambda t: t.cell.trial != POISON
    )
    found = {result.cell.trial: result.ending for result in run.in_processes(tasks, 1)}
    assert found == {**dict.fromkeys(range(6), "alive"), POISON: "the process that computed it died"}


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(tmp_path, undisturbed):
    """One of two local processes is killed, not the run itself."""
    process = start(tmp_path, "--jobs", "2")
    wait_for(tmp_path, 20, process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        pytest.skip("this system does not list children")
    workers = [
        int(pid) for pid in children.read_text().split() if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    os.kill(workers[0], signal.SIGKILL)
    assert process.wait() == 0
    assert answers(tmp_path) == undisturbed
