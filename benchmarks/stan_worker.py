"""One posterior by Stan, in an environment of its own: `python stan_worker.py MODEL.stan DATA.json RESULT.json`.

DATA has the data of the program, how chains begin (`inits`), their number, and how many draws warm up and are kept.
Draws and processor seconds without compilation are written as JSON.  Compiled programs are kept by PyStan.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

import stan


def processor_seconds() -> float:
    """Return what this process and all below it have taken, those that have ended and those that still run."""
    ended = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(usage.ru_utime + usage.ru_stime for usage in ended)
    rows = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        fields = rest.split()
        rows[int(name.split()[0])] = int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    below = {os.getpid()}
    for _ in range(5):
        below |= {process for process, (parent, _) in rows.items() if parent in below}
    return total + sum(rows[process][1] for process in below - {os.getpid()} if process in rows)


def main(program: str, told: str, result: str) -> int:
    asked = json.loads(Path(told).read_text())
    model = stan.build(Path(program).read_text(), data=asked["data"], random_seed=asked["seed"])
    if not asked["draws"]:
        return 0
    before, begun = processor_seconds(), time.time()
    fit = model.sample(
        num_chains=asked["chains"], num_samples=asked["draws"], num_warmup=asked["warmup"], init=asked["inits"]
    )
    seconds = processor_seconds() - before
    chains = asked["chains"]
    draws = {}
    for name in fit.param_names:
        rows = fit[name].reshape(-1, asked["draws"], chains)
        for i, own in enumerate(rows):
            draws[name if len(rows) == 1 else f"{name}[{i + 1}]"] = own.T.tolist()
    divergent = int(fit["divergent__"].sum())
    found = {"seconds": seconds, "wall": time.time() - begun, "draws": draws, "divergent": divergent}
    Path(result).write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
