"""Pack: the results of a run as one table per method, small enough to be kept.

python -m benchmarks pack [--results DIR] [--to DIR]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.run import RESULTS
from benchmarks.store import Store

PACKED = Path(__file__).parent / "results" / "benchmark"


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks pack", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--results", type=Path, default=RESULTS)
    options.add_argument("--to", type=Path, default=PACKED)
    given = options.parse_args(argv)
    Store(given.results).pack(given.to)
    print(f"{given.to}: {', '.join(sorted(path.name for path in given.to.glob('*.csv')))}")
    return 0
