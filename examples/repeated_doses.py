"""Repeated doses: a drug given every twelve hours, absorbed after a lag that nobody knows.

Three sets of values give the same concentrations, since absorption and the two ways out of the blood may be exchanged;
people have more than ten litres of blood and tissue that the drug mixes with at once.
"""

from pathlib import Path

import odejet as oj

here = Path(__file__).parent

model = oj.Model.from_toml(here / "repeated_doses.toml")
data = oj.Data.from_csv(here / "repeated_doses.csv", doses=here / "repeated_doses_given.csv")
fit = oj.fit(model, data.starting(0), bounds={"V1": (10, 100)}, positive=True, progress=True)
print(fit)
