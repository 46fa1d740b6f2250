"""Noise of other laws: problems, fits and refusals, against SciPy and published estimates."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

import odejet as oj
from odejet.errors import DataError, ExpressionError, ModelError
from odejet.model.calls import Call, parse_call
from odejet.model.expressions import number, substituted
from odejet.model.grammar import parse
from odejet.problem import Problem
from odejet.search.refine import refine

EXAMPLES = Path(__file__).parents[2] / "examples"
PREDATORS = oj.Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r", "y2": "w"})
TRUTH = {"r": 1.0, "w": 0.5, "k1": 0.7, "k2": 0.5, "k3": 0.6}
TIMES = np.linspace(0, 20, 40)


def clean():
    found = oj.simulate(PREDATORS, {k: TRUTH[k] for k in ("k1", "k2", "k3")}, {"r": 1.0, "w": 0.5}, TIMES)
    return {name: found[name] for name in ("y1", "y2")}


def noisy(sd=0.1, seed=1):
    rng = np.random.default_rng(seed)
    return {name: values * np.exp(sd * rng.normal(size=len(TIMES))) for name, values in clean().items()}


def refined(problem, **more):
    start = np.array([(TRUTH | more)[unknown.name] for unknown in problem.layout])
    return refine(problem.misfit, start, frame=problem.frame(start))


LAWS = {
    "lognormal(s)": lambda y, mu, s: stats.lognorm(s, scale=mu).logpdf(y),
    "normal(s)": lambda y, mu, s: stats.norm(mu, s).logpdf(y),
    "normal(0.02 + s*y1)": lambda y, mu, s: stats.norm(mu, 0.02 + s * mu).logpdf(y),
    "normal(s*sqrt(k1*y1))": lambda y, mu, s: stats.norm(mu, s * np.sqrt(0.7 * mu)).logpdf(y),
    "student(s, 5)": lambda y, mu, s: stats.t(5, mu, s).logpdf(y),
    "laplace(s)": lambda y, mu, s: stats.laplace(mu, s).logpdf(y),
    "log10normal(s)": lambda y, mu, s: stats.lognorm(s * np.log(10), scale=mu).logpdf(y),
    "loglaplace(s)": lambda y, mu, s: stats.loglaplace(1 / s, scale=mu).logpdf(y),
    "gamma(s)": lambda y, mu, s: stats.gamma(1 / s**2, scale=mu * s**2).logpdf(y),
}


@pytest.mark.parametrize("text", LAWS)
def test_likelihood_and_gradient_of_a_problem(text):
    data = noisy()
    problem = Problem(PREDATORS, oj.Data(TIMES, {"y1": data["y1"]}), noise={"y1": text})
    assert problem.unknowns == ("r(0)", "w(0)", "k1", "k2", "k3", "s")
    assert problem.bounds["s"][0] == 0
    values = {**TRUTH, "s": 0.13}
    expected = float(LAWS[text](data["y1"], clean()["y1"], 0.13).sum())
    assert problem.log_likelihood(values) == pytest.approx(expected, rel=1e-6)
    z = np.array([values[unknown.name] for unknown in problem.layout])
    found = problem.misfit.evaluate(z)
    gradient = found.residuals @ found.dense
    for i, axis in enumerate(np.eye(len(z))):
        ahead, back = (problem.misfit.score(z + sign * 1e-6 * axis) for sign in (1, -1))
        assert gradient[i] == pytest.approx((ahead - back) / 2e-6, rel=1e-4, abs=1e-4)


def test_a_level_that_is_eliminated_is_the_scale_that_is_found():
    data = oj.Data(TIMES, noisy())
    bare = Problem(PREDATORS, data, noise="lognormal")
    named = Problem(PREDATORS, data, noise={"y1": "lognormal(s1)", "y2": "lognormal(s2)"})
    one, other = refined(bare), refined(named, s1=0.3, s2=0.3)
    assert bare.misfit.estimated.all() and not named.misfit.estimated.any()
    assert one.cost == pytest.approx(other.cost, rel=1e-8)
    np.testing.assert_allclose(one.levels, other.z[-2:], rtol=1e-4)
    assert other.evaluations <= one.evaluations + 2  # the scale costs no simulations
    check = oj.Fit.of(bare, one), oj.Fit.of(named, other)
    assert check[0].aic == pytest.approx(check[1].aic, rel=1e-6)
    np.testing.assert_allclose(list(check[0].stderr.values()), list(check[1].stderr.values())[:5], rtol=1e-3)


def test_the_optimum_is_that_of_scipy():
    data = noisy(0.2)
    problem = Problem(PREDATORS, oj.Data(TIMES, data), noise={"y1": "normal(a + b*y1)", "y2": "student(s, 4)"})
    found = refined(problem, a=0.1, b=0.1, s=0.1)

    def cost(theta):
        return problem.misfit.score(np.exp(theta))

    best = optimize.minimize(cost, np.log(found.z) + 0.01, method="Nelder-Mead", options={"maxiter": 4000})
    assert found.cost <= best.fun + 1e-4


def test_names_are_shared_local_known_and_fixed():
    parts = [oj.Data(TIMES, noisy(seed=i), name=f"e{i}") for i in (1, 2)]
    shared = Problem(PREDATORS, oj.Data.join(parts), noise="lognormal(s)")
    assert shared.unknowns[-1] == "s" and len(shared.unknowns) == 8
    local = Problem(PREDATORS, oj.Data.join(parts), noise="lognormal(s)", local=["s"])
    assert {"s in e1", "s in e2"} < set(local.unknowns) and len(local.unknowns) == 9
    hot = oj.Data(TIMES, noisy(seed=2), name="e2", values={"s": "2*s_hot"})
    mapped = Problem(PREDATORS, oj.Data.join([parts[0], hot]), noise="lognormal(s)")
    assert mapped.unknowns[-2:] == ("s", "s_hot")
    fixed = Problem(PREDATORS, oj.Data.join(parts), noise="lognormal(s)", fixed={"s": 0.1})
    number = Problem(PREDATORS, oj.Data.join(parts), noise="lognormal(0.1)")
    assert fixed.unknowns == number.unknowns
    values = dict.fromkeys(number.unknowns, 0.6)
    assert fixed.log_likelihood(values) == pytest.approx(number.log_likelihood(values))
    both = {label: 0.1 if label.startswith("s") else 0.6 for label in local.unknowns}
    assert local.log_likelihood(both) == pytest.approx(number.log_likelihood(values))


def test_model_files_hold_noise_and_priors(tmp_path):
    model = PREDATORS.replace(noise={"y1": "lognormal(s)", "y2": 0.1}, priors={"k1": "normal(0.7, 0.1)"})
    again = oj.Model.from_toml_text(model.to_toml())
    assert again == model and again.noise == model.noise and again.priors == model.priors
    problem = Problem(again, oj.Data(TIMES, noisy()), noise={"y2": "5%"})
    assert problem.unknowns[-1] == "s" and problem.priors == {"k1": "normal(0.7, 0.1)"}
    with pytest.raises(ModelError, match=r"\[noise\] y3: this is not an output"):
        PREDATORS.replace(noise={"y3": 0.1})


def test_a_prediction_that_its_law_forbids_is_an_evaluation_that_says_where():
    model = oj.Model({"x": "-k"}, {"y": "x"})
    problem = Problem(model, oj.Data([0.0, 1, 2, 3], {"y": [3.0, 2, 1, 0.5]}), noise="lognormal(s)")
    found = problem.misfit.evaluate(np.array([1.5, 1.0, 0.1]))
    assert not found.complete and "not positive" in found.message and found.reached == pytest.approx(2 / 3)


def read(name):
    with open(EXAMPLES / f"{name}.csv") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def test_hares_and_lynxes():
    """The posterior that Stan's case study reports: means and sds of alpha, beta, gamma, delta."""
    model, data = oj.Model.from_toml(EXAMPLES / "hare_lynx.toml"), oj.Data.from_csv(EXAMPLES / "hare_lynx.csv")
    fit = oj.fit(model, data)
    assert fit.certified
    published = {"alpha": (0.55, 0.064), "beta": (0.028, 0.0042), "gamma": (0.80, 0.092), "delta": (0.024, 0.0036)}
    for name, (mean, sd) in published.items():
        assert abs(fit.values[name] - mean) < sd
        assert fit.stderr[name] == pytest.approx(sd, rel=0.2)
    assert 0.15 < fit.values["s_hare"] < 0.35 and 0.15 < fit.values["s_lynx"] < 0.35


