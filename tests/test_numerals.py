"""Numerals: digits that mean something, and no exponent where nobody would write one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet.numerals import between, duration, measured, moment, short, significant, whole


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (1.50134, 0.003, "1.5013"),
        (1234.56, 200.0, "1230"),
        (34.61, 2.9, "34.6"),
        (0.0, 1.0, "0"),
        (2.5, 0.0, "2.5"),
        (6.02214e23, 1e19, "6.02214e23"),
        (1.6e-19, 1e-21, "1.600e-19"),
    ],
)
def test_measured(value, error, shown):
    assert measured(value, error) == shown


def test_errors_have_two_digits_and_no_exponent():
    assert [significant(error, 2) for error in (200.0, 0.00316, 12.3, 99.9, 3.16e7)] == [
        "200",
        "0.0032",
        "12",
        "100",
        "3.2e7",
    ]


def test_ends_far_from_the_value_have_few_digits():
    assert between(1.81e-71, 5.54015138346e100, 3.0, 2.0) == "[1.8e-71, 5.5e100]"
    assert between(1.4955, 1.5072, 0.003, 1.5013) == "[1.4955, 1.5072]"


def test_years_keep_their_digits():
    assert [moment(time) for time in (0.339, 1902.5, 20.0, 1.7e9)] == ["0.339", "1902.5", "20", "1700000000"]


def test_statistics():
    assert [whole(number) for number in (146.0, 99993.2, 0.25, -24135.7)] == ["146", "99993", "0.25", "-24136"]


def test_durations():
    assert [duration(s) for s in (0.0123, 4.53, 125.2)] == ["12 ms", "4.5 s", "2 min 5 s"]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 12))
def test_digits_are_those_of_the_number(value, count):
    assert math.isclose(float(significant(value, count)), float(f"{value:.{count - 1}e}"), rel_tol=1e-9, abs_tol=5e-324)
    assert math.isclose(float(short(value, count)), float(f"{value:.{count - 1}e}"), rel_tol=1e-9, abs_tol=5e-324)


def test_open_ends_and_whole_minutes() -> None:
    assert between(0.0, math.inf, math.inf) == "[0, ∞]"
    assert between(-math.inf, 2.0, 0.1) == "[-∞, 2.00]"
    assert duration(120.2) == "2 min"
    assert duration(125.0) == "2 min 5 s"
