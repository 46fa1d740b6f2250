"""Text: what a terminal shows of a fit, in words that agree with each other."""

from dataclasses import replace

import numpy as np
import pytest

from odejet import Data, Model
from odejet.app.results import result
from odejet.decide import Certificate
from odejet.decide.adequacy import Adequacy, Shortcoming
from odejet.decide.optimality import Optimality
from odejet.report.answer import solutions
from odejet.report.combinations import readable
from tests.fits import predators, refined_fit


@pytest.mark.parametrize("granted", [True, False])
def test_several_reasons_are_for_what_the_first_line_says(granted):
    reasons = "the residuals look like noise and 8 starts agree", "1 of 2 solutions of the model were found"
    shown = str(replace(predators(), certificate=Certificate(granted, reasons)))
    assert ("predators: certified" in shown) == granted == ("not granted" not in shown)
    assert "certificate: granted: the residuals look like noise" in shown or not granted


REASONS = (
    "the residuals look like noise and 8 starts agree",
    "only one start ended at this optimum",
    "K runs off to infinity: no value of it does better than that limit, in which the model has an unknown less",
    "2 other optima are nearly as likely",
    "the time limit was reached",
)
SHORTCOMINGS = tuple(
    Shortcoming("y", (), kind, f"the residuals of y have too much {kind}") for kind in ("size", "tails")
)


def drawn(rng):
    """A certificate of any answers, with any reasons for them and beside them."""

    def some(of):
        return [of[i] for i in rng.permutation(len(of))[: rng.integers(len(of) + 1)]]

    search = Optimality(str(rng.choice(["confirmed", "likely", "open"])), 9, 5, 2, 0.1, some(REASONS))
    adequacy = Adequacy(str(rng.choice(["yes", "no", "untested"])), some(SHORTCOMINGS), some(("look at y",)))
    granted = search == "confirmed" and adequacy == "yes"
    return Certificate(granted, tuple(some(REASONS)), search=search, adequacy=adequacy)


@pytest.mark.parametrize("seed", range(24))
def test_nothing_says_certified_where_anything_says_not(seed):
    certificate = drawn(np.random.default_rng(seed))
    fit = replace(predators(), certificate=certificate, message=certificate.message)
    words = ("not granted", "not certified")
    page = result(fit)
    texts = {"text": str(fit), "notebook": fit._repr_html_(), "page": f"{page['state']} {page['message']}"}
    for where, text in texts.items():
        denied, told = any(word in text for word in words), "certified" in text.replace("not certified", "")
        assert told is fit.certified is not denied, where
    assert ("certificate: granted" in texts["text"]) is fit.certified


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("k1*k2", "k1*k2"),
        ("ka + cl/v", "ka + cl/v"),
        ("7999799999999999*a*b - 8000000000000000*c", "a*b - c"),
        ("7.999799999999999e15*a - 4e15*c**2/v", "a - 0.5*c**2/v"),
        ("33333333*b*k2*s/100000000 - a*k1*s", "0.3333*b*k2*s - a*k1*s"),
        ("-a*k1**2*s - 2.66659997333399966666667e23*a*k1*k2*s/1e24", "-a*k1**2*s - 0.2667*a*k1*k2*s"),
        ("123456789/v + x10000000", "1/v + 8.1e-9*x10000000"),
    ],
)
def test_combinations_have_short_numbers(text, shown):
    assert readable(text) == shown


def test_one_noise_of_many_subjects_is_said_once():
    times = np.linspace(0, 4, 12)
    sets = [Data(times, {"y": np.exp(-k * times)}, name=f"subject {k}") for k in (0.4, 0.5, 0.6)]
    fit = refined_fit(Model({"x": "-k*x"}, {"y": "x"}), Data.join(sets), [1.0, 1.0, 1.0, 0.5], noise=0.125)
    assert "noise: sd of y 0.12\n" in str(fit) or "noise: sd of y 0.13\n" in str(fit)


def test_one_quantity_is_no_plural():
    fit = predators()
    other = replace(fit.solutions[0], parameters=dict(fit.solutions[0].parameters) | {"k1": 9.0})
    page = solutions(replace(fit, solutions=(fit.solutions[0], other)))
    assert "The other 1 quantities" not in page
    states = {one.label for one in fit.unknowns} - {"k1"}
    assert f"The other {len(states)} quantities are the same" in page
