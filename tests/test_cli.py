"""The command line: known answers, and one sentence with an exit status for everything that can go wrong."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import odejet
from odejet import cli
from odejet.cli import main
from odejet.io.files import write_all

DECAY = """
[states]
x = "-k*x"

[outputs]
y = "2*x"
"""

RICH = """
name = "rich"

[states]
x = "-k*x + u"
w = "c*w"

[outputs]
y1 = "x + b"
y2 = "100*w"

[inputs]
u = "0*t"

[initial]
w = 0.5

[fixed]
b = 3
"""

VALUES = ["--set", "k=0.5", "x=3"]
TIMES = ["--times", "0:4:5"]


@pytest.fixture
def decay(tmp_path, monkeypatch) -> str:
    """The file of a model with a known answer, in the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("decay.toml").write_text(DECAY)
    return "decay.toml"


@pytest.fixture
def rich(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("rich.toml").write_text(RICH)
    return "rich.toml"


def table(text: str) -> tuple[list[str], np.ndarray]:
    header, *rows = text.splitlines()
    return header.split(","), np.array([[float(cell) for cell in row.split(",")] for row in rows])


def words(text: str) -> str:
    """What was said, but for the line that the first use of kernels on a machine brings."""
    return "".join(line for line in text.splitlines(True) if not line.startswith("odejet: compiling its kernels"))


def refused(capsys, argv: list[str], status: int = 2) -> str:
    """The sentence with which a command is refused, having written nothing."""
    before = {path: path.read_bytes() for path in Path.cwd().iterdir() if path.is_file()}
    assert main(argv) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert {path: path.read_bytes() for path in Path.cwd().iterdir() if path.is_file()} == before
    err = words(err)
    assert err.startswith("odejet: ") and err.endswith("\n")
    assert "Traceback" not in err
    return err.removeprefix("odejet: ").removesuffix("\n")


# --- known answers ---


def test_exponential_decay_on_stdout(decay, capsys):
    assert main(["simulate", decay, *VALUES, *TIMES]) == 0
    out, err = capsys.readouterr()
    header, rows = table(out)
    assert header == ["time", "y"]
    np.testing.assert_allclose(rows[:, 0], [0, 1, 2, 3, 4], rtol=0)
    np.testing.assert_allclose(rows[:, 1], 6 * np.exp(-0.5 * rows[:, 0]), rtol=1e-14)
    assert "decay: 5 times from 0 to 4, solved by taylor" in err
    assert "0.812012" in err


def test_numbers_keep_full_precision(decay, capsys):
    model = odejet.Model.from_toml(decay)
    sim = odejet.simulate(model, {"k": 0.5}, {"x": 3}, np.linspace(0, 1, 101))
    assert main(["simulate", decay, *VALUES, "--times", "0:1:101", "-q"]) == 0
    _, rows = table(capsys.readouterr().out)
    assert np.array_equal(rows, np.column_stack([sim.times, sim["y"]]))


def test_file_states_and_quiet(decay, capsys):
    assert main(["simulate", decay, *VALUES, *TIMES, "--states", "-o", "out.csv", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    header, rows = table(Path("out.csv").read_text())
    assert header == ["time", "y", "x"]
    np.testing.assert_allclose(rows[:, 1], 2 * rows[:, 2], rtol=1e-15)
    assert sorted(os.listdir()) == ["decay.toml", "out.csv"]


def test_many_rows(decay, capsys):
    assert main(["simulate", decay, *VALUES, "--times", "0:1:10000", "-q"]) == 0
    _, rows = table(capsys.readouterr().out)
    assert np.array_equal(rows[:, 0], np.linspace(0, 1, 10000))


def test_known_values_need_not_be_set(rich, capsys):
    assert main(["simulate", rich, "--set", "k=1", "--set", "c=0.25", "x=2", "--times", "0,1", "--states"]) == 0
    header, rows = table(capsys.readouterr().out)
    assert header == ["time", "y1", "y2", "x", "w"]
    expected = [1, 2 * math.exp(-1) + 3, 50 * math.exp(0.25), 2 * math.exp(-1), 0.5 * math.exp(0.25)]
    np.testing.assert_allclose(rows[1], expected, rtol=1e-14)


def test_a_model_without_outputs_can_show_its_states(decay, capsys):
    Path(decay).write_text('[states]\nx = "-k*x"\n')
    assert main(["simulate", decay, *VALUES, *TIMES, "--states"]) == 0
    assert capsys.readouterr().out.startswith("time,x\n0.0,3.0\n")


def test_greek_names(decay, capsys):
    Path(decay).write_text('[states]\n"β" = "-µ*β"\n[outputs]\n"γ" = "β"\n', encoding="utf-8")
    assert main(["simulate", decay, "--set", "β=1", "\u00b5=0.5", "--times", "0,1"]) == 0
    assert capsys.readouterr().out.startswith("time,γ\n0.0,1.0\n")


@pytest.mark.parametrize(
    "argv",
    [
        ["simulate", "decay.toml", "--set", "k=0.5", "--set", "x=3", "--times", "0,4"],
        ["simulate", "--set", "k=0.5", "x=3", "decay.toml", "--times", "0,4"],
        ["simulate", "--times", "0,4", "--set", "k=.5", "x=3e0", "--seed", "1", "decay.toml"],
        ["simulate", "--times=0,4", "--set=k=0.5", "--set= x = 3 ", "decay.toml", "-o", "-"],
    ],
)
def test_arguments_in_any_order(decay, capsys, argv):
    assert main(argv) == 0
    header, rows = table(capsys.readouterr().out)
    assert header == ["time", "y"]
    np.testing.assert_allclose(rows, [[0, 6], [4, 6 * math.exp(-2)]], rtol=1e-14)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("0:1:3", [0, 0.5, 1]),
        ("-1:1:3", [-1, 0, 1]),
        ("-1,2", [-1, 2]),
        ("0,0.5,2", [0, 0.5, 2]),
        ("1,0,1", [1, 0, 1]),
        ("1:0:2", [1, 0]),
        ("2", [2]),
        (" 0 : 1e0 : 2 ", [0, 1]),
    ],
)
def test_times(decay, capsys, text, times):
    assert main(["simulate", decay, *VALUES, "--times", text]) == 0
    _, rows = table(capsys.readouterr().out)
    assert rows[:, 0].tolist() == times
    np.testing.assert_allclose(rows[:, 1], 6 * np.exp(-0.5 * (rows[:, 0] - min(times))), rtol=1e-13)


# --- noise ---


def noisy(capsys, model: str, *options: str) -> np.ndarray:
    values = ["--set", "k=1", "c=0.25", "x=2"]
    assert main(["simulate", model, *values, "--times", "0:1:2000", "--states", "-q", *options]) == 0
    return table(capsys.readouterr().out)[1]


def test_noise_is_reproducible(rich, capsys):
    first = noisy(capsys, rich, "--noise", "0.01", "--seed", "3")
    assert np.array_equal(first, noisy(capsys, rich, "--noise", "0.01", "--seed", "3"))
    assert not np.array_equal(first, noisy(capsys, rich, "--noise", "0.01", "--seed", "4"))
    default = noisy(capsys, rich, "--noise", "0.01")
    assert np.array_equal(default, noisy(capsys, rich, "--noise", "0.01", "--seed", "0"))


def test_noise_is_relative_to_the_mean_of_each_output(rich, capsys):
    clean, rows = noisy(capsys, rich), noisy(capsys, rich, "--noise", "0.02")
    assert np.array_equal(clean[:, [0, 3, 4]], rows[:, [0, 3, 4]])
    errors = rows[:, 1:3] - clean[:, 1:3]
    np.testing.assert_allclose(errors.std(axis=0), 0.02 * clean[:, 1:3].mean(axis=0), rtol=0.1)
    assert abs(np.corrcoef(errors.T)[0, 1]) < 0.1


def test_no_noise_changes_nothing(rich, capsys):
    assert np.array_equal(noisy(capsys, rich), noisy(capsys, rich, "--noise", "0", "--seed", "9"))


# --- files ---


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.PDF", b"%PDF"), ("a.svg", b"<?xml")])
def test_plot(rich, capsys, name, start):
    argv = ["simulate", rich, "--set", "k=1", "c=0.25", "x=2", *TIMES, "--noise", "0.01", "--plot", name]
    assert main(argv) == 0
    assert Path(name).read_bytes().startswith(start)
    assert f"written: {name}" in capsys.readouterr().err


def test_plot_and_data_together(decay, capsys):
    assert main(["simulate", decay, *VALUES, *TIMES, "--plot", "a.png", "-o", "a.csv"]) == 0
    assert sorted(os.listdir()) == ["a.csv", "a.png", "decay.toml"]
    assert capsys.readouterr().out == ""


def test_an_older_file_is_replaced_and_keeps_its_mode(decay):
    Path("out.csv").write_text("old")
    Path("out.csv").chmod(0o640)
    assert main(["simulate", decay, *VALUES, *TIMES, "-o", "out.csv"]) == 0
    assert Path("out.csv").read_text().startswith("time,y\n")
    assert Path("out.csv").stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(decay):
    Path("real.csv").write_text("old")
    Path("link.csv").symlink_to("real.csv")
    assert main(["simulate", decay, *VALUES, *TIMES, "-o", "link.csv"]) == 0
    assert Path("link.csv").is_symlink()
    assert Path("real.csv").read_text().startswith("time,y\n")


def test_devices_are_written_to_and_not_replaced(decay):
    assert main(["simulate", decay, *VALUES, *TIMES, "-o", os.devnull]) == 0
    assert not Path(os.devnull).is_file()


def test_new_files_obey_the_umask(decay):
    before = os.umask(0o027)
    try:
        assert main(["simulate", decay, *VALUES, *TIMES, "-o", "out.csv"]) == 0
    finally:
        os.umask(before)
    assert Path("out.csv").stat().st_mode & 0o777 == 0o640


def test_all_files_are_written_or_none(tmp_path):
    (tmp_path / "old").write_text("old")

    def fail(_):
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_all({str(tmp_path / "old"): lambda file: file.write(b"new"), str(tmp_path / "other"): fail})
    assert (tmp_path / "old").read_text() == "old"
    assert os.listdir(tmp_path) == ["old"]


# --- what is refused ---

SIMULATE = ["simulate", "decay.toml"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "the following arguments are required: COMMAND; see odejet --help"),
        (["guess"], "COMMAND: invalid choice: 'guess'"),
        (["simulate"], "the following arguments are required: MODEL, --times; see odejet simulate --help"),
        ([*SIMULATE, *VALUES], "the following arguments are required: --times"),
        ([*SIMULATE, *VALUES, "--times"], "--times: expected one argument; see odejet simulate --help"),
        (
            [*SIMULATE, *VALUES, *TIMES, "--sed", "1"],
            "'--sed 1' is not understood here; did you mean '--seed'; see odejet simulate",
        ),
        ([*SIMULATE, *VALUES, *TIMES, "--set"], "--set: expected one argument"),
        ([*SIMULATE, *VALUES, *TIMES, "--noise", "much"], "--noise: expected a number that is not negative"),
        (
            [*SIMULATE, *VALUES, *TIMES, "--noise", "-1"],
            "--noise: expected a number that is not negative, such as 0.05, not '-1'",
        ),
        (
            [*SIMULATE, *VALUES, *TIMES, "--noise", "nan"],
            "--noise: expected a number that is not negative, such as 0.05, not 'nan'",
        ),
        ([*SIMULATE, *VALUES, *TIMES, "--seed", "1.5"], "--seed: expected a whole number of at least 0, not '1.5'"),
        ([*SIMULATE, *VALUES, *TIMES, "--seed", "-1"], "--seed: expected a whole number of at least 0, not '-1'"),
        (
            [*SIMULATE, *VALUES, *TIMES, "--max-steps", "0"],
            "--max-steps: expected a whole number of at least 1, not '0'",
        ),
        ([*SIMULATE, *TIMES], "no value is given for x, k; add --set x=VALUE"),
        ([*SIMULATE, "--set", "x=3", *TIMES], "no value is given for k; add --set k=VALUE"),
        (
            [*SIMULATE, *VALUES, "K=1", *TIMES],
            "--set 'K=1': the model has no parameter or state 'K'; did you mean 'k'?",
        ),
        ([*SIMULATE, *VALUES, "q=1", *TIMES], "--set 'q=1': the model has no parameter or state 'q'; what can be set"),
        ([*SIMULATE, *VALUES, "y=1", *TIMES], "--set 'y=1': 'y' is an output; only parameters and states are set"),
        ([*SIMULATE, *VALUES, "k=0.5", *TIMES], "--set 'k=0.5': k is already set; give it one value"),
        ([*SIMULATE, "--set", "k=fast", *TIMES], "--set 'k=fast': 'fast' is not a finite number"),
        ([*SIMULATE, "--set", "k=", *TIMES], "--set 'k=': '' is not a finite number"),
        ([*SIMULATE, "--set", "k=nan", *TIMES], "--set 'k=nan': 'nan' is not a finite number"),
        ([*SIMULATE, "--set", "k=1e999", *TIMES], "--set 'k=1e999': '1e999' is not a finite number"),
        ([*SIMULATE, "--set", "k", *TIMES], "--set 'k': expected NAME=VALUE, such as k1=0.3"),
        ([*SIMULATE, "--set", "=1", *TIMES], "--set '=1': expected NAME=VALUE, such as k1=0.3"),
        ([*SIMULATE, *VALUES, "--times", ""], "--times '': '' is not a finite number"),
        ([*SIMULATE, *VALUES, "--times", "0,,1"], "--times '0,,1': '' is not a finite number"),
        ([*SIMULATE, *VALUES, "--times", "0,inf"], "--times '0,inf': 'inf' is not a finite number"),
        ([*SIMULATE, *VALUES, "--times", "0:1"], "--times '0:1': expected START:STOP:COUNT, such as 0:20:750"),
        ([*SIMULATE, *VALUES, "--times", "0:1:2:3"], "--times '0:1:2:3': expected START:STOP:COUNT"),
        ([*SIMULATE, *VALUES, "--times", "a:1:2"], "--times 'a:1:2': 'a' is not a finite number"),
        ([*SIMULATE, *VALUES, "--times", "0:1:1"], "the count must be a whole number from 2 to 10000000, not '1'"),
        ([*SIMULATE, *VALUES, "--times", "0:1:2.5"], "the count must be a whole number from 2 to 10000000, not '2.5'"),
        ([*SIMULATE, *VALUES, "--times", "0:1:-2"], "the count must be a whole number from 2 to 10000000, not '-2'"),
        ([*SIMULATE, *VALUES, "--times", "0:1:10000001"], "the count must be a whole number from 2 to 10000000, not"),
        ([*SIMULATE, *VALUES, "--times", "0:1:" + "9" * 5000], "the count must be a whole number from 2 to 10000000"),
        (["simulate", "nowhere.toml", *TIMES], "nowhere.toml: there is no such file"),
        (["show", "nowhere.toml"], "nowhere.toml: there is no such file"),
        (["show", "."], ".: this is a directory"),
        ([*SIMULATE, *VALUES, *TIMES, "-o", "no/where.csv"], "no/where.csv: there is no such directory to write to"),
        ([*SIMULATE, *VALUES, *TIMES, "-o", "."], ".: this is a directory; name a file inside it"),
        ([*SIMULATE, *VALUES, *TIMES, "-o", "a" * 300], "the file cannot be written (file name too long)"),
        ([*SIMULATE, *VALUES, *TIMES, "-o", "decay.toml"], "decay.toml: this is the model file; name another file"),
        ([*SIMULATE, *VALUES, *TIMES, "-o", "./x/../decay.toml"], "this is the model file; name another file"),
        ([*SIMULATE, *VALUES, *TIMES, "--plot", "a.csv"], "--plot a.csv: the name must end in one of .png, .pdf, .svg"),
        ([*SIMULATE, *VALUES, *TIMES, "--plot", "a"], "--plot a: the name must end in one of .png, .pdf, .svg"),
        ([*SIMULATE, *VALUES, *TIMES, "--plot", "a.png", "-o", "a.png"], "a.png: this is what --plot writes too"),
        ([*SIMULATE, *VALUES, *TIMES, "--plot", "no/a.png", "-o", "a.csv"], "no/a.png: there is no such directory"),
        ([*SIMULATE, *VALUES, *TIMES, "--plot", "a.png", "-o", "no/a.csv"], "no/a.csv: there is no such directory"),
    ],
)
def test_bad_arguments(decay, capsys, argv, sentence):
    message = refused(capsys, argv)
    assert sentence in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ("b=1", "--set 'b=1': the parameter 'b' is known in the model file; change it there"),
        ("w=1", "--set 'w=1': the initial value of the state 'w' is known in the model file; change it there"),
        ("u=1", "--set 'u=1': 'u' is an input; only parameters and states are set"),
    ],
)
def test_known_values_cannot_be_set(rich, capsys, pair, sentence):
    assert refused(capsys, ["simulate", rich, *VALUES, "c=1", pair, *TIMES]) == sentence


