"""Groebner bases: known numbers of solutions, and two programs that must agree."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import odejet as oj
from odejet.budget import Budget, OutOfBudget
from odejet.identify import globally, groebner, local, msolve, orders, quotient
from odejet.identify.polynomials import Polynomial, System, constant, variable
from odejet.identify.prolong import prolong
from problems import zoo

PRIME = 2**31 - 69

ENGINES = ["builtin", pytest.param("msolve", marks=pytest.mark.skipif(not msolve.executable(), reason="no msolve"))]


def basis(engine: str, equations, variables):
    if engine == "msolve":
        return msolve.groebner(msolve.executable(), equations, variables, Budget.within(60))
    return groebner.groebner(equations, variables, Budget.within(60))


def count(engine: str, equations, n: int) -> int:
    return quotient.from_rules(basis(engine, equations, range(n)), range(n), PRIME).dimension


def cyclic(n: int) -> list[Polynomial]:
    x = [variable(i, PRIME) for i in range(n)]
    equations = []
    for k in range(1, n):
        total = constant(0, PRIME)
        for i in range(n):
            product = constant(1, PRIME)
            for j in range(k):
                product = product * x[(i + j) % n]
            total = total + product
        equations.append(total)
    product = constant(-1, PRIME)
    everything = constant(1, PRIME)
    for v in x:
        everything = everything * v
    return [*equations, everything + product]


def katsura(n: int) -> list[Polynomial]:
    x = [variable(i, PRIME) for i in range(n + 1)]

    def u(i: int) -> Polynomial:
        return x[abs(i)] if abs(i) <= n else constant(0, PRIME)

    equations = []
    for m in range(n):
        total = u(m).scaled(-1)
        for i in range(-n, n + 1):
            total = total + u(i) * u(m - i)
        equations.append(total)
    total = constant(-1, PRIME)
    for i in range(-n, n + 1):
        total = total + u(i)
    return [*equations, total]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("equations", "variables", "solutions"),
    [(cyclic(3), 3, 6), (cyclic(5), 5, 70), (katsura(3), 4, 8), (katsura(5), 6, 32)],
    ids=["cyclic-3", "cyclic-5", "katsura-3", "katsura-5"],
)
def test_classical_systems_have_their_number_of_solutions(engine, equations, variables, solutions):
    assert count(engine, equations, variables) == solutions


@pytest.mark.parametrize("engine", ENGINES)
def test_no_solution_and_infinitely_many(engine):
    x, y = variable(0, PRIME), variable(1, PRIME)
    assert count(engine, [x * y + constant(-1, PRIME), x], 2) == 0
    with pytest.raises(quotient.Infinite):
        count(engine, [x * y + x], 2)


@pytest.mark.skipif(not msolve.executable(), reason="no msolve")
@pytest.mark.parametrize("seed", range(12))
def test_both_programs_find_the_same_reduced_basis(seed):
    generator = random.Random(seed)
    n = generator.randint(2, 4)

    def polynomial() -> Polynomial:
        terms = {}
        for _ in range(generator.randint(2, 5)):
            monomial = tuple(sorted(generator.choices(range(n), k=generator.randint(0, 3))))
            terms[monomial] = generator.randrange(1, PRIME)
        return Polynomial(terms, PRIME)

    equations = [polynomial() for _ in range(n)]
    ours, theirs = ({frozenset(g.terms.items()) for g in basis(e, equations, range(n))} for e in ("builtin", "msolve"))
    assert ours == theirs


def test_out_of_budget_is_told():
    with pytest.raises(OutOfBudget):
        groebner.groebner(cyclic(5), range(5), Budget.within(0.0))
    with pytest.raises(OutOfBudget):
        groebner.groebner(cyclic(5), range(5), Budget(work=1e5))


@pytest.mark.skipif(not msolve.executable(), reason="no msolve")
def test_msolve_is_ended_with_the_budget():
    with pytest.raises(OutOfBudget):
        msolve.groebner(msolve.executable(), cyclic(8), range(8), Budget.within(0.02))


def test_too_many_solutions_are_told_before_memory_is_taken():
    squares = [variable(i, PRIME) * variable(i, PRIME) + constant(-i - 2, PRIME) for i in range(14)]
    with pytest.raises(OutOfBudget, match="more than"):
        quotient.from_rules(squares, range(14), PRIME)


def test_a_program_that_is_not_msolve_is_told(tmp_path):
    with pytest.raises(msolve.Failed):
        msolve.groebner("/bin/false", cyclic(3), range(3), Budget.within(5))
    with pytest.raises(msolve.Failed, match="cannot be run"):
        msolve.groebner(str(tmp_path / "nothing"), cyclic(3), range(3), Budget.within(5))


def test_the_environment_names_msolve_or_forbids_it(monkeypatch):
    monkeypatch.setenv(msolve.VARIABLE, "/somewhere/msolve")
    assert msolve.executable() == "/somewhere/msolve"
    monkeypatch.setenv(msolve.VARIABLE, "")
    assert msolve.executable() is None


@given(st.integers(0, 10**6))
def test_elimination_keeps_the_solution_and_solves_triangular_systems(seed):
    generator = random.Random(seed)
    n = 5
    point = [generator.randrange(PRIME) for _ in range(n)]
    equations = []
    for i in range(n):
        terms = {(i,): generator.randrange(1, PRIME)}
        for _ in range(3):
            monomial = tuple(sorted(generator.choices(range(i), k=2))) if i else ()
            terms[monomial] = generator.randrange(PRIME) or 1
        equation = Polynomial(terms, PRIME)
        equations.append(equation + constant(-equation.at(point), PRIME))
    generator.shuffle(equations)
    system = System([e for e in equations if e])
    system.eliminate()
    assert not system.equations
    assert set(system.solved) == set(range(n))
    assert all(value.at(point) == point[number] for number, value in system.solved.items())


def test_values_of_elements_and_restriction_to_some_solutions():
    x, y = variable(0, PRIME), variable(1, PRIME)
    # x^2 = 1, y^2 = 4: four points.
    equations = [x * x + constant(-1, PRIME), y * y + constant(-4, PRIME)]
    algebra = quotient.from_rules(groebner.groebner(equations, range(2), Budget.within(5)), range(2), PRIME)
    assert algebra.dimension == 4
    elements = {"x": x, "x*y": x * y, "x + y": x + y, "x^2": x * x}
    assert {name: algebra.values(algebra.evaluate(e)) for name, e in elements.items()} == {
        "x": 2,
        "x*y": 2,
        "x + y": 4,
        "x^2": 1,
    }
    smaller, project = algebra.restricted([algebra.evaluate(x * y + constant(-2, PRIME))])
    assert smaller.dimension == 2
    assert smaller.values(project(algebra.evaluate(x))) == 2
    assert smaller.values(project(algebra.evaluate(x * y))) == 1


@pytest.mark.parametrize("name", ["slow_fast", "two_term_fraction", "hiv_viral_load", "daisy_example_3"])
def test_an_ordering_by_weights_leaves_the_same_solutions(name):
    ranks = local.analyse(local.problem(zoo.by_name(name).model))
    square = orders.choose(ranks)
    engine = globally.Engine(None, Budget.within(60))
    plain, weighted = (globally._count(ranks, square.highest + 1, engine, 0, None, by) for by in (False, True))
    assert plain == weighted


def test_what_the_outputs_see_late_weighs_more():
    """y tells x, its derivative z and k, and the next one m."""
    question = local.problem(oj.Model({"x": "-k*z", "z": "m*z"}, {"y": "x"}))
    system = prolong(question, question.at_random(globally.PRIME, 0, 4), [(0, j) for j in range(4)])
    assert [system.weights.get(i, 1) for i in range(4)] == [1, 2, 2, 3]


def test_powers_by_weights_come_back():
    polynomial = variable(0, 7) * variable(0, 7) * variable(2, 7) + variable(1, 7)
    weights = {0: 3, 1: 2}
    assert polynomial.raised(weights).degree == 7
    assert polynomial.raised(weights).lowered(weights) == polynomial
