"""The three forms of a Jacobian: the same products, factors and rows, whatever the law of noise and the priors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odejet import Censored, Data, Model
from odejet.objective import misfit
from odejet.objective.evaluation import Aim
from odejet.objective.jacobian import BlockJacobian, DenseJacobian, StreamedJacobian, laid_out
from odejet.objective.linear_model import LinearModel
from odejet.objective.triangles import Pile, triangle
from odejet.problem import Problem

CASCADE = Model({"a": "-k1*a", "b": "k1*a - k2*b/(m + b)"}, {"u": "a", "v": "s*b + a*b"})
Z = np.array([2.0, 0.5, 0.6, 0.3, 0.8, 1.5])


@given(st.integers(0, 10_000), st.integers(1, 6), st.lists(st.integers(0, 3000), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_a_pile_has_the_triangle_of_all_its_rows(seed, columns, sizes):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(size, columns)) for size in sizes]
    pile = Pile(columns)
    for part in parts:
        pile.add(part)
    whole = np.concatenate(parts)
    assert len(pile.triangle) <= max(columns, 0)
    np.testing.assert_allclose(pile.triangle.T @ pile.triangle, whole.T @ whole, rtol=1e-11, atol=1e-9)


def test_small_singular_values_survive_reduction_in_parts():
    rng = np.random.default_rng(2)
    whole = rng.normal(size=(30_000, 5))
    whole[:, 0] = whole[:, 1] + 1e-10 * rng.normal(size=len(whole))  # normal equations would not see it
    pile = Pile(5)
    for part in np.array_split(whole, 37):
        pile.add(part)
    sizes = (np.linalg.svd(one, compute_uv=False) for one in (pile.triangle, triangle(whole)))
    np.testing.assert_allclose(*sizes, rtol=1e-5)


def cascades(shapes=None, positive=False, limit=None):
    rng, found = np.random.default_rng(7), []
    for number in range(3):
        times = np.linspace(0, 5, 30 + number)
        noise = None if shapes is None else {"u": 0.02, "v": 0.1 * (1 + times)}
        values = {"u": rng.normal(size=len(times)), "v": rng.normal(size=len(times))}
        values = {name: np.exp(own) if positive else own for name, own in values.items()}
        if limit is not None:
            values = {name: Censored(np.where(own < limit, np.nan, own), below=limit) for name, own in values.items()}
        found.append(Data(times, values, noise=noise, name=f"e{number}"))
    return Data.join(found)


LAWS = {
    "squares": {},
    "weights": {"shapes": "given"},
    "a law": {"noise": {"u": "lognormal(su)", "v": "normal(sv + 0.1*v)"}},
    "a law without a scale": {"noise": {"u": "student(0.1, 4)", "v": "laplace(sv)"}},
    "errors that persist": {
        "noise": {"u": "ar1(s, exp(-1/tau))", "v": "ar1(0.3, exp(-2/tau))"},
        "priors": {"k1": "normal(1, 0.2)"},
    },
    "limits": {"limits": 0.0, "noise": {"u": "normal(su)", "v": "student(sv + 0.1*abs(v), 4)"}},
    "priors": {"priors": {"k1": "normal(1, 0.2)", "a": "lognormal(0.1, 0.5)"}},
    "both": {"noise": "student(s, 4)", "priors": {"k2": "cauchy(1, 0.2)", "s": "gamma(2, 0.1)", "b": "gamma(2, 1)"}},
}


def asked(kind):
    options = dict(LAWS[kind])
    data = cascades(options.pop("shapes", None), kind == "a law", options.pop("limits", None))
    return Problem(CASCADE, data, **options).misfit


def point(problem):
    return np.random.default_rng(0).uniform(0.4, 1.2, size=len(problem.unknowns))


@pytest.mark.parametrize("kind", LAWS)
def test_streamed_rows_are_those_of_the_whole_jacobian(kind, monkeypatch):
    problem = asked(kind)
    z = point(problem)
    whole = problem.evaluate(z)
    before, target = np.random.default_rng(1).normal(size=(2, problem.rows))
    roots = np.random.default_rng(2).uniform(0.5, 2, size=problem.rows)
    monkeypatch.setattr(misfit, "LARGE", 0)
    streamed = asked(kind)
    links = None if whole.standing is None else whole.standing.links
    found = streamed.evaluate(z, aim=Aim(before, target, roots, links))
    assert not found.jacobian.keeps_rows and whole.jacobian.keeps_rows
    np.testing.assert_allclose(found.residuals, whole.residuals, rtol=1e-13)
    positions = whole.residuals if whole.standing is None else whole.standing.positions
    there = positions * roots if links is None else links.applied(positions * roots)
    tall = np.column_stack([whole.dense, whole.residuals, there - target, before])
    for part, rows in zip(found.jacobian.parts, problem.row_groups, strict=True):
        np.testing.assert_allclose(part.T @ part, tall[rows].T @ tall[rows], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.dense, whole.dense, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.jacobian.matvec(z), whole.jacobian.matvec(z), rtol=1e-10)
    np.testing.assert_allclose(found.jacobian.rmatvec(before), whole.jacobian.rmatvec(before), rtol=1e-10)
    np.testing.assert_allclose(found.expected.dense(), whole.expected.dense(), rtol=1e-12, atol=1e-14)
    levels = np.linspace(1, 2, len(problem.row_groups))
    one, other = (e.expected.weighted(e.residuals, problem.row_groups, levels)[0] for e in (found, whole))
    np.testing.assert_allclose(one.T @ one, other.T @ other, rtol=1e-9, atol=1e-10)
    gradients = [e.jacobian.gradient(e.residuals, problem.row_groups, levels) for e in (found, whole)]
    np.testing.assert_allclose(*gradients, rtol=1e-9)


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("local", [(), ("k1", "su", "s")])
def test_blocks_are_the_whole_jacobian(kind, local, monkeypatch):
    """With initial states of every experiment that are its own, and parameters and scales of noise that may be."""

    def made():
        options = dict(LAWS[kind])
        data = cascades(options.pop("shapes", None), kind == "a law", options.pop("limits", None))
        known = {"k1", "k2", "m", "s", "su"} if kind in ("a law", "both", "errors that persist") else {"k1"}
        chosen = [name for name in local if name in known and (name != "su" or kind == "a law")]
        return Problem(CASCADE, data, local=chosen, **options).misfit

    problem = made()
    z = point(problem)
    whole = problem.evaluate(z)
    for name in ("MANY_EXPERIMENTS", "MANY_UNKNOWNS"):
        monkeypatch.setattr(misfit, name, 1)
    monkeypatch.setattr(misfit, "MOSTLY_LOCAL", 0.0)
    found = made().evaluate(z)
    assert type(found.jacobian) is BlockJacobian
    np.testing.assert_allclose(found.residuals, whole.residuals, rtol=1e-14)
    np.testing.assert_allclose(found.dense, whole.dense, rtol=1e-13, atol=1e-15)
    # A local unknown is in one block only.
    shared = set(found.jacobian.shared.tolist())
    own = [column for _, columns, _ in found.jacobian.parts for column in columns.tolist() if column not in shared]
    assert len(own) == len(set(own))
    groups, levels = problem.row_groups, np.linspace(1, 2, len(problem.row_groups))
    low, high, slopes = np.full(len(z), -1e3), np.full(len(z), 1e3), 0.5 + z
    steps = [LinearModel(e.jacobian, e.residuals, groups, slopes).solver(levels, low, high) for e in (found, whole)]
    np.testing.assert_allclose(steps[0].gradient(), steps[1].gradient(), rtol=1e-9, atol=1e-9)


ROWS = np.arange(3), np.arange(3, 7)
COLUMNS = np.array([0, 1, 3]), np.array([2, 0, 3])  # two experiments share the first unknown and the last


@pytest.fixture
def blocks() -> BlockJacobian:
    rng = np.random.default_rng(3)
    shared = np.array([0, 3])
    own = tuple(rng.normal(size=(len(rows), 3)) for rows in ROWS)
    blocks = laid_out(list(zip(ROWS, COLUMNS, strict=True)), shared)
    return BlockJacobian(
        (7, 4), blocks, tuple(block.filled(part) for block, part in zip(blocks, own, strict=True)), shared
    )


@pytest.mark.parametrize(
    ("column", "slopes"),
    [
        (0, [0.0, 0.0, 0.0]),  # held at a value
        (2, [0.0, 0.0, 0.0]),
        (1, [0.7, 0.0, -2.0]),  # local, and follows what its experiment has
        (2, [0.3, 0.0, 1.5]),
    ],
)
def test_an_unknown_that_follows_others_is_eliminated(blocks, column, slopes):
    found = blocks.eliminated(column, np.array(slopes))
    whole = blocks.dense()
    expected = np.delete(whole, column, axis=1) + np.outer(whole[:, column], slopes)
    assert type(found) is BlockJacobian and found.dense() == pytest.approx(expected, abs=1e-15)


def test_what_would_fill_blocks_is_left_to_one_matrix(blocks):
    whole = blocks.dense()
    # Shared, and follows what one experiment has; local, and follows what another has.
    for column, slopes in ((0, [1.0, 0.0, 0.0]), (1, [0.0, 1.0, 0.0])):
        found = blocks.eliminated(column, np.array(slopes))
        assert type(found) is DenseJacobian
        expected = np.delete(whole, column, axis=1) + np.outer(whole[:, column], slopes)
        np.testing.assert_allclose(found.dense(), expected, atol=1e-15)


def test_streamed_rows_by_other_unknowns():
    rng = np.random.default_rng(5)
    tall, matrix = rng.normal(size=(50, 4)), rng.normal(size=(3, 2))
    rows = slice(0, 50)
    streamed = StreamedJacobian((triangle(tall),), 3, (rows,), lambda: iter([(rows, tall[:, :3])]))
    other = streamed.by(matrix)
    expected = np.column_stack([tall[:, :3] @ matrix, tall[:, 3]])
    np.testing.assert_allclose(other.parts[0].T @ other.parts[0], expected.T @ expected, rtol=1e-10)
    np.testing.assert_allclose(other.dense(), expected[:, :2], rtol=1e-12)
    assert other.unknowns == 2


def test_a_simulation_that_breaks_off_says_so(monkeypatch):
    monkeypatch.setattr(misfit, "LARGE", 0)
    growing = Problem(Model({"x": "a*x**2"}, {"y": "x"}), Data([0.0, 1.0, 2.5], {"y": [1.0, 2.0, 3.0]})).misfit
    found = growing.evaluate(np.array([1.0, 0.5]))  # the pole is at t = 2
    assert not found.complete and found.jacobian is None
    assert found.reached == pytest.approx(0.8, abs=0.05)


def test_only_many_numbers_are_large():
    problem = Problem(CASCADE, cascades()).misfit
    assert not problem.large
    assert problem.points * len(problem.unknowns) < misfit.LARGE