def test_influenza_in_a_school():
    """Counts with more variance than Poisson's: rates as in the case study of Grinsztajn et al. (2021)."""
    model = oj.Model.from_toml(EXAMPLES / "influenza.toml")
    data = oj.Data.from_csv(EXAMPLES / "influenza.csv").starting(0.0)
    fit = oj.fit(model, data)
    assert fit.certified
    assert fit.values["beta"] == pytest.approx(1.73, abs=0.05) and fit.values["gamma"] == pytest.approx(0.54, abs=0.05)
    counts = read("influenza")["in_bed"]
    fitted = fit.simulate()["in_bed"]
    size = 1 / fit.values["dispersion"]
    expected = stats.nbinom(size, size / (size + fitted)).logpmf(counts).sum()
    assert fit.log_likelihood == pytest.approx(expected, rel=1e-8)
    poisson = Problem(model, data, noise="poisson")
    found = refine(poisson.misfit, np.array([1.7, 0.5]), frame=poisson.frame(np.array([1.7, 0.5])))
    plain = oj.Fit.of(poisson, found)
    assert plain.aic > fit.aic + 10
    assert plain.certificate.outputs[0].size_p < 1e-6  # counts vary more than a Poisson law's


def test_gross_outliers_do_not_move_a_fit_with_students_noise():
    rng = np.random.default_rng(5)
    data = {name: values + 0.05 * rng.normal(size=len(TIMES)) for name, values in clean().items()}
    whole = oj.Fit.of(problem := Problem(PREDATORS, oj.Data(TIMES, data)), refined(problem))
    for values in data.values():
        values[rng.choice(len(TIMES), 2, replace=False)] += np.array([4.0, -5.0])
    spoilt = oj.fit(PREDATORS, oj.Data(TIMES, data), noise="student(s, 4)")
    for label in whole.labels:
        assert abs(spoilt.values[label] - whole.values[label]) < 2 * whole.stderr[label]