def test_the_model_file_is_recognised_under_other_names(decay, capsys):
    os.link(decay, "hard.toml")
    Path("soft.toml").symlink_to(decay)
    for name in ("hard.toml", "soft.toml"):
        argv = ["simulate", decay, *VALUES, *TIMES, "-o", name]
        assert refused(capsys, argv) == f"{name}: this is the model file; name another file to write to"


DRIVEN = """
[states]
x = "-k*x + u"

[outputs]
y = "x + u"

[inputs]
u = "sampled"
"""


@pytest.fixture
def driven(tmp_path, monkeypatch) -> list[str]:
    """A simulation that wants samples."""
    monkeypatch.chdir(tmp_path)
    Path("driven.toml").write_text(DRIVEN)
    Path("inputs.csv").write_text("time;u\n0;0\n1;0\n1;2,5\n4;2,5\n")
    return ["simulate", "driven.toml", *VALUES, *TIMES, "-q"]


def test_inputs_from_a_file(driven, capsys):
    """Decay from 3, and towards 2.5/k = 5 from t = 1 on; an output that jumps has the earlier value at the jump."""
    assert main([*driven, "--inputs", "inputs.csv"]) == 0
    _, rows = table(capsys.readouterr().out)
    at_one = 3 * math.exp(-0.5)
    later = [5 + (at_one - 5) * math.exp(-0.5 * (t - 1)) for t in (2, 3, 4)]
    np.testing.assert_allclose(rows[:, 1], [3, at_one, *(x + 2.5 for x in later)], rtol=1e-13)


