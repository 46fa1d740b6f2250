"""The benchmark systems: the same as the published ones, and solvable."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from odejet import ModelError, Outcome, simulate
from odejet.model.grammar import parse
from problems import systems

PUBLISHED = Path(__file__).parents[3] / "shared" / "benchmark" / "systems.json"


def test_there_are_25_systems():
    assert len(systems.names()) == 25
    assert "lotka_volterra" in systems.names()
    assert "protocol" not in systems.names()


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published systems are not on this machine")
def test_systems_are_the_published_ones():
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    assert [entry["name"] for entry in published["systems"]] == list(systems.names())
    for entry in published["systems"]:
        system = systems.load(entry["name"])
        for table in ("states", "outputs", "inputs"):
            expected = {name: parse(text) for name, text in entry[table].items()}
            assert list(getattr(system.model, table).items()) == list(expected.items())
        assert list(system.model.parameters) == entry["parameters"]
        assert (system.name, system.title) == (entry["name"], entry["title"])
        assert list(system.time) == entry["time"]
        assert list(system.unidentifiable) == entry["unidentifiable"]
        assert not system.model.initial and not system.model.fixed


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published systems are not on this machine")
def test_protocol_is_the_published_one():
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    sampling, protocol = published["sampling"], systems.protocol()
    assert list(protocol.noise) == sampling["noise"]
    assert list(protocol.bounds) == published["search_bounds"]
    for key in ("points", "low", "high", "trials"):
        assert getattr(protocol, key) == sampling[key]


def test_the_textbook_brusselator_is_apart():
    """x = 2 X and y = 2 Y turn it into x' = 1 - (B + 1) x + A x^2 y, y' = B x - A x^2 y with A = 4 a and B = 6 b."""
    assert systems.apart() == ("brusselator_textbook",)
    assert systems.number("brusselator_textbook") == 25
    assert [systems.number(name) for name in systems.names()] == list(range(25))
    a, b, x, y = 0.3, 0.7, 1.1, 0.4
    simulation = simulate(
        systems.load("brusselator_textbook").model, {"a": a, "b": b}, {"X": x / 2, "Yc": y / 2}, [0, 1e-6]
    )
    rates = [float(np.diff(simulation[name])[0]) / 1e-6 for name in ("y1", "y2")]
    expected = [1 - (6 * b + 1) * x + 4 * a * x**2 * y, 6 * b * x - 4 * a * x**2 * y]
    np.testing.assert_allclose(rates, expected, rtol=1e-4)


@pytest.mark.parametrize("name", (*systems.names(), *systems.apart()))
def test_a_system_is_complete_and_solvable(name):
    system = systems.load(name)
    assert system.title and system.model.outputs
    assert system.time[0] < system.time[1]
    assert set(system.unidentifiable) <= set(system.model.unknowns)
    parameters, initial_state = systems.draw(system, np.random.default_rng(1))
    simulation = simulate(system.model, parameters, initial_state, system.times(20))
    assert simulation.outcome in (Outcome.COMPLETED, Outcome.BLOW_UP)


def test_times_span_the_protocol():
    times = systems.load("lotka_volterra").times()
    assert (times[0], times[-1], len(times)) == (0, 20, 750)


def test_draws_are_within_the_box_and_reproducible():
    system = systems.load("crauste")
    draws = [systems.draw(system, np.random.default_rng(7)) for _ in range(2)]
    assert draws[0] == draws[1]
    parameters, initial_state = draws[0]
    assert tuple(parameters) == system.model.parameters
    assert tuple(initial_state) == tuple(system.model.states)
    values = [*parameters.values(), *initial_state.values()]
    assert all(0.1 <= value <= 0.9 for value in values)
    assert len(set(values)) == len(values)


def test_an_unknown_system_suggests_the_nearest():
    with pytest.raises(ModelError, match="there is no benchmark system 'lotka_voltera'; did you mean 'lotka_volterra'"):
        systems.load("lotka_voltera")
