"""Fit files: what is written comes back exactly, and what is broken is refused with one sentence."""

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet import Data, DataError, Fit, Model, ModelError
from odejet.decide.statistics import OutputCheck
from odejet.io import fits
from odejet.problem import Problem
from odejet.result import Candidates, Certificate, Estimate, Identifiability, Provenance
from odejet.search.refine import evaluated
from odejet.uncertainty import Matrix, Uncertainty
from tests.fits import driven, predators

ONE, TWO = predators(), driven()
NEEDED = {
    *("model", "data", "unknowns", "covariance", "directions", "noise_freedom", "cost", "aic", "bic", "success"),
    *("message", "solutions", "certificate", "provenance", "census", "stages", "seconds", "verdict", "candidates"),
    *("weights", "noise_given", "seed", "effort", "held"),
}

finite = st.floats(allow_nan=False, allow_infinity=False)
maybe = st.floats(allow_infinity=False)  # NaN is what does not exist
upward = st.floats(allow_nan=False).filter(lambda x: x != -math.inf)  # infinity is what has no end
words = st.text(max_size=20)
checks = st.builds(OutputCheck, words, st.integers(0), upward, upward, upward, maybe, maybe, maybe, maybe)
certificates = st.builds(
    Certificate,
    st.booleans(),
    st.lists(words, max_size=3).map(tuple),
    st.lists(checks, max_size=2).map(tuple),
    st.integers(0, 9),
    st.dictionaries(words, maybe, max_size=2),
)
provenances = st.builds(Provenance, words, words, st.lists(finite, max_size=3).map(tuple), words)
verdicts = st.none() | st.builds(
    Identifiability,
    st.dictionaries(words, words, max_size=2),
    st.lists(words, max_size=2).map(tuple),
    st.lists(words, max_size=2).map(tuple),
    st.none() | st.integers(1, 9),
    words,
    st.none() | st.integers(1, 9),
)


@st.composite
def random_fits(draw):
    """A fit with anything in it that may be there."""
    n = len(ONE.labels)
    numbers = st.lists(maybe, min_size=n, max_size=n)
    rows = np.array(draw(st.lists(numbers, min_size=n, max_size=n)))
    np.fill_diagonal(rows, draw(st.lists(upward.map(abs), min_size=n, max_size=n)))
    cloud = np.array(draw(st.lists(numbers, max_size=3))).reshape(-1, n)
    size = len(cloud)
    candidates = Candidates(
        cloud,
        np.array(draw(st.lists(upward, min_size=size, max_size=size))),
        tuple(draw(st.lists(words, min_size=size, max_size=size))),
    )
    solutions = [
        Estimate(one.parameters, one.initial_states, draw(upward), draw(st.booleans())) for one in ONE.solutions
    ]
    return replace(
        ONE,
        estimates=np.array(draw(st.lists(finite, min_size=n, max_size=n))),
        uncertainty=Uncertainty(
            Matrix(ONE.unknowns.entries, rows),
            tuple(draw(st.lists(st.dictionaries(st.sampled_from(ONE.labels), finite), max_size=2))),
            {label: draw(upward) for label in ONE.labels},
        ),
        sds={"experiment1": {"y1": np.array(draw(maybe))}},
        cost=draw(upward),
        aic=draw(maybe),
        bic=draw(maybe),
        held=tuple(draw(st.lists(st.sampled_from(ONE.labels), max_size=2, unique=True))),
        success=draw(st.booleans()),
        message=draw(words),
        solutions=tuple(solutions),
        certificate=draw(certificates),
        provenance=draw(provenances),
        census=draw(st.dictionaries(words, st.dictionaries(words, st.integers(), max_size=2), max_size=2)),
        stages=draw(st.dictionaries(words, finite, max_size=2)),
        seconds=draw(finite),
        verdict=draw(verdicts),
        candidates=draw(st.sampled_from([None, candidates])),
        seed=draw(st.integers()),
        effort=draw(words),
    )


