"""Ticks are few, in the range, evenly spaced at round numbers, and their labels say where they are."""

import math

from hypothesis import given
from hypothesis import strategies as st

from odejet.report.ticks import MOST_TICKS, linear, logarithmic, symmetric

NUMBERS = st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-12)
RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")


def value(label):
    mantissa, _, power = label.rpartition("10") if label[-1] in RAISED else (label, "", "")
    return float(mantissa.translate(DIGITS).rstrip("·") or 1) * 10.0 ** int(power.translate(DIGITS) or 0)


@given(NUMBERS, NUMBERS)
def test_linear(one, other):
    axis = linear(min(one, other), max(one, other))
    assert 1 <= len(axis.places) <= MOST_TICKS and len(set(axis.labels)) == len(axis.labels)
    room = 1e-9 * (axis.high - axis.low)
    assert all(axis.low - room <= place <= axis.high + room for place in axis.places)
    step = (axis.high - axis.low) / MOST_TICKS
    for place, label in zip(axis.places, axis.labels, strict=True):
        assert math.isclose(value(label), place, rel_tol=1e-9, abs_tol=0.01 * step)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_a_narrow_panel_has_at_least_two_marks(low, width):
    axis = linear(low, low + width, most=3)
    assert 2 <= len(axis.places) <= 3 and len(set(axis.labels)) == len(axis.labels)
    steps = [after - before for before, after in zip(axis.places, axis.places[1:], strict=False)]
    assert max(steps) - min(steps) < 1e-6 * (axis.high - axis.low)
    for place, label in zip(axis.places, axis.labels, strict=True):
        assert math.isclose(value(label), place, rel_tol=1e-9, abs_tol=1e-3 * steps[0])


def test_years_and_small_numbers():
    assert linear(1900, 1920).labels == ("1900", "1905", "1910", "1915", "1920")
    assert linear(1902.4, 1902.6).labels == ("1902.40", "1902.45", "1902.50", "1902.55", "1902.60")
    assert linear(-1, 1).labels == ("−1.0", "−0.5", "0.0", "0.5", "1.0")
    assert linear(0, 2e-5).labels == ("0", "0.5·10⁻⁵", "1.0·10⁻⁵", "1.5·10⁻⁵", "2.0·10⁻⁵")


@given(st.floats(-300, 299), st.floats(0.01, 300))
def test_logarithmic(exponent, decades):
    low = 10.0**exponent
    high = min(low * 10.0 ** min(decades, 300 - exponent), 1e300)
    axis = logarithmic(low, high)
    assert 2 <= len(axis.places) <= 6
    assert all(low * (1 - 1e-9) <= place <= high * (1 + 1e-9) for place in axis.places)
    assert axis.fraction(low) == 0 and math.isclose(axis.fraction(high), 1)


@given(st.floats(1e-6, 1e6))
def test_symmetric(limit):
    low, zero, high = symmetric(limit).places
    assert zero == 0 and low == -high and 0.3 * limit < high < limit


def test_powers_of_ten_are_written_out_as_long_as_they_are_short() -> None:
    assert logarithmic(1, 1e4).labels == ("1", "100", "10000")
    assert logarithmic(1e-6, 1e6).labels == ("10⁻⁶", "1", "10⁶")
