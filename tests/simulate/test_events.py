"""Events and switches against closed forms: values to 1e-12, sensitivities to 1e-10.

The closed forms are evaluated, and differentiated, in 50 digits.
"""

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.integrate import solve_ivp

import odejet as oj
from odejet import Event, Model, Outcome
from odejet.clock import now
from odejet.simulate.events import Passage
from odejet.simulate.flow import Flow

DIGITS = 50


def agree(model, values, initial, times, closed, **options):
    """Simulated outputs and sensitivities beside those of closed(t, **values), which returns one number per output."""
    sim = oj.simulate(model, values, initial, times, sensitivities=True, **options)
    assert sim.success, sim.message
    exact, slopes = beside(model, closed, values | initial, times)
    for i, name in enumerate(model.outputs):
        scale = np.abs(exact[i]).max()
        assert np.abs(sim[name] - exact[i]).max() <= 1e-12 * scale
        for unknown in sim.unknowns:
            slope = slopes[unknown][i]
            error = np.abs(sim.sensitivity(name, unknown) - slope).max()
            assert error <= 1e-10 * max(scale, np.abs(slope).max()), unknown
    return sim


def beside(model, closed, values, times):
    """The closed form and its slopes, one row per output."""
    with mp.workdps(DIGITS):
        given, step = {name: mpf(value) for name, value in values.items()}, mpf(10) ** -20
        exact = [closed(mpf(float(t)), **given) for t in times]
        slopes = {}
        for name, value in given.items():
            above, below = (
                [closed(mpf(float(t)), **(given | {name: value + sign * step})) for t in times] for sign in (1, -1)
            )
            slopes[name] = [
                [(a - b) / (2 * step) for a, b in zip(*pair, strict=True)] for pair in zip(above, below, strict=True)
            ]
        numbers = np.array(exact, dtype=float).T
        return numbers, {name: np.array(rows, dtype=float).T for name, rows in slopes.items()}


# --- pharmacology ---


def one_compartment(t, ka, k, tlag, dose, gut, x):
    def after(tau, amount):
        return amount * ka / (ka - k) * (mp.exp(-k * tau) - mp.exp(-ka * tau))

    total = x * mp.exp(-k * t) + after(t, gut)
    for i in range(8):
        tau = t - tlag - 12 * i
        total += after(tau, dose) if tau >= 0 else 0
    return [total]


def test_repeated_bolus_with_lag_in_one_compartment():
    model = Model(
        {"gut": "-ka*gut", "x": "ka*gut - k*x"},
        {"y": "x"},
        events=[Event(at="tlag", every=12, count=8, set={"gut": "gut + dose"})],
    )
    values = {"ka": 1.3, "k": 0.17, "tlag": 0.71, "dose": 4.0}
    sim = agree(model, values, {"gut": 1.0, "x": 0.5}, np.linspace(0, 110, 45), one_compartment)
    assert sim.method == "taylor"


@pytest.mark.parametrize("switch", ["x < 1000", "x < 1000 or gut > 500", "x + gut >= 0"])
def test_doses_that_change_no_sign_happen_on_the_way(switch, monkeypatch):
    """A model that switches has to stop only at a dose by which it might."""
    model = Model(
        {"gut": "-ka*gut", "x": f"ka*gut - k*piecewise(x, {switch}, 3*x)"},
        {"y": "x"},
        events=[Event(at="tlag", every=12, count=8, set={"gut": "gut + dose"})],
    )
    stops, jump = [], Passage.jump
    monkeypatch.setattr(Passage, "jump", lambda passage, place: (stops.append(place), jump(passage, place)))
    values = {"ka": 1.3, "k": 0.17, "tlag": 0.71, "dose": 4.0}
    agree(model, values, {"gut": 1.0, "x": 0.5}, np.linspace(0, 110, 45), one_compartment)
    assert not stops


