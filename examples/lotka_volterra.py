"""Lotka–Volterra: simulate with sensitivities, measure with noise, save the data and a picture of it all."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import odejet as oj

here = Path(__file__).parent
csv, png = here / "output" / "lotka_volterra.csv", here / "output" / "lotka_volterra.png"
csv.parent.mkdir(exist_ok=True)

model = oj.Model.from_toml(here / "lotka_volterra.toml")
parameters = {"k1": 0.6, "k2": 0.5, "k3": 0.3}
initial_state = {"r": 1.5, "w": 0.5}
sim = oj.simulate(model, parameters, initial_state, times=np.linspace(0, 30, 301), sensitivities=True)
print(model, sim, sep="\n\n", end="\n\n")

table = sim.to_dataframe(states=True)
for name in sim.unknowns:
    table[f"dy1/d{name}"] = sim.sensitivity("y1", name)
print(table[::30].to_string(index=False, float_format="%.4f"), end="\n\n")

data = sim.to_dataframe()[::6].copy()
data["y1"] += 0.03 * np.random.default_rng(0).standard_normal(len(data))
data.to_csv(csv, index=False)

figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
top.plot(sim.times, sim["y1"], color="#1f4e79", label="prey y1")
top.plot(sim.times, sim.states["w"], color="#1f4e79", linestyle=":", label="predators, not measured")
top.plot(data["time"], data["y1"], "o", color="#c46a2b", markersize=4, label="data")
top.set_title(model.name, loc="left")
for name, value in {**initial_state, **parameters}.items():
    bottom.plot(sim.times, value * sim.sensitivity("y1", name), label=f"{name}(0)" if name in model.states else name)
bottom.set_title("change of y1 per relative change of", loc="left")
bottom.set_xlabel("time")
for panel in (top, bottom):
    panel.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=5, frameon=False)
    panel.grid(color="#e5e5e5")
    panel.spines[["top", "right"]].set_visible(False)
figure.savefig(png, dpi=150)

print("data:", csv)
print("plot:", png)
