"""Fitting: known answers without a guess, the same numbers on every executor, and refusals in one sentence."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from odejet import Data, DataError, Failure, Fit, Model, ModelError, fit, fit_many, processes, simulate
from odejet.budget import Budget
from odejet.decide import ladder, stages
from odejet.decide.state import State
from odejet.fitting import Method, is_failure
from odejet.journal import Journal
from odejet.problem import Problem
from odejet.search import workers
from odejet.search.refine import refine

DECAY = Model({"x": "-k*x"}, {"y": "2*x"}, name="decay")
CHAIN = Model({"a": "-k*a", "b": "k*a - m*b"}, {"y": "b", "z": "a + b"}, name="chain")
TIMES = np.linspace(0, 5, 121)
CHAIN_TRUTH = {"k": 0.8, "m": 0.3, "a": 1.5, "b": 0.2}


def decay(k: float = 0.5, x: float = 3.0, sd: float = 0.0, seed: int = 0, times: np.ndarray = TIMES) -> Data:
    noise = sd * np.random.default_rng(seed).standard_normal(len(times))
    return Data(times, {"y": 2 * x * np.exp(-k * times) + noise})


def chain(sd: float = 0.0, seed: int = 0, model: Model = CHAIN) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    sim = simulate(model, {"k": 0.8, "m": 0.3}, {"a": 1.5, "b": 0.2}, TIMES)
    return {name: values + sd * rng.standard_normal(len(TIMES)) for name, values in sim.outputs.items()}


def found(answer: Fit) -> dict[str, float]:
    return {**answer.parameters, **answer.initial_state}


def numbers(answer: Fit) -> dict:
    """Everything that is saved but for the clock."""
    return {name: value for name, value in answer.to_dict().items() if name not in ("seconds", "stages")}


# --- known answers ---


def test_exact_data_give_exact_values():
    for model, data, truth in (
        (DECAY, decay(), {"k": 0.5, "x": 3.0}),
        (CHAIN, Data(TIMES, chain()), CHAIN_TRUTH),
    ):
        answer = fit(model, data)
        assert answer.success and answer.certified
        assert found(answer) == pytest.approx(truth, rel=1e-6)


def test_noisy_data_give_values_within_their_errors():
    answer = fit(CHAIN, Data(TIMES, chain(sd=0.01, seed=3)))
    assert answer.certificate.granted
    for name, truth in CHAIN_TRUTH.items():
        assert abs(found(answer)[name] - truth) < 5 * answer.stderr[name] < 1
    assert answer.noise == pytest.approx({"y": 0.01, "z": 0.01}, rel=0.3)


def test_bounds_are_respected():
    answer = fit(DECAY, decay(sd=0.01), bounds={"k": (0.6, 2.0)})
    assert 0.6 <= answer.parameters["k"] <= 2.0
    assert answer.at_bound("k")
    assert not answer.certificate.granted


def test_known_initial_states_and_fixed_parameters_are_no_unknowns():
    answer = fit(CHAIN.replace(initial={"b": 0.2}, fixed={"m": 0.3}), Data(TIMES, chain()))
    assert found(answer) == pytest.approx({"k": 0.8, "a": 1.5}, rel=1e-6)


def test_sampled_inputs():
    model = Model({"x": "-k*x + u"}, {"y": "x"}, {"u": None})
    exact = simulate(model.replace(inputs={"u": "1"}), {"k": 0.5}, {"x": 0.0}, TIMES)["y"]
    answer = fit(model, Data(TIMES, {"y": exact}, inputs={"u": np.ones(len(TIMES))}))
    assert answer.parameters["k"] == pytest.approx(0.5, rel=1e-6)
    assert answer.initial_state["x"] == pytest.approx(0, abs=1e-6)


def test_two_experiments_share_parameters():
    answer = fit(DECAY, Data.join([decay(x=3.0, sd=0.01, seed=1), decay(x=1.0, sd=0.01, seed=2)]))
    assert abs(answer.parameters["k"] - 0.5) < 5 * answer.stderr["k"]
    begins = [table["x"] for table in answer.initial_states.values()]
    assert begins == pytest.approx([3.0, 1.0], abs=0.05)


def test_missing_values_outputs_and_replicates():
    values = chain(sd=0.01, seed=5)
    values["y"][::4] = np.nan
    twice = {name: (np.repeat(TIMES, 2), np.repeat(series, 2)) for name, series in chain(sd=0.01, seed=6).items()}
    for data in (Data(TIMES, values), Data(None, twice)):
        assert fit(CHAIN, data).parameters == pytest.approx({"k": 0.8, "m": 0.3}, rel=0.1)
    # One output is a sum of two exponentials, which do not tell whose rates they are.
    rates = sorted(fit(CHAIN, Data(TIMES, {"y": values["y"]})).parameters.values())
    assert rates == pytest.approx([0.3, 0.8], rel=0.2)


def test_what_cannot_be_known_is_told():
    answer = fit(Model({"x": "-k*x"}, {"y": "s*x"}), decay(sd=0.01))
    assert set(answer.undetermined) == {"x(0)", "s"}
    assert answer.parameters["s"] * answer.initial_state["x"] == pytest.approx(6, rel=0.02)


REACTOR = Model(
    {"a": "-k1*a - k3*a**2 + f*(c - a)", "b": "k1*a - k2*b - f*b"},
    {"y": "b"},
    parameters=("k1", "k2", "k3", "f", "c"),
    name="reactor",
)
"""Its square system has six roots, and some of its values cannot be known."""


def reactor(seed: int) -> tuple[Data, float]:
    """Data, and the cost of the fit that starts from the truth."""
    rng, times = np.random.default_rng([seed, 6]), np.linspace(0, 6, 100)
    parameters = dict(zip(REACTOR.parameters, [0.83, 1.6, 0.17, 0.57, 10.0] * spread(rng, 5), strict=True))
    states = dict(zip(REACTOR.states, [3.0, 1.1] * spread(rng, 2), strict=True))
    exact = simulate(REACTOR, parameters, states, times)["y"]
    data = Data(times, {"y": exact + 1e-4 * exact.std() * rng.normal(size=len(times))})
    misfit = Problem(REACTOR, data).misfit
    start = np.array([{**states, **parameters}[unknown.name] for unknown in misfit.unknowns])
    return data, refine(misfit, start).cost


@pytest.mark.parametrize("seed", [1, 6])
def test_another_root_that_explains_the_data_better_is_found(seed):
    """Two starts that agree on a wrong root prove little, so the box is searched before there is a certificate."""
    data, from_truth = reactor(seed)
    answer = fit(REACTOR, data)
    assert answer.certificate.granted and answer.cost <= from_truth + 0.05
    assert "multistart" in answer.stages


def test_no_certificate_without_a_search_where_another_root_may_explain_the_data_better():
    quick = fit(REACTOR, reactor(6)[0], effort="quick")
    assert not quick.certificate.granted and "multistart" not in quick.stages
    assert "only a search without smoothing can confirm the optimum" in quick.message


def spread(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.exp(0.15 * rng.normal(size=count))


def test_another_solution_is_no_witness_of_the_first(monkeypatch):
    """Exchanging two decays gives the same outputs: that the exchange is as likely confirms nothing."""
    states = last_states(monkeypatch)
    exchangeable = Model({"x": "-a*x", "z": "-b*z"}, {"y": "x + z"})
    noise = 1e-4 * np.random.default_rng(1).standard_normal(len(TIMES))
    answer = fit(exchangeable, Data(TIMES, {"y": 2 * np.exp(-2 * TIMES) + np.exp(-0.3 * TIMES) + noise}))
    assert len(answer.solutions) == 2
    (before,) = states
    others = len(stages.other_roots(before, Budget()).inside)
    *_, after = stages.challenge(replace(before, challenged=None))
    assert len(after.optima.found) - len(before.optima.found) == others - 1
    assert len(after.optima.elsewhere) - len(before.optima.elsewhere) == 1


def last_states(monkeypatch: pytest.MonkeyPatch) -> list[State]:
    """A list into which the last state of every fit will go."""
    states: list[State] = []
    answer = ladder.answer
    monkeypatch.setattr(ladder, "answer", lambda state, **known: states.append(state) or answer(state, **known))
    return states


@pytest.mark.parametrize(("sd", "searches"), [(0.01, 1), (8.0, 2)])
def test_without_bounds_what_is_vague_is_searched_at_two_scales(monkeypatch, sd, searches):
    scales = []
    monkeypatch.setattr(stages, "starts_around", lambda state, scale, *_: scales.append(scale) or state)
    monkeypatch.setattr(ladder, "wants_more", lambda state: False)
    fit(DECAY, decay(sd=sd, times=TIMES[::3]))
    posed = Problem(DECAY, decay(sd=sd, times=TIMES[::3]))
    assert [np.array_equal(scale, posed.sizes) for scale in scales] == [False, True][:searches]


def test_a_constant_output_fits():
    model = Model({"x": "-k*x", "c": "0*c"}, {"y": "2*x", "z": "c"})
    values = {"y": decay(sd=0.01, seed=1).experiments[0].outputs["y"].values, "z": np.full(len(TIMES), 0.7)}
    answer = fit(model, Data(TIMES, values))
    assert found(answer) == pytest.approx({"k": 0.5, "x": 3.0, "c": 0.7}, rel=0.01)
    assert answer.initial_state["c"] == pytest.approx(0.7, rel=1e-12)
    assert answer.certificate.granted


def test_growth_over_many_decades_is_fitted_down_to_its_first_digits():
    """The small beginning tells x(0) and m; beside the end, both are less than rounding."""
    model = Model({"x": "k*x", "w": "-m*w"}, {"y": "x + w"})
    exact = simulate(model, {"k": 3.0, "m": 0.5}, {"x": 1e-3, "w": 0.4}, np.linspace(0, 14, 300))["y"]
    answer = fit(model, Data(np.linspace(0, 14, 300), {"y": exact}), bounds=(1e-5, 10.0))
    assert exact.max() > 1e14 * np.median(exact[:20]) and answer.certificate.granted
    assert found(answer) == pytest.approx({"k": 3.0, "m": 0.5, "x": 1e-3, "w": 0.4}, rel=1e-9)


def test_one_wrong_value_is_named_and_not_certified():
    values = decay(sd=0.01, seed=1).experiments[0].outputs["y"].values.copy()
    values[60] = 1000.0
    answer = fit(DECAY, Data(TIMES, {"y": values}))
    assert answer.success and not answer.certified
    assert "the measurement y = 1000 at t = 2.5 is" in answer.message and "leave it out" in answer.message
    (one,) = answer.certificate.suspicious
    assert (one.time, one.value) == (2.5, 1000.0)
    assert Fit.from_dict(answer.to_dict()).certificate.suspicious == (one,)


@pytest.mark.parametrize("points", [2, 3])
def test_a_curve_through_as_many_points_as_unknowns_is_not_certified(points):
    answer = fit(DECAY, Data(TIMES[:points], {"y": [6.0, 5.9, 5.7][:points]}))
    assert answer.found and not answer.certified
    assert f"{points} measurements determine 2 unknowns" in answer.message


def test_data_of_another_solver_are_certified_though_its_errors_are_autocorrelated():
    """Residuals of 1e-11 of the outputs' size are no noise, but say nothing against the values either."""

    def rates(_: float, z: np.ndarray) -> list[float]:
        return [1.1 * z[0] - 0.4 * z[0] * z[1], -0.4 * z[1] + 0.1 * z[0] * z[1]]

    times = np.linspace(0, 10, 101)
    run = solve_ivp(rates, (0, 10), [10, 5], t_eval=times, method="LSODA", rtol=1e-11, atol=1e-13)
    model = Model({"x": "a*x - b*x*y", "y": "-c*y + d*x*y"}, {"p": "x", "q": "y"})
    answer = fit(model, Data(times, {"p": run.y[0], "q": run.y[1]}))
    assert max(check.white_p for check in answer.certificate.outputs) < 1e-4
    assert answer.certificate.granted and "errors of a simulation" in answer.message
    assert answer.parameters == pytest.approx({"a": 1.1, "b": 0.4, "c": 0.4, "d": 0.1}, rel=1e-9)


