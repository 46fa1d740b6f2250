"""Michaelis–Menten: an enzyme's progress from four concentrations of its substrate; Vmax and Km are shared."""

from pathlib import Path

import odejet as oj

here = Path(__file__).parent
report = here / "output" / "michaelis_menten.html"
report.parent.mkdir(exist_ok=True)

model = oj.Model.from_toml(here / "michaelis_menten.toml")
data = oj.Data.from_csv(here / "michaelis_menten.csv")
fit = oj.fit(model, data, progress=True)
print(fit)

fit.report(report)
print("\nreport:", report)