@pytest.mark.parametrize(
    ("sets", "closed"),
    [
        (["x + 10"], lambda t, c, at, x: [x + at + 10 + 2 * (t - at), 1]),  # across the threshold
        (["c"], lambda t, c, at, x: [c + 2 * (t - at), 1]),  # onto it
        (["x + 10", "x - 10"], lambda t, c, at, x: [x + t, 1]),  # across it and back at one time
        (["x + c/9", "2*x + c"], lambda t, c, at, x: [2 * (x + at + c / 9) + c + 2 * (t - at), 1]),
        (["x + c/9"], lambda t, c, at, x: [x + t + c / 9, 0]),  # not across it
    ],
)
def test_jumps_beside_a_threshold(sets, closed):
    """Rates 1 below c and 2 above it, and a count of how often c is passed upward."""
    model = Model(
        {"x": "piecewise(1, x < c, 2)", "n": "0"},
        {"y": "x", "passed": "n"},
        events=[*(Event(at="at", set={"x": text}) for text in sets), Event(when="x > c", set={"n": "n + 1"})],
        initial={"n": 0},
    )
    values = {"c": 9.0, "at": 1.5}
    times = np.array([0.0, 0.7, 1.6, 2.9])

    def course(t, c, at, x):
        return closed(t, c, at, x) if t >= at else [x + t, 0]

    agree(model, values, {"x": 0.25}, times, course)


def eigen(k10, k12, k21):
    total = k10 + k12 + k21
    root = mp.sqrt(total**2 - 4 * k10 * k21)
    return (total + root) / 2, (total - root) / 2


def two_compartments(t, k10, k12, k21, amount, length, c, p):
    fast, slow = eigen(k10, k12, k21)

    def bolus(tau, amount):
        return amount * ((fast - k21) * mp.exp(-fast * tau) - (slow - k21) * mp.exp(-slow * tau)) / (fast - slow)

    def infused(tau):
        """The response to a unit rate since tau."""
        parts = [(fast - k21) * (1 - mp.exp(-fast * tau)) / fast, (slow - k21) * (1 - mp.exp(-slow * tau)) / slow]
        return (parts[0] - parts[1]) / (fast - slow)

    total = bolus(t, c) + p * k21 * (mp.exp(-slow * t) - mp.exp(-fast * t)) / (fast - slow)
    for start in (mpf(1), mpf(7), mpf("7.5")):
        total += bolus(t - start, 2 * amount) if t > start else 0
        total += amount / length * infused(t - start) if t >= start else 0
        total -= amount / length * infused(t - start - length) if t >= start + length else 0
    return [total]


def test_bolus_and_infusions_that_overlap_in_two_compartments():
    starts = [1, 7, 7.5]
    model = Model(
        {"c": "rate - (k10 + k12)*c + k21*p", "p": "k12*c - k21*p"},
        {"y": "c"},
        fixed={"rate": 0},
        events=[
            Event(at=starts, set={"c": "c + 2*amount", "rate": "rate + amount/length"}),
            Event(at=[f"{start} + length" for start in starts], set={"rate": "rate - amount/length"}),
        ],
    )
    values = {"k10": 0.4, "k12": 0.7, "k21": 0.3, "amount": 3.0, "length": 1.7}
    agree(model, values, {"c": 1.0, "p": 2.0}, np.linspace(0, 15, 31), two_compartments)


def test_a_dose_at_the_start_is_given():
    model = Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "x0"}, events=[Event(at=0, set={"x": "x + d"})])
    sim = agree(
        model,
        {"k": 0.5, "x0": 1.0, "d": 3.0},
        {},
        np.array([0.0, 1.0, 2.0]),
        lambda t, k, x0, d: [(x0 + d if t > 0 else x0) * mp.exp(-k * t)],
    )
    assert sim["y"][0] == 1.0


# --- mechanics ---


def bounces(t, g, e, x, v):
    flight, speed = (v + mp.sqrt(v**2 + 2 * g * x)) / g, mp.sqrt(v**2 + 2 * g * x)
    if t < flight:
        return [x + v * t - g * t**2 / 2]
    t, speed = t - flight, e * speed
    while t >= 2 * speed / g:
        t, speed = t - 2 * speed / g, e * speed
    return [speed * t - g * t**2 / 2]