def test_the_message_says_why():
    assert fit(DECAY, decay(sd=0.01)).message.startswith("certified: the residuals look like noise and")
    kept_out = fit(DECAY, decay(sd=0.01), bounds={"k": (0.6, 2.0)})
    assert kept_out.message.startswith("not certified: the residuals of y")


def test_no_time_leaves_the_best_so_far():
    answer = fit(CHAIN, Data(TIMES, chain(sd=0.01, seed=3)), time_limit=1e-9)
    assert not answer.certified and "time limit" in answer.message


# --- refusals ---


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"effort": "most"}, "effort must be one of quick, auto, full"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"seed": True}, "seed must be"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1"),
        ({"time_limit": 0}, "time_limit must be a positive number of seconds"),
        ({"method": Method(estimators="aaa")}, "estimators must be a list"),
        ({"bounds": (2, 1)}, "leave nothing"),
        ({"bounds": {"q": (0, 1)}}, "'q', which is no unknown"),
        ({"noise": "loud"}, "must be a positive number"),
    ],
)
def test_options_are_checked(options, said):
    with pytest.raises(ModelError, match=said):
        fit(DECAY, decay(), **options)


def test_too_few_points_are_refused():
    with pytest.raises(DataError, match="1 measurement for 2 unknowns"):
        fit(DECAY, Data([0.0], {"y": [1.0]}))


