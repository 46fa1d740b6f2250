"""Exact gradients beside differences in extended precision: of laws, priors, and of objectives in closed form.

What each law, prior and model is stands here a second time, in the arithmetic of mpmath, where central differences have
many more digits than a double.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import odejet as oj
from odejet.problem.chains import Chain
from odejet.problem.distributions import LAWS
from odejet.problem.distributions.interval import interval_terms
from odejet.problem.priors import read

NEAR = 1e-9
"""How near a derivative is to be, relative to itself, or to what it is made of."""


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(30):
        yield


def slope(function: Callable[..., mpf], values: Sequence[float], i: int) -> mpf:
    """The derivative of a function of several arguments by one of them."""
    at = [mpf(value) for value in values]
    return mpmath.diff(lambda x: function(*at[:i], x, *at[i + 1 :]), at[i])


# --- laws ---


def normal(y, mu, s):
    return ((y - mu) / s) ** 2 / 2 + mp.log(s * mp.sqrt(2 * mp.pi))


def laplace(y, mu, s):
    return abs(y - mu) / s + mp.log(2 * s)


def student(y, mu, s, nu=4):
    known = mp.loggamma((nu + 1) / mpf(2)) - mp.loggamma(nu / mpf(2)) - mp.log(s * mp.sqrt(nu * mp.pi))
    return (nu + 1) / mpf(2) * mp.log1p(((y - mu) / s) ** 2 / nu) - known


def gamma(y, mu, s):
    shape, scale = 1 / s**2, mu * s**2
    return y / scale - (shape - 1) * mp.log(y) + mp.loggamma(shape) + shape * mp.log(scale)


def poisson(y, mu, s):
    return mu - y * mp.log(mu) + mp.loggamma(y + 1)


def negative_binomial(y, mu, s):
    r = 1 / s
    known = mp.loggamma(r + y) - mp.loggamma(r) - mp.loggamma(y + 1)
    return -known - y * mp.log(mu / (r + mu)) - r * mp.log(r / (r + mu))


TRIALS = 40


def log_choose(n, y):
    return mp.loggamma(n + 1) - mp.loggamma(y + 1) - mp.loggamma(n - y + 1)


def binomial(y, mu, s):
    p = mu / TRIALS
    return -log_choose(mpf(TRIALS), y) - y * mp.log(p) - (TRIALS - y) * mp.log(1 - p)


def beta_binomial(y, mu, s):
    a, b = mu / TRIALS / s, (1 - mu / TRIALS) / s
    return -log_choose(mpf(TRIALS), y) - log_beta(y + a, TRIALS - y + b) + log_beta(a, b)


def log_beta(a, b):
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def of_logarithms(law, base=mp.e):
    """The law of a measurement of which the logarithm has another; densities are of the measurement."""
    return lambda y, mu, s: law(mp.log(y, base), mp.log(mu, base), s) + mp.log(y * mp.log(base))


def plain(name: str, *arguments: float):
    return LAWS[name].make(*arguments)


COSTS = {
    "normal": (plain("normal"), normal),
    "lognormal": (plain("lognormal"), of_logarithms(normal)),
    "log10normal": (plain("log10normal"), of_logarithms(normal, 10)),
    "laplace": (plain("laplace"), laplace),
    "loglaplace": (plain("loglaplace"), of_logarithms(laplace)),
    "log10laplace": (plain("log10laplace"), of_logarithms(laplace, 10)),
    "student": (plain("student", 4.0), student),
    "gamma": (plain("gamma"), gamma),
    "poisson": (plain("poisson"), poisson),
    "negbinomial": (plain("negbinomial"), negative_binomial),
    "binomial": (plain("binomial", float(TRIALS)), binomial),
    "betabinomial": (plain("betabinomial", float(TRIALS)), beta_binomial),
}
PLACES = [(3.0, 2.5, 0.3), (3.0, 9.0, 0.05), (12.0, 12.25, 1.5), (1.0, 0.2, 0.7), (30.0, 33.0, 0.01)]


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("place", PLACES)
def test_what_a_law_says_of_a_measurement(name: str, place: tuple[float, float, float]) -> None:
    law, cost = COSTS[name]
    terms = law.terms(*(np.array([one]) for one in place))
    assert terms.costs[0] == pytest.approx(float(cost(*map(mpf, place))), rel=1e-12)
    for i, got, weight in ((1, terms.by_mu[0], terms.weight_mu[0]), (2, terms.by_s[0], terms.weight_s[0])):
        exact = float(slope(cost, place, i))
        assert got == pytest.approx(exact, rel=NEAR, abs=NEAR * np.sqrt(weight))


CENSORED = ["normal", "lognormal", "laplace", "student", "gamma", "poisson", "negbinomial", "binomial", "betabinomial"]


@pytest.mark.parametrize("name", CENSORED)
@pytest.mark.parametrize(("low", "high"), [(0.0, 3.0), (5.0, np.inf), (2.0, 6.0)])
def test_what_a_censored_value_says(name: str, low: float, high: float) -> None:
    (law, cost), mu, s = COSTS[name], 4.3, 0.4

    def hidden(mu, s):
        if law.whole:
            last = int(min(high, TRIALS if "binomial" in name and name != "negbinomial" else 400))
            return -mp.log(mp.fsum(mp.exp(-cost(mpf(y), mu, s)) for y in range(int(low), last + 1)))
        ends = sorted({mpf(low), *(mpf(one) for one in (1, 2, 4, 4.3, 6, 10, 30) if low < one < high), mpf(high)})
        ends = [-mp.inf, *ends] if low == 0 and not law.positive else ends
        return -mp.log(mp.quad(lambda y: mp.exp(-cost(y, mu, s)), ends))

    if low == 0 and not law.positive:
        low = -np.inf
    terms = interval_terms(law, *(np.array([one]) for one in (low, high, mu, s)))
    assert terms.costs[0] == pytest.approx(float(hidden(mpf(mu), mpf(s))), rel=1e-11)
    with mp.workdps(20):
        slopes = [float(slope(hidden, (mu, s), i)) for i in range(2)]
    assert terms.by_mu[0] == pytest.approx(slopes[0], rel=NEAR)
    assert terms.by_s[0] == pytest.approx(slopes[1], rel=NEAR, abs=1e-12)


# --- priors ---


def cauchy(x, c, s):
    return mp.log(mp.pi * s * (1 + ((x - c) / s) ** 2))


def gamma_prior(x, k, theta):
    return x / theta - (k - 1) * mp.log(x) + mp.loggamma(k) + k * mp.log(theta)


PRIORS = {
    "normal(1, 0.2)": lambda x: normal(x, 1, mpf("0.2")),
    "lognormal(-1.2, 0.5)": lambda x: normal(mp.log(x), mpf("-1.2"), mpf("0.5")) + mp.log(x),
    "laplace(1, 0.4)": lambda x: laplace(x, 1, mpf("0.4")),
    "loglaplace(0.1, 0.5)": lambda x: laplace(mp.log(x), mpf("0.1"), mpf("0.5")) + mp.log(x),
    "uniform(0.1, 2)": lambda x: mp.log(mpf("1.9")) + 0 * x,
    "loguniform(0.1, 2)": lambda x: mp.log(x) + mp.log(mp.log(20)),
    "cauchy(1, 0.3)": lambda x: cauchy(x, 1, mpf("0.3")),
    "gamma(2.5, 0.4)": lambda x: gamma_prior(x, mpf("2.5"), mpf("0.4")),
    "exponential(0.7)": lambda x: gamma_prior(x, 1, mpf("0.7")),
    "chisquare(3)": lambda x: gamma_prior(x, mpf("1.5"), 2),
    "rayleigh(0.5)": lambda x: 2 * x**2 - mp.log(4 * x),
    "student(1, 0.4, 3)": lambda x: student(x, 1, mpf("0.4"), 3),
    "halfnormal(0.7)": lambda x: normal(x, 0, mpf("0.7")) - mp.log(2),
    "halfcauchy(0.7)": lambda x: cauchy(x, 0, mpf("0.7")) - mp.log(2),
    "beta(2.5, 1.5)": lambda x: log_beta(mpf("2.5"), mpf("1.5")) - mpf("1.5") * mp.log(x) - mp.log(1 - x) / 2,
    "truncated(normal(1, 0.5), 0, 2)": lambda x: (
        normal(x, 1, mpf("0.5")) + mp.log(mp.ncdf(1, 1, mpf("0.5")) * 2 - 1 + 2 * (mp.ncdf(2) - mpf("0.5")))
    ),
    "normal_log(0.1, 0.5)": lambda x: normal(mp.log(x), mpf("0.1"), mpf("0.5")),
    "cauchy_log10(0.1, 0.5)": lambda x: cauchy(mp.log10(x), mpf("0.1"), mpf("0.5")),
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("x", [0.17, 0.6, 0.93])
def test_what_a_prior_says(prior: str, x: float) -> None:
    exact = PRIORS[prior]
    term = read("k", prior).at(x)
    assert term.cost == pytest.approx(float(exact(mpf(x))), rel=1e-12, abs=1e-13)
    assert term.slope == pytest.approx(float(mpmath.diff(exact, mpf(x))), rel=NEAR, abs=NEAR * np.sqrt(term.weight))


# --- objectives ---

TIMES = np.linspace(0.25, 4, 12)
WAVY = 5 * np.exp(-0.5 * TIMES) * (1 + 0.1 * np.sin(7 * TIMES)) + 0.2
COUNTS = np.round(4 * WAVY)


def check(asked: oj.Problem, theta: Sequence[float], exact: Callable[..., mpf], constant: bool = True) -> None:
    """Compare the value of an objective and its gradient with those of a function in extended precision."""
    objective = asked.objective
    value, gradient = objective.value_and_gradient(np.array(theta))
    if constant:
        assert value == pytest.approx(float(exact(*map(mpf, theta))), rel=1e-10)
    slopes = np.array([float(slope(exact, theta, i)) for i in range(len(theta))])
    # Relative to the slope, or to what the value changes by as a whole.
    unit = np.abs(slopes) + 1e-3 * abs(value) / np.abs(theta)
    np.testing.assert_array_less(np.abs(gradient - slopes), NEAR * unit)


def posed(model: oj.Model, values: np.ndarray | list = WAVY, times: np.ndarray = TIMES, **options: object):
    return oj.Problem(model, oj.Data(times, {"y": values}, start=0), **options)


def total(cost: Callable[..., mpf], path: Callable[..., mpf], values=WAVY, times=TIMES) -> Callable[..., mpf]:
    """The cost of all measurements around a path; what the path does not use belongs to the law."""

    def exact(*theta):
        taken = path.__code__.co_argcount - 1
        own, noise = theta[:taken], theta[taken:]
        return mp.fsum(cost(mpf(y), path(mpf(t), *own), *noise) for t, y in zip(times, values, strict=True))

    return exact


def decaying(t, k, x0):
    return x0 * mp.exp(-k * t)


DECAY = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "x0"}, parameters=["k", "x0"])
NOISE = {
    "normal(s)": normal,
    "normal(s + 0.1*y)": lambda y, mu, s: normal(y, mu, s + mpf("0.1") * mu),
    "normal(s + 0.02*y)": lambda y, mu, s: normal(y, mu, s + mpf("0.02") * mu),
    "lognormal(s)": of_logarithms(normal),
    "log10normal(s)": of_logarithms(normal, 10),
    "laplace(s)": laplace,
    "loglaplace(s)": of_logarithms(laplace),
    "student(s, 4)": student,
    "gamma(s)": gamma,
    "poisson": lambda y, mu: poisson(y, mu, 1),
    "negbinomial(s)": negative_binomial,
    "binomial(40)": lambda y, mu: binomial(y, mu, 1),
    "betabinomial(40, s)": beta_binomial,
}


@pytest.mark.parametrize("noise", NOISE)
def test_the_objective_of_every_law(noise: str) -> None:
    counts = noise.partition("(")[0] in ("poisson", "negbinomial", "binomial", "betabinomial")
    values = COUNTS if counts else WAVY
    asked = posed(DECAY, values, noise=noise)
    theta = [0.6, 20.0 if counts else 5.5, 0.35][: len(asked.unknowns)]
    check(asked, theta, total(NOISE[noise], decaying, values))


@pytest.mark.parametrize("noise", ["ar1(s, rho)", "logar1(s, rho)"])
def test_the_objective_of_errors_that_persist(noise: str) -> None:
    """The density of all measurements together, from their covariance matrix."""
    logarithmic = noise.startswith("log")

    def exact(k, x0, s, rho):
        n, mu = len(TIMES), [decaying(mpf(t), k, x0) for t in TIMES]
        errors = [(mp.log(y / m) if logarithmic else y - m) for y, m in zip(map(mpf, WAVY), mu, strict=True)]
        cov = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                cov[i, j] = s**2 * rho ** abs(mpf(TIMES[i]) - mpf(TIMES[j]))
        e = mp.matrix(errors)
        jacobian = mp.fsum(mp.log(mpf(y)) for y in WAVY) if logarithmic else 0
        squares = (e.T * mp.lu_solve(cov, e))[0]
        return squares / 2 + mp.log(mp.det(cov)) / 2 + n * mp.log(2 * mp.pi) / 2 + jacobian

    check(posed(DECAY, noise=noise), [0.6, 5.5, 0.35, 0.2], exact)
    assert (Chain.of(TIMES).back[1:] == 1).all()


def student_below(x):
    """The distribution function of Student's t with 4 degrees of freedom."""
    r = x / mp.sqrt(4 + x * x)
    return (1 + r * (3 - r * r) / 2) / 2


