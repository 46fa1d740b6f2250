"""Tables of text."""

from odejet.tables import table


def test_columns_are_as_wide_as_their_widest_cell_and_empty_ones_are_left_out():
    rows = [("name", "note", "value"), ("k", "", "0.25"), ("a longer one", "", "12")]
    assert table(rows, right=[2]) == [
        "name          value",
        "------------  -----",
        "k              0.25",
        "a longer one     12",
    ]