def test_files_designs_and_reports_know_the_law(tmp_path):
    problem = Problem(PREDATORS, oj.Data(TIMES, noisy()), noise={"y1": "lognormal(s)", "y2": "lognormal"})
    fit = oj.Fit.of(problem, refined(problem, s=0.1))
    fit.save(tmp_path / "fit.json")
    again = oj.Fit.load(tmp_path / "fit.json")
    assert again.values == fit.values and again.problem.noise == problem.noise
    assert again.log_likelihood == fit.log_likelihood
    planned = fit.design()
    assert planned.noise["y1"] == "lognormal(s)" and planned.noise["y2"].startswith("lognormal(0.")
    for label in ("k1", "k2", "k3"):
        assert planned.stderr[label] == pytest.approx(fit.stderr[label], rel=0.15)
    fit.report(tmp_path / "fit.html")
    assert "lognormal" not in str(fit.noise) and fit.sds["experiment1"]["y1"].shape == (len(TIMES),)


def test_a_design_of_counts():
    model = oj.Model({"x": "-k*x"}, {"y": "x"})
    times = np.linspace(0, 4, 9)
    design = oj.design(model, {"k": 0.5}, {"x": 100.0}, times, "poisson")
    mu = 100 * np.exp(-0.5 * times)
    slopes = np.column_stack([mu / 100, -times * mu])
    expected = np.sqrt(np.diag(np.linalg.inv(slopes.T @ (slopes / mu[:, None]))))
    np.testing.assert_allclose(list(design.stderr.values()), expected, rtol=1e-6)
    with pytest.raises(ModelError, match="a design needs a value of 's'"):
        oj.design(model, {"k": 0.5}, {"x": 100.0}, times, "lognormal(s)")
    named = oj.design(model, {"k": 0.5, "s": 0.1}, {"x": 100.0}, times, "lognormal(s)")
    assert named.stderr["s"] == pytest.approx(0.1 / np.sqrt(18))


