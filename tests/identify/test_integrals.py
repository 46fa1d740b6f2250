"""First integrals: models that have one, models that have none, and what follows for one experiment."""

import pytest

from odejet import Model
from odejet.budget import Budget
from odejet.identify import integrals, local, wronskian
from odejet.identify.coefficients import Coefficients
from odejet.identify.globally import PRIME
from problems import zoo


def facts(model: Model) -> Coefficients:
    problem = local.problem(model)
    at = problem.at_random(PRIME, 0, 20)
    found = Coefficients(problem, at, list(range(len(model.parameters))), frozenset(), Budget.within(60))
    found.parameters += [at.point.states[i] for i in problem.still]
    found.first = found._first()
    found.plan = found.first.found
    found._extend()
    return found


WITHOUT = {
    "two decays": Model({"x": "-a*x", "y": "-b*y"}, {"z": "x + y"}),
    "a spiral": Model({"x": "a*(x - y)", "y": "a*(x + y)"}, {"z": "x"}),
    "prey and predators, whose integral has logarithms": Model({"x": "a*x - b*x*y", "y": "-c*y + d*x*y"}, {"z": "x"}),
    "a tank that is filled": Model({"x": "u - k*x", "y": "k*x - m*y/(1 + y)"}, {"z": "y"}, inputs={"u": "exp(-t)"}),
    "a sum that is conserved counts as a parameter": Model({"x": "-a*x + b*y", "y": "a*x - b*y"}, {"z": "x"}),
}

WITH = {
    "an oscillator": Model({"x": "w*y", "y": "-w*x"}, {"z": "x"}),
    "y/x^2": Model({"x": "-a*x", "y": "-2*a*y"}, {"z": "x + y"}),
    "x*y": Model({"x": "-a*x", "y": "a*y"}, {"z": "x + y"}),
    "x - 2 y": Model({"x": "2*u", "y": "u", "v": "-a*v*x"}, {"z": "x + y + v"}, inputs={"u": "exp(-t)"}),
    "rates that are numbers": Model({"x": "-2*x", "y": "-3*y"}, {"z": "x + a*y"}),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_none_is_seen_to_be_none(name):
    assert integrals.absent(facts(WITHOUT[name]).started())


@pytest.mark.parametrize("name", WITH)
def test_an_integral_is_never_denied(name):
    assert not integrals.absent(facts(WITH[name]).started())


@pytest.mark.parametrize(
    "name", ["bilirubin", "michaelis_menten", "two_term_fraction", "slow_fast", "hiv_latent", "sliqr", "hiv_viral_load"]
)
def test_without_integrals_one_experiment_has_the_full_rank(name):
    found = facts(zoo.by_name(name).model)
    assert integrals.absent(found.started())
    assert wronskian.needed(found.first, found.problem, 1, Budget.within(60)) == 1
