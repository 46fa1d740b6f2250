"""Cells: reproducible data with the noise that the protocol asks for, and errors as the paper counts them."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

from benchmarks import cells, generate
from benchmarks.cells import PENALTY, Cell, Protocol
from odejet import ModelError
from problems import systems

PROTOCOL = Protocol(seed=11)


def _values(data) -> dict[str, np.ndarray]:
    return {name: series.values for name, series in data.experiments[0].outputs.items()}


def test_a_cell_does_not_depend_on_what_was_drawn_before():
    first = cells.draw("seir", 2, PROTOCOL)
    cells.draw("hiv", 0, PROTOCOL)
    cells._draw.cache_clear()
    again = cells.draw("seir", 2, PROTOCOL)
    assert first.values == again.values
    cell = Cell("seir", 1e-2, 2)
    one, other = (_values(cells.measured(draw, cell, PROTOCOL)) for draw in (first, again))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_trials_noise_levels_and_seeds_differ():
    draws = [cells.draw("seir", trial, PROTOCOL) for trial in (0, 1)]
    assert draws[0].values != draws[1].values
    assert cells.draw("seir", 0, Protocol(seed=12)).values != draws[0].values
    fine, coarse = (_values(cells.measured(draws[0], Cell("seir", noise, 0), PROTOCOL)) for noise in (1e-4, 1e-2))
    standard = [(values["y1"] - draws[0].clean["y1"]) / noise for values, noise in ((fine, 1e-4), (coarse, 1e-2))]
    assert not np.allclose(standard[0], standard[1])


@pytest.mark.parametrize("scale", cells.SCALES)
def test_noise_has_the_promised_size(scale):
    protocol = Protocol(seed=5, scale=scale)
    truth = cells.draw("lotka_volterra", 0, protocol)
    data = _values(cells.measured(truth, Cell("lotka_volterra", 1e-2, 0), protocol))
    clean = truth.clean["y1"]
    size = 1e-2 * (abs(clean.mean()) if scale == "mean" else clean.std())
    assert np.std(data["y1"] - clean) == pytest.approx(size, rel=0.1)
    noiseless = _values(cells.measured(truth, Cell("lotka_volterra", 0.0, 0), protocol))
    assert np.array_equal(noiseless["y1"], clean)


def test_an_unknown_scale_is_refused():
    with pytest.raises(ModelError, match="relative to one of mean, std, not 'range'"):
        cells.noise_levels(cells.draw("seir", 0, PROTOCOL), 1e-2, "range")


def test_trajectories_that_blow_up_are_drawn_again_and_counted():
    draws = [cells.draw("crauste", trial, PROTOCOL) for trial in range(12)]
    refused = sum(draw.refused for draw in draws)
    assert 3 <= refused <= 40  # about half of all draws
    for draw in draws:
        assert all(len(clean) == 750 and np.all(np.isfinite(clean)) for clean in draw.clean.values())


def test_a_pole_is_refused():
    system = systems.load("crauste")
    rng = np.random.default_rng([PROTOCOL.seed, 0, systems.number("crauste")])
    outcomes = [cells.trajectory(system, *systems.draw(system, rng), system.times()) for _ in range(12)]
    assert any(found is None for found in outcomes) and any(found is not None for found in outcomes)


def test_the_worst_error_leaves_out_what_cannot_be_known():
    truth = cells.draw("aircraft_pitch", 0, PROTOCOL)
    assert truth.system.unidentifiable == ("theta",)
    assert truth.error({**truth.values, "theta": 100.0}) == 0
    assert truth.error({**truth.values, "M_q": 1.25 * truth.values["M_q"]}) == pytest.approx(0.25)
    assert truth.error(None) == PENALTY
    assert truth.error({**truth.values, "M_q": math.nan}) == PENALTY


def test_generated_files_hold_the_same_data_as_a_run(tmp_path):
    options = ["--systems", "seir", "--trials", "1", "--noise", "0", "0.01", "--seed", "11", "--output", str(tmp_path)]
    assert generate.main(options) == 0
    folder = tmp_path / "seir" / "0"
    truth = cells.draw("seir", 0, PROTOCOL)
    facts = json.loads((folder / "truth.json").read_text())
    assert {**facts["initial_state"], **facts["parameters"]} == truth.values
    with (folder / "noise-0.01.csv").open() as file:
        rows = list(csv.DictReader(file))
    expected = _values(cells.measured(truth, Cell("seir", 0.01, 0), PROTOCOL))
    for name, values in expected.items():
        assert [float(row[name]) for row in rows] == values.tolist()
    assert (folder / "clean.csv").read_text() == (folder / "noise-0.csv").read_text()
