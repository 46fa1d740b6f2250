"""Censored measurements as people write them: in Python, in tables, for Monolix and NONMEM, and in files of fits."""

import math

import numpy as np
import pytest

import odejet as oj
from odejet.data.censored import read_limits

INF = math.inf
TIMES = [0.0, 1.0, 2.0, 3.0, 4.0]


def limits_of(data, output="y", number=0):
    series = data.experiments[number].outputs[output]
    return list(zip(series.limits.lower.tolist(), series.limits.upper.tolist(), strict=True))


EXPECTED = [(5.0, 5.0), (2.0, 2.0), (-INF, 0.5), (1.0, 3.0), (4.0, INF)]


@pytest.mark.parametrize(
    "values",
    [
        [5, 2, "<0.5", "1..3", ">4"],
        [5, 2, oj.Censored(below=0.5), oj.Censored(above=1, below=3), oj.Censored(above=4)],
        oj.Censored(
            [5, 2, math.nan, math.nan, math.nan],
            below=[math.nan, math.nan, 0.5, 3, math.nan],
            above=[math.nan, math.nan, math.nan, 1, 4],
        ),
    ],
)
def test_limits_in_python(values):
    data = oj.Data(TIMES, {"y": values})
    assert limits_of(data) == EXPECTED
    series = data.experiments[0].outputs["y"]
    assert series.observed.values.tolist() == [5, 2] and series.censored.tolist() == [False, False, True, True, True]
    own = oj.Data(None, {"y": (TIMES, values)})
    assert limits_of(own) == EXPECTED


def test_limits_in_tables(tmp_path):
    data = oj.Data(TIMES, {"y": [5, 2, "<0.5", "1..3", ">4"], "z": [1, 2, 3, 4, 5]})
    data.to_csv(tmp_path / "tidy.csv")
    again = oj.Data.from_csv(tmp_path / "tidy.csv")
    assert limits_of(again) == EXPECTED and again.experiments[0].outputs["z"].limits is None
    (tmp_path / "wide.csv").write_text("time;y\n0;5\n1;2\n2;< 0,5\n3;1,0..3\n4;>4\n")
    assert limits_of(oj.Data.from_csv(tmp_path / "wide.csv")) == EXPECTED
    frame = pytest.importorskip("pandas").DataFrame({"time": TIMES, "y": [5, 2, "<0.5", "1..3", ">4"]})
    assert limits_of(oj.Data.from_dataframe(frame)) == EXPECTED
    assert limits_of(oj.Data.from_dataframe(data.to_dataframe())) == EXPECTED


@pytest.mark.parametrize(
    "table",
    [
        "ID,TIME,AMT,DV,CENS,LIMIT\n1,0,9,.,0,.\n1,1,.,5,0,.\n1,2,.,0.5,1,.\n1,3,.,0.5,1,0\n1,4,.,50,-1,.\n",
        "ID,TIME,AMT,DV\n1,0,9,.\n1,1,.,5\n1,2,.,<0.5\n1,3,.,0..0.5\n1,4,.,>50\n",
    ],
)
def test_monolix_and_nonmem(table, tmp_path):
    (tmp_path / "table.csv").write_text(table)
    expected = [(5.0, 5.0), (-INF, 0.5), (0.0, 0.5), (50.0, INF)]
    assert limits_of(oj.Data.from_csv(tmp_path / "table.csv"), "DV") == expected


def test_flags_of_values_below_a_limit_of_quantification(tmp_path):
    table = "ID,TIME,AMT,DV,BLQ,LLOQ\n1,0,9,.,0,0.5\n1,1,.,5,0,0.5\n1,2,.,.,1,0.5\n1,3,.,0,1,0.5\n"
    (tmp_path / "table.csv").write_text(table)
    assert limits_of(oj.Data.from_csv(tmp_path / "table.csv"), "DV") == [(5.0, 5.0), (-INF, 0.5), (-INF, 0.5)]
    (tmp_path / "table.csv").write_text("ID,TIME,AMT,DV,BLQ\n1,0,9,.,0\n1,1,.,5,0\n1,2,.,0.5,1\n")
    assert limits_of(oj.Data.from_csv(tmp_path / "table.csv"), "DV") == [(5.0, 5.0), (-INF, 0.5)]


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("<x", "line 3, column 'y': '<x' is no limit; write <0.5, >100 or 0.1..0.5 with numbers"),
        ("<", "is no limit"),
        ("5..3", "the lower limit 5 is not below the upper limit 3; exchange or correct them"),
        ("3..3", "the lower limit 3 is not below the upper limit 3"),
        ("<1e999", "a limit must be a finite number"),
    ],
)
def test_nonsense_in_a_file_is_one_sentence(cell, sentence, tmp_path):
    (tmp_path / "wide.csv").write_text(f"time,y\n0,1\n1,{cell}\n")
    with pytest.raises(oj.DataError) as error:
        oj.Data.from_csv(tmp_path / "wide.csv")
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (oj.Censored, "needs a limit; give below, above or both"),
        (lambda: oj.Data([0, 1], {"y": [1, oj.Censored(below="a")]}), "the values of 'y': a limit must be a finite"),
        (lambda: oj.Data([0, 1], {"y": [1, oj.Censored(below=1, above=2)]}), "the lower limit 2 is not below"),
        (lambda: oj.Data([0, 1], {"y": oj.Censored([1, 2, 3], below=[1, 2])}), "values and limits have different"),
        (lambda: oj.Data([0, 1], {"y": oj.Censored([3, 5], below=4)}), "the value 3 is beyond its own limit, below=4"),
        (lambda: oj.Data([0, 1], {"y": oj.Censored([3, 5], above=[4, 4])}), "the value 5 is beyond its own limit"),
        (lambda: oj.Data(["<1", 1], {"y": [1, 2]}), "time must be numbers"),
    ],
)
def test_nonsense_in_python_is_one_sentence(make, sentence):
    with pytest.raises(oj.DataError) as error:
        make()
    assert sentence in str(error.value)


def test_what_may_be_the_limit_itself():
    assert read_limits("<=5")[1] == np.nextafter(5.0, 6) and read_limits("≥ 5")[0] == np.nextafter(5.0, 4)
    assert read_limits("-3..-1e-1") == (-3.0, -0.1)
