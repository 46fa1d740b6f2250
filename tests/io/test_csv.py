"""CSV files: everything that programs and people write is read, and everything else is refused with its line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet.data import Data
from odejet.data.table import experiments
from odejet.errors import DataError
from odejet.io import csv


def numbers(text: str | bytes) -> dict[str, list[float]]:
    data = text if isinstance(text, bytes) else text.encode()
    return {name: column.tolist() for name, column in csv.parse(data, "data.csv").numbers.items()}


PLAIN = {"time": [0.0, 0.5], "y1": [1.0, -2.5]}


@pytest.mark.parametrize(
    "text",
    [
        "time,y1\n0,1\n0.5,-2.5\n",
        "time,y1\r\n0,1\r\n0.5,-2.5",
        "time,y1\r0,1\r0.5,-2.5\r",
        "time, y1 \n 0 , 1\n0.5,  -2.5e0\n",
        "time;y1\n0;1\n0,5;-2,5\n",
        "time;y1\n0;1\n0.5;-2.5\n",
        "time\ty1\n0\t1\n0.5\t-2.5\n",
        '"time","y1"\n"0","1"\n"0.5","-2.5"\n',
        '# measured, "today\n\ntime,y1\n  # a remark, with, commas\n0,1\n\n0.5,-2.5\n,\n',
        "time,y1,\n0,1,\n0.5,-2.5,\n",
        "time,y1\n0,1,,\n0.5,-2.5\n",
    ],
)
def test_one_table_in_many_ways(text):
    assert numbers(text) == PLAIN


def test_a_byte_order_mark_is_no_part_of_the_first_name():
    assert numbers("time,y1\n0,1\n0.5,-2.5\n".encode("utf-8-sig")) == PLAIN


def test_cells_that_say_missing():
    table = numbers("time,y1\n0,\n1,NA\n2,nan\n3,NaN\n4,n/a\n5,null\n6,7\n")
    assert np.isnan(table["y1"]).tolist() == [True] * 6 + [False]


def test_text_is_kept_apart():
    table = csv.parse(b"observableId,time,measurement,experimentId\ny1,0,1,a\n y2 ,1,2,b\ny1,2,3,a\n", "data.csv")
    assert table.tidy
    assert table.texts["observableId"].names == ("y1", "y2")
    assert table.texts["observableId"].codes.tolist() == [0, 1, 0]
    assert list(table.numbers) == ["time", "measurement"]


REFUSED = [
    ("", "data.csv: the file is empty"),
    ("\n\n# nothing\n", "data.csv: the file is empty"),
    ("time,y1\n", "data.csv: there are no measurements below the first line"),
    ("t,y1\n0,1\n", "data.csv: there is no column 'time'"),
    ("Time,y1\n0,1\n", "data.csv: there is no column 'time'; did you mean 'Time'?"),
    ("observableId,time\ny1,0\n", "data.csv: there is no column 'measurement'"),
    (",time,y1\n0,0,1\n", "data.csv: column 1 has no name"),
    ("time,y1,y1\n0,1,2\n", "data.csv: two columns are called 'y1'"),
    ("time,y1,time\n0,1,2\n", "data.csv: two columns are called 'time'"),
    ("time,y1\n0,1\n1,two\n", "data.csv: line 3, column 'y1': 'two' is not a number"),
    ("# a\n\ntime,y1\n0,1\n#b\n1,0x10\n", "data.csv: line 6, column 'y1': '0x10' is not a number"),
    ("time,y1\n0,1_000\n", "data.csv: line 2, column 'y1': '1_000' is not a number; write 1000"),
    ("time;y1\n0;1_000,5\n", "data.csv: line 2, column 'y1': '1_000,5' is not a number"),
    ("time,y1\n0,１２.５\n", "data.csv: line 2, column 'y1': '１２.５' is not a number; write 12.5"),
    ("time,y1\n٣,1\n", "data.csv: line 2, column 'time': '٣' is not a number; every line needs a time"),
    ("time,y1\n2024-03-01,1\n", "data.csv: line 2, column 'time': '2024-03-01' is not a number; dates and times"),
    (
        "time,y1\n2024-03-01T12:00:00Z,1\n",
        "data.csv: line 2, column 'time': '2024-03-01T12:00:00Z' is not a number; dates and times of day",
    ),
    ("time,y1\n12:30,1\n", "data.csv: line 2, column 'time': '12:30' is not a number; dates and times of day"),
    ("time,y1\n0,1\n1,1e999\n", "data.csv: line 3, column 'y1': '1e999' is not finite"),
    ("time,y1\n0,-inf\n", "data.csv: line 2, column 'y1': '-inf' is not finite"),
    ("time,y1\n0,1\n,2\n", "data.csv: line 3, column 'time': '' is not finite; every line needs"),
    ("time,y1\n0,1\n1\n", "data.csv: line 3 has 1 cell, but there are 2 columns"),
    ("time,y1\n0,1,2\n", "data.csv: line 2 has 3 cells, but there are 2 columns"),
    ("time,experimentId,simulationConditionId,y\n0,a,b,1\n", "data.csv: there are two columns for experiments"),
    (b"time,y1\n0,1\n1,\xff\n", "data.csv: line 3 is not UTF-8 text"),
    ("time,y1\n0,1\n".encode("utf-16"), "data.csv: line 1 is not UTF-8 text"),
    ("time,y1\n0," + "9" * 200_000, "data.csv: line 2 is not CSV"),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_refusals_name_file_and_line(text, sentence):
    with pytest.raises(DataError) as caught:
        numbers(text)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    for path, reason in (
        (tmp_path / "none.csv", "no such file"),
        (tmp_path, "a directory"),
        ("a\0b", "not a file name"),
    ):
        with pytest.raises(DataError, match=reason):
            csv.read(path)


# --- large files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def both(monkeypatch):
    """Both ways to read, the quick one for files of any size."""

    def read(text: str) -> list[csv.Table | str]:
        results: list[csv.Table | str] = []
        for limit in (1 << 40, 0):
            monkeypatch.setattr(csv, "_LARGE", limit)
            try:
                results.append(csv.parse(text.encode(), "data.csv"))
            except DataError as error:
                results.append(str(error))
        return results

    return read


def assert_same(careful: csv.Table | str, quick: csv.Table | str) -> None:
    if isinstance(careful, str) or isinstance(quick, str):
        assert careful == quick
        return
    assert list(careful.numbers) == list(quick.numbers)
    for name, column in careful.numbers.items():
        np.testing.assert_array_equal(column, quick.numbers[name])
    assert list(careful.texts) == list(quick.texts)
    for name, labels in careful.texts.items():
        assert labels.names == quick.texts[name].names
        assert labels.codes.tolist() == quick.texts[name].codes.tolist()


@pytest.mark.parametrize("text", [text for text, _ in REFUSED if isinstance(text, str)])
def test_the_quick_way_refuses_alike(both, text):
    assert_same(*both(text))


def test_the_quick_way_is_taken(monkeypatch):
    """Were it not, large files would be read ten times slower."""
    monkeypatch.setattr(csv, "_LARGE", 0)
    monkeypatch.setattr(csv.Parser, "transposed", lambda *_: pytest.fail("read the careful way"))
    for text in (
        "# remark\ntime,y1,y2\n0,1,\n1,NaN,3\n",
        "time;y1\n0;1,5\n",
        "time;y1\n0;1.5\n",
        "observableId,time,measurement\ny1,0,1\ny2,0,\n",
    ):
        assert csv.parse(text.encode(), "data.csv").numbers["time"][0] == 0


cells = st.one_of(
    st.floats(width=64).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", "NA", "nan", " 1", "2 ", "1,5", "x", "True", "-", "1_0", '"3"', "#", "٣", "1e", "+4", ".5"]),
)


@given(
    st.sampled_from(["time,a,b", "time;a;b", "observableId,time,measurement", "time,experimentId,a"]),
    st.lists(st.lists(cells, min_size=2, max_size=4), max_size=6),
)
def test_both_ways_read_the_same(header, rows):
    delimiter = ";" if ";" in header else ","
    text = "\n".join([header, *(delimiter.join(row) for row in rows)]).encode()
    results: list[csv.Table | str] = []
    for size in (1 << 40, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv, "_LARGE", size)
            try:
                results.append(csv.parse(text, "data.csv"))
            except DataError as error:
                results.append(str(error))
    assert_same(*results)


# --- anything at all --------------------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_random_bytes_never_surprise(data):
    read_or_refused(data)


ALPHABET = "timeyobservableIdmeasurementexperimentIdnoiseSd0123456789.,;\t\n\r\"'# -+eE_naif\0\u2028é"


@given(
    st.sampled_from(["", "time,y1\n", "time;u\n", "observableId,time,measurement\n"]), st.text(ALPHABET, max_size=200)
)
def test_text_like_a_table_never_surprises(header, text):
    read_or_refused((header + text).encode())


def read_or_refused(data: bytes) -> None:
    try:
        result = Data.of(experiments(csv.parse(data, "data.csv")))
    except DataError as error:
        assert "data.csv" in str(error)
        assert "\n" not in str(error)
    else:
        assert all(np.isfinite(series.values).all() for one in result.experiments for series in one.outputs.values())


# --- there and back ---------------------------------------------------------------------------------------------------

finite = st.floats(-1e59, 1e59).filter(lambda number: number == 0 or abs(number) > 1e-100)
labels = st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable() and text == text.strip() != "")


@st.composite
def data_sets(draw: st.DrawFn) -> Data:
    parts = []
    for name in draw(st.lists(labels, min_size=1, max_size=3, unique=True)):
        outputs, noise = {}, {}
        for output in draw(st.lists(st.sampled_from(["y1", "y2", "β", "_x"]), min_size=1, max_size=3, unique=True)):
            size = draw(st.integers(1, 6))
            column = st.lists(finite, min_size=size, max_size=size)
            outputs[output] = (draw(column), draw(column))
            if draw(st.booleans()):
                noise[output] = draw(st.lists(st.floats(1e-300, 1e300), min_size=size, max_size=size))
        parts.append(Data(None, outputs, noise, name=name))
    return Data.of(one for part in parts for one in part.experiments)


def assert_equal(one: Data, other: Data) -> None:
    assert [e.name for e in one.experiments] == [e.name for e in other.experiments]
    for left, right in zip(one.experiments, other.experiments, strict=True):
        assert left.outputs.keys() == right.outputs.keys()
        for name, series in left.outputs.items():
            for column in ("times", "values", "sds"):
                np.testing.assert_array_equal(getattr(series, column), getattr(right.outputs[name], column))


@given(data_sets())
def test_csv_brings_back_the_same_numbers(data):
    assert_equal(data, Data.from_dataframe(data.to_dataframe()))
    assert_equal(data, Data.of(experiments(csv.parse(b"".join(csv.lines(data.columns())), "data.csv"))))


def test_files_there_and_back(tmp_path):
    data = Data([0, 1, 2], {"y1": [1.0, np.nan, 3.0], "y2": [0.1, 0.2, 0.3]}, noise={"y1": 0.1}, name="run 1")
    data.to_csv(tmp_path / "data.csv")
    assert (tmp_path / "data.csv").read_text().splitlines()[:3] == [
        "observableId,experimentId,time,measurement,noiseSd",
        "y1,run 1,0.0,1.0,0.1",
        "y1,run 1,2.0,3.0,0.1",
    ]
    assert_equal(data, Data.from_csv(tmp_path / "data.csv"))


def test_inputs_by_column(tmp_path):
    path = tmp_path / "inputs.csv"
    path.write_text("time,u,v\n0,1,5\n2,1,\n2,3,\n4,3,6\n")
    inputs = csv.read_inputs(path)
    assert inputs["u"].times.tolist() == [0, 2, 2, 4]
    assert inputs["v"].values.tolist() == [5, 6]
    path.write_text("time,u,experimentId\n0,1,a\n2,1,a\n")
    with pytest.raises(DataError, match="in no other columns"):
        csv.read_inputs(path)


@pytest.mark.parametrize("table", ["time,{many}\n0,1\n", "time,y\n0,1{empty}\n", "time,y{empty}\n0,1\n"])
def test_lines_of_very_many_cells(table):
    text = table.format(many=",".join(f"c{i}" for i in range(1_000_000)), empty="," * 1_000_000)
    with pytest.raises(DataError, match=r"data\.csv: line \d has 100000\d cells, and 20000 is the limit"):
        csv.parse(text.encode(), "data.csv")


def test_a_semicolon_in_quotes_separates_nothing():
    table = csv.opened(b'time,"y; in mg/l"\n0,1\n', "data.csv")
    assert table.header() == ["time", "y; in mg/l"] and not table.decimal_comma


def test_times_that_no_number_can_hold(tmp_path):
    (tmp_path / "data.csv").write_text("time,y\n-1e308,1\n0,2\n1e308,1\n")
    with pytest.raises(DataError, match=r"times from -1e\+308 to 1e\+308 are beyond what can be computed"):
        Data.from_csv(tmp_path / "data.csv")


@pytest.mark.parametrize(
    "text",
    [
        "ID,TIME,AMT,DV\n1,0,100,.\n1,1,.,5.5\n2,0,50,.\n2,2,.,1.5\n",
        "ID TIME   AMT DV\n 1 0 100  .\n1 1 .   5.5 \n2 0 50 .\n 2 2 . 1.5\n",
        "TABLE NO.  1\n ID          TIME        AMT         DV\n 1 0 100 .\n 1 1 . 5.5\n 2 0 50 .\n 2 2 . 1.5\n",
        "#ID\tTIME\tAMT\tDV\n1\t0\t100\t.\n1\t1\t.\t5.5\n2\t0\t50\t.\n2\t2\t.\t1.5\n",
    ],
    ids=["commas", "spaces", "table", "hash"],
)
def test_tables_of_nonmem_in_any_dress(tmp_path, text):
    path = tmp_path / "data.tab"
    path.write_text(text)
    data = Data.from_csv(path)
    assert [one.name for one in data.experiments] == ["1", "2"]
    assert [one.outputs["DV"].values.tolist() for one in data.experiments] == [[5.5], [1.5]]
    assert [float(str(one.doses[0].amount)) for one in data.experiments] == [100, 50]
