"""Workers: the same answers in the same order, whoever gives them, and none that is missed when it is lost."""

from __future__ import annotations

import math
import pickle
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest

import odejet as oj
from odejet.clock import now
from odejet.problem import Problem
from odejet.search import workers as module
from odejet.search.ground import Ground, roughly
from odejet.search.pool import Pool
from odejet.search.portfolio import explore
from odejet.search.windows import GrowingWindows
from odejet.search.workers import Question, Workers, answer, executor_of

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


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", -1.0)


@pytest.fixture(scope="module")
def pool():
    with Pool(2) as pool:
        wait_for(lambda: pool.ready == 2)
        yield pool


class Here(Executor):
    """Answers at once, in this process."""

    _max_workers = 2

    def __init__(self):
        self.messages = []

    def submit(self, function, /, message):
        self.messages.append(message)
        future = Future()
        future.set_result(function(message))
        return future


class Silent(Here):
    """Never answers."""

    def submit(self, function, /, message):
        self.messages.append(message)
        future = Future()
        future.set_running_or_notify_cancel()
        return future


def starts(problem, count=6):
    rng = np.random.default_rng(0)
    return [problem.sizes * np.exp(rng.uniform(-2, 2, len(problem.sizes))) for _ in range(count)]


def wait_for(condition):
    while not condition():
        time.sleep(0.02)


def doubled(_, i):
    return 2 * i


def test_answers_are_in_order_and_those_of_this_process(problem, ground, pool, monkeypatch):
    items, here, own = starts(problem, 8), [], GrowingWindows.lead
    expected = [own(WINDOWS, ground, z) for z in items]

    def lead(self, ground, z):  # sent by its name: elsewhere it is the plain one
        here.append(z)
        return own(self, ground, z)

    monkeypatch.setattr(GrowingWindows, "lead", lead)
    with Workers(ground, pool) as workers:
        answers = workers.ahead(WINDOWS.lead, items)
        workers.foresee(answers, answers.questions)
        wait_for(lambda: len(answers.upcoming) == len(items))
        found = list(answers)
    assert [(end.rms, end.z.tolist()) for end in found] == [(end.rms, end.z.tolist()) for end in expected]
    assert not here


def test_what_is_not_wanted_is_not_done(ground):
    done = []

    def double(_, i):
        return done.append(i) or 2 * i

    workers = Workers(ground)
    assert list(workers.ahead(double, range(4), lambda i: i % 2 == 0)) == [0, None, 4, None]
    assert next(iter(workers.ahead(double, range(10, 14)))) == 20
    assert done == [0, 2, 10]


def test_what_is_heavy_is_sent_once(ground):
    executor = Here()
    with Workers(ground, executor) as workers:
        assert list(workers.ahead(doubled, range(8))) == [2 * i for i in range(8)]
    sizes = [len(message) for message in executor.messages]
    assert sizes[0] > 10 * sizes[1] and len(sizes) == 8


def test_who_lacks_the_object_is_sent_it(ground):
    package = module._Package.of(ground)
    question = Question("", doubled, 21)
    told = []
    thread = threading.Thread(target=lambda: told.append(answer(package.message(question, 1.0, whole=False))))
    thread.start()
    thread.join()
    assert told == [module._LACKING]
    assert pickle.loads(answer(package.message(question, 1.0, whole=True)))[0] == 42
    assert pickle.loads(answer(package.message(question, 1.0, whole=False)))[0] == 42

    class Forgetful(Here):
        def submit(self, function, /, message):
            module._DESK.subjects.clear()
            return super().submit(function, message)

    with Workers(ground, Forgetful()) as workers:
        assert list(workers.ahead(doubled, range(8))) == [2 * i for i in range(8)]


@pytest.mark.parametrize("heard", [False, True])
def test_answers_that_never_come_are_given_here(ground, monkeypatch, heard):
    monkeypatch.setattr(module, "LEAST_WAIT", 0.05)
    executor = Silent()
    with Workers(ground, executor) as workers:
        workers.heard = heard
        assert list(workers.ahead(doubled, range(50))) == [2 * i for i in range(50)]
        assert workers.silent == heard
    assert len(executor.messages) == 2  # nobody asks again and again who does not answer


def test_a_broken_executor_is_asked_no_more(ground):
    class Broken(Here):
        def submit(self, function, /, message):
            if self.messages:
                raise BrokenExecutor("a process ended")
            self.messages.append(message)
            future = Future()
            future.set_exception(BrokenExecutor("a process ended"))
            return future

    with Workers(ground, Broken()) as workers:
        assert list(workers.ahead(doubled, range(6))) == [2 * i for i in range(6)]
        assert workers.executor is None


def test_an_error_is_that_of_this_process(ground, pool):
    with Workers(ground, pool) as workers, pytest.raises(TypeError, match="NoneType"):
        list(workers.ahead(doubled, [1, None, 3]))


def test_a_process_that_dies_is_not_missed(problem, ground, pool):
    items = starts(problem)
    expected = [WINDOWS.lead(ground, z).rms for z in items]
    with Workers(ground, pool) as workers:
        answers = iter(workers.ahead(WINDOWS.lead, items))
        found = [next(answers).rms]
        pool._members[0].process.kill()
        found += [end.rms for end in answers]
    assert found == expected


def test_what_is_foreseen_is_known_before_it_is_asked(problem, ground):
    questions = [roughly(z, 10) for z in starts(problem)]
    with Workers(ground, Here()) as workers:
        workers.foresee("laps", questions)
        known = [workers.known(question.key) for question in questions]
        assert all(one is not None for one in known)
        assert [workers.ask(question) is one for question, one in zip(questions, known, strict=True)] == [True] * 6
        assert workers.known(questions[0].key) is None  # it was handed over


def search(problem, executor=None):
    asked = {"positive": True, "scale": problem.sizes, "starts": 128, "agree": 100}
    return [(one.cost, one.z.tolist(), one.evaluations) for one in explore(problem.misfit, **asked, executor=executor)]


@pytest.fixture(scope="module")
def alone(problem):
    found = search(problem)
    assert len(found) > 3
    return found


def test_a_search_is_the_same_with_processes(problem, alone, pool):
    assert search(problem, pool) == alone


def test_a_search_is_the_same_with_threads(problem, alone):
    with ThreadPoolExecutor(2) as threads:
        assert search(problem, threads) == alone


def test_a_search_is_the_same_when_everything_is_known_ahead(problem, alone):
    assert search(problem, Here()) == alone


def test_deadlines_hold_where_nobody_answers(problem, monkeypatch):
    begin = time.monotonic()
    explore(problem.misfit, positive=True, scale=problem.sizes, agree=10**6, time_limit=1.0, executor=Silent())
    assert time.monotonic() - begin < 60  # the limit itself is counted by the clock of the search


def test_executors_are_told_from_other_things():
    with ThreadPoolExecutor(1) as threads:
        assert executor_of(threads) is threads
    assert executor_of(3) is None and executor_of(math) is None
