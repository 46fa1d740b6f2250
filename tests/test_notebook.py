"""Notebook: every result is shown as a table there, with all of its words escaped."""

from __future__ import annotations

import html.parser
import inspect
import re

import numpy as np
import pytest

import odejet as oj
from odejet.population.estimates import Estimates
from odejet.population.prediction import PopulationPrediction
from odejet.population.ranking import PopulationRanking
from odejet.selection.petab_select import PetabSelection
from odejet.uncertainty.profile import Profile

HOSTILE = "decay <b>&amp;"


class Balanced(html.parser.HTMLParser):
    """Reads a fragment, in which every tag is closed in turn, and keeps its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words = ""
        self.feed(text)
        assert self.open == [], f"{self.open} stay open"

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += f" {data}"


@pytest.fixture(scope="module")
def shown():
    """One of every kind of result, and words that its table has."""
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, name=HOSTILE)
    times = np.linspace(0, 4, 12)
    simulation = oj.simulate(model, {"k": 0.7}, {"x": 2.0}, times)
    noise = 0.02 * np.random.default_rng(3).normal(size=12)
    data = oj.Data(times, {"y": simulation["y"] + noise})
    problem = oj.Problem(model, data, positive=True)
    fit = oj.fit(problem)
    other = oj.fit(oj.Model({"x": "-k"}, {"y": "x"}, name="line"), data)
    selection = oj.select(model.replace(states={"x": "-k*x - c"}), data, switches={"c": 0}, method="exhaustive")
    return {
        "Model": (model, "k*x"),
        "Data": (data, "12"),
        "Verdict": (oj.identify(model), "global"),
        "Simulation": (simulation, "least"),
        "Fit": (fit, "x(0)"),
        "Prediction": (fit.predict(np.linspace(0, 9, 90)), "70 more times"),
        "Profile": (fit.profile("k"), "k"),
        "Ranking": (oj.compare([fit, other]), "line"),
        "Selection": (selection, "weight"),
        "Design": (oj.design(model, {"k": 0.7}, {"x": 2.0}, times, 0.1), "twice the points"),
        "Calibration": (oj.calibrate(problem, draws=2), "data sets"),
    }


KINDS = ("Model", "Data", "Verdict", "Simulation", "Fit", "Prediction", "Profile", "Ranking", "Selection", "Design")


@pytest.mark.parametrize("kind", [*KINDS, "Calibration"])
def test_every_result_is_a_table(shown, kind):
    result, words = shown[kind]
    text = result._repr_html_()
    assert type(result).__name__ == kind and "<table" in text and words in Balanced(text).words
    assert "<b>&amp;" not in text.replace("<b>decay", "")


def test_no_public_result_is_without_one():
    """Whatever a public function returns has a table."""
    returned = set()
    for name in oj.__all__:
        if inspect.isfunction(function := getattr(oj, name)):
            returned |= set(re.findall(r"\w+", str(inspect.signature(function).return_annotation)))
    results = [getattr(oj, name) for name in sorted(returned & set(oj.__all__))]
    assert oj.Selection in results and oj.PopulationFit in results
    results += [PetabSelection, PopulationRanking, PopulationPrediction, Estimates, Profile, oj.Prediction, oj.Ranking]
    without = [one.__name__ for one in results if not hasattr(one, "_repr_html_")]
    assert without == ["Failure", "Problem"]  # a sentence, and what was asked
