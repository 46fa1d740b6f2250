"""Files of NONMEM: subjects with their doses and measurements in one table, and tables of doses beside others."""

import math

import numpy as np
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
        ("ID,TIME,DV,CENS\n1,0,3,0\n1,1,3,2\n", "line 3: CENS 2 is not understood"),
        ("ID,TIME,DV,CENS,LIMIT\n1,0,3,0,.\n1,1,3,1,4\n", "line 3: the lower limit 4 is not below the upper limit 3"),
        ("ID,TIME,DV,DVID\n1,0,3,0\n", "line 2: DVID is the number of an output from 1 on"),
        ("ID,DATE,TIME,DV\n1,2020-01-01,0,3\n", "the column DATE is not understood"),
        ("ID,TIME,DV,time\n1,0,3,0\n", "there are two columns TIME"),
        ("ID,TIME,AMT,DV,EVID\n1,0,1,.,1\n1,5,.,2,0\n1,0,1,.,4\n", "line 4: TIME goes back from 5 to 0"),
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


LOWER = """id,time,amt,dv,evid,wt,sex,V
1,0,100,.,1,70,F,9
1,1,.,3.5,0,70,F,9
1,4,.,1.5,0,71,F,9
2,0,50,.,1,60,M,8
2,1,.,2.5,0,60,M,8
2,4,.,1.0,0,60,M,8
"""