def test_a_ball_that_bounces_twenty_times():
    model = Model({"x": "v", "v": "-g"}, {"y": "x"}, events=[Event(when="x < 0", set={"v": "-e*v"})])
    sim = agree(model, {"g": 9.81, "e": 0.95}, {"x": 1.0, "v": 0.5}, np.linspace(0, 11.3, 97), bounces)
    assert sim.trajectory.steps < 100


def test_what_is_set_to_where_its_condition_comes_true_again():
    climbing = {"x": "k", "z": "0"}, {"y": "x"}
    sim = oj.simulate(
        Model(*climbing, events=[Event(when="x > 1", set={"x": 1})]), {"k": 1.0}, {"x": 0, "z": 0}, [0, 2]
    )
    assert sim.outcome is Outcome.ENDLESS and sim.trajectory.time == pytest.approx(1)
    # From where it is set to, the solution turns back; or the condition has become false only in what it did not set.
    turned = Model(*climbing, events=[Event(when="x > 1", set={"x": 1, "k": -1})])
    assert oj.simulate(turned, {"k": 1.0}, {"x": 0, "z": 0}, [0, 3])["y"][-1] == pytest.approx(-1)
    counted = Model(*climbing, events=[Event(when="t > 1 and z < 5", set={"z": "z + 1"})])
    assert oj.simulate(counted, {"k": 1.0}, {"x": 0, "z": 0}, [0, 3]).states["z"][-1] == 1


@pytest.mark.parametrize("condition", ["x < 0", "x <= 0"])
@pytest.mark.parametrize("also", [{}, {"x": 0}], ids=["", "on the floor"])
def test_infinitely_many_bounces_end_in_a_sentence(condition, also):
    model = Model({"x": "v", "v": "-g"}, {"y": "x"}, events=[Event(when=condition, set={"v": "-e*v", **also})])
    for e in (0.9, 0.5, 0.1):
        limit = np.sqrt(2 / 9.81) * (1 + e) / (1 - e)
        sim = oj.simulate(model, {"g": 9.81, "e": e}, {"x": 1.0, "v": 0.0}, np.linspace(0, 2 * limit, 21))
        assert sim.outcome is Outcome.ENDLESS
        assert "without end" in sim.message
        assert sim.trajectory.time == pytest.approx(limit, rel=1e-6)
        assert np.all(np.abs(sim["y"]) <= 1) and sim["y"].min() > -1e-12


def rubbed(t, k, mu, x, v):
    """Coulomb friction: half swings about mu/k to either side, until one ends where friction holds."""
    rate, side = mp.sqrt(k), mpf(-1)  # moving down first
    half = mp.pi / rate
    while True:
        centre = -side * mu / k
        if abs(x) <= mu / k:
            return [x]
        if t <= half:
            return [centre + (x - centre) * mp.cos(rate * t)]
        x, t, side = 2 * centre - x, t - half, -side


def test_dry_friction_holds_where_its_closed_form_does():
    model = Model({"x": "v", "v": "-k*x - mu*sign(v)"}, {"y": "x"}, initial={"v": 0})
    times = np.linspace(0.1, 12, 60)
    sim = agree(model, {"k": 2.0, "mu": 0.7}, {"x": 3.0}, times, lambda t, k, mu, x: rubbed(t, k, mu, x, 0), start=0.0)
    assert np.all(sim.states["v"][-10:] == 0)
    assert np.ptp(sim["y"][-10:]) == 0


def test_friction_gives_as_much_as_it_must():
    model = Model({"v": "push - mu*sign(v)"}, {"friction": "-mu*sign(v)"}, inputs={"push": "sin(t)"})
    sim = oj.simulate(model, {"mu": 0.6}, {"v": 0.0}, [0.3, 1.0], start=0.0)
    assert sim["friction"] == pytest.approx([-np.sin(0.3), -0.6], abs=1e-15)


# --- switches ---


