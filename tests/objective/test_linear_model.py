"""Linear models: an arrow takes the steps that one dense matrix takes."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odejet.objective import triangles
from odejet.objective.jacobian import BlockJacobian, DenseJacobian, laid_out
from odejet.objective.linear_model import LinearModel

EXPERIMENTS, POINTS, SHARED = 6, 9, 2


def models(seed: int) -> tuple[LinearModel, LinearModel, int]:
    """The same random residuals and derivatives in both forms; experiments have one to three unknowns of their own."""
    rng = np.random.default_rng(seed)
    own = rng.integers(1, 4, EXPERIMENTS)
    size = int(own.sum()) + SHARED
    shared, places, parts, first = np.arange(size - SHARED, size), [], [], 0
    for e, count in enumerate(own.tolist()):
        columns = np.r_[np.arange(first, first + count), shared]
        places.append((np.arange(e * POINTS, (e + 1) * POINTS), columns))
        parts.append(rng.normal(size=(POINTS, len(columns))))
        first += count
    layout = laid_out(places, shared)
    values = tuple(block.filled(part) for block, part in zip(layout, parts, strict=True))
    blocks = BlockJacobian((EXPERIMENTS * POINTS, size), layout, values, shared)
    slopes, residuals = np.exp(rng.normal(size=size)), rng.normal(size=EXPERIMENTS * POINTS)
    groups = (slice(0, EXPERIMENTS * POINTS),)
    return (
        LinearModel(blocks, residuals, groups, slopes),
        LinearModel(DenseJacobian(blocks.dense()), residuals, groups, slopes),
        size,
    )


@given(seed=st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_products_are_equal(seed):
    arrow, dense, size = models(seed)
    rng = np.random.default_rng(seed + 1)
    move, vector = rng.normal(size=size), rng.normal(size=EXPERIMENTS * POINTS)
    np.testing.assert_allclose(arrow.matvec(move), dense.matvec(move), atol=1e-12)
    np.testing.assert_allclose(arrow.rmatvec(vector), dense.rmatvec(vector), atol=1e-12)


@given(seed=st.integers(0, 10_000), room=st.sampled_from([0.02, 0.3, 100.0]))
@settings(max_examples=50, deadline=None)
def test_whole_steps_are_equal(seed, room):
    """Without a radius that matters both find the same point, bounds or not."""
    arrow, dense, size = models(seed)
    levels, low, high = np.array([0.5]), np.full(size, -room), np.full(size, room)
    one, other = arrow.solver(levels, low, high).step(1e6), dense.solver(levels, low, high).step(1e6)
    np.testing.assert_allclose(one.move, other.move, atol=1e-8)
    assert one.decrease == pytest.approx(other.decrease, rel=1e-9)
    np.testing.assert_array_equal(one.free, other.free)


@given(seed=st.integers(0, 10_000), radius=st.floats(1e-3, 1.0))
@settings(max_examples=50, deadline=None)
def test_short_steps_keep_the_radius_and_are_as_good(seed, radius):
    """A radius is met to a tenth, so that the decreases of both agree as far as their lengths do."""
    arrow, dense, size = models(seed)
    levels, wide = np.array([0.5]), np.full(size, 1e3)
    one, other = arrow.solver(levels, -wide, wide).step(radius), dense.solver(levels, -wide, wide).step(radius)
    assert one.length <= 1.11 * radius
    assert one.decrease >= 0.75 * other.decrease


def test_a_large_jacobian_is_not_copied(monkeypatch):
    """Its triangle is made of parts of it: what is copied at once does not grow with the number of measurements."""
    monkeypatch.setattr(triangles, "AT_ONCE", 1 << 16)
    rng, columns = np.random.default_rng(4), 20
    jacobian = rng.normal(size=(50_000, columns))
    jacobian[:, 0] = jacobian[:, 1] + 1e-9 * rng.normal(size=len(jacobian))  # normal equations would not see it
    slopes, residuals = rng.uniform(0.5, 2, size=columns), rng.normal(size=len(jacobian))
    tracemalloc.start()
    made = LinearModel(DenseJacobian(jacobian), residuals, (slice(0, len(jacobian)),), slopes)
    (found,) = made.reduced.parts
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * jacobian.nbytes
    whole = np.linalg.qr(np.column_stack([jacobian * slopes, residuals]), mode="r")
    np.testing.assert_allclose(np.abs(found[1:]), np.abs(whole[1:]), rtol=1e-4, atol=1e-6)
    sizes = (np.linalg.svd(one[:, :-1], compute_uv=False) for one in (found, whole))
    np.testing.assert_allclose(*sizes, rtol=1e-6)
    move = rng.normal(size=columns)
    np.testing.assert_allclose(made.matvec(move), (jacobian * slopes) @ move, rtol=1e-10, atol=1e-9)
