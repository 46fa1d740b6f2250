"""The CSTR's square system against differences of the model itself, and against the paper's counts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import odejet as oj
from benchmarks import cells, cstr, explicit, paper
from benchmarks.cells import Protocol
from problems import systems

PUBLISHED = Path(__file__).parents[3] / "shared" / "benchmark" / "paper_tables.json"
TRUTH = cells.draw("cstr", 0, Protocol())


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published tables are not on this machine")
def test_the_papers_figures_are_the_published_ones():
    assert paper.tables() == json.loads(PUBLISHED.read_text(encoding="utf-8"))


def test_figures_are_found_by_noise_and_by_system():
    assert paper.by_noise("sr10_by_noise", "proposed", 1e-2) == 65.2
    assert paper.by_noise("sr10_by_noise", "proposed_no_polish", 1e-8) is None
    assert paper.level(0.0) == "0" and paper.level(1e-4) == "1e-4"
    titles = {systems.load(name).title for name in systems.names()}
    assert set(paper.tables()["median_max_at_1e-2_by_system"]) == titles


def test_the_jacobian_of_the_polynomials_is_that_of_differences():
    system = explicit.square("cstr")
    z, data = explicit.generic(system, 1)
    numeric = system.at(data)
    found, steps = cstr.jacobian(numeric, z), 1e-6 * np.maximum(abs(z), 1e-3)
    for i, step in enumerate(steps):
        move = np.eye(len(z))[i] * step
        difference = (numeric.values(z + move) - numeric.values(z - move)) / (2 * step)
        np.testing.assert_allclose(found[:, i], difference, rtol=1e-6, atol=1e-6 * abs(found).max())


def test_the_sensitivity_matrix_inverts_the_jet_of_the_model():
    """Moving an unknown by its own share of a derivative's sensitivity changes that derivative alone."""
    found = cstr.sensitivity(TRUTH, 0.5)
    model = TRUTH.system.model
    assert set(found.unknowns) == {*model.parameters, *model.states}
    assert found.data == ("y1", "y1'", "y1''", "y1'''", "y1^(4)", "y1^(5)", "y1^(6)")
    system = explicit.square("cstr")
    states = oj.simulate(model, TRUTH.parameters, TRUTH.initial_state, [0.0, found.time]).states
    here = {**TRUTH.parameters, **{name: states[name][1] for name in model.states}}

    def derivatives(values):
        at = np.array([[values[name] for name in model.states]])
        _, data = system.graph(at, np.array([values[name] for name in model.parameters]), found.time)
        return np.array([complex(data[v]).real for v in system.data if v.name == "y1"])

    base = derivatives(here)
    forward = []
    for name in found.unknowns:
        up, down = ({**here, name: here[name] * (1 + sign * 1e-6)} for sign in (1, -1))
        forward.append((derivatives(up) - derivatives(down)) / 2e-6 / np.abs(base))
    product = np.array(forward).T @ found.matrix
    np.testing.assert_allclose(product, np.eye(7), atol=1e-2)


def test_the_singular_values_spread_as_in_the_paper():
    ratios = [cstr.sensitivity(TRUTH, place).ratio for place in cstr.PLACES]
    assert 1e8 < max(ratios) < 1e12  # about 9e9 at the paper's probes


def test_the_product_is_known_better_than_its_factor():
    factor, product = cstr.predicted(TRUTH, Protocol())
    assert product < 0.3 * factor


@pytest.mark.slow
def test_noiseless_estimates_are_the_truth():
    row = cstr.estimates(TRUTH, 0.0, 0, Protocol())
    assert row.rmse < 1e-9
    assert row.factors["H"] == pytest.approx(TRUTH.parameters["dH_rhoCP"], rel=1e-6)
    assert row.product == pytest.approx(np.prod([TRUTH.values[name] for name in cstr.LATENT]), rel=1e-6)
