"""Coverage where little is determined: draws of joined experiments, and profiles that are told from wrong ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks import profiles
from odejet.problem import Problem
from odejet.uncertainty.practical import DETERMINED


@pytest.fixture(scope="module")
def truth():
    return profiles.drawn("harmonic_oscillator", 1e-2, 0, 3, 2)


def test_experiments_share_their_parameters_and_their_noise(truth):
    problem = Problem(truth.system.model, truth.data, profiles.BOUNDS)
    z = truth.vector(problem)
    assert dict(zip(problem.unknowns, z, strict=True))["x1(0) in e1"] == truth.initial_states["e1"]["x1"]
    assert len(z) == len(truth.parameters) + 2 * len(truth.system.model.states)
    clean = problem.simulate(dict(zip(problem.unknowns, z.tolist(), strict=True)))
    for output in truth.system.model.outputs:
        left = [clean[one.name][output] - one.outputs[output].values for one in truth.data.experiments]
        size = 1e-2 * np.mean([abs(course[output].mean()) for course in clean.values()])
        assert all(0.6 * size < np.std(part) < 1.5 * size for part in left)


def test_a_draw_is_the_same_again(truth):
    again = profiles.drawn("harmonic_oscillator", 1e-2, 0, 3, 2)
    assert again.parameters == truth.parameters
    other = profiles.drawn("harmonic_oscillator", 1e-2, 1, 3, 2)
    assert other.parameters != truth.parameters


def test_intervals_of_shared_quantities_are_those_of_the_likelihood(truth):
    fit, z = profiles.from_truth(truth)
    found = profiles.quantities(fit, z, ())
    assert [one["quantity"] for one in found] == list(truth.system.model.parameters)
    assert all(one["kind"] == DETERMINED and not one["narrow"] and not one["wide"] for one in found)


def test_an_interval_that_leaves_out_what_belongs_is_narrow(truth, monkeypatch):
    fit, z = profiles.from_truth(truth)
    place = list(fit.labels).index("a")
    belongs = profiles.held_at(fit, "a", z[place], z)
    assert belongs[0] < belongs[1]
    right = profiles.profile

    def too_narrow(likelihood, label, level):
        found = right(likelihood, label, level)
        return dataclasses.replace(found, values=z[place] + 1e-6 * (1 + np.arange(len(found.values))))

    monkeypatch.setattr(profiles, "profile", too_narrow)
    (one,) = [one for one in profiles.quantities(fit, z, ("b",)) if one["quantity"] == "a"]
    assert not one["holds"] and one["narrow"]


def test_counts():
    line = {"system": "s", "noise": 0.01, "trial": 0, "quantities": 3, "narrow": ["k"], "wide": [], "seconds": 1.0}
    for kind, (count, hits) in zip(profiles.KINDS, [(2, 1), (0, 0), (1, 1)], strict=True):
        line |= {kind: count, f"{kind} hits": hits}
    text = profiles.table([line, line])
    assert "| all | 2 | 2 of 4 (50.0 %) | – | 2 of 2 (100.0 %) | 2 | 0 | 1.0 |" in text
    assert "- s 0: k" in text
