"""Explicit systems: the paper's figures, exact vanishing at solutions, and the roots that independent programs find."""

import random
import re
import subprocess
from fractions import Fraction
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks import explicit as bench
from odejet import Model, ModelError
from odejet.identify import msolve
from odejet.jets import modular
from odejet.model import algebraic
from problems import gfan, phcpack, systems
from problems.prolong import Sizes, Variable, prolong
from tests import strategies

needs_phc = pytest.mark.skipif(phcpack.executable() is None, reason="phc is not installed (Debian: phcpack)")
needs_gfan = pytest.mark.skipif(gfan.executable() is None, reason="gfan is not installed (Debian: gfan)")
needs_msolve = pytest.mark.skipif(msolve.executable() is None, reason="msolve is not installed")

TOY = Model(states={"x": "a*x**2 + b"}, outputs={"y": "x"})
"""The introductory example of the paper's Section 2."""

TOY_ROWS = (((0, 0), (0, 1), (0, 2)),)


# --- the equations ----------------------------------------------------------------------------------------------------


def test_the_paper_s_introductory_example():
    system = prolong(TOY, TOY_ROWS, beyond=0)
    lines = str(system).splitlines()
    assert lines[1:3] == ["  unknowns: a, b, x, x', x''", "  data: y, y', y''"]
    assert sorted(lines[3:]) == sorted(
        ["  y - x = 0", "  y' - x' = 0", "  y'' - x'' = 0", "  x' - a*x**2 - b = 0", "  x'' - 2*a*x*x' = 0"]
    )


def test_cstr_has_the_sizes_of_the_paper():
    system = bench.square("cstr")
    assert system.sizes == Sizes(equations=26, unknowns=26, terms=242, monomials=207, degree=5)
    measured = [Variable(name, order, 0) for name in ("y1", "u") for order in range(7)]
    assert list(system.data) == measured


@pytest.mark.parametrize("name", systems.names())
def test_template_sizes_of_the_paper(name):
    order, equations = bench.PAPER[name]
    system = bench.square(name)
    sizes = system.sizes
    assert max(v.order for v in system.data if v.name in system.model.outputs) == order
    assert sizes.equations == sizes.unknowns
    # Here greedy rows use no derivative of R; the paper's selection does, see the next test.
    assert sizes.equations == equations - (name == "latent_subpopulation")


def test_other_rows_of_the_latent_subpopulation_give_the_size_of_the_paper():
    rows = [(i, 0) for i in range(5)] + [(0, 1), (1, 1), (2, 1), (4, 1), (0, 2), (1, 2)]
    system = prolong(systems.load("latent_subpopulation").model, (rows,))
    assert system.sizes.equations == system.sizes.unknowns == 23
    z, data = bench.generic(system, seed=0)
    assert np.linalg.matrix_rank(jacobian(system.at(data), z)) == 23


def jacobian(system, z: np.ndarray, step: float = 1e-6) -> np.ndarray:
    columns = [(system.values(z + step * e) - system.values(z - step * e)) / (2 * step) for e in np.eye(len(z))]
    return np.array(columns).T


@pytest.mark.parametrize("beyond", [0, 1, 2])
@pytest.mark.parametrize("name", systems.names())
def test_solutions_of_the_model_solve_the_equations(name, beyond):
    system = bench.square(name, beyond)
    z, data = bench.generic(system, seed=3)
    assert np.max(system.at(data).residuals(z)) < 1e-12
    assert system.at(data).genuine(z)
    # An equation that a change of the unknowns leaves alone would tell nothing.
    assert np.min(np.max(abs(jacobian(system.at(data), z)), axis=1)) > 1e-9
    lone = dict(data) | {system.data[0]: data[system.data[0]] + 1}
    assert np.max(system.at(lone).residuals(z)) > 1e-6


FIELD = modular.Field(modular.PRIMES[0])


TEXTS = strategies.texts(["x", "z", "k", "β", "u", "t"], leaves=6).filter(strategies.is_expression)


@given(st.lists(TEXTS, min_size=3, max_size=3), st.sets(st.integers(0, 2), min_size=1), st.integers(0, 1))
@settings(max_examples=60, deadline=None)
def test_random_models_solve_their_equations_exactly(texts, orders, beyond):
    """In modular arithmetic, with jets that do not come from these equations."""
    model = Model({"x": texts[0], "z": texts[1]}, {"y": texts[2]}, {"u": "exp(t)"})
    try:
        system = prolong(model, [[(0, order) for order in orders]], beyond=beyond)
        tape = algebraic.build(model)
        point = modular.random_point(tape, FIELD, random.Random(1), order=4)
    except ModelError as refusal:
        assert "division by zero" in str(refusal) or "too many terms" in str(refusal)
        return
    except modular.Unlucky:
        assume(False)
    jets = modular.jets(tape, FIELD, point, 3)
    values = dict(zip(map(Variable, model.parameters), point.parameters, strict=True))
    values[Variable("t", 0, 0)] = point.time
    for quantities, series in (
        (model.states, jets.states[:, :, 0]),
        (model.outputs, jets.outputs[:, :, 0]),
        (model.inputs, np.array(point.inputs, dtype=object)),
    ):
        for name, coefficients in zip(quantities, series, strict=True):
            values |= {Variable(name, k, 0): factorial(k) * int(c) for k, c in enumerate(coefficients)}
    for equation in system.equations:
        terms = (FIELD.residue(c) * prod(values[v] for v in monomial) for monomial, c in equation.items())
        assert sum(terms) % FIELD.prime == 0


