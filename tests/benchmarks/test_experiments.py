"""Several experiments at once: the solutions in closed form that serve as references, and fits that reach them."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from benchmarks import experiments


def test_the_progress_curve_solves_its_equation():
    model, _ = experiments.example("michaelis_menten")
    times = np.linspace(0, 8, 9)
    found = oj.simulate(model, {"Vmax": 0.8, "Km": 1.5, "s0": 6.0}, {}, times)
    np.testing.assert_allclose(experiments.progress_curve(times, 6.0, 0.8, 1.5), found["substrate"], rtol=1e-10)


def test_batemans_function_solves_its_equations():
    model, _ = experiments.example("theophylline")
    times, values = np.linspace(0, 24, 9), {"ka": 1.5, "ke": 0.08, "V": 30.0, "dose": 4.0, "weight": 80.0}
    found = oj.simulate(model, values, {}, times)
    np.testing.assert_allclose(experiments.bateman(times, 320.0, 1.5, 0.08, 30.0), found["conc"], rtol=1e-9, atol=1e-12)


def test_twins_have_the_same_curves():
    twin = {"ka in a": 0.1, "ke in a": 2.0, "V in a": 1.5}
    told = experiments.faster_absorption(twin)
    assert told["ka in a"] == 2.0 and experiments.faster_absorption(told) == told
    times = np.linspace(0, 10, 7)
    curves = [experiments.bateman(times, 5.0, *(one[f"{x} in a"] for x in ("ka", "ke", "V"))) for one in (twin, told)]
    np.testing.assert_allclose(*curves, rtol=1e-12)
    exchanged = experiments.faster_first(
        {"fast": 1.0, "slow": 2.0, "a in e0": 3.0, "b in e0": 4.0, "offset in e0": 5.0}
    )
    assert exchanged == {"slow": 1.0, "fast": 2.0, "b in e0": 3.0, "a in e0": 4.0, "offset in e0": 5.0}


def test_local_amounts_are_projected_out_exactly():
    times, amounts = np.linspace(0, 6, 12), np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 0.5]])
    values = amounts @ experiments.decays(times, (1.3, 0.25)).T
    found, left = experiments.projected(times, (1.3, 0.25), values)
    np.testing.assert_allclose(found.T, amounts, rtol=1e-10)
    assert np.abs(left).max() < 1e-12


def test_theophylline_is_the_published_table():
    """Twelve subjects at eleven times; the first has a concentration before its dose."""
    table = experiments.columns("theophylline")
    assert len(table) == 12 and all(len(one["time"]) == 11 for one in table.values())
    assert table["subject1"]["conc"][0] == 0.74 and table["subject12"]["conc"][-1] == 1.17
    assert all(np.ptp(one["dose"]) == np.ptp(one["weight"]) == 0 for one in table.values())
    doses = [one["dose"][0] * one["weight"][0] for one in table.values()]
    assert all(abs(dose - 320) < 2 for i, dose in enumerate(doses) if i != 8)  # nearly everybody had 320 mg


@pytest.mark.parametrize("part", ["progress", "absorption"])
def test_a_fit_reaches_the_optimum_of_scipy(part, tmp_path):
    line = experiments.PARTS[part]()
    assert line.equal and line.difference < 1e-4
    assert f"| {part} |" in experiments.table([line])
