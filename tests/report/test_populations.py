"""The page of a population: every subject and output has its pictures, in place of files from elsewhere."""

from __future__ import annotations

import re

import numpy as np
import pytest

import odejet as oj


@pytest.fixture(scope="module")
def fit():
    rng, parts = np.random.default_rng(8), []
    model = oj.Model({"c": "-k*c"}, {"y": "c"}, initial={"c": 5}, name="bolus <b>")
    times = np.array([0.5, 1, 2, 4, 8])
    for i in range(6):
        curve = 5 * np.exp(-0.3 * np.exp(0.3 * rng.normal()) * times)
        values = curve + 0.05 * rng.normal(size=5)
        parts.append(oj.Data(times, {"y": values}, name=f"s&{i}", start=0).experiments[0])
    return oj.fit(oj.Population(model, oj.Data.of(parts), random={"k": "lognormal"}), time_limit=30)


def test_the_page_of_a_population(fit, tmp_path):
    fit.report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text()
    assert "bolus &lt;b&gt;" in page and "<b>" not in page and "s&amp;3" in page
    assert "<img" not in page and "src=" not in page and "://" not in page.replace("http://www.w3.org", "")
    # A check, six subjects, two of observed against predicted, and three each of CWRES and NPDE.
    assert len(re.findall("<figure", page)) == 1 + 6 + 2 + 6
    assert "visual predictive check of y" in page and "NPDE of y" in page
    assert len(re.findall("<th[ >]", page)) == 4 + 2 and not re.search(r"<th[^>]*></th>", page)
