"""Lotka–Volterra: only noisy counts of the prey are known; find all rates and both initial states, without a guess."""

from pathlib import Path

import odejet as oj

here = Path(__file__).parent
report = here / "output" / "lotka_volterra.html"
report.parent.mkdir(exist_ok=True)

model = oj.Model.from_toml(here / "lotka_volterra.toml")
data = oj.Data.from_csv(here / "lotka_volterra.csv")
fit = oj.fit(model, data, progress=True)
print(fit)

fit.report(report)
print("\nreport:", report)
