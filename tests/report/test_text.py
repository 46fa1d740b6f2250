"""Text: what a terminal shows of a fit, in words that agree with each other."""

from dataclasses import replace

import pytest

from odejet.decide import Certificate
from tests.fits import predators


@pytest.mark.parametrize("granted", [True, False])
def test_several_reasons_are_for_what_the_first_line_says(granted):
    reasons = "the residuals look like noise and 8 starts agree", "1 of 2 solutions of the model were found"
    shown = str(replace(predators(), certificate=Certificate(granted, reasons)))
    assert ("predators: certified" in shown) == granted
    assert f"certificate: {'granted' if granted else 'not granted'}, since\n  - the residuals look like noise" in shown
