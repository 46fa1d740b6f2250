"""Parameters by themselves: the basis of a finite algebra, and models that only this decides."""

import pytest
from flint import nmod_mat

from odejet.budget import Budget
from odejet.identify import elimination, fibres, globally, local, orders
from odejet.identify.quotient import Quotient
from problems import zoo

PRIME = globally.PRIME


def diagonal(*values: int) -> nmod_mat:
    entries = [values[i] % PRIME if i == j else 0 for i in range(len(values)) for j in range(len(values))]
    return nmod_mat(len(values), len(values), entries, PRIME)


def at_points(*coordinates: tuple[int, ...]) -> tuple[Quotient, dict[int, nmod_mat]]:
    """The algebra of functions on some points, in a basis that begins with one."""
    size = len(coordinates[0])
    # Columns: one, and the functions that vanish at all points but the k-th, for k > 0.
    change = nmod_mat(size, size, [int(j in (0, i)) for i in range(size) for j in range(size)], PRIME)
    elements = {i: change.inv() * diagonal(*values) * change for i, values in enumerate(coordinates)}
    return Quotient(PRIME, size, elements), elements


def test_one_point_gives_its_coordinates():
    algebra, elements = at_points((5,), (7,))
    assert sorted(p.at([5, 7]) for p in fibres.vanishing(algebra, elements)) == [0, 0]
    assert all(p.degree == 1 for p in fibres.vanishing(algebra, elements))


def test_two_numbers_that_change_places():
    algebra, elements = at_points((2, 3), (3, 2))
    found = fibres.vanishing(algebra, elements)
    assert {p.degree for p in found} == {1, 2} and len(found) == 2
    zeros = [(x, y) for x in range(7) for y in range(7) if not any(p.at([x, y]) for p in found)]
    assert zeros == [(2, 3), (3, 2)]


def test_points_of_the_plane_come_back():
    points = [(1, 1), (2, 4), (3, 9), (4, 2), (6, 6)]
    algebra, elements = at_points(*zip(*points, strict=True))
    found = fibres.vanishing(algebra, elements)
    zeros = [(x, y) for x in range(12) for y in range(12) if not any(p.at([x, y]) for p in found)]
    assert zeros == points


@pytest.mark.parametrize("name", ["qy", "resistant_bacteria"])
def test_equations_that_hold_where_all_coefficients_vanish(name):
    entry = zoo.by_name(name)
    ranks = local.analyse(local.problem(entry.model, list(entry.functions)))
    engine = globally.Engine(None, Budget.within(300))
    found = elimination.count(ranks, orders.choose(ranks), engine)
    expected = {**entry.verdicts, **entry.functions}
    several = {key for key, kind in expected.items() if kind == "local"}
    single = {key for key, kind in expected.items() if kind == "global"}
    assert {found.values[key] for key in single} == {1}
    assert all(found.values[key] > 1 for key in several)
    assert found.fibre == {"qy": 6, "resistant_bacteria": 2}[name]
