"""Data of the examples: simulated, with noise from a fixed seed.  Run it to write the CSV files again."""

from pathlib import Path

import numpy as np

import odejet as oj

HERE = Path(__file__).parent


def measured(name, parameters, initial_state, times, sd, seed, experiment=None, digits=7, relative=True):
    """A table of noisy outputs; `sd` is relative to the mean of each output, unless told otherwise."""
    network = HERE / f"{name}.ant"
    model = oj.read_antimony(network) if network.exists() else oj.Model.from_toml(HERE / f"{name}.toml")
    frame = oj.simulate(model, parameters, initial_state, times).to_dataframe()
    rng = np.random.default_rng(seed)
    for output in model.outputs:
        size = abs(frame[output].mean()) if relative else 1.0
        noise = sd * size * rng.standard_normal(len(frame))
        frame[output] = (frame[output] + noise).round(digits)
    frame["time"] = frame["time"].round(7)
    if experiment is not None:
        frame.insert(0, "experimentId", experiment)
    return frame


def write(name, *frames):
    import pandas

    pandas.concat(frames).to_csv(HERE / f"{name}.csv", index=False)


def doses():
    """Concentrations after 100 mg every twelve hours, absorbed with a lag of 36 minutes."""
    model = oj.Model.from_toml(HERE / "repeated_doses.toml")
    given = oj.Event(at="tlag", every=12, count=6, set={"gut": "gut + 100"})
    values = {"ka": 0.9, "CL": 4.0, "V1": 20.0, "Q": 3.0, "V2": 30.0, "tlag": 0.6}
    first = [0.3, 0.7, 0.9, 1.2, 1.6, 2, 2.5, 3, 4, 6, 8, 10, 11.9, 12.9, 13.5, 14.5, 16, 20, 24, 25, 26, 28]
    times = [*first, 36, 37, 38, 40, 48, 49, 50, 52, 60, 60.8, 61.2, 61.8, 63, 66, 70, 74, 80, 90]
    frame = oj.simulate(model.replace(events=[given]), values, {}, times, start=0.0).to_dataframe()
    frame["conc"] = (frame["conc"] + 0.05 * np.random.default_rng(12).standard_normal(len(frame))).round(4)
    return frame


def anticoagulant():
    """Twelve people of known weight after one oral dose: concentrations, and what clots blood in percent of
    what it was.

    Clearance and volume grow with weight; the table is as NONMEM and Monolix have it.
    """
    import pandas

    model = oj.Model(
        {"gut": "-ka*gut", "central": "ka*gut - Cl/V*central", "pca": "kout*(100*IC50/(IC50 + C) - pca)"},
        {"conc": "central/V", "activity": "pca"},
        initial={"gut": "dose", "central": 0, "pca": 100},
        expressions={"C": "central/V"},
    )
    typical = {"Cl": 0.13, "V": 8.0, "kout": 0.05, "IC50": 1.2}
    omega = {"Cl": 0.25, "V": 0.15, "kout": 0.2, "IC50": 0.3}
    rng, rows = np.random.default_rng(32), []
    sampled = np.array([2.0, 6, 24, 48, 96])
    judged = np.array([12.0, 24, 48, 72, 96, 144])
    for subject in range(1, 13):
        weight = 40 + 5 * subject
        own = {name: value * np.exp(omega[name] * rng.standard_normal()) for name, value in typical.items()}
        dose = round(1.5 * weight)
        own |= {"Cl": own["Cl"] * (weight / 70) ** 0.75, "V": own["V"] * weight / 70, "dose": dose}
        times = np.union1d(sampled, judged)
        found = oj.simulate(model, {**own, "ka": 0.8}, {}, times, start=0.0)
        seen = found["conc"][np.isin(times, sampled)] * (1 + 0.1 * rng.standard_normal(len(sampled)))
        active = found["activity"][np.isin(times, judged)] + 4 * rng.standard_normal(len(judged))
        rows.append((subject, 0.0, dose, ".", ".", weight))
        rows += [(subject, t, ".", round(float(y), 2), 1, weight) for t, y in zip(sampled, seen, strict=True)]
        rows += [(subject, t, ".", round(float(y), 1), 2, weight) for t, y in zip(judged, active, strict=True)]
    frame = pandas.DataFrame(rows, columns=["ID", "TIME", "AMT", "DV", "DVID", "WT"])
    return frame.sort_values(["ID", "TIME"], kind="stable")