def test_inputs_that_are_refused(driven, capsys):
    assert "the input 'u' is sampled; give its samples with --inputs FILE" in refused(capsys, driven)
    assert "no.csv: there is no such file" in refused(capsys, [*driven, "--inputs", "no.csv"])
    written = [*driven, "--inputs", "inputs.csv", "-o", "inputs.csv"]
    assert "inputs.csv: this is the file of the inputs; name another file to write to" in refused(capsys, written)
    for text, sentence in (
        ("time,u\n0,0\n1,zero\n", "bad.csv: line 3, column 'u': 'zero' is not a number"),
        ("time,u\n0,0\n1,1\n", "bad.csv: column 'u': the samples go from t = 0 to 1, but are needed from 0 to 4"),
        ("time,v\n0,0\n4,1\n", "bad.csv: column 'v': the model has no input of this name"),
        ("time\n0\n", "bad.csv: there is no column but 'time'"),
    ):
        Path("bad.csv").write_text(text)
        assert sentence in refused(capsys, [*driven, "--inputs", "bad.csv"])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_forbidden_directory(decay, capsys):
    Path("closed").mkdir(mode=0o500)
    message = refused(capsys, ["simulate", decay, *VALUES, *TIMES, "-o", "closed/out.csv"])
    assert message == "closed/out.csv: the file cannot be written (permission denied)"