def test_names_in_any_case_and_columns_that_no_model_uses(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = written(tmp_path, LOWER)
    for data in (oj.Data.from_csv(path), oj.Data.from_dataframe(pandas.read_csv(path, na_values="."))):
        assert [(one.name, list(one.outputs)) for one in data.experiments] == [("1", ["DV"]), ("2", ["DV"])]
        (dose,) = data.experiments[1].doses
        assert (str(dose.amount), dose.state) == ("50", "1")
        wt, sex = (data.experiments[0].covariates[name] for name in ("wt", "sex"))
        assert wt.values.tolist() == [70, 70, 71] and wt.times.tolist() == [0, 1, 4] and wt.constant is None
        assert sex.constant == "F" and not sex.is_number
        model = oj.Model({"c": "-k*c"}, {"y": "c/W"}, initial={"c": 0})
        assert Problem(model, data).unknowns == ("k", "W")


def test_a_column_called_like_a_parameter_is_told(tmp_path):
    data = oj.Data.from_csv(written(tmp_path, LOWER))
    model = oj.Model({"c": "-k*c"}, {"y": "c/V"}, initial={"c": 0})
    problem = Problem(model, data)
    assert problem.unknowns == ("k",) and problem.by_columns == ("V",)
    assert "known: V from columns of the data; data.without('V')" in str(oj.fit(model, data, positive=True))
    assert Problem(model, data.without("V")).unknowns == ("k", "V")
    for told in ({"bounds": {"V": (1, 20)}}, {"local": ["V"]}, {"priors": {"V": "normal(9, 1)"}}):
        with pytest.raises(oj.ModelError, match="'V'"):
            Problem(model, data, **told)
    with pytest.raises(oj.DataError, match="no column 'W' to be left out"):
        data.without("W")


@pytest.mark.parametrize(
    ("output", "sentence"), [("c/wt", "varies from 70 to 71"), ("c/sex", "holds words such as 'F'")]
)
def test_a_covariate_that_is_no_parameter(tmp_path, output, sentence):
    model = oj.Model({"c": "-k*c"}, {"y": output}, initial={"c": 0})
    with pytest.raises(oj.DataError, match=sentence):
        Problem(model, oj.Data.from_csv(written(tmp_path, LOWER)))


def test_a_covariate_that_changes_is_an_input_that_holds(tmp_path):
    model = oj.Model({"c": "-k*c"}, {"y": "c + 0*k*wt"}, inputs={"wt": "sampled"}, initial={"c": 0})
    problem = Problem(model.replace(outputs={"y": "wt"}), oj.Data.from_csv(written(tmp_path, LOWER)), fixed={"k": 1})
    assert problem.simulate({}, [0.0, 1.0, 3.9])["1"]["y"].tolist() == [70, 70, 70]


def test_dvid_tells_the_output_by_number_or_name(tmp_path):
    two = oj.Model({"c": "-k*c", "r": "c - r"}, {"conc": "c", "effect": "r"}, initial={"c": 0, "r": 0})
    for first, second in (("1", "2"), ("conc", "effect")):
        rows = f"1,0,100,.,.\n1,1,.,3.5,{first}\n1,1,.,9,{second}\n1,2,.,2.5,{first}\n"
        data = oj.Data.from_csv(written(tmp_path, "ID,TIME,AMT,DV,DVID\n" + rows))
        (found,) = Problem(two, data).experiments
        assert found.outputs["conc"].values.tolist() == [3.5, 2.5] and found.outputs["effect"].values.tolist() == [9]
    one = oj.Model({"c": "-k*c"}, {"conc": "c"}, initial={"c": 0})
    numbered = oj.Data.from_csv(written(tmp_path, "ID,TIME,AMT,DV,DVID\n1,0,9,.,.\n1,1,.,3,1\n1,1,.,9,2\n"))
    with pytest.raises(oj.DataError, match="measurements with DVID 2, but the model has 1 output"):
        Problem(one, numbered)
    with pytest.raises(oj.DataError, match="add a column DVID"):
        Problem(two, oj.Data.from_csv(written(tmp_path, FILE)))
    alone = oj.Data.from_csv(written(tmp_path, "ID,TIME,AMT,DV,DVID\n1,0,9,.,.\n1,1,.,3,2\n1,2,.,2,2\n"))
    assert list(Problem(one, alone).experiments[0].outputs) == ["conc"]


def test_unknown_rates_and_durations(tmp_path):
    model = oj.Model({"c": "-k*c"}, {"conc": "c/V"}, initial={"c": 0})
    for rate, unknown in ((-1, "R1"), (-2, "D1")):
        text = f"ID,TIME,AMT,RATE,DV\n1,0,100,{rate},.\n" + "".join(f"1,{t},.,.,{9 - t}\n" for t in range(1, 8))
        problem = Problem(model, oj.Data.from_csv(written(tmp_path, text)))
        assert problem.unknowns == ("k", "V", unknown)
        value = 20.0 if rate == -1 else 5.0
        known = oj.Data.from_csv(written(tmp_path, text.replace(f",{rate},", ",20,")))
        expected = Problem(model, known).simulate({"k": 0.3, "V": 10.0})["1"]["conc"]
        assert np.allclose(problem.simulate({"k": 0.3, "V": 10.0, unknown: value})["1"]["conc"], expected, rtol=1e-12)


def test_the_words_of_other_programs(tmp_path):
    monolix = "ID,TIME,AMT,TINF,Y,YTYPE\n1,0,100,2,.,.\n1,1,.,.,3,1\n1,3,.,.,2,1\n"
    (found,) = oj.Data.from_csv(written(tmp_path, monolix)).experiments
    assert str(found.doses[0].duration) == "2" and list(found.outputs) == ["DV1"]
    (found,) = oj.Data.from_csv(written(tmp_path, "ID,TIME,DV,AMT,EVID\n1,0,0,9,201\n1,1,3,0,0\n")).experiments
    assert found.doses[0].state == "2" and found.points == 1
    (found,) = oj.Data.from_csv(written(tmp_path, "C,ID,TIME,DV\nC,1,0,5\n.,1,1,3\n")).experiments
    assert found.points == 1 and not found.covariates


@pytest.mark.parametrize(("kind", "rest"), [("3,1,.", 0.0), ("1,1,24", None)], ids=["reset", "steady state"])
def test_what_empties_a_system_ends_doses_that_are_pending(tmp_path, kind, rest):
    """An infusion over ten hours and a dose that repeats: neither goes on after t = 5."""
    event, state, period = kind.split(",")
    amount, steady = (0, 0) if event == "3" else (100, 1)
    text = (
        "ID,TIME,AMT,RATE,DV,EVID,CMT,II,ADDL,SS\n1,0,100,10,.,1,1,.,.,.\n1,0,50,.,.,1,1,4,9,.\n"
        f"1,5,{amount},.,.,{event},{state},{period},.,{steady}\n1,4.5,.,.,1,0,.,.,.,.\n1,20,.,.,1,0,.,.,.,.\n"
    )
    model = oj.Model({"c": "-k*c"}, {"conc": "c"}, initial={"c": 0})
    problem = Problem(model, oj.Data.from_csv(written(tmp_path, text)))
    k = 0.1
    after = 100 * np.exp(-k * 15) / (1 - np.exp(-k * 24)) if rest is None else rest
    before = 50 * (np.exp(-k * 4.5) + np.exp(-k * 0.5)) + 10 * (1 - np.exp(-k * 4.5)) / k
    assert np.allclose(problem.simulate({"k": k})["1"]["conc"], [before, after], rtol=1e-12)


# --- rows of one time


def course(tmp_path, rows):
    """What is predicted for the measurements of a file of rows, where doses add up: x' = 0, x(0) = 0."""
    data = oj.Data.from_csv(written(tmp_path, "ID,TIME,AMT,DV,EVID,II,ADDL\n" + "\n".join(rows)))
    (own,) = Problem(oj.Model({"x": "0"}, {"y": "x"}, initial={"x": 0}), data).conditions
    times = own.experiment.outputs["y"].times
    assert times == pytest.approx(
        sorted(float(row.split(",")[1]) for row in rows if row.split(",")[4] == "0"), abs=1e-11
    )
    return list(oj.simulate(own.model, {}, {}, times, start=own.experiment.start)["y"])


DOSE = "1,{},100,.,1,.,."
MEASURED = "1,{},.,5,0,.,."


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([DOSE.format(0), MEASURED.format(12), DOSE.format(12), MEASURED.format(13)], [100, 200]),
        ([DOSE.format(0), DOSE.format(12), MEASURED.format(12), MEASURED.format(13)], [200, 200]),
        ([MEASURED.format(0), DOSE.format(0), MEASURED.format(1)], [0, 100]),
        ([DOSE.format(0), MEASURED.format(0), MEASURED.format(1)], [100, 100]),
        ([DOSE.format(0), MEASURED.format(0), DOSE.format(0), MEASURED.format(0), MEASURED.format(1)], [100, 200, 200]),
        (
            [MEASURED.format(0), DOSE.format(0), MEASURED.format(0), DOSE.format(0), MEASURED.format(0)],
            [0, 100, 200],
        ),
        # Doses that ADDL adds are given before the rows of their times.
        (["1,0,100,.,1,12,2", MEASURED.format(12), MEASURED.format(24), MEASURED.format(30)], [200, 300, 300]),
        (["1,0,.,5,0,.,.", "1,0,100,.,1,12,2", MEASURED.format(12), MEASURED.format(30)], [0, 200, 300]),
        # A reset (EVID 3) keeps its place, too.
        ([DOSE.format(0), MEASURED.format(5), "1,5,.,.,3,.,.", MEASURED.format(6)], [100, 0]),
        ([DOSE.format(0), "1,5,.,.,3,.,.", MEASURED.format(5), MEASURED.format(6)], [0, 0]),
    ],
)
def test_rows_of_one_time_keep_their_order(tmp_path, rows, expected):
    assert course(tmp_path, rows) == expected


