"""Generate: the data sets of the benchmark as files, with the noise-free truth beside them.

python -m benchmarks generate [--output DIR] [--systems ...] [--noise ...] [--trials N] [--seed S] [--scale mean|std]

    DIR/SYSTEM/TRIAL/truth.json     values, and how many draws were refused before
    DIR/SYSTEM/TRIAL/clean.csv      the outputs without noise
    DIR/SYSTEM/TRIAL/noise-ETA.csv  the data

Nothing else needs these files: `run` makes the same data from the same seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks import cells
from benchmarks.cells import Cell, Protocol
from benchmarks.store import write_whole
from problems import systems

OUTPUT = Path("out") / "benchmark-data"


def table(times: np.ndarray, outputs: Mapping[str, np.ndarray]) -> str:
    """Numbers to all their digits."""
    rows = np.column_stack([times, *outputs.values()])
    return "\n".join([",".join(["time", *outputs]), *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n"


def write_trial(folder: Path, name: str, trial: int, noise: list[float], protocol: Protocol) -> int:
    """The files of one trial; the number of draws that were refused."""
    truth = cells.draw(name, trial, protocol)
    facts = {
        "system": name,
        "trial": trial,
        "protocol": asdict(protocol),
        "parameters": truth.parameters,
        "initial_state": truth.initial_state,
        "unidentifiable": list(truth.system.unidentifiable),
        "refused_draws": truth.refused,
        "noise_sd": {f"{eta:g}": cells.noise_levels(truth, eta, protocol.scale) for eta in noise},
    }
    write_whole(folder / "truth.json", json.dumps(facts, indent=1) + "\n")
    write_whole(folder / "clean.csv", table(truth.times, truth.clean))
    for eta in noise:
        data = cells.measured(truth, Cell(name, eta, trial), protocol)
        outputs = {output: series.values for output, series in data.experiments[0].outputs.items()}
        write_whole(folder / f"noise-{eta:g}.csv", table(truth.times, outputs))
    return truth.refused


def main(argv: list[str]) -> int:
    protocol, defaults = systems.protocol(), Protocol()
    options = argparse.ArgumentParser(prog="python -m benchmarks generate", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--output", type=Path, default=OUTPUT)
    options.add_argument("--systems", nargs="+", default=[*systems.names(), *systems.apart()])
    options.add_argument("--noise", type=float, nargs="+", default=list(protocol.noise))
    options.add_argument("--trials", type=int, default=protocol.trials)
    options.add_argument("--seed", type=int, default=defaults.seed)
    options.add_argument("--points", type=int, default=protocol.points)
    options.add_argument("--scale", choices=cells.SCALES, default=defaults.scale, help="what noise is relative to")
    given = options.parse_args(argv)
    chosen = Protocol(given.seed, given.points, given.scale)
    for name in given.systems:
        folders = [(given.output / name / str(trial), trial) for trial in range(given.trials)]
        refused = sum(write_trial(folder, name, trial, given.noise, chosen) for folder, trial in folders)
        print(f"{name}: {given.trials} trials, {refused} draws refused", flush=True)
    return 0
