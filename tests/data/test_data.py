"""Data: what was measured, and one sentence for everything that does not fit."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pandas
import pytest

import odejet as oj
from odejet.jets.inputs import Sampled
from odejet.problem import Problem

NAN = np.nan
MODEL = oj.Model({"x": "-k*x + u", "z": "x - z"}, {"y1": "x", "y2": "z"}, inputs={"u": None}, name="driven")
PLAIN = oj.Model({"x": "-k*x"}, {"y1": "x", "slow": "2*x"}, name="decay")


def only(data: oj.Data) -> oj.Experiment:
    (experiment,) = data.experiments
    return experiment


# --- arrays -----------------------------------------------------------------------------------------------------------


def test_values_that_are_missing_are_left_out_and_times_sorted():
    experiment = only(oj.Data([3, 1, 2, 1], {"y1": [30, 10, NAN, 11], "y2": [NAN] * 4, "y3": [1, NAN, 2, NAN]}))
    assert experiment.outputs["y1"].times.tolist() == [1, 1, 3]
    assert experiment.outputs["y1"].values.tolist() == [10, 11, 30]  # replicates kept, in their order
    assert experiment.outputs["y3"].values.tolist() == [2, 1]
    assert "y2" not in experiment.outputs
    assert (experiment.start, experiment.end, experiment.points) == (1.0, 3.0, 5)


def test_outputs_on_their_own_grids():
    experiment = only(oj.Data([0, 1], {"y1": [1, 2], "y2": ([5, 4, -1], [50, 40, -10])}))
    assert experiment.outputs["y1"].times.tolist() == [0, 1]
    assert experiment.outputs["y2"].times.tolist() == [-1, 4, 5]
    assert (experiment.start, experiment.end) == (-1.0, 5.0)
    assert only(oj.Data(None, {"y": ([0, 1], [2, 3])})).points == 2


def test_known_noise_follows_its_values():
    experiment = only(
        oj.Data([2, 1, 0], {"a": [20, NAN, 0], "b": [1, 2, 3], "c": [4, 5, 6]}, noise={"a": [0.2, NAN, 0.1], "b": 0.5})
    )
    assert experiment.outputs["a"].sds.tolist() == [0.1, 0.2]
    assert experiment.outputs["b"].sds.tolist() == [0.5] * 3
    assert experiment.outputs["c"].sds is None
    assert only(oj.Data([0, 1], {"a": [1, 2]}, noise=0.3)).outputs["a"].sds.tolist() == [0.3, 0.3]


def test_inputs_sampled_or_written():
    inputs = {"u": [5, 6, 7], "v": ([0, 9], [1, 2]), "w": "sin(2*t)", "c": 3}
    experiment = only(oj.Data([0, 1, 2], {"y1": [1, 2, 3]}, inputs=inputs))
    assert experiment.inputs["u"].values.tolist() == [5, 6, 7]
    assert experiment.inputs["v"].times.tolist() == [0, 9]
    assert (experiment.inputs["w"], experiment.inputs["c"]) == ("sin(2*t)", "3")
    assert list(experiment.sampled) == ["u", "v"]


def test_data_travel_between_processes():
    data = oj.Data([0, 1], {"y1": [1, 2]}, inputs={"u": ([0, 1], [3, 4])}, noise=1, initial={"x": 2})
    back = only(pickle.loads(pickle.dumps(data)))
    assert back.outputs["y1"].values.tolist() == [1, 2]
    assert back.inputs["u"].values.tolist() == [3, 4]
    assert {name: str(value) for name, value in back.initial.items()} == {"x": "2"}


def test_names_are_those_of_python():
    """The micro sign and the Greek letter are one letter in models, so they are in data."""
    assert list(only(oj.Data([0, 1], {"µ": [1, 2]})).outputs) == ["μ"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0, 1], {"y": [1, 2, 3]}), "'y' has 3 values but 2 times"),
        (([0, 1], {"y": [1, np.inf]}), "'y': value 1 is infinite"),
        (([0, NAN], {"y": [1, 2]}), "'y': time 1 is not a number"),
        (([0, 1], {"y": ["a", "b"]}), "the values of 'y' must be numbers"),
        (([0, 1], {"y": [[1, 2], [3, 4]]}), "must be a one-dimensional list"),
        (([0, 1], {"y": [10**400, 1]}), "the values of 'y' must be numbers"),
        ((["a"], {"y": [1]}), "time must be numbers"),
        ((None, {"y": [1, 2]}), "'y' has no times"),
        (([0, 1], {"y": [NAN, NAN]}), "nothing was measured"),
        (([0, 1], {}), "nothing was measured"),
        (([0, 1], [1, 2]), "outputs must be a dictionary"),
        (([0, 1], {"y 1": [1, 2]}), "'y 1' is not a name"),
        (([0, 1], {3: [1, 2]}), "a name must be text"),
        (([0, 1], {"µ": [1, 2], "μ": [1, 2]}), "given twice"),
        (([0, 1], {"y": [1, 2]}, {"y": 0}), "standard deviations must be positive"),
        (([0, 1], {"y": [1, 2]}, {"y": [1, -1]}), "standard deviations must be positive"),
        (([0, 1], {"y": [1, 2]}, {"y": [1, NAN]}), "standard deviations must be positive"),
        (([0, 1], {"y": [1, 2]}, {"y": [1, 1, 1]}), "2 values but 3 standard deviations"),
        (([0, 1], {"y": [1, 2]}, {"z": 1}), "noise: there is no output 'z'"),
        (([0, 1], {"y": [1, 2]}, "loud"), "the noise of 'y' must be a finite number"),
        (([0, 1], {"y": [1, 2]}, None, {"u": "sin(x)"}), "input 'u': "),
        (([0, 1], {"y": [1, 2]}, None, {"u": [1, np.inf]}), "input 'u': times and values must be finite"),
        (([0, 1], {"y": [1, 2]}, None, {"u": [1, NAN]}), "input 'u': an input needs values at two different times"),
        (
            ([0, 1], {"y": [1, 2]}, None, {"u": ([0, 1, 1, 1, 2], [0, 1, 2, 3, 4])}),
            "more than two different values at t = 1",
        ),
        (([0, 1], {"y": [1, 2]}, None, {"u": ([0, 0, 1], [0, 1, 2])}), "two values at t = 0"),
        (([0, 1], {"y": [1, 2]}, None, None, " "), "the name of an experiment must be one line of text"),
        (([0, 1], {"y": [1, 2]}, None, None, "a", {"x": [1]}), "initial 'x' must be a finite number"),
        (([0, 1], {"y": [1, 2]}, None, None, "a", {"x": "2 +"}), "initial 'x': "),
    ],
)
def test_arrays_that_are_refused(arguments, sentence):
    with pytest.raises(oj.DataError, match=sentence):
        oj.Data(*arguments)


# --- several experiments ----------------------------------------------------------------------------------------------


def test_joined_experiments_keep_their_names_or_are_numbered():
    parts = [oj.Data([0, 1], {"y": [i, 2]}, name="hot" if i == 1 else None) for i in range(3)]
    data = oj.Data.join([oj.Data.join(parts[:2]), parts[2]])
    assert [one.name for one in data.experiments] == ["experiment1", "hot", "experiment3"]
    assert [one.outputs["y"].values[0] for one in data.experiments] == [0, 1, 2]
    with pytest.raises(oj.DataError, match="two experiments are called 'hot'"):
        oj.Data.join([parts[1], parts[1]])
    with pytest.raises(oj.DataError, match="there is no experiment"):
        oj.Data.join([])


def test_wide_tables_of_several_experiments(tmp_path):
    (tmp_path / "d.csv").write_text("experimentId,time,y1,y2\nb,0,1,\nb,1,2,\na,5,3,4\n")
    data = oj.Data.from_csv(tmp_path / "d.csv")
    assert [one.name for one in data.experiments] == ["b", "a"]
    assert [list(one.outputs) for one in data.experiments] == [["y1"], ["y1", "y2"]]


def test_tidy_tables_in_the_words_of_petab(tmp_path):
    (tmp_path / "d.tsv").write_text(
        "observableId\tsimulationConditionId\ttime\tmeasurement\tnoiseSd\tdatasetId\tnoiseParameters\n"
        "y1\tc1\t1\t10\t0.5\tplot1\t\ny1\tc1\t0\t11\t0.25\tplot1\t\ny2\tc1\t0\t7\t\tplot1\t\ny2\tc2\t0\t8\t\tplot1\t\n"
    )
    first, second = oj.Data.from_csv(tmp_path / "d.tsv").experiments
    assert first.outputs["y1"].values.tolist() == [11, 10]
    assert first.outputs["y1"].sds.tolist() == [0.25, 0.5]
    assert first.outputs["y2"].sds is None
    assert (second.name, list(second.outputs)) == ("c2", ["y2"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("observableId,time,measurement\n,0,1\n", "line 2: the name of the observable is missing"),
        ("time,y,experimentId\n0,1,a\n1,2,\n", "line 3: the name of the experiment is missing"),
        ("observableId,time,measurement,observableParameters\ny,0,1,3\n", "'observableParameters' is not understood"),
        ("observableId,time,measurement,noiseSd\ny,0,1,0.1\ny,1,1,\n", "'y': standard deviations must be positive"),
        ("observableId,time,measurement,noiseSd\ny,0,1,1\n#\ny,1,1,-2\n", "line 4: the standard deviation -2 is not"),
        ("observableId,time,measurement,noiseSd\ny,0,1,0\n", "line 2: the standard deviation 0 is not positive"),
        ("time,y 1\n0,1\n", "'y 1' is not a name"),
        ("time,µ,μ\n0,1,2\n", "two columns have the same name"),
        ("observableId,time,measurement\nµ,0,1\nμ,1,2\n", "two observables are called 'μ'"),
        ("time\n0\n", "nothing was measured"),
    ],
)
def test_tables_that_are_refused(tmp_path, text, sentence):
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(oj.DataError, match=sentence) as caught:
        oj.Data.from_csv(path)
    assert str(caught.value).startswith(str(path))


def test_tables_of_pandas():
    wide = pandas.DataFrame({"time": [0, 1], "y1": [1, None], "y2": pandas.array([3, None], dtype="Int64")})
    assert only(oj.Data.from_dataframe(wide)).points == 2
    tidy = oj.Data([0, 1], {"y1": [1, 2]}, inputs={"u": ([0, 2], [3, 4])}).to_dataframe()
    assert tidy.columns.tolist() == ["observableId", "experimentId", "time", "measurement"]
    assert tidy["observableId"].tolist() == ["y1", "y1", "u", "u"]
    for frame, sentence in (
        (pandas.DataFrame({"y": [1]}), "no column 'time'"),
        (pandas.DataFrame({"time": [0], "y": ["high"]}), "the column 'y' must hold numbers"),
        (pandas.DataFrame([[0, 1, 2]], columns=["time", "y", "y"]), "two columns are called 'y'"),
        (pandas.DataFrame({"time": [], "y": []}), "nothing was measured"),
        (pandas.DataFrame({"time": [0.0, NAN], "y": [1, 2]}), "time 1 is not a number"),
    ):
        with pytest.raises(oj.DataError, match=sentence):
            oj.Data.from_dataframe(frame)


def test_what_a_table_cannot_hold_is_not_dropped(tmp_path):
    for more in ({"inputs": {"u": "sin(t)"}}, {"initial": {"x": 1}}):
        with pytest.raises(oj.DataError, match="put those into the model"):
            oj.Data([0, 1], {"y1": [1, 2]}, **more).to_csv(tmp_path / "d.csv")
    assert not (tmp_path / "d.csv").exists()


def test_doses_have_a_table_of_their_own(tmp_path):
    data = oj.Data([1, 2], {"y1": [1, 2]}, doses={"time": 0, "state": "x", "amount": 1})
    with pytest.raises(oj.DataError, match=r"doses stand in a table of their own.*doses='doses.csv'"):
        data.to_csv(tmp_path / "d.csv")
    with pytest.raises(oj.DataError, match="there are no doses to write"):
        oj.Data([1, 2], {"y1": [1, 2]}).to_csv(tmp_path / "d.csv", doses=tmp_path / "e.csv")
    assert list(tmp_path.iterdir()) == []


def test_looks():
    data = oj.Data([0, 1], {"y1": [1, 2]}, inputs={"u": ([0, 2], [3, 4])}, name="<hot>")
    assert repr(data).splitlines() == [
        "Data: 1 experiment, 2 measurements",
        "  <hot>: y1, 2 values, t = 0 to 1",
        "  <hot>: u (input), 2 values, t = 0 to 2",
    ]
    assert "&lt;hot&gt;" in data._repr_html_() and "<hot>" not in data._repr_html_()
    many = oj.Data.join(oj.Data([0, 1], {"y": [1, 2]}) for _ in range(20))
    assert "and 8 more series" in repr(many) and "and 8 more series" in many._repr_html_()


# --- data and model ---------------------------------------------------------------------------------------------------


def checked(data: oj.Data, model: oj.Model) -> oj.Data:
    """The data as a problem reads them."""
    problem = Problem(model, data)
    problem.check_points()
    return problem.data


def test_columns_find_their_place_in_the_model():
    data = oj.Data([0, 1, 2], {"y2": [1, 2, 3], "u": [5, NAN, 7], "y1": [3, 2, 1]})
    experiment = only(checked(data, MODEL))
    assert list(experiment.outputs) == ["y1", "y2"]
    assert isinstance(experiment.inputs["u"], Sampled)
    assert experiment.inputs["u"].times.tolist() == [0, 2]
    assert experiment.points == 6
    again = only(checked(oj.Data.of([experiment]), MODEL))
    assert (again.outputs, again.inputs) == (experiment.outputs, experiment.inputs)


def test_an_output_that_was_never_measured_is_not_used():
    assert list(only(checked(oj.Data([0, 1], {"slow": [1, 2]}), PLAIN)).outputs) == ["slow"]


def test_each_experiment_has_its_own_model():
    one = oj.Data([0, 1, 2], {"y1": [1, 2, 3]}, inputs={"u": "2*t"}, name="ramp")
    two = oj.Data([0, 1, 2], {"y1": [1, 2, 3]}, inputs={"u": ([0, 2], [1, 1])}, initial={"x": 4}, name="held")
    problem = Problem(MODEL, oj.Data.join([one, two]))
    ramp, held = problem.conditions
    assert str(ramp.model.inputs["u"]) == "2*t"
    assert held.model.inputs["u"] is None
    assert held.model.unknowns == ("z", "k")
    # x' = -k x + 2 t from x = 1, and x' = -k x + 1 from x = 4, for k = 1
    times = np.array([0.0, 1.0, 2.0])
    forced = problem.flows[0].run([1.0], [1.0, 0.0], times).outputs[:, 0, 0]
    np.testing.assert_allclose(forced, 2 * times - 2 + 3 * np.exp(-times), rtol=1e-13)
    constant = problem.flows[1].run([1.0], [0.0, 0.0], times).outputs[:, 0, 0]
    np.testing.assert_allclose(constant, 1 + 3 * np.exp(-times), rtol=1e-13)


def test_inputs_may_come_later():
    data = oj.Data([0, 1, 2], {"y1": [1, 2, 3]}).driven({"u": ([0, 2], [1, 1])})
    assert only(checked(data, MODEL)).inputs["u"].values.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("data", "model", "sentence"),
    [
        (oj.Data([0, 1], {"y3": [1, 2]}), PLAIN, "experiment1: the model has no output 'y3'; did you mean 'y1'?"),
        (oj.Data([0, 1], {"quite_else": [1, 2]}), PLAIN, "no output 'quite_else'; it has y1, slow"),
        (oj.Data([0, 1], {"y1": [1, 2], "x": [1, 2]}), PLAIN, "'x' is a state, not an output"),
        (
            oj.Data([0, 1], {"y1": [1, 2], "k": [1, 2]}),
            PLAIN,
            "'k' is named like a parameter but varies from 1 to 2",
        ),
        (oj.Data([0, 1], {"u": [1, 2]}), MODEL, "none of the outputs y1, y2 was measured"),
        (oj.Data([0], {"y1": [1]}), PLAIN, "there is 1 measurement for 2 unknowns of decay"),
        (oj.Data([0, 1, 2], {"y1": [1, 2, 3]}), MODEL, "the model's input 'u' is sampled, but there are no samples"),
        (
            oj.Data([0, 1, 2], {"y1": [1, 2, 3], "u": [1, 2, NAN]}),
            MODEL,
            "the input 'u' is sampled from t = 0 to 1, but the experiment lasts from 0 to 2",
        ),
        (oj.Data([0, 1], {"y1": [1, 2]}, inputs={"v": "t"}), PLAIN, "the model has no input 'v'"),
        (oj.Data([0, 1], {"y1": [1, 2]}, initial={"w": 1}), PLAIN, "the model has no state 'w'"),
        (oj.Data([0, 1], {"y1": [1, 2], "u": [1, 2]}, inputs={"u": "t"}), MODEL, "the input 'u' is given twice"),
        (oj.Data([0, 1], {"y1": [1, 2]}), oj.Model({"x": "-k*x"}), "has no outputs"),
        (
            oj.Data([0, 1, 2], {"y": [1, 2, 3]}, initial={"x": 1}),
            oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "2*x0"}),
            "the parameter 'x0' has no effect",
        ),
    ],
)
def test_data_that_do_not_fit_the_model(data, model, sentence):
    with pytest.raises(oj.DataError, match=sentence.replace("?", r"\?")):
        checked(data, model)


def test_every_experiment_counts_its_own_initial_states():
    parts = [oj.Data([0, 1], {"y1": [1, 2]}) for _ in range(2)]
    assert checked(oj.Data.join(parts), PLAIN).experiments  # 4 measurements for k and two initial states
    poor = oj.Data.join([oj.Data([0], {"y1": [1]}), oj.Data([0], {"y1": [1]})])
    with pytest.raises(oj.DataError, match="2 measurements for 3 unknowns"):
        checked(poor, PLAIN)


def test_what_simulate_writes_is_what_data_read(tmp_path, monkeypatch, capsys):
    from odejet.cli import main

    monkeypatch.chdir(tmp_path)
    PLAIN.to_toml("model.toml")
    argv = [
        "simulate",
        "model.toml",
        "--set",
        "k=0.5",
        "x=3",
        "--times",
        "0:4:9",
        "--noise",
        "0.1",
        "-q",
        "-o",
        "d.csv",
    ]
    assert main(argv) == 0
    experiment = only(checked(oj.Data.from_csv("d.csv"), PLAIN))
    assert list(experiment.outputs) == ["y1", "slow"]
    assert experiment.points == 18
    np.testing.assert_allclose(experiment.outputs["y1"].times, np.linspace(0, 4, 9), rtol=1e-15)


def test_the_documentation_runs(tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    names: dict = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL):
        exec(compile(code, "docs/data.md", "exec"), names)
    told = capsys.readouterr().out
    assert "cold 0.0 4.0 11 9 True\nhot 0.0 4.0 9 9 False\n" in told and "('k1_hot', 'x0')" in told
    assert names["fit"].values["k1_hot"] == pytest.approx(2 / 310, rel=1e-6)
    wide, tidy = re.findall(r"^```csv\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    (answer,) = re.findall(r"^```text\n(.*?)\n```$", page, flags=re.MULTILINE | re.DOTALL)
    for text, points in ((wide, 5), (tidy, 3)):
        (tmp_path / "data.csv").write_text(text)
        assert only(oj.Data.from_csv(tmp_path / "data.csv")).points == points
    (tmp_path / "data.csv").write_text(wide.replace("1.47", "two"))
    with pytest.raises(oj.DataError) as caught:
        oj.Data.from_csv(tmp_path / "data.csv")
    assert str(caught.value) == f"{tmp_path / answer}"
