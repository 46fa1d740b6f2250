"""Exports of fitted models: programs that run alone and say what odejet says, and what other tools read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest

import odejet as oj
from odejet.cli import main
from odejet.io.code import PYTHON, STAN
from odejet.io.exports import python, stan, stan_data, text_of, valued
from odejet.model.expressions import evaluate
from odejet.model.grammar import parse
from tests.fits import refined_fit

TIMES = np.linspace(0, 6, 25)
STANC = shutil.which("stanc") or os.environ.get("STANC")


def fitted(model: oj.Model, values: dict, states: dict, start: list[float], **given: object) -> oj.Fit:
    """A fit to exact data, begun at what made them."""
    exact = oj.simulate(model, values, states, TIMES, **({"inputs": given["inputs"]} if "inputs" in given else {}))
    data = oj.Data(TIMES, {name: exact[name] * (1 + 0.01 * np.sin(99 * TIMES)) for name in model.outputs}, **given)
    return refined_fit(model, data, start)


def program(fit: oj.Fit) -> types.ModuleType:
    module = types.ModuleType("exported")
    exec(compile(python(fit), "exported", "exec"), module.__dict__)
    return module


PREDATORS = oj.Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - lambda_*w"}, {"y1": "r", "total": "r + w"}, name='a "b" c')
DOSED = oj.Model(
    {"gut": "-ka*gut", "blood": "ka*gut - ke*blood"},
    {"c": "blood/V"},
    initial={"gut": "D", "blood": 0},
    fixed={"D": 10, "V": 2},
    events=[oj.Event(at=1, every=1.5, count=3, set={"gut": "gut + D/2"})],
)
SWITCHED = oj.Model(
    {"x": "a - k*x*piecewise(1, x > 1, 0.5)", "n": "0*n"},
    {"y": "max(x, 0.1) + abs(n)"},
    initial={"n": 0},
    events=[oj.Event(when="x > 2.5", set={"x": "x/2", "n": "n + 1"})],
)
DRIVEN = oj.Model({"x": "-k*x + b*u + sin(t)"}, {"y": "x**2 + u"}, inputs={"u": "sampled"})


def cases() -> dict[str, oj.Fit]:
    samples = {"u": (np.array([0.0, 2.0, 2.0, 6.0]), np.array([0.0, 1.0, 3.0, 0.5]))}
    return {
        "predators": fitted(
            PREDATORS, {"k1": 0.9, "k2": 0.5, "lambda_": 0.7}, {"r": 1.0, "w": 0.5}, [1.0, 0.5, 0.9, 0.5, 0.7]
        ),
        "dosed": fitted(DOSED, {"ka": 1.1, "ke": 0.4}, {}, [1.1, 0.4]),
        "switched": fitted(SWITCHED, {"a": 2.0, "k": 0.3}, {"x": 0.5}, [0.5, 2.0, 0.3]),
        "driven": fitted(DRIVEN, {"k": 0.8, "b": 0.6}, {"x": 1.0}, [1.0, 0.8, 0.6], inputs=samples),
    }


FITS = cases()


@pytest.mark.parametrize("name", FITS)
def test_the_python_program_simulates_what_odejet_does(name):
    """Away from events, of which SciPy's solver knows the time to its own tolerance only."""
    fit, times = FITS[name], TIMES[:-1] + 0.061
    expected, found = fit.simulate(times), program(fit).simulate(times)
    for output in fit.model.outputs:
        assert found[output] == pytest.approx(expected[output], rel=2e-5, abs=2e-5), output
    for state in fit.model.states:
        assert found[state] == pytest.approx(expected.states[state], rel=2e-5, abs=2e-5), state


def test_the_program_runs_alone_and_takes_other_values(tmp_path):
    path = tmp_path / "model.py"
    FITS["predators"].export(path)
    alone = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, env=alone, cwd=tmp_path)
    assert ran.stdout.splitlines()[0] == "time y1 total" and len(ran.stdout.splitlines()) == 12
    assert "odejet" not in path.read_text().partition('"""\n')[2]
    values = {"k1": 1.2, "k2": 0.5, "lambda_": 0.7}
    found = program(FITS["predators"]).simulate(TIMES, r=2.0, w=0.3, **values)
    assert found["y1"] == pytest.approx(oj.simulate(PREDATORS, values, {"r": 2.0, "w": 0.3}, TIMES)["y1"], rel=1e-5)
    with pytest.raises(KeyError, match="the model has no kk"):
        program(FITS["predators"]).simulate(TIMES, kk=1)


def test_expressions_are_the_same_in_python():
    smooth = "-(a - b)/c*(2 - b)/3 + a**-0.5*exp(-b)**2 - min(a, b, 1/3)"
    expression = parse(f"{smooth} + piecewise(a, a > b and not c < 1, -b/c, b == c, 4)")
    for a, b, c in ((0.7, 0.3, 1.4), (0.2, 0.9, 0.4), (1.5, 0.4, 0.4)):
        values = {"a": a, "b": b, "c": c}
        written = eval(PYTHON.write(expression, {name: name for name in values}), {"np": np, **values})
        assert written == pytest.approx(evaluate(expression, values, np))


def test_names_that_a_language_has_taken_are_others():
    assert PYTHON.identifiers(["lambda", "np", "k"]) == {"lambda": "lambda_v", "np": "np_v", "k": "k"}
    assert STAN.identifiers(["real", "α", "k_"])["k_"] == "k" and STAN.identifiers(["α"])["α"].isascii()


