"""Files of NONMEM: subjects with their doses and measurements in one table, and tables of doses beside others."""

import pytest

import odejet as oj
from odejet.problem import Problem

MODEL = oj.Model(
    {"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, {"conc": "blood/(V*WT)"}, initial={"gut": 0, "blood": 0}
)
FILE = """ID,TIME,AMT,DV,EVID,CMT,WT
1,0,100,.,1,1,70
1,1,.,3.5,0,2,70
1,2,.,2.5,0,2,70
1,4,.,1.5,0,2,70
1,5,.,1.0,0,2,70
2,0,50,.,1,1,60
2,1,.,2.5,0,2,60
2,4,.,1.0,0,2,60
"""


def written(tmp_path, text, name="data.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_subjects_are_experiments(tmp_path):
    data = oj.Data.from_csv(written(tmp_path, FILE))
    assert [one.name for one in data.experiments] == ["1", "2"]
    assert [one.points for one in data.experiments] == [4, 2] and data.experiments[0].start == 0
    problem = Problem(MODEL, data)
    assert problem.unknowns == ("ka", "ke", "V")
    for condition, amount, weight in zip(problem.conditions, (100, 50), (70, 60), strict=True):
        assert condition.model.events == (oj.Event(at=0, set={"gut": f"gut + {amount}"}),)
        assert condition.model.fixed["WT"] == weight
        assert list(condition.experiment.outputs) == ["conc"]


def test_a_table_of_doses_beside_the_measurements(tmp_path):
    path = written(tmp_path, "time,conc,WT\n1,2,70\n2,1.5,70\n3,1,70\n4,.5,70\n")
    doses = written(
        tmp_path, "time,state,amount,duration,every,count\nlag,gut,100*F,,12,3\n0,blood,10,0.5,,\n", "doses.csv"
    )
    (found,) = oj.Data.from_csv(path, doses=doses).experiments
    assert [(str(dose.time), dose.state, str(dose.amount), dose.count) for dose in found.doses] == [
        ("lag", "gut", "100*F", 3),
        ("0", "blood", "10", None),
    ]
    assert found.start == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ID,TIME,AMT,DV\n", "there are no rows"),
        ("ID,TIME,AMT,DV\n1,0,100,.\n", "1: nothing was measured"),
        ("ID,TIME,AMT,DV\n1,now,100,.\n", "line 2: TIME must be a finite number"),
        ("ID,TIME,AMT,DV,WT\n1,0,100,.,70\n1,1,.,3,71\n", "line 3: WT is 71 here and 70 before"),
        ("ID,TIME,AMT,DV\n1,0,100\n", "line 2 has 3 cells, but there are 4 columns"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(tmp_path, text, sentence):
    with pytest.raises(oj.DataError, match=sentence):
        oj.Data.from_csv(written(tmp_path, text))


def test_doses_that_cannot_be_read_name_the_line(tmp_path):
    path = written(tmp_path, "time,conc,WT\n1,2,70\n2,1.5,70\n")
    for text, sentence in (
        ("time,state,amount\n0,gut,1\n1,gut,two three\n", "doses.csv: line 3: the dose's 'amount'"),
        ("time,state,amount\n", "doses.csv: there is no dose"),
        ("time,state,amount,duration\n0,gut,1,-3\n", "doses.csv: line 2: the duration -3 is negative"),
    ):
        with pytest.raises(oj.DataError, match=sentence):
            oj.Data.from_csv(path, doses=written(tmp_path, text, "doses.csv"))


@pytest.mark.parametrize(
    ("text", "doses"),
    [
        (FILE, None),
        (FILE.replace("1,4,.,1.5,0,2,70", "1,3,.,.,3,1,70\n1,4,.,1.5,0,2,70"), None),
        (
            "time,conc,WT\n1,2,70\n2,1.5,70\n",
            "time,state,amount,duration,every,count\nlag,gut,100*F,,12,3\n0,blood,10,0.5,,\n",
        ),
    ],
    ids=["NONMEM", "emptied", "own words"],
)
def test_what_is_read_can_be_written_and_read_again(tmp_path, text, doses):
    beside = None if doses is None else written(tmp_path, doses, "given.csv")
    data = oj.Data.from_csv(written(tmp_path, text), doses=beside)
    data.to_csv(tmp_path / "again.csv", doses=tmp_path / "doses.csv")
    again = oj.Data.from_csv(tmp_path / "again.csv", doses=tmp_path / "doses.csv")
    assert [one.doses for one in again.experiments] == [one.doses for one in data.experiments]
    assert [one.start for one in again.experiments] == [one.start for one in data.experiments]
    assert again.columns(dosed=True).keys() == data.columns(dosed=True).keys()


def test_what_no_columns_can_say_is_refused(tmp_path):
    emptied = oj.Data.from_csv(written(tmp_path, FILE.replace("1,4,.,1.5,0,2,70", "1,4,.,.,3,1,70")))
    for dose, reason in (
        ({"time": 9, "state": "gut", "amount": 1}, "hold numbers alone"),
        ({"time": 9, "state": "1", "amount": "F"}, "hold numbers alone"),
        ({"time": 9, "state": "1", "amount": 1, "every": 2}, "repeats without end"),
    ):
        with pytest.raises(oj.DataError, match=reason):
            emptied.dosed(dose).dose_columns()
