"""Workers: the same answers in the same order, whoever gives them, and no process that outlives its use."""

import time
from dataclasses import replace

import numpy as np
import pytest

import odejet as oj
from odejet.clock import now
from odejet.problem import Problem
from odejet.search import workers as module
from odejet.search.ground import Ground
from odejet.search.portfolio import explore
from odejet.search.windows import GrowingWindows
from odejet.search.workers import Workers

TIMES = np.linspace(0, 8, 20)
WINDOWS = GrowingWindows()


@pytest.fixture(scope="module")
def problem():
    model = oj.Model({"x": "-k*x + d*z", "z": "k*x - d*z - e*z"}, {"y": "x"}, initial={"z": 0})
    clean = oj.simulate(model, {"k": 0.8, "d": 0.3, "e": 0.2}, {"x": 2.0}, TIMES)["y"]
    noise = 0.01 * np.random.default_rng(4).normal(size=len(TIMES))
    return Problem(model, oj.Data(TIMES, {"y": clean + noise}), positive=True)


@pytest.fixture
def ground(problem):
    return Ground(problem.misfit, problem.frame(), None, now() + 100)


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", -1.0)


def ready(workers):
    """The workers, once they are started and wait."""
    if not workers.workers:
        workers._idle()
    while not all(worker.is_idle for worker in workers.workers):
        time.sleep(0.02)
    return workers.workers


def starts(problem, count=6):
    rng = np.random.default_rng(0)
    return [problem.sizes * np.exp(rng.uniform(-2, 2, len(problem.sizes))) for _ in range(count)]


def test_answers_are_in_order_and_those_of_this_process(problem, ground, at_once, monkeypatch):
    items = starts(problem)
    expected = [WINDOWS.lead(ground, z).rms for z in items]
    here = []
    own = GrowingWindows.lead
    with Workers(ground, 2) as workers:
        processes = [worker.process for worker in ready(workers)]

        def lead(self, ground, z):  # sent by its name: elsewhere it is the plain one
            here.append(z)
            return own(self, ground, z)

        monkeypatch.setattr(GrowingWindows, "lead", lead)
        found = [end.rms for end in workers.ahead(WINDOWS.lead, items)]
    assert found == expected
    assert 0 < len(here) < len(items)  # the others came from elsewhere
    assert all(process.poll() is not None for process in processes)


def test_what_is_not_wanted_is_not_done(ground):
    done = []

    def double(_, i):
        return done.append(i) or 2 * i

    with Workers(ground, 0) as workers:
        assert list(workers.ahead(double, range(4), lambda i: i % 2 == 0)) == [0, None, 4, None]
        assert next(workers.ahead(double, range(10, 14))) == 20
    assert done == [0, 2, 10]


def test_a_worker_that_is_lost_is_not_missed(problem, ground, at_once):
    items = starts(problem)
    expected = [WINDOWS.lead(ground, z).rms for z in items]
    with Workers(ground, 2) as workers:
        first, second = ready(workers)
        answers = workers.ahead(WINDOWS.lead, items)
        found = [next(answers).rms]
        first.process.kill()
        found += [end.rms for end in answers]
        assert found == expected and second.process.poll() is None


def test_a_search_is_the_same_for_any_number_of_jobs(problem, at_once, monkeypatch):
    idle = Workers._idle

    def waited(self):
        if self.count and not self.workers:
            idle(self)
            ready(self)
        return idle(self)

    monkeypatch.setattr(Workers, "_idle", waited)
    frame = {"positive": True, "scale": problem.sizes, "starts": 128, "agree": 100}
    alone = explore(problem.misfit, **frame)
    found = explore(replace(problem.misfit, jobs=3), **frame)
    assert len(alone) > 3
    assert [(one.cost, one.z.tolist(), one.evaluations) for one in found] == [
        (one.cost, one.z.tolist(), one.evaluations) for one in alone
    ]