@pytest.mark.parametrize("suffix", [".xml", ".ant", ".toml"])
def test_files_of_other_tools_hold_the_estimates(suffix, tmp_path):
    if suffix != ".toml":
        pytest.importorskip("libsbml" if suffix == ".xml" else "antimony", reason="pip install 'odejet[petab]'")
    fit = FITS["predators"]
    path = tmp_path / f"model{suffix}"
    fit.export(path)
    read = {".xml": oj.read_sbml, ".ant": oj.read_antimony, ".toml": oj.Model.from_toml}[suffix](path)
    assert not read.unknowns
    found = oj.simulate(read, times=TIMES)
    assert found["y1"] == pytest.approx(fit.simulate(TIMES)["y1"], rel=1e-9)


def test_the_valued_model_of_an_experiment_has_no_unknowns():
    assert all(valued(fit).unknowns == () for fit in FITS.values())


def test_a_stan_program_and_its_data(tmp_path):
    fit = FITS["predators"]
    fit.export(tmp_path / "model.stan")
    text, data = (tmp_path / "model.stan").read_text(), json.loads((tmp_path / "model.json").read_text())
    assert data["N"] == len(TIMES) - 1 and data["times"] == TIMES[1:].tolist() and data["at_y1"][0] == 1
    assert data["y1_measured"] == fit.data.experiments[0].outputs["y1"].values[1:].tolist()
    assert "y1_measured ~ normal(y1[at_y1], sigma_y1);" in text and "ode_bdf_tol(rates" in text
    assert stan_data(fit) == (tmp_path / "model.json").read_text()


@pytest.mark.skipif(not STANC, reason="there is no stanc here to check programs with")
def test_stan_takes_the_program(tmp_path):
    model = oj.Model(
        {"x": "-k*x*u + piecewise(a, t > 1, 0)"},
        {"y": "log(1 + x**2)"},
        inputs={"u": "1 + sin(t)"},
        initial={"x": "2*k"},
        fixed={"a": "0.1"},
        bounds={"k": (0, 5)},
    )
    for number, fit in enumerate((FITS["predators"], fitted(model, {"k": 0.4}, {}, [0.4]))):
        path = tmp_path / f"model{number}.stan"
        path.write_text(stan(fit))
        checked = subprocess.run([STANC, "--o", os.devnull, path], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(("name", "what"), [("dosed", "has events"), ("driven", "has sampled inputs")])
def test_what_stan_cannot_have_is_refused(name, what, tmp_path):
    with pytest.raises(oj.ModelError, match=f"the model {what}, which the program in Stan cannot have"):
        FITS[name].export(tmp_path / "model.stan")
    assert not list(tmp_path.iterdir())


PIECES = oj.Model(
    {"x": "a - k*x*piecewise(1, x > 1 and t < 4, 0.5) + u", "z": "-min(z, 0.3)**2"},
    {"y": "max(x, 0.1) + abs(z)"},
    initial={"z": "2*a"},
    inputs={"u": "0.1*sin(t)"},
)


@pytest.mark.parametrize("name", ["predators", "pieces"])
def test_casadi_simulates_what_odejet_does(name, tmp_path):
    pytest.importorskip("casadi", reason="CasADi is needed to run what is written for it")
    fit = (
        cases()["predators"]
        if name == "predators"
        else fitted(PIECES, {"a": 0.8, "k": 0.5}, {"x": 0.3}, [0.3, 0.8, 0.5])
    )
    path = tmp_path / "model.casadi.py"
    fit.export(path)
    module = types.ModuleType("exported")
    exec(compile(path.read_text(), "exported", "exec"), module.__dict__)
    found, here = module.simulate(TIMES), fit.simulate(TIMES)
    for output in fit.model.outputs:
        assert found[output] == pytest.approx(here[output], rel=1e-6, abs=1e-8)
    # Its symbols can be differentiated: the rates depend on every parameter that is not in the outputs alone.
    import casadi

    own = module.model()
    assert casadi.jacobian(own["rates"], own["p"]).nnz() > 0


def test_modelica_has_equations_starts_and_resets(tmp_path):
    path = tmp_path / "dosed.mo"
    cases()["dosed"].export(path)
    text = path.read_text()
    assert "Real gut(start = D, fixed = true);" in text and "parameter Real D = 10.0;" in text
    assert "  der(gut) = -(ka*gut);" in text
    clause = [
        "  when sample(1.0, 1.5) and time < 1.0 + 2.5*(1.5) then",
        "    reinit(gut, gut + (D/2.0));",
        "  end when;",
    ]
    assert "\n".join(clause) in text
    assert text.count("equation\n") == 1 and text.rstrip().endswith(";")


@pytest.mark.parametrize(("name", "suffix"), [("dosed", ".casadi.py"), ("driven", ".casadi.py"), ("driven", ".mo")])
def test_what_systems_cannot_have_is_refused(name, suffix, tmp_path):
    with pytest.raises(oj.ModelError, match="cannot be written for"):
        cases()[name].export(tmp_path / f"model{suffix}")


def test_latex_has_equations_and_estimates():
    pytest.importorskip("sympy", reason="pip install 'odejet[sympy]'")
    text = text_of(FITS["predators"], ".tex")
    assert "\\begin{tabular}" in text and "lambda\\_ & 0.7" in text and "\\[" in text


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(oj.ModelError, match=r"the name must end in one of \.py, \.casadi\.py, \.mo, \.stan"):
        FITS["predators"].export(tmp_path / "model.m")


def test_the_command_writes_a_saved_fit(tmp_path, capsys):
    saved, out = tmp_path / "fit.json", tmp_path / "model.py"
    FITS["predators"].save(saved)
    assert main(["convert", str(saved), str(out)]) == 0
    assert out.read_text() == python(oj.Fit.load(saved)) and f"written: {out}" in capsys.readouterr().err
    assert main(["convert", str(saved), str(out), "--free", "k1"]) == 2
    assert "leave out --free" in capsys.readouterr().err