def test_a_switch_at_an_estimated_time():
    model = Model({"x": "piecewise(a, t < tau, b) - k*x"}, {"y": "x"})

    def closed(t, a, tau, b, k, x):
        early = a / k + (x - a / k) * mp.exp(-k * min(t, tau))
        return [early if t < tau else b / k + (early - b / k) * mp.exp(-k * (t - tau))]

    agree(model, {"a": 1.0, "tau": 2.345, "b": 3.0, "k": 0.8}, {"x": 0.5}, np.linspace(0, 6, 25), closed)


def fired(t, tau, current, high, low, v):
    rest = current * tau
    waiting = tau * mp.log((rest - v) / (rest - high))
    if t < waiting:
        return [rest + (v - rest) * mp.exp(-t / tau)]
    period = tau * mp.log((rest - low) / (rest - high))
    t = t - waiting
    t -= period * mp.floor(t / period)
    return [rest + (low - rest) * mp.exp(-t / tau)]


def test_integrate_and_fire():
    model = Model(
        {"v": "-v/tau + current"},
        {"y": "v"},
        events=[Event(when="v >= high", set={"v": "low"})],
    )
    values = {"tau": 10.0, "current": 1.7, "high": 15.0, "low": -2.0}
    agree(model, values, {"v": 1.0}, np.linspace(0.3, 207.1, 70), fired, start=0.0)


def test_absolute_values_minima_maxima_and_floors():
    model = Model({"x": "-1"}, {"a": "abs(x)", "b": "max(x, t, 2)", "c": "floor(x) + ceil(x)", "d": "sign(x)*x**2"})
    sim = oj.simulate(model, {}, {"x": 3.25}, times := np.linspace(0, 6, 49), sensitivities=True)
    x = 3.25 - times
    assert sim["a"] == pytest.approx(np.abs(x), abs=1e-14)
    assert sim["b"] == pytest.approx(np.maximum(np.maximum(x, times), 2), abs=1e-14)
    assert sim["d"] == pytest.approx(np.sign(x) * x**2, abs=1e-13)
    away = np.abs(x - np.round(x)) > 1e-9
    assert sim["c"][away] == pytest.approx((np.floor(x) + np.ceil(x))[away], abs=0)
    assert sim.sensitivity("a", "x")[away] == pytest.approx(np.sign(x)[away], abs=1e-12)


def test_branches_inside_branches_and_conditions():
    model = Model(
        {"x": "piecewise(piecewise(1, t < 1, 2), t < 2 or (t > 4 and not t >= 5), -min(x, 1))"},
        {"y": "x"},
    )
    sim = oj.simulate(model, {}, {"x": 0.0}, [1.0, 2.0, 4.0, 5.0], start=0.0)
    assert sim.success
    # up by 1, by 2, then down by 1 until x = 1 at t = 4, up by 2 again
    assert sim["y"] == pytest.approx([1.0, 3.0, 1.0, 3.0], abs=1e-14)


def test_two_roots_close_together_are_both_found():
    """The function is positive for 2e-4 of time only, and the rate large meanwhile."""
    width = 1e-4
    model = Model({"x": f"piecewise(1e4, (t - 1.3)**2 < {width}**2, 0)"}, {"y": "x"})
    sim = oj.simulate(model, {}, {"x": 0.0}, [0.0, 1.0, 5.0])
    assert sim["y"] == pytest.approx([0.0, 0.0, 2.0], rel=1e-9)


def test_a_function_that_only_touches_does_not_switch():
    model = Model({"x": "1", "n": "0"}, {"y": "n"}, events=[Event(when="(x - 2)**2 < 0", set={"n": "n + 1"})])
    sim = oj.simulate(model, {}, {"x": 0.0, "n": 0.0}, [0.0, 5.0])
    assert sim.success
    assert sim["y"][-1] == 0


