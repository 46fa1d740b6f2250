"""The population benchmark: closed forms of made data beside simulations, and reports."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.population import growth_report, study_report, table_report
from benchmarks.population_study import KINDS

CELLS = {"value": 1.1, "stderr": 0.1, "low": 0.9, "high": 1.3}


@pytest.mark.parametrize("kind", KINDS)
def test_made_populations_follow_their_models(kind) -> None:
    """Subjects without noise and without differences are what the model predicts at the truth."""
    truth = dict(KINDS[kind].truth)

    class Quiet:
        def standard_normal(self, size=None):
            return 0.0 if size is None else np.zeros(size)

    population = KINDS[kind].make(3, Quiet())
    assert set(population.names) == set(truth)
    layout = population.layout
    moments = layout.moments(layout.to(truth))
    for i, subject in enumerate(population.members):
        predicted = subject.predict(moments.means[i][None], moments.common[i])[0]
        assert predicted == pytest.approx(subject.values, rel=1e-6)


def record(key, **more):
    found = {"minus_two_log_likelihood": 10.0, "error": 0.01, "processor": 2.0, "search": "confirmed", "success": True}
    return {"key": key, "estimates": {"ka": CELLS}, "rivals": [], **found, **more}


def test_reports_count_what_holds() -> None:
    names = KINDS["oral"].truth
    own = {name: {**CELLS, "value": true, "low": 0.9 * true, "high": 1.1 * true} for name, true in names.items()}
    text = study_report([record(["oral", 30, 0, 0], estimates=own), record(["oral", 30, 0, 1], estimates=own)])
    assert "| oral | 2 | ka | 1 | +0.0 % | 2 of 2 (100 %) |" in text
    assert "0 of 2 fits failed" in text
    published = {
        "program": "X",
        "values": {"ka": 1.0},
        "errors": {"ka": 0.2},
        "minus_two_log_likelihood": 11.0,
        "standard_error": float("nan"),
    }
    assert "| ka 0.50 | 2 |" in table_report([record(["a", 0], published=published)])
    assert "| 4 | 2.0 | 0.500 | 10.00 ± 0.010 |" in growth_report([record([4, 0])])
