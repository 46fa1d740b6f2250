"""Fits of systems that something happens to: doses, spikes, a voltage from a computer, a step after rest."""

import numpy as np
import pytest

import odejet as oj
from odejet.problem.stretches import stretch, stretches
from odejet.search.pieces import pieces, start
from problems.driven import (
    DOSES,
    LIGAND,
    MOTOR,
    NEURON,
    RECEPTOR,
    TWO_COMPARTMENTS,
    ball,
    concentration,
    held,
    integrator,
    neuron,
    stepped,
    thermostat,
)

PATIENT = {"ka": 0.9, "CL": 4.0, "V1": 20.0, "Q": 3.0, "V2": 30.0, "tlag": 0.6}


@pytest.fixture(scope="module")
def concentrations():
    times = np.r_[0.3, 0.7, 0.9, 1.2, 1.6, 2, 2.5, 3, 4, 6, 8, 10, 11.9, 12.9, 13.5, 14.5, 16, 20, 24, 25, 26, 28]
    times = np.r_[times, 36, 37, 38, 40, 48, 49, 50, 52, 60, 60.8, 61.2, 61.8, 63, 66, 70, 74, 80, 90]
    return times, concentration(times, **PATIENT) + 0.05 * np.random.default_rng(0).standard_normal(len(times))


@pytest.mark.parametrize("known", [{}, {"bounds": (1e-2, 1e2)}], ids=["nothing known", "bounds"])
def test_two_compartments_with_a_lag_and_doses_every_twelve_hours(concentrations, known):
    """Three sets of values give the same outputs, as flip-flop kinetics does; one of them is the truth."""
    times, values = concentrations
    data = oj.Data(times, {"conc": values}, doses=DOSES, start=0.0)
    fit = oj.fit(TWO_COMPARTMENTS, data, **known)
    assert fit.certified
    errors = [max(abs(one.parameters[n] / value - 1) for n, value in PATIENT.items()) for one in fit.solutions]
    assert min(errors) < 0.25
    best = fit.solutions[int(np.argmin(errors))].parameters
    assert best["CL"] == pytest.approx(4.0, rel=0.05) and best["tlag"] == pytest.approx(0.6, abs=0.05)


CELL = {"I": 10.0, "a": 0.02, "b": 0.2, "c": -65.0, "d": 8.0}


@pytest.fixture(scope="module")
def voltage():
    """Izhikevich's neuron by plain steps of a microsecond (Heun's method)."""
    step, v, u = 1e-3, -70.0, -14.0
    trace = []
    for i in range(80_000):
        if i % 250 == 0:
            trace.append((i * step, v))
        dv, du = 0.04 * v * v + 5 * v + 140 - u + 10, 0.02 * (0.2 * v - u)
        w, x = v + step * dv, u + step * du
        v, u = v + step / 2 * (dv + 0.04 * w * w + 5 * w + 140 - x + 10), u + step / 2 * (du + 0.02 * (0.2 * w - x))
        if v > 30:
            v, u = -65.0, u + 8.0
    times, values = np.array(trace).T
    return times, values + 0.1 * np.random.default_rng(1).standard_normal(len(times))


def test_a_spiking_neuron_from_its_voltage(voltage):
    fit = oj.fit(NEURON, oj.Data(voltage[0], {"V": voltage[1]}))
    assert fit.certified and fit.noise["V"] == pytest.approx(0.1, rel=0.2)
    for name, value in CELL.items():
        assert abs(fit.parameters[name] - value) < 5 * fit.stderr[name]
    assert fit.parameters["c"] == pytest.approx(-65.0, abs=0.3) and fit.parameters["d"] == pytest.approx(8.0, abs=0.3)


