"""Columns: tables under the names of their authors become tables under those of a model."""

from __future__ import annotations

import pytest

from odejet import DataError
from odejet.io import columns
from odejet.io.csv import data_of

WIDE = b"# counted by hand\nDay (since May);Prey;Rain;subject\n0;1,5;no;a\n\n1;2,5;yes;a\n"
TIDY = b"observableId,time,measurement\nprey,0,1.5\nrain,0,7\nprey,1,2.5\n"


def test_a_glance() -> None:
    seen = columns.glance(WIDE, "counts.csv")
    assert (seen.kind, seen.rows) == ("wide", 2)
    assert seen.names == ("Day (since May)", "Prey", "Rain", "subject")
    assert seen.first[0] == ("0", "1,5", "no", "a")
    assert columns.glance(TIDY, "t.csv").names == ("prey", "rain")
    assert columns.glance(b"TIME,DV,AMT\n0,1,.\n", "n.csv").kind == "nonmem"
    assert columns.glance(b"time,state,amount\n0,gut,5\n", "d.csv").kind == "doses"


def test_guesses() -> None:
    names = columns.glance(WIDE, "counts.csv").names
    guessed = columns.guess(names, ("y1", "rain", "k"), ("y1",))
    assert guessed == {"Day (since May)": "time", "Prey": "y1", "Rain": "rain", "subject": "experimentId"}
    assert columns.guess(("a", "b", "c"), ("y1",), ("y1",)) == {"a": "time", "b": "", "c": ""}
    table = columns.glance(b"a,b,c\n0,-.5,sunny\n1,,wet\n", "counts.csv")
    assert table.words == ("c",)
    assert columns.guess(table.names, ("y1",), ("y1",), words=table.words) == {"a": "time", "b": "y1", "c": ""}


def test_a_table_under_other_names_has_the_same_numbers() -> None:
    data = data_of(columns.retitled(WIDE, {"Day (since May)": "time", "Prey": "y1"}, "counts.csv"), "counts.csv")
    series = data.experiments[0].outputs["y1"]
    assert (series.times.tolist(), series.values.tolist()) == ([0, 1], [1.5, 2.5])
    tidy = data_of(columns.retitled(TIDY, {"prey": "y1", "rain": ""}, "t.csv"), "t.csv")
    assert list(tidy.experiments[0].outputs) == ["y1"]
    assert tidy.experiments[0].outputs["y1"].values.tolist() == [1.5, 2.5]


def test_messages_name_the_line_of_the_file() -> None:
    wrong = WIDE.replace(b"2,5", b"two")
    with pytest.raises(DataError, match=r"counts\.csv: line 5, column 'y1': 'two' is not a number"):
        data_of(columns.retitled(wrong, {"Day (since May)": "time", "Prey": "y1"}, "counts.csv"), "counts.csv")


def test_two_columns_cannot_be_one_thing() -> None:
    with pytest.raises(DataError, match="cannot both be 'y1'"):
        columns.retitled(b"t,a,b\n0,1,2\n", {"t": "time", "a": "y1", "b": "y1"}, "x.csv")