BELOW = {
    "normal(s)": lambda y, mu, s: mp.ncdf((y - mu) / s),
    "lognormal(s)": lambda y, mu, s: mp.ncdf(mp.log(y / mu) / s),
    "student(s, 4)": lambda y, mu, s: student_below((y - mu) / s),
    "gamma(s)": lambda y, mu, s: mp.gammainc(1 / s**2, 0, y / mu / s**2, regularized=True),
}


@pytest.mark.parametrize("noise", BELOW)
def test_the_objective_of_censored_measurements(noise: str) -> None:
    limit = 1.2
    cells = [f"<{limit}" if y < limit else y for y in WAVY]

    def cost(y, mu, s):
        return NOISE[noise](y, mu, s) if y >= limit else -mp.log(BELOW[noise](mpf(limit), mu, s))

    check(posed(DECAY, cells, noise=noise), [0.6, 5.5, 0.35], total(cost, decaying))


def test_the_objective_with_every_prior() -> None:
    for text, prior in PRIORS.items():
        if text.startswith("truncated"):
            continue
        high = (0.0, 1.0) if text.startswith("beta") else (0.0, 1e9)
        asked = posed(DECAY, noise=0.3, priors={"k": text}, bounds={"k": high})
        around = total(lambda y, mu: normal(y, mu, mpf(0.3)), decaying)
        check(asked, [0.6, 5.5], lambda k, x0, around=around, prior=prior: around(k, x0) + prior(k), constant=False)