def test_switches_and_events_of_a_stiff_model():
    """A fast variable follows x at once: what happens to x is known in closed form."""
    model = Model(
        {"x": "piecewise(a, t < tau, -k*x)", "z": "1e6*(x - z)"},
        {"y": "x", "fast": "z"},
        initial={"z": 0},
        events=[Event(when="x > high", set={"x": "low"}), Event(at=[7, 30], set={"x": "x + 1"})],
    )
    values = {"a": 0.5, "tau": 12.25, "k": 0.2, "high": 3.0, "low": 1.0}

    def closed(t, a, tau, k, high, low, x):
        now, value = mpf(0), x
        for stop in sorted(one for one in {mpf(7), mpf(30), tau, t} if one <= t):
            while now < tau and value + a * (stop - now) >= high:
                now, value = now + (high - value) / a, low
            value = value + a * (stop - now) if now < tau else value * mp.exp(-k * (stop - now))
            now = stop
            value += 1 if stop in (7, 30) else 0
            value = low if value > high else value
        return [value]

    times = np.linspace(1, 40, 40) + 0.0371
    sim = oj.simulate(model, values, {"x": 0.2}, times, start=0.0, sensitivities=True)
    assert sim.success, sim.message
    assert "collocation" in sim.method
    exact, slopes = beside(model, closed, values | {"x": 0.2}, times)
    assert np.abs(sim["y"] - exact[0]).max() < 1e-10
    for name, slope in slopes.items():
        assert np.abs(sim.sensitivity("y", name) - slope[0]).max() < 1e-8 * max(1, np.abs(slope[0]).max()), name


def test_a_flat_root_is_found_to_rounding():
    model = Model({"x": "1", "z": "piecewise(1, (x - 2)**3 > 0, 0)"}, {"y": "z"})
    sim = oj.simulate(model, {}, {"x": 0.0, "z": 0.0}, [0.0, 5.0])
    assert sim["y"][-1] == pytest.approx(3.0, abs=1e-12)


def test_many_switches_take_few_steps():
    model = Model({"x": "sign(sin(20*t))"}, {"y": "x"})
    sim = oj.simulate(model, {}, {"x": 0.0}, [0.0, 10.0])
    half = np.pi / 20
    assert sim["y"][-1] == pytest.approx(half - (10 - 63 * half), abs=1e-12)
    assert sim.trajectory.steps < 400


def test_starts_where_functions_vanish():
    """Twenty coupled states, two of which start on a switch that both sides pass in the same direction."""
    rates = {f"x{i}": f"-x{i} + max(x{(i + 1) % 20} - 0.5, 0) + 0.3*abs(x{(i + 7) % 20} - 0.3)" for i in range(20)}
    sim = oj.simulate(Model(rates, {"y": "x0"}), {}, {f"x{i}": 0.1 * i for i in range(20)}, [0.0, 1e-3, 4.0])
    assert sim.success, sim.message

    def theirs(t, x):
        return -x + np.maximum(np.roll(x, -1) - 0.5, 0) + 0.3 * np.abs(np.roll(x, -7) - 0.3)

    known = solve_ivp(theirs, (0, 4), 0.1 * np.arange(20), rtol=1e-11, atol=1e-12, method="DOP853", max_step=0.01)
    assert sim["y"][-1] == pytest.approx(known.y[0, -1], abs=1e-8)


# --- what happens when ---


def test_events_at_one_time_happen_in_order_and_the_time_shows_what_holds_before():
    model = Model(
        {"x": "0"},
        {"y": "x"},
        events=[Event(at=2, set={"x": "x + 1"}), Event(at=[2, 1], set={"x": "3*x"}), Event(at=2, set={"x": "x - 5"})],
    )
    sim = oj.simulate(model, {}, {"x": 1.0}, [0.5, 1.0, 1.5, 2.0, 2.5])
    assert list(sim["y"]) == [1, 1, 3, 3, 7]


def test_all_that_an_event_sets_is_set_at_once():
    model = Model({"a": "0", "b": "0"}, {"y": "a - b"}, events=[Event(at=1, set={"a": "b", "b": "a"})])
    assert list(oj.simulate(model, {}, {"a": 1.0, "b": 5.0}, [1.0, 2.0], start=0.0)["y"]) == [-4, 4]


