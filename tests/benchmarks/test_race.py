"""The race: where it ends, and how its table tells who arrived."""

import json
from pathlib import Path

from benchmarks.race import goal_of, table


def test_the_goal_is_the_best_optimum_that_is_known(tmp_path: Path) -> None:
    fits = tmp_path / "collection.jsonl"
    found = [("A", "read", 9.0), ("A", "fit", -2.0), ("A", "fit", -3.0), ("B", "fit", 7.0)]
    rows = ({"problem": name, "task": task, "log_posterior": value} for name, task, value in found)
    fits.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert goal_of("A", -5.0, fits) == 2.1
    assert goal_of("A", -1.0, fits) == 1.1
    assert goal_of("C", -1.0, fits) == 1.1


def test_the_table_counts_all_seconds_for_those_who_arrive() -> None:
    ours = {"problem": "A", "who": "odejet"}
    theirs = {"problem": "A", "who": "pypesto", "compile_seconds": 18.2}
    lines = [
        ours | {"seed": 0, "arrived": True, "seconds": 2.0},
        ours | {"seed": 1, "arrived": False, "seconds": 8.0},
        theirs | {"seed": 0, "arrived": False, "seconds": 20.0},
        {"problem": "A", "who": "copasi", "seed": 0, "inexpressible": "priors"},
    ]
    assert table(lines).splitlines()[-1] == "| A | 10.0 s (1 of 2) | more than 20 s (0 of 1) | 18 s | - |"