# --- models in closed form ---


def dosed(t, k, x0):
    """An event at x0/4 that adds k."""
    at = x0 / 4
    return x0 * mp.exp(-k * t) + (k * mp.exp(-k * (t - at)) if t > at else 0)


def refilled(t, k, x0):
    """An event that adds one whenever x falls below two."""
    at, size = mpf(0), x0
    while (next_at := at + mp.log(size / 2) / k) < t:
        at, size = next_at, mpf(3)
    return size * mp.exp(-k * (t - at))


def switched(t, k, x0):
    """x' = -k max(x, 1.5)."""
    at = mp.log(x0 / mpf("1.5")) / k
    return x0 * mp.exp(-k * t) if t < at else mpf("1.5") * (1 - k * (t - at))


def fed(t, k, c):
    """From one, with c until t = 2."""
    until = min(t, mpf(2))
    there = c / k + (1 - c / k) * mp.exp(-k * until)
    return there * mp.exp(-k * (t - until))


def from_rest(t, k, c):
    """From the steady state c/k, with three more from t = 1 on."""
    return c / k + (3 / k * (1 - mp.exp(-k * (t - 1))) if t > 1 else 0)


def late(t, k, tau, x0):
    """x' = -k x(t - tau), x0 before the start, by the method of steps."""
    steps = int(mp.floor(t / tau)) + 1
    return x0 * mp.fsum((-k) ** j * (t - (j - 1) * tau) ** j / mp.factorial(j) for j in range(steps + 1))


