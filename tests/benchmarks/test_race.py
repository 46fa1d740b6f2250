"""The race: who has arrived, and how its table tells it."""

from benchmarks.race import LEAST, goal_of, ours, table, time_for


def test_the_goal_is_the_best_optimum_that_is_known():
    found = [("A", "read", -5.0), ("A", "amici", 9.0), ("A", "fit", -2.0), ("A", "fit", -3.0), ("B", "read", 7.0)]
    fits = [{"problem": name, "task": task, "log_posterior": value} for name, task, value in found]
    assert goal_of("A", fits) == 2.1
    assert goal_of("B", fits) == -6.9


def test_fits_tell_when_they_arrived():
    fit = {"problem": "A", "task": "fit", "seconds": 8.0}
    fits = [
        {**fit, "seed": 0, "course": [[1.5, 3.0], [2.0, 2.05]]},
        {**fit, "seed": 1, "course": [[7.0, 2.5]]},
        {**fit, "problem": "B", "seed": 0, "course": [[1.0, 0.0]]},
    ]
    own = ours("A", 2.1, fits)
    assert [(one["arrived"], one["seconds"]) for one in own] == [(True, 2.0), (False, 8.0)]
    assert time_for(own, 1e9) == 100.0
    assert time_for(own, 60.0) == 60.0
    assert time_for(ours("B", 0.0, fits), 1e9) == LEAST


def test_the_table_counts_all_seconds_for_those_who_arrive():
    ours = {"problem": "A", "who": "odejet"}
    theirs = {"problem": "A", "who": "pypesto", "compile_seconds": 18.2}
    lines = [
        ours | {"seed": 0, "arrived": True, "seconds": 2.0},
        ours | {"seed": 1, "arrived": False, "seconds": 8.0},
        theirs | {"seed": 0, "arrived": False, "seconds": 20.0},
        {"problem": "A", "who": "copasi", "seed": 0, "inexpressible": "priors"},
    ]
    assert table(lines).splitlines()[-1] == "| A | 10.0 s (1 of 2) | more than 20 s (0 of 1) | 18 s | - |"