@pytest.mark.parametrize("noise", ["normal(s)", "lognormal(s)", "student(s, 4)"])
def test_exact_data_are_certified_though_their_noise_has_no_most_likely_scale(noise):
    model = oj.Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r", "y2": "w"})
    clean = oj.simulate(model, {"k1": 0.7, "k2": 0.5, "k3": 0.6}, {"r": 1.0, "w": 0.5}, np.linspace(0, 20, 41))
    fit = oj.fit(model, oj.Data(clean.times, dict(clean.outputs)), noise=noise, positive=True)
    assert fit.certified and fit.message == "certified: the residuals are down to rounding"
    assert fit.values["k2"] == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(
    ("noise", "sentence"),
    [
        ("lognormal()", "the noise of 'y1': 'lognormal()' has not the arguments of lognormal(scale)"),
        ("normal(-1)", "the noise of 'y1': the scale of 'normal(-1)' must be positive, not -1"),
        ("laplace", "'laplace' has not the arguments of laplace(scale)"),
        ("student(s)", "has not the arguments of student(scale, degrees of freedom)"),
        ("student(s, k)", "the degrees of freedom must be a number, such as 4, not k"),
        ("student(s, 0)", "the degrees of freedom must be positive, not 0"),
        ("binomial", "has not the arguments of binomial(trials)"),
        ("binomial(2.5)", "the number of trials must be a whole number, not 2.5"),
        ("binomial(n)", "the number of trials must be a number, such as 50, not n; it may be a name that fixed or"),
        ("betabinomial(20)", "has not the arguments of betabinomial(trials, dispersion)"),
        ("poisson(3)", "has not the arguments of poisson, which has none"),
        ("lognrmal(s)", "there is no law 'lognrmal'; did you mean 'lognormal'?"),
        ({"y1": "normal(a + b*y2)"}, "the noise of 'y1' depends on the output 'y2'"),
        ("normal(a*r)", "the noise of 'y1' depends on the state 'r'"),
        ("normal(a*t)", "the noise of 'y1' depends on the time"),
        ("normal(a*)", "the expression ends early"),
        ("loud", "the noise of 'y1' must be a positive number"),
    ],
)
def test_refusals(noise, sentence):
    with pytest.raises(ModelError) as error:
        Problem(PREDATORS, oj.Data(TIMES, noisy()), noise=noise)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("noise", "value", "sentence"),
    [
        ("poisson", -1.0, "must be counts, whole numbers from 0 on, and one is -1"),
        ("negbinomial(a)", 1.5, "must be counts, whole numbers from 0 on, and one is 1.5"),
        ("lognormal(s)", 0.0, "must be positive, and one is 0"),
        ("gamma(s)", -2.0, "must be positive, and one is -2"),
        ("binomial(20)", 21.0, "must be at most 20, the number of trials, and one is 21"),
    ],
)
def test_measurements_that_a_law_cannot_have(noise, value, sentence):
    values = np.ones(len(TIMES))
    values[7] = value
    with pytest.raises(DataError, match=sentence):
        Problem(PREDATORS, oj.Data(TIMES, {"y1": values}), noise=noise)


@pytest.mark.parametrize("start", [(1e-5, 1e3), (1e3, 1e-5)])
@pytest.mark.parametrize("seed", range(3))
def test_summands_of_noise_that_hardly_differ_are_tuned_to_their_optimum(seed, start):
    times = np.linspace(0, 5, 12)
    values = 1 + 0.05 * np.exp(-0.7 * times) + 0.3 * np.random.default_rng(seed).normal(size=12)
    model = oj.Model({"x": "-k*(x - 1)"}, {"y": "x"}, initial={"x": 1.05})
    problem = Problem(model, oj.Data(times, {"y": values}), noise="normal(a + b*y)")
    assert problem.unknowns == ("k", "a", "b")
    z, box = np.array([0.7, *start]), (np.array([0.7, 1e-5, 1e-5]), np.array([0.7, 1e3, 1e3]))
    found = problem.misfit.tuned(z, problem.misfit.evaluate(z), box=box)[0]

    def score(logarithms):
        return problem.misfit.score(np.array([0.7, *np.exp(logarithms)]))

    bounds = [(np.log(1e-5), np.log(1e3))] * 2
    best = optimize.minimize(score, np.log(found[1:]), bounds=bounds, method="L-BFGS-B").fun
    assert problem.misfit.score(found) <= best + 0.01


def test_a_law_may_be_a_value(tmp_path):
    """As it is read, which is the same as its text, in a problem and in the file of a fit."""
    data = oj.Data(np.arange(1, 9.0), {"y": np.exp(-0.3 * np.arange(1, 9.0)) + 0.01}, start=0)
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 1})
    law, prior = parse_call("normal(a + b*y)"), parse_call("lognormal(log(0.3), 0.5)")
    assert str(law) == "normal(a + b*y)" and law.checked == law
    values = {"k": 0.3, "a": 0.02, "b": 0.1}
    told = [
        oj.Problem(model, data, noise={"y": noise}, priors={"k": given})
        for noise, given in ((law, prior), (str(law), str(prior)))
    ]
    assert told[0].log_posterior(values) == told[1].log_posterior(values)
    oj.fit(told[0], time_limit=5).save(tmp_path / "fit.json")
    document = json.loads((tmp_path / "fit.json").read_text())
    assert document["noise_given"] == {"y": "normal(a + b*y)"}
    assert document["priors"] == {"k": "lognormal(log(0.3), 0.5)"}


