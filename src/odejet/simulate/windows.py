"""Windows in simulations: outputs at a time as differences of what is cumulated, between two times.

The windows of an output end at its *grid*, the times at which it is measured.  A time in between lies in the window
that ends next, so that over time such an output is a staircase; the last time of the grid is followed by a window that
ends at the time asked for, and the first window begins at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from odejet.model.cumulated import Cumulated
from odejet.simulate.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Window:
    """An output over windows: its place among all, whether it is a mean, and the times at which its windows end."""

    place: int
    is_mean: bool
    grid: np.ndarray  # in order, without repetitions

    def beyond(self, times: np.ndarray) -> Window:
        """Return the window with those times in its grid that are later than all of it."""
        last = self.grid[-1] if len(self.grid) else -np.inf
        return replace(self, grid=np.r_[self.grid, np.unique(times[(times > last) & np.isfinite(times)])])

    def spans(self, times: np.ndarray, start: float) -> tuple[np.ndarray, np.ndarray]:
        """Return where the window of each time begins and ends."""
        place = np.searchsorted(self.grid, times, side="left")  # the end of the window, unless it is beyond all
        ends = np.append(self.grid, np.inf)[place]
        ends = np.where(np.isfinite(ends), ends, times)
        begins = np.where(place > 0, np.append(start, self.grid)[place], start)
        if self.is_mean and len(later := self.grid[self.grid > start]):
            # There is no average over no time: at the start it is that of the first window.
            ends = np.where(begins == ends, later[0], ends)
        return begins, ends


def windows_of(cumulated: Cumulated, grids: Mapping[str, np.ndarray]) -> tuple[Window, ...]:
    """Return the windows of a model whose outputs are measured at these times."""
    places = {name: i for i, name in enumerate(cumulated.model.outputs)}
    nothing = np.zeros(0)
    return tuple(
        Window(places[name], is_mean, np.unique(grids.get(name, nothing)))
        for name, is_mean in cumulated.outputs.items()
    )


def over_windows(
    windows: tuple[Window, ...], times: np.ndarray, start: float, solved: Callable[[np.ndarray], Trajectory]
) -> Trajectory:
    """Return a trajectory at times, in which outputs over windows are what happened in these.

    `solved` simulates what is cumulated, at any times in order.
    """
    spans = [one.spans(times, start) for one in windows]
    asked = np.unique(np.concatenate([times, *(end for span in spans for end in span)]))
    found = solved(asked)
    # Times are reached as far as the windows that they lie in.
    last = np.maximum.reduce([times, *(np.maximum(*span) for span in spans)])
    first = np.minimum.reduce([times, *(np.minimum(*span) for span in spans)])
    there = asked[found.reached]
    reached = np.flatnonzero(np.isin(last, there) & np.isin(first, there) & np.isin(times, there))
    rows = np.searchsorted(there, times[reached])
    outputs = found.outputs[rows].copy()
    for one, (begins, ends) in zip(windows, spans, strict=True):
        begin, end = (np.searchsorted(there, part[reached]) for part in (begins, ends))
        change = found.outputs[end, one.place] - found.outputs[begin, one.place]
        if one.is_mean:
            with np.errstate(invalid="ignore"):
                change = change / (ends - begins)[reached][:, None]
        outputs[:, one.place] = change
    return replace(found, reached=reached, states=found.states[rows], outputs=outputs)
