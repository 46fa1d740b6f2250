"""Theophylline: one dose in each of twelve people; everybody has rates and a volume of their own."""

from pathlib import Path

import odejet as oj

here = Path(__file__).parent
report = here / "output" / "theophylline.html"
report.parent.mkdir(exist_ok=True)

model = oj.Model.from_toml(here / "theophylline.toml")
data = oj.Data.from_csv(here / "theophylline.csv")
fit = oj.fit(model, data, local=["ka", "ke", "V"], positive=True, progress=True)
print(fit)

fit.report(report)
print("\nreport:", report)
