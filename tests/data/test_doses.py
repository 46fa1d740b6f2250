"""Doses in the forms in which people have them, and what they become."""

import numpy as np
import pandas
import pytest

import odejet as oj

PLAIN = {"time": [0, 12.5], "state": ["gut", "blood"], "amount": [100, "F*50"]}


def doses(table, **known):
    return oj.Data([1.0, 2.0], {"y": [1.0, 2.0]}, doses=table, **known).experiments[0].doses


def test_columns_rows_and_pandas_say_the_same():
    rows = [{key: column[i] for key, column in PLAIN.items()} for i in range(2)]
    found = doses(PLAIN)
    assert found == doses(rows) == doses(pandas.DataFrame(PLAIN))
    assert [(str(dose.time), dose.state, str(dose.amount)) for dose in found] == [
        ("0", "gut", "100"),
        ("12.5", "blood", "F*50"),
    ]


def test_a_single_value_stands_for_a_column():
    assert [dose.state for dose in doses({"time": [0, 1, 2], "state": "gut", "amount": 5})] == ["gut"] * 3


def test_what_becomes_of_a_dose():
    bolus, drip = doses(
        {"time": [0, "tlag"], "state": "x", "amount": [3, 8], "duration": [np.nan, 2], "every": 12, "count": 4}
    )
    assert (
        bolus.event(["x"], "x") == oj.Event(at=0, set={"x": "x + 3"}, every=12, count=4) and bolus.ending("x") is None
    )
    assert drip.event(["x"], "r") == oj.Event(at="tlag", set={"r": "r + 8/2"}, every=12, count=4)
    assert drip.ending("r") == oj.Event(at="tlag + 2", set={"r": "r - 8/2"}, every=12, count=4)


def test_columns_of_nonmem():
    table = {
        "TIME": [0, 1, 2, 3, 4],
        "AMT": [100, 0, 50, 20, 0],
        "EVID": [1, 0, 1, 4, 3],
        "CMT": [1, 2, 2, 1, 1],
        "RATE": [0, 0, 25, 0, 0],
        "II": [12, 0, 0, 0, 0],
        "ADDL": [3, 0, 0, 0, 0],
        "DV": [0, 3.3, 0, 0, 0],
    }
    first, infusion, emptied, filled, last = doses(table)
    assert (first.state, float(first.every.value), first.count) == ("1", 12, 4)
    assert (infusion.state, float(infusion.duration.value)) == ("2", 2) and infusion.every is None
    assert emptied.amount is None and float(filled.amount.value) == 20 and last.amount is None
    assert emptied.event(["x", "z"], "x") == oj.Event(at=3, set={"x": 0, "z": 0})


def test_an_experiment_begins_with_its_first_dose():
    table = {"time": [-2.0, 5.0], "state": "x", "amount": 1}
    data = oj.Data([1.0, 2.0], {"y": [1.0, 2.0]})
    assert oj.Data([1.0, 2.0], {"y": [1.0, 2.0]}, doses=table).experiments[0].start == -2
    assert data.dosed(table).experiments[0].start == -2
    assert data.dosed({"time": "lag", "state": "x", "amount": 1}).experiments[0].start == 1


def test_doses_go_to_the_experiment_they_name_or_to_all():
    both = oj.Data.join([oj.Data([1.0, 2.0], {"y": [1.0, 2.0]}, name=name) for name in ("a", "b")])
    found = both.dosed({"time": [0, 0, 1], "state": "x", "amount": [1, 2, 3], "experimentId": ["a", None, "b"]})
    assert [[str(dose.amount) for dose in one.doses] for one in found.experiments] == [["2", "1"], ["2", "3"]]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("gut", "doses must be a table"),
        ([1, 2], "dose 1: expected a row"),
        ({"time": [0, 1], "state": ["a"], "amount": 1}, "different lengths, 1 and 2"),
        ({"time": 0, "amount": 1}, "dose 1: the state is missing"),
        ({"time": 0, "state": "x", "amount": "lots of"}, "dose 1: the dose's 'amount'"),
        ({"time": 0, "state": "x", "amount": np.inf}, "dose 1: the dose's 'amount' must be a finite number"),
        ({"time": 0, "state": "x", "amount": 1, "duration": -2}, "dose 1: the duration -2 is negative"),
        ({"time": 0, "state": "x", "amount": 1, "every": -2}, "dose 1: the every -2 is negative"),
        ({"time": 0, "state": "x", "amount": 1, "count": 3}, "3 doses need a time between them"),
        ({"time": 0, "state": "x", "amount": 1, "every": 3, "count": 1.5}, "count must be a whole number"),
        ({"time": 0, "state": "x", "amount": 1, "rate": 3}, "the column 'rate' is not understood"),
        ({"TIME": 0, "AMT": 10, "RATE": -3}, "RATE -3 is not understood"),
        ({"TIME": 0, "AMT": 10, "SS": 1}, "steady state needs the time between doses as a number; give II"),
        ({"TIME": 0, "AMT": 10, "SS": 5, "II": 12}, "SS 5 is not understood"),
        ({"TIME": 0, "AMT": 0, "EVID": 1, "RATE": 5, "SS": 1}, "constant infusion"),
        ({"TIME": 0, "AMT": 10, "RATE": 0.5, "SS": 1, "II": 12}, "lasts 20, longer than its II of 12"),
        ({"TIME": 0, "AMT": 10, "ADDL": 2}, "ADDL 2 needs the time between doses; give II"),
        ({"time": "lag", "state": "x", "amount": 1, "every": 12, "steady": 1}, "at a time that is a number"),
        (
            {"time": 0, "state": "x", "amount": 1, "every": 12, "steady": "yes"},
            "steady is 1 for a dose at",
        ),
        ({"TIME": 0, "AMT": 10, "EVID": 7}, "EVID 7 is not understood"),
        ({"TIME": 0, "AMT": 10, "ADDL": 1.5}, "ADDL must be a whole number"),
        ({"AMT": 10}, "TIME is missing"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(table, sentence):
    with pytest.raises(oj.DataError, match=sentence):
        doses(table)


def test_doses_of_experiments_that_are_not_there():
    with pytest.raises(oj.DataError, match="there is no experiment 'c' that doses are given to"):
        oj.Data([1.0], {"y": [1.0]}, name="a").dosed({"time": 0, "state": "x", "amount": 1, "experimentId": "c"})
    with pytest.raises(oj.DataError, match="several experiments"):
        doses({"time": 0, "state": "x", "amount": 1, "experimentId": ["a", "b"]})
