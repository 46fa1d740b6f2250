"""Which rates depend on which states, and orders of elimination, against what can be read off the equations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from odejet.jets.sparsity import dependencies, fill_of, sparse_order
from odejet.model import Model
from odejet.model.tape import build


def test_dependencies_are_those_of_the_equations():
    tape = build(Model({"a": "-k*a + b*c", "b": "k*a - exp(b)", "c": "b/(1 + d)", "d": "0"}, parameters=("k",)))
    np.testing.assert_array_equal(dependencies(tape), [[1, 1, 1], [1, 1, 0], [0, 1, 0]])


def test_what_touches_all_others_is_eliminated_when_it_no_longer_does():
    """Eliminated first, the centre of a star would make all matrices full."""
    rays = {f"x{i}": f"centre - x{i}" for i in range(6)}
    tape = build(Model({"centre": "+".join(rays), **rays}, parameters=()))
    assert list(sparse_order(tape)).index(0) >= len(rays) - 1


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=15))
def test_every_moving_state_has_its_place(pairs):
    rates = [f"-x{i}" + "".join(f" + x{j}" for k, j in pairs if k == i) for i in range(6)]
    tape = build(Model({f"x{i}": rate for i, rate in enumerate(rates)}, parameters=()))
    assert sorted(sparse_order(tape)) == [i for i in range(6) if tape.states[i] >= tape.statics]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=15), st.integers(0, 99))
def test_elimination_fills_what_is_listed(pairs, seed):
    rates = [f"-x{i}" + "".join(f" + 2*x{j}" for k, j in pairs if k == i) for i in range(6)]
    tape = build(Model({f"x{i}": rate for i, rate in enumerate(rates)}, parameters=()))
    order, fill = sparse_order(tape), fill_of(tape)
    feels = dependencies(tape)[np.ix_(order, order)]
    matrix = np.where(feels, np.random.default_rng(seed).uniform(1, 2, feels.shape), 0.0) + 20 * np.eye(6)
    for k in range(6):
        matrix[k + 1 :, k] /= matrix[k, k]
        matrix[k + 1 :, k + 1 :] -= np.outer(matrix[k + 1 :, k], matrix[k, k + 1 :])
        np.testing.assert_array_equal(fill.rows[k, : fill.below[k]], k + 1 + np.flatnonzero(matrix[k + 1 :, k]))
    for k in range(6):
        listed = fill.columns[k, : fill.counts[k, 1]]
        np.testing.assert_array_equal(listed, [j for j in np.flatnonzero(matrix[k]) if j != k])
        assert fill.counts[k, 0] == np.count_nonzero(listed < k)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_columns_of_one_colour_have_no_row_in_common(pairs):
    rates = [f"-x{i}" + "".join(f" + 2*x{j}" for k, j in pairs if k == i) for i in range(8)]
    tape = build(Model({f"x{i}": rate for i, rate in enumerate(rates)}, parameters=()))
    order, fill = sparse_order(tape), fill_of(tape)
    feels = dependencies(tape)[np.ix_(order, order)] | np.eye(8, dtype=bool)
    for row, listed, length in zip(feels, fill.entries, fill.lengths, strict=True):
        own = np.flatnonzero(row)
        assert len(set(fill.colours[own])) == len(own)
        assert set(listed[:length]) <= set(own)
    assert fill.width <= 8


def test_the_colours_of_a_chain_are_three_whatever_its_length():
    rates = {f"x{i}": f"x{max(i - 1, 0)} - 2*x{i} + x{min(i + 1, 39)}" for i in range(40)}
    assert fill_of(build(Model(rates, parameters=()))).width == 3