def test_two_points_share_the_parameters():
    model = systems.load("lotka_volterra").model
    system = prolong(model, (((0, 0), (0, 1), (0, 2), (0, 3)), ((0, 0), (0, 1), (0, 2))), beyond=0)
    assert [str(v) for v in system.unknowns[:3]] == ["k1", "k2", "k3"]
    assert Variable("r", 2, 1) in system.unknowns
    assert str(Variable("r", 2, 1)) == "r''@2"
    assert system.sizes.equations == system.sizes.unknowns == 3 + 4 + 3 + 3 + 2
    z, data = bench.generic(system, seed=0, points=2)
    assert np.max(system.at(data).residuals(z)) < 1e-12


def test_what_the_rows_do_not_need_is_left_out():
    model = Model({"x": "-a*x", "z": "b/(z - x)"}, {"y1": "x", "y2": "z/(1 + c*z)"})
    system = prolong(model, (((0, 0), (0, 1)),), beyond=0)
    assert [str(v) for v in system.unknowns] == ["a", "x", "x'"]
    assert not system.denominators
    assert len(prolong(model, (((1, 1),),)).denominators) == 2


def test_unknowns_can_be_fixed():
    system = prolong(TOY, (((0, 1), (0, 2)),), fixed=["a", "x"], beyond=0)
    assert [str(v) for v in system.unknowns] == ["b", "x'", "x''"]
    assert {str(v) for v in system.data} == {"a", "x", "y'", "y''"}
    assert system.sizes.degree == 1
    z, data = bench.generic(system, seed=0)
    assert np.max(system.at(data).residuals(z)) < 1e-14


def test_known_functions_are_data():
    model = Model(states={"x": "-k*x + sin(2*t)*u + sqrt(2)*t + exp(c)"}, outputs={"y": "x"}, inputs={"u": "cos(t)"})
    system = prolong(model, (((0, 0), (0, 1), (0, 2)),), fixed=["c"], beyond=0)
    assert [str(v) for v in system.unknowns] == ["k", "x", "x'", "x''"]
    assert {str(v) for v in system.data} >= {"sin(2*t)", "sin(2*t)'", "u", "u'", "t", "sqrt(2)", "exp(c)"}
    z, data = system.graph(np.array([0.3]), np.array([0.7, 0.2]), 0.4)
    assert data[Variable("sin(2*t)", 1, 0)] == pytest.approx(2 * np.cos(0.8))
    assert np.max(system.at(data).residuals(z)) < 1e-14


@pytest.mark.parametrize(
    ("model", "rows", "fixed", "message"),
    [
        (Model({"x": "exp(k*x)"}, {"y": "x"}), (((0, 1),),), (), "'exp(k*x)' depends on 'k' and is not rational"),
        (Model({"x": "k*x**a"}, {"y": "x"}), (((0, 1),),), ("a",), "depends on 'x'"),
        (TOY, (((1, 0),),), (), "an output from 0 to 0"),
        (TOY, (((0, -1),),), (), "a row is"),
        (TOY, ((0, 0), (0, 1)), (), "a row is"),
        (TOY, ((),), (), "no rows"),
        (TOY, TOY_ROWS, ("c",), "no unknown 'c'"),
        (Model({"x": "(x + y + z + a + b + c)**60", "y": "1", "z": "1"}, {"o": "x"}), (((0, 1),),), (), "too many"),
        (Model({"x": "1/(x - x)"}, {"y": "x"}), (((0, 1),),), (), "division by zero"),
    ],
)
def test_refusals(model, rows, fixed, message):
    with pytest.raises(ModelError) as refusal:
        prolong(model, rows, fixed)
    assert message in str(refusal.value)


def test_msolve_wants_real_data():
    system = prolong(TOY, TOY_ROWS)
    with pytest.raises(ModelError, match="msolve wants finite real numbers"):
        system.to_msolve({Variable("y", k, 0): 1j for k in range(3)})


def test_missing_data_are_named():
    with pytest.raises(ModelError, match="the data y'' are missing"):
        prolong(TOY, TOY_ROWS).at({Variable("y", k, 0): 1.0 for k in range(2)})