def motor():
    """What a computer set, every tenth of a second, and what it saw of the motor, every hundredth."""
    import pandas

    set_at, times = np.arange(12) / 10, np.arange(121) / 100
    volts = [0.4, 6, 6, 2, 9, 9, 4, 12, 12, 5, 3, 1.5]
    values = {"R": 1.5, "L": 0.02, "K": 0.08, "J": 4e-4, "b": 3e-4, "c": 0.03}
    model = oj.Model.from_toml(HERE / "motor.toml")
    frame = oj.simulate(model, values, {}, times, inputs={"v": (set_at, volts)}).to_dataframe()
    rng = np.random.default_rng(20)
    for output, sd, digits in (("current", 0.05, 3), ("speed", 0.5, 2)):
        frame[output] = (frame[output] + sd * rng.standard_normal(len(frame))).round(digits)
    return frame, pandas.DataFrame({"time": set_at, "v": volts})


def main():
    rates = {"k1": 0.6, "k2": 0.5, "k3": 0.3}
    write("lotka_volterra", measured("lotka_volterra", rates, {"r": 1.5, "w": 0.5}, np.linspace(0, 30, 151), 0.02, 1))
    write(
        "two_experiments",
        measured("two_experiments", rates, {"r": 1.5, "w": 0.5}, np.linspace(0, 20, 121), 0.01, 2, "spring"),
        measured("two_experiments", rates, {"r": 0.6, "w": 1.2}, np.linspace(0, 20, 121), 0.01, 3, "autumn"),
    )
    binding = {"kon1": 5.0, "kon2": 0.3, "koff1": 2.0, "koff2": 0.1, "R1": 0.5, "R2": 0.9}
    bound = {"L": 2.0, "Ca": 0.05, "Cb": 0.4}
    write(
        "receptor_binding",
        measured("receptor_binding", binding, bound, np.linspace(0, 20, 401), 1e-6, 4, digits=9),
    )
    write("decay", measured("decay", {"k": 0.4, "s": 2.0}, {"x": 1.5}, np.linspace(0, 8, 121), 0.01, 5))
    tank = {"tau": 0.5, "Tin": 0.6, "heat": 0.7, "cooling": 0.4}
    write("cstr", measured("cstr", tank, {"C": 0.6, "T": 0.5, "rate": 0.4}, np.linspace(0, 10, 401), 1e-5, 6))
    epidemic = {"a": 0.1, "b": 0.9, "d": 0.3, "g": 0.3, "nu": 0.2}
    start = {"In": 0.05, "N": 1.0, "S": 0.9, "Tr": 0.02}
    enzyme, times, progress = {"Vmax": 0.8, "Km": 1.5}, np.linspace(0, 8, 21), []
    for i, s0 in enumerate((0.5, 1.0, 2.5, 6.0)):
        values = {**enzyme, "s0": s0}
        frame = measured("michaelis_menten", values, {}, times, 0.02, 8 + i, f"from{s0:g}", relative=False)
        progress.append(frame.assign(s0=s0))
    write("michaelis_menten", *progress)
    write("enzyme", measured("enzyme", {}, {}, np.linspace(0, 14, 29), 0.02, 12, digits=4, relative=False))
    write("repeated_doses", doses())
    write("anticoagulant", anticoagulant())
    seen, volts = motor()
    write("motor", seen)
    write("motor_voltage", volts)
    cell, start_of_cell = {"a": 0.7, "b": 0.8, "eps": 0.08}, {"v": -1.0, "w": -0.5}
    spikes = measured("neuron", cell, start_of_cell, np.linspace(0, 100, 201), 0.1, 21, digits=3, relative=False)
    write("neuron", spikes)
    write("sirt", measured("sirt", epidemic, start, np.linspace(0, 20, 201), 1e-3, 7))


if __name__ == "__main__":
    main()
