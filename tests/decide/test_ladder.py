"""The ladder: which rungs are climbed in which order, when it ends, and what is left when it is interrupted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odejet import Data, Model, Problem
from odejet.budget import Budget
from odejet.decide import Options, Record, Task, ladder, stages
from odejet.decide.answer import answer
from odejet.decide.ladder import EVERY, FEW_TIMES, NOWHERE, can_smooth, climb, is_over, rungs, search, wants_more
from odejet.decide.optima import Optimum, Provenance
from odejet.decide.optimality import AGREEING, CONFIRMED
from odejet.decide.state import AGREE, BOX, State
from odejet.progress import Progress
from odejet.search.refine import Ending, refine

DECAY = Model({"x": "-k*x"}, {"y": "x"})
TIMES = np.linspace(0, 5, 121)
NOISE = 0.01 * np.random.default_rng(0).standard_normal(len(TIMES))


def state(values: np.ndarray | None = None, time_limit: float = 60.0, every: int = 1, **options: object) -> State:
    """The beginning of a search of a decay."""
    values = np.exp(-0.7 * TIMES) + NOISE if values is None else values
    problem = Problem(DECAY, Data(TIMES[::every], {"y": values[::every]}))
    told = Options(time_limit=time_limit, **options)
    return State.of(Task(problem, told, Budget.within(time_limit), Record(Progress(False))))


def reached(begin: State, starts: int, rung: str = BOX, rounds: int = 1, **changes: object) -> State:
    """A state in which so many starts of a rung have ended at the optimum."""
    misfit = begin.task.misfit
    end = replace(refine(misfit, np.array([1.0, 0.7])), **changes)
    ends = (Optimum(misfit, end, Provenance(rung)) for _ in range(starts))
    return replace(begin, optima=begin.optima.adding(*ends), rounds=rounds, levels=np.array([0.01]))


WRONG = np.exp(-0.7 * TIMES) + 0.1 * np.sin(4 * TIMES) + NOISE
"""What no decay explains."""


def test_the_box_comes_before_all_shooting_times_and_first_where_points_are_few():
    assert rungs(state()) == [FEW_TIMES, stages.search_box, EVERY]
    assert rungs(state(every=30)) == [stages.search_box, FEW_TIMES, EVERY]
    assert rungs(state(effort="full")) == [EVERY, stages.search_box]
    assert rungs(state(effort="quick")) == [FEW_TIMES]
    assert rungs(state(refine=False)) == [FEW_TIMES]


@pytest.mark.parametrize(("points", "outputs", "expected"), [(6, 1, True), (5, 1, False), (4, 2, True), (3, 2, False)])
def test_derivatives_want_times(points, outputs, expected):
    """Two unknowns: one output tells them by its first derivative, two outputs by their values."""
    times = np.arange(points, dtype=float)
    model = Model({"x": "-k*x"}, {f"y{i}": f"{i + 1}*x" for i in range(outputs)})
    data = Data(times, {f"y{i}": (i + 1) * np.exp(-0.1 * times) for i in range(outputs)})
    assert can_smooth(Problem(model, data)) is expected


def test_one_experiment_with_times_enough_is_enough():
    short, long = (Data(times, {"y": np.exp(-times)}) for times in (TIMES[:3], TIMES))
    assert can_smooth(Problem(DECAY, Data.join([short, long])))


def test_a_search_ends_with_its_certificate_or_with_what_explains_the_data():
    begin = state()
    assert not is_over(begin)
    assert is_over(reached(begin, 2, "few", rounds=0))  # certified
    assert not is_over(reached(begin, 1, "few", rounds=0))
    assert is_over(reached(begin, 1))  # more derivatives would not help
    assert not is_over(reached(state(WRONG), AGREE))
    assert not is_over(reached(state(effort="full"), 2, "few", rounds=0))
    assert is_over(state(time_limit=0.0))


def test_a_search_without_certificate_goes_on_while_there_is_time():
    assert wants_more(reached(state(), 1)) and wants_more(reached(state(WRONG), 1))
    assert not wants_more(reached(state(), AGREE))  # certified
    assert wants_more(reached(state(WRONG), AGREE))  # another optimum may explain these data
    several = reached(state(WRONG), AGREE, rounds=20)
    ends = [replace(several.best, refined=replace(several.best.refined, cost=several.best.cost + i)) for i in range(9)]
    assert wants_more(replace(several, optima=several.optima.adding(*ends)))
    assert not wants_more(reached(state(), 1, rounds=0))  # no search of the box was wanted
    assert not wants_more(reached(state(), 1, ending=Ending.EXACT))
    assert not wants_more(reached(state(time_limit=0.0), 1))


def test_a_search_that_cannot_earn_a_certificate_comes_to_an_end():
    begin = state(WRONG)
    assert not wants_more(reached(begin, AGREEING[CONFIRMED]))  # nothing explains these data
    few = state(every=60)  # three points of two unknowns
    assert wants_more(reached(few, AGREE - 1)) and not wants_more(reached(few, AGREE))
    assert wants_more(replace(begin, rounds=NOWHERE - 1)) and not wants_more(replace(begin, rounds=NOWHERE))


def test_an_answer_without_certificate_says_why_there_was_no_further_search():
    assert "the time limit was reached" in answer(reached(state(WRONG, time_limit=1e-9), AGREE)).message
    ended = answer(reached(state(WRONG), AGREEING[CONFIRMED])).certificate
    assert ended.search == "confirmed" and ended.adequacy == "no" and not ended.granted
    few = answer(reached(state(WRONG), AGREE)).certificate
    assert few.search == "open" and "8 of 8 starts in the box ended here" in few.search.sentence


def test_the_search_goes_on_with_other_starts_until_very_many_agree(monkeypatch):
    before, drawn = reached(state(WRONG, seed=5), 1, "few", rounds=0), []
    rounds = 3 + NOWHERE

    def late(*_: object, seed: object, agree: int, **__: object) -> list:
        drawn.append((seed, agree))
        assert before.best is not None
        return [before.best.refined] * (AGREEING[CONFIRMED] if len(set(drawn)) >= rounds else 0)

    monkeypatch.setattr(stages, "explore", late)
    monkeypatch.setattr(stages, "shoot", lambda state, rung: iter(()))
    *_, last = climb(before)
    assert last.rounds == rounds
    different = list(dict.fromkeys(drawn))
    assert len(different) == rounds and different[0] == (5, AGREE)
    assert {agree for _, agree in different} == {AGREE}


def test_where_the_box_comes_first_a_few_starts_come_before_all_else(monkeypatch):
    monkeypatch.setattr(stages, "identify", interrupt)
    steps = climb(state(every=30))
    last = next(steps)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert last.best is not None
    assert last.best.refined.z == pytest.approx([1.0, 0.7], rel=0.1)
    assert last.rounds == 0  # the search of the box is still to come
    with pytest.raises(KeyboardInterrupt):
        next(climb(state()))


def test_states_only_grow():
    """Every step adds to what is known and changes nothing of what was."""
    before: list[State] = []
    for now in climb(state()):
        for old in before:
            assert now.optima.found[: len(old.optima.found)] == old.optima.found
        before.append(now)
    assert before[0].best is None and before[-1].is_certified
    assert [old.is_certified for old in before] == sorted(old.is_certified for old in before)


def test_an_interruption_leaves_what_the_last_step_knew(monkeypatch):
    monkeypatch.setattr(ladder, "is_over", interrupt)
    left = search(state().task)
    assert not left.certificate.granted and left.message == "not certified: the fit was interrupted"
    assert left.best.z == pytest.approx([1.0, 0.7], rel=0.05)
    monkeypatch.setattr(stages, "smooth", interrupt)
    with pytest.raises(KeyboardInterrupt):
        search(state().task)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_answer_of_no_search_says_so_first():
    told = search(state(time_limit=1e-9).task)
    assert told.provenance.rung == "none"
    assert told.message.startswith("not certified: no search led to these values")
    assert "the time limit was reached" in told.message
