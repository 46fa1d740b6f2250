"""Theophylline: one dose in each of twelve people; everybody has rates and a volume of their own.

Exchanging the two rates gives the same curve with a volume of a few litres; people have more than ten.
"""

from pathlib import Path

import odejet as oj

here = Path(__file__).parent
report = here / "output" / "theophylline.html"
report.parent.mkdir(exist_ok=True)

model = oj.Model.from_toml(here / "theophylline.toml")
data = oj.Data.from_csv(here / "theophylline.csv")
bounds = {"V": (10, 100), "ka": (0.01, 100), "ke": (0.001, 10)}
fit = oj.fit(model, data, local=["ka", "ke", "V"], bounds=bounds, progress=True)
print(fit)

fit.report(report)
print("\nreport:", report)