def test_fewer_points_than_bounded_unknowns_are_fitted_and_tell_nothing_of_some():
    model = Model({"x": "-k*x", "z": "x - c*z"}, {"y": "x"})
    bounds = dict.fromkeys(("k", "c", "x(0)", "z(0)"), (0.01, 10.0))
    found = fit(model, Data([0.0, 1.0], {"y": [1.0, 0.5]}), bounds=bounds)
    assert found.values["k"] == pytest.approx(np.log(2)) and found.values["x(0)"] == pytest.approx(1.0)
    frame = found.to_dataframe()
    assert frame.loc["c", "verdict"] == "none" and not found.certified


# --- the same answer, always ---


def test_same_seed_same_fit_whatever_jobs():
    data = Data(TIMES, chain(sd=0.01, seed=3))
    assert numbers(fit(CHAIN, data, seed=4)) == numbers(fit(CHAIN, data, seed=4, jobs=2))


def sets() -> list[Data]:
    return [decay(sd=0.01, seed=1), Data(TIMES, {"other": TIMES}), decay(k=0.9, sd=0.01, seed=2)]


def compare(outcomes: list[Fit | Failure]) -> None:
    """The answers of an executor are those without one, and the bad data set stops none."""
    alone = fit_many(DECAY, sets())
    assert [is_failure(outcome) for outcome in outcomes] == [False, True, False]
    assert "no output 'other'" in outcomes[1].message
    for outcome, reference in zip(outcomes[::2], alone[::2], strict=True):
        assert numbers(outcome) == numbers(reference)