def test_a_mistake_in_an_expression_is_shown_with_a_caret(decay, capsys):
    Path(decay).write_text('[states]\nx = "-k*x + 2*^x"\n')
    for command in (["show", decay], ["simulate", decay, *VALUES, *TIMES]):
        first, text, caret = refused(capsys, command).split("\n")
        assert first.startswith("decay.toml [states] x: the character '^' is not allowed")
        assert text[caret.index("^")] == "^"


def test_a_model_without_outputs(decay, capsys):
    Path(decay).write_text('[states]\nx = "-k*x"\n')
    message = refused(capsys, ["simulate", decay, *VALUES, *TIMES])
    assert message == "decay.toml: the model has no outputs; add a table [outputs], or ask for --states"


# --- simulations that end early ---


@pytest.mark.parametrize("options", [[], ["-o", "out.csv"], ["-o", "out.csv", "--plot", "out.png"]])
def test_blow_up(decay, capsys, options):
    Path("out.csv").write_text("old")
    Path(decay).write_text('[states]\nx = "k*x**2"\n[outputs]\ny = "x"\n')
    message = refused(capsys, ["simulate", decay, "--set", "k=0.5", "x=1", "--times", "0:4:5", *options], status=3)
    assert message.startswith("the solution grows without bound near t = 2;")


def test_too_many_steps(decay, capsys):
    Path(decay).write_text('[states]\nx = "k*y"\ny = "-k*x"\n[outputs]\no = "x"\n')
    argv = ["simulate", decay, "--set", "k=1", "x=1", "y=0", "--times", "0:1000:3", "--max-steps", "10"]
    assert "more than 10 steps" in refused(capsys, argv, status=3)
    assert main([*argv[:-1], "10000", "-q"]) == 0