def same(one, other):
    """Equal values everywhere, NaN included."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.shape == other.shape and np.array_equal(one, other, equal_nan=True)
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, Problem):
        return isinstance(other, Problem) and same(posed(one), posed(other))
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)
    return one == other


def posed(problem):
    """What a problem is made of, as plain values."""
    known = {name: getattr(problem, name) for name in ("model", "noise", "weights", "local", "unknowns", "bounds")}
    fixed = {name: str(value) for name, value in problem.fixed.items()}
    return known | {"fixed": fixed, "experiments": problem.experiments}


def parts(fit):
    """What a fit is made of, as plain values."""
    return {name: getattr(fit, name) for name in fit.__dataclass_fields__ if name != "smoothed"}


def again(fit):
    """A fit through the text of its file."""
    text = fits.dumps(fit)
    return fits.decode(json.loads(text, parse_constant=pytest.fail), "again")


@given(random_fits())
def test_everything_comes_back(fit):
    back = again(fit)
    for name, value in parts(fit).items():
        assert same(value, parts(back)[name]), name


@pytest.mark.parametrize("fit", [ONE, TWO], ids=["one", "two"])
def test_files(fit, tmp_path):
    path = tmp_path / "fit.json"
    fit.save(path)
    back = Fit.load(path)
    for name, value in parts(fit).items():
        assert same(value, parts(back)[name]), name
    assert back.to_dict() == fit.to_dict()
    assert back.summary() == fit.summary()
    for mine, theirs in zip(fit.compare(), back.compare(), strict=True):
        np.testing.assert_array_equal(mine.standardised, theirs.standardised)
    assert [one.name for one in tmp_path.iterdir()] == ["fit.json"]


def test_names_are_those_of_the_object():
    document = ONE.to_dict()
    for name in (
        "parameters",
        "initial_state",
        "initial_states",
        "success",
        "message",
        "seconds",
        "aic",
        "bic",
        "seed",
    ):
        assert document[name] == getattr(ONE, name)
    assert document["stderr"] == dict(ONE.stderr)
    assert document["intervals"]["k1"] == list(ONE.interval("k1"))
    assert document["certificate"]["granted"] is document["certified"] is False
    assert document["values"] == ONE.values and document["version"] == fits.VERSION


@given(st.none() | st.sampled_from(["relative", "2%", {"y1": 0.1}, {"y1": "relative"}]) | st.floats(1e-6, 1e6))
def test_what_was_known_of_the_noise_comes_back(noise):
    fit = replace(ONE, problem=Problem(ONE.model, ONE.data, (0, 10), noise=noise))
    assert again(fit).problem.noise == noise


def test_experiments_of_their_own_come_back():
    """A start before the first measurement, values by experiment, fixed and local parameters."""
    model = Model({"x": "-k*x + c", "z": "k*x - m*z"}, {"y": "x", "w": "z"}, bounds={"k": (0, 10)}, name="experiments")
    times = np.linspace(1, 4, 12)
    parts = [
        Data(times, {"y": np.exp(-times), "w": times}, name=name, start=0.5, initial={"z": "z0"}, values={"c": value})
        for name, value in (("cold", 0.1), ("hot", "2*ch"))
    ]
    problem = Problem(model, Data.join(parts), fixed={"m": "k/2"}, local=["k"])
    start = np.linspace(0.5, 1.5, len(problem.unknowns))
    fit = Fit.of(problem, evaluated(problem.misfit, start, problem.frame(start)))
    back = again(fit)
    assert same(problem, back.problem) and back.values == fit.values
    assert back.problem.log_likelihood(back.values) == fit.problem.log_likelihood(fit.values)
    assert {label for label in fit.labels if "(0.5)" in label} == {"x(0.5) in cold", "x(0.5) in hot"}


def test_files_of_the_first_version_are_read():
    """Written before experiments had a start: initial states hold at the first measurement."""
    path = Path(__file__).parent / "files" / "version1.json"
    old, fit = json.loads(path.read_text()), Fit.load(path)
    assert fit.labels == ("x(1) in low", "x(1) in high", "k")
    assert fit.parameters == old["parameters"] and fit.initial_states == old["initial_states"]
    assert fit.certified and fit.success
    assert list(fit.stderr.values()) == list(old["stderr"].values())
    for label, ends in zip(fit.labels, old["intervals"].values(), strict=True):
        assert fit.interval(label) == pytest.approx(ends, rel=1e-12)
    assert fit.problem.log_likelihood(fit.values) == pytest.approx(-old["cost"], rel=1e-9)
    assert fit.degrees_of_freedom == old["degrees_of_freedom"] and fit.chi_square == old["chi_square"]
    assert fit.kind("k") == fit.kind("x(1) in low") == "global"
    assert again(fit).to_dict() == fit.to_dict()
    low, high = fit.profile("k").interval()
    assert (low, high) == pytest.approx(fit.interval("k"), rel=2e-3)


def test_numbers_that_json_lacks():
    rows = np.full((5, 5), math.nan)
    np.fill_diagonal(rows, math.inf)
    fit = replace(
        ONE,
        uncertainty=Uncertainty(Matrix(ONE.unknowns.entries, rows), (), dict.fromkeys(ONE.labels, math.inf)),
        cost=math.inf,
        aic=math.nan,
    )
    document = fit.to_dict()
    assert document["stderr"]["k1"] is None and document["cost"] is None and document["aic"] is None
    back = again(fit)
    assert math.isinf(back.stderr["k1"]) and math.isinf(back.cost) and math.isnan(back.aic)
    assert back.undetermined == ONE.labels


# --- refusals ---


def refusal(document):
    with pytest.raises(DataError) as caught:
        fits.decode(document, "x.json")
    told = str(caught.value)
    assert told.startswith("x.json") and "\n" not in told
    return told


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_missing_entries_are_named(name):
    document = ONE.to_dict()
    del document[name]
    assert f"'{name}' is missing" in refusal(document)


@pytest.mark.parametrize("name", sorted(NEEDED))
@pytest.mark.parametrize("junk", [[[[]]], {"a": {"b": []}}, 1e999, "junk"], ids=repr)
def test_junk_is_refused_or_is_text(name, junk):
    document = ONE.to_dict() | {name: junk}
    if isinstance(junk, str) and name in ("message", "effort"):
        assert getattr(fits.decode(document, "x.json"), name) == junk
    else:
        assert f"'{name}'" in refusal(document)


LEAVES = st.sampled_from([None, True, -1, 10**400, 1.5, "", "x" * 30, [], {}, [None], {"a": 1}])


def _places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _places(entry, (*path, key))
    elif isinstance(value, list):
        for i, entry in enumerate(value[:2]):
            yield from _places(entry, (*path, i))


DOCUMENT = ONE.to_dict()
PLACES = [path for path in _places(DOCUMENT) if path]


@given(st.sampled_from(PLACES), LEAVES)
def test_any_change_gives_a_fit_or_a_sentence(path, leaf):
    document = copy.deepcopy(DOCUMENT)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = leaf
    try:
        fit = fits.decode(document, "x.json")
    except DataError as error:
        assert str(error).startswith("x.json") and "\n" not in str(error)
    else:
        assert fit.summary() and fit.compare()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "line 1 is not JSON"),
        ('{"version": 1,\n "cost": ', "line 2 is not JSON"),
        ('{"version": 1, "cost": NaN}', "not a JSON file that a fit was saved to"),
        ("[" * 100_000, "not a JSON file that a fit was saved to"),
        ('{"version": 3}', "version 3 and this odejet reads up to 2; update odejet"),
        ('{"version": "1"}', "no version of a fit file"),
        ('{"version": true}', "no version of a fit file"),
        ("[1, 2]", "it has no version"),
        ('{"k1": 3}', "it has no version"),
    ],
)
def test_files_that_are_no_fits(content, told, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        Fit.load(path)
    assert told in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_files_that_are_not_text(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a JSON file"):
        Fit.load(path)
    with pytest.raises(DataError, match="no such file"):
        Fit.load(tmp_path / "nothing.json")
    with pytest.raises(DataError, match="this is a directory"):
        Fit.load(tmp_path)


def test_a_model_in_a_file_is_never_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = ONE.to_dict()
    document["model"]["toml"] = "[states]\nr = \"__import__('os').system('touch hacked')\"\n"
    assert "'model' cannot be used" in refusal(document)
    assert not list(tmp_path.iterdir())


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "fit.json"
    ONE.save(path)
    before = path.read_bytes()
    with pytest.raises(ModelError, match="no such directory"):
        ONE.save(tmp_path / "nowhere" / "fit.json")
    with pytest.raises(ModelError, match="this is a directory"):
        ONE.save(tmp_path)
    monkeypatch.setattr("odejet.io.files.os.replace", _fails)
    with pytest.raises(ModelError, match="cannot be written"):
        TWO.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["fit.json"]


def _fails(*_):
    raise OSError(28, "No space left on device")
