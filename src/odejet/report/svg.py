"""SVG: figures as part of a page, in the colours of the page.

A figure becomes one `<svg>` element that needs nothing from outside.  Its ids are made unique within the page, and the
named colours of `plots` become variables of the page's style, so that one picture serves light and dark.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from odejet.report import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    plots.INK: "var(--ink)",
    plots.GRID: "var(--grid)",
    plots.BLUE: "var(--blue)",
    plots.GREY: "var(--grey)",
    plots.RUST: "var(--rust)",
    plots.PAPER: "var(--paper)",
}

_COLOUR = re.compile("|".join(COLOURS))
_REFERENCE = re.compile(r"url\(#")
_FONT = re.compile(r"font: ([\d.]+px) [^;]*")


def inline(figure: Figure, prefix: str, description: str) -> str:
    """A figure as an `<svg>` element whose ids begin with `prefix`."""
    import matplotlib as mpl

    target = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "odejet"}):
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(target.getvalue())
    for element in list(root.iter()):
        for child in list(element):
            if _local(child.tag) == "metadata":
                element.remove(child)
        element.tag = _local(element.tag)
        element.attrib = {
            _local(name): _attribute(_local(name), value, prefix) for name, value in element.attrib.items()
        }
    for name in ("width", "height"):  # the page decides, and keeps the proportions of the viewBox
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": description, "style": f"max-width:{figure.get_figwidth():.2f}in"}
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


def _local(name: str) -> str:
    """A name without its namespace: within HTML the parser knows what is SVG."""
    return name.rpartition("}")[2]


def _attribute(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return prefix + value
    if name == "href" and value.startswith("#"):
        return f"#{prefix}{value[1:]}"
    value = _REFERENCE.sub(f"url(#{prefix}", value)
    if name in ("style", "fill", "stroke"):
        value = _COLOUR.sub(lambda found: COLOURS[found.group()], value)
        value = _FONT.sub(r"font-size: \1", value)
    return value