def test_memory_that_does_not_suffice(decay, capsys, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(sys.modules["odejet.simulate"], "simulate", fail)
    message = refused(capsys, ["simulate", decay, *VALUES, *TIMES])
    assert message == "the memory is not large enough for this; ask for fewer times"


# --- show ---


def test_show(rich, capsys):
    assert main(["show", rich]) == 0
    assert capsys.readouterr() == (f"{odejet.Model.from_toml(rich)!r}\n", "")


def test_show_latex(decay, capsys):
    assert main(["show", decay, "--latex"]) == 0
    assert r"\dot{x} &= - k x" in capsys.readouterr().out


# --- the program as such ---


def test_version_and_help(capsys):
    for argv, text in ((["--version"], f"odejet {odejet.__version__}\n"), (["simulate", "--help"], "START:STOP:COUNT")):
        with pytest.raises(SystemExit) as end:
            main(argv)
        assert end.value.code == 0
        assert text in capsys.readouterr().out


def run(*argv: str, **options) -> subprocess.CompletedProcess[bytes]:
    source = str(Path(cli.__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-m", "odejet", *argv], check=False, env={**os.environ, "PYTHONPATH": source}, **options
    )


def test_draws_on_the_command_line(tmp_path):
    pytest.importorskip("walnutpie")
    pytest.importorskip("arviz")
    times = np.linspace(0, 2, 12)
    rows = [
        f"{t!r},{v!r}"
        for t, v in zip(times.tolist(), (5 * np.exp(-times) + 0.1 * np.sin(9 * times)).tolist(), strict=True)
    ]
    (tmp_path / "decay.csv").write_text("\n".join(["time,y", *rows]))
    (tmp_path / "decay.toml").write_text('[states]\nx = "-k*x"\n[outputs]\ny = "x"\n')
    files = ["--json", str(tmp_path / "draws.json"), "--report", str(tmp_path / "draws.html")]
    asked = [str(tmp_path / "decay.toml"), str(tmp_path / "decay.csv"), "--noise", "0.1", "--positive", *files]
    assert cli.main(["sample", *asked, "--ess", "100", "-q", "--prior", "k=halfnormal(2)"]) == 0
    assert odejet.Posterior.load(tmp_path / "draws.json").labels == ("x(0)", "k")
    assert "Intervals beside each other" in (tmp_path / "draws.html").read_text()
    assert cli.main(["sample", *asked, "--prior", "k=halfnorml(2)", "-q"]) == 2


def test_as_a_program(decay):
    done = run("simulate", decay, *VALUES, *TIMES, capture_output=True)
    assert done.returncode == 0
    assert done.stdout.startswith(b"time,y\n0.0,6.0\n")
    failed = run("simulate", decay, *TIMES, capture_output=True)
    assert (failed.returncode, failed.stdout) == (2, b"")
    assert failed.stderr == b"odejet: no value is given for x, k; add --set x=VALUE\n"


def test_an_interruption_while_importing_is_one_line(decay):
    """A process that is interrupted as soon as our handler stands, which is before anything slow is imported."""
    waits = "import sys, time\nclass Slow:\n    def find_spec(self, name, *_):\n"
    waits += "        if name == 'numpy':\n            print('importing', flush=True)\n            time.sleep(60)\n"
    Path("sitecustomize.py").write_text(f"{waits}sys.meta_path.insert(0, Slow())\n")
    path = os.pathsep.join([str(Path.cwd()), *sys.path])
    command = [sys.executable, "-m", "odejet", "simulate", decay, *VALUES, *TIMES]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # A shell that runs tests in the background has them ignore interruptions.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    environment = os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(command, env=environment, text=True, preexec_fn=heed, **pipes) as program:  # noqa: PLW1509
        assert program.stdout.readline() == "importing\n"
        program.send_signal(signal.SIGINT)
        assert program.communicate() == ("", "odejet: interrupted\n")
    assert program.returncode == 130


def test_a_reader_that_leaves(decay):
    read, write = os.pipe()
    os.close(read)
    done = run("simulate", decay, *VALUES, "--times", "0:1:100000", stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk(decay):
    with open("/dev/full", "wb") as full:
        done = run("simulate", decay, *VALUES, *TIMES, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"odejet: stdout cannot be written (no space left on device)\n")


# --- anything at all as a model file ---


def garbage(rng: random.Random) -> bytes:
    """Bytes of all kinds: any, printable ones, or pieces of TOML in disorder."""
    kind, length = rng.randrange(3), rng.randrange(120)
    if kind == 0:
        return rng.randbytes(length)
    if kind == 1:
        return bytes(rng.choice(range(32, 127)) for _ in range(length))
    pieces = [
        "[states]",
        "[",
        "]",
        "=",
        '"',
        "'",
        "\n",
        "x",
        "-k*x",
        ".",
        ",",
        "{",
        "}",
        "#",
        "1e9",
        "nan",
        "\0",
        "é",
        " ",
    ]
    return "".join(rng.choice(pieces) for _ in range(length // 4)).encode()


def test_random_bytes_get_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(0)
    for _ in range(10_000):
        Path("model.toml").write_bytes(content := garbage(rng))
        status = main(["simulate", "model.toml", *TIMES])
        out, err = capsys.readouterr()
        assert (status, out) == (2, ""), content
        assert err.startswith("odejet: model.toml"), content
        assert len(err.splitlines()) == 1 or "[states]" in err.splitlines()[0], content
    assert os.listdir() == ["model.toml"]


def test_damaged_models_are_shown_or_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(1)
    statuses = set()
    for _ in range(2000):
        content = bytearray(RICH.encode())
        for _ in range(rng.randrange(1, 4)):
            content[rng.randrange(len(content))] = rng.choice(b'abx=[]{}".,+-*/()^0159\n\t \xff')
        Path("model.toml").write_bytes(content)
        statuses.add(status := main(["show", "model.toml"]))
        out, err = capsys.readouterr()
        assert bool(out) == (status == 0) and bool(err) == (status == 2), bytes(content)
        assert status == 0 or err.startswith("odejet: model.toml"), bytes(content)
        assert len(err.splitlines()) in (0, 1, 3), bytes(content)
    assert statuses == {0, 2}


# --- fit and report ---


@pytest.fixture
def measured(decay) -> list[str]:
    """The arguments that fit a decay to 2 * 3 * exp(-t/2) with a little noise."""
    times = np.linspace(0, 5, 121)
    values = 6 * np.exp(-0.5 * times) + 0.01 * np.random.default_rng(1).standard_normal(len(times))
    np.savetxt("data.csv", np.column_stack([times, values]), delimiter=",", header="time,y", comments="")
    return ["fit", decay, "data.csv"]


def test_doses_that_make_no_sense_get_one_sentence(capsys, measured):
    for text, sentence in (
        ("time,state,amount\n0,gut,1\n", "doses.csv: line 2, column 'state': a dose goes to 'gut', which is no"),
        ("time,state,amount\n0,x,1\n1,3,1\n", "doses.csv: line 3: a dose goes to state number 3, but there are 1"),
        ("time,state,amount,experimentId\n0,x,1,hot\n", "doses.csv: line 2: there is no experiment 'hot'"),
        ("time,state,amount,duration\n0,x,1,-2\n", "doses.csv: line 2: the duration -2 is negative"),
        ("time,state\n0,x\n", "doses.csv: line 2: the amount is missing"),
    ):
        Path("doses.csv").write_text(text)
        assert refused(capsys, [*measured, "--doses", "doses.csv"]).startswith(sentence)


def test_inputs_that_make_no_sense_name_their_own_file(capsys, decay):
    Path("driven.toml").write_text(DECAY.replace("-k*x", "-k*x + u") + '\n[inputs]\nu = "sampled"\n')
    Path("data.csv").write_text("time,y\n0,1\n1,2\n2,3\n")
    for text, sentence in (
        ("time,w\n0,1\n2,1\n", "inputs.csv: column 'w': the model has no input of this name; its inputs are u"),
        ("time,u\n0,1\n1,1\n", "inputs.csv: column 'u': the samples go from t = 0 to 1, but are needed from 0 to 2"),
    ):
        Path("inputs.csv").write_text(text)
        for command in (
            ["fit", "driven.toml", "data.csv"],
            ["simulate", "driven.toml", *VALUES, "--times", "0,2"],
            ["design", "driven.toml", *VALUES, "--times", "0,2", "--noise", "0.1"],
        ):
            assert refused(capsys, [*command, "--inputs", "inputs.csv"]).startswith(sentence)


def test_noise_and_priors_in_a_model_name_that_file(capsys, measured):
    for text, sentence in (
        ('[noise]\ny = "gauss(s)"', "own.toml [noise]: the noise of 'y': there is no law 'gauss'"),
        ('[noise]\ny = "normal(x)"', "own.toml [noise]: the noise of 'y' depends on the state 'x'"),
        ('[priors]\nk = "normall(1, 2)"', "own.toml [priors]: the prior of 'k': there is no prior 'normall'"),
        ('[priors]\nkk = "normal(1, 2)"', "own.toml [priors]: priors name 'kk', which is no unknown"),
    ):
        Path("own.toml").write_text(DECAY + text)
        assert refused(capsys, ["fit", "own.toml", "data.csv"]).startswith(sentence)


def test_fit_prints_and_writes_the_same_fit(measured, capsys):
    files = ["--json", "fit.json", "--report", "fit.html"]
    assert main([*measured, "--bounds", "1e-5", "10", "--noise", "y=0.01", "--seed", "3", *files]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("decay: certified, 2 unknowns from 121 measurements")
    told = [line.split(" (in ")[0] for line in words(err).splitlines()]  # slow ones tell their time
    assert told == ["written: fit.json", "written: fit.html"]
    fit = odejet.Fit.load("fit.json")
    assert out.startswith(str(fit))
    assert (fit.seed, fit.effort) == (3, "auto")
    assert fit.parameters["k"] == pytest.approx(0.5, abs=5 * fit.stderr["k"])
    assert Path("fit.html").read_text().startswith("<!")
    assert main(["report", "fit.json", "again.html"]) == 0
    assert capsys.readouterr().err.endswith("written: again.html\n")
    assert "decay" in Path("again.html").read_text()


def test_a_fit_with_a_law_of_noise_and_a_prior(measured, capsys):
    told = ["--noise", "y=normal(s)", "--prior", "k=lognormal(log(0.5), 0.2)"]
    assert main([*measured, *told, "--json", "fit.json"]) == 0
    assert "priors: on k: the estimate is the maximum a posteriori" in capsys.readouterr().out
    fit = odejet.Fit.load("fit.json")
    assert fit.values["s"] == pytest.approx(0.01, rel=0.3) and fit.problem.priors == {"k": "lognormal(log(0.5), 0.2)"}


def test_a_fit_without_certificate_is_told_by_the_status(measured, capsys):
    assert main([*measured, "--bounds", "0.9", "10", "--effort", "quick", "-q", "--json", "fit.json"]) == 1
    assert capsys.readouterr() == ("", "")
    assert not odejet.Fit.load("fit.json").certificate.granted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--bounds", "2", "1"], "--bounds 2 1: the first must be below"),
        (["--bounds", "a", "1"], "'a' is not a finite number"),
        (["--noise", "z=1"], "the model has no output 'z'"),
        (["--noise", "y=1", "y=2"], "the noise of y is already given"),
        (["--noise", "1", "2"], "expected OUTPUT=NOISE"),
        (["--noise", "loud"], "must be a positive number"),
        (["--noise", "lognormal()"], "'lognormal()' has not the arguments of lognormal(scale)"),
        (["--noise", "y=normal(-1)"], "must be positive, not -1"),
        (["--prior", "k"], "expected NAME=TEXT, such as k1=normal(1, 0.2)"),
        (["--prior", "q=normal(1, 2)"], "priors name 'q', which is no unknown of the problem"),
        (["--prior", "k=normal(1, 2)", "k=normal(1, 2)"], "k is already given"),
        (["--seed", "-1"], "--seed: expected a whole number of at least 0, not '-1'"),
        (["--jobs", "0"], "--jobs: expected a whole number of at least 1, not '0'"),
        (["--effort", "most"], "invalid choice"),
        (["--time-limit", "0"], "time_limit must be a positive number of seconds"),
        (["--time-limit", "soon"], "--time-limit: expected a number of seconds, not 'soon'"),
        (["--bounds", "-inf", "1e3"], "--bounds '-inf 1e3': '-inf' is not a finite number"),
        (["--bounds", "1e3", "-1e3"], "--bounds 1000 -1000: the first must be below"),
        (["--noise", "-2%"], "must be a positive number, a percentage"),
        (["--start", "-1e3z"], "--start: '-1e3z' is not a finite number"),
        (["--values", "hot:k=1"], "there is no experiment 'hot'; there are experiment1"),
        (["--free", "k"], "'k' has no number in the model that could be freed; leave it out"),
        (["--time-limt", "3"], "'--time-limt 3' is not understood here; did you mean '--time-limit'; see odejet fit"),
        (["--json", ""], "--json: the name of the file is empty; name one"),
        (["--json", "nowhere/fit.json"], "nowhere/fit.json: there is no such directory to write to"),
        (["--report", "."], ".: this is a directory; name a file inside it"),
        (["--report", "data.csv/fit.html"], "there is no such directory to write to"),
        (["--json", "data.csv"], "data.csv: this is the file of the data"),
        (["--json", "a", "--report", "a"], "a: this is what --json writes too"),
        (["--inputs", "nothing.csv"], "nothing.csv"),
        (["--profile", "k*q"], "unknown name 'q'"),
        (["--intervals", "bootstrap"], "invalid choice"),
    ],
)
def test_a_fit_is_refused(measured, capsys, options, said):
    assert said in refused(capsys, [*measured, *options])


def test_a_fit_with_inputs_from_a_file(decay, capsys):
    Path(decay).write_text(
        DECAY.replace("-k*x", "-k*x + u").replace("[outputs]", '[inputs]\nu = "sampled"\n\n[outputs]')
    )
    times = np.linspace(0, 5, 121)
    exact = 2 * (0.4 + 2.6 * np.exp(-0.5 * times))  # of x' = 0.2 - x/2 from x = 3
    np.savetxt("data.csv", np.column_stack([times, exact]), delimiter=",", header="time,y", comments="")
    Path("inputs.csv").write_text("time,u\n0,0.2\n5,0.2\n")
    assert main(["fit", decay, "data.csv", "--inputs", "inputs.csv", "-q", "--json", "fit.json"]) == 0
    fit = odejet.Fit.load("fit.json")
    assert {**fit.parameters, **fit.initial_state} == pytest.approx({"k": 0.5, "x": 3.0}, rel=1e-9)


def test_a_model_that_cannot_reach_the_data_has_no_fit(measured, capsys):
    Path("decay.toml").write_text(DECAY.replace("-k*x", "1 + x**2"))  # tan(t + c) lives no longer than pi
    assert "no trajectory of the model reaches" in refused(capsys, [*measured, "--json", "fit.json"], status=3)
    assert not Path("fit.json").exists()


def test_intervals_by_the_likelihood(measured, capsys):
    assert main([*measured, "--noise", "0.01", "--intervals", "profile", "--profile", "k", "k*x"]) == 0
    lines = capsys.readouterr().out.split("by the likelihood:\n")[1].splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["x(0)", "k", "k*x"]
    low, high = (float(word) for word in lines[2].split() if word.replace(".", "").isdecimal())
    assert low < 1.5 < high < 1.02 * low


def test_numbers_below_zero_are_no_options(measured, capsys):
    assert main([*measured, "--bounds", "-1e1", "1e1", "--effort", "quick", "--start", "-1e-3"]) in (0, 1)
    assert "x(-0.001)" in capsys.readouterr().out


def test_what_is_no_model_is_named(measured, capsys):
    Path("problem.yaml").write_text("format_version: 1\n")
    Path("fit.json").write_text("{}")
    assert "problem.yaml: a PEtab problem is taken by odejet fit" in refused(capsys, ["show", "problem.yaml"])
    assert "data.csv: this is a table of data; name the model" in refused(capsys, ["fit", "data.csv", "decay.toml"])
    assert "fit.json: this is a saved fit; odejet report" in refused(capsys, ["identify", "fit.json"])


def test_a_file_that_is_not_there_may_be_one_that_is(measured, capsys):
    sentence = "decoy.toml: there is no such file; did you mean 'decay.toml'?"
    assert refused(capsys, ["fit", "decoy.toml", "data.csv"]) == sentence
    assert refused(capsys, ["fit", "decay.toml", "dada.csv"]).endswith("did you mean 'data.csv'?")
    assert refused(capsys, ["show", "other/decay.toml"]) == "other/decay.toml: there is no such file"


def test_show_checks_noise_and_priors(decay, capsys):
    for table, sentence in (
        ('[noise]\ny = "gauss(1)"', "decay.toml [noise]: the noise of 'y': there is no law 'gauss'"),
        ('[priors]\nk = "normal(1)"', "decay.toml [priors]: the prior of 'k': 'normal(1)' has not the arguments"),
    ):
        Path(decay).write_text(f"{DECAY}\n{table}\n")
        assert sentence in refused(capsys, ["show", decay])


# --- design ---


def test_the_design_of_a_decay(decay, capsys):
    assert main(["design", decay, "--set", "k=0.5", "x=3", "--times", "0:4:20", "--noise", "y=2%"]) == 0
    model = odejet.Model.from_toml(decay)
    design = odejet.design(model, {"k": 0.5}, {"x": 3}, np.linspace(0, 4, 20), "2%")
    assert capsys.readouterr().out == f"{design}\n"
    assert "twice the points of y" in repr(design)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "k=1", "--noise", "0.1"], "no value is given for x"),
        (["--set", "k=1", "x=1", "--noise", "relative"], "needs the sd of the noise"),
        (["--set", "k=1", "x=1", "--noise", "q=1"], "the model has no output 'q'"),
        (["--set", "k=1", "x=1", "--noise", "0.1", "--times", "0:1"], "expected START:STOP:COUNT"),
    ],
)
def test_a_design_is_refused(decay, capsys, options, said):
    assert said in refused(capsys, ["design", decay, "--times", "0:1:10", *options])


