"""One output as a whole: edge cases, gating with reasons, determinism, accuracy and the automatic choice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from odejet.smooth import DataError, fit_output
from odejet.smooth.threads import libraries, one_thread

RNG_SEED = 20


def noisy_sine(n: int = 400, noise: float = 0.01, seed: int = RNG_SEED) -> tuple[np.ndarray, np.ndarray]:
    times = np.linspace(0, 10, n)
    return times, np.sin(times) + noise * np.random.default_rng(seed).standard_normal(n)


def sine(t: float, order: int) -> np.ndarray:
    return np.sin(t + np.arange(order + 1) * np.pi / 2)


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-4, 1e-2, 0.7])
def test_first_choice_is_right_within_its_error_law(noise: float) -> None:
    smoothed = fit_output(*noisy_sine(noise=noise))
    for t in (2.0, 5.0, 7.7):
        jet = smoothed.jet(t, 4)
        assert np.all(np.abs(jet.mean - sine(t, 4)) < 6 * jet.sd + 1e-8 + 0.2 * noise)
    if noise:
        assert smoothed.noise == pytest.approx(noise, rel=0.12)
    else:
        assert smoothed.noise < 1e-14


def test_order_twelve_of_noise_free_data() -> None:
    smoothed = fit_output(*noisy_sine(noise=0.0))
    assert np.abs(smoothed.jet(5.0, 12).mean - sine(5.0, 12)).max() < 1e-2
    assert all(len(s.jet(5.0, 14).mean) == 15 for s in smoothed.smoothers.values())


def test_interpolation_is_admitted_without_noise_and_refused_with_a_reason() -> None:
    assert "aaa" in fit_output(*noisy_sine(noise=0.0)).admitted()
    noisy = fit_output(*noisy_sine(noise=1e-4))
    assert "aaa" not in noisy.admitted()
    assert "would differentiate the noise" in noisy.refusals()["aaa"]
    with pytest.raises(DataError, match="no estimator 'aaa': an interpolant would differentiate"):
        noisy.jet(5.0, 1, "aaa")
    with pytest.raises(DataError, match="no estimator 'spline': there are blend, "):
        noisy.jet(5.0, 1, "spline")
    assert "aaa refused" in repr(noisy)


def test_polynomials_are_refused_near_the_ends_and_outside_everything_is() -> None:
    rng = np.random.default_rng(3)
    times = np.linspace(0, 1, 400)
    smoothed = fit_output(times, np.sin(60 * times) + 0.05 * rng.standard_normal(400))
    assert "chebyshev_bic" in smoothed.admitted(0.5, 3)
    reasons = smoothed.refusals(0.001, 3)
    assert "times that in the middle" in reasons["chebyshev_bic"]
    assert smoothed.first(0.001, 3).name not in reasons
    assert not smoothed.admitted(1.5, 0)
    with pytest.raises(DataError, match="outside the data"):
        smoothed.jet(1.5, 0)


def test_a_sharp_transient_keeps_an_estimator_at_its_end() -> None:
    times = np.linspace(0, 1, 500)
    rng = np.random.default_rng(5)
    smoothed = fit_output(times, np.exp(-400 * times) + 0.1 * np.sin(9 * times) + 1e-6 * rng.standard_normal(500))
    for t in (0.0, 0.001, 0.5, 1.0):
        assert np.isfinite(smoothed.jet(t, 6).mean).all()
        assert smoothed.first(t, 6).name not in smoothed.refusals(t, 6)


@pytest.mark.parametrize("noise", [0.0, 1e-2])
def test_jets_at_many_times_are_those_at_each(noise: float) -> None:
    smoothed = fit_output(*noisy_sine(noise=noise))
    times = np.array([0.0, 0.02, 3.3, 5.0, 10.0, 11.0])
    found = smoothed.jets(times, 3)
    assert found[-1] == {}
    for t, jets in zip(times[:-1], found[:-1], strict=True):
        assert list(jets) == list(smoothed.admitted(t, 3))
        for name, jet in jets.items():
            alone = smoothed.jet(t, 3, name)
            assert jet.time == t
            assert jet.mean == pytest.approx(alone.mean, rel=1e-12)
            assert jet.noise == smoothed.noise
            assert jet.linear == alone.linear
            if jet.linear:
                assert jet.gains == pytest.approx(alone.gains, rel=1e-12)
                assert jet.covariance() == pytest.approx(alone.covariance(), rel=1e-9)
    assert [len(jet.mean) for jet in smoothed.jets(np.array([5.0]), 0)[0].values()] == [1] * len(found[3])


def test_the_number_of_threads_changes_nothing() -> None:
    times, values = noisy_sine()
    with threadpool_limits(1):
        one = fit_output(times, values).jet(5.0, 6).mean
    with threadpool_limits(2):
        two = fit_output(times, values).jet(5.0, 6).mean
    assert np.array_equal(one, two)


def test_users_of_one_thread_share_the_limit_and_the_last_one_lifts_it() -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in libraries().info()}

    with threadpool_limits(2):
        usual = threads()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == usual


def test_constant_outputs() -> None:
    times = np.linspace(0, 1, 50)
    smoothed = fit_output(times, np.full(50, 1295.4930424118297))
    assert smoothed.jet(0.3, 4).mean.tolist() == [1295.4930424118297, 0, 0, 0, 0]
    assert 0 < smoothed.noise < 1e-12
    assert [list(found) for found in smoothed.jets(np.array([0.1, 0.9, 1.5]), 2)] == [["constant"], ["constant"], []]
    jet = smoothed.jet(0.3, 2)
    assert jet.weights[0] == pytest.approx(np.full(50, 0.02))
    assert jet.covariance(1.0)[0, 0] == pytest.approx(0.02)
    assert not jet.weights[1:].any()
    assert fit_output(times, np.zeros(50)).jet(0.3, 1).mean.tolist() == [0, 0]


@pytest.mark.parametrize("noise", [1e-8, 1e-2])
def test_a_constant_under_noise_has_next_to_no_derivatives(noise: float) -> None:
    times = np.linspace(0, 1, 300)
    smoothed = fit_output(times, 5.0 + noise * np.random.default_rng(1).standard_normal(300))
    assert smoothed.first().description.startswith("constant")
    jet = smoothed.jet(0.5, 2)
    assert jet.mean[0] == pytest.approx(5.0, abs=noise)
    assert np.all(np.abs(jet.mean[1:]) < noise)
    assert smoothed.noise == pytest.approx(noise, rel=0.1)


def test_thirteen_decades() -> None:
    times = np.linspace(0, 10, 750)
    smoothed = fit_output(times, np.exp(3 * times))
    jet = smoothed.jet(9.0, 3)
    assert jet.mean == pytest.approx(np.exp(27.0) * 3.0 ** np.arange(4), rel=1e-7)


@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_extreme_magnitudes(size: float) -> None:
    times, values = noisy_sine(200, 0.01)
    jet = fit_output(times, size * values).jet(5.0, 1)
    assert jet.mean / size == pytest.approx(sine(5.0, 1), abs=0.03)


@given(st.integers(0, 2**32 - 1), st.integers(4, 60), st.sampled_from(["walk", "steps", "spike", "ties", "rational"]))
@settings(max_examples=40)
def test_every_series_has_an_automatic_choice_inside(seed: int, n: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 1, n))
    values = {
        "walk": np.cumsum(rng.standard_normal(n)),
        "steps": np.round(3 * np.sin(5 * times)),
        "spike": np.where(np.arange(n) == n // 2, 1e6, rng.standard_normal(n)),
        "ties": rng.integers(0, 2, n).astype(float),
        "rational": 1.0 / (times - 0.5 + 0.01j).real,
    }[kind]
    smoothed = fit_output(times, values)
    for t in times[[0, n // 2, -1]]:
        jet = smoothed.jet(float(t), 3)
        assert np.isfinite(jet.mean).all()


def test_offset_a_million_times_the_variation() -> None:
    times, values = noisy_sine(750, 0.0)
    jet = fit_output(times, 1e6 + values).jet(5.0, 3)
    assert jet.mean == pytest.approx(sine(5.0, 3) + [1e6, 0, 0, 0], abs=1e-5)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_eight_points(noise: float) -> None:
    times = np.linspace(0, 1, 8)
    values = np.sin(3 * times) + noise * np.random.default_rng(2).standard_normal(8)
    jet = fit_output(times, values).jet(0.5, 1)
    assert jet.mean[0] == pytest.approx(np.sin(1.5), abs=0.05)
    assert jet.mean[1] == pytest.approx(3 * np.cos(1.5), abs=0.4)


def test_four_points_and_fewer() -> None:
    assert fit_output([0, 1, 2, 3], [0.0, 1.0, 4.0, 9.0]).jet(1.5, 0).mean[0] == pytest.approx(2.25, abs=0.5)
    with pytest.raises(DataError, match="only 3 different times"):
        fit_output([0, 1, 2], [1, 2, 3])


def test_a_hundred_thousand_points() -> None:
    times, values = noisy_sine(100_000, 0.1)
    smoothed = fit_output(times, values)
    assert smoothed.noise == pytest.approx(0.1, rel=0.01)
    assert np.abs(smoothed.jet(5.0, 3).mean - sine(5.0, 3)).max() < 0.01


def test_irregular_repeated_missing_and_gaps() -> None:
    rng = np.random.default_rng(7)
    times = np.repeat(rng.uniform(0, 10, 150), 3)
    times = times[(times < 4.0) | (times > 5.5)]
    values = np.sin(times) + 0.05 * rng.standard_normal(len(times))
    values[::17] = np.nan
    smoothed = fit_output(times, values)
    assert smoothed.noise == pytest.approx(0.05, rel=0.15)
    for t in (2.0, 4.7, 8.0):
        jet = smoothed.jet(t, 2)
        assert np.all(np.abs(jet.mean - sine(t, 2)) < 5 * jet.sd + 0.05)


def test_known_sds_are_used() -> None:
    rng = np.random.default_rng(9)
    times = np.linspace(0, 10, 400)
    sds = np.where(times < 5, 0.01, 0.5)
    values = np.sin(times) + sds * rng.standard_normal(400)
    with_sds, without = fit_output(times, values, sds), fit_output(times, values)
    assert with_sds.noise == pytest.approx(1.0, rel=0.1)
    assert with_sds.jet(2.5, 1).sd[1] < 0.3 * without.jet(2.5, 1).sd[1]
    places = np.linspace(1, 4, 30)
    errors = [np.abs(s(places) - np.sin(places)).mean() for s in (with_sds, without)]
    assert errors[0] < errors[1]


def test_replicates_count_like_their_mean() -> None:
    times, values = noisy_sine(200, 0.05)
    single = fit_output(times, values, 0.05).smoothers["chebyshev_bic"]
    double = fit_output(np.repeat(times, 2), np.repeat(values, 2), 0.05 * np.sqrt(2)).smoothers["chebyshev_bic"]
    assert double.degree == single.degree
    assert double.jet(4.0, 3).mean == pytest.approx(single.jet(4.0, 3).mean, rel=1e-9)
    assert double.jet(4.0, 3).covariance(1.0) == pytest.approx(single.jet(4.0, 3).covariance(1.0), rel=1e-9)


def test_same_data_same_answer_in_any_order() -> None:
    times, values = noisy_sine(300)
    order = np.random.default_rng(0).permutation(300)
    one, other = fit_output(times, values), fit_output(times[order], values[order])
    for name, smoother in one.smoothers.items():
        assert np.array_equal(smoother.jet(3.3, 4).mean, other.smoothers[name].jet(3.3, 4).mean)


@given(st.floats(1e-9, 1e9), st.floats(-1e3, 1e3), st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
@settings(max_examples=15)
def test_units_do_not_matter(scale: float, offset: float, unit: float, start: float) -> None:
    times, values = noisy_sine(80, 0.05)
    plain = fit_output(times, values)
    other = fit_output((times + start) * unit, (values + offset) * scale)
    expected = plain.jet(4.2, 2).mean
    expected[0] += offset
    found = other.jet((4.2 + start) * unit, 2).mean / scale * unit ** np.arange(3)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_fast_oscillation_needs_a_large_basis() -> None:
    rng = np.random.default_rng(12)
    times = np.linspace(0, 1, 1200)
    values = np.sin(2 * np.pi * 40 * times) + 1e-3 * rng.standard_normal(1200)
    smoothed = fit_output(times, values)
    assert smoothed.noise == pytest.approx(1e-3, rel=0.15)
    slope = 2 * np.pi * 40 * np.cos(2 * np.pi * 40 * 0.503)
    assert smoothed.jet(0.503, 1).mean[1] == pytest.approx(slope, rel=1e-3)


def test_plot_shows_data_fit_band_and_derivatives() -> None:
    figure = fit_output(*noisy_sine()).plot()
    assert len(figure.axes) == 3
    assert len(figure.axes[0].lines) == 2
    assert all(panel.collections for panel in figure.axes)
    assert figure.axes[2].get_ylabel() == "second derivative"
    constant = fit_output(np.linspace(0, 1, 20), np.ones(20)).plot(1)
    assert len(constant.axes) == 2