def test_many_on_jobs():
    compare(fit_many(DECAY, sets(), jobs=2))
    with pytest.raises(ModelError, match="jobs must be"):
        fit_many(DECAY, sets(), jobs=0)


def test_many_in_processes():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        compare(fit_many(DECAY, sets(), executor))


def test_many_on_dask(tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        compare(fit_many(DECAY, sets(), client.get_executor()))


# --- the starts of one fit on other cores and machines ---

CURVE = Model({"x": "a*x - b*x*y", "y": "c*x*y - d*y"}, {"prey": "x"}, bounds=dict.fromkeys("abcd", (0.05, 5.0)))
"""Sparse data of it are searched for in the box."""


UNKNOWN = pickle.dumps((0, None, 0, 0, 0, False))
"""A question about nothing that anybody knows: once there is an answer, who gave it stands ready."""


@pytest.fixture(scope="module")
def sparse() -> Data:
    times = np.linspace(0, 9, 10)
    clean = simulate(CURVE, {"a": 1.1, "b": 0.4, "c": 0.1, "d": 0.4}, {"x": 10.0, "y": 5.0}, times)["prey"]
    return Data(times, {"prey": clean * (1 + 0.02 * np.random.default_rng(1).normal(size=10))})


@pytest.fixture(scope="module")
def alone(sparse) -> Fit:
    return fit(CURVE, sparse, seed=2, time_limit=600)


@pytest.fixture
def at_once(monkeypatch):
    """Ask others without waiting to see how long it takes."""
    monkeypatch.setattr(workers, "PATIENCE", -1.0)


@pytest.fixture
def counted(monkeypatch) -> list[object]:
    """Answers that came from elsewhere."""
    found, plain = [], workers.Workers._reply

    def reply(self, pending):
        told = plain(self, pending)
        found.extend([] if told is None else [told])
        return told

    monkeypatch.setattr(workers.Workers, "_reply", reply)
    return found


def is_same(one: Fit, other: Fit) -> bool:
    """Whether two fits are equal to the last bit, with the way on which they came."""
    return numbers(one) == numbers(other)


def test_starts_on_processes(sparse, alone, at_once, counted):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        executor.submit(workers.answer, UNKNOWN).result()  # it stands ready
        assert is_same(fit(CURVE, sparse, seed=2, time_limit=600, executor=executor), alone)
    assert counted


def test_starts_on_a_dask_cluster_of_two_processes(sparse, alone, at_once, counted, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(workers.answer, UNKNOWN)
        assert is_same(fit(CURVE, sparse, seed=2, time_limit=600, executor=client), alone)
        before = len(counted)
        assert before > 0
        first = next(iter(cluster.workers.values()))
        os.kill(first.process.pid, signal.SIGKILL)  # it is replaced, and until then the other goes on
        assert is_same(fit(CURVE, sparse, seed=2, time_limit=600, executor=client.get_executor()), alone)
        assert len(counted) > before


def test_an_executor_is_one_of_concurrent_futures(sparse):
    with pytest.raises(ModelError, match=r"executor must be one of concurrent\.futures.*not int '4'"):
        fit(CURVE, sparse, executor=4)


# --- checkpoints ---


class Killed(BaseException):
    """What no code expects."""


@pytest.fixture
def killed(monkeypatch):
    """Have a fit end at once when it has kept so many results."""

    def after(count: int) -> None:
        kept, plain = [], Journal.keep

        def keep(self, key, content):
            plain(self, key, content)
            kept.append(key)
            if len(kept) == count:
                raise Killed

        monkeypatch.setattr(Journal, "keep", keep)

    plain = Journal.keep
    yield after
    Journal.keep = plain


def test_a_fit_that_is_killed_goes_on_where_it_was(sparse, alone, killed, tmp_path, monkeypatch):
    path, plain, recall, known = tmp_path / "fit.ckpt", Journal.keep, Journal.recall, []
    for count in (3, 40, 200):
        killed(count)
        with pytest.raises(Killed):
            fit(CURVE, sparse, seed=2, time_limit=600, checkpoint=path)
        monkeypatch.setattr(Journal, "keep", plain)

    def recalled(self, key):
        found = recall(self, key)
        known.extend([] if found is None else [key])
        return found

    monkeypatch.setattr(Journal, "recall", recalled)
    assert numbers(fit(CURVE, sparse, seed=2, time_limit=600, checkpoint=str(path))) == numbers(alone)
    assert len(known) > 200  # some questions are asked twice
    assert not path.exists()


RUN = """
import sys, pickle, odejet as oj
model, data = pickle.load(open(sys.argv[1], "rb"))
found = oj.fit(model, data, seed=2, time_limit=600, checkpoint=sys.argv[2])
found.save(sys.argv[3])
"""


@pytest.mark.slow
def test_ten_random_kills_cost_nothing_but_time(sparse, alone, tmp_path):
    asked, path, saved = tmp_path / "asked", tmp_path / "fit.ckpt", tmp_path / "fit.json"
    asked.write_bytes(pickle.dumps((CURVE, sparse)))
    rng, killed, sizes = np.random.default_rng(), 0, [0]
    while not saved.exists():
        command = [sys.executable, "-c", RUN, str(asked), str(path), str(saved)]
        with subprocess.Popen(command, env=processes.environment()) as child:
            while killed < 10 and child.poll() is None:
                if path.exists() and path.stat().st_size > sizes[-1]:  # it has come farther than before
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.wait(rng.uniform(0.0, 0.2))
                    child.kill()
                    killed += child.wait() == -signal.SIGKILL
                    sizes.append(path.stat().st_size if path.exists() else 0)
                time.sleep(0.002)
    assert killed >= 3 and sizes[1] > 0
    assert numbers(Fit.load(saved)) == numbers(alone)


def test_a_checkpoint_of_another_fit_is_refused(sparse, killed, tmp_path):
    path = tmp_path / "fit.ckpt"
    killed(1)
    with pytest.raises(Killed):
        fit(CURVE, sparse, seed=2, checkpoint=path)
    content = path.read_bytes()
    other = Data(
        sparse.experiments[0].outputs["prey"].times, {"prey": sparse.experiments[0].outputs["prey"].values + 1}
    )
    for asked, words in (
        ({"data": sparse, "seed": 3}, "its seed differs"),
        ({"data": sparse, "effort": "full"}, "its effort differs"),
        ({"data": sparse, "noise": "relative"}, "its problem differs"),
        ({"data": sparse, "bounds": (0.1, 20)}, "its problem differs"),
        ({"data": other}, "its problem differs"),
        ({"data": sparse, "method": Method(strategies=["multistart"])}, "its method differs"),
    ):
        with pytest.raises(DataError, match=f"fit.ckpt: the checkpoint is of another fit: {words}"):
            fit(CURVE, **{"seed": 2, "checkpoint": path, **asked})
    with pytest.raises(ModelError, match="checkpoint must be the name of a file, not 3"):
        fit(CURVE, sparse, checkpoint=3)
    assert path.read_bytes() == content


def test_an_interrupted_fit_keeps_its_checkpoint(sparse, alone, tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    with monkeypatch.context() as patch:
        patch.setattr(ladder, "is_over", interrupt)
        assert not fit(CURVE, sparse, seed=2, time_limit=600, checkpoint=path).certified
    assert path.exists()
    assert numbers(fit(CURVE, sparse, seed=2, time_limit=600, checkpoint=path)) == numbers(alone)
    assert not path.exists()


def test_what_workers_find_is_kept_too(sparse, alone, killed, at_once, counted, tmp_path):
    path = tmp_path / "fit.ckpt"
    with ThreadPoolExecutor(1) as executor:
        killed(150)
        with pytest.raises(Killed):
            fit(CURVE, sparse, seed=2, time_limit=600, checkpoint=path, executor=executor)
    assert counted and path.exists()
    killed(10**9)
    assert numbers(fit(CURVE, sparse, seed=2, time_limit=600, checkpoint=path)) == numbers(alone)


# --- interruption ---


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("bounds", [(2, 10), (5, 20)])
def test_counts_that_no_mean_comes_near_are_fitted_all_the_same(bounds):
    model = Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 1e6}, bounds={"k": bounds})
    data = Data(np.arange(1, 21.0), {"y": 500.0 + np.arange(20)}, start=0)
    found = fit(model, data, noise="negbinomial(a)", time_limit=5)
    assert bounds[0] <= found.values["k"] < 1.2 * bounds[0] and not found.certified
    assert math.isfinite(found.aic) and found.summary()


def test_interruption_leaves_the_best_so_far(monkeypatch):
    monkeypatch.setattr(ladder, "is_over", interrupt)
    answer = fit(DECAY, decay(sd=0.01))
    assert not answer.certified and not answer.certificate.granted
    assert "interrupted" in answer.certificate.sentence
    assert answer.parameters["k"] == pytest.approx(0.5, rel=0.05)


def test_interruption_before_any_answer(monkeypatch):
    monkeypatch.setattr(stages, "smooth", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(DECAY, decay())


def test_noise_that_alone_is_unknown_is_found():
    """The root of the mean square of the residuals, in closed form."""
    times = np.linspace(0, 3, 30)
    values = 2 * np.exp(-times) + 0.1 * np.random.default_rng(1).normal(size=30)
    model = Model({"x": "-x"}, {"y": "x"}, initial={"x": 2})
    found = fit(model, Data(times, {"y": values}), noise={"y": "normal(s)"}, bounds={"s": (1e-5, 10)})
    assert found.certified
    assert found.values["s"] == pytest.approx(np.sqrt(np.mean((values - 2 * np.exp(-times)) ** 2)), rel=1e-6)
