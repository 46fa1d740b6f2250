"""SVG: pictures as part of a page, in the colours of the page and at any width.

A picture is one `<svg>` element without a width of its own.  Places are percentages and curves live in a coordinate
system that is stretched to the panel, while the widths of strokes, the sizes of dots and all words keep theirs: a
picture is as readable on a phone as on a wide screen.  A dot is a stroke of no length with round ends.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator

import numpy as np

from odejet.report.panels import MANY, Area, Beyond, Dots, Line, Panel, Picture, Rings, Rule, Stripe
from odejet.report.ticks import Axis

UNIT = 4000
"""Steps of the stretched coordinates along each side of a panel."""

CELLS = 260, 70
"""Into how many columns and rows a cloud of very many points is counted."""

SHADES = (0.14, 0.24, 0.36, 0.48)
"""Opacities of cells with few to many points."""

MOST_LABELS = 4
"""Points beyond the edge whose distance is written."""

_DIGIT = 6.3  # pixels of a character of a tick label
_TITLE, _GAP, _TICKS, _LABEL = 22, 12, 18, 15  # pixels above, between and below panels


def drawn(picture: Picture) -> str:
    """A picture as an `<svg>` element."""
    top = _TITLE if picture.title else 6
    parts, y = [], float(top)
    if picture.title:
        parts.append(f'<text class="title" x="0" y="13">{html.escape(picture.title)}</text>')
    for i, panel in enumerate(picture.panels):
        last = i == len(picture.panels) - 1
        parts.append(f'<svg y="{y:g}" width="100%" height="{panel.height:g}" overflow="visible">')
        parts += _panel(panel, last, margin := _margin(picture))
        parts.append("</svg>")
        y += panel.height + (0 if last else _GAP)
    height = y + _TICKS + (_LABEL if picture.label else 0)
    if picture.label:
        parts.append(f'<text class="tick" x="50%" y="{height - 3:g}" text-anchor="middle">{picture.label}</text>')
    style = f"--left:{margin:g}px;height:{height:g}px"
    described = html.escape(picture.description, quote=True)
    return f'<svg class="picture" role="img" aria-label="{described}" style="{style}">{"".join(parts)}</svg>'


def _margin(picture: Picture) -> float:
    """Pixels that the labels of the vertical axes take."""
    longest = max((len(label) for panel in picture.panels for label in panel.y.labels), default=0)
    return math.ceil(10 + _DIGIT * longest + (15 if any(panel.label for panel in picture.panels) else 0))


def _panel(panel: Panel, last: bool, margin: float) -> Iterator[str]:
    for place, label in zip(panel.y.places, panel.y.labels, strict=True):
        at = _percent(1 - float(panel.y.fraction(place)))
        yield f'<line class="grid" x2="100%" y1="{at}" y2="{at}"/>'
        yield f'<text class="tick" x="-6" y="{at}" dy=".35em" text-anchor="end">{html.escape(label)}</text>'
    for place, label in zip(panel.x.places, panel.x.labels, strict=True):
        at = _percent(float(panel.x.fraction(place)))
        yield f'<line class="grid" x1="{at}" x2="{at}" y2="100%"/>'
        if last:
            below = f'x="{at}" y="{panel.height + 14:g}" text-anchor="middle"'
            yield f'<text class="tick" {below}>{html.escape(label)}</text>'
    yield f'<svg viewBox="0 0 {UNIT} {UNIT}" preserveAspectRatio="none" width="100%" height="100%">'
    for layer in panel.layers:
        if not isinstance(layer, Beyond):
            yield from _layer(layer, panel.x, panel.y)
    yield "</svg>"
    yield '<line class="axis" x2="100%" y1="100%" y2="100%"/>'
    for layer in panel.layers:
        if isinstance(layer, Beyond):
            yield from _beyond(layer, panel)
    if panel.label:
        where = f"translate({12 - margin:g} {panel.height / 2:g}) rotate(-90)"
        yield f'<text class="tick" transform="{where}" text-anchor="middle">{html.escape(panel.label)}</text>'


def _layer(layer: Line | Area | Dots | Rings | Rule | Stripe, x: Axis, y: Axis) -> Iterator[str]:
    match layer:
        case Line():
            dash, path = _dash(layer.dashed), _path(_across(x, layer.x), _down(y, layer.y))
            if layer.rimmed:
                yield f'<path class="line rim" d="{path}"/>'
            yield f'<path class="line {layer.colour}"{dash} d="{path}"/>'
        case Area():
            outline = _outline(_across(x, layer.x), _down(y, layer.low), _down(y, layer.high))
            yield f'<path class="fill {layer.colour}" fill-opacity="{layer.opacity:g}" d="{outline}"/>'
        case Dots() if len(layer.x) > MANY:
            yield from _cloud(layer, x, y)
        case Dots():
            spots = _spots(_across(x, layer.x), _down(y, layer.y))
            yield f'<path class="dots paper" stroke-width="{layer.size + 2:g}" d="{spots}"/>'
            yield f'<path class="dots {layer.colour}" stroke-width="{layer.size:g}" d="{spots}"/>'
        case Rings():
            spots = _spots(_across(x, layer.x), _down(y, layer.y))
            for colour, size in (("rust", 13), ("paper", 9.5), ("ink", 5)):
                yield f'<path class="dots {colour}" stroke-width="{size}" d="{spots}"/>'
        case Rule():
            at = int(_across(x, np.array([layer.at]))[0] if layer.vertical else _down(y, np.array([layer.at]))[0])
            dash = _dash(layer.dashed)
            way = f"M{at} 0v{UNIT}" if layer.vertical else f"M0 {at}h{UNIT}"
            yield f'<path class="line thin {layer.colour}"{dash} d="{way}"/>'
        case Stripe():
            ends = np.array([layer.low, layer.high])
            one, other = sorted((_across(x, ends) if layer.vertical else _down(y, ends)).astype(int).tolist())
            box = f"M{one} 0H{other}V{UNIT}H{one}z" if layer.vertical else f"M0 {one}V{other}H{UNIT}V{one}z"
            yield f'<path class="fill {layer.colour}" fill-opacity="{layer.opacity:g}" d="{box}"/>'


def _beyond(layer: Beyond, panel: Panel) -> Iterator[str]:
    """Arrows at the edge; of a few of them, how far the points are."""
    for i, (at, above) in enumerate(zip(panel.x.fraction(layer.x), layer.above, strict=True)):
        y, way = (1, 6) if above else (panel.height - 1, -6)
        yield f'<svg x="{_percent(float(at))}" overflow="visible">'
        yield f'<path class="fill rust" d="M0 {y:g}l4.5 {way}h-9z"/>'
        if i < MOST_LABELS:
            side, anchor = (-8, "end") if at > 0.7 else (8, "start")
            yield f'<text class="tick rust" x="{side}" y="{y + (8 if above else -2):g}" text-anchor="{anchor}">'
            yield f"{html.escape(layer.labels[i])}</text>"
        yield "</svg>"


def _cloud(dots: Dots, x: Axis, y: Axis) -> Iterator[str]:
    """Very many points, counted in cells: the more there are in a cell, the darker it is."""
    columns, rows = CELLS
    counts, *_ = np.histogram2d(y.fraction(dots.y), x.fraction(dots.x), (rows, columns), ((0, 1), (0, 1)))
    ends = [0.0, *np.geomspace(1, max(counts.max(), 2), len(SHADES) + 1)[1:-1], math.inf]
    wide, high = UNIT / columns, UNIT / rows
    for low, top, shade in zip(ends, ends[1:], SHADES, strict=False):
        boxes = []
        for row, own in enumerate((counts > low) & (counts <= top)):
            edges = np.flatnonzero(np.diff(np.concatenate([[0], own.astype(int), [0]])))
            for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
                left, width = round(first * wide), round(stop * wide) - round(first * wide)
                boxes.append(f"M{left} {round((rows - row - 1) * high)}h{width}v{math.ceil(high)}h{-width}z")
        if boxes:
            yield f'<path class="fill {dots.colour}" fill-opacity="{shade}" d="{"".join(boxes)}"/>'


def _dash(wanted: bool) -> str:
    return ' stroke-dasharray="5 4"' if wanted else ""


# --- coordinates ---


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.4g}%"


def _across(axis: Axis, values: np.ndarray) -> np.ndarray:
    return _steps(axis.fraction(values))


def _down(axis: Axis, values: np.ndarray) -> np.ndarray:
    return _steps(1 - axis.fraction(values))


def _steps(fractions: np.ndarray) -> np.ndarray:
    """Whole steps; what is far outside of a panel stays just as invisible nearer to it."""
    return np.round(UNIT * np.clip(fractions, -2.0, 3.0))


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """A line through points, broken where there are none."""
    words, pen = [], None
    for one in zip(x.tolist(), y.tolist(), strict=True):
        if not all(map(math.isfinite, one)):
            pen = None
        elif pen is None:
            words.append(f"M{one[0]:.0f} {one[1]:.0f}")
            pen = one
        elif one != pen:
            words.append(f"l{one[0] - pen[0]:.0f} {one[1] - pen[1]:.0f}")
            pen = one
    return "".join(words)


def _outline(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    known = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
    path = _path(np.concatenate([x[known], x[known][::-1]]), np.concatenate([low[known], high[known][::-1]]))
    return f"{path}z" if path else ""


def _spots(x: np.ndarray, y: np.ndarray) -> str:
    """Strokes of no length."""
    known = np.isfinite(x) & np.isfinite(y)
    return "".join(f"M{one:.0f} {other:.0f}h0" for one, other in zip(x[known].tolist(), y[known].tolist(), strict=True))
