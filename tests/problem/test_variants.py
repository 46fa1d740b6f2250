"""Variants of a problem: what is known of unknowns is kept for those that are left."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.problem.variants import variant

TIMES = np.linspace(0, 4, 9)


def posed() -> oj.Problem:
    model = oj.Model({"x": "-k*x + f*x/(K + x)"}, {"y": "x"})
    parts = [oj.Data(TIMES, {"y": np.exp(-TIMES) + 0.1}, name=name).experiments[0] for name in ("a", "b")]
    return oj.Problem(
        model,
        oj.Data.of(parts),
        bounds={"f": (0, 5), "k": (0, 9), "K": (0.1, 3)},
        positive=["k", "K", "f"],
        noise={"y": "normal(s)"},
        priors={"K": "lognormal(0, 1)", "k": "normal(1, 1)"},
        local=["f"],
        fixed={"x": 1.1},
    )


def test_a_parameter_that_is_given_takes_with_it_what_only_it_needs():
    found = variant(posed(), fixed={"f": 0})
    assert "k" in found.unknowns and not any(label.startswith("f") for label in found.unknowns)
    assert found.bounds["k"] == (0, 9) and set(found.priors) <= {"k", "K"} and "k" in found.priors
    assert found.noise == {"y": "normal(s)"}


def test_an_experiment_alone_has_the_likelihood_of_its_part():
    whole = posed()
    parts = [variant(whole, oj.Data.of([one])) for one in whole.experiments]
    assert parts[0].unknowns != whole.unknowns
    values = {"k": 0.8, "K": 1.0, "s": 0.3}
    both = {**values, "f in a": 0.2, "f in b": 0.4}
    alone = [part.log_likelihood({**values, "f": f}) for part, f in zip(parts, (0.2, 0.4), strict=True)]
    assert sum(alone) == pytest.approx(whole.log_likelihood({key: both[key] for key in whole.unknowns}))


def test_noise_that_is_given_replaces_what_was_there():
    found = variant(posed(), noise={"y": 0.2})
    assert "s" not in found.unknowns and found.noises["y"].level == 0.2
