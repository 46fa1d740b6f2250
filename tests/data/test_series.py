"""Series: cleaning of input."""

import numpy as np
import pytest

from odejet.data.series import series
from odejet.errors import DataError


def test_missing_values_are_left_out_and_times_are_sorted() -> None:
    data = series([3.0, 1.0, 2.0, 0.0, 4.0], [9.0, 1.0, np.nan, 0.0, 16.0])
    assert data.times.tolist() == [0.0, 1.0, 3.0, 4.0]
    assert data.values.tolist() == [0.0, 1.0, 9.0, 16.0]


def test_sds_follow_their_values() -> None:
    data = series([1.0, 0.0, 2.0, 3.0, 4.0], [1.0, 0.0, 2.0, np.nan, 5.0], [0.1, 0.2, 0.3, np.nan, 0.4])
    assert data.sds is not None
    assert data.sds.tolist() == [0.2, 0.1, 0.3, 0.4]


@pytest.mark.parametrize(
    ("times", "values", "sds", "sentence"),
    [
        ([0, 1, 2, 3], [1, 2, 3], None, "there are 4 times but 3 values"),
        ([0, 1, 2, 3], [1, 2, np.inf, 3], None, "value 2 is infinite; mark missing measurements with NaN"),
        ([0, np.nan, 2, 3], [1, 2, 3, 4], None, "time 1 is not a finite number"),
        ([0, 1, 2, 3], [1, 2, 3, 4], [1, 0, 1, 1], "standard deviations must be positive finite numbers"),
        ([0, 1, 2, 3], [1, 2, 3, 4], [1, 1], "there are 4 values but the standard deviations have shape (2,)"),
        (["a", "b"], [1, 2], None, "the times must be numbers"),
        ([[0, 1], [2, 3]], [1, 2], None, "the times must be a one-dimensional list, not of shape (2, 2)"),
    ],
)
def test_bad_input_gets_one_clear_sentence(times: object, values: object, sds: object, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        series(times, values, sds)
    assert str(caught.value).startswith(sentence)
