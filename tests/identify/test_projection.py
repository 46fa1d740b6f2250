"""Input-output equations: known ones, and solutions that satisfy them."""

import random

import pytest
from flint import Ordering, nmod_mpoly_ctx

from odejet import Model
from odejet.budget import Budget, OutOfBudget
from odejet.identify import local, wronskian
from odejet.identify.globally import PRIME
from odejet.identify.projection import Projection, refusal
from odejet.identify.symbols import bezout
from problems import zoo


def projected(model: Model, symbolic=(), seed: int = 0, **options) -> Projection:
    generator = random.Random(seed)
    problem = local.problem(model)
    still = sum(register < problem.tape.statics for register in problem.tape.states)
    values = [generator.randrange(1, PRIME) for _ in range(len(model.parameters) + still)]
    projection = Projection(problem, PRIME, values, symbolic, seed=seed, **options)
    projection.run()
    return projection


def monomials(projection: Projection) -> dict[str, dict]:
    """Coefficients by the monomial as text."""
    found = {}
    for (_, exponents), parts in projection.coefficients().items():
        text = "*".join(
            f"{name}^{e}" if e > 1 else name for name, e in zip(projection.jets, exponents, strict=True) if e
        )
        found[text or "1"] = parts
    return found


def test_two_compartments():
    """y'' + (a01 + a12 + a21) y' + a01 a12 y = u' + a12 u (Cobelli and DiStefano 1980)."""
    model = zoo.by_name("two_compartments_leak_input").model
    projection = projected(model)
    a = dict(zip(model.parameters, projection.parameters, strict=True))
    found = {text: parts[()] for text, parts in monomials(projection).items()}
    scale = pow(found["y0_2"], -1, PRIME)
    assert {text: c * scale % PRIME for text, c in found.items()} == {
        "y0_2": 1,
        "y0_1": (a["a01"] + a["a12"] + a["a21"]) % PRIME,
        "y0_0": a["a01"] * a["a12"] % PRIME,
        "u0_1": PRIME - 1,
        "u0_0": -a["a12"] % PRIME,
    }


def test_symbols_give_polynomials_in_them():
    """x' = -k x^2 + c: y' + k y^2 - c = 0."""
    found = monomials(projected(Model({"x": "c - k*x**2"}, {"y": "x"}), symbolic=(0, 1)))
    assert set(found) == {"y0_1", "y0_0^2", "1"}
    assert set(found["1"]) == {(1, 0)}
    assert set(found["y0_0^2"]) == {(0, 1)}


@pytest.mark.parametrize("name", ["goodwin", "siwr", "cgv1990", "stirred_tank_reactor", "siwr_population"])
def test_solutions_satisfy_their_equations(name):
    """Along a solution that the elimination has not seen."""
    problem = local.problem(zoo.by_name(name).model)
    projection = projected(problem.model)
    assert not projection.laws
    assert not projection.problem.still
    jets = wronskian._series(projection, problem, 6, experiment=1)
    for output in range(projection.outputs):
        total = 0 * jets[0]
        for (own, exponents), parts in projection.coefficients().items():
            if own == output:
                product = jets[0] * 0 + parts[()]
                for series, power in zip(jets, exponents, strict=True):
                    for _ in range(power):
                        product = product.mul_low(series, 6)
                total = total + product
        assert not any(int(total[k]) for k in range(6))


def test_what_is_conserved_is_found():
    model = Model({"e": "-k1*e*s + k2*c", "s": "-k1*e*s + k3*c", "c": "k1*e*s - k2*c"}, {"y": "s"})
    (law,) = projected(model).laws
    assert {law.state, *(i for i, _ in law.others)} == {0, 2}
    assert [a for _, a in law.others] == [1]


def test_monomials_that_one_solution_cannot_tell_apart():
    """v' = (a x^2 + b z^2 + c) v: on the circle x^2 + z^2 = r^2 the three terms are dependent."""
    turning = Model({"x": "w*z", "z": "-w*x", "v": "a*v*x**2 + b*v*z**2 + c*v"}, {"y1": "x", "y2": "v"})
    problem = local.problem(turning)
    assert wronskian.needed(projected(turning), problem, 1, Budget()) is None
    growing = Model({"x": "w*z", "z": "w*x + z", "v": "a*v*x**2 + b*v*z**2 + c*v"}, {"y1": "x", "y2": "v"})
    assert wronskian.needed(projected(growing), local.problem(growing), 1, Budget()) == 1


def test_what_cannot_be_eliminated_is_refused():
    assert "roots" in refusal(local.problem(Model({"x": "-k*sqrt(x)"}, {"y": "x"})))
    assert "parameters" in refusal(local.problem(Model({"x": "-exp(k)*x"}, {"y": "x"})))
    assert "time" in refusal(local.problem(Model({"x": "-k*x + t"}, {"y": "x"})))
    assert refusal(local.problem(Model({"x": "-k*exp(-b*x)"}, {"y": "x"}))) == ""


def test_long_equations_end_with_the_budget():
    with pytest.raises(OutOfBudget):
        projected(zoo.by_name("pharm").model, symbolic=range(7), budget=Budget(work=1e8))


def test_resultants():
    projection = projected(Model({"x": "-k*x"}, {"y": "x"}))
    symbols = projection.symbols
    x, y = symbols.gens["x0"], symbols.gens["y0_0"]
    one, zero = symbols.number(1), symbols.number(0)
    # The resultant of t^2 - x and t^2 - y is (x - y)^2.
    matrix = bezout([-x, zero, one], [-y, zero, one], zero)
    assert projection.eliminants.determinant(matrix) in ((x - y) ** 2, -((x - y) ** 2))


def test_the_equation_that_is_too_long():
    """With three of five states eliminated, each set of derivatives up to the fourth leaves 123 pairs of the last two,
    and so many values of the fifth: the input-output equation of `tumour_hu` has this degree in it."""
    model = zoo.by_name("tumour_hu").model
    problem = local.problem(model)
    point = problem.at_random(PRIME, 0, 1).point
    projection = Projection(problem, PRIME, list(point.parameters), budget=Budget.within(60))
    projection.start()
    for _ in range(3):
        projection._take(projection._cheapest())
    top, derivative = projection.tops[0], projection._derivative(0)
    assert (len(top), [projection.symbols.degree(top, name) for name in projection.left]) == (5080, [8, 8])
    plane = nmod_mpoly_ctx.get(("a", "b"), modulus=PRIME, ordering=Ordering.degrevlex)
    resultants = []
    for seed in range(2):
        draw = random.Random(seed)
        states = dict(zip(projection.left, plane.gens(), strict=True))
        values = [states.get(name, plane.constant(draw.randrange(PRIME))) for name in projection.symbols.names]
        one, other = (part.compose(*values, ctx=plane) for part in (top, derivative))
        resultants.append(one.resultant(other, "a"))
    # Roots that do not depend on the derivatives, and multiple ones, are where denominators vanish.
    common = [factor for factor, _ in resultants[0].gcd(resultants[1]).factor()[1]]
    single = [factor for factor, power in resultants[0].factor()[1] if power == 1 and factor not in common]
    assert sum(factor.degrees()[1] for factor in single) == 123