def test_troughs_before_doses_tell_the_rate(tmp_path):
    """Noise-free data of k = 0.1 and V = 10, with a trough in the row before the dose of the same time."""
    given, k, volume = (0, 12, 24), 0.1, 10.0

    def level(t, before=False):
        return sum(100 / volume * math.exp(-k * (t - s)) for s in given if s < t or (s == t and not before))

    rows = [f"{t},.,{level(t)},0" for t in (1, 4, 8)] + [f"12,.,{level(12, True)},0", "12,100,.,1"]
    rows += [f"{t},.,{level(t)},0" for t in (13, 16)] + [f"24,.,{level(24, True)},0", "24,100,.,1"]
    rows += [f"{t},.,{level(t)},0" for t in (25, 30, 36)]
    data = oj.Data.from_csv(written(tmp_path, "\n".join(["TIME,AMT,DV,EVID", "0,100,.,1", *rows])))
    fit = oj.fit(oj.Model({"c": "-k*c"}, {"y": "c/V"}, initial={"c": 0}), data, positive=True)
    assert fit.values["k"] == pytest.approx(k, rel=1e-8) and fit.values["V"] == pytest.approx(volume, rel=1e-8)


def test_the_order_survives_a_table_of_doses(tmp_path):
    text = "ID,TIME,AMT,DV,EVID\n1,0,100,.,1\n1,0,.,9,0\n1,12,.,3,0\n1,12,100,.,1\n1,13,.,12,0\n"
    data = oj.Data.from_csv(written(tmp_path, text))
    data.to_csv(tmp_path / "tidy.csv", doses=tmp_path / "doses.csv")
    again = oj.Data.from_csv(tmp_path / "tidy.csv", doses=tmp_path / "doses.csv")
    assert [dose.seen for dose in again.experiments[0].doses] == [True, False]
    assert [dose.seen for dose in data.experiments[0].doses] == [True, False]


def test_rows_at_the_time_of_a_steady_state_come_before_or_after_it(tmp_path):
    """As the rows stand: one before the dose of t = 50 is of what the first dose left, one after it sees the dose."""
    head = "ID,TIME,AMT,DV,EVID,CMT,II,SS\n1,0,100,.,1,1,.,.\n"
    dose, row = "1,50,100,.,1,1,24,1\n", "1,50,.,3,0,1,.,.\n"
    model = oj.Model({"c": "-k*c"}, {"conc": "c"}, initial={"c": 0})
    k = 0.1
    for text, expected in (
        (head + row + dose, 100 * np.exp(-k * 50)),
        (head + dose + row, 100 / (1 - np.exp(-k * 24))),
    ):
        problem = Problem(model, oj.Data.from_csv(written(tmp_path, text)))
        assert np.allclose(problem.simulate({"k": k})["1"]["conc"], expected, rtol=1e-12)
