"""Figures: what a notebook can show of them."""

from tests.fits import predators


def test_a_notebook_shows_a_figure_before_pyplot_was_imported():
    shown = predators().plot()
    assert shown._repr_png_().startswith(b"\x89PNG")