def test_a_law_that_no_text_could_be_is_refused():
    data = oj.Data(np.arange(1, 9.0), {"y": np.ones(8)}, start=0)
    law = Call("normal", (substituted(parse("log(s)"), {"s": number(0)}),))
    with pytest.raises(ExpressionError, match="the noise of 'y'"):
        oj.Problem(oj.Model({"x": "-k*x"}, {"y": "x"}), data, noise={"y": law})


def test_trials_may_be_told_by_experiments():
    model = oj.Model({"p": "-k*p"}, {"sick": "n*p"}, initial={"p": 0.9}, parameters=["k", "n"])
    times, k = np.arange(1, 9.0), 0.4
    parts, expected = [], 0.0
    for n in (20, 50):
        mu = n * 0.9 * np.exp(-k * times)
        counts = np.round(mu)
        parts.append(oj.Data(times, {"sick": counts}, start=0, name=f"n{n}", values={"n": n}))
        expected += stats.betabinom(n, mu / n / 0.1, (1 - mu / n) / 0.1).logpmf(counts).sum()
    problem = Problem(model, oj.Data.join(parts), noise="betabinomial(n, a)")
    assert problem.unknowns == ("k", "a")
    assert problem.log_likelihood({"k": k, "a": 0.1}) == pytest.approx(expected, rel=1e-9)
    parts[0] = oj.Data(times, {"sick": np.full(8, 21)}, start=0, name="n20", values={"n": 20})
    with pytest.raises(DataError, match="at most 20, the number of trials"):
        Problem(model, oj.Data.join(parts), noise="betabinomial(n, a)")


def test_predictions_above_all_there_are_have_no_likelihood():
    model = oj.Model({"x": "k*x"}, {"y": "x"}, initial={"x": 1})
    problem = Problem(model, oj.Data(np.arange(1, 6.0), {"y": [1, 2, 3, 4, 5]}, start=0), noise="binomial(10)")
    assert problem.log_likelihood({"k": 0.7}) == -np.inf and "above 10" in problem.why({"k": 0.7})
    assert np.isfinite(problem.log_likelihood({"k": 0.3}))


def test_coupled_rows_have_the_exact_gradient_and_the_expected_information():
    rng, times = np.random.default_rng(2), np.linspace(0.2, 6, 40)
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "x0"})
    mu = 26 * np.exp(-0.3 * times)
    counts = stats.betabinom(30, mu / 30 / 0.2, (1 - mu / 30) / 0.2).rvs(random_state=rng)
    problem = Problem(model, oj.Data(times, {"y": counts}, start=0), noise="betabinomial(30, a)")
    z = np.array([{"x0": 25.0, "k": 0.33, "a": 0.15}[name] for name in problem.unknowns])
    found = problem.misfit.evaluate(z)
    gradient = found.residuals @ found.dense
    for i, axis in enumerate(np.eye(3)):
        ahead, back = (problem.misfit.score(z + sign * 1e-5 * z * axis) for sign in (1, -1))
        assert gradient[i] == pytest.approx((ahead - back) / (2e-5 * z[i]), rel=1e-6)
    law = problem.measurements.blocks[0].density.law
    mu = z[problem.unknowns.index("x0")] * np.exp(-z[problem.unknowns.index("k")] * times)
    cross = law.terms(counts.astype(float), mu, np.full(40, 0.15)).cross
    slope = mu / z[problem.unknowns.index("x0")]
    matrix = found.expected.dense().T @ found.expected.dense()
    place = [problem.unknowns.index(name) for name in ("x0", "a")]
    assert matrix[place[0], place[1]] == pytest.approx(float(cross @ slope), rel=1e-9)
    best = oj.fit(problem, time_limit=20)

    def cost(theta):
        mu = theta[0] * np.exp(-theta[1] * times) / 30
        return -stats.betabinom(30, mu / theta[2], (1 - mu) / theta[2]).logpmf(counts).sum()

    start = [best.values[name] for name in ("x0", "k", "a")]
    assert best.log_likelihood >= -optimize.minimize(cost, start, method="Nelder-Mead").fun - 1e-5