@pytest.mark.parametrize("seed", [501, pytest.param(602, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_bounded", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_spiking_neurons_of_which_no_stretch_tells_all(seed, is_bounded):
    task = neuron(np.random.default_rng([seed, *b"neuron"]))
    fit = oj.fit(task.model, task.data, bounds=task.bounds if is_bounded else None)
    assert fit.certified and fit.noise["V"] == pytest.approx(0.1, rel=0.2)
    for name, value in task.truth.items():
        assert abs(fit.parameters[name] - value) < 5 * fit.stderr[name]


@pytest.mark.slow
@pytest.mark.parametrize("is_bounded", [False, True])
@pytest.mark.parametrize("system", [ball, thermostat], ids=lambda system: system.__name__)
def test_systems_whose_events_show_as_kinks(system, is_bounded):
    task = system(np.random.default_rng(4))
    fit = oj.fit(task.model, task.data, bounds=task.bounds if is_bounded else None, time_limit=60)
    assert not any("autocorrelated" in reason or "larger" in reason for reason in fit.certificate.reasons)
    for name, value in task.truth.items():
        assert abs(fit.parameters[name] - value) < 5 * fit.stderr[name]


@pytest.mark.slow
def test_a_threshold_that_nothing_but_spikes_shows():
    """Stretches say nothing of it; its values are drawn, and the times of spikes tell the rest."""
    task = integrator(np.random.default_rng(4))
    fit = oj.fit(task.model, task.data, time_limit=60)
    assert fit.noise["V"] == pytest.approx(0.1, rel=0.2)
    for name, value in task.truth.items():
        assert abs(fit.parameters[name] - value) < 5 * fit.stderr[name]


def test_spikes_are_seen_and_tell_what_they_set(voltage):
    problem = oj.Problem(NEURON, oj.Data(voltage[0], {"V": voltage[1]}))
    first = stretch(problem.conditions[0])["V"]
    assert first.times[-1] < 3.6  # the first spike
    assert len(stretches(problem.conditions[0])) == 4
    parts = pieces(problem)
    assert set(parts.problem.model.parameters) == {"I", "a", "b"} and not parts.problem.model.events
    # With the truth for the stretches, what only the events depend on follows.
    truth = oj.simulate(NEURON, CELL, {"v": -70.0, "u": -14.0}, [one.start for one in parts.problem.experiments])
    z = parts.problem.layout.scatter(
        [{"v": v, "u": u, **CELL} for v, u in zip(truth.states["v"].tolist(), truth.states["u"].tolist(), strict=True)]
    )
    found = problem.layout.table(start(problem, parts, z))
    assert found["c"] == pytest.approx(-65, abs=1.5) and found["d"] == pytest.approx(8, abs=0.3)
    assert found["u(0)"] == pytest.approx(-14, abs=1e-9)


MACHINE = {"R": 2.0, "K": 0.1, "L": 0.5, "b": 0.05, "J": 0.02}


@pytest.mark.parametrize("known", [{}, {"bounds": (1e-4, 1e2)}], ids=["nothing known", "bounds"])
def test_a_motor_driven_by_the_voltage_of_a_computer(known):
    rng, step, count = np.random.default_rng(3), 0.05, 160
    volts = np.repeat(rng.choice([0, 6.0, 12.0], count // 4), 4)
    current, speed = held(volts, step, **MACHINE) + 0.02 * rng.standard_normal((2, count))
    data = oj.Data(step * np.arange(count), {"current": current, "speed": speed}, inputs={"V": volts})
    fit = oj.fit(MOTOR, data, **known)
    assert fit.certified
    for name, value in MACHINE.items():
        assert fit.parameters[name] == pytest.approx(value, rel=0.03)
        assert abs(fit.parameters[name] - value) < 4 * fit.stderr[name]


CELLS = {"kr": 1.0, "dr": 0.2, "kon": 0.8, "koff": 0.3, "ki": 0.5, "kp": 2.0, "dp": 0.4, "b": 0.3}


@pytest.mark.parametrize("known", [{}, {"bounds": (1e-3, 1e2)}], ids=["nothing known", "bounds"])
def test_signalling_that_rested_before_a_step_of_its_ligand(known):
    times = np.r_[np.linspace(0, 3, 13), np.linspace(3.5, 20, 16)]
    exact = stepped(times, CELLS)
    noisy = exact + 0.01 * np.random.default_rng(2).standard_normal(exact.shape)
    outputs = dict(zip(RECEPTOR.outputs, noisy.T, strict=True))
    data = oj.Data(times, outputs, initial="steady", before={"L": 0}, values={"L": LIGAND})
    fit = oj.fit(RECEPTOR, data, **known)
    assert fit.certified
    for name, value in CELLS.items():
        assert fit.parameters[name] == pytest.approx(value, rel=0.1)
        assert abs(fit.parameters[name] - value) < 4 * fit.stderr[name]