full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")


@full
def test_a_page_that_cannot_be_written_does_not_lose_the_fit(measured, capsys):
    assert main([*measured, "--json", "fit.json", "--report", "/dev/full"]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("decay: certified")
    assert "written: fit.json\n" in err
    assert err.endswith("odejet: /dev/full: the file cannot be written (no space left on device)\n")
    assert odejet.Fit.load("fit.json").certified


@full
def test_a_file_that_cannot_be_written_does_not_lose_the_page(measured, capsys):
    assert main([*measured, "-q", "--json", "/dev/full", "--report", "fit.html"]) == 2
    told = "odejet: /dev/full: the file cannot be written (no space left on device)\n"
    assert words(capsys.readouterr().err) == told
    assert Path("fit.html").read_text().startswith("<!")


def test_json_on_stdout(measured, capsys):
    assert main([*measured, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    fit = odejet.Fit.from_dict(json.loads(out))
    assert fit.parameters["k"] == pytest.approx(0.5, abs=5 * fit.stderr["k"])
    assert "decay: certified" in err and not Path("-").exists()
    Path("fit.json").write_text(out)
    assert main(["report", "fit.json", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!")
    assert "cannot both be stdout" in refused(capsys, [*measured, "--json", "-", "--report", "-"])


def test_all_solutions_are_printed(decay, capsys):
    """Two decays whose sum is measured can be exchanged."""
    Path(decay).write_text('[states]\nx = "-a*x"\nz = "-b*z"\n[outputs]\ny = "x + z"\n')
    times = np.linspace(0, 5, 101)
    exact = 2 * np.exp(-2 * times) + np.exp(-0.3 * times)
    np.savetxt("data.csv", np.column_stack([times, exact]), delimiter=",", header="time,y", comments="")
    main(["fit", decay, "data.csv"])
    lines = capsys.readouterr().out.splitlines()
    assert any("2 sets of values explain the data equally well" in line for line in lines)
    place = next(i for i, line in enumerate(lines) if line.split()[:3] == ["quantity", "solution", "1"])
    shown = {row[0]: [float(cell) for cell in row[1:3]] for row in map(str.split, lines[place + 2 : place + 6])}
    assert sorted(shown["a"]) == pytest.approx([0.3, 2.0], rel=1e-5)
    assert shown["b"] == pytest.approx(shown["a"][::-1], rel=1e-5)


def test_data_that_do_not_belong_to_the_model(measured, capsys):
    Path("data.csv").write_text("time,yy\n0,1\n1,2\n2,3\n")
    assert refused(capsys, measured).startswith("data.csv: experiment1: the model has no output 'yy'")
    Path("data.csv").unlink()
    assert "data.csv" in refused(capsys, measured)


def test_reports_need_a_fit(decay, capsys):
    assert "there is no such file" in refused(capsys, ["report", "fit.json", "fit.html"])
    Path("fit.json").write_text("{}")
    assert "not a fit that odejet saved" in refused(capsys, ["report", "fit.json", "fit.html"])
    assert "this is the fit file" in refused(capsys, ["report", "fit.json", "fit.json"])


# --- predict and compare ---


@pytest.fixture
def saved(decay) -> str:
    """A fit file of a decay without a search."""
    from tests.fits import refined_fit

    times = np.linspace(0, 4, 9)
    values = 6 * np.exp(-0.5 * times) + 0.05 * np.random.default_rng(1).normal(size=9)
    model, data = odejet.Model.from_toml(decay), odejet.Data(times, {"y": values})
    refined_fit(model, data, [3.0, 0.5]).save("fit.json")
    refined_fit(model.replace(outputs={"y": "2*x + c"}, name="offset"), data, [3.0, 0.5, 0.0]).save("offset.json")
    return "fit.json"


def test_predictions_are_rows_of_a_table(saved, capsys):
    assert main(["predict", saved, "--times", "0,8", "--states", "--level", "0.9", "--plot", "bands.png"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "quantity,kind,time,value,stderr,low,high,measured_low,measured_high,method"
    assert [row.split(",")[:3] for row in rows] == [
        ["y", "output", "0.0"], ["y", "output", "8.0"], ["x", "state", "0.0"], ["x", "state", "8.0"]
    ]  # fmt: skip
    expected = odejet.Fit.load(saved).predict([0, 8], level=0.9)
    assert float(rows[1].split(",")[6]) == expected["y"].high[1] and rows[3].split(",")[7] == ""
    assert Path("bands.png").read_bytes().startswith(b"\x89PNG")
    assert main(["predict", saved, "-o", "bands.csv"]) == 0
    assert len(Path("bands.csv").read_text().splitlines()) == 10 and capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--times", "x"], "not a finite number"),
        (["--level", "95"], "probability between 0 and 1"),
        (["--experiment", "other"], "no experiment 'other'"),
        (["--plot", "bands.txt"], "must end in one of"),
        (["-o", "fit.json"], "this is the fit file"),
        (["--plot", "a.png", "-o", "a.png"], "this is what -o writes too"),
    ],
)
def test_a_prediction_is_refused(saved, capsys, options, said):
    assert said in refused(capsys, ["predict", saved, *options])


def test_fits_are_compared(saved, capsys):
    assert main(["compare", saved, "offset.json"]) == 0
    head, _, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["model", "parameters"] and first.startswith("decay") and second.startswith("offset")
    assert "named twice" in refused(capsys, ["compare", saved, saved])
    assert "there is no such file" in refused(capsys, ["compare", saved, "other.json"])
    fit = odejet.Fit.load(saved)
    times, values = np.linspace(0, 4, 9), np.exp(-np.linspace(0, 4, 9))
    from tests.fits import refined_fit

    refined_fit(fit.model, odejet.Data(times, {"y": values}), [0.5, 1.0], noise=0.1).save("other.json")
    assert "different data" in refused(capsys, ["compare", saved, "other.json"])