def test_conditions_act_when_they_become_true_and_may_follow_from_each_other():
    model = Model(
        {"x": "1", "n": "0", "m": "0"},
        {"y": "n", "z": "m"},
        events=[
            Event(when="x > 1", set={"n": "n + 1"}),
            Event(when="n >= 1", set={"m": "m + 10"}),
            Event(when="m > 5 and x < 3", set={"x": "x + 5"}),
        ],
    )
    sim = oj.simulate(model, {}, {"x": 0.0, "n": 0.0, "m": 0.0}, [0.0, 1.0, 1.5, 2.0])
    assert list(sim["y"]) == [0, 0, 1, 1]
    assert list(sim["z"]) == [0, 0, 10, 10]
    assert sim.states["x"][-1] == pytest.approx(7.0, abs=1e-14)
    already = oj.simulate(model, {}, {"x": 2.0, "n": 0.0, "m": 0.0}, [0.0, 2.0])
    assert list(already["y"]) == [0, 0]


def test_events_that_cause_each_other_without_end():
    model = Model(
        {"x": "1", "n": "0"},
        {"y": "n"},
        events=[Event(when="n > 0.5", set={"n": "0"}), Event(when="n < 0.5 and x > 1", set={"n": "1"})],
    )
    sim = oj.simulate(model, {}, {"x": 0.0, "n": 0.0}, [0.0, 2.0])
    assert sim.outcome is Outcome.ENDLESS
    assert sim.trajectory.time == pytest.approx(1.0)


def test_backward_through_what_can_be_undone():
    model = Model(
        {"x": "-k*x"},
        {"y": "x"},
        events=[Event(at=[2, "tl"], set={"x": "x + d"}), Event(at=1, set={"x": "x**2"})],
    )
    values = {"k": 0.5, "d": 2.0, "tl": 3.0}
    there = oj.simulate(model, values, {"x": 1.3}, [0.0, 1.5, 2.5, 4.0])
    back = oj.simulate(model, values, {"x": there["y"][-1]}, [0.0, 1.5, 2.5, 4.0], start=4.0, sensitivities=True)
    assert back.outcome is Outcome.IRREVERSIBLE
    assert back.trajectory.time == 1.0
    assert back["y"] == pytest.approx(there["y"][1:], rel=1e-13)
    earlier = [
        there["y"][-1] * np.exp(0.5 * (4 - t)) - sum(2 * np.exp(0.5 * (s - t)) for s in (2.0, 3.0) if t < s)
        for t in (1.5, 2.5, 4.0)
    ]
    assert back["y"] == pytest.approx(earlier, rel=1e-13)
    slope = [-(0.5) * 2 * np.exp(0.5 * (3 - t)) if t < 3 else 0.0 for t in (1.5, 2.5, 4.0)]
    assert back.sensitivity("y", "tl") == pytest.approx(slope, rel=1e-12)


def test_models_without_events_are_as_before():
    plain = Model({"x": "-k*x*t"}, {"y": "x**2"})
    idle = plain.replace(events=[Event(at=99, set={"x": 0})])
    times = np.linspace(0, 5, 7)
    one, other = (oj.simulate(m, {"k": 0.3}, {"x": 2.0}, times, sensitivities=True) for m in (plain, idle))
    assert np.array_equal(one.trajectory.outputs, other.trajectory.outputs)


def test_switches_count_as_several_steps():
    """What is decided outside the kernels takes longer than a step."""
    model = oj.Model({"x": "1"}, {"y": "x"}, initial={"x": 0}, events=[oj.Event(when="x > 1", set={"x": 0})])
    times = np.array([0.0, 200.5])
    assert oj.simulate(model, {}, {}, times, max_steps=4000).success
    cut = oj.simulate(model, {}, {}, times, max_steps=600)
    assert not cut.success and "more than" in cut.message


def test_many_switches_of_the_clock_at_once():
    """However many functions of time alone vanish together, it is known how each goes on."""
    terms = [f"piecewise(1, t >= c{i}, 0)" for i in range(8)]
    model = oj.Model({"x": " + ".join(terms)}, initial={"x": 0}, fixed={f"c{i}": 0 if i < 7 else 1 for i in range(8)})
    found = oj.simulate(model, {}, {}, [0, 1, 2], start=0.0)
    assert found.success and found.states["x"] == pytest.approx([0, 7, 15], rel=1e-12)