def scaled(t, k, a, b):
    return a * mp.exp(-k * t) + b


def model(rate: str, output: str = "x", initial: object = None, **options: object) -> oj.Model:
    initial = {"x": "x0"} if initial is None else initial
    return oj.Model({"x": rate}, {"y": output}, initial=initial, **options)


CLOSED = {
    "an event in time": (model("-k*x", events=[oj.Event(at="x0/4", set={"x": "x + k"})]), dosed, [0.6, 5.5]),
    "an event of the state": (model("-k*x", events=[oj.Event(when="x < 2", set={"x": "x + 1"})]), refilled, [0.6, 5.5]),
    "a switch": (model("-k*max(x, 1.5)"), switched, [0.4, 5.5]),
    "a change of input": (model("-k*x + piecewise(c, t < 2, 0)", initial={"x": 1}), fed, [0.6, 5.5]),
    "a steady state": (
        model("c - k*x + u", initial="steady", inputs={"u": "piecewise(3, t > 1, 0)"}, parameters=["k", "c"]),
        from_rest,
        [0.6, 2.5],
    ),
    "a delay": (
        oj.Model({"x": "-k*x(t - tau)"}, {"y": "x + 3"}, history={"x": "x0"}, parameters=["k", "tau", "x0"]),
        lambda t, k, tau, x0: late(t, k, tau, x0) + 3,
        [0.6, 0.8, 5.5],
    ),
    "a scale and an offset": (
        model("-k*x", "a*x + b", {"x": 1}, parameters=["k", "a", "b"]),
        scaled,
        [0.6, 5.5, 0.3],
    ),
}