# --- other programs ---------------------------------------------------------------------------------------------------

TOY_DATA = {Variable("y", k, 0): Fraction(value) for k, value in enumerate(("1", "1", "1.2"))}
"""The derivatives that the paper's example estimates from its data."""


@needs_msolve
def test_msolve_solves_the_paper_s_example(tmp_path):
    system = prolong(TOY, TOY_ROWS, beyond=0)
    (tmp_path / "rational").write_text(system.to_msolve(TOY_DATA))
    solution = run_msolve(tmp_path, "rational")
    # Intervals [a / 2^m, b / 2^n] around each coordinate, after the dimension and the number of lists.
    ends = [int(top) / 2 ** int(power or 0) for top, power in re.findall(r"(-?\d+)(?: / 2\^(\d+))?", solution)[2:]]
    values = [(a + b) / 2 for a, b in zip(ends[::2], ends[1::2], strict=True)]
    assert values == pytest.approx([0.6, 0.4, 1.0, 1.0, 1.2])


def run_msolve(folder, name: str, *options: str) -> str:
    command = [msolve.executable(), *options, "-f", name, "-o", "out"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=20)
    return (folder / "out").read_text()


@needs_msolve
def test_msolve_reads_the_system_modulo_a_prime(tmp_path):
    prime = 2**31 - 1
    system = prolong(TOY, TOY_ROWS, beyond=0)
    (tmp_path / "modular").write_text(system.to_msolve(TOY_DATA, prime))
    basis = run_msolve(tmp_path, "modular", "-g", "2")
    for i, value in enumerate((Fraction(3, 5), Fraction(2, 5), 1, 1, Fraction(6, 5))):
        residue = -value.numerator * pow(value.denominator, -1, prime) % prime
        assert f"1*z{i + 1}^1+{residue}" in basis.replace(" ", "")


BRANCHED = Model(states={"x": "0"}, outputs={"y1": "x", "y2": "(p**2 - 1)/(p - q)", "y3": "(q**2 - 4*q + 3)/(p - q)"})
"""Cleared of p - q its outputs vanish at p = q = 1, whatever is measured."""


@needs_phc
def test_roots_with_a_vanishing_denominator_are_recognised():
    system = prolong(BRANCHED, (((0, 0), (1, 0), (2, 0)),), beyond=0)
    z, data = bench.generic(system, seed=0)
    numeric = system.at(data)
    found = phcpack.black_box(numeric.to_phcpack())
    every = np.stack([found[f"z{i + 1}"] for i in range(len(system.unknowns))], axis=-1)
    assert np.max(numeric.residuals(every)) < 1e-10
    spurious = every[~numeric.genuine(every)]
    assert [str(v) for v in system.unknowns] == ["p", "q", "x"]
    np.testing.assert_allclose(spurious[:, :2], np.ones((1, 2)), atol=1e-6)
    genuine = phcpack.roots(system, data)
    assert len(genuine) == len(every) - 1
    assert np.min(np.linalg.norm(genuine - z, axis=1)) < 1e-8


def polyhedral(text: str) -> dict:
    return phcpack.polyhedral(text).roots


@needs_phc
@pytest.mark.parametrize(
    ("name", "count", "solver"),
    [
        ("lotka_volterra", 2, phcpack.black_box),
        ("fitzhugh_nagumo", 2, phcpack.black_box),
        ("repressilator", 2, phcpack.black_box),
        ("sirt_treatment", 4, phcpack.black_box),
        ("hiv", 4, polyhedral),
        pytest.param("cstr", 8, polyhedral, marks=pytest.mark.slow),
    ],
)
def test_finite_roots_by_phcpack(name, count, solver):
    system = bench.square(name, beyond=0)
    z, data = bench.generic(system, seed=1)
    roots = phcpack.roots(system, data, solver)
    assert len(roots) == count
    assert np.max(system.at(data).residuals(roots)) < 1e-10
    assert np.min(np.max(abs(roots - z) / np.maximum(abs(z), 1e-3), axis=1)) < 1e-6


@needs_phc
def test_derivatives_beyond_what_is_needed_change_no_root():
    lean, paper = (bench.square("lotka_volterra", beyond) for beyond in (0, 1))
    _, data = bench.generic(paper, seed=1)
    few, many = phcpack.roots(lean, data), phcpack.roots(paper, data)
    kept = [paper.unknowns.index(variable) for variable in lean.unknowns]
    assert len(few) == len(many) == 2
    np.testing.assert_allclose(np.sort_complex(few[:, 0]), np.sort_complex(many[:, kept[0]]), rtol=1e-8)


@needs_gfan
def test_mixed_volume_of_cstr():
    """The paper's 134, by an independent program in exact arithmetic."""
    system = bench.square("cstr")
    assert gfan.mixed_volume(system.at(bench.generic(system, seed=1)[1])) == 134