def test_a_surface_that_one_side_alone_leads_to_holds_the_solution():
    """p rises with d up to c, and beyond c nothing moves."""
    model = oj.Model({"p": "piecewise(d, p <= c, 0)"}, {"y": "p"})
    found = oj.simulate(model, {"c": 5.0, "d": 2.0}, {"p": 1.0}, [0.0, 1.0, 3.0], sensitivities=True)
    np.testing.assert_allclose(found["y"], [1.0, 3.0, 5.0], rtol=1e-14)
    np.testing.assert_allclose([found.sensitivity("y", n)[2] for n in "cdp"], [1.0, 0.0, 0.0], atol=1e-13)


def test_many_blocks_with_dry_friction_start_from_rest_at_once():
    """Those go that are pushed by more than the friction: v = (F - sign F)(1 - e^(-t))."""
    forces = {"F0": 1.5, "F1": -2.0, "F2": 0.3, "F3": 0.0, "F4": -0.5, "F5": 1.2}
    rates = {f"v{i}": f"F{i} - sign(v{i}) - v{i}" for i in range(6)}
    found = oj.simulate(oj.Model(rates), forces, dict.fromkeys(rates, 0.0), [0.0, 2.0])
    assert found.success
    expected = [(f - np.sign(f)) * (1 - np.exp(-2)) if abs(f) > 1 else 0.0 for f in forces.values()]
    np.testing.assert_allclose([v[-1] for v in found.states.values()], expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("condition", "count"), [("v > 0", 0), ("v >= 0", 1)])
def test_what_is_held_at_zero_is_zero_to_conditions(condition, count):
    """Friction stops v from below."""
    events = [oj.Event(when=condition, set={"n": "n + 1"})]
    model = oj.Model({"v": "-sign(v)", "n": "0"}, {"y": "n"}, events=events)
    assert oj.simulate(model, {}, {"v": -1.0, "n": 0.0}, [0.0, 2.0])["y"][-1] == count


def test_a_surface_that_is_left_may_be_met_again_by_another_method():
    """x = sin(t) leaves zero at the start and comes back at pi, where a stiff state beside it has long asked for
    collocation; from there on x and its fast shadow grow."""
    rates = {"x": "piecewise(cos(t), x >= 0, -1)", "f": "-1e5*(f - x)"}
    found = oj.simulate(oj.Model(rates), {}, {"x": 0.0, "f": 0.0}, [0.0, 1.5, 3.0, 3.5])
    assert found.success and "collocation" in found.method
    np.testing.assert_allclose(found.states["x"], [0.0, np.sin(1.5), np.sin(3.0), np.pi - 3.5], atol=1e-10)


def test_the_clock_is_looked_at_from_event_to_event():
    """Of a hundred resets none happens where the time is over at the start, and what was reached is kept."""
    model = oj.Model({"x": "1"}, {"y": "x"}, events=[oj.Event(when="x > 1", set={"x": 0})])
    run = Flow(model).run([], [0.0], np.linspace(0, 100, 11), deadline=now() - 1)
    assert run.outcome is Outcome.OUT_OF_TIME and len(run.states) == 1
    assert Flow(model).run([], [0.0], np.linspace(0, 100, 11), deadline=now() + 600).outcome is Outcome.COMPLETED


def test_switches_that_states_cause_may_be_limited():
    """Resets are counted, those of the clock are not."""
    reset = oj.Model({"x": "1"}, {"y": "x"}, events=[oj.Event(when="x > 1", set={"x": 0})])
    run = Flow(reset).run([], [0.0], [0.0, 4.5, 9.5], max_switches=5)
    assert run.outcome is Outcome.EXHAUSTED and len(run.states) == 2 and run.time == pytest.approx(6.0)
    wave = oj.Model({"x": "piecewise(1, sin(t) > 0, -1)"}, {"y": "x"})
    assert Flow(wave).run([], [0.0], [0.0, 100.0], max_switches=5).outcome is Outcome.COMPLETED