@pytest.mark.parametrize("kind", CLOSED)
@pytest.mark.parametrize("noise", ["normal(s)", "lognormal(s)"])
def test_the_objective_of_every_kind_of_model(kind: str, noise: str) -> None:
    asked, path, values = CLOSED[kind]
    if noise == "lognormal(s)" and kind == "a switch":
        values = [0.3, 5.5]  # what falls at a constant rate stays positive
    check(posed(asked, noise=noise), [*values, 0.35], total(NOISE[noise], path))


WINDOWS = {
    "increment(C)": lambda a, b, k, x0: x0 * (mp.exp(-k * a) - mp.exp(-k * b)),
    "integral(x)": lambda a, b, k, x0: x0 * (mp.exp(-k * a) - mp.exp(-k * b)) / k,
    "mean(x)": lambda a, b, k, x0: x0 * (mp.exp(-k * a) - mp.exp(-k * b)) / k / (b - a),
}


@pytest.mark.parametrize("output", WINDOWS)
@pytest.mark.parametrize("noise", ["normal(s)", "poisson"])
def test_the_objective_since_the_last_measurement(output: str, noise: str) -> None:
    states = {"x": "-k*x"} | ({"C": "k*x"} if "C" in output else {})
    asked = oj.Model(states, {"y": output}, initial={"x": "x0"}, parameters=["k", "x0"])
    before = dict(zip(TIMES, [0.0, *TIMES], strict=False))
    values = COUNTS if noise == "poisson" else WAVY

    def path(t, k, x0):
        return WINDOWS[output](mpf(before[float(t)]), t, k, x0)

    theta = [0.6, 20.0, 0.35][: 2 if noise == "poisson" else 3]
    check(posed(asked, values, noise=noise), theta, total(NOISE[noise], path, values))


def test_the_objective_of_an_input_that_is_to_be_found() -> None:
    """level' = u - k*level, with u a cubic from knot to knot: exp(-k t) (1 + integral of exp(k s) u(s))."""
    knots, times = [0.0, 1.5, 4.0], np.array([0.7, 1.9, 3.0, 4.0])
    values = np.array([1.3, 2.2, 1.9, 0.8])
    asked = oj.Model(
        {"level": "u - k*level"},
        {"y": "level"},
        inputs={"u": "spline(knots=[0, 1.5, 4])"},
        initial={"level": 1},
        parameters=["k"],
    )
    problem = posed(asked, values, times, noise=0.3)
    assert list(problem.unknowns) == ["k", "u[0]", "u[1.5]", "u[4]"]

    def curve(s, heights):
        places = [mpf(one) for one in knots]
        chords = [(heights[i + 1] - heights[i]) / (places[i + 1] - places[i]) for i in range(2)]
        bend = (chords[1] - chords[0]) / (places[2] - places[0])
        slopes = [chords[0] + bend * (2 * place - places[0] - places[1]) for place in places]  # of the parabola
        i = 0 if s < places[1] else 1
        h = places[i + 1] - places[i]
        r = (s - places[i]) / h
        return (
            heights[i] * (1 + 2 * r) * (1 - r) ** 2
            + h * slopes[i] * r * (1 - r) ** 2
            + heights[i + 1] * r**2 * (3 - 2 * r)
            + h * slopes[i + 1] * r**2 * (r - 1)
        )

    def path(t, k, first, second, third):
        heights = [first, second, third]
        ends = [mpf(0), t] if t <= knots[1] else [mpf(0), mpf(knots[1]), t]
        whole = mp.quad(lambda s: mp.exp(k * (s - t)) * curve(s, heights), ends, method="gauss-legendre", maxdegree=4)
        return mp.exp(-k * t) + whole

    with mp.workdps(22):
        check(problem, [0.6, 0.9, 2.1, 0.7], total(lambda y, mu: normal(y, mu, mpf(0.3)), path, values, times))


# --- scales that follow from all else ---


def two_states(t, k, m):
    """w of x' = -k x, w' = k x - m w, from 1 and 0.2."""
    share = k / (m - k)
    return share * mp.exp(-k * t) + (mpf("0.2") - share) * mp.exp(-m * t)


@pytest.mark.parametrize("noise", ["normal(s)", "lognormal(s)", "normal(s + 0.02*y)", 0.3])
def test_the_objective_without_scales(noise: str | float) -> None:
    """The least of the negative log-likelihood over scale, offset and noise, found anew beside every value."""
    asked = oj.Model({"x": "-k*x", "w": "k*x - m*w"}, {"y": "a*w + b"}, initial={"x": 1, "w": 0.2})
    values = 5 * np.array([float(two_states(t, 0.7, 1.5)) for t in TIMES]) * (1 + 0.1 * np.sin(7 * TIMES)) + 0.4
    whole = posed(asked, values, noise=noise, positive=True).objective
    short, theta = whole.without_scales(), [0.6, 1.3]
    assert short.names == ("k", "m")
    cost = NOISE[noise] if isinstance(noise, str) else lambda y, mu: normal(y, mu, mpf(0.3))
    found = short.misfit.evaluate(np.array(theta)).eliminated.values
    begin = dict(zip(np.array(whole.names)[short.misfit.embedding.gone], found, strict=True))
    first = [mpf(begin[name]) for name in ("a", "b", "s") if name in begin]

    def least(k, m):
        pairs = [(mpf(y), two_states(mpf(t), k, m)) for t, y in zip(TIMES, values, strict=True)]

        def inner(*others):
            return mp.fsum(cost(y, others[0] * w + others[1], *others[2:]) for y, w in pairs)

        def conditions(*others):
            return [slope(inner, others, i) for i in range(len(others))]

        best = mp.findroot(conditions, first, tol=1e-32)
        return inner(*best)

    value, gradient = short.value_and_gradient(np.array(theta))
    with mp.workdps(20):
        slopes = np.array([float(central(least, theta, i)) for i in range(2)])
    assert value == pytest.approx(float(least(*map(mpf, theta))), rel=1e-11)
    unit = np.abs(slopes) + 1e-3 * abs(value) / np.abs(theta)
    np.testing.assert_array_less(np.abs(gradient - slopes), NEAR * unit)


def central(function: Callable[..., mpf], values: Sequence[float], i: int) -> mpf:
    """The derivative by differences of two widths: every value takes many evaluations."""
    at, found = [mpf(value) for value in values], []
    for step in (mpf("1e-4"), mpf("5e-5")):
        ends = [function(*at[:i], at[i] + way * step, *at[i + 1 :]) for way in (1, -1)]
        found.append((ends[0] - ends[1]) / (2 * step))
    return found[1] + (found[1] - found[0]) / 3
